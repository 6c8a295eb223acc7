// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the two ends of a connection tell each other over a link: CDC messages, and before each the
 * data that it tells of (wire-formats, sections 15 and 17). Data waits in a ring of our own until
 * the peer has it, as the adapter may have to send it again. The peer's cursor tells that. But a
 * peer of a large RMB lets a tenth of it pass before it tells what it has read, whatever we ask of
 * it; where our ring is smaller, the adapter has to say what has arrived.
 */

#include <linux/highmem.h>
#include <linux/uio.h>

#include "../../net.h"
#include "group.h"

/*
 * Between two of this implementation, what most messages say fits into the immediate data of the
 * write that comes before them: which RMB that was, by the low byte of the connection's token, how
 * much has been read since that was told last, and whether there is more than space for it. How much
 * was written, the adapter tells. That takes half of the packets.
 */
#define IMM_RMB 24
#define IMM_BLOCKED BIT(23)
#define IMM_READ (BIT(23) - 1)

/* Does the peer read any more? */
static bool listens(const struct smc_rdma_conn *rc)
{
	return !(READ_ONCE(rc->peer_state) & (SMC_CDC_CLOSED | SMC_CDC_ABORT));
}

/*
 * Synchronises bytes of a stream that are in a buffer from @off on, if adapter and processor do not see the
 * same memory. Return: false if the link is down, and the buffer may have been unmapped.
 */
static bool sync_bytes(struct smc_rdma_conn *rc, struct smc_rdma_buf *buf, u32 off, u64 n)
{
	if (likely(!buf->bounces))
		return true;
	if (!smc_link_usable(rc->group->link))
		return false;
	smc_rdma_buf_sync(buf, off, n);
	return true;
}

/*
 * How far the peer may know of what we have written. An urgent byte is the last before the cursor,
 * and the cursor stays behind it until the peer has read it: peers expect that of each other.
 */
static u64 horizon(const struct smc_rdma_conn *rc)
{
	/* Data written since then is discarded (RFC 7609, 4.8.2), as it is once the peer has aborted the connection. */
	if (rc->parted || (READ_ONCE(rc->peer_state) & SMC_CDC_ABORT))
		return rc->prod.pos;
	if (READ_ONCE(rc->peer_read) < rc->marked && listens(rc))
		return rc->marked;
	return rc->urgent > rc->prod.pos ? rc->urgent : rc->written;
}

