// SPDX-License-Identifier: Apache-2.0
/* connect(), blocking and non-blocking, once and repeated. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/time.h>
#include <unistd.h>

#include "harness.h"
#include "net.h"
#include "task.h"

static int to(int fd, const struct addr *addr)
{
	return connect(fd, &addr->sa, addr->len);
}

CHECK_CONN(connect_blocking)
{
	struct addr addr;
	int listener = net_listen(&addr, 1), fd = net_client(0);

	EQ(0, to(fd, &addr));
	net_exchange(fd, net_accept(listener));
}

CHECK_CONN(connect_again_is_eisconn)
{
	struct addr addr;
	int listener = net_listen(&addr, 1), fd = net_connect(&addr);

	FAILS(EISCONN, to(fd, &addr));
	net_exchange(fd, net_accept(listener));
}

CHECK_CONN(connect_nonblocking)
{
	struct addr addr;
	int listener = net_listen(&addr, 1), fd = net_client(SOCK_NONBLOCK);

	FAILS(EINPROGRESS, to(fd, &addr));
	net_wait(fd, POLLOUT);
	EQ(0, net_error(fd));
	net_nonblock(fd, false);
	net_exchange(fd, net_accept(listener));
}

CHECK_CONN(connect_nonblocking_then_0_then_eisconn)
{
	struct addr addr;
	int fd = net_client(SOCK_NONBLOCK);

	net_listen(&addr, 1);
	FAILS(EINPROGRESS, to(fd, &addr));
	net_wait(fd, POLLOUT);
	EQ(0, to(fd, &addr));
	FAILS(EISCONN, to(fd, &addr));
	FAILS(EISCONN, to(fd, &addr));
}

CHECK_CONN(connect_nonblocking_then_blocking)
{
	struct addr addr;
	int listener = net_listen(&addr, 1), fd = net_client(SOCK_NONBLOCK);

	FAILS(EINPROGRESS, to(fd, &addr));
	net_nonblock(fd, false);
	/* This waits for the attempt in progress. */
	EQ(0, to(fd, &addr));
	net_exchange(fd, net_accept(listener));
}

CHECK(connect_ealready)
{
	struct addr addr;
	int fd = net_sock(SOCK_NONBLOCK);

	net_stuck(&addr);
	FAILS(EINPROGRESS, to(fd, &addr));
	FAILS(EALREADY, to(fd, &addr));
	FAILS(EALREADY, to(fd, &addr));
	EQ(0, net_error(fd));
}

CHECK(connect_nonblocking_waits_for_room)
{
	struct addr addr;
	int fd = net_sock(SOCK_NONBLOCK), stuck = net_stuck(&addr);

	FAILS(EINPROGRESS, to(fd, &addr));
	net_unstick(stuck);
	net_wait(fd, POLLOUT);
	EQ(0, to(fd, &addr));
	net_nonblock(fd, false);
	net_exchange(fd, net_accept(stuck));
}

CHECK(connect_blocking_waits_for_room)
{
	struct addr addr;
	int fd = net_sock(0), stuck = net_stuck(&addr);
	struct task task;

	task_connect(&task, fd, &addr);
	net_unstick(stuck);
	EQ(0, task_join(&task));
	net_exchange(fd, net_accept(stuck));
}

CHECK(connect_two_threads_both_succeed)
{
	struct addr addr;
	int fd = net_sock(0), stuck = net_stuck(&addr);
	struct task first, second;

	task_connect(&first, fd, &addr);
	task_connect(&second, fd, &addr);
	net_unstick(stuck);
	EQ(0, task_join(&first));
	EQ(0, task_join(&second));
	net_exchange(fd, net_accept(stuck));
}

CHECK(connect_nonblocking_while_other_thread_connects)
{
	struct addr addr;
	int fd = net_sock(0), stuck = net_stuck(&addr);
	struct task task;

	task_connect(&task, fd, &addr);
	net_nonblock(fd, true);
	FAILS(EALREADY, to(fd, &addr));
	net_unstick(stuck);
	EQ(0, task_join(&task));
	FAILS(EISCONN, to(fd, &addr));
}

