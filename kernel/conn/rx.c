// SPDX-License-Identifier: GPL-2.0-only
/* Receiving: from the ring in our receive buffer to the application, or to a pipe. */

#include <linux/highmem.h>
#include <linux/pagemap.h>
#include <linux/pipe_fs_i.h>
#include <linux/sizes.h>
#include <linux/splice.h>
#include <linux/uaccess.h>
#include <net/tcp.h>

#include "../control/trace.h"
#include "../control/trace_stock.h"
#include "../net.h"
#include "cdc.h"
#include "conn.h"

/* The progress of one call, which copies to @msg or puts pages into @pipe. */
struct rx_call {
	struct smc_conn *conn;
	struct msghdr *msg;
	struct pipe_inode_info *pipe;
	int flags;
	long timeo;
	size_t len;		/* bytes that the application wants */
	size_t target;		/* bytes after which the call does not wait */
	size_t done;		/* bytes that it has got */
	u64 pos;		/* position in the stream */
	u32 off;		/* the same in the ring */
	u32 ahead;		/* bytes still to skip for SO_PEEK_OFF */
	struct smc_urgent_next next;
	struct smc_stats_found found;	/* before it read anything */
};

/* How often to fault in memory of the application without being able to write to it */
#define FUTILE_MAX 3

/* Returns the page at @off of the ring, the offset @in it, and in @n how many of the wanted bytes it has. */
static struct page *ring_page(const struct smc_conn *conn, u32 off, u32 *in, u32 *n)
{
	u32 at = off + conn->rx.skip;

	*in = at & (PAGE_SIZE - 1);
	*n = min_t(u32, *n, PAGE_SIZE - *in);
	return READ_ONCE(conn->rx.pages[at >> PAGE_SHIFT]);
}

/* Copies from memory of a device what can be copied without a page fault. Return: bytes, or -ECONNRESET if the device is gone. */
static ssize_t ring_copy_some(const struct smc_conn *conn, u32 off, u32 n, struct iov_iter *to)
{
	ssize_t copied = -ECONNRESET;

	rcu_read_lock();
	if (!smc_rcvbuf_is_gone(&conn->rx)) {
		pagefault_disable();
		copied = copy_to_iter(conn->rx.mem + conn->rx.skip + off, n, to);
		pagefault_enable();
	}
	rcu_read_unlock();
	return copied;
}

/* The same for all @n bytes. An application whose memory is slow keeps the device no longer than for a part. Return: bytes, or -ECONNRESET. */
static ssize_t ring_copy_mem(const struct smc_conn *conn, u32 off, u32 n, struct iov_iter *to)
{
	int futile = 0;
	u32 done = 0;

	while (done < n) {
		u32 want = min_t(u32, n - done, SZ_64K);
		ssize_t copied = ring_copy_some(conn, off + done, want, to);

		if (copied < 0) {
			iov_iter_revert(to, done);
			return copied;
		}
		done += copied;
		if (copied < want && fault_in_iov_iter_writeable(to, want - copied) == want - copied)
			break;
		/* There is memory that can be faulted in, and yet not be written to. */
		futile = copied ? 0 : futile + 1;
		if (futile > FUTILE_MAX)
			break;
		cond_resched();
	}
	return done;
}

/* Copies up to @n bytes of the ring from @off on, and stores in @n how many these are. Return: how many could be copied, or -ECONNRESET. */
static ssize_t ring_copy(const struct smc_conn *conn, u32 off, u32 *n, struct iov_iter *to)
{
	struct page *page;
	u32 in;

	if (conn->rx.mem)
		return ring_copy_mem(conn, off, *n, to);
	page = ring_page(conn, off, &in, n);
	return copy_page_to_iter(page, in, *n, to);
}

static void rx_advance(struct rx_call *c, u32 n)
{
	c->pos += n;
	c->off += n;
	/* A loop, as a skipped urgent byte may add to a full ring. */
	while (c->off >= c->conn->rx.size)
		c->off -= c->conn->rx.size;
}

/* Moves rx_cons to the position of the call, unless it peeks. */
static void rx_consume(struct rx_call *c)
{
	struct smc_conn *conn = c->conn;
	u32 n = c->pos - conn->rx_cons;
	u32 first = min(n, conn->rx.size - conn->rx_off);

	lockdep_assert_held(&conn->rx_lock);
	if (!n || (c->flags & MSG_PEEK))
		return;
	if (conn->ops->consumed) {
		conn->ops->consumed(conn, conn->rx_off, first);
		if (n > first)
			conn->ops->consumed(conn, 0, n - first);
	}
	conn->rx_off = c->off;
	smp_store_release(&conn->rx_cons, c->pos); /* who sees it sees the rx_prod that this thread has seen */
	smp_mb(); /* pairs with that of smc_urgent_received(), and of smc_rx_lowat() */
	smc_urgent_update(conn);
}

