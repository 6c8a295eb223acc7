// SPDX-License-Identifier: Apache-2.0
/* The events of poll() and select() in each state of a socket, and their wakeups. */
#define _GNU_SOURCE
#include <netinet/tcp.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "harness.h"
#include "net.h"
#include "task.h"

#define ALL (POLLIN | POLLOUT | POLLPRI | POLLRDNORM | POLLWRNORM | POLLRDHUP)
#define WRITABLE (POLLOUT | POLLWRNORM)
#define READABLE (POLLIN | POLLRDNORM)

static void reset(int fd)
{
	struct linger linger = { .l_onoff = 1 };

	OK(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
	OK(close(fd));
}

CHECK(poll_fresh)
{
	EQ(WRITABLE | POLLHUP, net_poll(net_sock(0), ALL, 0));
}

CHECK(poll_bound)
{
	struct addr addr;
	int fd = net_sock(0);

	net_loopback(&addr, 0);
	OK(bind(fd, &addr.sa, addr.len));
	EQ(WRITABLE | POLLHUP, net_poll(fd, ALL, 0));
}

CHECK_CONN(poll_listening)
{
	struct addr addr;
	int listener = net_listen(&addr, 2);

	EQ(0, net_poll(listener, ALL, 0));
	net_connect(&addr);
	EQ(READABLE, net_poll(listener, ALL, -1));
	net_accept(listener);
	EQ(0, net_poll(listener, ALL, 0));
}

CHECK(poll_connecting)
{
	struct addr addr;
	int fd = net_sock(SOCK_NONBLOCK);

	net_stuck(&addr);
	FAILS(EINPROGRESS, connect(fd, &addr.sa, addr.len));
	EQ(0, net_poll(fd, ALL, harness_ms(20)));
}

CHECK_PAIR(poll_connected)
{
	int a, b;

	net_pair(&a, &b);
	EQ(WRITABLE, net_poll(a, ALL, 0));
	net_send(b, 0, 1);
	net_wait(a, POLLIN);
	EQ(WRITABLE | READABLE, net_poll(a, ALL, 0));
	net_recv(a, 0, 1);
	EQ(WRITABLE, net_poll(a, ALL, 0));
}

CHECK_PAIR(poll_peer_half_closed)
{
	int a, b;

	net_pair(&a, &b);
	OK(shutdown(b, SHUT_WR));
	net_wait(a, POLLRDHUP);
	EQ(WRITABLE | READABLE | POLLRDHUP, net_poll(a, ALL, 0));
	net_recv_eof(a);
	EQ(WRITABLE | READABLE | POLLRDHUP, net_poll(a, ALL, 0));
}

CHECK_PAIR(poll_half_closed)
{
	int a, b;

	net_pair(&a, &b);
	OK(shutdown(a, SHUT_WR));
	EQ(WRITABLE, net_poll(a, ALL, 0));
}

CHECK_PAIR(poll_closed_both_ways)
{
	int a, b;

	net_pair(&a, &b);
	OK(shutdown(b, SHUT_WR));
	OK(shutdown(a, SHUT_WR));
	net_wait(a, POLLHUP);
	EQ(WRITABLE | READABLE | POLLRDHUP | POLLHUP, net_poll(a, ALL, 0));
}

CHECK_PAIR(poll_shut_rd)
{
	int a, b;

	net_pair(&a, &b);
	OK(shutdown(a, SHUT_RD));
	EQ(WRITABLE | READABLE | POLLRDHUP, net_poll(a, ALL, 0));
}

CHECK_PAIR(poll_reset)
{
	int a, b;

	net_pair(&a, &b);
	reset(b);
	net_wait(a, POLLERR);
	EQ(WRITABLE | READABLE | POLLRDHUP | POLLERR | POLLHUP, net_poll(a, ALL, 0));
	EQ(ECONNRESET, net_error(a));
	/* The error is reported once, but the end of the connection permanently. */
	EQ(WRITABLE | READABLE | POLLRDHUP | POLLHUP, net_poll(a, ALL, 0));
}

CHECK_PAIR(poll_only_errors_asked)
{
	int a, b;

	net_pair(&a, &b);
	EQ(0, net_poll(a, 0, 0));
	reset(b);
	EQ(POLLERR | POLLHUP, net_wait(a, POLLERR | POLLHUP));
	EQ(POLLERR | POLLHUP, net_poll(a, 0, -1));
}

CHECK_PAIR(poll_not_writable_then_writable)
{
	int a, b;
	char buf[65536] = "";
	size_t queued = 0;

	net_pair(&a, &b);
	net_nonblock(a, true);
	for (ssize_t n; (n = send(a, buf, sizeof(buf), 0)) > 0;)
		queued += n;
	EQ(0, net_poll(a, ALL, 0));
	struct task task;
	task_start(&task, task_do_poll, (struct call){ .fd = a, .flags = POLLOUT });
	task_wait_blocked(&task, SYS_poll);
	/* Receiving half of the queued data frees space. */
	for (size_t got = 0; got < queued;)
		got += OK(recv(b, buf, sizeof(buf), 0));
	EQ(POLLOUT, task_join(&task));
}

CHECK_PAIR(poll_wakes_on_data)
{
	int a, b;
	struct task task;

	net_pair(&a, &b);
	task_start(&task, task_do_poll, (struct call){ .fd = a, .flags = POLLIN });
	task_wait_blocked(&task, SYS_poll);
	net_send(b, 0, 1);
	EQ(POLLIN, task_join(&task));
}

CHECK_PAIR(poll_wakes_on_half_close)
{
	int a, b;
	struct task task;

	net_pair(&a, &b);
	task_start(&task, task_do_poll, (struct call){ .fd = a, .flags = POLLRDHUP });
	task_wait_blocked(&task, SYS_poll);
	OK(shutdown(b, SHUT_WR));
	EQ(POLLRDHUP, task_join(&task));
}

CHECK_PAIR(poll_wakes_on_reset)
{
	int a, b;
	struct task task;

	net_pair(&a, &b);
	task_start(&task, task_do_poll, (struct call){ .fd = a, .flags = 0 });
	task_wait_blocked(&task, SYS_poll);
	reset(b);
	EQ(POLLERR | POLLHUP, task_join(&task));
}

CHECK_CONN(poll_listener_wakes)
{
	struct addr addr;
	int listener = net_listen(&addr, 1);
	struct task task;

	task_start(&task, task_do_poll, (struct call){ .fd = listener, .flags = POLLIN });
	task_wait_blocked(&task, SYS_poll);
	net_connect(&addr);
	EQ(POLLIN, task_join(&task));
}

CHECK(poll_connecting_wakes_when_done)
{
	struct addr addr;
	int fd = net_sock(SOCK_NONBLOCK), stuck = net_stuck(&addr);
	struct task task;

	FAILS(EINPROGRESS, connect(fd, &addr.sa, addr.len));
	task_start(&task, task_do_poll, (struct call){ .fd = fd, .flags = POLLOUT });
	task_wait_blocked(&task, SYS_poll);
	net_unstick(stuck);
	EQ(POLLOUT, task_join(&task));
}

CHECK(poll_connecting_wakes_on_timeout)
{
	struct addr addr;
	int fd = net_sock(SOCK_NONBLOCK);
	struct task task;

	net_stuck(&addr);
	OK(net_set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 300));
	FAILS(EINPROGRESS, connect(fd, &addr.sa, addr.len));
	task_start(&task, task_do_poll, (struct call){ .fd = fd, .flags = POLLIN | POLLOUT });
	task_wait_blocked(&task, SYS_poll);
	EQ(POLLIN | POLLOUT | POLLERR | POLLHUP, task_join(&task));
}