/* The pieces of the data from one position to another: each ends where a ring does. */
static unsigned int pieces(const struct smc_rdma_conn *rc, u64 to, struct smc_link_write *w)
{
	u32 left = to - rc->prod.pos, from = rc->snd_off, at = rc->prod.at.count;
	unsigned int n = 0;

	/* There are no more while the peer's cursor is not ahead of what it was told, see hear(). */
	while (left && !WARN_ON_ONCE(n == SMC_LINK_WRITES)) {
		u32 len = min3(left, rc->snd->size - from, rc->conn->tx_size - at);

		w[n++] = (struct smc_link_write){
			.local = rc->snd->addr + from,
			.lkey = rc->snd->lkey,
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

/* What is to be said now. Return: where the peer then knows the data up to. */
static u64 compose(const struct smc_rdma_conn *rc, struct smc_cdc *cdc, struct smc_track *prod, struct smc_track *cons)
{
	struct smc_conn *conn = rc->conn;
	u64 to = horizon(rc);

	*cdc = (struct smc_cdc){ .token = rc->peer_token, .seq = rc->seq + 1, .state = READ_ONCE(conn->said) };
	/* Who says that he is done has told of all that he has written. */
	if (to != rc->written && listens(rc) && !rc->parted)
		cdc->state &= SMC_CDC_ABORT;
	*prod = rc->prod;
	*cons = rc->cons;
	smc_track_to(prod, to, conn->tx_size);
	smc_track_to(cons, smc_urgent_cons(conn), conn->rx.size);
	cdc->prod = prod->at;
	cdc->cons = cons->at;
	if (to == rc->urgent && rc->marked != to)
		cdc->flags |= SMC_CDC_URGENT | SMC_CDC_URGENT_PENDING;
	if (smc_rdma_peer_full(conn))
		cdc->flags |= SMC_CDC_BLOCKED;
	return to;
}

/* Will the adapter report the arrival of something that was sent? */
static bool arrival_pending(const struct smc_rdma_conn *rc)
{
	return READ_ONCE(rc->batch[0].pending) || READ_ONCE(rc->batch[1].pending);
}

/*
 * Selects the batch whose arrival the adapter reports, or NULL. If our ring is smaller than the peer's, two batches
 * alternate, so that a completion always arrives before the ring is empty. Otherwise completions serve autocorking
 * alone: one at a time, and none while the peer has read everything that was sent before, as in a dialogue.
 */
static struct smc_rdma_batch *next_batch(struct smc_rdma_conn *rc, u64 to)
{
	if (to == rc->prod.pos)
		return NULL;
	if (rc->conn->tx_window != rc->conn->tx_size)
		return &rc->batch[READ_ONCE(rc->batch[0].pending)];
	if (!READ_ONCE(rc->conn->sn->sysctl.autocorking_size) || arrival_pending(rc) ||
	    READ_ONCE(rc->peer_read) == rc->prod.pos)
		return NULL;
	return &rc->batch[0];
}

/*
 * Autocorking, as TCP and the stock module have it: while something is on its way, small writes are collected and go
 * out together when that has arrived, but no more than net.smc.autocorking_size or half of the ring.
 */
static bool should_autocork(const struct smc_rdma_conn *rc)
{
	u32 most = min(rc->snd->size / 2, READ_ONCE(rc->conn->sn->sysctl.autocorking_size));

	lockdep_assert_held(&rc->lock);
	return arrival_pending(rc) && rc->written - rc->prod.pos <= most;
}

/* Does it go without a message? The peer has to be ready for what depends on what came before. */
static bool is_brief(const struct smc_rdma_conn *rc, const struct smc_cdc *cdc, const struct smc_track *cons)
{
	return rc->group->immediate && (rc->conn->server || READ_ONCE(rc->heard)) && !cdc->state &&
	       !(cdc->flags & ~SMC_CDC_BLOCKED) && cons->pos - rc->cons.pos <= IMM_READ;
}

static u32 immediate(const struct smc_rdma_conn *rc, const struct smc_cdc *cdc, const struct smc_track *cons)
{
	return rc->peer_token << IMM_RMB | (cdc->flags & SMC_CDC_BLOCKED ? IMM_BLOCKED : 0) |
	       (u32)(cons->pos - rc->cons.pos);
}

/*
 * Return: as smc_link_send() does. The caller holds the lock, and a reference on the connection. Each
 * place on the link's lists has one, too: that of an arrival from before it is there, as it may be
 * told at once; that of the waiter is not put before we give the lock back.
 */
static int post(struct smc_rdma_conn *rc, u64 to, const struct smc_cdc *cdc, const struct smc_track *cons)
{
	struct smc_rdma_batch *batch = next_batch(rc, to);
	struct smc_link_write w[SMC_LINK_WRITES];
	u8 msg[SMC_CDC_R_LEN];
	struct smc_link_job job = {
		.writes = w,
		.n = pieces(rc, to, w),
		.msg = msg,
		/* What the connection sends from is needed again once its last message has arrived. */
		.mark = cdc->state,
		.arrival = batch ? &batch->arrival : NULL,
		.pos = to,
		.waiter = &rc->waiter,
	};
	int err;

	job.immediate = job.n == 1 && is_brief(rc, cdc, cons);
	if (job.immediate)
		job.imm = immediate(rc, cdc, cons);
	else
		smc_cdc_r_encode(cdc, msg);
	if (batch) {
		smc_conn_get(rc->conn);
		WRITE_ONCE(batch->pending, true);
	}
	err = smc_link_send(rc->group->link, &job);
	if (batch && (err || !job.fresh))
		smc_conn_put(rc->conn);
	if (batch && err)
		WRITE_ONCE(batch->pending, false);
	/* Until it has been said: it may be the connection's last word. */
	if (err == -EAGAIN && job.fresh)
		smc_conn_get(rc->conn);
	return err;
}

/**
 * smc_rdma_talk() - tells the peer what is new
 * @rc: the connection
 *
 * If the link has no room, it calls again. Softirq.
 */
void smc_rdma_talk(struct smc_rdma_conn *rc)
{
	struct smc_track prod, cons;
	struct smc_cdc cdc;
	int err;
	u64 to;

	spin_lock_bh(&rc->lock);
	smp_mb__after_spinlock(); /* pairs with that of released() */
	if (!rc->ready)
		goto out;
	to = compose(rc, &cdc, &prod, &cons);
	sync_bytes(rc, rc->snd, rc->snd_off, to - rc->prod.pos);
	err = post(rc, to, &cdc, &cons);
	if (err)
		goto out;
	rc->snd_off = (rc->snd_off + (u32)(to - rc->prod.pos)) & (rc->snd->size - 1);
	rc->prod = prod;
	rc->cons = cons;
	/* Beside what readers write all the time: left alone where it says that already. */
	if (rc->conn->rx_posted != cons.pos)
		WRITE_ONCE(rc->conn->rx_posted, cons.pos);
	rc->seq = cdc.seq;
	rc->corked = false;
	if (cdc.state & (SMC_CDC_CLOSED | SMC_CDC_ABORT))
		WRITE_ONCE(rc->parted, true);
	if (cdc.flags & SMC_CDC_URGENT)
		rc->marked = to;
out:
	spin_unlock_bh(&rc->lock);
}

static void room_again(struct smc_link_waiter *waiter)
{
	struct smc_rdma_conn *rc = container_of(waiter, struct smc_rdma_conn, waiter);

	smc_rdma_talk(rc);
	smc_conn_put(rc->conn);
}

/* Sends what autocorking holds back, if anything. Softirq. */
static void uncork(struct smc_rdma_conn *rc)
{
	bool corked;

	spin_lock_bh(&rc->lock);
	corked = rc->corked;
	spin_unlock_bh(&rc->lock);
	if (corked)
		smc_rdma_talk(rc);
}

/* Takes note of what was written. Returns whether autocorking holds it back, until uncork(). */
static bool take_written(struct smc_rdma_conn *rc, unsigned int what)
{
	bool corked;

	spin_lock_bh(&rc->lock);
	rc->written = rc->conn->tx_prod;
	if (what & SMC_SIGNAL_URGENT)
		rc->urgent = rc->written;
	/* If the arrival has been reported by now, it was before we looked, or uncork() waits for the lock. */
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
		uncork(rc);
		return;
	}
	if ((what & SMC_SIGNAL_DATA) && take_written(rc, what))
		return;
	smc_rdma_talk(rc);
}

/**
 * smc_rdma_write() - write of the transport: into the ring that is sent from
 * @conn: the connection
 * @from: the data
 * @len: bytes of it, no more than there is room for
 *
 * May sleep. Return: bytes, or -EFAULT.
 */
ssize_t smc_rdma_write(struct smc_conn *conn, struct iov_iter *from, u32 len)
{
	const struct smc_rdma_buf *snd = ((struct smc_rdma_conn *)conn->priv)->snd;
	u32 off = conn->tx_prod & (snd->size - 1), done = 0;

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

/* smc_rdma_peer_full() - peer_full of the transport: has the peer read nothing of a whole RMB? Any context. */
bool smc_rdma_peer_full(const struct smc_conn *conn)
{
	const struct smc_rdma_conn *rc = conn->priv;

	return READ_ONCE(conn->tx_prod) - READ_ONCE(rc->peer_read) >= conn->tx_size;
}

/*
 * What there is room for now: in the peer's RMB after what it has read, and in our ring after what
 * has arrived, which it also has if it has been read. The caller holds hear_lock.
 */
static void make_room(struct smc_rdma_conn *rc)
{
	struct smc_conn *conn = rc->conn;
	u64 read = READ_ONCE(rc->peer_read);

	smc_upcall_space(conn, min(read + conn->tx_size - conn->tx_window, max(read, rc->arrived)));
}

static void batch_arrived(struct smc_link_arrival *arrival, u64 pos)
{
	struct smc_rdma_batch *batch = container_of(arrival, struct smc_rdma_batch, arrival);
	struct smc_rdma_conn *rc = batch->rc;

	WRITE_ONCE(batch->pending, false);
	rcu_read_lock();
	spin_lock_bh(&rc->hear_lock);
	rc->arrived = max(rc->arrived, pos);
	make_room(rc);
	spin_unlock_bh(&rc->hear_lock);
	rcu_read_unlock();
	uncork(rc);
	smc_conn_put(rc->conn);
}

/* smc_rdma_stop_writing() - messages may still be sent, but no data is written to the peer's RMB any more. Softirq. */
void smc_rdma_stop_writing(struct smc_rdma_conn *rc)
{
	spin_lock_bh(&rc->lock);
	WRITE_ONCE(rc->parted, true);
	spin_unlock_bh(&rc->lock);
}

/*
 * smc_rdma_revoke() - the peer has taken its RMB away from a connection that has not ended: nothing is written
 * any more, and the connection is aborted, at once or when its rendezvous is complete. Softirq.
 */
void smc_rdma_revoke(struct smc_rdma_conn *rc)
{
	bool ready;

	spin_lock_bh(&rc->lock);
	WRITE_ONCE(rc->parted, true);
	ready = rc->ready;
	spin_unlock_bh(&rc->lock);
	if (!ready)
		return;
	rcu_read_lock();
	smc_upcall_reset(rc->conn);
	rcu_read_unlock();
}

/* smc_rdma_talk_init() - of a fresh connection. */
void smc_rdma_talk_init(struct smc_rdma_conn *rc)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rc->batch); i++) {
		INIT_LIST_HEAD(&rc->batch[i].arrival.list);
		rc->batch[i].arrival.fn = batch_arrived;
		rc->batch[i].rc = rc;
	}
	spin_lock_init(&rc->lock);
	spin_lock_init(&rc->hear_lock);
	INIT_LIST_HEAD(&rc->waiter.list);
	rc->waiter.fn = room_again;
}