/**
 * smc_rx_signaled() - the consumer position that the peer knows
 * @conn: the connection
 *
 * Messages with data carry the consumer cursor, too, so a dialogue needs no consumer updates. They may report an urgent
 * byte before it is read, which does not count here.
 *
 * Context: any; without rx_lock the result is a hint.
 * Return: a position in the stream.
 */
u64 smc_rx_signaled(const struct smc_conn *conn)
{
	u64 signaled = max(READ_ONCE(conn->rx_signaled), READ_ONCE(conn->rx_posted));

	return min(signaled, READ_ONCE(conn->rx_cons));
}

/*
 * Returns the bytes that the reader may leave behind: unread data, or up to SO_RCVLOWAT - 1 bytes, which do
 * not wake poll().
 */
static u64 rx_bytes_ahead(const struct smc_conn *conn)
{
	u64 cons = smp_load_acquire(&conn->rx_cons); /* before rx_prod, so that the difference is not negative */

	return max_t(u64, READ_ONCE(conn->rx_prod) - cons, smc_conn_lowat(conn) - 1);
}

/* Returns whether a consumer update is due. @waits: the reader is about to wait. */
static bool rx_update_due(struct smc_conn *conn, bool waits)
{
	u64 signaled = smc_rx_signaled(conn);
	const struct smc_cdc_space space = {
		.unsignaled = READ_ONCE(conn->rx_cons) - signaled,
		.ahead = rx_bytes_ahead(conn),
		.size = conn->rx.size,
		.min_update = SOCK_MIN_SNDBUF / 2,
		.requested = READ_ONCE(conn->rx_update_requested),
		.blocked = READ_ONCE(conn->rx_blocked),
		.peer_waits_half = conn->peer_waits_half,
		.reader_waits = waits && READ_ONCE(conn->rx_prod) != READ_ONCE(conn->rx_cons),
	};

	if (smc_conn_meaning(conn)->over)
		return false;
	/* Reading everything clears "blocked". */
	if (space.blocked && READ_ONCE(conn->rx_prod) == READ_ONCE(conn->rx_cons))
		WRITE_ONCE(conn->rx_blocked, false);
	return smc_cdc_should_update_cons(&space);
}

/* Sends a consumer update if one is due, or if that costs nothing. */
static void rx_update_cons(struct smc_conn *conn, bool waits)
{
	lockdep_assert_held(&conn->rx_lock);
	if (conn->update_each_read) {
		if (conn->rx_signaled == conn->rx_cons || smc_conn_meaning(conn)->over)
			return;
	} else if (!rx_update_due(conn, waits)) {
		return;
	}
	WRITE_ONCE(conn->rx_update_requested, false);
	WRITE_ONCE(conn->rx_signaled, conn->rx_cons);
	conn->ops->signal(conn, SMC_SIGNAL_SPACE);
}

/**
 * smc_rx_lowat() - SO_RCVLOWAT has changed
 * @conn: the connection
 *
 * If more data than before may come without waking the reader, a consumer update may be due. A reader that has not
 * seen the new value has moved rx_cons before this reads it.
 *
 * Context: any but hardirq.
 */
void smc_rx_lowat(struct smc_conn *conn)
{
	smp_mb(); /* pairs with that of rx_consume() */
	/* Where each read sends one, none is due, and the transport must not have two callers at once. */
	if (!conn->update_each_read && rx_update_due(conn, false))
		conn->ops->signal(conn, SMC_SIGNAL_SPACE);
}

/* Copies data to the application. Return: the number of bytes, or a negative errno, with nothing copied, if not all could be. */
static ssize_t rx_copy(struct rx_call *c, u32 most)
{
	struct smc_conn *conn = c->conn;
	u32 done = 0, off = c->off;

	if (c->next.kept)
		return copy_to_iter(&c->next.byte, 1, &c->msg->msg_iter) ? 1 : -EFAULT;
	while (done < most) {
		u32 n = min(most - done, conn->rx.size - off);
		ssize_t copied = ring_copy(conn, off, &n, &c->msg->msg_iter);

		done += max_t(ssize_t, copied, 0);
		if (copied != n) {
			iov_iter_revert(&c->msg->msg_iter, done);
			return copied < 0 ? copied : -EFAULT;
		}
		off = off + n < conn->rx.size ? off + n : 0;
	}
	return done;
}

