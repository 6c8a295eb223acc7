// SPDX-License-Identifier: GPL-2.0-only
#include "cdc.h"

/**
 * smc_cdc_sendable_end() - the end of the data that the peer may be told of now
 * @tx: what was sent
 * @rx: what the peer has sent
 * @written: the end of what was written
 * @urgent: the end of the last urgent byte in it, 0 if there was none
 *
 * An urgent byte is the last one before the cursor, and the cursor stays behind it until the peer has
 * read it: peers expect that of each other. After a message that closes, and after the peer has
 * aborted the connection, data is discarded (RFC 7609, section 4.8.2).
 *
 * Return: a position in the stream, not before that of the last message.
 */
u64 smc_cdc_sendable_end(const struct smc_cdc_tx *tx, const struct smc_cdc_rx *rx, u64 written, u64 urgent)
{
	if (READ_ONCE(tx->write_closed) || (READ_ONCE(rx->state) & SMC_CDC_ABORT))
		return tx->prod.pos;
	if (READ_ONCE(rx->cons.pos) < tx->urgent_sent && smc_cdc_peer_can_receive(rx))
		return tx->urgent_sent;
	return urgent > tx->prod.pos ? urgent : written;
}

/* The flags of a message that tells of data up to @end. */
static u8 flags_of(const struct smc_cdc_tx *tx, const struct smc_cdc_now *now, u64 end)
{
	u8 flags = now->full ? SMC_CDC_BLOCKED : 0;

	if (end == now->urgent && tx->urgent_sent != end)
		return flags | SMC_CDC_URGENT | SMC_CDC_URGENT_PENDING;
	if (now->replaces && end && tx->urgent_sent == end)
		flags |= SMC_CDC_URGENT;
	return flags;
}

/**
 * smc_cdc_build() - the message that tells the peer everything that it may know now
 * @tx: what was sent; stays as it is until smc_cdc_sent()
 * @rx: what the peer has sent
 * @now: what there is to tell
 * @u: gets the message
 *
 * While an urgent byte holds back data, it holds back the flags that close as well, because those say
 * that all data was told.
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

/**
 * smc_cdc_sent() - a message is on its way
 * @tx: what was sent, from now on with the message
 * @u: the message, which smc_cdc_build() has made from @tx
 */
void smc_cdc_sent(struct smc_cdc_tx *tx, const struct smc_cdc_update *u)
{
	tx->prod = u->prod;
	tx->cons = u->cons;
	tx->seq = u->msg.seq;
	if (u->msg.state & (SMC_CDC_CLOSED | SMC_CDC_ABORT))
		WRITE_ONCE(tx->write_closed, true);
	if (u->msg.flags & SMC_CDC_URGENT)
		tx->urgent_sent = u->prod.pos;
}

/**
 * smc_cdc_recv() - takes in a message of the peer
 * @rx: what the peer has sent, from now on with the message
 * @msg: the message
 * @sent: the end of the data that the peer can have read
 * @rx_size: bytes of our element
 * @tx_size: bytes of the peer's element
 * @delta: gets what the message brings
 *
 * A cursor that cannot be counts as no delta. That includes one that goes back, as in a message that is
 * sent again after a failover.
 *
 * Return: 0, or -EPROTO if the peer claims to have read what was not sent. It would have us write over
 * data of ours that is on its way.
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
 * smc_cdc_should_update_cons() - is it time for a message that tells the peer how far we have read?
 * @s: what the reader knows
 *
 * A peer of this implementation whose writer waits, waits for half of the ring, and it may have written
 * more than has come here. Other peers are told from a tenth of the ring on, if they are short of
 * space: they have no more than half of the ring, or have said that they are blocked.
 *
 * Return: whether to send one.
 */
bool smc_cdc_should_update_cons(const struct smc_cdc_space *s)
{
	u32 tenth = s->size / 10;

	if (s->requested)
		return true;
	if (s->peer_waits_half)
		return s->unsignaled + s->ahead >= s->size / 2 && s->ahead <= s->size / 2;
	if (s->unsignaled <= (tenth > s->min_update ? tenth : s->min_update))
		return false;
	return s->blocked || s->unsignaled + s->ahead >= s->size / 2;
}

/**
 * smc_cdc_fits_imm() - does immediate data say all that a message says?
 * @tx: what was sent before
 * @u: the message
 *
 * The adapter reports to the peer how much data was written. The caller checks that there is some, in
 * one piece, and that the peer has agreed to immediate data.
 */
bool smc_cdc_fits_imm(const struct smc_cdc_tx *tx, const struct smc_cdc_update *u)
{
	return !u->msg.state && !(u->msg.flags & ~SMC_CDC_BLOCKED) && u->cons.pos - tx->cons.pos <= SMC_CDC_IMM_READ;
}

/**
 * smc_cdc_encode_imm() - a message as immediate data
 * @tx: what was sent before
 * @u: the message, which smc_cdc_fits_imm()
 * @rmb: the number by which the peer finds the connection
 *
 * Return: 32 bits, in host order.
 */
u32 smc_cdc_encode_imm(const struct smc_cdc_tx *tx, const struct smc_cdc_update *u, u8 rmb)
{
	u32 blocked = u->msg.flags & SMC_CDC_BLOCKED ? SMC_CDC_IMM_BLOCKED : 0;

	return (u32)rmb << SMC_CDC_IMM_RMB_SHIFT | blocked | (u32)(u->cons.pos - tx->cons.pos);
}

/**
 * smc_cdc_decode_imm() - the message that immediate data stands for
 * @rx: what the peer has sent before
 * @imm: the immediate data, in host order
 * @len: bytes that the peer has written, as the adapter reports it
 * @rx_size: bytes of our element
 * @tx_size: bytes of the peer's element
 * @msg: gets the message; its number follows that of the one before
 *
 * Return: 0, or -EPROTO if it cannot be. A peer writes nothing without data like this, so an adapter
 * that reports no length has lost it.
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
