// SPDX-License-Identifier: GPL-2.0-only
/* CDC messages that come over a link, or as immediate data. conn/cdc.c decides what they entail. */

#include "../../net.h"
#include "group.h"

/*
 * smc_rdma_cdc_report_space() - reports free space to writers: the peer's RMBE has room beyond what it has read, our send ring
 * beyond what has arrived. Data that the peer has read has arrived. Softirq.
 */
void smc_rdma_cdc_report_space(struct smc_rdma_conn *rc)
{
	struct smc_conn *conn = rc->conn;
	u64 read = rc->rx.cons.pos;

	lockdep_assert_held(&rc->recv_lock);
	smc_upcall_space(conn, min(read + conn->tx_size - conn->tx_window, max(read, rc->arrived.pos)));
}

/* Returns the end of the data that the peer can have read. Taking the lock waits for a thread that is posting more. */
static u64 posted_end(struct smc_rdma_conn *rc)
{
	u64 pos;

	spin_lock_bh(&rc->lock);
	pos = rc->tx.most_sent;
	spin_unlock_bh(&rc->lock);
	return pos;
}

/*
 * Takes in one message, of a connection that knows its peer. The caller is in a callback of the link, or has seen in its RCU
 * section that the link can be used, so that no buffer is unmapped; or nothing bounces. Return: the number of bytes that are new.
 */
static u64 cdc_take(struct smc_rdma_conn *rc, struct smc_link *link, const struct smc_cdc *msg)
{
	struct smc_conn *conn = rc->conn;
	u32 at = rc->rx.prod.at.count;
	struct smc_cdc_delta delta;

	lockdep_assert_held(&rc->recv_lock);
	RCU_LOCKDEP_WARN(!rcu_read_lock_held(), "cdc_take() outside of an RCU section");
	if (smc_cdc_recv(&rc->rx, msg, posted_end(rc), conn->rx.size, conn->tx_size, &delta)) {
		smc_link_fail(link, SMC_LINK_AHEAD, 0);
		return 0;
	}
	if (delta.data > 0 && smc_rdma_buf_map_of(rc->rmb, link)->bounces)
		smc_rdma_buf_sync(rc->rmb, link, at, delta.data);
	smc_upcall_received(conn, &rc->rx, &delta);
	if (delta.space > 0) {
		WRITE_ONCE(link->last_read, jiffies);
		smc_rdma_cdc_report_space(rc);
	}
	if (smc_conn_cdc_due(conn, &rc->tx, &delta) && smc_conn_get_live(conn)) {
		smc_rdma_cdc_send(rc);
		smc_conn_put(conn);
	}
	if (delta.closing)
		smc_upcall_close(conn, delta.closing);
	return max(delta.data, 0LL);
}

/* Takes in one message that has just come by a link. Called by the link's completion queue, so not by two threads at a time. */
static void cdc_take_new(struct smc_rdma_conn *rc, struct smc_link *link, const struct smc_cdc *msg)
{
	u64 bytes = cdc_take(rc, link, msg);

	WRITE_ONCE(link->rx_bytes, link->rx_bytes + bytes);
}

/* smc_rdma_cdc_defer() - keeps a message instead of one that came before. Softirq. */
void smc_rdma_cdc_defer(struct smc_rdma_conn *rc, struct smc_rdma_deferred *deferred, const struct smc_link *link,
		       const struct smc_cdc *msg)
{
	u8 urgent = deferred->msg.flags & SMC_CDC_URGENT;

	lockdep_assert_held(&rc->recv_lock);
	deferred->any = true;
	deferred->bounces |= smc_rdma_buf_map_of(rc->rmb, link)->bounces;
	deferred->link = link->serial;
	deferred->msg = *msg;
	deferred->msg.flags |= urgent;
}

/*
 * smc_rdma_cdc_take_deferred() - takes in the message that was deferred, once. If its link is lost meanwhile, the data is lost with it
 * where adapter and processor do not see the same memory. A link that can be used keeps the buffer mapped, in this RCU section.
 * Softirq. Return: false if the data is lost.
 */
