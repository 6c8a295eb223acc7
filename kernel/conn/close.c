// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs the closing table (close_table.h). An event changes the state under conn->lock. Its actions are carried out
 * without the lock, so that two ends in one kernel can signal each other at the same time. Closing flags stay set, so it
 * does not matter which thread sends them. When a connection is over, the last thread that carries out its actions
 * releases it.
 */

#include <net/ip.h>
#include <net/tcp.h>
#include <net/tcp_states.h>

#include "../control/trace.h"
#include "../lgr/lgr.h"
#include "../net.h"
#include "../trylock.h"
#include "conn.h"

/* Limits tcp_fin_timeout, as TCP_LINGER2 does, since a closing connection holds memory that the host shares. */
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

/* Changes the state. Return: the actions, which the caller carries out without the lock. */
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
	/* Pairs with dmb_cdc_send() of transport/ism/dmb_cdc.c. */
	smp_store_release(&conn->close_flags, conn->close_flags | flags_to_send(step->actions));
	/* A TCP connection that is dead has reported its own error. */
	if (err && !READ_ONCE(conn->sk->sk_err) && inet_sk_state_load(conn->sk) != TCP_CLOSE)
		WRITE_ONCE(conn->sk->sk_err, err);
	smp_store_release(&conn->state, step->next); /* after sk_err and rx_done: see rx_stream_end() and tx_may_send() */
	if (step->actions & SMC_CLOSE_END)
		conn->ending = true;
	return step->actions;
}

static void close_start_timer(struct smc_conn *conn)
{
	int timeout = READ_ONCE(sock_net(conn->sk)->ipv4.sysctl_tcp_fin_timeout);

	smc_conn_get(conn);
	if (mod_timer(&conn->timer, jiffies + min(timeout, TIMER_MAX)))
		smc_conn_put(conn);
}

/* Releases what the connection has. From now on only holders of a reference use it. */
static void close_conn_end(struct smc_conn *conn)
{
	if (timer_delete(&conn->timer))
		smc_conn_put(conn);
	if (delayed_work_pending(&conn->push) && cancel_delayed_work(&conn->push))
		smc_conn_put(conn);
	conn->ops->release(conn);
	smc_lgr_del_member(&conn->member);
	smc_conn_put(conn); /* the reference of the connection itself, from smc_conn_new() */
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
 * smc_close_event() - runs one step of the closing table (RFC 7609, 4.8)
 * @conn: the connection
 * @event: what has happened
 *
 * Context: any but hardirq; the caller may hold the connection's mutexes, but not conn->lock.
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
 * smc_close_check_tcp() - aborts the connection if the TCP connection beneath is closed. Threads call this before they
 * wait, and TCP wakes those that wait. Any context but hardirq.
 */
void smc_close_check_tcp(struct smc_conn *conn)
{
	if (unlikely(inet_sk_state_load(conn->sk) == TCP_CLOSE) && !smc_conn_meaning(conn)->over)
		smc_close_event(conn, SMC_CLOSE_RESET);
}

/**
 * smc_close_app() - the application closes its socket, or disconnects it
 * @conn: the connection
 * @hard: abort the connection, even if all data was read
 */
void smc_close_app(struct smc_conn *conn, bool hard)
{
	might_sleep();
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
 * smc_conn_kill() - ends a connection that never became active, or whose namespace or module goes. Sends the peer an
 * abort unless @quiet. Any context but hardirq.
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
 * smc_close_reset_tcp() - resets the TCP connection beneath. An error that the application has not got yet stays. Does
 * not sleep.
 */
void smc_close_reset_tcp(struct sock *sk)
{
	int err = READ_ONCE(sk->sk_err);

	sock_owned_by_me(sk);
	sk->sk_prot->disconnect(sk, O_NONBLOCK);
	/* TCP has set ECONNRESET. If the application has got that meanwhile, it gets no second error. */
	cmpxchg(&sk->sk_err, ECONNRESET, err);
}

/*
 * Resets the TCP connection. If the application holds the sock's lock, the work tries again later, so that no other
 * socket waits for this one.
 */
static void close_disconnect_work(struct work_struct *work)
{
	struct smc_conn *conn = container_of(to_delayed_work(work), struct smc_conn, disconnect);
	struct sock *sk = conn->sk;

	if (READ_ONCE(conn->state) != SMC_CLOSE_PABORT || sock_flag(sk, SOCK_DEAD)) {
		smc_conn_put(conn);
		return;
	}
	/* Only TCP locks a sock in a listener's accept queue. */
	if (!READ_ONCE(sk->sk_socket) || !smc_sock_trylock(sk)) {
		/* Another thread may have queued the work meanwhile, with a reference of its own. */
		if (!queue_delayed_work(smc_net_wq, &conn->disconnect, SMC_TRYLOCK_RETRY))
			smc_conn_put(conn);
		return;
	}
	/* connect() may have made another connection of the sock since. */
	if (READ_ONCE(conn->state) == SMC_CLOSE_PABORT && sk->sk_state != TCP_CLOSE && !sock_flag(sk, SOCK_DEAD))
		smc_close_reset_tcp(sk);
	release_sock(sk);
	smc_conn_put(conn);
}

/*
 * The link group of a connection has ended. Calls of the application fail, and TCP resets its connection to the peer.
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

/* smc_close_lgr_ends() - the link group of a connection ends. Any context but hardirq. */
void smc_close_lgr_ends(struct smc_conn *conn, enum smc_lgr_end how)
{
	if (how == SMC_LGR_END_ALL) {
		smc_conn_kill(conn, false);
		return;
	}
	/* The connection may still become TCP; if not, smc_close_check_lgr() ends it. */
	WRITE_ONCE(conn->lgr_ended, true);
	smp_mb(); /* pairs with smc_close_check_lgr(): it sees this, or we see the holder */
	if (READ_ONCE(conn->holder) == SMC_CONN_RENDEZVOUS)
		return;
	/* The group can still send the abort. */
	if (how == SMC_LGR_END_BY_OPERATOR)
		smc_close_event(conn, SMC_CLOSE_RESET);
	close_lgr_gone(conn);
}

/*
 * smc_close_check_lgr() - for a connection that has just become active: ends it if its group ended before, or if an
 * IPsec policy applies to it.
 */
void smc_close_check_lgr(struct smc_conn *conn)
{
	might_sleep();
	smp_mb(); /* pairs with smc_close_lgr_ends(): it sees the holder, or we see the end */
	if (READ_ONCE(conn->lgr_ended))
		close_lgr_gone(conn);
	/* The barrier pairs with that of ipsec_recheck(), too. */
	smc_ipsec_check(conn);
}

static void close_timer(struct timer_list *timer)
{
	struct smc_conn *conn = container_of(timer, struct smc_conn, timer);

	smc_close_event(conn, SMC_CLOSE_TIMEOUT);
	smc_conn_put(conn);
}

/* smc_close_prepare() - initialises the closing part of a new connection. */
void smc_close_prepare(struct smc_conn *conn)
{
	spin_lock_init(&conn->lock);
	conn->state = SMC_CLOSE_ACTIVE;
	conn->urgent_skip_pos = ~0ULL;
	timer_setup(&conn->timer, close_timer, 0);
	INIT_DELAYED_WORK(&conn->disconnect, close_disconnect_work);
}
