// SPDX-License-Identifier: GPL-2.0-only
/*
 * The listening side. Connections come out of TCP's accept queue. Those from peers without SMC stay
 * in it until accept() fetches them, just as in TCP. A connection from a peer with SMC is taken out
 * of it by whoever sees it first, so that its handshake can begin: an accept() that waits, a worker
 * that poll() starts, or, if the application does neither, the same worker a moment later. It
 * counts for the backlog until the application has accepted it.
 */

#include <linux/slab.h>
#include <net/inet_connection_sock.h>
#include <net/tcp_states.h>

#include "../handshake/handshake.h"
#include "../wire/reason.h"
#include "sock.h"

/*
 * How long an application that waits for nothing has to come for a connection before the worker
 * looks at it.
 */
#define DRAIN_DELAY msecs_to_jiffies(10)

/* What a listener has beyond TCP. Belongs to its record and goes with it. */
struct smc_listener {
	spinlock_t		lock;		/* what has no other rule */
	struct list_head	running;	/* children in their handshake */
	struct list_head	ready;		/* children for accept() */
	unsigned int		held;		/* children that we count in sk_ack_backlog: both lists */
	bool			open;		/* listens; else children are refused */
	bool			moving;		/* the worker has one in its hands; acquire and release */
	bool			missed;		/* someone has looked meanwhile; xchg() */
	bool			blocked;	/* someone has been told to wait for an earlier child */
	u64			last_seq;	/* of the children */
	unsigned int		running_n;	/* children on the first list that count for the backlog */
	struct delayed_work	drain;
	struct smc_sock		*smc;		/* the listener itself */
	struct smc_synopt_port	port;		/* lets the hooks know of us */
};

/* TCP counts in sk_ack_backlog under this lock. */
static void count(struct sock *sk, int n)
{
	struct request_sock_queue *queue = &inet_csk(sk)->icsk_accept_queue;

	spin_lock_bh(&queue->rskq_lock);
	/* TCP counts from 0 anew when it listens again after it has been aborted from outside. */
	if (n < 0)
		n = -(int)min_t(u32, -n, sk->sk_ack_backlog);
	WRITE_ONCE(sk->sk_ack_backlog, sk->sk_ack_backlog + n);
	spin_unlock_bh(&queue->rskq_lock);
}

/* Lets a child count for the backlog, or not. Under the listener's lock. */
static void hold(struct smc_sock *lsmc, struct smc_sock *child)
{
	lockdep_assert_held(&lsmc->listener->lock);
	if (child->held)
		return;
	child->held = true;
	lsmc->listener->held++;
	count(lsmc->sk, 1);
}

static void unhold(struct smc_sock *lsmc, struct smc_sock *child)
{
	lockdep_assert_held(&lsmc->listener->lock);
	if (!child->held)
		return;
	child->held = false;
	lsmc->listener->held--;
	count(lsmc->sk, -1);
}

enum head { HEAD_NONE, HEAD_TCP, HEAD_SMC };

/* What is first in TCP's accept queue? */
static enum head look(struct sock *sk)
{
	struct request_sock_queue *queue = &inet_csk(sk)->icsk_accept_queue;
	enum head head = HEAD_NONE;

	spin_lock_bh(&queue->rskq_lock);
	if (queue->rskq_accept_head)
		head = smc_synopt_seen(queue->rskq_accept_head->sk) ? HEAD_SMC : HEAD_TCP;
	spin_unlock_bh(&queue->rskq_lock);
	return head;
}

/* Is the outcome of a child's handshake about to be known? */
static bool imminent(const struct smc_sock *child)
{
	if (!skb_queue_empty_lockless(&child->sk->sk_receive_queue))
		return true;
	smp_rmb(); /* pairs with the lock in smc_listen_step(): first it is set, then the queue is emptied */
	return child->stepping;
}

/*
 * The child that accept() may have, if any. They come in the order in which TCP had them, as far as
 * their handshakes end in that order. A client whose connect() has returned may make others go on
 * before our end has been through the last step: a child in that step, or about to take it, is
 * waited for.
 */
static struct smc_sock *first(struct smc_listener *l, bool *blocked)
{
	struct smc_sock *child = list_first_entry_or_null(&l->ready, struct smc_sock, child), *earlier;

	lockdep_assert_held(&l->lock);
	*blocked = false;
	list_for_each_entry(earlier, &l->running, child) {
		if (child && earlier->seq > child->seq)
			break;
		if (!imminent(earlier))
			continue;
		*blocked = true;
		l->blocked = true;
		return NULL;
	}
	return child;
}

/* Whoever was told to wait looks again. The lock keeps the listener's sock from being closed. */
static void unblock(struct smc_listener *l)
{
	lockdep_assert_held(&l->lock);
	if (!l->blocked)
		return;
	l->blocked = false;
	READ_ONCE(l->smc->sk->sk_data_ready)(l->smc->sk);
}

