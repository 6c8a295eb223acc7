/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Cursors, by which two ends tell each other how far they are: where in a ring, and how often they
 * have been around, of which 16 bits are sent. Everything else counts bytes of the stream from 0;
 * here is the way from one to the other, which is always taken from the last position known, so
 * that it needs no division: the size of a ring is no power of two.
 */
#ifndef SMC_WIRE_CURSOR_H
#define SMC_WIRE_CURSOR_H

#include "shim.h"

struct smc_cursor {
	u16 wrap;
	u32 count;	/* below the ring's size */
};

/* A position of the stream together with its cursor. All zero is the beginning. */
struct smc_track {
	u64 pos;
	struct smc_cursor at;
};

/*
 * smc_track_to() - follows a position of our own. It has not gone back, and by no more than the ring
 * is large forward. Any context.
 */
static inline void smc_track_to(struct smc_track *t, u64 pos, u32 size)
{
	u64 count = t->at.count + (pos - t->pos);

	if (count >= size) {
		count -= size;
		t->at.wrap++;
	}
	t->at.count = (u32)count;
	t->pos = pos;
}

/**
 * smc_track_from() - follows what the peer says of a position
 * @t: what is known of it; changes if it has advanced
 * @at: the cursor that has come
 * @size: of the ring
 *
 * A cursor that lies behind is an old one that has come again, after a failover; nothing is wrong
 * with it. One that is further ahead than the ring is large cannot be: who has sent it was never
 * given that much space.
 *
 * Context: any.
 * Return: the bytes by which it has advanced, 0 if it lies behind, -EPROTO if it cannot be.
 */
static inline s64 smc_track_from(struct smc_track *t, struct smc_cursor at, u32 size)
{
	u16 rounds = (u16)(at.wrap - t->at.wrap);
	u64 by;

	if (at.count >= size)
		return -EPROTO;
	if (rounds > 0x7fff || (!rounds && at.count < t->at.count))
		return 0;
	if (rounds > 1 || (rounds && at.count > t->at.count))
		return -EPROTO;
	by = (rounds ? (u64)size : 0) + at.count - t->at.count;
	t->at = at;
	t->pos += by;
	return (s64)by;
}

#endif /* SMC_WIRE_CURSOR_H */
