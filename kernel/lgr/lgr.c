// SPDX-License-Identifier: GPL-2.0-only
/* Link groups: forming and joining them, their connections, and the work for idle ones. */

#include <linux/module.h>
#include <linux/slab.h>
#include <linux/wait_bit.h>
#include <net/net_namespace.h>

#include "../control/sysctl.h"
#include "../transport/transport.h"
#include "../net.h"
#include "table.h"

/* A client of SMC-R keeps an idle group longer than net.smc.lgr_idle_time: the server ends them (RFC 7609, 3.5.4). */
#define IDLE_GRACE (10 * HZ)
/* How often a group looks for idle memory of its connections. */
#define TRIM_TIME (2 * HZ)

/* Operations of connections; set once, before there is any connection. */
const struct smc_lgr_member_ops *smc_lgr_member_ops;

/* Groups that are not freed yet. Connections and work hold references. */
static atomic_t n_lgrs;
static DECLARE_WAIT_QUEUE_HEAD(all_gone);

static void lgr_free(struct smc_lgr *lgr)
{
	if (lgr->key.ops->lgr_free)
		lgr->key.ops->lgr_free(lgr);
	kfree(lgr);
	if (atomic_dec_and_test(&n_lgrs))
		wake_up_all(&all_gone);
}

/* smc_lgr_get() - takes a reference; the caller has one. Any context. */
void smc_lgr_get(struct smc_lgr *lgr)
{
	refcount_inc(&lgr->ref);
}

/* smc_lgr_put() - drops a reference. The last one also drops that on the transport's module. Any context but hardirq. */
void smc_lgr_put(struct smc_lgr *lgr)
{
	struct module *owner;

	if (!refcount_dec_and_test(&lgr->ref))
		return;
	owner = lgr->key.ops->owner;
	lgr_free(lgr);
	if (owner != THIS_MODULE)
		module_put(owner);
}

/* Queues work, which holds a reference until it has run. */
static void lgr_queue(struct smc_lgr *lgr, struct delayed_work *work, unsigned long delay)
{
	smc_lgr_get(lgr);
	if (!queue_delayed_work(smc_lgr_wq, work, delay))
		smc_lgr_put(lgr);
}

/* Runs work after a delay, whether or not it is queued already. */
static void lgr_requeue(struct smc_lgr *lgr, struct delayed_work *work, unsigned long delay)
{
	smc_lgr_get(lgr);
	if (mod_delayed_work(smc_lgr_wq, work, delay))
		smc_lgr_put(lgr);
}

/* Takes work off the queue and waits until it does not run. */
static void lgr_cancel(struct smc_lgr *lgr, struct delayed_work *work)
{
	if (cancel_delayed_work_sync(work))
		smc_lgr_put(lgr);
}

/* How long a group outlives its last connection. It is listed, so its namespace exists. */
static unsigned long lgr_idle_time(const struct smc_lgr *lgr)
{
	unsigned long time;

	lockdep_assert_held(&lgr->lock);
	if (READ_ONCE(lgr->draining))
		return 0;
	time = max(READ_ONCE(smc_net(lgr->key.net)->sysctl->lgr_idle_time), 0);
	return lgr->key.server || lgr->key.ops->role != SMC_ROLE_R ? time : time + IDLE_GRACE;
}

static void lgr_idle_work(struct work_struct *work)
{
	struct smc_lgr *lgr = container_of(to_delayed_work(work), struct smc_lgr, idle);
	unsigned long due;
	bool mine = false;

	spin_lock_bh(&smc_lgr_table_lock);
	spin_lock(&lgr->lock);
	if (lgr->n_conns || !lgr->listed)
		goto unlock;
	lgr->idle_time = lgr_idle_time(lgr);
	due = lgr->idle_since + lgr->idle_time;
	/* The group was used after this was queued. */
	if (time_before(jiffies, due))
		lgr_queue(lgr, &lgr->idle, due - jiffies);
	else
		mine = smc_lgr_table_unlist(lgr);
unlock:
	spin_unlock(&lgr->lock);
	spin_unlock_bh(&smc_lgr_table_lock);
	if (mine)
		smc_lgr_finish(lgr);
	smc_lgr_put(lgr);
}

/*
 * smc_lgr_end_idle() - ends a group without connections as if it had been so for long. Any context but hardirq. Return: false
 * if it has connections.
 */
bool smc_lgr_end_idle(struct smc_lgr *lgr)
{
	bool idle;

	spin_lock_bh(&lgr->lock);
	idle = !lgr->n_conns;
	if (idle && lgr->listed) {
		lgr->idle_since = jiffies - lgr_idle_time(lgr);
		lgr_requeue(lgr, &lgr->idle, 0);
	}
	spin_unlock_bh(&lgr->lock);
	return idle;
}

