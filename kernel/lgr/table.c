// SPDX-License-Identifier: GPL-2.0-only
/* The table of link groups: adding, finding and listing them. */

#include <linux/hashtable.h>
#include <linux/jhash.h>
#include <linux/moduleparam.h>
#include <net/net_namespace.h>
#include <net/netns/hash.h>

#include "../transport/transport.h"
#include "../net.h"
#include "table.h"

/* The numbers of a group's links are added to its identifier. */
#define ID_STEP 256

DEFINE_SPINLOCK(smc_lgr_table_lock);
LIST_HEAD(smc_lgr_listed);
LIST_HEAD(smc_lgr_ending);

/* The listed groups by their key: a host may have groups with thousands of peers. */
static DEFINE_HASHTABLE(by_key, 10);
static unsigned int last_id;
module_param_named(lgr_id, last_id, uint, 0644);
MODULE_PARM_DESC(lgr_id, "for tests only: the identifier that the last link group was given");

/* Hashes what differs between peers or namespaces, and is the same for all addresses that a group serves. */
static u32 hash_key(const struct smc_lgr_key *key)
{
	u32 hash = jhash(key->peer_id, sizeof(key->peer_id), net_hash_mix(key->net) ^ (key->version << 1 | key->server));

	return key->ops->lgr_fits ? hash : jhash(key->ends.gid, sizeof(key->ends.gid), hash);
}

static bool same_peer(const struct smc_lgr_key *a, const struct smc_lgr_key *b)
{
	return a->ops == b->ops && net_eq(a->net, b->net) && a->vlan == b->vlan && a->version == b->version &&
	       a->server == b->server && !memcmp(a->peer_id, b->peer_id, sizeof(a->peer_id));
}

/* smc_lgr_same_ends() - are these the same addresses of both hosts? Any context. */
bool smc_lgr_same_ends(const struct smc_lgr_ends *a, const struct smc_lgr_ends *b)
{
	return a->dev == b->dev && a->gid[0] == b->gid[0] && a->gid[1] == b->gid[1] && !memcmp(a->mac, b->mac, sizeof(a->mac)) &&
	       !memcmp(a->own_gid, b->own_gid, sizeof(a->own_gid));
}

/* Returns whether one more connection, with the same peer, may join the group. */
static bool lgr_takes_conn(const struct smc_lgr *lgr, const struct smc_lgr_ends *ends, const void *hint)
{
	const struct smc_transport_ops *ops = lgr->key.ops;

	lockdep_assert_held(&smc_lgr_table_lock);
	if (lgr->max_conns && READ_ONCE(lgr->n_conns) >= lgr->max_conns)
		return false;
	return ops->lgr_fits ? ops->lgr_fits(lgr, ends, hint) : smc_lgr_same_ends(&lgr->key.ends, ends);
}

/* smc_lgr_assert_table_locked() - for a transport's operations that the table calls with its lock held */
void smc_lgr_assert_table_locked(void)
{
	lockdep_assert_held(&smc_lgr_table_lock);
}

/* smc_lgr_needs() - does a group end with a device? */
bool smc_lgr_needs(const struct smc_lgr *lgr, const void *dev)
{
	const struct smc_transport_ops *ops = lgr->key.ops;

	lockdep_assert_held(&smc_lgr_table_lock);
	return ops->lgr_needs ? ops->lgr_needs(lgr, dev) : lgr->key.ends.dev == dev;
}

/*
 * smc_lgr_table_find() - returns the group with a key that one more connection may join, or NULL. @hint: see
 * smc_lgr_join().
 */
struct smc_lgr *smc_lgr_table_find(const struct smc_lgr_key *key, const void *hint)
{
	struct smc_lgr *lgr;

	lockdep_assert_held(&smc_lgr_table_lock);
	hash_for_each_possible(by_key, lgr, hash, hash_key(key))
		if (same_peer(&lgr->key, key) && lgr_takes_conn(lgr, &key->ends, hint))
			return lgr;
	return NULL;
}

static bool is_ending(u32 id)
{
	const struct smc_lgr *lgr;

	lockdep_assert_held(&smc_lgr_table_lock);
	list_for_each_entry(lgr, &smc_lgr_ending, list)
		if (lgr->id == id)
			return true;
	return false;
}

