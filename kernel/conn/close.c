// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs the closing table. An event changes the state under the lock. Its actions are carried out without
 * the lock, so that two ends in one kernel can signal each other at the same time. Closing flags stay set,
 * so it does not matter which of several threads sends them. The last thread that carries out actions of
 * a connection that is over gives back what it has.
 */

#include <net/ip.h>
#include <net/tcp.h>
#include <net/tcp_states.h>

#include "../control/trace.h"
#include "../lgr/lgr.h"
#include "../net.h"
#include "../trylock.h"
#include "conn.h"

/* The longest time that a namespace can choose for a close, as with TCP_LINGER2: memory of others is held meanwhile. */
#define TIMER_MAX TCP_FIN_TIMEOUT_MAX

static int error_to_set(unsigned int actions)
{
	if (actions & SMC_CLOSE_ERR_RESET)
		return ECONNRESET;
	if (actions & SMC_CLOSE_ERR_ABORTED)
		return ECONNABORTED;
	return actions & SMC_CLOSE_ERR_PIPE ? EPIPE : 0;
}

static u8 flags_to_send(unsigned int actions)
{
	return (actions & SMC_CLOSE_SEND_D ? SMC_CDC_DONE : 0) |
	       (actions & SMC_CLOSE_SEND_C ? SMC_CDC_CLOSED : 0) |
	       (actions & SMC_CLOSE_SEND_A ? SMC_CDC_ABORT : 0);
}

/* Returns the closing flag of the peer's that an event reports. */
static u8 flags_received(enum smc_close_event event)
{
	switch (event) {
	case SMC_CLOSE_PEER_D:
		return SMC_CDC_DONE;
	case SMC_CLOSE_PEER_C:
		return SMC_CDC_CLOSED;
	case SMC_CLOSE_PEER_A:
		return SMC_CDC_ABORT;
	default:
		return 0;
	}
}

/* Changes the state. Return: the actions, to be carried out without the lock. */
static unsigned int close_step(struct smc_conn *conn, enum smc_close_event event)
{
	const struct smc_close_step *step = &smc_close_table[conn->state][event];
	int err = error_to_set(step->actions);

	lockdep_assert_held(&conn->lock);
	if (err && READ_ONCE(conn->timed_out))
		err = ETIMEDOUT;
	WRITE_ONCE(conn->peer_close_flags, conn->peer_close_flags | flags_received(event));
	if (event == SMC_CLOSE_PEER_D || event == SMC_CLOSE_PEER_C)
		WRITE_ONCE(conn->rx_done, true);
	if (!step->valid)
		return 0;
	trace_smc_close(conn->sk, conn->member.token, conn->state, event, step->next);
	/* Pairs with cdc_send() of transport/ism/dmb_cdc.c. */
	smp_store_release(&conn->close_flags, conn->close_flags | flags_to_send(step->actions));
	/* A TCP connection that has died has reported its error already. */
	if (err && !conn->sk->sk_err && inet_sk_state_load(conn->sk) != TCP_CLOSE)
		WRITE_ONCE(conn->sk->sk_err, err);
	smp_store_release(&conn->state, step->next); /* after sk_err and rx_done: see rx_stream_end() and tx_may_send() */
	if (step->actions & SMC_CLOSE_END)
		conn->ending = true;
	return step->actions;
}

static void close_start_timer(struct smc_conn *conn)
{
	int patience = READ_ONCE(sock_net(conn->sk)->ipv4.sysctl_tcp_fin_timeout);

	smc_conn_get(conn);
	if (mod_timer(&conn->timer, jiffies + min(patience, TIMER_MAX)))
		smc_conn_put(conn);
}

/* Gives back what the connection has. From now on only those with a reference use it. */
static void close_conn_end(struct smc_conn *conn)
{
	if (timer_delete(&conn->timer))
		smc_conn_put(conn);
	if (delayed_work_pending(&conn->push) && cancel_delayed_work(&conn->push))
		smc_conn_put(conn);
	conn->ops->release(conn);
	smc_lgr_del_member(&conn->member);
	smc_conn_put(conn); /* the reference that smc_conn_new() took for being alive */
}

static void close_act(struct smc_conn *conn, unsigned int actions)
{
	if (flags_to_send(actions))
		conn->ops->signal(conn, SMC_SIGNAL_CLOSE);
	if (actions & SMC_CLOSE_WAKE)
		smc_conn_wake(conn, EPOLLIN | EPOLLOUT | EPOLLERR | EPOLLHUP | EPOLLRDHUP | EPOLLPRI);
	if (actions & SMC_CLOSE_TIMER)
		close_start_timer(conn);
}

/* Carries out actions, and ends the connection if those were the last ones. */
static void close_act_and_end(struct smc_conn *conn, unsigned int actions)
{
	bool last;

	close_act(conn, actions);
	spin_lock_bh(&conn->lock);
	last = !--conn->busy && conn->ending;
	if (last)
		conn->ending = false;
	spin_unlock_bh(&conn->lock);
	if (last)
		close_conn_end(conn);
}

