// SPDX-License-Identifier: GPL-2.0-only
/*
 * Operations on sockets whose outcome is not known yet. Those that move data wait for it, or return -EAGAIN, as TCP
 * does while it connects; then they call the operations of the settled socket.
 */

#include <asm/ioctls.h>
#include <linux/poll.h>
#include <linux/sockios.h>
#include <linux/splice.h>
#include <linux/uaccess.h>
#include <net/tcp_states.h>

#include "../wire/reason.h"
#include "sock.h"

/* Returns the operations of a settled socket, for a thread that entered ours before that. */
static const struct proto_ops *settled_ops(const struct socket *sock)
{
	const struct smc_sock *smc = smc_table_of(sock);

	return smc && READ_ONCE(smc->phase) == SMC_PHASE_ACTIVE ? smc_ops_active(sock->sk) : smc_ops_of_tcp(sock->sk);
}

/* A socket that sends data in its SYN cannot ask for SMC with it. */
static int fast_open(struct socket *sock)
{
	struct smc_sock *smc = smc_table_make(sock);
	int rc;

	if (!smc)
		return -ENOMEM;
	rc = smc_connect_undo(smc);
	if (!rc)
		smc_fallback_take(smc, sock, SMC_PHASE_OPEN, SMC_REASON_OPTION, 0);
	return rc;
}

/* smc_io_sendmsg() - sendmsg(2). Return: as TCP would. */
int smc_io_sendmsg(struct socket *sock, struct msghdr *msg, size_t len)
{
	int rc;

	might_sleep();
	rc = smc_connect_settled(sock, sock_sndtimeo(sock->sk, msg->msg_flags & MSG_DONTWAIT));
	if (!rc && (msg->msg_flags & MSG_FASTOPEN))
		rc = fast_open(sock);
	return rc ?: settled_ops(sock)->sendmsg(sock, msg, len);
}

/* smc_io_recvmsg() - recvmsg(2). Return: as TCP would. */
int smc_io_recvmsg(struct socket *sock, struct msghdr *msg, size_t len, int flags)
{
	int rc = 0;

	might_sleep();
	if (!(flags & MSG_ERRQUEUE))
		rc = smc_connect_settled(sock, sock_rcvtimeo(sock->sk, flags & MSG_DONTWAIT));
	return rc ?: settled_ops(sock)->recvmsg(sock, msg, len, flags);
}

/* smc_io_splice_read() - splice(2) from the socket to a pipe. Return: as TCP would. */
ssize_t smc_io_splice_read(struct socket *sock, loff_t *ppos, struct pipe_inode_info *pipe,
			   size_t len, unsigned int flags)
{
	bool nonblock = (flags & SPLICE_F_NONBLOCK) || (sock->file->f_flags & O_NONBLOCK);
	int rc;

	might_sleep();
	rc = smc_connect_settled(sock, sock_rcvtimeo(sock->sk, nonblock));
	return rc ?: settled_ops(sock)->splice_read(sock, ppos, pipe, len, flags);
}

/*
 * smc_io_poll() - poll(2), select(2), epoll and their like. Does not sleep. Return: the events that
 * are there.
 */
__poll_t smc_io_poll(struct file *file, struct socket *sock, poll_table *wait)
{
	struct smc_sock *smc = smc_table_of(sock);
	enum smc_phase phase;
	__poll_t events;

	if (!smc)
		return smc_ops_of_tcp(sock->sk)->poll(file, sock, wait);
	/* First onto the queue, so that events after the check wake the poller. */
	sock_poll_wait(file, sock, wait);
	phase = smc_connect_progress(smc, sock);
	if (phase == SMC_PHASE_LISTEN && inet_sk_state_load(sock->sk) == TCP_LISTEN)
		return smc_listen_ready(smc) ? EPOLLIN | EPOLLRDNORM : 0;
	/* An error of TCP becomes the outcome; until that is set, sk_err may be another one for a moment. */
	if (phase == SMC_PHASE_RENDEZVOUS)
		return 0;
	events = settled_ops(sock)->poll(file, sock, NULL);
	/* TCP may have connected in between, but the application waits for the outcome. */
	if (smc_connect_progress(smc, sock) == SMC_PHASE_RENDEZVOUS)
		events = 0;
	return events;
}

