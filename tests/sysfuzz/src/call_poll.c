// SPDX-License-Identifier: Apache-2.0
/* Waiting for sockets: poll, select, epoll, io_uring. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "calls.h"

/* Waits until something happens on a socket. */
DECLARE_OP(op_await)
{
	int fd = pool_fd(call->slot);

	trace(c, "fd %d", fd);
	return await(fd, rnd_one_in(&c->rnd, 2) ? POLLIN : POLLOUT, 50);
}

DECLARE_OP(op_poll)
{
	struct pollfd p[4];
	fd_set in, out, except;
	struct timeval tv = { 0, rnd_below(&c->rnd, 20000) };
	int fd = pool_fd(call->slot);

	trace(c, "fd %d and others", fd);
	if (fd >= 0 && fd < FD_SETSIZE && rnd_one_in(&c->rnd, 4)) {
		FD_ZERO(&in);
		FD_ZERO(&out);
		FD_ZERO(&except);
		FD_SET(fd, &in);
		FD_SET(fd, &out);
		FD_SET(fd, &except);
		return select(fd + 1, &in, &out, &except, &tv);
	}
	for (unsigned int i = 0; i < COUNT(p); i++)
		p[i] = (struct pollfd){ .fd = pool_fd(i ? rnd_below(&c->rnd, SLOTS) : call->slot), .events = rnd_next(&c->rnd) };
	return poll(p, COUNT(p), rnd_below(&c->rnd, 20));
}

DECLARE_OP(op_epoll)
{
	int fd = epoll_create1(EPOLL_CLOEXEC);

	trace(c, "to %d", call->slot);
	pool_put(call->slot, fd);
	return fd;
}

DECLARE_OP(op_epoll_ctl)
{
	static const uint32_t modes[] = { 0, EPOLLET, EPOLLONESHOT, EPOLLET | EPOLLONESHOT, EPOLLEXCLUSIVE, EPOLLWAKEUP };
	struct epoll_event e = { .events = (rnd_next(&c->rnd) & 0x201f) | RND_PICK(&c->rnd, modes) };
	int ep = pool_fd(call->slot), fd = pool_fd(call->other), op = rnd_one_in(&c->rnd, 2) ? EPOLL_CTL_ADD : (int)rnd_below(&c->rnd, 4);

	trace(c, "epoll %d, %d, fd %d, %#x", ep, op, fd, e.events);
	return epoll_ctl(ep, op, fd, &e);
}

DECLARE_OP(op_epoll_wait)
{
	struct epoll_event e[4];
	int ep = pool_fd(call->slot);

	trace(c, "epoll %d", ep);
	return epoll_wait(ep, e, COUNT(e), rnd_below(&c->rnd, 20));
}

/* The ring of this process. */
static struct {
	pthread_mutex_t lock;
	int fd;
	unsigned int *sq_tail, *sq_array, *cq_head, *cq_tail, mask;
	struct io_uring_sqe *sqes;
} ring = { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1 };

static bool ring_open(void)
{
	static pid_t owner;
	struct io_uring_params p = {};

	if (owner == getpid())
		return ring.fd >= 0;
	owner = getpid();
	ring.fd = syscall(SYS_io_uring_setup, 16, &p);
	if (ring.fd < 0)
		return false;
	char *rings = mmap(NULL, p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe) + 4096, PROT_READ | PROT_WRITE, MAP_SHARED,
			   ring.fd, IORING_OFF_SQ_RING);
	void *sqes = mmap(NULL, p.sq_entries * sizeof(struct io_uring_sqe), PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd, IORING_OFF_SQES);

	if (rings == MAP_FAILED || sqes == MAP_FAILED || !(p.features & IORING_FEAT_SINGLE_MMAP)) {
		close(ring.fd);
		ring.fd = -1;
		return false;
	}
	ring.sq_tail = (void *)(rings + p.sq_off.tail);
	ring.sq_array = (void *)(rings + p.sq_off.array);
	ring.cq_head = (void *)(rings + p.cq_off.head);
	ring.cq_tail = (void *)(rings + p.cq_off.tail);
	ring.mask = p.sq_entries - 1;
	ring.sqes = sqes;
	return true;
}

/*
 * A request for an operation of a socket. Numbers that this machine's header lacks are written out.
 */
