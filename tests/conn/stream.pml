/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One direction of a connection: a writer, a reader, a ring between them, and both ends closing at
 * any moment. Side 0 writes, side 1 reads. The module must order its loads and stores as this model
 * does. Each wrong order that a test uses is here too, by a name that begins with W_.
 *
 * Spin's memory is sequentially consistent. A missing barrier between a store and a load
 * therefore is the load done first.
 *
 *   N       the size of the ring
 *   TOTAL   the number of bytes that the writer has
 *   ANYTIME both applications may stop, shut down, disconnect and close at any moment; otherwise the
 *           writer closes after its last byte, and the reader after the end of the stream
 *   RESETS  how often TCP may be reset
 *   TIMERS  a timer may run out at any moment; otherwise none does, and nothing may depend on one
 *   LEAST   a writer that has more data waits rather than send less than this
 *   STEP    the reader does not update its cursor for this much room or less
 *   HALVES  the reader updates its cursor once there is room enough to wake a writer that does not know of as much
 *
 * src/promela.c prints steps.pml, with step(), from the closing table of the module.
 */

#define WRAP	(2 * N)			/* a cursor is an offset and (here) one bit of wrap */
#define START	(WRAP - 2)		/* the wrap comes soon */

#ifdef LEAST
#define ENOUGH	(N / 2)			/* room for which a writer is woken */
#else
#define ENOUGH	(N - 1)
#define LEAST	1
#endif
#ifdef W_STEP_TOO_LONG
#undef STEP
#define STEP	(N - LEAST + 1)		/* the bytes in use when a writer waits */
#elif !defined(STEP)
#define STEP	0
#endif

#define FLAG_D	1
#define FLAG_C	2
#define FLAG_A	4

#define USED(p, c)	(((p) + WRAP - (c)) % WRAP)
#define OFF(p)		((p) % N)

byte ring[N];				/* in the reader's memory; 0: nothing to read here */
byte prod = START;			/* in the reader's memory, written by the writer */
byte cons = START;			/* in the writer's memory, written by the reader */
byte sent[2];				/* in the other side's memory */
bool tx_waiting;			/* in the reader's memory: the writer wants to be woken */

byte st[2], received[2];
bool timer[2], err[2], ended[2], done[2];
bool lock[2];				/* the socket's: held while an application's call or a step runs */
bool onq[2], awake[2];			/* the wait queue of each side has one sleeper at most */
bool busy[2] = true;			/* an application's call is running */
byte resets = RESETS;

byte wrote, read, pos = START;		/* bytes copied in and out; how far the reader is */

#ifdef TIMERS
/*
 * An end whose timer has expired frees its buffers. Until its A arrives the other end may write to
 * them. The other end may also answer the A, or send A itself because its C was not answered in time.
 */
#define abort_in_flight(i)	((sent[1 - (i)] & FLAG_A) && !(received[i] & FLAG_A))
#define late_abort(i, f) ((f) == FLAG_A && ((sent[i] & FLAG_C) || (sent[1 - (i)] & FLAG_A)))
#else
#define abort_in_flight(i) false
#define late_abort(i, f) false
#endif

/* Side i writes to the memory of the other. */
#define touch(i) assert(!ended[1 - (i)] || abort_in_flight(i))

inline send_flag(i, f)
{
	assert(sent[i] < f && (!ended[1 - i] || abort_in_flight(i) || late_abort(i, f)));
	sent[i] = sent[i] | f
}

inline wake(i)
{
	if
	:: onq[i] -> awake[i] = true
	:: else
	fi
}

/* A step wakes the sleepers of its side. */
inline wake_all(i)
{
#ifdef W_STEPS_WITHOUT_WAKEUP
	skip
#else
	wake(i)
#endif
}

inline start(i)
{
#ifdef TIMERS
	timer[i] = true
#else
	skip
#endif
}

inline free_buf(i)
{
	assert(!ended[i]);
	ended[i] = true; timer[i] = false
}

#include "steps.pml"

inline lock_sock(i) { atomic { !lock[i] -> lock[i] = true } }
inline release_sock(i) { lock[i] = false }

