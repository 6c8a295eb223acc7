// SPDX-License-Identifier: GPL-2.0-only
/*
 * Failover: the connections of a link that is down go on by another link of their group (RFC 7609, 4.6; docs/protocol.md,
 * 9.4). What the peer may not have got is written again. The peer checks, by the number of a message that it certainly
 * got, that nothing before is missing.
 */

#include "../../control/stats.h"
#include "../../control/trace.h"
#include "../../lgr/lgr.h"
#include "../../net.h"
#include "group.h"

/* How long a connection that is to go over to another link waits for what it has sent to arrive. */
#define SETTLE_TIMEOUT HZ

/* smc_rdma_failover_sent() - a message was posted by the link of its connection. Softirq. */
void smc_rdma_failover_sent(struct smc_rdma_conn *rc, u64 at, const struct smc_cdc_update *u)
{
	bool arrived = rc->last_sent.at <= READ_ONCE(rc->link->sq_done);

	lockdep_assert_held(&rc->lock);
	if (rc->resync && u->prod.pos >= rc->resync_end)
		rc->resync = false;
	/* While a connection is held, its last message is waited for. */
	if (!arrived && !rc->held)
		return;
	/* Messages arrive in order, so the last one that has arrived stands for those before. */
	if (arrived)
		rc->last_acked = rc->last_sent;
	rc->last_sent = (struct smc_rdma_sent){ .at = at, .pos = u->prod.pos, .seq = u->msg.seq };
}

/*
 * smc_rdma_failover_validate() - sends the message that failover begins with. Softirq. Return: 0, -EAGAIN if it is sent
 * once there is room, -ENOTCONN if the link is down.
 */
int smc_rdma_failover_validate(struct smc_rdma_conn *rc)
{
	const struct smc_cdc validation = { .token = rc->peer_token, .seq = rc->last_acked.seq, .flags = SMC_CDC_FAILOVER };
	u8 msg[SMC_CDC_R_LEN];
	struct smc_link_send_req req = { .msg = msg, .waiter = &rc->waiter };
	int err;

	lockdep_assert_held(&rc->lock);
	smc_cdc_r_encode(&validation, msg);
	err = smc_link_send(rc->link, &req);
	if (!err)
		rc->validate = false;
	if (err == -EAGAIN && req.fresh)
		smc_conn_get(rc->conn);
	return err;
}

/* smc_rdma_failover_await() - awaits messages by a link before others are taken in. Softirq. Return: false if the link has ended. */
bool smc_rdma_failover_await(struct smc_rdma_conn *rc, u32 serial, u16 seq)
{
	struct smc_link *old = smc_lgr_rdma_get_by_serial(rc->group, serial);
	bool there = old;

	lockdep_assert_held(&rc->recv_lock);
	if (there)
		rc->awaited = (struct smc_rdma_awaited){ .link = serial, .seq = seq };
	smc_link_put(old);
	return there;
}

/*
 * smc_rdma_failover_recv() - the peer begins to send by another link. By the link that it sends by anyway, the message means
 * nothing. Softirq.
 *
 * The peer knows by its adapter that ours has the messages up to @seq. But each link has a completion queue of its own, so
 * messages by the old link may have come, and still be in its queue: whether one is missing shows when that link has ended.
 */
void smc_rdma_failover_recv(struct smc_rdma_conn *rc, const struct smc_link *link, u16 seq)
{
	bool moved, gap, lost;

	RCU_LOCKDEP_WARN(!rcu_read_lock_held(), "smc_rdma_failover_recv() outside of an RCU section");
	spin_lock_bh(&rc->recv_lock);
	moved = rc->rx_link != link->serial;
	/* While messages are awaited, a second validation changes nothing: they come before all others. */
	gap = moved && rc->rx_link && !rc->awaited.link && smc_cdc_is_gap(&rc->rx, seq);
	lost = gap && !smc_rdma_failover_await(rc, rc->rx_link, seq);
	rc->rx_link = link->serial;
	if (moved)
		smc_lgr_rdma_peer_moved(rc->rmb, link);
	spin_unlock_bh(&rc->recv_lock);
	if (lost)
		smc_upcall_reset(rc->conn);
}

/* smc_rdma_failover_defer() - a message has come by another link than the one whose messages are awaited. Softirq. */
void smc_rdma_failover_defer(struct smc_rdma_conn *rc, struct smc_link *link, const struct smc_cdc *msg)
{
	struct smc_rdma_awaited *a = &rc->awaited;
	struct smc_cdc_delta delta;

	lockdep_assert_held(&rc->recv_lock);
	if (!a->deferred.any)
		a->after = rc->rx;
	else if (smc_cdc_is_late(&a->after, msg->seq))
		return;
	/* Whether the peer can have read as much is checked when the message is taken in. */
	if (smc_cdc_recv(&a->after, msg, U64_MAX, rc->conn->rx.size, rc->conn->tx_size, &delta))
		return;
	a->after.seq = msg->seq;
	smc_rdma_cdc_defer(rc, &a->deferred, link, msg);
}