CHECK(connect_refused)
{
	struct addr addr;
	int fd = net_sock(0);

	net_dead(&addr);
	FAILS(ECONNREFUSED, to(fd, &addr));
	/* The error is reported once. */
	EQ(0, net_error(fd));
}

CHECK(connect_refused_again)
{
	struct addr addr;
	int fd = net_sock(0);

	net_dead(&addr);
	FAILS(ECONNREFUSED, to(fd, &addr));
	FAILS(ECONNREFUSED, to(fd, &addr));
}

CHECK(connect_nonblocking_refused)
{
	struct addr addr;
	int fd = net_sock(SOCK_NONBLOCK);

	net_dead(&addr);
	FAILS(EINPROGRESS, to(fd, &addr));
	int got = net_wait(fd, POLLIN | POLLOUT | POLLERR | POLLHUP);
	EQ(POLLIN | POLLOUT | POLLERR | POLLHUP, got);
	EQ(ECONNREFUSED, net_error(fd));
	EQ(0, net_error(fd));
}

CHECK(connect_nonblocking_refused_reported_by_connect)
{
	struct addr addr;
	int fd = net_sock(SOCK_NONBLOCK);

	net_dead(&addr);
	FAILS(EINPROGRESS, to(fd, &addr));
	net_wait(fd, POLLERR);
	FAILS(ECONNREFUSED, to(fd, &addr));
	FAILS(EINPROGRESS, to(fd, &addr));
}

CHECK(connect_nonblocking_refused_reported_by_send)
{
	struct addr addr;
	int fd = net_sock(SOCK_NONBLOCK);

	net_dead(&addr);
	FAILS(EINPROGRESS, to(fd, &addr));
	net_wait(fd, POLLERR);
	FAILS(ECONNREFUSED, send(fd, "x", 1, 0));
	FAILS(EPIPE, send(fd, "x", 1, 0));
}

CHECK(connect_nonblocking_refused_reported_by_recv)
{
	struct addr addr;
	int fd = net_sock(SOCK_NONBLOCK);
	char byte;

	net_dead(&addr);
	FAILS(EINPROGRESS, to(fd, &addr));
	net_wait(fd, POLLERR);
	FAILS(ECONNREFUSED, recv(fd, &byte, 1, 0));
	EQ(0, recv(fd, &byte, 1, 0));
}

CHECK(connect_on_listener)
{
	struct addr addr, other;
	int listener = net_sock(0);

	net_listen_on(listener, &addr, 1);
	net_dead(&other);
	FAILS(EISCONN, to(listener, &other));
}

CHECK(connect_short_address)
{
	struct addr addr;
	int fd = net_sock(0);

	net_dead(&addr);
	FAILS(EINVAL, connect(fd, &addr.sa, 1));
	FAILS(EINVAL, connect(fd, &addr.sa, 8));
	FAILS(EINVAL, connect(fd, &addr.sa, sizeof(addr.ss) + 1));
	FAILS(ECONNREFUSED, to(fd, &addr));
}

CHECK(connect_bad_family)
{
	struct addr addr;
	int fd = net_sock(0);

	net_dead(&addr);
	addr.sa.sa_family = AF_UNIX;
	FAILS(EAFNOSUPPORT, to(fd, &addr));
	/* AF_SMC is the family of the socket, but not of its addresses. */
	addr.sa.sa_family = AF_SMC;
	FAILS(EAFNOSUPPORT, to(fd, &addr));
}

CHECK(connect_bad_pointer)
{
	int fd = net_sock(0);

	FAILS(EFAULT, connect(fd, (struct sockaddr *)8, sizeof(struct sockaddr_in6)));
}

CHECK(connect_unreachable)
{
	struct addr addr;

	net_private();
	int fd = net_sock(0);

	net_any(&addr, 9);
	const char *doc = addr.sa.sa_family == AF_INET ? "192.0.2.1" : "2001:db8::1";
	inet_pton(addr.sa.sa_family, doc, addr.sa.sa_family == AF_INET ?
		  (void *)&addr.in.sin_addr : (void *)&addr.in6.sin6_addr);
	FAILS(ENETUNREACH, to(fd, &addr));
	net_dead(&addr);
	FAILS(ECONNREFUSED, to(fd, &addr));
}

