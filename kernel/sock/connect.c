// SPDX-License-Identifier: GPL-2.0-only
/*
 * connect(): TCP connects, with the option in its SYN. If the peer answers with the option, CLC messages
 * follow before the application gets the connection.
 */

#include <net/ipv6.h>
#include <net/tcp_states.h>

#include "../wire/reason.h"
#include "sock.h"

/* A connection stays TCP because our hooks have seen no option in the SYN-ACK. Return: as smc_fallback_take(). */
static bool take_no_option(struct smc_sock *smc, struct socket *sock)
{
	u32 reason = READ_ONCE(smc->opt.futile), diagnosis = reason ? READ_ONCE(smc->opt.futile_diagnosis) : 0;

	if (!reason)
		reason = READ_ONCE(smc->opt.answer_hidden) ? SMC_REASON_CONFIG : SMC_REASON_PEER_NO_SMC;
	return smc_fallback_take(smc, sock, SMC_PHASE_CONNECT, reason, diagnosis);
}

/**
 * smc_connect_progress() - advances an attempt to connect after events of TCP
 * @smc: of the socket
 * @sock: the socket
 *
 * The first operation that finds a peer without SMC makes the socket TCP here: no worker runs for that. Does not
 * sleep.
 *
 * Return: the phase, where SMC_PHASE_OPEN also stands for a connection attempt that has failed.
 */
enum smc_phase smc_connect_progress(struct smc_sock *smc, struct socket *sock)
{
	enum smc_phase phase = READ_ONCE(smc->phase);
	int state;

	if (phase != SMC_PHASE_CONNECT)
		return phase;
	state = inet_sk_state_load(smc->sk);
	if (state == TCP_SYN_SENT || state == TCP_SYN_RECV)
		return SMC_PHASE_CONNECT;
	if (state == TCP_CLOSE)
		return SMC_PHASE_OPEN;
	if (READ_ONCE(smc->opt.peer_smc)) {
		smc_setup_start_client(smc);
		return SMC_PHASE_RENDEZVOUS;
	}
	take_no_option(smc, sock);
	return READ_ONCE(smc->phase);
}

/**
 * smc_connect_settled() - waits for the outcome of an attempt to connect
 * @sock: the socket
 * @timeo: how long to wait at most, in jiffies
 *
 * May sleep. Return: 0 if the outcome is known, -EAGAIN after a timeout, or an errno of sock_intr_errno().
 */
int smc_connect_settled(struct socket *sock, long timeo)
{
	DEFINE_WAIT_FUNC(wait, woken_wake_function);
	struct smc_sock *smc = smc_table_of(sock);
	enum smc_phase phase;
	int rc = 0;

	might_sleep();
	if (!smc || READ_ONCE(smc->phase) >= SMC_PHASE_TCP)
		return 0;
	add_wait_queue(&sock->wq.wait, &wait);
	smp_mb(); /* pairs with skwq_has_sleeper() of TCP, and of smc_setup_notify(), after the phase is set */
	for (;;) {
		phase = smc_connect_progress(smc, sock);
		if (phase != SMC_PHASE_CONNECT && phase != SMC_PHASE_RENDEZVOUS)
			break;
		if (!timeo) {
			rc = -EAGAIN;
			break;
		}
		if (signal_pending(current)) {
			rc = sock_intr_errno(timeo);
			break;
		}
		timeo = wait_woken(&wait, TASK_INTERRUPTIBLE, timeo);
	}
	remove_wait_queue(&sock->wq.wait, &wait);
	return rc;
}

/*
 * Makes a socket that is to connect TCP, if a handshake would be in vain: then nothing of ours delays the connection. @to: what @addr says.
 * A link-local address has an interface, which the socket is bound to later.
 */
static void take_futile(struct smc_sock *smc, struct socket *sock, const smc_sockaddr_t *addr, int len, const struct smc_service_key *to)
{
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)addr;
	struct smc_peers_key key = {
		.addr = to->addr, .port = to->port,
		.role = SMC_PEERS_CLIENT, .ifindex = READ_ONCE(sock->sk->sk_bound_dev_if), .uid = smc_peers_uid(sock->sk),
	};
	struct smc_peers_why why;

	lockdep_assert_held(&smc->state_mutex);
	if (!key.ifindex && len >= (int)sizeof(*v6) && (ipv6_addr_type(&key.addr) & IPV6_ADDR_LINKLOCAL))
		key.ifindex = v6->sin6_scope_id;
	if (smc_handshake_futile(smc_net(sock_net(sock->sk)), &key, &why))
		smc_fallback_take(smc, sock, SMC_PHASE_OPEN, why.reason, why.diagnosis);
}

/* Makes a socket that is to connect, and is OPEN, TCP if the policy says so, or a handshake would be in vain. */
static void take_tcp(struct smc_sock *smc, struct socket *sock, const smc_sockaddr_t *addr, int len)
{
	struct smc_service_key to = {};

	lockdep_assert_held(&smc->state_mutex);
	/* TCP refuses other addresses. */
	if (!smc_policy_peer_of(sock->sk, addr, len, &to.addr, &to.port))
		return;
	smc_policy_connect(smc, sock, &to);
	if (READ_ONCE(smc->phase) == SMC_PHASE_OPEN)
		take_futile(smc, sock, addr, len, &to);
}

