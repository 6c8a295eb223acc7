/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One direction of a connection of SMC-R whose links are lost, one after the other (RFC 7609, 4.6; docs/protocol.md, 9.4).
 * The module must do what this model does. Each wrong order or omission that a test uses is here too, by a name that begins
 * with W_.
 *
 * The sender posts messages by its current link, each after the data that it reports. They arrive in order: the adapter of the
 * receiver stores the data, puts the message into the completion queue of the link, and acknowledges it. Each queue is polled
 * at any moment. Either end may lose a link first. Updates of the consumer cursor go the other way; each has the whole state,
 * so the last one that was sent by a link stands for those before.
 *
 *   N       the size of the receiver's ring
 *   SND     the size of the sender's ring
 *   TOTAL   the number of bytes that the writer has at most; it may close at any moment before
 *   LAST    the number of the link that is never lost; the first one is 0
 *   QUEUE   how many messages may be under way at once
 *   IMM     messages may be immediate data
 *   LOSES   an adapter may fail so that it has acknowledged what it has not stored (RFC 7609, 4.6.1)
 *   URGENT  the first byte is urgent; not with IMM
 *   SHUTS   the writer may shut down before it closes
 *   STRAY   data of a link that was lost may come until the receiver has stopped it, too, while the receiver may send by the last
 *           link all the time; not with IMM or URGENT
 *   REUSE   the RMB goes to the next connection when nothing of a lost link can come any more; the sender's connection may end before
 *           the receiver has its last message. With STRAY, and not with a third link, by which what is written again may be late, too
 *   REACH   a state that has to be reached: then the verifier reports a violated claim
 *
 * Positions and sequence numbers do not wrap here; tests/wire has tests in which they do.
 */

#define FLAG_D	1
#define FLAG_C	2
#define FLAG_U	4			/* the last byte is urgent */
#define FLAG_A	8			/* not all data has been sent */

mtype = { VALIDATION, MESSAGE, IMMEDIATE };

#define MAX(a, b)	((a) > (b) -> (a) : (b))
#define MIN(a, b)	((a) < (b) -> (a) : (b))

/* The sender. */
byte written, flags;			/* by the application: bytes, and closing flags */
byte prod, seq, flags_sent;		/* of the last message */
byte most_sent;				/* the highest producer cursor that was sent */
byte cons;				/* the receiver's consumer cursor, as far as it has come */
byte arrived, arrived_seq;		/* what a completion has reported to have arrived, and by which message */
byte last_sent_at, last_sent_pos, last_sent_seq;	/* a message that has arrived when this many more have */
byte last_acked_pos, last_acked_seq;		/* one that has */
bool validate, resync, due;		/* a message is due even if nothing is new */
byte resync_end;
byte urgent_sent;			/* end of the urgent byte, once a message has reported it */
bool urgent_again;			/* which may be lost */
byte tx_link;				/* the link that it sends by; those before have ended here */
bool tx_down;				/* this one has ended, too: failover is next */
byte posted, acked;			/* messages by this link: those not known to have arrived; of these, those that have */
byte acked_pos, acked_seq;		/* of the last that was acknowledged */

/* Messages under way by this link: bytes from and to, sequence number, flags. */
chan wire = [QUEUE] of { mtype, byte, byte, byte, byte };

/* The receiver: its adapters and their completion queues, then its software. */
byte ring[N];				/* a position plus 1; 0: nothing that may be read */
chan cq[LAST + 1] = [QUEUE] of { mtype, byte, byte, byte, byte };
bool broken, lost;			/* the adapter stores nothing more; an acknowledged message was not stored */
byte rx_down;				/* nothing arrives by links before this one */
byte rx_ended;				/* the queues of links before this one are empty for good */
byte rx_link, rx_prod, rx_seq, rx_flags;
byte need[LAST + 1];			/* the number that a validation by this link has named, and no message by links before had yet */
byte seen[LAST + 1];			/* number of the last message of this link, while some are awaited */
bool held;				/* messages by a new link, while messages of an old one are awaited */
byte held_prod, held_flags;
byte pos;				/* how far the reader is */
byte cons_sent[LAST + 1];		/* the last consumer cursor that was sent by each link */
bool rx_urgent;				/* the reader knows of the urgent byte */
bool rx_eof;				/* the reader has seen the end of the stream */
bool over;				/* the connection has been closed, or reset */
#ifdef STRAY
byte stray_from, stray_to, stray_link;	/* data of a link that was left, and still arrives */
byte limit;				/* messages report no data beyond it; 0: there is none */
#endif
#ifdef REUSE
bool ended;				/* the sender's connection: it writes nothing more, and only repeats its last message */
bool closed, reused;			/* the receiver's: its RMB waits for the next connection, or has one */
#else
#define ended	false
#define closed	over
#define reused	false
#endif

