// SPDX-License-Identifier: GPL-2.0-only
/*
 * How a connection is set up: what drives a rendezvous, and what becomes of its socket. No thread waits
 * for a peer: an entry on the socket's wait queue starts the worker when TCP wakes the sleepers there, a
 * timer when the peer's time is up. So any number of silent peers cost their own connections and some
 * memory, and nobody else a worker.
 *
 * No callback of the TCP sock is replaced, and nothing hangs on sk_user_data. The entry is on the
 * wait queue or it is not; taking it off waits for whoever runs it. That is all there is to say
 * about lifetimes in softirq.
 */

#include <linux/sched/mm.h>
#include <net/inet_connection_sock.h>
#include <net/tcp_states.h>

#include "../conn/conn.h"
#include "../control/stats.h"
#include "../control/trace.h"
#include "../trylock.h"
#include "listener.h"

/* smc_setup_set_phase() - sets the phase. The caller holds smc->lock. */
void smc_setup_set_phase(struct smc_sock *smc, enum smc_phase phase)
{
	lockdep_assert_held(&smc->lock);
	trace_smc_phase(smc->sk, smc->phase, phase);
	WRITE_ONCE(smc->phase, phase);
}

/**
 * smc_setup_arm() - makes the option travel with the socket's SYN or SYN-ACK
 * @smc: the socket's record
 *
 * May sleep. Return: 0 or -ENOMEM.
 */
int smc_setup_arm(struct smc_sock *smc)
{
	struct smc_net *sn = smc_net(sock_net(smc->sk));
	bool twice;
	int rc;

	might_sleep();
	if (READ_ONCE(smc->armed))
		return 0;
	rc = smc_synopt_get(sn);
	if (rc)
		return rc;
	spin_lock_bh(&smc->lock);
	twice = smc->armed || smc->phase >= SMC_PHASE_TCP;
	if (!twice)
		smc->armed = true;
	spin_unlock_bh(&smc->lock);
	if (twice)
		smc_synopt_put(sn);
	return 0;
}

/* smc_setup_disarm() - undoes arm. Does not sleep. */
void smc_setup_disarm(struct smc_sock *smc)
{
	bool armed;

	if (!READ_ONCE(smc->armed))
		return;
	spin_lock_bh(&smc->lock);
	armed = smc->armed;
	smc->armed = false;
	spin_unlock_bh(&smc->lock);
	if (armed)
		smc_synopt_put(smc_net(sock_net(smc->sk)));
}

/**
 * smc_setup_watch() - lets TCP's wakeups on a socket start something
 * @smc: the record
 * @sock: the socket; it may not be released before smc_setup_unwatch()
 * @fn: what to start; called with the wait queue locked, in any context
 */
void smc_setup_watch(struct smc_sock *smc, struct socket *sock, wait_queue_func_t fn)
{
	bool watching;

	spin_lock_bh(&smc->lock);
	/* One that has fallen back meanwhile is left alone. */
	watching = smc->watching || smc->phase >= SMC_PHASE_TCP;
	if (!watching) {
		smc->watching = true;
		smc->sock = sock;
		init_waitqueue_func_entry(&smc->wait, fn);
		add_wait_queue(&sock->wq.wait, &smc->wait);
	}
	spin_unlock_bh(&smc->lock);
}

/*
 * smc_setup_unwatch_locked() - undoes watch; fn does not run any more when it returns. Under
 * smc->lock.
 */
void smc_setup_unwatch_locked(struct smc_sock *smc)
{
	lockdep_assert_held(&smc->lock);
	if (smc->watching)
		remove_wait_queue(&smc->sock->wq.wait, &smc->wait);
	smc->watching = false;
}

/* smc_setup_unwatch() - the same for who does not hold the lock. Does not sleep. */
void smc_setup_unwatch(struct smc_sock *smc)
{
	spin_lock_bh(&smc->lock);
	smc_setup_unwatch_locked(smc);
	spin_unlock_bh(&smc->lock);
}

/* Has the worker run, soon. Who never had it run need not wait for it in the end. */
static void start_work(struct smc_sock *smc)
{
	WRITE_ONCE(smc->started, true);
	mod_delayed_work(smc_net_wq, &smc->work, 0);
}

/*
 * smc_setup_wake() - for the wait queue of a socket that connects or is in its handshake. While
 * TCP connects, only a peer with SMC is of interest: the others are found out by whoever looks at
 * the socket.
 */
