// SPDX-License-Identifier: Apache-2.0
/* Signals during blocking calls, with and without SA_RESTART. */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#include "net.h"
#include "task.h"

static char big[1 << 24];

/*
 * Starts a call and interrupts it while it sleeps. The call ends unless @flags contain SA_RESTART.
 */
static void interrupt(struct task *task, long (*body)(struct call *), struct call call, long nr,
		      int flags)
{
	task_on_signal(SIGUSR1, flags);
	task_start(task, body, call);
	task_wait_blocked(task, nr);
	task_kill(task, SIGUSR1);
	task_wait_signal();
}

CHECK(signal_interrupts_connect)
{
	struct addr addr;
	int fd = net_sock(0), stuck = net_stuck(&addr);
	struct task task;

	interrupt(&task, task_do_connect, (struct call){ .fd = fd, .addr = &addr }, SYS_connect, 0);
	EQ(-EINTR, task_join(&task));
	/* The attempt continues. */
	net_nonblock(fd, true);
	FAILS(EALREADY, connect(fd, &addr.sa, addr.len));
	net_unstick(stuck);
	net_wait(fd, POLLOUT);
	EQ(0, connect(fd, &addr.sa, addr.len));
}

CHECK(signal_restarts_connect)
{
	struct addr addr;
	int fd = net_sock(0), stuck = net_stuck(&addr);
	struct task task;

	interrupt(&task, task_do_connect, (struct call){ .fd = fd, .addr = &addr }, SYS_connect,
		  SA_RESTART);
	task_wait_blocked(&task, SYS_connect);
	net_unstick(stuck);
	EQ(0, task_join(&task));
	net_exchange(fd, net_accept(stuck));
}

CHECK(signal_interrupts_connect_with_timeout)
{
	struct addr addr;
	int fd = net_sock(0);
	struct timeval tv = { .tv_sec = 300 };
	struct task task;

	net_stuck(&addr);
	/* Calls with a time limit are not restarted, because the limit would start again. */
	OK(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)));
	interrupt(&task, task_do_connect, (struct call){ .fd = fd, .addr = &addr }, SYS_connect,
		  SA_RESTART);
	EQ(-EINTR, task_join(&task));
}

CHECK_CONN(signal_interrupts_accept)
{
	struct addr addr;
	int listener = net_listen(&addr, 1);
	struct task task;

	interrupt(&task, task_do_accept, (struct call){ .fd = listener }, SYS_accept, 0);
	EQ(-EINTR, task_join(&task));
	int fd = net_connect(&addr);
	net_exchange(fd, net_accept(listener));
}

CHECK_CONN(signal_restarts_accept)
{
	struct addr addr;
	int listener = net_listen(&addr, 1);
	struct task task;

	interrupt(&task, task_do_accept, (struct call){ .fd = listener }, SYS_accept, SA_RESTART);
	task_wait_blocked(&task, SYS_accept);
	int fd = net_connect(&addr);
	net_exchange(fd, OK(task_join(&task)));
}

CHECK_PAIR(signal_interrupts_recv)
{
	int a, b;
	struct task task;
	char byte;

	net_pair(&a, &b);
	interrupt(&task, task_do_recv, (struct call){ .fd = a, .buf = &byte, .len = 1 },
		  SYS_recvfrom, 0);
	EQ(-EINTR, task_join(&task));
	net_exchange(a, b);
}

CHECK_PAIR(signal_restarts_recv)
{
	int a, b;
	struct task task;
	char byte;

	net_pair(&a, &b);
	interrupt(&task, task_do_recv, (struct call){ .fd = a, .buf = &byte, .len = 1 },
		  SYS_recvfrom, SA_RESTART);
	task_wait_blocked(&task, SYS_recvfrom);
	net_send(b, 0, 1);
	EQ(1, task_join(&task));
}

