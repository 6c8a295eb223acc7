// SPDX-License-Identifier: GPL-2.0-only
/*
 * Devices that cannot map a peer's DMB: data goes there by moves from memory of ours, and so do the
 * messages that tell of it, which lie before the ring. A message replaces the one before, read or
 * not. So each says all that is to be said, positions and flags only ever grow, and what holds for
 * one message alone - that a byte is urgent - stays until the peer must have seen it.
 */

#include <linux/gfp.h>
#include <linux/highmem.h>

#include "ism.h"

/* Return: whether the caller has the turn. Full barrier. */
static bool take_turn(struct smc_ism_turn *turn)
{
	return atomic_inc_return(&turn->n) == 1;
}

/* How many have asked for it up to now. What they have written before can be read after this. */
static int asked(struct smc_ism_turn *turn)
{
	return atomic_read_acquire(&turn->n);
}

/* Return: whether nobody has come since @asked. Full barrier. */
static bool end_turn(struct smc_ism_turn *turn, int asked)
{
	return !atomic_sub_return(asked, &turn->n);
}

/* Does the peer read any more? */
static bool listens(const struct smc_ism_talk *t)
{
	return !(READ_ONCE(t->peer_state) & (SMC_CDC_CLOSED | SMC_CDC_ABORT));
}

/*
 * How far the peer may know of what we have written. An urgent byte is the last before the cursor,
 * and the cursor stays behind it until the peer has read it: the next message would take the place
 * of the one that says so. Return: whether that is all.
 */
static bool advance(struct smc_conn *conn, struct smc_ism_talk *t)
{
	u64 written = smp_load_acquire(&t->written); /* pairs with smc_ism_talk() */
	u64 urgent = READ_ONCE(t->urgent), to = written;

	if (READ_ONCE(conn->tx_cons) < t->marked && listens(t))
		return t->marked == written;
	if (urgent > t->prod.pos) {
		to = urgent;
		t->marked = urgent;
	}
	smc_track_to(&t->prod, to, conn->tx_size);
	return to == written;
}

static void say(struct smc_conn *conn, struct smc_ism_conn *ic)
{
	struct smc_ism_talk *t = &ic->talk;
	u32 base = t->index * (conn->tx_size + SMC_ISM_CDC_LEN);
	u64 before = t->prod.pos;
	u8 buf[SMC_CDC_D_LEN] __aligned(sizeof(u64));
	struct smc_cdc cdc = {};

	/*
	 * Before advance() loads t->written: a message that closes has to tell of all data that was written before. The
	 * closing thread stores written, then said, while this thread may be sending an earlier message. Pairs with
	 * advance() of close.c.
	 */
	cdc.state = smp_load_acquire(&conn->said);
	/* While an urgent byte holds back data, closing waits, too. */
	if (!advance(conn, t) && listens(t))
		cdc.state &= SMC_CDC_ABORT;
	smc_track_to(&t->cons, smc_urgent_cons(conn), conn->rx.size);
	cdc.prod = t->prod.at;
	cdc.cons = t->cons.at;
	if (t->marked && t->marked == t->prod.pos)
		cdc.flags |= SMC_CDC_URGENT | (before != t->marked ? SMC_CDC_URGENT_PENDING : 0);
	if (!smc_tx_room(conn))
		cdc.flags |= SMC_CDC_BLOCKED;
	smc_cdc_d_encode(&cdc, buf);
	/* If there is nobody to hear it, TCP is going to tell. */
	ic->dev->ops->move(ic->dev, ic->peer_token, t->index, true, base, buf, sizeof(buf));
	WRITE_ONCE(conn->rx_posted, t->cons.pos);
}

/**
 * smc_ism_talk() - tells the peer what is new
 * @conn: the connection
 * @what: SMC_SIGNAL_*
 *
 * As the transport's @signal; softirq. The message may be sent by another thread, which is at
 * it already. Nothing of ours is locked while the device moves it: the device may call us back.
 */
void smc_ism_talk(struct smc_conn *conn, unsigned int what)
{
	struct smc_ism_conn *ic = conn->priv;
	struct smc_ism_talk *t = &ic->talk;
	int n;

	if (what & SMC_SIGNAL_URGENT)
		WRITE_ONCE(t->urgent, conn->tx_prod);
	if (what & SMC_SIGNAL_DATA)
		smp_store_release(&t->written, conn->tx_prod); /* pairs with advance() */
	if (!smp_load_acquire(&t->ready)) /* pairs with smc_ism_talk_begin() */
		return;
	local_bh_disable();
	if (take_turn(&t->say)) {
		do {
			n = asked(&t->say);
			say(conn, ic);
		} while (!end_turn(&t->say, n));
	}
	local_bh_enable();
}

/*
 * The last message, as two words, either of which may be of a later one than the other. The word
 * with what the peer has said about closing comes first: when it said so, all data was told.
 */
static void read_message(const struct smc_conn *conn, struct smc_cdc *cdc)
{
	const u8 *at = page_address(conn->rx.pages[0]);
	u64 prod, cons;

	cons = READ_ONCE(*(const u64 *)(at + SMC_CDC_D_CONS));
	smp_rmb(); /* pairs with the order in which a move writes */
	prod = READ_ONCE(*(const u64 *)(at + SMC_CDC_D_PROD));
	smp_rmb(); /* and of data before the message */
	smc_cdc_d_decode(prod, cons, cdc);
}

