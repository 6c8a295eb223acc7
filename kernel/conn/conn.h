/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A connection whose data a transport moves.
 *
 * Each direction is a ring in the receiver's memory, its element. Positions in the stream count
 * bytes from 0 and never wrap; where a byte is in the ring is the transport's business, and cursors
 * with wrap counts are what goes over a wire (wire/cursor.h). Each position has one writer: who
 * holds the mutex of its direction, or the peer by an upcall, or who tells the peer. So the two
 * sides never wait for each other's locks; what one has written before it moves its position, the
 * other sees once it has read it.
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

/* The receiver's element of one direction, as pages. */
struct smc_rcvbuf {
	u32 size;		/* bytes of the ring */
	u32 skip;		/* bytes before it: where the ring begins in the first page */
	bool fixed;		/* the peer writes to the same pages again, whoever holds them meanwhile */
	struct page **pages;	/* a transport may change an entry where no unread byte is */
};

/* Who shows a connection to those who list sockets. */
enum smc_conn_holder {
	SMC_CONN_RENDEZVOUS,	/* nobody, it is about to be */
	SMC_CONN_SOCKET,	/* its record in the table of sockets */
	SMC_CONN_ORPHAN,		/* its group: nobody has accepted it yet, or its socket is closed */
};

enum smc_urgent { SMC_URGENT_NONE, SMC_URGENT_VALID, SMC_URGENT_READ };

/* What is special about the byte that a reader comes to next. */
struct smc_urgent_next {
	bool skip;	/* it is not to be read */
	bool kept;	/* it is not in the ring any more, but in the stream, as it has been put in line since: @byte */
	u8 byte;
};

struct smc_conn {
	const struct smc_transport_ops *ops;	/* never changes */
	void			*priv;		/* the transport's */
	struct sock		*sk;		/* the TCP sock beneath, held; never changes */
	enum smc_stats_tech	tech;
	refcount_t		ref;
	bool			server;
	bool			update_each_read;		/* each read tells the peer of the space, which costs nothing */
	u32			granule;	/* room in either element grows in steps of so many bytes of it; power of 2 */
	struct smc_lgr_member	member;		/* of its link group */

	/* sending: tx_lock, but for what the peer moves */
	struct mutex		tx_lock ____cacheline_aligned_in_smp;
	u64			tx_prod;	/* written into the peer's element */
	u64			tx_signaled;	/* and the peer has been told */
	u32			tx_size;	/* bytes of the peer's ring; never changes once connected */
	u32			tx_window;	/* of it, how many may be in use: all, or what we have memory for; likewise */
	u32			tx_buf;		/* bytes of our own ring that is sent from, or tx_size if there is none; likewise */
	unsigned int		tx_full;	/* a sender or poller found no room at all, and nothing was written since */
	u32			tx_skip;	/* of its element */
	u32			tx_off;		/* where tx_prod is in it */
	u32			tx_least;	/* less room than this is not worth a message, if there is more to write */
	bool			tx_shut_due;	/* the push work is to end the direction; single word */
	u64			tx_cons;	/* consumed by the peer, or with it, where our memory is less; upcall */
	bool			tx_waiting;	/* someone wants to know of room; both sides, see tx.c */

	/* receiving: rx_lock, but for what the peer moves */
	struct mutex		rx_lock ____cacheline_aligned_in_smp;
	u64			rx_cons;	/* read by the application */
	u64			rx_signaled;	/* and the peer has been told, or is about to be */
	u64			rx_posted;	/* the same, by whatever was sent: the transport's; without the mutex, a hint for others */
	u32			rx_off;		/* where rx_cons is in the ring */
	bool			peer_waits_half;	/* the peer's writers, if they wait, do so for half of the ring, as ours; never changes */
	struct smc_rcvbuf	rx;		/* never changes once connected */
	u64			rx_prod;	/* what the peer has told; upcall */
	bool			rx_update_requested;	/* it wants to know what we have read, or has to; both sides, see rx.c */
	bool			rx_blocked;	/* it has more than there was space for; both sides */

	spinlock_t		lock ____cacheline_aligned_in_smp; /* what follows; softirqs off */
	u8			state;		/* enum smc_close_state; read without it by those who take a hint */
	u8			busy;		/* threads that carry out actions of an event */
	bool			ending;		/* over: the last of them gives everything back */
	bool			rx_done;	/* the peer has said D or C; single word for readers */
	u8			close_flags;	/* SMC_CDC_DONE and so on, to send; stored after positions written before; read by signal without the lock */
	u8			peer_close_flags; /* those of the peer; read without the lock, too */
	bool			timed_out;	/* keepalive has got no answer; single word, no lock */
	bool			rx_shut;	/* shutdown(SHUT_RD); single word, no lock */
	u8			holder;		/* enum smc_conn_holder; single word, no lock */
	u8			urgent;		/* enum smc_urgent */
	u8			urgent_byte;
	u64			urgent_pos;	/* where it is in the stream */
	bool			urgent_kept;	/* the peer has been told that its place in the ring is free */
	u64			urgent_skip_pos;	/* an earlier one that no reader shall see; ~0 if none */
	struct timer_list	timer;		/* ends a close that the peer does not answer; holds a reference */
	struct delayed_work	push;		/* tells the peer of data held back too long; holds a reference */
	struct delayed_work	disconnect;	/* resets the TCP connection beneath; holds a reference */
	u64			trimmed;	/* tx_prod at the last look; trim work alone */
	struct rcu_head		rcu;
};

/*
 * Returns how many bytes of an element cannot be written to: @unread bytes from @off in its ring on, and the bytes before
 * these in a step that the reader has not finished.
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
void smc_conn_describe(struct smc_conn *conn, struct smc_diag_info *info);

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
