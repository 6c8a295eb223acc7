// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sockets whose data a transport moves. The TCP connection beneath stays: it has the socket's names, options,
 * timeouts, wait queue and error. Of its events, only its end matters.
 */

#include <asm/ioctls.h>
#include <linux/fs.h>
#include <linux/poll.h>
#include <linux/sockios.h>
#include <linux/splice.h>
#include <net/tcp.h>
#include <linux/uaccess.h>
#include <net/tcp_states.h>

#include "../conn/conn.h"
#include "../net.h"
#include "../uapi/smc_uapi.h"
#include "sock.h"

/* Returns the connection of a socket, with a reference; NULL if it has none. */
static struct smc_conn *conn_get(struct smc_sock *smc)
{
	struct smc_conn *conn;

	/* A thread that has found our operations, or the phase, sees the connection. Pairs with set_active() and smc_setup_set_phase(). */
	smp_rmb();
	rcu_read_lock();
	conn = rcu_dereference(smc->conn);
	if (conn && !smc_conn_get_live(conn))
		conn = NULL;
	rcu_read_unlock();
	return conn;
}

/* The same for an operation; NULL if another thread has just disconnected the socket. */
static struct smc_conn *conn_of(const struct socket *sock)
{
	struct smc_sock *smc = smc_table_of(sock);

	return smc ? conn_get(smc) : NULL;
}

static void conn_put(struct smc_conn *conn)
{
	if (conn)
		smc_conn_put(conn);
}

/* Publishes the connection before the operations that use it. */
static void set_active(struct smc_sock *smc, struct socket *sock, struct smc_conn *conn)
{
	lockdep_assert_held(&smc->lock);
	rcu_assign_pointer(smc->conn, conn);
	if (sock) {
		smc_proto_install(smc->sk);
		smp_store_release(&sock->ops, smc_ops_active(smc->sk)); /* pairs with conn_get() */
	}
	smc_setup_set_phase(smc, SMC_PHASE_ACTIVE);
}

/**
 * smc_active_take() - gives a connection to a socket whose rendezvous has succeeded
 * @smc: of the socket
 * @sock: the socket; it may not be released meanwhile
 * @conn: the connection; takes over the reference
 *
 * If the application has closed the socket meanwhile, this closes the connection: the peer may have accepted
 * it already.
 *
 * Return: whether the socket has the connection.
 */
bool smc_active_take(struct smc_sock *smc, struct socket *sock, struct smc_conn *conn)
{
	bool mine;

	might_sleep();
	spin_lock_bh(&smc->lock);
	mine = smc->phase == SMC_PHASE_RENDEZVOUS;
	if (mine) {
		smc_setup_unwatch_locked(smc);
		WRITE_ONCE(conn->holder, SMC_CONN_SOCKET);
		smc_conn_count(conn);
		smc_policy_count(smc, true);
		set_active(smc, sock, conn);
		smc_setup_notify(smc);
	}
	spin_unlock_bh(&smc->lock);
	if (!mine) {
		smc_close_app(conn, smc_sock_aborts(smc->sk));
		smc_close_check_lgr(conn);
		smc_conn_put(conn);
		return false;
	}
	smc_close_check_lgr(conn);
	smc_setup_disarm(smc);
	/* shutdown() may have come too early for the connection, see smc_io_shutdown(). */
	smp_mb();
	if (READ_ONCE(smc->sk->sk_shutdown) & SEND_SHUTDOWN)
		smc_tx_shut_soon(conn);
	return true;
}

/*
 * smc_active_child() - the same for a child of a listener, whose operations accept() will set. May
 * sleep.
 */
void smc_active_child(struct smc_sock *smc, struct smc_conn *conn)
{
	might_sleep();
	spin_lock_bh(&smc->lock);
	smp_store_release(&conn->holder, SMC_CONN_ORPHAN); /* pairs with smc_conn_orphan() */
	set_active(smc, NULL, conn);
	spin_unlock_bh(&smc->lock);
	smc_close_check_lgr(conn);
}

