/* SPDX-License-Identifier: GPL-2.0-only */
/* The part of a link group that is SMC-R's: its links, its buffers, the peer's RMBs, and LLC. */
#ifndef SMC_RDMA_GROUP_H
#define SMC_RDMA_GROUP_H

#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "../../conn/cdc.h"
#include "../../conn/conn.h"
#include "../../wire/cdc.h"
#include "../../wire/llc.h"
#include "../transport.h"
#include "buf.h"
#include "link.h"

/* The most RMBs of each side in a group (docs/protocol.md, 6). */
#define SMC_RDMA_RTOKENS 255
/* How long the peer has for an LLC answer that somebody waits for. It comes after everything that the two sent before. */
#define SMC_RDMA_ANSWER_TIMEOUT (2 * HZ)

enum smc_lgr_rdma_state {
	SMC_LGR_RDMA_FORMING,
	SMC_LGR_RDMA_READY,
	SMC_LGR_RDMA_ENDED,
};

/* An RMB of the peer's, as one link names it. */
struct smc_rtoken {
	u32 rkey;
	u64 addr;
};

/* An exchange that we begin; one at a time in a group. */
struct smc_rdma_call {
	struct list_head list;		/* group->lock; empty unless it waits, runs, or is to be repeated */
	u8 type;			/* SMC_LLC_CONFIRM_RKEY or SMC_LLC_DELETE_RKEY */
	struct smc_rdma_buf *rmb;
	u32 rkey;			/* that the message has, once it is sent */
	unsigned int repeats;		/* how often the peer has refused it for now; group->lock, as what follows */
	unsigned long repeat_at;	/* jiffies; when it is due again, while it is on group->llc.refused */
	int result;			/* -EINPROGRESS, 0, -EREMOTEIO if the peer refuses, -ETIMEDOUT, -ENOTCONN */
};

/* Where the exchange that adds a link is (RFC 7609, 3.5.5.1.1). */
enum smc_rdma_add_step {
	SMC_RDMA_ADD_NONE,		/* there is no exchange */
	SMC_RDMA_ADD_SENT,		/* server: ADD LINK was sent */
	SMC_RDMA_ADD_KEYS,		/* version 1: ADD LINK CONTINUATION is to come from the peer */
	SMC_RDMA_ADD_CONFIRM,		/* CONFIRM LINK, or the response to it, is to come by the new link */
	SMC_RDMA_ADD_ENDING,		/* the new link is given up */
};

/* The exchange that adds a link. Its work alone uses it, except where noted. */
struct smc_rdma_add {
	enum smc_rdma_add_step step;	/* changes under group->lock, too, so that others may read it with the lock held */
	bool wanted;			/* server: look for a second link; group->lock, as what follows, up to by */
	bool lost;			/* a link was lost or not added: look, or ask the server, again and again */
	unsigned long retry;		/* jiffies between the last two looks */
	unsigned long retry_at;		/* jiffies; of the next look, if lost */
	bool request;			/* client: tell the server of a port when no exchange runs */
	bool peer_has_two;		/* server: the client has named two ports; single word */
	unsigned long request_from;	/* server, jiffies; from when on a request of the client is followed at once */
	unsigned long take_from;	/* client, jiffies; when it has made up for the offers that it has taken; without the lock */
	u8 *msg;			/* the message that is to be handled next, or NULL */
	bool handles;			/* a message is being handled */
	u32 msg_len;
	u8 by;				/* the number of the link that it came by */
	struct smc_link *link;		/* the new one, with a reference */
	struct smc_link *carrier;	/* that the messages go by, with a reference */
	bool broken;			/* one of the two is lost; group->lock */
	bool calls;			/* calls may run: they tell the keys on the new link, too; group->lock */
	unsigned long deadline;		/* jiffies; of the step */
	bool expedited;			/* a call waits for the end of the exchange; group->lock */
	unsigned long expedited_deadline;	/* jiffies; when the exchange ends, because of that */
	struct delayed_work work;	/* holds a reference on the group */
};

