// SPDX-License-Identifier: GPL-2.0-only
/* accept(): connections whose handshake is over, and those in TCP's queue that need none. */

#include <net/inet_connection_sock.h>
#include <net/tcp_states.h>

#include "../wire/reason.h"
#include "listener.h"

/*
 * The application gets a connection that is plain TCP, for a reason or because of the option, if that is 0. Without memory for a struct
 * smc_sock no dump lists it.
 */
static void adopt_tcp(struct smc_sock *lsmc, struct socket *newsock, u32 reason)
{
	struct smc_sock *smc = smc_table_new(newsock->sk, GFP_KERNEL);

	WRITE_ONCE(newsock->ops, smc_ops_after(newsock->sk));
	if (!smc)
		return;
	smc->server = true;
	smc_policy_inherit(smc, lsmc);
	if (reason)
		smc_fallback_child(smc, smc_policy_child_reason(smc, lsmc, reason), 0);
	else
		smc_listen_no_option(smc, lsmc);
	smc_table_add(smc);
}

/* Moves a child from its placeholder into the application's socket. */
static void hand_over(struct smc_sock *child, struct socket *newsock)
{
	struct socket *placeholder = child->sock;
	struct smc_sock *parent = child->parent;
	struct sock *sk;

	child->sock = NULL;
	WRITE_ONCE(child->parent, NULL);
	smc_sock_copy_zc(placeholder, newsock);
	sk = smc_listen_detach_sock(placeholder);
	lock_sock(sk);
	sock_graft(sk, newsock);
	newsock->state = SS_CONNECTED;
	WRITE_ONCE(newsock->ops, rcu_access_pointer(child->conn) ? smc_ops_active(sk) : smc_ops_after(sk));
	release_sock(sk);
	smc_active_adopt(child);
	smc_table_add(child);
	sock_release(placeholder);
	smc_table_put(parent);
}

/* The application gets a connection that its client, in this kernel, has made ready. */
static void adopt_local(struct smc_sock *lsmc, struct smc_sock *child, struct socket *newsock)
{
	struct smc_sock *parent = child->parent;

	lockdep_assert_held(&lsmc->listener->accept_mutex);
	WRITE_ONCE(child->parent, NULL);
	WRITE_ONCE(newsock->ops, smc_ops_active(newsock->sk));
	smc_active_adopt(child);
	smc_table_add(child);
	smc_table_put(parent);
}

/* Resets a connection that the application does not get, and empties the application's socket. */
static void reset_conn(struct socket *newsock)
{
	struct sock *sk = smc_listen_detach_sock(newsock);

	sock_no_linger(sk);
	sk->sk_prot->close(sk, 0);
}

/* TCP's accept() has returned a connection for which a handshake is due: begins it, and empties the application's socket. */
static void divert_child(struct smc_sock *lsmc, struct socket *newsock, const struct smc_sock *verdict)
{
	struct socket *sock = smc_listen_set_aside(newsock);

	lockdep_assert_held(&lsmc->listener->accept_mutex);
	if (sock) {
		smc_listen_begin(lsmc, sock, verdict);
		return;
	}
	if (verdict == ERR_PTR(-EINPROGRESS))
		smc_synopt_unreserve(&lsmc->listener->port);
	reset_conn(newsock);
}

/*
 * Takes the first connection out of TCP's queue. Return: 0 with a connection, -EINPROGRESS if it is not for the application, or not yet;
 * or TCP's error.
 */
static int accept_from_tcp(struct smc_sock *lsmc, struct socket *sock, struct socket *newsock, bool kern)
{
	struct proto_accept_arg arg = { .flags = O_NONBLOCK, .kern = kern };
	struct smc_sock *child;
	int rc;

	lockdep_assert_held(&lsmc->listener->accept_mutex);
	rc = smc_compat_accept(smc_ops_of_tcp(sock->sk), sock, newsock, &arg);
	if (rc)
		return rc;
	child = smc_listen_collect(lsmc, newsock->sk);
	if (child == ERR_PTR(-EINPROGRESS) || child == ERR_PTR(-EALREADY)) {
		divert_child(lsmc, newsock, child);
		return -EINPROGRESS;
	}
	if (IS_ERR(child)) {
		reset_conn(newsock);
		/* Otherwise the listener has been closed meanwhile, and its children with it. */
		return child == ERR_PTR(-EBUSY) ? -EINPROGRESS : -EINVAL;
	}
	if (child && smc_listen_postpone(lsmc, child, newsock))
		return -EINPROGRESS;
	if (child)
		adopt_local(lsmc, child, newsock);
	else
		adopt_tcp(lsmc, newsock, 0);
	return 0;
}