/*
 * A third link is made by messages that go by the second, after the first was lost. So the validation by the second was
 * processed before that is lost, too.
 */
#define MAY_FAIL(link)	((link) < LAST && rx_link >= (link))

/* Only within a step. */
hidden mtype kind;
hidden byte p, q, from, to, n, f;

/*
 * The adapter stores bytes. It reads them from the sender's ring only now: if the receiver has them already, that place may
 * have been used again.
 */
inline store(first, end)
{
	p = first;
	do
	:: p < end ->
		q = p;
		do
		:: q + SND < written -> q = q + SND
		:: else -> break
		od;
		assert(ring[p % N] <= pos || ring[p % N] == q + 1);	/* no unread byte changes */
		assert(p < pos || q == p);				/* no byte is stored that is another's */
		ring[p % N] = (q >= pos && (q - p) % N == 0 -> q + 1 : 0);
		p++
	:: else -> break
	od
}

/* The application's write. There is room if both rings have some, as cdc_report_space() in cdc.c reckons. */
#define ROOM	(written < MIN(cons + N - SND, MAX(cons, arrived)) + SND)

/* The sender keeps track of arrivals while the link can be lost, or if completions make room. */
#define TRACKED	(tx_link < LAST || SND < N)

inline count_posted()
{
	if
	:: TRACKED -> posted++
	:: else
	fi
}

/* Remembers the message that was just posted, if the one before has arrived: smc_rdma_failover_sent(). */
inline mark_sent()
{
	if
#ifdef W_CLEARS_RESYNC_EARLY
	:: resync -> resync = false; resync_end = 0
#else
	:: resync && prod >= resync_end -> resync = false; resync_end = 0
#endif
	:: else
	fi;
	if
	:: !last_sent_at && tx_link < LAST -> last_acked_pos = last_sent_pos; last_acked_seq = last_sent_seq; last_sent_at = posted; last_sent_pos = prod; last_sent_seq = seq
	:: else
	fi
}

/* Data that the receiver has read meanwhile is not sent again. */
inline catch_up()
{
	if
#ifndef W_NO_CATCH_UP
	:: cons > prod -> prod = cons
#endif
	:: else
	fi
}

/* An urgent byte is the last of its message, and of those that follow until it is read: smc_cdc_sendable_end(). */
#ifdef URGENT
#define SENDABLE	(flags_sent & FLAG_C -> written : (cons < urgent_sent -> urgent_sent : (prod || !written -> written : 1)))
#define IS_URGENT(end)	((end) == 1 && (urgent_sent == 0 || urgent_again))
#else
#if defined(STRAY) && !defined(W_NO_LIMIT)
#define SENDABLE	(ended -> prod : (limit && written > limit -> limit : written))
#else
#define SENDABLE	written
#endif
#define IS_URGENT(end)	false
#endif

/* While an urgent byte holds back data, it holds back flags. */
#ifdef W_CLOSES_BEFORE_DATA
#define FLAGS(end)	flags
#else
#define FLAGS(end)	((end) == written -> flags : (ended -> FLAG_D | FLAG_C | FLAG_A : 0))
#endif

inline post(kind, end)
{
	assert(end <= prod + N && end <= cons + N);		/* nothing is written that there is no space for */
	assert(written <= prod + SND || prod == end);		/* the data is still in the sender's ring */
	seq++; count_posted();
	f = (IS_URGENT(end) -> FLAG_U : 0);
	wire!kind(prod, end, seq, FLAGS(end) | f);
	if
	:: f -> urgent_sent = 1; urgent_again = false
	:: else
	fi;
	flags_sent = flags_sent | FLAGS(end);
	prod = end;
	most_sent = MAX(most_sent, prod);
	due = false;
	mark_sent()
}

