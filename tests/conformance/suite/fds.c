// SPDX-License-Identifier: Apache-2.0
/*
 * Sockets as file descriptors: duplicated, inherited, passed to other processes, and their flags.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"
#include "net.h"
#include "task.h"

CHECK(fd_flags)
{
	int fd = OK(socket(net_domain()->family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
			   net_domain()->protocol));

	EQ(O_RDWR | O_NONBLOCK, fcntl(fd, F_GETFL));
	EQ(FD_CLOEXEC, fcntl(fd, F_GETFD));
	fd = net_sock(0);
	EQ(O_RDWR, fcntl(fd, F_GETFL));
	EQ(0, fcntl(fd, F_GETFD));
}

CHECK(fd_bad_socket_flags)
{
	FAILS(EINVAL, socket(net_domain()->family, SOCK_STREAM | 0x10000, net_domain()->protocol));
}

CHECK(fd_is_a_socket)
{
	struct stat st;
	int fd = net_sock(0);
	char link[64], path[64];

	OK(fstat(fd, &st));
	EXPECT(S_ISSOCK(st.st_mode), "mode %o", st.st_mode);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ssize_t n = OK(readlink(path, link, sizeof(link) - 1));
	link[n] = 0;
	EXPECT(!strncmp(link, "socket:[", 8), "it is %s", link);
	EQ(st.st_ino, strtoul(link + 8, NULL, 10));
}

CHECK_CONN(fd_inode_survives_connect)
{
	struct addr addr;
	struct stat before, after;
	int fd = net_client(0);

	net_listen(&addr, 1);
	OK(fstat(fd, &before));
	OK(connect(fd, &addr.sa, addr.len));
	OK(fstat(fd, &after));
	EQ(before.st_ino, after.st_ino);
}

CHECK_PAIR(fd_fionbio)
{
	int a, b;
	char byte;

	net_pair(&a, &b);
	OK(ioctl(a, FIONBIO, &(int){ 1 }));
	EQ(O_NONBLOCK, fcntl(a, F_GETFL) & O_NONBLOCK);
	FAILS(EAGAIN, recv(a, &byte, 1, 0));
	OK(ioctl(a, FIONBIO, &(int){ 0 }));
	EQ(0, fcntl(a, F_GETFL) & O_NONBLOCK);
}

CHECK_PAIR(fd_dup)
{
	int a, b;

	net_pair(&a, &b);
	int copy = OK(dup(a));
	OK(close(a));
	net_exchange(copy, b);
	OK(close(copy));
	net_recv_eof(b);
}

CHECK_CONN(fd_dup_before_connect)
{
	struct addr addr;
	int listener = net_listen(&addr, 1), fd = net_client(0), copy = OK(dup(fd));

	OK(connect(fd, &addr.sa, addr.len));
	int peer = net_accept(listener);
	net_exchange(copy, peer);
	OK(close(fd));
	net_exchange(copy, peer);
}

CHECK(fd_dup_shares_nonblock)
{
	int fd = net_client(0), copy = OK(dup(fd));

	net_nonblock(copy, true);
	EQ(O_NONBLOCK, fcntl(fd, F_GETFL) & O_NONBLOCK);
}

static bool is_peer(int fd, int accepted)
{
	struct addr here, there = { .len = sizeof(there.ss) };

	net_name(fd, &here);
	OK(getpeername(accepted, &there.sa, &there.len));
	return net_port(&here) == net_port(&there);
}

CHECK_CONN(fd_dup2_over_socket)
{
	struct addr addr;
	int listener = net_listen(&addr, 2), one = net_connect(&addr), two = net_connect(&addr);
	int first = net_accept(listener), second = net_accept(listener);

	/* Handshakes that take longer than TCP's may end in another order. */
	if (!is_peer(one, first)) {
		int swap = first;

		first = second;
		second = swap;
	}
	/* Replacing the last descriptor of a connection closes the connection. */
	OK(dup2(two, one));
	net_recv_eof(first);
	net_exchange(one, second);
}

static void talk_in_child(struct call *call)
{
	net_recv(call->fd, 0, 100);
	net_send(call->fd, 0, 100);
}

CHECK_PAIR(fd_inherited_by_fork)
{
	int a, b;

	net_pair(&a, &b);
	pid_t pid = task_fork(talk_in_child, &(struct call){ .fd = a });
	OK(close(a));
	net_send(b, 0, 100);
	net_recv(b, 0, 100);
	task_reap(pid);
	net_recv_eof(b);
}

static void connect_in_child(struct call *call)
{
	OK(connect(call->fd, &call->addr->sa, call->addr->len));
}

