/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which bytes of a buffer changed, where the adapter's view of memory and the processor's are
 * synchronised by hand. Pure, so that it is tested in user space, by tests/wire.
 */
#ifndef SMC_RDMA_RANGE_H
#define SMC_RDMA_RANGE_H

#include "../../wire/shim.h"

/* Bytes of a buffer. */
struct smc_range {
	u32 off, len;
};

/**
 * smc_ring_ranges() - where the bytes of a stream are in its ring
 * @size: of the ring
 * @off: where the first byte is, less than @size
 * @n: bytes; if there are more than @size, all of the ring is meant
 * @ranges: one, or two if the bytes wrap around; the rest stays as it is
 *
 * Context: any.
 * Return: how many ranges there are; 0 if @n is 0.
 */
static inline unsigned int smc_ring_ranges(u32 size, u32 off, u64 n, struct smc_range ranges[2])
{
	u32 len = n > size ? size : (u32)n;

	if (!len)
		return 0;
	if (len <= size - off) {
		ranges[0] = (struct smc_range){ .off = off, .len = len };
		return 1;
	}
	ranges[0] = (struct smc_range){ .off = off, .len = size - off };
	ranges[1] = (struct smc_range){ .off = 0, .len = len - (size - off) };
	return 2;
}

/**
 * smc_range_in_part() - what part of a range is in one part of a buffer
 * @range: bytes of the buffer
 * @start: where the part begins in the buffer
 * @len: of the part
 * @in_part: set to the common bytes, relative to @start
 *
 * Context: any.
 * Return: whether there are any.
 */
static inline bool smc_range_in_part(struct smc_range range, u32 start, u32 len, struct smc_range *in_part)
{
	u64 from = range.off > start ? range.off : start;
	u64 to = (u64)range.off + range.len, end = (u64)start + len;

	if (to > end)
		to = end;
	if (from >= to)
		return false;
	*in_part = (struct smc_range){ .off = (u32)(from - start), .len = (u32)(to - from) };
	return true;
}

#endif /* SMC_RDMA_RANGE_H */