CHECK_CONN(poll_in_before_connect_wakes_on_data)
{
	struct addr addr;
	int listener = net_listen(&addr, 1), fd = net_client(SOCK_NONBLOCK);

	/* poll() on a fresh socket returns POLLHUP at once, so use a socket that connects. */
	FAILS(EINPROGRESS, connect(fd, &addr.sa, addr.len));
	struct task task;
	task_start(&task, task_do_poll, (struct call){ .fd = fd, .flags = POLLIN });
	int peer = net_accept(listener);
	task_wait_blocked(&task, SYS_poll);
	net_send(peer, 0, 1);
	EQ(POLLIN, task_join(&task));
}

CHECK(recv_while_other_thread_connects)
{
	struct addr addr;
	int fd = net_sock(0), stuck = net_stuck(&addr);
	struct task connector, receiver;
	char byte = 0;

	task_connect(&connector, fd, &addr);
	task_start(&receiver, task_do_recv, (struct call){ .fd = fd, .buf = &byte, .len = 1 });
	task_wait_blocked(&receiver, SYS_recvfrom);
	net_unstick(stuck);
	EQ(0, task_join(&connector));
	EQ(1, send(net_accept(stuck), "z", 1, 0));
	EQ(1, task_join(&receiver));
	EQ('z', byte);
}