/* LLC of a group. Protected by the group's lock, except where noted. */
struct smc_rdma_llc {
	struct list_head calls;		/* struct smc_rdma_call; the first one runs, if any does */
	struct list_head refused;	/* those that the peer has refused for now, in the order in which they are due again */
	bool call_runs;			/* see smc_rdma_add_allows_call() */
	unsigned long sent_at;		/* jiffies; when that was sent */
	u32 sent_by;			/* serial number of the link that it was sent by */
	bool swapped;			/* the peer writes lengths low byte first; set without the lock */
	bool verifying;			/* a peer has said that it does not know the group: none joins while the links are tested */
	unsigned long verifying_since;	/* jiffies */
	unsigned long verified;		/* jiffies; when a link was last known to work */
	bool deleting;			/* DELETE LINK, or our response to it, was sent; set under the lock */
	u8 deleted;			/* the link that it names, 0: all; single word, no lock */
	unsigned long delete_sent;	/* jiffies; when it was sent */
	bool awaits_delete;		/* the peer is to answer it */
	bool delete_answered;		/* the peer has, by a response; single word, no lock */
	bool draining;			/* a client has asked for an orderly end: none joins; set under the lock */
	struct smc_llc_delete_link request;	/* by which */
	wait_queue_head_t flushed;	/* woken when the send queue of a link moves, or DELETE LINK is answered; no lock */
	unsigned int late;		/* timed-out DELETE RKEYs whose answers may still come */
	bool overtaken;			/* an answer has come soon after the call was sent, and was taken for a late one */
	unsigned int overtakes;		/* consecutive DELETE RKEYs that have timed out after that */
	unsigned long next;		/* jiffies; when the timer is due, while it is pending */
	struct delayed_work timer;	/* looks after calls and tests; holds a reference on the group */
};

struct smc_lgr_rdma {
	struct smc_lgr *lgr;
	bool server;
	bool direct;			/* no gateway between the peers */
	bool immediate;			/* CDC messages may come and go as immediate data */
	u8 version, release;
	u16 features;			/* SMC_CLC_FEATURE_* that we send: a server ours, a client those of both */
	u8 max_conns, max_links;
	u8 link_limit;			/* of these, the links that this host wants */
	u8 buf_type;			/* net.smc.smcr_buf_type */
	struct xarray conns;		/* struct smc_conn by token; read under RCU */
	struct smc_rdma_conn __rcu *by_rmb[SMC_RDMA_RTOKENS + 1];	/* by the id of their RMB */

	struct mutex end_mutex;		/* a link ends; outer to that link's locks */
	struct mutex map_mutex;		/* a buffer is mapped for a link that is not its first, or unmapped for good */
	struct smc_rdma_add add;
	struct delayed_work balance;	/* connections move to a link that has come; holds a reference on the group */

	spinlock_t lock;		/* what follows; softirqs off */
	enum smc_lgr_rdma_state state;
	struct smc_link *links[SMC_LINKS_PER_LGR_MAX];	/* each with a reference */
	struct list_head bufs;		/* all buffers, by on_group */
	u8 last_id;			/* server: the last number that a link got */
	u32 last_serial;		/* that a link got */
	struct list_head waiting;	/* struct smc_rdma_offer */
	bool detached;			/* no adapter knows a buffer any more: those that are given back are freed */
	struct list_head rmbs, sndbufs;	/* reusable buffers that no connection has */
	struct list_head rmbs_pending;	/* RMBs that the peer may still write to */
	struct smc_rdma_buf *deleted_rmb;	/* of these, the one that the peer is asked to forget, by delete_call */
	struct smc_rdma_call delete_call;
	unsigned int unanswered;	/* consecutive DELETE RKEYs without an answer in time */
	unsigned int n_rmbs;		/* all RMBs of the group */
	struct list_head large;		/* struct smc_rdma_conn with large buffers */
	DECLARE_BITMAP(rmb_ids, SMC_RDMA_RTOKENS + 1);	/* ids of RMBs that are in use; 0 is never one */
	u64 bytes[2];			/* of buffers to send from, and of RMBs */
	unsigned int spare_rmbs;	/* memory is short: how many of `rmbs` the peer is to be asked to forget */
	bool shrinks;			/* memory is short: buffers that no connection has are freed by the timer of LLC */
	DECLARE_BITMAP(rtoken_rows, SMC_RDMA_RTOKENS);	/* rows of rtokens that are in use */
	struct smc_rtoken rtokens[SMC_RDMA_RTOKENS][SMC_LINKS_PER_LGR_MAX];	/* a row for each RMB, by the link's slot */
	struct smc_rtoken lost_keys[SMC_RDMA_RTOKENS][SMC_LINKS_PER_LGR_MAX];	/* as rtokens, on the link that left each slot last */
	u32 lost_serials[SMC_LINKS_PER_LGR_MAX];	/* of these links, 0 if none has */
	struct smc_rdma_llc llc;
};

