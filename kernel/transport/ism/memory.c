// SPDX-License-Identifier: GPL-2.0-only
/* The size of DMBs, and the memory that is reserved for them. */

#include <linux/log2.h>

#include "../../control/memory.h"
#include "../../control/sysctl.h"
#include "../../net.h"
#include "ism.h"

#define CODE_MAX 6

/*
 * A buffer that has memory for unread data only may be larger than net.smc.rmem by this factor, so that a stream of data
 * stops less often.
 */
#define PAGED_FACTOR 4

/* Returns the size code of the buffer that the application, or net.smc.rmem, asks for. */
static u8 dmb_size_code(const struct smc_ism_dev *dev, const struct sock *sk)
{
	u64 want = smc_sysctl_rmem(smc_net(sock_net(sk)));

	if (dev->ops->map)
		want *= PAGED_FACTOR;
	if (sk->sk_userlocks & SOCK_RCVBUF_LOCK)
		want = READ_ONCE(sk->sk_rcvbuf) / 2;
	want = clamp_t(u64, want, SMC_ISM_SIZE_MIN, SMC_ISM_SIZE_MIN << CODE_MAX);
	return order_base_2(want) - order_base_2(SMC_ISM_SIZE_MIN);
}

/*
 * Returns the least size code. Where room grows by pages, a ring of few pages would never be half empty, so it has four at
 * least: 16 KiB with pages of 4 KiB.
 */
static u8 dmb_min_code(const struct smc_ism_dev *dev)
{
	return dev->ops->map ? order_base_2(4 * PAGE_SIZE) - order_base_2(SMC_ISM_SIZE_MIN) : 0;
}

static u32 dmb_len(const struct smc_ism_dmb *dmb)
{
	return dmb->rcvbuf.size + dmb->rcvbuf.skip;
}

/* Reserves the whole DMB, so that its writer never runs into the ceiling, and makes it. */
static struct smc_ism_dmb *dmb_new(struct smc_ism_dev *dev, u32 len, const u64 peer[2], struct smc_memory_pool *pool)
{
	struct smc_ism_dmb *dmb;
	int rc = smc_memory_reserve(pool, SMC_MEMORY_DMB, len);

	if (rc)
		return ERR_PTR(rc);
	dmb = dev->ops->dmb_get(dev, len, peer);
	if (IS_ERR(dmb)) {
		smc_memory_release(pool, SMC_MEMORY_DMB, len);
		return dmb;
	}
	dmb->memory = pool;
	if (dmb->rcvbuf.fixed)
		smc_memory_use_dmb(pool, len >> PAGE_SHIFT);
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
 * Context: process, may sleep.
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
 * Providers call this once for each DMB. Those that make its pages count for themselves how many exist.
 *
 * Context: any but hardirq.
 */
void smc_ism_dmb_freed(struct smc_ism_dmb *dmb)
{
	struct smc_memory_pool *pool = dmb->memory;

	/* It was freed before it was in use. */
	if (!pool)
		return;
	if (dmb->rcvbuf.fixed)
		smc_memory_use_dmb(pool, -(int)(dmb_len(dmb) >> PAGE_SHIFT));
	smc_memory_release(pool, SMC_MEMORY_DMB, dmb_len(dmb));
	smc_memory_pool_put(pool);
}
