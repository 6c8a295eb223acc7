// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which device and GID carries a connection (docs/protocol.md, 4.2): a port of the same physical
 * network as the interface that the connection leaves by, or the RDMA device of that interface, and
 * on it a GID whose kind goes with the version.
 */

#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/inetdevice.h>
#include <net/addrconf.h>
#include <net/dst.h>
#include <net/ipv6.h>
#include <rdma/ib_cache.h>

#include "../../control/pnet.h"
#include "../../control/sysctl.h"
#include "../../net.h"
#include "device.h"
#include "limits.h"

/* Needs of a connection that a device has to meet. */
struct path_request {
	struct net *net;
	struct net *owner;	/* of the device that is looked at */
	struct net_device *base;	/* held; the interface it leaves by, below VLANs and the like */
	u16 vlan;			/* 0 if none */
	u8 version;
	bool rocev2;			/* version 1 may use GIDs of RoCEv2, too: net.smc.smcr_v1_rocev2 */
	bool ipv4;
	bool has_id;
	u8 id[SMC_PNET_ID_LEN];
	struct in6_addr saddr;		/* version 2, as what follows; an IPv4 address is mapped */
	const u8 *peer_gid;		/* NULL if not known yet */
	const struct smc_rdma_path *first;	/* that a group has already: another port is wanted; NULL if it has none */
	bool any_subnet;		/* the interface need not have an address in the subnet of saddr */
	bool exact;			/* the GID itself is such an address */
	const struct sock *sk;
	struct smc_rdma_path *path;
};

static bool path_is_ipv4(const struct sock *sk)
{
	return sk->sk_family == AF_INET || ipv6_addr_v4mapped(&sk->sk_v6_daddr);
}

/* State of the walk down through stacked interfaces. */
struct descent {
	struct net_device *base;	/* the lowest up to now */
	u16 vlan;			/* the first on the way */
};

/* RDMA devices are bound to a bond itself, so the walk stops there. */
static int step_down(struct net_device *dev, struct netdev_nested_priv *priv)
{
	struct descent *d = priv->data;

	if (is_vlan_dev(dev) && !d->vlan)
		d->vlan = vlan_dev_vlan_id(dev);
	d->base = dev;
	return netif_is_bond_master(dev);
}

/* Returns the lowest interface below one, and the first VLAN on the way. */
static struct net_device *lowest_netdev(struct net_device *dev, u16 *vlan)
{
	struct descent d = {};
	struct netdev_nested_priv priv = { .data = &d };

	RCU_LOCKDEP_WARN(!rcu_read_lock_held(), "lowest_netdev() outside of an RCU section");
	if (!step_down(dev, &priv))
		netdev_walk_all_lower_dev_rcu(dev, step_down, &priv);
	*vlan = d.vlan;
	return d.base;
}

static int init_request(struct sock *sk, struct path_request *w)
{
	struct net_device *dev;
	struct dst_entry *dst;

	w->net = sock_net(sk);
	w->ipv4 = path_is_ipv4(sk);
	w->rocev2 = READ_ONCE(smc_net(w->net)->sysctl->smcr_v1_rocev2);
	rcu_read_lock();
	dst = rcu_dereference(sk->sk_dst_cache);
	dev = dst ? dst_dev_rcu(dst) : NULL;
	if (!dev || (dev->flags & IFF_LOOPBACK)) {
		rcu_read_unlock();
		return -ENODEV;
	}
	w->base = lowest_netdev(dev, &w->vlan);
	dev_hold(w->base);
	/* Both hosts have to ask in the same order. */
	w->has_id = !smc_pnet_of_netdev(smc_net(w->net), w->base, w->id) || !smc_pnet_of_netdev(smc_net(w->net), dev, w->id);
	rcu_read_unlock();
	if (!smc_pnet_of_hw(w->base->dev.parent, w->base->dev_port, w->id))
		w->has_id = true;
	w->sk = sk;
	if (w->ipv4)
		ipv6_addr_set_v4mapped(inet_sk(sk)->inet_rcv_saddr, &w->saddr);
	else
		w->saddr = sk->sk_v6_rcv_saddr;
	return 0;
}

/* Does the GID belong to the interface's VLAN, or to the interface itself? */
static bool vlan_fits(const struct net_device *ndev, u16 vlan)
{
	return is_vlan_dev(ndev) ? vlan_dev_vlan_id(ndev) == vlan : !vlan;
}

static bool has_subnet4(const struct net_device *ndev, __be32 addr, const struct in6_addr *gid)
{
	struct in_device *in = __in_dev_get_rcu(ndev);
	const struct in_ifaddr *ifa;

	if (!in)
		return false;
	in_dev_for_each_ifa_rcu(ifa, in)
		if (inet_ifa_match(addr, ifa) && (!gid || inet_ifa_match(gid->s6_addr32[3], ifa)))
			return true;
	return false;
}