/* Identifiers are used again after 2^24 groups. 0 is never used, because walks begin there. */
static u32 next_id(u32 id)
{
	id = ALIGN_DOWN(id, ID_STEP) + ID_STEP;
	return id ?: ID_STEP;
}

/* Returns the entry after which a group with this identifier belongs. It is that group if the identifier is in use. */
static struct list_head *list_position(u32 id)
{
	struct smc_lgr *lgr;

	lockdep_assert_held(&smc_lgr_table_lock);
	/* Almost always it is the last one. */
	list_for_each_entry_reverse(lgr, &smc_lgr_listed, list)
		if (lgr->id <= id)
			return &lgr->list;
	return &smc_lgr_listed;
}

static bool is_listed(u32 id, const struct list_head *place)
{
	lockdep_assert_held(&smc_lgr_table_lock);
	return place != &smc_lgr_listed && list_entry(place, struct smc_lgr, list)->id == id;
}

/* smc_lgr_table_add() - gives a new group its identifier and lists it. */
void smc_lgr_table_add(struct smc_lgr *lgr)
{
	u32 id = READ_ONCE(last_id);
	struct list_head *place;

	lockdep_assert_held(&smc_lgr_table_lock);
	do {
		id = next_id(id);
		place = list_position(id);
	} while (is_listed(id, place) || is_ending(id));
	WRITE_ONCE(last_id, id);
	lgr->id = id;
	lgr->listed = true;
	list_add(&lgr->list, place);
	hash_add(by_key, &lgr->hash, hash_key(&lgr->key));
}

/*
 * smc_lgr_table_unlist() - moves a group to the list of ending ones, so that no connection joins it any more. Return:
 * whether it was listed: then the caller takes over the table's reference and calls smc_lgr_finish().
 */
bool smc_lgr_table_unlist(struct smc_lgr *lgr)
{
	lockdep_assert_held(&smc_lgr_table_lock);
	lockdep_assert_held(&lgr->lock);
	if (!lgr->listed)
		return false;
	lgr->listed = false;
	hash_del(&lgr->hash);
	list_move(&lgr->list, &smc_lgr_ending);
	return true;
}

/* smc_lgr_table_del() - removes a group that has ended. Takes smc_lgr_table_lock; any context but hardirq. */
void smc_lgr_table_del(struct smc_lgr *lgr)
{
	spin_lock_bh(&smc_lgr_table_lock);
	list_del_init(&lgr->list);
	spin_unlock_bh(&smc_lgr_table_lock);
}

/* smc_lgr_get_id() - returns the listed group with an identifier, with a reference, or NULL. Any context but hardirq. */
struct smc_lgr *smc_lgr_get_id(u32 id)
{
	struct smc_lgr *lgr = NULL;
	struct list_head *place;

	spin_lock_bh(&smc_lgr_table_lock);
	place = list_position(id);
	if (is_listed(id, place)) {
		lgr = list_entry(place, struct smc_lgr, list);
		smc_lgr_get(lgr);
	}
	spin_unlock_bh(&smc_lgr_table_lock);
	return lgr;
}

/**
 * smc_lgr_next() - steps through the listed groups of all namespaces, in the order of their identifiers
 * @prev: the group before, whose reference it takes over, or NULL at the beginning
 *
 * A step costs the same however long the list is, unless @prev has been unlisted meanwhile.
 *
 * Context: any but hardirq; takes smc_lgr_table_lock.
 * Return: the next group, with a reference, or NULL at the end.
 */
struct smc_lgr *smc_lgr_next(struct smc_lgr *prev)
{
	struct list_head *place = &smc_lgr_listed;
	struct smc_lgr *next = NULL;

	spin_lock_bh(&smc_lgr_table_lock);
	if (prev)
		place = prev->listed ? &prev->list : list_position(prev->id);
	if (!list_is_last(place, &smc_lgr_listed)) {
		next = list_entry(place->next, struct smc_lgr, list);
		smc_lgr_get(next);
	}
	spin_unlock_bh(&smc_lgr_table_lock);
	if (prev)
		smc_lgr_put(prev);
	return next;
}

/* The initial namespace and the owner see a whole group. Other namespaces see their own connections in it. */
static bool sees_all(const struct net *net, const struct smc_lgr *lgr)
{
	return net_eq(net, &init_net) || net_eq(net, lgr->key.net);
}