int smc_setup_wake(struct wait_queue_entry *wait, unsigned int mode, int flags, void *key)
{
	struct smc_sock *smc = container_of(wait, struct smc_sock, wait);

	/* A thread that waits for TCP comes by itself; once CLC messages pass, the worker is needed. */
	if (READ_ONCE(smc->attended) && READ_ONCE(smc->phase) == SMC_PHASE_CONNECT)
		return 0;
	if (READ_ONCE(smc->opt.peer_smc))
		start_work(smc);
	return 0;
}

/*
 * smc_setup_start_client() - TCP is connected to a peer with SMC: the worker's turn. Not if
 * smc_setup_stop() has come first, which waits for the worker once. Does not sleep.
 */
void smc_setup_start_client(struct smc_sock *smc)
{
	spin_lock_bh(&smc->lock);
	if (smc->phase == SMC_PHASE_CONNECT)
		start_work(smc);
	spin_unlock_bh(&smc->lock);
}

/*
 * smc_setup_notify() - a client's outcome is known
 *
 * Everyone who waits for it looks again; so do pollers, edge-triggered ones included. The caller
 * holds smc->lock, under which the outcome has been set: who finds it in between would have one edge
 * too many.
 */
void smc_setup_notify(struct smc_sock *smc)
{
	struct sock *sk = smc->sk;

	lockdep_assert_held(&smc->lock);
	READ_ONCE(sk->sk_state_change)(sk);
	sk_wake_async(sk, SOCK_WAKE_IO, POLL_OUT);
}

/*
 * smc_setup_inline() - TCP is connected, and the thread in connect() is to wait anyhow: if the
 * peer is in this kernel, it does what the worker would, and nobody has to be woken. The caller
 * holds state_mutex. May sleep.
 */
void smc_setup_inline(struct smc_sock *smc)
{
	bool mine;

	lockdep_assert_held(&smc->state_mutex);
	might_sleep();
	spin_lock_bh(&smc->lock);
	mine = smc->phase == SMC_PHASE_CONNECT && smc->opt.peer_smc &&
	       inet_sk_state_load(smc->sk) == TCP_ESTABLISHED;
	if (mine) {
		smc_setup_set_phase(smc, SMC_PHASE_RENDEZVOUS);
		smc->inline_busy = true;
	}
	spin_unlock_bh(&smc->lock);
	if (!mine)
		return;
	if (smc_local_connect(smc, false))
		return;
	spin_lock_bh(&smc->lock);
	smc->inline_busy = false;
	if (smc->phase == SMC_PHASE_RENDEZVOUS)
		start_work(smc);
	spin_unlock_bh(&smc->lock);
}

/*
 * smc_setup_start_server() - begins the handshake of a listener's child. The caller has put the child on the
 * listener's list.
 */
void smc_setup_start_server(struct smc_sock *child)
{
	lockdep_assert_held(&child->parent->listener->lock);
	spin_lock(&child->lock);
	smc_setup_set_phase(child, SMC_PHASE_RENDEZVOUS);
	spin_unlock(&child->lock);
	smc_setup_watch(child, child->sock, smc_setup_wake);
	start_work(child);
}

/*
 * smc_setup_free() - drops the state of a rendezvous. Only its worker, or who has stopped that.
 * May sleep.
 */
void smc_setup_free(struct smc_sock *smc)
{
	might_sleep();
	if (smc->rv)
		smc_rendezvous_free(smc->rv);
	smc->rv = NULL;
}

/*
 * smc_setup_stop() - the socket is closed, or disconnected. May sleep, until a running worker
 * has noticed. Afterwards the phase is OPEN, or what it was if the outcome was known already.
 */
void smc_setup_stop(struct smc_sock *smc)
{
	might_sleep();
	/* From here on nobody starts the worker, and what it has under way changes nothing. */
	spin_lock_bh(&smc->lock);
	if (smc->phase == SMC_PHASE_CONNECT || smc->phase == SMC_PHASE_RENDEZVOUS)
		smc_setup_set_phase(smc, SMC_PHASE_OPEN);
	smc->opt.peer_smc = false;
	smc->stopped = true;
	smc_setup_unwatch_locked(smc);
	spin_unlock_bh(&smc->lock);
	if (READ_ONCE(smc->started))
		cancel_delayed_work_sync(&smc->work);
	smc_setup_free(smc);
	/* A transport may have called again until that was over. */
	if (READ_ONCE(smc->started))
		cancel_delayed_work_sync(&smc->work);
	smc->failed = 0;
	smc->retry = 0;
	smc_setup_disarm(smc);
}

