// SPDX-License-Identifier: GPL-2.0-only
/*
 * PNET table
 *
 * An entry names its device, which need not exist. An entry for a network interface is bound to the device of that name
 * once it exists, and stays bound when the device is renamed. It has the ifindex and holds no reference, so nothing has to
 * be released when a device or its namespace goes.
 *
 * RDMA devices belong to the host, so only the table of the initial namespace has them.
 *
 * The notifier takes a table's lock within RTNL.
 */
#include <linux/ctype.h>
#include <linux/netdevice.h>
#include <linux/netlink.h>
#include <linux/rculist.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/user_namespace.h>

#if IS_ENABLED(CONFIG_HAVE_PNETID)
#include <asm/pnet.h>
#endif

#include "../net.h"
#include "peers.h"
#include "pnet.h"

/**
 * smc_pnet_parse_id() - check a PNET ID and convert it to upper case
 * @text: PNET ID, may have blanks around it. Letters are those of the kernel's character set, Latin-1
 * @id: result
 * @extack: gets the reason of a refusal; may be NULL
 *
 * Context: any.
 * Return: 0 or -EINVAL.
 */
int smc_pnet_parse_id(const char *text, char id[SMC_PNET_ID_LEN + 1],
		      struct netlink_ext_ack *extack)
{
	size_t len, i;

	text = skip_spaces(text);
	len = strlen(text);
	while (len && isspace(text[len - 1]))
		len--;
	if (!len) {
		NL_SET_ERR_MSG(extack, "PNET ID is empty");
		return -EINVAL;
	}
	if (len > SMC_PNET_ID_LEN) {
		NL_SET_ERR_MSG(extack, "PNET ID is longer than 16 characters");
		return -EINVAL;
	}
	for (i = 0; i < len; i++) {
		if (!isalnum(text[i])) {
			NL_SET_ERR_MSG(extack, "PNET ID may have letters and digits only");
			return -EINVAL;
		}
		id[i] = toupper(text[i]);
	}
	id[len] = '\0';
	return 0;
}

/* Fills an entry from a request. Blanks around the name of an RDMA device are removed. */
static int fill_entry(struct smc_pnet_entry *entry, const char *id,
		      const struct smc_pnet_device *device, struct netlink_ext_ack *extack)
{
	size_t max = device->kind == SMC_PNET_ETH ? IFNAMSIZ - 1 : SMC_PNET_IB_LEN;
	const char *name = device->name;
	size_t len;

	if (device->kind == SMC_PNET_IB) {
		if (device->port < 1 || device->port > SMC_PNET_PORT_MAX) {
			NL_SET_ERR_MSG(extack, "an RDMA device has ports 1 and 2");
			return -EINVAL;
		}
		entry->port = device->port;
		name = skip_spaces(name);
	}
	len = strlen(name);
	while (device->kind == SMC_PNET_IB && len && isspace(name[len - 1]))
		len--;
	if (len > max) {
		NL_SET_ERR_MSG(extack, "device name is too long");
		return -EINVAL;
	}
	entry->kind = device->kind;
	memcpy(entry->name, name, len);
	strscpy(entry->id, id, sizeof(entry->id));
	return 0;
}

static struct smc_pnet_entry *find_device(struct smc_pnet_net *table, enum smc_pnet_kind kind,
					  const char *name)
{
	struct smc_pnet_entry *entry;

	lockdep_assert_held(&table->lock);
	list_for_each_entry(entry, &table->entries, list)
		if (entry->kind == kind && !strcmp(entry->name, name))
			return entry;
	return NULL;
}

/*
 * Binds a new entry to the device that has its name. The events of a device that is registered or unregistered at the same
 * time wait for the lock, and bind or unbind it afterwards.
 */
static void bind_entry(struct smc_net *snet, struct smc_pnet_entry *entry)
{
	struct net_device *dev;

	lockdep_assert_held(&snet->pnet->lock);
	if (entry->kind != SMC_PNET_ETH || strlen(entry->name) >= IFNAMSIZ)
		return;
	rcu_read_lock();
	dev = dev_get_by_name_rcu(snet->net, entry->name);
	if (dev)
		entry->ifindex = dev->ifindex;
	rcu_read_unlock();
}

/* The table has changed. That of the initial namespace has the RDMA devices, which serve all. */
static void table_changed(struct smc_net *snet)
{
	smc_peers_forget(net_eq(snet->net, &init_net) ? NULL : snet);
}

