// SPDX-License-Identifier: GPL-2.0-only
/* Link groups: finding and forming them, who is in them, and how they end. */

#include <linux/module.h>
#include <linux/slab.h>
#include <net/net_namespace.h>

#include "../conn/conn.h"
#include "../net.h"
#include "lgr.h"

/* How long a group outlives its last connection, and how often it looks for idle memory. */
#define IDLE_TIME (600 * HZ)
/* A client of SMC-R so much longer, as it is the server that chooses a group (RFC 7609, 4.1). */
#define IDLE_GRACE (10 * HZ)
#define TRIM_TIME (2 * HZ)
/* Identifiers are shown with a link's number added. */
#define ID_STEP 256

static LIST_HEAD(groups);
static LIST_HEAD(ending); /* groups that are not listed any more, and have not given everything back */
static DEFINE_SPINLOCK(list_lock); /* both; softirqs off */
static u32 last_id;

/* Groups that are not freed yet. Each connection, timer and work holds one, in the end. */
static atomic_t live;
static DECLARE_WAIT_QUEUE_HEAD(all_gone);
static DECLARE_WAIT_QUEUE_HEAD(ended);

static void discard(struct smc_lgr *lgr)
{
	if (lgr->key.ops->lgr_free)
		lgr->key.ops->lgr_free(lgr);
	kfree(lgr);
	if (atomic_dec_and_test(&live))
		wake_up_all(&all_gone);
}

/* smc_lgr_get() - a reference, by who has one. Any context. */
void smc_lgr_get(struct smc_lgr *lgr)
{
	refcount_inc(&lgr->ref);
}

/*
 * smc_lgr_put() - drops a reference. The last one drops that on the transport's module. Softirq.
 */
void smc_lgr_put(struct smc_lgr *lgr)
{
	struct module *owner;

	if (!refcount_dec_and_test(&lgr->ref))
		return;
	owner = lgr->key.ops->owner;
	discard(lgr);
	if (owner != THIS_MODULE)
		module_put(owner);
}

/* Work holds a reference while it is queued or runs. */
static void queue(struct smc_lgr *lgr, struct delayed_work *work, unsigned long delay)
{
	smc_lgr_get(lgr);
	if (!queue_delayed_work(smc_net_wq, work, delay))
		smc_lgr_put(lgr);
}

/* Afterwards it is not queued, unless someone has queued it meanwhile, and does not run. */
static void cancel_sync(struct smc_lgr *lgr, struct delayed_work *work)
{
	if (cancel_delayed_work_sync(work))
		smc_lgr_put(lgr);
}

/* No connection joins any more. Return: whether the list's reference is the caller's now. */
static bool unlist(struct smc_lgr *lgr, bool if_empty)
{
	bool mine;

	spin_lock_bh(&list_lock);
	mine = lgr->listed && !(if_empty && READ_ONCE(lgr->n_conns));
	if (mine) {
		WRITE_ONCE(lgr->listed, false);
		list_move(&lgr->list, &ending);
	}
	spin_unlock_bh(&list_lock);
	return mine;
}

/* Who has taken a group off the list gives back what it has of its transport. May sleep. */
static void end(struct smc_lgr *lgr)
{
	if (lgr->key.ops->lgr_end)
		lgr->key.ops->lgr_end(lgr);
	spin_lock_bh(&list_lock);
	list_del_init(&lgr->list);
	spin_unlock_bh(&list_lock);
	wake_up_all(&ended);
	smc_lgr_put(lgr);
}

/* Is any group of a namespace about to end? */
static bool any_ending(const struct net *net)
{
	struct smc_lgr *lgr;
	bool any = false;

	spin_lock_bh(&list_lock);
	list_for_each_entry(lgr, &ending, list)
		any |= lgr->key.net == net;
	spin_unlock_bh(&list_lock);
	return any;
}

static unsigned long idle_time(const struct smc_lgr *lgr)
{
	return lgr->key.server ? IDLE_TIME : IDLE_TIME + IDLE_GRACE;
}

