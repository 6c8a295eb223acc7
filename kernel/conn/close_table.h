/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How connections end: (state, event) -> (state, actions). This is data only, which close.c runs in the kernel and
 * tests/conn runs in user space. The states of RFC 7609, 4.8, are split by the closing flags that each side has sent.
 *
 * A side sends no flag, then D (done writing), then C (closed), or A (abort) at any time. A flag stays set. docs/closing.md
 * draws the table.
 */
#ifndef SMC_CONN_CLOSE_TABLE_H
#define SMC_CONN_CLOSE_TABLE_H

#include "../uapi/smc_diag_gen.h"
#include "../wire/shim.h"

enum smc_close_state {
	SMC_CLOSE_ACTIVE,	/* both sides may write */
	SMC_CLOSE_PCW1_D,	/* we have sent D */
	SMC_CLOSE_PCW1_C,	/* we have sent C */
	SMC_CLOSE_PCW2_D,	/* we have sent D, the peer D */
	SMC_CLOSE_PCW2_C,	/* we have sent C, the peer D */
	SMC_CLOSE_AFCW,		/* we have sent D, the peer C */
	SMC_CLOSE_ACW1_D,	/* the peer has sent D */
	SMC_CLOSE_ACW1_C,	/* the peer has sent C */
	SMC_CLOSE_ACW2_D,	/* the peer has sent D, then we D */
	SMC_CLOSE_ACW2_C,	/* the peer has sent C, then we D */
	SMC_CLOSE_PFCW,		/* the peer has sent D, then we C */
	SMC_CLOSE_PAW,		/* we have sent A, and wait until the peer stops writing */
	SMC_CLOSE_PABORT,	/* over; the socket is still open */
	SMC_CLOSE_CLOSED,	/* over; the connection is released */
	SMC_CLOSE_STATES
};

enum smc_close_event {
	/* from the application */
	SMC_CLOSE_SHUT,		/* shutdown(SHUT_WR) */
	SMC_CLOSE_CLOSE,	/* close(), with everything read */
	SMC_CLOSE_ABORT,	/* close() with unread data, or with SO_LINGER and no time; disconnect */
	SMC_CLOSE_LOST,		/* it has sent data to a peer that has closed */
	/* from the peer */
	SMC_CLOSE_PEER_D,
	SMC_CLOSE_PEER_C,
	SMC_CLOSE_PEER_A,
	/* from elsewhere */
	SMC_CLOSE_RESET,	/* the TCP connection beneath is gone (RFC 7609, 4.8.2) */
	SMC_CLOSE_GONE,		/* the link group has ended: nothing reaches the peer */
	SMC_CLOSE_TIMEOUT,	/* the peer has not answered our C or A */
	SMC_CLOSE_EVENTS
};

/* Actions, carried out in this order */
#define SMC_CLOSE_SEND_D	0x01	/* send the peer D */
#define SMC_CLOSE_SEND_C	0x02
#define SMC_CLOSE_SEND_A	0x04
#define SMC_CLOSE_ERR_RESET	0x08	/* sk_err is set to ECONNRESET */
#define SMC_CLOSE_ERR_ABORTED	0x10	/* to ECONNABORTED */
#define SMC_CLOSE_ERR_PIPE	0x20	/* to EPIPE */
#define SMC_CLOSE_WAKE		0x40	/* wake all threads that wait */
#define SMC_CLOSE_TIMER		0x80	/* start the timer that limits the wait for the peer */
#define SMC_CLOSE_END		0x100	/* release buffers, token and slot in the group */

struct smc_close_step {
	u8 next;		/* enum smc_close_state */
	u16 actions;
	bool valid;
};

/* The meaning of a state for readers, writers and sock_diag. */
struct smc_close_meaning {
	u8 code;		/* SMC_UAPI_STATE_* in sock_diag */
	bool eof;		/* the peer sends no more data */
	bool shut;		/* the application may not send: EPIPE */
	bool deaf;		/* the peer reads no more: data that is sent is lost, see LOST */
	bool over;		/* no data moves any more; received data can be read if sk_err is not set */
};

