// SPDX-License-Identifier: GPL-2.0-only
/* RDMA devices as they come and go, and the state of their ports. */

#include <linux/etherdevice.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <rdma/ib_cache.h>

#include "../../control/peers.h"
#include "../../control/sysctl.h"
#include "../../lgr/lgr.h"
#include "../../net.h"
#include "device.h"
#include "limits.h"
#include "../transport.h"

static LIST_HEAD(devs);
static DEFINE_MUTEX(devs_lock); /* devs, and the identity of this host */

/* The number of ports that can be used, for smc_rdma_present(). */
static atomic_t active_ports;

/*
 * The identity of this host for its peers (docs/protocol.md, 1): a number that tells this load of the module
 * from others, and the address of the first port that was seen active, which stays.
 */
static u8 peer_id[8];

/* smc_rdma_dev_get() - takes a reference. Any context. */
void smc_rdma_dev_get(struct smc_rdma_dev *dev)
{
	refcount_inc(&dev->ref);
}

/* smc_rdma_dev_put() - drops a reference. Any context. */
void smc_rdma_dev_put(struct smc_rdma_dev *dev)
{
	if (!refcount_dec_and_test(&dev->ref))
		return;
	kfree(dev->on_vector);
	kfree(dev);
}

/* smc_rdma_dev_add_user() - announces that the device is used. Any context. Return: false if it is going. */
bool smc_rdma_dev_add_user(struct smc_rdma_dev *dev)
{
	if (!refcount_inc_not_zero(&dev->users))
		return false;
	smp_mb__after_atomic(); /* pairs with remove_device(): it sees the group that this is for, or we see this */
	if (!READ_ONCE(dev->gone))
		return true;
	smc_rdma_dev_del_user(dev);
	return false;
}

/* smc_rdma_dev_del_user() - ends what smc_rdma_dev_add_user() has announced. Any context. */
void smc_rdma_dev_del_user(struct smc_rdma_dev *dev)
{
	if (refcount_dec_and_test(&dev->users))
		complete(&dev->unused);
}

/*
 * smc_rdma_vector_get() - returns the completion vector with the fewest links, for smc_rdma_vector_put(). Those beyond
 * the number of processors interrupt the same ones, so they are not used. Any context.
 */
unsigned int smc_rdma_vector_get(struct smc_rdma_dev *dev, u32 vectors)
{
	unsigned int i, best = 0, n = min3(vectors, (u32)dev->ib->num_comp_vectors, num_online_cpus());

	spin_lock_bh(&dev->lock);
	for (i = 1; i < n; i++)
		if (dev->on_vector[i] < dev->on_vector[best])
			best = i;
	dev->on_vector[best]++;
	spin_unlock_bh(&dev->lock);
	return best;
}

/* smc_rdma_vector_put() - a link does not use its vector any more. Any context. */
void smc_rdma_vector_put(struct smc_rdma_dev *dev, unsigned int vector)
{
	spin_lock_bh(&dev->lock);
	dev->on_vector[vector]--;
	spin_unlock_bh(&dev->lock);
}

/* smc_rdma_gid_ifindex() - returns the interface of a GID, 0 if it has none. Any context. */
int smc_rdma_gid_ifindex(const struct ib_gid_attr *attr)
{
	const struct net_device *ndev;
	int ifindex;

	rcu_read_lock();
	ndev = rcu_dereference(attr->ndev);
	ifindex = ndev ? ndev->ifindex : 0;
	rcu_read_unlock();
	return ifindex;
}

/* Finds the first network interface that a port has a GID of, and its address. Any place of the table may be empty. */
static int port_netdev(struct ib_device *ib, u8 port, int n_gids, int *ifindex, u8 mac[ETH_ALEN])
{
	const struct ib_gid_attr *attr;
	int i, rc;

	*ifindex = 0;

	for (i = 0; i < n_gids; i++) {
		attr = smc_rdma_get_gid(ib, port, i);
		if (IS_ERR(attr))
			continue;
		rc = rdma_read_gid_l2_fields(attr, NULL, mac);
		*ifindex = smc_rdma_gid_ifindex(attr);
		rdma_put_gid_attr(attr);
		if (!rc)
			return 0;
	}
	return -ENODEV;
}

static void set_peer_id(const u8 mac[ETH_ALEN])
{
	mutex_lock(&devs_lock);
	if (is_zero_ether_addr(peer_id + 2)) {
		get_random_bytes(peer_id, 2);
		ether_addr_copy(peer_id + 2, mac);
	}
	mutex_unlock(&devs_lock);
}

