// SPDX-License-Identifier: GPL-2.0-only
/* Buffers: their pages, and what makes an adapter find them (docs/protocol.md, 6). */

#include <linux/dma-mapping.h>
#include <linux/highmem.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>

#include "buf.h"
#include "link.h"
#include "range.h"

/* net.smc.smcr_buf_type */
enum { CONTIGUOUS, PAGES, EITHER };

static void free_pages_of(struct smc_rdma_buf *buf)
{
	unsigned int i;

	for (i = 0; i < buf->n_pages; i += 1U << buf->order)
		if (buf->pages[i])
			__free_pages(buf->pages[i], buf->order);
	kvfree(buf->pages);
}

/* Gets pages, so many together. Who fails here may try with fewer. */
static int alloc_pages_of(struct smc_rdma_buf *buf, unsigned int order)
{
	gfp_t gfp = GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN | (order ? __GFP_COMP | __GFP_NORETRY : 0);
	unsigned int i, j;

	buf->order = order;
	buf->n_pages = DIV_ROUND_UP(buf->size, PAGE_SIZE);
	buf->pages = kvcalloc(buf->n_pages, sizeof(*buf->pages), GFP_KERNEL_ACCOUNT);
	if (!buf->pages)
		return -ENOMEM;
	for (i = 0; i < buf->n_pages; i += 1U << order) {
		struct page *page = alloc_pages(gfp, order);

		if (!page) {
			free_pages_of(buf);
			buf->pages = NULL;
			return -ENOMEM;
		}
		for (j = 0; j < 1U << order; j++)
			buf->pages[i + j] = page + j;
	}
	return 0;
}

static int get_pages(struct smc_rdma_buf *buf, unsigned int type)
{
	unsigned int whole = get_order(buf->size);
	int rc = -ENOMEM;

	if (type != PAGES && whole <= MAX_PAGE_ORDER)
		rc = alloc_pages_of(buf, whole);
	if (rc && type != CONTIGUOUS)
		rc = alloc_pages_of(buf, 0);
	return rc;
}

/*
 * The processor clears an RMB before it is used again, so an RMB is for both directions: with DMA_FROM_DEVICE
 * the zeros would not get to where the adapter writes, and what the previous connection has received there
 * would come back.
 */
static enum dma_data_direction direction(const struct smc_rdma_buf *buf)
{
	return buf->rmb ? DMA_BIDIRECTIONAL : DMA_TO_DEVICE;
}

static bool bounces(const struct smc_rdma_buf *buf)
{
	struct scatterlist *sg;
	unsigned int i;

	if (ib_uses_virt_dma(buf->ib))
		return false;
	for_each_sgtable_dma_sg(&buf->sgt, sg, i)
		if (dma_need_sync(buf->ib->dma_device, sg_dma_address(sg)))
			return true;
	return false;
}

static int map(struct smc_rdma_buf *buf)
{
	int rc = sg_alloc_table_from_pages(&buf->sgt, buf->pages, buf->n_pages, 0, buf->size, GFP_KERNEL);

	if (rc)
		return rc;
	rc = ib_dma_map_sgtable_attrs(buf->ib, &buf->sgt, direction(buf), 0);
	if (rc)
		sg_free_table(&buf->sgt);
	else
		buf->bounces = bounces(buf);
	return rc;
}

/* Page by page, as behind an IOMMU pages that follow each other may be anywhere in memory. */
static void sync_pages(struct smc_rdma_buf *buf, dma_addr_t addr, u32 len, bool for_cpu)
{
	u32 n;

	for (; len; addr += n, len -= n) {
		n = min_t(u32, len, PAGE_SIZE - (addr & (PAGE_SIZE - 1)));
		if (for_cpu)
			dma_sync_single_for_cpu(buf->ib->dma_device, addr, n, direction(buf));
		else
			dma_sync_single_for_device(buf->ib->dma_device, addr, n, direction(buf));
	}
}

/* Of a large buffer that is copied whole, a message of one byte would cost as much as all of the buffer. */
static void sync_range(struct smc_rdma_buf *buf, struct smc_range range, bool for_cpu)
{
	struct smc_range part;
	struct scatterlist *sg;
	unsigned int i;
	u32 start = 0;

	for_each_sgtable_dma_sg(&buf->sgt, sg, i) {
		if (smc_range_in_part(range, start, sg_dma_len(sg), &part))
			sync_pages(buf, sg_dma_address(sg) + part.off, part.len, for_cpu);
		start += sg_dma_len(sg);
	}
}

/**
 * smc_rdma_buf_sync() - after the processor has written what the adapter sends, or before it reads what that
 *                       has received
 * @buf: a buffer that bounces, of a link that is usable
 * @off: where the first byte is
 * @n: bytes, which may wrap around
 *
 * Context: any; softirqs are off, so that the buffer is not detached meanwhile.
 */