/* How far the peer can have read: what was posted. Taking the lock waits for who is posting more. */
static u64 posted(struct smc_rdma_conn *rc)
{
	u64 pos;

	spin_lock_bh(&rc->lock);
	pos = rc->prod.pos;
	spin_unlock_bh(&rc->lock);
	return pos;
}

/* Has the peer's news set free what an urgent byte has held back: others, or that we are done? */
static bool released(const struct smc_rdma_conn *rc, bool news)
{
	if (!news || !READ_ONCE(rc->urgent))
		return false;
	smp_mb(); /* pairs with that of smc_rdma_talk(): who writes sees the news, or we see what was written */
	return READ_ONCE(rc->prod.pos) != READ_ONCE(rc->written);
}

/*
 * Is the peer to hear what we have read, though nobody reads now? It has sent an urgent byte, and
 * waits with more until that is read, or it asks (RFC 7609, 4.5.1).
 */
static bool is_due(const struct smc_rdma_conn *rc, bool wants)
{
	return wants && READ_ONCE(rc->cons.pos) != smc_urgent_cons(rc->conn);
}

/*
 * One message, of a connection that knows its peer. The caller is in an RCU section and holds
 * hear_lock.
 */
static void hear(struct smc_rdma_conn *rc, const struct smc_cdc *cdc)
{
	struct smc_conn *conn = rc->conn;
	u32 at = rc->peer_prod.at.count;
	s64 data, space;
	bool urgent;
	u8 news;

	data = smc_track_from(&rc->peer_prod, cdc->prod, conn->rx.size);
	space = smc_track_from(&rc->peer_cons, cdc->cons, conn->tx_size);
	/* Who has read what was not sent yet would have us write over it, and beyond what fits in a message. */
	if (rc->peer_cons.pos > posted(rc)) {
		smc_link_fail(rc->group->link, SMC_LINK_AHEAD, 0);
		return;
	}
	urgent = (cdc->flags & SMC_CDC_URGENT) && rc->peer_prod.pos > rc->peer_marked;
	if (urgent)
		rc->peer_marked = rc->peer_prod.pos;
	smc_upcall_wants(conn, cdc->flags & SMC_CDC_BLOCKED, cdc->flags & SMC_CDC_UPDATE);
	if (data > 0 && !sync_bytes(rc, rc->rmb, at, data))
		return;
	if (data > 0 || urgent)
		smc_upcall_data(conn, rc->peer_prod.pos, urgent);
	if (space > 0) {
		WRITE_ONCE(rc->peer_read, rc->peer_cons.pos);
		WRITE_ONCE(rc->group->link->taken, jiffies);
		make_room(rc);
	}
	news = cdc->state & ~rc->peer_state;
	WRITE_ONCE(rc->peer_state, rc->peer_state | news);
	if ((released(rc, space > 0 || news) || is_due(rc, urgent || (cdc->flags & SMC_CDC_UPDATE))) &&
	    smc_conn_get_live(conn)) {
		smc_rdma_talk(rc);
		smc_conn_put(conn);
	}
	if (news)
		smc_upcall_close(conn, news);
}

