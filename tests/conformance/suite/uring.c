// SPDX-License-Identifier: Apache-2.0
/* io_uring on sockets: requests that complete at once, and requests that wait. */
#define _GNU_SOURCE
#include "uring.h"

#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/sockios.h>

#include "harness.h"
#include "net.h"

static void *map(struct uring *ring, size_t size, off_t at)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring->fd, at);

	EXPECT(p != MAP_FAILED, "mapping the ring: %s", strerrorname_np(errno));
	return p;
}

void uring_open_flags(struct uring *ring, unsigned int flags)
{
	struct io_uring_params p = { .flags = flags };

	ring->cqe_shift = flags & IORING_SETUP_CQE32 ? 1 : 0;
	ring->enter = flags & IORING_SETUP_SQPOLL ? IORING_ENTER_SQ_WAKEUP : 0;
	ring->fd = syscall(SYS_io_uring_setup, 16, &p);
	if (ring->fd < 0)
		harness_skip("no io_uring: %s", strerrorname_np(errno));
	char *sq = map(ring, p.sq_off.array + p.sq_entries * sizeof(int), IORING_OFF_SQ_RING);
	char *cq = map(ring, p.cq_off.cqes + (p.cq_entries * sizeof(*ring->cqes) << ring->cqe_shift),
		       IORING_OFF_CQ_RING);

	ring->sqes = map(ring, p.sq_entries * sizeof(*ring->sqes), IORING_OFF_SQES);
	ring->cqes = (void *)(cq + p.cq_off.cqes);
	ring->sq_tail = (void *)(sq + p.sq_off.tail);
	ring->sq_array = (void *)(sq + p.sq_off.array);
	ring->sq_mask = *(unsigned int *)(sq + p.sq_off.ring_mask);
	ring->cq_head = (void *)(cq + p.cq_off.head);
	ring->cq_tail = (void *)(cq + p.cq_off.tail);
	ring->cq_mask = *(unsigned int *)(cq + p.cq_off.ring_mask);
}

void uring_open(struct uring *ring)
{
	uring_open_flags(ring, 0);
}

void uring_submit(struct uring *ring, const struct io_uring_sqe *sqe)
{
	unsigned int tail = *ring->sq_tail, at = tail & ring->sq_mask;

	ring->sqes[at] = *sqe;
	ring->sq_array[at] = at;
	__atomic_store_n(ring->sq_tail, tail + 1, __ATOMIC_RELEASE);
	EQ(1, syscall(SYS_io_uring_enter, ring->fd, 1, 0, ring->enter, NULL, 0));
}

int uring_is_idle(struct uring *ring)
{
	return *ring->cq_head == __atomic_load_n(ring->cq_tail, __ATOMIC_ACQUIRE);
}

int uring_wait(struct uring *ring, unsigned long long *tag)
{
	while (uring_is_idle(ring))
		OK(syscall(SYS_io_uring_enter, ring->fd, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0));
	unsigned int head = *ring->cq_head;
	struct io_uring_cqe cqe = ring->cqes[(head & ring->cq_mask) << ring->cqe_shift];

	__atomic_store_n(ring->cq_head, head + 1, __ATOMIC_RELEASE);
	if (tag)
		*tag = cqe.user_data;
	return cqe.res;
}

static struct io_uring_sqe request(int opcode, int fd, const void *addr, unsigned int len)
{
	return (struct io_uring_sqe){ .opcode = opcode, .fd = fd, .len = len,
				      .addr = (unsigned long)addr, .user_data = opcode };
}

static struct io_uring_sqe connect_request(int fd, const struct addr *addr)
{
	struct io_uring_sqe sqe = request(IORING_OP_CONNECT, fd, &addr->sa, 0);

	sqe.off = addr->len;
	return sqe;
}

/* Submits a request and waits for its result, which must not be negative. */
static int run(struct uring *ring, struct io_uring_sqe sqe)
{
	uring_submit(ring, &sqe);
	int res = uring_wait(ring, NULL);

	EXPECT(res >= 0, "request %d ended with %s", sqe.opcode, strerrorname_np(-res));
	return res;
}

