// SPDX-License-Identifier: GPL-2.0-only
/*
 * The peers with which SMC was not possible, so that the next connections with them are TCP from the start.
 *
 * The table is bounded: when a role has SMC_PEERS_MAX peers, the oldest one goes. A host has at most SMC_PEERS_OF_HOST of them, so one
 * host that comes by many ports, or from many addresses of its prefix, cannot replace the others. Only a handshake, which takes a TCP
 * connection, makes an entry.
 *
 * To forget peers is to count a change: entries have the count of the time when their handshake began, so a handshake that a change has
 * overtaken is not remembered, either. Entries that do not count any more are freed when others are added.
 */
#include <linux/jhash.h>
#include <linux/jiffies.h>
#include <linux/rculist.h>
#include <linux/slab.h>
#include <net/ipv6.h>

#include "../net.h"
#include "peers.h"
#include "sysctl.h"

/* How many old entries are freed when one is added, and with the lock held without a pause. */
#define PURGE_MAX 8
/* A peer with which SMC was possible is remembered for longer, by this factor. */
#define PROVEN_FACTOR 10

struct entry {
	struct hlist_node	node;	/* bucket */
	struct list_head	age;
	struct smc_peers_key	key;
	struct smc_peers_why	why;
	struct smc_peers_stamp	stamp;
	u64			since;	/* jiffies */
	u64			id;	/* ascending */
	struct rcu_head		rcu;
};

/* Changes that count for all namespaces: devices, EIDs. */
static atomic_t host_changes;

/* Called when there is a device, for what else is due then. */
static int (*on_device)(struct smc_net *sn);

static u32 hash_seed __read_mostly;

/* Returns the part of an address that a host has for itself: of IPv6, the prefix of a subnet. */
static u64 host_of(const struct in6_addr *addr)
{
	u64 half;

	memcpy(&half, ipv6_addr_v4mapped(addr) ? &addr->s6_addr32[2] : &addr->s6_addr32[0], sizeof(half));
	return half;
}

static unsigned int peer_bucket(const struct smc_peers_key *key)
{
	u64 host = host_of(&key->addr);

	net_get_random_once(&hash_seed, sizeof(hash_seed));
	return jhash_3words((u32)host, host >> 32, key->role, hash_seed) % SMC_PEERS_BUCKETS;
}

static bool same_key(const struct smc_peers_key *a, const struct smc_peers_key *b)
{
	return a->port == b->port && a->role == b->role && a->ifindex == b->ifindex && a->uid == b->uid && ipv6_addr_equal(&a->addr, &b->addr);
}

static bool same_host(const struct smc_peers_key *a, const struct smc_peers_key *b)
{
	return a->role == b->role && host_of(&a->addr) == host_of(&b->addr);
}

/* Returns the jiffies for which an entry still counts, 0 or less if it does not any more. Any context. */
static s64 time_left(const struct smc_net *sn, const struct entry *e)
{
	struct smc_peers_stamp now;
	u64 time;

	smc_peers_stamp(sn, &now);
	if (e->stamp.host != now.host || e->stamp.net != now.net || e->stamp.settings != now.settings)
		return 0;
	time = (u64)READ_ONCE(sn->sysctl->remember_peers) * HZ;
	return (s64)(e->since + (e->why.reason ? time : time * PROVEN_FACTOR) - get_jiffies_64());
}

/* Returns the entry of a peer that counts, or NULL. */
static const struct entry *find_peer(const struct smc_net *sn, const struct smc_peers_key *key)
{
	const struct smc_peers_net *pn = sn->peers;
	const struct entry *e;

	RCU_LOCKDEP_WARN(!rcu_read_lock_held(), "find_peer() outside of an RCU section");
	if (likely(!READ_ONCE(pn->n[key->role])))
		return NULL;
	hlist_for_each_entry_rcu(e, &pn->buckets[peer_bucket(key)], node)
		if (same_key(&e->key, key) && time_left(sn, e) > 0)
			return e;
	return NULL;
}

/**
 * smc_peers_stamp() - says what this host is now, for smc_peers_add()
 * @sn: the namespace
 * @stamp: result
 *
 * Context: any.
 */
void smc_peers_stamp(const struct smc_net *sn, struct smc_peers_stamp *stamp)
{
	const struct smc_sysctl *sysctl = sn->sysctl;

	/* pairs with smc_peers_forget() */
	stamp->host = atomic_read_acquire(&host_changes);
	stamp->net = atomic_read_acquire(&sn->peers->changes);
	stamp->settings = READ_ONCE(sysctl->loopback) | READ_ONCE(sysctl->smcr_v1_rocev2) << 8 |
			  READ_ONCE(sysctl->smcr_max_links_per_lgr) << 16 | READ_ONCE(sysctl->smcr_max_conns_per_lgr) << 24;
}

