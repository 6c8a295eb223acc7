// SPDX-License-Identifier: Apache-2.0
/* shutdown() in each state, and errors of broken connections. */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "harness.h"
#include "net.h"
#include "task.h"

CHECK(shutdown_fresh)
{
	int fd = net_sock(0);

	FAILS(ENOTCONN, shutdown(fd, SHUT_RD));
	FAILS(ENOTCONN, shutdown(fd, SHUT_WR));
	FAILS(ENOTCONN, shutdown(fd, SHUT_RDWR));
}

CHECK(shutdown_bad_direction)
{
	FAILS(EINVAL, shutdown(net_sock(0), 3));
	FAILS(EINVAL, shutdown(net_sock(0), -1));
}

CHECK_PAIR(shutdown_wr)
{
	int a, b;

	net_pair(&a, &b);
	net_send(a, 0, 100);
	EQ(0, shutdown(a, SHUT_WR));
	net_recv(b, 0, 100);
	net_recv_eof(b);
	FAILS(EPIPE, send(a, "x", 1, 0));
	/* The other direction still works. */
	net_send(b, 0, 20000);
	net_recv(a, 0, 20000);
	EQ(0, shutdown(b, SHUT_WR));
	net_recv_eof(a);
}

CHECK_PAIR(shutdown_wr_by_peer)
{
	int a, b;

	net_pair(&a, &b);
	OK(shutdown(b, SHUT_WR));
	net_recv_eof(a);
	net_send(a, 0, 20000);
	net_recv(b, 0, 20000);
	OK(shutdown(a, SHUT_WR));
	net_recv_eof(b);
}

CHECK_PAIR(shutdown_rd)
{
	int a, b;
	char byte;

	net_pair(&a, &b);
	EQ(0, shutdown(a, SHUT_RD));
	EQ(0, recv(a, &byte, 1, 0));
	net_send(a, 0, 100);
	net_recv(b, 0, 100);
}

CHECK_PAIR(shutdown_rd_still_receives)
{
	int a, b;

	net_pair(&a, &b);
	net_send(b, 0, 100);
	net_wait_rcvq(a, 100);
	EQ(0, shutdown(a, SHUT_RD));
	/* The socket can read queued data and data that arrive later. */
	net_recv(a, 0, 100);
	net_recv_eof(a);
	net_send(b, 100, 50);
	net_wait_rcvq(a, 50);
	net_recv(a, 100, 50);
}

CHECK_PAIR(shutdown_rdwr)
{
	int a, b;

	net_pair(&a, &b);
	EQ(0, shutdown(a, SHUT_RDWR));
	net_recv_eof(a);
	net_recv_eof(b);
	FAILS(EPIPE, send(a, "x", 1, 0));
}

CHECK_PAIR(shutdown_twice)
{
	int a, b;

	net_pair(&a, &b);
	EQ(0, shutdown(a, SHUT_WR));
	EQ(0, shutdown(a, SHUT_WR));
	EQ(0, shutdown(a, SHUT_RD));
}

CHECK_PAIR(shutdown_after_both_ended)
{
	int a, b;

	net_pair(&a, &b);
	OK(shutdown(a, SHUT_WR));
	/* Otherwise both ends may close at the same time, and this one waits for an acknowledgement. */
	net_recv_eof(b);
	OK(close(b));
	net_recv_eof(a);
	/* The connection is in TIME_WAIT by now, so this socket counts as closed. */
	FAILS(ENOTCONN, shutdown(a, SHUT_WR));
}

CHECK_PAIR(shutdown_rd_wakes_recv)
{
	int a, b;
	struct task task;
	char byte;

	net_pair(&a, &b);
	task_start(&task, task_do_recv, (struct call){ .fd = a, .buf = &byte, .len = 1 });
	task_wait_blocked(&task, SYS_recvfrom);
	OK(shutdown(a, SHUT_RD));
	EQ(0, task_join(&task));
}

CHECK_PAIR(shutdown_rdwr_wakes_poll)
{
	int a, b;
	struct task task;

	net_pair(&a, &b);
	task_start(&task, task_do_poll, (struct call){ .fd = a, .flags = POLLIN });
	task_wait_blocked(&task, SYS_poll);
	OK(shutdown(a, SHUT_RDWR));
	EQ(POLLIN | POLLHUP, task_join(&task));
}

