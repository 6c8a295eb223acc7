// SPDX-License-Identifier: Apache-2.0
/* Numbers that members of a fabric write: kernel/transport/ism/fabric_place.h. */
#include "check.h"
#include "fabric_place.h"

static void test_token(void)
{
	struct smc_fabric_place p;
	u64 token = smc_fabric_token(3, 0x1234, 2, 0xfedcba987654321ULL);

	CHECK_EQ(token, 0x0312342987654321LL);
	CHECK(smc_fabric_find(4, 0x2000, token, &p));
	CHECK_EQ(p.member, 3);
	CHECK_EQ(p.block, 0x1234);
	CHECK_EQ(p.n, 4);
	/* Without random bits, it would be no token, or that of a free block. */
	CHECK_EQ(smc_fabric_token(0, 0, 0, 0), 1);
	CHECK_EQ(smc_fabric_token(0, 0, 0, 1ULL << 36), 1);
}

static void test_find(void)
{
	static const struct {
		u64 token;
		bool ok;
	} cases[] = {
		{ 0x0000000000000001, true },
		{ 0, false },			/* the free first block of member 0 */
		{ 0x0000010000000000, false },	/* a free block, too */
		{ 0x0300000000000000, false },
		{ 0x0300016000000001, false },	/* 64 blocks from block 1 on, of 64 */
		{ 0x0300006000000001, true },	/* all blocks */
		{ 0x0300017000000001, false },	/* 128 blocks */
		{ 0x0300006fffffffff, true },
		{ 0x0400000000000001, false },	/* member 4 of 4 */
		{ 0xff00000000000001, false },
		{ 0x03003f0000000001, true },	/* the last block */
		{ 0x03003f1000000001, false },
		{ 0x0300400000000001, false },
		{ 0x03ffff0000000001, false },
		{ ~0ULL, false },
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct smc_fabric_place p;
		char name[32];

		snprintf(name, sizeof(name), "token %016llx", (unsigned long long)cases[i].token);
		check_case = name;
		CHECK_EQ(smc_fabric_find(4, 64, cases[i].token, &p), cases[i].ok);
		if (cases[i].ok)
			CHECK(p.member < 4 && p.n && p.block + p.n <= 64);
	}
}

static void test_stolen(void)
{
	CHECK(!smc_fabric_is_stolen(0x0300000000000005, 0x0300000000000005));
	CHECK(smc_fabric_is_stolen(0x0300000000000006, 0x0300000000000005));
	/* Others write there by mistake, and smc_ismd writes 0 and REMOVED. */
	CHECK(!smc_fabric_is_stolen(0x0200000000000006, 0x0300000000000005));
	CHECK(!smc_fabric_is_stolen(0, 0x0000000000000005));
	CHECK(!smc_fabric_is_stolen(SMC_FABRIC_REMOVED, 0x3f00000000000005));
}

static void test_beat(void)
{
	struct smc_fabric_beat beat = { 0 };
	int i;

	CHECK(!smc_fabric_beat_seen(&beat, 7));
	for (i = 1; i < SMC_FABRIC_SILENT; i++)
		CHECK(!smc_fabric_beat_seen(&beat, 7));
	CHECK(smc_fabric_beat_seen(&beat, 7));
	for (i = 0; i < 300; i++)
		CHECK(smc_fabric_beat_seen(&beat, 7));
	/* It goes on. */
	CHECK(!smc_fabric_beat_seen(&beat, 8));
	for (i = 1; i < SMC_FABRIC_SILENT; i++)
		CHECK(!smc_fabric_beat_seen(&beat, 8));
	CHECK(smc_fabric_beat_seen(&beat, 8));
	CHECK(!smc_fabric_beat_seen(&beat, 0));
}

const struct test fabric_tests[] = {
	{ "token", test_token },
	{ "find", test_find },
	{ "beat", test_beat },
	{ "stolen", test_stolen },
	{ NULL, NULL },
};
