// SPDX-License-Identifier: GPL-2.0-only
/*
 * The accept queue: children of a listener that nobody has accepted yet, whether they are in TCP's queue,
 * in their handshake, or ready. This file decides which of them is next, and which count for the backlog.
 */

#include <net/inet_connection_sock.h>

#include "listener.h"

/* smc_accept_queue_hold() - counts a child for the backlog. */
void smc_accept_queue_hold(struct smc_listener *l, struct smc_sock *child)
{
	lockdep_assert_held(&l->lock);
	if (child->held)
		return;
	child->held = true;
	smc_synopt_port_hold(&l->port, 1);
}

/* Undoes smc_accept_queue_hold(). */
static void unhold(struct smc_listener *l, struct smc_sock *child)
{
	lockdep_assert_held(&l->lock);
	if (!child->held)
		return;
	child->held = false;
	smc_synopt_port_hold(&l->port, -1);
}

/*
 * The number of steps of its handshake for which a child may delay others: a well-behaved peer needs no more. And
 * the number of children that child_is_awaited() looks at.
 */
#define STEPS_MAX 8
#define LOOK_MAX 64
/* How long a ready child waits for earlier ones. */
#define HOLD_TIME msecs_to_jiffies(50)

/*
 * Is the outcome of a child's handshake about to be known? For a child that waits for the application's data, its
 * receive queue does not tell.
 */
static bool outcome_is_near(const struct smc_listener *l, const struct smc_sock *child)
{
	lockdep_assert_held(&l->lock);
	if (child->steps > STEPS_MAX)
		return false;
	if (child->deferred)
		return child->stepping;
	if (!skb_queue_empty_lockless(&child->sk->sk_receive_queue))
		return true;
	return child->stepping; /* smc_listen_step() sets it under our lock before the queue is emptied */
}

/*
 * Must others wait for a child before @seq? When connect() has returned, a client may let others connect before
 * our end has taken the last step: so they wait for a child that is in that step or about to take it. This looks
 * at LOOK_MAX children, because otherwise peers whose handshakes make no progress could block accept().
 */
static bool child_is_awaited(struct smc_listener *l, u64 seq)
{
	unsigned int looks = 0;
	struct smc_sock *earlier;

	lockdep_assert_held(&l->lock);
	list_for_each_entry_reverse(earlier, &l->running, child) {
		if (++looks > LOOK_MAX)
			return false;
		if (earlier->seq < seq && outcome_is_near(l, earlier))
			return true;
	}
	return false;
}

/* Must a ready child wait for an earlier one? It waits HOLD_TIME at most. */
static bool must_wait(struct smc_listener *l, const struct smc_sock *child)
{
	return time_before(jiffies, child->ready_at + HOLD_TIME) && child_is_awaited(l, child->seq);
}

/*
 * smc_accept_queue_await() - must a child in TCP's queue that its client, in this kernel, has connected wait for
 * an earlier one? Does not sleep.
 */
bool smc_accept_queue_await(struct smc_listener *l)
{
	bool awaited;

	spin_lock_bh(&l->lock);
	awaited = child_is_awaited(l, U64_MAX);
	spin_unlock_bh(&l->lock);
	return awaited;
}

/*
 * Returns the child that accept() may take, or NULL. Children are taken in the order of TCP's queue, as far as
 * their handshakes end in that order. Children that are plain TCP never wait for others' handshakes.
 */
static struct smc_sock *next_child(struct smc_listener *l)
{
	struct smc_sock *child = list_first_entry_or_null(&l->ready, struct smc_sock, child);
	struct smc_sock *plain = list_first_entry_or_null(&l->plain, struct smc_sock, child);

	lockdep_assert_held(&l->lock);
	if (!child || (plain && plain->seq < child->seq))
		return plain;
	if (!must_wait(l, child))
		return child;
	if (plain)
		return plain;
	l->blocked = true;
	l->denied = true;
	if (!delayed_work_pending(&l->release))
		queue_delayed_work(smc_net_wq, &l->release, HOLD_TIME);
	return NULL;
}

/* Wakes one thread in accept(), and all pollers. The lock keeps the listener's sock from being closed. */
static void wake_acceptors(struct smc_listener *l)
{
	lockdep_assert_held(&l->lock);
	l->blocked = false;
	READ_ONCE(l->smc->sk->sk_data_ready)(l->smc->sk);
}

