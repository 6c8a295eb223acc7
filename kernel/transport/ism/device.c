// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ISM devices of this host, and the choice of one that both ends of a connection have: by CHID and reachability in
 * version 2, by GID in version 1.
 */

#include <linux/export.h>
#include <linux/mutex.h>
#include <linux/random.h>
#include <net/inet_hashtables.h>

#include "../../control/eid.h"
#include "../../control/peers.h"
#include "../../control/sysctl.h"
#include "../../net.h"
#include "../../wire/reason.h"
#include "ism.h"
#include "show.h"

static LIST_HEAD(devices);
static DEFINE_MUTEX(devices_lock); /* devices */
static DECLARE_WAIT_QUEUE_HEAD(dev_unused);
/* The number of devices, for smc_ism_present(): those within this kernel, and the others. */
static atomic_t host_devices, other_devices;

static atomic_t *counter_of(const struct smc_ism_dev *dev)
{
	return dev->host ? &host_devices : &other_devices;
}

/*
 * Version 2 needs an EID that both ends have. If both ends are in this kernel, they need no configured EID: this one, which
 * differs from boot to boot, takes the place of the system EID.
 */
static u8 host_eid[SMC_EID_LEN + 1];

/* smc_ism_register() - lets connections use a device. Return: 0. */
int smc_ism_register(struct smc_ism_dev *dev)
{
	might_sleep();
	dev->has_hw_id = !smc_pnet_of_hw(dev->parent, 0, dev->hw_id);
	mutex_lock(&devices_lock);
	if (!host_eid[0])
		snprintf((char *)host_eid, sizeof(host_eid), "SMCKIT-LOOPBACK-%016llX", get_random_u64());
	list_add_tail(&dev->list, &devices);
	mutex_unlock(&devices_lock);
	atomic_inc(counter_of(dev));
	smc_peers_device_soon();
	return 0;
}
EXPORT_SYMBOL_GPL(smc_ism_register);

/* smc_ism_unregister() - undoes it, and ends the groups of the device. */
void smc_ism_unregister(struct smc_ism_dev *dev)
{
	might_sleep();
	mutex_lock(&devices_lock);
	list_del(&dev->list);
	mutex_unlock(&devices_lock);
	atomic_dec(counter_of(dev));
	wait_event(dev_unused, !atomic_read(&dev->users));
	smc_lgr_terminate_dev(dev);
}
EXPORT_SYMBOL_GPL(smc_ism_unregister);

/* Keeps a device registered until smc_ism_dev_put(). */
static void ism_dev_get(struct smc_ism_dev *dev)
{
	lockdep_assert_held(&devices_lock);
	if (dev)
		atomic_inc(&dev->users);
}

/* smc_ism_dev_put() - the caller has joined a group of the device, which keeps it, or does not need it. Any context. */
void smc_ism_dev_put(struct smc_ism_dev *dev)
{
	if (atomic_dec_and_test(&dev->users))
		wake_up_all(&dev_unused);
}

/* Returns whether the other end of a connection is a socket of the same namespace. */
static bool peer_in_same_net(const struct sock *sk)
{
	struct sock *peer = smc_net_peer(sk);

	if (!peer)
		return false;
	sock_gen_put(peer);
	return true;
}

/* Returns whether net.smc.loopback lets a connection use a device within this host. */
static bool loopback_allowed(const struct smc_ism_dev *dev, struct sock *sk)
{
	if (!dev->host)
		return true;
	switch (READ_ONCE(smc_net(sock_net(sk))->sysctl->loopback)) {
	case SMC_LOOPBACK_OFF:
		return false;
	case SMC_LOOPBACK_NAMESPACE:
		return peer_in_same_net(sk);
	default:
		return true;
	}
}

/*
 * Finds the physical network that firmware or the PNET table has attached a device to. The loopback device belongs to none. Any
 * context. Return: 0 or -ENOENT.
 */
static int dev_pnet_id(const struct smc_ism_dev *dev, u8 id[SMC_PNET_ID_LEN], bool *by_user)
{
	if (dev->host)
		return -ENOENT;
	*by_user = !dev->has_hw_id;
	if (*by_user)
		return smc_pnet_of_ib(dev->name, 0, id);
	memcpy(id, dev->hw_id, SMC_PNET_ID_LEN);
	return 0;
}

/* A client does not offer a device of a physical network that no interface of its namespace is attached to. */
static bool is_network_present(const struct smc_ism_dev *dev, const struct sock *sk)
{
	u8 id[SMC_PNET_ID_LEN];
	bool by_user;

	return dev_pnet_id(dev, id, &by_user) || smc_pnet_has_netdev(smc_net(sock_net(sk)), id);
}

/* smc_ism_host_eid() - returns the EID for connections within this kernel. Any context. */
const u8 *smc_ism_host_eid(void)
{
	return host_eid;
}

/* smc_ism_for_pair() - returns a device for two ends in the namespace of @sk, or NULL. */
struct smc_ism_dev *smc_ism_for_pair(struct sock *sk)
{
	struct smc_ism_dev *dev, *found = NULL;

