// SPDX-License-Identifier: GPL-2.0-only
/*
 * The accept queue: children of a listener that nobody has accepted yet, whether they are in TCP's queue,
 * in their handshake, or ready. Here is which of them is next, and which count for the backlog.
 */

#include <net/inet_connection_sock.h>

#include "listener.h"

/* smc_accept_queue_hold() - lets a child count for the backlog. Under the listener's lock. */
void smc_accept_queue_hold(struct smc_listener *l, struct smc_sock *child)
{
	lockdep_assert_held(&l->lock);
	if (child->held)
		return;
	child->held = true;
	smc_synopt_port_hold(&l->port, 1);
}

/* Undoes smc_accept_queue_hold(). Under the listener's lock. */
static void unhold(struct smc_listener *l, struct smc_sock *child)
{
	lockdep_assert_held(&l->lock);
	if (!child->held)
		return;
	child->held = false;
	smc_synopt_port_hold(&l->port, -1);
}

enum head { HEAD_NONE, HEAD_TCP, HEAD_LOCAL, HEAD_SMC, HEAD_UNDECIDED };

static const enum head heads[] = {
	[SMC_SYN_NOTHING]	= HEAD_TCP,
	[SMC_SYN_SMC]		= HEAD_SMC,
	[SMC_SYN_UNDECIDED]	= HEAD_UNDECIDED,
};

/* Has the client of a child, in this kernel, connected it? */
static bool is_local(const struct sock *sk)
{
	struct smc_sock *child = smc_table_find(sk);

	smc_table_put(child);
	return child != NULL;
}

/* Returns what the first child of TCP's accept queue is. */
static enum head tcp_queue_head(struct sock *lsk)
{
	struct request_sock_queue *queue = &inet_csk(lsk)->icsk_accept_queue;
	enum head head = HEAD_NONE;
	struct sock *sk;

	spin_lock_bh(&queue->rskq_lock);
	if (queue->rskq_accept_head) {
		sk = queue->rskq_accept_head->sk;
		head = heads[smc_synopt_state(sk)];
		if (head == HEAD_TCP && is_local(sk))
			head = HEAD_LOCAL;
	}
	spin_unlock_bh(&queue->rskq_lock);
	return head;
}

/*
 * For how many steps of its handshake a child may hold others back; the handshake with a well-behaved peer
 * takes no more. And how many of the last children accept() looks at.
 */
#define STEPS_MAX 8
#define LOOK_MAX 64
/* How long a child that is ready waits for earlier ones. */
#define HOLD_TIME msecs_to_jiffies(50)

/*
 * Is the outcome of a child's handshake about to be known? Data in the queue of a child that waits for the
 * application's data says nothing about that.
 */
static bool outcome_is_near(const struct smc_sock *child)
{
	if (child->steps > STEPS_MAX)
		return false;
	if (child->deferred)
		return child->stepping;
	if (!skb_queue_empty_lockless(&child->sk->sk_receive_queue))
		return true;
	smp_rmb(); /* pairs with the lock in smc_listen_step(): first it is set, then the queue is emptied */
	return child->stepping;
}

/*
 * Is there a child before @seq that others are to wait for? A client whose connect() has returned may
 * make others go on before our end has been through the last step: a child in that step, or about to
 * take it, is waited for. No more than LOOK_MAX are looked at, or peers whose handshakes make no
 * progress could keep accept() from everybody else.
 */
static bool is_awaited(struct smc_listener *l, u64 seq)
{
	unsigned int looks = 0;
	struct smc_sock *earlier;

	lockdep_assert_held(&l->lock);
	list_for_each_entry_reverse(earlier, &l->running, child) {
		if (++looks > LOOK_MAX)
			return false;
		if (earlier->seq < seq && outcome_is_near(earlier))
			return true;
	}
	return false;
}

/* Must a child that is ready wait for one that came before it? It does so for HOLD_TIME at most. */
static bool must_wait(struct smc_listener *l, const struct smc_sock *child)
{
	return time_before(jiffies, child->ready_at + HOLD_TIME) && is_awaited(l, child->seq);
}

/*
 * smc_accept_queue_await() - is a child that accept() has found in TCP's queue, connected by its client in
 * this kernel, to wait for an earlier one? Does not sleep.
 */
bool smc_accept_queue_await(struct smc_listener *l)
{
	bool awaited;

	spin_lock_bh(&l->lock);
	awaited = is_awaited(l, U64_MAX);
	spin_unlock_bh(&l->lock);
	return awaited;
}