CHECK_CONN(uring_connect)
{
	struct uring ring;
	struct addr addr;

	uring_open(&ring);
	int listener = net_listen(&addr, 1), fd = net_client(0);
	EQ(0, run(&ring, connect_request(fd, &addr)));
	net_exchange(fd, net_accept(listener));
}

CHECK(uring_connect_waits)
{
	struct uring ring;
	struct addr addr;

	uring_open(&ring);
	int stuck = net_stuck(&addr), fd = net_sock(0);
	struct io_uring_sqe sqe = connect_request(fd, &addr);
	uring_submit(&ring, &sqe);
	EXPECT(uring_is_idle(&ring), "connected to a full queue");
	net_unstick(stuck);
	EQ(0, uring_wait(&ring, NULL));
	net_exchange(fd, net_accept(stuck));
}

CHECK(uring_connect_refused)
{
	struct uring ring;
	struct addr addr;

	uring_open(&ring);
	net_dead(&addr);
	struct io_uring_sqe sqe = connect_request(net_sock(0), &addr);
	uring_submit(&ring, &sqe);
	EQ(-ECONNREFUSED, uring_wait(&ring, NULL));
}

CHECK_CONN(uring_accept_waits)
{
	struct uring ring;
	struct addr addr;

	uring_open(&ring);
	int listener = net_listen(&addr, 1);
	struct io_uring_sqe sqe = request(IORING_OP_ACCEPT, listener, NULL, 0);
	uring_submit(&ring, &sqe);
	EXPECT(uring_is_idle(&ring), "accepted what nobody has sent");
	int fd = net_connect(&addr), peer = uring_wait(&ring, NULL);
	EXPECT(peer >= 0, "accept ended with %s", strerrorname_np(-peer));
	net_exchange(fd, peer);
}

/* Waits until a ring has accepted and connected. Return: the accepted end. */
static int wait_both(struct uring *ring)
{
	unsigned long long tag;
	int peer = -1;

	for (int i = 0; i < 2; i++) {
		int res = uring_wait(ring, &tag);

		EXPECT(res >= 0, "request %llu ended with %s", tag, strerrorname_np(-res));
		if (tag == IORING_OP_ACCEPT)
			peer = res;
	}
	return peer;
}

CHECK_CONN(uring_accept_and_connect)
{
	struct uring ring;
	struct addr addr;

	/* One ring serves both ends of a connection, each of which waits for the other. */
	uring_open(&ring);
	int listener = net_listen(&addr, 1), fd = net_client(0);
	struct io_uring_sqe sqe = request(IORING_OP_ACCEPT, listener, NULL, 0);
	uring_submit(&ring, &sqe);
	sqe = connect_request(fd, &addr);
	uring_submit(&ring, &sqe);
	int peer = wait_both(&ring);

	net_exchange(fd, peer);
}

CHECK_CONN(uring_accept_many)
{
	struct uring ring;
	struct addr addr;

	uring_open(&ring);
	int listener = net_listen(&addr, 8);
	struct io_uring_sqe sqe = request(IORING_OP_ACCEPT, listener, NULL, 0);
	/* One request returns a result for each connection. */
	sqe.ioprio = IORING_ACCEPT_MULTISHOT;
	uring_submit(&ring, &sqe);
	for (int i = 0; i < 5; i++) {
		int fd = net_connect(&addr), peer = uring_wait(&ring, NULL);

		EXPECT(peer >= 0, "accept %d ended with %s", i, strerrorname_np(-peer));
		net_exchange(fd, peer);
	}
}

CHECK_PAIR(uring_send_and_recv)
{
	struct uring ring;
	int a, b;
	char buf[10] = "";

	uring_open(&ring);
	net_pair(&a, &b);
	EQ(5, run(&ring, request(IORING_OP_SEND, a, "hello", 5)));
	EQ(5, recv(b, buf, 5, MSG_WAITALL));
	EQ(3, send(b, "abc", 3, 0));
	EQ(3, run(&ring, request(IORING_OP_RECV, a, buf, sizeof(buf))));
	EQ(0, memcmp(buf, "abc", 3));
}

