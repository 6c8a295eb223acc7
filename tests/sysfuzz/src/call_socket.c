// SPDX-License-Identifier: Apache-2.0
/* Calls that make, name, connect, accept, share and end sockets. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "calls.h"

/* Whether a socket has IPv6 addresses. */
static bool is_v6(int fd)
{
	struct sockaddr_storage ss = {};
	socklen_t len = sizeof(ss);

	return !getsockname(fd, (void *)&ss, &len) && ss.ss_family == AF_INET6;
}

/* call->arg is an enum variant. */
DECLARE_OP(op_socket)
{
	static const struct { int family, protocol; } variants[VARIANTS] = {
		[VARIANT_SMC] = { AF_SMC, 0 }, [VARIANT_SMC6] = { AF_SMC, 1 },
		[VARIANT_IPPROTO] = { AF_INET, IPPROTO_SMC }, [VARIANT_IPPROTO6] = { AF_INET6, IPPROTO_SMC },
		[VARIANT_TCP] = { AF_INET, 0 }, [VARIANT_TCP6] = { AF_INET6, 0 }, [VARIANT_HOSTILE] = { AF_INET, 0 },
	};
	static const int odd_types[] = { SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET, SOCK_PACKET, 0, 99 };
	int v = call->arg ? call->arg : 1 + rnd_below(&c->rnd, VARIANTS - 1), one = 1, tos = RELAY_TOS;
	int family = variants[v].family, protocol = variants[v].protocol, type = SOCK_STREAM;

	if (!call->arg && rnd_one_in(&c->rnd, 30))
		type = RND_PICK(&c->rnd, odd_types);
	if (!call->arg && rnd_one_in(&c->rnd, 30))
		protocol = rnd_below(&c->rnd, 300);
	if (call->arg ? rnd_one_in(&c->rnd, 4) : rnd_one_in(&c->rnd, 2))
		type |= SOCK_NONBLOCK;
	int fd = socket(family, type | SOCK_CLOEXEC, protocol);

	trace(c, "%d, %#x, %d", family, type, protocol);
	if (fd < 0)
		return fd;
	if (!rnd_one_in(&c->rnd, 10))
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (rnd_one_in(&c->rnd, 8))
		setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one));
	if (v == VARIANT_HOSTILE)
		setsockopt(fd, IPPROTO_IP, IP_TOS, &tos, sizeof(tos));
	pool_put(call->slot, fd);
	return fd;
}

/* An address of the family of fd. Return: its length, or a wrong one. */
static socklen_t address(struct ctx *c, int fd, const char *v4, const char *v6, int port, struct sockaddr_storage *ss)
{
	struct sockaddr_in6 *in6 = (void *)ss;
	struct sockaddr_in *in = (void *)ss;
	bool six = is_v6(fd);
	socklen_t len;

	memset(ss, 0, sizeof(*ss));
	if (six) {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
		inet_pton(AF_INET6, v6, &in6->sin6_addr);
		len = sizeof(*in6);
	} else {
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		inet_pton(AF_INET, v4, &in->sin_addr);
		len = sizeof(*in);
	}
	if (rnd_one_in(&c->rnd, 60))
		ss->ss_family = rnd_below(&c->rnd, 50);
	if (rnd_one_in(&c->rnd, 60))
		len = rnd_below(&c->rnd, sizeof(*ss) + 1);
	trace(c, "fd %d, %s:%d, length %u", fd, six ? v6 : v4, port, len);
	return len;
}

/* A port of the worker's; call->arg: its number from 1, in the lower byte. */
static int port(struct ctx *c, uint32_t arg)
{
	return c->port + (arg & 0xff ? (arg & 0xff) - 1 : rnd_below(&c->rnd, PORTS));
}

