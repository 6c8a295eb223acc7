/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A link: a reliable connection between a port here and one of the peer's, on which LLC and CDC
 * messages are sent, and data is written into the peer's RMBs.
 */
#ifndef SMC_RDMA_LINK_H
#define SMC_RDMA_LINK_H

#include <linux/completion.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/rwsem.h>
#include <linux/spinlock.h>
#include <linux/timer.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>

#include "../../wire/clc.h"
#include "device.h"
#include "limits.h"

struct smc_rdma_buf;
struct smc_lgr_rdma;
struct smc_sysctl;

/*
 * Links of a group at most: two, and for a moment one that replaces one of them. Buffers and rtokens have a place for the keys
 * of each.
 */
#define SMC_LINKS_PER_LGR_MAX 3
#define SMC_LINK_MSG_LEN 44	/* of every message but a few of LLC version 2 */
#define SMC_LINK_WRITES 3	/* of data that go with one message */

enum smc_link_state {
	SMC_LINK_FORMING,
	SMC_LINK_RTR,		/* can receive */
	SMC_LINK_RTS,		/* and send */
	SMC_LINK_DOWN,
};

/* Why a link fails. trace.h has the names, and docs/smcr.md the meanings. */
enum smc_link_why {
	SMC_LINK_NOT_SENT,	/* a send has failed, with the status of its completion */
	SMC_LINK_NOT_RECEIVED,	/* a receive has failed, with the status of its completion */
	SMC_LINK_NOT_POSTED,	/* the adapter refuses a work request */
	SMC_LINK_NOT_REGISTERED, /* a buffer cannot be registered; with the completion's status */
	SMC_LINK_NO_MESSAGE,	/* the peer has sent something else than a message; with its length */
	SMC_LINK_EVENT,		/* of the queue pair; with its number */
	SMC_LINK_NO_PORT,	/* its port is down, or its address gone */
	SMC_LINK_DELETED,	/* the peer has ended the group */
	SMC_LINK_SILENT,	/* TEST LINK has got no answer */
	SMC_LINK_STUCK,		/* the peer's adapter takes nothing more */
	SMC_LINK_FLOODED,	/* the peer asks more than it lets us answer */
	SMC_LINK_FORGETFUL,	/* the peer does not answer DELETE RKEY */
	SMC_LINK_AHEAD,		/* the peer says that it has read data that was not sent */
	SMC_LINK_BAD_IMMEDIATE,	/* immediate data that is not valid */
	SMC_LINK_UNUSED,	/* the rendezvous that was to form the group has failed */
	SMC_LINK_BAD_LLC,	/* an LLC message is malformed, unknown or wrong; with its type */
	SMC_LINK_OPERATOR,	/* an operator of this host has deleted the link */
	SMC_LINK_REPLACED,	/* it shares a port with another link, and a better one has come */
	SMC_LINK_WHYS
};

/* The peer's side of a link, as the peer has stated it. */
struct smc_link_peer {
	u8 gid[16];
	u8 mac[ETH_ALEN];
	u32 qpn, psn;		/* 24 bits */
	u8 mtu_code;
	bool gateway;		/* mac is that of the next hop */
	u8 clc_gid[16], clc_mac[ETH_ALEN];	/* of its ACCEPT or CONFIRM of first contact */
	u8 user_id[4];		/* by which it shows the link */
};

/* Waits for room in the send queue. */
struct smc_link_waiter {
	struct list_head list;	/* sq_lock */
	void (*fn)(struct smc_link_waiter *waiter);	/* softirq; it may wait again */
};

/* Reports to a sender that its data has arrived at the peer's adapter. */
struct smc_link_completion {
	struct list_head list;	/* link->completions; sq_lock */
	u64 at;			/* of sq_posted; sq_lock */
	u64 pos;		/* of the sender's stream; sq_lock, as what follows */
	u16 seq;		/* of its message */
	bool after_end;		/* if the link fails, it is called once that has been stopped, by smc_link_call_lost(); never changes */
	/* Softirq. Posting again before the callback runs replaces what is reported. 0 for pos if the link has failed. */
	void (*fn)(struct smc_link_completion *completion, u64 pos, u16 seq);
};

/* A place in the send queue whose work request is signaled. */
struct smc_link_signaled {
	struct ib_cqe cqe;
	struct smc_link *link;
	u64 at;			/* work requests up to this one are done, of sq_posted */
	u64 consumed;		/* and receives of the peer's up to this one, of sq_consuming */
};