/* Wakes threads if some wait for an earlier child. */
static void wake_blocked(struct smc_listener *l)
{
	lockdep_assert_held(&l->lock);
	if (l->blocked)
		wake_acceptors(l);
}

/* Children that wait for an earlier one have waited for HOLD_TIME. */
static void hold_time_over(struct work_struct *work)
{
	struct smc_listener *l = container_of(to_delayed_work(work), struct smc_listener, release);

	spin_lock_bh(&l->lock);
	if (l->open)
		wake_blocked(l);
	spin_unlock_bh(&l->lock);
}

/* smc_accept_queue_init() - of a new listener. */
void smc_accept_queue_init(struct smc_listener *l)
{
	spin_lock_init(&l->lock);
	INIT_LIST_HEAD(&l->running);
	INIT_LIST_HEAD(&l->ready);
	INIT_LIST_HEAD(&l->plain);
	INIT_LIST_HEAD(&l->local);
	INIT_DELAYED_WORK(&l->release, hold_time_over);
}

/*
 * smc_accept_queue_moving() - the worker is about to take a connection out of TCP's queue, or has put it into
 * ours. A thread that has not found it meanwhile has to look again. Other threads are not woken, because
 * edge-triggered pollers would report one more event. Does not sleep.
 */
void smc_accept_queue_moving(struct smc_listener *l, bool moving)
{
	spin_lock_bh(&l->lock);
	l->moving = moving;
	if (!moving)
		wake_blocked(l);
	spin_unlock_bh(&l->lock);
}

/*
 * smc_accept_queue_put() - adds a ready child. TCP has woken threads for it, but these may have found another
 * child before it, which is in its handshake now.
 */
void smc_accept_queue_put(struct smc_listener *l, struct smc_sock *child)
{
	lockdep_assert_held(&l->lock);
	child->ready_at = jiffies;
	list_add_tail(&child->child, child->opt.peer_smc ? &l->ready : &l->plain);
	l->blocked |= l->overlooked;
	l->overlooked = false;
}

/*
 * smc_listen_ready() - is there a connection for accept()? Does not sleep.
 *
 * Connections go from TCP's queue to ours, so this looks in that order. One that the worker moves is in
 * neither. The worker also takes out a child that is ready but has to wait for an earlier one, so that
 * connections of plain TCP behind it do not wait.
 */
bool smc_listen_ready(struct smc_sock *smc)
{
	struct smc_listener *l = smc->listener;
	enum smc_queue_head head = smc_accept_queue_head(l);
	bool ready;

	/* If registering the hooks failed, the worker may have moved children meanwhile. */
	if (!smc_listener_may_promise(l) && list_empty_careful(&l->ready) && list_empty_careful(&l->plain))
		return head == SMC_HEAD_TCP;
	spin_lock_bh(&l->lock);
	if (head == SMC_HEAD_LOCAL)
		head = child_is_awaited(l, U64_MAX) ? SMC_HEAD_SMC : SMC_HEAD_TCP;
	ready = next_child(l) || head == SMC_HEAD_TCP;
	if (!ready) {
		l->blocked |= l->moving;
		/* An undecided one may need a handshake as soon as its client has taken too long: nobody is woken then. */
		l->overlooked |= head == SMC_HEAD_SMC || head == SMC_HEAD_UNDECIDED;
		l->denied |= l->moving || head != SMC_HEAD_NONE;
	}
	/* Under the lock: while smc_listen_stop() waits for the worker, starting it would do nothing, and count. */
	if (head == SMC_HEAD_SMC && l->open)
		smc_listen_drain(l, 0);
	spin_unlock_bh(&l->lock);
	return ready;
}

/* Frees the place that is reserved for a child's handshake. */
static void unreserve(struct smc_listener *l, struct smc_sock *child)
{
	lockdep_assert_held(&l->lock);
	if (child->reserved)
		smc_synopt_unreserve(&l->port);
	child->reserved = false;
}

/* smc_listen_step() - a child's worker begins a step, or has ended one without an outcome. Does not sleep. */
void smc_listen_step(struct smc_sock *child, bool begins)
{
	struct smc_listener *l = child->parent->listener;

	spin_lock_bh(&l->lock);
	child->stepping = begins;
	if (begins && child->steps <= STEPS_MAX)
		child->steps++;
	if (!begins && l->open)
		wake_blocked(l);
	spin_unlock_bh(&l->lock);
}