CHECK(connect_to_port_0)
{
	struct addr addr;
	int fd = net_sock(0);

	net_loopback(&addr, 0);
	FAILS(ECONNREFUSED, to(fd, &addr));
}

CHECK(connect_to_itself)
{
	struct addr addr;
	int fd = net_sock(0);

	/* A simultaneous open of TCP in which one socket is both ends. */
	net_loopback(&addr, 0);
	OK(bind(fd, &addr.sa, addr.len));
	net_name(fd, &addr);
	EQ(0, to(fd, &addr));
	net_send(fd, 0, 100);
	net_recv(fd, 0, 100);
}

CHECK_CONN(connect_from_bound_port)
{
	struct addr addr, own, seen = { .len = sizeof(seen.ss) };
	int listener = net_listen(&addr, 1), fd = net_client(0);

	net_loopback(&own, 0);
	OK(bind(fd, &own.sa, own.len));
	net_name(fd, &own);
	EQ(0, to(fd, &addr));
	OK(accept(listener, &seen.sa, &seen.len));
	EQ(net_port(&own), net_port(&seen));
}

CHECK_CONN(connect_to_wildcard)
{
	struct addr addr;

	net_need_lo();
	int listener = net_listen(&addr, 1), fd = net_client(0);
	uint16_t port = net_port(&addr);

	net_any(&addr, port);
	EQ(0, to(fd, &addr));
	net_exchange(fd, net_accept(listener));
}

CHECK(connect_sndtimeo)
{
	struct addr addr;
	int fd = net_sock(0), stuck = net_stuck(&addr);
	struct timeval tv = { .tv_usec = 100000 };

	OK(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)));
	long begin = harness_now();
	FAILS(EINPROGRESS, to(fd, &addr));
	EXPECT(harness_now() - begin >= 50, "it took %ld ms", harness_now() - begin);
	/* The attempt continues. */
	net_unstick(stuck);
	net_wait(fd, POLLOUT);
	EQ(0, net_error(fd));
}

CHECK(connect_user_timeout)
{
	struct addr addr;
	int fd = net_sock(0);

	net_stuck(&addr);
	OK(net_set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 200));
	FAILS(ETIMEDOUT, to(fd, &addr));
	EQ(0, net_error(fd));
}

CHECK(connect_nonblocking_timeout)
{
	struct addr addr;
	int fd = net_sock(SOCK_NONBLOCK);

	net_stuck(&addr);
	OK(net_set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 200));
	FAILS(EINPROGRESS, to(fd, &addr));
	EQ(POLLOUT | POLLERR | POLLHUP, net_wait(fd, POLLOUT | POLLERR | POLLHUP));
	EQ(ETIMEDOUT, net_error(fd));
}

CHECK_CONN(connect_many_in_turn)
{
	struct addr addr;
	int listener = net_listen(&addr, 8);

	for (int i = 0; i < 50; i++) {
		int fd = net_connect(&addr), peer = net_accept(listener);

		net_exchange(fd, peer);
		OK(close(i & 1 ? fd : peer));
		net_recv_eof(i & 1 ? peer : fd);
		OK(close(i & 1 ? peer : fd));
	}
}

CHECK_CONN(connect_v4_mapped)
{
	struct addr addr, seen = { .len = sizeof(seen.ss) };
	int listener = net_server(0), fd = net_client(0);

	if (net_domain()->af != AF_INET6)
		harness_skip("needs IPv6 addresses");
	net_any(&addr, 0);
	OK(net_set(listener, IPPROTO_IPV6, IPV6_V6ONLY, 0));
	OK(bind(listener, &addr.sa, addr.len));
	OK(listen(listener, 1));
	net_name(listener, &addr);
	inet_pton(AF_INET6, "::ffff:127.0.0.1", &addr.in6.sin6_addr);
	EQ(0, to(fd, &addr));
	int peer = OK(accept(listener, &seen.sa, &seen.len));
	EQ(AF_INET6, seen.sa.sa_family);
	EXPECT(IN6_IS_ADDR_V4MAPPED(&seen.in6.sin6_addr), "the client's address is no mapped one");
	net_exchange(fd, peer);
}