/**
 * smc_close_event() - something happens that concerns the end of a connection
 * @conn: the connection
 * @event: what happens
 *
 * Softirq, or process; none of the connection's locks held but the mutexes. Does not sleep.
 */
void smc_close_event(struct smc_conn *conn, enum smc_close_event event)
{
	unsigned int actions;

	spin_lock_bh(&conn->lock);
	actions = close_step(conn, event);
	if (actions)
		conn->busy++;
	spin_unlock_bh(&conn->lock);
	if (actions)
		close_act_and_end(conn, actions);
}

/*
 * smc_close_check_tcp() - ends the connection if the TCP connection beneath has died. Nobody watches that: a
 * thread looks before it waits, and TCP wakes threads that wait. Does not sleep.
 */
void smc_close_check_tcp(struct smc_conn *conn)
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
	WRITE_ONCE(conn->holder, SMC_CONN_ORPHAN);
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
 * smc_conn_kill() - ends a connection that never came to life, or whose module is about to go. The peer
 * is sent an abort if it can receive one, unless @quiet. Does not sleep.
 */
void smc_conn_kill(struct smc_conn *conn, bool quiet)
{
	bool mine;

	spin_lock_bh(&conn->lock);
	mine = conn->state != SMC_CLOSE_CLOSED;
	if (mine) {
		WRITE_ONCE(conn->state, SMC_CLOSE_CLOSED);
		WRITE_ONCE(conn->close_flags, conn->close_flags | SMC_CDC_ABORT);
		conn->ending = true;
		conn->busy++;
	}
	spin_unlock_bh(&conn->lock);
	if (mine)
		close_act_and_end(conn, quiet ? 0 : SMC_CLOSE_SEND_A | SMC_CLOSE_WAKE);
}

/*
 * smc_close_reset_tcp() - resets the TCP connection beneath one that is over. An error that the
 * application has yet to get stays. The caller holds the sock's lock. Does not sleep.
 */
void smc_close_reset_tcp(struct sock *sk)
{
	int err = READ_ONCE(sk->sk_err);

	sock_owned_by_me(sk);
	sk->sk_prot->disconnect(sk, O_NONBLOCK);
	/* TCP has set its own error, unless the application has just got that: once is enough. */
	cmpxchg(&sk->sk_err, ECONNRESET, err);
}

/*
 * The application may hold the sock's lock for as long as it likes. Then its peer gets the reset later, and
 * nobody else waits.
 */
static void close_disconnect_work(struct work_struct *work)
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
	/* The sock may belong to another connection by now, which connect() has made since. */
	if (READ_ONCE(conn->state) == SMC_CLOSE_PABORT && sk->sk_state != TCP_CLOSE && !sock_flag(sk, SOCK_DEAD))
		smc_close_reset_tcp(sk);
	release_sock(sk);
	smc_conn_put(conn);
}

/*
 * The group of a connection has ended: calls of the application fail, and a moment later TCP resets the connection
 * to the peer.
 */
static void close_lgr_gone(struct smc_conn *conn)
{
	smc_close_event(conn, SMC_CLOSE_GONE);
	if (READ_ONCE(conn->state) != SMC_CLOSE_PABORT)
		return;
	smc_conn_get(conn);
	if (!queue_delayed_work(smc_net_wq, &conn->disconnect, 0))
		smc_conn_put(conn);
}

/* smc_close_lgr_ends() - the group of a connection ends. Process context or softirq; does not sleep. */
void smc_close_lgr_ends(struct smc_conn *conn, enum smc_lgr_end how)
{
	if (how == SMC_LGR_END_ALL) {
		smc_conn_kill(conn, false);
		return;
	}
	/* A rendezvous finds out by itself, and its connection may still be TCP. */
	if (READ_ONCE(conn->holder) == SMC_CONN_RENDEZVOUS)
		return;
	/* While the group can still send, the peer hears of it. */
	if (how == SMC_LGR_END_BY_OPERATOR)
		smc_close_event(conn, SMC_CLOSE_RESET);
	close_lgr_gone(conn);
}

/*
 * smc_close_check_lgr() - a connection has come to life and has its holder: ends it if its group ended
 * before that, when nobody could be told. May sleep.
 */
void smc_close_check_lgr(struct smc_conn *conn)
{
	smp_mb(); /* pairs with the end of a group: it sees the holder, or we see the end */
	if (!READ_ONCE(conn->member.lgr->listed))
		close_lgr_gone(conn);
	/* The same for IPsec, see ipsec_recheck(). */
	smc_ipsec_check(conn);
}

static void close_timer(struct timer_list *timer)
{
	struct smc_conn *conn = container_of(timer, struct smc_conn, timer);

	smc_close_event(conn, SMC_CLOSE_TIMEOUT);
	smc_conn_put(conn);
}

/* smc_close_prepare() - of a new connection. */
void smc_close_prepare(struct smc_conn *conn)
{
	spin_lock_init(&conn->lock);
	conn->state = SMC_CLOSE_ACTIVE;
	conn->urgent_skip_pos = ~0ULL;
	timer_setup(&conn->timer, close_timer, 0);
	INIT_DELAYED_WORK(&conn->disconnect, close_disconnect_work);
}
