// SPDX-License-Identifier: Apache-2.0
/* listen() and accept(). */
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#include "net.h"
#include "task.h"

CHECK_CONN(listen_without_bind)
{
	struct addr addr;
	int listener = net_server(0);

	EQ(0, listen(listener, 1));
	net_name(listener, &addr);
	EXPECT(net_port(&addr), "no port was chosen");
	uint16_t port = net_port(&addr);
	net_loopback(&addr, port);
	int fd = net_connect(&addr);
	net_exchange(fd, net_accept(listener));
}

CHECK(listen_on_connecting)
{
	struct addr addr;
	int fd = net_sock(SOCK_NONBLOCK);

	net_stuck(&addr);
	FAILS(EINPROGRESS, connect(fd, &addr.sa, addr.len));
	FAILS(EINVAL, listen(fd, 1));
}

CHECK_PAIR(listen_on_connected)
{
	int a, b;

	net_pair(&a, &b);
	FAILS(EINVAL, listen(a, 1));
	net_exchange(a, b);
}

CHECK(listen_after_refused)
{
	struct addr addr;
	int fd = net_sock(0);

	net_dead(&addr);
	FAILS(ECONNREFUSED, connect(fd, &addr.sa, addr.len));
	EQ(0, listen(fd, 1));
	EQ(1, net_int(fd, SOL_SOCKET, SO_ACCEPTCONN));
}

CHECK_CONN(listen_again_enlarges_backlog)
{
	struct addr addr;
	int listener = net_listen(&addr, 0), first = net_connect(&addr);
	int second = net_client(SOCK_NONBLOCK);

	net_wait(listener, POLLIN);
	FAILS(EINPROGRESS, connect(second, &addr.sa, addr.len));
	EQ(0, net_poll(second, POLLOUT, harness_ms(50)) & POLLOUT);
	EQ(0, listen(listener, 5));
	/* The queue has room for the retransmitted SYN. */
	net_wait(second, POLLOUT);
	net_exchange(first, net_accept(listener));
}

CHECK_CONN(listen_backlog_overflow)
{
	struct addr addr;
	int listener = net_listen(&addr, 2), fds[4];

	/* A queue of length N accepts N + 1 connections. Others stay in SYN-SENT. */
	for (int i = 0; i < 3; i++)
		fds[i] = net_connect(&addr);
	fds[3] = net_client(SOCK_NONBLOCK);
	FAILS(EINPROGRESS, connect(fds[3], &addr.sa, addr.len));
	EQ(0, net_poll(fds[3], POLLOUT, harness_ms(100)));
	EQ(2 /* SYN-SENT */, net_tcp_state(fds[3]));
	for (int i = 0; i < 3; i++)
		net_exchange(fds[i], net_accept(listener));
	net_wait(fds[3], POLLOUT);
	net_nonblock(fds[3], false);
	net_exchange(fds[3], net_accept(listener));
}

CHECK_CONN(listen_stays_full)
{
	struct addr addr;
	int listener = net_listen(&addr, 0), filler = net_connect(&addr);

	net_wait(listener, POLLIN);
	/* Meanwhile a listener of SMC moves the connection from TCP's queue to its own. */
	for (int i = 0; i < 500; i++) {
		int fd = net_client(SOCK_NONBLOCK);

		FAILS(EINPROGRESS, connect(fd, &addr.sa, addr.len));
		EQ(2 /* SYN-SENT */, net_tcp_state(fd));
		OK(close(fd));
	}
	net_exchange(filler, net_accept(listener));
}

CHECK(listen_negative_backlog)
{
	struct addr addr;
	int fd = net_sock(0);

	net_loopback(&addr, 0);
	OK(bind(fd, &addr.sa, addr.len));
	/* As an unsigned number, -1 exceeds the limit, and the kernel reduces it to the limit. */
	EQ(0, listen(fd, -1));
}

CHECK_CONN(listen_keeps_order)
{
	struct addr addr, seen, name;
	/* Half of the backlog is for handshakes, so that all connections fit. */
	int listener = net_listen(&addr, 16), fds[5];

	for (int i = 0; i < 5; i++)
		fds[i] = net_connect(&addr);
	for (int i = 0; i < 5; i++) {
		seen.len = sizeof(seen.ss);
		net_wait(listener, POLLIN);
		OK(accept(listener, &seen.sa, &seen.len));
		net_name(fds[i], &name);
		EQ(net_port(&name), net_port(&seen));
	}
}

CHECK_CONN(listen_not_sendable)
{
	struct addr addr;
	int listener = net_listen(&addr, 1);
	char byte;

	FAILS(EPIPE, send(listener, "x", 1, 0));
	FAILS(ENOTCONN, recv(listener, &byte, 1, 0));
}

CHECK_CONN(accept_eagain)
{
	struct addr addr;
	int listener = net_listen(&addr, 1);

	net_nonblock(listener, true);
	FAILS(EAGAIN, accept(listener, NULL, NULL));
	int fd = net_connect(&addr);
	net_exchange(fd, net_accept(listener));
	FAILS(EAGAIN, accept(listener, NULL, NULL));
}

