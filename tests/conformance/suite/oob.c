// SPDX-License-Identifier: Apache-2.0
/* Urgent data, out of band and inline. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/sockios.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "harness.h"
#include "net.h"
#include "task.h"

static int at_mark(int fd)
{
	int mark = -1;

	OK(ioctl(fd, SIOCATMARK, &mark));
	return mark;
}

CHECK_PAIR(oob_byte)
{
	int a, b;
	char byte = 0;

	net_pair(&a, &b);
	EQ(1, send(b, "!", 1, MSG_OOB));
	net_wait(a, POLLPRI);
	EQ(1, recv(a, &byte, 1, MSG_OOB));
	EQ('!', byte);
	/* It can be read only once. */
	FAILS(EINVAL, recv(a, &byte, 1, MSG_OOB));
}

CHECK_PAIR(oob_none)
{
	int a, b;
	char byte;

	net_pair(&a, &b);
	FAILS(EINVAL, recv(a, &byte, 1, MSG_OOB));
	net_send(b, 0, 1);
	net_wait(a, POLLIN);
	FAILS(EINVAL, recv(a, &byte, 1, MSG_OOB));
}

CHECK_PAIR(oob_peek)
{
	int a, b;
	char byte = 0;

	net_pair(&a, &b);
	EQ(1, send(b, "!", 1, MSG_OOB));
	net_wait(a, POLLPRI);
	EQ(1, recv(a, &byte, 1, MSG_OOB | MSG_PEEK));
	EQ('!', byte);
	EQ(1, recv(a, &byte, 1, MSG_OOB));
}

/* Sends an urgent byte with other bytes before and after it. */
static void send_around(int fd)
{
	EQ(3, send(fd, "abc", 3, 0));
	EQ(1, send(fd, "!", 1, MSG_OOB));
	EQ(3, send(fd, "def", 3, 0));
}

static void take_rest(int fd)
{
	char buf[3];

	EQ(3, recv(fd, buf, 3, MSG_WAITALL));
	EQ(0, memcmp(buf, "def", 3));
}

CHECK_PAIR(oob_splits_stream)
{
	int a, b;
	char buf[10];

	net_pair(&a, &b);
	send_around(b);
	net_wait(a, POLLPRI);
	net_wait_rcvq(a, 3);
	/* Reading stops at the mark. */
	EQ(3, recv(a, buf, sizeof(buf), 0));
	EQ(0, memcmp(buf, "abc", 3));
	EQ(1, at_mark(a));
	EQ(1, recv(a, buf, 1, MSG_OOB));
	take_rest(a);
	EQ(0, at_mark(a));
}

/* The mark does not block a reader that waits for the data after it. */
CHECK_PAIR(oob_then_poll)
{
	int a, b;
	char buf[10];

	net_pair(&a, &b);
	send_around(b);
	net_wait(a, POLLPRI);
	EQ(3, recv(a, buf, 3, MSG_WAITALL));
	EQ(1, recv(a, buf, 1, MSG_OOB));
	net_wait(a, POLLIN);
	take_rest(a);
}

CHECK_PAIR(oob_ignored_then_poll)
{
	int a, b;
	char buf[10];

	net_pair(&a, &b);
	EQ(1, send(b, "!", 1, MSG_OOB));
	net_wait(a, POLLPRI);
	EQ(3, send(b, "def", 3, 0));
	net_wait(a, POLLIN);
	take_rest(a);
	FAILS(EINVAL, recv(a, buf, 1, MSG_OOB));
}

/* The byte arrives out of band, before the option is set. */
CHECK_PAIR(oob_put_in_line)
{
	int a, b;
	char buf[10];

	net_pair(&a, &b);
	EQ(1, send(b, "!", 1, MSG_OOB));
	net_wait(a, POLLPRI);
	EQ(3, send(b, "def", 3, 0));
	net_wait(a, POLLIN);
	OK(net_set(a, SOL_SOCKET, SO_OOBINLINE, 1));
	EQ(4, recv(a, buf, 4, MSG_WAITALL));
	EQ(0, memcmp(buf, "!def", 4));
}

CHECK_PAIR(oob_last_of_many_bytes)
{
	int a, b;
	char buf[10];

	net_pair(&a, &b);
	/* Only the last byte of such a call is urgent. */
	EQ(4, send(b, "abc!", 4, MSG_OOB));
	net_wait(a, POLLPRI);
	EQ(3, recv(a, buf, sizeof(buf), 0));
	EQ(0, memcmp(buf, "abc", 3));
	EQ(1, recv(a, buf, 1, MSG_OOB));
	EQ('!', buf[0]);
}

CHECK_PAIR(oob_inline)
{
	int a, b;
	char buf[10];

	net_pair(&a, &b);
	OK(net_set(a, SOL_SOCKET, SO_OOBINLINE, 1));
	EQ(2, send(b, "ab", 2, 0));
	EQ(1, send(b, "!", 1, MSG_OOB));
	EQ(2, send(b, "cd", 2, 0));
	net_wait(a, POLLPRI);
	net_wait_rcvq(a, 5);
	FAILS(EINVAL, recv(a, buf, 1, MSG_OOB));
	EQ(2, recv(a, buf, sizeof(buf), 0));
	EQ(1, at_mark(a));
	EQ(3, recv(a, buf, 3, MSG_WAITALL));
	EQ(0, memcmp(buf, "!cd", 3));
}