/* SMC-R's part of a rendezvous. */
struct smc_rdma_offer {
	struct list_head list;		/* group->waiting; its lock */
	struct smc_offer *offer;
	struct smc_rdma_path path[2];	/* client: what was offered of version 1 and 2. Server: [0], what was chosen */
	struct smc_lgr *lgr;		/* a reference */
	struct smc_link *link;		/* of the connection, with a reference; the first one of a group if it forms that */
	bool placed;			/* with a place in it, until there is a connection */
	bool first;			/* it forms the group */
	bool started;			/* the call, or first contact after CONFIRM */
	unsigned long last;		/* jiffies; when all waits end, before the peer gives up */
	u8 eid[SMC_EID_LEN];		/* server: that both sides have */
	unsigned long deadline;
	struct smc_rdma_call call;
};

/* Data that is on its way from a ring that is a fraction of the peer's. */
struct smc_rdma_batch {
	struct smc_link_completion completion;
	struct smc_rdma_conn *rc;
	bool pending;			/* single word, no lock; while false, the batch may be sent */
};

/* A message that was sent. */
struct smc_rdma_sent {
	u64 at;				/* the link's position: it has arrived when the link has come that far */
	u64 pos;			/* end of the data that it reports */
	u16 seq;
};

/*
 * The last message that could not be taken in when it came. It has the whole state, except the position of an earlier urgent
 * byte.
 */
struct smc_rdma_deferred {
	bool any;			/* there is one */
	bool bounces;			/* a link that such messages came by has a copy of the buffer */
	u32 link;			/* serial number of the link that it came by */
	struct smc_cdc msg;
};

/* Messages that have arrived by an old link, and have not been looked at yet. */
struct smc_rdma_awaited {
	u32 link;			/* serial number of the old link; 0 if none are awaited */
	u16 seq;			/* of the last of them */
	struct smc_rdma_deferred deferred;	/* has come by another link meanwhile */
	struct smc_cdc_rx after;	/* what the peer has sent with that */
};

/* SMC-R's part of a connection. */
struct smc_rdma_conn {
	struct smc_conn *conn;
	struct smc_lgr_rdma *group;
	struct smc_link *link;		/* that it writes to the peer by; a reference; changes with recv_lock and lock held */
	struct smc_rdma_buf *rmb, *snd;
	const struct net *net;		/* of its socket, only compared here */
	struct smc_memory_pool *memory;	/* of that namespace; a reference */
	bool large;			/* it has large buffers; never changes once it has them */
	struct list_head on_large;	/* group->large; group->lock */
	u8 rmb_code, snd_code;		/* sizes that were asked for */
	u32 peer_token;
	u8 rtoken;			/* row of the peer's RMB; as what follows, never changes once the peer is known */
	u64 peer_off;			/* of the RMBE in that */
	u64 peer_addr;			/* of the RMBE, as the link names it */
	u32 peer_rkey;
	bool bound;			/* it may write there; group->lock; read without, too */