void smc_rdma_buf_sync(struct smc_rdma_buf *buf, u32 off, u64 n)
{
	struct smc_range ranges[2];
	unsigned int i, n_ranges = smc_ring_ranges(buf->size, off, n, ranges);

	for (i = 0; i < n_ranges; i++)
		sync_range(buf, ranges[i], buf->rmb);
}

static void unmap(struct smc_rdma_buf *buf)
{
	ib_dma_unmap_sgtable_attrs(buf->ib, &buf->sgt, direction(buf), 0);
	sg_free_table(&buf->sgt);
}

/* Key and address are known from here on; they are valid once the adapter has been told. */
static int get_mr(struct smc_rdma_buf *buf, struct smc_link *link)
{
	struct ib_mr *mr = smc_rdma_alloc_mr(link->pd, &link->limits, buf->n_pages);
	int n;

	if (IS_ERR(mr))
		return PTR_ERR(mr);
	n = ib_map_mr_sg(mr, buf->sgt.sgl, buf->sgt.nents, NULL, PAGE_SIZE);
	if (n != buf->sgt.nents) {
		ib_dereg_mr(mr);
		return n < 0 ? n : -EINVAL;
	}
	buf->mr = mr;
	buf->addr = mr->iova;
	buf->lkey = mr->lkey;
	buf->rkey = mr->rkey;
	return 0;
}

/* What is in one piece can be sent from without a registration. */
static int attach(struct smc_rdma_buf *buf, struct smc_link *link)
{
	if (buf->rmb || buf->sgt.nents > 1)
		return get_mr(buf, link);
	buf->addr = sg_dma_address(buf->sgt.sgl);
	buf->lkey = link->pd->local_dma_lkey;
	return 0;
}

/**
 * smc_rdma_buf_new() - a buffer for the device of a link
 * @link: the link
 * @rmb: for the peer to write to, else to send from
 * @code: its size, as in CLC
 * @type: net.smc.smcr_buf_type
 *
 * Its bytes are zero. May sleep. Return: the buffer, or ERR_PTR(-ENOMEM) and the like.
 */
struct smc_rdma_buf *smc_rdma_buf_new(struct smc_link *link, bool rmb, u8 code, unsigned int type)
{
	struct smc_rdma_buf *buf = kzalloc(sizeof(*buf), GFP_KERNEL_ACCOUNT);
	int rc;

	if (!buf)
		return ERR_PTR(-ENOMEM);
	INIT_LIST_HEAD(&buf->list);
	INIT_LIST_HEAD(&buf->all);
	buf->rmb = rmb;
	buf->code = code;
	buf->size = SMC_RDMA_SIZE_MIN << code;
	buf->ib = link->path.dev->ib;
	rc = get_pages(buf, type);
	if (rc)
		goto err_buf;
	rc = map(buf);
	if (rc)
		goto err_pages;
	rc = attach(buf, link);
	if (rc)
		goto err_map;
	return buf;

err_map:
	unmap(buf);
err_pages:
	free_pages_of(buf);
err_buf:
	kfree(buf);
	return ERR_PTR(rc);
}

/*
 * smc_rdma_buf_detach() - no adapter uses it any more, as its link is gone; who has it may still
 * read it. May sleep.
 */
void smc_rdma_buf_detach(struct smc_rdma_buf *buf)
{
	might_sleep();
	if (!buf->ib)
		return;
	if (buf->mr)
		ib_dereg_mr(buf->mr);
	unmap(buf);
	buf->mr = NULL;
	buf->ib = NULL;
}

/* smc_rdma_buf_free() - gives it back, once it is detached. Softirq. */
void smc_rdma_buf_free(struct smc_rdma_buf *buf)
{
	free_pages_of(buf);
	kfree(buf);
}

/*
 * smc_rdma_buf_hand_over() - the adapter has it from here on. What we have cleared does not come over what
 * it writes, and is cleared for the adapter, too. The caller holds link->lock, and the link is not gone. Does
 * not sleep.
 */
void smc_rdma_buf_hand_over(struct smc_rdma_buf *buf)
{
	if (buf->bounces && buf->cleared)
		sync_range(buf, (struct smc_range){ .off = 0, .len = buf->cleared }, false);
	buf->cleared = 0;
}

/*
 * smc_rdma_buf_clear() - before another connection has it: what is known to have been used. A peer can
 * write elsewhere in an RMB, but that is its own data, and it alone can have it read. May sleep.
 */
void smc_rdma_buf_clear(struct smc_rdma_buf *buf)
{
	unsigned int i, n = DIV_ROUND_UP(buf->used, PAGE_SIZE);

	for (i = 0; i < n; i++)
		clear_highpage(buf->pages[i]);
	/* What an earlier clearing has left to be synchronised is still to be, if no link has had the buffer since. */
	buf->cleared = max_t(u32, buf->cleared, min_t(u32, n * PAGE_SIZE, buf->size));
	buf->used = 0;
}
