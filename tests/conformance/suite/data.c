// SPDX-License-Identifier: Apache-2.0
/* Sending and receiving: flags, vectors, amounts. */
#define _GNU_SOURCE
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include "harness.h"
#include "net.h"
#include "task.h"

CHECK(send_on_fresh)
{
	int fd = net_sock(0);
	char byte;

	FAILS(EPIPE, send(fd, "x", 1, 0));
	FAILS(ENOTCONN, recv(fd, &byte, 1, 0));
	FAILS(EPIPE, write(fd, "x", 1));
	FAILS(ENOTCONN, read(fd, &byte, 1));
}

CHECK(send_while_connecting)
{
	struct addr addr;
	int fd = net_sock(SOCK_NONBLOCK);
	char byte;

	net_stuck(&addr);
	FAILS(EINPROGRESS, connect(fd, &addr.sa, addr.len));
	FAILS(EAGAIN, send(fd, "x", 1, 0));
	FAILS(EAGAIN, recv(fd, &byte, 1, 0));
}

CHECK(sendto_with_address_on_fresh)
{
	struct addr addr;
	int fd = net_sock(0);

	net_dead(&addr);
	/* TCP does not connect in sendto(), and ignores the address. */
	FAILS(EPIPE, sendto(fd, "x", 1, 0, &addr.sa, addr.len));
}

CHECK_PAIR(sendto_with_address_on_connected)
{
	struct addr addr;
	int a, b;
	char byte;

	net_pair(&a, &b);
	net_dead(&addr);
	EQ(1, sendto(a, "x", 1, 0, &addr.sa, addr.len));
	EQ(1, recv(b, &byte, 1, 0));
}

CHECK_PAIR(recvfrom_leaves_address)
{
	struct addr addr = { .len = sizeof(addr.ss) };
	int a, b;
	char byte;

	net_pair(&a, &b);
	net_send(b, 0, 1);
	addr.sa.sa_family = AF_UNIX;
	EQ(1, recvfrom(a, &byte, 1, 0, &addr.sa, &addr.len));
	EQ(0, addr.len);
	EQ(AF_UNIX, addr.sa.sa_family);
}

CHECK_PAIR(recv_eagain)
{
	int a, b;
	char byte;

	net_pair(&a, &b);
	FAILS(EAGAIN, recv(a, &byte, 1, MSG_DONTWAIT));
	net_nonblock(a, true);
	FAILS(EAGAIN, recv(a, &byte, 1, 0));
	FAILS(EAGAIN, read(a, &byte, 1));
}

CHECK_PAIR(recv_nothing)
{
	int a, b;
	char byte = 'x';

	net_pair(&a, &b);
	net_send(b, 0, 1);
	net_wait(a, POLLIN);
	/* A read of zero bytes returns 0 and loses no data. */
	EQ(0, recv(a, &byte, 0, 0));
	EQ('x', byte);
	net_recv(a, 0, 1);
}

CHECK_PAIR(send_nothing)
{
	int a, b;

	net_pair(&a, &b);
	EQ(0, send(a, "", 0, 0));
	EQ(0, write(a, "", 0));
	EQ(0, net_poll(b, POLLIN, harness_ms(20)));
	net_exchange(a, b);
}

CHECK_PAIR(recv_blocks)
{
	int a, b;
	struct task task;
	char byte = 0;

	net_pair(&a, &b);
	task_start(&task, task_do_recv, (struct call){ .fd = a, .buf = &byte, .len = 1 });
	task_wait_blocked(&task, SYS_recvfrom);
	EQ(1, send(b, "k", 1, 0));
	EQ(1, task_join(&task));
	EQ('k', byte);
}

CHECK_PAIR(recv_takes_what_is_there)
{
	int a, b;
	char buf[200];

	net_pair(&a, &b);
	net_send(b, 0, 50);
	net_wait_rcvq(a, 50);
	EQ(50, recv(a, buf, sizeof(buf), 0));
}

CHECK_PAIR(recv_joins_segments)
{
	int a, b;
	char buf[200];

	net_pair(&a, &b);
	for (int i = 0; i < 5; i++)
		net_send(b, i * 10, 10);
	net_wait_rcvq(a, 50);
	EQ(50, recv(a, buf, sizeof(buf), 0));
}

