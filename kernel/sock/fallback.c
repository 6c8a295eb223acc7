// SPDX-License-Identifier: GPL-2.0-only
/*
 * The hand-over to TCP. The sock of an SMC socket is a TCP sock from the start, with the application's own wait
 * queue. So falling back only replaces the socket's operations by TCP's: sleepers, poll tables, options, buffered
 * data and errors are in place already.
 *
 * Ours remain release, which frees struct smc_sock, and the two options by which another protocol or address
 * family takes over sock->ops.
 */

#include <net/tcp_states.h>

#include "../control/memory.h"
#include "../control/stats.h"
#include "../control/trace.h"
#include "../control/trace_stock.h"
#include "../wire/reason.h"
#include "sock.h"

/* Counts the fallback, and makes it visible after that. */
static void set_fallback(struct smc_sock *smc, u32 reason, u32 peer)
{
	lockdep_assert_held(&smc->lock);
	smc_stats_fallback(smc_net(sock_net(smc->sk)), smc->server, reason);
	smc_policy_count(smc, false);
	if (reason == SMC_REASON_MEM_LIMIT)
		smc_memory_refused(smc_net(sock_net(smc->sk)));
	trace_smc_fallback(smc->sk, smc->server, reason, peer);
	trace_smc_switch_to_fallback(smc->sk, reason);
	WRITE_ONCE(smc->reason, reason);
	WRITE_ONCE(smc->peer_diagnosis, peer);
	smc_setup_set_phase(smc, SMC_PHASE_TCP);
}

/**
 * smc_fallback_take() - gives a socket back to TCP for good
 * @smc: of the socket
 * @sock: the socket; it may not be released meanwhile
 * @from: the phase in which the caller has found it; nothing happens if another thread has changed that
 * @reason: why, a code of wire/reason.h
 * @peer: the reason that the peer gave, or 0
 *
 * Threads may sleep in operations of the socket; they notice when they wake. After a rendezvous this wakes them,
 * because TCP would not. The operations change before the phase: a thread that sees the phase may let another
 * protocol set its own operations. Does not sleep.
 *
 * Return: whether it was done.
 */
bool smc_fallback_take(struct smc_sock *smc, struct socket *sock, enum smc_phase from, u32 reason, u32 peer)
{
	bool mine;

	spin_lock_bh(&smc->lock);
	mine = smc->phase == from;
	if (mine) {
		smc_setup_unwatch_locked(smc);
		WRITE_ONCE(sock->ops, smc_ops_after(smc->sk));
		set_fallback(smc, reason, peer);
		if (from == SMC_PHASE_RENDEZVOUS)
			smc_setup_notify(smc);
	}
	spin_unlock_bh(&smc->lock);
	if (mine)
		smc_setup_disarm(smc);
	return mine;
}

/*
 * smc_fallback_child() - the same for a child of a listener, whose operations accept() will set.
 * Does not sleep.
 */
void smc_fallback_child(struct smc_sock *smc, u32 reason, u32 peer)
{
	spin_lock_bh(&smc->lock);
	set_fallback(smc, reason, peer);
	spin_unlock_bh(&smc->lock);
}

/*
 * Sockets whose operations another protocol has replaced for good. The kernel does not call our release for them,
 * and a thread may still be inside an operation of ours. So the reference on this module that socket(2) took stays
 * until reap_detached() finds the socket closed.
 */
static LIST_HEAD(detached);
static DEFINE_SPINLOCK(detached_lock);
static void reap_detached(struct work_struct *work);
static DECLARE_DELAYED_WORK(reap_work, reap_detached);
#define REAP_INTERVAL (2 * HZ)

static void reap_detached(struct work_struct *work)
{
	struct smc_sock *smc, *next;
	LIST_HEAD(closed);

	spin_lock(&detached_lock);
	list_for_each_entry_safe(smc, next, &detached, child)
		if (sock_flag(smc->sk, SOCK_DEAD))
			list_move(&smc->child, &closed);
	if (!list_empty(&detached))
		queue_delayed_work(smc_net_wq, &reap_work, REAP_INTERVAL);
	spin_unlock(&detached_lock);
	list_for_each_entry_safe(smc, next, &closed, child) {
		list_del_init(&smc->child);
		/* It was closed some time ago. So that a short connection is not taken for a long one, count the most that this can be. */
		smc->service.since += jiffies_to_msecs(REAP_INTERVAL);
		smc_policy_sample(smc, NULL);
		smc_table_remove(smc);
		module_put(THIS_MODULE);
	}
}

