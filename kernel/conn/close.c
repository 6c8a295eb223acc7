// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs the closing table. An event changes the state under the lock; what is to be done about it
 * happens without, so that two ends in one kernel may tell each other at the same time. What a side
 * says is sticky, so it does not matter who of several threads says it. The last of them gives the
 * connection's things back once it is over.
 */

#include <net/ip.h>
#include <net/tcp.h>
#include <net/tcp_states.h>

#include "../control/trace.h"
#include "../lgr/lgr.h"
#include "../net.h"
#include "../trylock.h"
#include "conn.h"

/* A namespace may set its patience, but not so that others' memory is held for it; as TCP_LINGER2. */
#define TIMER_MAX TCP_FIN_TIMEOUT_MAX

static int error_of(unsigned int actions)
{
	if (actions & SMC_CLOSE_ERR_RESET)
		return ECONNRESET;
	if (actions & SMC_CLOSE_ERR_ABORTED)
		return ECONNABORTED;
	return actions & SMC_CLOSE_ERR_PIPE ? EPIPE : 0;
}

static u8 words_of(unsigned int actions)
{
	return (actions & SMC_CLOSE_SEND_D ? SMC_CONN_SAID_D : 0) |
	       (actions & SMC_CLOSE_SEND_C ? SMC_CONN_SAID_C : 0) |
	       (actions & SMC_CLOSE_SEND_A ? SMC_CONN_SAID_A : 0);
}

/* What an event says that the peer has said. */
static u8 heard_of(enum smc_close_event event)
{
	switch (event) {
	case SMC_CLOSE_PEER_D:
		return SMC_CONN_SAID_D;
	case SMC_CLOSE_PEER_C:
		return SMC_CONN_SAID_C;
	case SMC_CLOSE_PEER_A:
		return SMC_CONN_SAID_A;
	default:
		return 0;
	}
}

/* The new state. Return: what is to be done, without the lock. */
static unsigned int advance(struct smc_conn *conn, enum smc_close_event event)
{
	const struct smc_close_step *step = &smc_close_table[conn->state][event];
	int err = error_of(step->actions);

	lockdep_assert_held(&conn->lock);
	if (err && READ_ONCE(conn->timed_out))
		err = ETIMEDOUT;
	WRITE_ONCE(conn->heard, conn->heard | heard_of(event));
	if (event == SMC_CLOSE_PEER_D || event == SMC_CLOSE_PEER_C)
		WRITE_ONCE(conn->rx_done, true);
	if (!step->valid)
		return 0;
	trace_smc_close(conn->sk, conn->token, conn->state, event, step->next);
	smp_store_release(&conn->said, conn->said | words_of(step->actions)); /* pairs with cdc_send() of transport/ism/dmb_cdc.c */
	/* A TCP connection that has died has told its error already. */
	if (err && !conn->sk->sk_err && inet_sk_state_load(conn->sk) != TCP_CLOSE)
		WRITE_ONCE(conn->sk->sk_err, err);
	smp_store_release(&conn->state, step->next); /* after sk_err and rx_done: see look() and may_send() */
	if (step->actions & SMC_CLOSE_END)
		conn->ending = true;
	return step->actions;
}

static void start_timer(struct smc_conn *conn)
{
	int patience = READ_ONCE(sock_net(conn->sk)->ipv4.sysctl_tcp_fin_timeout);

	smc_conn_get(conn);
	if (mod_timer(&conn->timer, jiffies + min(patience, TIMER_MAX)))
		smc_conn_put(conn);
}

/* Gives everything back. Nobody uses the connection any more but those with a reference. */
static void end(struct smc_conn *conn)
{
	if (timer_delete(&conn->timer))
		smc_conn_put(conn);
	if (delayed_work_pending(&conn->push) && cancel_delayed_work(&conn->push))
		smc_conn_put(conn);
	conn->ops->release(conn);
	smc_lgr_quit(conn);
	smc_conn_put(conn); /* that of smc_conn_new() for who is alive */
}

static void act(struct smc_conn *conn, unsigned int actions)
{
	if (words_of(actions))
		conn->ops->signal(conn, SMC_SIGNAL_CLOSE);
	if (actions & SMC_CLOSE_WAKE)
		smc_conn_wake(conn, EPOLLIN | EPOLLOUT | EPOLLERR | EPOLLHUP | EPOLLRDHUP | EPOLLPRI);
	if (actions & SMC_CLOSE_TIMER)
		start_timer(conn);
}

/* Carries actions out, and gives everything back if that was the last thing to do. */
static void act_and_end(struct smc_conn *conn, unsigned int actions)
{
	bool last;

	act(conn, actions);
	spin_lock_bh(&conn->lock);
	last = !--conn->busy && conn->ending;
	if (last)
		conn->ending = false;
	spin_unlock_bh(&conn->lock);
	if (last)
		end(conn);
}

/**
 * smc_close_event() - something happens that concerns the end of a connection
 * @conn: the connection
 * @event: what
 *
 * Softirq, or process; none of the connection's locks held but the mutexes. Does not sleep.
 */
void smc_close_event(struct smc_conn *conn, enum smc_close_event event)
{
	unsigned int actions;

	spin_lock_bh(&conn->lock);
	actions = advance(conn, event);
	if (actions)
		conn->busy++;
	spin_unlock_bh(&conn->lock);
	if (actions)
		act_and_end(conn, actions);
}

/*
 * smc_close_look() - has the TCP connection beneath died? Nobody watches it: who is about to wait
 * looks, and TCP wakes who waits. Does not sleep.
 */