/* Takes back all that may be lost with the link: take_back(). */
inline move()
{
	if
#ifdef W_MARK_HAS_ARRIVED
	:: true
#else
	:: !last_sent_at
#endif
	   -> last_acked_pos = last_sent_pos; last_acked_seq = last_sent_seq
	:: else
	fi;
#ifdef W_REWINDS_TO_CONS
	p = cons;
#elif defined(W_NO_REWIND)
	p = prod;
#else
	p = MAX(cons, MAX(arrived, last_acked_pos));
#endif
#ifndef W_KNOWN_BEHIND_ARRIVED
	/* The validation has to cover all that is not written again. */
	if
	:: arrived_seq > last_acked_seq -> last_acked_seq = arrived_seq; last_acked_pos = arrived
	:: else
	fi;
#endif
	resync = true; resync_end = most_sent;
#ifndef W_MARK_OF_OLD_LINK
	last_sent_at = 0; last_sent_pos = last_acked_pos; last_sent_seq = last_acked_seq;
#endif
#ifdef STRAY
	/* limit_writes() */
	limit = (limit -> limit : p + N);
#endif
	prod = MIN(prod, p);
	/* Its message may be in the queue of the old link, and be late when it is processed. */
#ifdef W_URGENT_ONCE
	urgent_again = urgent_again || urgent_sent > p;
#else
	urgent_again = urgent_again || urgent_sent > cons;
#endif
#ifdef W_NUMBERS_AGAIN
	seq = last_acked_seq;
#endif
	validate = true;
	cons_sent[tx_link] = 0;
	tx_link++; tx_down = false; broken = false; posted = 0; acked = 0; acked_pos = 0; acked_seq = 0
}

/* The queue pair is destroyed: of what is under way, only some of the data of the first message may still have been stored. */
inline lose_wire()
{
	if
	:: wire?[_, from, to, _, _] && tx_link >= rx_down && !broken ->
		wire?_, from, to, _, _;
		if
		:: to > from + 1 -> to--
		:: true
		fi;
#ifdef STRAY
		stray_from = from; stray_to = to; stray_link = tx_link
#else
		store(from, to)
#endif
	:: true
	fi;
	do
	:: wire?_, _, _, _, _
	:: empty(wire) -> break
	od
}

/* The validation goes first. */
#ifdef W_NO_VALIDATION
#define SENDS		(!tx_down)
#define VALIDATES	false
#elif defined(W_ENDS_WITHOUT_VALIDATION)
#define SENDS		(!tx_down && (!validate || ended))
#define VALIDATES	(!tx_down && validate && !ended)
#elif defined(W_MESSAGE_FIRST)
#define SENDS		(!tx_down && !(validate && !due))
#define VALIDATES	(!tx_down && validate && !due)
#else
#define SENDS		(!tx_down && !validate)
#define VALIDATES	(!tx_down && validate)
#endif

#ifdef W_IMMEDIATE_IN_RESYNC
#define MAY_BE_IMMEDIATE	(written > prod && written > cons && !flags)
#else
#define MAY_BE_IMMEDIATE	(written > prod && written > cons && !flags && !resync)
#endif

/* The receiver cannot have read what was not sent: otherwise the link would fail. */
inline recv_cons(l)
{
	cons = cons_sent[l];
#ifdef W_CHECKS_REWOUND_END
	assert(cons <= prod)
#else
	assert(cons <= most_sent)
#endif
}

