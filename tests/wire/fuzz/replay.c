// SPDX-License-Identifier: Apache-2.0
/*
 * Runs a fuzzer on its packed inputs where no libFuzzer is needed: replay INPUTS. Each input is a heap copy of exactly its
 * size, so that AddressSanitizer sees each access beyond it.
 */
#include <stdio.h>

#include "fuzz.h"
#include "hex.h"

static bool run_one(void *arg, int n, const u8 *buf, size_t len)
{
	u8 *copy = malloc(len ? len : 1);

	(void)arg;
	(void)n;
	MUST(copy);
	memcpy(copy, buf, len);
	LLVMFuzzerTestOneInput(copy, len);
	free(copy);
	return true;
}

int main(int argc, char **argv)
{
	int n = argc == 2 ? read_inputs(argv[1], run_one, NULL) : -1;

	if (n <= 0)
		return 1;
	printf("%d inputs\n", n);
	return 0;
}