/**
 * smc_peers_find() - may connections with a peer be TCP at once?
 * @sn: the namespace
 * @key: the peer
 * @why: result: why they are
 *
 * Context: any.
 * Return: whether SMC was not possible with the peer lately.
 */
bool smc_peers_find(const struct smc_net *sn, const struct smc_peers_key *key, struct smc_peers_why *why)
{
	const struct entry *e;
	bool found;

	rcu_read_lock();
	e = find_peer(sn, key);
	found = e && e->why.reason;
	if (found)
		*why = e->why;
	rcu_read_unlock();
	return found;
}

/*
 * smc_peers_proven() - returns whether SMC was possible with a peer lately, and nothing has been wrong since. Any context.
 */
bool smc_peers_proven(const struct smc_net *sn, const struct smc_peers_key *key)
{
	const struct entry *e;
	bool proven;

	rcu_read_lock();
	e = find_peer(sn, key);
	proven = e && !e->why.reason;
	rcu_read_unlock();
	return proven;
}

static void remove_entry(struct smc_peers_net *pn, struct entry *e)
{
	lockdep_assert_held(&pn->lock);
	hlist_del_rcu(&e->node);
	list_del(&e->age);
	WRITE_ONCE(pn->n[e->key.role], pn->n[e->key.role] - 1);
	kfree_rcu(e, rcu);
}

/*
 * Removes the first PURGE_MAX entries of a role that do not count any more, and such that do while there are @max or more. Return: whether
 * there may be others to remove.
 */
static bool remove_oldest(struct smc_net *sn, enum smc_peers_role role, unsigned int max)
{
	struct smc_peers_net *pn = sn->peers;
	struct entry *e, *next;
	unsigned int n = 0;

	lockdep_assert_held(&pn->lock);
	list_for_each_entry_safe(e, next, &pn->age[role], age) {
		if (time_left(sn, e) > 0 && pn->n[role] < max)
			return false;
		if (n++ == PURGE_MAX)
			return true;
		remove_entry(pn, e);
	}
	return false;
}

/* Removes the entry of the peer, if there is one, and the oldest one of its host if that has no room. */
static void remove_old_entry(struct smc_peers_net *pn, const struct smc_peers_key *key)
{
	struct entry *e, *old = NULL, *oldest = NULL;
	unsigned int n = 0;

	lockdep_assert_held(&pn->lock);
	hlist_for_each_entry(e, &pn->buckets[peer_bucket(key)], node) {
		if (!same_host(&e->key, key))
			continue;
		n++;
		if (!oldest || e->id < oldest->id)
			oldest = e;
		if (same_key(&e->key, key))
			old = e;
	}
	if (!old && n >= SMC_PEERS_OF_HOST)
		old = oldest;
	if (old)
		remove_entry(pn, old);
}

/**
 * smc_peers_add() - remembers a peer with which SMC was not possible, or was possible
 * @sn: the namespace
 * @key: the peer
 * @why: why not, or zeros
 * @stamp: from smc_peers_stamp() before that was found out: if this host has changed since, the peer is not remembered
 *
 * Does nothing without memory.
 */
void smc_peers_add(struct smc_net *sn, const struct smc_peers_key *key, const struct smc_peers_why *why,
		   const struct smc_peers_stamp *stamp)
{
	struct smc_peers_net *pn = sn->peers;
	struct entry *e;

	might_sleep();
	if (!READ_ONCE(sn->sysctl->remember_peers))
		return;
	e = kzalloc(sizeof(*e), GFP_KERNEL_ACCOUNT | __GFP_NORETRY | __GFP_NOWARN);
	if (!e)
		return;
	e->key = *key;
	e->why = *why;
	e->stamp = *stamp;
	e->since = get_jiffies_64();
	spin_lock_bh(&pn->lock);
	remove_old_entry(pn, key);
	remove_oldest(sn, key->role, SMC_PEERS_MAX);
	e->id = ++pn->last_id;
	hlist_add_head_rcu(&e->node, &pn->buckets[peer_bucket(key)]);
	list_add_tail(&e->age, &pn->age[key->role]);
	WRITE_ONCE(pn->n[key->role], pn->n[key->role] + 1);
	spin_unlock_bh(&pn->lock);
}

/**
 * smc_peers_forget() - something has changed that SMC may be possible by
 * @sn: the namespace that it is about; NULL for all
 *
 * Called after the change.
 *
 * Context: any.
 */