	bool exposed;			/* the peer may write to the RMB, from now on */
	spinlock_t lock;		/* what follows, up to recv_lock; softirqs off */
	struct smc_link_waiter waiter;
	bool ready;			/* the peer is known */
	bool corked;			/* autocorking holds written data back */
	struct smc_rdma_deferred early;	/* has come before the peer was known */
	struct smc_cdc_tx tx;		/* if write_closed, the peer's RMB may be others' by now */
	struct smc_rdma_batch batch[2];	/* each holds a reference on the connection while it is on its way */
	u32 snd_off;			/* where tx.prod is in the ring that is sent from */
	u32 failovers;			/* how often the connection has changed its link; read without the lock */
	bool over;			/* the connection has ended: it writes no data, and another link only repeats its last message */
	struct smc_link_completion last;	/* of a message with C or A; holds a reference on the connection while it is out */
	bool last_out;
	bool last_again;		/* the connection has another link since: the message goes again when it is not out any more */
	bool held;			/* nothing is sent until what was sent has arrived: see smc_rdma_balance_soon() */
	struct smc_rdma_sent last_sent, last_acked;	/* messages that may have arrived, and that have; for failover */
	bool validate;			/* the link has changed, and failover validation is due */
	bool resync;			/* immediate data is not sent until a message has reported all up to resync_end */
	u64 resync_end;
	u8 limited;			/* slots of links before, for each of which tx.limit stays */

	spinlock_t recv_lock;		/* what follows; softirqs off */
	u32 rx_link;			/* serial number of the link that the peer sends by, 0 if none */
	struct smc_cdc_rx rx;
	struct smc_rdma_sent arrived;	/* the last message that a completion has reported; see cdc_report_space() */
	bool received;			/* a message has come; single word, no lock */
	struct smc_rdma_awaited awaited;	/* after a failover */
};

static inline struct smc_lgr_rdma *smc_lgr_rdma_of(const struct smc_lgr *lgr)
{
	return lgr->priv;
}

/* Visits the links of a group; the caller holds the group's lock. */
#define smc_for_each_link(group, link) \
	for (link = smc_lgr_rdma_next_link(group, NULL); link; link = smc_lgr_rdma_next_link(group, link))

/* group.c */
int smc_lgr_rdma_init(struct smc_lgr *lgr);
bool smc_lgr_rdma_fits(const struct smc_lgr *lgr, const struct smc_lgr_ends *ends, const void *hint);
void smc_lgr_rdma_delete_link(struct smc_lgr *lgr);
void smc_lgr_rdma_flush(struct smc_lgr *lgr, unsigned long until);
void smc_lgr_rdma_end(struct smc_lgr *lgr);
void smc_lgr_rdma_free(struct smc_lgr *lgr);
int smc_lgr_rdma_map_bufs(struct smc_link *link);
int smc_lgr_rdma_register_bufs(struct smc_link *link);
int smc_lgr_rdma_register_buf(struct smc_link *link, struct smc_rdma_buf *buf);
void smc_lgr_rdma_ready(struct smc_lgr_rdma *group);
void smc_lgr_rdma_wake_locked(struct smc_lgr_rdma *group);
bool smc_lgr_rdma_add_idle(struct smc_lgr_rdma *group, struct smc_rdma_buf *buf, struct list_head *list);
void smc_lgr_rdma_uncount(struct smc_lgr_rdma *group, u8 id);
bool smc_lgr_rdma_adapters_done(const struct smc_lgr_rdma *group, struct smc_rdma_buf *buf);
struct smc_rdma_buf *smc_lgr_rdma_buf(struct smc_link *link, struct smc_memory_pool *pool, bool rmb, u8 code);
void smc_lgr_rdma_take_large(struct smc_lgr_rdma *group, struct smc_rdma_conn *rc, unsigned int most);
void smc_lgr_rdma_put_large(struct smc_lgr_rdma *group, struct smc_rdma_conn *rc);
void smc_lgr_rdma_put_snd(struct smc_link *link, struct smc_memory_pool *pool, struct smc_rdma_buf *snd, bool sent);

/* shrink.c */
void smc_lgr_rdma_shrink(struct smc_lgr *lgr);
void smc_lgr_rdma_drop_buf(struct smc_lgr_rdma *group, struct smc_rdma_buf *buf);
void smc_lgr_rdma_drop_rings(struct smc_lgr_rdma *group);

