// SPDX-License-Identifier: Apache-2.0
/*
 * Transfer of much data in both directions, through pipes and files, and without copies. The
 * content is checked.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/errqueue.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "harness.h"
#include "net.h"
#include "task.h"

#define MUCH (8 << 20)

static long send_pattern(struct call *call)
{
	net_send(call->fd, call->flags, call->len);
	return 0;
}

CHECK_PAIR(transfer_out)
{
	int a, b;
	struct task task;

	net_pair(&a, &b);
	task_start(&task, send_pattern, (struct call){ .fd = a, .len = MUCH });
	net_recv(b, 0, MUCH);
	EQ(0, task_join(&task));
	OK(close(a));
	net_recv_eof(b);
}

CHECK_PAIR(transfer_in)
{
	int a, b;
	struct task task;

	net_pair(&a, &b);
	task_start(&task, send_pattern, (struct call){ .fd = b, .len = MUCH });
	net_recv(a, 0, MUCH);
	EQ(0, task_join(&task));
}

CHECK_PAIR(transfer_both_ways_at_once)
{
	int a, b;
	struct task out, in;

	net_pair(&a, &b);
	task_start(&out, send_pattern, (struct call){ .fd = a, .len = MUCH, .flags = 3 });
	task_start(&in, send_pattern, (struct call){ .fd = b, .len = MUCH, .flags = 5 });
	/* Alternate, so that both buffers are full at times. */
	for (int i = 0; i < 8; i++) {
		net_recv(b, 3 + i * (MUCH / 8), MUCH / 8);
		net_recv(a, 5 + i * (MUCH / 8), MUCH / 8);
	}
	EQ(0, task_join(&out));
	EQ(0, task_join(&in));
}

CHECK_PAIR(transfer_small_buffers)
{
	int a, b;
	struct task task;

	net_pair(&a, &b);
	OK(net_set(a, SOL_SOCKET, SO_SNDBUF, 4096));
	OK(net_set(b, SOL_SOCKET, SO_RCVBUF, 4096));
	task_start(&task, send_pattern, (struct call){ .fd = a, .len = 1 << 15 });
	net_recv(b, 0, 1 << 15);
	EQ(0, task_join(&task));
}

CHECK_PAIR(transfer_byte_by_byte)
{
	int a, b;

	net_pair(&a, &b);
	for (int i = 0; i < 2000; i++)
		net_send(a, i, 1);
	net_recv(b, 0, 2000);
}

CHECK_PAIR(transfer_nonblocking)
{
	enum { SIZE = 1 << 21 };
	static char out[SIZE], in[SIZE];
	int a, b;
	size_t sent = 0, got = 0;

	net_pair(&a, &b);
	net_nonblock(a, true);
	net_nonblock(b, true);
	for (int i = 0; i < SIZE; i++)
		out[i] = i * 5 + (i >> 12);
	while (got < SIZE) {
		struct pollfd p[2] = { { sent < SIZE ? a : -1, POLLOUT, 0 }, { b, POLLIN, 0 } };

		OK(poll(p, 2, -1));
		if (p[0].revents)
			sent += OK(send(a, out + sent, SIZE - sent, 0));
		if (p[1].revents)
			got += OK(recv(b, in + got, SIZE - got, 0));
	}
	EQ(0, memcmp(in, out, SIZE));
}

CHECK_PAIR(transfer_by_threads_sharing_a_socket)
{
	enum { EACH = 1 << 17, SENDERS = 4 };
	int a, b;
	struct task tasks[SENDERS];
	static char chunks[SENDERS][EACH], in[SENDERS * EACH];
	size_t count[256] = { 0 };

	net_pair(&a, &b);
	for (int i = 0; i < SENDERS; i++) {
		memset(chunks[i], 'a' + i, EACH);
		task_start(&tasks[i], task_do_send,
			   (struct call){ .fd = a, .buf = chunks[i], .len = EACH });
	}
	EQ(sizeof(in), recv(b, in, sizeof(in), MSG_WAITALL));
	for (int i = 0; i < SENDERS; i++)
		EQ(EACH, task_join(&tasks[i]));
	for (size_t i = 0; i < sizeof(in); i++)
		count[(unsigned char)in[i]]++;
	for (int i = 0; i < SENDERS; i++)
		EQ(EACH, count['a' + i]);
}