static void idle_work(struct work_struct *work)
{
	struct smc_lgr *lgr = container_of(to_delayed_work(work), struct smc_lgr, idle);
	unsigned long due;

	spin_lock_bh(&lgr->lock);
	due = lgr->idle_since + idle_time(lgr);
	spin_unlock_bh(&lgr->lock);
	/* It has been used, and been empty again, since this was queued. */
	if (!READ_ONCE(lgr->n_conns) && time_before(jiffies, due))
		queue(lgr, &lgr->idle, due - jiffies);
	else if (unlist(lgr, true))
		end(lgr);
	smc_lgr_put(lgr);
}

/* The connection after another, with a reference; drops that on the other. NULL at the end. */
static struct smc_conn *next_conn(struct smc_lgr *lgr, struct smc_conn *conn)
{
	struct smc_conn *next = NULL;

	spin_lock_bh(&lgr->lock);
	/* One that has left meanwhile ends the walk; there will be another. */
	if (!conn)
		next = list_first_entry_or_null(&lgr->conns, struct smc_conn, member);
	else if (!list_empty(&conn->member) && !list_is_last(&conn->member, &lgr->conns))
		next = list_next_entry(conn, member);
	if (next)
		smc_conn_get(next);
	spin_unlock_bh(&lgr->lock);
	if (conn)
		smc_conn_put(conn);
	return next;
}

static void trim_work(struct work_struct *work)
{
	struct smc_lgr *lgr = container_of(to_delayed_work(work), struct smc_lgr, trim);
	struct smc_conn *conn;

	for (conn = next_conn(lgr, NULL); conn; conn = next_conn(lgr, conn)) {
		u64 now = READ_ONCE(conn->tx_prod);

		if (now == conn->trimmed)
			lgr->key.ops->trim(conn);
		conn->trimmed = now;
		cond_resched();
	}
	if (READ_ONCE(lgr->n_conns) && READ_ONCE(lgr->listed))
		queue(lgr, &lgr->trim, TRIM_TIME);
	smc_lgr_put(lgr);
}

static struct smc_lgr *alloc(const struct smc_lgr_key *key)
{
	struct smc_lgr *lgr = kzalloc(sizeof(*lgr), GFP_KERNEL);

	if (!lgr)
		return NULL;
	lgr->key = *key;
	if (key->ops->lgr_init && key->ops->lgr_init(lgr)) {
		kfree(lgr);
		return NULL;
	}
	atomic_inc(&live);
	refcount_set(&lgr->ref, 1);
	lgr->n_conns = 1;
	INIT_LIST_HEAD(&lgr->list);
	INIT_LIST_HEAD(&lgr->conns);
	spin_lock_init(&lgr->lock);
	INIT_DELAYED_WORK(&lgr->idle, idle_work);
	INIT_DELAYED_WORK(&lgr->trim, trim_work);
	memset(lgr->host, ' ', sizeof(lgr->host));
	return lgr;
}

static bool same(const struct smc_lgr_key *a, const struct smc_lgr_key *b)
{
	return a->ops == b->ops && a->dev == b->dev && a->net == b->net && a->gid[0] == b->gid[0] &&
	       a->gid[1] == b->gid[1] && a->vlan == b->vlan && a->version == b->version && a->server == b->server &&
	       !memcmp(a->peer_id, b->peer_id, sizeof(a->peer_id)) && !memcmp(a->mac, b->mac, sizeof(a->mac));
}

/* May one more connection join it? */
static bool fits(const struct smc_lgr *lgr, const void *hint)
{
	const struct smc_transport_ops *ops = lgr->key.ops;

	return (!lgr->max_conns || READ_ONCE(lgr->n_conns) < lgr->max_conns) &&
	       (!ops->lgr_fits || ops->lgr_fits(lgr, hint));
}

/* Reserves a place. Under list_lock, so that an idle group does not end meanwhile. */
static struct smc_lgr *find(const struct smc_lgr_key *key, const void *hint)
{
	struct smc_lgr *lgr;

	lockdep_assert_held(&list_lock);
	list_for_each_entry(lgr, &groups, list) {
		if (!same(&lgr->key, key) || !fits(lgr, hint))
			continue;
		spin_lock(&lgr->lock);
		WRITE_ONCE(lgr->n_conns, lgr->n_conns + 1);
		spin_unlock(&lgr->lock);
		smc_lgr_get(lgr);
		return lgr;
	}
	return NULL;
}

