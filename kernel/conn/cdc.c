// SPDX-License-Identifier: GPL-2.0-only
#include "cdc.h"

/* Returns the end of the data that a message may report, if nothing that was sent before can be late. */
static u64 unlimited_end(const struct smc_cdc_tx *tx, const struct smc_cdc_rx *rx, u64 written, u64 urgent)
{
	/* Data that was taken back, and that the peer has read meanwhile, is beyond the end: see smc_cdc_catch_up(). */
	if (READ_ONCE(tx->write_closed))
		return tx->closed_end > tx->prod.pos ? tx->closed_end : tx->prod.pos;
	if (READ_ONCE(rx->cons.pos) < tx->urgent_sent && smc_cdc_peer_can_receive(rx))
		return tx->urgent_sent;
	return urgent > tx->prod.pos ? urgent : written;
}

/**
 * smc_cdc_sendable_end() - returns the end of the data that a message may report now
 * @tx: what was sent
 * @rx: what the peer has sent
 * @written: end of the data that was written
 * @urgent: end of the last urgent byte in it, 0 if none
 *
 * Peers expect that an urgent byte is the last one before the producer cursor, and that the cursor stays there until it
 * is read (RFC 7609, 4.7.5 and 4.7.6). Data written after a message with C or A, or after the peer has aborted the
 * connection, is discarded (RFC 7609, 4.8.2).
 *
 * Return: a position in the stream, not before that of the last message.
 */
u64 smc_cdc_sendable_end(const struct smc_cdc_tx *tx, const struct smc_cdc_rx *rx, u64 written, u64 urgent)
{
	u64 end;

	if (READ_ONCE(rx->state) & SMC_CDC_ABORT)
		return tx->prod.pos;
	end = unlimited_end(tx, rx, written, urgent);
	if (!tx->limit || end <= tx->limit)
		return end;
	return tx->limit > tx->prod.pos ? tx->limit : tx->prod.pos;
}

/* Returns the producer flags of a message that reports data up to @end. */
static u8 flags_of(const struct smc_cdc_tx *tx, const struct smc_cdc_now *now, u64 end)
{
	u8 flags = now->full ? SMC_CDC_BLOCKED : 0;

	if ((end == now->urgent && tx->urgent_sent != end) || (tx->urgent_again && tx->urgent_sent == end))
		return flags | SMC_CDC_URGENT | SMC_CDC_URGENT_PENDING;
	if (now->replaces && end && tx->urgent_sent == end)
		flags |= SMC_CDC_URGENT;
	return flags;
}

/**
 * smc_cdc_build() - builds the message that reports everything that may be reported now
 * @tx: what was sent; unchanged until smc_cdc_sent()
 * @rx: what the peer has sent
 * @now: what to report
 * @u: result
 *
 * While an urgent byte holds back data, it holds back D and C, too, because they say that all data was reported.
 */
void smc_cdc_build(const struct smc_cdc_tx *tx, const struct smc_cdc_rx *rx, const struct smc_cdc_now *now,
		   struct smc_cdc_update *u)
{
	u64 end = smc_cdc_sendable_end(tx, rx, now->written, now->urgent);

	u->msg = (struct smc_cdc){ .seq = (u16)(tx->seq + 1), .state = now->close_flags };
	if (end != now->written && smc_cdc_peer_can_receive(rx) && !tx->write_closed)
		u->msg.state &= SMC_CDC_ABORT;
	u->prod = tx->prod;
	u->cons = tx->cons;
	smc_track_to(&u->prod, end, now->tx_size);
	smc_track_to(&u->cons, now->read, now->rx_size);
	u->msg.prod = u->prod.at;
	u->msg.cons = u->cons.at;
	u->msg.flags = flags_of(tx, now, end);
}

/* Others read the position without a lock. */
static void set_track(struct smc_track *t, const struct smc_track *to)
{
	t->at = to->at;
	WRITE_ONCE(t->pos, to->pos);
}

/**
 * smc_cdc_sent() - a message was sent
 * @tx: what was sent; updated
 * @u: the message, which smc_cdc_build() has built from @tx
 */