/* Returns when a port that comes up may be used: switches take a while until they forward packets. */
static unsigned long usable_from(void)
{
	return jiffies + READ_ONCE(smc_net(&init_net)->sysctl->port_add_delay) * HZ;
}

/* Return: jiffies until the next look, MAX_JIFFY_OFFSET if only an event calls for one. */
static unsigned long check_port(struct smc_rdma_dev *dev, u8 port, bool *came_up)
{
	struct smc_rdma_port *p = &dev->ports[port - 1];
	unsigned long soonest = MAX_JIFFY_OFFSET;
	struct ib_port_attr attr = {};
	u8 mac[ETH_ALEN];
	int ifindex = 0;
	bool link_up, up, soon;

	link_up = !ib_query_port(dev->ib, port, &attr) && attr.state == IB_PORT_ACTIVE;
	if (link_up && !p->link_up)
		p->gids = jiffies + smc_rdma_gid_delay();
	WRITE_ONCE(p->link_up, link_up);
	if (link_up && time_before(jiffies, p->gids))
		soonest = p->gids - jiffies;
	up = link_up && soonest == MAX_JIFFY_OFFSET && !port_netdev(dev->ib, port, attr.gid_tbl_len, &ifindex, mac);
	if (up && !p->up)
		p->usable = usable_from();
	p->up = up;
	soon = up && time_before(jiffies, p->usable);
	if (up)
		set_peer_id(mac);
	WRITE_ONCE(p->mtu_code, attr.active_mtu);
	WRITE_ONCE(p->n_gids, attr.gid_tbl_len);
	WRITE_ONCE(p->ifindex, ifindex);
	if ((up && !soon) != p->active)
		atomic_add(p->active ? -1 : 1, &active_ports);
	*came_up |= up && !soon && !p->active;
	WRITE_ONCE(p->active, up && !soon);
	return soon ? p->usable - jiffies : soonest;
}

/*
 * Queues a look at the ports, under the lock: once remove_device() has cancelled the work, nobody queues it again.
 * Softirq.
 */
static void queue_check(struct smc_rdma_dev *dev, unsigned long delay)
{
	spin_lock_bh(&dev->lock);
	if (smc_rdma_dev_add_user(dev) && mod_delayed_work(smc_lgr_wq, &dev->work, delay))
		smc_rdma_dev_del_user(dev);
	spin_unlock_bh(&dev->lock);
}

/* smc_rdma_dev_check_soon() - has the ports and the links of a device checked soon. Softirq. */
void smc_rdma_dev_check_soon(struct smc_rdma_dev *dev)
{
	queue_check(dev, 0);
}

/* Queues a look that a port's time calls for, unless an event has queued an earlier one. Called by check_ports() only. */
static void queue_later_check(struct smc_rdma_dev *dev, unsigned long delay)
{
	spin_lock_bh(&dev->lock);
	if (smc_rdma_dev_add_user(dev) && !queue_delayed_work(smc_lgr_wq, &dev->work, delay))
		smc_rdma_dev_del_user(dev);
	spin_unlock_bh(&dev->lock);
}

/* Looks at all ports, then at the links. add_device() calls it, then only the work. */
static void check_ports(struct smc_rdma_dev *dev)
{
	unsigned long next = MAX_JIFFY_OFFSET;
	bool came_up = false;
	unsigned int port;

	might_sleep();
	for (port = 1; port <= dev->n_ports; port++)
		next = min(next, check_port(dev, port, &came_up));
	next = min(next, smc_link_check(dev));
	if (came_up) {
		smc_peers_device_soon();
		smc_rdma_add_port_up();
	}
	if (next != MAX_JIFFY_OFFSET)
		queue_later_check(dev, next);
}

static void check_ports_work(struct work_struct *work)
{
	struct smc_rdma_dev *dev = container_of(to_delayed_work(work), struct smc_rdma_dev, work);

	check_ports(dev);
	smc_rdma_dev_del_user(dev);
}

/* Looks at the ports again, whatever the event is. A port may have got a GID by which it serves more connections. */
static void on_port_event(struct ib_event_handler *handler, struct ib_event *event)
{
	smc_peers_forget(NULL);
	queue_check(container_of(handler, struct smc_rdma_dev, events), 0);
}

/* Does the device support SMC-R, on Ethernet? */
static bool supports_smcr(struct ib_device *ib)
{
	return ib->node_type == RDMA_NODE_IB_CA && rdma_protocol_roce(ib, 1) &&
	       (ib->attrs.device_cap_flags & IB_DEVICE_MEM_MGT_EXTENSIONS);
}