/* Has the policy left the socket to TCP? Such a socket does not fall back. */
static bool is_left_to_tcp(const struct smc_sock *smc, const struct socket *sock)
{
	return READ_ONCE(smc->phase) == SMC_PHASE_OPEN && READ_ONCE(sock->ops) == smc_ops_after(smc->sk);
}

/* Gives the socket TCP's own operations for good. Its handshake has been stopped. */
static void detach_ops(struct smc_sock *smc, struct socket *sock)
{
	bool mine, fresh, left;

	spin_lock_bh(&smc->lock);
	mine = !smc->detached;
	left = is_left_to_tcp(smc, sock);
	fresh = smc->phase != SMC_PHASE_TCP;
	if (mine) {
		smc->detached = true;
		WRITE_ONCE(sock->ops, smc_ops_of_tcp(smc->sk));
	}
	if (left) {
		WRITE_ONCE(smc->reason, SMC_REASON_POLICY);
		smc_setup_set_phase(smc, SMC_PHASE_TCP);
	} else if (fresh) {
		set_fallback(smc, SMC_REASON_OPTION, 0);
	}
	spin_unlock_bh(&smc->lock);
	if (!mine)
		return;
	spin_lock(&detached_lock);
	list_add(&smc->child, &detached);
	queue_delayed_work(smc_net_wq, &reap_work, REAP_INTERVAL);
	spin_unlock(&detached_lock);
}

/*
 * Would TCP accept the option on a socket that has never been connected? Tries it on another socket, so that ours
 * does not become TCP for an option that fails. Return: as TCP.
 */
static int try_option(struct sock *sk, int level, int name, sockptr_t val, unsigned int len)
{
	struct socket *tmp;
	int rc;

	might_sleep();
	rc = __sock_create(sock_net(sk), sk->sk_family, SOCK_STREAM, IPPROTO_TCP, &tmp, sk->sk_kern_sock);
	if (rc)
		return rc;
	/* The policy may have given it operations of ours. */
	rc = smc_ops_of_tcp(tmp->sk)->setsockopt(tmp, level, name, val, len);
	sock_release(tmp);
	return rc;
}

/**
 * smc_fallback_detach() - sets an option by which another protocol may take over the socket
 * @sock: the socket, without a handshake under way
 * @level: of the option
 * @name: of the option
 * @val: its value
 * @len: bytes of it
 *
 * TLS takes the operations of the first socket that it sees for TCP's. So the socket gets TCP's before TLS sees it,
 * and keeps them even if the option fails: another thread may be in TLS by then. On a socket that is OPEN the
 * option is tried on another socket first, because an option that fails must not make the connection TCP. TCP
 * refuses both options on a listener, and is not called for ours: while it copies the value from the application's
 * memory, which may take any time, another thread may end the listening and connect, and TLS would see a socket
 * that is ACTIVE.
 *
 * Return: what TCP says.
 */
int smc_fallback_detach(struct socket *sock, int level, int name, sockptr_t val, unsigned int len)
{
	const struct proto_ops *tcp = smc_ops_of_tcp(sock->sk);
	struct smc_sock *smc = smc_table_make(sock);
	enum smc_phase phase;
	int rc = 0;

	might_sleep();
	if (!smc)
		return -ENOMEM;
	mutex_lock(&smc->state_mutex);
	/* Another thread may have begun to connect meanwhile. */
	phase = READ_ONCE(smc->phase);
	if (phase == SMC_PHASE_CONNECT || phase == SMC_PHASE_RENDEZVOUS) {
		mutex_unlock(&smc->state_mutex);
		return -ENOTCONN;
	}
	if (inet_sk_state_load(sock->sk) == TCP_LISTEN) {
		rc = try_option(sock->sk, level, name, val, len);
		mutex_unlock(&smc->state_mutex);
		return rc ?: -ENOTCONN;
	}
	/* Something like ss -K may have ended TCP's listening. */
	smc_listen_stop(smc);
	smc_setup_stop(smc);
	if (READ_ONCE(smc->phase) == SMC_PHASE_ACTIVE) {
		mutex_unlock(&smc->state_mutex);
		return -EOPNOTSUPP;
	}
	if (READ_ONCE(smc->phase) == SMC_PHASE_OPEN && !is_left_to_tcp(smc, sock))
		rc = try_option(sock->sk, level, name, val, len);
	if (!rc)
		detach_ops(smc, sock);
	mutex_unlock(&smc->state_mutex);
	return rc ?: tcp->setsockopt(sock, level, name, val, len);
}

/* smc_fallback_exit() - at unload, when no socket is left. */
void smc_fallback_exit(void)
{
	might_sleep();
	cancel_delayed_work_sync(&reap_work);
}