CHECK_PAIR(shutdown_wr_wakes_send)
{
	int a, b;
	struct task task;
	static char big[1 << 23];

	net_pair(&a, &b);
	task_start(&task, task_do_send, (struct call){ .fd = a, .buf = big, .len = sizeof(big) });
	task_wait_blocked(&task, SYS_sendto);
	OK(shutdown(a, SHUT_WR));
	long sent = task_join(&task);
	EXPECT(sent > 0 && sent < (long)sizeof(big), "send() returned %ld", sent);
}

CHECK_CONN(shutdown_listener_wakes_accept)
{
	struct addr addr;
	int listener = net_listen(&addr, 1);
	struct task task;

	task_start(&task, task_do_accept, (struct call){ .fd = listener });
	task_wait_blocked(&task, SYS_accept);
	EQ(0, shutdown(listener, SHUT_RD));
	EQ(-EINVAL, task_join(&task));
}

CHECK_CONN(shutdown_listener_wakes_poll)
{
	struct addr addr;
	int listener = net_listen(&addr, 1);
	struct task task;

	task_start(&task, task_do_poll, (struct call){ .fd = listener, .flags = POLLIN });
	task_wait_blocked(&task, SYS_poll);
	EQ(0, shutdown(listener, SHUT_RDWR));
	EXPECT(task_join(&task) & POLLHUP, "no POLLHUP");
}

CHECK_CONN(shutdown_listener_then_listen)
{
	struct addr addr;
	int listener = net_listen(&addr, 1), client = net_client(0);

	OK(shutdown(listener, SHUT_RD));
	FAILS(ECONNREFUSED, connect(client, &addr.sa, addr.len));
	EQ(0, listen(listener, 1));
	/* shutdown() releases a port that the kernel has chosen. */
	net_name(listener, &addr);
	EQ(0, connect(client, &addr.sa, addr.len));
	net_exchange(client, net_accept(listener));
}

CHECK_CONN(shutdown_listener_wr)
{
	struct addr addr;
	int listener = net_listen(&addr, 1);

	/* A listener has no sending direction, so it continues to listen. */
	EQ(0, shutdown(listener, SHUT_WR));
	int fd = net_connect(&addr);
	net_exchange(fd, net_accept(listener));
}

CHECK_CONN(shutdown_listener_resets_queued)
{
	struct addr addr;
	int listener = net_listen(&addr, 1), fd = net_connect(&addr);
	char byte;

	net_wait(listener, POLLIN);
	OK(shutdown(listener, SHUT_RD));
	FAILS(ECONNRESET, recv(fd, &byte, 1, 0));
}

CHECK(shutdown_while_connecting)
{
	struct addr addr;
	int fd = net_sock(SOCK_NONBLOCK);

	net_stuck(&addr);
	FAILS(EINPROGRESS, connect(fd, &addr.sa, addr.len));
	EQ(0, shutdown(fd, SHUT_RDWR));
	/* The attempt has ended, and the socket can connect again. */
	EXPECT(net_poll(fd, POLLIN, 0) & POLLHUP, "no POLLHUP");
}

CHECK(shutdown_wakes_blocked_connect)
{
	struct addr addr;
	int fd = net_sock(0);
	struct task task;

	net_stuck(&addr);
	task_connect(&task, fd, &addr);
	EQ(0, shutdown(fd, SHUT_RDWR));
	EQ(-ECONNRESET, task_join(&task));
}

CHECK_PAIR(sigpipe_on_send)
{
	int a, b;

	net_pair(&a, &b);
	OK(shutdown(a, SHUT_WR));
	task_on_signal(SIGPIPE, 0);
	FAILS(EPIPE, send(a, "x", 1, MSG_NOSIGNAL));
	EQ(0, task_signals());
	FAILS(EPIPE, send(a, "x", 1, 0));
	EQ(1, task_signals());
	FAILS(EPIPE, write(a, "x", 1));
	EQ(2, task_signals());
}

CHECK(sigpipe_on_fresh)
{
	int fd = net_sock(0);

	task_on_signal(SIGPIPE, 0);
	FAILS(EPIPE, send(fd, "x", 1, 0));
	EQ(1, task_signals());
	FAILS(EPIPE, send(fd, "x", 1, MSG_NOSIGNAL));
	EQ(1, task_signals());
}

CHECK_PAIR(sigpipe_not_on_reset)
{
	int a, b;

	net_pair(&a, &b);
	net_send(a, 0, 1);
	net_wait(b, POLLIN);
	OK(close(b));
	net_wait(a, POLLERR);
	task_on_signal(SIGPIPE, 0);
	FAILS(ECONNRESET, send(a, "x", 1, 0));
	EQ(0, task_signals());
	FAILS(EPIPE, send(a, "x", 1, 0));
	EQ(1, task_signals());
}