/*
 * A client may write as soon as it has sent CONFIRM, and its message be here before that. What it
 * tells is kept: each says all that is to be said, but for where an urgent byte was.
 */
static bool too_early(struct smc_rdma_conn *rc, const struct smc_cdc *cdc)
{
	bool early;

	spin_lock_bh(&rc->lock);
	early = !rc->ready;
	if (early) {
		u8 flags = rc->early.flags & SMC_CDC_URGENT;

		rc->early = *cdc;
		rc->early.flags |= flags;
		rc->is_early = true;
	}
	spin_unlock_bh(&rc->lock);
	return early;
}

/* One message, in its turn. The caller is in an RCU section. */
static void hear_in_order(struct smc_rdma_conn *rc, const struct smc_cdc *cdc)
{
	spin_lock_bh(&rc->hear_lock);
	/* Else it has come before, over another link. */
	if ((s16)(cdc->seq - rc->peer_seq) >= 0) {
		rc->peer_seq = cdc->seq;
		WRITE_ONCE(rc->heard, true);
		if (!too_early(rc, cdc))
			hear(rc, cdc);
	}
	spin_unlock_bh(&rc->hear_lock);
}

/* smc_rdma_hear() - a CDC message has come over a link of a group. Softirq. */
void smc_rdma_hear(struct smc_rdma_group *group, const u8 *msg, u32 len)
{
	struct smc_conn *conn;
	struct smc_cdc cdc;

	if (smc_cdc_r_decode(msg, len, &cdc))
		return;
	rcu_read_lock();
	conn = xa_load(&group->conns, cdc.token);
	if (conn && !(cdc.flags & SMC_CDC_FAILOVER))
		hear_in_order(conn->priv, &cdc);
	/* Also for one that ends this very moment: see release(). */
	if (cdc.state & (SMC_CDC_CLOSED | SMC_CDC_ABORT))
		smc_group_heard(group, cdc.token);
	rcu_read_unlock();
}

