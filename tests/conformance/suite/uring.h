/* SPDX-License-Identifier: Apache-2.0 */
/* Just enough of io_uring, by system calls, to submit requests and reap their results. */
#ifndef URING_H
#define URING_H

#include <linux/io_uring.h>

struct uring {
	int fd;
	struct io_uring_sqe *sqes;
	struct io_uring_cqe *cqes;
	unsigned int *sq_tail, *sq_array, *cq_head, *cq_tail;
	unsigned int sq_mask, cq_mask;
	unsigned int cqe_shift;	/* 1 if results have 32 bytes */
	unsigned int enter;	/* flags with which requests are submitted */
};

/** uring_open() - set a ring up, or skip the check where the kernel allows none */
void uring_open(struct uring *ring);

/** uring_open_flags() - the same with IORING_SETUP_ flags */
void uring_open_flags(struct uring *ring, unsigned int flags);

/**
 * uring_submit() - submit one request
 * @sqe: copied; its user_data comes back with the result
 */
void uring_submit(struct uring *ring, const struct io_uring_sqe *sqe);

/** uring_wait() - wait for a result. Return: it; @tag is set to the request's user_data. */
int uring_wait(struct uring *ring, unsigned long long *tag);

/** uring_is_idle() - whether no result is there */
int uring_is_idle(struct uring *ring);

#endif