bool smc_rdma_cdc_take_deferred(struct smc_rdma_conn *rc, struct smc_rdma_deferred *deferred)
{
	struct smc_link *link = smc_lgr_rdma_get_by_serial(rc->group, deferred->link);
	bool mapped = link && smc_link_usable(link);
	bool taken = mapped || (!deferred->bounces && !smc_rdma_buf_map_of(rc->rmb, rc->link)->bounces);
	u64 bytes;

	lockdep_assert_held(&rc->recv_lock);
	deferred->any = false;
	if (taken) {
		rc->rx.seq = deferred->msg.seq;
		bytes = cdc_take(rc, mapped ? link : rc->link, &deferred->msg);
		if (link)
			atomic64_add(bytes, &link->rx_deferred);
	}
	smc_link_put(link);
	return taken;
}

/* A client may write as soon as it has sent CONFIRM, and its message may overtake CONFIRM. */
static bool defer_early(struct smc_rdma_conn *rc, const struct smc_link *link, const struct smc_cdc *msg)
{
	bool early;

	spin_lock_bh(&rc->lock);
	early = !rc->ready;
	if (early)
		smc_rdma_cdc_defer(rc, &rc->early, link, msg);
	spin_unlock_bh(&rc->lock);
	return early;
}

/* Takes in the next message unless a later one has come before it. */
static void cdc_recv_in_order(struct smc_rdma_conn *rc, struct smc_link *link, const struct smc_cdc *msg)
{
	lockdep_assert_held(&rc->recv_lock);
	RCU_LOCKDEP_WARN(!rcu_read_lock_held(), "cdc_recv_in_order() outside of an RCU section");
	if (smc_cdc_is_late(&rc->rx, msg->seq))
		return;
	rc->rx.seq = msg->seq;
	WRITE_ONCE(rc->received, true);
	if (!defer_early(rc, link, msg))
		cdc_take_new(rc, link, msg);
}

/* Does the adapter of one of two links put data elsewhere than into an RMB? The other one is given by its serial number, and may be gone. */
static bool bounces_on(const struct smc_rdma_conn *rc, const struct smc_link *link, u32 serial)
{
	struct smc_link *other = smc_lgr_rdma_get_by_serial(rc->group, serial);
	bool bounces = smc_rdma_buf_map_of(rc->rmb, link)->bounces || (other && smc_rdma_buf_map_of(rc->rmb, other)->bounces);

	smc_link_put(other);
	return bounces;
}

/*
 * Without immediate data, a peer of this implementation also changes the link without validation, when all by the old link has arrived.
 * Messages do for those before them, but data that an adapter has put elsewhere is copied for the message of its own link. That by the
 * old link may not have been looked at yet: then it is awaited as after a validation. Return: false if it is lost with the link.
 */
static bool follow_sender(struct smc_rdma_conn *rc, const struct smc_link *link, u16 seq)
{
	u32 old = rc->rx_link;

	lockdep_assert_held(&rc->recv_lock);
	if (rc->group->immediate || !old || old == link->serial || rc->awaited.link || smc_cdc_is_late(&rc->rx, seq))
		return true;
	rc->rx_link = link->serial;
	smc_lgr_rdma_peer_moved(rc->rmb, link);
	if (!smc_cdc_is_gap(&rc->rx, seq - 1) || !bounces_on(rc, link, old))
		return true;
	return smc_rdma_failover_await(rc, old, seq - 1);
}

static void rdma_cdc_recv(struct smc_rdma_conn *rc, struct smc_link *link, const struct smc_cdc *msg)
{
	bool lost;

	spin_lock_bh(&rc->recv_lock);
	lost = !follow_sender(rc, link, msg->seq);
	if (unlikely(rc->awaited.link && rc->awaited.link != link->serial)) {
		smc_rdma_failover_defer(rc, link, msg);
	} else if (!lost) {
		cdc_recv_in_order(rc, link, msg);
		if (unlikely(rc->awaited.link))
			smc_rdma_failover_recv_awaited(rc);
	}
	spin_unlock_bh(&rc->recv_lock);
	if (unlikely(lost))
		smc_upcall_reset(rc->conn);
}

