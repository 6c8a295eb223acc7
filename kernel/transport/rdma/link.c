// SPDX-License-Identifier: GPL-2.0-only
/* Links: queue pairs from their creation to their end, and receiving (docs/protocol.md, 6). */

#include <linux/random.h>
#include <linux/slab.h>
#include <rdma/ib_cache.h>

#include "../../control/stats.h"
#include "../../control/sysctl.h"
#include "../../control/trace.h"
#include "../../control/trace_stock.h"
#include "../../lgr/lgr.h"
#include "../../net.h"
#include "group.h"
#include "link.h"

/* Attributes that all implementations use. */
#define RNR_TIMER 5
#define ACK_TIMEOUT 15
#define RETRIES 7
#define HOPS_DIRECT 1
#define HOPS_ROUTED 64

static void down_work(struct work_struct *work)
{
	struct smc_link *link = container_of(work, struct smc_link, down);
	struct smc_lgr *lgr = link->group->lgr;

	/* A link that is not down yet is retired: its whole group ends. */
	if (READ_ONCE(link->state) != SMC_LINK_DOWN || !smc_lgr_rdma_lose_link(link))
		smc_lgr_terminate(lgr);
	smc_lgr_put(lgr);
	smc_link_put(link);
}

/*
 * smc_link_count() - traces that a link is given up, and counts it once: it may fail after its peer has deleted it. Any context.
 */
void smc_link_count(struct smc_link *link, enum smc_link_why why, int detail)
{
	const struct smc_lgr *lgr = link->group->lgr;

	static_assert(SMC_STATS_LINKS_LOST + SMC_LINK_WHYS == (int)SMC_STATS_LINK_COUNTERS);
	trace_smc_link_fail(lgr->id + link->id, why, detail);
	if (!xchg(&link->counted, true))
		smc_stats_link(smc_net(lgr->key.net), SMC_STATS_LINKS_LOST + why);
}

/*
 * smc_link_fail() - a link is broken. If its group has no other link, the group ends. The detail belongs to the reason, or
 * is 0. Any context.
 */
void smc_link_fail(struct smc_link *link, enum smc_link_why why, int detail)
{
	const struct smc_lgr *lgr = link->group->lgr;

	if (xchg(&link->state, SMC_LINK_DOWN) == SMC_LINK_DOWN)
		return;
	WRITE_ONCE(link->why, why);
	smc_link_count(link, why, detail);
	trace_smcr_link_down(link, lgr, lgr->key.net, lgr->device, (void *)_RET_IP_);
	wake_up(&link->group->llc.flushed);
	smc_link_retire(link);
}

/* smc_link_get() - takes a reference; NULL is allowed. Any context. Return: the link. */
struct smc_link *smc_link_get(struct smc_link *link)
{
	if (link)
		refcount_inc(&link->ref);
	return link;
}

/* smc_link_put() - drops a reference; NULL is allowed. The link has been ended before the last one. Any context. */
void smc_link_put(struct smc_link *link)
{
	if (link && refcount_dec_and_test(&link->ref))
		kfree_rcu(link, rcu);
}

/* smc_link_retire() - ends the link's group soon; messages that are under way may still arrive. Any context. */
void smc_link_retire(struct smc_link *link)
{
	smc_lgr_get(link->group->lgr);
	smc_link_get(link);
	if (queue_work(smc_lgr_wq, &link->down))
		return;
	smc_link_put(link);
	smc_lgr_put(link->group->lgr);
}

/*
 * How long the only link of a group outlives a port that is down: as long as its queue pair retransmits, which is 7 times
 * 134 ms at least, and up to four times that with some adapters. So a port that flaps ends no link that the adapter would
 * have kept. If there is another link, connections go on by that at once.
 */
#define FLAP_TIME (2 * HZ)

/*
 * Is the GID still in its place of the table? A GID that was removed and comes back gets another place, which the queue
 * pair does not know, so there is no point in waiting for it.
 */
static bool has_gid(const struct smc_link *link)
{
	const struct smc_rdma_path *path = &link->path;
	const struct ib_gid_attr *attr;
	bool same;

	attr = rdma_get_gid_attr(path->dev->ib, path->port, path->gid_index);
	if (IS_ERR(attr))
		return false;
	same = !memcmp(attr->gid.raw, path->gid, sizeof(path->gid));
	rdma_put_gid_attr(attr);
	return same;
}

