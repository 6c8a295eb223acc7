// SPDX-License-Identifier: GPL-2.0-only
/*
 * What drives a rendezvous. No thread waits for a peer: an entry on the socket's wait queue starts
 * the worker when TCP wakes the sleepers there, a timer when the peer's time is up. So any number
 * of silent peers cost their own connections and some memory, and nobody else a worker.
 *
 * No callback of the TCP sock is replaced, and nothing hangs on sk_user_data. The entry is on the
 * wait queue or it is not; taking it off waits for whoever runs it. That is all there is to say
 * about lifetimes in softirq.
 */

#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <net/tcp_states.h>

#include "../control/stats.h"
#include "../control/trace.h"
#include "../trylock.h"
#include "../wire/reason.h"
#include "handshake.h"

/* A rendezvous lives for milliseconds, and is a few kilobytes with its message: apart from records. */
static struct kmem_cache *cache;

/* smc_handshake_phase() - sets the phase. The caller holds smc->lock. */
void smc_handshake_phase(struct smc_sock *smc, enum smc_phase phase)
{
	lockdep_assert_held(&smc->lock);
	trace_smc_phase(smc->sk, smc->phase, phase);
	WRITE_ONCE(smc->phase, phase);
}

/*
 * smc_handshake_trylock() - takes the sock's lock, or has the worker run again soon if a thread holds
 * it. Only the worker. Does not sleep. Return: whether the worker has the lock.
 */
bool smc_handshake_trylock(struct smc_sock *smc)
{
	if (smc_sock_trylock(smc->sk)) {
		smc->retry = 0;
		return true;
	}
	smc->retry = clamp_t(unsigned long, 2 * smc->retry, 1, SMC_TRYLOCK_RETRY_MAX);
	return false;
}

/**
 * smc_handshake_arm() - makes the option travel with the socket's SYN or SYN-ACK
 * @smc: the socket's record
 *
 * May sleep. Return: 0 or -ENOMEM.
 */
int smc_handshake_arm(struct smc_sock *smc)
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

/* smc_handshake_disarm() - undoes arm. Does not sleep. */
void smc_handshake_disarm(struct smc_sock *smc)
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
 * smc_handshake_watch() - lets TCP's wakeups on a socket start something
 * @smc: the record
 * @sock: the socket; it may not be released before smc_handshake_unwatch()
 * @fn: what to start; called with the wait queue locked, in any context
 */
void smc_handshake_watch(struct smc_sock *smc, struct socket *sock, wait_queue_func_t fn)
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
 * smc_handshake_unwatch_locked() - undoes watch; fn does not run any more when it returns. Under
 * smc->lock.
 */
void smc_handshake_unwatch_locked(struct smc_sock *smc)
{
	lockdep_assert_held(&smc->lock);
	if (smc->watching)
		remove_wait_queue(&smc->sock->wq.wait, &smc->wait);
	smc->watching = false;
}

/* smc_handshake_unwatch() - the same for who does not hold the lock. Does not sleep. */
void smc_handshake_unwatch(struct smc_sock *smc)
{
	spin_lock_bh(&smc->lock);
	smc_handshake_unwatch_locked(smc);
	spin_unlock_bh(&smc->lock);
}

/* Has the worker run, soon. Who never had it run need not wait for it in the end. */
static void start(struct smc_sock *smc)
{
	WRITE_ONCE(smc->started, true);
	mod_delayed_work(smc_net_wq, &smc->work, 0);
}

/*
 * smc_handshake_wake() - for the wait queue of a socket that connects or is in its handshake. While
 * TCP connects, only a peer with SMC is of interest: the others are found out by whoever looks at
 * the socket.
 */
int smc_handshake_wake(struct wait_queue_entry *wait, unsigned int mode, int flags, void *key)
{
	struct smc_sock *smc = container_of(wait, struct smc_sock, wait);

	/* A thread that waits for TCP comes by itself; once CLC messages pass, the worker is needed. */
	if (READ_ONCE(smc->attended) && READ_ONCE(smc->phase) == SMC_PHASE_CONNECT)
		return 0;
	if (READ_ONCE(smc->peer_smc))
		start(smc);
	return 0;
}

