// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sending. The transport takes data while the peer's receive buffer has room. The peer is signaled at the end of each
 * call, and after each half of the ring.
 *
 * A sender that finds no room sets tx_waiting and looks once more; smc_upcall_space() makes room and then looks at
 * tx_waiting, so one of them sees the other. Sleepers are woken for half a ring, not for a byte, because waking costs
 * more than copying.
 *
 * A transport that needs memory for the data may find none. Then there is no room until the peer has read some of what is
 * on its way, whose memory the writer uses again: so the sender waits as if the buffer was full.
 */

#include <linux/tcp.h>
#include <net/tcp.h>

#include "../control/trace.h"
#include "../control/trace_stock.h"
#include "../net.h"
#include "conn.h"

/* How long data is held back after MSG_MORE or with TCP_CORK, as in TCP. */
#define PUSH_DELAY (HZ / 5)

/*
 * How long a writer waits for more room if there is a little. The peer may be waiting for more data before it reads,
 * and then it makes no more room.
 */
#define ROOM_TIMEOUT (HZ / 10)

/*
 * smc_tx_room() - returns how many bytes may be written now. Exact under tx_lock, a hint elsewhere. Any context.
 *
 * Where room grows in steps, a step counts once all of it is consumed.
 */
u32 smc_tx_room(const struct smc_conn *conn)
{
	u64 cons = smp_load_acquire(&conn->tx_cons); /* pairs with smc_upcall_space() */
	u32 used = READ_ONCE(conn->tx_prod) - cons;
	u32 off = READ_ONCE(conn->tx_off);

	if (cons < READ_ONCE(conn->tx_resume))
		return 0;
	if (off < used)
		off += conn->tx_size;
	used = smc_conn_used(conn, used, off - used, conn->tx_skip);
	return conn->tx_window > used ? conn->tx_window - used : 0;
}

static bool tx_has_enough_room(const struct smc_conn *conn)
{
	return smc_tx_room(conn) >= conn->tx_window / 2;
}

static bool tx_may_send(const struct smc_conn *conn)
{
	return !smc_conn_meaning(conn)->shut && !READ_ONCE(conn->sk->sk_err);
}

/*
 * smc_tx_wake() - wakes who waits for room, if there is enough. The caller has made room. Any context but hardirq.
 */
void smc_tx_wake(struct smc_conn *conn)
{
	smp_mb(); /* pairs with that of tx_set_waiting() */
	if (!READ_ONCE(conn->tx_waiting) || !tx_has_enough_room(conn))
		return;
	WRITE_ONCE(conn->tx_waiting, false);
	smc_conn_wake(conn, EPOLLOUT | EPOLLWRNORM | EPOLLWRBAND);
}

/*
 * smc_tx_retry() - for a writer that has found no memory: perhaps there is some now. Called every few seconds, as the reader may not
 * read before it has more.
 */
void smc_tx_retry(struct smc_conn *conn)
{
	might_sleep();
	if (READ_ONCE(conn->tx_resume) <= READ_ONCE(conn->tx_cons) || !mutex_trylock(&conn->tx_lock))
		return;
	WRITE_ONCE(conn->tx_resume, 0);
	mutex_unlock(&conn->tx_lock);
	smc_tx_wake(conn);
}

/* Sets tx_waiting. Return: whether there is enough room by now. */
static bool tx_set_waiting(struct smc_conn *conn)
{
	WRITE_ONCE(conn->tx_waiting, true);
	sk_set_bit(SOCKWQ_ASYNC_NOSPACE, conn->sk); /* asks for SIGIO, too */
	smp_mb(); /* pairs with that in smc_tx_wake() */
	return tx_has_enough_room(conn);
}

/*
 * Counts that a full buffer holds up a sender or a poller: once until something has been written again, as the
 * stock module counts how often it had to wake a sender that found no space.
 */
static void tx_count_full(struct smc_conn *conn)
{
	if (!READ_ONCE(conn->tx_full) && !smc_tx_room(conn) && !xchg(&conn->tx_full, 1))
		smc_stats_add(conn->member.sn, conn->tech, SMC_STATS_TX_BUF + SMC_STATS_BUF_FULL, 1);
}

/* Counts that send() has found no room, and whether the peer's receive buffer is full. */
static void tx_count_no_room(struct smc_conn *conn)
{
	tx_count_full(conn);
	if (!conn->ops->peer_full || conn->ops->peer_full(conn))
		smc_stats_add(conn->member.sn, conn->tech, SMC_STATS_TX_BUF + SMC_STATS_BUF_FULL_PEER, 1);
}

