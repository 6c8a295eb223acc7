/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * CDC, by which the two ends of a connection tell each other what has been written, read, and said
 * about closing. SMC-R sends 44 bytes, SMC-D leaves 32 bytes before the peer's ring. All functions:
 * any context; nothing sleeps, nothing is allocated.
 */
#ifndef SMC_WIRE_CDC_H
#define SMC_WIRE_CDC_H

#include "cursor.h"

#define SMC_CDC_TYPE		0xfe
#define SMC_CDC_R_LEN		44
#define SMC_CDC_R_MIN		26	/* what a receiver needs of it */
#define SMC_CDC_D_LEN		32
/* Where the two words are in it that a receiver of SMC-D reads, each at once. */
#define SMC_CDC_D_PROD		8
#define SMC_CDC_D_CONS		16

/* Of the producer, beside its cursor. */
#define SMC_CDC_BLOCKED		0x80	/* B: has more to write than there is space */
#define SMC_CDC_URGENT_PENDING	0x40	/* P: an urgent byte is going to be written */
#define SMC_CDC_URGENT		0x20	/* U: the byte before the cursor is urgent */
#define SMC_CDC_UPDATE		0x10	/* R: wants to know the consumer's cursor */
#define SMC_CDC_FAILOVER	0x08	/* F, SMC-R: nothing but token and number counts */

/* About closing; what has been said once is in every message from then on. */
#define SMC_CDC_DONE		0x80	/* D: writes nothing more */
#define SMC_CDC_CLOSED		0x40	/* C: has closed */
#define SMC_CDC_ABORT		0x20	/* A: has broken off */

struct smc_cdc {
	u32 token;		/* SMC-R: the receiver's */
	u16 seq;		/* SMC-R */
	struct smc_cursor prod;	/* in the receiver's ring */
	struct smc_cursor cons;	/* in the sender's own ring */
	u8 flags;
	u8 state;
};

int smc_cdc_r_decode(const u8 *buf, size_t len, struct smc_cdc *c);
void smc_cdc_r_encode(const struct smc_cdc *c, u8 buf[SMC_CDC_R_LEN]);
void smc_cdc_d_decode(u64 prod, u64 cons, struct smc_cdc *c);
void smc_cdc_d_encode(const struct smc_cdc *c, u8 buf[SMC_CDC_D_LEN]);

#endif /* SMC_WIRE_CDC_H */