/* smc_active_adopt() - a child is about to enter the table, and dumps show it there. Any context. */
void smc_active_adopt(struct smc_sock *smc)
{
	struct smc_conn *conn = rcu_dereference_protected(smc->conn, true);

	if (!conn)
		return;
	WRITE_ONCE(conn->holder, SMC_CONN_SOCKET);
	smc_proto_install(smc->sk);
}

/* smc_active_of() - returns the connection that dumps show with the socket, or NULL. Under RCU. */
struct smc_conn *smc_active_of(const struct smc_sock *smc)
{
	struct smc_conn *conn = rcu_dereference(smc->conn);

	return conn && READ_ONCE(conn->holder) == SMC_CONN_SOCKET ? conn : NULL;
}

/* smc_active_end() - the application closes the socket, or never accepts it. @hard: by a reset. */
void smc_active_end(struct smc_sock *smc, bool hard)
{
	struct smc_conn *conn = conn_get(smc);

	might_sleep();
	if (!conn)
		return;
	smc_close_app(conn, hard);
	smc_conn_put(conn);
}

/* smc_active_free() - drops the references on the connection and the rules. Any context. */
void smc_active_free(struct smc_sock *smc)
{
	struct smc_conn *conn = rcu_dereference_protected(smc->conn, true);

	smc_policy_count_bytes(smc, conn);
	smc_policy_free(smc);
	conn_put(conn);
}

/* smc_active_sendmsg() - sendmsg(2). Return: as TCP would. */
int smc_active_sendmsg(struct socket *sock, struct msghdr *msg, size_t len)
{
	struct smc_conn *conn = conn_of(sock);
	int rc;

	might_sleep();
	rc = conn ? smc_tx_send(conn, msg, len) : -ENOTCONN;
	conn_put(conn);
	return rc;
}

/* smc_active_recvmsg() - recvmsg(2). Return: as TCP would. */
int smc_active_recvmsg(struct socket *sock, struct msghdr *msg, size_t len, int flags)
{
	struct smc_conn *conn;
	int rc;

	might_sleep();
	if (flags & MSG_ERRQUEUE)
		return smc_ops_of_tcp(sock->sk)->recvmsg(sock, msg, len, flags);
	conn = conn_of(sock);
	rc = conn ? smc_rx_recv(conn, msg, len, flags) : -ENOTCONN;
	conn_put(conn);
	return rc;
}

/* smc_active_splice_read() - splice(2) from the socket to a pipe. Return: as TCP would. */
ssize_t smc_active_splice_read(struct socket *sock, loff_t *ppos, struct pipe_inode_info *pipe,
			       size_t len, unsigned int flags)
{
	bool nonblock = (flags & SPLICE_F_NONBLOCK) || (sock->file->f_flags & O_NONBLOCK);
	struct smc_conn *conn;
	ssize_t rc;

	might_sleep();
	if (*ppos)
		return -ESPIPE;
	conn = conn_of(sock);
	rc = conn ? smc_rx_splice(conn, pipe, len, nonblock) : -ENOTCONN;
	conn_put(conn);
	return rc;
}

/* smc_active_poll() - poll(2) and its like. Does not sleep. Return: the events that are there. */
__poll_t smc_active_poll(struct file *file, struct socket *sock, poll_table *wait)
{
	struct smc_conn *conn;
	__poll_t events;

	sock_poll_wait(file, sock, wait);
	conn = conn_of(sock);
	events = conn ? smc_conn_poll(conn) : EPOLLHUP | EPOLLOUT;
	conn_put(conn);
	return events;
}

/* Are both directions over? Then the connection is over for the application. */
static bool is_finished(const struct smc_conn *conn)
{
	const struct smc_close_meaning *m = smc_conn_meaning(conn);

	return m->over || (m->eof && m->shut);
}