/* Counts a call that sends more than our send ring or the peer's receive buffer can hold. */
static void tx_count_too_small(struct smc_conn *conn, size_t len)
{
	if (len > conn->tx_buf)
		smc_stats_add(conn->member.sn, conn->tech, SMC_STATS_TX_BUF + SMC_STATS_BUF_SIZE_SMALL, 1);
	if (len > conn->tx_size)
		smc_stats_add(conn->member.sn, conn->tech, SMC_STATS_TX_BUF + SMC_STATS_BUF_SIZE_SMALL_PEER, 1);
}

/* smc_tx_writable() - for poll(2): returns whether there is room; if not, room will wake the poller. Any context. */
bool smc_tx_writable(struct smc_conn *conn)
{
	if (tx_has_enough_room(conn) || tx_set_waiting(conn))
		return true;
	tx_count_full(conn);
	return false;
}

/* Signals all data that was written. */
static void tx_signal(struct smc_conn *conn, bool urgent)
{
	lockdep_assert_held(&conn->tx_lock);
	smp_store_release(&conn->tx_signaled, conn->tx_prod); /* pairs with SIOCOUTQNSD */
	conn->ops->signal(conn, SMC_SIGNAL_DATA | (urgent ? SMC_SIGNAL_URGENT : 0));
}

static void tx_signal_rest(struct smc_conn *conn)
{
	lockdep_assert_held(&conn->tx_lock);
	if (conn->tx_signaled != conn->tx_prod && !smc_conn_meaning(conn)->over)
		tx_signal(conn, false);
}

/* smc_tx_push() - signals data that was held back, also by the transport. */
void smc_tx_push(struct smc_conn *conn)
{
	might_sleep();
	mutex_lock(&conn->tx_lock);
	tx_signal_rest(conn);
	if (!smc_conn_meaning(conn)->over)
		conn->ops->signal(conn, SMC_SIGNAL_PUSH);
	mutex_unlock(&conn->tx_lock);
}

/* smc_tx_shut() - shutdown(SHUT_WR). */
void smc_tx_shut(struct smc_conn *conn)
{
	might_sleep();
	mutex_lock(&conn->tx_lock);
	tx_signal_rest(conn);
	/* Under the lock, so that no data is written after the flag that says that there is no more. */
	smc_close_event(conn, SMC_CLOSE_SHUT);
	mutex_unlock(&conn->tx_lock);
}

/* Queues the work again, unless it is queued or the connection is over. close_conn_end() cancels it. */
static bool tx_push_again(struct smc_conn *conn)
{
	bool again;

	spin_lock_bh(&conn->lock);
	again = !smc_conn_meaning(conn)->over && queue_delayed_work(smc_net_wq, &conn->push, PUSH_DELAY);
	spin_unlock_bh(&conn->lock);
	return again;
}

/*
 * A sender may hold tx_lock for as long as reading the application's memory takes. All sockets share the work queue, so
 * the work does not wait for the lock.
 */
static void tx_push_work(struct work_struct *work)
{
	struct smc_conn *conn = container_of(to_delayed_work(work), struct smc_conn, push);

	if (mutex_trylock(&conn->tx_lock)) {
		tx_signal_rest(conn);
		if (READ_ONCE(conn->tx_shut_due))
			smc_close_event(conn, SMC_CLOSE_SHUT);
		mutex_unlock(&conn->tx_lock);
	} else if (tx_push_again(conn)) {
		return;
	}
	smc_conn_put(conn);
}

/*
 * smc_tx_shut_soon() - smc_tx_shut() by a worker, because a sender may hold tx_lock for long. Any context but hardirq.
 */
void smc_tx_shut_soon(struct smc_conn *conn)
{
	WRITE_ONCE(conn->tx_shut_due, true);
	smc_conn_get(conn);
	if (mod_delayed_work(smc_net_wq, &conn->push, 0))
		smc_conn_put(conn); /* the work was queued, with a reference of its own */
}

/* smc_tx_prepare() - initialises the sending part of a new connection. */
void smc_tx_prepare(struct smc_conn *conn)
{
	mutex_init(&conn->tx_lock);
	INIT_DELAYED_WORK(&conn->push, tx_push_work);
}