/*
 * Returns the child that accept() may have, if any. Children come in the order in which TCP had them, as far as
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

/* Wakes one thread that accepts, and all pollers. The lock keeps the listener's sock from being closed. */
static void wake_acceptors(struct smc_listener *l)
{
	lockdep_assert_held(&l->lock);
	l->blocked = false;
	READ_ONCE(l->smc->sk->sk_data_ready)(l->smc->sk);
}

/* Has threads that were told to wait look again. */
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
 * smc_accept_queue_moving() - the worker is about to take a connection out of TCP's queue, or has put it
 * where it belongs. A thread that looked for it meanwhile, in vain, has to look again. Nobody else is woken,
 * because a poller would take one more wakeup for one more edge. Does not sleep.
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
 * smc_accept_queue_put() - the worker has a child for accept(). TCP has woken threads for it, but these
 * saw another one before it, which is in its handshake now. Under the lock.
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
 * Connections go from TCP's queue to ours, so this looks in that order. One that the worker holds in
 * between is in neither. The worker also takes a child out of TCP's queue that is ready but has to wait for
 * an earlier one, so that plain TCP behind it does not wait, too.
 */
bool smc_listen_ready(struct smc_sock *smc)
{
	struct smc_listener *l = smc->listener;
	enum head head = tcp_queue_head(smc->sk);
	bool ready;

	spin_lock_bh(&l->lock);
	if (head == HEAD_LOCAL)
		head = is_awaited(l, U64_MAX) ? HEAD_SMC : HEAD_TCP;
	ready = next_child(l) || head == HEAD_TCP;
	if (!ready) {
		l->blocked |= l->moving;
		l->overlooked |= head == HEAD_SMC;
		l->denied |= l->moving || head != HEAD_NONE;
	}
	spin_unlock_bh(&l->lock);
	if (head == HEAD_SMC)
		mod_delayed_work(smc_net_wq, &l->drain, 0);
	return ready;
}

/* Frees the place reserved for a child's handshake, which is over or needs it no more. */
static void unreserve(struct smc_listener *l, struct smc_sock *child)
{
	lockdep_assert_held(&l->lock);
	if (child->reserved)
		smc_synopt_unreserve(&l->port);
	child->reserved = false;
}

/* smc_listen_unreserve() - frees the place reserved for a handshake that does not take place. Does not sleep. */
void smc_listen_unreserve(struct smc_sock *lsmc)
{
	smc_synopt_unreserve(&lsmc->listener->port);
}

/*
 * smc_listen_step() - the worker of a child begins a step, or has ended one without an outcome.
 * Does not sleep.
 */
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

/* Puts a child among those that are ready, in their order. */
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
 * @child: its record; the caller is its handshake
 * @keep: accept() may have it; else it is reset, and @child is gone
 *
 * May sleep.
 */