/* A buffer that a message is received in. */
struct smc_link_slot {
	struct ib_cqe cqe;
	struct smc_link *link;
	u8 *msg;		/* link->rx_len bytes */
	u64 dma;
};

/* The registration QP, where buffers are registered if the link's own QP cannot do that. See register.c. */
struct smc_link_reg_qp {
	struct ib_qp *qp;	/* or NULL; like the link's */
	struct ib_cqe cqe;
	struct completion done;
	enum ib_wc_status status;
};

/* Bytes to write to the peer. */
struct smc_link_write {
	u64 local;		/* DMA address */
	u64 remote;
	u32 lkey, rkey, len;
};

/* Messages of LLC that wait for room in the send queue. */
#define SMC_LINK_OUT 16

/* State of LLC for a link. Protected by the group's lock, except where noted. */
struct smc_link_llc {
	struct smc_link_waiter waiter;
	u8 out[SMC_LINK_OUT][SMC_LINK_MSG_LEN];	/* messages that wait for room, a ring */
	unsigned int first, n;		/* the oldest of these, and how many there are */
	u32 long_len;			/* of the message in link->long_buf, which one that begins with 0 stands for */
	bool long_waits;		/* it waits for room */
	u64 long_posted;		/* or it has been posted, as `posted` */
	u64 posted;			/* the last message that did not have to wait: for smc_link_passed() */
	bool confirmed;			/* CONFIRM LINK has come, request or response; set last, read by acquire, too */
	bool has_eyecatcher;		/* the peer has eye catchers in its RMBs */
	bool testing;			/* TEST LINK is out */
	unsigned long tested;		/* jiffies; since when */
	u32 tests;			/* sent so far; the user data has the number after test_id */
	u8 test_id[12];			/* random; never changes */
	bool expected;			/* something was to be done by the link, at the last look */
	u64 sq_done;			/* how much it had done then */
	unsigned long moved;		/* jiffies; the first look with that */
};

/* Whether the peer's adapter acknowledges what is sent. Only the timer uses it, except where noted. */
struct smc_link_acks {
	struct timer_list timer;	/* runs while something is to be acknowledged beside another link; sq_lock */
	bool wanted;			/* the group has another link; single word, no lock */
	unsigned long looked;		/* jiffies; of the last look */
	u64 done;			/* how far the queue had come then */
	unsigned int missing;		/* looks since it came that far at which the other link had come further */
	u32 other;			/* serial number of that link, 0 at the first of them */
	u64 other_done;			/* how far its queue had come at the last look */
};

/* Work requests to post together: writes of data, then a message that tells of it. */
struct smc_link_send_req {
	const struct smc_link_write *writes;
	unsigned int n;			/* of them, up to SMC_LINK_WRITES */
	bool immediate;			/* the only write carries immediate data, instead of a message */
	u32 imm;			/* that data */
	const u8 *msg;			/* SMC_LINK_MSG_LEN bytes; copied */
	u32 len;			/* or 0: as many bytes of link->long_buf are the message */
	bool signaled;			/* someone may ask whether it has arrived, by smc_link_passed() */
	u64 at;				/* out: its position, for that */
	struct smc_link_completion *completion;	/* called when it has arrived, or NULL */
	u64 pos;			/* for that, as seq */
	u16 seq;
	struct smc_link_waiter *waiter;	/* called once there is room again, if there is none now */
	bool fresh;			/* out: the completion, or without room the waiter, is on a list of the link, and was not before */
};

