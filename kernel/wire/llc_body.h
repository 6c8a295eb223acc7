/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Functions that the files of the LLC codec share. llc.c does the four bytes that all messages begin with and
 * calls llc_link.c for messages about links, llc_rkey.c for those about keys of buffers:
 *
 * decode	reads the rest of a message, of which m->length bytes are there, into zeroed fields;
 *		0 or -EPROTO
 * length	bytes that the message will take; 0 if a field does not fit
 * encode	writes the rest into zeroed bytes
 */
#ifndef SMC_WIRE_LLC_BODY_H
#define SMC_WIRE_LLC_BODY_H

#include "llc.h"

/* Offsets in each message */
enum {
	LLC_TYPE = 0,
	LLC_LENGTH = 1,
	LLC_REASON = 2,		/* version 1; in version 2 the length goes on here */
	LLC_FLAGS = 3,
};

#define LLC_TYPE_MASK		0x0f

static inline u16 smc_llc_swab16(u16 v)
{
	return (u16)(v << 8 | v >> 8);
}

static inline void smc_llc_put16(const struct smc_llc *m, u8 *p, u16 v)
{
	smc_put_be16(p, m->swapped ? smc_llc_swab16(v) : v);
}

int smc_llc_link_decode(const u8 *buf, struct smc_llc *m);
size_t smc_llc_link_length(const struct smc_llc *m);
void smc_llc_link_encode(const struct smc_llc *m, u8 *buf);

int smc_llc_rkey_decode(const u8 *buf, struct smc_llc *m);
size_t smc_llc_rkey_length(const struct smc_llc *m);
void smc_llc_rkey_encode(const struct smc_llc *m, u8 *buf);

#endif /* SMC_WIRE_LLC_BODY_H */
