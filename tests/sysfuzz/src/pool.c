// SPDX-License-Identifier: Apache-2.0
/* The descriptors that a program's calls work on. Each process has a pool of its own, which begins as a copy. */
#include <stdatomic.h>
#include <unistd.h>

#include "fuzz.h"

static _Atomic int pool[SLOTS];
static int passing[2] = { -1, -1 };

/** pool_init() - empty the pool */
void pool_init(void)
{
	for (int i = 0; i < SLOTS; i++)
		pool[i] = -1;
	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, passing))
		die("socketpair");
}

/** pool_fd() - the descriptor in a slot, or in the next one that has one; -1 if none has. It may be closed at any time. */
int pool_fd(int slot)
{
	for (int i = 0; i < SLOTS; i++) {
		int fd = pool[(slot + i) % SLOTS];

		if (fd >= 0)
			return fd;
	}
	return -1;
}

/** pool_put() - put a descriptor, if it is one, into a slot, and close what was there */
void pool_put(int slot, int fd)
{
	if (fd < 0)
		return;
	int old = atomic_exchange(&pool[slot], fd);

	if (old >= 0)
		close(old);
}

/** pool_take() - empty a slot. Return: its descriptor, or -1. */
int pool_take(int slot)
{
	return atomic_exchange(&pool[slot], -1);
}

/** pool_share() - the two ends of the socket by which processes pass each other descriptors */
void pool_share(int pair[2])
{
	pair[0] = passing[0];
	pair[1] = passing[1];
}

/** pool_data() - len bytes to send, at a random place of an area of DATA bytes */
unsigned char *pool_data(struct ctx *c, size_t len)
{
	static unsigned char data[DATA];

	return data + rnd_below(&c->rnd, DATA - len + 1);
}

/** pool_sink() - an area of DATA bytes that anything may be written to; all threads share it */
unsigned char *pool_sink(void)
{
	static unsigned char sink[DATA];

	return sink;
}