/* Moves a child to the list of ready ones, in their order. */
static void make_ready(struct smc_listener *l, struct smc_sock *child)
{
	struct smc_sock *before;

	lockdep_assert_held(&l->lock);
	child->ready_at = jiffies;
	list_del(&child->child);
	list_for_each_entry_reverse(before, &l->ready, child)
		if (before->seq < child->seq)
			break;
	list_add(&child->child, &before->child);
}

/**
 * smc_listen_finish() - the handshake of a child is over
 * @child: the child; the caller is its worker
 * @keep: accept() may take it; else it is reset, and @child is freed
 *
 * May sleep.
 */
void smc_listen_finish(struct smc_sock *child, bool keep)
{
	struct smc_listener *l = child->parent->listener;

	might_sleep();
	spin_lock_bh(&l->lock);
	if (!l->open) {
		/* smc_listen_stop() has the child on its own list, and waits for the caller to return. */
		spin_unlock_bh(&l->lock);
		return;
	}
	unreserve(l, child);
	if (child->deferred)
		l->deferred_n--;
	child->deferred = false;
	child->stepping = false;
	if (keep) {
		smc_accept_queue_hold(l, child);
		make_ready(l, child);
		wake_acceptors(l);
	} else {
		unhold(l, child);
		list_del_init(&child->child);
		wake_blocked(l);
	}
	spin_unlock_bh(&l->lock);
	if (!keep)
		smc_listen_drop(child);
}

/* Lets a child wait without counting for the backlog, if no more than the backlog do so. */
static bool defer(struct smc_listener *l, struct smc_sock *child)
{
	lockdep_assert_held(&l->lock);
	if (!child->deferred && l->deferred_n <= READ_ONCE(l->smc->sk->sk_max_ack_backlog)) {
		child->deferred = true;
		l->deferred_n++;
	}
	return child->deferred;
}

/*
 * smc_listen_defer() - lets a child wait for data (TCP_DEFER_ACCEPT). Such children do not count for the backlog,
 * as with TCP, but there may be no more of them than the backlog. Does not sleep. Return: false if the child must
 * not wait.
 */
bool smc_listen_defer(struct smc_sock *child)
{
	struct smc_listener *l = child->parent->listener;
	bool may;

	spin_lock_bh(&l->lock);
	may = l->open && (child->reserved || child->deferred) && defer(l, child);
	if (may) {
		unhold(l, child);
		unreserve(l, child);
	}
	spin_unlock_bh(&l->lock);
	return may;
}

/*
 * smc_accept_queue_admit() - takes a child whose client acknowledged the SYN-ACK so late that its place had been freed. The client goes to
 * send a proposal, and may have all its places taken by others: then it has its handshake without one. Return: false if there is no room.
 */
bool smc_accept_queue_admit(struct smc_listener *l, struct smc_sock *child)
{
	lockdep_assert_held(&l->lock);
	child->reserved = smc_synopt_reserve(&l->port);
	return child->reserved || defer(l, child);
}

/**
 * smc_listen_take() - takes the first connection that is ready
 * @lsmc: the listener
 *
 * Does not sleep. Return: the child, which is the caller's then, with its placeholder; NULL if there is none,
 * or if it waits for an earlier one: then there will be a wakeup.
 */
struct smc_sock *smc_listen_take(struct smc_sock *lsmc)
{
	struct smc_listener *l = lsmc->listener;
	struct smc_sock *child;

	/* The caller looks again, with the lock, before it sleeps. */
	if (list_empty_careful(&l->ready) && list_empty_careful(&l->plain))
		return NULL;
	spin_lock_bh(&l->lock);
	child = next_child(l);
	if (child) {
		list_del_init(&child->child);
		unhold(l, child);
	}
	spin_unlock_bh(&l->lock);
	return child;
}

/*
 * smc_listen_wake_next() - after accept() has taken a connection, wakes another thread if there is another
 * connection: several connections may become ready with one wakeup, which the caller has used up. Does not
 * sleep.
 */
void smc_listen_wake_next(struct smc_sock *lsmc)
{
	struct smc_listener *l = lsmc->listener;
	bool denied;

	if (!smc_listener_may_promise(l))
		return;
	spin_lock_bh(&l->lock);
	denied = l->denied;
	l->denied = false; /* smc_listen_ready() may set it again */
	spin_unlock_bh(&l->lock);
	if (!denied || !smc_listen_ready(lsmc))
		return;
	spin_lock_bh(&l->lock);
	l->denied = true;
	if (l->open)
		wake_acceptors(l);
	spin_unlock_bh(&l->lock);
}