struct smc_link {
	struct smc_lgr_rdma *group;
	refcount_t ref;			/* the group's, and one of each connection and rendezvous that uses the link */
	u8 slot;			/* its place in group->links, and of its keys in buffers and rtokens */
	u32 serial;			/* no other link of the group has had it; from 1 on */
	struct smc_rdma_path path;	/* its device is used until the link is destroyed */
	struct list_head on_dev;	/* dev->lock */
	struct smc_link_peer peer;
	u8 id;				/* number in the group, by the server */
	u32 psn;			/* 24 bits, of what we send */
	u8 mtu_code;			/* of both sides */
	u8 traffic_class;		/* net.smc.smcr_traffic_class */
	enum smc_link_state state;	/* single word, no lock; DOWN stays */
	enum smc_link_why why;		/* it has failed, if it has; single word, no lock */
	bool counted;			/* as lost; single word, no lock */
	bool stopped;			/* after smc_link_stop(); group->lock */
	bool delete_sent;		/* DELETE LINK for it, or the response, was sent after that; group->lock */
	u32 delete_by;			/* serial number of the link that it was sent by; group->lock */
	bool no_delete;			/* DELETE LINK is not sent: it is given up before the peer can use it; group->lock */
	bool delete_asked;		/* a client's: the server has deleted it, and gets the response then; group->lock */
	bool peer_stopped;		/* so has the peer; a stock one does so at about that time; set with group->lock */
	bool limiting;			/* connections that it had are limited by smc_cdc_limit(); single word, no lock */
	bool quiet;			/* nothing that was sent by it can arrive any more; single word, no lock */
	u32 reason;			/* enum smc_llc_reason, why a host deletes it; 0 if `why` says that; group->lock, until it is down */
	bool active;			/* both ends have confirmed it: connections may use it; group->lock */
	unsigned long active_since;	/* jiffies */
	struct smc_link_llc llc;
	struct smc_link_acks acks;
	unsigned long last_recv;		/* jiffies; single word, no lock */
	u64 rx_bytes;			/* that messages have reported; only the completion queue calls what adds to it */
	atomic64_t rx_deferred;		/* as rx_bytes, of messages that were deferred */
	unsigned long last_read;		/* jiffies; when the peer has last reported reading; single word, no lock */
	struct work_struct down;	/* ends the link, or the group; holds a reference on both */
	struct delayed_work late;	/* has a lost link leave its slot; holds a reference on both */
	struct rcu_head rcu;

	struct rw_semaphore map_rwsem;	/* read: buffers are mapped for the link, which may take long; write: it ends */
	struct mutex lock;		/* what follows, while a work request takes; inner to map_rwsem */
	bool gone;			/* set with both locks held: the link has been stopped, or will be now */
	bool finishing;			/* a thread gives back what it has of its adapter, or has done so; single word, no lock */
	struct completion finished;	/* that is done */
	bool inited;			/* lock; the queue pair is beyond RESET */
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_qp *qp;
	u32 qpn;			/* of qp; never changes */
	struct smc_link_reg_qp reg_qp;
	struct list_head maps;		/* struct smc_buf_map: buffers that the adapter knows by this link; group->lock */
	struct smc_rdma_limits limits;
	unsigned int vector;		/* completion vector of cq */
	unsigned long port_down;	/* jiffies; since when its port is down, 0 if it is up; dev->lock */

	spinlock_t sq_lock;		/* what follows; softirqs off */
	u32 sq_size;			/* a power of two */
	u64 sq_posted, sq_done;		/* work requests, ever */
	u64 sq_signaled;			/* sq_posted of the last signaled one */
	u32 sq_unsignaled;		/* bytes of data since then */
	u64 tx_bytes;			/* of data, ever; read without the lock, too */
	u32 sq_largest;			/* the most bytes between two signaled ones since the queue was last seen empty */
	u32 peer_recvs;			/* receives of the peer's: the most messages that may be under way */
	u64 sq_consuming, sq_consumed;	/* work requests that take a receive of the peer's, ever: posted, done */
	u64 sq_consuming_signaled;	/* sq_consuming at sq_signaled */
	struct smc_link_signaled *signaled;	/* sq_size */
	struct list_head waiting;	/* struct smc_link_waiter */
	const struct smc_link_waiter *turn;	/* taken off `waiting` last; only compared */
	struct list_head completions;	/* struct smc_link_completion, in the order that they were sent */
	struct list_head lost;		/* of these, the ones to call after the end of the link */
	bool lost_called;		/* the link has been stopped, and these are called; read without the lock, too */
	bool inline_ok;
	u8 *tx_msgs;			/* sq_size messages, if they cannot go inline */
	u64 tx_dma;
	u8 *long_buf;			/* SMC_LINK_LONG_LEN bytes, for a long message, of which one is sent at a time; or NULL */
	u64 long_dma;

