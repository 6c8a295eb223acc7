// SPDX-License-Identifier: GPL-2.0-only
/* The size of DMBs, and the memory that is reserved for them. */

#include <linux/export.h>
#include <linux/log2.h>

#include "../../control/memory.h"
#include "../../control/sysctl.h"
#include "../../net.h"
#include "ism.h"

/*
 * A buffer that has memory for unread data only may be larger than net.smc.rmem by this factor, so that a stream of data
 * stops less often.
 */
#define PAGED_FACTOR 4
/* The pages that such a buffer can always have, and has room for: 16 KiB with pages of 4 KiB, 256 KiB with pages of 64 KiB. */
#define MIN_PAGES 4
static_assert(MIN_PAGES * PAGE_SIZE <= SMC_ISM_SIZE_MIN << SMC_ISM_CODE_MAX);
/* smc_conn_lowat() leaves a page out of half of the ring. */
static_assert((MIN_PAGES * PAGE_SIZE - SMC_ISM_CDC_LEN) / 2 > PAGE_SIZE);

/* Returns the size code of the buffer that the application, or net.smc.rmem, asks for. */
static u8 dmb_size_code(const struct smc_ism_dev *dev, const struct sock *sk)
{
	u64 want = smc_sysctl_rmem(smc_net(sock_net(sk)));

	if (dev->ops->map)
		want *= PAGED_FACTOR;
	if (sk->sk_userlocks & SOCK_RCVBUF_LOCK)
		want = READ_ONCE(sk->sk_rcvbuf) / 2;
	want = clamp_t(u64, want, SMC_ISM_SIZE_MIN, SMC_ISM_SIZE_MIN << SMC_ISM_CODE_MAX);
	return order_base_2(want) - order_base_2(SMC_ISM_SIZE_MIN);
}

/*
 * Returns the least size code. Where room grows by pages, a ring of few pages would never be half empty. A DMB that has all its pages
 * from the beginning has whole ones. Memory that a provider copies to is no pages of this kernel.
 */
static u8 dmb_min_code(const struct smc_ism_dev *dev)
{
	unsigned long pages = dev->ops->map ? MIN_PAGES : dev->ops->copy ? 0 : 1;

	return order_base_2(max_t(unsigned long, pages * PAGE_SIZE, SMC_ISM_SIZE_MIN)) - order_base_2(SMC_ISM_SIZE_MIN);
}

/* Reserves what the DMB has, or can always have where pages come with data, and makes it. */
static struct smc_ism_dmb *dmb_new(struct smc_ism_dev *dev, u32 len, const u64 peer[2], struct smc_memory_pool *pool)
{
	u32 reserved = dev->ops->map ? MIN_PAGES * PAGE_SIZE : len;
	int rc = smc_memory_reserve(pool, SMC_MEMORY_DMB, reserved);
	struct smc_ism_dmb *dmb;

	if (rc)
		return ERR_PTR(rc);
	dmb = dev->ops->dmb_get(dev, len, peer);
	if (IS_ERR(dmb)) {
		smc_memory_release(pool, SMC_MEMORY_DMB, reserved);
		return dmb;
	}
	dmb->memory = pool;
	dmb->reserved = reserved;
	return dmb;
}

/**
 * smc_ism_dmb_new() - makes the DMB of a connection
 * @dev: the device
 * @sk: the socket
 * @peer: the GID that may write to it, or NULL; see dmb_get of the provider
 * @asked: result: the size code that is asked for
 * @code: result: that of the DMB, which is smaller if memory is short or near a ceiling
 *
 * Return: the DMB, ERR_PTR(-ENOMEM), ERR_PTR(-ENOSPC) of the device, or ERR_PTR(-EDQUOT) at a ceiling.
 */
struct smc_ism_dmb *smc_ism_dmb_new(struct smc_ism_dev *dev, const struct sock *sk, const u64 peer[2], u8 *asked, u8 *code)
{
	struct smc_memory_pool *pool = smc_memory_pool_get(smc_net(sock_net(sk)));
	u8 least = dmb_min_code(dev);
	struct smc_ism_dmb *dmb;

	might_sleep();
	*asked = max(dmb_size_code(dev, sk), least);
	*code = smc_memory_code(pool, *asked, least);
	for (;; --*code) {
		dmb = dmb_new(dev, SMC_ISM_SIZE_MIN << *code, peer, pool);
		if (!IS_ERR(dmb))
			return dmb;
		if (*code == least || (PTR_ERR(dmb) != -ENOMEM && PTR_ERR(dmb) != -EDQUOT))
			break;
	}
	smc_memory_pool_put(pool);
	return dmb;
}

/**
 * smc_ism_dmb_freed() - the memory of a DMB has been freed
 * @dmb: the DMB, whose structure still exists
 *
 * Providers call this once for each DMB.
 *
 * Context: any but hardirq.
 */
void smc_ism_dmb_freed(struct smc_ism_dmb *dmb)
{
	struct smc_memory_pool *pool = dmb->memory;

	/* It was freed before it was in use. */
	if (!pool)
		return;
	smc_memory_release(pool, SMC_MEMORY_DMB, dmb->reserved);
	smc_memory_pool_put(pool);
}
EXPORT_SYMBOL_GPL(smc_ism_dmb_freed);

/**
 * smc_ism_dmb_page() - allocates a page for data of a DMB
 * @dmb: the DMB
 * @held: how many pages it has
 *
 * For a provider whose DMBs have pages only where data is. MIN_PAGES are reserved with the DMB, so that its connection can go on at a
 * ceiling; more are reserved one by one. If there is no memory, the writer waits for the reader instead of having the kernel
 * kill something, as with TCP. For the first page there is no reader to wait for: its control group pays even above its limit.
 *
 * Context: process, may sleep. The writer alone adds pages; others may put some meanwhile.
 * Return: the page, or NULL.
 */
struct page *smc_ism_dmb_page(struct smc_ism_dmb *dmb, atomic_t *held)
{
	int before = atomic_read(held);
	bool more = before >= MIN_PAGES;
	struct page *page;

	might_sleep();
	if (more && smc_memory_reserve(dmb->memory, SMC_MEMORY_DMB, PAGE_SIZE))
		return NULL;
	page = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_HIGHMEM | __GFP_RETRY_MAYFAIL | __GFP_NOWARN | (before ? 0 : __GFP_HIGH));
	if (!page && !before)
		page = alloc_page(GFP_KERNEL | __GFP_HIGHMEM);
	if ((!page || atomic_inc_return(held) <= MIN_PAGES) && more)
		smc_memory_release(dmb->memory, SMC_MEMORY_DMB, PAGE_SIZE);
	return page;
}

/* smc_ism_dmb_put_page() - undoes smc_ism_dmb_page(); a pipe may still have the page. Any context but hardirq. */
void smc_ism_dmb_put_page(struct smc_ism_dmb *dmb, atomic_t *held, struct page *page)
{
	put_page(page);
	if (atomic_dec_return(held) >= MIN_PAGES)
		smc_memory_release(dmb->memory, SMC_MEMORY_DMB, PAGE_SIZE);
}

/*
 * smc_ism_dmb_keeps_page() - may a DMB keep a page without data for its writer? Near a ceiling, others may need it. Any context.
 */
bool smc_ism_dmb_keeps_page(const struct smc_ism_dmb *dmb, const atomic_t *held)
{
	return atomic_read(held) <= MIN_PAGES || !smc_memory_is_near_limit(dmb->memory);
}
