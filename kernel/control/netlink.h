/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The two netlink families. netlink.c: requests of SMC_GEN_NETLINK; netlink_dump.c: its answers;
 * pnet_netlink.c: SMC_PNETID.
 */
#ifndef SMC_CONTROL_NETLINK_H
#define SMC_CONTROL_NETLINK_H

#include <net/genetlink.h>

extern struct genl_family smc_netlink_family;

int smc_netlink_init(void);
void smc_netlink_exit(void);

int smc_netlink_dump_info(struct sk_buff *skb, struct netlink_callback *cb);
int smc_netlink_dump_nothing(struct sk_buff *skb, struct netlink_callback *cb);
int smc_netlink_dump_stats(struct sk_buff *skb, struct netlink_callback *cb);
int smc_netlink_dump_fallbacks(struct sk_buff *skb, struct netlink_callback *cb);
int smc_netlink_dump_ueids(struct sk_buff *skb, struct netlink_callback *cb);
int smc_netlink_dump_seid(struct sk_buff *skb, struct netlink_callback *cb);
int smc_netlink_dump_limit(struct sk_buff *skb, struct netlink_callback *cb);
void smc_netlink_dump_init(void);

int smc_pnet_netlink_init(void);
void smc_pnet_netlink_exit(void);

#endif /* SMC_CONTROL_NETLINK_H */
