// SPDX-License-Identifier: GPL-2.0-only
/*
 * CDC of SMC-D for devices that cannot map a peer's DMB (docs/protocol.md, 10). The device moves data from our memory into
 * the peer's ring, and messages to a place before the ring. A message overwrites the one before, whether the peer has
 * read that or not. So each message has the whole state, positions and flags only grow, and the urgent flag stays until
 * the peer has read the byte. conn/cdc.c builds the messages.
 */

#include <linux/export.h>
#include <linux/gfp.h>
#include <linux/highmem.h>

#include "ism.h"

/* Returns whether the caller gets the turn; if not, the thread that has it repeats its work. Full barrier. */
static bool take_turn(struct smc_ism_turn *turn)
{
	return atomic_inc_return(&turn->n) == 1;
}

/* Returns how many threads have asked for the turn. What they stored before that can be read after this. */
static int turns_asked(struct smc_ism_turn *turn)
{
	return atomic_read_acquire(&turn->n);
}

/* Returns whether the turn is over: no thread has asked for it since @asked was read. Full barrier. */
static bool end_turn(struct smc_ism_turn *turn, int asked)
{
	return !atomic_sub_return(asked, &turn->n);
}

/*
 * The peer's DMB has another token, which a third party may have overwritten: the connection ends. That of a device that is gone ends
 * with its group, and only then TCP reports it to the peer.
 */
static void dmb_refused(struct smc_conn *conn)
{
	if (!smc_rcvbuf_is_gone(&conn->rx))
		smc_close_event(conn, SMC_CLOSE_RESET);
}

/* Writes a message into the peer's DMB. If that is gone, TCP will report it. The caller has the turn to send. */
static void dmb_cdc_move(struct smc_conn *conn, struct smc_ism_conn *ic, bool signal)
{
	u32 base = ic->cdc.index * (conn->tx_size + SMC_ISM_CDC_LEN);
	const struct smc_ism_ops *ops = ic->dev->ops;

	if (ops->move(ic->dev, ic->own, ic->peer_token, ic->cdc.index, signal, base, ic->cdc.last, sizeof(ic->cdc.last)) && ops->copy)
		dmb_refused(conn);
}

/* Sends one message. The caller has the turn to send. */
static void dmb_cdc_send(struct smc_conn *conn, struct smc_ism_conn *ic)
{
	struct smc_ism_cdc *cdc = &ic->cdc;
	struct smc_cdc_now now = { .replaces = true, .tx_size = conn->tx_size, .rx_size = conn->rx.size };
	struct smc_cdc_update u;

	/*
	 * In this order: a message with closing flags has to report all data that was written before. The closing thread
	 * stores written, then close_flags, while this thread may be sending an earlier message. The first load pairs
	 * with close_step(), the second with smc_ism_cdc_send().
	 */
	now.close_flags = smp_load_acquire(&conn->close_flags);
	now.written = smp_load_acquire(&cdc->tx.written);
	now.urgent = smp_load_acquire(&cdc->tx.urgent); /* pairs with smc_ism_cdc_send() */
	now.read = smc_urgent_cons(conn);
	now.full = !smc_tx_room(conn);
	smc_cdc_build(&cdc->tx, &cdc->rx, &now, &u);
	/* Before the move, because the peer may answer before that returns. */
	smc_cdc_sent(&cdc->tx, &u);
	smc_cdc_d_encode(&u.msg, cdc->last);
	dmb_cdc_move(conn, ic, true);
	WRITE_ONCE(conn->rx_posted, u.cons.pos);
}

/**
 * smc_ism_cdc_repeat() - sends the last message again, which a third party may have overwritten, without a signal
 * @conn: the connection
 *
 * Context: softirq, or process with softirqs off.
 */
void smc_ism_cdc_repeat(struct smc_conn *conn)
{
	struct smc_ism_conn *ic = conn->priv;
	struct smc_ism_turn *turn = &ic->cdc.send_turn;
	int n;

	if (!smp_load_acquire(&ic->cdc.ready) || smc_conn_meaning(conn)->over || !take_turn(turn)) /* pairs with smc_ism_cdc_start() */
		return;
	/* The first byte of every message is not zero. */
	if (ic->cdc.last[0])
		dmb_cdc_move(conn, ic, false);
	/* For those who have asked meanwhile, and have something new to say. */
	n = 1;
	while (!end_turn(turn, n)) {
		n = turns_asked(turn);
		dmb_cdc_send(conn, ic);
	}
}

