// SPDX-License-Identifier: Apache-2.0
/* Repeated calls from several threads or processes at once, to find races. */
#define _GNU_SOURCE
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "harness.h"
#include "net.h"
#include "task.h"

static _Atomic bool stop;

/* Sends SIGUSR1 to the thread whose number is in flags, until it is stopped. */
static long interrupt_repeatedly(struct call *call)
{
	for (; !stop; sched_yield())
		syscall(SYS_tgkill, getpid(), call->flags, SIGUSR1);
	return 0;
}

CHECK_CONN(stress_connect_under_signals)
{
	struct addr addr;
	struct task task;
	int listener = net_listen(&addr, 4);

	task_on_signal(SIGUSR1, SA_RESTART);
	task_start(&task, interrupt_repeatedly, (struct call){ .flags = gettid() });
	for (int i = 0; i < 100; i++) {
		int fd = net_connect(&addr), peer = net_accept(listener);

		net_exchange(fd, peer);
		OK(close(fd));
		OK(close(peer));
	}
	stop = true;
	EQ(0, task_join(&task));
}

CHECK_CONN(stress_interrupted_connect_goes_on)
{
	struct addr addr;
	struct task task;
	int listener = net_listen(&addr, 4);

	task_on_signal(SIGUSR1, 0);
	task_start(&task, interrupt_repeatedly, (struct call){ .flags = gettid() });
	for (int i = 0; i < 100; i++) {
		int fd = net_client(0), r = connect(fd, &addr.sa, addr.len);

		/* The attempt succeeds wherever it is interrupted. */
		EXPECT(!r || errno == EINTR, "connect() failed with %s", strerrorname_np(errno));
		net_wait(fd, POLLOUT);
		EQ(0, net_error(fd));
		net_wait(listener, POLLIN);
		while (r = accept(listener, NULL, NULL), r < 0 && errno == EINTR)
			;
		OK(close(fd));
		OK(close(OK(r)));
	}
	stop = true;
	EQ(0, task_join(&task));
}

/* Accepts connections and echoes their data, until the listener is shut down. */
static long echo(struct call *call)
{
	char buf[4096];
	int fd;

	while ((fd = accept(call->fd, NULL, NULL)) >= 0) {
		for (ssize_t n; (n = OK(recv(fd, buf, sizeof(buf), 0)));)
			EQ(n, send(fd, buf, n, 0));
		OK(close(fd));
	}
	return -errno;
}

/* Connects many times, and checks each time that its data come back. */
static long request(struct call *call)
{
	for (int i = 0; i < call->flags; i++) {
		int fd = net_connect(call->addr);

		net_send(fd, i, 3000);
		net_recv(fd, i, 3000);
		OK(shutdown(fd, SHUT_WR));
		net_recv_eof(fd);
		OK(close(fd));
	}
	return 0;
}

CHECK_CONN(stress_threads_of_clients_and_servers)
{
	enum { CLIENTS = 8, SERVERS = 3 };
	struct addr addr;
	struct task clients[CLIENTS], servers[SERVERS];
	int listener = net_listen(&addr, CLIENTS);

	for (int i = 0; i < SERVERS; i++)
		task_start(&servers[i], echo, (struct call){ .fd = listener });
	for (int i = 0; i < CLIENTS; i++)
		task_start(&clients[i], request, (struct call){ .addr = &addr, .flags = 20 });
	for (int i = 0; i < CLIENTS; i++)
		EQ(0, task_join(&clients[i]));
}

static void ask_once(struct call *call)
{
	request(call);
}

CHECK_CONN(stress_processes_of_clients)
{
	enum { CLIENTS = 20 };
	struct addr addr;
	struct task server;
	pid_t pids[CLIENTS];
	int listener = net_listen(&addr, CLIENTS);

	for (int i = 0; i < CLIENTS; i++)
		pids[i] = task_fork(ask_once, &(struct call){ .addr = &addr, .flags = 3 });
	task_start(&server, echo, (struct call){ .fd = listener });
	for (int i = 0; i < CLIENTS; i++)
		task_reap(pids[i]);
}

CHECK_CONN(stress_close_while_connecting)
{
	struct addr addr;
	struct task server;
	int listener = net_listen(&addr, 200);

	for (int i = 0; i < 100; i++) {
		int fd = net_client(SOCK_NONBLOCK);

		FAILS(EINPROGRESS, connect(fd, &addr.sa, addr.len));
		/* Wait a little longer each time, to hit every stage of connecting. */
		for (int spin = 0; spin < i * 5; spin++)
			sched_yield();
		OK(close(fd));
	}
	/* None of this affects later clients. */
	task_start(&server, echo, (struct call){ .fd = listener });
	EQ(0, request(&(struct call){ .addr = &addr, .flags = 5 }));
}

