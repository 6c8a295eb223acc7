// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct smc_clc_header h, again;
	u8 *buf;

	if (smc_clc_header_decode(data, size, &h))
		return 0;
	MUST(size >= SMC_CLC_HEADER_LEN);
	MUST(h.type >= SMC_CLC_PROPOSAL && h.type <= SMC_CLC_DECLINE);
	MUST(h.version && h.length >= 12);
	MUST(smc_clc_header_keep(&h) <= SMC_CLC_MAX && smc_clc_header_keep(&h) <= h.length);
	buf = malloc(h.length);
	MUST(buf);
	smc_clc_header_encode(&h, buf);
	MUST(!memcmp(buf, data, SMC_CLC_HEADER_LEN));
	if (h.length == smc_clc_header_keep(&h)) {
		MUST(!smc_clc_header_check(buf, h.length, &again));
		MUST(!memcmp(&h, &again, sizeof(h)));
	}
	free(buf);
	return 0;
}
