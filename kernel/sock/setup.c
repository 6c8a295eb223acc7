// SPDX-License-Identifier: GPL-2.0-only
/*
 * Connection setup: the worker that takes the steps of a rendezvous, and gives the socket its outcome. No thread
 * waits for a peer: an entry on the socket's wait queue starts the worker when TCP wakes sleepers, and a timer
 * when the peer is late. So silent peers cost their own connections and some memory, but no worker.
 *
 * No callback of the TCP sock is replaced, and sk_user_data is not used. Removing the entry from the wait queue
 * waits for a softirq that runs it.
 */

#include <linux/sched/mm.h>
#include <net/inet_connection_sock.h>
#include <net/tcp_states.h>

#include "../conn/conn.h"
#include "../control/memory.h"
#include "../control/stats.h"
#include "../control/trace.h"
#include "../trylock.h"
#include "listener.h"

/* Counts a socket for the hooks of the option, which look for the answer to its SYN. */
static void count_connecting(const struct smc_sock *smc, int n)
{
	atomic_add(n, &smc_net(sock_net(smc->sk))->synopt->connecting);
}

/* smc_setup_set_phase() - sets the phase. */
void smc_setup_set_phase(struct smc_sock *smc, enum smc_phase phase)
{
	lockdep_assert_held(&smc->lock);
	if (phase == SMC_PHASE_CONNECT && smc->phase != SMC_PHASE_CONNECT)
		count_connecting(smc, 1);
	if (phase != SMC_PHASE_CONNECT && smc->phase == SMC_PHASE_CONNECT)
		count_connecting(smc, -1);
	trace_smc_phase(smc->sk, smc->phase, phase);
	smp_store_release(&smc->phase, phase); /* pairs with conn_get() */
}

/**
 * smc_setup_arm() - registers the hooks that put the option into the socket's SYN or SYN-ACKs
 * @smc: the socket
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
 * smc_setup_watch() - calls a function when TCP wakes the sleepers of a socket
 * @smc: of the socket
 * @sock: the socket; it may not be released before smc_setup_unwatch()
 * @fn: called with the wait queue locked, in any context
 */
void smc_setup_watch(struct smc_sock *smc, struct socket *sock, wait_queue_func_t fn)
{
	bool watching;

	spin_lock_bh(&smc->lock);
	/* Another thread may have made the socket TCP. */
	watching = smc->watching || smc->phase >= SMC_PHASE_TCP;
	if (!watching) {
		smc->watching = true;
		smc->sock = sock;
		init_waitqueue_func_entry(&smc->wait, fn);
		add_wait_queue(&sock->wq.wait, &smc->wait);
	}
	spin_unlock_bh(&smc->lock);
}

/* smc_setup_unwatch_locked() - undoes smc_setup_watch(); fn does not run any more when it returns. */
void smc_setup_unwatch_locked(struct smc_sock *smc)
{
	lockdep_assert_held(&smc->lock);
	if (smc->watching)
		remove_wait_queue(&smc->sock->wq.wait, &smc->wait);
	smc->watching = false;
}

/* smc_setup_unwatch() - the same, and takes smc->lock. Does not sleep. */
void smc_setup_unwatch(struct smc_sock *smc)
{
	spin_lock_bh(&smc->lock);
	smc_setup_unwatch_locked(smc);
	spin_unlock_bh(&smc->lock);
}

/* Starts the worker. If it was never started, smc_setup_stop() need not wait for it. */
static void start_work(struct smc_sock *smc)
{
	WRITE_ONCE(smc->started, true);
	mod_delayed_work(smc_net_wq, &smc->work, 0);
}

/*
 * smc_setup_wake() - is called by the wait queue of a socket that connects or is in its rendezvous. While TCP
 * connects, only a peer with SMC starts the worker: smc_connect_progress() finds the others.
 */
int smc_setup_wake(struct wait_queue_entry *wait, unsigned int mode, int flags, void *key)
{
	struct smc_sock *smc = container_of(wait, struct smc_sock, wait);

	/* A thread in connect() begins the rendezvous; after that the worker is needed. */
	if (READ_ONCE(smc->attended) && READ_ONCE(smc->phase) == SMC_PHASE_CONNECT)
		return 0;
	if (READ_ONCE(smc->opt.peer_smc))
		start_work(smc);
	return 0;
}

/*
 * smc_setup_start_client() - starts the worker, after TCP has connected to a peer with SMC. Not after
 * smc_setup_stop(), which waits for the worker once. Does not sleep.
 */
