/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fuzzer decodes its input twice: unchanged, and with the frame of a message around it, for few
 * inputs would get past eye catchers, type and length.
 */
#ifndef TESTS_WIRE_FUZZ_H
#define TESTS_WIRE_FUZZ_H

#include <stdlib.h>

#include "clc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The libFuzzer way to fail. */
#define MUST(cond) do { \
	if (!(cond)) \
		__builtin_trap(); \
} while (0)

/* A heap copy of exactly that size, with header and trailer set; NULL if it is too short. */
static inline u8 *framed(const u8 *data, size_t size, u8 type)
{
	static const u8 eyecatcher[] = { 0xe2, 0xd4, 0xc3, 0xd9 };
	u8 *copy;

	if (size < 12 || size > SMC_CLC_MAX)
		return NULL;
	copy = malloc(size);
	if (!copy)
		return NULL;
	memcpy(copy, data, size);
	memcpy(copy, eyecatcher, 4);
	memcpy(copy + size - 4, eyecatcher, 4);
	copy[4] = type;
	smc_put_be16(copy + 5, (u16)size);
	return copy;
}

/* Runs @check on an unchanged input, and on a message of the type. */
static inline int check_framed(const u8 *data, size_t size, u8 type, void (*check)(const u8 *buf, size_t len))
{
	u8 *copy = framed(data, size, type);

	check(data, size);
	if (copy)
		check(copy, size);
	free(copy);
	return 0;
}

#endif /* TESTS_WIRE_FUZZ_H */