/* Has the group of a link another one, over a port that is up? */
static bool has_other(const struct smc_link *link)
{
	struct smc_lgr_rdma *group = link->group;
	struct smc_link *other;
	bool has = false;

	spin_lock_bh(&group->lock);
	smc_for_each_link(group, other)
		if (other != link && other->active && smc_link_usable(other))
			has |= READ_ONCE(other->path.dev->ports[other->path.port - 1].link_up);
	spin_unlock_bh(&group->lock);
	return has && link->active;
}

/* Fails a link whose port is down for too long, or whose GID is gone. Return: as smc_link_check() does. */
static unsigned long check_link(struct smc_link *link)
{
	bool up = READ_ONCE(link->path.dev->ports[link->path.port - 1].link_up);

	lockdep_assert_held(&link->path.dev->lock);
	if (READ_ONCE(link->path.dev->gone)) {
		smc_link_fail(link, SMC_LINK_NO_PORT, 0);
		return MAX_JIFFY_OFFSET;
	}
	if (up)
		link->port_down = 0;
	else if (!link->port_down)
		link->port_down = jiffies ?: 1;
	if (has_gid(link) && (up || (time_before(jiffies, link->port_down + FLAP_TIME) && !has_other(link))))
		return up ? MAX_JIFFY_OFFSET : max_t(long, link->port_down + FLAP_TIME - jiffies, 0);
	smc_link_fail(link, SMC_LINK_NO_PORT, 0);
	return MAX_JIFFY_OFFSET;
}

/*
 * smc_link_check() - checks the links of a device after an event of its ports. Any context. Return: jiffies until the
 * next check, MAX_JIFFY_OFFSET if only an event calls for one.
 */
unsigned long smc_link_check(struct smc_rdma_dev *dev)
{
	unsigned long next = MAX_JIFFY_OFFSET;
	struct smc_link *link;

	spin_lock_bh(&dev->lock);
	list_for_each_entry(link, &dev->links, on_dev)
		next = min(next, check_link(link));
	spin_unlock_bh(&dev->lock);
	return next;
}

/*
 * smc_link_trace_removal() - reports by smcr_link_down that the links of a device go with it. The device gets no new
 * links any more. The links do not fail, because their peers still have to get DELETE LINK. Any context.
 */
void smc_link_trace_removal(struct smc_rdma_dev *dev)
{
	const struct smc_lgr *lgr;
	struct smc_link *link;

	spin_lock_bh(&dev->lock);
	list_for_each_entry(link, &dev->links, on_dev) {
		lgr = link->group->lgr;
		if (READ_ONCE(link->state) != SMC_LINK_DOWN)
			trace_smcr_link_down(link, lgr, lgr->key.net, lgr->device, (void *)_RET_IP_);
	}
	spin_unlock_bh(&dev->lock);
}

/* smc_link_qp_event() - event of a link's queue pair. Any context. */
void smc_link_qp_event(struct ib_event *event, void *context)
{
	if (event->event != IB_EVENT_COMM_EST)
		smc_link_fail(context, SMC_LINK_EVENT, event->event);
}

static int post_slot(struct smc_link *link, u32 i)
{
	struct ib_sge sge[2] = {
		{ .addr = link->slots[i].dma, .length = link->rx_len, .lkey = link->pd->local_dma_lkey },
		{ .addr = link->v2_dma, .length = SMC_LINK_V2_BUF_LEN, .lkey = link->pd->local_dma_lkey },
	};
	struct ib_recv_wr wr = {
		.wr_cqe = &link->slots[i].cqe,
		.sg_list = sge,
		.num_sge = link->v2_buf ? 2 : 1,
	};

	return ib_post_recv(link->qp, &wr, NULL);
}

/* Completions of other kinds have lengths of their own, and nothing in the slot. */
static bool is_message(const struct smc_link *link, const struct ib_wc *wc)
{
	if (wc->opcode == IB_WC_RECV_RDMA_WITH_IMM)
		return link->group->immediate;
	return wc->opcode == IB_WC_RECV && wc->byte_len <= link->rx_len + (link->v2_buf ? SMC_LINK_V2_BUF_LEN : 0);
}