/* Drops the lock and sleeps until there is enough room, for @most jiffies at most. Return: 0 or a negative errno. */
static int tx_wait_space(struct smc_conn *conn, long *timeo, long most)
{
	DEFINE_WAIT_FUNC(wait, woken_wake_function);
	long left = min(*timeo, most), before = left;
	int rc = 0;

	lockdep_assert_held(&conn->tx_lock);
	might_sleep();
	if (!*timeo)
		return tx_set_waiting(conn) ? 0 : -EAGAIN;
	tx_signal_rest(conn);
	mutex_unlock(&conn->tx_lock);
	add_wait_queue(sk_sleep(conn->sk), &wait);
	smp_mb(); /* a waker that clears tx_waiting sees this thread; pairs with skwq_has_sleeper() in smc_conn_wake() */
	while (!tx_set_waiting(conn)) {
		smc_close_check_tcp(conn);
		if (!tx_may_send(conn) || smc_conn_meaning(conn)->deaf)
			break;
		if (signal_pending(current))
			rc = sock_intr_errno(*timeo);
		else if (!left && most == MAX_SCHEDULE_TIMEOUT)
			rc = -EAGAIN;
		if (rc || !left)
			break;
		left = wait_woken(&wait, TASK_INTERRUPTIBLE, left);
	}
	if (*timeo != MAX_SCHEDULE_TIMEOUT)
		*timeo -= before - left;
	remove_wait_queue(sk_sleep(conn->sk), &wait);
	mutex_lock(&conn->tx_lock);
	return rc;
}

/*
 * There is no memory for more data. Sets the position up to which the peer has to read: half of what is unread, but enough
 * that a step of the ring becomes free. Has the peer read at once, though it may wait for more. Return: false if nothing is
 * unread, so that nobody would wake the writer.
 */
static bool tx_pause(struct smc_conn *conn)
{
	u64 cons = smp_load_acquire(&conn->tx_cons); /* pairs with smc_upcall_space() */
	u32 unread = conn->tx_prod - cons;

	lockdep_assert_held(&conn->tx_lock);
	if (!unread)
		return false;
	WRITE_ONCE(conn->tx_resume, cons + max(unread / 2, min(unread, conn->granule)));
	smp_store_release(&conn->tx_signaled, conn->tx_prod); /* pairs with SIOCOUTQNSD */
	conn->ops->signal(conn, SMC_SIGNAL_DATA | SMC_SIGNAL_SHORT);
	return true;
}

/* Writes as much as there is room for, and signals it if the call goes on. Return: bytes, or a negative errno. */
static ssize_t tx_write(struct smc_conn *conn, struct msghdr *msg, size_t left)
{
	u32 most = max(conn->tx_window / 2, 1U);
	u32 n = min3(left, (size_t)smc_tx_room(conn), (size_t)most), off;
	ssize_t rc;

	lockdep_assert_held(&conn->tx_lock);
	rc = conn->ops->write(conn, &msg->msg_iter, n);
	if (rc <= 0)
		return rc ?: -EFAULT;
	trace_smc_tx_sendmsg(conn->sk, conn->member.lgr->device, rc);
	off = conn->tx_off + rc;
	WRITE_ONCE(conn->tx_off, off < conn->tx_size ? off : off - conn->tx_size);
	WRITE_ONCE(conn->tx_prod, conn->tx_prod + rc);
	WRITE_ONCE(conn->tx_full, 0);
	if (rc < left)
		tx_signal(conn, false);
	return rc;
}

/*
 * The peer has closed, so data that is sent now is lost. TCP would learn that from the reset that answers the data, and
 * take data until then, as much as fits into the send buffer.
 */
static ssize_t tx_discard(struct smc_conn *conn, struct msghdr *msg, size_t len)
{
	size_t taken = min_t(size_t, len, READ_ONCE(conn->sk->sk_sndbuf));

	iov_iter_advance(&msg->msg_iter, taken);
	smc_close_event(conn, SMC_CLOSE_LOST);
	return taken;
}

/* Returns how much room a call waits for. A call that does not wait takes any. */
static u32 tx_min_room(const struct smc_conn *conn, size_t left, long timeo)
{
	return timeo ? max_t(u32, 1, min_t(size_t, left, conn->tx_least)) : 1;
}

