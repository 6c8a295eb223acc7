// SPDX-License-Identifier: Apache-2.0
/* The size of buffers near a ceiling of memory: kernel/control/memory_fit.h. */
#include "check.h"
#include "control/memory_fit.h"

#define MIB (1ULL << 20)

static void test_fits(void)
{
	CHECK(smc_memory_fits(0, ~0ULL, ~0ULL));
	CHECK(smc_memory_fits(MIB, 0, MIB));
	CHECK(!smc_memory_fits(MIB, 0, MIB + 1));
	CHECK(smc_memory_fits(MIB, MIB - 1, 1));
	CHECK(!smc_memory_fits(MIB, MIB, 1));
	/* The ceiling was lowered. */
	CHECK(!smc_memory_fits(MIB, 2 * MIB, 1));
	CHECK(!smc_memory_fits(MIB, 1, ~0ULL));
}

static void test_codes(void)
{
	static const struct {
		u64 limit, reserved;
		u8 code, least, want;
	} cases[] = {
		{ 0, 1ULL << 50, 6, 0, 6 },			/* no ceiling */
		{ 16 * MIB, 0, 4, 0, 4 },
		{ 16 * MIB, 12 * MIB - 256 * 1024, 4, 0, 4 },	/* just three quarters */
		{ 16 * MIB, 12 * MIB - 256 * 1024 + 1, 4, 0, 2 },
		{ 16 * MIB, 12 * MIB, 4, 0, 2 },		/* 64 KiB of 4 MiB */
		{ 16 * MIB, 14 * MIB, 4, 0, 1 },
		{ 16 * MIB, 15 * MIB, 4, 0, 0 },
		{ 16 * MIB, 16 * MIB, 4, 0, 0 },		/* nothing is left */
		{ 16 * MIB, 32 * MIB, 4, 0, 0 },		/* the ceiling was lowered */
		{ 16 * MIB, 15 * MIB, 4, 2, 2 },		/* pages of 64 KiB */
		{ 16 * MIB, 15 * MIB, 1, 2, 1 },		/* the same, asks for half a page */
		{ 16 * MIB, 15 * MIB, 6, 4, 4 },		/* the same, four pages at least */
		{ 16 * MIB, 15 * MIB, 0, 0, 0 },
		{ 1024 * MIB, 700 * MIB, 15, 0, 8 },		/* asks for 512 MiB, gets 4 MiB */
		{ 4096, 0, 4, 0, 0 },
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		CHECK_EQ(smc_memory_fit_code(cases[i].limit, cases[i].reserved, cases[i].code, cases[i].least), cases[i].want);
}

/* Connections that follow each other use the ceiling up, with buffers that do not grow. */
static void test_fill(void)
{
	u64 reserved = 0, bytes, last = ~0ULL;
	unsigned int n = 0;

	for (;; n++) {
		bytes = (u64)SMC_MEMORY_BUF_MIN << smc_memory_fit_code(16 * MIB, reserved, 4, 0);
		if (!smc_memory_fits(16 * MIB, reserved, bytes))
			break;
		CHECK(bytes <= last);
		last = bytes;
		reserved += bytes;
	}
	CHECK_EQ(reserved, 16 * MIB);
	CHECK(n > 150);
}

const struct test memory_tests[] = {
	{ "what fits", test_fits },
	{ "size codes", test_codes },
	{ "filling up", test_fill },
	{ NULL, NULL },
};