/* smc_rdma_failover_defer_imm() - as smc_rdma_failover_defer(), of immediate data, before which a message has come. Softirq. */
void smc_rdma_failover_defer_imm(struct smc_rdma_conn *rc, struct smc_link *link, u32 imm, u32 len)
{
	const struct smc_rdma_awaited *a = &rc->awaited;
	struct smc_cdc msg;

	lockdep_assert_held(&rc->recv_lock);
	if (a->deferred.any && !smc_cdc_decode_imm(&a->after, imm, len, rc->conn->rx.size, rc->conn->tx_size, &msg))
		smc_rdma_failover_defer(rc, link, &msg);
	else
		smc_link_fail(link, SMC_LINK_BAD_IMMEDIATE, len);
}

/*
 * smc_rdma_failover_recv_awaited() - a message has come by the link whose messages are awaited. After the last of them, the message
 * that came by another link is received. Softirq.
 */
void smc_rdma_failover_recv_awaited(struct smc_rdma_conn *rc)
{
	lockdep_assert_held(&rc->recv_lock);
	RCU_LOCKDEP_WARN(!rcu_read_lock_held(), "smc_rdma_failover_recv_awaited() outside of an RCU section");
	if (smc_cdc_is_gap(&rc->rx, rc->awaited.seq))
		return;
	rc->awaited.link = 0;
	if (rc->awaited.deferred.any && !smc_rdma_cdc_take_deferred(rc, &rc->awaited.deferred))
		smc_upcall_reset(rc->conn);
}

/*
 * smc_rdma_failover_drained() - no more messages come by a link, which has left its slot: connections that still await some
 * are aborted.
 */
void smc_rdma_failover_drained(const struct smc_link *link)
{
	struct smc_conn *conn;
	unsigned long token;

	might_sleep();
	rcu_read_lock();
	xa_for_each(&link->group->conns, token, conn) {
		struct smc_rdma_conn *rc = conn->priv;
		bool gap;

		spin_lock_bh(&rc->recv_lock);
		gap = rc->awaited.link == link->serial;
		if (gap)
			rc->awaited = (struct smc_rdma_awaited){};
		spin_unlock_bh(&rc->recv_lock);
		if (gap)
			smc_upcall_reset(conn);
	}
	rcu_read_unlock();
}

/* Returns the name that the peer's RMB of a connection has on a link; its key is 0 if the peer has not announced it there. */
static struct smc_rtoken rtoken_on(const struct smc_rdma_conn *rc, const struct smc_link *link)
{
	struct smc_lgr_rdma *group = rc->group;
	struct smc_rtoken token;

	spin_lock_bh(&group->lock);
	token = group->rtokens[rc->rtoken][link->slot];
	spin_unlock_bh(&group->lock);
	return token;
}

/* Takes back what may be lost with the old link. Return: the position where that begins. */
static u64 take_back(struct smc_rdma_conn *rc)
{
	u64 has;

	lockdep_assert_held(&rc->recv_lock);
	lockdep_assert_held(&rc->lock);
	if (rc->last_sent.at <= READ_ONCE(rc->link->sq_done))
		rc->last_acked = rc->last_sent;
	if (rc->arrived.pos > rc->last_acked.pos)
		rc->last_acked = rc->arrived;
	has = max(rc->rx.cons.pos, rc->last_acked.pos);
	/* Its message may have come by the old link, and not be looked at before one by the new link. */
	if (rc->tx.urgent_sent > rc->rx.cons.pos)
		rc->tx.urgent_again = true;
	rc->resync = true;
	rc->resync_end = rc->tx.most_sent;
	rc->last_sent = (struct smc_rdma_sent){ .pos = rc->last_acked.pos, .seq = rc->last_acked.seq };
	if (has >= rc->tx.prod.pos)
		return has;
	rc->snd_off = (rc->snd_off - (u32)(rc->tx.prod.pos - has)) & (rc->snd->size - 1);
	smc_cdc_rewind(&rc->tx, has, rc->conn->tx_size);
	return has;
}

/*
 * Data that was sent by a link that is lost may still arrive, until the peer has stopped the link, too. The connection uses no place of
 * the peer's buffer again until then. @has: the position where what may be late begins.
 */
static void limit_writes(struct smc_rdma_conn *rc, struct smc_link *from, u64 has)
{
	lockdep_assert_held(&rc->lock);
	if (!READ_ONCE(from->gone) || READ_ONCE(from->quiet))
		return;
	smc_cdc_limit(&rc->tx, has, rc->conn->tx_size);
	rc->limited |= BIT(from->slot);
	WRITE_ONCE(from->limiting, true);
}