/*
 * smc_handshake_kick() - TCP is connected to a peer with SMC: the worker's turn. Not if
 * smc_handshake_stop() has come first, which waits for the worker once. Does not sleep.
 */
void smc_handshake_kick(struct smc_sock *smc)
{
	spin_lock_bh(&smc->lock);
	if (smc->phase == SMC_PHASE_CONNECT)
		start(smc);
	spin_unlock_bh(&smc->lock);
}

/*
 * smc_handshake_tell() - a client's outcome is known
 *
 * Everyone who waits for it looks again; so do pollers, edge-triggered ones included. The caller
 * holds smc->lock, under which the outcome has been set: who finds it in between would have one edge
 * too many.
 */
void smc_handshake_tell(struct smc_sock *smc)
{
	struct sock *sk = smc->sk;

	lockdep_assert_held(&smc->lock);
	READ_ONCE(sk->sk_state_change)(sk);
	sk_wake_async(sk, SOCK_WAKE_IO, POLL_OUT);
}

/*
 * smc_handshake_inline() - TCP is connected, and the thread in connect() is to wait anyhow: if the
 * peer is in this kernel, it does what the worker would, and nobody has to be woken. The caller
 * holds state_mutex. May sleep.
 */
void smc_handshake_inline(struct smc_sock *smc)
{
	bool mine;

	might_sleep();
	spin_lock_bh(&smc->lock);
	mine = smc->phase == SMC_PHASE_CONNECT && smc->peer_smc &&
	       inet_sk_state_load(smc->sk) == TCP_ESTABLISHED;
	if (mine) {
		smc_handshake_phase(smc, SMC_PHASE_RENDEZVOUS);
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
		start(smc);
	spin_unlock_bh(&smc->lock);
}

/*
 * smc_handshake_serve() - begins the handshake of a listener's child. The caller holds the
 * listener's lock and has put the child on its list.
 */
void smc_handshake_serve(struct smc_sock *child)
{
	spin_lock(&child->lock);
	smc_handshake_phase(child, SMC_PHASE_RENDEZVOUS);
	spin_unlock(&child->lock);
	smc_handshake_watch(child, child->sock, smc_handshake_wake);
	start(child);
}

/*
 * smc_handshake_free() - drops the state of a rendezvous. Only its worker, or who has stopped that.
 * May sleep.
 */
void smc_handshake_free(struct smc_sock *smc)
{
	struct smc_rendezvous *rv = smc->rv;

	might_sleep();
	if (!rv)
		return;
	smc_limit_end(smc);
	smc->rv = NULL;
	smc_registry_release(&rv->offer);
	kmem_cache_free(cache, rv);
}

/*
 * smc_handshake_stop() - the socket is closed, or disconnected. May sleep, until a running worker
 * has noticed. Afterwards the phase is OPEN, or what it was if the outcome was known already.
 */
void smc_handshake_stop(struct smc_sock *smc)
{
	might_sleep();
	/* From here on nobody starts the worker, and what it has under way changes nothing. */
	spin_lock_bh(&smc->lock);
	if (smc->phase == SMC_PHASE_CONNECT || smc->phase == SMC_PHASE_RENDEZVOUS)
		smc_handshake_phase(smc, SMC_PHASE_OPEN);
	smc->peer_smc = false;
	smc->stopped = true;
	smc_handshake_unwatch_locked(smc);
	spin_unlock_bh(&smc->lock);
	if (READ_ONCE(smc->started))
		cancel_delayed_work_sync(&smc->work);
	smc_handshake_free(smc);
	/* A transport may have called again until that was over. */
	if (READ_ONCE(smc->started))
		cancel_delayed_work_sync(&smc->work);
	smc->failed = 0;
	smc->retry = 0;
	smc_handshake_disarm(smc);
}

/* A transport may get on with what it had to wait for. */
static void again(struct smc_offer *offer)
{
	start(container_of(offer, struct smc_rendezvous, offer)->smc);
}

/*
 * smc_handshake_pause() - the transport has to wait for its peer. Return: -EINPROGRESS.
 */
int smc_handshake_pause(struct smc_sock *smc, enum smc_rendezvous_step step)
{
	smc->rv->step = step;
	smc->rv->deadline = smc->rv->offer.deadline;
	return -EINPROGRESS;
}

/*
 * smc_handshake_decline_later() - the connection is to stay TCP. The peer may have found out the
 * same, and its DECLINE comes first if it comes by the deadline, in jiffies: one is enough. Return:
 * -EINPROGRESS.
 */
int smc_handshake_decline_later(struct smc_rendezvous *rv, u32 reason, unsigned long deadline)
{
	rv->reason = reason;
	rv->step = SMC_STEP_DECLINE;
	rv->deadline = deadline;
	return -EINPROGRESS;
}

/*
 * smc_handshake_exchange() - goes on as far as messages and the transport allow. Return:
 * SMC_CLC_DECLINE if the peer has said that, 0 if the socket has its outcome, or a negative errno.
 */
int smc_handshake_exchange(struct smc_sock *smc, const struct smc_handshake_side *side)
{
	enum smc_rendezvous_step before;
	int rc;

	do {
		before = smc->rv->step;
		rc = smc_clc_io_recv(smc, side->due(before));
		if (rc == -EINPROGRESS)
			rc = side->go_on(smc);
		else if (rc > 0 && rc != SMC_CLC_DECLINE)
			rc = side->received(smc, rc);
		/* What is due now may be there already. First comes what we have to say. */
	} while (rc == -EINPROGRESS && smc->rv->step != before && !smc->rv->unsent);
	return rc;
}

static int begin(struct smc_sock *smc)
{
	struct smc_rendezvous *rv = kmem_cache_zalloc(cache, GFP_KERNEL);

	if (!rv)
		return -ENOMEM;
	rv->smc = smc;
	rv->offer.again = again;
	rv->step = smc_handshake_is_child(smc) ? SMC_STEP_PROPOSAL : SMC_STEP_START;
	rv->version = SMC_V1;
	rv->deadline = jiffies + SMC_HANDSHAKE_TIMEOUT;
	smc->rv = rv;
	if (smc_handshake_is_child(smc))
		smc_limit_begin(smc);
	return 0;
}

/* Is it the worker's turn? Makes a client that TCP has connected one that is in its rendezvous. */
static bool due(struct smc_sock *smc)
{
	int state = inet_sk_state_load(smc->sk);
	bool mine;

	spin_lock_bh(&smc->lock);
	if (smc->phase == SMC_PHASE_CONNECT && smc->peer_smc && state != TCP_SYN_SENT &&
	    state != TCP_SYN_RECV && state != TCP_CLOSE)
		smc_handshake_phase(smc, SMC_PHASE_RENDEZVOUS);
	/* A child that has fallen back may have to wait for data still. */
	mine = (smc->phase == SMC_PHASE_RENDEZVOUS && !smc->inline_busy) ||
	       (smc->rv && smc_handshake_is_child(smc) && !smc->stopped);
	spin_unlock_bh(&smc->lock);
	return mine;
}

/* The client's outcome is a failure; connect() may be called again. */
static void settle_client(struct smc_sock *smc, int rc)
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
		smc_handshake_unwatch_locked(smc);
		armed = smc->armed;
		smc->armed = false;
		smc->err = rc;
		smc->peer_smc = false;
		smc_handshake_phase(smc, SMC_PHASE_OPEN);
		smc_handshake_tell(smc);
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

	if (!smc_handshake_trylock(smc)) {
		queue_delayed_work(smc_net_wq, &smc->work, smc->retry);
		return;
	}
	smc->failed = 0;
	/*
	 * Shut down by the application while TCP was about to be connected: to it, no different
	 * from the peer's doing.
	 */
	settle_client(smc, rc == -EPIPE ? -ECONNRESET : rc);
	release_sock(sk);
}