CHECK_PAIR(uring_recv_waits)
{
	struct uring ring;
	int a, b;
	char buf[10] = "";

	uring_open(&ring);
	net_pair(&a, &b);
	struct io_uring_sqe sqe = request(IORING_OP_RECV, a, buf, sizeof(buf));
	uring_submit(&ring, &sqe);
	EXPECT(uring_is_idle(&ring), "received what nobody has sent");
	EQ(3, send(b, "xyz", 3, 0));
	EQ(3, uring_wait(&ring, NULL));
	EQ(0, memcmp(buf, "xyz", 3));
	uring_submit(&ring, &sqe);
	OK(shutdown(b, SHUT_WR));
	EQ(0, uring_wait(&ring, NULL));
}

CHECK_PAIR(uring_send_waits)
{
	struct uring ring;
	int a, b;
	static char big[1 << 23], in[1 << 16];

	uring_open(&ring);
	net_pair(&a, &b);
	struct io_uring_sqe sqe = request(IORING_OP_SEND, a, big, sizeof(big));
	sqe.msg_flags = MSG_WAITALL;
	uring_submit(&ring, &sqe);
	for (size_t got = 0; got < sizeof(big);)
		got += OK(recv(b, in, sizeof(in), 0));
	EQ(sizeof(big), uring_wait(&ring, NULL));
}

CHECK_PAIR(uring_poll)
{
	struct uring ring;
	int a, b;

	uring_open(&ring);
	net_pair(&a, &b);
	struct io_uring_sqe sqe = request(IORING_OP_POLL_ADD, a, NULL, 0);
	sqe.poll32_events = POLLIN;
	uring_submit(&ring, &sqe);
	EXPECT(uring_is_idle(&ring), "readable without data");
	net_send(b, 0, 1);
	EXPECT(uring_wait(&ring, NULL) & POLLIN, "not readable");
}

CHECK(uring_poll_while_connecting)
{
	struct uring ring;
	struct addr addr;

	uring_open(&ring);
	int stuck = net_stuck(&addr), fd = net_sock(SOCK_NONBLOCK);
	FAILS(EINPROGRESS, connect(fd, &addr.sa, addr.len));
	struct io_uring_sqe sqe = request(IORING_OP_POLL_ADD, fd, NULL, 0);
	sqe.poll32_events = POLLOUT;
	uring_submit(&ring, &sqe);
	EXPECT(uring_is_idle(&ring), "writable while connecting");
	net_unstick(stuck);
	EQ(POLLOUT, uring_wait(&ring, NULL));
}

CHECK_PAIR(uring_shutdown_and_close)
{
	struct uring ring;
	int a, b;

	uring_open(&ring);
	net_pair(&a, &b);
	EQ(0, run(&ring, request(IORING_OP_SHUTDOWN, a, NULL, SHUT_WR)));
	net_recv_eof(b);
	EQ(0, run(&ring, request(IORING_OP_CLOSE, a, NULL, 0)));
	FAILS(EBADF, shutdown(a, SHUT_WR));
}

CHECK(uring_socket)
{
	struct uring ring;

	uring_open(&ring);
	struct io_uring_sqe sqe = request(IORING_OP_SOCKET, net_domain()->family, NULL,
					  net_domain()->protocol);
	sqe.off = SOCK_STREAM;
	int fd = run(&ring, sqe);
	EQ(SOCK_STREAM, net_int(fd, SOL_SOCKET, SO_TYPE));
}

/* Has io_uring make a socket. @how: flags of the request. */
static int make_socket(struct uring *ring, unsigned char how)
{
	struct io_uring_sqe sqe = request(IORING_OP_SOCKET, net_domain()->family, NULL,
					  net_domain()->protocol);

	sqe.off = SOCK_STREAM;
	sqe.flags = how;
	return run(ring, sqe);
}

/*
 * Has io_uring make both ends of a connection and use them. @setup: flags of the ring; @how: flags of the
 * requests.
 */
