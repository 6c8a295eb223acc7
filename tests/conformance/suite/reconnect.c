// SPDX-License-Identifier: Apache-2.0
/* connect() again: after a failure, after connect() to AF_UNSPEC, and on a socket that was accepted or has listened. */
#define _GNU_SOURCE
#include <unistd.h>

#include "harness.h"
#include "net.h"
#include "task.h"

static const struct sockaddr unspec = { .sa_family = AF_UNSPEC };

static int to(int fd, const struct addr *addr)
{
	return connect(fd, &addr->sa, addr->len);
}

CHECK_CONN(connect_after_refused)
{
	struct addr dead, addr;
	int listener = net_listen(&addr, 1), fd = net_client(0);

	net_dead(&dead);
	FAILS(ECONNREFUSED, to(fd, &dead));
	EQ(0, to(fd, &addr));
	net_exchange(fd, net_accept(listener));
}

CHECK_CONN(connect_unspec_disconnects)
{
	struct addr addr, name = { .len = sizeof(name.ss) };
	int listener = net_listen(&addr, 1), fd = net_connect(&addr);
	int peer = net_accept(listener);
	char byte;

	EQ(0, connect(fd, &unspec, sizeof(unspec)));
	FAILS(ENOTCONN, getpeername(fd, &name.sa, &name.len));
	FAILS(ECONNRESET, recv(peer, &byte, 1, 0));
}

CHECK_CONN(connect_unspec_then_reuse)
{
	struct addr addr, other;
	int listener = net_listen(&addr, 1), second = net_listen(&other, 1);
	int fd = net_connect(&addr);

	net_accept(listener);
	EQ(0, connect(fd, &unspec, sizeof(unspec)));
	EQ(0, to(fd, &other));
	net_exchange(fd, net_accept(second));
}

CHECK(connect_unspec_on_fresh)
{
	int fd = net_sock(0);

	EQ(0, connect(fd, &unspec, sizeof(unspec)));
	EQ(0, connect(fd, &unspec, sizeof(unspec)));
}

CHECK_CONN(connect_unspec_ends_attempt)
{
	struct addr stuck, addr;
	int listener = net_listen(&addr, 1), fd = net_client(SOCK_NONBLOCK);

	net_stuck(&stuck);
	FAILS(EINPROGRESS, to(fd, &stuck));
	EQ(0, connect(fd, &unspec, sizeof(unspec)));
	net_nonblock(fd, false);
	EQ(0, to(fd, &addr));
	net_exchange(fd, net_accept(listener));
}

/*
 * Accepts a connection and disconnects the server's end, which is an unconnected socket from then
 * on.
 */
static int net_accept_and_disconnect(int listener, const struct addr *addr)
{
	net_connect(addr);
	int fd = net_accept(listener);

	EQ(0, connect(fd, &unspec, sizeof(unspec)));
	return fd;
}

CHECK_CONN(connect_accepted_turned_client)
{
	struct addr addr, other;
	int listener = net_listen(&addr, 1), second = net_listen(&other, 1);
	int fd = net_accept_and_disconnect(listener, &addr);

	EQ(0, to(fd, &other));
	net_exchange(fd, net_accept(second));
}

CHECK_CONN(connect_accepted_turned_client_nonblocking)
{
	struct addr addr, other;
	int listener = net_listen(&addr, 1), second = net_listen(&other, 1);
	int fd = net_accept_and_disconnect(listener, &addr);

	OK(close(listener));
	net_nonblock(fd, true);
	FAILS(EINPROGRESS, to(fd, &other));
	net_wait(fd, POLLOUT);
	EQ(0, net_error(fd));
	net_nonblock(fd, false);
	net_exchange(fd, net_accept(second));
	/* Repeat this. */
	EQ(0, connect(fd, &unspec, sizeof(unspec)));
	net_nonblock(fd, true);
	FAILS(EINPROGRESS, to(fd, &other));
	net_wait(fd, POLLOUT);
	OK(close(fd));
}

CHECK_CONN(connect_accepted_turned_listener)
{
	struct addr addr, own;
	int listener = net_listen(&addr, 1);
	int fd = net_accept_and_disconnect(listener, &addr);

	OK(close(listener));
	OK(listen(fd, 1));
	net_name(fd, &own);
	int client = net_connect(&own);
	net_exchange(client, net_accept(fd));
}

/* Makes a client that has connected without blocking, and has not read the result. */
static int net_connect_unread(int listener, const struct addr *addr, int *peer)
{
	int fd = net_client(SOCK_NONBLOCK);

	FAILS(EINPROGRESS, to(fd, addr));
	net_wait(fd, POLLOUT);
	*peer = net_accept(listener);
	return fd;
}

/* Connects a socket whose connection has ended. */
static void net_reconnect(int fd, int listener, const struct addr *addr)
{
	FAILS(EINPROGRESS, to(fd, addr));
	net_wait(fd, POLLOUT);
	EQ(0, net_error(fd));
	net_nonblock(fd, false);
	net_exchange(fd, net_accept(listener));
}

CHECK_CONN(connect_again_after_reset)
{
	struct linger linger = { .l_onoff = 1 };
	struct addr addr;
	int peer, listener = net_listen(&addr, 1);
	int fd = net_connect_unread(listener, &addr, &peer);

	OK(setsockopt(peer, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
	OK(close(peer));
	net_wait(fd, POLLERR);
	FAILS(ECONNRESET, to(fd, &addr));
	net_reconnect(fd, listener, &addr);
}

CHECK_CONN(connect_again_after_lost_data)
{
	struct addr addr;
	int peer, listener = net_listen(&addr, 1);
	int fd = net_connect_unread(listener, &addr, &peer);

	OK(close(peer));
	net_wait(fd, POLLIN);
	EQ(1, send(fd, "x", 1, 0));
	net_wait(fd, POLLERR | POLLHUP);
	FAILS(EPIPE, send(fd, "x", 1, MSG_NOSIGNAL));
	FAILS(ECONNABORTED, to(fd, &addr));
	net_reconnect(fd, listener, &addr);
}

CHECK_CONN(connect_unspec_on_listener)
{
	struct addr addr;
	int listener = net_listen(&addr, 1), client = net_client(0);

	EQ(0, connect(listener, &unspec, sizeof(unspec)));
	FAILS(EINVAL, accept(listener, NULL, NULL));
	FAILS(ECONNREFUSED, to(client, &addr));
}

CHECK_CONN(connect_listener_turned_client)
{
	struct addr addr, other;
	int first = net_listen(&addr, 1), second = net_listen(&other, 1);

	EQ(0, connect(first, &unspec, sizeof(unspec)));
	EQ(0, to(first, &other));
	net_exchange(first, net_accept(second));
}

/* Has another thread connect to a server that never answers, ends that by @end, and connects again. */
static void connect_again(int (*end)(int fd))
{
	struct addr addr;
	int fd = net_sock(0);
	struct task task;

	net_stuck(&addr);
	task_connect(&task, fd, &addr);
	EQ(0, end(fd));
	net_nonblock(fd, true);
	FAILS(EINPROGRESS, to(fd, &addr));
}

static int end_by_disconnecting(int fd)
{
	return connect(fd, &unspec, sizeof(unspec));
}

CHECK(connect_after_disconnecting_other_thread)
{
	connect_again(end_by_disconnecting);
}

static int end_by_shutdown(int fd)
{
	return shutdown(fd, SHUT_RDWR);
}

CHECK(connect_after_shutdown_of_other_thread)
{
	connect_again(end_by_shutdown);
}
