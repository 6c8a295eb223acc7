// SPDX-License-Identifier: GPL-2.0-only
/* Facts that the two hosts of a group send each other about themselves (docs/protocol.md, 3.5). */

#include <linux/utsname.h>

#include "lgr.h"

/* smc_lgr_set_peer() - stores what the peer has sent about itself. Any context but hardirq. */
void smc_lgr_set_peer(struct smc_lgr *lgr, const struct smc_clc_accept *peer)
{
	struct smc_lgr_peer *p = &lgr->peer;

	spin_lock_bh(&lgr->lock);
	if (peer->version > 1)
		memcpy(p->eid, peer->eid, sizeof(p->eid));
	if (peer->has_fce) {
		memcpy(p->host, peer->host, sizeof(p->host));
		p->release = peer->release;
		p->os_type = peer->os_type;
	}
	spin_unlock_bh(&lgr->lock);
}

/* smc_lgr_set_peer_self() - the same for a group whose peer is this kernel. Any context but hardirq. */
void smc_lgr_set_peer_self(struct smc_lgr *lgr, const u8 eid[SMC_EID_LEN])
{
	struct smc_lgr_peer *p = &lgr->peer;

	spin_lock_bh(&lgr->lock);
	memcpy(p->eid, eid, sizeof(p->eid));
	smc_lgr_hostname(p->host);
	p->release = SMC_CLC_RELEASE;
	p->os_type = SMC_CLC_OS_LINUX;
	spin_unlock_bh(&lgr->lock);
}

/* smc_lgr_hostname() - returns the name of this host as messages have it. Any context. */
void smc_lgr_hostname(u8 host[SMC_HOSTNAME_LEN])
{
	const char *name = init_utsname()->nodename;

	memset(host, ' ', SMC_HOSTNAME_LEN);
	memcpy(host, name, strnlen(name, SMC_HOSTNAME_LEN));
}
