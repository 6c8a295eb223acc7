// SPDX-License-Identifier: GPL-2.0-only
/*
 * Urgent data (RFC 7609, 4.7.5 and 4.7.6), with the semantics of TCP: one byte that the application receives out of
 * band, or, with SO_OOBINLINE, a mark in the stream.
 */

#include <linux/highmem.h>
#include <linux/math64.h>

#include "conn.h"

static bool is_inline(const struct smc_conn *conn)
{
	return sock_flag(conn->sk, SOCK_URGINLINE);
}

/* Returns whether readers get the urgent byte from urgent_byte, not from the ring. */
static bool is_out_of_band(const struct smc_conn *conn)
{
	lockdep_assert_held(&conn->lock);
	return conn->urgent_kept || !is_inline(conn);
}

/* Returns the byte at a position of the stream, which is in the ring. */
static u8 ring_byte(const struct smc_conn *conn, u64 pos)
{
	u32 off, at;
	u8 *page, byte;

	div_u64_rem(pos, conn->rx.size, &off);
	at = off + conn->rx.skip;
	if (conn->rx.mem) {
		rcu_read_lock();
		byte = smc_rcvbuf_is_gone(&conn->rx) ? 0 : READ_ONCE(conn->rx.mem[at]);
		rcu_read_unlock();
		return byte;
	}
	page = kmap_local_page(conn->rx.pages[at >> PAGE_SHIFT]);
	byte = page[at & (PAGE_SIZE - 1)];
	kunmap_local(page);
	return byte;
}

/*
 * smc_urgent_received() - the byte before @prod is urgent. It is in the ring, but rx_prod has not moved yet. Any context
 * but hardirq.
 *
 * As with TCP, an earlier urgent byte becomes part of the stream, unless the reader is right before it.
 */
void smc_urgent_received(struct smc_conn *conn, u64 prod)
{
	bool here = false;

	spin_lock_bh(&conn->lock);
	if (prod > READ_ONCE(conn->rx_cons)) {
		if (conn->urgent && is_out_of_band(conn) && conn->urgent_pos == READ_ONCE(conn->rx_cons))
			conn->urgent_skip_pos = conn->urgent_pos;
		conn->urgent_kept = false;
		conn->urgent_byte = ring_byte(conn, prod - 1);
		WRITE_ONCE(conn->urgent_pos, prod - 1);
		smp_store_release(&conn->urgent, SMC_URGENT_VALID); /* after its position, for readers without the lock */
		here = true;
	}
	spin_unlock_bh(&conn->lock);
	if (!here)
		return;
	smp_mb(); /* pairs with that of rx_consume(): the reader sees the byte, or smc_urgent_cons() the reader */
	/* A close takes the socket from the sock under this lock. */
	read_lock_bh(&conn->sk->sk_callback_lock);
	sk_send_sigurg(conn->sk);
	read_unlock_bh(&conn->sk->sk_callback_lock);
}

/* Returns whether the consumer cursor that is sent includes the byte right before the reader. */
static bool is_place_freed(const struct smc_conn *conn)
{
	u64 cons = READ_ONCE(conn->rx_cons);

	lockdep_assert_held(&conn->lock);
	return conn->urgent && (conn->urgent_skip_pos == cons || (conn->urgent_kept && conn->urgent_pos == cons));
}

/*
 * smc_urgent_cons() - returns the consumer position to send to the peer; it never goes back. Any context but hardirq.
 *
 * That includes an urgent byte right before the reader if it is out of band: the peer sends nothing after the byte until
 * it is read, and an application that polls for more data would never read it.
 */
u64 smc_urgent_cons(struct smc_conn *conn)
{
	u64 cons;

	/* Before rx_cons is read: the reader moves that before it clears `urgent`. */
	if (likely(!smp_load_acquire(&conn->urgent)))
		return READ_ONCE(conn->rx_cons);
	spin_lock_bh(&conn->lock);
	cons = READ_ONCE(conn->rx_cons);
	if (conn->urgent && conn->urgent_pos == cons && is_out_of_band(conn))
		conn->urgent_kept = true;
	cons += is_place_freed(conn);
	spin_unlock_bh(&conn->lock);
	return cons;
}

/* smc_urgent_extra() - returns how many bytes the peer may have written beyond a full ring. Any context but hardirq. */
u32 smc_urgent_extra(struct smc_conn *conn)
{
	bool spare;

	/* If the reader has cleared it, the caller sees the new rx_cons. */
	if (!smp_load_acquire(&conn->urgent))
		return 0;
	spin_lock_bh(&conn->lock);
	spare = is_place_freed(conn);
	spin_unlock_bh(&conn->lock);
	return spare;
}

