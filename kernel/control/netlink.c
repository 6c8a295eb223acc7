// SPDX-License-Identifier: GPL-2.0-only
/*
 * SMC_GEN_NETLINK: the family and the requests that change something
 *
 * Everyone may read. Changes need CAP_NET_ADMIN in the initial user namespace, as with the stock module: enterprise IDs
 * belong to the host, and the limit of handshakes to a network namespace.
 */
#include <linux/module.h>

#include "../net.h"
#include "../uapi/smc_uapi.h"
#include "eid.h"
#include "netlink.h"
#include "netlink_attrs_gen.h"
#include "sysctl.h"

/* Returns the EID of a request, or NULL if that has none of the right length. */
static const u8 *eid_of(struct genl_info *info)
{
	struct nlattr *attr = info->attrs[SMC_NLA_EID_TABLE_ENTRY];

	if (!attr) {
		GENL_SET_ERR_MSG(info, "the EID is missing");
		return NULL;
	}
	if (nla_len(attr) != SMC_MAX_EID_LEN + 1 || strlen(nla_data(attr)) != SMC_MAX_EID_LEN) {
		GENL_SET_ERR_MSG(info, "an EID has 32 characters, with blanks at its end");
		return NULL;
	}
	return nla_data(attr);
}

static int add_ueid(struct sk_buff *skb, struct genl_info *info)
{
	const u8 *eid = eid_of(info);

	return eid ? smc_eid_add(eid, info->extack) : -EINVAL;
}

static int del_ueid(struct sk_buff *skb, struct genl_info *info)
{
	const u8 *eid = eid_of(info);

	return eid ? smc_eid_remove(eid, info->extack) : -EINVAL;
}

static int flush_ueid(struct sk_buff *skb, struct genl_info *info)
{
	smc_eid_flush();
	return 0;
}

static int enable_seid(struct sk_buff *skb, struct genl_info *info)
{
	return smc_eid_enable_seid(true, info->extack);
}

static int disable_seid(struct sk_buff *skb, struct genl_info *info)
{
	return smc_eid_enable_seid(false, info->extack);
}

static int enable_limit(struct sk_buff *skb, struct genl_info *info)
{
	return smc_sysctl_set(smc_net(genl_info_net(info)), SMC_SYSCTL_LIMIT_SMC_HS, 1);
}

static int disable_limit(struct sk_buff *skb, struct genl_info *info)
{
	return smc_sysctl_set(smc_net(genl_info_net(info)), SMC_SYSCTL_LIMIT_SMC_HS, 0);
}

static_assert(SMC_NLA_EID_TABLE_ENTRY_LEN == SMC_MAX_EID_LEN);

#define UEID_POLICY .policy = smc_netlink_eid_table_attrs, .maxattr = ARRAY_SIZE(smc_netlink_eid_table_attrs) - 1

static const struct genl_ops ops[] = {
	{ .cmd = SMC_NETLINK_GET_SYS_INFO, .dumpit = smc_netlink_dump_info },
	{ .cmd = SMC_NETLINK_GET_LGR_SMCR, .dumpit = smc_netlink_dump_smcr_groups },
	{ .cmd = SMC_NETLINK_GET_LINK_SMCR, .dumpit = smc_netlink_dump_smcr_links },
	{ .cmd = SMC_NETLINK_GET_LGR_SMCD, .dumpit = smc_netlink_dump_smcd_groups },
	{ .cmd = SMC_NETLINK_GET_DEV_SMCD, .dumpit = smc_netlink_dump_smcd_devices },
	{ .cmd = SMC_NETLINK_GET_DEV_SMCR, .dumpit = smc_netlink_dump_smcr_devices },
	{ .cmd = SMC_NETLINK_GET_STATS, .dumpit = smc_netlink_dump_stats },
	{ .cmd = SMC_NETLINK_GET_FBACK_STATS, .dumpit = smc_netlink_dump_fallbacks },
	{ .cmd = SMC_NETLINK_DUMP_UEID, .dumpit = smc_netlink_dump_ueids },
	{ .cmd = SMC_NETLINK_ADD_UEID, .flags = GENL_ADMIN_PERM, .doit = add_ueid, UEID_POLICY },
	{ .cmd = SMC_NETLINK_REMOVE_UEID, .flags = GENL_ADMIN_PERM, .doit = del_ueid, UEID_POLICY },
	{ .cmd = SMC_NETLINK_FLUSH_UEID, .flags = GENL_ADMIN_PERM, .doit = flush_ueid },
	{ .cmd = SMC_NETLINK_DUMP_SEID, .dumpit = smc_netlink_dump_seid },
	{ .cmd = SMC_NETLINK_ENABLE_SEID, .flags = GENL_ADMIN_PERM, .doit = enable_seid },
	{ .cmd = SMC_NETLINK_DISABLE_SEID, .flags = GENL_ADMIN_PERM, .doit = disable_seid },
	{ .cmd = SMC_NETLINK_DUMP_HS_LIMITATION, .dumpit = smc_netlink_dump_limit },
	{ .cmd = SMC_NETLINK_ENABLE_HS_LIMITATION, .flags = GENL_ADMIN_PERM, .doit = enable_limit },
	{ .cmd = SMC_NETLINK_DISABLE_HS_LIMITATION, .flags = GENL_ADMIN_PERM,
	  .doit = disable_limit },
};

struct genl_family smc_netlink_family __ro_after_init = {
	.name = SMC_GENL_FAMILY_NAME,
	.version = SMC_GENL_FAMILY_VERSION,
	.maxattr = ARRAY_SIZE(smc_netlink_no_attrs) - 1,
	.policy = smc_netlink_no_attrs,
	.netnsok = true,
	.module = THIS_MODULE,
	.ops = ops,
	.n_ops = ARRAY_SIZE(ops),
	.resv_start_op = SMC_NETLINK_DISABLE_HS_LIMITATION + 1,
};

/* smc_netlink_init() - registers the family, after smc_net_init(). Return: 0 or a negative errno. */
int __init smc_netlink_init(void)
{
	might_sleep();
	smc_netlink_dump_init();
	return genl_register_family(&smc_netlink_family);
}

/* smc_netlink_exit() - unregisters the family, before smc_net_exit(). */
void smc_netlink_exit(void)
{
	might_sleep();
	genl_unregister_family(&smc_netlink_family);
}
