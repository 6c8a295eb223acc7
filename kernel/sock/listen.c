// SPDX-License-Identifier: GPL-2.0-only
/*
 * The listening side. Connections come out of TCP's accept queue. Those from peers without SMC stay in it until
 * accept() takes them, as in TCP. The first thread that sees a connection from a peer with SMC takes it out, so
 * that its handshake can begin: accept(), a worker that poll() starts, or, if the application calls neither, the
 * same worker after DRAIN_DELAY. The connection counts for the backlog until the application has accepted it, but
 * in our own count, see smc_synopt_port_full(): sk_ack_backlog has to be the length of TCP's queue, because TCP
 * warns of anything else when an administrator ends the listener.
 */

#include <linux/slab.h>
#include <net/inet_connection_sock.h>
#include <net/tcp_states.h>

#include "../trylock.h"
#include "../wire/reason.h"
#include "listener.h"

/* How long the worker leaves a connection to an application that neither accepts nor polls. */
#define DRAIN_DELAY msecs_to_jiffies(10)

/* Makes a placeholder: an empty socket that no application has, for a connection of the same family. NULL without memory. */
static struct socket *new_placeholder(const struct sock *sk)
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
 * smc_listen_detach_sock() - takes the sock out of a socket, as before accept(). TCP may still use the socket's wait
 * queue for a grace period; a socket is freed after one. Takes the sock's lock.
 */
struct sock *smc_listen_detach_sock(struct socket *sock)
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

/*
 * smc_listen_set_aside() - moves a connection that TCP's accept() has returned from the application's socket to a
 * placeholder. Return: NULL without memory; then nothing has changed.
 */
struct socket *smc_listen_set_aside(struct socket *newsock)
{
	struct socket *sock = new_placeholder(newsock->sk);

	might_sleep();
	if (!sock)
		return NULL;
	smc_sock_copy_zc(newsock, sock);
	sock->state = SS_CONNECTED;
	sock_graft(smc_listen_detach_sock(newsock), sock);
	return sock;
}

/* Resets a connection that no application has. */
static void drop_sock(struct socket *sock)
{
	sock_no_linger(sock->sk);
	sock_release(sock);
}

/* smc_listen_drop() - resets a child that no application has, and frees it. */
void smc_listen_drop(struct smc_sock *child)
{
	struct socket *sock = child->sock;

	might_sleep();
	smc_setup_unwatch(child);
	smc_setup_free(child);
	/* TCP first, so that the peer gets one reset and no message. */
	drop_sock(sock);
	smc_active_end(child, true);
	smc_table_put(child);
}

/*
 * smc_listen_no_option() - a child is TCP because its SYN or our answer had no option. If the rules say TCP, or SMC is not possible with
 * the peer, that is the reason: we do not know whether the SYN had the option. The child has inherited the rules. Does not sleep.
 */
void smc_listen_no_option(struct smc_sock *child, const struct smc_sock *lsmc)
{
	struct smc_peers_why why = { .reason = smc_policy_child_reason(child, lsmc, SMC_REASON_PEER_NO_SMC) };

	if (why.reason == SMC_REASON_PEER_NO_SMC)
		smc_handshake_futile_sock(child->sk, SMC_PEERS_SERVER, &why);
	smc_fallback_child(child, why.reason, why.diagnosis);
}

/**
 * smc_listen_begin() - adds a connection from TCP's accept queue to ours
 * @lsmc: the listener
 * @sock: a placeholder with the connection; belongs to the listener from now on
 * @verdict: what smc_listen_collect() has returned: NULL, or an error pointer if a handshake is due
 *
 * May sleep. Resets the connection without memory or room, or if the listener has been closed.
 */
void smc_listen_begin(struct smc_sock *lsmc, struct socket *sock, const struct smc_sock *verdict)
{
	bool peer_smc = verdict, has_place = verdict == ERR_PTR(-EINPROGRESS);
	struct smc_listener *l = lsmc->listener;
	struct smc_sock *child = smc_table_new(sock->sk, GFP_KERNEL);

	might_sleep();
	if (!child) {
		if (has_place)
			smc_synopt_unreserve(&l->port);
		drop_sock(sock);
		return;
	}
	child->server = true;
	smc_policy_inherit(child, lsmc);
	child->opt.peer_smc = peer_smc;
	child->reserved = has_place;
	child->sock = sock;
	child->parent = lsmc;
	smc_table_get(lsmc);
	if (!peer_smc)
		smc_listen_no_option(child, lsmc);
	spin_lock_bh(&l->lock);
	if (!l->open || (peer_smc && !has_place && !smc_accept_queue_admit(l, child))) {
		spin_unlock_bh(&l->lock);
		smc_listen_drop(child);
		return;
	}
	/* A backlog of 0 allows one connection, and a silent peer must not use that up. */
	if (!child->deferred && (!peer_smc || READ_ONCE(lsmc->sk->sk_max_ack_backlog)))
		smc_accept_queue_arrive(l, child);
	child->seq = ++l->last_seq;
	if (peer_smc) {
		list_add_tail(&child->child, &l->running);
		/* Under the lock, so that the handshake has begun when smc_listen_stop() ends it. */
		smc_setup_start_server(child);
	} else {
		smc_accept_queue_put(l, child);
	}
	spin_unlock_bh(&l->lock);
}