/* Moves the entries whose devices are not in the table yet from @added into it. Returns their number. */
static unsigned int insert_entries(struct smc_net *snet, struct list_head *added)
{
	struct smc_pnet_net *table = snet->pnet;
	struct smc_pnet_entry *entry, *next;
	unsigned int n = 0;

	lockdep_assert_held(&table->lock);
	list_for_each_entry_safe(entry, next, added, list) {
		if (find_device(table, entry->kind, entry->name))
			continue;
		list_del(&entry->list);
		bind_entry(snet, entry);
		list_add_tail_rcu(&entry->list, &table->entries);
		n++;
	}
	table->n += n;
	if (n)
		table->generation++;
	return n;
}

static void free_entries(struct list_head *entries)
{
	struct smc_pnet_entry *entry, *next;

	list_for_each_entry_safe(entry, next, entries, list)
		kfree(entry);
}

/* Makes entries of what a request names. */
static int make_entries(struct smc_net *snet, const char *id,
			const struct smc_pnet_device *devices, unsigned int n,
			struct list_head *entries, struct netlink_ext_ack *extack)
{
	struct smc_pnet_entry *entry;
	unsigned int i;
	int rc;

	for (i = 0; i < n; i++) {
		if (devices[i].kind == SMC_PNET_IB && !net_eq(snet->net, &init_net))
			continue;
		entry = kzalloc(sizeof(*entry), GFP_KERNEL_ACCOUNT);
		if (!entry)
			return -ENOMEM;
		list_add_tail(&entry->list, entries);
		rc = fill_entry(entry, id, &devices[i], extack);
		if (rc)
			return rc;
	}
	return 0;
}

/*
 * Returns whether the table has no room for @n more entries. The owner of a user namespace may add entries, and each event
 * of a device visits them all, with RTNL, for which the whole host waits.
 */
static bool is_full(const struct smc_net *snet, unsigned int n)
{
	lockdep_assert_held(&snet->pnet->lock);
	return snet->net->user_ns != &init_user_ns && n > SMC_PNET_USER_MAX - min_t(unsigned int, snet->pnet->n, SMC_PNET_USER_MAX);
}

/**
 * smc_pnet_add() - attach devices to a physical network
 * @snet: namespace
 * @id: PNET ID, from smc_pnet_parse_id()
 * @devices: the devices
 * @n: their number
 * @extack: gets the reason of a refusal; may be NULL
 *
 * A device has one entry only, whatever its port. Adding several devices succeeds if one of them was new. Outside of the
 * initial namespace RDMA devices are skipped.
 *
 * Return: 0, -EEXIST if nothing was added, -ENOSPC, -EINVAL or -ENOMEM; after an error the table is unchanged.
 */
int smc_pnet_add(struct smc_net *snet, const char *id, const struct smc_pnet_device *devices,
		 unsigned int n, struct netlink_ext_ack *extack)
{
	struct smc_pnet_net *table = snet->pnet;
	LIST_HEAD(entries);
	int rc;

	might_sleep();
	rc = make_entries(snet, id, devices, n, &entries, extack);
	if (rc)
		goto free;
	mutex_lock(&table->lock);
	if (is_full(snet, n))
		rc = -ENOSPC;
	else
		rc = insert_entries(snet, &entries) ? 0 : -EEXIST;
	mutex_unlock(&table->lock);
	table_changed(snet);
	if (rc == -ENOSPC)
		NL_SET_ERR_MSG(extack, "the PNET table of a container is limited to 256 entries");
	if (rc != -EEXIST)
		goto free;
	if (!n)
		NL_SET_ERR_MSG(extack, "neither a network interface nor an RDMA device is named");
	else if (list_empty(&entries))
		NL_SET_ERR_MSG(extack, "RDMA devices belong to the initial network namespace");
	else
		NL_SET_ERR_MSG(extack, "the device is in the PNET table already");
free:
	free_entries(&entries);
	return rc;
}

static bool entry_matches(const struct smc_pnet_entry *entry, const char *id,
			  const struct smc_pnet_device *device)
{
	if (strcmp(entry->id, id))
		return false;
	if (!device)
		return true;
	return entry->kind == device->kind && !strcmp(entry->name, device->name) &&
	       (entry->kind == SMC_PNET_ETH || !device->port || entry->port == device->port);
}

/* Removes the entries with an ID and a device; NULL stands for any. Returns their number. */
static unsigned int remove_entries(struct smc_pnet_net *table, const char *id,
				   const struct smc_pnet_device *device)
{
	struct smc_pnet_entry *entry, *next;
	unsigned int n = 0;

	mutex_lock(&table->lock);
	list_for_each_entry_safe(entry, next, &table->entries, list) {
		if (id && !entry_matches(entry, id, device))
			continue;
		list_del_rcu(&entry->list);
		kfree_rcu(entry, rcu);
		n++;
	}
	table->n -= n;
	if (n)
		table->generation++;
	mutex_unlock(&table->lock);
	return n;
}