static int shutdown_conn(struct smc_conn *conn, int how)
{
	if (is_finished(conn))
		return -ENOTCONN;
	if (how != SHUT_WR)
		WRITE_ONCE(conn->rx_shut, true);
	if (how != SHUT_RD)
		smc_tx_shut(conn);
	smc_conn_wake(conn, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLHUP);
	return 0;
}

/* smc_active_shutdown() - shutdown(2). Return: as TCP would. */
int smc_active_shutdown(struct socket *sock, int how)
{
	struct smc_conn *conn;
	int rc;

	might_sleep();
	if (how < SHUT_RD || how > SHUT_RDWR)
		return -EINVAL;
	conn = conn_of(sock);
	rc = conn ? shutdown_conn(conn, how) : -ENOTCONN;
	conn_put(conn);
	return rc;
}

/* smc_active_getname() - getsockname(2) and getpeername(2). Return: as TCP would. */
int smc_active_getname(struct socket *sock, struct sockaddr *addr, int peer)
{
	struct smc_conn *conn = conn_of(sock);
	bool gone = peer == 1 && conn && is_finished(conn);

	might_sleep();
	conn_put(conn);
	return gone ? -ENOTCONN : smc_ops_of_tcp(sock->sk)->getname(sock, addr, peer);
}

/* Makes the socket OPEN again, after TCP. */
static void drop_conn(struct smc_sock *smc, struct socket *sock)
{
	struct smc_conn *conn = NULL;

	lockdep_assert_held(&smc->state_mutex);
	/* First, because a socket that is OPEN may listen, and TLS may take it over. */
	smc_proto_restore(smc->sk);
	spin_lock_bh(&smc->lock);
	if (smc->phase == SMC_PHASE_ACTIVE) {
		conn = rcu_dereference_protected(smc->conn, lockdep_is_held(&smc->lock));
		smc_policy_count_bytes(smc, conn);
		smc_policy_sample(smc, conn);
		RCU_INIT_POINTER(smc->conn, NULL);
		smc->server = false;
		WRITE_ONCE(sock->ops, smc_ops_open(smc->sk));
		smc_setup_set_phase(smc, SMC_PHASE_OPEN);
	}
	spin_unlock_bh(&smc->lock);
	if (!conn)
		return;
	smc_close_app(conn, true);
	smc_conn_put(conn);
}

/**
 * smc_active_disconnect() - connect(2) with AF_UNSPEC, in any phase
 * @smc: of the socket
 * @sock: the socket
 * @addr: the address
 * @len: bytes of it
 * @flags: O_NONBLOCK
 *
 * May sleep. TCP tells the peer first, which therefore sees one reset. Return: as TCP would.
 */
int smc_active_disconnect(struct smc_sock *smc, struct socket *sock, smc_sockaddr_t *addr, int len, int flags)
{
	int rc;

	might_sleep();
	mutex_lock(&smc->state_mutex);
	smc_listen_stop(smc);
	smc_setup_stop(smc);
	smc_connect_cancel(smc);
	rc = smc_ops_of_tcp(sock->sk)->connect(sock, addr, len, flags);
	if (!rc)
		drop_conn(smc, sock);
	mutex_unlock(&smc->state_mutex);
	return rc;
}

/*
 * An application that has connected without blocking may call connect() again for the outcome. If the
 * connection is over by then, TCP returns the error, and the socket may connect again: so the TCP connection
 * beneath has to end, too.
 */
static void reset_finished_tcp(struct smc_sock *smc, struct socket *sock)
{
	struct smc_conn *conn = conn_get(smc);
	struct sock *sk = sock->sk;

	lock_sock(sk);
	if (conn && is_finished(conn) && sock->state == SS_CONNECTING && sk->sk_state != TCP_CLOSE)
		smc_close_reset_tcp(sk);
	release_sock(sk);
	conn_put(conn);
}

