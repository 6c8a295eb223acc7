// SPDX-License-Identifier: GPL-2.0-only
/*
 * When memory of closed DMBs in a fabric is used again: a member that may write to it names it in one of its descriptors (fabric_dmb.c).
 * A writer whose DMB is known has one descriptor. If it is not known, because the handshake has ended before, or because an earlier
 * member of this number had the DMB, all descriptors of the writer are searched, once a second.
 */

#include <linux/bitmap.h>
#include <linux/slab.h>

#include "fabric.h"

/* For how many seconds a writer has to be away from the directory, which others may overwrite, to be taken for one that has left */
#define ABSENT_MAX 3

static u8 writer_of(const struct smc_fabric_dmb *d)
{
	return d->dmb.gid[1] >> SMC_FABRIC_TOKEN_MEMBER;
}

/*
 * smc_fabric_is_written() - returns whether the peer may be writing to a DMB, whose token is cleared, and whose peer is known. Does not
 * sleep.
 */
bool smc_fabric_is_written(const struct smc_fabric *f, const struct smc_fabric_dmb *d)
{
	struct smc_fabric_place p;
	const u8 *at;

	if (WARN_ON_ONCE(!smc_fabric_place_of(f, d->peer, &p)))
		return false;
	at = smc_fabric_descriptor(f, p.member, p.block);
	return smc_fabric_read64(at + SMC_FABRIC_DMB_COPIES) == d->dmb.token ||
	       smc_fabric_read64(at + SMC_FABRIC_DMB_SENDS) == d->dmb.token;
}

/* Marks our blocks to which a token leads. */
static void mark_token(struct smc_fabric *f, u64 token)
{
	struct smc_fabric_place p;

	if (smc_fabric_place_of(f, token, &p) && p.member == f->own)
		bitmap_set(f->named, p.block, p.n);
}

/* Marks our blocks that a member names in its descriptors, and no others. One caller at a time. */
static void mark_named(struct smc_fabric *f, u8 member)
{
	u32 block;

	might_sleep();
	bitmap_zero(f->named, f->n_blocks);
	for (block = 0; block < f->n_blocks; block++) {
		const u8 *at = smc_fabric_descriptor(f, member, block);

		mark_token(f, smc_fabric_read64(at + SMC_FABRIC_DMB_COPIES));
		mark_token(f, smc_fabric_read64(at + SMC_FABRIC_DMB_SENDS));
		if (!(block % 1024))
			cond_resched();
	}
}

/* Returns whether a member has left for good. @there: it is there now; @absent: for how many seconds it was away at the last call */
static bool is_gone(bool there, bool second, u8 *absent)
{
	if (there)
		*absent = 0;
	else if (second && *absent <= ABSENT_MAX)
		++*absent;
	return *absent > ABSENT_MAX;
}

/* Is a block kept because of a member? */
static bool is_kept(const struct smc_fabric *f, u32 block)
{
	u8 member;

	for (member = 0; member < f->n_members; member++)
		if (f->members[member].kept && test_bit(block, f->members[member].kept))
			return true;
	return false;
}

/* Has blocks used again that are kept because of a member which does not name them any more, or has left. */
static void release_kept(struct smc_fabric *f, u8 member)
{
	struct smc_fabric_member *m = &f->members[member];
	u32 block;
	bool gone;

	might_sleep();
	/* Its entry may be damaged for a while. A later member of this number names none: it clears its descriptors before it joins. */
	gone = is_gone(smc_fabric_gid_of(f, member), true, &m->absent);
	for_each_set_bit(block, m->kept, f->n_blocks) {
		if (!gone && test_bit(block, f->named))
			continue;
		__clear_bit(block, m->kept);
		if (!is_kept(f, block))
			smc_fabric_return_blocks(f, block, 1);
		cond_resched();
	}
	if (!bitmap_empty(m->kept, f->n_blocks))
		return;
	bitmap_free(m->kept);
	m->kept = NULL;
}

/* Finds the DMBs that a member does not write to any more, among those whose peer is not known. */
static void find_quiet(struct smc_fabric *f, u8 member, struct list_head *closing, struct list_head *quiet)
{
	struct smc_fabric_dmb *d, *next;

	might_sleep();
	mark_named(f, member);
	list_for_each_entry_safe(d, next, closing, list)
		if (!d->peer && writer_of(d) == member && find_next_bit(f->named, d->block + d->n, d->block) >= d->block + d->n)
			list_move(&d->list, quiet);
	if (f->members[member].kept)
		release_kept(f, member);
}

/*
 * smc_fabric_dmbs_close() - frees closed DMBs that no writer writes to any more, all if the device is gone. @second: a second has
 * passed since it was called with this argument. One caller at a time.
 */
void smc_fabric_dmbs_close(struct smc_fabric *f, bool second)
{
	struct smc_fabric_dmb *d, *next;
	u64 unknown = 0;	/* writers whose DMBs are not known, by number */
	LIST_HEAD(closing);
	LIST_HEAD(quiet);
	u8 member;

	might_sleep();
	spin_lock_bh(&f->lock);
	list_splice_init(&f->closing, &closing);
	spin_unlock_bh(&f->lock);
	list_for_each_entry_safe(d, next, &closing, list) {
		if (f->gone || is_gone(smc_fabric_has(f, d->dmb.gid), second, &d->absent) || (d->peer && !smc_fabric_is_written(f, d)))
			list_move(&d->list, &quiet);
		else if (!d->peer)
			unknown |= BIT_ULL(writer_of(d));
	}
	for (member = 0; second && member < f->n_members; member++)
		if (f->members[member].kept || unknown & BIT_ULL(member))
			find_quiet(f, member, &closing, &quiet);
	spin_lock_bh(&f->lock);
	list_splice(&closing, &f->closing);
	spin_unlock_bh(&f->lock);
	list_for_each_entry_safe(d, next, &quiet, list)
		smc_fabric_dmb_free(d);
}

/* Keeps our blocks that a member names, whose entry others may have overwritten. Return: 0 or -ENOMEM. */
static int keep_named(struct smc_fabric *f, u8 member)
{
	struct smc_fabric_member *m = &f->members[member];

	might_sleep();
	mark_named(f, member);
	if (bitmap_empty(f->named, f->n_blocks))
		return 0;
	m->kept = bitmap_alloc(f->n_blocks, GFP_KERNEL);
	if (!m->kept)
		return -ENOMEM;
	bitmap_copy(m->kept, f->named, f->n_blocks);
	bitmap_or(f->used, f->used, f->named, f->n_blocks);
	return 0;
}

/*
 * smc_fabric_keep_written() - keeps blocks to which others may still write as they were an earlier member's of this number, until they
 * do not name them any more. Several members may name one block, and hostile ones do. Before anything else is in use. Return: 0
 * or -ENOMEM; what is allocated goes with the fabric.
 */
int smc_fabric_keep_written(struct smc_fabric *f)
{
	unsigned int n;
	u8 member;
	int rc = 0;

	might_sleep();
	f->named = bitmap_zalloc(f->n_blocks, GFP_KERNEL);
	if (!f->named)
		return -ENOMEM;
	for (member = 0; !rc && member < f->n_members; member++)
		if (member != f->own)
			rc = keep_named(f, member);
	n = bitmap_weight(f->used, f->n_blocks);
	f->top = n ? find_last_bit(f->used, f->n_blocks) + 1 : 0;
	atomic64_set(&f->used_bytes, (u64)n * SMC_FABRIC_BLOCK_LEN);
	return rc;
}