static bool has_subnet6(const struct net_device *ndev, const struct in6_addr *addr, const struct in6_addr *gid)
{
	struct inet6_dev *in = __in6_dev_get(ndev);
	const struct inet6_ifaddr *ifa;

	if (!in)
		return false;
	list_for_each_entry_rcu(ifa, &in->addr_list, if_list)
		if (ipv6_prefix_equal(&ifa->addr, addr, ifa->prefix_len) &&
		    (!gid || ipv6_prefix_equal(&ifa->addr, gid, ifa->prefix_len)))
			return true;
	return false;
}

/*
 * Does the interface have an address in the subnet of the connection's own address, which also has the GID, if one is given?
 */
static bool has_subnet(const struct net_device *ndev, const struct path_request *w, const struct in6_addr *gid)
{
	RCU_LOCKDEP_WARN(!rcu_read_lock_held(), "has_subnet() outside of an RCU section");
	return w->ipv4 ? has_subnet4(ndev, w->saddr.s6_addr32[3], gid) : has_subnet6(ndev, &w->saddr, gid);
}

static bool gid_reachable(const struct path_request *w)
{
	struct dst_entry *dst;

	if (!w->peer_gid)
		return true;
	dst = smc_rdma_dst(w->sk, w->peer_gid);
	if (IS_ERR(dst))
		return false;
	dst_release(dst);
	return true;
}

/* Does the GID suit version 1? The peers share a subnet, so no route is needed. */
static bool fits_v1(const struct ib_gid_attr *attr, const struct path_request *w)
{
	if (attr->gid_type == IB_GID_TYPE_ROCE_UDP_ENCAP)
		return w->rocev2 && ipv6_addr_v4mapped((const struct in6_addr *)attr->gid.raw) == w->ipv4;
	return attr->gid_type == IB_GID_TYPE_ROCE;
}

/*
 * Does the GID suit version 2? It is an address of the connection's family. A link-local GID suits only link-local
 * connections, because it cannot be reached from other links.
 */
static bool fits_v2(const struct ib_gid_attr *attr, const struct net_device *ndev, const struct path_request *w)
{
	const struct in6_addr *gid = (const struct in6_addr *)attr->gid.raw;

	if (attr->gid_type != IB_GID_TYPE_ROCE_UDP_ENCAP || ipv6_addr_v4mapped(gid) != w->ipv4)
		return false;
	if (!w->ipv4 && __ipv6_addr_needs_scope_id(__ipv6_addr_type(gid)) !=
			__ipv6_addr_needs_scope_id(__ipv6_addr_type(&w->saddr)))
		return false;
	return w->any_subnet || has_subnet(ndev, w, w->exact ? gid : NULL);
}

/* A device without PNET ID is found by its interface, and the device of a second link by its subnet. */
static bool is_same_network(struct net_device *ndev, const struct path_request *w)
{
	u16 vlan;

	if (w->has_id)
		return true;
	return w->first ? has_subnet(ndev, w, NULL) : lowest_netdev(ndev, &vlan) == w->base;
}

/*
 * Does the GID belong to the host, or with @own to the connection's own namespace? A shared device has GIDs of the
 * interfaces of all namespaces. One of a third namespace is never used, because links end with the interface of their
 * GID.
 */
static bool is_of_host(const struct net_device *ndev, const struct path_request *w, bool own)
{
	const struct net *net = dev_net(ndev);

	return own ? net_eq(net, w->net) : net_eq(net, w->owner) || (w->base && net_eq(net, dev_net(w->base)));
}

static bool gid_fits(const struct ib_gid_attr *attr, const struct path_request *w, bool own)
{
	struct net_device *ndev;
	bool fits;

	rcu_read_lock();
	ndev = rcu_dereference(attr->ndev);
	fits = ndev && is_of_host(ndev, w, own) && vlan_fits(ndev, w->vlan) && is_same_network(ndev, w);
	fits = fits && (w->version > 1 ? fits_v2(attr, ndev, w) : fits_v1(attr, w));
	rcu_read_unlock();
	return fits && (w->version < 2 || gid_reachable(w));
}

/* Takes the first GID of a port that fits; for @own see is_of_host(). */
static int try_gids(struct smc_rdma_dev *dev, u8 port, struct path_request *w, bool own)
{
	const struct smc_rdma_port *p = &dev->ports[port - 1];
	const struct ib_gid_attr *gid;
	int i, rc = 0;

	for (i = 0; i < READ_ONCE(p->n_gids) && !rc; i++) {
		gid = smc_rdma_get_gid(dev->ib, port, i);
		if (IS_ERR(gid))
			continue;
		if (gid_fits(gid, w, own) && !rdma_read_gid_l2_fields(gid, NULL, w->path->mac)) {
			memcpy(w->path->gid, gid->gid.raw, sizeof(w->path->gid));
			w->path->of_host = !own;
			w->path->gid_index = gid->index;
			w->path->ifindex = smc_rdma_gid_ifindex(gid);
			w->path->mtu_code = READ_ONCE(p->mtu_code);
			rc = 1;
		}
		rdma_put_gid_attr(gid);
	}
	return rc;
}

/*
 * The host's GIDs come first: a link with one of them serves all namespaces that share the device, and outlives them.
 */