static void rx_drop_page(struct splice_pipe_desc *spd, unsigned int i)
{
	put_page(spd->pages[i]);
}

/*
 * Copies bytes of memory without pages to a page for a pipe; the arguments are those of ring_page(). Return: ERR_PTR(-ENOMEM), or
 * ERR_PTR(-ECONNRESET) if the device is gone.
 */
static struct page *rx_copy_to_page(const struct smc_conn *conn, u32 off, u32 *in, u32 *n)
{
	struct page *copy = alloc_page(GFP_KERNEL_ACCOUNT);
	bool gone;

	*in = 0;
	*n = min_t(u32, *n, PAGE_SIZE);
	if (!copy)
		return ERR_PTR(-ENOMEM);
	rcu_read_lock();
	gone = smc_rcvbuf_is_gone(&conn->rx);
	if (!gone)
		memcpy_to_page(copy, 0, conn->rx.mem + conn->rx.skip + off, *n);
	rcu_read_unlock();
	if (!gone)
		return copy;
	put_page(copy);
	return ERR_PTR(-ECONNRESET);
}

/*
 * Returns a page for a pipe: the page itself if the peer does not write to it again, else a copy. The arguments are those of
 * ring_page(), the errors those of rx_copy_to_page().
 */
static struct page *rx_pipe_page(const struct smc_conn *conn, u32 off, u32 *in, u32 *n)
{
	struct page *page, *copy;

	if (conn->rx.mem)
		return rx_copy_to_page(conn, off, in, n);
	page = ring_page(conn, off, in, n);
	if (!conn->rx.fixed) {
		get_page(page);
		return page;
	}
	copy = alloc_page(GFP_KERNEL_ACCOUNT);
	if (!copy)
		return ERR_PTR(-ENOMEM);
	memcpy_page(copy, *in, page, *in, *n);
	return copy;
}

/* Puts data into the pipe. Return: bytes, or a negative errno. */
static noinline_for_stack ssize_t rx_fill_pipe(struct rx_call *c, u32 avail)
{
	struct partial_page partial[MAX_SKB_FRAGS];
	struct page *pages[MAX_SKB_FRAGS];
	struct splice_pipe_desc spd = {
		.pages = pages,
		.partial = partial,
		.nr_pages_max = MAX_SKB_FRAGS,
		.ops = &nosteal_pipe_buf_ops,
		.spd_release = rx_drop_page,
	};
	struct page *page = NULL;
	u32 off = c->off;

	while (avail && spd.nr_pages < MAX_SKB_FRAGS) {
		u32 n = min(avail, c->conn->rx.size - off), in;

		page = rx_pipe_page(c->conn, off, &in, &n);
		if (IS_ERR(page))
			break;
		if (c->next.kept)
			memcpy_to_page(page, in, &c->next.byte, 1); /* `page` is a copy, as such rings are fixed */
		pages[spd.nr_pages] = page;
		partial[spd.nr_pages++] = (struct partial_page){ .offset = in, .len = n };
		avail -= n;
		off = off + n < c->conn->rx.size ? off + n : 0;
	}
	return spd.nr_pages ? splice_to_pipe(c->pipe, &spd) : PTR_ERR(page);
}

/* Delivers @n bytes of the ring to the application. Return: how many it took, or a negative errno if none. */
static ssize_t rx_deliver(struct rx_call *c, u32 n)
{
	if (c->pipe)
		return rx_fill_pipe(c, n);
	return c->flags & MSG_TRUNC ? n : rx_copy(c, n);
}