/* What immediate data says, as a message. Return: false if it cannot be. The caller holds hear_lock. */
static bool spell_out(struct smc_rdma_conn *rc, u32 imm, u32 len, struct smc_cdc *cdc)
{
	struct smc_track prod = rc->peer_prod, cons = rc->peer_cons;
	u32 rx = rc->conn->rx.size, tx = rc->conn->tx_size, read = imm & IMM_READ;

	/* We write nothing without data like this, so an adapter that reports no length has lost it. */
	if (!rc->ready || !len || len > rx || read > tx)
		return false;
	smc_track_to(&prod, prod.pos + len, rx);
	smc_track_to(&cons, cons.pos + read, tx);
	*cdc = (struct smc_cdc){ .prod = prod.at, .cons = cons.at, .flags = imm & IMM_BLOCKED ? SMC_CDC_BLOCKED : 0 };
	return true;
}

/**
 * smc_rdma_hear_immediate() - the peer has written to an RMB of a group
 * @group: the group, with a peer that has agreed to this
 * @imm: what it has to say of it
 * @len: bytes that it has written
 *
 * Softirq.
 */
void smc_rdma_hear_immediate(struct smc_rdma_group *group, u32 imm, u32 len)
{
	struct smc_rdma_conn *rc;
	struct smc_cdc cdc;

	rcu_read_lock();
	rc = rcu_dereference(group->by_rmb[imm >> IMM_RMB]);
	if (rc) {
		spin_lock_bh(&rc->hear_lock);
		if (spell_out(rc, imm, len, &cdc)) {
			rc->peer_seq++;
			WRITE_ONCE(rc->heard, true);
			hear(rc, &cdc);
		} else {
			smc_link_fail(group->link, SMC_LINK_BAD_IMMEDIATE, len);
		}
		spin_unlock_bh(&rc->hear_lock);
	}
	rcu_read_unlock();
}

/**
 * smc_rdma_talk_begin() - the peer's RMB is known
 * @rc: the connection
 * @peer: what the peer has said of it
 *
 * May sleep.
 */
void smc_rdma_talk_begin(struct smc_rdma_conn *rc, const struct smc_clc_accept *peer)
{
	struct smc_conn *conn = rc->conn;
	bool early, revoked;

	rc->peer_token = peer->token;
	conn->tx_size = SMC_RDMA_SIZE_MIN << peer->size_code;
	conn->tx_window = min(conn->tx_size, rc->snd->size);
	conn->tx_buf = rc->snd->size;
	conn->tx_least = conn->tx_window / 8;
	conn->rx_halves = rc->group->immediate;
	rcu_read_lock();
	/* The first one that is heard is that which came early, whatever comes now. */
	spin_lock_bh(&rc->hear_lock);
	spin_lock(&rc->lock);
	early = rc->is_early;
	revoked = rc->parted;
	rc->ready = true;
	spin_unlock(&rc->lock);
	if (early)
		hear(rc, &rc->early);
	spin_unlock_bh(&rc->hear_lock);
	if (revoked)
		smc_upcall_reset(conn);
	rcu_read_unlock();
}
