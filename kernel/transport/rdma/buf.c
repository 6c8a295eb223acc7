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

/*
 * Allocates pages in groups of 1 << order. A caller whose large order fails may try a smaller one. The kernel kills nothing for a
 * buffer: a connection that gets none is TCP.
 */
static int alloc_pages_of(struct smc_rdma_buf *buf, unsigned int order)
{
	gfp_t gfp = GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN |
		    (order ? __GFP_COMP | __GFP_NORETRY : __GFP_RETRY_MAYFAIL);
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

static bool map_bounces(const struct smc_buf_map *map)
{
	struct scatterlist *sg;
	unsigned int i;

	if (ib_uses_virt_dma(map->ib))
		return false;
	for_each_sgtable_dma_sg(&map->sgt, sg, i)
		if (dma_need_sync(map->ib->dma_device, sg_dma_address(sg)))
			return true;
	return false;
}

static int map_pages(struct smc_buf_map *map, const struct smc_link *link, const struct smc_rdma_buf *buf)
{
	int rc = sg_alloc_table_from_pages(&map->sgt, buf->pages, buf->n_pages, 0, buf->size, GFP_KERNEL);

	lockdep_assert_held(&link->map_rwsem);
	if (rc)
		return rc;
	rc = ib_dma_map_sgtable_attrs(map->ib, &map->sgt, map->dir, 0);
	if (rc)
		sg_free_table(&map->sgt);
	else
		map->bounces = map_bounces(map);
	return rc;
}

static void unmap_pages(struct smc_buf_map *map)
{
	/* Data that has arrived was synchronised when it was reported, and the copy of this link may be older. */
	ib_dma_unmap_sgtable_attrs(map->ib, &map->sgt, map->dir, DMA_ATTR_SKIP_CPU_SYNC);
	sg_free_table(&map->sgt);
}

/* Page by page, because behind an IOMMU pages that follow each other may be anywhere in memory. */
static void sync_pages(const struct smc_buf_map *map, dma_addr_t addr, u32 len, bool for_cpu)
{
	u32 n;

	for (; len; addr += n, len -= n) {
		n = min_t(u32, len, PAGE_SIZE - (addr & (PAGE_SIZE - 1)));
		if (for_cpu)
			dma_sync_single_for_cpu(map->ib->dma_device, addr, n, map->dir);
		else
			dma_sync_single_for_device(map->ib->dma_device, addr, n, map->dir);
	}
}

/* Synchronises no more than it has to: some devices have a copy of the whole buffer, a message may be of one byte. */
static void sync_range(const struct smc_buf_map *map, struct smc_range range, bool for_cpu)
{
	struct smc_range part;
	struct scatterlist *sg;
	unsigned int i;
	u32 start = 0;

	for_each_sgtable_dma_sg(&map->sgt, sg, i) {
		if (smc_range_in_part(range, start, sg_dma_len(sg), &part))
			sync_pages(map, sg_dma_address(sg) + part.off, part.len, for_cpu);
		start += sg_dma_len(sg);
	}
}

/*
 * smc_rdma_buf_sync() - copies bytes of a ring for the adapter of a usable link, after the processor has written them,
 * or from it, before the processor reads them. The buffer bounces on the link. The bytes may wrap around. Softirqs are
 * off, so that the buffer is not unmapped meanwhile.
 */
void smc_rdma_buf_sync(const struct smc_rdma_buf *buf, const struct smc_link *link, u32 off, u64 n)
{
	struct smc_range ranges[2];
	unsigned int i, n_ranges = smc_ring_ranges(buf->size, off, n, ranges);

	lockdep_assert(in_softirq());
	for (i = 0; i < n_ranges; i++)
		sync_range(&buf->maps[link->slot], ranges[i], buf->rmb);
}

/* Key and address are known from here on, and valid once the adapter has registered the memory region. */
static int get_mr(struct smc_buf_map *map, struct smc_link *link, unsigned int n_pages)
{
	struct ib_mr *mr = smc_rdma_alloc_mr(link->pd, &link->limits, n_pages);
	int n;

	if (IS_ERR(mr))
		return PTR_ERR(mr);
	n = ib_map_mr_sg(mr, map->sgt.sgl, map->sgt.nents, NULL, PAGE_SIZE);
	if (n != map->sgt.nents) {
		ib_dereg_mr(mr);
		return n < 0 ? n : -EINVAL;
	}
	map->mr = mr;
	map->addr = mr->iova;
	map->lkey = mr->lkey;
	map->rkey = mr->rkey;
	return 0;
}

/* An adapter sends from memory in one piece without a registration. */
static int get_keys(struct smc_buf_map *map, struct smc_link *link, const struct smc_rdma_buf *buf)
{
	lockdep_assert_held(&link->map_rwsem);
	if (buf->rmb || map->sgt.nents > 1)
		return get_mr(map, link, buf->n_pages);
	map->addr = sg_dma_address(map->sgt.sgl);
	map->lkey = link->pd->local_dma_lkey;
	return 0;
}

/*
 * smc_rdma_buf_map() - maps a buffer for the adapter of a link, and gets its keys. The caller puts the map on the
 * link's list. Return: 0, -ENOMEM and the like.
 *
 * The processor clears an RMB before it is used again, so an RMB is mapped for both directions: with DMA_FROM_DEVICE
 * the zeros would not get to where the adapter writes, and data that the previous connection has received would come
 * back.
 */
int smc_rdma_buf_map(struct smc_rdma_buf *buf, struct smc_link *link)
{
	struct smc_buf_map *map = smc_rdma_buf_map_of(buf, link);
	int rc;

	lockdep_assert_held(&link->map_rwsem);
	might_sleep();
	map->ib = link->path.dev->ib;
	map->dir = buf->rmb ? DMA_BIDIRECTIONAL : DMA_TO_DEVICE;
	rc = map_pages(map, link, buf);
	if (rc)
		return rc;
	rc = get_keys(map, link, buf);
	if (rc)
		unmap_pages(map);
	return rc;
}

/*
 * smc_rdma_buf_unmap() - undoes smc_rdma_buf_map(); programs may still read the buffer. The caller has taken the map
 * off its link's list.
 */
void smc_rdma_buf_unmap(struct smc_buf_map *map)
{
	might_sleep();
	if (map->mr)
		ib_dereg_mr(map->mr);
	unmap_pages(map);
	map->mr = NULL;
	map->registered = false;
	map->key_sent = false;
	map->cleared = 0;
	map->busy = 0;
}

/*
 * smc_rdma_buf_new() - makes an RMB or a send ring, which is zero. The code is its size, as in CLC; the type is
 * net.smc.smcr_buf_type. Return: the buffer, for smc_rdma_buf_discard(), or ERR_PTR(-ENOMEM).
 *
 * Without locks: the memory is charged to the application's cgroup, which may keep it waiting for as long as it likes.
 */
struct smc_rdma_buf *smc_rdma_buf_new(bool rmb, u8 code, unsigned int type)
{
	struct smc_rdma_buf *buf = kzalloc(sizeof(*buf), GFP_KERNEL_ACCOUNT);
	unsigned int i;
	int rc;

	might_sleep();
	if (!buf)
		return ERR_PTR(-ENOMEM);
	INIT_LIST_HEAD(&buf->list);
	INIT_LIST_HEAD(&buf->on_group);
	for (i = 0; i < ARRAY_SIZE(buf->maps); i++)
		INIT_LIST_HEAD(&buf->maps[i].list);
	buf->rmb = rmb;
	buf->code = code;
	buf->size = SMC_RDMA_SIZE_MIN << code;
	rc = get_pages(buf, type);
	if (!rc)
		return buf;
	kfree(buf);
	return ERR_PTR(rc);
}

/* smc_rdma_buf_discard() - frees a buffer that is not mapped for any link, and whose memory the caller releases. Softirq. */
void smc_rdma_buf_discard(struct smc_rdma_buf *buf)
{
	free_pages_of(buf);
	kfree(buf);
}

/* smc_rdma_buf_kind() - returns as what the memory of a buffer counts. Any context. */
enum smc_memory_kind smc_rdma_buf_kind(bool rmb)
{
	return rmb ? SMC_MEMORY_RMB : SMC_MEMORY_SNDBUF;
}

/* smc_rdma_buf_memory() - returns the bytes of memory of a buffer of a size, also before it is made. Any context. */
u64 smc_rdma_buf_memory(u8 code)
{
	return PAGE_ALIGN((u64)SMC_RDMA_SIZE_MIN << code);
}

/* smc_rdma_buf_free() - frees a buffer that no connection has, and that is not mapped for any link. Softirq. */
void smc_rdma_buf_free(struct smc_rdma_buf *buf)
{
	enum smc_memory_kind kind = smc_rdma_buf_kind(buf->rmb);
	u64 bytes = smc_rdma_buf_memory(buf->code);

	smc_rdma_buf_discard(buf);
	smc_memory_release_idle(kind, bytes);
}

/*
 * smc_rdma_buf_hand_over() - gives a buffer to the adapter of a link. Bytes that we have cleared are cleared for the adapter,
 * too, before it writes others. The link is not gone. Any context.
 */
void smc_rdma_buf_hand_over(struct smc_rdma_buf *buf, const struct smc_link *link)
{
	struct smc_buf_map *map = smc_rdma_buf_map_of(buf, link);

	lockdep_assert_held(&link->lock);
	if (map->bounces && map->cleared)
		sync_range(map, (struct smc_range){ .off = 0, .len = map->cleared }, false);
	map->cleared = 0;
}

/*
 * smc_rdma_buf_clear() - clears the bytes that the previous connection has used. A peer can write elsewhere in an RMB,
 * but only to have its own data read.
 */
void smc_rdma_buf_clear(struct smc_rdma_buf *buf)
{
	unsigned int i, n = DIV_ROUND_UP(buf->used, PAGE_SIZE);
	struct smc_buf_map *map;

	might_sleep();
	for (i = 0; i < n; i++)
		clear_highpage(buf->pages[i]);
	/* Bytes that were cleared earlier still have to be synchronised for an adapter that has not had the buffer since. */
	for (map = buf->maps; map < buf->maps + ARRAY_SIZE(buf->maps); map++)
		map->cleared = max_t(u32, map->cleared, min_t(u32, n * PAGE_SIZE, buf->size));
	buf->used = 0;
}