/* Returns the member after @member with a reference, NULL at the end. Drops the reference on @member. */
static struct smc_lgr_member *lgr_next_member(struct smc_lgr *lgr, struct smc_lgr_member *member)
{
	struct smc_lgr_member *next = NULL;

	spin_lock_bh(&lgr->lock);
	/* A member that has left meanwhile ends the walk. The next walk comes soon. */
	if (!member)
		next = list_first_entry_or_null(&lgr->members, struct smc_lgr_member, list);
	else if (!list_empty(&member->list) && !list_is_last(&member->list, &lgr->members))
		next = list_next_entry(member, list);
	if (next)
		smc_lgr_member_ops->get(next);
	spin_unlock_bh(&lgr->lock);
	if (member)
		smc_lgr_member_ops->put(member);
	return next;
}

static void lgr_for_each_member(struct smc_lgr *lgr, void (*fn)(struct smc_lgr_member *member))
{
	struct smc_lgr_member *member;

	might_sleep();
	for (member = lgr_next_member(lgr, NULL); member; member = lgr_next_member(lgr, member)) {
		fn(member);
		cond_resched();
	}
}

/* smc_lgr_trim() - frees memory that the connections of a group keep for data that comes next. May sleep. */
void smc_lgr_trim(struct smc_lgr *lgr)
{
	if (lgr->key.ops->trim)
		lgr_for_each_member(lgr, smc_lgr_member_ops->trim);
}

static void lgr_trim_work(struct work_struct *work)
{
	struct smc_lgr *lgr = container_of(to_delayed_work(work), struct smc_lgr, trim);

	lgr_for_each_member(lgr, smc_lgr_member_ops->trim_quiet);
	spin_lock_bh(&lgr->lock);
	if (lgr->n_conns && lgr->listed)
		lgr_queue(lgr, &lgr->trim, TRIM_TIME);
	spin_unlock_bh(&lgr->lock);
	smc_lgr_put(lgr);
}

static struct smc_lgr *lgr_alloc(const struct smc_lgr_key *key)
{
	struct smc_lgr *lgr = kzalloc(sizeof(*lgr), GFP_KERNEL);

	if (!lgr)
		return NULL;
	lgr->key = *key;
	if (key->ops->lgr_init && key->ops->lgr_init(lgr)) {
		kfree(lgr);
		return NULL;
	}
	atomic_inc(&n_lgrs);
	refcount_set(&lgr->ref, 1);
	lgr->n_conns = 1;
	INIT_LIST_HEAD(&lgr->list);
	INIT_LIST_HEAD(&lgr->members);
	spin_lock_init(&lgr->lock);
	INIT_DELAYED_WORK(&lgr->idle, lgr_idle_work);
	INIT_DELAYED_WORK(&lgr->trim, lgr_trim_work);
	memset(lgr->peer.host, ' ', sizeof(lgr->peer.host));
	return lgr;
}

/* Reserves a slot in the group that fits. The lock of the table keeps an idle group from ending meanwhile. */
static struct smc_lgr *lgr_reserve(const struct smc_lgr_key *key, const void *hint)
{
	struct smc_lgr *lgr = smc_lgr_table_find(key, hint);

	lockdep_assert_held(&smc_lgr_table_lock);
	if (!lgr)
		return NULL;
	spin_lock(&lgr->lock);
	WRITE_ONCE(lgr->n_conns, lgr->n_conns + 1);
	spin_unlock(&lgr->lock);
	smc_lgr_get(lgr);
	return lgr;
}

/**
 * smc_lgr_join() - reserves a slot for a connection in the group with a key
 * @key: the key
 * @how: whether a group may, or must, be formed
 * @hint: for the transport's lgr_fits
 * @first: result: whether the group was formed
 *
 * Return: the group with a reference, both to be given back by smc_lgr_leave(), or taken over by smc_conn_new();
 * ERR_PTR(-ENOENT) if there is no such group, ERR_PTR(-ENOMEM).
 */
struct smc_lgr *smc_lgr_join(const struct smc_lgr_key *key, enum smc_lgr_how how, const void *hint, bool *first)
{
	struct smc_lgr *lgr, *fresh = NULL;