/**
 * smc_lgr_join() - reserves a place for a connection in the group that fits
 * @key: what must fit
 * @how: whether one may, or must, be formed
 * @hint: for the transport's lgr_fits
 * @first: set to whether it was formed
 *
 * May sleep.
 *
 * Return: the group with a reference; ERR_PTR(-ENOENT) if there is none, ERR_PTR(-ENOMEM).
 */
struct smc_lgr *smc_lgr_join(const struct smc_lgr_key *key, enum smc_lgr_how how, const void *hint, bool *first)
{
	struct smc_lgr *lgr, *fresh = NULL;

	*first = false;
	spin_lock_bh(&list_lock);
	lgr = how == SMC_LGR_FORM ? NULL : find(key, hint);
	spin_unlock_bh(&list_lock);
	if (lgr || how == SMC_LGR_FIND)
		return lgr ?: ERR_PTR(-ENOENT);
	fresh = alloc(key);
	if (!fresh)
		return ERR_PTR(-ENOMEM);
	spin_lock_bh(&list_lock);
	lgr = how == SMC_LGR_FORM ? NULL : find(key, hint);
	if (!lgr) {
		lgr = fresh;
		fresh = NULL;
		last_id += ID_STEP;
		lgr->id = last_id;
		lgr->listed = true;
		smc_lgr_get(lgr);
		if (key->ops->owner != THIS_MODULE)
			__module_get(key->ops->owner);
		list_add_tail(&lgr->list, &groups);
		*first = true;
	}
	spin_unlock_bh(&list_lock);
	if (fresh)
		discard(fresh);
	return lgr;
}

/*
 * A place in the group is free again. One that no connection joins any more needs no end; who has
 * taken it off the list relies on that, and has had the lock since, see terminate(). Work that is
 * queued already finds out for itself that it has come too early. The caller holds the lock.
 */
static void release_place(struct smc_lgr *lgr)
{
	lockdep_assert_held(&lgr->lock);
	WRITE_ONCE(lgr->n_conns, lgr->n_conns - 1);
	if (lgr->n_conns || !READ_ONCE(lgr->listed))
		return;
	lgr->idle_since = jiffies;
	if (!delayed_work_pending(&lgr->idle))
		queue(lgr, &lgr->idle, idle_time(lgr));
}

/* smc_lgr_leave() - gives back what smc_lgr_join() has reserved, and the reference. Softirq. */
void smc_lgr_leave(struct smc_lgr *lgr)
{
	spin_lock_bh(&lgr->lock);
	release_place(lgr);
	spin_unlock_bh(&lgr->lock);
	smc_lgr_put(lgr);
}

/*
 * smc_lgr_enter() - a connection takes its reserved place. Does not sleep. Return: false if the
 * group has been ended meanwhile; who has ended it does not come for this connection.
 */
bool smc_lgr_enter(struct smc_lgr *lgr, struct smc_conn *conn)
{
	static atomic_t serial;
	spin_lock_bh(&lgr->lock);
	/* A group with a reserved place is not ended for idling. See terminate(): this, or evict(). */
	if (!READ_ONCE(lgr->listed)) {
		spin_unlock_bh(&lgr->lock);
		return false;
	}
	/* Under the lock, so that numbers rise along the list. */
	conn->serial = atomic_inc_return(&serial) ?: atomic_inc_return(&serial);
	conn->token = conn->tag ? conn->serial << 8 | conn->tag : conn->serial;
	list_add_tail(&conn->member, &lgr->conns);
	spin_unlock_bh(&lgr->lock);
	if (lgr->key.ops->trim && READ_ONCE(lgr->listed) && !delayed_work_pending(&lgr->trim))
		queue(lgr, &lgr->trim, TRIM_TIME);
	return true;
}

