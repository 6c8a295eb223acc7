/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One direction of a connection: a writer, a reader, a ring between them, and both ends closing at
 * any moment. Side 0 writes, side 1 reads. What the module must get right is the order of its loads
 * and stores; each change that the test knows to be wrong is here, too, by a name with W_ in front.
 *
 * Spin's memory is sequentially consistent. A barrier that is missing between a store and a load is
 * therefore the load done first.
 *
 *   N       the size of the ring
 *   TOTAL   how many bytes the writer has
 *   ANYTIME both applications may stop, shut down, disconnect and close at any moment; otherwise the
 *           writer closes after its last byte, and the reader after the end of the stream
 *   RESETS  how often TCP may be reset
 *   TIMERS  a timer may run out at any moment; otherwise none ever does, so that nothing may need one
 *   LEAST   less room than this is not worth a message to a writer that has more and may wait
 *   STEP    the reader does not tell of so much room, or less
 *   HALVES  the reader tells of room once there is as much as a writer is woken for, if it does not know of as much
 *
 * steps.pml, with step(), is made of the closing table of the module.
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
#define STEP	(N - LEAST + 1)		/* as much as is in use when a writer waits */
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
byte said[2];				/* in the other side's memory */
bool tx_waiting;			/* in the reader's reach: the writer wants to be woken */

byte st[2], seen[2];
bool timer[2], err[2], ended[2], done[2];
bool lock[2];				/* the socket's: held while an application's call or a step runs */
bool onq[2], awake[2];			/* the wait queue of each side has one sleeper at most */
bool busy[2] = true;			/* an application's call is on its way */
byte resets = RESETS;

byte wrote, read, pos = START;		/* bytes copied in and out; how far the reader is */

#ifdef TIMERS
/*
 * An end that has waited in vain gives its buffers back. Until its A arrives the other may touch them;
 * that other may also answer the A, or say A itself because of a C that was not answered in time.
 */
#define told(i)	((said[1 - (i)] & FLAG_A) && !(seen[i] & FLAG_A))
#define late(i, f) ((f) == FLAG_A && ((said[i] & FLAG_C) || (said[1 - (i)] & FLAG_A)))
#else
#define told(i) false
#define late(i, f) false
#endif

/* Side i writes to the memory of the other. */
#define touch(i) assert(!ended[1 - (i)] || told(i))

inline say(i, f)
{
	assert(said[i] < f && (!ended[1 - i] || told(i) || late(i, f)));
	said[i] = said[i] | f
}

inline wake(i)
{
	if
	:: onq[i] -> awake[i] = true
	:: else
	fi
}

/* What a step wakes: whoever waits on this side. */
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

inline give_back(i)
{
	assert(!ended[i]);
	ended[i] = true; timer[i] = false
}

#include "steps.pml"

inline take(i) { atomic { !lock[i] -> lock[i] = true } }
inline give(i) { lock[i] = false }

/* prepare_to_wait(), and what a sleeper does when it is woken */
inline queue(i) { d_step { onq[i] = true; awake[i] = false } }
inline unqueue(i) { onq[i] = false }

inline copy_in(n)
{
	do
	:: d_step { k < n ->
		touch(0);
		assert(ring[OFF(p + k)] == 0);		/* nobody loses what is not read yet */
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
#define WORTH	(TOTAL - wrote < LEAST -> TOTAL - wrote : LEAST)

proctype Writer()
{
	byte n, k, p;

	do
	:: wrote == TOTAL -> break
#ifdef ANYTIME
	:: wrote < TOTAL -> break
#endif
	:: wrote < TOTAL ->
		take(0);
		if
		:: IS_SHUT(st[0]) -> give(0); break
		:: !(IS_SHUT(st[0])) && (IS_DEAF(st[0])) -> step(0, EV_LOST); give(0); break
		:: else
		fi;
		n = ROOM;
		if
		:: atomic { n >= WORTH ->
			if
			:: n > TOTAL - wrote -> n = TOTAL - wrote
			:: else
			fi;
			if
			:: n > 1 -> n = 1
			:: true
			fi };
			send(n);
			d_step { give(0); n = 0; k = 0; p = 0 }
		:: else ->
			queue(0);
			tx_waiting = true;
			/* full barrier */
#ifndef W_NO_RECHECK_OF_ROOM
			n = ROOM;
#endif
			give(0);
			if
			:: n < ENOUGH -> awake[0]
			:: else
			fi;
			unqueue(0);
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

#ifdef W_TOLD_WHEN_FULL
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
	/* The peer may have given back its buffer by now, and with it the place of this cursor. */
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
 * The flags are looked at where the peer writes them, so that readers need not wait for the step. An
 * A is not among them: it is no end of the stream, but an error, and that is for the step to tell.
 */
#ifdef W_ABORT_IS_EOF
#define AT_EOF	(said[0] || IS_EOF(st[1]))
#else
#define AT_EOF	((said[0] & (FLAG_D | FLAG_C)) || IS_EOF(st[1]))
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
		take(1);
		if
		:: err[1] || done[1] -> give(1); break
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
			d_step { give(1); n = 0; k = 0; p = 0; e = false }
		:: p == pos && e ->
			/* an end without an error: it was announced, and nothing is missing */
			assert((said[0] & (FLAG_D | FLAG_C)) && read == wrote);
			give(1);
			break
		:: else ->
			queue(1);
			/* full barrier */
#ifndef W_NO_RECHECK_OF_PROD
			look();
#endif
			give(1);
			if
			:: p == pos && !e -> awake[1]
			:: else
			fi;
			d_step { unqueue(1); p = 0; e = false }
		fi
	od;
	busy[1] = false
}

/* What other threads of the application do, and its close(), which comes when no call is on its way. */
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

#define NEWS(i)	(said[1 - (i)] & ~seen[i])

/* What comes from the peer, one message after the other, and from elsewhere. */
proctype Work(byte i)
{
	byte ev;

	do
	:: atomic {
		FREE(i) && !ended[i] && NEWS(i) ->
		if
		:: NEWS(i) & FLAG_D -> seen[i] = seen[i] | FLAG_D; ev = EV_PEER_D
		:: (NEWS(i) & (FLAG_D | FLAG_C)) == FLAG_C -> seen[i] = seen[i] | FLAG_C; ev = EV_PEER_C
		:: NEWS(i) == FLAG_A -> seen[i] = seen[i] | FLAG_A; ev = EV_PEER_A
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
