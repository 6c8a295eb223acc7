// SPDX-License-Identifier: GPL-2.0-only
/*
 * The queues of a link: completion queue, queue pair, and the memory for messages. A device reports the largest queues
 * that it can have at all. It may refuse them, because larger work requests or many queues use up the same memory. Then
 * we try smaller queues, down to the least that a link can work with.
 */

#include <linux/log2.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>

#include "../../control/memory.h"
#include "../../control/sysctl.h"
#include "link.h"

/* Data in as many writes as it can take, and its message. */
#define SQ_LEAST (SMC_LINK_WRITES + 1)
#define RQ_LEAST 2
/* In a queue of a queue pair, one for ib_drain_qp(). In the completion queue, those, and one for a registration. */
#define WR_EXTRA 1
#define CQE_EXTRA 3

/* Makes memory for messages, which counts for the host: namespaces share links. */
static int map_msgs(struct ib_device *ib, u8 **buf, u64 *dma, size_t len, enum dma_data_direction dir)
{
	int rc = smc_memory_reserve(NULL, SMC_MEMORY_QUEUES, len);

	if (rc)
		return rc;
	*buf = kzalloc(len, GFP_KERNEL);
	if (!*buf)
		goto err_release;
	*dma = ib_dma_map_single(ib, *buf, len, dir);
	if (!ib_dma_mapping_error(ib, *dma))
		return 0;
	kfree(*buf);
	*buf = NULL;
err_release:
	smc_memory_release(NULL, SMC_MEMORY_QUEUES, len);
	return -ENOMEM;
}

static void unmap_msgs(struct ib_device *ib, u8 *buf, u64 dma, size_t len, enum dma_data_direction dir)
{
	if (!buf)
		return;
	ib_dma_unmap_single(ib, dma, len, dir);
	kfree(buf);
	smc_memory_release(NULL, SMC_MEMORY_QUEUES, len);
}

/* Do receives have a second element, for long messages? */
static bool has_v2_buf(const struct smc_link *link)
{
	return link->path.version > 1 && link->rx_len == SMC_LINK_MSG_LEN;
}

/* Chooses the sizes that the settings ask for, as far as the device allows. */
static int choose_sizes(struct smc_link *link, const struct smc_sysctl *sysctl)
{
	u32 qp_wr = link->limits.qp_wr, cqe = link->limits.cqe;

	if (qp_wr < SQ_LEAST + WR_EXTRA || cqe < SQ_LEAST + RQ_LEAST + CQE_EXTRA)
		return -EOPNOTSUPP;
	/* Places are taken from a count that wraps, so the size is a power of two. */
	link->sq_size = min_t(u32, roundup_pow_of_two(READ_ONCE(sysctl->smcr_max_send_wr) * 3),
			      rounddown_pow_of_two(qp_wr - WR_EXTRA));
	link->rq_size = min_t(u32, READ_ONCE(sysctl->smcr_max_recv_wr), qp_wr - WR_EXTRA);
	while (link->sq_size + link->rq_size + CQE_EXTRA > cqe) {
		if (link->sq_size > SQ_LEAST && link->sq_size >= link->rq_size)
			link->sq_size /= 2;
		else
			link->rq_size = max_t(u32, link->rq_size / 2, RQ_LEAST);
	}
	return 0;
}

/* Return: false if the queues are as small as a link can have them. */
static bool shrink_queues(struct smc_link *link)
{
	if (link->sq_size == SQ_LEAST && link->rq_size == RQ_LEAST)
		return false;
	link->sq_size = max_t(u32, link->sq_size / 2, SQ_LEAST);
	link->rq_size = max_t(u32, link->rq_size / 2, RQ_LEAST);
	return true;
}

/* The queue pair may have other sizes than we asked for. Return: 0, or -ENOMEM if they are too small. */
static int read_caps(struct smc_link *link, const struct ib_qp_cap *cap)
{
	link->inline_ok = cap->max_inline_data >= SMC_LINK_MSG_LEN;
	if (cap->max_send_wr < SQ_LEAST + WR_EXTRA || cap->max_recv_wr < RQ_LEAST + WR_EXTRA)
		return -ENOMEM;
	link->sq_size = min_t(u32, link->sq_size, rounddown_pow_of_two(cap->max_send_wr - WR_EXTRA));
	link->rq_size = min_t(u32, link->rq_size, cap->max_recv_wr - WR_EXTRA);
	return 0;
}

static int create_qp(struct smc_link *link, u32 inline_data)
{
	struct ib_qp_init_attr init = {
		.event_handler = smc_link_qp_event,
		.qp_context = link,
		.send_cq = link->cq,
		.recv_cq = link->cq,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
		.cap = {
			.max_send_wr = link->sq_size + WR_EXTRA,
			.max_recv_wr = link->rq_size + WR_EXTRA,
			.max_send_sge = 1,
			.max_recv_sge = has_v2_buf(link) ? 2 : 1,
			.max_inline_data = inline_data,
		},
	};
	struct ib_qp *qp = smc_rdma_create_qp(link->pd, &link->limits, &init);
	int rc;

	if (IS_ERR(qp))
		return PTR_ERR(qp);
	rc = read_caps(link, &init.cap);
	if (rc) {
		ib_destroy_qp(qp);
		return rc;
	}
	link->qp = qp;
	link->qpn = qp->qp_num;
	return 0;
}