/* smc_link_received() - completion of a receive. Softirq, by the completion queue. */
void smc_link_received(struct ib_cq *cq, struct ib_wc *wc)
{
	struct smc_link_slot *slot = container_of(wc->wr_cqe, struct smc_link_slot, cqe);
	struct smc_link *link = slot->link;
	struct ib_device *ib = link->path.dev->ib;
	u32 len;

	if (wc->status != IB_WC_SUCCESS) {
		smc_link_fail(link, SMC_LINK_NOT_RECEIVED, wc->status);
		return;
	}
	if (!is_message(link, wc)) {
		smc_link_fail(link, SMC_LINK_NO_MESSAGE, wc->byte_len);
		return;
	}
	WRITE_ONCE(link->last_recv, jiffies);
	if (wc->opcode != IB_WC_RECV) {
		smc_rdma_cdc_recv_imm(link, be32_to_cpu(wc->ex.imm_data), wc->byte_len);
		goto again;
	}
	len = min(wc->byte_len, link->rx_len);
	ib_dma_sync_single_for_cpu(ib, slot->dma, len, DMA_FROM_DEVICE);
	if (wc->byte_len && slot->msg[0] == SMC_CDC_TYPE)
		smc_rdma_cdc_recv(link, slot->msg, wc->byte_len);
	else
		smc_rdma_llc_receive(link, slot->msg, wc->byte_len);
	ib_dma_sync_single_for_device(ib, slot->dma, len, DMA_FROM_DEVICE);
again:
	if (READ_ONCE(link->state) != SMC_LINK_DOWN && post_slot(link, slot - link->slots))
		smc_link_fail(link, SMC_LINK_NOT_POSTED, 0);
}

/*
 * Lets events of its device reach a link. Those since the path was chosen went to links that were on the list. Return: 0, or
 * -ENODEV if the device, the port or its GID is gone: no group has the link yet that could lose it.
 */
static int add_to_device(struct smc_link *link)
{
	struct smc_rdma_dev *dev = link->path.dev;
	unsigned long next;

	spin_lock_bh(&dev->lock);
	list_add(&link->on_dev, &dev->links);
	next = check_link(link);
	spin_unlock_bh(&dev->lock);
	if (next != MAX_JIFFY_OFFSET)
		smc_rdma_dev_check_soon(dev);
	return READ_ONCE(link->state) == SMC_LINK_DOWN ? -ENODEV : 0;
}

/*
 * smc_link_new() - makes a link of a group over a path, with a reference on the device. The settings give the sizes of
 * its queues. Return: the link, or ERR_PTR(-ENOMEM) and the like.
 */
struct smc_link *smc_link_new(struct smc_lgr_rdma *group, const struct smc_rdma_path *path,
			      const struct smc_sysctl *sysctl)
{
	struct smc_link *link;
	int rc;

	might_sleep();
	if (!smc_rdma_dev_add_user(path->dev))
		return ERR_PTR(-ENODEV);
	link = kzalloc(sizeof(*link), GFP_KERNEL);
	if (!link) {
		smc_rdma_dev_del_user(path->dev);
		return ERR_PTR(-ENOMEM);
	}
	link->group = group;
	refcount_set(&link->ref, 1);
	link->path = *path;
	smc_rdma_dev_get(path->dev);
	atomic_inc(&path->dev->ports[path->port - 1].links);
	link->psn = get_random_u32() & 0xffffff;
	link->last_read = jiffies;
	link->last_recv = jiffies;
	link->peer_recvs = SMC_LINK_PEER_RECVS;
	link->traffic_class = READ_ONCE(sysctl->smcr_traffic_class);
	init_rwsem(&link->map_rwsem);
	mutex_init(&link->lock);
	init_completion(&link->finished);
	spin_lock_init(&link->sq_lock);
	INIT_LIST_HEAD(&link->on_dev);
	INIT_LIST_HEAD(&link->maps);
	INIT_LIST_HEAD(&link->waiting);
	INIT_LIST_HEAD(&link->completions);
	INIT_LIST_HEAD(&link->lost);
	smc_rdma_llc_init_link(link);
	smc_link_acks_init(link);
	INIT_WORK(&link->down, down_work);
	INIT_DELAYED_WORK(&link->late, smc_lgr_rdma_late_work);
	rc = smc_link_create_queues(link, sysctl) ?: smc_link_reg_qp_new(link) ?: add_to_device(link);
	if (rc) {
		/* Not smc_link_discard(): the work `down` may wait for the one that adds the link. */
		smc_link_end(link);
		smc_link_put(link);
		return ERR_PTR(rc);
	}
	return link;
}

