// SPDX-License-Identifier: GPL-2.0-only
/* What the two hosts of a group tell each other of themselves. */

#include <linux/slab.h>
#include <linux/utsname.h>

#include "lgr.h"

/* smc_lgr_learn() - what the peer says of itself at first contact. Does not sleep. */
void smc_lgr_learn(struct smc_lgr *lgr, const struct smc_clc_accept *peer)
{
	spin_lock_bh(&lgr->lock);
	if (peer->version > 1)
		memcpy(lgr->eid, peer->eid, sizeof(lgr->eid));
	if (peer->has_fce) {
		memcpy(lgr->host, peer->host, sizeof(lgr->host));
		lgr->release = peer->release;
		lgr->os_type = peer->os_type;
	}
	spin_unlock_bh(&lgr->lock);
}

/* smc_lgr_hostname() - the name of this host as it goes into messages. Any context. */
void smc_lgr_hostname(u8 host[SMC_HOSTNAME_LEN])
{
	const char *name = init_utsname()->nodename;

	memset(host, ' ', SMC_HOSTNAME_LEN);
	memcpy(host, name, strnlen(name, SMC_HOSTNAME_LEN));
}

/* smc_lgr_learn_self() - the peer is this kernel itself. Does not sleep. */
void smc_lgr_learn_self(struct smc_lgr *lgr, const u8 eid[SMC_EID_LEN])
{
	struct smc_clc_accept *us = kzalloc(sizeof(*us), GFP_ATOMIC);

	if (!us)
		return;
	us->version = 2;
	us->has_fce = true;
	us->release = 1;
	us->os_type = 2;
	memcpy(us->eid, eid, sizeof(us->eid));
	smc_lgr_hostname(us->host);
	smc_lgr_learn(lgr, us);
	kfree(us);
}