/* links.c */
bool smc_lgr_rdma_add_link(struct smc_lgr_rdma *group, struct smc_link *link, bool number);
struct smc_link *smc_lgr_rdma_next_link(const struct smc_lgr_rdma *group, const struct smc_link *link);
struct smc_link *smc_lgr_rdma_find_link(const struct smc_lgr_rdma *group, const struct smc_clc_accept *peer);
bool smc_lgr_rdma_serves(const struct smc_lgr_rdma *group, const struct smc_lgr_ends *ends);
struct smc_link *smc_lgr_rdma_get_link(struct smc_lgr_rdma *group, const struct smc_clc_accept *peer);
struct smc_link *smc_lgr_rdma_link_at(struct smc_lgr_rdma *group, unsigned int slot);
struct smc_link *smc_lgr_rdma_link_by_id(const struct smc_lgr_rdma *group, u8 id);
struct smc_link *smc_lgr_rdma_get_by_serial(struct smc_lgr_rdma *group, u32 serial);
struct smc_link *smc_lgr_rdma_get_by_id(struct smc_lgr_rdma *group, u8 id);
struct smc_link *smc_lgr_rdma_other_link(const struct smc_link *link);
struct smc_link *smc_lgr_rdma_call_link(const struct smc_lgr_rdma *group);
struct smc_conn *smc_lgr_rdma_next_conn(struct smc_lgr_rdma *group, const struct smc_link *link, unsigned long *token);
bool smc_lgr_rdma_needs(const struct smc_lgr *lgr, const void *dev);
bool smc_lgr_rdma_has_slot(const struct smc_lgr_rdma *group);
bool smc_lgr_rdma_is_parallel(struct smc_lgr_rdma *group, const struct smc_rdma_path *path, const struct smc_llc_add_link *peer);
bool smc_lgr_rdma_may_add(const struct smc_lgr_rdma *group);
void smc_lgr_rdma_drop_asymmetric(struct smc_lgr_rdma *group, const struct smc_link *carrier, const struct smc_link *fresh);
bool smc_lgr_rdma_lose_link(struct smc_link *link);
int smc_lgr_rdma_delete_one(struct smc_lgr *lgr, u8 id);
void smc_lgr_rdma_fail_qp(u8 id);
bool smc_lgr_rdma_rmb_is_quiet(const struct smc_lgr_rdma *group, const struct smc_rdma_buf *rmb);
void smc_lgr_rdma_remove_link(struct smc_link *link, bool tell);
void smc_lgr_rdma_late_work(struct work_struct *work);
void smc_lgr_rdma_expedite_late(struct smc_link *link);
void smc_lgr_rdma_end_late(struct smc_lgr_rdma *group);

/* rtoken.c */
int smc_rtoken_add(struct smc_link *link, u32 rkey, u64 addr);
bool smc_rtoken_bind(struct smc_rdma_conn *rc, const struct smc_clc_accept *peer, bool first);
int smc_rtoken_del(struct smc_link *link, u32 rkey);
void smc_rtoken_add_on(struct smc_link *link, u32 known, struct smc_link *other, u32 rkey, u64 addr);
void smc_rtoken_clear(struct smc_link *link);
bool smc_rtoken_serves(const struct smc_link *link);

/* rmb_reuse.c */
bool smc_lgr_rdma_has_rmb(const struct smc_lgr_rdma *group);
bool smc_lgr_rdma_has_quiet_rmb(const struct smc_lgr_rdma *group);
struct smc_rdma_buf *smc_lgr_rdma_idle_rmb(const struct smc_lgr_rdma *group, u8 code, bool full);
void smc_lgr_rdma_retire_rmb(struct smc_lgr_rdma *group, struct smc_rdma_buf *rmb, u32 token, bool done);
void smc_lgr_rdma_put_rmb(struct smc_lgr_rdma *group, struct smc_memory_pool *pool, struct smc_rdma_buf *rmb);
void smc_lgr_rdma_peer_closed(struct smc_lgr_rdma *group, u32 token);
void smc_lgr_rdma_peer_moved(struct smc_rdma_buf *rmb, const struct smc_link *link);
void smc_lgr_rdma_late_moved(const struct smc_link *link, u32 token);
struct smc_rdma_buf *smc_lgr_rdma_delete_rkeys(struct smc_lgr_rdma *group);

