// SPDX-License-Identifier: GPL-2.0-only
/*
 * The send queue of a link, a ring. Most work requests are not signaled. One in a quarter of the ring is, or one after
 * SIGNAL_BYTES of data; its completion stands for those before it, because work requests are done in order. A connection
 * learns by the peer's cursor that its data has arrived, unless its ring is smaller than the peer's: then the cursor may
 * come too late, and completions tell.
 *
 * RFC 7609 has no credits, so nothing on the wire tells how many receives the peer has posted, and one message too many
 * stops the link for all its connections, because the peer's adapter asks for it again later. So no more messages are
 * under way than the peer has receives: SMC_LINK_PEER_RECVS, or the number that it has stated in first contact.
 */

#include "group.h"
#include "link.h"

/*
 * Bytes of data after which a work request is signaled. A link whose queue does not move for long fails, so the queue
 * has to be seen to move: on a bad path, a quarter of the ring may take that long.
 */
#define SIGNAL_BYTES (128 << 10)

/*
 * Is there room for several waiters, so that they are not woken one by one, and for the largest request? A waiter that
 * finds too little room waits again, and would be woken again at once.
 */
static bool sq_has_room(const struct smc_link *link)
{
	u64 used = link->sq_posted - link->sq_done;

	lockdep_assert_held(&link->sq_lock);
	return used <= link->sq_size / 2 && used + SMC_LINK_WRITES + 1 <= link->sq_size &&
	       link->sq_consuming - link->sq_consumed <= link->peer_recvs / 2;
}

/* Returns the first waiter if the queue has room, or if the link is down. */
static struct smc_link_waiter *next_waiter(struct smc_link *link)
{
	struct smc_link_waiter *waiter = NULL;

	spin_lock_bh(&link->sq_lock);
	if (sq_has_room(link) || !smc_link_usable(link))
		waiter = list_first_entry_or_null(&link->waiting, struct smc_link_waiter, list);
	if (waiter)
		list_del_init(&waiter->list);
	link->turn = waiter;
	spin_unlock_bh(&link->sq_lock);
	return waiter;
}

/* A link is down: leaves the completions that are to be called after its end to smc_link_call_lost(). */
static void defer_completions(struct smc_link *link)
{
	struct smc_link_completion *completion, *next;

	lockdep_assert_held(&link->sq_lock);
	list_for_each_entry_safe(completion, next, &link->completions, list)
		if (completion->after_end)
			list_move_tail(&completion->list, &link->lost);
}

/* Returns the first completion whose work requests have arrived, or any if the link is down. */
static struct smc_link_completion *next_completion(struct smc_link *link, u64 *pos, u16 *seq)
{
	bool usable = smc_link_usable(link);
	struct smc_link_completion *completion;

	spin_lock_bh(&link->sq_lock);
	if (!usable)
		defer_completions(link);
	completion = list_first_entry_or_null(&link->completions, struct smc_link_completion, list);
	if (completion && usable && link->sq_done < completion->at)
		completion = NULL;
	if (completion) {
		*pos = usable ? completion->pos : 0;
		*seq = completion->seq;
		list_del_init(&completion->list);
	}
	spin_unlock_bh(&link->sq_lock);
	return completion;
}

/* smc_link_wake() - calls completions that have arrived, then waiters while there is room. Softirq. */
void smc_link_wake(struct smc_link *link)
{
	struct smc_link_completion *completion;
	struct smc_link_waiter *waiter;
	u64 pos;
	u16 seq;

	while ((completion = next_completion(link, &pos, &seq)))
		completion->fn(completion, pos, seq);
	while ((waiter = next_waiter(link)))
		waiter->fn(waiter);
}

/*
 * smc_link_call_lost() - a link has been stopped, and its peer has been sent DELETE LINK if another link could carry it: calls the
 * completions that wait for the end. Their messages may be lost; what has not arrived does not arrive any more. Softirq.
 */