CHECK(accept_not_listening)
{
	struct addr addr;
	int fd = net_sock(0);

	FAILS(EINVAL, accept(fd, NULL, NULL));
	net_loopback(&addr, 0);
	OK(bind(fd, &addr.sa, addr.len));
	FAILS(EINVAL, accept(fd, NULL, NULL));
}

CHECK_PAIR(accept_on_connected)
{
	int a, b;

	net_pair(&a, &b);
	FAILS(EINVAL, accept(a, NULL, NULL));
	net_exchange(a, b);
}

CHECK_CONN(accept_blocks)
{
	struct addr addr;
	int listener = net_listen(&addr, 1);
	struct task task;

	task_start(&task, task_do_accept, (struct call){ .fd = listener });
	task_wait_blocked(&task, SYS_accept);
	int fd = net_connect(&addr);
	net_exchange(fd, OK(task_join(&task)));
}

CHECK_CONN(accept4_flags)
{
	struct addr addr;
	int listener = net_listen(&addr, 2);

	net_connect(&addr);
	net_connect(&addr);
	int fd = OK(accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC));
	EQ(O_NONBLOCK, fcntl(fd, F_GETFL) & O_NONBLOCK);
	EQ(FD_CLOEXEC, fcntl(fd, F_GETFD));
	fd = OK(accept4(listener, NULL, NULL, 0));
	EQ(0, fcntl(fd, F_GETFL) & O_NONBLOCK);
	EQ(0, fcntl(fd, F_GETFD));
	FAILS(EINVAL, accept4(listener, NULL, NULL, 1));
}

CHECK_CONN(accept_does_not_inherit_nonblock)
{
	struct addr addr;
	int listener = net_listen(&addr, 1);

	net_nonblock(listener, true);
	net_connect(&addr);
	EQ(0, fcntl(net_accept(listener), F_GETFL) & O_NONBLOCK);
}

CHECK_CONN(accept_address)
{
	struct addr addr, seen = { .len = sizeof(seen.ss) }, name;
	int listener = net_listen(&addr, 1), fd = net_connect(&addr);

	OK(accept(listener, &seen.sa, &seen.len));
	net_name(fd, &name);
	EQ(name.len, seen.len);
	EQ(0, memcmp(&name.ss, &seen.ss, name.len));
}

CHECK_CONN(accept_address_is_cut_short)
{
	struct addr addr, seen;
	int listener = net_listen(&addr, 1);

	net_connect(&addr);
	memset(&seen, 0x55, sizeof(seen));
	seen.len = 4;
	OK(accept(listener, &seen.sa, &seen.len));
	EQ(addr.len, seen.len);
	EQ(addr.sa.sa_family, seen.sa.sa_family);
	EQ(0x55, ((unsigned char *)&seen.ss)[4]);
}

CHECK_CONN(accept_bad_pointer)
{
	struct addr addr;
	int listener = net_listen(&addr, 2);
	struct sockaddr_storage ss;

	net_connect(&addr);
	FAILS(EFAULT, accept(listener, (struct sockaddr *)&ss, (socklen_t *)8));
	/* The connection is lost, but the listener still works. */
	int fd = net_connect(&addr);
	net_exchange(fd, net_accept(listener));
}

CHECK_CONN(accept_rcvtimeo)
{
	struct addr addr;
	int listener = net_listen(&addr, 1);
	struct timeval tv = { .tv_usec = 100000 };

	OK(setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)));
	long begin = harness_now();
	FAILS(EAGAIN, accept(listener, NULL, NULL));
	EXPECT(harness_now() - begin >= 50, "it took %ld ms", harness_now() - begin);
	int fd = net_connect(&addr);
	net_exchange(fd, net_accept(listener));
}

CHECK_CONN(accept_after_client_closed)
{
	struct addr addr;
	int listener = net_listen(&addr, 1), fd = net_connect(&addr);

	net_send(fd, 0, 100);
	OK(close(fd));
	int peer = net_accept(listener);
	net_recv(peer, 0, 100);
	net_recv_eof(peer);
}