void smc_peers_forget(struct smc_net *sn)
{
	smp_mb__before_atomic(); /* a reader that sees the new count sees the change */
	atomic_inc(sn ? &sn->peers->changes : &host_changes);
}

/* smc_peers_register() - before there are devices, the handshake says what it has to do when there is one. */
void smc_peers_register(int (*device)(struct smc_net *sn))
{
	on_device = device;
}

static void peers_device_work(struct work_struct *work);
static DECLARE_DELAYED_WORK(device_work, peers_device_work);

/* Has the handshake do what it has to do. Without memory it tries again later. */
static void handle_device(struct smc_net *sn)
{
	if (on_device(sn))
		queue_delayed_work(smc_net_wq, &device_work, HZ);
}

static void peers_device_work(struct work_struct *work)
{
	handle_device(NULL);
}

/**
 * smc_peers_device() - connections may have a device that they had not before
 * @sn: the namespace of the connections; NULL for all
 *
 * Called after the change. When this returns, sockets that have listened without a device answer peers with SMC; without memory that
 * takes longer.
 */
void smc_peers_device(struct smc_net *sn)
{
	might_sleep();
	smc_peers_forget(sn);
	handle_device(sn);
}

/*
 * smc_peers_device_soon() - the same for all namespaces, for callers that may not wait for what users do: sockets that listen answer
 * peers with SMC a moment later. Any context.
 */
void smc_peers_device_soon(void)
{
	smc_peers_forget(NULL);
	mod_delayed_work(smc_net_wq, &device_work, 0);
}

/* smc_peers_device_exit() - at unload, when no device and no transport is left: the work uses the list of namespaces. */
void smc_peers_device_exit(void)
{
	might_sleep();
	cancel_delayed_work_sync(&device_work);
}

/*
 * smc_peers_flush() - forgets the peers of a namespace, and frees them. A handshake that adds a peer meanwhile waits for a few of them at
 * most. Any context but hardirq.
 */
void smc_peers_flush(struct smc_net *sn)
{
	struct smc_peers_net *pn = sn->peers;
	unsigned int role;
	bool more;

	smc_peers_forget(sn);
	for (role = 0; role < SMC_PEERS_ROLES; role++) {
		do {
			spin_lock_bh(&pn->lock);
			more = remove_oldest(sn, role, UINT_MAX);
			spin_unlock_bh(&pn->lock);
		} while (more);
	}
}

/**
 * smc_peers_walk() - visits the peers of a namespace with which SMC was not possible, those of a role in the order in which they came
 * @sn: the namespace
 * @pos: the last one that was visited; updated. A peer that stays is visited once, whatever changes between two walks
 * @fn: if it returns nonzero, the walk ends and the peer counts as not visited; gets the seconds until the peer is forgotten
 * @arg: passed on to @fn
 *
 * Context: process; @fn does not sleep.
 * Return: 0 at the end, else what @fn returned.
 */
int smc_peers_walk(struct smc_net *sn, struct smc_peers_pos *pos,
		   int (*fn)(const struct smc_peers_key *key, const struct smc_peers_why *why, unsigned int seconds, void *arg), void *arg)
{
	struct smc_peers_net *pn = sn->peers;
	struct entry *e;
	int rc = 0;

	spin_lock_bh(&pn->lock);
	for (; pos->role < SMC_PEERS_ROLES; pos->role++, pos->id = 0) {
		list_for_each_entry(e, &pn->age[pos->role], age) {
			s64 left = time_left(sn, e);

			if (e->id <= pos->id || left <= 0 || !e->why.reason)
				continue;
			rc = fn(&e->key, &e->why, DIV_ROUND_UP_ULL(left, HZ), arg);
			if (rc)
				goto out;
			pos->id = e->id;
		}
	}
out:
	spin_unlock_bh(&pn->lock);
	return rc;
}

/* smc_peers_net_init() - of a new namespace. Any context. */
void smc_peers_net_init(struct smc_net *sn)
{
	struct smc_peers_net *pn = sn->peers;
	unsigned int i;

	spin_lock_init(&pn->lock);
	for (i = 0; i < SMC_PEERS_BUCKETS; i++)
		INIT_HLIST_HEAD(&pn->buckets[i]);
	for (i = 0; i < SMC_PEERS_ROLES; i++)
		INIT_LIST_HEAD(&pn->age[i]);
}

/* smc_peers_net_exit() - the namespace goes; no socket of ours is left in it. */
void smc_peers_net_exit(struct smc_net *sn)
{
	smc_peers_flush(sn);
}
