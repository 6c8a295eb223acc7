/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Connection Data Control (RFC 7609, A.4; docs/protocol.md, 9 and 10): how much data an end of a
 * connection has written and read, and its closing flags. SMC-R sends 44 bytes, SMC-D writes 32 bytes
 * before the peer's ring. The functions may be called in any context.
 */
#ifndef SMC_WIRE_CDC_H
#define SMC_WIRE_CDC_H

#include "cursor.h"

#define SMC_CDC_TYPE		0xfe
#define SMC_CDC_R_LEN		44
#define SMC_CDC_R_MIN		26	/* what a receiver needs of it */
#define SMC_CDC_D_LEN		32
/* Offsets of the two words that a receiver of SMC-D reads, each by one load. */
#define SMC_CDC_D_PROD		8
#define SMC_CDC_D_CONS		16

/* Producer flags */
#define SMC_CDC_BLOCKED		0x80	/* B: the producer has more data than the ring has space */
#define SMC_CDC_URGENT_PENDING	0x40	/* P: an urgent byte is going to be written */
#define SMC_CDC_URGENT		0x20	/* U: the byte before the cursor is urgent */
#define SMC_CDC_UPDATE		0x10	/* R: asks for a consumer cursor update */
#define SMC_CDC_FAILOVER	0x08	/* F, SMC-R: only token and sequence number are valid */

/* Beside the producer cursor of SMC-D: U, if there, is of the same message. An extension of this module, see docs/protocol.md, 10. */
#define SMC_CDC_D_HAS_URGENT	0x01

/* Closing flags. A flag that was sent once is set in every later message. */
#define SMC_CDC_DONE		0x80	/* D: done writing */
#define SMC_CDC_CLOSED		0x40	/* C: closed */
#define SMC_CDC_ABORT		0x20	/* A: aborted */

struct smc_cdc {
	u32 token;		/* SMC-R: names the connection at the receiver */
	u16 seq;		/* SMC-R: sequence number */
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
