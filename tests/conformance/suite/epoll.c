// SPDX-License-Identifier: Apache-2.0
/* epoll: level, edge, one shot, exclusive, registered before and after each event. */
#define _GNU_SOURCE
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "harness.h"
#include "net.h"
#include "task.h"

#define EDGE (EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET)

static int make(void)
{
	return OK(epoll_create1(EPOLL_CLOEXEC));
}

static void add(int ep, int fd, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.fd = fd };

	OK(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &event));
}

/* Waits up to @ms for one report of the only descriptor. Return: its events, 0 for none. */
static int next(int ep, int ms)
{
	struct epoll_event event;

	return OK(epoll_wait(ep, &event, 1, ms)) ? (int)event.events : 0;
}

static int quiet(int ep)
{
	return next(ep, harness_ms(20));
}

/*
 * Waits for edges until one has all of @events. There may be several if the events occur one after
 * the other.
 */
static void edge(int ep, int events)
{
	int got = 0;

	while ((got & events) != events)
		got |= next(ep, -1);
}

CHECK(epoll_fresh)
{
	int ep = make(), fd = net_sock(0);

	add(ep, fd, EPOLLIN | EPOLLOUT);
	EQ(EPOLLOUT | EPOLLHUP, next(ep, 0));
}

CHECK_CONN(epoll_added_before_connect)
{
	struct addr addr;
	int listener = net_listen(&addr, 1), fd = net_client(SOCK_NONBLOCK), ep = make();

	add(ep, fd, EPOLLIN | EPOLLOUT);
	FAILS(EINPROGRESS, connect(fd, &addr.sa, addr.len));
	while (next(ep, -1) != EPOLLOUT)
		;
	EQ(0, net_error(fd));
	net_send(net_accept(listener), 0, 10);
	net_wait(fd, POLLIN);
	EQ(EPOLLIN | EPOLLOUT, next(ep, 0));
}

CHECK_CONN(epoll_edge_added_before_connect)
{
	struct addr addr;
	int listener = net_listen(&addr, 1), fd = net_client(SOCK_NONBLOCK), ep = make();

	add(ep, fd, EDGE);
	EQ(EPOLLOUT | EPOLLHUP, next(ep, 0));
	EQ(0, quiet(ep));
	FAILS(EINPROGRESS, connect(fd, &addr.sa, addr.len));
	EQ(EPOLLOUT, next(ep, -1));
	EQ(0, net_error(fd));
	/* There is one edge for the connection, and no other. */
	EQ(0, quiet(ep));
	int peer = net_accept(listener);
	net_send(peer, 0, 10);
	edge(ep, EPOLLIN);
	EQ(0, quiet(ep));
	net_recv(fd, 0, 10);
	OK(close(peer));
	edge(ep, EPOLLIN | EPOLLRDHUP);
}

CHECK_CONN(epoll_edge_added_while_connecting)
{
	struct addr addr;
	int listener = net_listen(&addr, 1), fd = net_client(SOCK_NONBLOCK), ep = make();

	FAILS(EINPROGRESS, connect(fd, &addr.sa, addr.len));
	add(ep, fd, EDGE);
	EQ(EPOLLOUT, next(ep, -1));
	EQ(0, net_error(fd));
	EQ(0, quiet(ep));
	net_send(net_accept(listener), 0, 10);
	edge(ep, EPOLLIN);
}

CHECK(epoll_edge_while_stuck)
{
	struct addr addr;
	int fd = net_sock(SOCK_NONBLOCK), stuck = net_stuck(&addr), ep = make();

	add(ep, fd, EDGE);
	EQ(EPOLLOUT | EPOLLHUP, next(ep, 0));
	FAILS(EINPROGRESS, connect(fd, &addr.sa, addr.len));
	EQ(0, quiet(ep));
	net_unstick(stuck);
	EQ(EPOLLOUT, next(ep, -1));
	EQ(0, quiet(ep));
}

CHECK(epoll_edge_refused)
{
	struct addr addr;
	int fd = net_sock(SOCK_NONBLOCK), ep = make();

	net_dead(&addr);
	add(ep, fd, EDGE);
	next(ep, 0);
	FAILS(EINPROGRESS, connect(fd, &addr.sa, addr.len));
	edge(ep, EPOLLERR | EPOLLHUP);
	EQ(ECONNREFUSED, net_error(fd));
	EQ(0, quiet(ep));
}