	might_sleep();
	*first = false;
	spin_lock_bh(&smc_lgr_table_lock);
	lgr = how == SMC_LGR_FORM ? NULL : lgr_reserve(key, hint);
	spin_unlock_bh(&smc_lgr_table_lock);
	if (lgr || how == SMC_LGR_FIND)
		return lgr ?: ERR_PTR(-ENOENT);
	fresh = lgr_alloc(key);
	if (!fresh)
		return ERR_PTR(-ENOMEM);
	spin_lock_bh(&smc_lgr_table_lock);
	lgr = how == SMC_LGR_FORM ? NULL : lgr_reserve(key, hint);
	if (!lgr) {
		lgr = fresh;
		fresh = NULL;
		smc_lgr_get(lgr);
		if (key->ops->owner != THIS_MODULE)
			__module_get(key->ops->owner);
		smc_lgr_table_add(lgr);
		*first = true;
	}
	spin_unlock_bh(&smc_lgr_table_lock);
	if (fresh)
		lgr_free(fresh);
	return lgr;
}

/*
 * Frees a slot of the group. A group that is ending needs no idle work. Work that is queued already queues itself again
 * if it runs too early, so it stays unless the setting has changed.
 */
static void lgr_unreserve(struct smc_lgr *lgr)
{
	unsigned long time;

	lockdep_assert_held(&lgr->lock);
	WRITE_ONCE(lgr->n_conns, lgr->n_conns - 1);
	if (lgr->n_conns || !lgr->listed)
		return;
	lgr->idle_since = jiffies;
	time = lgr_idle_time(lgr);
	if (time == lgr->idle_time && delayed_work_pending(&lgr->idle))
		return;
	lgr->idle_time = time;
	lgr_requeue(lgr, &lgr->idle, time);
}

/*
 * smc_lgr_drain() - ends the group when its last connection has left. The transport lets no other join, by lgr_fits. Any
 * context but hardirq.
 */
void smc_lgr_drain(struct smc_lgr *lgr)
{
	spin_lock_bh(&lgr->lock);
	WRITE_ONCE(lgr->draining, true);
	if (!lgr->n_conns && lgr->listed)
		lgr_requeue(lgr, &lgr->idle, 0);
	spin_unlock_bh(&lgr->lock);
}

/* smc_lgr_leave() - undoes smc_lgr_join(). Any context but hardirq. */
void smc_lgr_leave(struct smc_lgr *lgr)
{
	spin_lock_bh(&lgr->lock);
	lgr_unreserve(lgr);
	spin_unlock_bh(&lgr->lock);
	smc_lgr_put(lgr);
}

/* smc_lgr_set_member_ops() - sets the operations of connections, at load. */
void smc_lgr_set_member_ops(const struct smc_lgr_member_ops *ops)
{
	smc_lgr_member_ops = ops;
}

/*
 * smc_lgr_add_member() - adds a connection in its reserved slot. Any context but hardirq. Return: false if the group is
 * ending: then the caller ends the connection.
 */
bool smc_lgr_add_member(struct smc_lgr *lgr, struct smc_lgr_member *member)
{
	bool listed;

	spin_lock_bh(&lgr->lock);
	listed = lgr->listed;
	if (!listed)
		goto unlock;
	smc_lgr_net_add(member);
	member->token = member->tag ? member->serial << 8 | member->tag : member->serial;
	list_add_tail(&member->list, &lgr->members);
	if (lgr->key.ops->trim && !delayed_work_pending(&lgr->trim))
		lgr_queue(lgr, &lgr->trim, TRIM_TIME);
unlock:
	spin_unlock_bh(&lgr->lock);
	return listed;
}

/*
 * smc_lgr_del_member() - removes a connection, which is released. Its reference on the group stays. A namespace that goes
 * waits for its last connection, so do not use the namespace afterwards. Any context but hardirq.
 */
void smc_lgr_del_member(struct smc_lgr_member *member)
{
	struct smc_lgr *lgr = member->lgr;
	struct smc_net *sn = member->sn;

	spin_lock_bh(&lgr->lock);
	list_del_init(&member->list);
	smc_lgr_net_del(member);
	lgr_unreserve(lgr);
	spin_unlock_bh(&lgr->lock);
	if (atomic_dec_and_test(&sn->conns))
		wake_up_var(&sn->conns);
}

/* smc_lgr_stop_work() - waits for the work of a group that is not listed, so that none is queued any more. */
void smc_lgr_stop_work(struct smc_lgr *lgr)
{
	might_sleep();
	lgr_cancel(lgr, &lgr->idle);
	lgr_cancel(lgr, &lgr->trim);
}

/* smc_lgr_wait_freed() - waits until all groups are freed, at unload. */
void smc_lgr_wait_freed(void)
{
	might_sleep();
	wait_event(all_gone, !atomic_read(&n_lgrs));
}
