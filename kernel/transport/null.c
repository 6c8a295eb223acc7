// SPDX-License-Identifier: GPL-2.0-only
/*
 * A transport that carries no data. It does the handshake of client and server like a real one, and falls back in the last
 * step. For tests of the handshake, and as an example of the contract (transport.h).
 */

#include <linux/init.h>
#include <linux/module.h>
#include <linux/random.h>

#include "../wire/reason.h"
#include "transport.h"

static uint match_reason;
module_param(match_reason, uint, 0644);
MODULE_PARM_DESC(match_reason, "as a server, decline the proposal for this reason (0: accept it)");

static uint attach_reason = SMC_REASON_INTERNAL;
module_param(attach_reason, uint, 0644);
MODULE_PARM_DESC(attach_reason, "decline the peer's ACCEPT or CONFIRM for this reason (0: break the connection)");

static bool early;
module_param(early, bool, 0644);
MODULE_PARM_DESC(early, "as a client, find the reason before CONFIRM, not after it");

static bool version2 = true;
module_param(version2, bool, 0644);
MODULE_PARM_DESC(version2, "speak SMC-Dv2, which needs an EID, not only SMC-D");

#define NULL_CHID 0xffff
#define NULL_GID 0x5ac0ffee5ac0ffeeULL

static void null_local(struct smc_local *l)
{
	l->d1 = true;
	l->d2 = version2;
}

static int null_offer(struct smc_offer *o, struct smc_clc_proposal *p)
{
	p->path_v1 = SMC_PATH_D;
	p->ism_gid = NULL_GID;
	p->ism_chid = 1;
	if (version2 && p->n_eid) {
		p->path_v2 = SMC_PATH_D;
		p->has_v2 = true;
		p->has_d2 = true;
		p->n_gid = 2;
		p->gids[0] = (struct smc_clc_gid){ .gid = NULL_GID, .chid = NULL_CHID };
		p->gids[1] = (struct smc_clc_gid){ .gid = ~NULL_GID, .chid = NULL_CHID };
	}
	return 0;
}

static void null_fill_accept(struct smc_clc_accept *a, u8 type, u8 version)
{
	memset(a, 0, sizeof(*a));
	a->type = type;
	a->version = version;
	a->smcd = true;
	a->first_contact = true;
	a->ism_gid = NULL_GID;
	a->dmb_token = get_random_u64();
	if (version < 2)
		return;
	a->chid = NULL_CHID;
	a->ext_gid = ~NULL_GID;
	a->has_fce = true;
	a->os_type = SMC_CLC_OS_LINUX;
	a->release = SMC_CLC_RELEASE;
	memset(a->host, ' ', sizeof(a->host));
}

static int null_match(struct smc_offer *o, const struct smc_clc_proposal *p, struct smc_clc_accept *a)
{
	bool v2 = version2 && p->has_d2 && p->n_eid;

	if (match_reason)
		return match_reason;
	if (!v2 && !smc_clc_path_has_d(p->path_v1))
		return SMC_REASON_MODE;
	null_fill_accept(a, SMC_CLC_ACCEPT, v2 ? 2 : 1);
	if (v2)
		memcpy(a->eid, p->eid[0], sizeof(a->eid));
	return 0;
}

static int null_attach(struct smc_offer *o, const struct smc_clc_accept *peer, struct smc_clc_accept *us)
{
	bool last = o->server || !peer;

	if (!o->server && peer) {
		null_fill_accept(us, SMC_CLC_CONFIRM, peer->version);
		memcpy(us->eid, peer->eid, sizeof(us->eid));
		us->release = peer->release;
	}
	if (!last && !early)
		return 0;
	return attach_reason ?: -ECONNABORTED;
}

static const struct smc_transport_ops null_ops = {
	.name	= "null",
	.role	= SMC_ROLE_D,
	.owner	= THIS_MODULE,
	.local	= null_local,
	.offer	= null_offer,
	.match	= null_match,
	.attach	= null_attach,
};

static int __init null_init(void)
{
	return smc_transport_register(&null_ops);
}

static void __exit null_exit(void)
{
	smc_transport_unregister(&null_ops);
}

module_init(null_init);
module_exit(null_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("SMC transport that carries nothing, for tests");