/* Drops the lock and sleeps until there is data beyond @pos, the stream ends or fails, or time is up. */
static void rx_wait_data(struct smc_conn *conn, long *timeo, u64 pos)
{
	DEFINE_WAIT_FUNC(wait, woken_wake_function);
	u64 mark = READ_ONCE(conn->urgent_pos);

	lockdep_assert_held(&conn->rx_lock);
	might_sleep();
	mutex_unlock(&conn->rx_lock);
	add_wait_queue(sk_sleep(conn->sk), &wait);
	smp_mb(); /* pairs with that of skwq_has_sleeper() in smc_conn_wake() */
	while (smp_load_acquire(&conn->rx_prod) == pos && !smc_conn_meaning(conn)->eof &&
	       !READ_ONCE(conn->rx_shut) && !READ_ONCE(conn->sk->sk_err) &&
	       READ_ONCE(conn->urgent_pos) == mark && *timeo && !signal_pending(current)) {
		smc_close_check_tcp(conn);
		*timeo = wait_woken(&wait, TASK_INTERRUPTIBLE, *timeo);
	}
	remove_wait_queue(sk_sleep(conn->sk), &wait);
	mutex_lock(&conn->rx_lock);
}

/* Whether the stream has ended. */
struct rx_end {
	bool eof;	/* nothing more will come */
	bool done;	/* because the peer closed, without an error */
};

/*
 * There is nothing to read. Return: 1 if the call goes on, else its result. Data that the peer wrote before it
 * closed comes first, because the caller called rx_stream_end() before it looked for data.
 */
static int rx_stop_reason(const struct smc_conn *conn, struct rx_end end, bool some, long timeo)
{
	struct sock *sk = conn->sk;

	if (some)
		return end.eof || READ_ONCE(sk->sk_err) || !timeo || signal_pending(current) ? 0 : 1;
	if (end.done)
		return 0;
	if (READ_ONCE(sk->sk_err))
		return sock_error(sk);
	if (end.eof)
		return 0;
	if (!timeo)
		return -EAGAIN;
	return signal_pending(current) ? sock_intr_errno(timeo) : 1;
}

/*
 * Returns whether the stream has ended. Call it before you look for data: the peer writes first, then closes. The
 * load of the state orders what is read after it.
 */
static struct rx_end rx_stream_end(const struct smc_conn *conn)
{
	struct rx_end end = { .eof = smc_conn_meaning(conn)->eof };

	end.done = end.eof && READ_ONCE(conn->rx_done);
	end.eof |= READ_ONCE(conn->rx_shut);
	return end;
}

/* Sets where to begin; with MSG_PEEK at SO_PEEK_OFF, which may be beyond the data that is there. */
static void rx_seek(struct rx_call *c)
{
	int peek = c->flags & MSG_PEEK ? READ_ONCE(c->conn->sk->sk_peek_off) : -1;

	lockdep_assert_held(&c->conn->rx_lock);
	c->pos = c->conn->rx_cons;
	c->off = c->conn->rx_off;
	c->ahead = max(peek, 0);
}

/* Returns how many bytes can be read before the urgent mark. Skips an urgent byte that is out of band. */
static u32 rx_available(struct rx_call *c)
{
	u32 n, pass;

	do {
		n = smp_load_acquire(&c->conn->rx_prod) - c->pos;
		pass = min(n, c->ahead);
		rx_advance(c, pass);
		c->ahead -= pass;
		n -= pass;
		n = smc_urgent_limit(c->conn, c->pos, n, &c->next);
		if (c->next.skip)
			rx_advance(c, 1);
	} while (c->next.skip);
	return n;
}

/* Reads the data that is there, or finds why there is none. Return: 1 to go on, else the result. */
static int rx_step(struct rx_call *c)
{
	struct smc_conn *conn = c->conn;
	struct rx_end end = rx_stream_end(conn);
	u32 n;
	ssize_t rc;

	lockdep_assert_held(&conn->rx_lock);
	if (c->done && smc_urgent_stops(conn, c->pos))
		return 0;
	if (smc_rcvbuf_is_gone(&conn->rx) && smp_load_acquire(&conn->rx_prod) != c->pos)
		return c->done ? 0 : sock_error(conn->sk) ?: -ECONNRESET;
	n = rx_available(c);
	if (n) {
		n = min_t(size_t, n, c->len - c->done);
		if (!n)
			return 0; /* a call for 0 bytes only waits for data */
		rc = rx_deliver(c, n);
		if (rc < 0)
			return c->done ? 0 : rc;
		trace_smc_rx_recvmsg(conn->sk, conn->member.lgr->device, rc);
		rx_advance(c, rc);
		c->done += rc;
		return c->done < c->len;
	}
	if (c->done >= c->target)
		return 0;
	rc = rx_stop_reason(conn, end, c->done, c->timeo);
	if (rc != 1)
		return rc;
	rx_consume(c);
	rx_update_cons(conn, true);
	rx_wait_data(conn, &c->timeo, c->pos);
	/* Has another thread read meanwhile? */
	if (c->flags & MSG_PEEK ? c->pos < conn->rx_cons : c->pos != conn->rx_cons)
		rx_seek(c);
	return 1;
}