static void make_pipe(int *in, int *out)
{
	int ends[2];

	OK(pipe2(ends, O_CLOEXEC));
	*in = ends[0];
	*out = ends[1];
}

CHECK_PAIR(splice_from_socket)
{
	int a, b, in, out;

	net_pair(&a, &b);
	make_pipe(&in, &out);
	net_send(b, 0, 10000);
	for (size_t got = 0; got < 10000;)
		got += OK(splice(a, NULL, out, NULL, 10000 - got, SPLICE_F_MOVE));
	/* Move the data on to the socket. */
	for (size_t put = 0; put < 10000;)
		put += OK(splice(in, NULL, a, NULL, 10000 - put, SPLICE_F_MOVE));
	net_recv(b, 0, 10000);
}

CHECK_PAIR(splice_nothing)
{
	int a, b, in, out;

	net_pair(&a, &b);
	make_pipe(&in, &out);
	net_nonblock(a, true);
	FAILS(EAGAIN, splice(a, NULL, out, NULL, 100, 0));
	OK(close(b));
	net_wait(a, POLLRDHUP);
	EQ(0, splice(a, NULL, out, NULL, 100, 0));
}

static long splice_it(struct call *call)
{
	long r = splice(call->fd, NULL, call->flags, NULL, call->len, 0);

	return r < 0 ? -errno : r;
}

CHECK_PAIR(splice_blocks)
{
	int a, b, in, out;
	struct task task;

	net_pair(&a, &b);
	make_pipe(&in, &out);
	task_start(&task, splice_it, (struct call){ .fd = a, .flags = out, .len = 100 });
	task_wait_blocked(&task, SYS_splice);
	net_send(b, 0, 10);
	EQ(10, task_join(&task));
}

CHECK(splice_unconnected)
{
	int in, out, fd = net_sock(0);

	make_pipe(&in, &out);
	FAILS(ENOTCONN, splice(fd, NULL, out, NULL, 100, 0));
	OK(write(out, "x", 1));
	FAILS(EPIPE, splice(in, NULL, fd, NULL, 1, 0));
}

CHECK_PAIR(sendfile_whole)
{
	enum { SIZE = 300000 };
	int a, b, file = OK(memfd_create("sendfile", MFD_CLOEXEC));
	static char data[SIZE], in[SIZE];
	struct task task;

	net_pair(&a, &b);
	for (int i = 0; i < SIZE; i++)
		data[i] = i * 11 + (i >> 9);
	EQ(SIZE, write(file, data, SIZE));
	task_start(&task, task_do_recv,
		   (struct call){ .fd = b, .buf = in, .len = SIZE, .flags = MSG_WAITALL });
	off_t at = 0;
	while (at < SIZE)
		OK(sendfile(a, file, &at, SIZE - at));
	EQ(SIZE, task_join(&task));
	EQ(0, memcmp(data, in, SIZE));
}

CHECK_PAIR(sendfile_from_middle)
{
	int a, b, file = OK(memfd_create("sendfile", MFD_CLOEXEC));
	off_t at = 3;
	char in[4];

	net_pair(&a, &b);
	EQ(10, write(file, "0123456789", 10));
	EQ(4, sendfile(a, file, &at, 4));
	EQ(7, at);
	EQ(4, recv(b, in, 4, MSG_WAITALL));
	EQ(0, memcmp(in, "3456", 4));
}

