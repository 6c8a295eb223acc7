// SPDX-License-Identifier: GPL-2.0-only
/* Decisions about versions, paths, identifiers and limits. Nothing here sends or receives. */

#include <net/sock.h>

#include "../conn/conn.h"
#include "../control/memory.h"
#include "../net.h"
#include "../wire/reason.h"
#include "handshake.h"

static u8 path_of(bool d, bool r)
{
	return d ? (r ? SMC_PATH_B : SMC_PATH_D) : (r ? SMC_PATH_R : SMC_PATH_N);
}

/* The first reason counts, because the paths are tried in the order of preference. */
static void set_first_reason(u32 *reason, u32 code)
{
	if (!*reason)
		*reason = code;
}

/* Removes SMC-Dv2 or SMC-Rv2 from a proposal if a requirement is missing. */
static void check_v2(struct smc_clc_proposal *p, const struct smc_local *local, u32 *reason)
{
	bool d = smc_clc_path_has_d(p->path_v2), r = smc_clc_path_has_r(p->path_v2);

	if (d && !local->d2) {
		set_first_reason(reason, SMC_REASON_NO_ISM_V2);
		d = false;
	} else if (d && !p->has_d2) {
		set_first_reason(reason, SMC_REASON_NO_V2_D_EXT);
		d = false;
	} else if (d && !p->n_eid && !p->seid_valid) {
		set_first_reason(reason, SMC_REASON_NO_UEID);
		d = false;
	}
	if (r && !p->n_eid) {
		set_first_reason(reason, SMC_REASON_NO_UEID);
		r = false;
	}
	p->path_v2 = path_of(d, r && local->r2);
}

/* Removes the paths of version 1 that are not possible; it is for hosts of one subnet. */
static void check_v1(struct sock *sk, struct smc_clc_proposal *p, const struct smc_local *local, u32 *reason)
{
	bool d = smc_clc_path_has_d(p->path_v1) && local->d1, r = smc_clc_path_has_r(p->path_v1) && local->r1;

	if ((d || r) && !smc_prefix_match(sk, p)) {
		set_first_reason(reason, SMC_REASON_PREFIX);
		d = false;
		r = false;
	}
	p->path_v1 = path_of(d, r);
}

/**
 * smc_negotiate_policy() - decides whether a connection may be SMC, whatever the peer can do
 * @sk: the TCP connection
 *
 * Each end of a connection asks before it offers or accepts anything.
 *
 * Return: 0, or the reason why the connection has to be TCP.
 */
u32 smc_negotiate_policy(struct sock *sk)
{
	might_sleep();
	if (smc_ipsec_applies(sk))
		return SMC_REASON_IPSEC;
	return smc_memory_full(smc_net(sock_net(sk))) ? SMC_REASON_MEM_LIMIT : 0;
}

/**
 * smc_negotiate_server() - decides which paths of a proposal are possible here
 * @sk: the connection
 * @p: the proposal; paths that are not possible are removed
 * @local: what this host can do
 *
 * May sleep. Return: 0, or the reason if no path is left, or if the limits for SMC-Rv2 are out of bounds:
 * then no other path is used.
 */
u32 smc_negotiate_server(struct sock *sk, struct smc_clc_proposal *p, const struct smc_local *local)
{
	u32 reason = 0;

	might_sleep();
	if (p->has_v2 && smc_clc_path_has_r(p->path_v2) && p->n_eid && p->release) {
		if (p->max_conns < SMC_CONNS_MIN)
			return SMC_REASON_MAX_CONNS;
		if (!p->max_links)
			return SMC_REASON_MAX_LINKS;
	}
	check_v2(p, local, &reason);
	check_v1(sk, p, local, &reason);
	if (p->path_v1 != SMC_PATH_N || p->path_v2 != SMC_PATH_N)
		return 0;
	return reason ?: SMC_REASON_NO_DEV;
}

/* Does an ACCEPT of SMC-D name a device that was offered? In version 1 there is only one. */
static bool device_is_offered(const struct smc_clc_proposal *p, const struct smc_clc_accept *a)
{
	unsigned int i;

	if (a->version < SMC_V2)
		return true;
	for (i = 0; i < p->n_gid; i++)
		if (p->gids[i].chid == a->chid)
			return true;
	return false;
}

/**
 * smc_negotiate_accept() - may a client take this ACCEPT?
 * @p: what it has proposed
 * @a: the answer
 *
 * Any context. Return: 0 or the reason why not.
 */
u32 smc_negotiate_accept(const struct smc_clc_proposal *p, const struct smc_clc_accept *a)
{
	u8 offered = a->version > SMC_V1 ? p->path_v2 : p->path_v1;

	if (a->version > SMC_V2)
		return SMC_REASON_VERSION;
	if (a->smcd ? !smc_clc_path_has_d(offered) : !smc_clc_path_has_r(offered))
		return SMC_REASON_MODE;
	if (a->smcd && !device_is_offered(p, a))
		return SMC_REASON_NO_D2_DEV;
	if (!a->has_fce)
		return 0;
	if (a->release > p->release)
		return SMC_REASON_RELEASE;
	if (a->smcd || !a->release)
		return 0;
	if (a->max_conns < SMC_CONNS_MIN || a->max_conns > p->max_conns)
		return SMC_REASON_MAX_CONNS;
	if (!a->max_links || a->max_links > SMC_LINKS_MAX)
		return SMC_REASON_MAX_LINKS;
	return 0;
}

/**
 * smc_negotiate_confirm() - may a server take this CONFIRM?
 * @ours: the ACCEPT that it answers
 * @theirs: the CONFIRM
 *
 * Any context. Return: 0 or the reason why not.
 */
u32 smc_negotiate_confirm(const struct smc_clc_accept *ours, const struct smc_clc_accept *theirs)
{
	if (theirs->version != ours->version)
		return SMC_REASON_VERSION;
	if (theirs->smcd != ours->smcd)
		return SMC_REASON_MODE;
	if (!ours->has_fce || !theirs->has_fce)
		return ours->has_fce == theirs->has_fce ? 0 : SMC_REASON_RELEASE;
	if (theirs->release != ours->release)
		return SMC_REASON_RELEASE;
	if (ours->smcd || !ours->release)
		return 0;
	if (theirs->max_conns != ours->max_conns)
		return SMC_REASON_MAX_CONNS;
	return theirs->max_links == ours->max_links ? 0 : SMC_REASON_MAX_LINKS;
}