void smc_link_call_lost(struct smc_link *link)
{
	struct smc_link_completion *completion;
	u16 seq = 0;

	do {
		spin_lock_bh(&link->sq_lock);
		WRITE_ONCE(link->lost_called, true);
		completion = list_first_entry_or_null(&link->lost, struct smc_link_completion, list);
		if (completion) {
			list_del_init(&completion->list);
			seq = completion->seq;
		}
		spin_unlock_bh(&link->sq_lock);
		if (completion)
			completion->fn(completion, 0, seq);
	} while (completion);
}

/* smc_link_sent() - a signaled work request is done, and those before it. Softirq, by the completion queue. */
void smc_link_sent(struct ib_cq *cq, struct ib_wc *wc)
{
	struct smc_link_signaled *place = container_of(wc->wr_cqe, struct smc_link_signaled, cqe);
	struct smc_link *link = place->link;
	bool waiting;

	if (wc->status != IB_WC_SUCCESS) {
		smc_link_fail(link, SMC_LINK_NOT_SENT, wc->status);
		return;
	}
	spin_lock_bh(&link->sq_lock);
	link->sq_done = place->at;
	link->sq_consumed = place->consumed;
	waiting = !list_empty(&link->waiting) || !list_empty(&link->completions);
	spin_unlock_bh(&link->sq_lock);
	if (waiting)
		smc_link_wake(link);
	/* Also for who waits until a completion has been called. */
	if (wq_has_sleeper(&link->group->llc.flushed))
		wake_up(&link->group->llc.flushed);
}

/*
 * May a message be posted? While others wait for room, only the waiter whose turn it is may: otherwise steady senders
 * would take each free place before there is room for the waiters.
 */
static bool may_post(const struct smc_link *link, const struct smc_link_send_req *req, u64 last)
{
	lockdep_assert_held(&link->sq_lock);
	return (list_empty(&link->waiting) || req->waiter == link->turn) && last - link->sq_done <= link->sq_size &&
	       link->sq_consuming - link->sq_consumed < link->peer_recvs;
}

/* Counts the data of a request that is about to be posted. */
static void count_data(struct smc_link *link, const struct smc_link_send_req *req)
{
	unsigned int i;
	u32 len = 0;

	lockdep_assert_held(&link->sq_lock);
	for (i = 0; i < req->n; i++)
		len += req->writes[i].len;
	link->sq_unsignaled += len;
	WRITE_ONCE(link->tx_bytes, link->tx_bytes + len);
}

/* Should a work request be signaled? Yes if none was for long, or if someone wants to know of its completion. */
static bool should_signal(const struct smc_link *link, const struct smc_link_send_req *req, u64 last)
{
	lockdep_assert_held(&link->sq_lock);
	return last - link->sq_signaled >= link->sq_size / 4 || link->sq_unsignaled >= SIGNAL_BYTES ||
	       req->signaled || req->completion ||
	       link->sq_consuming - link->sq_consuming_signaled >= link->peer_recvs / 4;
}

/*
 * smc_link_signal() - prepares a signaled work request; the caller has counted the receives that it takes at the peer.
 * Any context. Return: what completes it.
 */
struct ib_cqe *smc_link_signal(struct smc_link *link, u64 last)
{
	struct smc_link_signaled *place = &link->signaled[last & (link->sq_size - 1)];

	lockdep_assert_held(&link->sq_lock);
	link->sq_signaled = last;
	link->sq_largest = max(link->sq_largest, link->sq_unsignaled);
	link->sq_unsignaled = 0;
	link->sq_consuming_signaled = link->sq_consuming;
	place->at = last;
	place->consumed = link->sq_consuming;
	return &place->cqe;
}

/* Prepares the data, before the message. A write that fails is reported, signaled or not. */
static void prepare_writes(struct ib_rdma_wr *wr, struct ib_sge *sge, const struct smc_link_write *writes,
			   unsigned int n, struct ib_send_wr *then, struct ib_cqe *cqe)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		sge[i] = (struct ib_sge){ .addr = writes[i].local, .length = writes[i].len, .lkey = writes[i].lkey };
		wr[i] = (struct ib_rdma_wr){
			.wr = {
				.next = i + 1 < n ? &wr[i + 1].wr : then,
				.wr_cqe = cqe,
				.sg_list = &sge[i],
				.num_sge = 1,
				.opcode = IB_WR_RDMA_WRITE,
			},
			.remote_addr = writes[i].remote,
			.rkey = writes[i].rkey,
		};
	}
}

