/* SPDX-License-Identifier: GPL-2.0-only */
/* How large a buffer may be under a ceiling of memory. It also builds in user space, where tests/wire tests it. */
#ifndef SMC_CONTROL_MEMORY_FIT_H
#define SMC_CONTROL_MEMORY_FIT_H

#include "../wire/shim.h"

/* The smallest buffer. The size code of a larger one, as in CLC, is how often that is doubled. */
#define SMC_MEMORY_BUF_MIN 16384
/* Above three quarters of the ceiling, a buffer may be at most this part of what is left. */
#define SMC_MEMORY_SHARE 64

/*
 * smc_memory_fits() - may as many bytes more be reserved under a ceiling? A ceiling of 0 is none. One that was lowered may
 * be below what is reserved. Any context.
 */
static inline bool smc_memory_fits(u64 limit, u64 reserved, u64 bytes)
{
	return !limit || (reserved <= limit && bytes <= limit - reserved);
}

/*
 * smc_memory_fit_code() - returns the size code of a buffer that asks for one: the same up to three quarters of the ceiling,
 * and a smaller one above, but not less than @least. There may be no memory even for that. Any context.
 */
static inline u8 smc_memory_fit_code(u64 limit, u64 reserved, u8 code, u8 least)
{
	u64 share = limit > reserved ? (limit - reserved) / SMC_MEMORY_SHARE : 0;

	if (!limit || smc_memory_fits(limit - limit / 4, reserved, (u64)SMC_MEMORY_BUF_MIN << code))
		return code;
	while (code > least && (u64)SMC_MEMORY_BUF_MIN << code > share)
		code--;
	return code;
}

#endif /* SMC_CONTROL_MEMORY_FIT_H */