void smc_cdc_sent(struct smc_cdc_tx *tx, const struct smc_cdc_update *u)
{
	set_track(&tx->prod, &u->prod);
	set_track(&tx->cons, &u->cons);
	tx->seq = u->msg.seq;
	if (tx->most_sent < u->prod.pos)
		tx->most_sent = u->prod.pos;
	if (u->msg.state & (SMC_CDC_CLOSED | SMC_CDC_ABORT))
		smc_cdc_stop(tx);
	if (u->msg.flags & SMC_CDC_URGENT) {
		tx->urgent_sent = u->prod.pos;
		tx->urgent_again = false;
	}
}

/**
 * smc_cdc_stop() - messages report no data beyond what was sent
 * @tx: what was sent; updated
 */
void smc_cdc_stop(struct smc_cdc_tx *tx)
{
	if (tx->write_closed)
		return;
	tx->closed_end = tx->prod.pos;
	WRITE_ONCE(tx->write_closed, true);
}

/**
 * smc_cdc_rewind() - takes back what may be lost, so that it is sent again (RFC 7609, 4.6)
 * @tx: what was sent; updated
 * @pos: end of the data that the peer certainly has, at most a ring before the producer cursor
 * @size: bytes of the peer's receive buffer
 *
 * Numbers of messages are not used again.
 */
void smc_cdc_rewind(struct smc_cdc_tx *tx, u64 pos, u32 size)
{
	u32 back = (u32)(tx->prod.pos - pos);

	WRITE_ONCE(tx->prod.pos, pos);
	if (tx->prod.at.count < back) {
		tx->prod.at.count += size;
		tx->prod.at.wrap--;
	}
	tx->prod.at.count -= back;
	if (tx->urgent_sent > pos)
		tx->urgent_again = true;
}

/**
 * smc_cdc_limit() - data that was sent may still be written to the peer's receive buffer at any moment
 * @tx: what was sent; updated
 * @pos: end of the data that the peer certainly has, of which nothing is written again
 * @size: bytes of the peer's receive buffer
 *
 * Such a write changes nothing that the peer has not read, as long as the place of what follows @pos is not used again: no
 * message reports data that is a whole buffer beyond it, until tx->limit is 0 again. An earlier limit stays.
 */
void smc_cdc_limit(struct smc_cdc_tx *tx, u64 pos, u32 size)
{
	if (!tx->limit)
		tx->limit = pos + size;
}

/**
 * smc_cdc_catch_up() - the peer has read data that smc_cdc_rewind() has taken back: it is not sent again
 * @tx: what was sent; updated
 * @rx: what the peer has sent
 * @size: bytes of the peer's receive buffer
 *
 * Return: by how many bytes the producer cursor has moved forward; 0 mostly.
 */
u32 smc_cdc_catch_up(struct smc_cdc_tx *tx, const struct smc_cdc_rx *rx, u32 size)
{
	u64 read = READ_ONCE(rx->cons.pos);
	struct smc_track prod = tx->prod;
	u32 n;

	if (read <= tx->prod.pos)
		return 0;
	n = (u32)(read - tx->prod.pos);
	smc_track_to(&prod, read, size);
	set_track(&tx->prod, &prod);
	return n;
}

/**
 * smc_cdc_recv() - receives a message of the peer
 * @rx: what the peer has sent; updated
 * @msg: the message
 * @sent: end of the data that the peer can have read
 * @rx_size: bytes of our receive buffer
 * @tx_size: bytes of the peer's receive buffer
 * @delta: result: what the message has changed
 *
 * A cursor that is impossible, or that goes back because a message was sent again after a failover, changes nothing.
 *
 * Return: 0, or -EPROTO if the peer claims to have read data that was not sent, so that we would overwrite it.
 */
int smc_cdc_recv(struct smc_cdc_rx *rx, const struct smc_cdc *msg, u64 sent, u32 rx_size, u32 tx_size,
		 struct smc_cdc_delta *delta)
{
	struct smc_track cons = rx->cons;

