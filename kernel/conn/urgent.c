// SPDX-License-Identifier: GPL-2.0-only
/*
 * Urgent data (RFC 7609, 4.5.6), which to the application is TCP's: one byte that it gets apart
 * from the stream, or a mark in it.
 */

#include <linux/highmem.h>
#include <linux/math64.h>

#include "conn.h"

static bool in_line(const struct smc_conn *conn)
{
	return sock_flag(conn->sk, SOCK_URGINLINE);
}

/* A byte of the ring by its position in the stream. The caller knows that it is there. */
static u8 byte_at(const struct smc_conn *conn, u64 pos)
{
	u32 off, at;
	u8 *page, byte;

	div_u64_rem(pos, conn->rx.size, &off);
	at = off + conn->rx.skip;
	page = kmap_local_page(conn->rx.pages[at >> PAGE_SHIFT]);
	byte = page[at & (PAGE_SIZE - 1)];
	kunmap_local(page);
	return byte;
}

/*
 * smc_urgent_arrived() - the byte before a position is urgent. The peer has written it but the
 * reader has not been told. Does not sleep.
 *
 * As with TCP, an earlier urgent byte becomes part of the stream, unless the reader stands right
 * before it.
 */
void smc_urgent_arrived(struct smc_conn *conn, u64 prod)
{
	bool here = false;

	spin_lock_bh(&conn->lock);
	if (prod > READ_ONCE(conn->rx_cons)) {
		if (conn->urgent && !in_line(conn) && conn->urgent_pos == READ_ONCE(conn->rx_cons))
			conn->urgent_gone = conn->urgent_pos;
		conn->urgent_byte = byte_at(conn, prod - 1);
		WRITE_ONCE(conn->urgent_pos, prod - 1);
		WRITE_ONCE(conn->urgent, SMC_URGENT_VALID);
		here = true;
	}
	spin_unlock_bh(&conn->lock);
	if (!here)
		return;
	/* Whoever closes the socket takes it from the sock under this lock. */
	read_lock_bh(&conn->sk->sk_callback_lock);
	sk_send_sigurg(conn->sk);
	read_unlock_bh(&conn->sk->sk_callback_lock);
}

/*
 * smc_urgent_limit() - how far a read may go
 * @conn: the connection
 * @pos: where it stands
 * @avail: bytes that are there
 * @skip: set if the next byte is not to be read at all
 *
 * Under rx_lock. Return: bytes up to the mark, or all of them.
 */
u32 smc_urgent_limit(struct smc_conn *conn, u64 pos, u32 avail, bool *skip)
{
	u64 mark;

	if (likely(!READ_ONCE(conn->urgent)))
		return avail;
	spin_lock_bh(&conn->lock);
	mark = conn->urgent_pos;
	if (avail && conn->urgent_gone == pos) {
		*skip = true;
	} else if (conn->urgent && mark >= pos && mark - pos < avail) {
		if (mark > pos)
			avail = mark - pos;
		else
			*skip = !in_line(conn);
	}
	spin_unlock_bh(&conn->lock);
	return avail;
}

/* smc_urgent_stops() - is a read that has got something to end here? Under rx_lock. */
bool smc_urgent_stops(const struct smc_conn *conn, u64 pos)
{
	return READ_ONCE(conn->urgent) && READ_ONCE(conn->urgent_pos) == pos;
}

/* smc_urgent_passed() - forgets the mark if the reader is beyond it. Under rx_lock. */
void smc_urgent_passed(struct smc_conn *conn)
{
	if (likely(!READ_ONCE(conn->urgent)))
		return;
	spin_lock_bh(&conn->lock);
	if (conn->rx_cons > conn->urgent_pos) {
		WRITE_ONCE(conn->urgent, SMC_URGENT_NONE);
		WRITE_ONCE(conn->rx_asked, true);
	}
	spin_unlock_bh(&conn->lock);
}

/* smc_urgent_at_mark() - for SIOCATMARK. Any context. */
bool smc_urgent_at_mark(const struct smc_conn *conn)
{
	return READ_ONCE(conn->urgent) && READ_ONCE(conn->urgent_pos) == READ_ONCE(conn->rx_cons);
}

/* smc_urgent_inq() - for SIOCINQ: bytes that can be read before the mark. Any context. */
u32 smc_urgent_inq(const struct smc_conn *conn)
{
	u64 cons = READ_ONCE(conn->rx_cons), prod = READ_ONCE(conn->rx_prod);
	u64 mark = READ_ONCE(conn->urgent_pos);

	if (READ_ONCE(conn->urgent) && !in_line(conn) && mark >= cons && mark < prod)
		return mark - cons;
	return prod - cons;
}

/**
 * smc_urgent_recv() - recvmsg(2) with MSG_OOB
 * @conn: the connection
 * @msg: where to
 * @len: bytes that fit
 * @flags: MSG_PEEK, MSG_TRUNC
 *
 * May sleep, does not wait. Return: 1, or 0 at the end of the stream, or as TCP would.
 */
int smc_urgent_recv(struct smc_conn *conn, struct msghdr *msg, size_t len, int flags)
{
	bool valid;
	u8 byte;

	spin_lock_bh(&conn->lock);
	if (in_line(conn) || !conn->urgent || conn->urgent == SMC_URGENT_READ) {
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
	msg->msg_flags |= MSG_OOB;
	if (!len) {
		msg->msg_flags |= MSG_TRUNC;
		return 0;
	}
	if (!(flags & MSG_TRUNC) && memcpy_to_msg(msg, &byte, 1))
		return -EFAULT;
	return 1;
}