DECLARE_OP(op_bind)
{
	static const char *const v4[] = { "0.0.0.0", "0.0.0.0", "0.0.0.0", "127.0.0.1", RELAY_SELF, "255.255.255.255" };
	static const char *const v6[] = { "::", "::", "::", "::1", "::ffff:127.0.0.1", "ff02::1" };
	int fd = pool_fd(call->slot), n = call->arg ? 0 : rnd_below(&c->rnd, COUNT(v4));
	struct sockaddr_storage ss;
	socklen_t len = address(c, fd, v4[n], v6[n], !call->arg && rnd_one_in(&c->rnd, 6) ? 0 : port(c, call->arg), &ss);

	return bind(fd, (void *)&ss, len);
}

DECLARE_OP(op_listen)
{
	static const int backlogs[] = { 0, 1, 1, 2, 4, 16, -1, 0x7fffffff };
	int fd = pool_fd(call->slot), backlog = RND_PICK(&c->rnd, backlogs);

	trace(c, "fd %d, %d", fd, backlog);
	return listen(fd, backlog);
}

/* call->arg: port as for op_bind, and an enum route in the second byte. */
DECLARE_OP(op_connect)
{
	static const struct { const char *v4, *v6; } routes[] = {
		[ROUTE_ANY] = { "0.0.0.0", "::" },
		[ROUTE_LOOPBACK] = { "127.0.0.1", "::1" },
		[ROUTE_RELAY] = { RELAY_PEER, "::ffff:" RELAY_PEER },
		[ROUTE_RDMA] = { RDMA_PEER, "::ffff:" RDMA_PEER },
		[ROUTE_SILENT] = { RELAY_SILENT, "::ffff:" RELAY_SILENT },
		{ "127.0.0.2", "::ffff:127.0.0.1" }, { "224.0.0.1", "ff02::1" }, { "255.255.255.255", "fe80::1" },
	};
	int fd = pool_fd(call->slot), route = call->arg >> 8;
	struct sockaddr_storage ss;

	if (!route)
		route = rnd_one_in(&c->rnd, 2) ? ROUTE_LOOPBACK : rnd_below(&c->rnd, COUNT(routes));
	if (c->loop_only && route >= ROUTE_RELAY && route <= ROUTE_SILENT)
		route = ROUTE_LOOPBACK;
	socklen_t len = address(c, fd, routes[route].v4, routes[route].v6, port(c, call->arg), &ss);

	return connect(fd, (void *)&ss, len);
}

DECLARE_OP(op_disconnect)
{
	struct sockaddr_in6 none = { .sin6_family = AF_UNSPEC };
	int fd = pool_fd(call->slot);

	trace(c, "fd %d", fd);
	return connect(fd, (void *)&none, rnd_one_in(&c->rnd, 2) ? sizeof(struct sockaddr_in) : sizeof(none));
}

DECLARE_OP(op_accept)
{
	static const int flags[] = { 0, 0, 0, SOCK_NONBLOCK, SOCK_NONBLOCK | SOCK_CLOEXEC, 1 };
	int listener = pool_fd(call->other), fd, with = RND_PICK(&c->rnd, flags);
	struct sockaddr_storage ss;
	socklen_t len = rnd_below(&c->rnd, sizeof(ss) + 1);

	if (call->arg)
		await(listener, POLLIN, 100);
	fd = accept4(listener, rnd_one_in(&c->rnd, 2) ? (void *)&ss : NULL, &len, with);
	trace(c, "fd %d, %#x", listener, with);
	pool_put(call->slot, fd);
	return fd;
}

DECLARE_OP(op_shutdown)
{
	int fd = pool_fd(call->slot), how = rnd_one_in(&c->rnd, 20) ? 5 : (int)rnd_below(&c->rnd, 3);

	trace(c, "fd %d, %d", fd, how);
	return shutdown(fd, how);
}

DECLARE_OP(op_close)
{
	int fd = pool_take(call->slot);

	trace(c, "fd %d", fd);
	return fd < 0 ? 0 : close(fd);
}

DECLARE_OP(op_names)
{
	int fd = pool_fd(call->slot);
	struct sockaddr_storage ss;
	socklen_t len = rnd_below(&c->rnd, sizeof(ss) + 1);

	trace(c, "fd %d", fd);
	return rnd_one_in(&c->rnd, 2) ? getsockname(fd, (void *)&ss, &len) : getpeername(fd, (void *)&ss, &len);
}

