// SPDX-License-Identifier: GPL-2.0-only
/* The way to a peer of version 2, which may be behind a gateway (wire-formats 9.3). */

#include <net/neighbour.h>
#include <net/route.h>

#include "rdma.h"

/*
 * The address of the next hop, as far as it is known: nobody waits for it here. The way may be one of
 * those that have addresses of other lengths, such as a tunnel, as the peer says where it is.
 */
static int next_hop(struct rtable *rt, __be32 daddr, u8 mac[ETH_ALEN])
{
	struct neighbour *neigh = dst_neigh_lookup(&rt->dst, &daddr);
	int rc = -EHOSTUNREACH;

	if (!neigh)
		return rc;
	if (neigh->dev->addr_len != ETH_ALEN)
		goto out;
	if (READ_ONCE(neigh->nud_state) & NUD_VALID) {
		neigh_ha_snapshot((char *)mac, neigh, neigh->dev);
		rc = 0;
	} else {
		neigh_event_send(neigh, NULL);
	}
out:
	neigh_release(neigh);
	return rc;
}

/**
 * smc_rdma_route() - how a peer's GID is reached
 * @offer: the rendezvous
 * @gid: the peer's, with an IPv4 address in it
 * @mac: set to that of the next hop, if there is a gateway
 * @gateway: set to whether there is
 *
 * May sleep. Return: 0, -ENETUNREACH without a route, -EHOSTUNREACH if the next hop's address is not
 * known, or is none of Ethernet.
 */
int smc_rdma_route(const struct smc_offer *offer, const u8 gid[16], u8 mac[ETH_ALEN], bool *gateway)
{
	struct flowi4 fl4 = { .saddr = inet_sk(offer->sk)->inet_rcv_saddr };
	struct rtable *rt;
	int rc = 0;

	memcpy(&fl4.daddr, gid + 12, sizeof(fl4.daddr));
	rt = ip_route_output_key(sock_net(offer->sk), &fl4);
	if (IS_ERR(rt))
		return -ENETUNREACH;
	*gateway = rt->rt_uses_gateway;
	if (*gateway)
		rc = next_hop(rt, fl4.daddr, mac);
	ip_rt_put(rt);
	return rc;
}
