/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Values that members of a fabric write, taken apart: where tokens of DMBs lead, whose GID is whose, and who is silent. It also builds in user
 * space, where tests/wire tests it.
 */
#ifndef SMC_TRANSPORT_ISM_FABRIC_PLACE_H
#define SMC_TRANSPORT_ISM_FABRIC_PLACE_H

#include "../../wire/shim.h"
#include "fabric_layout.h"

/* The largest DMB, in blocks */
#define SMC_FABRIC_DMB_BLOCKS_MAX 64

/* Where a token leads. Every number is within the bounds of the fabric. */
struct smc_fabric_place {
	u8	member;
	u32	block;
	u32	n;	/* blocks */
};

/* smc_fabric_token() - makes the token of a DMB of 2^@code blocks. Any context. */
static inline u64 smc_fabric_token(u8 member, u32 block, u8 code, u64 random)
{
	random &= SMC_FABRIC_TOKEN_RANDOM;
	return (u64)member << SMC_FABRIC_TOKEN_MEMBER | (u64)block << SMC_FABRIC_TOKEN_BLOCK | (u64)code << SMC_FABRIC_TOKEN_CODE |
	       (random ? random : 1);
}

/* smc_fabric_find() - returns whether a token leads to a DMB that there can be. No token is without random bits. Any context. */
static inline bool smc_fabric_find(u32 n_members, u32 n_blocks, u64 token, struct smc_fabric_place *p)
{
	p->member = (u8)(token >> SMC_FABRIC_TOKEN_MEMBER);
	p->block = (u32)(token >> SMC_FABRIC_TOKEN_BLOCK & 0xffff);
	p->n = 1U << (token >> SMC_FABRIC_TOKEN_CODE & 0xf);
	return (token & SMC_FABRIC_TOKEN_RANDOM) && p->member < n_members && p->n <= SMC_FABRIC_DMB_BLOCKS_MAX &&
	       p->block < n_blocks && p->n <= n_blocks - p->block;
}

/* For how many looks at a member's beat, one in a second, it has to be the same for the member to be silent */
#define SMC_FABRIC_SILENT	60

/* A member's beat as it was seen last, and how many looks since then have seen no other. */
struct smc_fabric_beat {
	u64	last;
	u8	same;
};

/* smc_fabric_beat_seen() - takes in a look at the beat. Returns whether the member is silent. One caller at a time. Any context. */
static inline bool smc_fabric_beat_seen(struct smc_fabric_beat *beat, u64 now)
{
	if (now != beat->last) {
		beat->last = now;
		beat->same = 0;
	} else if (beat->same < SMC_FABRIC_SILENT) {
		beat->same++;
	}
	return beat->same == SMC_FABRIC_SILENT;
}

/*
 * smc_fabric_is_stolen() - returns whether a member's entry of the directory has the GID of another guest with the same number, in place of
 * its own one. Any context.
 */
static inline bool smc_fabric_is_stolen(u64 entry, u64 own)
{
	return entry && entry != own && entry >> SMC_FABRIC_TOKEN_MEMBER == own >> SMC_FABRIC_TOKEN_MEMBER;
}

#endif /* SMC_TRANSPORT_ISM_FABRIC_PLACE_H */