static const struct smc_close_meaning smc_close_meanings[SMC_CLOSE_STATES] = {
	[SMC_CLOSE_ACTIVE] = { .code = SMC_UAPI_STATE_ACTIVE },
	[SMC_CLOSE_PCW1_D] = { .code = SMC_UAPI_STATE_PEER_CLOSE_WAIT_1, .shut = true },
	[SMC_CLOSE_PCW1_C] = { .code = SMC_UAPI_STATE_PEER_CLOSE_WAIT_1, .shut = true },
	[SMC_CLOSE_PCW2_D] = { .code = SMC_UAPI_STATE_PEER_CLOSE_WAIT_2, .shut = true, .eof = true },
	[SMC_CLOSE_PCW2_C] = { .code = SMC_UAPI_STATE_PEER_CLOSE_WAIT_2, .shut = true, .eof = true },
	[SMC_CLOSE_AFCW]   = { .code = SMC_UAPI_STATE_APP_FIN_CLOSE_WAIT, .shut = true, .eof = true },
	[SMC_CLOSE_ACW1_D] = { .code = SMC_UAPI_STATE_APP_CLOSE_WAIT_1, .eof = true },
	[SMC_CLOSE_ACW1_C] = { .code = SMC_UAPI_STATE_APP_CLOSE_WAIT_1, .eof = true, .deaf = true },
	[SMC_CLOSE_ACW2_D] = { .code = SMC_UAPI_STATE_APP_CLOSE_WAIT_2, .shut = true, .eof = true },
	[SMC_CLOSE_ACW2_C] = { .code = SMC_UAPI_STATE_APP_CLOSE_WAIT_2, .shut = true, .eof = true },
	[SMC_CLOSE_PFCW]   = { .code = SMC_UAPI_STATE_PEER_FIN_CLOSE_WAIT, .shut = true, .eof = true },
	[SMC_CLOSE_PAW]    = { .code = SMC_UAPI_STATE_PEER_ABORT_WAIT, .shut = true, .eof = true, .over = true },
	[SMC_CLOSE_PABORT] = { .code = SMC_UAPI_STATE_PROCESS_ABORT, .shut = true, .eof = true, .over = true },
	[SMC_CLOSE_CLOSED] = { .code = SMC_UAPI_STATE_CLOSED, .shut = true, .eof = true, .over = true },
};

#define SMC_CLOSE_STEP(state, act) { .valid = true, .next = SMC_CLOSE_##state, .actions = (act) }
/* Over while the socket is open: the application gets an error; the peer an abort, unless the group is gone. */
#define SMC_CLOSE_TO_PABORT		SMC_CLOSE_STEP(PABORT, SMC_CLOSE_SEND_A | SMC_CLOSE_ERR_RESET | SMC_CLOSE_WAKE)
#define SMC_CLOSE_TO_PABORT_GONE	SMC_CLOSE_STEP(PABORT, SMC_CLOSE_ERR_ABORTED | SMC_CLOSE_WAKE)
/* An abort, after which the peer may still write until it answers. */
#define SMC_CLOSE_TO_PAW_RESET	SMC_CLOSE_STEP(PAW, SMC_CLOSE_SEND_A | SMC_CLOSE_ERR_RESET | SMC_CLOSE_WAKE | SMC_CLOSE_TIMER)
#define SMC_CLOSE_TO_PAW		SMC_CLOSE_STEP(PAW, SMC_CLOSE_SEND_A | SMC_CLOSE_WAKE | SMC_CLOSE_TIMER)
#define SMC_CLOSE_TO_CLOSED	SMC_CLOSE_STEP(CLOSED, SMC_CLOSE_END)
#define SMC_CLOSE_TO_CLOSED_ABORT	SMC_CLOSE_STEP(CLOSED, SMC_CLOSE_SEND_A | SMC_CLOSE_WAKE | SMC_CLOSE_END)