void smc_listen_finish(struct smc_sock *child, bool keep)
{
	struct smc_listener *l = child->parent->listener;

	might_sleep();
	spin_lock_bh(&l->lock);
	if (!l->open) {
		/*
		 * smc_listen_stop() has the child on a list of its own, and waits for the caller to
		 * return.
		 */
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

/*
 * smc_listen_defer() - a child waits for data, for as long as the application wants (TCP_DEFER_ACCEPT). Such
 * children do not count for the backlog, nor do they with TCP, but there may be no more of them than that.
 * Does not sleep. Return: false if it is to wait no longer.
 */
bool smc_listen_defer(struct smc_sock *child)
{
	struct smc_sock *lsmc = child->parent;
	struct smc_listener *l = lsmc->listener;
	bool defer;

	spin_lock_bh(&l->lock);
	defer = l->open && child->reserved && l->deferred_n <= READ_ONCE(lsmc->sk->sk_max_ack_backlog);
	if (defer) {
		unhold(l, child);
		unreserve(l, child);
		child->deferred = true;
		l->deferred_n++;
	}
	spin_unlock_bh(&l->lock);
	return defer;
}

/**
 * smc_listen_take() - the first connection that is ready
 * @lsmc: the listener's record
 *
 * Does not sleep. Return: its record, which is the caller's then, with its placeholder; NULL
 * if there is none, or if it waits for an earlier one: then there will be a wakeup.
 */
struct smc_sock *smc_listen_take(struct smc_sock *lsmc)
{
	struct smc_listener *l = lsmc->listener;
	struct smc_sock *child;

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
 * smc_listen_wake_next() - accept() has a connection. Threads that found none got one wakeup, however many
 * connections became ready meanwhile, and the caller may have used it up: if there is another connection,
 * this wakes another thread. Does not sleep.
 */
void smc_listen_wake_next(struct smc_sock *lsmc)
{
	struct smc_listener *l = lsmc->listener;
	bool denied;

	spin_lock_bh(&l->lock);
	denied = l->denied;
	l->denied = false; /* unless it is said again by who looks now */
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
 * smc_listen_publish() - a client in this kernel has connected a child that TCP still has
 * @lsmc: the listener's record
 * @child: the child's record, with its connection; the listener's if this succeeds
 *
 * Does not sleep. Return: false if the listener has been closed, even if it listens again, or has
 * begun a handshake with the child.
 */
bool smc_listen_publish(struct smc_sock *lsmc, struct smc_sock *child)
{
	struct smc_listener *l = lsmc->listener;
	enum smc_syn_claim claim = SMC_CLAIM_NONE;

	/* Under the lock: a thread that claims it next and gets nothing finds the record. */
	spin_lock_bh(&l->lock);
	if (l->open)
		claim = smc_synopt_claim(child->sk, &l->port, false);
	if (claim == SMC_CLAIM_RESERVED)
		smc_synopt_unreserve(&l->port);
	if (claim != SMC_CLAIM_NONE) {
		child->parent = lsmc;
		smc_table_get(lsmc);
		list_add_tail(&child->child, &l->local);
		smc_table_add(child);
	}
	spin_unlock_bh(&l->lock);
	return claim != SMC_CLAIM_NONE;
}

/**
 * smc_listen_collect() - says what is to become of a child that comes out of TCP's queue
 * @lsmc: the listener's record
 * @sk: the child's sock
 *
 * Does not sleep.
 *
 * Return: NULL if it is TCP's; ERR_PTR(-EINPROGRESS) if a handshake is due, for which a place is
 * reserved, see smc_listen_begin(); its record, the caller's then, if its client has connected it;
 * ERR_PTR(-EBUSY) if a handshake is due, but its client was late and there is no room for it any more;
 * ERR_PTR(-EINVAL) if the listener has been closed, and the child with it.
 */
struct smc_sock *smc_listen_collect(struct smc_sock *lsmc, struct sock *sk)
{
	struct smc_listener *l = lsmc->listener;
	enum smc_syn_claim claim = SMC_CLAIM_NONE;
	struct smc_sock *child;
	bool open;

	spin_lock_bh(&l->lock);
	child = smc_table_find(sk);
	if (!child)
		claim = smc_synopt_claim(sk, &l->port, true);
	if (claim == SMC_CLAIM_LATE && smc_synopt_reserve(&l->port))
		claim = SMC_CLAIM_RESERVED;
	if (claim != SMC_CLAIM_NONE) {
		spin_unlock_bh(&l->lock);
		return ERR_PTR(claim == SMC_CLAIM_RESERVED ? -EINPROGRESS : -EBUSY);
	}
	open = l->open;
	if (child && open)
		list_del_init(&child->child);
	spin_unlock_bh(&l->lock);
	/* Its client may have connected it, and the listener have ended that and forgotten it. */
	if (!open) {
		if (child)
			smc_table_put(child);
		return ERR_PTR(-EINVAL);
	}
	if (child)
		smc_table_remove(child);
	return child;
}

/* smc_listen_wake() - has threads that wait on a listener look once more. Does not sleep. */
void smc_listen_wake(struct smc_sock *lsmc)
{
	struct smc_listener *l = lsmc->listener;

	spin_lock_bh(&l->lock);
	if (l->open)
		READ_ONCE(lsmc->sk->sk_data_ready)(lsmc->sk);
	spin_unlock_bh(&l->lock);
}

/* smc_accept_queue_plain_next() - is the first child of TCP's queue plain TCP? Does not sleep. */
bool smc_accept_queue_plain_next(const struct smc_listener *l)
{
	return tcp_queue_head(l->smc->sk) == HEAD_TCP;
}

/* smc_listen_pending() - may the first child of TCP's queue be taken out? Does not sleep. */
bool smc_listen_pending(const struct smc_sock *lsmc)
{
	enum head head = tcp_queue_head(lsmc->sk);

	return head == HEAD_TCP || head == HEAD_LOCAL || head == HEAD_SMC;
}