	u32 rq_size;
	struct smc_link_slot *slots;	/* rq_size */
	/*
	 * Bytes in each slot. Messages of version 2 have up to 8 KiB. Where a receive may have two elements,
	 * what does not fit into the slot is in v2_buf, which is enough because the peer sends one such message at a time;
	 * else each slot has all of it.
	 */
	u32 rx_len;
	u8 *rx_msgs;			/* the memory of all slots, if rx_len is SMC_LINK_MSG_LEN */
	u64 rx_dma;
	u8 *v2_buf;
	u64 v2_dma;
};

#define SMC_LINK_LONG_LEN 8192
#define SMC_LINK_V2_BUF_LEN (SMC_LINK_LONG_LEN - SMC_LINK_MSG_LEN)

/* Receives that any peer has posted: Linux has 48 at least, three for each of its own send requests. */
#define SMC_LINK_PEER_RECVS 16

struct smc_link *smc_link_new(struct smc_lgr_rdma *group, const struct smc_rdma_path *path,
			      const struct smc_sysctl *sysctl);
struct smc_link *smc_link_get(struct smc_link *link);
void smc_link_put(struct smc_link *link);
void smc_link_stop(struct smc_link *link);
void smc_link_finish(struct smc_link *link);
void smc_link_end(struct smc_link *link);
void smc_link_discard(struct smc_link *link);
int smc_link_to_rtr(struct smc_link *link);
int smc_link_to_rts(struct smc_link *link);
void smc_link_count(struct smc_link *link, enum smc_link_why why, int detail);
void smc_link_fail(struct smc_link *link, enum smc_link_why why, int detail);
void smc_link_retire(struct smc_link *link);
void smc_link_fail_qp(struct smc_link *link);
void smc_link_address(const struct smc_link *link, struct rdma_ah_attr *ah, const u8 gid[16], const u8 mac[ETH_ALEN],
		      bool gateway);

void smc_link_received(struct ib_cq *cq, struct ib_wc *wc);
void smc_link_qp_event(struct ib_event *event, void *context);

/* qp.c */
int smc_link_create_queues(struct smc_link *link, const struct smc_sysctl *sysctl);
int smc_link_make_long_buf(struct smc_link *link);
void smc_link_free_queues(struct smc_link *link);

/* register.c */
int smc_link_reg_qp_new(struct smc_link *link);
int smc_link_register(struct smc_link *link, struct smc_rdma_buf *buf);

/* queue.c */
void smc_link_wake(struct smc_link *link);
void smc_link_call_lost(struct smc_link *link);
void smc_link_sent(struct ib_cq *cq, struct ib_wc *wc);
struct ib_cqe *smc_link_signal(struct smc_link *link, u64 last);
int smc_link_send(struct smc_link *link, struct smc_link_send_req *req);
void smc_link_peer_recvs(struct smc_link *link, u32 vendor);
u64 smc_link_position(struct smc_link *link);
bool smc_link_passed(struct smc_link *link, u64 position);
bool smc_link_awaits(struct smc_link *link, const struct smc_link_completion *completion);
bool smc_link_cancel(struct smc_link *link, struct smc_link_completion *completion);
bool smc_link_expects(struct smc_link *link, u64 *done);

/* acks.c */
void smc_link_acks_init(struct smc_link *link);
void smc_link_acks_begin(struct smc_link *link);
void smc_link_acks_posted(struct smc_link *link);
void smc_link_acks_end(struct smc_link *link);

static inline bool smc_link_usable(const struct smc_link *link)
{
	return READ_ONCE(link->state) == SMC_LINK_RTS;
}

/*
 * smc_link_is_peer_port() - is this the address that the peer has stated when the link was made? That MAC need not be where
 * we send to: there may be a gateway. Any context.
 */
static inline bool smc_link_is_peer_port(const struct smc_link *link, const u8 gid[16], const u8 mac[ETH_ALEN])
{
	const struct smc_link_peer *peer = &link->peer;

	return !memcmp(peer->clc_gid, gid, sizeof(peer->clc_gid)) && !memcmp(peer->clc_mac, mac, sizeof(peer->clc_mac));
}

/* smc_link_is_peer() - are these that address, and the queue pair that the peer has stated with it? Any context. */
static inline bool smc_link_is_peer(const struct smc_link *link, const u8 gid[16], const u8 mac[ETH_ALEN], u32 qpn)
{
	return link->peer.qpn == qpn && smc_link_is_peer_port(link, gid, mac);
}

#endif /* SMC_RDMA_LINK_H */