/*
 * smc_link_stop() - takes a link down: nothing is sent or received by it any more, and the peer cannot reach our memory. Called
 * once, before smc_link_finish(). May sleep, until work requests have been flushed.
 */
void smc_link_stop(struct smc_link *link)
{
	might_sleep();
	/* After this, nothing uses the link or begins to, so its end, which may take long, delays nothing. */
	down_write(&link->map_rwsem);
	mutex_lock(&link->lock);
	link->gone = true;
	mutex_unlock(&link->lock);
	up_write(&link->map_rwsem);
	spin_lock_bh(&link->path.dev->lock);
	list_del_init(&link->on_dev);
	spin_unlock_bh(&link->path.dev->lock);
	WRITE_ONCE(link->state, SMC_LINK_DOWN);
	/* Taking sq_lock waits for senders that have not seen the new state; after this, none is added to the lists. */
	smc_link_wake(link);
	smc_link_acks_end(link);
	smc_rdma_delay_stop();
	/* Before that the queue pair has nothing, and cannot be drained. */
	if (link->qp && link->inited)
		ib_drain_qp(link->qp);
}

/* The adapter forgets all buffers, also those that connections still have. */
static void unmap_bufs(struct smc_link *link)
{
	struct smc_buf_map *map;

	/* A buffer whose map is off the list is freed by smc_lgr_rdma_drop_buf(), but not before it is unmapped. */
	mutex_lock(&link->group->map_mutex);
	for (;;) {
		spin_lock_bh(&link->group->lock);
		map = list_first_entry_or_null(&link->maps, struct smc_buf_map, list);
		if (map)
			list_del_init(&map->list);
		spin_unlock_bh(&link->group->lock);
		if (!map)
			break;
		smc_rdma_buf_unmap(map);
	}
	mutex_unlock(&link->group->map_mutex);
}

/* Gives back what a stopped link has, except its own memory. No buffer is mapped for it any more. */
static void free_link(struct smc_link *link)
{
	smc_link_free_queues(link);
	if (link->pd)
		ib_dealloc_pd(link->pd);
	atomic_dec(&link->path.dev->ports[link->path.port - 1].links);
	smc_rdma_dev_del_user(link->path.dev);
	smc_rdma_dev_put(link->path.dev);
}

/*
 * smc_link_finish() - gives back what a link that has been stopped has of its adapter; its memory stays. If another thread is at
 * that, waits until it is done. May sleep, for seconds: soft-RoCE destroys a queue pair when the last of its packets has left the
 * host.
 */
void smc_link_finish(struct smc_link *link)
{
	might_sleep();
	if (xchg(&link->finishing, true)) {
		wait_for_completion(&link->finished);
		return;
	}
	smc_link_call_lost(link);
	if (link->reg_qp.qp)
		ib_destroy_qp(link->reg_qp.qp);
	if (link->qp)
		ib_destroy_qp(link->qp);
	/*
	 * After a grace period, softirqs that have seen the link usable are done with its buffers. The last softirq is done
	 * with the queue, too: it rearms the queue after it has let ib_free_cq() go on, so polling is off until then.
	 */
	if (link->cq)
		irq_poll_disable(&link->cq->iop);
	synchronize_rcu();
	if (link->cq) {
		irq_poll_enable(&link->cq->iop);
		ib_free_cq(link->cq);
	}
	unmap_bufs(link);
	free_link(link);
	complete_all(&link->finished);
}

/* smc_link_end() - takes a link down for good. Called once. */
void smc_link_end(struct smc_link *link)
{
	might_sleep();
	smc_link_stop(link);
	smc_link_finish(link);
}

