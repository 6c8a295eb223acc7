// SPDX-License-Identifier: GPL-2.0-only
/* The lifetime of a connection, what listings and poll(2) show of it, and the upcalls of its transport. */

#include <linux/export.h>
#include <linux/jiffies.h>
#include <linux/math64.h>
#include <linux/slab.h>
#include <net/tcp.h>

#include "../control/diag.h"
#include "../net.h"
#include "cdc.h"
#include "conn.h"
#include "show.h"

static struct kmem_cache *conn_cache;

/**
 * smc_conn_new() - makes a connection for a rendezvous
 * @lgr: its group; takes over the slot that smc_lgr_join() has reserved, and the reference
 * @offer: the rendezvous
 *
 * The transport then fills in rx and what it knows of the peer's receive buffer, and calls smc_lgr_add_member().
 *
 * Return: the connection, with a reference for the caller; the connection holds another until it is over.
 * NULL without memory; then the slot of the group is free again.
 */
struct smc_conn *smc_conn_new(struct smc_lgr *lgr, struct smc_offer *offer)
{
	struct smc_conn *conn = kmem_cache_zalloc(conn_cache, GFP_KERNEL);

	might_sleep();
	if (!conn) {
		smc_lgr_leave(lgr);
		return NULL;
	}
	refcount_set(&conn->ref, 2);
	conn->member.lgr = lgr;
	conn->ops = lgr->key.ops;
	conn->tech = conn->ops->role == SMC_ROLE_D ? SMC_STATS_D : SMC_STATS_R;
	conn->server = offer->server;
	conn->sk = offer->sk;
	sock_hold(conn->sk);
	conn->member.sn = smc_net(sock_net(conn->sk));
	atomic_inc(&conn->member.sn->conns);
	conn->granule = 1;
	conn->since = get_jiffies_64();
	INIT_LIST_HEAD(&conn->member.list);
	INIT_LIST_HEAD(&conn->member.net_list);
	mutex_init(&conn->rx_lock);
	smc_tx_prepare(conn);
	smc_close_prepare(conn);
	return conn;
}

/* smc_conn_get() - takes a reference on a connection; the caller has one. Any context. */
void smc_conn_get(struct smc_conn *conn)
{
	refcount_inc(&conn->ref);
}

/* smc_conn_get_live() - takes a reference on a connection found under RCU. Return: false if it is being freed. */
bool smc_conn_get_live(struct smc_conn *conn)
{
	RCU_LOCKDEP_WARN(!rcu_read_lock_held(), "smc_conn_get_live() outside of an RCU section");
	return refcount_inc_not_zero(&conn->ref);
}

static void conn_free_rcu(struct rcu_head *head)
{
	struct smc_conn *conn = container_of(head, struct smc_conn, rcu);
	struct smc_lgr *lgr = conn->member.lgr;

	conn->ops->free(conn);
	sock_put(conn->sk);
	kmem_cache_free(conn_cache, conn);
	smc_lgr_put(lgr); /* last: unloading waits for it */
}

/*
 * smc_conn_put() - drops a reference. After the last one and a grace period, the connection is freed with its
 * buffers and its references on the group and the sock. Any context but hardirq.
 */
void smc_conn_put(struct smc_conn *conn)
{
	if (refcount_dec_and_test(&conn->ref))
		call_rcu(&conn->rcu, conn_free_rcu);
}

/* smc_conn_count() - counts a connection that a socket has got. Any context. */
void smc_conn_count(struct smc_conn *conn)
{
	unsigned int counter = conn->server ? SMC_STATS_SERVER_V1 : SMC_STATS_CLIENT_V1;

	smc_stats_add(conn->member.sn, conn->tech, counter + (conn->member.lgr->key.version > 1), 1);
}

/* smc_conn_wake() - wakes threads that sleep on the socket or poll it, with @events. Any context but hardirq. */
void smc_conn_wake(struct smc_conn *conn, __poll_t events)
{
	struct sock *sk = conn->sk;
	struct socket_wq *wq;

	rcu_read_lock();
	wq = rcu_dereference(sk->sk_wq);
	/* Has a full barrier, so that the sleeper sees what the caller has changed, or the caller sees the sleeper. */
	if (skwq_has_sleeper(wq))
		wake_up_interruptible_sync_poll(&wq->wait, events);
	rcu_read_unlock();
	if (events & EPOLLHUP)
		sk_wake_async(sk, SOCK_WAKE_WAITD, POLL_HUP);
	else if (events & EPOLLIN)
		sk_wake_async(sk, SOCK_WAKE_WAITD, POLL_IN);
	else
		sk_wake_async(sk, SOCK_WAKE_SPACE, POLL_OUT);
}

