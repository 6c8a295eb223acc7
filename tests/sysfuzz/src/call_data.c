// SPDX-License-Identifier: Apache-2.0
/* Calls that move data. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "calls.h"

/* The number of bytes to move: often few, at times more than any buffer takes. */
static size_t amount(struct ctx *c)
{
	static const size_t sizes[] = { 0, 1, 1, 2, 100, 1000, 4096, 16384, 65535, 65536, 65537, DATA };

	return rnd_one_in(&c->rnd, 3) ? rnd_below(&c->rnd, 3000) : RND_PICK(&c->rnd, sizes);
}

static int send_flags(struct ctx *c)
{
	static const int flags[] = { MSG_OOB, MSG_MORE, MSG_ZEROCOPY, MSG_FASTOPEN, MSG_EOR, MSG_CONFIRM, MSG_DONTROUTE,
				     0x10 /* MSG_PROBE */, 0x8000000 /* MSG_SPLICE_PAGES */ };
	int f = MSG_NOSIGNAL;

	if (!rnd_one_in(&c->rnd, 3))
		f |= MSG_DONTWAIT;
	if (rnd_one_in(&c->rnd, 4))
		f |= RND_PICK(&c->rnd, flags);
	if (rnd_one_in(&c->rnd, 60))
		f |= 1u << rnd_below(&c->rnd, 31);
	return f;
}

static int recv_flags(struct ctx *c)
{
	static const int flags[] = { MSG_OOB, MSG_PEEK, MSG_WAITALL, MSG_TRUNC, MSG_ERRQUEUE, MSG_CMSG_CLOEXEC,
				     MSG_PEEK | MSG_TRUNC, MSG_PEEK | MSG_WAITALL };
	int f = rnd_one_in(&c->rnd, 3) ? 0 : MSG_DONTWAIT;

	if (rnd_one_in(&c->rnd, 3))
		f |= RND_PICK(&c->rnd, flags);
	if (rnd_one_in(&c->rnd, 60))
		f |= 1u << rnd_below(&c->rnd, 31);
	return f;
}

/* An address for those few calls that have one. */
static const struct sockaddr_in somewhere = { .sin_family = AF_INET, .sin_port = 0x204e, .sin_addr = { 0x0100007f } };

DECLARE_OP(op_send)
{
	int fd = pool_fd(call->slot), flags = send_flags(c);
	size_t len = amount(c);
	bool to = rnd_one_in(&c->rnd, 20);

	trace(c, "fd %d, %zu bytes, %#x", fd, len, flags);
	return sendto(fd, pool_data(c, len), len, flags, to ? (const void *)&somewhere : NULL, to ? sizeof(somewhere) : 0);
}

/* Splits len bytes at base into pieces. Return: their number. */
static int pieces(struct ctx *c, struct iovec iov[8], unsigned char *base, size_t len)
{
	int n = 0;

	for (; n < 7 && len; n++) {
		size_t part = rnd_below(&c->rnd, len + 1);

		iov[n] = (struct iovec){ base, part };
		base += part;
		len -= part;
	}
	/* One that cannot be read or written. */
	if (rnd_one_in(&c->rnd, 20))
		iov[n++] = (struct iovec){ (void *)8, 100 };
	return n;
}

DECLARE_OP(op_sendmsg)
{
	size_t len = amount(c);
	struct iovec iov[8];
	char control[256] = {};
	struct mmsghdr m[3] = {};
	int fd = pool_fd(call->slot), flags = send_flags(c), n = 1 + rnd_below(&c->rnd, 3);

	for (int i = 0; i < n; i++) {
		m[i].msg_hdr.msg_iov = iov;
		m[i].msg_hdr.msg_iovlen = pieces(c, iov, pool_data(c, len), len);
	}
	if (rnd_one_in(&c->rnd, 4)) {
		/*
		 * Control messages of any kind: SCM_TXTIME, IP_TTL, TLS record types and unknown
		 * ones.
		 */
		static const int levels[] = { SOL_SOCKET, IPPROTO_IP, IPPROTO_IPV6, 282, SOL_SMC };
		struct cmsghdr *cmsg = (void *)control;

		cmsg->cmsg_level = RND_PICK(&c->rnd, levels);
		cmsg->cmsg_type = rnd_below(&c->rnd, 64);
		cmsg->cmsg_len = rnd_one_in(&c->rnd, 4) ? rnd_below(&c->rnd, 300) : CMSG_LEN(rnd_below(&c->rnd, 40));
		m[0].msg_hdr.msg_control = control;
		m[0].msg_hdr.msg_controllen = rnd_one_in(&c->rnd, 4) ? rnd_below(&c->rnd, sizeof(control)) : cmsg->cmsg_len;
	}
	trace(c, "fd %d, %d of %zu bytes, %#x", fd, n, len, flags);
	return n == 1 ? sendmsg(fd, &m[0].msg_hdr, flags) : sendmmsg(fd, m, n, flags);
}

DECLARE_OP(op_write)
{
	int fd = pool_fd(call->slot);
	size_t len = amount(c);
	struct iovec iov[8];

	trace(c, "fd %d, %zu bytes", fd, len);
	if (rnd_one_in(&c->rnd, 2))
		return write(fd, pool_data(c, len), len);
	return writev(fd, iov, pieces(c, iov, pool_data(c, len), len));
}