CHECK_PAIR(recv_rcvtimeo)
{
	int a, b;
	struct timeval tv = { .tv_usec = 80000 };
	char byte;

	net_pair(&a, &b);
	OK(setsockopt(a, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)));
	long begin = harness_now();
	FAILS(EAGAIN, recv(a, &byte, 1, 0));
	EXPECT(harness_now() - begin >= 40, "it took %ld ms", harness_now() - begin);
}

CHECK_PAIR(send_sndtimeo)
{
	int a, b;
	struct timeval tv = { .tv_usec = 80000 };
	static char big[1 << 24];

	net_pair(&a, &b);
	OK(setsockopt(a, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)));
	/* send() sends all data that fit into the growing buffers, and then times out. */
	long sent = OK(send(a, big, sizeof(big), 0));
	EXPECT(sent < (long)sizeof(big), "all of it fitted");
	while (send(a, big, sizeof(big), 0) > 0)
		;
	FAILS(EAGAIN, send(a, big, sizeof(big), 0));
}

CHECK_PAIR(peek)
{
	int a, b;
	char one[10], two[10];

	net_pair(&a, &b);
	EQ(10, send(b, "0123456789", 10, 0));
	net_wait_rcvq(a, 10);
	EQ(4, recv(a, one, 4, MSG_PEEK));
	EQ(10, recv(a, two, 10, MSG_PEEK));
	EQ(0, memcmp(one, "0123", 4));
	EQ(0, memcmp(two, "0123456789", 10));
	EQ(6, recv(a, one, 6, 0));
	EQ(4, recv(a, two, 10, MSG_PEEK));
	EQ(0, memcmp(two, "6789", 4));
	EQ(4, recv(a, two, 10, 0));
	FAILS(EAGAIN, recv(a, two, 10, MSG_PEEK | MSG_DONTWAIT));
}

CHECK_PAIR(peek_blocks)
{
	int a, b;
	struct task task;
	char byte;

	net_pair(&a, &b);
	task_start(&task, task_do_recv,
		   (struct call){ .fd = a, .buf = &byte, .len = 1, .flags = MSG_PEEK });
	task_wait_blocked(&task, SYS_recvfrom);
	net_send(b, 0, 1);
	EQ(1, task_join(&task));
	net_recv(a, 0, 1);
}

static long send_in_two(struct call *call)
{
	net_send(call->fd, 0, 60000);
	net_send(call->fd, 60000, 30000);
	return 0;
}

/*
 * The peeking thread waits for more data than the first call sends, and frees no space for the
 * second.
 */
CHECK_PAIR(peek_all_of_two_sends)
{
	static char buf[62000];
	int a, b;
	struct task task;

	net_pair(&a, &b);
	task_start(&task, send_in_two, (struct call){ .fd = b });
	EQ(sizeof(buf), recv(a, buf, sizeof(buf), MSG_PEEK | MSG_WAITALL));
	net_recv(a, 0, 90000);
	EQ(0, task_join(&task));
}

CHECK_PAIR(peek_off_of_what_comes)
{
	int a, b;
	struct task task;
	char buf[4] = "";

	net_pair(&a, &b);
	/* Older kernels do not support this for TCP, see opt_peek_off. */
	if (net_set(a, SOL_SOCKET, SO_PEEK_OFF, 5))
		return;
	EQ(3, send(b, "012", 3, 0));
	net_wait_rcvq(a, 3);
	FAILS(EAGAIN, recv(a, buf, 1, MSG_PEEK | MSG_DONTWAIT));
	task_start(&task, task_do_recv,
		   (struct call){ .fd = a, .buf = buf, .len = 4, .flags = MSG_PEEK });
	task_wait_blocked(&task, SYS_recvfrom);
	EQ(5, send(b, "34567", 5, 0));
	EXPECT(task_join(&task) >= 1 && buf[0] == '5', "peeked '%c'", buf[0]);
}

CHECK_PAIR(peek_eof)
{
	int a, b;
	char byte;

	net_pair(&a, &b);
	OK(shutdown(b, SHUT_WR));
	EQ(0, recv(a, &byte, 1, MSG_PEEK));
	EQ(0, recv(a, &byte, 1, 0));
}

