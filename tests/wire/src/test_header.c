// SPDX-License-Identifier: Apache-2.0
#include "check.h"

static const u8 header[] = { 0xe2, 0xd4, 0xc3, 0xd9, 1, 0x01, 0x02, 0x2d };

static int decode(const u8 *buf, size_t len, struct smc_clc_header *h)
{
	u8 *copy = exact(buf, len);
	int rc = smc_clc_header_decode(copy, len, h);

	free(copy);
	return rc;
}

/* Decodes the header with one byte changed. */
static int decode_with(unsigned int at, u8 value)
{
	struct smc_clc_header h;
	u8 buf[sizeof(header)];

	memcpy(buf, header, sizeof(buf));
	buf[at] = value;
	return decode(buf, sizeof(buf), &h);
}

static void fields(void)
{
	struct smc_clc_header h;
	u8 buf[sizeof(header)];

	CHECK_EQ(decode(header, sizeof(header), &h), 0);
	CHECK_EQ(h.type, SMC_CLC_PROPOSAL);
	CHECK_EQ(h.length, 0x102);
	CHECK_EQ(h.version, 2);
	CHECK_EQ(h.flags, 0x0d);
	CHECK(!h.smcd);
	memcpy(buf, header, sizeof(buf));
	buf[3] = 0xc4;
	CHECK_EQ(decode(buf, sizeof(buf), &h), 0);
	CHECK(h.smcd);
}

static void eyecatcher(void)
{
	unsigned int i;

	CHECK_EQ(decode_with(3, 0xc4), 0);	/* SMCD */
	for (i = 0; i < 4; i++)
		CHECK_EQ(decode_with(i, 0x53), -EPROTO);
	CHECK_EQ(decode_with(3, 0xd4), -EPROTO);
}

static void type(void)
{
	int t;

	for (t = 0; t < 256; t++)
		CHECK_EQ(decode_with(4, (u8)t), t >= 1 && t <= 4 ? 0 : -EPROTO);
}

static void version(void)
{
	int v;

	for (v = 0; v < 16; v++)
		CHECK_EQ(decode_with(7, (u8)(v << 4 | 0xf)), v ? 0 : -EPROTO);
}

static void length(void)
{
	u8 buf[sizeof(header)];
	struct smc_clc_header h;
	int l;

	memcpy(buf, header, sizeof(buf));
	buf[5] = 0;
	for (l = 0; l < 256; l++) {
		buf[6] = (u8)l;
		CHECK_EQ(decode(buf, sizeof(buf), &h), l >= 12 ? 0 : -EPROTO);
	}
}

static void truncated(void)
{
	struct smc_clc_header h;
	size_t len;

	for (len = 0; len < sizeof(header); len++)
		CHECK_EQ(decode(header, len, &h), -EPROTO);
}

static void keep(void)
{
	static const struct {
		u8 type;
		u16 length;
		size_t keep;
	} cases[] = {
		{ SMC_CLC_PROPOSAL, 52, 52 }, { SMC_CLC_PROPOSAL, 652, 652 },
		{ SMC_CLC_PROPOSAL, 653, 652 }, { SMC_CLC_PROPOSAL, 65535, 652 },
		{ SMC_CLC_ACCEPT, 160, 160 }, { SMC_CLC_ACCEPT, 161, 160 },
		{ SMC_CLC_CONFIRM, 292, 292 }, { SMC_CLC_CONFIRM, 65535, 652 },
		{ SMC_CLC_DECLINE, 28, 28 }, { SMC_CLC_DECLINE, 44, 44 },
		{ SMC_CLC_DECLINE, 45, 44 },
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct smc_clc_header h = { .type = cases[i].type, .length = cases[i].length };

		CHECK_EQ(smc_clc_header_keep(&h), cases[i].keep);
		CHECK(smc_clc_header_keep(&h) <= SMC_CLC_MAX);
	}
}

const struct test header_tests[] = {
	{ "fields", fields }, { "eyecatcher", eyecatcher }, { "type", type },
	{ "version", version }, { "length", length }, { "truncated", truncated },
	{ "keep", keep }, { NULL, NULL },
};