/**
 * smc_ism_cdc_send() - sends a message with everything that is new: the transport's @signal
 * @conn: the connection
 * @what: SMC_SIGNAL_*
 *
 * If another thread is sending a message, that thread sends this one, too. No lock is held while the device moves the
 * message, because it may call smc_ism_signalled().
 *
 * Context: any but hardirq.
 */
void smc_ism_cdc_send(struct smc_conn *conn, unsigned int what)
{
	struct smc_ism_conn *ic = conn->priv;
	struct smc_ism_cdc *cdc = &ic->cdc;
	int n;

	if (what & SMC_SIGNAL_URGENT)
		smp_store_release(&cdc->tx.urgent, conn->tx_prod); /* pairs with dmb_cdc_send() */
	if (what & SMC_SIGNAL_DATA)
		smp_store_release(&cdc->tx.written, conn->tx_prod); /* pairs with dmb_cdc_send() */
	if (!smp_load_acquire(&cdc->ready)) /* pairs with smc_ism_cdc_start() */
		return;
	local_bh_disable();
	if (take_turn(&cdc->send_turn)) {
		do {
			n = turns_asked(&cdc->send_turn);
			dmb_cdc_send(conn, ic);
		} while (!end_turn(&cdc->send_turn, n));
	}
	local_bh_enable();
}

/*
 * Reads the last message as two words, either of which may be of a later message than the other. It reads the word with
 * the closing flags first, since a message with these flags, or a later one, has the final producer cursor; and again, because the
 * flag of an urgent byte there belongs to the producer cursor of the same message. That can still miss a message of which only the
 * producer cursor is written: a peer with this module has the flag there, too.
 */
static void cdc_read(const struct smc_conn *conn, struct smc_cdc *cdc)
{
	const u8 *at = conn->rx.mem ?: page_address(conn->rx.pages[0]);
	u64 prod, cons, again = READ_ONCE(*(const u64 *)(at + SMC_CDC_D_CONS));
	int tries = 3;

	do {
		cons = again;
		virt_rmb(); /* pairs with the order in which a move writes */
		prod = READ_ONCE(*(const u64 *)(at + SMC_CDC_D_PROD));
		virt_rmb(); /* and of data before the message */
		again = READ_ONCE(*(const u64 *)(at + SMC_CDC_D_CONS));
	} while (again != cons && --tries);
	smc_cdc_d_decode(prod, cons, cdc);
}

/*
 * Returns whether the cursors of a message are those of the connection after it. A message that third parties may overwrite ends the
 * connection if not: nobody would correct a cursor that is believed, or that goes back.
 */
static bool are_cursors_taken(struct smc_conn *conn, const struct smc_cdc_rx *rx, const struct smc_cdc *msg)
{
	return rx->prod.at.wrap == msg->prod.wrap && rx->prod.at.count == msg->prod.count && rx->cons.at.wrap == msg->cons.wrap &&
	       rx->cons.at.count == msg->cons.count && READ_ONCE(conn->rx_prod) == rx->prod.pos;
}

/* Takes in the last message. The caller has the turn to receive. */
static void dmb_cdc_recv(struct smc_conn *conn, struct smc_ism_conn *ic)
{
	struct smc_ism_cdc *cdc = &ic->cdc;
	struct smc_cdc_delta delta;
	struct smc_cdc msg;

	cdc_read(conn, &msg);
	if (smc_cdc_recv(&cdc->rx, &msg, READ_ONCE(conn->tx_prod), conn->rx.size, conn->tx_size, &delta)) {
		smc_close_event(conn, SMC_CLOSE_RESET);
		return;
	}
	smc_upcall_received(conn, &cdc->rx, &delta);
	if (delta.space > 0)
		smc_upcall_space(conn, cdc->rx.cons.pos);
	if (ic->dev->ops->copy && !are_cursors_taken(conn, &cdc->rx, &msg))
		smc_close_event(conn, SMC_CLOSE_RESET);
	else if (smc_conn_cdc_due(conn, &cdc->tx, &delta))
		smc_ism_cdc_send(conn, 0);
	if (delta.closing)
		smc_upcall_close(conn, delta.closing);
}

/**
 * smc_ism_signalled() - a peer has moved a message into a DMB
 * @dmb: the DMB, registered
 *
 * Providers call this, once or more often for several messages. A message that comes before the connection knows its peer
 * stays in the DMB until then.
 *
 * Context: softirq, or process with softirqs off.
 */