CHECK_CONN(fd_connected_by_child)
{
	struct addr addr;
	int listener = net_listen(&addr, 1), fd = net_client(0);

	task_reap(task_fork(connect_in_child, &(struct call){ .fd = fd, .addr = &addr }));
	net_exchange(fd, net_accept(listener));
}

static void listen_in_child(struct call *call)
{
	OK(listen(call->fd, 3));
}

CHECK_CONN(fd_listened_by_child)
{
	struct addr addr;
	int listener = net_server(0);

	net_loopback(&addr, 0);
	OK(bind(listener, &addr.sa, addr.len));
	net_name(listener, &addr);
	task_reap(task_fork(listen_in_child, &(struct call){ .fd = listener }));
	int fd = net_connect(&addr);
	net_exchange(fd, net_accept(listener));
}

static void pass(int over, int fd)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control = {};
	struct iovec iov = { "x", 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
			      .msg_controllen = sizeof(control) };

	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	EQ(1, sendmsg(over, &msg, 0));
}

static int take(int over)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control = {};
	char byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	int fd;

	EQ(1, recvmsg(over, &msg, 0));
	EQ(SCM_RIGHTS, control.header.cmsg_type);
	memcpy(&fd, CMSG_DATA(&control.header), sizeof(fd));
	return fd;
}

CHECK_PAIR(fd_passed_when_connected)
{
	int a, b, over[2];

	net_pair(&a, &b);
	OK(socketpair(AF_UNIX, SOCK_STREAM, 0, over));
	pass(over[0], a);
	OK(close(a));
	net_exchange(take(over[1]), b);
}

CHECK_CONN(fd_passed_before_connect)
{
	struct addr addr;
	int listener = net_listen(&addr, 1), fd = net_client(0), over[2];

	OK(socketpair(AF_UNIX, SOCK_STREAM, 0, over));
	pass(over[0], fd);
	OK(connect(fd, &addr.sa, addr.len));
	OK(close(fd));
	net_exchange(take(over[1]), net_accept(listener));
}

CHECK_CONN(fd_passed_while_connecting)
{
	struct addr addr;
	int listener = net_listen(&addr, 1), fd = net_client(SOCK_NONBLOCK), over[2];

	OK(socketpair(AF_UNIX, SOCK_STREAM, 0, over));
	FAILS(EINPROGRESS, connect(fd, &addr.sa, addr.len));
	pass(over[0], fd);
	OK(close(fd));
	fd = take(over[1]);
	net_wait(fd, POLLOUT);
	net_nonblock(fd, false);
	net_exchange(fd, net_accept(listener));
}

CHECK_CONN(fd_in_flight_is_closed_with_carrier)
{
	struct addr addr;
	int listener = net_listen(&addr, 1), fd = net_connect(&addr), over[2];
	int peer = net_accept(listener);

	OK(socketpair(AF_UNIX, SOCK_STREAM, 0, over));
	pass(over[0], fd);
	OK(close(fd));
	OK(close(over[0]));
	OK(close(over[1]));
	net_recv_eof(peer);
}

CHECK_CONN(fd_listener_passed)
{
	struct addr addr;
	int listener = net_listen(&addr, 1), over[2];

	OK(socketpair(AF_UNIX, SOCK_STREAM, 0, over));
	pass(over[0], listener);
	OK(close(listener));
	int fd = net_connect(&addr);
	net_exchange(fd, net_accept(take(over[1])));
}

CHECK(fd_socketpair)
{
	int fds[2];

	FAILS(EOPNOTSUPP,
	      socketpair(net_domain()->family, SOCK_STREAM, net_domain()->protocol, fds));
}

CHECK(fd_many_open_and_closed)
{
	for (int i = 0; i < 2000; i++)
		OK(close(net_sock(0)));
}

CHECK(fd_out_of_descriptors)
{
	int last = -1;

	for (int fd; (fd = dup(0)) >= 0;)
		last = fd;
	FAILS(EMFILE, socket(net_domain()->family, SOCK_STREAM, net_domain()->protocol));
	OK(close(last));
	net_sock(0);
}

CHECK_CONN(fd_out_of_descriptors_at_accept)
{
	struct addr addr;
	int listener = net_listen(&addr, 1), fd = net_connect(&addr), last = -1;

	net_wait(listener, POLLIN);
	for (int copy; (copy = dup(0)) >= 0;)
		last = copy;
	FAILS(EMFILE, accept(listener, NULL, NULL));
	OK(close(last));
	/* The connection has stayed in the queue. */
	net_exchange(fd, net_accept(listener));
}
