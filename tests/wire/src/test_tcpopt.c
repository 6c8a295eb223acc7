// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "tcpopt.h"

#define SMC	254, 6, 0xe2, 0xd4, 0xc3, 0xd9
#define MSS	2, 4, 5, 180

static const struct {
	const char *name;
	int find;
	bool room;
	size_t len;
	u8 opts[SMC_TCPOPT_MAX + 4];
} cases[] = {
	{ "none", -ENOENT, true, 0, { 0 } },
	{ "others", -ENOENT, true, 4, { MSS } },
	{ "alone", 0, false, 6, { SMC } },
	{ "after NOPs", 2, false, 8, { 1, 1, SMC } },
	{ "after MSS", 4, false, 10, { MSS, SMC } },
	{ "before a cut option", 0, false, 8, { SMC, 2, 4 } },
	{ "after a cut option", -EPROTO, false, 8, { 3, 9, SMC } },
	{ "cut off", -EPROTO, false, 5, { 254, 6, 0xe2, 0xd4, 0xc3 } },
	{ "two bytes at the end", -ENOENT, true, 6, { MSS, 4, 2 } },
	{ "kind alone", -EPROTO, false, 1, { 254 } },
	{ "length 0", -EPROTO, false, 6, { 2, 0, 1, 1, 1, 1 } },
	{ "length 1", -EPROTO, false, 6, { 254, 1, 0xe2, 0xd4, 0xc3, 0xd9 } },
	{ "longer, even", 0, false, 8, { 254, 8, 0xe2, 0xd4, 0xc3, 0xd9, 7, 7 } },
	{ "longer, odd", -ENOENT, true, 7, { 254, 7, 0xe2, 0xd4, 0xc3, 0xd9, 7 } },
	{ "shorter", -ENOENT, true, 4, { 254, 4, 0xe2, 0xd4 } },
	{ "kind 253", -ENOENT, true, 6, { 253, 6, 0xe2, 0xd4, 0xc3, 0xd9 } },
	{ "wrong magic", -ENOENT, true, 6, { 254, 6, 0xe2, 0xd4, 0xc3, 0xc4 } },
	{ "fast open", -ENOENT, true, 6, { 254, 6, 0xf9, 0x89, 0xc3, 0xd9 } },
	{ "fast open, then ours", 4, false, 10, { 254, 4, 0xf9, 0x89, SMC } },
	{ "MD5", -ENOENT, false, 18, { 19, 18 } },
	{ "TCP-AO", -ENOENT, false, 16, { 29, 16 } },
	{ "MD5, then ours", 18, false, 24, { 19, 18, [18] = SMC } },
	{ "end, then ours", -ENOENT, false, 7, { 0, SMC } },
	{ "padded with ends", -ENOENT, false, 8, { MSS, 0, 0, 0, 0 } },
	{ "full to 32", -ENOENT, true, 32, { 77, 32 } },
	{ "full to 33", -ENOENT, false, 33, { 77, 33 } },
	{ "full", -ENOENT, false, 40, { 77, 40 } },
	{ "ours at the end", 34, false, 40, { 77, 34, [34] = SMC } },
};

static void table(void)
{
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		u8 *copy = exact(cases[i].opts, cases[i].len);

		check_case = cases[i].name;
		CHECK_EQ(smc_tcpopt_find(copy, cases[i].len), cases[i].find);
		CHECK_EQ(smc_tcpopt_room(copy, cases[i].len), cases[i].room);
		free(copy);
	}
}

/* If there is room, the option can be added, and is found afterwards. */
static void put(void)
{
	static const u8 want[SMC_TCPOPT_SPACE] = { 1, 1, SMC };
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t len = cases[i].len;
		u8 *copy;

		if (!cases[i].room)
			continue;
		check_case = cases[i].name;
		copy = malloc(len + SMC_TCPOPT_SPACE);
		memcpy(copy, cases[i].opts, len);
		smc_tcpopt_put(copy + len);
		CHECK(!memcmp(copy + len, want, sizeof(want)));
		CHECK_EQ(smc_tcpopt_find(copy, len + SMC_TCPOPT_SPACE), len + 2);
		CHECK(!smc_tcpopt_room(copy, len + SMC_TCPOPT_SPACE));
		free(copy);
	}
}

const struct test tcpopt_tests[] = {
	{ "table", table }, { "put", put }, { NULL, NULL },
};
