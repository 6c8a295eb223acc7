// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "reason.h"

static void dense(void)
{
	unsigned int i;

	for (i = 0; i < SMC_REASON_COUNT; i++) {
		u32 code = smc_reason_at(i);

		CHECK_EQ(smc_reason_index(code), i);
		CHECK(strcmp(smc_reason_name(code), "UNKNOWN"));
		CHECK(i == 0 || smc_reason_at(i - 1) < code);
	}
	CHECK_EQ(smc_reason_at(SMC_REASON_COUNT), 0);
	CHECK_EQ(smc_reason_at(~0u), 0);
}

static void unknown(void)
{
	static const u32 codes[] = { 0, 1, 0x01010001, 0x0303000c, 0x09990004, 0xffffffff };
	size_t i;

	for (i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		CHECK_EQ(smc_reason_index(codes[i]), -1);
		CHECK(!strcmp(smc_reason_name(codes[i]), "UNKNOWN"));
	}
}

static void some(void)
{
	CHECK_EQ(SMC_REASON_MEM, 0x01010000);
	CHECK_EQ(SMC_REASON_NO_UEID, 0x03030008);
	CHECK_EQ(SMC_REASON_SYNC, 0x04000000);
	CHECK(!strcmp(smc_reason_name(SMC_REASON_PEER_NO_SMC), "PEER_NO_SMC"));
}

const struct test reason_tests[] = {
	{ "dense", dense }, { "unknown", unknown }, { "some", some }, { NULL, NULL },
};