/* smc_link_discard() - ends a link that no group has. */
void smc_link_discard(struct smc_link *link)
{
	might_sleep();
	smc_link_end(link);
	/* An event of its adapter or port may have failed the link already. */
	if (cancel_work_sync(&link->down)) {
		smc_lgr_put(link->group->lgr);
		smc_link_put(link);
	}
	smc_link_put(link);
}

/* smc_link_fail_qp() - for tests: puts the queue pair into error, as an adapter may do at any time. */
void smc_link_fail_qp(struct smc_link *link)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };

	might_sleep();
	mutex_lock(&link->lock);
	if (!link->gone && link->inited)
		ib_modify_qp(link->qp, &attr, IB_QP_STATE);
	mutex_unlock(&link->lock);
}

static int qp_to_init(struct smc_link *link)
{
	int rc;
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.port_num = link->path.port,
		.qp_access_flags = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE,
	};

	rc = ib_modify_qp(link->qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_ACCESS_FLAGS | IB_QP_PORT);
	link->inited = !rc;
	return rc;
}

/*
 * smc_link_address() - fills the address of a peer's queue pair: a GID, reached by a gateway or not. The flow label is
 * made of the numbers of both queue pairs, as RoCEv2 has it of UDP ports, so that switches spread links over their
 * paths. Any context.
 */
void smc_link_address(const struct smc_link *link, struct rdma_ah_attr *ah, const u8 gid[16], const u8 mac[ETH_ALEN],
		      bool gateway)
{
	ah->type = RDMA_AH_ATTR_TYPE_ROCE;
	rdma_ah_set_port_num(ah, link->path.port);
	rdma_ah_set_grh(ah, (union ib_gid *)gid, rdma_calc_flow_label(link->qpn, link->peer.qpn), link->path.gid_index,
			gateway ? HOPS_ROUTED : HOPS_DIRECT, link->traffic_class);
	memcpy(ah->roce.dmac, mac, ETH_ALEN);
}

static int qp_to_rtr(struct smc_link *link)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTR,
		.dest_qp_num = link->peer.qpn,
		.rq_psn = link->peer.psn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = RNR_TIMER,
	};
	u32 i;
	int rc;

	lockdep_assert_held(&link->lock);
	if (link->peer.mtu_code < IB_MTU_256 || link->peer.mtu_code > IB_MTU_4096)
		return -EPROTO;
	rc = qp_to_init(link);
	if (rc)
		return rc;
	link->mtu_code = min(link->path.mtu_code, link->peer.mtu_code);
	attr.path_mtu = link->mtu_code;
	smc_link_address(link, &attr.ah_attr, link->peer.gid, link->peer.mac, link->peer.gateway);
	rc = ib_modify_qp(link->qp, &attr, IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN |
			  IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER);
	for (i = 0; i < link->rq_size && !rc; i++)
		rc = post_slot(link, i);
	if (!rc)
		cmpxchg(&link->state, SMC_LINK_FORMING, SMC_LINK_RTR);
	return rc;
}

/* smc_link_to_rtr() - lets a link receive, whose peer is known. Return: 0 or a negative errno. */
int smc_link_to_rtr(struct smc_link *link)
{
	int rc;

	might_sleep();
	mutex_lock(&link->lock);
	rc = link->gone ? -ENOTCONN : qp_to_rtr(link);
	mutex_unlock(&link->lock);
	return rc;
}

static int qp_to_rts(struct smc_link *link)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTS,
		.sq_psn = link->psn,
		.timeout = ACK_TIMEOUT,
		.retry_cnt = RETRIES,
		.rnr_retry = RETRIES,
		.max_rd_atomic = 1,
	};
	int rc;

	lockdep_assert_held(&link->lock);
	rc = ib_modify_qp(link->qp, &attr, IB_QP_STATE | IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY |
			  IB_QP_SQ_PSN | IB_QP_MAX_QP_RD_ATOMIC);
	if (!rc)
		cmpxchg(&link->state, SMC_LINK_RTR, SMC_LINK_RTS);
	return rc;
}

/* smc_link_to_rts() - lets a link send, too. Return: 0 or a negative errno. */
int smc_link_to_rts(struct smc_link *link)
{
	int rc;

	might_sleep();
	mutex_lock(&link->lock);
	rc = link->gone ? -ENOTCONN : qp_to_rts(link);
	mutex_unlock(&link->lock);
	return rc;
}
