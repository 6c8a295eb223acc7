// SPDX-License-Identifier: Apache-2.0
/* Numbers that smc_ismd and members of a fabric write: kernel/transport/ism/fabric_header.h and fabric_place.h. */
#include "check.h"
#include "fabric_header.h"
#include "fabric_place.h"

/* The header of a fabric of 256 MiB for 8 members, as internal/fabric writes it. */
#define SIZE (256ULL << 20)

static void put_le(u8 *at, unsigned int bytes, u64 v)
{
	unsigned int i;

	for (i = 0; i < bytes; i++)
		at[i] = (u8)(v >> 8 * i & 0xff);
}

static void put_header(u8 h[SMC_FABRIC_HEADER_LEN])
{
	memset(h, 0, SMC_FABRIC_HEADER_LEN);
	memcpy(h, SMC_FABRIC_MAGIC, 8);
	put_le(h + SMC_FABRIC_MEMBERS, 4, 8);
	put_le(h + SMC_FABRIC_CHID, 4, 0xff10);
	put_le(h + SMC_FABRIC_SIZE, 8, SIZE);
	put_le(h + SMC_FABRIC_UUID, 8, 0x1122334455667788);
	put_le(h + SMC_FABRIC_AREAS, 8, 8192);
	put_le(h + SMC_FABRIC_AREA_SIZE, 8, 33550336);
	put_le(h + SMC_FABRIC_BLOCKS, 4, 2039);
	put_le(h + SMC_FABRIC_BLOCKS_AT, 4, 139264);
	memcpy(h + SMC_FABRIC_NAME, "blue", 4);
}

static void test_header(void)
{
	struct smc_fabric_header f = {};
	u8 h[SMC_FABRIC_HEADER_LEN];
	u8 *mem;

	put_header(h);
	mem = exact(h, sizeof(h));
	CHECK_EQ(smc_fabric_header_decode(mem, SIZE, &f), 0);
	CHECK_EQ(f.n_members, 8);
	CHECK_EQ(f.chid, 0xff10);
	CHECK_EQ(f.gid, 0x1122334455667788);
	CHECK_EQ(f.areas, 8192);
	CHECK_EQ(f.area_size, 33550336);
	CHECK_EQ(f.n_blocks, 2039);
	CHECK_EQ(f.blocks_at, 139264);
	CHECK_EQ(f.dmbs_at, 6144); /* 4096 and a byte for each block, in multiples of 64 */
	/* Larger memory than the header says is there is no harm, smaller memory is. */
	CHECK_EQ(smc_fabric_header_decode(mem, 2 * SIZE, &f), 0);
	CHECK_EQ(smc_fabric_header_decode(mem, SIZE / 2, &f), -EPROTO);
	CHECK_EQ(smc_fabric_header_decode(mem, 8191, &f), -ENODEV);
	CHECK_EQ(smc_fabric_header_decode(mem, 0, &f), -ENODEV);
	free(mem);
}

