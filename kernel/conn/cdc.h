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

/* State of the messages that this end has sent. */
struct smc_cdc_tx {
	u64 written;		/* end of the data that messages may report; written by the writer; shared */
	u64 urgent;		/* end of the last urgent byte in it, 0 if none; written by the writer; shared */
	u64 urgent_sent;	/* end of the last urgent byte that a message has reported */
	bool urgent_again;	/* that message may be lost */
	u64 most_sent;		/* the highest producer cursor sent, which smc_cdc_rewind() does not lower */
	struct smc_track prod;	/* the last producer cursor sent; .pos is shared */
	struct smc_track cons;	/* the last consumer cursor sent; .pos is shared */
	u16 seq;		/* of the last message */
	bool write_closed;	/* messages report no more data than up to closed_end; shared */
	u64 closed_end;
	u64 limit;		/* messages report no data beyond it for now; 0: there is none. See smc_cdc_limit() */
};

/* State of the messages that the peer has sent. */
struct smc_cdc_rx {
	struct smc_track prod;	/* its producer cursor: end of its data */
	struct smc_track cons;	/* its consumer cursor: end of our data that it has read; .pos is shared */
	u64 urgent;		/* end of its last urgent byte */
	u16 seq;		/* of its last message */
	u8 state;		/* closing flags of all its messages; shared */
};

/* The state that a message is built from, beside what was sent before. */
struct smc_cdc_now {
	u64 written;		/* end of the data to report, loaded after @close_flags */
	u64 urgent;		/* end of the last urgent byte, 0 if none, loaded after @written */
	u64 read;		/* end of the peer's data that the application has read */
	u8 close_flags;		/* closing flags to send */
	bool full;		/* the peer's receive buffer is full */
	bool replaces;		/* a message overwrites the one before, whether the peer has seen that or not */
	u32 tx_size, rx_size;	/* bytes of the peer's receive buffer and of ours */
};

/* A message to send, and the cursors that are sent with it. */
struct smc_cdc_update {
	struct smc_cdc msg;	/* all but the token */
	struct smc_track prod, cons;
};

/* Changes by a message of the peer. */
struct smc_cdc_delta {
	s64 data;		/* bytes that the peer has written; negative if its cursor is impossible */
	s64 space;		/* bytes that the peer has read; negative if its cursor is impossible */
	bool urgent;		/* the last byte before rx->prod is urgent, and was not before */
	bool blocked;		/* the peer has more data than there is space */
	bool update_requested;	/* the peer asks for a consumer update */
	u8 closing;		/* closing flags that are new */
};

/* The state that decides whether a consumer update is due. */
struct smc_cdc_space {
	u32 unsignaled;		/* bytes that were read since the last message */
	u64 ahead;		/* bytes that the reader may leave in the ring, unread or too few to wake it */
	u32 size;		/* bytes of the ring */
	u32 min_update;		/* no update for this many bytes or fewer */
	bool requested;		/* the peer asks for an update, or needs one because its urgent byte is read */
	bool blocked;		/* the peer has more data than there was space */
	bool peer_waits_half;	/* writers of the peer wait for half of the ring */
	bool reader_waits;	/* the reader waits for more data than there is, and the peer may wait for space */
};

/* Immediate data (docs/protocol.md, 12): index of the RMB, WRITE_BLOCKED, and bytes read since the last message. */
#define SMC_CDC_IMM_RMB_SHIFT	24
#define SMC_CDC_IMM_BLOCKED	(1u << 23)
#define SMC_CDC_IMM_READ	(SMC_CDC_IMM_BLOCKED - 1)

/* smc_cdc_peer_can_receive() - returns whether the peer has neither closed nor aborted the connection */
static inline bool smc_cdc_peer_can_receive(const struct smc_cdc_rx *rx)
{
	return !(READ_ONCE(rx->state) & (SMC_CDC_CLOSED | SMC_CDC_ABORT));
}

/* smc_cdc_is_late() - returns whether a later message has come before, over another link */
static inline bool smc_cdc_is_late(const struct smc_cdc_rx *rx, u16 seq)
{
	return (s16)(seq - rx->seq) < 0;
}

/* smc_cdc_is_gap() - does failover validation show that messages before a number were lost (RFC 7609, 4.6)? */
static inline bool smc_cdc_is_gap(const struct smc_cdc_rx *rx, u16 seq)
{
	return (s16)(rx->seq - seq) < 0;
}

u64 smc_cdc_sendable_end(const struct smc_cdc_tx *tx, const struct smc_cdc_rx *rx, u64 written, u64 urgent);
void smc_cdc_build(const struct smc_cdc_tx *tx, const struct smc_cdc_rx *rx, const struct smc_cdc_now *now,
		   struct smc_cdc_update *u);
void smc_cdc_sent(struct smc_cdc_tx *tx, const struct smc_cdc_update *u);
void smc_cdc_stop(struct smc_cdc_tx *tx);
void smc_cdc_limit(struct smc_cdc_tx *tx, u64 pos, u32 size);
u32 smc_cdc_catch_up(struct smc_cdc_tx *tx, const struct smc_cdc_rx *rx, u32 size);
void smc_cdc_rewind(struct smc_cdc_tx *tx, u64 pos, u32 size);
int smc_cdc_recv(struct smc_cdc_rx *rx, const struct smc_cdc *msg, u64 sent, u32 rx_size, u32 tx_size,
		 struct smc_cdc_delta *delta);
bool smc_cdc_should_update_cons(const struct smc_cdc_space *s);
bool smc_cdc_fits_imm(const struct smc_cdc_tx *tx, const struct smc_cdc_update *u);
u32 smc_cdc_encode_imm(const struct smc_cdc_tx *tx, const struct smc_cdc_update *u, u8 rmb);
int smc_cdc_decode_imm(const struct smc_cdc_rx *rx, u32 imm, u32 len, u32 rx_size, u32 tx_size, struct smc_cdc *msg);

#endif /* SMC_CONN_CDC_H */
