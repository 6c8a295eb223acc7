// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"

static void check(const u8 *buf, size_t len)
{
	struct smc_clc_accept a, again;
	u8 out[SMC_CLC_CONFIRM_MAX];
	int n;

	if (smc_clc_accept_decode(buf, len, &a))
		return;
	MUST(a.n_gids <= SMC_CLC_GIDS && a.has_fce == (a.version > 1 && a.first_contact));
	n = smc_clc_accept_encode(&a, out, sizeof(out));
	MUST(n > 0);
	MUST(!smc_clc_accept_decode(out, (size_t)n, &again));
	MUST(!memcmp(&a, &again, sizeof(a)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	u8 type;

	check(data, size);
	for (type = SMC_CLC_ACCEPT; type <= SMC_CLC_CONFIRM; type++) {
		u8 *copy = framed(data, size, type);

		/* a longer ACCEPT is cut, and has its own length in the header */
		if (copy && type == SMC_CLC_ACCEPT && size > SMC_CLC_ACCEPT_MAX)
			check(copy, SMC_CLC_ACCEPT_MAX);
		else if (copy)
			check(copy, size);
		free(copy);
	}
	return 0;
}
