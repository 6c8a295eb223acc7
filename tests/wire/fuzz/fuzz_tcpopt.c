// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"
#include "tcpopt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int at = smc_tcpopt_find(data, size);
	u8 *copy;

	MUST(at == -ENOENT || at == -EPROTO || (at >= 0 && (size_t)at + SMC_TCPOPT_LEN <= size));
	if (at >= 0) {
		MUST(data[at] == SMC_TCPOPT_KIND);
		MUST(smc_get_be32(data + at + 2) == SMC_TCPOPT_MAGIC);
	}
	if (!smc_tcpopt_room(data, size))
		return 0;
	MUST(at == -ENOENT && size + SMC_TCPOPT_SPACE <= SMC_TCPOPT_MAX);
	copy = malloc(size + SMC_TCPOPT_SPACE);
	MUST(copy);
	memcpy(copy, data, size);
	smc_tcpopt_put(copy + size);
	MUST(smc_tcpopt_find(copy, size + SMC_TCPOPT_SPACE) == (int)size + 2);
	MUST(!smc_tcpopt_room(copy, size + SMC_TCPOPT_SPACE));
	free(copy);
	return 0;
}