static struct io_uring_sqe request(struct ctx *c, const struct call *call)
{
	static const uint8_t opcodes[] = { IORING_OP_SEND, IORING_OP_RECV, IORING_OP_SENDMSG, IORING_OP_RECVMSG, IORING_OP_ACCEPT,
					   IORING_OP_ACCEPT, IORING_OP_CONNECT, IORING_OP_CONNECT, IORING_OP_POLL_ADD, IORING_OP_POLL_REMOVE,
					   IORING_OP_SHUTDOWN, IORING_OP_READ, IORING_OP_WRITE, IORING_OP_ASYNC_CANCEL, IORING_OP_SPLICE,
					   IORING_OP_URING_CMD, IORING_OP_URING_CMD, IORING_OP_SEND_ZC, IORING_OP_SEND_ZC, 48 /* SENDMSG_ZC */,
					   IORING_OP_SOCKET, 56 /* BIND */, 57 /* LISTEN */, 58 /* RECV_ZC */ };
	static const uint16_t priorities[] = { 0, 0, 0, 1, 2, 4, 8 };
	static _Thread_local struct sockaddr_in addr;
	static _Thread_local struct iovec iov;
	static _Thread_local struct msghdr msg;
	struct io_uring_sqe sqe = { .opcode = RND_PICK(&c->rnd, opcodes), .fd = pool_fd(call->slot), .user_data = rnd_below(&c->rnd, 4) };

	iov = (struct iovec){ pool_sink(), rnd_below(&c->rnd, 9000) };
	msg = (struct msghdr){ .msg_iov = &iov, .msg_iovlen = 1 };
	addr = (struct sockaddr_in){ .sin_family = rnd_one_in(&c->rnd, 4) ? AF_UNSPEC : AF_INET,
				     .sin_port = htons(c->port + rnd_below(&c->rnd, PORTS)), .sin_addr = { htonl(INADDR_LOOPBACK) } };
	sqe.addr = (uintptr_t)pool_sink();
	sqe.len = iov.iov_len;
	sqe.ioprio = RND_PICK(&c->rnd, priorities); /* poll first, multishot, fixed buffers, report usage */
	switch (sqe.opcode) {
	case IORING_OP_SENDMSG:
	case IORING_OP_RECVMSG:
	case 48:
		sqe.addr = (uintptr_t)&msg;
		sqe.len = 1;
		break;
	case IORING_OP_CONNECT:
	case 56:
		sqe.addr = (uintptr_t)&addr;
		sqe.off = sizeof(addr);
		sqe.len = 0;
		break;
	case IORING_OP_ACCEPT:
		sqe.addr = 0;
		sqe.len = 0;
		break;
	case IORING_OP_POLL_ADD:
		sqe.addr = 0;
		sqe.len = rnd_below(&c->rnd, 4);
		sqe.poll32_events = rnd_next(&c->rnd) & 0x201f;
		break;
	case IORING_OP_POLL_REMOVE:
	case IORING_OP_ASYNC_CANCEL:
		sqe.addr = rnd_below(&c->rnd, 4);
		sqe.len = 0;
		sqe.cancel_flags = rnd_below(&c->rnd, 8);
		break;
	case IORING_OP_SHUTDOWN:
	case 57:
		sqe.addr = sqe.ioprio = 0;
		sqe.len = rnd_below(&c->rnd, 3);
		break;
	case IORING_OP_SPLICE:
		sqe.splice_fd_in = pool_fd(call->other);
		sqe.off = sqe.splice_off_in = -1;
		break;
	case IORING_OP_URING_CMD:
		sqe.cmd_op = rnd_below(&c->rnd, 6); /* SIOCINQ, SIOCOUTQ, GETSOCKOPT, SETSOCKOPT, ... */
		sqe.addr = rnd_below(&c->rnd, 8) | (uint64_t)rnd_below(&c->rnd, 80) << 32;
		sqe.ioprio = 0;
		break;
	case IORING_OP_SOCKET:
		sqe.fd = rnd_one_in(&c->rnd, 2) ? AF_SMC : AF_INET;
		sqe.off = SOCK_STREAM;
		sqe.len = sqe.fd == AF_SMC ? 0 : IPPROTO_SMC;
		sqe.addr = sqe.ioprio = 0;
		break;
	default:
		if (rnd_one_in(&c->rnd, 2))
			sqe.msg_flags = MSG_NOSIGNAL | (rnd_one_in(&c->rnd, 2) ? MSG_WAITALL : MSG_DONTWAIT);
	}
	if (rnd_one_in(&c->rnd, 8))
		sqe.flags = rnd_below(&c->rnd, 64) & ~1;
	return sqe;
}

/* Submits one request, waits for one answer at times, and drops all answers that are there. */
DECLARE_OP(op_uring)
{
	struct io_uring_sqe sqe = request(c, call);
	long r = -1;

	trace(c, "opcode %d, fd %d, priority %d, flags %#x", sqe.opcode, sqe.fd, sqe.ioprio, sqe.flags);
	if (pthread_mutex_trylock(&ring.lock))
		return -1;
	if (ring_open()) {
		unsigned int tail = *ring.sq_tail, at = tail & ring.mask;

		ring.sqes[at] = sqe;
		ring.sq_array[at] = at;
		__atomic_store_n(ring.sq_tail, tail + 1, __ATOMIC_RELEASE);
		r = syscall(SYS_io_uring_enter, ring.fd, 1, 0, IORING_ENTER_GETEVENTS, NULL, 0);
		__atomic_store_n(ring.cq_head, __atomic_load_n(ring.cq_tail, __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&ring.lock);
	return r;
}