/* Waits for the notification that the pages of a MSG_ZEROCOPY call may be reused. */
static void zerocopy_done(int fd)
{
	char control[128];
	struct msghdr msg = { .msg_control = control, .msg_controllen = sizeof(control) };

	net_wait(fd, POLLERR);
	OK(recvmsg(fd, &msg, MSG_ERRQUEUE));
	EXPECT(msg.msg_flags & MSG_ERRQUEUE, "no message of the error queue");
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
	EXPECT(cmsg, "no control message");
	struct sock_extended_err *err = (void *)CMSG_DATA(cmsg);
	EQ(SO_EE_ORIGIN_ZEROCOPY, err->ee_origin);
	EQ(0, err->ee_errno);
}

CHECK_PAIR(zerocopy)
{
	enum { SIZE = 20000 };
	int a, b;
	static char data[SIZE], in[SIZE];

	net_pair(&a, &b);
	OK(net_set(a, SOL_SOCKET, SO_ZEROCOPY, 1));
	EQ(1, net_int(a, SOL_SOCKET, SO_ZEROCOPY));
	for (int i = 0; i < SIZE; i++)
		data[i] = i * 3 + (i >> 8);
	EQ(SIZE, send(a, data, SIZE, MSG_ZEROCOPY));
	EQ(SIZE, recv(b, in, SIZE, MSG_WAITALL));
	EQ(0, memcmp(data, in, SIZE));
	zerocopy_done(a);
}

CHECK(zerocopy_can_be_set_early)
{
	int fd = net_sock(0);

	EQ(0, net_int(fd, SOL_SOCKET, SO_ZEROCOPY));
	OK(net_set(fd, SOL_SOCKET, SO_ZEROCOPY, 1));
	EQ(1, net_int(fd, SOL_SOCKET, SO_ZEROCOPY));
}

CHECK(mmap_of_socket)
{
	/* TCP maps pages only for zero-copy receive, read-only and not executable. */
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, net_sock(0), 0);

	EXPECT(p == MAP_FAILED && errno == EPERM, "mmap: %s", p == MAP_FAILED ?
	       strerrorname_np(errno) : "succeeded");
}

CHECK(mmap_of_socket_read_only)
{
	void *p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, net_sock(0), 0);

	EXPECT(p != MAP_FAILED, "mmap: %s", strerrorname_np(errno));
}

/* Requests data by zero-copy receive, which may fail. Return: as getsockopt(). */
static int receive_zerocopy(int fd, struct tcp_zerocopy_receive *zc)
{
	socklen_t len = sizeof(*zc);

	return getsockopt(fd, IPPROTO_TCP, TCP_ZEROCOPY_RECEIVE, zc, &len);
}

/* Less than a page cannot be mapped. TCP returns how many bytes to copy. */
CHECK_PAIR(zerocopy_receive)
{
	struct tcp_zerocopy_receive zc = {};
	int a, b;

	net_pair(&a, &b);
	net_send(b, 0, 100);
	net_wait_rcvq(a, 100);
	void *p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, a, 0);
	EXPECT(p != MAP_FAILED, "mmap: %s", strerrorname_np(errno));
	zc.address = (unsigned long)p;
	zc.length = 4096;
	OK(receive_zerocopy(a, &zc));
	EQ(0, zc.length);
	EQ(100, zc.recv_skip_hint);
	net_recv(a, 0, 100);
}

/* A socket that does not support it returns an error, and recv() gets the data. */
CHECK_PAIR(zerocopy_receive_loses_nothing)
{
	struct tcp_zerocopy_receive zc = {};
	int a, b;

	net_pair(&a, &b);
	net_send(b, 0, 100);
	net_wait_rcvq(a, 100);
	if (receive_zerocopy(a, &zc) < 0)
		EXPECT(errno == EOPNOTSUPP, "getsockopt: %s", strerrorname_np(errno));
	else
		EQ(100, zc.recv_skip_hint);
	net_recv(a, 0, 100);
}

CHECK(lseek_and_pread)
{
	int fd = net_sock(0);
	char byte;

	FAILS(ESPIPE, lseek(fd, 0, SEEK_SET));
	FAILS(ESPIPE, pread(fd, &byte, 1, 0));
	FAILS(EINVAL, fsync(fd));
}