/* Adds a child from TCP's queue that its client has connected to ours, with its placeholder. */
static void take_local(struct smc_sock *lsmc, struct smc_sock *child, struct socket *sock)
{
	struct smc_listener *l = lsmc->listener;

	child->sock = sock;
	spin_lock_bh(&l->lock);
	if (!l->open) {
		spin_unlock_bh(&l->lock);
		smc_listen_drop(child);
		return;
	}
	smc_accept_queue_arrive(l, child);
	child->seq = ++l->last_seq;
	smc_accept_queue_put(l, child);
	spin_unlock_bh(&l->lock);
}

/**
 * smc_listen_postpone() - queues a connection that accept() has found behind an earlier one
 * @lsmc: the listener
 * @child: the connection; its client, in this kernel, has made it ready
 * @newsock: the application's socket with the connection; empty again if this succeeds
 *
 * May sleep. Return: false if no earlier connection is about to be ready, or without memory.
 */
bool smc_listen_postpone(struct smc_sock *lsmc, struct smc_sock *child, struct socket *newsock)
{
	struct socket *sock;

	lockdep_assert_held(&lsmc->listener->accept_mutex);
	might_sleep();
	if (!smc_accept_queue_await(lsmc->listener))
		return false;
	sock = smc_listen_set_aside(newsock);
	if (!sock)
		return false;
	take_local(lsmc, child, sock);
	return true;
}

/* Counts the workers that are to look at TCP's queues: the hook on input does not leave it to TCP then whether the backlog is full. */
static void count_drains(const struct smc_listener *l, int n)
{
	atomic_add(n, &smc_net(sock_net(l->smc->sk))->synopt->moves);
}

/*
 * smc_listen_drain() - has the worker look at TCP's queue after a time, in jiffies; 0: at once, even if it has to wait already, and only while
 * no other thread can stop it. Any context.
 */
void smc_listen_drain(struct smc_listener *l, unsigned long delay)
{
	bool pending;

	count_drains(l, 1);
	if (delay)
		pending = !queue_delayed_work(smc_net_wq, &l->drain, delay);
	else
		pending = mod_delayed_work(smc_net_wq, &l->drain, 0);
	if (pending)
		count_drains(l, -1);
}

/* Gives a connection that has come out of TCP's queue to ours, with its placeholder; or resets it. */
static void receive_child(struct smc_listener *l, struct socket *sock)
{
	struct smc_sock *child = smc_listen_collect(l->smc, sock->sk);

	lockdep_assert_held(&l->accept_mutex);
	if (child == ERR_PTR(-EINVAL) || child == ERR_PTR(-EBUSY))
		drop_sock(sock);
	else if (!IS_ERR_OR_NULL(child))
		take_local(l->smc, child, sock);
	else
		smc_listen_begin(l->smc, sock, child);
}

/* Moves the first connection of TCP's accept queue to ours. Return: false if it has to wait. */
static bool move_child(struct smc_listener *l)
{
	struct socket *lsock = l->smc->sock, *sock = new_placeholder(l->smc->sk);
	int rc = -EAGAIN;

	lockdep_assert_held(&l->accept_mutex);
	if (!sock) {
		smc_listen_drain(l, HZ / 10);
		return false;
	}
	smc_accept_queue_moving(l, true);
	if (smc_listen_leave(l->smc, false))
		rc = smc_listen_dequeue(lsock, sock);
	if (!rc)
		receive_child(l, sock);
	smc_listen_left(l->smc);
	smc_accept_queue_moving(l, false);
	if (!rc)
		return true;
	sock_release(sock);
	/* If accept() has taken the child, the next one may be undecided. */
	smc_listen_drain(l, rc == -EBUSY ? SMC_TRYLOCK_RETRY : DRAIN_DELAY);
	return false;
}