enum moved { CANNOT_MOVE, STAYS, MOVED };

/*
 * Moves a connection from a link to another. The link has ended, or all that the connection has sent by it has arrived. A
 * connection whose rendezvous is under way stays: that fails, or moves it when it is ready.
 */
static enum moved move_conn(struct smc_rdma_conn *rc, struct smc_link *from, struct smc_link *to, bool validate)
{
	struct smc_rtoken token = rtoken_on(rc, to);
	bool stays, bound, last = false;
	u64 has = 0;

	spin_lock_bh(&rc->recv_lock);
	spin_lock(&rc->lock);
	stays = !rc->ready || rc->link != from || rc->over;
	/* If the peer deletes the RMB from now on, it waits for what is posted. */
	bound = READ_ONCE(rc->bound) && token.rkey;
	if (!stays && bound) {
		has = take_back(rc);
		limit_writes(rc, from, has);
		rc->peer_rkey = token.rkey;
		rc->peer_addr = token.addr + rc->peer_off;
		rc->validate = validate;
		rc->held = false;
		/* A message that closes the connection goes again, by the new link, which may be lost, too: at once, or by last_arrived(). */
		last = rc->last_out && smc_link_cancel(from, &rc->last);
		rc->last_out &= !last;
		rc->last_again = rc->last_out;
		WRITE_ONCE(rc->failovers, rc->failovers + 1);
		WRITE_ONCE(rc->link, smc_link_get(to));
	}
	spin_unlock(&rc->lock);
	spin_unlock_bh(&rc->recv_lock);
	if (stays || !bound)
		return stays ? STAYS : CANNOT_MOVE;
	trace_smc_failover(rc->conn->sk, rc->conn->member.token, from->id, to->id, has, rc->resync_end);
	smc_link_put(from);
	smc_rdma_cdc_send(rc);
	if (last)
		smc_conn_put(rc->conn);
	return MOVED;
}

/* Moves a connection to the link with the fewest connections, or to any on which the peer has announced its RMB. */
static enum moved move_to_any(struct smc_rdma_conn *rc, struct smc_link *from)
{
	struct smc_link *to = smc_lgr_rdma_get_link(rc->group, NULL);
	enum moved moved = to ? move_conn(rc, from, to, true) : CANNOT_MOVE;
	unsigned int slot;

	smc_link_put(to);
	for (slot = 0; slot < SMC_LINKS_PER_LGR_MAX && moved == CANNOT_MOVE; slot++) {
		to = smc_lgr_rdma_link_at(rc->group, slot);
		if (to && smc_link_usable(to) && READ_ONCE(to->active))
			moved = move_conn(rc, from, to, true);
		smc_link_put(to);
	}
	if (moved == MOVED)
		smc_stats_link(rc->conn->member.sn, SMC_STATS_CONNS_MOVED);
	return moved;
}

/*
 * smc_rdma_failover_late() - a connection has just become ready, or has moved: moves it if its link was lost meanwhile. May
 * sleep. Return: false if it cannot go on.
 */
bool smc_rdma_failover_late(struct smc_rdma_conn *rc)
{
	struct smc_link *from;
	bool gone, over;

	might_sleep();
	do {
		/* A link that ends later finds the connection ready. The mutex waits for one that is ending, and keeps it. */
		mutex_lock(&rc->group->end_mutex);
		from = READ_ONCE(rc->link);
		gone = from->gone;
		mutex_unlock(&rc->group->end_mutex);
		over = READ_ONCE(rc->over);
		if (over)
			smc_rdma_failover_ended(rc);
		if (!gone || over)
			return true;
	} while (move_to_any(rc, from) != CANNOT_MOVE);
	return false;
}

/* Ends a connection whose link is lost, and which has no other. */
static void cannot_move(struct smc_rdma_conn *rc)
{
	smc_stats_link(rc->conn->member.sn, SMC_STATS_CONNS_NOT_MOVED);
	smc_close_lgr_ends(rc->conn, SMC_LGR_END_FAILED);
}

/*
 * smc_rdma_failover() - moves the connections of a link, which has ended, to the other links of the group. A connection that
 * cannot go on ends.
 */
void smc_rdma_failover(struct smc_link *link)
{
	unsigned long token = 0;
	struct smc_conn *conn;
	enum moved moved;

	might_sleep();
	while ((conn = smc_lgr_rdma_next_conn(link->group, link, &token))) {
		moved = move_to_any(conn->priv, link);
		/* The other link may have been lost meanwhile, after its connections had been moved. */
		if (moved == MOVED && !smc_rdma_failover_late(conn->priv))
			moved = CANNOT_MOVE;
		if (moved == CANNOT_MOVE)
			cannot_move(conn->priv);
		smc_conn_put(conn);
	}
}

