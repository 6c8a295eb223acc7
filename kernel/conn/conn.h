/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A connection whose data a transport moves.
 *
 * Each direction is a ring in the receiver's memory, its receive buffer: an RMBE of SMC-R, a DMB of SMC-D.
 * Positions count the bytes of the stream from 0 and never wrap; wire/cursor.h converts them to cursors. Each position
 * has one writer: the holder of the mutex of its direction, the peer by an upcall, or the transport when it sends. A
 * writer stores the bytes first and then moves the position, so neither end ever waits for a lock of the other.
 */
#ifndef SMC_CONN_CONN_H
#define SMC_CONN_CONN_H

#include <linux/cache.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/timer.h>
#include <linux/workqueue.h>
#include <net/sock.h>

#include "../control/stats.h"
#include "../lgr/lgr.h"
#include "../transport/transport.h"
#include "../wire/cdc.h"
#include "close_table.h"

struct pipe_inode_info;
struct smc_cdc_delta;
struct smc_cdc_tx;

/* The receive buffer of one direction: pages, or memory of a device, which has none. */
struct smc_rcvbuf {
	u32 size;		/* bytes of the ring */
	u32 skip;		/* bytes before the ring in the first page */
	bool fixed;		/* the peer writes to the same pages again and again, even if a pipe refers to them */
	struct page **pages;	/* a transport may change an entry where no unread byte is */
	u8 *mem;		/* memory of a device, fixed; then there are no pages */
	const bool *gone;	/* of such memory: the device is gone, and the memory may not be touched; under RCU */
};

/* smc_rcvbuf_is_gone() - is the buffer memory of a device that is gone? Any context, under RCU while the buffer is read. */
static inline bool smc_rcvbuf_is_gone(const struct smc_rcvbuf *rx)
{
	return rx->gone && READ_ONCE(*rx->gone);
}

/* The listing of sockets that shows a connection. */
enum smc_conn_holder {
	SMC_CONN_RENDEZVOUS,	/* no one, because the handshake is not over */
	SMC_CONN_SOCKET,	/* the socket that has it */
	SMC_CONN_ORPHAN,	/* its group: it is not accepted yet, or its socket is closed */
};

enum smc_urgent { SMC_URGENT_NONE, SMC_URGENT_VALID, SMC_URGENT_READ };

/* Result of smc_urgent_limit(), about the byte that a reader reads next. */
struct smc_urgent_next {
	bool skip;	/* do not read it */
	bool kept;	/* read @byte: its place in the ring is free, but SO_OOBINLINE has put it back into the stream */
	u8 byte;
};

struct smc_conn {
	const struct smc_transport_ops *ops;	/* never changes */
	void			*priv;		/* the transport's */
	struct sock		*sk;		/* the TCP sock beneath, held; never changes */
	enum smc_stats_tech	tech;
	refcount_t		ref;
	bool			server;
	bool			update_each_read; /* a consumer update costs nothing, so each read sends one */
	u32			granule;	/* consumed space becomes free in steps of this many bytes; a power of 2 */
	struct smc_lgr_member	member;		/* of its link group */

	/* Sending. tx_lock protects it, except tx_cons and tx_waiting. "never changes" means: once connected */
	struct mutex		tx_lock ____cacheline_aligned_in_smp;
	u64			tx_prod;	/* written into the peer's receive buffer */
	u64			tx_signaled;	/* of that, signaled to the peer */
	u32			tx_size;	/* bytes of the peer's ring; never changes */
	u32			tx_window;	/* of these, how many may be in use, by what memory we have; never changes */
	u32			tx_buf;		/* bytes of our send ring, tx_size if there is none; never changes */
	unsigned int		tx_full;	/* a sender or poller found no room, and nothing was written since */
	u32			tx_skip;	/* bytes before the peer's ring in its first page */
	u32			tx_off;		/* offset of tx_prod in the peer's ring */
	u32			tx_least;	/* writers wait for this much room, if they have that much data */
	u64			tx_resume;	/* memory is short: no room until the peer has consumed up to here */
	bool			tx_shut_due;	/* the push work has to shut the direction; single word */
	u64			tx_cons;	/* consumed by the peer; smc_upcall_space() moves it */
	bool			tx_waiting;	/* a writer waits for room; see tx.c */

	/* Receiving. rx_lock protects it, except rx_prod and the flags */
	struct mutex		rx_lock ____cacheline_aligned_in_smp;
	u64			rx_cons;	/* read by the application */
	u64			rx_signaled;	/* of that, signaled to the peer by a consumer update */
	u64			rx_posted;	/* the same by any message; the transport writes it, others read a hint */
	u32			rx_off;		/* offset of rx_cons in the ring */
	bool			peer_waits_half; /* writers of the peer wait for half of the ring, as ours do; never changes */
	struct smc_rcvbuf	rx;		/* never changes */
	u64			rx_prod;	/* written by the peer; smc_upcall_data() moves it */
	bool			rx_update_requested; /* the peer asks for a consumer update, or needs one; see rx.c */
	bool			rx_blocked;	/* the peer has more data than there was space */
	u64			rx_short;	/* up to here the reader must not wait for more: the peer has no memory for it */

