// SPDX-License-Identifier: GPL-2.0-only
/*
 * SMC_GEN_NETLINK: answers about the module, its settings and its statistics
 *
 * The first buffer of a dump has room for nearly 4 KiB. All answers but the list of fallbacks fit into that, so they are
 * of one moment. The order of attributes is that of the stock module.
 */
#include <linux/slab.h>
#include <linux/string.h>
#include <net/sock.h>

#include "../lgr/lgr.h"
#include "../net.h"
#include "../transport/transport.h"
#include "../uapi/smc_uapi.h"
#include "eid.h"
#include "netlink.h"
#include "stats.h"
#include "sysctl.h"

#define SMC_VERSION 2

/* Name of this host when the module was loaded, padded with blanks, terminated. */
static char hostname[SMC_MAX_HOSTNAME_LEN + 1];

static struct smc_net *dump_net(const struct sk_buff *skb)
{
	return smc_net(sock_net(skb->sk));
}

static int put_info(struct sk_buff *skb, void *arg)
{
	u8 seid[SMC_MAX_EID_LEN];
	struct smc_local local;
	struct nlattr *nest;

	smc_registry_local(&local);
	nest = nla_nest_start(skb, SMC_GEN_SYS_INFO);
	/* As with the stock module, SMC-Dv2 depends on a device, SMC-Rv2 on the module only. */
	if (!nest || nla_put_u8(skb, SMC_NLA_SYS_VER, SMC_VERSION) ||
	    nla_put_u8(skb, SMC_NLA_SYS_REL, SMC_CLC_RELEASE) ||
	    nla_put_u8(skb, SMC_NLA_SYS_IS_ISM_V2, local.d2) ||
	    nla_put_u8(skb, SMC_NLA_SYS_IS_SMCR_V2, true) ||
	    nla_put_string(skb, SMC_NLA_SYS_LOCAL_HOST, hostname))
		return -EMSGSIZE;
	smc_eid_seid(seid);
	if (seid[0] && smc_netlink_put_eid(skb, SMC_NLA_SYS_SEID, seid))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

/**
 * smc_netlink_add_msg() - adds a message of SMC_GEN_NETLINK to a dump
 * @d: the dump
 * @cmd: SMC_NETLINK_*
 * @put: adds its attributes
 * @arg: passed on to @put
 *
 * Context: process; sleeps if @put does.
 * Return: 0, -EMSGSIZE, or what @put said. After an error nothing is left of the message.
 */
int smc_netlink_add_msg(const struct smc_netlink_dump *d, u8 cmd, int (*put)(struct sk_buff *skb, void *arg), void *arg)
{
	void *msg = genlmsg_put(d->skb, NETLINK_CB(d->cb->skb).portid, d->cb->nlh->nlmsg_seq, &smc_netlink_family,
				NLM_F_MULTI, cmd);
	int rc;

	if (!msg)
		return -EMSGSIZE;
	rc = put(d->skb, arg);
	if (rc)
		genlmsg_cancel(d->skb, msg);
	else
		genlmsg_end(d->skb, msg);
	return rc;
}

/* A dump of one message. */
static int dump_once(struct sk_buff *skb, struct netlink_callback *cb, u8 cmd, int (*put)(struct sk_buff *skb, void *arg))
{
	const struct smc_netlink_dump d = { .skb = skb, .cb = cb };
	int rc;

	if (smc_netlink_cursor_of(cb)->next)
		return skb->len;
	rc = smc_netlink_add_msg(&d, cmd, put, NULL);
	if (rc)
		return rc;
	smc_netlink_cursor_of(cb)->next++;
	return skb->len;
}

/* smc_netlink_dump_info() - answers SMC_NETLINK_GET_SYS_INFO */
int smc_netlink_dump_info(struct sk_buff *skb, struct netlink_callback *cb)
{
	return dump_once(skb, cb, SMC_NETLINK_GET_SYS_INFO, put_info);
}

/* Puts the counters of size classes. */
static int put_sizes(struct sk_buff *skb, int type, const u64 *counters)
{
	struct nlattr *nest = nla_nest_start(skb, type);
	unsigned int i;

	static_assert(SMC_NLA_STATS_PLOAD_MAX == SMC_STATS_SIZES);
	if (!nest)
		return -EMSGSIZE;
	for (i = 0; i < SMC_STATS_SIZES; i++)
		if (smc_netlink_put_u64(skb, SMC_NLA_STATS_PLOAD_8K + i, counters[i]))
			return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

/* One counter and its attribute. */
struct item {
	int type;
	unsigned int counter;
};

static int put_items(struct sk_buff *skb, const struct item *items, unsigned int n,
		     const u64 *counters)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		if (smc_netlink_put_u64(skb, items[i].type, counters[items[i].counter]))
			return -EMSGSIZE;
	return 0;
}

static int put_bufs(struct sk_buff *skb, int type, const u64 *counters)
{
	static const struct item items[] = {
		{ SMC_NLA_STATS_RMB_REUSE_CNT, SMC_STATS_BUF_REUSED },
		{ SMC_NLA_STATS_RMB_SIZE_SM_PEER_CNT, SMC_STATS_BUF_SIZE_SMALL_PEER },
		{ SMC_NLA_STATS_RMB_SIZE_SM_CNT, SMC_STATS_BUF_SIZE_SMALL },
		{ SMC_NLA_STATS_RMB_FULL_PEER_CNT, SMC_STATS_BUF_FULL_PEER },
		{ SMC_NLA_STATS_RMB_FULL_CNT, SMC_STATS_BUF_FULL },
		{ SMC_NLA_STATS_RMB_ALLOC_CNT, SMC_STATS_BUF_ALLOCATED },
		{ SMC_NLA_STATS_RMB_DGRADE_CNT, SMC_STATS_BUF_DOWNGRADED },
	};
	struct nlattr *nest = nla_nest_start(skb, type);

	if (!nest || put_items(skb, items, ARRAY_SIZE(items), counters))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

/* Puts the counters of SMC-R's links. */
static int put_links(struct sk_buff *skb, const u64 *counters)
{
	static const struct item items[] = {
		{ SMC_UAPI_STATS_LINKS_ADDED, SMC_STATS_LINKS_ADDED },
		{ SMC_UAPI_STATS_LINKS_REFUSED, SMC_STATS_LINKS_REFUSED },
		{ SMC_UAPI_STATS_LINKS_REFUSED_BY_PEER, SMC_STATS_LINKS_REFUSED_BY_PEER },
		{ SMC_UAPI_STATS_LINKS_NOT_ADDED, SMC_STATS_LINKS_NOT_ADDED },
		{ SMC_UAPI_STATS_LINKS_CONNS_MOVED, SMC_STATS_CONNS_MOVED },
		{ SMC_UAPI_STATS_LINKS_CONNS_NOT_MOVED, SMC_STATS_CONNS_NOT_MOVED },
	};
	struct nlattr *nest = nla_nest_start(skb, SMC_UAPI_STATS_T_LINKS), *lost;
	unsigned int i;

	static_assert(SMC_UAPI_STATS_LINKS_LOST_REPLACED == SMC_STATS_LINK_COUNTERS - SMC_STATS_LINKS_LOST);
	if (!nest || put_items(skb, items, ARRAY_SIZE(items), counters))
		return -EMSGSIZE;
	lost = nla_nest_start(skb, SMC_UAPI_STATS_LINKS_LOST);
	if (!lost)
		return -EMSGSIZE;
	/* The attributes are in the order of the reasons. */
	for (i = 0; i < SMC_UAPI_STATS_LINKS_LOST_REPLACED; i++)
		if (smc_netlink_put_u64(skb, SMC_UAPI_STATS_LINKS_LOST_NOT_SENT + i, counters[SMC_STATS_LINKS_LOST + i]))
			return -EMSGSIZE;
	nla_nest_end(skb, lost);
	nla_nest_end(skb, nest);
	return 0;
}

static int put_tech(struct sk_buff *skb, int type, const struct smc_stats_sum *sum,
		    enum smc_stats_tech tech)
{
	static const struct item first[] = {
		{ SMC_NLA_STATS_T_CLNT_V1_SUCC, SMC_STATS_CLIENT_V1 },
		{ SMC_NLA_STATS_T_CLNT_V2_SUCC, SMC_STATS_CLIENT_V2 },
		{ SMC_NLA_STATS_T_SRV_V1_SUCC, SMC_STATS_SERVER_V1 },
		{ SMC_NLA_STATS_T_SRV_V2_SUCC, SMC_STATS_SERVER_V2 },
		{ SMC_NLA_STATS_T_RX_BYTES, SMC_STATS_RX_BYTES },
		{ SMC_NLA_STATS_T_TX_BYTES, SMC_STATS_TX_BYTES },
	};
	static const struct item calls[] = {
		{ SMC_NLA_STATS_T_RX_CNT, SMC_STATS_RX_CALLS },
		{ SMC_NLA_STATS_T_TX_CNT, SMC_STATS_TX_CALLS },
	};
	static const struct item last[] = {
		{ SMC_NLA_STATS_T_CORK_CNT, SMC_STATS_CORK },
		{ SMC_NLA_STATS_T_NDLY_CNT, SMC_STATS_NODELAY },
		{ SMC_NLA_STATS_T_SPLICE_CNT, SMC_STATS_SPLICE },
		{ SMC_NLA_STATS_T_URG_DATA_CNT, SMC_STATS_URGENT },
	};
	const u64 *counters = sum->tech[tech];
	struct nlattr *nest = nla_nest_start(skb, type);

	if (!nest ||
	    put_bufs(skb, SMC_NLA_STATS_T_TX_RMB_STATS, &counters[SMC_STATS_TX_BUF]) ||
	    put_bufs(skb, SMC_NLA_STATS_T_RX_RMB_STATS, &counters[SMC_STATS_RX_BUF]) ||
	    put_sizes(skb, SMC_NLA_STATS_T_TXPLOAD_SIZE, &counters[SMC_STATS_TX_SIZE]) ||
	    put_sizes(skb, SMC_NLA_STATS_T_RXPLOAD_SIZE, &counters[SMC_STATS_RX_SIZE]) ||
	    put_sizes(skb, SMC_NLA_STATS_T_TX_RMB_SIZE, &counters[SMC_STATS_TX_BUF_SIZE]) ||
	    put_sizes(skb, SMC_NLA_STATS_T_RX_RMB_SIZE, &counters[SMC_STATS_RX_BUF_SIZE]) ||
	    put_items(skb, first, ARRAY_SIZE(first), counters) ||
	    nla_put_uint(skb, SMC_UAPI_STATS_T_RX_RMB_USAGE, sum->buf_usage[tech][1]) ||
	    nla_put_uint(skb, SMC_UAPI_STATS_T_TX_RMB_USAGE, sum->buf_usage[tech][0]) ||
	    put_items(skb, calls, ARRAY_SIZE(calls), counters) ||
	    /* Since Linux 6.5 the kernel has no sendpage operation. As in the stock module the counter stays 0. */
	    smc_netlink_put_u64(skb, SMC_NLA_STATS_T_SENDPAGE_CNT, 0) || put_items(skb, last, ARRAY_SIZE(last), counters) ||
	    (tech == SMC_STATS_R && put_links(skb, sum->links)))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static struct smc_stats_sum *alloc_sum(struct smc_net *snet)
{
	struct smc_stats_sum *sum = kmalloc(sizeof(*sum), GFP_KERNEL);

	if (sum)
		smc_stats_sum(snet, sum);
	return sum;
}

static int put_stats(struct sk_buff *skb, void *arg)
{
	struct smc_stats_sum *sum = alloc_sum(dump_net(skb));
	struct nlattr *nest;
	int rc = -EMSGSIZE;

	if (!sum)
		return -ENOMEM;
	nest = nla_nest_start(skb, SMC_GEN_STATS);
	if (!nest || put_tech(skb, SMC_NLA_STATS_SMCD_TECH, sum, SMC_STATS_D) ||
	    put_tech(skb, SMC_NLA_STATS_SMCR_TECH, sum, SMC_STATS_R) ||
	    smc_netlink_put_u64(skb, SMC_NLA_STATS_CLNT_HS_ERR_CNT, sum->handshake_errors[0]) ||
	    smc_netlink_put_u64(skb, SMC_NLA_STATS_SRV_HS_ERR_CNT, sum->handshake_errors[1]))
		goto free;
	nla_nest_end(skb, nest);
	rc = 0;
free:
	kfree(sum);
	return rc;
}

/* smc_netlink_dump_stats() - answers SMC_NETLINK_GET_STATS */
int smc_netlink_dump_stats(struct sk_buff *skb, struct netlink_callback *cb)
{
	return dump_once(skb, cb, SMC_NETLINK_GET_STATS, put_stats);
}

/* How often one side fell back for one reason. */
struct fallback {
	const struct smc_stats_sum *sum;
	unsigned int reason;	/* index of the reason */
	bool server;
	bool totals;		/* the first message has the totals of both sides */
};

static int put_fallback(struct sk_buff *skb, void *arg)
{
	const struct fallback *f = arg;
	const struct smc_stats_sum *sum = f->sum;
	struct nlattr *nest = nla_nest_start(skb, SMC_GEN_FBACK_STATS);

	if (!nest || nla_put_u8(skb, SMC_NLA_FBACK_STATS_TYPE, f->server))
		return -EMSGSIZE;
	if (f->totals && (smc_netlink_put_u64(skb, SMC_NLA_FBACK_STATS_SRV_CNT, sum->fallbacks[1]) ||
			  smc_netlink_put_u64(skb, SMC_NLA_FBACK_STATS_CLNT_CNT, sum->fallbacks[0])))
		return -EMSGSIZE;
	if (nla_put_u32(skb, SMC_NLA_FBACK_STATS_RSN_CODE, smc_reason_at(f->reason)) ||
	    nla_put_u16(skb, SMC_NLA_FBACK_STATS_RSN_CNT, sum->reasons[f->server][f->reason]))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

/* Items alternate between server and client, reason by reason. */
static int dump_fallbacks(const struct smc_netlink_dump *d, const struct smc_stats_sum *sum)
{
	unsigned int *next = &smc_netlink_cursor_of(d->cb)->next;
	struct fallback f = { .sum = sum, .totals = !*next };

	for (; *next < 2 * SMC_REASON_COUNT; ++*next) {
		f.reason = *next / 2;
		f.server = *next % 2 == 0;
		if (!sum->reasons[f.server][f.reason])
			continue;
		if (smc_netlink_add_msg(d, SMC_NETLINK_GET_FBACK_STATS, put_fallback, &f))
			return d->skb->len ?: -EMSGSIZE;
		f.totals = false;
	}
	return d->skb->len;
}

/* smc_netlink_dump_fallbacks() - answers SMC_NETLINK_GET_FBACK_STATS */
int smc_netlink_dump_fallbacks(struct sk_buff *skb, struct netlink_callback *cb)
{
	const struct smc_netlink_dump d = { .skb = skb, .cb = cb };
	struct smc_stats_sum *sum = alloc_sum(dump_net(skb));
	int rc;

	if (!sum)
		return -ENOMEM;
	rc = dump_fallbacks(&d, sum);
	kfree(sum);
	return rc;
}

static int put_ueid(struct sk_buff *skb, void *arg)
{
	return smc_netlink_put_eid(skb, SMC_NLA_EID_TABLE_ENTRY, arg);
}

/* smc_netlink_dump_ueids() - answers SMC_NETLINK_DUMP_UEID */
int smc_netlink_dump_ueids(struct sk_buff *skb, struct netlink_callback *cb)
{
	const struct smc_netlink_dump d = { .skb = skb, .cb = cb };
	u8 eids[SMC_MAX_UEID][SMC_MAX_EID_LEN];
	unsigned int i, n;

	if (smc_netlink_cursor_of(cb)->next)
		return skb->len;
	n = smc_eid_list(eids, SMC_MAX_UEID);
	for (i = 0; i < n; i++)
		if (smc_netlink_add_msg(&d, SMC_NETLINK_DUMP_UEID, put_ueid, eids[i]))
			return -EMSGSIZE;
	smc_netlink_cursor_of(cb)->next++;
	return skb->len;
}

/* Without a system EID the message is empty. */
static int put_seid(struct sk_buff *skb, void *arg)
{
	u8 seid[SMC_MAX_EID_LEN];
	bool enabled;

	enabled = smc_eid_seid(seid);
	if (!seid[0])
		return 0;
	return smc_netlink_put_eid(skb, SMC_NLA_SEID_ENTRY, seid) ?:
		nla_put_u8(skb, SMC_NLA_SEID_ENABLED, enabled);
}

/* smc_netlink_dump_seid() - answers SMC_NETLINK_DUMP_SEID */
int smc_netlink_dump_seid(struct sk_buff *skb, struct netlink_callback *cb)
{
	return dump_once(skb, cb, SMC_NETLINK_DUMP_SEID, put_seid);
}

static int put_limit(struct sk_buff *skb, void *arg)
{
	return nla_put_u8(skb, SMC_NLA_HS_LIMITATION_ENABLED, smc_sysctl_get(dump_net(skb), SMC_SYSCTL_LIMIT_SMC_HS));
}

/* smc_netlink_dump_limit() - answers SMC_NETLINK_DUMP_HS_LIMITATION */
int smc_netlink_dump_limit(struct sk_buff *skb, struct netlink_callback *cb)
{
	return dump_once(skb, cb, SMC_NETLINK_DUMP_HS_LIMITATION, put_limit);
}

/* smc_netlink_dump_init() - remembers the name of this host, when the module is loaded */
void __init smc_netlink_dump_init(void)
{
	smc_lgr_hostname((u8 *)hostname);
}