/*
 * smc_urgent_limit() - returns how many bytes a read may take
 * @conn: the connection
 * @pos: position of the read in the stream
 * @avail: bytes that are there
 * @next: result: whether the next byte is special
 *
 * Context: process.
 * Return: bytes up to the urgent mark, or @avail.
 */
u32 smc_urgent_limit(struct smc_conn *conn, u64 pos, u32 avail, struct smc_urgent_next *next)
{
	u64 mark;

	lockdep_assert_held(&conn->rx_lock);
	next->skip = false;
	next->kept = false;
	if (likely(!READ_ONCE(conn->urgent)))
		return avail;
	spin_lock_bh(&conn->lock);
	mark = conn->urgent_pos;
	if (avail && conn->urgent_skip_pos == pos) {
		next->skip = true;
	} else if (conn->urgent && mark >= pos && mark - pos < avail) {
		if (mark > pos) {
			avail = mark - pos;
		} else if (!is_inline(conn)) {
			next->skip = true;
		} else if (conn->urgent_kept) {
			next->kept = true;
			next->byte = conn->urgent_byte;
			avail = 1;
		}
	}
	spin_unlock_bh(&conn->lock);
	return avail;
}

/* smc_urgent_stops() - returns whether a read that has got data ends at @pos. Any context. */
bool smc_urgent_stops(const struct smc_conn *conn, u64 pos)
{
	return smp_load_acquire(&conn->urgent) && READ_ONCE(conn->urgent_pos) == pos;
}

/* smc_urgent_update() - the reader has moved: clears a mark behind it, and requests a consumer update at the mark. */
void smc_urgent_update(struct smc_conn *conn)
{
	lockdep_assert_held(&conn->rx_lock);
	if (likely(!READ_ONCE(conn->urgent)))
		return;
	spin_lock_bh(&conn->lock);
	if (conn->rx_cons > conn->urgent_pos) {
		conn->urgent_kept = false;
		/* After rx_cons, by the barrier of rx_consume(): see smc_urgent_cons(). */
		WRITE_ONCE(conn->urgent, SMC_URGENT_NONE);
		WRITE_ONCE(conn->rx_update_requested, true);
	} else if (conn->rx_cons == conn->urgent_pos && !is_inline(conn)) {
		WRITE_ONCE(conn->rx_update_requested, true);
	}
	spin_unlock_bh(&conn->lock);
}

/* smc_urgent_at_mark() - for SIOCATMARK. Any context. */
bool smc_urgent_at_mark(const struct smc_conn *conn)
{
	return smp_load_acquire(&conn->urgent) && READ_ONCE(conn->urgent_pos) == READ_ONCE(conn->rx_cons);
}

/* smc_urgent_inq() - for SIOCINQ: bytes that can be read before the mark. Any context. */
u32 smc_urgent_inq(const struct smc_conn *conn)
{
	u64 cons = smp_load_acquire(&conn->rx_cons); /* first, so that it is not ahead */
	u64 prod = READ_ONCE(conn->rx_prod);
	bool marked = smp_load_acquire(&conn->urgent);
	u64 mark = READ_ONCE(conn->urgent_pos);

	if (marked && !is_inline(conn) && mark >= cons && mark < prod)
		return mark - cons;
	return prod - cons;
}

/**
 * smc_urgent_recv() - recvmsg(2) with MSG_OOB
 * @conn: the connection
 * @msg: gets the byte
 * @len: bytes that fit
 * @flags: MSG_PEEK, MSG_TRUNC
 *
 * Context: process; may sleep, but does not wait for data.
 * Return: 1, 0 at the end of the stream, or the negative errno that TCP would return.
 */
int smc_urgent_recv(struct smc_conn *conn, struct msghdr *msg, size_t len, int flags)
{
	bool valid;
	u8 byte;

	might_sleep();
	spin_lock_bh(&conn->lock);
	if (is_inline(conn) || !conn->urgent || conn->urgent == SMC_URGENT_READ) {
		spin_unlock_bh(&conn->lock);
		return -EINVAL;
	}
	valid = conn->urgent == SMC_URGENT_VALID;
	byte = conn->urgent_byte;
	if (valid && !(flags & MSG_PEEK))
		WRITE_ONCE(conn->urgent, SMC_URGENT_READ);
	spin_unlock_bh(&conn->lock);
	if (!valid)
		return smc_conn_meaning(conn)->eof || READ_ONCE(conn->rx_shut) ? 0 : -EAGAIN;
	smc_stats_add(conn->member.sn, conn->tech, SMC_STATS_URGENT, 1);
	msg->msg_flags |= MSG_OOB;
	if (!len) {
		msg->msg_flags |= MSG_TRUNC;
		return 0;
	}
	if (!(flags & MSG_TRUNC) && memcpy_to_msg(msg, &byte, 1))
		return -EFAULT;
	return 1;
}
