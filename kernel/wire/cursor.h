/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A cursor (RFC 7609, A.4; docs/protocol.md, 9.2) names a place in a ring: an offset, and how often the
 * ring has wrapped, of which 16 bits are sent. All other code counts the bytes of the stream from 0.
 * These functions convert one into the other, starting from the last known position, so that they need
 * no division: the size of a ring is no power of two. They may be called in any context.
 */
#ifndef SMC_WIRE_CURSOR_H
#define SMC_WIRE_CURSOR_H

#include "shim.h"

struct smc_cursor {
	u16 wrap;
	u32 count;	/* below the ring's size */
};

/* A position in the stream and its cursor. All zero is the beginning. */
struct smc_track {
	u64 pos;
	struct smc_cursor at;
};

/* smc_track_to() - moves a position of our own forward, by at most the size of the ring */
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
 * smc_track_from() - moves a position of the peer to a cursor that it has sent
 * @t: the position; changes if the cursor is ahead of it
 * @at: the cursor
 * @size: of the ring, in bytes
 *
 * A cursor that lies behind is from an old message that came again after a failover, which is no error.
 * A peer never had the space to move a cursor further ahead than the ring is large.
 *
 * Return: the bytes by which the position has moved, 0 if the cursor lies behind, -EPROTO if it is
 * outside of the ring or too far ahead.
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