	might_sleep();
	mutex_lock(&devices_lock);
	list_for_each_entry(dev, &devices, list)
		if (!found && dev->host && dev->ops->share && READ_ONCE(smc_net(sock_net(sk))->sysctl->loopback) != SMC_LOOPBACK_OFF)
			found = dev;
	mutex_unlock(&devices_lock);
	return found;
}

/* smc_ism_local() - adds the versions of SMC-D that this host has a device for. */
void smc_ism_local(struct smc_local *local)
{
	struct smc_ism_dev *dev;

	might_sleep();
	mutex_lock(&devices_lock);
	list_for_each_entry(dev, &devices, list) {
		local->d1 |= dev->v1;
		local->d2 |= dev->v2;
	}
	mutex_unlock(&devices_lock);
}

/* smc_ism_present() - present of the transport. Any context. */
bool smc_ism_present(const struct net *net)
{
	if (atomic_read(&other_devices))
		return true;
	return atomic_read(&host_devices) && READ_ONCE(smc_net(net)->sysctl->loopback) != SMC_LOOPBACK_OFF;
}

static void add_gid(struct smc_clc_proposal *p, const struct smc_ism_dev *dev)
{
	unsigned int need = smc_ism_emulated(dev->chid) ? 2 : 1;

	if (p->n_gid + need > SMC_CLC_GIDS)
		return;
	p->gids[p->n_gid++] = (struct smc_clc_gid){ .gid = dev->gid[0], .chid = dev->chid };
	if (need == 2)
		p->gids[p->n_gid++] = (struct smc_clc_gid){ .gid = dev->gid[1], .chid = dev->chid };
	p->has_v2 = true;
	p->has_d2 = true;
	p->path_v2 = SMC_PATH_D;
}

/* Adds the system EID, or host_eid in its place if there is no EID at all. */
static void add_eid(struct smc_clc_proposal *p)
{
	p->seid_valid = smc_eid_seid(p->seid);
	if (p->n_eid || p->seid_valid)
		return;
	memcpy(p->seid, host_eid, SMC_EID_LEN);
	p->seid_valid = true;
}

/**
 * smc_ism_offer() - adds the devices that a client can use to its proposal
 * @offer: the rendezvous
 * @p: the proposal
 *
 * Return: 0, or -ENODEV if there is none.
 */
int smc_ism_offer(struct smc_offer *offer, struct smc_clc_proposal *p)
{
	struct smc_ism_dev *dev;

	might_sleep();
	mutex_lock(&devices_lock);
	list_for_each_entry(dev, &devices, list) {
		if (!loopback_allowed(dev, offer->sk) || !is_network_present(dev, offer->sk))
			continue;
		if (dev->v2)
			add_gid(p, dev);
		if (dev->v1 && p->path_v1 == SMC_PATH_N) {
			p->path_v1 = SMC_PATH_D;
			p->ism_gid = dev->gid[0];
			p->ism_chid = dev->chid;
		}
	}
	mutex_unlock(&devices_lock);
	if (p->has_d2)
		add_eid(p);
	return p->has_d2 || p->path_v1 == SMC_PATH_D ? 0 : -ENODEV;
}

/* Finds an EID that both ends have: the system EID, then user EIDs in the client's order. */
static bool negotiate_eid(const struct smc_ism_dev *dev, const struct smc_clc_proposal *p, u8 eid[SMC_EID_LEN])
{
	u8 seid[SMC_EID_LEN];

	if (p->seid_valid && ((smc_eid_seid(seid) && !memcmp(seid, p->seid, SMC_EID_LEN)) ||
			      (dev->host && !memcmp(host_eid, p->seid, SMC_EID_LEN)))) {
		memcpy(eid, p->seid, SMC_EID_LEN);
		return true;
	}
	return smc_eid_negotiate(p->eid, p->n_eid, eid);
}

/* Returns whether the client offers a device that this one reaches. An emulated device takes two entries. */
static bool dev_reaches(struct smc_ism_dev *dev, const struct smc_clc_proposal *p, u64 peer[2])
{
	unsigned int i, need;

	for (i = 0; i < p->n_gid; i += need) {
		need = smc_ism_emulated(p->gids[i].chid) ? 2 : 1;
		if (i + need > p->n_gid)
			return false;
		if (p->gids[i].chid != dev->chid)
			continue;
		peer[0] = p->gids[i].gid;
		peer[1] = need == 2 ? p->gids[i + 1].gid : 0;
		if (dev->ops->reach(dev, peer, 0))
			return true;
	}
	return false;
}

static bool dev_fits_v2(struct smc_ism_dev *dev, const struct smc_clc_proposal *p,
		    struct smc_clc_accept *accept, u64 peer[2], u32 *reason)
{
	if (!dev->v2 || !dev_reaches(dev, p, peer))
		return false;
	if (!negotiate_eid(dev, p, accept->eid)) {
		*reason = SMC_REASON_NO_UEID;
		return false;
	}
	accept->version = 2;
	accept->release = min_t(u8, p->release, 1);
	return true;
}