/* llc.c */
void smc_rdma_llc_init(struct smc_lgr_rdma *group);
void smc_rdma_llc_init_link(struct smc_link *link);
void smc_rdma_llc_receive(struct smc_link *link, const u8 *msg, u32 len);
void smc_rdma_user_id(const struct smc_link *link, u8 id[4]);
void smc_rdma_llc_confirm_link(struct smc_link *link, bool response);
void smc_rdma_llc_no_second(struct smc_link *link);
bool smc_rdma_llc_encode(struct smc_lgr_rdma *group, struct smc_llc *m, u8 msg[SMC_LLC_LEN]);
void smc_rdma_llc_send(struct smc_link *link, const u8 msg[SMC_LINK_MSG_LEN]);
bool smc_rdma_llc_long_free(struct smc_link *link);
void smc_rdma_llc_send_long(struct smc_link *link, const u8 *msg, u32 len);
void smc_rdma_llc_send_msg(struct smc_link *link, struct smc_llc *m);
void smc_rdma_llc_respond(struct smc_link *link, struct smc_llc *m);
void smc_rdma_llc_refuse_add_link(struct smc_link *link, struct smc_llc *m, u8 reason);
void smc_rdma_llc_bad(struct smc_link *link, u8 type);
void smc_rdma_llc_mod_timer(struct smc_lgr_rdma *group, unsigned long delay);
void smc_rdma_llc_end(struct smc_lgr_rdma *group);

/* llc_add.c */
void smc_rdma_add_init(struct smc_lgr_rdma *group);
void smc_rdma_add_queue(struct smc_lgr_rdma *group, unsigned long delay);
void smc_rdma_add_confirm(struct smc_link *link);
void smc_rdma_add_recv(struct smc_link *link, const u8 *msg, u32 len);
bool smc_rdma_add_runs(const struct smc_lgr_rdma *group);
bool smc_rdma_add_allows_call(const struct smc_lgr_rdma *group);
void smc_rdma_add_expedite(struct smc_lgr_rdma *group);
void smc_rdma_add_resume(struct smc_lgr_rdma *group);
void smc_rdma_add_end(struct smc_lgr_rdma *group);

/* llc_request.c */
void smc_rdma_add_want(struct smc_lgr_rdma *group);
void smc_rdma_add_requested(struct smc_lgr_rdma *group);
void smc_rdma_add_link_lost(struct smc_link *link);
void smc_rdma_add_back_off(struct smc_lgr_rdma *group);
void smc_rdma_add_link_active(struct smc_lgr_rdma *group);
bool smc_rdma_add_retries(const struct smc_lgr_rdma *group);
void smc_rdma_add_retry(struct smc_lgr_rdma *group);
void smc_rdma_request_add_link(struct smc_lgr_rdma *group);

/* llc_add_link.c */
int smc_rdma_add_choose_path(struct smc_lgr_rdma *group, const struct smc_llc_add_link *peer, struct smc_rdma_path *path);
int smc_rdma_add_make_link(struct smc_lgr_rdma *group, const struct smc_rdma_path *path, const struct smc_llc_add_link *peer);
void smc_rdma_add_set_peer(struct smc_link *link, const struct smc_llc_add_link *a);

/* llc_add_keys.c */
int smc_rdma_add_send_link(struct smc_lgr_rdma *group, bool response);
void smc_rdma_add_recv_keys(struct smc_lgr_rdma *group, const struct smc_llc *m, const u8 *msg);
void smc_rdma_add_send_keys(struct smc_lgr_rdma *group);
bool smc_rdma_add_keys_sent(struct smc_lgr_rdma *group);

/* llc_end.c */
void smc_rdma_llc_on_delete_link(struct smc_link *link, struct smc_llc *m);
bool smc_rdma_llc_closing(const struct smc_lgr_rdma *group);
void smc_rdma_llc_link_lost(struct smc_link *link);
void smc_rdma_llc_delete_link(struct smc_lgr_rdma *group);
void smc_rdma_llc_flush(struct smc_lgr_rdma *group, unsigned long until);
void smc_rdma_llc_wait_deleted(struct smc_lgr_rdma *group);