/*
 * smc_listen_ready() - is there a connection for accept()? Does not sleep.
 *
 * Connections go from TCP's queue to ours, so they are looked for in this order. One that the
 * worker holds in between is in neither: it is told that it has been missed, and the look at our
 * queue comes after that.
 */
bool smc_listen_ready(struct smc_sock *smc)
{
	struct smc_listener *l = smc->listener;
	enum head head = look(smc->sk);
	struct smc_sock *child;
	bool blocked;

	if (head == HEAD_SMC)
		mod_delayed_work(smc_net_wq, &l->drain, 0);
	if (smp_load_acquire(&l->moving)) {
		WRITE_ONCE(l->missed, true);
		smp_mb(); /* pairs with that in moved() */
	}
	spin_lock_bh(&l->lock);
	child = first(l, &blocked);
	spin_unlock_bh(&l->lock);
	return child || (head == HEAD_TCP && !blocked);
}

/*
 * smc_listen_busy() - do handshakes take up so much of the backlog that new connections had better
 * be TCP? Any context.
 */
bool smc_listen_busy(const struct smc_sock *smc)
{
	unsigned int most = max(READ_ONCE(smc->sk->sk_max_ack_backlog) / 2, 1U);

	return READ_ONCE(smc->listener->running_n) >= most;
}

/* A socket of no one's, still empty, for a connection of the same family. NULL without memory. */
static struct socket *empty_pot(const struct sock *sk)
{
	const struct proto_ops *tcp = smc_ops_of_tcp(sk);
	struct socket *sock;

	if (sock_create_lite(sk->sk_family, SOCK_STREAM, IPPROTO_TCP, &sock))
		return NULL;
	__module_get(tcp->owner);
	sock->ops = tcp;
	return sock;
}

/*
 * smc_listen_pot() - a socket of no one's for a sock that has none. May sleep. Return: NULL without
 * memory.
 */
struct socket *smc_listen_pot(struct sock *sk)
{
	struct socket *sock = empty_pot(sk);

	if (sock) {
		sock->state = SS_CONNECTED;
		sock_graft(sk, sock);
	}
	return sock;
}

/*
 * smc_listen_uproot() - takes the sock out of a socket, as it was before it was accepted. What
 * wakes the sock's sleepers may still look at the socket's wait queue for a grace period; a socket
 * is freed after one. Takes the sock's lock.
 */
struct sock *smc_listen_uproot(struct socket *sock)
{
	struct sock *sk = sock->sk;

	lock_sock(sk);
	write_lock_bh(&sk->sk_callback_lock);
	sk_set_socket(sk, NULL);
	RCU_INIT_POINTER(sk->sk_wq, NULL);
	sock->sk = NULL;
	sock->state = SS_UNCONNECTED;
	write_unlock_bh(&sk->sk_callback_lock);
	release_sock(sk);
	return sk;
}

/* Ends a connection that the application never sees: the peer is told by a reset. */
static void drop_sock(struct socket *sock)
{
	sock_no_linger(sock->sk);
	sock_release(sock);
}

static void drop(struct smc_sock *child)
{
	struct socket *sock = child->sock;

	smc_handshake_unwatch(child);
	smc_handshake_free(child);
	drop_sock(sock);
	smc_table_put(child);
}

/**
 * smc_listen_begin() - takes in a connection out of TCP's accept queue
 * @lsmc: the listener's record
 * @sock: a socket of no one's with the connection; belongs to the listener from now on
 * @peer_smc: the peer has asked for SMC: begin a handshake
 *
 * May sleep. A connection that there is no memory for, or no listener any more, is reset.
 */
void smc_listen_begin(struct smc_sock *lsmc, struct socket *sock, bool peer_smc)
{
	struct smc_listener *l = lsmc->listener;
	struct smc_sock *child = smc_table_new(sock->sk, GFP_KERNEL);

	if (!child) {
		drop_sock(sock);
		return;
	}
	child->server = true;
	child->peer_smc = peer_smc;
	child->sock = sock;
	child->parent = lsmc;
	smc_table_get(lsmc);
	if (!peer_smc)
		smc_fallback_child(child, SMC_REASON_PEER_NO_SMC, 0);

	spin_lock_bh(&l->lock);
	if (!l->open) {
		spin_unlock_bh(&l->lock);
		drop(child);
		return;
	}
	hold(lsmc, child);
	if (peer_smc)
		WRITE_ONCE(l->running_n, l->running_n + 1);
	child->seq = ++l->last_seq;
	list_add_tail(&child->child, peer_smc ? &l->running : &l->ready);
	/*
	 * Under the lock: once it is gone, smc_listen_stop() may end the handshake, but not before
	 * it has begun.
	 */
	if (peer_smc)
		smc_handshake_serve(child);
	spin_unlock_bh(&l->lock);
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
	if (!begins && l->open)
		unblock(l);
	spin_unlock_bh(&l->lock);
}