CHECK_CONN(epoll_added_before_blocking_connect)
{
	struct addr addr;
	int listener = net_listen(&addr, 1), fd = net_client(0), ep = make();

	add(ep, fd, EPOLLIN | EPOLLET);
	next(ep, 0);
	OK(connect(fd, &addr.sa, addr.len));
	net_send(net_accept(listener), 0, 10);
	edge(ep, EPOLLIN);
	net_recv(fd, 0, 10);
}

CHECK_CONN(epoll_added_before_listen)
{
	struct addr addr;
	int listener = net_server(0), ep = make();

	add(ep, listener, EPOLLIN);
	net_listen_on(listener, &addr, 1);
	EQ(0, quiet(ep));
	int fd = net_connect(&addr);
	EQ(EPOLLIN, next(ep, -1));
	net_exchange(fd, net_accept(listener));
	EQ(0, quiet(ep));
}

CHECK_CONN(epoll_edge_listener)
{
	struct addr addr;
	int listener = net_server(SOCK_NONBLOCK), ep = make();

	add(ep, listener, EPOLLIN | EPOLLET);
	net_listen_on(listener, &addr, 4);
	/* Ignore the events of the unconnected socket. */
	next(ep, 0);
	net_connect(&addr);
	EQ(EPOLLIN, next(ep, -1));
	EQ(0, quiet(ep));
	net_connect(&addr);
	EQ(EPOLLIN, next(ep, -1));
	net_accept(listener);
	net_accept(listener);
	FAILS(EAGAIN, accept(listener, NULL, NULL));
	EQ(0, quiet(ep));
	net_connect(&addr);
	EQ(EPOLLIN, next(ep, -1));
}

CHECK_PAIR(epoll_level)
{
	int a, b, ep = make();

	net_pair(&a, &b);
	add(ep, a, EPOLLIN);
	EQ(0, quiet(ep));
	net_send(b, 0, 10);
	EQ(EPOLLIN, next(ep, -1));
	EQ(EPOLLIN, next(ep, 0));
	net_recv(a, 0, 5);
	EQ(EPOLLIN, next(ep, 0));
	net_recv(a, 5, 5);
	EQ(0, quiet(ep));
}

CHECK_PAIR(epoll_edge)
{
	int a, b, ep = make();

	net_pair(&a, &b);
	add(ep, a, EPOLLIN | EPOLLET);
	EQ(0, quiet(ep));
	net_send(b, 0, 10);
	EQ(EPOLLIN, next(ep, -1));
	EQ(0, quiet(ep));
	/* More data is another event, although the first data is unread. */
	net_send(b, 10, 10);
	EQ(EPOLLIN, next(ep, -1));
	net_recv(a, 0, 20);
	EQ(0, quiet(ep));
}

CHECK_PAIR(epoll_oneshot)
{
	int a, b, ep = make();
	struct epoll_event event = { .events = EPOLLIN | EPOLLONESHOT };

	net_pair(&a, &b);
	add(ep, a, EPOLLIN | EPOLLONESHOT);
	net_send(b, 0, 10);
	EQ(EPOLLIN, next(ep, -1));
	net_send(b, 10, 10);
	EQ(0, quiet(ep));
	OK(epoll_ctl(ep, EPOLL_CTL_MOD, a, &event));
	EQ(EPOLLIN, next(ep, -1));
}

CHECK_PAIR(epoll_edge_writable_again)
{
	int a, b, ep = make();
	char buf[65536] = "";
	size_t queued = 0;

	net_pair(&a, &b);
	net_nonblock(a, true);
	add(ep, a, EPOLLOUT | EPOLLET);
	EQ(EPOLLOUT, next(ep, 0));
	for (ssize_t n; (n = send(a, buf, sizeof(buf), 0)) > 0;)
		queued += n;
	next(ep, 0);
	EQ(0, quiet(ep));
	for (size_t got = 0; got < queued;)
		got += OK(recv(b, buf, sizeof(buf), 0));
	EQ(EPOLLOUT, next(ep, -1));
	EXPECT(send(a, buf, sizeof(buf), 0) > 0, "nothing could be sent");
}