/* Is it the worker's turn? Makes a client that TCP has connected one that is in its rendezvous. */
static bool work_is_due(struct smc_sock *smc)
{
	int state = inet_sk_state_load(smc->sk);
	bool mine;

	spin_lock_bh(&smc->lock);
	if (smc->phase == SMC_PHASE_CONNECT && smc->opt.peer_smc && state != TCP_SYN_SENT &&
	    state != TCP_SYN_RECV && state != TCP_CLOSE)
		smc_setup_set_phase(smc, SMC_PHASE_RENDEZVOUS);
	/* A child whose outcome is known may have to wait for data still. */
	mine = (smc->phase == SMC_PHASE_RENDEZVOUS && !smc->inline_busy) ||
	       (smc->awaits_data && smc_sock_is_child(smc) && !smc->stopped);
	spin_unlock_bh(&smc->lock);
	return mine;
}

/* The client's outcome is a failure; connect() may be called again. */
static void fail_attempt(struct smc_sock *smc, int rc)
{
	struct sock *sk = smc->sk;
	bool mine, armed = false;

	sock_owned_by_me(sk);
	if (READ_ONCE(smc->phase) == SMC_PHASE_RENDEZVOUS) {
		sk->sk_prot->disconnect(sk, O_NONBLOCK);
		smc->sock->state = SS_UNCONNECTED;
		WRITE_ONCE(sk->sk_err, -rc);
	}
	/* Who sees the phase change may connect again, or listen, at once: so this comes last. */
	spin_lock_bh(&smc->lock);
	mine = smc->phase == SMC_PHASE_RENDEZVOUS;
	if (mine) {
		smc_setup_unwatch_locked(smc);
		armed = smc->armed;
		smc->armed = false;
		smc->err = rc;
		smc->opt.peer_smc = false;
		smc_setup_set_phase(smc, SMC_PHASE_OPEN);
		smc_setup_notify(smc);
	}
	spin_unlock_bh(&smc->lock);
	if (mine)
		sk_error_report(sk);
	if (armed)
		smc_synopt_put(smc_net(sock_net(sk)));
}

/*
 * A client's connection is as broken as if TCP had failed to connect. It is reset once the sock's lock
 * is free.
 */
static void fail_client(struct smc_sock *smc)
{
	struct sock *sk = smc->sk;
	int rc = smc->failed;

	if (!smc_sock_trylock_retry(sk, &smc->retry)) {
		queue_delayed_work(smc_net_wq, &smc->work, smc->retry);
		return;
	}
	smc->failed = 0;
	/*
	 * Shut down by the application while TCP was about to be connected: to it, no different
	 * from the peer's doing.
	 */
	fail_attempt(smc, rc == -EPIPE ? -ECONNRESET : rc);
	release_sock(sk);
}

/* A child is in accept()'s hands, or gone, when this returns. */
static void finish_child(struct smc_sock *child, int rc)
{
	smc_setup_unwatch(child);
	/*
	 * The peer may have made us run once more; there is nothing left to do, and perhaps no
	 * record either.
	 */
	cancel_delayed_work(&child->work);
	smc_listen_finish(child, !rc);
}

/*
 * TCP wakes nobody for less than SO_RCVLOWAT, which the application has set with its own data in
 * mind: so we look.
 */
static unsigned long poll_interval(const struct smc_sock *smc)
{
	return READ_ONCE(smc->sk->sk_rcvlowat) > 1 ? HZ / 20 : MAX_JIFFY_OFFSET;
}

/*
 * TCP_DEFER_ACCEPT is counted in repetitions of the SYN-ACK: 1, 2, 4 … seconds. Return: jiffies, 0
 * if it is not set.
 */
static unsigned long defer_time(const struct smc_sock *child)
{
	unsigned int n = READ_ONCE(inet_csk(child->parent->sk)->icsk_accept_queue.rskq_defer_accept);

	return n ? ((1UL << min(n, 6U)) - 1) * HZ : 0;
}

static bool has_no_data(const struct smc_sock *child)
{
	/* A child's is not taken from it before accept() has it. */
	const struct smc_conn *conn = rcu_access_pointer(child->conn);
	const struct sock *sk = child->sk;

	if (conn)
		return !smc_conn_readable(conn);
	return inet_sk_state_load(sk) == TCP_ESTABLISHED && skb_queue_empty_lockless(&sk->sk_receive_queue);
}