CHECK_CONN(stress_listener_closed_while_connecting)
{
	for (int i = 0; i < 40; i++) {
		struct addr addr;
		struct task task;
		int listener = net_listen(&addr, 4), fd = net_client(0);

		task_start(&task, task_do_connect, (struct call){ .fd = fd, .addr = &addr });
		for (int spin = 0; spin < i * 3; spin++)
			sched_yield();
		OK(close(listener));
		long r = task_join(&task);
		/* The listener may be closed before the SYN, during the handshake, or after it. */
		EXPECT(!r || r == -ECONNREFUSED || r == -ECONNRESET, "connect() ended with %s",
		       strerrorname_np(-r));
		/*
		 * TCP may silently forget a connection if its last ACK meets close(): the client
		 * only notices when it sends data. A connection that is established while
		 * tcp_close() shuts the listener down inherits the shutdown: it sends FIN before it
		 * is reset, and its peer gets EPIPE, or the end of the stream.
		 */
		char byte = 0;
		int err = !r && send(fd, &byte, 1, MSG_NOSIGNAL) < 0 ? errno : 0;
		if (err) {
			EXPECT(err == ECONNRESET || err == EPIPE, "send() ended with %s",
			       strerrorname_np(err));
		} else if (!r) {
			ssize_t n = recv(fd, &byte, 1, 0);

			EXPECT(!n || (n < 0 && errno == ECONNRESET), "recv() ended with %s",
			       n < 0 ? strerrorname_np(errno) : "data");
		}
		OK(close(fd));
	}
}

CHECK_CONN(stress_shutdown_while_connecting)
{
	struct addr addr;
	int listener = net_listen(&addr, 100);

	for (int i = 0; i < 60; i++) {
		struct task task;
		int fd = net_client(0);

		task_start(&task, task_do_connect, (struct call){ .fd = fd, .addr = &addr });
		for (int spin = 0; spin < i * 3; spin++)
			sched_yield();
		shutdown(fd, SHUT_RDWR);
		long r = task_join(&task);
		EXPECT(!r || r == -ECONNRESET || r == -ECONNABORTED, "connect() ended with %s",
		       strerrorname_np(-r));
		OK(close(fd));
	}
	OK(close(listener));
}

/*
 * Queries the state of a socket in many ways, until it is stopped. It accepts the answers of every
 * state.
 */
static long inspect(struct call *call)
{
	struct addr addr;
	int value, bytes;
	socklen_t len;

	while (!stop) {
		net_name(call->fd, &addr);
		addr.len = sizeof(addr.ss);
		getpeername(call->fd, &addr.sa, &addr.len);
		net_poll(call->fd, POLLIN | POLLOUT, 0);
		OK(net_set(call->fd, IPPROTO_TCP, TCP_NODELAY, 1));
		OK(net_set(call->fd, SOL_SOCKET, SO_KEEPALIVE, 1));
		len = sizeof(value);
		OK(getsockopt(call->fd, SOL_SOCKET, SO_SNDBUF, &value, &len));
		OK(ioctl(call->fd, FIONREAD, &bytes));
		net_tcp_state(call->fd);
	}
	return 0;
}

CHECK_CONN(stress_queries_while_connecting)
{
	struct addr addr;
	int listener = net_listen(&addr, 4);

	for (int i = 0; i < 30; i++) {
		struct task tasks[2];
		int fd = net_client(0);

		stop = false;
		for (int j = 0; j < 2; j++)
			task_start(&tasks[j], inspect, (struct call){ .fd = fd });
		OK(connect(fd, &addr.sa, addr.len));
		int peer = net_accept(listener);
		net_exchange(fd, peer);
		stop = true;
		for (int j = 0; j < 2; j++)
			EQ(0, task_join(&tasks[j]));
		OK(close(fd));
		OK(close(peer));
	}
}

CHECK_CONN(stress_waiters_while_connecting)
{
	enum { WAITERS = 3 };
	struct addr addr;
	int listener = net_listen(&addr, 4);

	for (int i = 0; i < 40; i++) {
		struct task tasks[WAITERS];
		char byte;
		int fd = net_client(SOCK_NONBLOCK);

		FAILS(EINPROGRESS, connect(fd, &addr.sa, addr.len));
		net_nonblock(fd, false);
		task_start(&tasks[0], task_do_poll, (struct call){ .fd = fd, .flags = POLLOUT });
		task_start(&tasks[1], task_do_poll, (struct call){ .fd = fd, .flags = POLLIN });
		task_start(&tasks[2], task_do_recv,
			   (struct call){ .fd = fd, .buf = &byte, .len = 1, .flags = MSG_PEEK });
		int peer = net_accept(listener);
		net_send(peer, 0, 1);
		EQ(POLLOUT, task_join(&tasks[0]));
		EQ(POLLIN, task_join(&tasks[1]));
		EQ(1, task_join(&tasks[2]));
		net_recv(fd, 0, 1);
		OK(close(fd));
		OK(close(peer));
	}
}

CHECK_CONN(stress_first_bytes_at_once)
{
	struct addr addr;
	int listener = net_listen(&addr, 4);

	/* Both ends send without waiting. No data may be lost or mixed up. */
	for (int i = 0; i < 60; i++) {
		int fd = net_client(SOCK_NONBLOCK);

		FAILS(EINPROGRESS, connect(fd, &addr.sa, addr.len));
		net_nonblock(fd, false);
		net_send(fd, 3, 500);
		int peer = net_accept(listener);
		net_send(peer, 9, 500);
		net_recv(peer, 3, 500);
		net_recv(fd, 9, 500);
		OK(close(i & 1 ? fd : peer));
		net_recv_eof(i & 1 ? peer : fd);
		OK(close(i & 1 ? peer : fd));
	}
}