/* Creates a completion queue and a queue pair of the sizes that the link has now. */
static int create_queues(struct smc_link *link)
{
	struct ib_cq *cq = smc_rdma_alloc_cq(link->path.dev->ib, &link->limits, link,
					     link->sq_size + link->rq_size + CQE_EXTRA, link->vector);
	int rc;

	if (IS_ERR(cq))
		return PTR_ERR(cq);
	link->cq = cq;
	rc = create_qp(link, SMC_LINK_MSG_LEN);
	if (rc)
		rc = create_qp(link, 0);
	if (rc) {
		ib_free_cq(cq);
		link->cq = NULL;
	}
	return rc;
}

/* Allocates memory for received messages: one piece for all slots, or a piece for each if messages are long. */
static int alloc_slots(struct smc_link *link)
{
	struct ib_device *ib = link->path.dev->ib;
	struct smc_link_slot *slot;
	int rc = 0;
	u32 i;

	link->slots = kcalloc(link->rq_size, sizeof(*link->slots), GFP_KERNEL);
	if (!link->slots)
		return -ENOMEM;
	if (link->rx_len == SMC_LINK_MSG_LEN)
		rc = map_msgs(ib, &link->rx_msgs, &link->rx_dma, link->rq_size * SMC_LINK_MSG_LEN, DMA_FROM_DEVICE);
	for (i = 0; i < link->rq_size && !rc; i++) {
		slot = &link->slots[i];
		slot->cqe.done = smc_link_received;
		slot->link = link;
		if (link->rx_len > SMC_LINK_MSG_LEN) {
			rc = map_msgs(ib, &slot->msg, &slot->dma, link->rx_len, DMA_FROM_DEVICE);
		} else {
			slot->msg = link->rx_msgs + i * SMC_LINK_MSG_LEN;
			slot->dma = link->rx_dma + i * SMC_LINK_MSG_LEN;
		}
	}
	if (!rc && has_v2_buf(link))
		rc = map_msgs(ib, &link->v2_buf, &link->v2_dma, SMC_LINK_V2_BUF_LEN, DMA_FROM_DEVICE);
	return rc;
}

static int alloc_signaled(struct smc_link *link)
{
	u32 i;

	link->signaled = kcalloc(link->sq_size, sizeof(*link->signaled), GFP_KERNEL);
	if (!link->signaled)
		return -ENOMEM;
	for (i = 0; i < link->sq_size; i++) {
		link->signaled[i].cqe.done = smc_link_sent;
		link->signaled[i].link = link;
	}
	if (link->inline_ok)
		return 0;
	return map_msgs(link->path.dev->ib, &link->tx_msgs, &link->tx_dma, link->sq_size * SMC_LINK_MSG_LEN, DMA_TO_DEVICE);
}

/*
 * smc_link_create_queues() - makes what a link has of its device; the settings give the sizes of its queues.
 * Return: 0 or a negative errno; smc_link_end() frees what was made.
 */
int smc_link_create_queues(struct smc_link *link, const struct smc_sysctl *sysctl)
{
	int rc;

	might_sleep();
	smc_rdma_limits_read(link->path.dev->ib, &link->limits);
	link->rx_len = link->path.version > 1 && link->limits.recv_sge < 2 ? SMC_LINK_LONG_LEN : SMC_LINK_MSG_LEN;
	link->vector = smc_rdma_vector_get(link->path.dev, link->limits.vectors);
	rc = choose_sizes(link, sysctl);
	if (rc)
		return rc;
	link->pd = ib_alloc_pd(link->path.dev->ib, 0);
	if (IS_ERR(link->pd)) {
		rc = PTR_ERR(link->pd);
		link->pd = NULL;
		return rc;
	}
	do
		rc = create_queues(link);
	while (rc && shrink_queues(link));
	return rc ?: alloc_slots(link) ?: alloc_signaled(link);
}

/*
 * smc_link_make_long_buf() - lets a link send long messages. Return: 0, -ENOMEM, or -ENOTCONN if it
 * has ended.
 */
int smc_link_make_long_buf(struct smc_link *link)
{
	int rc = 0;

	might_sleep();
	mutex_lock(&link->lock);
	if (link->gone)
		rc = -ENOTCONN;
	else if (!link->long_buf)
		rc = map_msgs(link->path.dev->ib, &link->long_buf, &link->long_dma, SMC_LINK_LONG_LEN, DMA_TO_DEVICE);
	mutex_unlock(&link->lock);
	return rc;
}

/* smc_link_free_queues() - frees the memory of a link whose queue pair is destroyed. */
void smc_link_free_queues(struct smc_link *link)
{
	struct ib_device *ib = link->path.dev->ib;
	u32 i;

	might_sleep();
	for (i = 0; link->slots && link->rx_len > SMC_LINK_MSG_LEN && i < link->rq_size; i++)
		unmap_msgs(ib, link->slots[i].msg, link->slots[i].dma, link->rx_len, DMA_FROM_DEVICE);
	unmap_msgs(ib, link->v2_buf, link->v2_dma, SMC_LINK_V2_BUF_LEN, DMA_FROM_DEVICE);
	unmap_msgs(ib, link->rx_msgs, link->rx_dma, link->rq_size * SMC_LINK_MSG_LEN, DMA_FROM_DEVICE);
	unmap_msgs(ib, link->tx_msgs, link->tx_dma, link->sq_size * SMC_LINK_MSG_LEN, DMA_TO_DEVICE);
	unmap_msgs(ib, link->long_buf, link->long_dma, SMC_LINK_LONG_LEN, DMA_TO_DEVICE);
	kfree(link->signaled);
	kfree(link->slots);
	smc_rdma_vector_put(link->path.dev, link->vector);
}