CHECK(send_while_other_thread_connects)
{
	struct addr addr;
	int fd = net_sock(0), stuck = net_stuck(&addr);
	struct task connector, sender;
	char byte = 0;

	task_connect(&connector, fd, &addr);
	/* send() waits until the socket is connected. */
	task_start(&sender, task_do_send, (struct call){ .fd = fd, .buf = "q", .len = 1 });
	task_wait_blocked(&sender, SYS_sendto);
	net_unstick(stuck);
	EQ(0, task_join(&connector));
	EQ(1, task_join(&sender));
	EQ(1, recv(net_accept(stuck), &byte, 1, 0));
	EQ('q', byte);
}

CHECK_CONN(recv_blocked_across_connect)
{
	struct addr addr;
	int listener = net_listen(&addr, 1), fd = net_client(SOCK_NONBLOCK);
	struct task task;
	char byte = 0;

	/* poll() may start at any stage of connecting, and must report the final events. */
	FAILS(EINPROGRESS, connect(fd, &addr.sa, addr.len));
	net_nonblock(fd, false);
	task_start(&task, task_do_recv, (struct call){ .fd = fd, .buf = &byte, .len = 1 });
	EQ(1, send(net_accept(listener), "w", 1, 0));
	EQ(1, task_join(&task));
	EQ('w', byte);
}

CHECK_CONN(poll_two_threads_both_wake)
{
	struct addr addr;
	int listener = net_listen(&addr, 1), fd = net_client(SOCK_NONBLOCK);
	struct task in, out;

	FAILS(EINPROGRESS, connect(fd, &addr.sa, addr.len));
	task_start(&in, task_do_poll, (struct call){ .fd = fd, .flags = POLLIN });
	task_start(&out, task_do_poll, (struct call){ .fd = fd, .flags = POLLOUT });
	EQ(POLLOUT, task_join(&out));
	net_send(net_accept(listener), 0, 1);
	EQ(POLLIN, task_join(&in));
}

CHECK_PAIR(poll_timeout)
{
	int a, b;

	net_pair(&a, &b);
	long begin = harness_now();
	EQ(0, net_poll(a, POLLIN, 60));
	EXPECT(harness_now() - begin >= 30, "it took %ld ms", harness_now() - begin);
}

CHECK_PAIR(select_all_sets)
{
	int a, b;
	fd_set in, out, except;

	net_pair(&a, &b);
	net_send(b, 0, 1);
	net_wait(a, POLLIN);
	FD_ZERO(&in);
	FD_SET(a, &in);
	out = except = in;
	EQ(2, select(a + 1, &in, &out, &except, NULL));
	EXPECT(FD_ISSET(a, &in) && FD_ISSET(a, &out), "not readable and writable");
	EQ(0, FD_ISSET(a, &except));
}

CHECK_CONN(select_listener_and_timeout)
{
	struct addr addr;
	int listener = net_listen(&addr, 1);
	struct timeval tv = { .tv_usec = 20000 };
	fd_set in;

	FD_ZERO(&in);
	FD_SET(listener, &in);
	EQ(0, select(listener + 1, &in, NULL, NULL, &tv));
	net_connect(&addr);
	FD_SET(listener, &in);
	EQ(1, select(listener + 1, &in, NULL, NULL, NULL));
	EXPECT(FD_ISSET(listener, &in), "not readable");
}

CHECK_CONN(select_writable_when_connected)
{
	struct addr addr;
	int fd = net_client(SOCK_NONBLOCK);
	fd_set out;

	net_listen(&addr, 1);
	FAILS(EINPROGRESS, connect(fd, &addr.sa, addr.len));
	FD_ZERO(&out);
	FD_SET(fd, &out);
	EQ(1, select(fd + 1, NULL, &out, NULL, NULL));
	EQ(0, net_error(fd));
}

CHECK_PAIR(poll_rcvlowat)
{
	int a, b;

	net_pair(&a, &b);
	OK(net_set(a, SOL_SOCKET, SO_RCVLOWAT, 100));
	EQ(100, net_int(a, SOL_SOCKET, SO_RCVLOWAT));
	net_send(b, 0, 60);
	net_wait_rcvq(a, 60);
	EQ(0, net_poll(a, POLLIN, harness_ms(20)));
	net_send(b, 60, 40);
	EQ(POLLIN, net_poll(a, POLLIN, -1));
	/* The end of the stream wakes a reader independently of the mark. */
	net_recv(a, 0, 100);
	net_send(b, 100, 10);
	OK(shutdown(b, SHUT_WR));
	EQ(POLLIN, net_poll(a, POLLIN, -1));
}