CHECK_PAIR(epoll_reset)
{
	struct linger linger = { .l_onoff = 1 };
	int a, b, ep = make();

	net_pair(&a, &b);
	add(ep, a, EPOLLIN | EPOLLRDHUP | EPOLLET);
	EQ(0, quiet(ep));
	OK(setsockopt(b, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
	OK(close(b));
	edge(ep, EPOLLIN | EPOLLRDHUP | EPOLLERR | EPOLLHUP);
}

CHECK_PAIR(epoll_closed_is_removed)
{
	int a, b, ep = make();

	net_pair(&a, &b);
	add(ep, a, EPOLLOUT);
	EQ(EPOLLOUT, next(ep, 0));
	OK(close(a));
	EQ(0, quiet(ep));
}

CHECK_CONN(epoll_follows_dup)
{
	struct addr addr;
	int listener = net_listen(&addr, 1), fd = net_client(SOCK_NONBLOCK), ep = make();

	add(ep, fd, EPOLLIN | EPOLLET);
	int copy = OK(dup(fd));
	/* The registration belongs to the open file description, which the duplicate keeps open. */
	OK(close(fd));
	FAILS(EINPROGRESS, connect(copy, &addr.sa, addr.len));
	net_send(net_accept(listener), 0, 10);
	edge(ep, EPOLLIN);
}

CHECK(epoll_ctl_errors)
{
	int ep = make(), fd = net_sock(0);
	struct epoll_event event = { .events = EPOLLIN };

	FAILS(ENOENT, epoll_ctl(ep, EPOLL_CTL_MOD, fd, &event));
	FAILS(ENOENT, epoll_ctl(ep, EPOLL_CTL_DEL, fd, NULL));
	OK(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &event));
	FAILS(EEXIST, epoll_ctl(ep, EPOLL_CTL_ADD, fd, &event));
	OK(epoll_ctl(ep, EPOLL_CTL_DEL, fd, NULL));
}

static long wait_once(struct call *call)
{
	struct epoll_event event;

	return epoll_wait(call->fd, &event, 1, -1) < 0 ? -errno : (long)event.events;
}

CHECK(epoll_wakes_while_connecting)
{
	struct addr addr;
	int fd = net_sock(SOCK_NONBLOCK), stuck = net_stuck(&addr), ep = make();
	struct task task;

	FAILS(EINPROGRESS, connect(fd, &addr.sa, addr.len));
	add(ep, fd, EPOLLOUT);
	task_start(&task, wait_once, (struct call){ .fd = ep });
	task_wait_blocked(&task, SYS_epoll_wait);
	net_unstick(stuck);
	EQ(EPOLLOUT, task_join(&task));
}

CHECK_CONN(epoll_waits_before_connect)
{
	struct addr addr;
	int listener = net_listen(&addr, 1), fd = net_client(SOCK_NONBLOCK), ep = make();
	struct task task;

	/* Take the edge of the unconnected socket, start to wait, then connect it. */
	add(ep, fd, EPOLLIN | EPOLLET);
	next(ep, 0);
	task_start(&task, wait_once, (struct call){ .fd = ep });
	task_wait_blocked(&task, SYS_epoll_wait);
	FAILS(EINPROGRESS, connect(fd, &addr.sa, addr.len));
	net_send(net_accept(listener), 0, 1);
	EXPECT(task_join(&task) & EPOLLIN, "not readable");
}

#define WAITERS 4

CHECK_CONN(epoll_exclusive_listener)
{
	struct addr addr;
	int listener = net_listen(&addr, WAITERS), eps[WAITERS];
	struct task tasks[WAITERS];

	net_nonblock(listener, true);
	for (int i = 0; i < WAITERS; i++) {
		eps[i] = make();
		add(eps[i], listener, EPOLLIN | EPOLLEXCLUSIVE);
		task_start(&tasks[i], wait_once, (struct call){ .fd = eps[i] });
		task_wait_blocked(&tasks[i], SYS_epoll_wait);
	}
	/*
	 * Each connection wakes at least one thread. With one connection for each thread, all have
	 * woken.
	 */
	for (int i = 0; i < WAITERS; i++)
		net_connect(&addr);
	for (int i = 0; i < WAITERS; i++)
		EQ(EPOLLIN, task_join(&tasks[i]));
	for (int i = 0; i < WAITERS; i++)
		net_accept(listener);
	FAILS(EAGAIN, accept(listener, NULL, NULL));
}

CHECK_PAIR(epoll_nested)
{
	int a, b, inner = make(), outer = make();

	net_pair(&a, &b);
	add(inner, a, EPOLLIN);
	add(outer, inner, EPOLLIN);
	EQ(0, quiet(outer));
	net_send(b, 0, 1);
	EQ(EPOLLIN, next(outer, -1));
	EQ(EPOLLIN, next(inner, 0));
}