/* smc_active_connect() - connect(2). Return: as TCP would. */
int smc_active_connect(struct socket *sock, smc_sockaddr_t *addr, int len, int flags)
{
	struct smc_sock *smc = smc_table_of(sock);
	int rc;

	might_sleep();
	if (!smc)
		return smc_ops_of_tcp(sock->sk)->connect(sock, addr, len, flags);
	if (len >= (int)sizeof(addr->sa_family) && addr->sa_family == AF_UNSPEC)
		return smc_active_disconnect(smc, sock, addr, len, flags);
	mutex_lock(&smc->state_mutex);
	if (READ_ONCE(smc->phase) != SMC_PHASE_ACTIVE) {
		/* Another thread has just disconnected it. */
		mutex_unlock(&smc->state_mutex);
		return smc_connect(sock, addr, len, flags);
	}
	reset_finished_tcp(smc, sock);
	rc = smc_ops_of_tcp(sock->sk)->connect(sock, addr, len, flags);
	if (rc && sock->state == SS_UNCONNECTED) {
		smc_setup_stop(smc);
		drop_conn(smc, sock);
	}
	mutex_unlock(&smc->state_mutex);
	return rc;
}

/* Returns the answer to an ioctl that asks for a number, or -ENOIOCTLCMD. */
static int count_bytes(struct smc_conn *conn, unsigned int cmd)
{
	u64 cons;

	switch (cmd) {
	case SIOCINQ:
		return smc_urgent_inq(conn);
	case SIOCATMARK:
		return smc_urgent_at_mark(conn);
	case SIOCOUTQ:
		cons = smp_load_acquire(&conn->tx_cons); /* first, so that it is not ahead */
		return READ_ONCE(conn->tx_prod) - cons;
	case SIOCOUTQNSD:
		cons = smp_load_acquire(&conn->tx_signaled); /* first, too */
		return READ_ONCE(conn->tx_prod) - cons;
	}
	return -ENOIOCTLCMD;
}

/**
 * smc_active_count() - answers an ioctl that asks for a number, for a caller that has only the sock
 * @sk: the sock of an open socket
 * @cmd: SIOCINQ, SIOCOUTQ, SIOCOUTQNSD or SIOCATMARK
 *
 * Any context but hardirq. Return: the number, or -ENOIOCTLCMD if it is for TCP to answer.
 */
int smc_active_count(struct sock *sk, unsigned int cmd)
{
	struct smc_sock *smc = smc_table_find(sk);
	struct smc_conn *conn = smc ? conn_get(smc) : NULL;
	int rc = conn ? count_bytes(conn, cmd) : -ENOIOCTLCMD;

	conn_put(conn);
	smc_table_put(smc);
	return rc;
}

/* smc_active_ioctl() - ioctl(2). Return: as TCP would. */
int smc_active_ioctl(struct socket *sock, unsigned int cmd, unsigned long arg)
{
	struct smc_conn *conn = conn_of(sock);
	int answer = conn ? count_bytes(conn, cmd) : -ENOIOCTLCMD;

	might_sleep();
	conn_put(conn);
	if (answer == -ENOIOCTLCMD)
		return smc_ops_of_tcp(sock->sk)->ioctl(sock, cmd, arg);
	return put_user(answer, (int __user *)arg);
}

/* smc_active_splice_eof() - sends data that waited for more from splice(2). */
void smc_active_splice_eof(struct socket *sock)
{
	struct smc_conn *conn = conn_of(sock);

	might_sleep();
	if (conn)
		smc_tx_push(conn);
	conn_put(conn);
}

/* Sends data that was held back, when the application asks for it by TCP_NODELAY or TCP_CORK. */
static void push_released(struct smc_conn *conn, int name)
{
	u8 nonagle;

	if (name != TCP_NODELAY && name != TCP_CORK)
		return;
	nonagle = tcp_sk(conn->sk)->nonagle;
	if (name == TCP_NODELAY && (nonagle & TCP_NAGLE_OFF))
		smc_stats_add(conn->member.sn, conn->tech, SMC_STATS_NODELAY, 1);
	if (name == TCP_CORK && !(nonagle & TCP_NAGLE_CORK))
		smc_stats_add(conn->member.sn, conn->tech, SMC_STATS_CORK, 1);
	if (!(nonagle & TCP_NAGLE_CORK))
		smc_tx_push(conn);
}