/* The only write carries the immediate data. */
static void make_immediate(struct ib_send_wr *wr, u32 imm, int flags)
{
	wr->opcode = IB_WR_RDMA_WRITE_WITH_IMM;
	wr->ex.imm_data = cpu_to_be32(imm);
	wr->send_flags = flags & ~IB_SEND_INLINE;
}

/* Prepares a message, inline if the adapter can copy it. */
static void prepare_message(struct smc_link *link, struct ib_sge *sge, const u8 *msg, u32 place)
{
	u32 at = place * SMC_LINK_MSG_LEN;

	lockdep_assert_held(&link->sq_lock);
	sge->length = SMC_LINK_MSG_LEN;
	sge->lkey = link->pd->local_dma_lkey;
	if (link->inline_ok) {
		sge->addr = (uintptr_t)msg;
		return;
	}
	ib_dma_sync_single_for_cpu(link->path.dev->ib, link->tx_dma + at, SMC_LINK_MSG_LEN, DMA_TO_DEVICE);
	memcpy(link->tx_msgs + at, msg, SMC_LINK_MSG_LEN);
	ib_dma_sync_single_for_device(link->path.dev->ib, link->tx_dma + at, SMC_LINK_MSG_LEN, DMA_TO_DEVICE);
	sge->addr = link->tx_dma + at;
}

/* Calls the completion when the work requests up to the last have arrived. */
static void add_completion(struct smc_link *link, struct smc_link_send_req *req, u64 last)
{
	struct smc_link_completion *completion = req->completion;

	lockdep_assert_held(&link->sq_lock);
	req->fresh = list_empty(&completion->list);
	completion->at = last;
	completion->pos = req->pos;
	completion->seq = req->seq;
	list_move_tail(&completion->list, &link->completions);
}

/* A message cannot be sent, because the link is down. Its completion is called after the end of the link, if it is to be. */
static void add_lost(struct smc_link *link, struct smc_link_send_req *req)
{
	struct smc_link_completion *completion = req->completion;

	lockdep_assert_held(&link->sq_lock);
	/* A link that cannot send yet may do so later. */
	if (!completion || !completion->after_end || link->lost_called || READ_ONCE(link->state) != SMC_LINK_DOWN)
		return;
	req->fresh = list_empty(&completion->list);
	completion->seq = req->seq;
	list_move_tail(&completion->list, &link->lost);
}

/* Has a waiter called once there is room. LLC goes first: an exchange has seconds, however much data waits. */
static void add_waiter(struct smc_link *link, struct smc_link_send_req *req)
{
	lockdep_assert_held(&link->sq_lock);
	req->fresh = list_empty(&req->waiter->list);
	if (!req->fresh)
		return;
	if (req->waiter == &link->llc.waiter)
		list_add(&req->waiter->list, &link->waiting);
	else
		list_add_tail(&req->waiter->list, &link->waiting);
}

/*
 * smc_link_send() - posts writes of data, then a message that tells of it. Any context. Return: 0, -EAGAIN if there is
 * no room in the queue, -ENOTCONN if the link is down.
 */