/* Must connections stay in TCP's queue? Perhaps so that TCP can move them to another listener when this one is closed. */
static bool leave_queued(const struct smc_listener *l)
{
	bool leave;

	if (!smc_listener_may_promise(l))
		return true;
	rcu_read_lock();
	/* Before migration was possible, this listener, or the one it comes from, may have answered with the option. */
	leave = smc_synopt_may_migrate(l->smc->sk) && !READ_ONCE(l->port.promises) && smc_accept_queue_plain_next(l);
	rcu_read_unlock();
	return leave;
}

/*
 * Do connections outside TCP's queue alone fill the backlog? Then the next ones stay in TCP's queue, and TCP refuses
 * more when that is full. With SYN cookies the hook on input has not counted them. Handshakes use half of the
 * backlog at most, so there are connections that accept() can take.
 */
static bool backlog_is_full(const struct smc_listener *l)
{
	return atomic_read(&l->port.held) > READ_ONCE(l->smc->sk->sk_max_ack_backlog);
}

/* Moves connections from TCP's accept queue to ours, for an application that does not accept them. */
static void drain_queue(struct smc_listener *l)
{
	bool more;

	while (!reqsk_queue_empty(&inet_csk(l->smc->sk)->icsk_accept_queue) && !leave_queued(l)) {
		if (!smc_listen_pending(l->smc)) {
			smc_listen_drain(l, DRAIN_DELAY);
			return;
		}
		if (backlog_is_full(l)) {
			smc_listen_drain(l, HZ / 10);
			return;
		}
		/* accept() has the mutex, and may wait for the lock of the listener's sock. */
		if (!mutex_trylock(&l->accept_mutex)) {
			smc_listen_drain(l, DRAIN_DELAY);
			return;
		}
		more = move_child(l);
		mutex_unlock(&l->accept_mutex);
		if (!more)
			return;
		cond_resched();
	}
}

static void drain_work(struct work_struct *work)
{
	struct smc_listener *l = container_of(to_delayed_work(work), struct smc_listener, drain);

	drain_queue(l);
	count_drains(l, -1);
}

/* Called by the listener's wait queue: TCP has put a connection into its accept queue. Any context. */
static int queue_drain(struct wait_queue_entry *wait, unsigned int mode, int flags, void *key)
{
	struct smc_listener *l = container_of(wait, struct smc_sock, wait)->listener;

	if (smc_listener_may_promise(l) && !reqsk_queue_empty(&inet_csk(l->smc->sk)->icsk_accept_queue))
		smc_listen_drain(l, DRAIN_DELAY);
	return 0;
}

static struct smc_listener *make_listener(struct smc_sock *smc)
{
	struct smc_listener *l;

	if (smc->listener)
		return smc->listener;
	l = kzalloc(sizeof(*l), GFP_KERNEL_ACCOUNT);
	if (!l)
		return NULL;
	mutex_init(&l->accept_mutex);
	smc_accept_queue_init(l);
	INIT_DELAYED_WORK(&l->drain, drain_work);
	l->smc = smc;
	l->sn = smc_net(sock_net(smc->sk));
	/* Two threads may call listen() at once. */
	if (cmpxchg(&smc->listener, NULL, l))
		kfree(l);
	return smc->listener;
}

/* Begins to listen, unless another thread has ended TCP's listening, or has made the socket TCP. */
static bool open_listener(struct smc_sock *smc)
{
	struct smc_listener *l = smc->listener;
	bool mine;

	lock_sock(smc->sk);
	spin_lock_bh(&l->lock);
	spin_lock(&smc->lock);
	mine = !l->open && smc->sk->sk_state == TCP_LISTEN && smc->phase < SMC_PHASE_TCP;
	if (mine) {
		WRITE_ONCE(l->open, true);
		smc_setup_set_phase(smc, SMC_PHASE_LISTEN);
		smc_synopt_port_open(&l->port);
	}
	spin_unlock(&smc->lock);
	spin_unlock_bh(&l->lock);
	release_sock(smc->sk);
	return mine;
}

static int begin_listening(struct smc_sock *smc, struct socket *sock, int backlog)
{
	int rc;

	lockdep_assert_held(&smc->state_mutex);
	rc = smc_synopt_port_register(&smc->listener->port, smc->sk, &smc->opt);
	if (!rc)
		rc = smc_setup_arm(smc);
	if (rc)
		return rc;
	rc = smc_ops_of_tcp(smc->sk)->listen(sock, backlog);
	if (rc) {
		if (READ_ONCE(smc->phase) == SMC_PHASE_OPEN)
			smc_setup_disarm(smc);
		return rc;
	}
	/* A failed attempt to connect may have left its entry on the wait queue. */
	smc_setup_unwatch(smc);
	smc->sock = sock;
	if (!open_listener(smc))
		return 0;
	smc_setup_watch(smc, sock, queue_drain);
	/* Connections may have come before the watch. */
	smc_listen_drain(smc->listener, 0);
	return 0;
}