DECLARE_OP(op_recv)
{
	int fd = pool_fd(call->slot), flags = recv_flags(c);
	size_t len = amount(c);
	struct sockaddr_storage ss;
	socklen_t size = sizeof(ss);

	trace(c, "fd %d, %zu bytes, %#x", fd, len, flags);
	return recvfrom(fd, pool_sink(), len, flags, rnd_one_in(&c->rnd, 8) ? (void *)&ss : NULL, &size);
}

DECLARE_OP(op_recvmsg)
{
	size_t len = amount(c);
	struct iovec iov[8];
	char control[256];
	struct mmsghdr m[3] = {};
	struct timespec timeout = { 0, rnd_below(&c->rnd, 50) * 1000000 };
	int fd = pool_fd(call->slot), flags = recv_flags(c), n = 1 + rnd_below(&c->rnd, 3);

	for (int i = 0; i < n; i++) {
		m[i].msg_hdr.msg_iov = iov;
		m[i].msg_hdr.msg_iovlen = pieces(c, iov, pool_sink(), len);
		m[i].msg_hdr.msg_control = control;
		m[i].msg_hdr.msg_controllen = rnd_below(&c->rnd, sizeof(control));
	}
	trace(c, "fd %d, %d of %zu bytes, %#x", fd, n, len, flags);
	return n == 1 ? recvmsg(fd, &m[0].msg_hdr, flags) : recvmmsg(fd, m, n, flags, &timeout);
}

DECLARE_OP(op_read)
{
	int fd = pool_fd(call->slot);
	size_t len = amount(c);
	struct iovec iov[8];

	trace(c, "fd %d, %zu bytes", fd, len);
	switch (rnd_below(&c->rnd, 4)) {
	case 0: return readv(fd, iov, pieces(c, iov, pool_sink(), len));
	case 1: return preadv2(fd, iov, pieces(c, iov, pool_sink(), len), -1, RWF_NOWAIT);
	default: return read(fd, pool_sink(), len);
	}
}

/* The reading end goes to slot, the other one to the one behind it. */
DECLARE_OP(op_pipe)
{
	int ends[2];

	trace(c, "to %d", call->slot);
	if (pipe2(ends, rnd_one_in(&c->rnd, 2) ? O_NONBLOCK : 0))
		return -1;
	(void)!write(ends[1], pool_data(c, 4000), rnd_below(&c->rnd, 4000));
	pool_put(call->slot, ends[0]);
	pool_put((call->slot + 1) % SLOTS, ends[1]);
	return 0;
}

static unsigned int splice_flags(struct ctx *c)
{
	return rnd_below(&c->rnd, 16) | (rnd_one_in(&c->rnd, 2) ? SPLICE_F_NONBLOCK : 0);
}

/* From a socket to a pipe. */
DECLARE_OP(op_splice_in)
{
	int fd = pool_fd(call->slot), to = pool_fd(call->other + 1);
	size_t len = amount(c);

	trace(c, "fd %d to %d, %zu bytes", fd, to, len);
	return splice(fd, NULL, to, NULL, len, splice_flags(c));
}

/* From a pipe, or from memory that is lent to it, to a socket. */
DECLARE_OP(op_splice_out)
{
	int fd = pool_fd(call->slot), from = pool_fd(call->other);
	size_t len = amount(c);
	struct iovec iov = { pool_data(c, len), len };

	trace(c, "fd %d from %d, %zu bytes", fd, from, len);
	if (rnd_one_in(&c->rnd, 3))
		vmsplice(pool_fd(call->other + 1), &iov, 1, SPLICE_F_NONBLOCK | (rnd_one_in(&c->rnd, 2) ? SPLICE_F_GIFT : 0));
	return splice(from, NULL, fd, NULL, len, splice_flags(c));
}

DECLARE_OP(op_sendfile)
{
	int fd = pool_fd(call->slot), file = memfd_create("data", MFD_CLOEXEC);
	size_t len = amount(c);
	off_t at = rnd_below(&c->rnd, 5000);

	trace(c, "fd %d, %zu bytes", fd, len);
	(void)!ftruncate(file, DATA);
	ssize_t n = sendfile(fd, file, rnd_one_in(&c->rnd, 2) ? &at : NULL, len);

	/* Data in flight must not depend on the file. */
	if (rnd_one_in(&c->rnd, 2))
		(void)!ftruncate(file, 0);
	close(file);
	return n;
}

/* Sends a CLC message, in one or two pieces. */
DECLARE_OP(op_clc)
{
	unsigned char buf[1024];
	int fd = pool_fd(call->slot);
	size_t len = clc_message(&c->rnd, buf, sizeof(buf)), first = rnd_one_in(&c->rnd, 4) ? rnd_below(&c->rnd, len + 1) : len;

	trace(c, "fd %d, type %d, %zu bytes", fd, buf[4], len);
	if (send(fd, buf, first, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 || first == len)
		return first;
	return send(fd, buf + first, len - first, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/*
 * Forwards data from one socket to another, and changes it at times: between two hostile sockets,
 * it is a man in the middle.
 */
DECLARE_OP(op_forward)
{
	unsigned char buf[4096];
	int from = pool_fd(call->slot), to = pool_fd(call->other);

	trace(c, "fd %d to %d", from, to);
	await(from, POLLIN, 40);
	ssize_t n = recv(from, buf, sizeof(buf), MSG_DONTWAIT);

	if (n <= 0)
		return n;
	if (rnd_one_in(&c->rnd, 3))
		clc_mutate(&c->rnd, buf, n);
	trace(c, ", %zd bytes of type %d", n, n > 4 ? buf[4] : -1);
	return send(to, buf, n, MSG_DONTWAIT | MSG_NOSIGNAL);
}
