// SPDX-License-Identifier: GPL-2.0-only
/* What the two hosts of a group tell each other of themselves. */

#include <linux/utsname.h>

#include "lgr.h"

/* smc_lgr_set_peer() - what the peer says of itself at first contact. Does not sleep. */
void smc_lgr_set_peer(struct smc_lgr *lgr, const struct smc_clc_accept *peer)
{
	struct smc_lgr_peer *known = &lgr->peer;

	spin_lock_bh(&lgr->lock);
	if (peer->version > 1)
		memcpy(known->eid, peer->eid, sizeof(known->eid));
	if (peer->has_fce) {
		memcpy(known->host, peer->host, sizeof(known->host));
		known->release = peer->release;
		known->os_type = peer->os_type;
	}
	spin_unlock_bh(&lgr->lock);
}

/* smc_lgr_set_peer_self() - the peer is this kernel itself. Does not sleep. */
void smc_lgr_set_peer_self(struct smc_lgr *lgr, const u8 eid[SMC_EID_LEN])
{
	struct smc_lgr_peer *known = &lgr->peer;

	spin_lock_bh(&lgr->lock);
	memcpy(known->eid, eid, sizeof(known->eid));
	smc_lgr_hostname(known->host);
	known->release = SMC_CLC_RELEASE;
	known->os_type = SMC_CLC_OS_LINUX;
	spin_unlock_bh(&lgr->lock);
}

/* smc_lgr_hostname() - the name of this host as it goes into messages. Any context. */
void smc_lgr_hostname(u8 host[SMC_HOSTNAME_LEN])
{
	const char *name = init_utsname()->nodename;

	memset(host, ' ', SMC_HOSTNAME_LEN);
	memcpy(host, name, strnlen(name, SMC_HOSTNAME_LEN));
}