/*
 * The first part is more than half of the default SMC buffer, which wakes a reader with
 * SO_RCVLOWAT, and the rest is less. TCP uses only the low-water mark, not the number of bytes that
 * a reader has already received, and wakes the reader early if the window is less than a segment.
 * The segments here are small, so there is room.
 */
CHECK_PAIR(rcvlowat_blocks_for_all)
{
	enum { SIZE = 45000, FIRST = 40000, SEGMENT = 8000 };
	static char got[SIZE];
	int a, b;
	struct task task;

	net_pair(&a, &b);
	OK(net_set(a, SOL_SOCKET, SO_RCVLOWAT, SIZE));
	OK(net_set(b, IPPROTO_TCP, TCP_NODELAY, 1));
	task_start(&task, task_do_recv, (struct call){ .fd = a, .buf = got, .len = SIZE });
	task_wait_blocked(&task, SYS_recvfrom);
	for (int sent = 0; sent < FIRST; sent += SEGMENT)
		net_send(b, sent, SEGMENT);
	task_stays_blocked(&task, 20);
	/* The thread may still be receiving the first part. */
	task_wait_blocked(&task, SYS_recvfrom);
	net_send(b, FIRST, SIZE - FIRST);
	EQ(SIZE, task_join(&task));
}

/*
 * A reader that polls for half a buffer and reads less each time must not wait for a writer that
 * waits for space.
 */
CHECK_PAIR(rcvlowat_poll_stream)
{
	enum { SIZE = 1 << 22, LOWAT = 131072 };
	static char sent[SIZE], got[LOWAT];
	int a, b, lowat = LOWAT;
	struct task task;
	long all = 0, n;

	net_pair(&a, &b);
	OK(net_set(a, SOL_SOCKET, SO_RCVLOWAT, LOWAT));
	task_start(&task, task_do_send, (struct call){ .fd = b, .buf = sent, .len = SIZE });
	while (all < SIZE) {
		/* The rest of the stream is less than the mark. */
		if (SIZE - all < lowat)
			OK(net_set(a, SOL_SOCKET, SO_RCVLOWAT, lowat = 1));
		EQ(POLLIN, net_poll(a, POLLIN, harness_ms(5000)));
		n = recv(a, got, 65536, MSG_DONTWAIT);
		EXPECT(n > 0, "recv: %ld", n);
		all += n;
	}
	EQ(SIZE, task_join(&task));
}

/*
 * A reader polls for more than is queued, and has read the rest. It must not block the writer,
 * which polls for space, whether the reader sets the mark before or after reading: in both cases,
 * no more data come without space.
 */
CHECK_PAIR(rcvlowat_poll_room)
{
	enum { FIRST = 30000, SECOND = 10000, LOWAT = 16384 };

	for (int after = 0; after < 2; after++) {
		int a, b;

		net_pair(&a, &b);
		if (!after)
			OK(net_set(a, SOL_SOCKET, SO_RCVLOWAT, LOWAT));
		net_send(b, 0, FIRST);
		net_recv(a, 0, FIRST);
		if (after)
			OK(net_set(a, SOL_SOCKET, SO_RCVLOWAT, LOWAT));
		net_send(b, FIRST, SECOND);
		net_wait_rcvq(a, SECOND);
		EQ(POLLOUT, net_poll(b, POLLOUT, harness_ms(5000)));
		OK(close(a));
		OK(close(b));
	}
}

CHECK_PAIR(waitall)
{
	int a, b;
	struct task task;
	char buf[100];

	net_pair(&a, &b);
	task_start(&task, task_do_recv,
		   (struct call){ .fd = a, .buf = buf, .len = 100, .flags = MSG_WAITALL });
	task_wait_blocked(&task, SYS_recvfrom);
	net_send(b, 0, 60);
	/* Only the last byte wakes the thread permanently. */
	task_stays_blocked(&task, 20);
	task_wait_blocked(&task, SYS_recvfrom);
	net_send(b, 60, 40);
	EQ(100, task_join(&task));
}