/* Puts a child among those for accept(), where it belongs. */
static void make_ready(struct smc_listener *l, struct smc_sock *child)
{
	struct smc_sock *before;

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
	struct smc_sock *lsmc = child->parent;
	struct smc_listener *l = lsmc->listener;

	spin_lock_bh(&l->lock);
	if (!l->open) {
		/*
		 * smc_listen_stop() has the child on a list of its own, and waits for the caller to
		 * return.
		 */
		spin_unlock_bh(&l->lock);
		return;
	}
	if (child->held)
		WRITE_ONCE(l->running_n, l->running_n - 1);
	child->stepping = false;
	if (keep) {
		hold(lsmc, child);
		make_ready(l, child);
		l->blocked = true;
	} else {
		unhold(lsmc, child);
		list_del_init(&child->child);
	}
	unblock(l);
	spin_unlock_bh(&l->lock);
	if (!keep)
		drop(child);
}

/*
 * smc_listen_defer() - a child waits for data, for as long as the application wants. Such ones do
 * not count for the backlog, with TCP neither. Does not sleep.
 */
void smc_listen_defer(struct smc_sock *child)
{
	struct smc_listener *l = child->parent->listener;

	spin_lock_bh(&l->lock);
	if (l->open && child->held) {
		unhold(child->parent, child);
		WRITE_ONCE(l->running_n, l->running_n - 1);
	}
	spin_unlock_bh(&l->lock);
}

/**
 * smc_listen_take() - the first connection that is ready
 * @lsmc: the listener's record
 * @blocked: set to whether an earlier one is about to be; there will be a wakeup
 *
 * Does not sleep. Return: its record, which is the caller's then, with its socket of no one's; NULL
 * if there is none.
 */
struct smc_sock *smc_listen_take(struct smc_sock *lsmc, bool *blocked)
{
	struct smc_listener *l = lsmc->listener;
	struct smc_sock *child;

	spin_lock_bh(&l->lock);
	child = first(l, blocked);
	if (child) {
		list_del_init(&child->child);
		unhold(lsmc, child);
	}
	spin_unlock_bh(&l->lock);
	return child;
}

/*
 * The worker has moved a connection. Who has looked for it meanwhile has to look again. Nobody else:
 * to a poller, one more wakeup would be one more edge.
 */
static void moved(struct smc_listener *l)
{
	struct sock *lsk = l->smc->sk;

	smp_store_release(&l->moving, false);
	smp_mb(); /* pairs with that in smc_listen_ready() */
	if (xchg(&l->missed, false))
		READ_ONCE(lsk->sk_data_ready)(lsk);
}

/* Moves the first connection of TCP's accept queue. Return: false if there is none, or no memory. */
static bool move(struct smc_listener *l)
{
	struct socket *lsock = l->smc->sock, *sock = empty_pot(l->smc->sk);
	struct proto_accept_arg arg = { .flags = O_NONBLOCK };

	if (!sock) {
		queue_delayed_work(smc_net_wq, &l->drain, HZ / 10);
		return false;
	}
	/* TCP's lock around its queue makes this visible to who finds the connection gone from it. */
	WRITE_ONCE(l->moving, true);
	if (smc_compat_accept(sock->ops, lsock, sock, &arg)) {
		moved(l);
		sock_release(sock);
		return false;
	}
	smc_listen_begin(l->smc, sock, smc_synopt_claim(sock->sk));
	moved(l);
	return true;
}

/* Takes everything out of TCP's accept queue, for an application that does not come for it. */
static void drain(struct work_struct *work)
{
	struct smc_listener *l = container_of(to_delayed_work(work), struct smc_listener, drain);

	while (!reqsk_queue_empty(&inet_csk(l->smc->sk)->icsk_accept_queue) && move(l))
		cond_resched();
}

/* On the listener's wait queue: TCP has put something into its accept queue. Any context. */
static int wake(struct wait_queue_entry *wait, unsigned int mode, int flags, void *key)
{
	struct smc_listener *l = container_of(wait, struct smc_sock, wait)->listener;

	if (!reqsk_queue_empty(&inet_csk(l->smc->sk)->icsk_accept_queue))
		queue_delayed_work(smc_net_wq, &l->drain, DRAIN_DELAY);
	return 0;
}

static struct smc_listener *listener_of(struct smc_sock *smc)
{
	struct smc_listener *l;

	if (smc->listener)
		return smc->listener;
	l = kzalloc(sizeof(*l), GFP_KERNEL_ACCOUNT);
	if (!l)
		return NULL;
	spin_lock_init(&l->lock);
	INIT_LIST_HEAD(&l->running);
	INIT_LIST_HEAD(&l->ready);
	INIT_DELAYED_WORK(&l->drain, drain);
	l->smc = smc;
	/* Two threads may call listen() at once. */
	if (cmpxchg(&smc->listener, NULL, l))
		kfree(l);
	return smc->listener;
}