/**
 * smc_listen_publish() - adds a child in TCP's queue that its client, in this kernel, has connected
 * @lsmc: the listener
 * @child: the child, with its connection; the listener's if this succeeds
 *
 * Does not sleep. Return: false if the listener has been closed meanwhile, even if it listens again, or has begun
 * a handshake with the child.
 */
bool smc_listen_publish(struct smc_sock *lsmc, struct smc_sock *child)
{
	struct smc_listener *l = lsmc->listener;
	enum smc_syn_claim claim = SMC_CLAIM_NONE;

	spin_lock_bh(&l->lock);
	if (l->open) {
		child->parent = lsmc;
		smc_table_get(lsmc);
		smc_table_get(child);
		/* First, so that a thread that claims it in vain finds the child. It takes the child after this has released the lock. */
		smc_table_add(child);
		claim = smc_synopt_claim(child->sk, &l->port, false);
		if (claim == SMC_CLAIM_NONE)
			smc_table_remove(child);
	}
	if (claim == SMC_CLAIM_RESERVED)
		smc_synopt_unreserve(&l->port);
	if (claim != SMC_CLAIM_NONE) {
		list_add_tail(&child->child, &l->local);
		smc_policy_count(child, true);
	}
	spin_unlock_bh(&l->lock);
	if (claim == SMC_CLAIM_NONE)
		return false;
	smc_table_put(child);
	return true;
}

/*
 * Takes a child that its client has connected off the list of the listener that answered the client. That is another listener
 * than the one whose queue the child was in if an administrator has ended the first, and TCP has moved the child
 * (net.ipv4.tcp_migrate_req). Return: false if the first listener has been closed, and the child with it.
 */
static bool take_off(struct smc_sock *child)
{
	struct smc_listener *l = child->parent->listener;
	bool mine;

	spin_lock_bh(&l->lock);
	/* While it closes, it has the child on a list of its own; if it listens again, the child is on none. */
	mine = l->open && !list_empty(&child->child);
	if (mine)
		list_del_init(&child->child);
	spin_unlock_bh(&l->lock);
	return mine;
}

/**
 * smc_listen_collect() - decides about a child that comes out of TCP's queue
 * @lsmc: the listener
 * @sk: the child's sock
 *
 * May sleep.
 *
 * Return: NULL if it stays TCP; ERR_PTR(-EINPROGRESS) if a handshake is due, for which a place is reserved, see
 * smc_listen_begin(); ERR_PTR(-EALREADY) if one is due whose place has been freed, because the client was late; its struct smc_sock, the
 * caller's then, if its client has connected it; ERR_PTR(-EBUSY) if it has to be reset, because the listener that answered its client has
 * been closed; ERR_PTR(-EINVAL) if the listener has been closed, and the child with it.
 */
struct smc_sock *smc_listen_collect(struct smc_sock *lsmc, struct sock *sk)
{
	struct smc_listener *l = lsmc->listener;
	struct smc_sock *child = NULL;
	enum smc_syn_claim claim;
	bool mine;
	int rc = 0;

	might_sleep();
	if (!smc_listener_may_promise(l))
		return READ_ONCE(l->open) ? NULL : ERR_PTR(-EINVAL);
	spin_lock_bh(&l->lock);
	claim = smc_synopt_claim(sk, &l->port, true);
	if (claim != SMC_CLAIM_NONE)
		rc = claim == SMC_CLAIM_RESERVED ? -EINPROGRESS : -EALREADY;
	else if (!l->open)
		rc = -EINVAL;
	spin_unlock_bh(&l->lock);
	if (claim == SMC_CLAIM_NONE)
		child = smc_table_find(sk);
	mine = child && take_off(child);
	if (mine)
		smc_table_remove(child);
	else if (child)
		rc = rc ?: -EBUSY;
	if (!rc)
		return child;
	/* Another listener has had it, and is open. */
	if (mine)
		smc_active_end(child, true);
	smc_table_put(child);
	return ERR_PTR(rc);
}

/* smc_listen_wake() - wakes threads that wait on a listener. Does not sleep. */
void smc_listen_wake(struct smc_sock *lsmc)
{
	struct smc_listener *l = lsmc->listener;

	spin_lock_bh(&l->lock);
	if (l->open)
		READ_ONCE(lsmc->sk->sk_data_ready)(lsmc->sk);
	spin_unlock_bh(&l->lock);
}
