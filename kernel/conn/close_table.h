/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How connections end: (state, event) -> (state, actions). Data only, which close.c runs in the
 * kernel and tests run in user space; RFC 7609, 4.8, told apart by what each side has said so far.
 *
 * What a side says to the other is sticky and goes one way: nothing, D (done writing), C (closed),
 * or A (abort) at any time. The numbers in the names of states are those that user space knows.
 */
#ifndef SMC_CONN_CLOSE_TABLE_H
#define SMC_CONN_CLOSE_TABLE_H

#include "../wire/shim.h"

enum smc_close_state {
	SMC_CLOSE_ACTIVE,	/* both sides may write */
	SMC_CLOSE_PCW1_D,	/* we have said D */
	SMC_CLOSE_PCW1_C,	/* we have said C */
	SMC_CLOSE_PCW2_D,	/* we D, then the peer D */
	SMC_CLOSE_PCW2_C,	/* we C, the peer D */
	SMC_CLOSE_AFCW,		/* we D, then the peer C */
	SMC_CLOSE_ACW1_D,	/* the peer has said D */
	SMC_CLOSE_ACW1_C,	/* the peer has said C */
	SMC_CLOSE_ACW2_D,	/* the peer D, then we D */
	SMC_CLOSE_ACW2_C,	/* the peer C, then we D */
	SMC_CLOSE_PFCW,		/* the peer D, then we C */
	SMC_CLOSE_PAW,		/* we have said A, and wait for the peer to stop writing */
	SMC_CLOSE_PABORT,	/* over; the application has yet to close its socket */
	SMC_CLOSE_CLOSED,	/* over on both sides; the connection has nothing left */
	SMC_CLOSE_STATES
};

enum smc_close_event {
	/* from the application */
	SMC_CLOSE_SHUT,		/* shutdown(SHUT_WR) */
	SMC_CLOSE_CLOSE,	/* close(), with everything read */
	SMC_CLOSE_ABORT,	/* close() with unread data, or with SO_LINGER and no time; disconnect */
	SMC_CLOSE_LOST,		/* it has sent something to a peer that has closed */
	/* from the peer */
	SMC_CLOSE_PEER_D,
	SMC_CLOSE_PEER_C,
	SMC_CLOSE_PEER_A,
	/* from elsewhere */
	SMC_CLOSE_RESET,	/* the TCP connection beneath is gone (RFC 7609, 4.8.2) */
	SMC_CLOSE_GONE,		/* the link group is gone: nobody hears us any more */
	SMC_CLOSE_TIMEOUT,	/* the peer has not answered our C or A */
	SMC_CLOSE_EVENTS
};

/* What is to be done, in this order. */
#define SMC_CLOSE_SEND_D	0x01	/* tell the peer */
#define SMC_CLOSE_SEND_C	0x02
#define SMC_CLOSE_SEND_A	0x04
#define SMC_CLOSE_ERR_RESET	0x08	/* the application hears ECONNRESET */
#define SMC_CLOSE_ERR_ABORTED	0x10	/* ... ECONNABORTED */
#define SMC_CLOSE_ERR_PIPE	0x20	/* ... EPIPE */
#define SMC_CLOSE_WAKE		0x40	/* whoever waits looks again */
#define SMC_CLOSE_TIMER		0x80	/* the peer has a minute to answer */
#define SMC_CLOSE_END		0x100	/* buffers, token and place in the group are given back */

struct smc_close_step {
	u8 next;		/* enum smc_close_state; 0 with no actions: the event changes nothing */
	u16 actions;
	bool valid;
};

/* What a state means for who reads, who writes and who looks from outside. */
struct smc_close_meaning {
	u8 code;		/* the state's number in sock_diag */
	bool eof;		/* the peer sends nothing more */
	bool shut;		/* the application may not send: EPIPE */
	bool deaf;		/* the peer reads nothing more: the first data sent is lost, see LOST */
	bool over;		/* no byte moves any more; what has arrived can be read, unless an error was told */
};

static const struct smc_close_meaning smc_close_meanings[SMC_CLOSE_STATES] = {
	[SMC_CLOSE_ACTIVE] = { .code = 1 },
	[SMC_CLOSE_PCW1_D] = { .code = 20, .shut = true },
	[SMC_CLOSE_PCW1_C] = { .code = 20, .shut = true },
	[SMC_CLOSE_PCW2_D] = { .code = 21, .shut = true, .eof = true },
	[SMC_CLOSE_PCW2_C] = { .code = 21, .shut = true, .eof = true },
	[SMC_CLOSE_AFCW]   = { .code = 24, .shut = true, .eof = true },
	[SMC_CLOSE_ACW1_D] = { .code = 22, .eof = true },
	[SMC_CLOSE_ACW1_C] = { .code = 22, .eof = true, .deaf = true },
	[SMC_CLOSE_ACW2_D] = { .code = 23, .shut = true, .eof = true },
	[SMC_CLOSE_ACW2_C] = { .code = 23, .shut = true, .eof = true },
	[SMC_CLOSE_PFCW]   = { .code = 25, .shut = true, .eof = true },
	[SMC_CLOSE_PAW]    = { .code = 26, .shut = true, .eof = true, .over = true },
	[SMC_CLOSE_PABORT] = { .code = 27, .shut = true, .eof = true, .over = true },
	[SMC_CLOSE_CLOSED] = { .code = 7, .shut = true, .eof = true, .over = true },
};

#define SMC_CLOSE_STEP(state, act) { .valid = true, .next = SMC_CLOSE_##state, .actions = (act) }
/* Broken while the application has the socket: the peer hears of it, the application gets an error. */
#define SMC_CLOSE_TO_PABORT		SMC_CLOSE_STEP(PABORT, SMC_CLOSE_SEND_A | SMC_CLOSE_ERR_RESET | SMC_CLOSE_WAKE)
#define SMC_CLOSE_TO_PABORT_GONE		SMC_CLOSE_STEP(PABORT, SMC_CLOSE_ERR_ABORTED | SMC_CLOSE_WAKE)
/* The same, but the peer may still write: our buffer stays its until it says that it will not. */
#define SMC_CLOSE_TO_PAW_RESET		SMC_CLOSE_STEP(PAW, SMC_CLOSE_SEND_A | SMC_CLOSE_ERR_RESET | SMC_CLOSE_WAKE | SMC_CLOSE_TIMER)
/* We break it: the peer may still write until it says that it will not. */
#define SMC_CLOSE_TO_PAW	SMC_CLOSE_STEP(PAW, SMC_CLOSE_SEND_A | SMC_CLOSE_WAKE | SMC_CLOSE_TIMER)
#define SMC_CLOSE_TO_CLOSED		SMC_CLOSE_STEP(CLOSED, SMC_CLOSE_END)
#define SMC_CLOSE_TO_CLOSED_ABORT	SMC_CLOSE_STEP(CLOSED, SMC_CLOSE_SEND_A | SMC_CLOSE_WAKE | SMC_CLOSE_END)

/* Whoever looks only at meanings has this, too. */
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
	 * The application has closed its socket: from here on nobody is told anything. An abort is not
	 * answered: our C is before it, so that the peer may have given back its buffer, where SMC-D
	 * would write the answer over another connection's cursors.
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
	/* A peer that has closed will not write: we need not wait for it when we close, too. */
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
	/*
	 * To the application a peer that aborts what it has closed before looks like one that is
	 * silent, as with TCP, until it sends something.
	 */
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