DECLARE_OP(op_dup)
{
	int fd = pool_fd(call->other), copy;

	trace(c, "fd %d", fd);
	if (rnd_one_in(&c->rnd, 3)) {
		/* Over a descriptor that others use at the same time. */
		int target = pool_fd(call->slot);

		return fd < 0 || target < 0 ? -1 : dup3(fd, target, fd == target ? 0 : O_CLOEXEC);
	}
	copy = dup(fd);
	pool_put(call->slot, copy);
	return copy;
}

/* Sends a descriptor to the process of the two that receives it. */
DECLARE_OP(op_pass)
{
	char control[CMSG_SPACE(sizeof(int))] = {}, byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control) };
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
	int fd = pool_fd(call->slot), pair[2];

	pool_share(pair);
	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
	trace(c, "fd %d", fd);
	return sendmsg(pair[0], &msg, 0);
}

DECLARE_OP(op_take)
{
	char control[CMSG_SPACE(sizeof(int))], byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control) };
	int fd, pair[2];

	pool_share(pair);
	trace(c, "passed");
	if (recvmsg(pair[1], &msg, 0) < 0)
		return -1;
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	if (!cmsg || cmsg->cmsg_len != CMSG_LEN(sizeof(int)))
		return 0;
	memcpy(&fd, CMSG_DATA(cmsg), sizeof(fd));
	pool_put(call->slot, fd);
	return fd;
}

DECLARE_OP(op_fcntl)
{
	static const struct { int cmd, arg; } commands[] = {
		{ F_SETFL, O_NONBLOCK }, { F_SETFL, O_NONBLOCK }, { F_SETFL, 0 }, { F_SETFL, 0 }, { F_SETFL, O_ASYNC },
		{ F_SETFL, O_ASYNC | O_NONBLOCK }, { F_GETFL, 0 }, { F_SETSIG, SIGUSR1 }, { F_GETOWN, 0 }, { F_SETFD, 0 },
		{ F_SETLEASE, F_RDLCK }, { F_NOTIFY, 1 }, { F_SETPIPE_SZ, 65536 },
	};
	int fd = pool_fd(call->slot), n = call->arg ? (int)call->arg - 1 : (int)rnd_below(&c->rnd, COUNT(commands) + 1);

	if (n == COUNT(commands)) {
		trace(c, "fd %d, F_SETOWN", fd);
		return fcntl(fd, F_SETOWN, getpid());
	}
	trace(c, "fd %d, %d, %#x", fd, commands[n].cmd, commands[n].arg);
	return fcntl(fd, commands[n].cmd, commands[n].arg);
}

/* Forks a child that shares all descriptors, uses one of them, and continues or ends. */
DECLARE_OP(op_fork)
{
	int fd = pool_fd(call->slot), what = rnd_below(&c->rnd, 4);
	pid_t pid = fork();

	trace(c, "fd %d, %d", fd, what);
	if (pid)
		return pid;
	switch (what) {
	case 0: close(fd); break;
	case 1: (void)!read(fd, pool_sink(), 100); break;
	case 2: poll(NULL, 0, 20); break;
	default: shutdown(fd, SHUT_RDWR);
	}
	_exit(0);
}

DECLARE_OP(op_signal)
{
	(void)call;
	trace(c, "SIGUSR1");
	return kill(rnd_one_in(&c->rnd, 2) ? getpid() : 0, SIGUSR1);
}

DECLARE_OP(op_pause)
{
	(void)call;
	trace(c, "at most 30 ms");
	return poll(NULL, 0, rnd_below(&c->rnd, 30));
}

DECLARE_OP(op_unshare)
{
	int flags = c->full && rnd_one_in(&c->rnd, 3) ? CLONE_NEWNET : CLONE_FILES;

	(void)call;
	trace(c, "%#x", flags);
	return unshare(flags);
}
