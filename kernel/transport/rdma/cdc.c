// SPDX-License-Identifier: GPL-2.0-only
/*
 * CDC over a link: each message follows the data that it tells of. conn/cdc.c decides what a message
 * says; here is how it is sent, and in cdc_recv.c how it is received.
 *
 * Data stays in the send ring until the peer has it, because the adapter may have to send it again. The
 * peer's cursor tells when. But a peer with a large RMB reads a tenth of it before it sends its cursor,
 * whatever we ask of it. If our ring is smaller than that RMB, completions tell as well.
 */

#include <linux/highmem.h>
#include <linux/uio.h>

#include "../../control/sysctl.h"
#include "../../net.h"
#include "group.h"

/*
 * Synchronises bytes of a stream that are in a buffer from an offset on, if adapter and processor do not see the same
 * memory. Return: false if the link is down, and the buffer may have been unmapped.
 */
static bool sync_bytes(struct smc_rdma_buf *buf, struct smc_link *link, u32 off, u64 n)
{
	if (likely(!smc_rdma_buf_map_of(buf, link)->bounces))
		return true;
	if (!smc_link_usable(link))
		return false;
	smc_rdma_buf_sync(buf, link, off, n);
	return true;
}

/* Fills the writes of the data up to a position: each ends where a ring does. Returns how many there are. */
static unsigned int split_at_wrap(const struct smc_rdma_conn *rc, u64 end, struct smc_link_write *w)
{
	const struct smc_buf_map *map = smc_rdma_buf_map_of(rc->snd, rc->link);
	u32 left = end - rc->tx.prod.pos, from = rc->snd_off, at = rc->tx.prod.at.count;
	unsigned int n = 0;

	/* There are no more while the peer has read no more than messages have reported, which smc_cdc_recv() checks. */
	while (left && !WARN_ON_ONCE(n == SMC_LINK_WRITES)) {
		u32 len = min3(left, rc->snd->size - from, rc->conn->tx_size - at);

		w[n++] = (struct smc_link_write){
			.local = map->addr + from,
			.lkey = map->lkey,
			.remote = rc->peer_addr + at,
			.rkey = rc->peer_rkey,
			.len = len,
		};
		left -= len;
		from = from + len < rc->snd->size ? from + len : 0;
		at = at + len < rc->conn->tx_size ? at + len : 0;
	}
	return n;
}

/* Builds the message that is due now. */
static void cdc_build(const struct smc_rdma_conn *rc, struct smc_cdc_update *u)
{
	struct smc_conn *conn = rc->conn;
	const struct smc_cdc_now now = {
		.close_flags = READ_ONCE(conn->close_flags),
		.written = rc->tx.written,
		.urgent = rc->tx.urgent,
		.read = smc_urgent_cons(conn),
		.full = smc_rdma_peer_full(conn),
		.tx_size = conn->tx_size,
		.rx_size = conn->rx.size,
	};

	lockdep_assert_held(&rc->lock);
	smc_cdc_build(&rc->tx, &rc->rx, &now, u);
	u->msg.token = rc->peer_token;
}

/* Will a completion report data that was sent? */
static bool completion_pending(const struct smc_rdma_conn *rc)
{
	return READ_ONCE(rc->batch[0].pending) || READ_ONCE(rc->batch[1].pending);
}

/*
 * Selects the batch whose completion is reported, or NULL. If our ring is smaller than the peer's, two batches
 * alternate, so that a completion always arrives before the ring is empty. Otherwise completions serve autocorking
 * alone: one at a time, and none while the peer has read everything that was sent before, as in a dialogue.
 */
static struct smc_rdma_batch *next_batch(struct smc_rdma_conn *rc, u64 end)
{
	if (end == rc->tx.prod.pos)
		return NULL;
	if (rc->conn->tx_window != rc->conn->tx_size)
		return &rc->batch[READ_ONCE(rc->batch[0].pending)];
	if (!READ_ONCE(rc->conn->member.sn->sysctl->autocorking_size) || completion_pending(rc) ||
	    READ_ONCE(rc->rx.cons.pos) == rc->tx.prod.pos)
		return NULL;
	return &rc->batch[0];
}

/*
 * Autocorking, as TCP and the stock module have it: while something is on its way, small writes are collected and go
 * out together when that has arrived, but no more than net.smc.autocorking_size or half of the ring.
 */