void smc_close_look(struct smc_conn *conn)
{
	if (unlikely(inet_sk_state_load(conn->sk) == TCP_CLOSE) && !smc_conn_meaning(conn)->over)
		smc_close_event(conn, SMC_CLOSE_RESET);
}

/*
 * smc_close_app() - the application closes its socket, or disconnects it
 * @conn: the connection
 * @hard: the peer is to see a reset, whatever has been read
 *
 * No other operation of the socket gets beyond its locks meanwhile. May sleep.
 */
void smc_close_app(struct smc_conn *conn, bool hard)
{
	WRITE_ONCE(conn->holder, SMC_CONN_ALONE);
	if (!hard)
		smc_tx_push(conn);
	mutex_lock(&conn->tx_lock);
	mutex_lock_nested(&conn->rx_lock, SINGLE_DEPTH_NESTING);
	if (hard || READ_ONCE(conn->rx_prod) != conn->rx_cons)
		smc_close_event(conn, SMC_CLOSE_ABORT);
	else
		smc_close_event(conn, SMC_CLOSE_CLOSE);
	mutex_unlock(&conn->rx_lock);
	mutex_unlock(&conn->tx_lock);
}

/*
 * smc_close_kill() - a connection that never came to life, or whose module is about to go. The peer
 * hears an abort, if it hears anything, or not even that if @quiet. Does not sleep.
 */
void smc_close_kill(struct smc_conn *conn, bool quiet)
{
	bool mine;

	spin_lock_bh(&conn->lock);
	mine = conn->state != SMC_CLOSE_CLOSED;
	if (mine) {
		WRITE_ONCE(conn->state, SMC_CLOSE_CLOSED);
		WRITE_ONCE(conn->said, conn->said | SMC_CONN_SAID_A);
		conn->ending = true;
		conn->busy++;
	}
	spin_unlock_bh(&conn->lock);
	if (mine)
		act_and_end(conn, quiet ? 0 : SMC_CLOSE_SEND_A | SMC_CLOSE_WAKE);
}

/*
 * smc_close_reset_tcp() - resets the TCP connection beneath one that is over. The error that the
 * application is to hear stays. The caller holds the sock's lock. Does not sleep.
 */
void smc_close_reset_tcp(struct sock *sk)
{
	int err = READ_ONCE(sk->sk_err);

	sock_owned_by_me(sk);
	sk->sk_prot->disconnect(sk, O_NONBLOCK);
	/* TCP has put its own there, unless the application has just been told that: once is enough. */
	cmpxchg(&sk->sk_err, ECONNRESET, err);
}

/*
 * The application may hold the sock's lock for as long as it likes. Its peer hears of the end later
 * then, and nobody else waits.
 */
static void disconnect_work(struct work_struct *work)
{
	struct smc_conn *conn = container_of(to_delayed_work(work), struct smc_conn, disconnect);
	struct sock *sk = conn->sk;

	if (READ_ONCE(conn->state) != SMC_CLOSE_PABORT || sock_flag(sk, SOCK_DEAD)) {
		smc_conn_put(conn);
		return;
	}
	/* While TCP has it in a listener's queue, TCP alone locks it. */
	if (!READ_ONCE(sk->sk_socket) || !smc_sock_trylock(sk)) {
		/* Queued meanwhile by another thread, with a reference of its own? */
		if (!queue_delayed_work(smc_net_wq, &conn->disconnect, SMC_TRYLOCK_RETRY))
			smc_conn_put(conn);
		return;
	}
	/* It may be another connection's by now, which connect() has made since. */
	if (READ_ONCE(conn->state) == SMC_CLOSE_PABORT && sk->sk_state != TCP_CLOSE && !sock_flag(sk, SOCK_DEAD))
		smc_close_reset_tcp(sk);
	release_sock(sk);
	smc_conn_put(conn);
}

/*
 * smc_close_gone() - the group of a connection has ended: whoever uses the connection hears of it,
 * and so does the peer, by TCP, a moment later. Process context or softirq; does not sleep.
 */
void smc_close_gone(struct smc_conn *conn)
{
	smc_close_event(conn, SMC_CLOSE_GONE);
	if (READ_ONCE(conn->state) != SMC_CLOSE_PABORT)
		return;
	smc_conn_get(conn);
	if (!queue_delayed_work(smc_net_wq, &conn->disconnect, 0))
		smc_conn_put(conn);
}

/*
 * smc_close_abort() - the group of a connection is about to be ended by an operator: the application and the peer
 * hear an abort while the group still has a way to tell. May sleep.
 */
void smc_close_abort(struct smc_conn *conn)
{
	smc_close_event(conn, SMC_CLOSE_RESET);
	smc_close_gone(conn);
}

/*
 * smc_close_check() - a connection has come to life, and has its holder: its group may have ended
 * while nobody could be told. May sleep.
 */
void smc_close_check(struct smc_conn *conn)
{
	smp_mb(); /* pairs with the end of a group: it sees the holder, or we see the end */
	if (!READ_ONCE(conn->lgr->listed))
		smc_close_gone(conn);
	/* The same for IPsec, see recheck() of ipsec.c. */
	smc_ipsec_check(conn);
}

static void expired(struct timer_list *timer)
{
	struct smc_conn *conn = container_of(timer, struct smc_conn, timer);

	smc_close_event(conn, SMC_CLOSE_TIMEOUT);
	smc_conn_put(conn);
}

/* smc_close_prepare() - of a fresh connection. */
void smc_close_prepare(struct smc_conn *conn)
{
	spin_lock_init(&conn->lock);
	conn->state = SMC_CLOSE_ACTIVE;
	conn->urgent_gone = ~0ULL;
	timer_setup(&conn->timer, expired, 0);
	INIT_DELAYED_WORK(&conn->disconnect, disconnect_work);
}