/* Nothing that was sent by a link can arrive any more. */
static void unlimit_writes(struct smc_rdma_conn *rc, const struct smc_link *link)
{
	bool unlimited;

	spin_lock_bh(&rc->lock);
	rc->limited &= ~BIT(link->slot);
	unlimited = rc->tx.limit && !rc->limited;
	if (unlimited)
		rc->tx.limit = 0;
	spin_unlock_bh(&rc->lock);
	if (unlimited)
		smc_rdma_cdc_send(rc);
}

/*
 * smc_rdma_failover_unlimit() - nothing that was sent by a link, which has failed over, can arrive any more: connections write again
 * without a limit. Before the link leaves its slot. Softirq.
 */
void smc_rdma_failover_unlimit(struct smc_link *link)
{
	struct smc_lgr_rdma *group = link->group;
	unsigned long token = 0;
	struct smc_conn *conn;

	/* A connection that moves now either sees this in limit_writes(), or is found here with its limit: rc->lock orders both. */
	WRITE_ONCE(link->quiet, true);
	while ((conn = smc_lgr_rdma_next_conn(group, NULL, &token))) {
		unlimit_writes(conn->priv, link);
		smc_conn_put(conn);
	}
}

/* Sends the last message of a connection by another link. Return: false if that has none, or if it is not due. */
static bool repeat_last(struct smc_rdma_conn *rc)
{
	struct smc_link *to = smc_lgr_rdma_get_link(rc->group, NULL), *from = NULL;

	if (!to)
		return false;
	spin_lock_bh(&rc->recv_lock);
	spin_lock(&rc->lock);
	/* While the completion of the message is out, its function calls this. */
	if (rc->over && !rc->last_out && READ_ONCE(rc->link->lost_called)) {
		from = rc->link;
		take_back(rc);
		rc->validate = rc->group->immediate;
		WRITE_ONCE(rc->link, smc_link_get(to));
	}
	spin_unlock(&rc->lock);
	spin_unlock_bh(&rc->recv_lock);
	if (from)
		smc_rdma_cdc_send(rc);
	smc_link_put(from);
	smc_link_put(to);
	return from;
}

/*
 * smc_rdma_failover_ended() - a message that closes a connection may be lost with its link, which has been stopped. If the
 * connection has ended since, smc_rdma_failover() has not moved it: the message is sent by another link, without data. To a peer of this
 * implementation validation goes first, by which it knows that data by the old link may be late, and uses its RMB for no other connection
 * yet; others have no use for it. Softirq; the caller has a reference on the connection.
 */
void smc_rdma_failover_ended(struct smc_rdma_conn *rc)
{
	/* The other link may have been lost just before the message was to go by it. */
	while (repeat_last(rc))
		;
}

/* Has all that a connection has sent by a link, up to a position, arrived, and have its completions been called? */
static bool all_arrived(struct smc_rdma_conn *rc, struct smc_link *link, u64 at)
{
	return smc_link_passed(link, at) && !smc_link_awaits(link, &rc->batch[0].completion) &&
	       !smc_link_awaits(link, &rc->batch[1].completion);
}

/* Has all of that arrived, or can no more of it arrive? */
static bool wait_is_over(struct smc_rdma_conn *rc, struct smc_link *link, u64 at)
{
	return all_arrived(rc, link, at) || !smc_link_usable(link) || READ_ONCE(link->group->state) == SMC_LGR_RDMA_ENDED;
}

/*
 * smc_rdma_move_drained() - moves a connection from a link to another, both of which can be used: it sends nothing until all that it
 * has sent by the old one has arrived. It stays if that takes too long.
 *
 * The validation tells a peer of this implementation by which link immediate data comes now. Others need not know: a message
 * is worth the same by any link. They would take the validation for a loss if they have not looked at the last message yet.
 */
void smc_rdma_move_drained(struct smc_rdma_conn *rc, struct smc_link *from, struct smc_link *to)
{
	u64 at;

	might_sleep();
	if (!smc_rdma_cdc_hold(rc, from, &at))
		return;
	wait_event_timeout(rc->group->llc.flushed, wait_is_over(rc, from, at), SETTLE_TIMEOUT);
	if (all_arrived(rc, from, at) && smc_link_usable(to) && move_conn(rc, from, to, rc->group->immediate) == MOVED) {
		/* The new link may have been lost meanwhile, after its connections had been moved. */
		if (!smc_rdma_failover_late(rc))
			cannot_move(rc);
		return;
	}
	spin_lock_bh(&rc->lock);
	rc->held = false;
	spin_unlock_bh(&rc->lock);
	smc_rdma_cdc_send(rc);
	/* Its last message may have been held, until its link was lost. */
	smc_rdma_failover_ended(rc);
}