/* Unused where only the meanings are used. */
__attribute__((unused))
static const struct smc_close_step smc_close_table[SMC_CLOSE_STATES][SMC_CLOSE_EVENTS] = {
	[SMC_CLOSE_ACTIVE] = {
		[SMC_CLOSE_SHUT]    = SMC_CLOSE_STEP(PCW1_D, SMC_CLOSE_SEND_D | SMC_CLOSE_WAKE),
		[SMC_CLOSE_CLOSE]   = SMC_CLOSE_STEP(PCW1_C, SMC_CLOSE_SEND_C | SMC_CLOSE_TIMER),
		[SMC_CLOSE_ABORT]   = SMC_CLOSE_TO_PAW,
		[SMC_CLOSE_PEER_D]  = SMC_CLOSE_STEP(ACW1_D, SMC_CLOSE_WAKE),
		[SMC_CLOSE_PEER_C]  = SMC_CLOSE_STEP(ACW1_C, SMC_CLOSE_WAKE),
		[SMC_CLOSE_PEER_A]  = SMC_CLOSE_TO_PABORT,
		[SMC_CLOSE_RESET]   = SMC_CLOSE_TO_PAW_RESET,
		[SMC_CLOSE_GONE]    = SMC_CLOSE_TO_PABORT_GONE,
	},
	[SMC_CLOSE_PCW1_D] = {
		[SMC_CLOSE_CLOSE]   = SMC_CLOSE_STEP(PCW1_C, SMC_CLOSE_SEND_C | SMC_CLOSE_TIMER),
		[SMC_CLOSE_ABORT]   = SMC_CLOSE_TO_PAW,
		[SMC_CLOSE_PEER_D]  = SMC_CLOSE_STEP(PCW2_D, SMC_CLOSE_WAKE),
		[SMC_CLOSE_PEER_C]  = SMC_CLOSE_STEP(AFCW, SMC_CLOSE_WAKE),
		[SMC_CLOSE_PEER_A]  = SMC_CLOSE_TO_PABORT,
		[SMC_CLOSE_RESET]   = SMC_CLOSE_TO_PAW_RESET,
		[SMC_CLOSE_GONE]    = SMC_CLOSE_TO_PABORT_GONE,
	},
	/*
	 * The socket is closed, so there is no one to wake. An abort is not answered: the peer may have received our C
	 * before and reused its DMB, and an answer by SMC-D would overwrite the cursors of another connection.
	 */
	[SMC_CLOSE_PCW1_C] = {
		[SMC_CLOSE_ABORT]   = SMC_CLOSE_TO_PAW,
		[SMC_CLOSE_PEER_D]  = SMC_CLOSE_STEP(PCW2_C, 0),
		[SMC_CLOSE_PEER_C]  = SMC_CLOSE_TO_CLOSED,
		[SMC_CLOSE_PEER_A]  = SMC_CLOSE_TO_CLOSED,
		[SMC_CLOSE_GONE]    = SMC_CLOSE_TO_CLOSED,
		[SMC_CLOSE_TIMEOUT] = SMC_CLOSE_TO_PAW,
	},
	[SMC_CLOSE_PCW2_D] = {
		[SMC_CLOSE_CLOSE]   = SMC_CLOSE_STEP(PCW2_C, SMC_CLOSE_SEND_C | SMC_CLOSE_TIMER),
		[SMC_CLOSE_ABORT]   = SMC_CLOSE_TO_PAW,
		[SMC_CLOSE_PEER_C]  = SMC_CLOSE_STEP(AFCW, 0),
		[SMC_CLOSE_PEER_A]  = SMC_CLOSE_TO_PABORT,
		[SMC_CLOSE_RESET]   = SMC_CLOSE_TO_PAW_RESET,
		[SMC_CLOSE_GONE]    = SMC_CLOSE_TO_PABORT_GONE,
	},
	[SMC_CLOSE_PCW2_C] = {
		[SMC_CLOSE_ABORT]   = SMC_CLOSE_TO_PAW,
		[SMC_CLOSE_PEER_C]  = SMC_CLOSE_TO_CLOSED,
		[SMC_CLOSE_PEER_A]  = SMC_CLOSE_TO_CLOSED,
		[SMC_CLOSE_GONE]    = SMC_CLOSE_TO_CLOSED,
		[SMC_CLOSE_TIMEOUT] = SMC_CLOSE_TO_PAW,
	},
	/* A peer that has closed does not write, so we need not wait for it when we close, too. */
	[SMC_CLOSE_AFCW] = {
		[SMC_CLOSE_CLOSE]   = SMC_CLOSE_STEP(CLOSED, SMC_CLOSE_SEND_C | SMC_CLOSE_END),
		[SMC_CLOSE_ABORT]   = SMC_CLOSE_TO_CLOSED_ABORT,
		[SMC_CLOSE_PEER_A]  = SMC_CLOSE_STEP(PABORT, SMC_CLOSE_SEND_A | SMC_CLOSE_WAKE),
		[SMC_CLOSE_RESET]   = SMC_CLOSE_TO_PABORT,
		[SMC_CLOSE_GONE]    = SMC_CLOSE_TO_PABORT_GONE,
	},
	[SMC_CLOSE_ACW1_D] = {
		[SMC_CLOSE_SHUT]    = SMC_CLOSE_STEP(ACW2_D, SMC_CLOSE_SEND_D | SMC_CLOSE_WAKE),
		[SMC_CLOSE_CLOSE]   = SMC_CLOSE_STEP(PFCW, SMC_CLOSE_SEND_C | SMC_CLOSE_TIMER),
		[SMC_CLOSE_ABORT]   = SMC_CLOSE_TO_PAW,
		[SMC_CLOSE_PEER_C]  = SMC_CLOSE_STEP(ACW1_C, SMC_CLOSE_WAKE),
		[SMC_CLOSE_PEER_A]  = SMC_CLOSE_TO_PABORT,
		[SMC_CLOSE_RESET]   = SMC_CLOSE_TO_PAW_RESET,
		[SMC_CLOSE_GONE]    = SMC_CLOSE_TO_PABORT_GONE,
	},
	/* A peer that has closed may abort. As with TCP, the application learns of that when it sends data. */
	[SMC_CLOSE_ACW1_C] = {
		[SMC_CLOSE_SHUT]    = SMC_CLOSE_STEP(ACW2_C, SMC_CLOSE_SEND_D | SMC_CLOSE_WAKE),
		[SMC_CLOSE_CLOSE]   = SMC_CLOSE_STEP(CLOSED, SMC_CLOSE_SEND_C | SMC_CLOSE_END),
		[SMC_CLOSE_ABORT]   = SMC_CLOSE_TO_CLOSED_ABORT,
		[SMC_CLOSE_LOST]    = SMC_CLOSE_STEP(PABORT, SMC_CLOSE_SEND_A | SMC_CLOSE_ERR_PIPE | SMC_CLOSE_WAKE),
		[SMC_CLOSE_PEER_A]  = SMC_CLOSE_STEP(PABORT, SMC_CLOSE_SEND_A | SMC_CLOSE_WAKE),
		[SMC_CLOSE_RESET]   = SMC_CLOSE_TO_PABORT,
		[SMC_CLOSE_GONE]    = SMC_CLOSE_TO_PABORT_GONE,
	},
	[SMC_CLOSE_ACW2_D] = {
		[SMC_CLOSE_CLOSE]   = SMC_CLOSE_STEP(PFCW, SMC_CLOSE_SEND_C | SMC_CLOSE_TIMER),
		[SMC_CLOSE_ABORT]   = SMC_CLOSE_TO_PAW,
		[SMC_CLOSE_PEER_C]  = SMC_CLOSE_STEP(ACW2_C, 0),
		[SMC_CLOSE_PEER_A]  = SMC_CLOSE_TO_PABORT,
		[SMC_CLOSE_RESET]   = SMC_CLOSE_TO_PAW_RESET,
		[SMC_CLOSE_GONE]    = SMC_CLOSE_TO_PABORT_GONE,
	},
	[SMC_CLOSE_ACW2_C] = {
		[SMC_CLOSE_CLOSE]   = SMC_CLOSE_STEP(CLOSED, SMC_CLOSE_SEND_C | SMC_CLOSE_END),
		[SMC_CLOSE_ABORT]   = SMC_CLOSE_TO_CLOSED_ABORT,
		[SMC_CLOSE_PEER_A]  = SMC_CLOSE_STEP(PABORT, SMC_CLOSE_SEND_A | SMC_CLOSE_WAKE),
		[SMC_CLOSE_RESET]   = SMC_CLOSE_TO_PABORT,
		[SMC_CLOSE_GONE]    = SMC_CLOSE_TO_PABORT_GONE,
	},
	[SMC_CLOSE_PFCW] = {
		[SMC_CLOSE_ABORT]   = SMC_CLOSE_TO_PAW,
		[SMC_CLOSE_PEER_C]  = SMC_CLOSE_TO_CLOSED,
		[SMC_CLOSE_PEER_A]  = SMC_CLOSE_TO_CLOSED,
		[SMC_CLOSE_GONE]    = SMC_CLOSE_TO_CLOSED,
		[SMC_CLOSE_TIMEOUT] = SMC_CLOSE_TO_PAW,
	},
	[SMC_CLOSE_PAW] = {
		[SMC_CLOSE_PEER_C]  = SMC_CLOSE_TO_CLOSED,
		[SMC_CLOSE_PEER_A]  = SMC_CLOSE_TO_CLOSED,
		[SMC_CLOSE_GONE]    = SMC_CLOSE_TO_CLOSED,
		[SMC_CLOSE_TIMEOUT] = SMC_CLOSE_TO_CLOSED,
	},
	[SMC_CLOSE_PABORT] = {
		[SMC_CLOSE_CLOSE]   = SMC_CLOSE_TO_CLOSED,
		[SMC_CLOSE_ABORT]   = SMC_CLOSE_TO_CLOSED,
	},
};

#endif /* SMC_CONN_CLOSE_TABLE_H */