CHECK_PAIR(signal_interrupts_waitall)
{
	int a, b;
	struct task task;
	char buf[100];

	net_pair(&a, &b);
	net_send(b, 0, 30);
	net_wait_rcvq(a, 30);
	interrupt(&task, task_do_recv,
		  (struct call){ .fd = a, .buf = buf, .len = 100, .flags = MSG_WAITALL },
		  SYS_recvfrom, 0);
	/* The call returns the number of bytes read, not EINTR. */
	EQ(30, task_join(&task));
}

CHECK_PAIR(signal_interrupts_send)
{
	int a, b;
	struct task task;

	net_pair(&a, &b);
	interrupt(&task, task_do_send, (struct call){ .fd = a, .buf = big, .len = sizeof(big) },
		  SYS_sendto, 0);
	long sent = task_join(&task);
	EXPECT(sent > 0 && sent < (long)sizeof(big), "send() returned %ld", sent);
}

CHECK_PAIR(signal_interrupts_send_with_full_buffer)
{
	int a, b;
	struct task task;

	net_pair(&a, &b);
	net_nonblock(a, true);
	while (send(a, big, 65536, 0) > 0)
		;
	net_nonblock(a, false);
	interrupt(&task, task_do_send, (struct call){ .fd = a, .buf = big, .len = sizeof(big) },
		  SYS_sendto, 0);
	long sent = task_join(&task);
	/* The peer may have acknowledged data meanwhile, which frees space. */
	EXPECT(sent == -EINTR || (sent > 0 && sent < (long)sizeof(big)), "send() returned %ld",
	       sent);
}

CHECK_PAIR(signal_interrupts_poll)
{
	int a, b;
	struct task task;

	net_pair(&a, &b);
	/* poll() is never restarted. */
	interrupt(&task, task_do_poll, (struct call){ .fd = a, .flags = POLLIN }, SYS_poll,
		  SA_RESTART);
	EQ(-EINTR, task_join(&task));
}

CHECK_CONN(signal_interrupts_poll_on_listener)
{
	struct addr addr;
	int listener = net_listen(&addr, 1);
	struct task task;

	interrupt(&task, task_do_poll, (struct call){ .fd = listener, .flags = POLLIN }, SYS_poll,
		  0);
	EQ(-EINTR, task_join(&task));
}

CHECK_PAIR(signal_interrupts_recv_with_timeout)
{
	int a, b;
	struct timeval tv = { .tv_sec = 300 };
	struct task task;
	char byte;

	net_pair(&a, &b);
	OK(setsockopt(a, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)));
	interrupt(&task, task_do_recv, (struct call){ .fd = a, .buf = &byte, .len = 1 },
		  SYS_recvfrom, SA_RESTART);
	EQ(-EINTR, task_join(&task));
}

static void connect_for_ever(struct call *call)
{
	connect(call->fd, &call->addr->sa, call->addr->len);
}

CHECK(signal_kills_connect)
{
	struct addr addr;
	struct call call = { .fd = net_sock(0), .addr = &addr };
	int stuck = net_stuck(&addr);
	pid_t pid = task_fork(connect_for_ever, &call);

	OK(close(call.fd));
	task_wait_pid_blocked(pid, SYS_connect);
	OK(kill(pid, SIGKILL));
	int status;
	EQ(pid, waitpid(pid, &status, 0));
	net_unstick(stuck);
	EQ(0, net_poll(stuck, POLLIN, harness_ms(50)));
}

CHECK(signal_kills_accept)
{
	struct addr addr;
	int listener = net_sock(0), other = net_sock(0);

	net_listen_on(listener, &addr, 1);
	pid_t pid = OK(fork());
	if (!pid) {
		accept(listener, NULL, NULL);
		_exit(1);
	}
	OK(close(listener));
	task_wait_pid_blocked(pid, SYS_accept);
	OK(kill(pid, SIGKILL));
	int status;
	EQ(pid, waitpid(pid, &status, 0));
	/* The port is free as soon as the process has ended. */
	EQ(0, bind(other, &addr.sa, addr.len));
}
