// SPDX-License-Identifier: Apache-2.0
/* close() in each state, and lingering. */
#define _GNU_SOURCE
#include <netinet/tcp.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "harness.h"
#include "net.h"
#include "task.h"

static void set_linger(int fd, int seconds)
{
	struct linger linger = { .l_onoff = 1, .l_linger = seconds };

	OK(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
}

CHECK(close_fresh)
{
	int fd = net_sock(0);

	EQ(0, close(fd));
	FAILS(EBADF, listen(fd, 1));
}

CHECK(close_bound)
{
	struct addr addr;
	int fd = net_sock(0);

	net_loopback(&addr, 0);
	OK(bind(fd, &addr.sa, addr.len));
	EQ(0, close(fd));
}

CHECK_CONN(close_listener_refuses)
{
	struct addr addr;
	int listener = net_listen(&addr, 1), fd = net_client(0);

	OK(close(listener));
	FAILS(ECONNREFUSED, connect(fd, &addr.sa, addr.len));
}

CHECK_CONN(close_listener_resets_queued)
{
	struct addr addr;
	int listener = net_listen(&addr, 3), fds[3];
	char byte;

	for (int i = 0; i < 3; i++)
		fds[i] = net_connect(&addr);
	net_wait(listener, POLLIN);
	OK(close(listener));
	for (int i = 0; i < 3; i++)
		FAILS(ECONNRESET, recv(fds[i], &byte, 1, 0));
}

CHECK_CONN(close_listener_wakes_client_with_error)
{
	struct addr addr;
	int listener = net_listen(&addr, 1), fd = net_connect(&addr);
	struct task task;
	char byte;

	task_start(&task, task_do_recv, (struct call){ .fd = fd, .buf = &byte, .len = 1 });
	task_wait_blocked(&task, SYS_recvfrom);
	OK(close(listener));
	EQ(-ECONNRESET, task_join(&task));
}

CHECK(close_while_connecting)
{
	struct addr addr;
	int fd = net_sock(SOCK_NONBLOCK), stuck = net_stuck(&addr);

	FAILS(EINPROGRESS, connect(fd, &addr.sa, addr.len));
	EQ(0, close(fd));
	/* No connection follows the one that fills the queue. */
	net_unstick(stuck);
	EQ(0, net_poll(stuck, POLLIN, harness_ms(50)));
}

CHECK_CONN(close_while_connect_runs_nonblocking)
{
	struct addr addr;
	int listener = net_listen(&addr, 16);

	/* close() may come at any stage of connecting, and must leave nothing behind. */
	for (int i = 0; i < 16; i++) {
		int fd = net_client(SOCK_NONBLOCK);

		FAILS(EINPROGRESS, connect(fd, &addr.sa, addr.len));
		EQ(0, close(fd));
	}
	OK(close(listener));
}

CHECK(close_descriptor_in_blocked_connect)
{
	struct addr addr;
	int fd = net_sock(0), stuck = net_stuck(&addr);
	struct task task;

	/*
	 * The call holds a reference to the file, so it continues, and the socket is closed when it
	 * returns.
	 */
	task_connect(&task, fd, &addr);
	EQ(0, close(fd));
	net_unstick(stuck);
	EQ(0, task_join(&task));
	net_recv_eof(net_accept(stuck));
}

CHECK_CONN(close_descriptor_in_blocked_accept)
{
	struct addr addr;
	int listener = net_listen(&addr, 1);
	struct task task;

	task_start(&task, task_do_accept, (struct call){ .fd = listener });
	task_wait_blocked(&task, SYS_accept);
	EQ(0, close(listener));
	int fd = net_connect(&addr);
	net_exchange(fd, OK(task_join(&task)));
}

CHECK_PAIR(close_is_eof_for_peer)
{
	int a, b;

	net_pair(&a, &b);
	net_send(a, 0, 3000);
	OK(close(a));
	net_recv(b, 0, 3000);
	net_recv_eof(b);
	net_recv_eof(b);
}

CHECK_PAIR(close_by_peer_is_eof)
{
	int a, b;

	net_pair(&a, &b);
	net_send(b, 0, 3000);
	OK(close(b));
	net_recv(a, 0, 3000);
	net_recv_eof(a);
	net_recv_eof(a);
}

CHECK_PAIR(close_with_unread_data_resets)
{
	int a, b;
	char byte;

	net_pair(&a, &b);
	net_send(b, 0, 100);
	net_wait(a, POLLIN);
	OK(close(a));
	FAILS(ECONNRESET, recv(b, &byte, 1, 0));
}

CHECK_PAIR(close_by_peer_with_unread_data_resets)
{
	int a, b;
	char byte;

	net_pair(&a, &b);
	net_send(a, 0, 100);
	net_wait(b, POLLIN);
	OK(close(b));
	FAILS(ECONNRESET, recv(a, &byte, 1, 0));
	/* The error is reported once. Afterwards the connection is at its end. */
	EQ(0, recv(a, &byte, 1, 0));
	FAILS(EPIPE, send(a, &byte, 1, 0));
}

CHECK_PAIR(close_linger_0_resets)
{
	int a, b;
	char byte;

	net_pair(&a, &b);
	set_linger(a, 0);
	OK(close(a));
	FAILS(ECONNRESET, recv(b, &byte, 1, 0));
}

CHECK_PAIR(close_linger_0_drops_what_is_queued)
{
	int a, b;
	char buf[4096];

	net_pair(&a, &b);
	net_nonblock(a, true);
	memset(buf, 'x', sizeof(buf));
	while (send(a, buf, sizeof(buf), 0) > 0)
		;
	set_linger(a, 0);
	OK(close(a));
	net_wait(b, POLLERR);
	/* The error is reported before the received data. */
	FAILS(ECONNRESET, send(b, buf, 1, 0));
}

CHECK_PAIR(close_linger_waits_for_peer)
{
	int a, b;

	net_pair(&a, &b);
	set_linger(a, 5);
	net_send(a, 0, 10000);
	/*
	 * All data is acknowledged although the peer has not read it, so close() does not linger.
	 */
	long begin = harness_now();
	OK(close(a));
	EXPECT(harness_now() - begin < 4000, "close() took %ld ms", harness_now() - begin);
	net_recv(b, 0, 10000);
	net_recv_eof(b);
}

static long close_it(struct call *call)
{
	return close(call->fd);
}

CHECK_PAIR(close_linger_blocks_until_sent)
{
	int a, b;
	size_t queued = 0;
	char buf[4096];
	struct task task;

	net_pair(&a, &b);
	memset(buf, 'x', sizeof(buf));
	net_nonblock(a, true);
	for (ssize_t n; (n = send(a, buf, sizeof(buf), 0)) > 0;)
		queued += n;
	net_nonblock(a, false);
	set_linger(a, 300);
	task_start(&task, close_it, (struct call){ .fd = a });
	task_wait_blocked(&task, SYS_close);
	task_stays_blocked(&task, 100);
	while (queued)
		queued -= OK(recv(b, buf, sizeof(buf), 0));
	net_recv_eof(b);
	/* By now, its FIN has been acknowledged. */
	EQ(0, task_join(&task));
}

CHECK_PAIR(close_linger_times_out)
{
	int a, b;
	char buf[4096];

	net_pair(&a, &b);
	memset(buf, 'x', sizeof(buf));
	net_nonblock(a, true);
	while (send(a, buf, sizeof(buf), 0) > 0)
		;
	net_nonblock(a, false);
	set_linger(a, 1);
	long begin = harness_now();
	EQ(0, close(a));
	EXPECT(harness_now() - begin >= 500, "close() took %ld ms", harness_now() - begin);
}

CHECK_PAIR(close_sends_all_that_is_queued)
{
	enum { SIZE = 1 << 20 };
	int a, b;

	net_pair(&a, &b);
	OK(net_set(a, SOL_SOCKET, SO_SNDBUF, SIZE * 2));
	/* Fill the buffers without blocking, then close. */
	size_t queued = 0;
	static char buf[SIZE];
	memset(buf, 'y', sizeof(buf));
	net_nonblock(a, true);
	for (ssize_t n; queued < SIZE && (n = send(a, buf, SIZE - queued, 0)) > 0;)
		queued += n;
	OK(close(a));
	size_t got = 0;
	for (ssize_t n; (n = OK(recv(b, buf, sizeof(buf), 0)));)
		got += n;
	EQ(queued, got);
}

CHECK_PAIR(close_then_peer_sends)
{
	int a, b;

	net_pair(&a, &b);
	OK(close(a));
	net_recv_eof(b);
	EQ(1, send(b, "x", 1, 0));
	net_wait(b, POLLERR | POLLHUP);
	FAILS(EPIPE, send(b, "x", 1, 0));
}

CHECK_PAIR(close_by_peer_then_send)
{
	int a, b;

	net_pair(&a, &b);
	OK(close(b));
	net_recv_eof(a);
	EQ(1, send(a, "x", 1, 0));
	net_wait(a, POLLERR | POLLHUP);
	FAILS(EPIPE, send(a, "x", 1, 0));
}

/*
 * Sends far more than any buffer holds to a peer that has closed. Return: bytes that send()
 * accepted.
 */
static long net_send_too_much(int fd)
{
	enum { SIZE = 1 << 20, TIMES = 64 };
	static char buf[SIZE];
	struct iovec iov[TIMES];

	for (int i = 0; i < TIMES; i++)
		iov[i] = (struct iovec){ .iov_base = buf, .iov_len = sizeof(buf) };
	return OK(writev(fd, iov, TIMES));
}

CHECK_PAIR(close_by_peer_then_send_too_much)
{
	int a, b;

	net_pair(&a, &b);
	OK(close(b));
	net_recv_eof(a);
	long taken = net_send_too_much(a), buffer = net_int(a, SOL_SOCKET, SO_SNDBUF);
	EXPECT(taken > 0 && taken <= buffer, "%ld bytes taken, with a buffer of %ld", taken, buffer);
	net_wait(a, POLLERR | POLLHUP);
	FAILS(EPIPE, send(a, "x", 1, MSG_NOSIGNAL));
	FAILS(EPIPE, send(a, "x", 1, MSG_NOSIGNAL));
}

CHECK_PAIR(close_by_peer_then_send_too_much_nonblocking)
{
	int a, b;

	net_pair(&a, &b);
	OK(close(b));
	net_recv_eof(a);
	net_nonblock(a, true);
	long taken = net_send_too_much(a), buffer = net_int(a, SOL_SOCKET, SO_SNDBUF);
	EXPECT(taken > 0 && taken <= buffer, "%ld bytes taken, with a buffer of %ld", taken, buffer);
	net_wait(a, POLLERR | POLLHUP);
	FAILS(EPIPE, send(a, "x", 1, MSG_NOSIGNAL));
}

CHECK_PAIR(close_by_peer_with_unread_data_then_send_too_much)
{
	enum { SIZE = 1 << 20 };
	static char buf[SIZE];
	int a, b;

	net_pair(&a, &b);
	net_send(a, 0, 100);
	net_wait(b, POLLIN);
	OK(close(b));
	net_wait(a, POLLERR);
	FAILS(ECONNRESET, send(a, buf, sizeof(buf), MSG_NOSIGNAL));
	FAILS(EPIPE, send(a, buf, sizeof(buf), MSG_NOSIGNAL));
}

CHECK_PAIR(close_half_closed)
{
	int a, b;

	net_pair(&a, &b);
	OK(shutdown(a, SHUT_WR));
	net_recv_eof(b);
	net_send(b, 0, 100);
	net_recv(a, 0, 100);
	OK(close(a));
	OK(close(b));
}

CHECK_PAIR(close_both_at_once)
{
	int a, b;
	struct task task;

	net_pair(&a, &b);
	task_start(&task, close_it, (struct call){ .fd = b });
	EQ(0, close(a));
	EQ(0, task_join(&task));
}

CHECK_PAIR(close_linger_is_remembered)
{
	struct linger linger;
	socklen_t len = sizeof(linger);
	int a, b;

	net_pair(&a, &b);
	set_linger(a, 7);
	OK(getsockopt(a, SOL_SOCKET, SO_LINGER, &linger, &len));
	EQ(1, linger.l_onoff);
	EQ(7, linger.l_linger);
}

CHECK_CONN(close_in_process_that_ends)
{
	struct addr addr;
	int listener = net_listen(&addr, 1);
	pid_t pid = OK(fork());

	if (!pid) {
		net_send(net_connect(&addr), 0, 100);
		_exit(0);
	}
	int fd = net_accept(listener);
	net_recv(fd, 0, 100);
	net_recv_eof(fd);
	task_reap(pid);
}

CHECK_CONN(close_in_process_that_is_killed)
{
	struct addr addr;
	int listener = net_listen(&addr, 1);
	pid_t pid = OK(fork());
	char byte;

	if (!pid) {
		int client = net_connect(&addr);

		net_send(client, 0, 100);
		for (;;)
			recv(client, &byte, 1, 0);
	}
	int fd = net_accept(listener);
	net_recv(fd, 0, 100);
	task_wait_pid_blocked(pid, SYS_recvfrom);
	OK(kill(pid, SIGKILL));
	net_recv_eof(fd);
}
