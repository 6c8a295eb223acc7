// SPDX-License-Identifier: GPL-2.0-only
/* Netlink family "smckit": what the services have learned about which rules with "auto" decide. */

#include <net/sock.h>

#include "../net.h"
#include "../policy/policy.h"
#include "netlink.h"

static int put_service(struct sk_buff *skb, const struct smc_service_view *view)
{
	if (nla_put_u8(skb, SMCKIT_A_SERVICE_ROLE, view->key.server ? SMC_POLICY_LISTENS : SMC_POLICY_CONNECTS) ||
	    (!view->key.server && nla_put(skb, SMCKIT_A_SERVICE_ADDR, sizeof(view->key.addr), &view->key.addr)) ||
	    nla_put_u16(skb, SMCKIT_A_SERVICE_PORT, view->key.port) ||
	    nla_put_u8(skb, SMCKIT_A_SERVICE_VERDICT, view->tcp ? SMC_POLICY_TCP : SMC_POLICY_SMC) ||
	    smc_netlink_put_u64(skb, SMCKIT_A_SERVICE_PAID, view->paid) ||
	    smc_netlink_put_u64(skb, SMCKIT_A_SERVICE_UNPAID, view->unpaid) ||
	    smc_netlink_put_u64(skb, SMCKIT_A_SERVICE_OPEN, view->open))
		return -EMSGSIZE;
	return nla_put_u32(skb, SMCKIT_A_SERVICE_LEFT, view->left);
}

/* Adds a message for a service. */
static int add_service_msg(struct sk_buff *skb, struct netlink_callback *cb, const struct smc_service_view *view)
{
	void *head = genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq, &smc_netlink_own_family, NLM_F_MULTI,
				 SMCKIT_CMD_SERVICE_GET);

	if (!head)
		return -EMSGSIZE;
	if (put_service(skb, view)) {
		genlmsg_cancel(skb, head);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, head);
	return 0;
}

/* smc_netlink_get_services() - the answer to SMCKIT_CMD_SERVICE_GET. Return: as smc_netlink_dump_info(). */
int smc_netlink_get_services(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct smc_net *sn = smc_net(sock_net(skb->sk));
	struct smc_netlink_cursor *pos = smc_netlink_cursor_of(cb);
	struct smc_service_view views[SMC_SERVICE_DEPTH];
	unsigned int i, n, before;

	might_sleep();
	/* A bucket is in one part of the answer as a whole: services may come and go between the parts. */
	for (; pos->next < SMC_SERVICE_BUCKETS; pos->next++) {
		before = skb->len;
		n = smc_service_show(sn, pos->next, views);
		for (i = 0; i < n; i++) {
			if (!add_service_msg(skb, cb, &views[i]))
				continue;
			nlmsg_trim(skb, skb->data + before);
			return before ? before : -EMSGSIZE;
		}
	}
	return skb->len;
}

/* smc_netlink_flush_services() - SMCKIT_CMD_SERVICE_FLUSH. Return: 0. */
int smc_netlink_flush_services(struct sk_buff *skb, struct genl_info *info)
{
	might_sleep();
	smc_service_flush(smc_net(genl_info_net(info)));
	return 0;
}