static bool dev_fits_v1(struct smc_ism_dev *dev, const struct smc_clc_proposal *p,
		    struct smc_clc_accept *accept, u64 peer[2])
{
	peer[0] = p->ism_gid;
	peer[1] = smc_ism_emulated(dev->chid) ? dev->gid[1] : 0;
	accept->version = 1;
	return dev->v1 && dev->ops->reach(dev, peer, 0);
}

/**
 * smc_ism_choose() - chooses a server's device for a proposal (docs/protocol.md, 4.1)
 * @offer: the rendezvous
 * @p: the client's proposal
 * @accept: result: version, release and EID
 * @peer: result: the client's GID
 * @reason: result: a reason of wire/reason.h if there is no device
 *
 * Return: the device, for smc_ism_dev_put(), or NULL.
 */
struct smc_ism_dev *smc_ism_choose(struct smc_offer *offer, const struct smc_clc_proposal *p,
				   struct smc_clc_accept *accept, u64 peer[2], u32 *reason)
{
	bool v2 = smc_clc_path_has_d(p->path_v2), v1 = smc_clc_path_has_d(p->path_v1);
	struct smc_ism_dev *dev, *found = NULL;

	might_sleep();
	*reason = v2 ? SMC_REASON_NO_D2_DEV : SMC_REASON_NO_D_DEV;
	mutex_lock(&devices_lock);
	list_for_each_entry(dev, &devices, list)
		if (v2 && !found && loopback_allowed(dev, offer->sk) && dev_fits_v2(dev, p, accept, peer, reason))
			found = dev;
	list_for_each_entry(dev, &devices, list)
		if (v1 && !found && loopback_allowed(dev, offer->sk) && dev_fits_v1(dev, p, accept, peer))
			found = dev;
	ism_dev_get(found);
	mutex_unlock(&devices_lock);
	return found;
}

/* smc_ism_ext_gid() - returns the second half of a server's GID, which emulated devices alone have, and version 1 leaves out. Any context. */
u64 smc_ism_ext_gid(const struct smc_ism_dev *dev, const struct smc_clc_accept *peer)
{
	if (!smc_ism_emulated(dev->chid))
		return 0;
	return peer->version < 2 ? dev->gid[1] : peer->ext_gid;
}

/* Returns whether a server may have chosen a device. Devices of different networks may have the same CHID. */
static bool is_servers(struct smc_ism_dev *dev, const struct smc_clc_accept *peer)
{
	const u64 gid[2] = { peer->ism_gid, smc_ism_ext_gid(dev, peer) };

	if (peer->version < 2 ? !dev->v1 : !dev->v2 || dev->chid != peer->chid)
		return false;
	return dev->ops->reach(dev, gid, 0);
}

/* smc_ism_of_server() - returns the device that a server has chosen and that reaches it, for smc_ism_dev_put(), or NULL. */
struct smc_ism_dev *smc_ism_of_server(const struct smc_clc_accept *peer)
{
	struct smc_ism_dev *dev, *found = NULL;

	might_sleep();
	mutex_lock(&devices_lock);
	list_for_each_entry(dev, &devices, list)
		if (!found && is_servers(dev, peer))
			found = dev;
	ism_dev_get(found);
	mutex_unlock(&devices_lock);
	return found;
}

/* smc_ism_describe() - the device of a group that is listed. Does not sleep. */
void smc_ism_describe(const void *dev, struct smc_ism_view *view)
{
	const struct smc_ism_dev *d = dev;

	*view = (struct smc_ism_view) {
		.name = d->name, .gid = { d->gid[0], d->gid[1] }, .chid = d->chid,
		.pci_vendor = d->pci_vendor, .pci_device = d->pci_device,
	};
	if (dev_pnet_id(d, (u8 *)view->pnet_id, &view->pnet_by_user))
		view->pnet_by_user = false;
}

/**
 * smc_ism_walk() - visits the devices
 * @next: how many devices to skip, 0 at first; updated
 * @fn: if it returns nonzero, the walk ends and the device counts as not visited
 * @arg: passed on to @fn
 *
 * Return: 0 at the end, else what @fn returned.
 */
int smc_ism_walk(unsigned int *next, int (*fn)(struct smc_ism_view *view, void *arg), void *arg)
{
	struct smc_ism_view view;
	struct smc_ism_dev *dev;
	unsigned int conns, n = 0;
	int rc = 0;

	might_sleep();
	mutex_lock(&devices_lock);
	list_for_each_entry(dev, &devices, list) {
		if (n++ < *next)
			continue;
		smc_ism_describe(dev, &view);
		view.groups = smc_lgr_count_dev(dev, &conns);
		rc = fn(&view, arg);
		if (rc)
			break;
		*next = n;
	}
	mutex_unlock(&devices_lock);
	return rc;
}