void smc_ism_signalled(struct smc_ism_dmb *dmb)
{
	struct smc_ism_conn *ic;
	struct smc_conn *conn;
	int n;

	rcu_read_lock();
	conn = rcu_dereference(dmb->conn);
	if (!conn || smc_rcvbuf_is_gone(&conn->rx))
		goto out;
	ic = conn->priv;
	if (!take_turn(&ic->cdc.recv_turn))
		goto out;
	do {
		n = turns_asked(&ic->cdc.recv_turn);
		if (smp_load_acquire(&ic->cdc.ready)) /* pairs with smc_ism_cdc_start() */
			dmb_cdc_recv(conn, ic);
	} while (!end_turn(&ic->cdc.recv_turn, n));
out:
	rcu_read_unlock();
}
EXPORT_SYMBOL_GPL(smc_ism_signalled);

/**
 * smc_ism_cdc_start() - starts CDC with the peer's DMB
 * @conn: the connection
 * @peer: the peer's ACCEPT or CONFIRM
 *
 * Context: process.
 * Return: 0, or -ECONNRESET if the peer has closed the connection already.
 */
int smc_ism_cdc_start(struct smc_conn *conn, const struct smc_clc_accept *peer)
{
	struct smc_ism_conn *ic = conn->priv;

	conn->tx_size = (SMC_ISM_SIZE_MIN << peer->size_code) - SMC_ISM_CDC_LEN;
	conn->tx_window = conn->tx_size;
	conn->tx_buf = conn->tx_size;
	conn->tx_skip = SMC_ISM_CDC_LEN;
	ic->cdc.index = peer->dmbe_idx;
	smp_store_release(&ic->cdc.ready, true); /* pairs with smc_ism_cdc_send() and smc_ism_signalled() */
	/* Receives messages that have come before. take_turn() has a barrier after the store. */
	local_bh_disable();
	smc_ism_signalled(ic->own);
	local_bh_enable();
	return smc_conn_meaning(conn)->over ? -ECONNRESET : 0;
}

/* Moves bytes that are contiguous here and in the ring. */
static int move_chunk(struct smc_conn *conn, u32 off, void *data, u32 len)
{
	struct smc_ism_conn *ic = conn->priv;
	u32 base = ic->cdc.index * (conn->tx_size + SMC_ISM_CDC_LEN) + SMC_ISM_CDC_LEN;

	return ic->dev->ops->move(ic->dev, ic->own, ic->peer_token, ic->cdc.index, false, base + off, data, len);
}

/* The transport's @write by @copy of the provider. */
static ssize_t copy_ring(struct smc_conn *conn, struct iov_iter *from, u32 len)
{
	const struct smc_ism_conn *ic = conn->priv;
	u32 base = ic->cdc.index * (conn->tx_size + SMC_ISM_CDC_LEN) + SMC_ISM_CDC_LEN;
	u32 off = conn->tx_off, done = 0;

	while (done < len) {
		u32 n = min(len - done, conn->tx_size - off);
		ssize_t copied = ic->dev->ops->copy(ic->own, ic->peer_token, base + off, from, n);

		if (copied < 0 && copied != -EFAULT) {
			dmb_refused(conn);
			return len;
		}
		if (copied < 0)
			break;
		done += copied;
		off = off + copied < conn->tx_size ? off + copied : 0;
		if (copied < n)
			break;
	}
	return done || !len ? (ssize_t)done : -EFAULT;
}

/**
 * smc_ism_move() - the transport's @write by moves
 * @conn: the connection
 * @from: the data
 * @len: bytes of it, no more than there is room for
 *
 * Copies the bytes to a page first, because a move cannot read user memory, unless the provider copies. If the peer's DMB is
 * gone, the connection is reset and the bytes count as sent, as with TCP.
 *
 * Return: bytes or -EFAULT.
 */
ssize_t smc_ism_move(struct smc_conn *conn, struct iov_iter *from, u32 len)
{
	void *bounce;
	u32 off, done = 0;

	might_sleep();
	if (((const struct smc_ism_conn *)conn->priv)->dev->ops->copy)
		return copy_ring(conn, from, len);
	/* Nothing but data of this connection would wake a writer that waits for memory, and the peer may read none. */
	bounce = (void *)__get_free_page(GFP_KERNEL | __GFP_NOFAIL);
	off = conn->tx_off;
	while (done < len) {
		u32 n = min3(len - done, conn->tx_size - off, (u32)PAGE_SIZE);
		u32 copied = copy_from_iter(bounce, n, from);

		if (copied && move_chunk(conn, off, bounce, copied)) {
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