/* Each number of the header at and beyond its limits, while the others are those of put_header(). */
static void test_header_limits(void)
{
	static const struct {
		const char *name;
		unsigned int at, bytes;
		u64 value;
		int rc;
	} cases[] = {
		{ "other version", 7, 1, 2, -ENODEV },
		{ "no magic", 0, 1, 0, -ENODEV },
		{ "no member", SMC_FABRIC_MEMBERS, 4, 0, -EPROTO },
		{ "one member", SMC_FABRIC_MEMBERS, 4, 1, -EPROTO },
		{ "two members", SMC_FABRIC_MEMBERS, 4, 2, 0 },
		{ "one area too many", SMC_FABRIC_MEMBERS, 4, 9, -EPROTO },
		{ "65 members", SMC_FABRIC_MEMBERS, 4, 65, -EPROTO },
		{ "members above 16 bits", SMC_FABRIC_MEMBERS, 4, 0x10008, -EPROTO },
		{ "most members", SMC_FABRIC_MEMBERS, 4, 0xffffffff, -EPROTO },
		{ "CHID of hardware", SMC_FABRIC_CHID, 4, 0xfeff, -EPROTO },
		{ "first CHID", SMC_FABRIC_CHID, 4, 0xff00, 0 },
		{ "last CHID", SMC_FABRIC_CHID, 4, 0xfffe, 0 },
		{ "CHID of loopback", SMC_FABRIC_CHID, 4, 0xffff, -EPROTO },
		{ "CHID above 16 bits", SMC_FABRIC_CHID, 4, 0x1ff10, -EPROTO },
		{ "areas in the directory", SMC_FABRIC_AREAS, 8, 4096, -EPROTO },
		{ "areas at 0", SMC_FABRIC_AREAS, 8, 0, -EPROTO },
		{ "areas not aligned", SMC_FABRIC_AREAS, 8, 8193, -EPROTO },
		{ "last possible areas", SMC_FABRIC_AREAS, 8, 32768, 0 },
		{ "last area beyond the end", SMC_FABRIC_AREAS, 8, 36864, -EPROTO },
		{ "areas at the end", SMC_FABRIC_AREAS, 8, SIZE, -EPROTO },
		{ "areas beyond the end", SMC_FABRIC_AREAS, 8, SIZE + 4096, -EPROTO },
		{ "areas at the end of 64 bits", SMC_FABRIC_AREAS, 8, ~4095ULL, -EPROTO },
		{ "largest areas", SMC_FABRIC_AREA_SIZE, 8, 33550336 + 4096, -EPROTO },
		{ "areas not aligned in size", SMC_FABRIC_AREA_SIZE, 8, 33550336 - 8, -EPROTO },
		{ "smallest areas", SMC_FABRIC_AREA_SIZE, 8, 33550336 - 4096, 0 },
		{ "areas too small for their blocks", SMC_FABRIC_AREA_SIZE, 8, 33550336 - 8192, -EPROTO },
		{ "areas without size", SMC_FABRIC_AREA_SIZE, 8, 0, -EPROTO },
		{ "8 areas are 2^64 bytes", SMC_FABRIC_AREA_SIZE, 8, 1ULL << 61, -EPROTO },
		{ "no blocks", SMC_FABRIC_BLOCKS, 4, 0, -EPROTO },
		{ "one block", SMC_FABRIC_BLOCKS, 4, 1, 0 },
		{ "one block too many", SMC_FABRIC_BLOCKS, 4, 2040, -EPROTO },
		{ "65537 blocks", SMC_FABRIC_BLOCKS, 4, 65537, -EPROTO },
		{ "most blocks", SMC_FABRIC_BLOCKS, 4, 0xffffffff, -EPROTO },
		{ "2^32 bytes of descriptors", SMC_FABRIC_BLOCKS, 4, 1U << 26, -EPROTO },
		{ "first possible blocks", SMC_FABRIC_BLOCKS_AT, 4, 139264, 0 },
		{ "blocks in the descriptors", SMC_FABRIC_BLOCKS_AT, 4, 135168, -EPROTO },
		{ "blocks at 0", SMC_FABRIC_BLOCKS_AT, 4, 0, -EPROTO },
		{ "blocks not aligned", SMC_FABRIC_BLOCKS_AT, 4, 139264 + 64, -EPROTO },
		{ "last block beyond its area", SMC_FABRIC_BLOCKS_AT, 4, 139264 + 8192, -EPROTO },
		{ "blocks at the end of 32 bits", SMC_FABRIC_BLOCKS_AT, 4, ~4095U, -EPROTO },
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct smc_fabric_header f = {};
		u8 h[SMC_FABRIC_HEADER_LEN], *mem;

		check_case = cases[i].name;
		put_header(h);
		put_le(h + cases[i].at, cases[i].bytes, cases[i].value);
		mem = exact(h, sizeof(h));
		CHECK_EQ(smc_fabric_header_decode(mem, SIZE, &f), cases[i].rc);
		free(mem);
	}
}

/* The largest fabric that there can be: 64 members with 65536 blocks each. One more of either is refused even where there is room. */
static void test_header_most(void)
{
	const u64 area = 4263936 + 65536ULL * SMC_FABRIC_BLOCK_LEN, size = 1ULL << 40;
	struct smc_fabric_header f = {};
	u8 h[SMC_FABRIC_HEADER_LEN], *mem;

	put_header(h);
	put_le(h + SMC_FABRIC_MEMBERS, 4, 64);
	put_le(h + SMC_FABRIC_BLOCKS, 4, 65536);
	put_le(h + SMC_FABRIC_BLOCKS_AT, 4, 4263936);
	put_le(h + SMC_FABRIC_AREA_SIZE, 8, area);
	mem = exact(h, sizeof(h));
	CHECK_EQ(smc_fabric_header_decode(mem, size, &f), 0);
	CHECK_EQ(f.dmbs_at, 69632);
	CHECK_EQ(smc_fabric_header_decode(mem, 8192 + 64 * area, &f), 0);
	CHECK_EQ(smc_fabric_header_decode(mem, 8192 + 64 * area - 1, &f), -EPROTO);
	put_le(mem + SMC_FABRIC_MEMBERS, 4, 65);
	CHECK_EQ(smc_fabric_header_decode(mem, size, &f), -EPROTO);
	put_le(mem + SMC_FABRIC_MEMBERS, 4, 64);
	put_le(mem + SMC_FABRIC_BLOCKS, 4, 65537);
	put_le(mem + SMC_FABRIC_BLOCKS_AT, 4, 4263936 + 4096);
	put_le(mem + SMC_FABRIC_AREA_SIZE, 8, 2 * area);
	CHECK_EQ(smc_fabric_header_decode(mem, size, &f), -EPROTO);
	free(mem);
}

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
	{ "header", test_header },
	{ "header limits", test_header_limits },
	{ "header most", test_header_most },
	{ "token", test_token },
	{ "find", test_find },
	{ "beat", test_beat },
	{ "stolen", test_stolen },
	{ NULL, NULL },
};