CHECK_CONN(accept_after_client_reset)
{
	struct addr addr;
	struct linger linger = { .l_onoff = 1 };
	int listener = net_listen(&addr, 1), fd = net_connect(&addr);
	char byte;

	net_wait(listener, POLLIN);
	OK(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
	OK(close(fd));
	/* Linux accepts connections that were reset in the queue. */
	int peer = net_accept(listener);
	FAILS(ECONNRESET, recv(peer, &byte, 1, 0));
}

CHECK_CONN(accept_data_sent_before)
{
	struct addr addr;
	int listener = net_listen(&addr, 1), fd = net_connect(&addr);

	net_send(fd, 0, 5000);
	int peer = net_accept(listener);
	net_recv(peer, 0, 5000);
	net_exchange(fd, peer);
}

CHECK_CONN(accept_closes_listener_first)
{
	struct addr addr;
	int listener = net_listen(&addr, 2), fd = net_connect(&addr);
	int peer = net_accept(listener);

	OK(close(listener));
	net_exchange(fd, peer);
}

#define THREADS 4
#define CONNECTIONS 40

static _Atomic int accepted;

/* Accepts connections until the listener is shut down, and sends a byte to each client. */
static long serve(struct call *call)
{
	int fd;

	while ((fd = accept(call->fd, NULL, NULL)) >= 0) {
		accepted++;
		net_send(fd, 0, 1);
		OK(close(fd));
	}
	return -errno;
}

CHECK_CONN(accept_in_threads)
{
	struct addr addr;
	int listener = net_listen(&addr, CONNECTIONS);
	struct task tasks[THREADS];

	for (int i = 0; i < THREADS; i++)
		task_start(&tasks[i], serve, (struct call){ .fd = listener });
	for (int i = 0; i < CONNECTIONS; i++) {
		int fd = net_connect(&addr);

		net_recv(fd, 0, 1);
		net_recv_eof(fd);
		OK(close(fd));
	}
	EQ(CONNECTIONS, accepted);
	OK(shutdown(listener, SHUT_RD));
	for (int i = 0; i < THREADS; i++)
		EQ(-EINVAL, task_join(&tasks[i]));
}

static void serve_process(struct call *call)
{
	EQ(-EINVAL, serve(call));
}

CHECK_CONN(accept_in_processes)
{
	struct addr addr;
	struct call call = { .fd = net_listen(&addr, CONNECTIONS) };
	pid_t pids[THREADS];

	for (int i = 0; i < THREADS; i++)
		pids[i] = task_fork(serve_process, &call);
	for (int i = 0; i < CONNECTIONS; i++) {
		int fd = net_connect(&addr);

		net_recv(fd, 0, 1);
		net_recv_eof(fd);
		OK(close(fd));
	}
	OK(shutdown(call.fd, SHUT_RD));
	for (int i = 0; i < THREADS; i++)
		task_reap(pids[i]);
}

CHECK_CONN(accept_one_of_many_waiters)
{
	struct addr addr;
	int listener = net_listen(&addr, 8);
	struct task tasks[THREADS];

	for (int i = 0; i < THREADS; i++) {
		task_start(&tasks[i], task_do_accept, (struct call){ .fd = listener });
		task_wait_blocked(&tasks[i], SYS_accept);
	}
	int got[THREADS], fds[THREADS];
	for (int i = 0; i < THREADS; i++)
		fds[i] = net_connect(&addr);
	for (int i = 0; i < THREADS; i++)
		got[i] = OK(task_join(&tasks[i]));
	for (int i = 0; i < THREADS; i++)
		for (int j = 0; j < i; j++)
			EXPECT(got[i] != got[j], "two threads got descriptor %d", got[i]);
	for (int i = 0; i < THREADS; i++) {
		net_send(fds[i], 0, 10);
		OK(close(fds[i]));
	}
	for (int i = 0; i < THREADS; i++) {
		net_recv(got[i], 0, 10);
		net_recv_eof(got[i]);
	}
}

/* A thread that has accepted a connection ends, so each connection must wake another thread. */
CHECK_CONN(accept_many_at_once_by_as_many)
{
	enum { COUNT = 16 };
	static struct task acceptors[COUNT], clients[COUNT];
	struct addr addr;
	int listener = net_listen(&addr, 2 * COUNT), fds[COUNT];

	for (int i = 0; i < COUNT; i++) {
		task_start(&acceptors[i], task_do_accept, (struct call){ .fd = listener });
		task_wait_blocked(&acceptors[i], SYS_accept);
	}
	for (int i = 0; i < COUNT; i++) {
		fds[i] = net_client(0);
		task_start(&clients[i], task_do_connect, (struct call){ .fd = fds[i], .addr = &addr });
	}
	for (int i = 0; i < COUNT; i++)
		EQ(0, task_join(&clients[i]));
	for (int i = 0; i < COUNT; i++)
		OK(close(OK(task_join(&acceptors[i]))));
	for (int i = 0; i < COUNT; i++)
		net_recv_eof(fds[i]);
}

CHECK_CONN(accept_200_at_once)
{
	enum { COUNT = 200 };
	static int fds[COUNT], peers[COUNT];
	struct addr addr;
	int listener = net_listen(&addr, COUNT);

	for (int i = 0; i < COUNT; i++) {
		fds[i] = net_client(SOCK_NONBLOCK);
		FAILS(EINPROGRESS, connect(fds[i], &addr.sa, addr.len));
	}
	for (int i = 0; i < COUNT; i++)
		peers[i] = net_accept(listener);
	for (int i = 0; i < COUNT; i++) {
		net_wait(fds[i], POLLOUT);
		EQ(0, net_error(fds[i]));
		net_nonblock(fds[i], false);
		net_send(fds[i], i, 100);
		OK(shutdown(fds[i], SHUT_WR));
	}
	for (int i = 0; i < COUNT; i++) {
		char bytes[101];

		/* Receive all data of the client, up to the end of its stream. */
		EQ(100, recv(peers[i], bytes, sizeof(bytes), MSG_WAITALL));
		net_send(peers[i], 0, 1);
		OK(close(peers[i]));
	}
	for (int i = 0; i < COUNT; i++) {
		net_recv(fds[i], 0, 1);
		net_recv_eof(fds[i]);
	}
}