CHECK_PAIR(waitall_eof)
{
	int a, b;
	char buf[100];

	net_pair(&a, &b);
	net_send(b, 0, 60);
	OK(shutdown(b, SHUT_WR));
	EQ(60, recv(a, buf, 100, MSG_WAITALL));
	EQ(0, recv(a, buf, 100, MSG_WAITALL));
}

CHECK_PAIR(waitall_more_than_buffer)
{
	enum { SIZE = 1 << 22 };
	static char big[SIZE], sent[SIZE];
	int a, b;
	struct task task;

	net_pair(&a, &b);
	for (int i = 0; i < SIZE; i++)
		sent[i] = i * 3 + (i >> 10);
	task_start(&task, task_do_send, (struct call){ .fd = b, .buf = sent, .len = SIZE });
	EQ(SIZE, recv(a, big, SIZE, MSG_WAITALL));
	EQ(SIZE, task_join(&task));
	EQ(0, memcmp(big, sent, SIZE));
}

CHECK_PAIR(waitall_nonblocking)
{
	int a, b;
	char buf[100];

	net_pair(&a, &b);
	net_send(b, 0, 60);
	net_wait_rcvq(a, 60);
	EQ(60, recv(a, buf, 100, MSG_WAITALL | MSG_DONTWAIT));
}

CHECK_PAIR(trunc_discards)
{
	int a, b;

	net_pair(&a, &b);
	net_send(b, 0, 100);
	net_wait_rcvq(a, 100);
	/* On a stream, this flag discards bytes, and needs no buffer. */
	EQ(40, recv(a, NULL, 40, MSG_TRUNC));
	net_recv(a, 40, 60);
}

CHECK_PAIR(more_then_flush)
{
	int a, b;

	net_pair(&a, &b);
	EQ(3, send(a, "abc", 3, MSG_MORE));
	EQ(3, send(a, "def", 3, 0));
	char buf[6];
	EQ(6, recv(b, buf, 6, MSG_WAITALL));
	EQ(0, memcmp(buf, "abcdef", 6));
}

CHECK_PAIR(more_is_sent_at_shutdown)
{
	int a, b;
	char buf[4];

	net_pair(&a, &b);
	EQ(3, send(a, "abc", 3, MSG_MORE));
	OK(shutdown(a, SHUT_WR));
	EQ(3, recv(b, buf, 4, MSG_WAITALL));
}

CHECK_PAIR(errqueue_is_empty)
{
	int a, b;
	char buf[10];

	net_pair(&a, &b);
	FAILS(EAGAIN, recv(a, buf, sizeof(buf), MSG_ERRQUEUE));
}

CHECK_PAIR(vectors)
{
	int a, b;
	char one[3], two[5], three[4];
	struct iovec out[] = { { "ab", 2 }, { "", 0 }, { "cdefg", 5 }, { "hijkl", 5 } };
	struct iovec in[] = { { one, 3 }, { two, 5 }, { NULL, 0 }, { three, 4 } };

	net_pair(&a, &b);
	EQ(12, writev(a, out, 4));
	net_wait_rcvq(b, 12);
	EQ(12, readv(b, in, 4));
	EQ(0, memcmp(one, "abc", 3) | memcmp(two, "defgh", 5) | memcmp(three, "ijkl", 4));
}

CHECK_PAIR(messages)
{
	int a, b;
	char one[3], two[5], control[64];
	struct iovec out[] = { { "abcd", 4 }, { "efgh", 4 } };
	struct iovec in[] = { { one, 3 }, { two, 5 } };
	struct msghdr msg = { .msg_iov = out, .msg_iovlen = 2 };

	net_pair(&a, &b);
	EQ(8, sendmsg(a, &msg, 0));
	net_wait_rcvq(b, 8);
	msg = (struct msghdr){ .msg_iov = in, .msg_iovlen = 2, .msg_control = control,
			       .msg_controllen = sizeof(control), .msg_flags = -1 };
	EQ(8, recvmsg(b, &msg, 0));
	EQ(0, memcmp(one, "abc", 3) | memcmp(two, "defgh", 5));
	EQ(0, msg.msg_flags);
	EQ(0, msg.msg_controllen);
}

