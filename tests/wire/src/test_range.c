// SPDX-License-Identifier: Apache-2.0
/* Which bytes of a buffer are synchronised: kernel/transport/rdma/range.h. */
#include "check.h"
#include "range.h"

static void ranges_are(u32 size, u32 off, u64 n, unsigned int want, struct smc_range first, struct smc_range second)
{
	struct smc_range got[2] = {};

	CHECK_EQ(smc_ring_ranges(size, off, n, got), want);
	CHECK_EQ(got[0].off, first.off);
	CHECK_EQ(got[0].len, first.len);
	CHECK_EQ(got[1].off, second.off);
	CHECK_EQ(got[1].len, second.len);
}

#define R(o, l) ((struct smc_range){ .off = (o), .len = (l) })

static void test_ring(void)
{
	/* A cursor alone changes no byte. */
	ranges_are(16384, 0, 0, 0, R(0, 0), R(0, 0));
	ranges_are(16384, 16383, 0, 0, R(0, 0), R(0, 0));
	ranges_are(16384, 0, 1, 1, R(0, 1), R(0, 0));
	ranges_are(16384, 100, 200, 1, R(100, 200), R(0, 0));
	ranges_are(16384, 16383, 1, 1, R(16383, 1), R(0, 0));
	ranges_are(16384, 0, 16384, 1, R(0, 16384), R(0, 0));
	/* Around the end. */
	ranges_are(16384, 16383, 2, 2, R(16383, 1), R(0, 1));
	ranges_are(16384, 100, 16384, 2, R(100, 16284), R(0, 100));
	/* More than there is: all of it, and no byte beyond. */
	ranges_are(16384, 0, 1ULL << 40, 1, R(0, 16384), R(0, 0));
	ranges_are(16384, 1, 1ULL << 40, 2, R(1, 16383), R(0, 1));
	/* Sizes that fill 32 bits. */
	ranges_are(512U << 20, (512U << 20) - 4, 8, 2, R((512U << 20) - 4, 4), R(0, 4));
}

/* Every byte that changed is in one range, and no other is. */
static void test_ring_covers(void)
{
	enum { SIZE = 16 };
	u32 off, n, i, j;

	for (off = 0; off < SIZE; off++) {
		for (n = 0; n <= SIZE; n++) {
			struct smc_range ranges[2];
			unsigned int times[SIZE] = {};
			unsigned int k = smc_ring_ranges(SIZE, off, n, ranges);

			for (i = 0; i < k; i++)
				for (j = 0; j < ranges[i].len; j++)
					times[ranges[i].off + j]++;
			for (i = 0; i < SIZE; i++)
				CHECK_EQ(times[i], (i + SIZE - off) % SIZE < n);
		}
	}
}

/* A range that is split by the parts of a buffer and joined again does not change. */
static void test_parts(void)
{
	static const u32 parts[] = { 4, 1, 7, 4 };
	u32 off, len;

	for (off = 0; off < 16; off++) {
		for (len = 0; off + len <= 16; len++) {
			u32 start = 0, next = off, i;

			for (i = 0; i < 4; start += parts[i++]) {
				struct smc_range in;

				if (!smc_range_in_part(R(off, len), start, parts[i], &in))
					continue;
				CHECK(in.len > 0 && in.off + in.len <= parts[i]);
				CHECK_EQ(start + in.off, next);
				next += in.len;
			}
			CHECK_EQ(next, off + len);
		}
	}
}

static void test_parts_at_the_end_of_memory(void)
{
	struct smc_range in;

	CHECK(smc_range_in_part(R(0xfffffff0, 15), 0xffffff00, 0xff, &in));
	CHECK_EQ(in.off, 0xf0);
	CHECK_EQ(in.len, 15);
	CHECK(!smc_range_in_part(R(0, 16), 16, 16, &in));
	CHECK(!smc_range_in_part(R(16, 16), 0, 16, &in));
}

const struct test range_tests[] = {
	{ "ring", test_ring },
	{ "ring covers what changed", test_ring_covers },
	{ "parts", test_parts },
	{ "parts at the end of memory", test_parts_at_the_end_of_memory },
	{ NULL, NULL },
};