/*
 * Begins an attempt, unless the policy says TCP or a handshake would be in vain: the SYN will carry the option, and TCP's wakeups
 * will start the worker. This takes state_mutex, so that another thread whose attempt has just failed does not undo half of it.
 * Return: 0; -EALREADY if another thread has begun an attempt, and has not learned its outcome; or -ENOMEM.
 */
static int begin_connect(struct smc_sock *smc, struct socket *sock, const smc_sockaddr_t *addr, int len)
{
	int rc = 0;

	mutex_lock(&smc->state_mutex);
	if (smp_load_acquire(&smc->connecting)) { /* pairs with end_connect() */
		/* If TCP has sent the SYN by now, TCP answers. */
		rc = smc_connect_progress(smc, sock) == SMC_PHASE_OPEN ? -EALREADY : 0;
		goto out;
	}
	smc_setup_stop_failed(smc);
	if (READ_ONCE(smc->phase) == SMC_PHASE_OPEN)
		take_tcp(smc, sock, addr, len);
	/* TCP needs no hooks, which cost all connections of the namespace something. */
	if (READ_ONCE(smc->phase) >= SMC_PHASE_TCP)
		goto out;
	rc = smc_setup_arm(smc);
	if (rc)
		goto out;
	spin_lock_bh(&smc->lock);
	if (smc->phase == SMC_PHASE_OPEN || smc->phase == SMC_PHASE_CONNECT) {
		if (inet_sk_state_load(smc->sk) == TCP_CLOSE) {
			WRITE_ONCE(smc->opt.peer_smc, false);
			WRITE_ONCE(smc->opt.asked, false);
		}
		WRITE_ONCE(smc->opt.answer_hidden, false);
		WRITE_ONCE(smc->opt.futile, 0);
		smc->inline_busy = false;
		WRITE_ONCE(smc->connecting, current);
		smc_setup_set_phase(smc, SMC_PHASE_CONNECT);
	}
	spin_unlock_bh(&smc->lock);
	smc_setup_watch(smc, sock, smc_setup_wake);
out:
	mutex_unlock(&smc->state_mutex);
	return rc;
}

/* TCP's connect() has returned to the thread that has begun the attempt: others may begin one. */
static void end_connect(struct smc_sock *smc)
{
	/* Others may have cancelled the attempt, and begun their own. Who sees NULL sees TCP's state: pairs with begin_connect(), smc_connect_undo(). */
	cmpxchg_release(&smc->connecting, current, NULL);
}

/* smc_connect_cancel() - the application has ended an attempt of another thread, which does not know yet: others may begin one. Does not sleep. */
void smc_connect_cancel(struct smc_sock *smc)
{
	lockdep_assert_held(&smc->state_mutex);
	WRITE_ONCE(smc->connecting, NULL);
}

/* smc_connect_undo() - undoes begin_connect(), if TCP has failed to connect. Return: 0, or -EALREADY if another thread is about to try. */
int smc_connect_undo(struct smc_sock *smc)
{
	enum smc_phase phase;
	int rc = 0;

	might_sleep();
	mutex_lock(&smc->state_mutex);
	if (!smp_load_acquire(&smc->connecting)) { /* pairs with end_connect() */
		smc_setup_stop_failed(smc);
	} else {
		phase = READ_ONCE(smc->phase);
		rc = phase == SMC_PHASE_OPEN || phase == SMC_PHASE_CONNECT ? -EALREADY : 0;
	}
	mutex_unlock(&smc->state_mutex);
	return rc;
}

/* Returns and clears the error of a rendezvous. SO_ERROR does not return it again. */
static int take_error(struct smc_sock *smc)
{
	int rc;

	smp_rmb(); /* pairs with fail_attempt(): who has seen the phase sees the error */
	if (likely(!READ_ONCE(smc->err)))
		return 0;
	spin_lock_bh(&smc->lock);
	rc = smc->err;
	WRITE_ONCE(smc->err, 0);
	spin_unlock_bh(&smc->lock);
	if (rc)
		sock_error(smc->sk);
	return rc;
}

/* Something like ss -K may have ended TCP's listening: then the socket may connect. */
static void stop_listening(struct smc_sock *smc)
{
	if (READ_ONCE(smc->phase) != SMC_PHASE_LISTEN)
		return;
	mutex_lock(&smc->state_mutex);
	if (inet_sk_state_load(smc->sk) != TCP_LISTEN)
		smc_listen_stop(smc);
	mutex_unlock(&smc->state_mutex);
}