/* Gives a client what has come of its rendezvous. Return: -ECANCELED if the application has given up meanwhile. */
static int apply_client(struct smc_sock *smc, enum smc_outcome outcome)
{
	struct smc_rendezvous *rv = smc->rv;
	bool mine;

	if (outcome == SMC_OUTCOME_TCP) {
		mine = smc_fallback_take(smc, smc->sock, SMC_PHASE_RENDEZVOUS, rv->reason, rv->peer_diagnosis);
	} else {
		mine = smc_active_take(smc, smc->sock, rv->offer.conn);
		rv->offer.conn = NULL;
	}
	return mine ? 0 : -ECANCELED;
}

/*
 * Gives a child what has come of its rendezvous. A listener that wants connections only once there is data
 * did not mean the handshake's, for which TCP has let this one through. Return: -EINPROGRESS if the child
 * waits for that.
 */
static int apply_server(struct smc_sock *child, enum smc_outcome outcome)
{
	struct smc_rendezvous *rv = child->rv;
	unsigned long delay = defer_time(child);

	if (outcome == SMC_OUTCOME_TCP) {
		smc_fallback_child(child, rv->reason, rv->peer_diagnosis);
	} else {
		smc_active_child(child, rv->offer.conn);
		smc_conn_count(rv->offer.conn);
		rv->offer.conn = NULL;
	}
	if (!delay || !has_no_data(child) || !smc_listen_defer(child))
		return 0;
	/* Others wait for what comes of a link group that this has begun to form. */
	smc_setup_free(child);
	child->awaits_data = true;
	child->data_deadline = jiffies + delay;
	return -EINPROGRESS;
}

/* One step. Return: 0 if the socket has its outcome, -EINPROGRESS if it has not, else why the connection breaks. */
static int take_step(struct smc_sock *smc, bool server)
{
	int rc;

	if (smc->awaits_data)
		return has_no_data(smc) && time_before(jiffies, smc->data_deadline) ? -EINPROGRESS : 0;
	if (!smc->rv) {
		if (!server && smc_local_connect(smc, true))
			return 0;
		smc->rv = smc_rendezvous_new(smc->sk, server, &smc->work);
		if (!smc->rv)
			return -ENOMEM;
	}
	rc = smc_rendezvous_step(smc->rv);
	if (rc <= 0)
		return rc;
	return server ? apply_server(smc, rc) : apply_client(smc, rc);
}

/* Who pays for what a rendezvous allocates: as with TCP, the control group that the socket is of. */
static struct mem_cgroup *charged_memcg(const struct smc_sock *smc)
{
#ifdef CONFIG_MEMCG
	/* A child that a worker has accepted is of none itself. */
	return smc_sock_is_child(smc) ? smc->parent->sk->sk_memcg : smc->sk->sk_memcg;
#else
	return NULL;
#endif
}

/* When the worker runs again, if nothing happens before; in jiffies. */
static unsigned long delay_of(const struct smc_sock *smc)
{
	unsigned long deadline = smc->rv ? smc->rv->deadline : smc->data_deadline;
	long left = max((long)(deadline - jiffies), 0L);

	if (smc->rv && smc->rv->retry)
		return smc->rv->retry;
	return min_t(unsigned long, left, poll_interval(smc));
}

/* The outcome is known: 0, or why the connection breaks. */
static void finish_setup(struct smc_sock *smc, bool server, int rc)
{
	trace_smc_rendezvous(smc->sk, server, rc);
	if (rc)
		smc_stats_handshake_error(smc_net(sock_net(smc->sk)), server);
	smc->awaits_data = false;
	/* Before the sock's lock is free: others may wait for what the transport holds for this one. */
	smc_setup_free(smc);
	if (server) {
		finish_child(smc, rc);
	} else if (rc) {
		smc->failed = rc;
		fail_client(smc);
	}
}

static void setup_work(struct work_struct *w)
{
	struct smc_sock *smc = container_of(to_delayed_work(w), struct smc_sock, work);
	struct mem_cgroup *old;
	bool server;
	int rc;

	if (!work_is_due(smc))
		return;
	if (smc->failed) {
		fail_client(smc);
		return;
	}
	server = smc_sock_is_child(smc); /* accept() may have it when finish_child() returns */
	if (server)
		smc_listen_step(smc, true);
	old = set_active_memcg(charged_memcg(smc));
	rc = take_step(smc, server);
	set_active_memcg(old);
	if (rc != -EINPROGRESS) {
		finish_setup(smc, server, rc);
		return;
	}
	if (server)
		smc_listen_step(smc, false);
	/* No change if the peer has just made us run again. */
	queue_delayed_work(smc_net_wq, &smc->work, delay_of(smc));
}

/* smc_setup_prepare() - of a fresh record. */
void smc_setup_prepare(struct smc_sock *smc)
{
	INIT_DELAYED_WORK(&smc->work, setup_work);
}