/* llc_call.c */
void smc_rdma_llc_confirm_rkey(struct smc_lgr_rdma *group, struct smc_rdma_buf *rmb, struct smc_rdma_call *call);
void smc_rdma_llc_delete_rkey(struct smc_lgr_rdma *group, struct smc_rdma_buf *rmb, struct smc_rdma_call *call);
void smc_rdma_llc_next_call(struct smc_lgr_rdma *group);
void smc_rdma_llc_start_calls(struct smc_lgr_rdma *group);
void smc_rdma_llc_cancel(struct smc_lgr_rdma *group, struct smc_rdma_call *call);
void smc_rdma_llc_call_lost(struct smc_link *link);
void smc_rdma_llc_answered(struct smc_lgr_rdma *group, u8 type, u32 rkey, int result);
unsigned long smc_rdma_llc_look_at_calls(struct smc_lgr_rdma *group);

/* llc_test.c */
void smc_rdma_llc_verify_group(struct smc_lgr_rdma *group);
void smc_rdma_llc_on_test_link(struct smc_link *link, struct smc_llc *m);
unsigned long smc_rdma_llc_test_links(struct smc_lgr_rdma *group);
void smc_rdma_llc_watch_link(struct smc_link *link);

/* cdc.c */
void smc_rdma_cdc_send(struct smc_rdma_conn *rc);
bool smc_rdma_cdc_hold(struct smc_rdma_conn *rc, const struct smc_link *link, u64 *at);
void smc_rdma_signal(struct smc_conn *conn, unsigned int what);
ssize_t smc_rdma_write(struct smc_conn *conn, struct iov_iter *from, u32 len);
void smc_rdma_stop_writing(struct smc_rdma_conn *rc);
void smc_rdma_revoke(struct smc_rdma_conn *rc);
bool smc_rdma_peer_full(const struct smc_conn *conn);
void smc_rdma_cdc_init(struct smc_rdma_conn *rc);

/* cdc_recv.c */
void smc_rdma_cdc_report_space(struct smc_rdma_conn *rc);
void smc_rdma_cdc_start(struct smc_rdma_conn *rc, const struct smc_clc_accept *peer);
void smc_rdma_cdc_defer(struct smc_rdma_conn *rc, struct smc_rdma_deferred *deferred, const struct smc_link *link,
		       const struct smc_cdc *msg);
bool smc_rdma_cdc_take_deferred(struct smc_rdma_conn *rc, struct smc_rdma_deferred *deferred);
void smc_rdma_cdc_recv(struct smc_link *link, const u8 *buf, u32 len);
void smc_rdma_cdc_recv_imm(struct smc_link *link, u32 imm, u32 len);

/* failover.c */
void smc_rdma_failover_sent(struct smc_rdma_conn *rc, u64 at, const struct smc_cdc_update *u);
int smc_rdma_failover_validate(struct smc_rdma_conn *rc);
void smc_rdma_failover_recv(struct smc_rdma_conn *rc, const struct smc_link *link, u16 seq);
bool smc_rdma_failover_await(struct smc_rdma_conn *rc, u32 serial, u16 seq);
void smc_rdma_failover_defer(struct smc_rdma_conn *rc, struct smc_link *link, const struct smc_cdc *msg);
void smc_rdma_failover_defer_imm(struct smc_rdma_conn *rc, struct smc_link *link, u32 imm, u32 len);
void smc_rdma_failover_recv_awaited(struct smc_rdma_conn *rc);
void smc_rdma_failover_ended(struct smc_rdma_conn *rc);
void smc_rdma_failover_drained(const struct smc_link *link);
bool smc_rdma_failover_late(struct smc_rdma_conn *rc);
void smc_rdma_failover(struct smc_link *link);
void smc_rdma_failover_unlimit(struct smc_link *link);
void smc_rdma_move_drained(struct smc_rdma_conn *rc, struct smc_link *from, struct smc_link *to);

/* balance.c */
void smc_rdma_balance_init(struct smc_lgr_rdma *group);
void smc_rdma_balance_soon(struct smc_lgr_rdma *group);
void smc_rdma_balance_end(struct smc_lgr_rdma *group);

#endif /* SMC_RDMA_GROUP_H */
