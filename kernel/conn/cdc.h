/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The CDC state of a connection and the decisions about it, for every transport (RFC 7609, 4.5 and
 * 4.7). The functions do not lock, sleep or allocate, may be called in any context, and also build in
 * user space, where tests/wire tests them.
 *
 * struct smc_cdc_tx belongs to the thread that sends, struct smc_cdc_rx to the thread that receives. The
 * transport serializes each of them. The other thread may read members marked "shared".
 */
#ifndef SMC_CONN_CDC_H
#define SMC_CONN_CDC_H

#include "../wire/cdc.h"

/* What this end has sent. */
struct smc_cdc_tx {
	u64 written;		/* end of the data that messages may tell of: the writer's; shared */
	u64 urgent;		/* end of the last urgent byte in it, 0 if there was none: the writer's; shared */
	u64 urgent_sent;	/* end of the last urgent byte that a message told of */
	struct smc_track prod;	/* end of the data that messages told of; .pos is shared */
	struct smc_track cons;	/* end of the peer's data that messages told to be read; .pos is shared */
	u16 seq;		/* of the last message */
	bool write_closed;	/* no message tells of more data; shared */
};

/* What the peer has sent. */
struct smc_cdc_rx {
	struct smc_track prod;	/* end of its data */
	struct smc_track cons;	/* end of our data that it has read; .pos is shared */
	u64 urgent;		/* end of its last urgent byte */
	u16 seq;		/* of its last message */
	u8 state;		/* closing flags of all its messages; shared */
};

/* What a message is made from, beside what was sent before. */
struct smc_cdc_now {
	u64 written;		/* end of the data that may be told, loaded after @close_flags */
	u64 urgent;		/* end of the last urgent byte, 0 if there was none, loaded after @written */
	u64 read;		/* end of the peer's data that its reader has consumed */
	u8 close_flags;		/* closing flags to send */
	bool full;		/* all of the peer's element is in use */
	bool replaces;		/* a message replaces the one before, whether the peer has seen that or not */
	u32 tx_size, rx_size;	/* bytes of the peer's element and of ours */
};

/* A message to send, and what counts as told once it is sent. */
struct smc_cdc_update {
	struct smc_cdc msg;	/* all but the token */
	struct smc_track prod, cons;
};

/* What a message of the peer brings. */
struct smc_cdc_delta {
	s64 data;		/* bytes that the peer has written; negative if its cursor cannot be */
	s64 space;		/* bytes that the peer has read; negative if its cursor cannot be */
	bool urgent;		/* the last byte before rx->prod is urgent, and was not before */
	bool blocked;		/* the peer has more to write than there is space */
	bool update_requested;		/* the peer wants to know how far we have read */
	u8 closing;		/* closing flags that are new */
};

/* What decides whether the peer is to be told of data that the application has read. */
struct smc_cdc_space {
	u32 unsignaled;		/* bytes that were read since the last message */
	u64 ahead;		/* bytes before the reader that it may leave there, unread or too few to wake it */
	u32 size;		/* bytes of the ring */
	u32 min_update;		/* bytes that are worth no message of their own */
	bool requested;		/* the peer has asked, or has to know that its urgent byte is read */
	bool blocked;		/* the peer has more to write than there was space */
	bool peer_waits_half;		/* writers that wait for space at the peer wait for half of the ring */
};

/* Immediate data, see docs/protocol.md, 12: number of the RMB, "blocked", and bytes read since the last message. */
#define SMC_CDC_IMM_RMB_SHIFT	24
#define SMC_CDC_IMM_BLOCKED	(1u << 23)
#define SMC_CDC_IMM_READ	(SMC_CDC_IMM_BLOCKED - 1)

/* smc_cdc_peer_can_receive() - does the peer's application still read? Any context. */
static inline bool smc_cdc_peer_can_receive(const struct smc_cdc_rx *rx)
{
	return !(READ_ONCE(rx->state) & (SMC_CDC_CLOSED | SMC_CDC_ABORT));
}

/* smc_cdc_is_late() - has a later message come before, over another link? Any context. */
static inline bool smc_cdc_is_late(const struct smc_cdc_rx *rx, u16 seq)
{
	return (s16)(seq - rx->seq) < 0;
}

u64 smc_cdc_sendable_end(const struct smc_cdc_tx *tx, const struct smc_cdc_rx *rx, u64 written, u64 urgent);
void smc_cdc_build(const struct smc_cdc_tx *tx, const struct smc_cdc_rx *rx, const struct smc_cdc_now *now,
		   struct smc_cdc_update *u);
void smc_cdc_sent(struct smc_cdc_tx *tx, const struct smc_cdc_update *u);
int smc_cdc_recv(struct smc_cdc_rx *rx, const struct smc_cdc *msg, u64 sent, u32 rx_size, u32 tx_size,
		 struct smc_cdc_delta *delta);
bool smc_cdc_should_update_cons(const struct smc_cdc_space *s);
bool smc_cdc_fits_imm(const struct smc_cdc_tx *tx, const struct smc_cdc_update *u);
u32 smc_cdc_encode_imm(const struct smc_cdc_tx *tx, const struct smc_cdc_update *u, u8 rmb);
int smc_cdc_decode_imm(const struct smc_cdc_rx *rx, u32 imm, u32 len, u32 rx_size, u32 tx_size, struct smc_cdc *msg);

#endif /* SMC_CONN_CDC_H */