static void use_made(unsigned int setup, unsigned char how)
{
	struct uring ring;
	struct addr addr;
	char buf[5] = "";

	uring_open_flags(&ring, setup);
	int listener = make_socket(&ring, how), fd = make_socket(&ring, how);
	net_listen_on(listener, &addr, 1);
	struct io_uring_sqe sqe = request(IORING_OP_ACCEPT, listener, NULL, 0);
	sqe.flags = how;
	sqe.ioprio = IORING_ACCEPT_MULTISHOT;
	uring_submit(&ring, &sqe);
	sqe = connect_request(fd, &addr);
	sqe.flags = how;
	uring_submit(&ring, &sqe);
	int peer = wait_both(&ring);

	sqe = request(IORING_OP_SEND, peer, "hello", 5);
	sqe.flags = how;
	EQ(5, run(&ring, sqe));
	sqe = request(IORING_OP_RECV, fd, buf, sizeof(buf));
	sqe.flags = how;
	sqe.msg_flags = MSG_WAITALL;
	EQ(5, run(&ring, sqe));
	EQ(0, memcmp(buf, "hello", 5));
	net_exchange(fd, peer);
}

/* A rule of the policy converts sockets, whichever thread of the kernel makes them for the program: */
CHECK(uring_made_by_program)
{
	use_made(0, 0);
}

CHECK(uring_made_by_worker)
{
	use_made(0, IOSQE_ASYNC);
}

CHECK(uring_made_by_poller)
{
	use_made(IORING_SETUP_SQPOLL, 0);
}

/* Reads a number from a socket, like ioctl(). Linux 6.7 and later have these commands. */
enum { URING_SIOCINQ, URING_SIOCOUTQ };

static int uring_count(struct uring *ring, int fd, int cmd)
{
	struct io_uring_sqe sqe = { .opcode = IORING_OP_URING_CMD, .fd = fd, .cmd_op = cmd };

	uring_submit(ring, &sqe);
	return uring_wait(ring, NULL);
}

CHECK_PAIR(uring_inq_and_outq)
{
	struct uring ring;
	int a, b, before, after, queued;

	uring_open(&ring);
	if (uring_count(&ring, net_tcp(0), URING_SIOCOUTQ) == -EOPNOTSUPP)
		harness_skip("io_uring has no commands for sockets");
	net_pair(&a, &b);
	EQ(0, uring_count(&ring, a, URING_SIOCINQ));
	net_send(b, 0, 3000);
	net_wait_rcvq(a, 3000);
	EQ(3000, uring_count(&ring, a, URING_SIOCINQ));
	net_recv(a, 0, 1000);
	EQ(2000, uring_count(&ring, a, URING_SIOCINQ));
	net_send(a, 0, 5000);
	/* The number decreases while the other end acknowledges data. */
	do {
		OK(ioctl(a, SIOCOUTQ, &before));
		queued = uring_count(&ring, a, URING_SIOCOUTQ);
		OK(ioctl(a, SIOCOUTQ, &after));
	} while (before != after);
	EQ(before, queued);
}

/* Waits for a result, which must have this flag. Return: the result. */
static int uring_wait_flagged(struct uring *ring, unsigned int flag)
{
	while (uring_is_idle(ring))
		OK(syscall(SYS_io_uring_enter, ring->fd, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0));
	EXPECT(ring->cqes[*ring->cq_head & ring->cq_mask].flags & flag, "no flag %#x", flag);
	return uring_wait(ring, NULL);
}

CHECK_PAIR(uring_send_zc_notifies_once)
{
	struct uring ring;
	struct msghdr msg = {};
	int a, b;
	char buf[5];

	uring_open(&ring);
	net_pair(&a, &b);
	/*
	 * With this option, send() with MSG_ZEROCOPY uses the error queue for notifications;
	 * io_uring does not.
	 */
	OK(net_set(a, SOL_SOCKET, SO_ZEROCOPY, 1));
	struct io_uring_sqe sqe = request(IORING_OP_SEND_ZC, a, "hello", 5);
	uring_submit(&ring, &sqe);
	EQ(5, uring_wait_flagged(&ring, IORING_CQE_F_MORE));
	EQ(5, recv(b, buf, sizeof(buf), MSG_WAITALL));
	EQ(0, uring_wait_flagged(&ring, IORING_CQE_F_NOTIF));
	EXPECT(uring_is_idle(&ring), "one more result");
	FAILS(EAGAIN, recvmsg(a, &msg, MSG_ERRQUEUE | MSG_DONTWAIT));
}