	delta->data = smc_track_from(&rx->prod, msg->prod, rx_size);
	delta->space = smc_track_from(&cons, msg->cons, tx_size);
	if (cons.pos > sent)
		return -EPROTO;
	delta->urgent = (msg->flags & SMC_CDC_URGENT) && rx->prod.pos > rx->urgent;
	if (delta->urgent)
		rx->urgent = rx->prod.pos;
	delta->blocked = msg->flags & SMC_CDC_BLOCKED;
	delta->update_requested = msg->flags & SMC_CDC_UPDATE;
	delta->closing = (u8)(msg->state & ~rx->state);
	if (delta->space > 0) {
		rx->cons.at = cons.at;
		WRITE_ONCE(rx->cons.pos, cons.pos);
	}
	if (delta->closing)
		WRITE_ONCE(rx->state, (u8)(rx->state | delta->closing));
	return 0;
}

/**
 * smc_cdc_should_update_cons() - returns whether a consumer update is due (RFC 7609, 4.5.1)
 * @s: the state
 *
 * A reader that waits although there is data waits for more data, and the peer may wait for space. A waiting writer of this
 * implementation waits for half of the ring, and may have written more than has arrived. Other peers get an update from a tenth of the ring on, if they are short of space: they have half of the ring at most, or
 * have set WRITE_BLOCKED.
 */
bool smc_cdc_should_update_cons(const struct smc_cdc_space *s)
{
	u32 tenth = s->size / 10;

	if (!s->unsignaled)
		return false;
	if (s->requested || s->reader_waits)
		return true;
	if (s->peer_waits_half)
		return s->unsignaled + s->ahead >= s->size / 2 && s->ahead <= s->size / 2;
	if (s->unsignaled <= (tenth > s->min_update ? tenth : s->min_update))
		return false;
	return s->blocked || s->unsignaled + s->ahead >= s->size / 2;
}

/**
 * smc_cdc_fits_imm() - returns whether a message can be sent as immediate data (docs/protocol.md, 12)
 * @tx: what was sent before
 * @u: the message
 *
 * The adapter reports to the peer how much data was written. The caller checks that one write has all of it, and that the
 * peer has agreed to immediate data.
 */
bool smc_cdc_fits_imm(const struct smc_cdc_tx *tx, const struct smc_cdc_update *u)
{
	return !u->msg.state && !(u->msg.flags & ~SMC_CDC_BLOCKED) && u->cons.pos - tx->cons.pos <= SMC_CDC_IMM_READ;
}

/**
 * smc_cdc_encode_imm() - encodes a message as immediate data
 * @tx: what was sent before
 * @u: the message, which smc_cdc_fits_imm()
 * @rmb: index of the RMB, by which the peer finds the connection
 *
 * Return: 32 bits, in host order.
 */
u32 smc_cdc_encode_imm(const struct smc_cdc_tx *tx, const struct smc_cdc_update *u, u8 rmb)
{
	u32 blocked = u->msg.flags & SMC_CDC_BLOCKED ? SMC_CDC_IMM_BLOCKED : 0;

	return (u32)rmb << SMC_CDC_IMM_RMB_SHIFT | blocked | (u32)(u->cons.pos - tx->cons.pos);
}

/**
 * smc_cdc_decode_imm() - decodes immediate data to the message that it stands for
 * @rx: what the peer has sent before
 * @imm: the immediate data, in host order
 * @len: bytes that the peer has written, as the adapter reports it
 * @rx_size: bytes of our receive buffer
 * @tx_size: bytes of the peer's receive buffer
 * @msg: result; its sequence number follows that of the message before
 *
 * Return: 0, or -EPROTO if it is impossible. Immediate data always comes with data, so a length of 0 means that the
 * adapter does not report lengths.
 */
int smc_cdc_decode_imm(const struct smc_cdc_rx *rx, u32 imm, u32 len, u32 rx_size, u32 tx_size, struct smc_cdc *msg)
{
	struct smc_track prod = rx->prod, cons = rx->cons;
	u32 read = imm & SMC_CDC_IMM_READ;

	if (!len || len > rx_size || read > tx_size)
		return -EPROTO;
	smc_track_to(&prod, prod.pos + len, rx_size);
	smc_track_to(&cons, cons.pos + read, tx_size);
	*msg = (struct smc_cdc){
		.seq = (u16)(rx->seq + 1), .prod = prod.at, .cons = cons.at,
		.flags = (u8)(imm & SMC_CDC_IMM_BLOCKED ? SMC_CDC_BLOCKED : 0),
	};
	return 0;
}