/**
 * smc_conn_lowat() - how many bytes make a socket readable
 * @conn: its connection
 *
 * SO_RCVLOWAT, limited to what certainly arrives. The peer's writer waits until half of the ring is free, and does
 * not see the read part of a page, or what no consumer update has reported yet (rx.c). It may have no memory for more.
 *
 * Context: any.
 * Return: 1 at least; a quarter of the ring, or nearly half of it, at most.
 */
u32 smc_conn_lowat(const struct smc_conn *conn)
{
	u32 most = conn->rx.fixed ? conn->rx.size / 4 : conn->rx.size / 2 - PAGE_SIZE;

	if (READ_ONCE(conn->rx_cons) < READ_ONCE(conn->rx_short))
		return 1;
	return clamp_t(u32, READ_ONCE(conn->sk->sk_rcvlowat), 1, most);
}

/* smc_conn_readable() - returns whether recv() finds data, the end of the stream or an error. Any context. */
bool smc_conn_readable(const struct smc_conn *conn)
{
	u64 cons = smp_load_acquire(&conn->rx_cons); /* not after rx_prod, which is not before it */
	u32 want = smc_conn_lowat(conn);

	if (smc_conn_meaning(conn)->eof || READ_ONCE(conn->sk->sk_err))
		return true;
	/* recv() does not return the urgent byte. */
	if (smc_urgent_stops(conn, cons) && !sock_flag(conn->sk, SOCK_URGINLINE))
		want++;
	return smp_load_acquire(&conn->rx_prod) - cons >= want;
}

/* smc_conn_poll() - returns the events of poll(2). Process context; does not sleep. */
__poll_t smc_conn_poll(struct smc_conn *conn)
{
	const struct smc_close_meaning *m;
	struct sock *sk = conn->sk;
	__poll_t mask = 0;
	bool eof;

	smc_close_check_tcp(conn);
	m = smc_conn_meaning(conn);
	eof = m->eof || READ_ONCE(conn->rx_shut);
	if ((eof && m->shut) || m->over)
		mask |= EPOLLHUP;
	if (eof)
		mask |= EPOLLIN | EPOLLRDNORM | EPOLLRDHUP;
	if (smc_conn_readable(conn))
		mask |= EPOLLIN | EPOLLRDNORM;
	if (m->shut || m->deaf || smc_tx_writable(conn))
		mask |= EPOLLOUT | EPOLLWRNORM;
	if (READ_ONCE(conn->urgent) == SMC_URGENT_VALID)
		mask |= EPOLLPRI;
	if (READ_ONCE(sk->sk_err) || !skb_queue_empty_lockless(&sk->sk_error_queue))
		mask |= EPOLLERR;
	return mask;
}

/* Converts a position to a cursor (RFC 7609, A.4). */
static struct smc_diag_cursor diag_cursor(u64 pos, u32 size)
{
	struct smc_diag_cursor cursor = {};

	if (size)
		cursor.wrap = div_u64_rem(pos, size, &cursor.count);
	return cursor;
}

/*
 * "rx" is what the peer has sent, "tx" what was sent to it, so each has a producer cursor of one ring and a
 * consumer cursor of the other. The send buffer is shown as if it were the peer's receive buffer.
 */
static void conn_describe_rings(const struct smc_conn *conn, struct smc_diag_conninfo *c)
{
	u32 rx = conn->rx.size, tx = conn->tx_size;

	c->token = conn->member.token;
	c->sndbuf_size = tx;
	c->rmbe_size = rx;
	c->peer_rmbe_size = tx;
	c->rx_prod = diag_cursor(READ_ONCE(conn->rx_prod), rx);
	c->rx_cons = diag_cursor(READ_ONCE(conn->tx_cons), tx);
	c->tx_prod = diag_cursor(READ_ONCE(conn->tx_signaled), tx);
	c->tx_cons = diag_cursor(smc_rx_signaled(conn), rx);
	c->tx_prep = diag_cursor(READ_ONCE(conn->tx_prod), tx);
	c->tx_sent = c->tx_prod;
	c->tx_fin = c->rx_cons;
	c->rx_prod_flags = READ_ONCE(conn->urgent) == SMC_URGENT_VALID ? SMC_CDC_URGENT : 0;
	c->tx_prod_flags = READ_ONCE(conn->tx_waiting) && !smc_tx_room(conn) ? SMC_CDC_BLOCKED : 0;
	c->rx_conn_state_flags = READ_ONCE(conn->peer_close_flags);
	c->tx_conn_state_flags = READ_ONCE(conn->close_flags);
}

static void conn_describe_progress(const struct smc_conn *conn, struct smc_uapi_progress *p)
{
	p->sent = READ_ONCE(conn->tx_prod);
	p->acked = READ_ONCE(conn->tx_cons);
	p->received = READ_ONCE(conn->rx_prod);
	p->read = READ_ONCE(conn->rx_cons);
	p->age_ms = jiffies64_to_msecs(get_jiffies_64() - conn->since);
}