/**
 * smc_lgr_walk_own() - visits the connections that a namespace has in a group
 * @lgr: the group
 * @net: the namespace
 * @fn: called with lgr->lock held
 * @arg: passed on to @fn
 *
 * Context: any but hardirq; takes lgr->lock.
 */
void smc_lgr_walk_own(struct smc_lgr *lgr, const struct net *net, void (*fn)(struct smc_lgr_member *member, void *arg), void *arg)
{
	struct smc_lgr_member *member;

	spin_lock_bh(&lgr->lock);
	list_for_each_entry(member, &lgr->members, list)
		if (net_eq(member->sn->net, net))
			fn(member, arg);
	spin_unlock_bh(&lgr->lock);
}
EXPORT_SYMBOL_GPL(smc_lgr_walk_own);

static void count_own_conn(struct smc_lgr_member *member, void *arg)
{
	struct smc_lgr_view *view = arg;

	lockdep_assert_held(&member->lgr->lock);
	view->n_conns++;
	view->buf_bytes += smc_lgr_member_ops->buf_bytes(member);
}

/* Describes a group as a namespace sees it. Of a group that it does not see whole, it sees its own connections. */
static void describe_lgr(struct smc_lgr *lgr, const struct net *net, struct smc_lgr_view *view)
{
	lockdep_assert_held(&smc_lgr_table_lock);
	view->id = lgr->id;
	view->role = lgr->key.ops->role;
	view->version = lgr->key.version;
	view->vlan = lgr->key.vlan;
	memcpy(view->gid, lgr->key.ends.gid, sizeof(view->gid));
	view->dev = lgr->key.ends.dev;
	view->net_cookie = lgr->key.net->net_cookie;
	view->whole = sees_all(net, lgr);
	spin_lock_bh(&lgr->lock);
	view->n_conns = view->whole ? lgr->n_conns : 0;
	view->peer = lgr->peer;
	spin_unlock_bh(&lgr->lock);
	view->buf_bytes = view->whole ? atomic64_read(&lgr->buf_bytes) : 0;
	if (!view->whole)
		smc_lgr_walk_own(lgr, net, count_own_conn, view);
}

/**
 * smc_lgr_walk() - visits the groups that a namespace sees
 * @net: the namespace: the initial one sees all groups, another one its own and those in which it has connections
 * @next: identifier of the last group visited, 0 at first; updated
 * @fn: called with smc_lgr_table_lock held; if it returns nonzero, the walk ends and the group counts as not visited
 * @arg: passed on to @fn
 *
 * Context: any but hardirq.
 * Return: 0 at the end, else what @fn returned.
 */
int smc_lgr_walk(const struct net *net, unsigned int *next,
		 int (*fn)(struct smc_lgr *lgr, struct smc_lgr_view *view, void *arg), void *arg)
{
	struct smc_lgr_view view;
	static u64 last_mark;
	struct smc_lgr *lgr;
	int rc = 0;

	spin_lock_bh(&smc_lgr_table_lock);
	/* Mark the groups by the namespace's own connections, so that the walk visits no others. */
	last_mark++;
	if (!net_eq(net, &init_net))
		smc_lgr_net_mark(smc_net(net), last_mark);
	list_for_each_entry(lgr, &smc_lgr_listed, list) {
		if (lgr->id <= *next || (lgr->mark != last_mark && !sees_all(net, lgr)))
			continue;
		describe_lgr(lgr, net, &view);
		rc = fn(lgr, &view, arg);
		if (rc)
			break;
		*next = lgr->id;
	}
	spin_unlock_bh(&smc_lgr_table_lock);
	return rc;
}

/*
 * smc_lgr_count_dev() - counts the groups of all namespaces that end with a device, and their connections. Not in hardirq.
 */
unsigned int smc_lgr_count_dev(const void *dev, unsigned int *conns)
{
	struct smc_lgr *lgr;
	unsigned int n = 0;

	*conns = 0;
	spin_lock_bh(&smc_lgr_table_lock);
	list_for_each_entry(lgr, &smc_lgr_listed, list) {
		if (!smc_lgr_needs(lgr, dev))
			continue;
		n++;
		*conns += READ_ONCE(lgr->n_conns);
	}
	spin_unlock_bh(&smc_lgr_table_lock);
	return n;
}