/* smc_rdma_cdc_recv() - a CDC message has come over a link. Softirq. */
void smc_rdma_cdc_recv(struct smc_link *link, const u8 *buf, u32 len)
{
	struct smc_lgr_rdma *group = link->group;
	struct smc_conn *conn;
	struct smc_cdc msg;

	if (smc_cdc_r_decode(buf, len, &msg))
		return;
	rcu_read_lock();
	conn = xa_load(&group->conns, msg.token);
	if (conn && (msg.flags & SMC_CDC_FAILOVER))
		smc_rdma_failover_recv(conn->priv, link, msg.seq);
	else if (conn)
		rdma_cdc_recv(conn->priv, link, &msg);
	else if (msg.flags & SMC_CDC_FAILOVER)
		smc_lgr_rdma_late_moved(link, msg.token);
	/* Also for one that ends this very moment: see rdma_release(). */
	if (msg.state & (SMC_CDC_CLOSED | SMC_CDC_ABORT))
		smc_lgr_rdma_peer_closed(group, msg.token);
	rcu_read_unlock();
}

/*
 * Takes in immediate data. By another link than the peer sends by now it is late: messages with the whole state have come
 * after it.
 */
static void recv_imm(struct smc_rdma_conn *rc, struct smc_link *link, u32 imm, u32 len)
{
	struct smc_cdc msg;

	lockdep_assert_held(&rc->recv_lock);
	RCU_LOCKDEP_WARN(!rcu_read_lock_held(), "recv_imm() outside of an RCU section");
	if (rc->rx_link && rc->rx_link != link->serial && rc->awaited.link != link->serial)
		return;
	if (rc->awaited.link && rc->awaited.link != link->serial) {
		smc_rdma_failover_defer_imm(rc, link, imm, len);
		return;
	}
	if (!rc->ready || smc_cdc_decode_imm(&rc->rx, imm, len, rc->conn->rx.size, rc->conn->tx_size, &msg)) {
		smc_link_fail(link, SMC_LINK_BAD_IMMEDIATE, len);
		return;
	}
	rc->rx.seq = msg.seq;
	WRITE_ONCE(rc->received, true);
	cdc_take_new(rc, link, &msg);
	if (unlikely(rc->awaited.link))
		smc_rdma_failover_recv_awaited(rc);
}

/*
 * smc_rdma_cdc_recv_imm() - the peer has written bytes to an RMB over a link, with immediate data in host order. The
 * peer of the link's group has agreed to immediate data. Softirq.
 */
void smc_rdma_cdc_recv_imm(struct smc_link *link, u32 imm, u32 len)
{
	struct smc_rdma_conn *rc;

	rcu_read_lock();
	rc = rcu_dereference(link->group->by_rmb[imm >> SMC_CDC_IMM_RMB_SHIFT]);
	if (rc) {
		spin_lock_bh(&rc->recv_lock);
		recv_imm(rc, link, imm, len);
		spin_unlock_bh(&rc->recv_lock);
	}
	rcu_read_unlock();
}

/* smc_rdma_cdc_start() - starts a connection with the RMBE of its peer's ACCEPT or CONFIRM. */
void smc_rdma_cdc_start(struct smc_rdma_conn *rc, const struct smc_clc_accept *peer)
{
	struct smc_conn *conn = rc->conn;
	bool early, revoked;

	rc->peer_token = peer->token;
	conn->tx_size = SMC_RDMA_SIZE_MIN << peer->size_code;
	conn->tx_window = min(conn->tx_size, rc->snd->size);
	conn->tx_buf = rc->snd->size;
	conn->tx_least = conn->tx_window / 8;
	conn->peer_waits_half = rc->group->immediate;
	rcu_read_lock();
	/* The early message is taken in first, whatever comes now. */
	spin_lock_bh(&rc->recv_lock);
	spin_lock(&rc->lock);
	early = rc->early.any;
	revoked = rc->tx.write_closed;
	rc->ready = true;
	if (!rc->rx_link)
		rc->rx_link = rc->link->serial;
	spin_unlock(&rc->lock);
	if (early && !smc_rdma_cdc_take_deferred(rc, &rc->early))
		revoked = true;
	spin_unlock_bh(&rc->recv_lock);
	if (revoked)
		smc_upcall_reset(conn);
	rcu_read_unlock();
}
