/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The netlink families. netlink.c has the requests of SMC_GEN_NETLINK; netlink_smcd.c and netlink_smcr.c its answers
 * about link groups and devices, netlink_dump.c all others. pnet_netlink.c has SMC_PNETID; netlink_own.c has smckit, for
 * what stock modules lack, with netlink_policy.c, netlink_service.c, netlink_peers.c and netlink_memory.c. The policies
 * of attributes are in netlink_attrs_gen.c.
 */
#ifndef SMC_CONTROL_NETLINK_H
#define SMC_CONTROL_NETLINK_H

#include <linux/string.h>
#include <net/genetlink.h>

#include "../uapi/smc_uapi.h"
#include "../uapi/smckit.h"

struct smc_lgr;
struct smc_lgr_view;
struct smc_rdma_link_view;

extern struct genl_family smc_netlink_family;
extern struct genl_family smc_netlink_own_family;

/* The position of a dump, zero at first */
struct smc_netlink_cursor {
	unsigned int next;	/* item to go on with */
};
static_assert(sizeof(struct smc_netlink_cursor) <= sizeof_field(struct netlink_callback, ctx));

static inline struct smc_netlink_cursor *smc_netlink_cursor_of(struct netlink_callback *cb)
{
	return (struct smc_netlink_cursor *)cb->ctx;
}

/* A dump under way, for functions that are called for each item. */
struct smc_netlink_dump {
	struct sk_buff *skb;		/* the answer */
	struct netlink_callback *cb;
};

/* smc_netlink_put_u64() - a number, aligned. All attributes for padding have the number 0. */
static inline int smc_netlink_put_u64(struct sk_buff *skb, int type, u64 value)
{
	return nla_put_u64_64bit(skb, type, value, 0);
}

/* smc_netlink_put_eid() - puts an EID, or a host name of the same length, as a string */
static inline int smc_netlink_put_eid(struct sk_buff *skb, int type, const u8 eid[SMC_MAX_EID_LEN])
{
	char text[SMC_MAX_EID_LEN + 1];

	memcpy(text, eid, SMC_MAX_EID_LEN);
	text[SMC_MAX_EID_LEN] = '\0';
	return nla_put_string(skb, type, text);
}

/* smc_netlink_put_gid() - puts a GID as text */
static inline int smc_netlink_put_gid(struct sk_buff *skb, int type, const u8 gid[16])
{
	char text[40];

	snprintf(text, sizeof(text), "%pI6", gid);
	return nla_put_string(skb, type, text);
}

int smc_netlink_init(void);
void smc_netlink_exit(void);

int smc_netlink_add_msg(const struct smc_netlink_dump *d, u8 cmd, int (*put)(struct sk_buff *skb, void *arg), void *arg);

/*
 * The answers, as generic netlink calls for them. Each adds messages to @skb until that is full, and keeps in @cb where
 * it goes on. Process context; may sleep. Return: the length of the answer, or -EMSGSIZE or -ENOMEM.
 */
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
int smc_netlink_put_link(struct sk_buff *skb, const struct smc_rdma_link_view *view);
int smc_netlink_put_lgr_v2(struct sk_buff *skb, int type, const struct smc_lgr_view *view);
void smc_netlink_dump_init(void);

int smc_netlink_get_policy(struct sk_buff *skb, struct netlink_callback *cb);
int smc_netlink_set_policy(struct sk_buff *skb, struct genl_info *info);
int smc_netlink_get_services(struct sk_buff *skb, struct netlink_callback *cb);
int smc_netlink_flush_services(struct sk_buff *skb, struct genl_info *info);
int smc_netlink_get_peers(struct sk_buff *skb, struct netlink_callback *cb);
int smc_netlink_flush_peers(struct sk_buff *skb, struct genl_info *info);

int smc_netlink_get_memory(struct sk_buff *skb, struct netlink_callback *cb);

int smc_netlink_own_init(void);
void smc_netlink_own_exit(void);

int smc_pnet_netlink_init(void);
void smc_pnet_netlink_exit(void);

#endif /* SMC_CONTROL_NETLINK_H */