/* A child is in accept()'s hands, or gone, when this returns. */
static void settle_server(struct smc_sock *child, int rc)
{
	smc_handshake_unwatch(child);
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
static unsigned long patience(const struct smc_sock *smc)
{
	return READ_ONCE(smc->sk->sk_rcvlowat) > 1 ? HZ / 20 : MAX_JIFFY_OFFSET;
}

/* Does the transport decide how long to wait? */
static bool at_transport(enum smc_rendezvous_step step)
{
	return step == SMC_STEP_MATCH || step == SMC_STEP_JOIN || step == SMC_STEP_LINK;
}

/* One step. Return: what client.c or server.c says; what is due is not too late yet if it is -EINPROGRESS. */
static int step(struct smc_sock *smc)
{
	bool server = smc_handshake_is_child(smc);
	int rc = smc->rv ? 0 : begin(smc);

	if (!rc)
		rc = smc_clc_io_flush(smc);
	if (!rc)
		rc = server ? smc_server_step(smc) : smc_client_step(smc);
	if (rc != -EINPROGRESS || smc->rv->unsent)
		return rc;
	if (time_before(jiffies, smc->rv->deadline) || at_transport(smc->rv->step))
		return rc;
	return server ? smc_server_expired(smc) : smc_client_expired(smc);
}

/* Who pays for what a rendezvous allocates: as with TCP, the control group that the socket is of. */
static struct mem_cgroup *payer(const struct smc_sock *smc)
{
#ifdef CONFIG_MEMCG
	/* A child that a worker has accepted is of none itself. */
	return smc_handshake_is_child(smc) ? smc->parent->sk->sk_memcg : smc->sk->sk_memcg;
#else
	return NULL;
#endif
}

/* When the worker runs again, if nothing happens before; in jiffies. */
static unsigned long delay_of(const struct smc_sock *smc)
{
	long left = max((long)(smc->rv->deadline - jiffies), 0L);

	return smc->retry ?: min_t(unsigned long, left, patience(smc));
}

/* The outcome is known: 0, or why the connection breaks. */
static void settle(struct smc_sock *smc, bool server, int rc)
{
	trace_smc_rendezvous(smc->sk, server, rc);
	if (rc)
		smc_stats_handshake_error(smc_net(sock_net(smc->sk)), server);
	/* Before the sock's lock is free: others may wait for what the transport holds for this one. */
	smc_handshake_free(smc);
	if (server) {
		settle_server(smc, rc);
	} else if (rc) {
		smc->failed = rc;
		fail_client(smc);
	}
}

static void work(struct work_struct *w)
{
	struct smc_sock *smc = container_of(to_delayed_work(w), struct smc_sock, work);
	struct mem_cgroup *old;
	bool server;
	int rc;

	if (!due(smc))
		return;
	if (smc->failed) {
		fail_client(smc);
		return;
	}
	server = smc_handshake_is_child(smc); /* accept() may have it when settle_server() returns */
	if (server)
		smc_listen_step(smc, true);
	old = set_active_memcg(payer(smc));
	rc = step(smc);
	set_active_memcg(old);
	if (rc != -EINPROGRESS) {
		settle(smc, server, rc);
		return;
	}
	if (server)
		smc_listen_step(smc, false);
	/* No change if the peer has just made us run again. */
	queue_delayed_work(smc_net_wq, &smc->work, delay_of(smc));
}

/* smc_handshake_prepare() - of a fresh record. */
void smc_handshake_prepare(struct smc_sock *smc)
{
	INIT_DELAYED_WORK(&smc->work, work);
}

/* smc_handshake_init() - at load. Return: 0 or -ENOMEM. */
int __init smc_handshake_init(void)
{
	cache = KMEM_CACHE(smc_rendezvous, SLAB_ACCOUNT);
	return cache ? 0 : -ENOMEM;
}

/* smc_handshake_exit() - at unload. */
void smc_handshake_exit(void)
{
	kmem_cache_destroy(cache);
}