static int try_port(struct smc_rdma_dev *dev, u8 port, struct path_request *w)
{
	if (!READ_ONCE(dev->ports[port - 1].active))
		return 0;
	return try_gids(dev, port, w, false) ?: try_gids(dev, port, w, true);
}

/*
 * smc_rdma_owner() - returns the namespace that owns a device and the link groups over it: the initial one while
 * namespaces share devices ("rdma system set netns shared"), else the one that has the device. The caller keeps the
 * device from being removed: see smc_rdma_dev_walk() and smc_rdma_dev_add_user(). Any context.
 */
struct net *smc_rdma_owner(const struct smc_rdma_dev *dev)
{
	/* A device that every namespace may use, may also be used by none in particular. */
	return rdma_dev_access_netns(dev->ib, NULL) ? &init_net : read_pnet(&dev->ib->coredev.rdma_net);
}

/*
 * smc_rdma_pnet_id() - sets the PNET ID of a port, which counts from 1, and whether it comes from the user's table
 * instead of the firmware. Any context. Return: 0 or -ENOENT.
 */
int smc_rdma_pnet_id(const struct smc_rdma_dev *dev, u8 port, u8 id[SMC_PNET_ID_LEN], bool *by_user)
{
	const struct smc_rdma_port *p = &dev->ports[port - 1];

	*by_user = !p->has_hw_id;
	if (*by_user)
		return smc_pnet_of_ib(dev->ib->name, port, id);
	memcpy(id, p->hw_id, SMC_PNET_ID_LEN);
	return 0;
}

static int try_device(struct smc_rdma_dev *dev, void *arg)
{
	struct path_request *w = arg;
	unsigned int port;
	bool by_user;
	u8 id[SMC_PNET_ID_LEN];

	if (!rdma_dev_access_netns(dev->ib, w->net))
		return 0;
	w->owner = smc_rdma_owner(dev);
	for (port = 1; port <= dev->n_ports; port++) {
		if (w->first && dev == w->first->dev && port == w->first->port)
			continue;
		if (w->has_id && (smc_rdma_pnet_id(dev, port, id, &by_user) || memcmp(id, w->id, sizeof(id))))
			continue;
		if (!try_port(dev, port, w))
			continue;
		smc_rdma_dev_get(dev);
		w->path->dev = dev;
		w->path->net = w->owner;
		w->path->port = port;
		w->path->version = w->version;
		w->path->vlan = w->vlan;
		return 1;
	}
	return 0;
}

/*
 * smc_rdma_choose() - chooses a device and GID for a connection, and takes a reference on the device. The GID suits the
 * version of SMC-R. In version 2 there is a route to the peer's GID, if that is known. Return: 0, -ENODEV if
 * there is none, -EAFNOSUPPORT if the peer's GID is of another family than the connection.
 */
int smc_rdma_choose(struct sock *sk, u8 version, const u8 *peer_gid, struct smc_rdma_path *path)
{
	struct path_request w = { .version = version, .path = path };
	int rc;

	might_sleep();
	memset(path, 0, sizeof(*path));
	if (version > 1)
		w.peer_gid = peer_gid;
	if (w.peer_gid && smc_rdma_gid_is_ipv4(w.peer_gid) != path_is_ipv4(sk))
		return -EAFNOSUPPORT;
	rc = init_request(sk, &w);
	if (rc)
		return rc;
	rc = smc_rdma_dev_walk(try_device, &w) ? 0 : -ENODEV;
	dev_put(w.base);
	return rc;
}

/*
 * smc_rdma_choose_second() - chooses a port and GID for a second link of a group, beside those of its first link, and takes
 * a reference on the device: a port of the same physical network, or of the same subnet if the first port has no PNET ID.
 * A client gives the GID that its server has chosen, for which a GID of the same subnet is best. Return: 0 or
 * -ENODEV if there is no such port.
 */
int smc_rdma_choose_second(const struct smc_rdma_path *first, const u8 *peer_gid, struct smc_rdma_path *path)
{
	struct path_request w = {
		.net = first->net,
		.version = first->version,
		.vlan = first->vlan,
		.rocev2 = READ_ONCE(smc_net(first->net)->sysctl->smcr_v1_rocev2),
		.ipv4 = smc_rdma_gid_is_ipv4(first->gid),
		.first = first,
		.exact = true,
		.path = path,
	};
	bool by_user;

	might_sleep();
	memset(path, 0, sizeof(*path));
	w.has_id = !smc_rdma_pnet_id(first->dev, first->port, w.id, &by_user);
	memcpy(&w.saddr, peer_gid && w.has_id ? peer_gid : first->gid, sizeof(w.saddr));
	/* Any two interfaces share the link-local subnet. */
	if (!w.has_id && !w.ipv4 && (ipv6_addr_type(&w.saddr) & IPV6_ADDR_LINKLOCAL))
		return -ENODEV;
	/* In one subnet, whatever ports the two hosts choose can reach each other. */
	if (smc_rdma_dev_walk(try_device, &w))
		return 0;
	w.exact = false;
	w.any_subnet = w.has_id && !peer_gid;
	return smc_rdma_dev_walk(try_device, &w) ? 0 : -ENODEV;
}