static struct ib_client client;

static int add_device(struct ib_device *ib)
{
	struct smc_rdma_dev *dev;
	unsigned int port;

	if (!supports_smcr(ib))
		return -EOPNOTSUPP;
	dev = kzalloc(sizeof(*dev), GFP_KERNEL);
	if (!dev)
		return -ENOMEM;
	dev->on_vector = kcalloc(max(ib->num_comp_vectors, 1), sizeof(*dev->on_vector), GFP_KERNEL);
	if (!dev->on_vector) {
		kfree(dev);
		return -ENOMEM;
	}
	dev->ib = ib;
	refcount_set(&dev->ref, 1);
	refcount_set(&dev->users, 1);
	init_completion(&dev->unused);
	INIT_DELAYED_WORK(&dev->work, check_ports_work);
	spin_lock_init(&dev->lock);
	INIT_LIST_HEAD(&dev->links);
	dev->n_ports = min_t(u32, ib->phys_port_cnt, SMC_RDMA_PORTS);
	for (port = 1; port <= dev->n_ports; port++)
		dev->ports[port - 1].has_hw_id = !smc_pnet_of_hw(ib->dev.parent, port - 1, dev->ports[port - 1].hw_id);
	ib_set_client_data(ib, &client, dev);
	check_ports(dev);
	mutex_lock(&devs_lock);
	list_add_tail(&dev->list, &devs);
	mutex_unlock(&devs_lock);
	/* Before, it could not be chosen. */
	smc_peers_forget(NULL);
	smc_rdma_add_port_up();
	INIT_IB_EVENT_HANDLER(&dev->events, ib, on_port_event);
	ib_register_event_handler(&dev->events);
	/* Changes before the handler was registered were no events. */
	queue_check(dev, 0);
	return 0;
}

static void remove_device(struct ib_device *ib, void *data)
{
	struct smc_rdma_dev *dev = data;
	unsigned int port;

	ib_unregister_event_handler(&dev->events);
	mutex_lock(&devs_lock);
	list_del_init(&dev->list);
	mutex_unlock(&devs_lock);
	spin_lock_bh(&dev->lock);
	WRITE_ONCE(dev->gone, true);
	spin_unlock_bh(&dev->lock);
	smp_mb(); /* pairs with smc_rdma_dev_add_user() */
	if (cancel_delayed_work_sync(&dev->work))
		smc_rdma_dev_del_user(dev);
	for (port = 0; port < dev->n_ports; port++)
		atomic_sub(dev->ports[port].active, &active_ports);
	smc_link_trace_removal(dev);
	smc_lgr_terminate_dev(dev);
	/* The groups that are left have a link over another device. */
	smc_link_check(dev);
	smc_rdma_dev_del_user(dev);
	wait_for_completion(&dev->unused);
	smc_rdma_dev_put(dev);
}

static struct ib_client client = {
	.name	= "smc",
	.add	= add_device,
	.remove	= remove_device,
};

/* smc_rdma_peer_id() - copies the identity of this host. Return: false if no port has named the host yet. */
bool smc_rdma_peer_id(u8 id[8])
{
	bool named;

	might_sleep();
	mutex_lock(&devs_lock);
	named = !is_zero_ether_addr(peer_id + 2);
	memcpy(id, peer_id, sizeof(peer_id));
	mutex_unlock(&devs_lock);
	return named;
}

/* smc_rdma_present() - present of the transport: is a port of some device active? Any context. */
bool smc_rdma_present(const struct net *net)
{
	return atomic_read(&active_ports);
}

/*
 * smc_rdma_dev_walk() - calls a function, which may sleep, for each device that can be used, until it returns nonzero.
 * May sleep. Return: what it returned last.
 */
int smc_rdma_dev_walk(int (*fn)(struct smc_rdma_dev *dev, void *arg), void *arg)
{
	struct smc_rdma_dev *dev;
	int rc = 0;

	might_sleep();
	mutex_lock(&devs_lock);
	list_for_each_entry(dev, &devs, list) {
		rc = fn(dev, arg);
		if (rc)
			break;
	}
	mutex_unlock(&devs_lock);
	return rc;
}

/* smc_rdma_devices_init() - at load. Return: 0 or a negative errno. */
int __init smc_rdma_devices_init(void)
{
	might_sleep();
	return ib_register_client(&client);
}

/* smc_rdma_devices_exit() - at unload. */
void smc_rdma_devices_exit(void)
{
	might_sleep();
	ib_unregister_client(&client);
}
