// SPDX-License-Identifier: Apache-2.0
#include "check.h"

static const u8 v1[] = {
	0xe2, 0xd4, 0xc3, 0xd9, 4, 0, 28, 0x18,
	1, 2, 3, 4, 5, 6, 7, 8,
	0x04, 0, 0, 0, 0x30, 0, 0, 0,
	0xe2, 0xd4, 0xc3, 0xd9,
};

static void fields(void)
{
	union message m;

	CHECK_EQ(decode_as(SMC_CLC_DECLINE, v1, sizeof(v1), &m), 0);
	CHECK_EQ(m.decline.version, 1);
	CHECK(m.decline.sync);
	CHECK(!memcmp(m.decline.peer_id, v1 + 8, 8));
	CHECK_EQ(m.decline.code, 0x04000000);
	CHECK_EQ(m.decline.os_type, 3);
	CHECK_EQ(m.decline.more[0], 0);
}

/* 28 bytes in version 1, 44 in every later one, and no others. */
static void length_by_version(void)
{
	u8 buf[64] = { 0 };
	union message m;
	int version, len;

	memcpy(buf, v1, sizeof(v1));
	for (version = 1; version < 16; version++) {
		for (len = 12; len <= 44; len++) {
			bool ok = len == (version == 1 ? 28 : 44);

			smc_put_be16(buf + 5, (u16)len);
			buf[7] = (u8)(version << 4);
			CHECK_EQ(decode_as(SMC_CLC_DECLINE, buf, (size_t)len, &m),
				 ok ? 0 : -EPROTO);
		}
		smc_put_be16(buf + 5, 60);
		CHECK_EQ(decode_as(SMC_CLC_DECLINE, buf, 44, &m), -EPROTO);
	}
}

static void encode_refuses(void)
{
	struct smc_clc_decline d = { .version = 1 };
	u8 buf[SMC_CLC_DECLINE_MAX];

	CHECK_EQ(smc_clc_decline_encode(&d, buf, sizeof(buf)), SMC_CLC_DECLINE_V1_LEN);
	d.version = 0;
	CHECK_EQ(smc_clc_decline_encode(&d, buf, sizeof(buf)), -EINVAL);
	d.version = 16;
	CHECK_EQ(smc_clc_decline_encode(&d, buf, sizeof(buf)), -EINVAL);
	d.version = 2;
	CHECK_EQ(smc_clc_decline_encode(&d, buf, sizeof(buf)), SMC_CLC_DECLINE_V2_LEN);
	d.version = 15;
	CHECK_EQ(smc_clc_decline_encode(&d, buf, sizeof(buf)), SMC_CLC_DECLINE_V2_LEN);
	d.os_type = 16;
	CHECK_EQ(smc_clc_decline_encode(&d, buf, sizeof(buf)), -EINVAL);
}

const struct test decline_tests[] = {
	{ "fields", fields }, { "length by version", length_by_version },
	{ "encode refuses", encode_refuses }, { NULL, NULL },
};