/* smc_lgr_quit() - a connection is over. Its reference on the group stays. Softirq. */
void smc_lgr_quit(struct smc_conn *conn)
{
	struct smc_lgr *lgr = conn->lgr;

	spin_lock_bh(&lgr->lock);
	list_del_init(&conn->member);
	release_place(lgr);
	spin_unlock_bh(&lgr->lock);
}

/* The first connection of a group that is ending, off the list, with a reference. */
static struct smc_conn *evict(struct smc_lgr *lgr)
{
	struct smc_conn *conn;

	spin_lock_bh(&lgr->lock);
	conn = list_first_entry_or_null(&lgr->conns, struct smc_conn, member);
	if (conn) {
		list_del_init(&conn->member);
		smc_conn_get(conn);
	}
	spin_unlock_bh(&lgr->lock);
	return conn;
}

/*
 * Ends a group. Connections whose socket is open hear of it; @hard also gives back what those have,
 * as no socket is open any more.
 */
static void terminate(struct smc_lgr *lgr, bool hard)
{
	bool mine = unlist(lgr, false);
	struct smc_conn *conn;

	smp_mb(); /* pairs with smc_close_check() */
	while ((conn = evict(lgr))) {
		/* A rendezvous finds out by itself, and its connection may still be TCP. */
		if (hard)
			smc_close_kill(conn, false);
		else if (READ_ONCE(conn->holder) != SMC_CONN_RENDEZVOUS)
			smc_close_gone(conn);
		smc_conn_put(conn);
	}
	/*
	 * The work queue may be about to go. Who gives back a place from here on has seen that the
	 * group is not listed, and without connections there is nothing to trim.
	 */
	cancel_sync(lgr, &lgr->idle);
	cancel_sync(lgr, &lgr->trim);
	if (mine)
		end(lgr);
}

/* smc_lgr_terminate() - ends a group and all connections in it. May sleep. */
void smc_lgr_terminate(struct smc_lgr *lgr)
{
	terminate(lgr, false);
}

static bool passes(const struct smc_lgr *lgr, const void *dev, const struct net *net)
{
	return (!dev || lgr->key.dev == dev) && (!net || lgr->key.net == net);
}

/* The first group that passes, with a reference. */
static struct smc_lgr *pick(const void *dev, const struct net *net, const u64 *gid)
{
	struct smc_lgr *lgr;

	spin_lock_bh(&list_lock);
	list_for_each_entry(lgr, &groups, list) {
		if (!passes(lgr, dev, net))
			continue;
		if (gid && (lgr->key.gid[0] != gid[0] || lgr->key.gid[1] != gid[1]))
			continue;
		smc_lgr_get(lgr);
		spin_unlock_bh(&list_lock);
		return lgr;
	}
	spin_unlock_bh(&list_lock);
	return NULL;
}

static void terminate_all(const void *dev, const struct net *net, bool hard)
{
	struct smc_lgr *lgr;

	/* All peers have the same time to hear of it. */
	spin_lock_bh(&list_lock);
	list_for_each_entry(lgr, &groups, list)
		if (passes(lgr, dev, net) && lgr->key.ops->lgr_part)
			lgr->key.ops->lgr_part(lgr);
	spin_unlock_bh(&list_lock);
	while ((lgr = pick(dev, net, NULL))) {
		terminate(lgr, hard);
		smc_lgr_put(lgr);
	}
}

/* smc_lgr_terminate_peer() - a peer that a device reached is gone. May sleep. */
void smc_lgr_terminate_peer(const void *dev, const u64 gid[2])
{
	struct smc_lgr *lgr;

	while ((lgr = pick(dev, NULL, gid))) {
		terminate(lgr, false);
		smc_lgr_put(lgr);
	}
}

/* smc_lgr_terminate_dev() - a device is gone. May sleep. */
void smc_lgr_terminate_dev(const void *dev)
{
	terminate_all(dev, NULL, false);
}

/*
 * smc_lgr_net_exit() - a namespace goes; no socket is left in it. May sleep, until those of its groups
 * have ended, too, that others are ending: they look at its settings.
 */
void smc_lgr_net_exit(const struct net *net)
{
	terminate_all(NULL, net, true);
	wait_event(ended, !any_ending(net));
}

