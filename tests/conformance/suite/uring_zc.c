// SPDX-License-Identifier: Apache-2.0
/*
 * io_uring's zero-copy receive without a device. The kernel copies the data, so it works with any
 * connection.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "harness.h"
#include "net.h"
#include "uring.h"

/* From <linux/io_uring.h> of Linux 7.2. */
enum { REGISTER_ZCRX_IFQ = 32, OP_RECV_ZC = 58, ZCRX_REG_NODEV = 2, REGION_TYPE_USER = 1 };
#define RECV_MULTISHOT (1U << 1)

struct area_reg {
	uint64_t addr, len, token;
	uint32_t flags, dmabuf_fd;
	uint64_t reserved[2];
};

struct region_desc {
	uint64_t user_addr, size;
	uint32_t flags, id;
	uint64_t mmap_offset, reserved[4];
};

struct ifq_reg {
	uint32_t if_idx, if_rxq, rq_entries, flags;
	uint64_t area, region;
	uint32_t offsets[4];
	uint64_t offsets_reserved[2];
	uint32_t id, rx_buf_len;
	uint64_t event_desc, reserved[2];
};

enum { AREA = 1 << 16, REGION = 1 << 13, BYTES = 100 };

static void *memory(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	EXPECT(p != MAP_FAILED, "mmap: %s", strerrorname_np(errno));
	return p;
}

/*
 * Sets up a ring with memory for received data. Skips the check if the kernel does not support this
 * without a device.
 */
static struct io_uring_sqe recv_zc(struct uring *ring, int fd)
{
	struct area_reg area = { .addr = (uintptr_t)memory(AREA), .len = AREA };
	struct region_desc region = { .user_addr = (uintptr_t)memory(REGION), .size = REGION,
				      .flags = REGION_TYPE_USER };
	struct ifq_reg reg = { .rq_entries = 16, .flags = ZCRX_REG_NODEV, .area = (uintptr_t)&area,
			       .region = (uintptr_t)&region };

	uring_open_flags(ring, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
				       IORING_SETUP_CQE32);
	if (syscall(SYS_io_uring_register, ring->fd, REGISTER_ZCRX_IFQ, &reg, 1) < 0)
		harness_skip("no zero-copy receive without a device: %s", strerrorname_np(errno));
	return (struct io_uring_sqe){ .opcode = OP_RECV_ZC, .fd = fd, .ioprio = RECV_MULTISHOT,
				      .file_index = reg.id };
}

CHECK_PAIR(uring_recv_zc)
{
	struct uring ring;
	int a, b;

	net_pair(&a, &b);
	struct io_uring_sqe sqe = recv_zc(&ring, a);
	net_send(b, 0, BYTES);
	net_wait_rcvq(a, BYTES);
	uring_submit(&ring, &sqe);
	EQ(BYTES, uring_wait(&ring, NULL));
	FAILS(EAGAIN, recv(a, &ring, 1, MSG_DONTWAIT | MSG_PEEK));
}

/* A socket that does not support it returns an error, and recv() gets the data. */
CHECK_PAIR(uring_recv_zc_loses_nothing)
{
	struct uring ring;
	int a, b, res;

	net_pair(&a, &b);
	struct io_uring_sqe sqe = recv_zc(&ring, a);
	net_send(b, 0, BYTES);
	net_wait_rcvq(a, BYTES);
	uring_submit(&ring, &sqe);
	res = uring_wait(&ring, NULL);
	if (res == BYTES)
		return;
	EQ(-EPROTONOSUPPORT, res);
	net_recv(a, 0, BYTES);
}
