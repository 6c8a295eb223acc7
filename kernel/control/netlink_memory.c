// SPDX-License-Identifier: GPL-2.0-only
/* The memory of SMC over netlink. */
#include "../net.h"
#include "memory.h"
#include "netlink.h"

/* Puts a pool: of a namespace, or with NULL of the host, which alone has queues and idle buffers. */
static int put_pool(struct sk_buff *skb, int type, const struct smc_net *sn)
{
	struct nlattr *nest = nla_nest_start(skb, type);
	struct smc_memory_view view;

	if (!nest)
		return -EMSGSIZE;
	smc_memory_view(sn, &view);
	if (smc_netlink_put_u64(skb, SMCKIT_A_POOL_LIMIT, view.limit) ||
	    smc_netlink_put_u64(skb, SMCKIT_A_POOL_RESERVED, view.reserved) ||
	    smc_netlink_put_u64(skb, SMCKIT_A_POOL_PEAK, view.peak) ||
	    smc_netlink_put_u64(skb, SMCKIT_A_POOL_RMB, view.kinds[SMC_MEMORY_RMB]) ||
	    smc_netlink_put_u64(skb, SMCKIT_A_POOL_SNDBUF, view.kinds[SMC_MEMORY_SNDBUF]) ||
	    smc_netlink_put_u64(skb, SMCKIT_A_POOL_DMB, view.kinds[SMC_MEMORY_DMB]) ||
	    smc_netlink_put_u64(skb, SMCKIT_A_POOL_REFUSED, view.refused))
		return -EMSGSIZE;
	if (!sn && (smc_netlink_put_u64(skb, SMCKIT_A_POOL_QUEUES, view.kinds[SMC_MEMORY_QUEUES]) ||
		    smc_netlink_put_u64(skb, SMCKIT_A_POOL_IDLE, view.idle)))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

/*
 * smc_netlink_get_memory() - the answer to SMCKIT_CMD_MEMORY_GET: one message, with the host in the initial namespace only,
 * because other namespaces need not know what the rest of the host does. Return: as smc_netlink_dump_info().
 */
int smc_netlink_get_memory(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct smc_netlink_cursor *pos = smc_netlink_cursor_of(cb);
	const struct net *net = sock_net(skb->sk);
	void *head;

	might_sleep();
	if (pos->next)
		return skb->len;
	head = genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq, &smc_netlink_own_family, NLM_F_MULTI,
			   SMCKIT_CMD_MEMORY_GET);
	if (!head)
		return -EMSGSIZE;
	if (put_pool(skb, SMCKIT_A_MEMORY_NAMESPACE, smc_net(net)) ||
	    (net_eq(net, &init_net) && put_pool(skb, SMCKIT_A_MEMORY_HOST, NULL))) {
		genlmsg_cancel(skb, head);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, head);
	pos->next = 1;
	return skb->len;
}
