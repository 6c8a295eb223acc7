// SPDX-License-Identifier: GPL-2.0-only
/*
 * Generic netlink family "smckit": requests that stock modules do not have. They are in a family of their own, because a
 * later kernel may use the numbers that are free in SMC_GEN_NETLINK today.
 */
#include <linux/module.h>

#include "../lgr/lgr.h"
#include "../net.h"
#include "../transport/transport.h"
#include "netlink.h"
#include "netlink_attrs_gen.h"

static int delete_lgr(struct sk_buff *skb, struct genl_info *info)
{
	struct nlattr *id = info->attrs[SMCKIT_A_LGR_ID], *tech = info->attrs[SMCKIT_A_LGR_TECH];
	int rc;

	static_assert((int)SMC_ROLE_D == (int)SMCKIT_TECH_SMCD && (int)SMC_ROLE_R == (int)SMCKIT_TECH_SMCR);
	if (!id || !tech) {
		GENL_SET_ERR_MSG(info, "the link group's number or technology is missing");
		return -EINVAL;
	}
	rc = smc_lgr_delete(genl_info_net(info), nla_get_u8(tech), nla_get_u32(id));
	if (rc)
		GENL_SET_ERR_MSG(info, "there is no such link group in this network namespace");
	return rc;
}

static int delete_link(struct sk_buff *skb, struct genl_info *info)
{
	struct nlattr *id = info->attrs[SMCKIT_A_LGR_ID], *link = info->attrs[SMCKIT_A_LGR_LINK_ID];
	int rc;

	if (!id || !link) {
		GENL_SET_ERR_MSG(info, "the number of the link group or of the link is missing");
		return -EINVAL;
	}
	rc = smc_lgr_delete_one(genl_info_net(info), nla_get_u32(id), nla_get_u8(link));
	if (rc == -EBUSY)
		GENL_SET_ERR_MSG(info, "the link group has no other link");
	else if (rc)
		GENL_SET_ERR_MSG(info, "there is no such link in this network namespace");
	return rc;
}

#define LGR_ATTRS .policy = smc_netlink_lgr_attrs, .maxattr = ARRAY_SIZE(smc_netlink_lgr_attrs) - 1
#define POLICY_ATTRS .policy = smc_netlink_policy_attrs, .maxattr = ARRAY_SIZE(smc_netlink_policy_attrs) - 1

static const struct genl_ops own_ops[] = {
	{ .cmd = SMCKIT_CMD_LGR_DELETE, .flags = GENL_UNS_ADMIN_PERM, .doit = delete_lgr, LGR_ATTRS },
	{ .cmd = SMCKIT_CMD_LINK_DELETE, .flags = GENL_UNS_ADMIN_PERM, .doit = delete_link, LGR_ATTRS },
	{ .cmd = SMCKIT_CMD_POLICY_GET, .dumpit = smc_netlink_get_policy, POLICY_ATTRS },
	{ .cmd = SMCKIT_CMD_MEMORY_GET, .dumpit = smc_netlink_get_memory },
	{ .cmd = SMCKIT_CMD_POLICY_SET, .flags = GENL_UNS_ADMIN_PERM, .doit = smc_netlink_set_policy, POLICY_ATTRS },
	{ .cmd = SMCKIT_CMD_SERVICE_GET, .dumpit = smc_netlink_get_services },
	{ .cmd = SMCKIT_CMD_SERVICE_FLUSH, .flags = GENL_UNS_ADMIN_PERM, .doit = smc_netlink_flush_services },
	{ .cmd = SMCKIT_CMD_PEER_GET, .dumpit = smc_netlink_get_peers },
	{ .cmd = SMCKIT_CMD_PEER_FLUSH, .flags = GENL_UNS_ADMIN_PERM, .doit = smc_netlink_flush_peers },
};

/* parallel_ops: a request may wait for a peer, and requests of other families must not wait for it. */
struct genl_family smc_netlink_own_family __ro_after_init = {
	.name = SMCKIT_GENL_FAMILY_NAME,
	.version = SMCKIT_GENL_FAMILY_VERSION,
	.netnsok = true,
	.parallel_ops = true,
	.module = THIS_MODULE,
	.policy = smc_netlink_no_attrs,
	.maxattr = ARRAY_SIZE(smc_netlink_no_attrs) - 1,
	.ops = own_ops,
	.n_ops = ARRAY_SIZE(own_ops),
	.resv_start_op = SMCKIT_CMD_LGR_DELETE,
};

/* smc_netlink_own_init() - registers the family. Return: 0 or a negative errno. */
int __init smc_netlink_own_init(void)
{
	might_sleep();
	return genl_register_family(&smc_netlink_own_family);
}

/* smc_netlink_own_exit() - unregisters it; no request runs afterwards. */
void smc_netlink_own_exit(void)
{
	might_sleep();
	genl_unregister_family(&smc_netlink_own_family);
}