	spinlock_t		lock ____cacheline_aligned_in_smp; /* what follows; softirqs off */
	u8			state;		/* enum smc_close_state; read without the lock as a hint */
	u8			busy;		/* threads that carry out actions of an event */
	bool			ending;		/* the connection is over: the last of these threads releases it */
	bool			rx_done;	/* the peer has sent D or C; single word for readers */
	u8			close_flags;	/* SMC_CDC_DONE and so on, to send; stored after positions, read without the lock */
	u8			peer_close_flags; /* those that the peer has sent; read without the lock */
	bool			timed_out;	/* keepalive got no answer; single word, no lock */
	bool			rx_shut;	/* shutdown(SHUT_RD); single word, no lock */
	u8			holder;		/* enum smc_conn_holder; single word, no lock */
	bool			lgr_ended;	/* its group has ended, or its link and it has no other; single word, no lock */
	u8			urgent;		/* enum smc_urgent */
	u8			urgent_byte;
	u64			urgent_pos;	/* its position in the stream */
	bool			urgent_kept;	/* a consumer update has freed its place in the ring */
	u64			urgent_skip_pos; /* position of an earlier one that no reader sees; ~0 if none */
	struct timer_list	timer;		/* ends a close that the peer does not answer; holds a reference */
	struct delayed_work	push;		/* signals data that was held back; holds a reference */
	struct delayed_work	disconnect;	/* resets the TCP connection beneath; holds a reference */
	u64			since;		/* jiffies; never changes */
	u64			trimmed;	/* tx_prod when memory was trimmed last; trim work only */
	struct rcu_head		rcu;
};

/*
 * Returns how many bytes of a receive buffer cannot be written to: the @unread bytes from offset @off of its ring on, and
 * the bytes before them in a step that the reader has not finished.
 */
static inline u32 smc_conn_used(const struct smc_conn *conn, u32 unread, u32 off, u32 skip)
{
	return unread + ((off + skip) & (conn->granule - 1));
}

static inline const struct smc_close_meaning *smc_conn_meaning(const struct smc_conn *conn)
{
	return &smc_close_meanings[smp_load_acquire(&conn->state)]; /* pairs with that in close.c */
}

static inline struct smc_conn *smc_conn_of(struct smc_lgr_member *member)
{
	return container_of(member, struct smc_conn, member);
}

/* conn.c */
int smc_conn_init(void);
void smc_conn_exit(void);
void smc_conn_get(struct smc_conn *conn);
bool smc_conn_get_live(struct smc_conn *conn);
void smc_conn_put(struct smc_conn *conn);
void smc_conn_count(struct smc_conn *conn);
void smc_conn_wake(struct smc_conn *conn, __poll_t events);
__poll_t smc_conn_poll(struct smc_conn *conn);
u32 smc_conn_lowat(const struct smc_conn *conn);
bool smc_conn_readable(const struct smc_conn *conn);

bool smc_conn_cdc_due(struct smc_conn *conn, const struct smc_cdc_tx *tx, const struct smc_cdc_delta *delta);

/* close.c */
void smc_close_event(struct smc_conn *conn, enum smc_close_event event);
void smc_close_check_tcp(struct smc_conn *conn);
void smc_close_prepare(struct smc_conn *conn);
void smc_close_lgr_ends(struct smc_conn *conn, enum smc_lgr_end how);
void smc_close_reset_tcp(struct sock *sk);
void smc_close_check_lgr(struct smc_conn *conn);
void smc_close_app(struct smc_conn *conn, bool hard);

/* ipsec.c */
bool smc_ipsec_applies(struct sock *sk);
void smc_ipsec_check(struct smc_conn *conn);
void smc_ipsec_net_init(struct smc_net *sn);
void smc_ipsec_net_exit(struct smc_net *sn);
int smc_ipsec_init(void);
void smc_ipsec_exit(void);

/* tx.c */
int smc_tx_send(struct smc_conn *conn, struct msghdr *msg, size_t len);
bool smc_tx_writable(struct smc_conn *conn);
u32 smc_tx_room(const struct smc_conn *conn);
void smc_tx_shut(struct smc_conn *conn);
void smc_tx_shut_soon(struct smc_conn *conn);
void smc_tx_push(struct smc_conn *conn);
void smc_tx_wake(struct smc_conn *conn);
void smc_tx_retry(struct smc_conn *conn);
void smc_tx_prepare(struct smc_conn *conn);

/* rx.c */
u64 smc_rx_signaled(const struct smc_conn *conn);
void smc_rx_lowat(struct smc_conn *conn);
int smc_rx_recv(struct smc_conn *conn, struct msghdr *msg, size_t len, int flags);
ssize_t smc_rx_splice(struct smc_conn *conn, struct pipe_inode_info *pipe, size_t len, bool nonblock);

/* urgent.c */
int smc_urgent_recv(struct smc_conn *conn, struct msghdr *msg, size_t len, int flags);
void smc_urgent_received(struct smc_conn *conn, u64 prod);
u64 smc_urgent_cons(struct smc_conn *conn);
u32 smc_urgent_extra(struct smc_conn *conn);
u32 smc_urgent_limit(struct smc_conn *conn, u64 pos, u32 avail, struct smc_urgent_next *next);
void smc_urgent_update(struct smc_conn *conn);
bool smc_urgent_stops(const struct smc_conn *conn, u64 pos);
bool smc_urgent_at_mark(const struct smc_conn *conn);
u32 smc_urgent_inq(const struct smc_conn *conn);

#endif /* SMC_CONN_CONN_H */