/* Moves SO_PEEK_OFF, and adds the control message of TCP_INQ. */
static void rx_put_inq(struct rx_call *c)
{
	struct sock *sk = c->conn->sk;
	int inq;

	c->msg->msg_namelen = 0;
	if (c->flags & MSG_PEEK)
		sk_peek_offset_fwd(sk, c->done);
	else
		sk_peek_offset_bwd(sk, c->done);
	if (!tcp_sk(sk)->recvmsg_inq)
		return;
	inq = min_t(u64, READ_ONCE(c->conn->rx_prod) - c->pos, INT_MAX);
	put_cmsg(c->msg, SOL_TCP, TCP_CM_INQ, sizeof(inq), &inq);
}

/* Notes whether the call finds a full buffer, or more data than it asks for. */
static void rx_look_at_unread(struct rx_call *c)
{
	const struct smc_conn *conn = c->conn;
	u64 unread = smp_load_acquire(&conn->rx_prod) - conn->rx_cons; /* pairs with smc_upcall_data() */

	lockdep_assert_held(&conn->rx_lock);
	c->found.full = smc_conn_used(conn, unread, conn->rx_off, conn->rx.skip) >= conn->rx.size;
	c->found.more = c->len < unread;
}

/*
 * Counts a call, as the stock module does: also one with MSG_PEEK, or one that fails, but not if the connection is over
 * and no data was left.
 */
static void rx_count_call(struct smc_conn *conn, int rc, struct smc_stats_found found)
{
	if (rc > 0 || !smc_conn_meaning(conn)->over)
		smc_stats_rx(conn->member.sn, conn->tech, rc, found);
}

/* Receives until the call is over. Return: bytes, 0 at the end of the stream, or a negative errno. */
static ssize_t rx_run(struct rx_call *c)
{
	struct smc_conn *conn = c->conn;
	int rc;

	mutex_lock(&conn->rx_lock);
	smc_close_check_tcp(conn);
	rx_look_at_unread(c);
	rx_seek(c);
	do {
		rc = rx_step(c);
	} while (rc == 1);
	rx_consume(c);
	rx_update_cons(conn, c->flags & MSG_PEEK);
	mutex_unlock(&conn->rx_lock);
	return c->done ?: rc;
}

/**
 * smc_rx_recv() - recvmsg(2) on a connection
 * @conn: the connection
 * @msg: gets the data
 * @len: bytes that fit
 * @flags: MSG_DONTWAIT, MSG_PEEK, MSG_TRUNC, MSG_WAITALL, MSG_OOB
 *
 * Return: bytes, 0 at the end of the stream, or the negative errno that TCP would return.
 */
int smc_rx_recv(struct smc_conn *conn, struct msghdr *msg, size_t len, int flags)
{
	struct rx_call c = { .conn = conn, .msg = msg, .len = len, .flags = flags };
	int rc;

	might_sleep();
	if (flags & MSG_OOB) {
		rc = smc_urgent_recv(conn, msg, len, flags);
		rx_count_call(conn, rc, c.found);
		return rc;
	}
	c.timeo = sock_rcvtimeo(conn->sk, flags & MSG_DONTWAIT);
	c.target = sock_rcvlowat(conn->sk, flags & MSG_WAITALL, len);
	rc = rx_run(&c);
	trace_smc_rx(conn->sk, conn->member.token, len, rc);
	rx_count_call(conn, rc, c.found);
	if (rc >= 0)
		rx_put_inq(&c);
	return rc;
}

/**
 * smc_rx_splice() - splice(2) from a connection to a pipe
 * @conn: the connection
 * @pipe: the pipe
 * @len: bytes at most; not 0
 * @nonblock: do not wait
 *
 * Return: bytes, 0 at the end of the stream, or the negative errno that TCP would return.
 */
ssize_t smc_rx_splice(struct smc_conn *conn, struct pipe_inode_info *pipe, size_t len, bool nonblock)
{
	struct rx_call c = { .conn = conn, .pipe = pipe, .len = len, .target = 1 };
	ssize_t rc;

	might_sleep();
	c.timeo = sock_rcvtimeo(conn->sk, nonblock);
	rc = rx_run(&c);
	smc_stats_splice(conn->member.sn, conn->tech, c.found);
	return rc;
}