/**
 * smc_pnet_remove() - detach a device, or all devices, from a physical network
 * @snet: namespace
 * @id: PNET ID, compared as it is
 * @device: the device, with port 0 for all of its ports; NULL for all devices
 *
 * Return: 0, or -ENOENT if there is no such entry.
 */
int smc_pnet_remove(struct smc_net *snet, const char *id, const struct smc_pnet_device *device)
{
	int rc;

	might_sleep();
	rc = remove_entries(snet->pnet, id, device) ? 0 : -ENOENT;
	table_changed(snet);
	return rc;
}

/* smc_pnet_flush() - empties the table of a namespace. */
void smc_pnet_flush(struct smc_net *snet)
{
	might_sleep();
	remove_entries(snet->pnet, NULL, NULL);
	table_changed(snet);
}

/**
 * smc_pnet_for_each() - visit the entries of a namespace in the order of their addition
 * @snet: namespace
 * @walk: the visitor, which may sleep; the table is locked
 *
 * Return: 0, or what the visitor returned to end the walk.
 */
int smc_pnet_for_each(struct smc_net *snet, struct smc_pnet_walk *walk)
{
	struct smc_pnet_net *table = snet->pnet;
	struct smc_pnet_entry *entry;
	int rc = 0;

	might_sleep();
	mutex_lock(&table->lock);
	/* Netlink takes 0 for "unknown". */
	walk->generation = table->generation ?: 1;
	list_for_each_entry(entry, &table->entries, list) {
		rc = walk->visit(walk, entry);
		if (rc)
			break;
	}
	mutex_unlock(&table->lock);
	return rc;
}

/* The argument of a look-up through stacked devices. */
struct lookup {
	struct smc_net *snet;
	u8 *id;
};

/* Returns whether the device itself has an entry. */
static bool lookup_netdev(struct lookup *lookup, const struct net_device *dev)
{
	struct smc_pnet_entry *entry;

	RCU_LOCKDEP_WARN(!rcu_read_lock_held(), "lookup_netdev() outside of an RCU section");
	/* A lower device may be in another namespace, where an ifindex means another device. */
	if (!net_eq(dev_net(dev), lookup->snet->net))
		return false;
	list_for_each_entry_rcu(entry, &lookup->snet->pnet->entries, list) {
		if (entry->kind != SMC_PNET_ETH || READ_ONCE(entry->ifindex) != dev->ifindex)
			continue;
		memcpy(lookup->id, entry->id, SMC_PNET_ID_LEN);
		return true;
	}
	return false;
}

static int lookup_lower(struct net_device *lower, struct netdev_nested_priv *priv)
{
	return lookup_netdev(priv->data, lower);
}

/**
 * smc_pnet_of_netdev() - find the physical network of a network interface
 * @snet: namespace of the device
 * @dev: network interface; for one that is stacked (VLAN, bond), its lower devices count as well
 * @id: result: the PNET ID, padded with zeros
 *
 * Context: any.
 * Return: 0 or -ENOENT.
 */
int smc_pnet_of_netdev(struct smc_net *snet, struct net_device *dev, u8 id[SMC_PNET_ID_LEN])
{
	struct lookup lookup = { .snet = snet, .id = id };
	struct netdev_nested_priv priv = { .data = &lookup };
	bool found;

	rcu_read_lock();
	found = lookup_netdev(&lookup, dev) ||
		netdev_walk_all_lower_dev_rcu(dev, lookup_lower, &priv);
	rcu_read_unlock();
	return found ? 0 : -ENOENT;
}

/**
 * smc_pnet_has_netdev() - find out whether a network interface of a namespace is attached to a physical network
 * @snet: namespace
 * @id: the PNET ID, padded with zeros
 *
 * On IBM Z the answer is always yes, because firmware may have attached an interface, and asking it sleeps.
 *
 * Context: any.
 */
bool smc_pnet_has_netdev(struct smc_net *snet, const u8 id[SMC_PNET_ID_LEN])
{
	bool found = IS_ENABLED(CONFIG_HAVE_PNETID);
	struct smc_pnet_entry *entry;

	rcu_read_lock();
	list_for_each_entry_rcu(entry, &snet->pnet->entries, list)
		if (entry->kind == SMC_PNET_ETH && READ_ONCE(entry->ifindex) && !memcmp(entry->id, id, SMC_PNET_ID_LEN))
			found = true;
	rcu_read_unlock();
	return found;
}