static bool should_autocork(const struct smc_rdma_conn *rc)
{
	u32 most = min(rc->snd->size / 2, READ_ONCE(rc->conn->member.sn->sysctl->autocorking_size));

	lockdep_assert_held(&rc->lock);
	return completion_pending(rc) && rc->tx.written - rc->tx.prod.pos <= most;
}

/*
 * May the message be immediate data? Only if the peer has agreed. A client waits for the server's first message: what
 * immediate data means depends on messages before it, and the server may not be ready for these yet.
 */
static bool may_send_imm(const struct smc_rdma_conn *rc, const struct smc_cdc_update *u, unsigned int writes)
{
	return rc->group->immediate && writes == 1 && (rc->conn->server || READ_ONCE(rc->received)) && !rc->resync &&
	       smc_cdc_fits_imm(&rc->tx, u);
}

/*
 * Selects what is called when a message has arrived, or NULL, with a reference on the connection. A message that closes may
 * be the last one: if it is lost with its link, smc_rdma_failover_ended() sends it again. One at a time is looked after.
 */
static struct smc_link_completion *take_completion(struct smc_rdma_conn *rc, const struct smc_cdc_update *u)
{
	struct smc_rdma_batch *batch;

	lockdep_assert_held(&rc->lock);
	if ((u->msg.state & (SMC_CDC_CLOSED | SMC_CDC_ABORT)) && !rc->last_out) {
		smc_conn_get(rc->conn);
		rc->last_out = true;
		return &rc->last;
	}
	batch = next_batch(rc, u->prod.pos);
	if (!batch)
		return NULL;
	smc_conn_get(rc->conn);
	WRITE_ONCE(batch->pending, true);
	return &batch->completion;
}

/* The link does not have the completion, or had it before, with a reference of its own. */
static void drop_completion(struct smc_rdma_conn *rc, struct smc_link_completion *completion, int err)
{
	lockdep_assert_held(&rc->lock);
	if (completion == &rc->last)
		rc->last_out = false;
	else if (err)
		WRITE_ONCE(container_of(completion, struct smc_rdma_batch, completion)->pending, false);
	smc_conn_put(rc->conn);
}

/*
 * Posts the data and the message. The caller holds a reference on the connection. Each place on the link's lists has
 * one, too: a batch takes it first, because its completion may come at once; a waiter's is not put before we release
 * the lock. Return: as smc_link_send() does.
 */
static int cdc_post(struct smc_rdma_conn *rc, const struct smc_cdc_update *u)
{
	struct smc_link_completion *completion = take_completion(rc, u);
	struct smc_link_write w[SMC_LINK_WRITES];
	u8 msg[SMC_CDC_R_LEN];
	struct smc_link_send_req req = {
		.writes = w,
		.n = split_at_wrap(rc, u->prod.pos, w),
		.msg = msg,
		/* The send ring is needed again once the connection's last message has arrived, or its link is to change then. */
		.signaled = u->msg.state || rc->held,
		.completion = completion,
		.pos = u->prod.pos,
		.seq = u->msg.seq,
		.waiter = &rc->waiter,
	};
	int err;

	lockdep_assert_held(&rc->lock);
	req.immediate = may_send_imm(rc, u, req.n);
	if (req.immediate)
		req.imm = smc_cdc_encode_imm(&rc->tx, u, rc->peer_token & 0xff);
	else
		smc_cdc_r_encode(&u->msg, msg);
	err = smc_link_send(rc->link, &req);
	if (completion && (err == -EAGAIN || !req.fresh))
		drop_completion(rc, completion, err);
	if (!err)
		smc_rdma_failover_sent(rc, req.at, u);
	/* Until it has been sent: it may be the connection's last message. */
	if (err == -EAGAIN && req.fresh)
		smc_conn_get(rc->conn);
	return err;
}