/* TCP is connected. Waits for the outcome, and returns what connect() does; @late if it takes longer than the call may. */
static int wait_outcome(struct smc_sock *smc, struct socket *sock, int flags, int late)
{
	struct sock *sk = sock->sk;
	long timeo = sock_sndtimeo(sk, flags & O_NONBLOCK);
	int rc = smc_connect_settled(sock, timeo);

	if (!rc) {
		rc = take_error(smc);
		if (rc || READ_ONCE(smc->phase) >= SMC_PHASE_TCP)
			return rc;
		/*
		 * The peer has reset the connection already. A plain TCP connection would report that when it is used. If another
		 * thread has got the error of this attempt, and makes a new one, that goes on.
		 */
		if (!READ_ONCE(smc->opt.peer_smc) && inet_sk_state_load(sk) == TCP_CLOSE && take_no_option(smc, sock))
			return 0;
		return sock_error(sk) ?: -ECONNABORTED;
	}
	/* For TCP, the application knows of the connection already; but it gets the outcome later. */
	lock_sock(sk);
	if (sock->state == SS_CONNECTED)
		sock->state = SS_CONNECTING;
	release_sock(sk);
	return rc == -EAGAIN ? late : rc;
}

/* Makes a socket TCP whose attempt another thread has undone before TCP sent the SYN: that had no option. */
static void take_undone(struct smc_sock *smc, struct socket *sock)
{
	mutex_lock(&smc->state_mutex); /* what has undone it is over, and has ended TCP's attempt if that had sent its SYN before */
	if (!((1 << inet_sk_state_load(smc->sk)) & (TCPF_CLOSE | TCPF_LISTEN)))
		smc_fallback_take(smc, sock, SMC_PHASE_OPEN, SMC_REASON_INTERNAL, 0);
	mutex_unlock(&smc->state_mutex);
}

/* Lets TCP connect. A thread that has waited for TCP runs the rendezvous itself if it can, without the worker. */
static int connect_tcp(struct smc_sock *smc, struct socket *sock, smc_sockaddr_t *addr, int len, int flags)
{
	int rc;

	WRITE_ONCE(smc->attended, !(flags & O_NONBLOCK));
	rc = smc_ops_of_tcp(sock->sk)->connect(sock, addr, len, flags);
	if (!rc && READ_ONCE(smc->opt.peer_smc)) {
		mutex_lock(&smc->state_mutex);
		smc_setup_inline(smc);
		mutex_unlock(&smc->state_mutex);
	}
	WRITE_ONCE(smc->attended, false);
	smp_mb(); /* TCP's wakeup sees that, or this thread sees the event */
	/* With TCP_FASTOPEN_CONNECT, which another thread has just set, the SYN goes with the first data. */
	if (!rc && inet_sk_state_load(sock->sk) == TCP_SYN_SENT)
		smc_fallback_take(smc, sock, SMC_PHASE_CONNECT, SMC_REASON_OPTION, 0);
	/* smc_setup_wake() has ignored wakeups meanwhile, also if a signal has ended the wait. */
	if (smc_connect_progress(smc, sock) == SMC_PHASE_OPEN)
		take_undone(smc, sock);
	return rc;
}

/*
 * connect() without waiting, while the rendezvous of an earlier call runs. io_uring calls it again for sockets that may block, after
 * any of TCP's wakeups that might concern it: the one for a CLC message announces urgent data, too. It waits on if the attempt is
 * in progress, and fails if it is already.
 */
static int not_settled(const struct socket *sock)
{
	return sock->file && !(sock->file->f_flags & O_NONBLOCK) ? -EINPROGRESS : -EALREADY;
}

/**
 * smc_connect() - connect(2)
 * @sock: the socket
 * @addr: where to, of the family AF_INET, AF_INET6 or AF_UNSPEC
 * @len: bytes of it
 * @flags: O_NONBLOCK
 *
 * May sleep. Return: as TCP would.
 */
int smc_connect(struct socket *sock, smc_sockaddr_t *addr, int len, int flags)
{
	struct smc_sock *smc = smc_table_make(sock);
	int rc;

	might_sleep();
	if (!smc)
		return -ENOMEM;
	rc = take_error(smc);
	if (len >= (int)sizeof(addr->sa_family) && addr->sa_family == AF_UNSPEC)
		return smc_active_disconnect(smc, sock, addr, len, flags);
	if (rc)
		return rc;
	stop_listening(smc);
	switch (smc_connect_progress(smc, sock)) {
	case SMC_PHASE_RENDEZVOUS:
		if (flags & O_NONBLOCK)
			return not_settled(sock);
		return wait_outcome(smc, sock, flags, -EALREADY);
	case SMC_PHASE_OPEN:
		rc = begin_connect(smc, sock, addr, len);
		if (rc)
			return rc;
		break;
	default:
		break;
	}
	/* It stays TCP, or another protocol has just taken it over. */
	if (READ_ONCE(smc->phase) == SMC_PHASE_TCP) {
		end_connect(smc);
		return smc_ops_of_tcp(sock->sk)->connect(sock, addr, len, flags);
	}
	rc = connect_tcp(smc, sock, addr, len, flags);
	end_connect(smc);
	if (!rc)
		return wait_outcome(smc, sock, flags, -EINPROGRESS);
	if (sock->state != SS_CONNECTING) {
		smc_connect_undo(smc);
		take_error(smc);
	}
	return rc;
}
