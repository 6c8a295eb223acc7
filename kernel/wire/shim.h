/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The single include of everything in this folder, so that the codecs also build in user space,
 * where they are tested and fuzzed: types, memory functions, error numbers, byte order.
 */
#ifndef SMC_WIRE_SHIM_H
#define SMC_WIRE_SHIM_H

#ifdef __KERNEL__
#include <asm/byteorder.h>
#include <linux/compiler.h>
#include <linux/errno.h>
#include <linux/math64.h>
#include <linux/string.h>
#include <linux/types.h>
#else
#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int16_t s16;
typedef int64_t s64;
typedef uint32_t __le32;
typedef uint64_t __le64;

#define le32_to_cpu(x) le32toh(x)
#define le64_to_cpu(x) le64toh(x)

/* The kernel has no division of 64 bits for processors of 32. */
static inline u64 div_u64(u64 n, u32 by)
{
	return n / by;
}

#define READ_ONCE(x) (x)
#define WRITE_ONCE(x, value) ((x) = (value))
#endif

/*
 * Integers in network byte order. Hardly any field of these messages is aligned, so they are read and
 * written byte by byte; compilers make one load and one swap of it. The caller checks the length.
 */

static inline u16 smc_get_be16(const u8 *p)
{
	return (u16)(p[0] << 8 | p[1]);
}

static inline u32 smc_get_be24(const u8 *p)
{
	return (u32)p[0] << 16 | (u32)p[1] << 8 | p[2];
}

static inline u32 smc_get_be32(const u8 *p)
{
	return (u32)smc_get_be16(p) << 16 | smc_get_be16(p + 2);
}

static inline u64 smc_get_be64(const u8 *p)
{
	return (u64)smc_get_be32(p) << 32 | smc_get_be32(p + 4);
}

static inline void smc_put_be16(u8 *p, u16 v)
{
	p[0] = (u8)(v >> 8);
	p[1] = (u8)(v & 0xff);
}

static inline void smc_put_be24(u8 *p, u32 v)
{
	p[0] = (u8)(v >> 16 & 0xff);
	smc_put_be16(p + 1, (u16)(v & 0xffff));
}

static inline void smc_put_be32(u8 *p, u32 v)
{
	smc_put_be16(p, (u16)(v >> 16));
	smc_put_be16(p + 2, (u16)(v & 0xffff));
}

static inline void smc_put_be64(u8 *p, u64 v)
{
	smc_put_be32(p, (u32)(v >> 32));
	smc_put_be32(p + 4, (u32)(v & 0xffffffff));
}

#endif /* SMC_WIRE_SHIM_H */
