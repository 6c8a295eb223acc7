// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"
#include "reason.h"

static void check(const u8 *buf, size_t len)
{
	struct smc_clc_decline d, again;
	u8 out[SMC_CLC_DECLINE_MAX];
	int n;

	if (smc_clc_decline_decode(buf, len, &d))
		return;
	n = smc_clc_decline_encode(&d, out, sizeof(out));
	MUST(n == (int)len);
	MUST(!smc_clc_decline_decode(out, (size_t)n, &again));
	MUST(!memcmp(&d, &again, sizeof(d)));
	MUST(smc_reason_name(d.code));
	MUST(smc_reason_index(d.code) < 0 ||
	     smc_reason_at((unsigned int)smc_reason_index(d.code)) == d.code);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return check_framed(data, size, SMC_CLC_DECLINE, check);
}