proctype Sender()
{
	do
	:: atomic { !over && written < TOTAL && !flags && ROOM -> written++ }
#ifdef SHUTS
	:: atomic { !over && !flags -> flags = FLAG_D }
#endif
	:: atomic { !over && !(flags & FLAG_C) -> flags = FLAG_D | FLAG_C }

	/* smc_rdma_cdc_send() */
	:: atomic { !over && VALIDATES && nfull(wire) ->
		count_posted();
		wire!VALIDATION(0, 0, last_acked_seq, 0);
		validate = false;
		if
		:: !TRACKED -> arrived = 0; arrived_seq = 0
		:: else
		fi;
		if
		:: tx_link == LAST -> last_sent_pos = 0; last_sent_seq = 0; last_acked_pos = 0; last_acked_seq = 0
		:: else
		fi }
	:: atomic { !over && SENDS && nfull(wire) && (SENDABLE > prod || FLAGS(SENDABLE) & ~flags_sent || due) ->
		catch_up();
		to = SENDABLE;
#ifdef W_CLOSES_BEFORE_DATA
		if
		:: resync && flags && prod < written -> post(MESSAGE, prod); due = true
		:: else -> post(MESSAGE, to)
		fi
#else
		post(MESSAGE, to)
#endif
		}
#ifdef IMM
	/* An urgent byte ends a message, though more is written. */
	:: atomic { !over && SENDS && nfull(wire) && !flags && written > prod + 1 && written > cons + 1 ->
		catch_up();
		post(MESSAGE, prod + 1) }
	:: atomic { !over && SENDS && nfull(wire) && MAY_BE_IMMEDIATE ->
		catch_up();
		post(IMMEDIATE, written) }
#endif

	/* Completions: smc_link_sent(), batch_arrived() */
	:: atomic { !over && !tx_down && acked ->
		posted = posted - acked;
		last_sent_at = (last_sent_at > acked -> last_sent_at - acked : 0);
		acked = 0;
		if
		:: acked_pos > arrived -> arrived = acked_pos; arrived_seq = acked_seq
		:: true
		fi }

	/* Consumer cursors, by any link that has not ended here */
	:: atomic { !over && !tx_down && cons_sent[tx_link] > cons -> recv_cons(tx_link) }
	:: atomic { !over && tx_link < LAST && cons_sent[tx_link + 1] > cons -> recv_cons(tx_link + 1) }

#ifdef REUSE
	/* The receiver's application has closed, too: smc_rdma_stop_writing() */
	:: atomic { !over && !ended && (flags_sent & FLAG_C) -> ended = true }
#endif
#ifdef STRAY
	/* The receiver says that it has stopped all links before: unlimit_writes() */
	:: atomic { !over && limit && rx_down >= tx_link -> limit = 0 }
#endif

	/* The link is lost: smc_lgr_rdma_lose_link() */
	:: atomic { !over && MAY_FAIL(tx_link) && !tx_down -> tx_down = true; lose_wire() }
	:: atomic { !over && tx_down -> move();
#ifdef W_NOTHING_NEW
		due = (written > prod)
#else
		due = true
#endif
		}
	:: over -> break
	od
}

/* The adapters of the receiver. */
proctype Adapter()
{
	do
	:: atomic { !over && !tx_down && nempty(wire) && tx_link >= rx_down && nfull(cq[tx_link]) ->
		wire?kind, from, to, n, f;
		if
		:: TRACKED -> acked++
		:: else
		fi;
		if
		:: TRACKED && kind != VALIDATION -> acked_pos = to; acked_seq = n
		:: else
		fi;
		if
		:: broken -> lost = true
		:: else -> store(from, to); cq[tx_link]!kind, from, to, n, f
		fi }
#ifdef LOSES
	:: atomic { !over && MAY_FAIL(tx_link) && !broken && !lost -> broken = true }
#endif
#ifdef STRAY
	:: atomic { !over && stray_from < stray_to && rx_down <= stray_link ->
		assert(!reused);			/* nothing is stored in the RMB of another connection */
		assert(ring[stray_from % N] <= pos || ring[stray_from % N] == stray_from + 1);
		stray_from = 0; stray_to = 0 }
#endif
	:: over -> break
	od
}

inline reset_conn()
{
	over = true;
	assert(lost)				/* only if it must be */
}

/* Takes in what a message reports. */
inline report(end, state)
{
	rx_prod = MAX(rx_prod, end);
	rx_flags = rx_flags | (state & ~FLAG_U);
	rx_urgent = rx_urgent || (state & FLAG_U)
}

/* Are messages awaited that came before those of this link? */
#if LAST == 1
#define AWAITED(l)	((l) == 1 && need[1])
#else
#define AWAITED(l)	(((l) && need[1]) || ((l) == 2 && need[2]))
#endif

inline release_held()
{
	if
	:: held && !AWAITED(LAST) -> report(held_prod, held_flags); held = false; held_prod = 0; held_flags = 0
	:: else
	fi
}

/* A message has come. If others were awaited, and it is the last of them, what was held goes on. */
inline came(l)
{
	if
	:: AWAITED(LAST) ->
		seen[l] = n;
		p = l + 1;
		do
		:: p <= LAST ->
			if
#ifdef W_AWAITS_LINK_BEFORE_ONLY
			:: need[p] && n >= need[p] && l == p - 1 ->
#else
			:: need[p] && n >= need[p] ->
#endif
#ifndef W_FORGETS_IMMEDIATE
				rx_seq = MAX(rx_seq, need[p]);
#endif
				need[p] = 0
			:: else
			fi;
			p++
		:: else -> break
		od;
		if
		:: !AWAITED(LAST) -> seen[0] = 0; seen[1] = 0; seen[LAST] = 0
		:: else
		fi;
		release_held()
	:: else
	fi
}