static void hear(struct smc_conn *conn, struct smc_ism_talk *t)
{
	struct smc_cdc cdc;
	bool urgent;
	s64 data, space;
	u8 news;

	read_message(conn, &cdc);
	data = smc_track_from(&t->peer_prod, cdc.prod, conn->rx.size);
	space = smc_track_from(&t->peer_cons, cdc.cons, conn->tx_size);
	urgent = (cdc.flags & SMC_CDC_URGENT) && t->peer_prod.pos > t->peer_marked;
	if (urgent)
		t->peer_marked = t->peer_prod.pos;
	smc_upcall_wants(conn, cdc.flags & SMC_CDC_BLOCKED, cdc.flags & SMC_CDC_UPDATE);
	if (data > 0 || urgent)
		smc_upcall_data(conn, t->peer_prod.pos, urgent);
	if (space > 0)
		smc_upcall_space(conn, t->peer_cons.pos);
	news = cdc.state & ~t->peer_state;
	WRITE_ONCE(t->peer_state, t->peer_state | news);
	/*
	 * An urgent byte of ours may have been what held back others, or that we are done; the peer
	 * waits with others until one of its own is read.
	 */
	if (((space > 0 || news) && READ_ONCE(t->urgent) && READ_ONCE(t->prod.pos) != READ_ONCE(t->written)) ||
	    (urgent && READ_ONCE(t->cons.pos) != smc_urgent_cons(conn)))
		smc_ism_talk(conn, 0);
	if (news)
		smc_upcall_close(conn, news);
}

/**
 * smc_ism_signalled() - a peer has moved a message into a DMB
 * @dmb: the DMB, registered
 *
 * Called by providers; once for several messages is enough. A message that comes before the
 * connection knows its peer stays where it is, and is read then.
 *
 * Context: softirq, or process with softirqs off.
 */
void smc_ism_signalled(struct smc_ism_dmb *dmb)
{
	struct smc_ism_talk *t;
	struct smc_conn *conn;
	int n;

	rcu_read_lock();
	conn = rcu_dereference(dmb->conn);
	if (!conn)
		goto out;
	t = &((struct smc_ism_conn *)conn->priv)->talk;
	if (!take_turn(&t->hear))
		goto out;
	do {
		n = asked(&t->hear);
		if (smp_load_acquire(&t->ready)) /* pairs with smc_ism_talk_begin() */
			hear(conn, t);
	} while (!end_turn(&t->hear, n));
out:
	rcu_read_unlock();
}

/**
 * smc_ism_talk_begin() - the peer's DMB is known
 * @conn: the connection
 * @peer: what the peer has said of it
 *
 * May sleep. Return: 0, or -ECONNRESET if the peer has gone already.
 */
int smc_ism_talk_begin(struct smc_conn *conn, const struct smc_clc_accept *peer)
{
	struct smc_ism_conn *ic = conn->priv;

	conn->tx_size = (SMC_ISM_SIZE_MIN << peer->size_code) - SMC_ISM_CDC_LEN;
	conn->tx_window = conn->tx_size;
	conn->tx_buf = conn->tx_size;
	conn->tx_skip = SMC_ISM_CDC_LEN;
	ic->talk.index = peer->dmbe_idx;
	smp_store_release(&ic->talk.ready, true); /* pairs with the talkers */
	/* The turn's barrier is between that and the look at what has come before. */
	local_bh_disable();
	smc_ism_signalled(ic->own);
	local_bh_enable();
	return smc_conn_meaning(conn)->over ? -ECONNRESET : 0;
}

/* Moves bytes that are in one piece here and there. */
static int move_piece(struct smc_conn *conn, u32 off, void *data, u32 len)
{
	struct smc_ism_conn *ic = conn->priv;
	u32 base = ic->talk.index * (conn->tx_size + SMC_ISM_CDC_LEN) + SMC_ISM_CDC_LEN;

	return ic->dev->ops->move(ic->dev, ic->peer_token, ic->talk.index, false, base + off, data, len);
}

/**
 * smc_ism_move() - the transport's @write by moves
 * @conn: the connection
 * @from: the data
 * @len: bytes of it, no more than there is room for
 *
 * Takes the way through a page, as the bytes come from user space and a move cannot. If the peer's
 * buffer is gone, so is the connection, and the bytes are lost as if TCP had sent them.
 *
 * May sleep.
 * Return: bytes, or -EFAULT or -ENOMEM.
 */
ssize_t smc_ism_move(struct smc_conn *conn, struct iov_iter *from, u32 len)
{
	void *bounce = (void *)__get_free_page(GFP_KERNEL);
	u32 off = conn->tx_off, done = 0;

	if (!bounce)
		return -ENOMEM;
	while (done < len) {
		u32 n = min3(len - done, conn->tx_size - off, (u32)PAGE_SIZE);
		u32 copied = copy_from_iter(bounce, n, from);

		if (copied && move_piece(conn, off, bounce, copied)) {
			smc_close_event(conn, SMC_CLOSE_RESET);
			done += copied;
			break;
		}
		done += copied;
		off = off + copied < conn->tx_size ? off + copied : 0;
		if (copied < n)
			break;
	}
	free_page((unsigned long)bounce);
	return done || !len ? (ssize_t)done : -EFAULT;
}