/* smc_active_set_rcvlowat() - SO_RCVLOWAT, which may make the socket readable. Return: as TCP. */
int smc_active_set_rcvlowat(struct sock *sk, int val)
{
	int rc = smc_ops_of_tcp(sk)->set_rcvlowat(sk, val);
	struct smc_sock *smc = smc_table_find(sk);
	struct smc_conn *conn = smc ? conn_get(smc) : NULL;

	sock_owned_by_me(sk);
	if (conn && smc_conn_readable(conn))
		smc_conn_wake(conn, EPOLLIN | EPOLLRDNORM | EPOLLRDBAND);
	/* A reader may take the data now, by the value before. */
	if (conn)
		smc_rx_lowat(conn);
	conn_put(conn);
	if (smc)
		smc_table_put(smc);
	return rc;
}

/* Does the option give the socket an IPsec policy of its own? */
static bool sets_policy(int level, int name)
{
	return (level == SOL_IP && (name == IP_XFRM_POLICY || name == IP_IPSEC_POLICY)) ||
	       (level == SOL_IPV6 && (name == IPV6_XFRM_POLICY || name == IPV6_IPSEC_POLICY));
}

/*
 * smc_active_setsockopt() - setsockopt(2).
 *
 * Return: as TCP would, except -EOPNOTSUPP for options by which another protocol or address family would take
 * the socket over.
 */
int smc_active_setsockopt(struct socket *sock, int level, int name, sockptr_t val, unsigned int len)
{
	struct smc_conn *conn;
	int rc;

	might_sleep();
	if (smc_sockopt_takes_over(level, name))
		return -EOPNOTSUPP;
	rc = smc_sockopt_set_tcp(sock, level, name, val, len);
	if (rc || (level != SOL_TCP && !sets_policy(level, name)))
		return rc;
	conn = conn_of(sock);
	if (conn && level == SOL_TCP)
		push_released(conn, name);
	else if (conn)
		smc_ipsec_check(conn);
	conn_put(conn);
	return 0;
}

/* Returns the state that a TCP connection would have at this point of closing; 0 for that of the one beneath. */
static u8 tcp_state(const struct smc_conn *conn)
{
	const struct smc_close_meaning *m = smc_conn_meaning(conn);

	if (is_finished(conn))
		return TCP_CLOSE;
	if (m->eof)
		return TCP_CLOSE_WAIT;
	return m->shut ? TCP_FIN_WAIT2 : 0;
}

/* Corrects TCP's answer to TCP_INFO: TCP does not know of half a close. */
static int correct_state(struct socket *sock, char __user *val, int __user *lenp)
{
	struct smc_conn *conn = conn_of(sock);
	u8 state = conn ? tcp_state(conn) : 0;
	int len;

	BUILD_BUG_ON(offsetof(struct tcp_info, tcpi_state) || sizeof_field(struct tcp_info, tcpi_state) != 1);
	conn_put(conn);
	if (get_user(len, lenp) || (len > 0 && state && put_user(state, (u8 __user *)val)))
		return -EFAULT;
	return 0;
}

/* smc_active_getsockopt() - getsockopt(2). Return: as TCP would. */
int smc_active_getsockopt(struct socket *sock, int level, int name, char __user *val, int __user *len)
{
	int rc;

	might_sleep();
	/* TCP has no data to map. */
	if (level == SOL_TCP && name == TCP_ZEROCOPY_RECEIVE)
		return -EOPNOTSUPP;
	rc = smc_sockopt_get(sock, level, name, val, len);
	if (rc || level != SOL_TCP || name != TCP_INFO)
		return rc;
	return correct_state(sock, val, len);
}