/*
 * listen() after connect(). Fails while the socket connects or is connected, as TCP's does. Cleans up a failed
 * attempt before TCP listens, so that a thread that calls connect() at the same time cannot make a listening
 * socket ACTIVE. Return: 0 or -EINVAL.
 */
static int stop_failed_connect(struct smc_sock *smc)
{
	lockdep_assert_held(&smc->state_mutex);
	switch (READ_ONCE(smc->phase)) {
	case SMC_PHASE_CONNECT:
		return smc_setup_stop_failed(smc) ? 0 : -EINVAL;
	case SMC_PHASE_RENDEZVOUS:
	case SMC_PHASE_ACTIVE:
		return -EINVAL;
	default:
		return 0;
	}
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

	might_sleep();
	if (!smc || !make_listener(smc))
		return -ENOMEM;
	mutex_lock(&smc->state_mutex);
	/* Something like ss -K may have ended TCP's listening. */
	if (inet_sk_state_load(sock->sk) != TCP_LISTEN)
		smc_listen_stop(smc);
	rc = stop_failed_connect(smc);
	if (rc)
		goto out;
	if (READ_ONCE(smc->phase) == SMC_PHASE_OPEN)
		rc = smc_policy_listen(smc, sock);
	if (rc)
		goto out;
	if (READ_ONCE(smc->phase) == SMC_PHASE_TCP || READ_ONCE(smc->phase) == SMC_PHASE_LISTEN)
		rc = tcp->listen(sock, backlog);
	else
		rc = begin_listening(smc, sock, backlog);
out:
	mutex_unlock(&smc->state_mutex);
	return rc;
}

/* Ends listening, and moves the children that were not accepted to the list. */
static void close_listener(struct smc_sock *smc, struct list_head *children)
{
	struct smc_listener *l = smc->listener;

	spin_lock_bh(&l->lock);
	if (l->open) {
		WRITE_ONCE(l->open, false);
		smc_synopt_port_close(&l->port);
		spin_lock(&smc->lock);
		smc_setup_set_phase(smc, SMC_PHASE_OPEN);
		spin_unlock(&smc->lock);
		list_splice_init(&l->running, children);
		list_splice_init(&l->ready, children);
		list_splice_init(&l->plain, children);
		list_splice_init(&l->local, children);
		smc_accept_queue_uncount(l);
	}
	spin_unlock_bh(&l->lock);
}

/**
 * smc_listen_stop() - ends listening, before TCP does
 * @smc: any socket; nothing happens if it does not listen
 *
 * May sleep. Resets the children in their handshake and those that nobody has accepted, as TCP resets those in its
 * queue. First the listener is closed for the hooks, the worker and accept(), so that no new children come. Then
 * no other thread uses a child once its handshake has been stopped. The caller holds state_mutex until TCP has
 * stopped listening, too, so that no listen() begins in between.
 */
void smc_listen_stop(struct smc_sock *smc)
{
	struct smc_sock *child, *next;
	LIST_HEAD(children);

	lockdep_assert_held(&smc->state_mutex);
	might_sleep();
	if (!READ_ONCE(smc->listener))
		return;
	close_listener(smc, &children);
	smc_setup_unwatch(smc);
	if (cancel_delayed_work_sync(&smc->listener->drain))
		count_drains(smc->listener, -1);
	cancel_delayed_work_sync(&smc->listener->release);
	if (READ_ONCE(smc->phase) == SMC_PHASE_OPEN)
		smc_setup_disarm(smc);
	list_for_each_entry_safe(child, next, &children, child) {
		list_del_init(&child->child);
		if (!child->sock) {
			/* It is in TCP's queue, and TCP resets it. */
			smc_active_end(child, true);
			smc_table_remove(child);
			continue;
		}
		smc_setup_stop(child);
		smc_listen_drop(child);
	}
}

/* smc_listen_unregister() - the last user of a socket has gone: hooks do not find it any more. Any context but hardirq. */
void smc_listen_unregister(struct smc_sock *smc)
{
	if (smc->listener)
		smc_synopt_port_unregister(&smc->listener->port);
}

/* smc_listen_free() - frees the listener's part of a socket. Any context. */
void smc_listen_free(struct smc_sock *smc)
{
	kfree(smc->listener);
}