static ssize_t tx_send(struct smc_conn *conn, struct msghdr *msg, size_t len)
{
	long timeo = sock_sndtimeo(conn->sk, msg->msg_flags & MSG_DONTWAIT);
	bool waited = false;
	size_t done = 0;
	ssize_t rc = 0;
	u32 room;

	lockdep_assert_held(&conn->tx_lock);
	for (;;) {
		if (!tx_may_send(conn)) {
			rc = -EPIPE;
			break;
		}
		if (done == len)
			break;
		if (smc_conn_meaning(conn)->deaf)
			return done + tx_discard(conn, msg, len - done);
		room = smc_tx_room(conn);
		if (room < (waited ? 1 : tx_min_room(conn, len - done, timeo))) {
			waited = room;
			/* A non-blocking call that has sent something was not held up. */
			if (!room && (timeo || !done))
				tx_count_no_room(conn);
			rc = tx_wait_space(conn, &timeo, room ? ROOM_TIMEOUT : MAX_SCHEDULE_TIMEOUT);
			if (rc)
				break;
			continue;
		}
		waited = false;
		rc = tx_write(conn, msg, len - done);
		if (rc == -ENOMEM && tx_pause(conn))
			continue;
		if (rc == -ENOMEM) /* all was read meanwhile, so there is some now */
			rc = tx_write(conn, msg, len - done);
		if (rc < 0)
			break;
		done += rc;
	}
	return done ?: rc;
}

/* Returns whether the application will send more data at once, so that one signal serves both. */
static bool tx_more_follows(const struct smc_conn *conn, const struct msghdr *msg)
{
	return (msg->msg_flags & MSG_MORE) || (tcp_sk(conn->sk)->nonagle & TCP_NAGLE_CORK);
}

/* At the end of a call, signals the data that was written, at once or a little later. */
static void tx_finish(struct smc_conn *conn, struct msghdr *msg, ssize_t done)
{
	bool urgent = (msg->msg_flags & MSG_OOB) && done > 0;

	lockdep_assert_held(&conn->tx_lock);
	if (conn->tx_signaled == conn->tx_prod && !urgent)
		return;
	if (urgent || !tx_more_follows(conn, msg) || !smc_tx_room(conn)) {
		tx_signal(conn, urgent);
		return;
	}
	smc_conn_get(conn);
	if (!queue_delayed_work(smc_net_wq, &conn->push, PUSH_DELAY))
		smc_conn_put(conn);
}

/*
 * MSG_ZEROCOPY: the notification says that the data was copied. Without memory for it the call fails, as with TCP,
 * because an application that counts notifications would wait for ever. io_uring passes a notification of its own, which
 * says the same by default. Return: the notification, NULL if none is needed, or ERR_PTR(-ENOBUFS).
 */
static struct ubuf_info *tx_zerocopy_begin(struct smc_conn *conn, struct msghdr *msg, size_t len)
{
	struct ubuf_info *uarg;

	if (!(msg->msg_flags & MSG_ZEROCOPY) || msg->msg_ubuf || !len || !sock_flag(conn->sk, SOCK_ZEROCOPY))
		return NULL;
	lock_sock(conn->sk);
	uarg = smc_compat_zerocopy(conn->sk, len);
	release_sock(conn->sk);
	if (!uarg)
		return ERR_PTR(-ENOBUFS);
	uarg_to_msgzc(uarg)->zerocopy = 0;
	return uarg;
}

/* Sends the notification if anything was sent. */
static void tx_zerocopy_end(struct ubuf_info *uarg, ssize_t done)
{
	if (done > 0)
		net_zcopy_put(uarg);
	else
		net_zcopy_put_abort(uarg, true);
}

/**
 * smc_tx_send() - sendmsg(2) on a connection
 * @conn: the connection
 * @msg: the data and MSG_DONTWAIT, MSG_MORE, MSG_NOSIGNAL, MSG_OOB, which makes its last byte urgent
 * @len: bytes of it
 *
 * Return: bytes, or the negative errno that TCP would return.
 */
int smc_tx_send(struct smc_conn *conn, struct msghdr *msg, size_t len)
{
	struct ubuf_info *uarg = tx_zerocopy_begin(conn, msg, len);
	ssize_t done;
	bool counts;

	might_sleep();
	if (IS_ERR(uarg))
		return PTR_ERR(uarg);
	mutex_lock(&conn->tx_lock);
	smc_close_check_tcp(conn);
	counts = tx_may_send(conn);
	if (counts)
		tx_count_too_small(conn, len);
	done = tx_send(conn, msg, len);
	tx_finish(conn, msg, done);
	mutex_unlock(&conn->tx_lock);
	tx_zerocopy_end(uarg, done);
	trace_smc_tx(conn->sk, conn->member.token, len, done);
	if (counts)
		smc_stats_tx(conn->member.sn, conn->tech, len, done);
	if (counts && (msg->msg_flags & MSG_OOB))
		smc_stats_add(conn->member.sn, conn->tech, SMC_STATS_URGENT, 1);
	return done == -EPIPE ? sk_stream_error(conn->sk, msg->msg_flags, done) : done;
}