int smc_link_send(struct smc_link *link, struct smc_link_send_req *req)
{
	struct ib_rdma_wr wr[SMC_LINK_WRITES];
	struct ib_sge sge[SMC_LINK_WRITES + 1];
	struct ib_send_wr send = {
		.sg_list = &sge[SMC_LINK_WRITES],
		.num_sge = 1,
		.opcode = IB_WR_SEND,
		.send_flags = IB_SEND_SOLICITED | (link->inline_ok && !req->len ? IB_SEND_INLINE : 0),
	};
	u64 last;
	u32 place;
	int rc = 0;

	spin_lock_bh(&link->sq_lock);
	if (!smc_link_usable(link)) {
		rc = -ENOTCONN;
		goto out;
	}
	last = link->sq_posted + req->n + !req->immediate;
	if (!may_post(link, req, last)) {
		add_waiter(link, req);
		rc = -EAGAIN;
		goto out;
	}
	place = last & (link->sq_size - 1);
	/* The message takes a receive of the peer's, and so does immediate data; a write does not. */
	link->sq_consuming++;
	send.wr_cqe = &link->signaled[place].cqe;
	count_data(link, req);
	if (should_signal(link, req, last)) {
		smc_link_signal(link, last);
		send.send_flags |= IB_SEND_SIGNALED;
	}
	prepare_writes(wr, sge, req->writes, req->n, req->immediate ? NULL : &send, send.wr_cqe);
	if (req->immediate)
		make_immediate(&wr[0].wr, req->imm, send.send_flags);
	else if (req->len)
		sge[SMC_LINK_WRITES] = (struct ib_sge){ .addr = link->long_dma, .length = req->len, .lkey = link->pd->local_dma_lkey };
	else
		prepare_message(link, &sge[SMC_LINK_WRITES], req->msg, place);
	link->sq_posted = last;
	req->at = last;
	if (ib_post_send(link->qp, req->n ? &wr[0].wr : &send, NULL)) {
		smc_link_fail(link, SMC_LINK_NOT_POSTED, 0);
		rc = -ENOTCONN;
		goto out;
	}
	if (req->completion)
		add_completion(link, req, last);
	smc_link_acks_posted(link);
out:
	if (rc == -ENOTCONN)
		add_lost(link, req);
	spin_unlock_bh(&link->sq_lock);
	return rc;
}

/*
 * smc_link_peer_recvs() - sets how many receives the peer has posted, if ACCEPT or CONFIRM says so. Nothing has been
 * sent by the link yet. Any context.
 */
void smc_link_peer_recvs(struct smc_link *link, u32 vendor)
{
	u32 recvs = smc_clc_vendor_recvs(vendor);

	if (recvs && link->group->immediate)
		link->peer_recvs = recvs;
}

/* smc_link_expects() - is a signaled work request under way? Sets how far the queue has come. Any context. */
bool smc_link_expects(struct smc_link *link, u64 *done)
{
	bool expects;

	spin_lock_bh(&link->sq_lock);
	expects = link->sq_signaled != link->sq_done;
	*done = link->sq_done;
	spin_unlock_bh(&link->sq_lock);
	return expects;
}

/* smc_link_position() - returns the position after all that was sent up to now. Any context. */
u64 smc_link_position(struct smc_link *link)
{
	u64 at;

	spin_lock_bh(&link->sq_lock);
	at = link->sq_posted;
	spin_unlock_bh(&link->sq_lock);
	return at;
}

/* smc_link_awaits() - is a completion still to be called? Any context. */
bool smc_link_awaits(struct smc_link *link, const struct smc_link_completion *completion)
{
	bool awaits;

	spin_lock_bh(&link->sq_lock);
	awaits = !list_empty(&completion->list);
	spin_unlock_bh(&link->sq_lock);
	return awaits;
}

/*
 * smc_link_cancel() - takes a completion off a link's lists. Any context. Return: false if it was on none: then its function has been
 * called, or is about to be.
 */
bool smc_link_cancel(struct smc_link *link, struct smc_link_completion *completion)
{
	bool listed;

	spin_lock_bh(&link->sq_lock);
	listed = !list_empty(&completion->list);
	list_del_init(&completion->list);
	spin_unlock_bh(&link->sq_lock);
	return listed;
}

/* smc_link_passed() - has everything sent before a position arrived? Any context. */
bool smc_link_passed(struct smc_link *link, u64 position)
{
	bool passed;

	spin_lock_bh(&link->sq_lock);
	passed = link->sq_done >= position;
	spin_unlock_bh(&link->sq_lock);
	return passed;
}