/**
 * smc_conn_describe() - fills in what sock_diag shows of a connection
 * @conn: the connection
 * @info: result. Positions are read without locks, so they need not be of one moment
 *
 * Context: any but hardirq.
 */
void smc_conn_describe(struct smc_conn *conn, struct smc_diag_info *info)
{
	const struct smc_close_meaning *m = smc_conn_meaning(conn);
	bool closed = READ_ONCE(conn->holder) == SMC_CONN_ORPHAN && m->shut;

	memset(info, 0, sizeof(*info));
	info->sk = conn->sk;
	info->state = m->code;
	info->shutdown = (closed || m->eof || READ_ONCE(conn->rx_shut) ? RCV_SHUTDOWN : 0) |
			 (m->shut ? SEND_SHUTDOWN : 0);
	conn_describe_rings(conn, &info->conn);
	conn_describe_progress(conn, &info->progress);
	if (conn->ops->describe)
		conn->ops->describe(conn, info);
}
EXPORT_SYMBOL_GPL(smc_conn_describe);

/* smc_conn_orphan() - returns the connection of a member if it has no socket, else NULL. Any context. */
struct smc_conn *smc_conn_orphan(struct smc_lgr_member *member)
{
	struct smc_conn *conn = smc_conn_of(member);

	lockdep_assert_held(&member->sn->lgr->lock);
	/* Pairs with smc_active_child(): before its store, the transport is still preparing the connection. */
	return smp_load_acquire(&conn->holder) == SMC_CONN_ORPHAN ? conn : NULL;
}
EXPORT_SYMBOL_GPL(smc_conn_orphan);

/*
 * Returns whether the peer may have written up to @prod. smc_urgent_extra() comes before the second look at rx_cons: a
 * reader that passes the urgent byte in between has moved rx_cons then.
 */
static bool prod_fits(struct smc_conn *conn, u64 prod)
{
	u32 spare;

	if (prod <= READ_ONCE(conn->rx_cons) + conn->rx.size)
		return true;
	spare = smc_urgent_extra(conn);
	return prod <= READ_ONCE(conn->rx_cons) + conn->rx.size + spare;
}

/**
 * smc_upcall_data() - the peer has written data
 * @conn: the connection
 * @prod: end of the data, a position in the stream. One that is impossible is ignored
 * @urgent: the last byte is urgent
 *
 * Context: any but hardirq; one caller at a time.
 */
void smc_upcall_data(struct smc_conn *conn, u64 prod, bool urgent)
{
	RCU_LOCKDEP_WARN(!rcu_read_lock_held(), "smc_upcall_data() outside of an RCU section");
	if (prod < conn->rx_prod || !prod_fits(conn, prod))
		return;
	/* A byte that was reported before may be read, and its page freed. */
	urgent = urgent && prod > conn->rx_prod;
	if (urgent)
		smc_urgent_received(conn, prod);
	smp_store_release(&conn->rx_prod, prod); /* pairs with the reader's acquire */
	/* Pollers check SO_RCVLOWAT themselves. A reader that waits for more takes less data, too. */
	smc_conn_wake(conn, EPOLLIN | EPOLLRDNORM | EPOLLRDBAND | (urgent ? EPOLLPRI : 0));
}

/**
 * smc_upcall_space() - there is more room to write to
 * @conn: the connection
 * @cons: position in the stream up to which data is consumed: tx_window bytes from there on may be written. One
 *        that is impossible is ignored
 *
 * Context: any but hardirq; one caller at a time.
 */
void smc_upcall_space(struct smc_conn *conn, u64 cons)
{
	RCU_LOCKDEP_WARN(!rcu_read_lock_held(), "smc_upcall_space() outside of an RCU section");
	if (cons < conn->tx_cons || cons > READ_ONCE(conn->tx_prod))
		return;
	smp_store_release(&conn->tx_cons, cons); /* pairs with smc_tx_room() */
	smc_tx_wake(conn);
}

/**
 * smc_upcall_received() - a CDC message has brought data, or asks for a consumer update
 * @conn: the connection
 * @rx: the state after the message
 * @delta: what the message has changed
 *
 * Context: any but hardirq; one caller at a time.
 */
void smc_upcall_received(struct smc_conn *conn, const struct smc_cdc_rx *rx, const struct smc_cdc_delta *delta)
{
	RCU_LOCKDEP_WARN(!rcu_read_lock_held(), "smc_upcall_received() outside of an RCU section");
	if (READ_ONCE(conn->rx_blocked) != delta->blocked)
		WRITE_ONCE(conn->rx_blocked, delta->blocked);
	if (delta->update_requested) {
		WRITE_ONCE(conn->rx_update_requested, true);
		smp_mb(); /* pairs with that of rx_consume(): the reader sees the request, or smc_conn_cdc_due() what was read */
	}
	if (delta->data > 0 || delta->urgent)
		smc_upcall_data(conn, rx->prod.pos, delta->urgent);
}

