/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The netlink families. netlink_own.c: smckit, for what stock modules lack. netlink.c: requests of SMC_GEN_NETLINK; netlink_dump.c: its answers,
 * but for groups and devices: netlink_smcd.c, netlink_smcr.c; pnet_netlink.c: SMC_PNETID.
 */
#ifndef SMC_CONTROL_NETLINK_H
#define SMC_CONTROL_NETLINK_H

#include <linux/string.h>
#include <net/genetlink.h>

#include "../uapi/smc_uapi.h"
#include "../uapi/smckit.h"

struct smc_lgr;
struct smc_lgr_view;

extern struct genl_family smc_netlink_family;

/* Where a dump goes on. The kernel has it zero at first. */
struct smc_netlink_cursor {
	unsigned int next;	/* of the items of this dump */
};
static_assert(sizeof(struct smc_netlink_cursor) <= sizeof_field(struct netlink_callback, ctx));

static inline struct smc_netlink_cursor *smc_netlink_cursor_of(struct netlink_callback *cb)
{
	return (struct smc_netlink_cursor *)cb->ctx;
}

/* Begins an answer. */
static inline void *smc_netlink_begin(struct sk_buff *skb, struct netlink_callback *cb, u8 cmd)
{
	return genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq, &smc_netlink_family,
			   NLM_F_MULTI, cmd);
}

/* A name of fixed length, an EID or a host's, as a string attribute. */
static inline int smc_netlink_put_eid(struct sk_buff *skb, int type, const u8 eid[SMC_MAX_EID_LEN])
{
	char text[SMC_MAX_EID_LEN + 1];

	memcpy(text, eid, SMC_MAX_EID_LEN);
	text[SMC_MAX_EID_LEN] = '\0';
	return nla_put_string(skb, type, text);
}

int smc_netlink_init(void);
void smc_netlink_exit(void);

int smc_netlink_dump_info(struct sk_buff *skb, struct netlink_callback *cb);
int smc_netlink_dump_stats(struct sk_buff *skb, struct netlink_callback *cb);
int smc_netlink_dump_fallbacks(struct sk_buff *skb, struct netlink_callback *cb);
int smc_netlink_dump_ueids(struct sk_buff *skb, struct netlink_callback *cb);
int smc_netlink_dump_seid(struct sk_buff *skb, struct netlink_callback *cb);
int smc_netlink_dump_limit(struct sk_buff *skb, struct netlink_callback *cb);
int smc_netlink_dump_smcd_groups(struct sk_buff *skb, struct netlink_callback *cb);
int smc_netlink_dump_smcd_devices(struct sk_buff *skb, struct netlink_callback *cb);
int smc_netlink_dump_smcr_groups(struct sk_buff *skb, struct netlink_callback *cb);
int smc_netlink_dump_smcr_links(struct sk_buff *skb, struct netlink_callback *cb);
int smc_netlink_dump_smcr_devices(struct sk_buff *skb, struct netlink_callback *cb);
int smc_netlink_put_lgr_v2(struct sk_buff *skb, int type, const struct smc_lgr *lgr, const struct smc_lgr_view *view);
void smc_netlink_dump_init(void);

int smc_netlink_own_init(void);
void smc_netlink_own_exit(void);

int smc_pnet_netlink_init(void);
void smc_pnet_netlink_exit(void);

#endif /* SMC_CONTROL_NETLINK_H */