CHECK_PAIR(messages_many)
{
	int a, b;
	char one[4], two[4];
	struct iovec out[] = { { "abcd", 4 }, { "efgh", 4 } }, in[] = { { one, 4 }, { two, 4 } };
	struct mmsghdr msgs[2] = { { .msg_hdr = { .msg_iov = &out[0], .msg_iovlen = 1 } },
				   { .msg_hdr = { .msg_iov = &out[1], .msg_iovlen = 1 } } };

	net_pair(&a, &b);
	EQ(2, sendmmsg(a, msgs, 2, 0));
	net_wait_rcvq(b, 8);
	msgs[0].msg_hdr.msg_iov = &in[0];
	msgs[1].msg_hdr.msg_iov = &in[1];
	EQ(2, recvmmsg(b, msgs, 2, 0, NULL));
	EQ(0, memcmp(one, "abcd", 4) | memcmp(two, "efgh", 4));
}

CHECK_PAIR(bad_pointers)
{
	int a, b;
	char byte;

	net_pair(&a, &b);
	FAILS(EFAULT, send(a, (void *)8, 10, 0));
	net_send(b, 0, 1);
	net_wait(a, POLLIN);
	FAILS(EFAULT, recv(a, (void *)8, 1, 0));
	/* No data is lost. */
	EQ(1, recv(a, &byte, 1, 0));
	net_exchange(a, b);
}

CHECK_PAIR(bad_pointer_midway)
{
	int a, b;
	long page = sysconf(_SC_PAGESIZE);
	char *map = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);

	net_pair(&a, &b);
	EXPECT(map != MAP_FAILED, "no memory");
	OK(munmap(map + page, page));
	net_send(b, 0, 100);
	net_wait_rcvq(a, 100);
	struct iovec in[] = { { map, 40 }, { map + page, 60 } };
	FAILS(EFAULT, readv(a, in, 2));
	net_recv(a, 0, 100);
}

CHECK_PAIR(siocinq)
{
	int a, b, bytes = -1;

	net_pair(&a, &b);
	OK(ioctl(a, FIONREAD, &bytes));
	EQ(0, bytes);
	net_send(b, 0, 123);
	net_wait_rcvq(a, 123);
	OK(ioctl(a, FIONREAD, &bytes));
	EQ(123, bytes);
	net_recv(a, 0, 23);
	OK(ioctl(a, FIONREAD, &bytes));
	EQ(100, bytes);
}

CHECK_PAIR(siocinq_at_end)
{
	int a, b, bytes = -1;

	net_pair(&a, &b);
	net_send(b, 0, 5);
	OK(shutdown(b, SHUT_WR));
	net_wait(a, POLLRDHUP);
	OK(ioctl(a, FIONREAD, &bytes));
	/* The end of the stream does not count as a byte. */
	EQ(5, bytes);
}

CHECK_PAIR(siocoutq)
{
	int a, b, bytes = -1;
	char buf[65536] = "";

	net_pair(&a, &b);
	OK(ioctl(a, TIOCOUTQ, &bytes));
	EQ(0, bytes);
	net_nonblock(a, true);
	while (send(a, buf, sizeof(buf), 0) > 0)
		;
	OK(ioctl(a, TIOCOUTQ, &bytes));
	EXPECT(bytes > 0, "TIOCOUTQ is %d with a full buffer", bytes);
}

CHECK_CONN(ioctl_on_listener)
{
	struct addr addr;
	int listener = net_listen(&addr, 1), bytes;

	FAILS(EINVAL, ioctl(listener, FIONREAD, &bytes));
	FAILS(EINVAL, ioctl(listener, TIOCOUTQ, &bytes));
}

CHECK(ioctl_on_fresh)
{
	int fd = net_sock(0), bytes = -1;

	OK(ioctl(fd, FIONREAD, &bytes));
	EQ(0, bytes);
	OK(ioctl(fd, TIOCOUTQ, &bytes));
	EQ(0, bytes);
	FAILS(ENOTTY, ioctl(fd, 0x12345678, &bytes));
	FAILS(EFAULT, ioctl(fd, FIONREAD, (int *)8));
}