/* as the kernel's functions of these names */
inline prepare_to_wait(i) { d_step { onq[i] = true; awake[i] = false } }
inline finish_wait(i) { onq[i] = false }

inline copy_in(n)
{
	do
	:: d_step { k < n ->
		touch(0);
		assert(ring[OFF(p + k)] == 0);		/* no unread byte is lost */
		wrote++; ring[OFF(p + k)] = wrote; k++ }
	:: k >= n -> break
	od
}

inline publish_prod(n)
{
	d_step { touch(0); prod = (p + n) % WRAP }
}

inline send(n)
{
	p = prod;
#ifdef W_PROD_BEFORE_DATA
	publish_prod(n); copy_in(n);
	wake(1)
#elif defined(W_WAKE_BEFORE_PROD)
	copy_in(n);
	wake(1);
	publish_prod(n)
#elif defined(W_FLAGS_BEFORE_PROD)
	copy_in(n);
	if
	:: wrote == TOTAL -> step(0, EV_SHUT)
	:: else
	fi;
	publish_prod(n);
	wake(1)
#else
	copy_in(n);
	publish_prod(n);
	/* full barrier */
	wake(1)
#endif
}

#define ROOM	(N - USED(prod, cons))
#define SENDABLE	(TOTAL - wrote < LEAST -> TOTAL - wrote : LEAST)

proctype Writer()
{
	byte n, k, p;

	do
	:: wrote == TOTAL -> break
#ifdef ANYTIME
	:: wrote < TOTAL -> break
#endif
	:: wrote < TOTAL ->
		lock_sock(0);
		if
		:: IS_SHUT(st[0]) -> release_sock(0); break
		:: !(IS_SHUT(st[0])) && (IS_DEAF(st[0])) -> step(0, EV_LOST); release_sock(0); break
		:: else
		fi;
		n = ROOM;
		if
		:: atomic { n >= SENDABLE ->
			if
			:: n > TOTAL - wrote -> n = TOTAL - wrote
			:: else
			fi;
			if
			:: n > 1 -> n = 1
			:: true
			fi };
			send(n);
			d_step { release_sock(0); n = 0; k = 0; p = 0 }
		:: else ->
			prepare_to_wait(0);
			tx_waiting = true;
			/* full barrier */
#ifndef W_NO_RECHECK_OF_ROOM
			n = ROOM;
#endif
			release_sock(0);
			if
			:: n < ENOUGH -> awake[0]
			:: else
			fi;
			finish_wait(0);
			d_step { tx_waiting = false; n = 0 }
		fi
	od;
	busy[0] = false
}

inline copy_out(n)
{
	do
	:: d_step { k < n ->
		assert(!ended[1]);
		assert(ring[OFF(pos)] == read + 1);	/* none lost, twice or out of order */
		read++; ring[OFF(pos)] = 0; pos = (pos + 1) % WRAP; k++ }
	:: k >= n -> break
	od
}

inline publish_cons(to)
{
	d_step { touch(1); cons = to }
}

#ifdef W_UPDATE_ONLY_WHEN_FULL
#define SHORT	(USED(prod, cons) == N)
#else
#define SHORT	(USED(prod, cons) >= N - ENOUGH)
#endif

inline wake_writer(waits)
{
	if
	:: waits && ROOM >= ENOUGH -> tx_waiting = false; wake(0)
	:: else
	fi
}

inline receive(n)
{
#ifdef W_CONS_BEFORE_COPY
	publish_cons((pos + n) % WRAP); copy_out(n);
	wake_writer(tx_waiting)
#else
	copy_out(n);
	if
#ifdef W_CONS_AFTER_THE_END
	:: true ->
#else
	/* The peer may have freed its buffer by now, which this cursor is in. */
	:: IS_OVER(st[1]) -> skip
#if STEP
	:: !(IS_OVER(st[1])) && USED(pos, cons) <= STEP -> skip
#endif
#ifdef HALVES
	:: !(IS_OVER(st[1])) && !(SHORT && USED(prod, pos) <= N - ENOUGH) -> skip
#endif
	:: else ->
#endif
#ifdef W_WAITING_BEFORE_CONS
		e = tx_waiting;
		publish_cons(pos);
		wake_writer(e)
#else
		publish_cons(pos);
		/* full barrier */
		wake_writer(tx_waiting)
#endif
	fi
#endif
}