/**
 * smc_pnet_of_ib() - find the physical network of a port of an RDMA device, or of an ISM device
 * @ibname: name of the device, or its PCI address
 * @port: port, 0 for a device without ports, whose entry may name any
 * @id: result: the PNET ID, padded with zeros
 *
 * Context: any.
 * Return: 0 or -ENOENT.
 */
int smc_pnet_of_ib(const char *ibname, u8 port, u8 id[SMC_PNET_ID_LEN])
{
	struct smc_pnet_net *table = smc_net(&init_net)->pnet;
	struct smc_pnet_entry *entry;
	int rc = -ENOENT;

	rcu_read_lock();
	list_for_each_entry_rcu(entry, &table->entries, list) {
		if (entry->kind != SMC_PNET_IB || (port && entry->port != port) ||
		    strcmp(entry->name, ibname))
			continue;
		memcpy(id, entry->id, SMC_PNET_ID_LEN);
		rc = 0;
		break;
	}
	rcu_read_unlock();
	return rc;
}

/**
 * smc_pnet_of_hw() - find the physical network of a port of an adapter, as the firmware of IBM Z knows it
 * @dev: the adapter, the parent of its network interface or RDMA device; may be NULL
 * @port: from 0
 * @id: result: the PNET ID, padded with zeros
 *
 * It takes precedence over the table.
 *
 * Return: 0 or -ENOENT, on other machines always the latter.
 */
int smc_pnet_of_hw(struct device *dev, u16 port, u8 id[SMC_PNET_ID_LEN])
{
#if IS_ENABLED(CONFIG_HAVE_PNETID)
	size_t len = SMC_PNET_ID_LEN;

	might_sleep();
	if (!dev || pnet_id_by_dev_port(dev, port, id))
		return -ENOENT;
	while (len && (id[len - 1] == ' ' || !id[len - 1]))
		id[--len] = 0;
	return len ? 0 : -ENOENT;
#else
	might_sleep();
	return -ENOENT;
#endif
}

static void bind_netdev(struct smc_net *snet, const struct net_device *dev)
{
	struct smc_pnet_net *table = snet->pnet;
	struct smc_pnet_entry *entry;
	bool bound;

	mutex_lock(&table->lock);
	entry = find_device(table, SMC_PNET_ETH, dev->name);
	/* The entry of a renamed device stays with it, even if another device gets the old name. */
	bound = entry && !entry->ifindex;
	if (bound)
		WRITE_ONCE(entry->ifindex, dev->ifindex);
	mutex_unlock(&table->lock);
	if (bound)
		table_changed(snet);
}

static void unbind_netdev(struct smc_pnet_net *table, const struct net_device *dev)
{
	struct smc_pnet_entry *entry;

	mutex_lock(&table->lock);
	list_for_each_entry(entry, &table->entries, list)
		if (entry->kind == SMC_PNET_ETH && entry->ifindex == dev->ifindex)
			WRITE_ONCE(entry->ifindex, 0);
	mutex_unlock(&table->lock);
}

/*
 * Called with RTNL. A device that moves to another namespace is unregistered here and registered there. Connections may leave by a
 * device that comes up.
 */
static int netdev_event(struct notifier_block *nb, unsigned long event, void *info)
{
	struct net_device *dev = netdev_notifier_info_to_dev(info);
	struct smc_net *snet = smc_net(dev_net(dev));

	switch (event) {
	case NETDEV_REGISTER:
	case NETDEV_CHANGENAME:
		bind_netdev(snet, dev);
		break;
	case NETDEV_UP:
		smc_peers_forget(snet);
		break;
	case NETDEV_UNREGISTER:
		unbind_netdev(snet->pnet, dev);
		break;
	}
	return NOTIFY_DONE;
}

static struct notifier_block netdev_notifier = {
	.notifier_call = netdev_event,
};

/* smc_pnet_net_init() - makes the empty table of a namespace. Process context. Return: 0. */
int smc_pnet_net_init(struct smc_net *snet)
{
	mutex_init(&snet->pnet->lock);
	INIT_LIST_HEAD(&snet->pnet->entries);
	snet->pnet->generation = 1;
	return 0;
}

/* smc_pnet_net_exit() - frees the table of a namespace. */
void smc_pnet_net_exit(struct smc_net *snet)
{
	might_sleep();
	smc_pnet_flush(snet);
}

/*
 * smc_pnet_init() - follows the network interfaces of all namespaces, after smc_net_init(). Return: 0 or a
 * negative errno.
 */
int smc_pnet_init(void)
{
	might_sleep();
	return register_netdevice_notifier(&netdev_notifier);
}

/* smc_pnet_exit() - undoes smc_pnet_init(), before smc_net_exit(). */
void smc_pnet_exit(void)
{
	might_sleep();
	unregister_netdevice_notifier(&netdev_notifier);
}