void smc_setup_start_client(struct smc_sock *smc)
{
	spin_lock_bh(&smc->lock);
	if (smc->phase == SMC_PHASE_CONNECT)
		start_work(smc);
	spin_unlock_bh(&smc->lock);
}

/*
 * smc_setup_notify() - wakes all that wait for a client's outcome, pollers included. Under the same smc->lock under
 * which the outcome is set: otherwise an edge-triggered poller could report one more event.
 */
void smc_setup_notify(struct smc_sock *smc)
{
	struct sock *sk = smc->sk;

	lockdep_assert_held(&smc->lock);
	READ_ONCE(sk->sk_state_change)(sk);
	sk_wake_async(sk, SOCK_WAKE_IO, POLL_OUT);
}

/*
 * smc_setup_inline() - connects within this kernel, if the peer is here, in the thread that waits in connect(). That
 * saves waking the worker and the thread.
 */
void smc_setup_inline(struct smc_sock *smc)
{
	bool mine;

	lockdep_assert_held(&smc->state_mutex);
	might_sleep();
	spin_lock_bh(&smc->lock);
	mine = smc->phase == SMC_PHASE_CONNECT && READ_ONCE(smc->opt.peer_smc) &&
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

/* smc_setup_start_server() - begins the handshake of a child, which is on its listener's list. */
void smc_setup_start_server(struct smc_sock *child)
{
	lockdep_assert_held(&child->parent->listener->lock);
	spin_lock(&child->lock);
	smc_setup_set_phase(child, SMC_PHASE_RENDEZVOUS);
	spin_unlock(&child->lock);
	smc_setup_watch(child, child->sock, smc_setup_wake);
	start_work(child);
}

/* smc_setup_free() - frees the rendezvous. Only its worker, or a thread that has stopped that. */
void smc_setup_free(struct smc_sock *smc)
{
	might_sleep();
	if (smc->rv)
		smc_rendezvous_free(smc->rv);
	smc->rv = NULL;
}

/*
 * smc_setup_stop() - ends a rendezvous, because the socket is closed or disconnected. May sleep, until the worker has
 * ended. Afterwards the phase is OPEN, or unchanged if the outcome was known already.
 */
void smc_setup_stop(struct smc_sock *smc)
{
	might_sleep();
	/* From here on no other thread starts the worker, and a running one does not change the phase. */
	spin_lock_bh(&smc->lock);
	if (smc->phase == SMC_PHASE_CONNECT || smc->phase == SMC_PHASE_RENDEZVOUS)
		smc_setup_set_phase(smc, SMC_PHASE_OPEN);
	WRITE_ONCE(smc->opt.peer_smc, false);
	smc->stopped = true;
	smc_setup_unwatch_locked(smc);
	spin_unlock_bh(&smc->lock);
	if (READ_ONCE(smc->started))
		cancel_delayed_work_sync(&smc->work);
	smc_setup_free(smc);
	/* Until then, a transport may have started the worker again. */
	if (READ_ONCE(smc->started))
		cancel_delayed_work_sync(&smc->work);
	smc->failed = 0;
	smc->retry = 0;
	smc_setup_disarm(smc);
}

/*
 * smc_setup_stop_failed() - smc_setup_stop() for an attempt that TCP has failed, or has not begun. The sock's lock keeps TCP from sending the
 * SYN meanwhile: if the phase is OPEN, the SYN has no option. May sleep. Return: whether that is so; if not, nothing was done.
 */
bool smc_setup_stop_failed(struct smc_sock *smc)
{
	bool failed;

	lockdep_assert_held(&smc->state_mutex);
	might_sleep();
	if (READ_ONCE(smc->phase) != SMC_PHASE_CONNECT)
		return false;
	lock_sock(smc->sk);
	spin_lock_bh(&smc->lock);
	failed = smc->phase == SMC_PHASE_CONNECT && smc->sk->sk_state == TCP_CLOSE;
	if (failed)
		smc_setup_set_phase(smc, SMC_PHASE_OPEN);
	spin_unlock_bh(&smc->lock);
	release_sock(smc->sk);
	if (failed)
		smc_setup_stop(smc);
	return failed;
}

/* Must the worker run? Begins the rendezvous of a client that TCP has connected. */
static bool work_is_due(struct smc_sock *smc)
{
	int state = inet_sk_state_load(smc->sk);
	bool mine;

	spin_lock_bh(&smc->lock);
	if (smc->phase == SMC_PHASE_CONNECT && READ_ONCE(smc->opt.peer_smc) && state != TCP_SYN_SENT &&
	    state != TCP_SYN_RECV && state != TCP_CLOSE)
		smc_setup_set_phase(smc, SMC_PHASE_RENDEZVOUS);
	/* A child whose outcome is known may still wait for data. */
	mine = (smc->phase == SMC_PHASE_RENDEZVOUS && !smc->inline_busy) ||
	       (smc->awaits_data && smc_sock_is_child(smc) && !smc->stopped);
	spin_unlock_bh(&smc->lock);
	return mine;
}

/* The client's rendezvous has failed; connect() may be called again. */
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
	/* Last, because a thread that sees the phase may connect again, or listen, at once. */
	spin_lock_bh(&smc->lock);
	mine = smc->phase == SMC_PHASE_RENDEZVOUS;
	if (mine) {
		smc_setup_unwatch_locked(smc);
		armed = smc->armed;
		smc->armed = false;
		WRITE_ONCE(smc->opt.peer_smc, false);
		WRITE_ONCE(smc->err, rc);
		smc_setup_set_phase(smc, SMC_PHASE_OPEN); /* after the error: pairs with take_error() */
		smc_setup_notify(smc);
	}
	spin_unlock_bh(&smc->lock);
	if (mine)
		sk_error_report(sk);
	if (armed)
		smc_synopt_put(smc_net(sock_net(sk)));
}

