// SPDX-License-Identifier: GPL-2.0-only
/* The peers with which SMC was not possible, over netlink. */
#include <net/sock.h>

#include "../net.h"
#include "../policy/policy.h"
#include "netlink.h"
#include "peers.h"

static_assert(sizeof(struct smc_peers_pos) <= sizeof_field(struct netlink_callback, ctx));

static int put_peer(const struct smc_netlink_dump *d, const struct smc_peers_key *key, const struct smc_peers_why *why, unsigned int seconds)
{
	uid_t uid = from_kuid_munged(sk_user_ns(NETLINK_CB(d->cb->skb).sk), KUIDT_INIT(key->uid));
	struct sk_buff *skb = d->skb;

	if (nla_put(skb, SMCKIT_A_PEER_ADDRESS, sizeof(key->addr), &key->addr) ||
	    (key->ifindex && nla_put_u32(skb, SMCKIT_A_PEER_IFINDEX, key->ifindex)) ||
	    nla_put_u16(skb, SMCKIT_A_PEER_PORT, key->port) ||
	    (key->role == SMC_PEERS_CLIENT && nla_put_u32(skb, SMCKIT_A_PEER_UID, uid)) ||
	    nla_put_u8(skb, SMCKIT_A_PEER_ROLE, key->role == SMC_PEERS_CLIENT ? SMC_POLICY_CONNECTS : SMC_POLICY_LISTENS) ||
	    nla_put_u32(skb, SMCKIT_A_PEER_REASON, why->reason) ||
	    nla_put_u32(skb, SMCKIT_A_PEER_DIAGNOSIS, why->diagnosis) ||
	    nla_put_u32(skb, SMCKIT_A_PEER_SECONDS, seconds))
		return -EMSGSIZE;
	return 0;
}

static int add_peer(const struct smc_peers_key *key, const struct smc_peers_why *why, unsigned int seconds, void *arg)
{
	const struct smc_netlink_dump *d = arg;
	void *head = genlmsg_put(d->skb, NETLINK_CB(d->cb->skb).portid, d->cb->nlh->nlmsg_seq, &smc_netlink_own_family, NLM_F_MULTI,
				 SMCKIT_CMD_PEER_GET);

	if (!head)
		return -EMSGSIZE;
	if (put_peer(d, key, why, seconds)) {
		genlmsg_cancel(d->skb, head);
		return -EMSGSIZE;
	}
	genlmsg_end(d->skb, head);
	return 0;
}

/* smc_netlink_get_peers() - the answer to SMCKIT_CMD_PEER_GET. Return: as smc_netlink_dump_info(). */
int smc_netlink_get_peers(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct smc_netlink_dump d = { .skb = skb, .cb = cb };

	might_sleep();
	smc_peers_walk(smc_net(sock_net(skb->sk)), (struct smc_peers_pos *)cb->ctx, add_peer, &d);
	return skb->len;
}

/* smc_netlink_flush_peers() - SMCKIT_CMD_PEER_FLUSH. Process context. Return: 0. */
int smc_netlink_flush_peers(struct sk_buff *skb, struct genl_info *info)
{
	smc_peers_flush(smc_net(genl_info_net(info)));
	return 0;
}