/* TCP listens. So do we, unless another thread has ended it, or has given the socket to TCP. */
static bool start(struct smc_sock *smc)
{
	struct smc_listener *l = smc->listener;
	bool mine;

	lock_sock(smc->sk);
	spin_lock_bh(&l->lock);
	spin_lock(&smc->lock);
	mine = !l->open && smc->sk->sk_state == TCP_LISTEN && smc->phase != SMC_PHASE_TCP;
	if (mine) {
		l->open = true;
		smc_handshake_phase(smc, SMC_PHASE_LISTEN);
		smc_synopt_port_add(smc, &l->port);
	}
	spin_unlock(&smc->lock);
	spin_unlock_bh(&l->lock);
	release_sock(smc->sk);
	return mine;
}

static int begin(struct smc_sock *smc, struct socket *sock, int backlog)
{
	int rc;

	rc = smc_handshake_arm(smc);
	if (rc)
		return rc;
	rc = smc_ops_of_tcp(smc->sk)->listen(sock, backlog);
	if (rc) {
		if (READ_ONCE(smc->phase) == SMC_PHASE_OPEN)
			smc_handshake_disarm(smc);
		return rc;
	}
	/* A connection attempt that failed may have left its entry there. */
	smc_handshake_unwatch(smc);
	smc->sock = sock;
	if (!start(smc))
		return 0;
	smc_handshake_watch(smc, sock, wake);
	/* What came before that went unnoticed. */
	queue_delayed_work(smc_net_wq, &smc->listener->drain, 0);
	return 0;
}

/**
 * smc_listen() - listen(2)
 * @sock: the socket
 * @backlog: how many connections may wait for accept(), those in their handshake included
 *
 * May sleep. Return: as TCP would.
 */
int smc_listen(struct socket *sock, int backlog)
{
	const struct proto_ops *tcp = smc_ops_of_tcp(sock->sk);
	struct smc_sock *smc = smc_table_make(sock);
	int rc;

	if (!smc || !listener_of(smc))
		return -ENOMEM;
	mutex_lock(&smc->gate);
	/* Someone may have ended TCP's listening from outside, as ss -K does. */
	if (inet_sk_state_load(sock->sk) != TCP_LISTEN)
		smc_listen_stop(smc);
	if (READ_ONCE(smc->phase) == SMC_PHASE_TCP || READ_ONCE(smc->phase) == SMC_PHASE_LISTEN)
		rc = tcp->listen(sock, backlog);
	else
		rc = begin(smc, sock, backlog);
	mutex_unlock(&smc->gate);
	return rc;
}

/* Closes the door. Return: the children that were inside are on the list. */
static void close(struct smc_sock *smc, struct list_head *children)
{
	struct smc_listener *l = smc->listener;

	spin_lock_bh(&l->lock);
	if (l->open) {
		l->open = false;
		smc_synopt_port_del(&l->port);
		spin_lock(&smc->lock);
		smc_handshake_phase(smc, SMC_PHASE_OPEN);
		spin_unlock(&smc->lock);
		list_splice_init(&l->running, children);
		list_splice_init(&l->ready, children);
		count(smc->sk, -(int)l->held);
		l->held = 0;
		l->running_n = 0;
	}
	spin_unlock_bh(&l->lock);
}

/**
 * smc_listen_stop() - ends listening, before TCP does
 * @smc: record of any socket; nothing happens if it does not listen
 *
 * May sleep. Children in their handshake and those that nobody has accepted are reset, as TCP
 * resets those in its queue. First no new ones: the hooks, the worker and accept() find the
 * listener closed. Then each child is ours alone once its handshake has been stopped. The caller
 * holds the gate until TCP has stopped listening, too, so that no listen() opens the door in
 * between.
 */
void smc_listen_stop(struct smc_sock *smc)
{
	struct smc_sock *child, *next;
	LIST_HEAD(children);

	lockdep_assert_held(&smc->gate);
	if (!READ_ONCE(smc->listener))
		return;
	close(smc, &children);
	smc_handshake_unwatch(smc);
	cancel_delayed_work_sync(&smc->listener->drain);
	if (READ_ONCE(smc->phase) == SMC_PHASE_OPEN)
		smc_handshake_disarm(smc);
	list_for_each_entry_safe(child, next, &children, child) {
		list_del_init(&child->child);
		smc_handshake_stop(child);
		drop(child);
	}
}

/*
 * smc_listen_free() - the record of a socket goes, and with it what it was as a listener. Any
 * context.
 */
void smc_listen_free(struct smc_sock *smc)
{
	kfree(smc->listener);
}