/* A client's rendezvous has failed. Resets the connection when the sock's lock is free, as if TCP had failed to connect. */
static void fail_client(struct smc_sock *smc)
{
	struct sock *sk = smc->sk;
	int rc = smc->failed;

	if (!smc_sock_trylock_retry(sk, &smc->retry)) {
		queue_delayed_work(smc_net_wq, &smc->work, smc->retry);
		return;
	}
	smc->failed = 0;
	/* If the application has shut the socket down while TCP connected, it gets the same error as from the peer. */
	fail_attempt(smc, rc == -EPIPE ? -ECONNRESET : rc);
	release_sock(sk);
}

/* Hands a child to accept(), or frees it. */
static void finish_child(struct smc_sock *child, int rc)
{
	smc_setup_unwatch(child);
	/* The peer may have started the worker again, and the child may be freed. */
	cancel_delayed_work(&child->work);
	smc_listen_finish(child, !rc);
}

/* TCP wakes nobody for less than SO_RCVLOWAT, which is meant for the application's data: then we poll. */
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
	/* It does not change before accept(). */
	const struct smc_conn *conn = rcu_access_pointer(child->conn);
	const struct sock *sk = child->sk;

	/* One byte is enough, whatever SO_RCVLOWAT says. */
	if (conn)
		return READ_ONCE(conn->rx_prod) == READ_ONCE(conn->rx_cons) && !smc_conn_readable(conn);
	return inet_sk_state_load(sk) == TCP_ESTABLISHED && skb_queue_empty_lockless(&sk->sk_receive_queue);
}

/* Gives a client its outcome. Return: -ECANCELED if the application has given up meanwhile. */
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
 * Gives a child its outcome. With TCP_DEFER_ACCEPT the child then waits for data of the application: TCP has let it
 * through for a CLC message. Return: -EINPROGRESS if the child waits.
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
		smc_policy_count(child, true);
		rv->offer.conn = NULL;
	}
	if (!delay || !has_no_data(child) || !smc_listen_defer(child))
		return 0;
	/* Other connections may wait for the link group that this one forms. */
	smc_setup_free(child);
	child->awaits_data = true;
	child->data_deadline = jiffies + delay;
	return -EINPROGRESS;
}

/* Takes a step. Return: 0 if the socket has its outcome, -EINPROGRESS if not yet, else why the connection breaks. */
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

/* Returns the control group that pays for the memory of a rendezvous: as with TCP, the socket's. */
static struct mem_cgroup *charged_memcg(const struct smc_sock *smc)
{
	/* A child that a worker has dequeued has none. */
	return smc_memory_cgroup(smc_sock_is_child(smc) ? smc->parent->sk : smc->sk);
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

/* The rendezvous is over: 0, or why the connection breaks. */
static void finish_setup(struct smc_sock *smc, bool server, int rc)
{
	trace_smc_rendezvous(smc->sk, server, rc);
	if (rc)
		smc_stats_handshake_error(smc_net(sock_net(smc->sk)), server);
	smc->awaits_data = false;
	/* Before the sock's lock is free, because other connections may wait for this one's link group. */
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
	/* Does nothing if the worker is queued already. */
	queue_delayed_work(smc_net_wq, &smc->work, delay_of(smc));
}

/* smc_setup_prepare() - initialises a new struct smc_sock. */
void smc_setup_prepare(struct smc_sock *smc)
{
	INIT_DELAYED_WORK(&smc->work, setup_work);
}