/*
 * Readers load the flags where the peer writes them, so that they need not wait for the step. They
 * ignore A, which is an error and not an end of the stream: the step reports it.
 */
#ifdef W_ABORT_IS_EOF
#define AT_EOF	(sent[0] || IS_EOF(st[1]))
#else
#define AT_EOF	((sent[0] & (FLAG_D | FLAG_C)) || IS_EOF(st[1]))
#endif

inline look()
{
#ifdef W_PROD_BEFORE_EOF
	p = prod;
	e = AT_EOF
#else
	e = AT_EOF;
	p = prod
#endif
}

proctype Reader()
{
	byte n, k, p;
	bool e;

	do
#ifdef ANYTIME
	:: break
#endif
	:: true ->
		lock_sock(1);
		if
		:: err[1] || done[1] -> release_sock(1); break
		:: else
		fi;
		look();
		if
		:: atomic { p != pos ->
			n = USED(p, pos);
			assert(n <= N);
			if
			:: n > 1 -> n = 1
			:: true
			fi };
			receive(n);
			d_step { release_sock(1); n = 0; k = 0; p = 0; e = false }
		:: p == pos && e ->
			/* an end without an error: it was announced, and nothing is missing */
			assert((sent[0] & (FLAG_D | FLAG_C)) && read == wrote);
			release_sock(1);
			break
		:: else ->
			prepare_to_wait(1);
			/* full barrier */
#ifndef W_NO_RECHECK_OF_PROD
			look();
#endif
			release_sock(1);
			if
			:: p == pos && !e -> awake[1]
			:: else
			fi;
			d_step { finish_wait(1); p = 0; e = false }
		fi
	od;
	busy[1] = false
}

/* Other threads of the application, and its close(), which comes when no call is running. */
proctype Closer(byte i)
{
	byte ev;

	do
#ifdef ANYTIME
	:: atomic { !lock[i] && !(IS_SHUT(st[i])) -> step(i, EV_SHUT) }
	:: atomic { !lock[i] && !done[i] -> done[i] = true; step(i, EV_ABORT) }
	:: atomic { !lock[i] && i == 1 && IS_DEAF(st[1]) && !(IS_SHUT(st[1])) -> step(i, EV_LOST) }
#endif
	:: atomic {
		!busy[i] && !lock[i] ->
		if
		:: i == 1 && prod != pos -> ev = EV_ABORT	/* there is unread data */
		:: i == 0 || prod == pos -> ev = EV_CLOSE
#ifdef ANYTIME
		:: ev = EV_ABORT
#endif
		fi;
		done[i] = true;
		step(i, ev);
		ev = 0 };
		break
	od
}

#ifdef W_STEPS_WITHOUT_LOCK
#define FREE(i) true
#else
#define FREE(i) (!lock[i])
#endif

#define IN_FLIGHT(i)	(sent[1 - (i)] & ~received[i])

/* Messages of the peer, one after the other, resets and timeouts. */
proctype Work(byte i)
{
	byte ev;

	do
	:: atomic {
		FREE(i) && !ended[i] && IN_FLIGHT(i) ->
		if
		:: IN_FLIGHT(i) & FLAG_D -> received[i] = received[i] | FLAG_D; ev = EV_PEER_D
		:: (IN_FLIGHT(i) & (FLAG_D | FLAG_C)) == FLAG_C -> received[i] = received[i] | FLAG_C; ev = EV_PEER_C
		:: IN_FLIGHT(i) == FLAG_A -> received[i] = received[i] | FLAG_A; ev = EV_PEER_A
		fi;
		step(i, ev);
		ev = 0 }
#if RESETS
	:: atomic { FREE(i) && !ended[i] && resets > 0 -> resets--; step(i, EV_RESET) }
#endif
#ifdef TIMERS
	:: atomic { FREE(i) && timer[i] -> timer[i] = false; step(i, EV_TIMEOUT) }
#endif
	:: ended[i] -> break
	od
}

init {
	atomic {
		run Writer(); run Reader();
		run Closer(0); run Closer(1);
		run Work(0); run Work(1)
	}
}
