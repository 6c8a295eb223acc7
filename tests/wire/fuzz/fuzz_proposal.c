// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"

/* Proposals that the decoder accepts and the encoder refuses: see clc_proposal.c for both. */
static bool sendable(const struct smc_clc_proposal *p)
{
	if (p->path_v1 == SMC_PATH_N && p->ism_gid)
		return false;
	return p->has_d2 == smc_clc_path_has_d(p->path_v2);
}

static void check(const u8 *buf, size_t len)
{
	struct smc_clc_proposal p, again;
	u8 out[SMC_CLC_PROPOSAL_MAX];
	int n;

	if (smc_clc_proposal_decode(buf, len, &p))
		return;
	MUST(p.n_v6 <= SMC_CLC_PREFIXES && p.n_eid <= SMC_CLC_EIDS && p.n_gid <= SMC_CLC_GIDS);
	n = smc_clc_proposal_encode(&p, out, sizeof(out));
	MUST(sendable(&p) ? n > 0 : n == -EINVAL);
	if (n < 0)
		return;
	MUST(!smc_clc_proposal_decode(out, (size_t)n, &again));
	MUST(!memcmp(&p, &again, sizeof(p)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return check_framed(data, size, SMC_CLC_PROPOSAL, check);
}
