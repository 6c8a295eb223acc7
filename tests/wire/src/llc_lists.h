/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lists of LLC messages are not in the struct. Tests and the fuzzer handle them with these
 * functions.
 */
#ifndef TESTS_WIRE_LLC_LISTS_H
#define TESTS_WIRE_LLC_LISTS_H

#include "llc.h"

/* Copies from one message to the other, as long as both have places. Returns how many entries. */
static inline unsigned int llc_copy_lists(const struct smc_llc *from, const u8 *a,
					  const struct smc_llc *to, u8 *b)
{
	struct smc_llc_pair pair, old_pair;
	unsigned int pairs, gids, rkeys;
	u8 gid[16], old_gid[16];
	u32 rkey, old_rkey;

	for (pairs = 0; smc_llc_pair_at(from, a, pairs, &pair) &&
			smc_llc_pair_at(to, b, pairs, &old_pair); pairs++)
		smc_llc_pair_set(b, pairs, &pair);
	for (gids = 0; smc_llc_gid_at(from, a, gids, gid) &&
		       smc_llc_gid_at(to, b, gids, old_gid); gids++)
		smc_llc_gid_set(b, gids, gid);
	for (rkeys = 0; smc_llc_rkey_at(from, a, rkeys, &rkey) &&
			smc_llc_rkey_at(to, b, rkeys, &old_rkey); rkeys++)
		smc_llc_rkey_set(b, rkeys, rkey);
	return pairs + gids + rkeys;
}

#endif /* TESTS_WIRE_LLC_LISTS_H */
