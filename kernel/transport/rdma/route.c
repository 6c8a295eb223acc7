// SPDX-License-Identifier: GPL-2.0-only
/* The way to a peer of version 2, which may be behind a gateway (docs/protocol.md, 4.3). */

#include <net/ip6_route.h>
#include <net/neighbour.h>
#include <net/route.h>

#include "rdma.h"

/*
 * smc_rdma_gid_is_ipv4() - is a GID of version 2 an IPv4 address? Peers write ::ffff:a.b.c.d or ::a.b.c.d. Any context.
 */
bool smc_rdma_gid_is_ipv4(const u8 gid[16])
{
	static const u8 zeros[10];
	bool mapped = gid[10] == 0xff && gid[11] == 0xff, compatible = !gid[10] && !gid[11];

	return !memcmp(gid, zeros, sizeof(zeros)) && (mapped || compatible);
}

static struct dst_entry *dst_of_ipv4(const struct sock *sk, __be32 daddr)
{
	struct flowi4 fl4 = { .saddr = inet_sk(sk)->inet_rcv_saddr, .daddr = daddr };
	struct rtable *rt = ip_route_output_key(sock_net(sk), &fl4);

	return IS_ERR(rt) ? ERR_CAST(rt) : &rt->dst;
}

static struct dst_entry *dst_of_ipv6(const struct sock *sk, const u8 gid[16])
{
	struct flowi6 fl6 = { .saddr = sk->sk_v6_rcv_saddr, .flowi6_oif = READ_ONCE(sk->sk_bound_dev_if) };
	struct dst_entry *dst;
	int rc;

	if (!IS_ENABLED(CONFIG_IPV6))
		return ERR_PTR(-EAFNOSUPPORT);
	memcpy(&fl6.daddr, gid, sizeof(fl6.daddr));
	/* Link-local addresses need the interface, to which such a connection is bound. */
	dst = ip6_route_output(sock_net(sk), sk, &fl6);
	rc = dst->error;
	if (!rc)
		return dst;
	dst_release(dst);
	return ERR_PTR(rc);
}

/*
 * smc_rdma_dst() - returns the route, with a reference, from a connection's address to a GID of version 2. Any context.
 * Return: ERR_PTR(-ENETUNREACH) and the like if there is none.
 */
struct dst_entry *smc_rdma_dst(const struct sock *sk, const u8 gid[16])
{
	__be32 daddr;

	memcpy(&daddr, gid + 12, sizeof(daddr));
	return smc_rdma_gid_is_ipv4(gid) ? dst_of_ipv4(sk, daddr) : dst_of_ipv6(sk, gid);
}

/*
 * Looks up the MAC of the next hop, and does not wait for it. A route by a tunnel, or the like, has addresses of other
 * lengths.
 */
static int next_hop(struct dst_entry *dst, const u8 gid[16], u8 mac[ETH_ALEN])
{
	struct neighbour *neigh = dst_neigh_lookup(dst, smc_rdma_gid_is_ipv4(gid) ? gid + 12 : gid);
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

static bool has_gateway(const struct dst_entry *dst, const u8 gid[16])
{
	if (smc_rdma_gid_is_ipv4(gid))
		return container_of(dst, struct rtable, dst)->rt_uses_gateway;
	return container_of(dst, struct rt6_info, dst)->rt6i_flags & RTF_GATEWAY;
}

/*
 * smc_rdma_route() - finds out whether a peer's GID of version 2 is reached by a gateway, and then the gateway's MAC.
 * Any context. Return: 0, -ENETUNREACH without a route, -EHOSTUNREACH if the MAC of the next hop is not known, or not of
 * Ethernet.
 */
int smc_rdma_route(const struct smc_offer *offer, const u8 gid[16], u8 mac[ETH_ALEN], bool *gateway)
{
	struct dst_entry *dst = smc_rdma_dst(offer->sk, gid);
	int rc = 0;

	if (IS_ERR(dst))
		return -ENETUNREACH;
	*gateway = has_gateway(dst, gid);
	if (*gateway)
		rc = next_hop(dst, gid, mac);
	dst_release(dst);
	return rc;
}