/*
 * smc_lgr_exit() - at unload, when no socket is left. May sleep, until the last group is freed: work
 * that has been queued meanwhile holds one.
 */
void smc_lgr_exit(void)
{
	terminate_all(NULL, NULL, true);
	wait_event(all_gone, !atomic_read(&live));
	rcu_barrier();
}

/**
 * smc_lgr_walk() - visits the groups of a namespace
 * @net: the namespace
 * @next: in and out, the identifier after which to go on; 0 at first
 * @fn: called with list_lock held; nonzero ends the walk before that group counts as visited
 * @arg: passed on
 *
 * Does not sleep. Return: 0 at the end, else what @fn said.
 */
int smc_lgr_walk(const struct net *net, unsigned int *next, int (*fn)(struct smc_lgr *lgr, void *arg), void *arg)
{
	struct smc_lgr *lgr;
	int rc = 0;

	spin_lock_bh(&list_lock);
	list_for_each_entry(lgr, &groups, list) {
		if (lgr->id <= *next || lgr->key.net != net)
			continue;
		rc = fn(lgr, arg);
		if (rc)
			break;
		*next = lgr->id;
	}
	spin_unlock_bh(&list_lock);
	return rc;
}

/* The connections of a group that come after one. Under list_lock. */
static int walk_members(struct smc_lgr *lgr, u32 *serial, int (*fn)(struct smc_conn *conn, void *arg), void *arg)
{
	struct smc_conn *conn;
	int rc = 0;

	spin_lock(&lgr->lock);
	list_for_each_entry(conn, &lgr->conns, member) {
		if (*serial && (s32)(conn->serial - *serial) <= 0)
			continue;
		rc = fn(conn, arg);
		if (rc)
			break;
		*serial = conn->serial;
	}
	spin_unlock(&lgr->lock);
	return rc;
}

/**
 * smc_lgr_walk_conns() - visits the connections of all groups of a namespace
 * @net: the namespace
 * @pos: in and out, where to go on; zero at first
 * @fn: called with list_lock and the group's lock held; nonzero ends the walk before that
 * connection counts as visited
 * @arg: passed on
 *
 * Does not sleep. Return: 0 at the end, else what @fn said.
 */
int smc_lgr_walk_conns(const struct net *net, struct smc_lgr_position *pos,
		       int (*fn)(struct smc_conn *conn, void *arg), void *arg)
{
	struct smc_lgr *lgr;
	int rc = 0;

	spin_lock_bh(&list_lock);
	list_for_each_entry(lgr, &groups, list) {
		if (lgr->id < pos->group || lgr->key.net != net)
			continue;
		if (lgr->id != pos->group)
			*pos = (struct smc_lgr_position){ .group = lgr->id };
		rc = walk_members(lgr, &pos->serial, fn, arg);
		if (rc)
			break;
	}
	spin_unlock_bh(&list_lock);
	return rc;
}
EXPORT_SYMBOL_GPL(smc_lgr_walk_conns);

/* smc_lgr_describe() - what a group is like right now, for those who show it. Does not sleep. */
void smc_lgr_describe(struct smc_lgr *lgr, struct smc_lgr_view *view)
{
	spin_lock_bh(&lgr->lock);
	view->n_conns = lgr->n_conns;
	view->buf_bytes = atomic64_read(&lgr->buf_bytes);
	memcpy(view->eid, lgr->eid, sizeof(view->eid));
	memcpy(view->host, lgr->host, sizeof(view->host));
	view->release = lgr->release;
	view->os_type = lgr->os_type;
	spin_unlock_bh(&lgr->lock);
}

/* smc_lgr_count_dev() - groups on a device, and their connections. Does not sleep. */
unsigned int smc_lgr_count_dev(const void *dev, unsigned int *conns)
{
	struct smc_lgr *lgr;
	unsigned int n = 0;

	*conns = 0;
	spin_lock_bh(&list_lock);
	list_for_each_entry(lgr, &groups, list) {
		if (lgr->key.dev != dev)
			continue;
		n++;
		*conns += READ_ONCE(lgr->n_conns);
	}
	spin_unlock_bh(&list_lock);
	return n;
}