CHECK_PAIR(oob_mark_on_quiet_connection)
{
	int a, b;

	net_pair(&a, &b);
	EQ(0, at_mark(a));
	net_send(b, 0, 5);
	net_wait_rcvq(a, 5);
	EQ(0, at_mark(a));
}

CHECK_PAIR(oob_poll)
{
	int a, b;
	char byte;

	net_pair(&a, &b);
	EQ(0, net_poll(a, POLLPRI, 0));
	EQ(1, send(b, "!", 1, MSG_OOB));
	EQ(POLLPRI, net_poll(a, POLLPRI, -1));
	EQ(1, recv(a, &byte, 1, MSG_OOB));
	EQ(0, net_poll(a, POLLPRI, 0));
}

CHECK_PAIR(oob_send)
{
	int a, b;
	char byte = 0;

	net_pair(&a, &b);
	EQ(1, send(a, "?", 1, MSG_OOB));
	net_wait(b, POLLPRI);
	EQ(1, recv(b, &byte, 1, MSG_OOB));
	EQ('?', byte);
}

CHECK_PAIR(oob_sigurg)
{
	int a, b;

	net_pair(&a, &b);
	task_on_signal(SIGURG, SA_RESTART);
	OK(fcntl(a, F_SETOWN, getpid()));
	EQ(getpid(), fcntl(a, F_GETOWN));
	EQ(1, send(b, "!", 1, MSG_OOB));
	net_wait(a, POLLPRI);
	task_wait_signal();
	EQ(1, task_signals());
}

CHECK_CONN(oob_sigurg_owner_set_before_connect)
{
	struct addr addr;
	int listener = net_listen(&addr, 1), fd = net_client(0);

	task_on_signal(SIGURG, SA_RESTART);
	OK(ioctl(fd, SIOCSPGRP, &(int){ getpid() }));
	OK(connect(fd, &addr.sa, addr.len));
	EQ(1, send(net_accept(listener), "!", 1, MSG_OOB));
	net_wait(fd, POLLPRI);
	task_wait_signal();
	EQ(1, task_signals());
	int owner = 0;
	OK(ioctl(fd, SIOCGPGRP, &owner));
	EQ(getpid(), owner);
}

CHECK_PAIR(async_sigio)
{
	int a, b;

	net_pair(&a, &b);
	task_on_signal(SIGIO, SA_RESTART);
	OK(fcntl(a, F_SETOWN, getpid()));
	OK(fcntl(a, F_SETFL, fcntl(a, F_GETFL) | O_ASYNC));
	net_send(b, 0, 1);
	net_wait(a, POLLIN);
	task_wait_signal();
}

CHECK_PAIR(async_by_ioctl_on_and_off)
{
	int a, b;

	net_pair(&a, &b);
	OK(fcntl(a, F_SETOWN, getpid()));
	OK(ioctl(a, FIOASYNC, &(int){ 1 }));
	EQ(O_ASYNC, fcntl(a, F_GETFL) & O_ASYNC);
	OK(ioctl(a, FIOASYNC, &(int){ 0 }));
	EQ(0, fcntl(a, F_GETFL) & O_ASYNC);
	task_on_signal(SIGIO, SA_RESTART);
	net_send(b, 0, 1);
	net_wait(a, POLLIN);
	EQ(0, task_signals());
}

CHECK_CONN(async_sigio_on_listener)
{
	struct addr addr;
	int listener = net_server(0);

	/* Set the owner before the socket listens. */
	task_on_signal(SIGIO, SA_RESTART);
	OK(fcntl(listener, F_SETOWN, getpid()));
	OK(fcntl(listener, F_SETFL, O_ASYNC));
	net_listen_on(listener, &addr, 1);
	net_connect(&addr);
	net_wait(listener, POLLIN);
	task_wait_signal();
}

CHECK_CONN(async_sigio_when_connected)
{
	struct addr addr;
	int fd = net_client(SOCK_NONBLOCK);

	net_listen(&addr, 1);
	task_on_signal(SIGIO, SA_RESTART);
	OK(fcntl(fd, F_SETOWN, getpid()));
	OK(fcntl(fd, F_SETFL, O_ASYNC | O_NONBLOCK));
	FAILS(EINPROGRESS, connect(fd, &addr.sa, addr.len));
	net_wait(fd, POLLOUT);
	task_wait_signal();
}

CHECK_PAIR(async_own_signal)
{
	int a, b;

	net_pair(&a, &b);
	task_on_signal(SIGRTMIN, SA_RESTART);
	OK(fcntl(a, F_SETOWN, getpid()));
	OK(fcntl(a, F_SETSIG, SIGRTMIN));
	OK(fcntl(a, F_SETFL, O_ASYNC));
	net_send(b, 0, 1);
	net_wait(a, POLLIN);
	task_wait_signal();
}