/* smc_rdma_failover_recv(): the message that is named may still be in the queue of a link that has not ended. */
inline recv_validation(l)
{
	if
	:: rx_link != l && rx_seq < n ->
		if
#ifndef W_JUDGES_AT_ONCE
		:: rx_ended < l -> need[l] = n; seen[rx_link] = rx_seq
#endif
		:: else -> reset_conn()
		fi
	:: else
	fi;
	rx_link = l
}

/* smc_rdma_cdc_recv() */
inline recv_message(l)
{
	came(l);
	if
#ifndef W_TAKES_LATE
	:: n < rx_seq -> skip			/* a later message has come by another link */
#endif
	:: else ->
		rx_seq = n;
		if
#ifndef W_READS_WHILE_AWAITED
		:: AWAITED(l) -> held = true; held_prod = MAX(held_prod, to); held_flags = held_flags | f
#endif
		:: else -> report(to, f)
		fi
	fi
}

/* The completion queue of a link, as softirqs poll it. */
proctype Queue(byte l)
{
	do
	:: atomic { !over && nempty(cq[l]) ->
		cq[l]?kind, from, to, n, f;
		if
		:: kind == VALIDATION -> recv_validation(l)
		:: kind == MESSAGE -> recv_message(l)
#ifndef W_IMMEDIATE_BY_OLD_LINK
		:: kind == IMMEDIATE && l != rx_link -> n = seen[l] + 1; came(l)
#endif
		/* The adapter tells how many bytes were written; the rest follows from the message before. */
		:: else ->
			to = to - from + (held -> held_prod : rx_prod);
			n = rx_seq + 1;
			recv_message(l)
		fi }
	:: over -> break
	od
}

/* smc_lgr_rdma_rmb_is_quiet(): the links that the sender has left have been stopped. The module waits no longer than a packet can be late. */
#ifdef W_REUSES_AT_ONCE
#define QUIET		true
#else
#define QUIET		(rx_down >= rx_link)
#endif

/* The reader, and the receiver's links. */
proctype Receiver()
{
	do
	:: atomic { !over && !closed && pos < rx_prod ->
		assert(ring[pos % N] == pos + 1);	/* no byte is lost, or comes twice or out of order */
		ring[pos % N] = 0;
		pos++ }
	:: atomic { !over && !closed && pos == rx_prod && rx_flags && !(rx_eof && rx_flags == FLAG_D) ->
		assert(pos == written || (rx_flags & FLAG_A));	/* the end of the stream: nothing is missing */
#ifdef URGENT
		assert(rx_urgent || !pos);
#endif
		if
		:: rx_flags & FLAG_C -> closed = true
		:: else -> rx_eof = true
		fi }
#ifdef REUSE
	:: atomic { closed && !reused && QUIET -> reused = true }
	:: atomic { reused -> over = true }
#endif
	:: atomic { !over && rx_down == rx_ended && rx_ended >= tx_link && cons_sent[rx_ended] < pos -> cons_sent[rx_ended] = pos }
#ifdef STRAY
	/* The receiver's own connection may use the last link all the time. */
	:: atomic { !over && rx_down == rx_ended && cons_sent[LAST] < pos -> cons_sent[LAST] = pos }
#endif
	:: atomic { !over && rx_down == rx_ended && MAY_FAIL(rx_down) -> rx_down++ }
	/* The queue is drained; then connections move, and send a message by another link. */
	:: atomic { !over && rx_down > rx_ended && empty(cq[rx_ended]) ->
		rx_ended++;
#ifndef W_NEVER_JUDGES
		if
		:: need[rx_ended] -> reset_conn()
		:: else
		fi;
#endif
		cons_sent[rx_ended] = pos }
	:: over -> break
	od
}

init {
	atomic {
		run Sender(); run Adapter(); run Receiver();
		run Queue(0); run Queue(1);
#if LAST == 2
		run Queue(2)
#endif
	}
}

#ifdef REACH
never {
	do
	:: REACH -> break
	:: else
	od
}
#endif
