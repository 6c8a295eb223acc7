// SPDX-License-Identifier: GPL-2.0-only
/*
 * The subnets of a connection, by which version 1 decides whether two hosts are on one network (RFC 7609,
 * 3.5.1). Routes, devices and addresses may be removed meanwhile: one RCU section covers each check, and
 * what has been removed does not match.
 */

#include <linux/inetdevice.h>
#include <net/addrconf.h>
#include <net/dst.h>
#include <net/if_inet6.h>
#include <net/ipv6.h>

#include "handshake.h"

/* The device that the connection leaves by. The caller is in an RCU section. */
static struct net_device *egress(struct sock *sk)
{
	struct dst_entry *dst = rcu_dereference(sk->sk_dst_cache);

	return dst ? dst_dev_rcu(dst) : NULL;
}

static bool prefix_is_ipv4(const struct sock *sk)
{
	return sk->sk_family == AF_INET || ipv6_addr_v4mapped(&sk->sk_v6_daddr);
}

static int fill4(struct sock *sk, struct net_device *dev, struct smc_clc_proposal *p)
{
	struct in_device *in = __in_dev_get_rcu(dev);
	const struct in_ifaddr *ifa;

	if (!in)
		return -ENODEV;
	in_dev_for_each_ifa_rcu(ifa, in) {
		__be32 subnet = ifa->ifa_address & ifa->ifa_mask;

		if (!inet_ifa_match(inet_sk(sk)->inet_rcv_saddr, ifa))
			continue;
		memcpy(p->subnet, &subnet, sizeof(p->subnet));
		p->prefix_len = inet_mask_len(ifa->ifa_mask);
		return 0;
	}
	return -ENOENT;
}

static bool match4(struct net_device *dev, const struct smc_clc_proposal *p)
{
	struct in_device *in = __in_dev_get_rcu(dev);
	const struct in_ifaddr *ifa;
	__be32 subnet;

	if (!in || p->n_v6)
		return false;
	memcpy(&subnet, p->subnet, sizeof(subnet));
	in_dev_for_each_ifa_rcu(ifa, in)
		if (p->prefix_len == inet_mask_len(ifa->ifa_mask) && inet_ifa_match(subnet, ifa))
			return true;
	return false;
}

#if IS_ENABLED(CONFIG_IPV6)
static bool usable(const struct inet6_ifaddr *ifa)
{
	return !(ipv6_addr_type(&ifa->addr) & IPV6_ADDR_LINKLOCAL);
}

static int fill6(struct net_device *dev, struct smc_clc_proposal *p)
{
	struct inet6_dev *in = __in6_dev_get(dev);
	struct inet6_ifaddr *ifa;

	if (!in)
		return -ENODEV;
	list_for_each_entry_rcu(ifa, &in->addr_list, if_list) {
		struct smc_clc_prefix6 *prefix = &p->v6[p->n_v6];

		if (!usable(ifa))
			continue;
		ipv6_addr_prefix((struct in6_addr *)prefix->prefix, &ifa->addr, ifa->prefix_len);
		prefix->len = ifa->prefix_len;
		if (++p->n_v6 == SMC_CLC_PREFIXES)
			break;
	}
	return p->n_v6 ? 0 : -ENOENT;
}

static bool match6(struct net_device *dev, const struct smc_clc_proposal *p)
{
	struct inet6_dev *in = __in6_dev_get(dev);
	struct inet6_ifaddr *ifa;
	unsigned int i;

	if (!in)
		return false;
	list_for_each_entry_rcu(ifa, &in->addr_list, if_list) {
		if (!usable(ifa))
			continue;
		for (i = 0; i < p->n_v6; i++)
			if (p->v6[i].len == ifa->prefix_len &&
			    ipv6_prefix_equal((const struct in6_addr *)p->v6[i].prefix, &ifa->addr,
					      ifa->prefix_len))
				return true;
	}
	return false;
}
#else
static int fill6(struct net_device *dev, struct smc_clc_proposal *p)
{
	return -EAFNOSUPPORT;
}

static bool match6(struct net_device *dev, const struct smc_clc_proposal *p)
{
	return false;
}
#endif

/**
 * smc_prefix_fill() - puts the subnets of a connection into a proposal
 * @sk: the connection
 * @p: gets them
 *
 * Does not sleep. Return: 0, or a negative errno if there are none, or no route any more.
 */
int smc_prefix_fill(struct sock *sk, struct smc_clc_proposal *p)
{
	struct net_device *dev;
	int rc = -ENODEV;

	rcu_read_lock();
	dev = egress(sk);
	if (dev)
		rc = prefix_is_ipv4(sk) ? fill4(sk, dev, p) : fill6(dev, p);
	rcu_read_unlock();
	p->has_prefix = !rc;
	return rc;
}

/**
 * smc_prefix_match() - is the peer in a subnet of the device that the connection leaves by?
 * @sk: the connection
 * @p: the peer's proposal
 *
 * Does not sleep.
 */
bool smc_prefix_match(struct sock *sk, const struct smc_clc_proposal *p)
{
	struct net_device *dev;
	bool match = false;

	if (!p->has_prefix)
		return false;
	rcu_read_lock();
	dev = egress(sk);
	if (dev)
		match = prefix_is_ipv4(sk) ? match4(dev, p) : match6(dev, p);
	rcu_read_unlock();
	return match;
}
