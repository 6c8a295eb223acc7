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

static void lasting(void)
{
	static const struct { u32 reason, diagnosis; bool lasting; } cases[] = {
		{ SMC_REASON_NO_DEV, 0, true }, { SMC_REASON_NO_UEID, 0, true }, { SMC_REASON_PREFIX, 0, true },
		{ SMC_REASON_IPSEC, 0, true }, { SMC_REASON_MODE, 0, true }, { SMC_REASON_VERSION, 0, true },
		{ SMC_REASON_NO_ROUTE, 0, true }, { SMC_REASON_TIMEOUT_CONFIRM_LINK, 0, true }, { SMC_REASON_PEER_NO_CLC, 0, true },
		{ SMC_REASON_MEM, 0, false }, { SMC_REASON_MAX_DMB, 0, false }, { SMC_REASON_SYNC, 0, false },
		{ SMC_REASON_PEER_NO_SMC, 0, false }, { SMC_REASON_OPTION, 0, false }, { SMC_REASON_POLICY, 0, false },
		{ SMC_REASON_NO_ACTIVE_LINK, 0, false }, { SMC_REASON_INTERNAL, 0, false }, { SMC_REASON_REG_BUF, 0, false },
		{ 0, 0, false }, { 0x12345678, 0, false }, { 0, SMC_REASON_NO_DEV, false },
		/* Of a DECLINE the peer's reason counts, which may be any number. */
		{ SMC_REASON_PEER_DECLINED, SMC_REASON_NO_DEV, true }, { SMC_REASON_PEER_DECLINED, SMC_REASON_IPSEC, true },
		{ SMC_REASON_PEER_DECLINED, SMC_REASON_MEM, false }, { SMC_REASON_PEER_DECLINED, SMC_REASON_SYNC, false },
		{ SMC_REASON_PEER_DECLINED, 0, false }, { SMC_REASON_PEER_DECLINED, 0x12345678, false },
		{ SMC_REASON_PEER_DECLINED, SMC_REASON_PEER_DECLINED, false }, { SMC_REASON_NO_DEV, SMC_REASON_MEM, true },
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		CHECK_EQ(smc_reason_is_lasting(cases[i].reason, cases[i].diagnosis), cases[i].lasting);
}

static void for_peers(void)
{
	unsigned int i;

	for (i = 0; i < SMC_REASON_COUNT; i++) {
		u32 code = smc_reason_at(i);

		CHECK_EQ(smc_reason_for_peer(code), code == SMC_REASON_MEM_LIMIT ? SMC_REASON_MEM : code);
	}
}

const struct test reason_tests[] = {
	{ "dense", dense }, { "unknown", unknown }, { "some", some }, { "lasting", lasting }, { "for peers", for_peers }, { NULL, NULL },
};