/* Sends the new data, then a message with everything that is new. Return: as smc_link_send() does. */
static int cdc_send_update(struct smc_rdma_conn *rc)
{
	struct smc_cdc_update u;
	u32 data;
	int err;

	lockdep_assert_held(&rc->lock);
	smp_mb__after_spinlock(); /* pairs with that of smc_conn_cdc_due() */
	rc->snd_off = (rc->snd_off + smc_cdc_catch_up(&rc->tx, &rc->rx, rc->conn->tx_size)) & (rc->snd->size - 1);
	if (rc->over || (rc->tx.write_closed && !READ_ONCE(rc->bound)))
		rc->tx.closed_end = rc->tx.prod.pos; /* the peer's RMB may be others' by now */
	cdc_build(rc, &u);
	/* The peer must not take the end of what it has got for the end of the data. */
	if (rc->over && u.prod.pos < max(rc->tx.most_sent, rc->tx.written) && smc_cdc_peer_can_receive(&rc->rx))
		u.msg.state |= SMC_CDC_ABORT;
	data = u.prod.pos - rc->tx.prod.pos;
	sync_bytes(rc->snd, rc->link, rc->snd_off, data);
	err = cdc_post(rc, &u);
	if (err)
		return err;
	rc->snd_off = (rc->snd_off + data) & (rc->snd->size - 1);
	smc_cdc_sent(&rc->tx, &u);
	/* In a cache line that readers write all the time, so it is stored only if it changes. */
	if (rc->conn->rx_posted != u.cons.pos)
		WRITE_ONCE(rc->conn->rx_posted, u.cons.pos);
	rc->corked = false;
	return 0;
}

/*
 * smc_rdma_cdc_send() - sends the peer the new data, then a message with everything that is new. If the send queue has
 * no room, it is called again when there is room. Softirq.
 */
void smc_rdma_cdc_send(struct smc_rdma_conn *rc)
{
	spin_lock_bh(&rc->lock);
	/* By a link that is down, too: that keeps the last message for smc_rdma_failover_ended(). */
	if (rc->ready && !rc->held && (!rc->validate || smc_rdma_failover_validate(rc) != -EAGAIN))
		cdc_send_update(rc);
	spin_unlock_bh(&rc->lock);
}

/*
 * smc_rdma_cdc_hold() - sends by the link of a connection, and then nothing until `held` is cleared, and smc_rdma_cdc_send()
 * called. A connection that waits for room, or writes no more, is not worth it, and one in its handshake names its link there.
 * Softirq. Return: false if nothing is held; in @at the position of the link when all has arrived.
 */
bool smc_rdma_cdc_hold(struct smc_rdma_conn *rc, const struct smc_link *link, u64 *at)
{
	bool held;

	spin_lock_bh(&rc->lock);
	held = rc->ready && READ_ONCE(rc->conn->holder) != SMC_CONN_RENDEZVOUS && rc->link == link && !rc->validate &&
	       !rc->tx.write_closed && list_empty(&rc->waiter.list);
	rc->held = held;
	if (held && cdc_send_update(rc))
		rc->held = held = false;
	*at = rc->last_sent.at;
	spin_unlock_bh(&rc->lock);
	return held;
}

static void cdc_sq_has_room(struct smc_link_waiter *waiter)
{
	struct smc_rdma_conn *rc = container_of(waiter, struct smc_rdma_conn, waiter);

	smc_rdma_cdc_send(rc);
	smc_conn_put(rc->conn);
}

/* Sends what autocorking holds back, if anything. Softirq. */
static void send_corked_data(struct smc_rdma_conn *rc)
{
	bool corked;

	spin_lock_bh(&rc->lock);
	corked = rc->corked;
	spin_unlock_bh(&rc->lock);
	if (corked)
		smc_rdma_cdc_send(rc);
}

/* Adds the written data to the next message. Returns whether autocorking holds that back until send_corked_data(). */
static bool cdc_add_written(struct smc_rdma_conn *rc, unsigned int what)
{
	bool corked;

	spin_lock_bh(&rc->lock);
	WRITE_ONCE(rc->tx.written, rc->conn->tx_prod);
	if (what & SMC_SIGNAL_URGENT)
		WRITE_ONCE(rc->tx.urgent, rc->tx.written);
	/* A completion that comes now was taken into account, or its send_corked_data() waits for the lock. */
	corked = what == SMC_SIGNAL_DATA && should_autocork(rc);
	if (corked)
		rc->corked = true;
	spin_unlock_bh(&rc->lock);
	return corked;
}

/* smc_rdma_signal() - signal of the transport. Softirq. */
void smc_rdma_signal(struct smc_conn *conn, unsigned int what)
{
	struct smc_rdma_conn *rc = conn->priv;

	if (what == SMC_SIGNAL_PUSH) {
		send_corked_data(rc);
		return;
	}
	if ((what & SMC_SIGNAL_DATA) && cdc_add_written(rc, what))
		return;
	smc_rdma_cdc_send(rc);
}

/*
 * smc_rdma_write() - write of the transport: copies bytes, for which there is room, into the send ring.
 * Return: bytes, or -EFAULT.
 */