/* Ends our listening and TCP's together; a socket that is OPEN may be about to listen. */
static int shutdown_listener(struct smc_sock *smc, struct socket *sock, int how)
{
	int rc;

	mutex_lock(&smc->state_mutex);
	if (how != SHUT_WR)
		smc_listen_stop(smc);
	rc = smc_ops_of_tcp(sock->sk)->shutdown(sock, how);
	mutex_unlock(&smc->state_mutex);
	return rc;
}

/*
 * Ends an attempt to connect during its rendezvous. For the application it is not connected yet, and TCP's
 * shutdown() resets such a connection. Return: as TCP would, or -EAGAIN if the rendezvous has just succeeded.
 */
static int shutdown_attempt(struct smc_sock *smc, struct socket *sock)
{
	struct sock *sk = sock->sk;
	int rc = -EAGAIN;

	mutex_lock(&smc->state_mutex);
	/* Meanwhile the attempt may have failed, and another thread may have called listen(). */
	if (READ_ONCE(smc->phase) != SMC_PHASE_CONNECT && READ_ONCE(smc->phase) != SMC_PHASE_RENDEZVOUS)
		goto out;
	smc_setup_stop(smc);
	if (READ_ONCE(smc->phase) != SMC_PHASE_OPEN)
		goto out;
	smc_connect_cancel(smc);
	lock_sock(sk);
	rc = sk->sk_state != TCP_CLOSE ? sk->sk_prot->disconnect(sk, O_NONBLOCK) : -ENOTCONN;
	if (!rc)
		sock->state = SS_UNCONNECTED;
	release_sock(sk);
out:
	mutex_unlock(&smc->state_mutex);
	return rc;
}

/* TCP's shutdown() ends an attempt to connect. */
static void cancel_ended(struct smc_sock *smc)
{
	mutex_lock(&smc->state_mutex);
	if (READ_ONCE(smc->phase) == SMC_PHASE_CONNECT && inet_sk_state_load(smc->sk) == TCP_CLOSE)
		smc_connect_cancel(smc);
	mutex_unlock(&smc->state_mutex);
}

/* smc_io_shutdown() - shutdown(2). Return: as TCP would. */
int smc_io_shutdown(struct socket *sock, int how)
{
	struct smc_sock *smc = smc_table_of(sock);
	int rc = 0;

	might_sleep();
	if (how < SHUT_RD || how > SHUT_RDWR)
		return -EINVAL;
	switch (smc ? smc_connect_progress(smc, sock) : SMC_PHASE_TCP) {
	case SMC_PHASE_LISTEN:
	case SMC_PHASE_OPEN:
		return shutdown_listener(smc, sock, how);
	case SMC_PHASE_RENDEZVOUS:
		rc = shutdown_attempt(smc, sock);
		if (rc != -EAGAIN)
			return rc;
		rc = 0;
		break;
	default:
		break;
	}
	if (!rc)
		rc = settled_ops(sock)->shutdown(sock, how);
	if (!rc && smc && READ_ONCE(smc->connecting))
		cancel_ended(smc);
	/* If the rendezvous is about to end: either this sees ACTIVE, or smc_active_take() sees sk_shutdown. */
	smp_mb();
	if (!rc && smc && READ_ONCE(smc->phase) == SMC_PHASE_ACTIVE && READ_ONCE(sock->sk->sk_shutdown))
		smc_active_shutdown(sock, how);
	return rc;
}

/* smc_io_getname() - getsockname(2) and getpeername(2). Return: as TCP would. */
int smc_io_getname(struct socket *sock, struct sockaddr *addr, int peer)
{
	/* Programs ask for the peer's name to see whether they are connected. */
	struct smc_sock *smc = peer == 1 ? smc_table_of(sock) : NULL;

	might_sleep();
	if (smc && smc_connect_progress(smc, sock) == SMC_PHASE_RENDEZVOUS)
		return -ENOTCONN;
	return smc_ops_of_tcp(sock->sk)->getname(sock, addr, peer);
}

/* smc_io_ioctl() - ioctl(2). Return: as TCP would. */
int smc_io_ioctl(struct socket *sock, unsigned int cmd, unsigned long arg)
{
	struct smc_sock *smc = smc_table_of(sock);

	might_sleep();
	/* CLC messages in the buffers are not the application's. */
	if (smc && smc_connect_progress(smc, sock) == SMC_PHASE_RENDEZVOUS) {
		switch (cmd) {
		case SIOCINQ:
		case SIOCOUTQ:
		case SIOCOUTQNSD:
		case SIOCATMARK:
			return put_user(0, (int __user *)arg);
		}
	}
	return smc_ops_of_tcp(sock->sk)->ioctl(sock, cmd, arg);
}