/**
 * smc_conn_cdc_due() - returns whether a message of the peer has to be answered at once
 * @conn: the connection
 * @tx: what was sent
 * @delta: what the peer's message has changed
 *
 * The peer has read an urgent byte, which held back data or closing flags of ours. Or the peer asks for a consumer
 * update (RFC 7609, 4.5.1), or holds back data until we have read its urgent byte.
 *
 * Context: any.
 */
bool smc_conn_cdc_due(struct smc_conn *conn, const struct smc_cdc_tx *tx, const struct smc_cdc_delta *delta)
{
	if ((delta->space > 0 || delta->closing) && READ_ONCE(tx->urgent)) {
		/* Pairs with those of cdc_send_update() and take_turn(): a sender sees this message, or we see its data. */
		smp_mb();
		if (READ_ONCE(tx->prod.pos) != READ_ONCE(tx->written))
			return true;
	}
	return (delta->urgent || delta->update_requested) && READ_ONCE(tx->cons.pos) != smc_urgent_cons(conn);
}

/**
 * smc_upcall_close() - the peer has sent closing flags (RFC 7609, 4.8)
 * @conn: the connection
 * @flags: those that are new: SMC_CDC_DONE, SMC_CDC_CLOSED, SMC_CDC_ABORT
 *
 * Context: any but hardirq.
 */
void smc_upcall_close(struct smc_conn *conn, u8 flags)
{
	RCU_LOCKDEP_WARN(!rcu_read_lock_held(), "smc_upcall_close() outside of an RCU section");
	if (flags & SMC_CDC_DONE)
		smc_close_event(conn, SMC_CLOSE_PEER_D);
	if (flags & SMC_CDC_CLOSED)
		smc_close_event(conn, SMC_CLOSE_PEER_C);
	if (flags & SMC_CDC_ABORT)
		smc_close_event(conn, SMC_CLOSE_PEER_A);
}

/*
 * smc_upcall_reset() - aborts the connection: the application gets ECONNRESET, the peer an abort. Our receive buffer
 * stays until the peer has answered, since it may still write. Any context but hardirq.
 */
void smc_upcall_reset(struct smc_conn *conn)
{
	RCU_LOCKDEP_WARN(!rcu_read_lock_held(), "smc_upcall_reset() outside of an RCU section");
	smc_close_event(conn, SMC_CLOSE_RESET);
}

static void conn_member_get(struct smc_lgr_member *member)
{
	smc_conn_get(smc_conn_of(member));
}

static void conn_member_put(struct smc_lgr_member *member)
{
	smc_conn_put(smc_conn_of(member));
}

static void conn_member_end(struct smc_lgr_member *member, enum smc_lgr_end how)
{
	smc_close_lgr_ends(smc_conn_of(member), how);
}

/* Trims the memory of a connection. */
static void conn_member_trim(struct smc_lgr_member *member)
{
	struct smc_conn *conn = smc_conn_of(member);

	conn->ops->trim(conn);
}

/* The same if it has written nothing since the last call. */
static void conn_member_trim_quiet(struct smc_lgr_member *member)
{
	struct smc_conn *conn = smc_conn_of(member);
	u64 now = READ_ONCE(conn->tx_prod);

	if (now == conn->trimmed) {
		conn->ops->trim(conn);
		smc_tx_retry(conn);
	}
	conn->trimmed = now;
}

static u32 conn_member_buf_bytes(const struct smc_lgr_member *member)
{
	const struct smc_rcvbuf *rx = &container_of(member, const struct smc_conn, member)->rx;

	return rx->size + rx->skip;
}

static const struct smc_lgr_member_ops member_ops = {
	.get		= conn_member_get,
	.put		= conn_member_put,
	.end		= conn_member_end,
	.trim		= conn_member_trim,
	.trim_quiet	= conn_member_trim_quiet,
	.buf_bytes	= conn_member_buf_bytes,
};

/* smc_conn_init() - at load. Return: 0 or -ENOMEM. */
int __init smc_conn_init(void)
{
	smc_lgr_set_member_ops(&member_ops);
	conn_cache = KMEM_CACHE(smc_conn, SLAB_ACCOUNT | SLAB_HWCACHE_ALIGN);
	return conn_cache ? 0 : -ENOMEM;
}

/* smc_conn_exit() - at unload. */
void smc_conn_exit(void)
{
	might_sleep();
	/* The first waits for sockets, whose callbacks drop connections, the second for these connections. */
	rcu_barrier();
	rcu_barrier();
	kmem_cache_destroy(conn_cache);
}