ssize_t smc_rdma_write(struct smc_conn *conn, struct iov_iter *from, u32 len)
{
	const struct smc_rdma_buf *snd = ((struct smc_rdma_conn *)conn->priv)->snd;
	u32 off = conn->tx_prod & (snd->size - 1), done = 0;

	might_sleep();
	while (done < len) {
		u32 in_page = PAGE_SIZE - (off & (PAGE_SIZE - 1));
		/* A page may be more than the ring. */
		u32 n = min3(len - done, snd->size - off, in_page);
		u32 copied = copy_page_from_iter(snd->pages[off >> PAGE_SHIFT], off & (PAGE_SIZE - 1), n, from);

		done += copied;
		off = (off + copied) & (snd->size - 1);
		if (copied < n)
			break;
	}
	return done || !len ? (ssize_t)done : -EFAULT;
}

/* smc_rdma_peer_full() - peer_full of the transport: does unread data fill the peer's RMBE? Any context. */
bool smc_rdma_peer_full(const struct smc_conn *conn)
{
	const struct smc_rdma_conn *rc = conn->priv;

	return READ_ONCE(conn->tx_prod) - READ_ONCE(rc->rx.cons.pos) >= conn->tx_size;
}

static void batch_arrived(struct smc_link_completion *completion, u64 pos, u16 seq)
{
	struct smc_rdma_batch *batch = container_of(completion, struct smc_rdma_batch, completion);
	struct smc_rdma_conn *rc = batch->rc;

	WRITE_ONCE(batch->pending, false);
	rcu_read_lock();
	spin_lock_bh(&rc->recv_lock);
	if (pos > rc->arrived.pos)
		rc->arrived = (struct smc_rdma_sent){ .pos = pos, .seq = seq };
	smc_rdma_cdc_report_space(rc);
	spin_unlock_bh(&rc->recv_lock);
	rcu_read_unlock();
	send_corked_data(rc);
	smc_conn_put(rc->conn);
}

/* A message with C or A has arrived, or may be lost with its link. */
static void last_arrived(struct smc_link_completion *completion, u64 pos, u16 seq)
{
	struct smc_rdma_conn *rc = container_of(completion, struct smc_rdma_conn, last);
	bool again;

	spin_lock_bh(&rc->lock);
	again = rc->last_again;
	rc->last_out = rc->last_again = false;
	spin_unlock_bh(&rc->lock);
	if (again)
		smc_rdma_cdc_send(rc);
	if (!pos)
		smc_rdma_failover_ended(rc);
	smc_conn_put(rc->conn);
}

/*
 * smc_rdma_stop_writing() - a connection has ended: no data is written to the peer's RMB any more; messages may still be sent.
 * Softirq.
 */
void smc_rdma_stop_writing(struct smc_rdma_conn *rc)
{
	spin_lock_bh(&rc->lock);
	rc->over = true;
	if (!rc->group->immediate)
		rc->validate = false; /* no data follows */
	smc_cdc_stop(&rc->tx);
	rc->tx.closed_end = rc->tx.prod.pos;
	spin_unlock_bh(&rc->lock);
}

/*
 * smc_rdma_revoke() - the peer has deleted the RMB of a connection that has not ended: the connection writes nothing
 * more, and is aborted, at once or when its rendezvous is complete; unless it has said that it writes no more. Softirq.
 */
void smc_rdma_revoke(struct smc_rdma_conn *rc)
{
	bool closed, ready;

	/* Taking the lock waits for a thread that has seen the connection bound, and posts. */
	spin_lock_bh(&rc->lock);
	closed = rc->tx.write_closed;
	smc_cdc_stop(&rc->tx);
	ready = rc->ready;
	spin_unlock_bh(&rc->lock);
	if (!ready || closed)
		return;
	rcu_read_lock();
	smc_upcall_reset(rc->conn);
	rcu_read_unlock();
}

/* smc_rdma_cdc_init() - of a new connection. */
void smc_rdma_cdc_init(struct smc_rdma_conn *rc)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rc->batch); i++) {
		INIT_LIST_HEAD(&rc->batch[i].completion.list);
		rc->batch[i].completion.fn = batch_arrived;
		rc->batch[i].rc = rc;
	}
	INIT_LIST_HEAD(&rc->last.list);
	rc->last.fn = last_arrived;
	rc->last.after_end = true;
	spin_lock_init(&rc->lock);
	spin_lock_init(&rc->recv_lock);
	INIT_LIST_HEAD(&rc->waiter.list);
	rc->waiter.fn = cdc_sq_has_room;
}