/*
 * Looks for a connection once. One that waits for an earlier one to be ready does not delay those in TCP's queue.
 * Return: 0 with a connection, -EAGAIN without, or TCP's error.
 */
static int try_accept(struct smc_sock *lsmc, struct socket *sock, struct socket *newsock, bool kern)
{
	struct smc_sock *child;
	int rc;

	lockdep_assert_held(&lsmc->listener->accept_mutex);
	do {
		child = smc_listen_take(lsmc);
		if (child) {
			hand_over(child, newsock);
			return 0;
		}
		if (inet_sk_state_load(sock->sk) == TCP_LISTEN && !smc_listen_leave(lsmc, true))
			return -EAGAIN;
		rc = accept_from_tcp(lsmc, sock, newsock, kern);
		smc_listen_left(lsmc);
	} while (rc == -EINPROGRESS);
	return rc;
}

/*
 * Sleeps until there may be a connection. Exclusively: each connection wakes one thread. One that needs a
 * handshake wakes a thread in vain, and another one when the handshake ends.
 */
static int wait_for_child(struct smc_sock *lsmc, struct socket *sock, long *timeo)
{
	struct sock *sk = sock->sk;
	DEFINE_WAIT(wait);
	int rc = 0;

	might_sleep();
	prepare_to_wait_exclusive(&sock->wq.wait, &wait, TASK_INTERRUPTIBLE);
	if (inet_sk_state_load(sk) != TCP_LISTEN)
		rc = -EINVAL;
	else if (smc_listen_ready(lsmc) || smc_listen_pending(lsmc))
		rc = 0;
	else if (!*timeo)
		rc = -EAGAIN;
	else if (signal_pending(current))
		rc = sock_intr_errno(*timeo);
	else
		*timeo = schedule_timeout(*timeo);
	finish_wait(&sock->wq.wait, &wait);
	return rc;
}

/*
 * Is a connection that TCP has given to a listener of plain TCP one of SMC for its client? Then TCP has moved it from a listener that
 * has promised SMC, and ended. Either the client goes to send a proposal, or it is in this kernel, and has connected the child, see
 * smc_listen_publish(). Does not sleep.
 */
static bool is_promised(const struct sock *sk)
{
	struct smc_sock *child;

	if (smc_synopt_claim(sk, NULL, true) != SMC_CLAIM_NONE)
		return true;
	/* In this order: a client that has claimed the promise before us has added the child before that. */
	child = smc_table_find(sk);
	smc_table_put(child);
	return child;
}

/*
 * smc_accept_fallback() - accept(2) on a listener that has fallen back, or that the policy has left to TCP: then its connections are
 * not ours, either. Return: as TCP would; -ECONNABORTED if the connection had to be reset, since TCP has moved it here
 * from a listener that has promised its client SMC.
 */
int smc_accept_fallback(struct socket *sock, struct socket *newsock, struct proto_accept_arg *arg)
{
	struct smc_sock *lsmc;
	int rc;

	might_sleep();
	rc = smc_compat_accept(smc_ops_of_tcp(sock->sk), sock, newsock, arg);
	lsmc = smc_table_of(sock);
	if (rc)
		return rc;
	if (is_promised(newsock->sk)) {
		reset_conn(newsock);
		return -ECONNABORTED;
	}
	if (lsmc)
		adopt_tcp(lsmc, newsock, READ_ONCE(lsmc->reason) == SMC_REASON_POLICY ? SMC_REASON_POLICY : SMC_REASON_OPTION);
	return 0;
}

/**
 * smc_accept() - accept(2)
 * @sock: the listener
 * @newsock: gets the connection
 * @arg: O_NONBLOCK or not
 *
 * May sleep. Return: as TCP would.
 */
int smc_accept(struct socket *sock, struct socket *newsock, struct proto_accept_arg *arg)
{
	long timeo = sock_rcvtimeo(sock->sk, arg->flags & O_NONBLOCK);
	struct smc_sock *lsmc = smc_table_of(sock);
	int rc;

	might_sleep();
	arg->err = -EINVAL;
	if (!lsmc || !lsmc->listener)
		return -EINVAL;
	for (;;) {
		/* Meanwhile another thread may have ended the listening, and made the socket TCP, which listens again. */
		if (READ_ONCE(lsmc->phase) == SMC_PHASE_TCP)
			return smc_accept_fallback(sock, newsock, arg);
		mutex_lock(&lsmc->listener->accept_mutex);
		rc = try_accept(lsmc, sock, newsock, arg->kern);
		mutex_unlock(&lsmc->listener->accept_mutex);
		if (!rc)
			smc_listen_wake_next(lsmc);
		if (rc != -EAGAIN)
			return rc;
		rc = wait_for_child(lsmc, sock, &timeo);
		if (rc)
			return rc;
	}
}
