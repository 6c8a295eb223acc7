// SPDX-License-Identifier: GPL-2.0-only
/*
 * DMBs in memory that guests share. The owner makes them in its own area; the token, which travels by CLC, says where. A writer
 * copies straight into them.
 *
 * The owner cannot take a DMB away from a writer that is copying. So a writer names the token in a place of its own before it looks
 * whether the token still holds, and the owner uses the memory again when the writer does not name it, or has left. A writer never
 * waits meanwhile: a page of the application that is not there ends the copy.
 */

#include <linux/bitmap.h>
#include <linux/pagemap.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "fabric.h"
#include "ism.h"

/* The most that is copied without a pause, in bytes */
#define COPY_MAX 65536

/* A DMB of each size code is blocks of the fabric, whatever the page size of the members. */
static_assert(SMC_FABRIC_BLOCK_LEN == SMC_ISM_SIZE_MIN);
static_assert(SMC_FABRIC_DMB_BLOCKS_MAX == 1 << SMC_ISM_CODE_MAX);
/* smc_fabric_is_possible() has blocks begin at multiples of 4096, and the message at the beginning of a DMB is written in words. */
static_assert(SMC_FABRIC_BLOCK_LEN % 4096 == 0 && SMC_ISM_CDC_LEN % sizeof(u64) == 0);

static struct smc_fabric_dmb *fabric_dmb_of(struct smc_ism_dmb *dmb)
{
	return container_of(dmb, struct smc_fabric_dmb, dmb);
}

static u8 *block_at(const struct smc_fabric *f, u8 member, u32 block)
{
	return smc_fabric_area(f, member) + f->blocks_at + (u64)block * SMC_FABRIC_BLOCK_LEN;
}

static u32 place_len(const struct smc_fabric_place *p)
{
	return p->n * SMC_FABRIC_BLOCK_LEN;
}

/* Finds where a token leads. Return: false if there cannot be a DMB with @len bytes at @off. */
static bool find_range(const struct smc_fabric *f, u64 token, u32 off, u32 len, struct smc_fabric_place *p)
{
	return smc_fabric_place_of(f, token, p) && off <= place_len(p) && len <= place_len(p) - off;
}

/* Takes @n blocks that follow each other. Return: the first, or n_blocks if there are none. */
static u32 take_blocks(struct smc_fabric *f, u32 n)
{
	unsigned long at;

	spin_lock_bh(&f->lock);
	at = bitmap_find_next_zero_area(f->used, f->n_blocks, 0, n, 0);
	if (at < f->n_blocks) {
		bitmap_set(f->used, at, n);
		f->top = max_t(u32, f->top, at + n);
	}
	spin_unlock_bh(&f->lock);
	if (at >= f->n_blocks)
		return f->n_blocks;
	atomic64_add((u64)n * SMC_FABRIC_BLOCK_LEN, &f->used_bytes);
	return at;
}

/* smc_fabric_return_blocks() - has blocks used again. Process context or softirq. */
void smc_fabric_return_blocks(struct smc_fabric *f, u32 block, u32 n)
{
	unsigned long last;

	spin_lock_bh(&f->lock);
	bitmap_clear(f->used, block, n);
	last = find_last_bit(f->used, f->n_blocks);
	f->top = last < f->n_blocks ? last + 1 : 0;
	spin_unlock_bh(&f->lock);
	atomic64_sub((u64)n * SMC_FABRIC_BLOCK_LEN, &f->used_bytes);
}

/* smc_fabric_dmb_free() - frees a closed DMB, to which no one writes. Process context or softirq. */
void smc_fabric_dmb_free(struct smc_fabric_dmb *d)
{
	spin_lock_bh(&d->fabric->lock);
	hash_del(&d->peer_node);
	spin_unlock_bh(&d->fabric->lock);
	smc_fabric_return_blocks(d->fabric, d->block, d->n);
	smc_fabric_put(d->fabric);
	kfree(d);
}

/*
 * The memory is cleared, since the peer may claim to have written what an earlier connection has left there. Return: false if
 * this host has left the fabric.
 */
static bool dmb_open(struct smc_fabric_dmb *d, const u64 gid[2])
{
	struct smc_fabric *f = d->fabric;
	u8 *mem = block_at(f, f->own, d->block);
	u32 len = d->n * SMC_FABRIC_BLOCK_LEN;

	RCU_LOCKDEP_WARN(!rcu_read_lock_held(), "the device may go");
	if (READ_ONCE(f->gone))
		return false;
	memset(mem, 0, len);
	WRITE_ONCE(smc_fabric_area(f, f->own)[SMC_FABRIC_SIGNALS + d->block], 0);
	smc_fabric_write64(smc_fabric_descriptor(f, f->own, d->block) + SMC_FABRIC_DMB_COPIES, 0);
	smc_fabric_write64(smc_fabric_descriptor(f, f->own, d->block) + SMC_FABRIC_DMB_SENDS, 0);
	d->dmb.token = smc_fabric_token(f->own, d->block, ilog2(d->n), get_random_u64());
	d->dmb.gid[0] = gid[0];
	d->dmb.gid[1] = gid[1];
	d->dmb.rcvbuf = (struct smc_rcvbuf){
		.size = len - SMC_ISM_CDC_LEN, .skip = SMC_ISM_CDC_LEN, .fixed = true, .mem = mem,
		.gone = &f->gone,
	};
	smc_fabric_write64(smc_fabric_descriptor(f, f->own, d->block) + SMC_FABRIC_DMB_WRITER, gid[1]);
	virt_wmb(); /* the memory is cleared, and for its writer, before that may write there; pairs with is_writable() */
	spin_lock_bh(&f->lock);
	f->dmbs[d->block] = d;
	smc_fabric_write64(smc_fabric_descriptor(f, f->own, d->block) + SMC_FABRIC_DMB_TOKEN, d->dmb.token);
	spin_unlock_bh(&f->lock);
	return true;
}

/* Has another member overwritten a DMB's descriptor? */
static bool is_damaged(const struct smc_fabric *f, const struct smc_fabric_dmb *d)
{
	const u8 *at = smc_fabric_descriptor(f, f->own, d->block);

	return smc_fabric_read64(at + SMC_FABRIC_DMB_TOKEN) != d->dmb.token ||
	       smc_fabric_read64(at + SMC_FABRIC_DMB_WRITER) != d->dmb.gid[1];
}

/**
 * smc_fabric_dmb_at() - finds an open DMB
 * @f: the fabric
 * @block: its first block
 * @damaged: result: another member has overwritten its descriptor, so that its peer cannot write any more; may be NULL
 *
 * Context: softirq, under RCU until the result is not needed any more: its connection frees it after a grace period at the
 * earliest.
 * Return: the DMB or NULL.
 */
struct smc_ism_dmb *smc_fabric_dmb_at(struct smc_fabric *f, u32 block, bool *damaged)
{
	struct smc_fabric_dmb *d;

	RCU_LOCKDEP_WARN(!rcu_read_lock_held(), "the DMB may go");
	spin_lock(&f->lock);
	d = f->dmbs[block];
	if (damaged)
		*damaged = d && is_damaged(f, d);
	spin_unlock(&f->lock);
	return d ? &d->dmb : NULL;
}

static struct smc_ism_dmb *fabric_dmb_get(struct smc_ism_dev *dev, u32 len, const u64 gid[2])
{
	struct smc_fabric *f = smc_fabric_of(dev);
	u32 n = len / SMC_FABRIC_BLOCK_LEN;
	struct smc_fabric_dmb *d;
	bool ok;

	might_sleep();
	/* Later, its departure has to be noticed. */
	if (!smc_fabric_knows(f, gid))
		return ERR_PTR(-ENOSPC);
	d = kzalloc(sizeof(*d), GFP_KERNEL_ACCOUNT);
	if (!d)
		return ERR_PTR(-ENOMEM);
	d->fabric = f;
	d->n = n;
	d->block = take_blocks(f, n);
	if (d->block == f->n_blocks) {
		kfree(d);
		/* A smaller one may fit. */
		return ERR_PTR(n > 1 ? -ENOMEM : -ENOSPC);
	}
	smc_fabric_get(f);
	rcu_read_lock();
	ok = dmb_open(d, gid);
	rcu_read_unlock();
	if (ok)
		return &d->dmb;
	smc_fabric_dmb_free(d);
	return ERR_PTR(-ENOSPC);
}

static void fabric_dmb_close(struct smc_ism_dev *dev, struct smc_ism_dmb *dmb)
{
	struct smc_fabric_dmb *d = fabric_dmb_of(dmb);
	struct smc_fabric *f = d->fabric;

	spin_lock_bh(&f->lock);
	if (f->dmbs[d->block] == d)
		f->dmbs[d->block] = NULL;
	spin_unlock_bh(&f->lock);
	rcu_read_lock();
	if (!READ_ONCE(f->gone))
		smc_fabric_write64(smc_fabric_descriptor(f, f->own, d->block) + SMC_FABRIC_DMB_TOKEN, 0);
	rcu_read_unlock();
}

static void fabric_dmb_put(struct smc_ism_dev *dev, struct smc_ism_dmb *dmb)
{
	struct smc_fabric_dmb *d = fabric_dmb_of(dmb);
	struct smc_fabric *f = d->fabric;
	bool later;

	/* The memory is not this host's, so nothing here has to wait for it. */
	smc_ism_dmb_freed(dmb);
	virt_mb(); /* pairs with begin_writing(): the writer sees that there is no token, or we see that it writes */
	spin_lock_bh(&f->lock);
	later = !f->gone && (!d->peer || smc_fabric_is_written(f, d));
	if (later)
		list_add_tail(&d->list, &f->closing);
	spin_unlock_bh(&f->lock);
	if (!later)
		smc_fabric_dmb_free(d);
}

/* Does a DMB have this token, and is it this host that may write to it? */
static bool is_writable(const struct smc_fabric *f, const struct smc_fabric_place *p, u64 token)
{
	const u8 *at = smc_fabric_descriptor(f, p->member, p->block);

	if (smc_fabric_read64(at + SMC_FABRIC_DMB_TOKEN) != token)
		return false;
	virt_rmb(); /* pairs with dmb_open() */
	return smc_fabric_read64(at + SMC_FABRIC_DMB_WRITER) == f->dev.gid[1];
}

/*
 * Begins to write to the peer's DMB: @p is where its token leads, @how a word of the descriptor of our own DMB. Return: the peer's DMB, or
 * NULL if there is none. The caller does not sleep until end_writing().
 */
static u8 *begin_writing(struct smc_fabric_dmb *own, u64 token, const struct smc_fabric_place *p, unsigned int how)
{
	struct smc_fabric *f = own->fabric;
	u8 *word = smc_fabric_descriptor(f, f->own, own->block) + how;

	RCU_LOCKDEP_WARN(!rcu_read_lock_held(), "the device may go");
	if (READ_ONCE(f->gone))
		return NULL;
	smc_fabric_write64(word, token);
	virt_mb(); /* pairs with fabric_dmb_put() of the owner */
	if (is_writable(f, p, token))
		return block_at(f, p->member, p->block);
	smc_fabric_write64(word, 0);
	return NULL;
}

static void end_writing(const struct smc_fabric_dmb *own, unsigned int how)
{
	u64 *word = (u64 *)(smc_fabric_descriptor(own->fabric, own->fabric->own, own->block) + how);

	virt_store_release(word, 0);
}

/* Copies words in their order, as the contract of @move requires: what is moved is a CDC message. */
static void copy_words(u8 *to, const u8 *from, u32 len)
{
	for (; len >= sizeof(u64); len -= sizeof(u64), to += sizeof(u64), from += sizeof(u64))
		virt_store_release((u64 *)to, *(const u64 *)from);
}

static int fabric_move(struct smc_ism_dev *dev, struct smc_ism_dmb *own, u64 token, u8 index, bool signal, u32 off, void *data,
		       u32 len)
{
	struct smc_fabric_dmb *d = fabric_dmb_of(own);
	struct smc_fabric_place p;
	int rc = 0;
	u8 *dmb;

	if (!find_range(d->fabric, token, off, len, &p) || !IS_ALIGNED(off | len, sizeof(u64)))
		return -EINVAL;
	rcu_read_lock();
	dmb = begin_writing(d, token, &p, SMC_FABRIC_DMB_SENDS);
	if (dmb) {
		copy_words(dmb + off, data, len);
		end_writing(d, SMC_FABRIC_DMB_SENDS);
		if (signal)
			smc_fabric_signal(d->fabric, p.member, p.block);
	} else {
		rc = -ENOENT;
	}
	rcu_read_unlock();
	return rc;
}

/* Copies what can be read without a page fault. Return: bytes, or -ENOENT. */
static ssize_t copy_some(struct smc_fabric_dmb *own, u64 token, const struct smc_fabric_place *p, u32 off, struct iov_iter *from, u32 len)
{
	ssize_t n = -ENOENT;
	u8 *dmb;

	rcu_read_lock();
	dmb = begin_writing(own, token, p, SMC_FABRIC_DMB_COPIES);
	if (dmb) {
		pagefault_disable();
		n = copy_from_iter(dmb + off, len, from);
		pagefault_enable();
		end_writing(own, SMC_FABRIC_DMB_COPIES);
	}
	rcu_read_unlock();
	return n;
}

static ssize_t fabric_copy(struct smc_ism_dmb *own, u64 token, u32 off, struct iov_iter *from, u32 len)
{
	struct smc_fabric_dmb *d = fabric_dmb_of(own);
	struct smc_fabric_place p;
	u32 done = 0;

	might_sleep();
	if (!find_range(d->fabric, token, off, len, &p))
		return -EINVAL;
	while (done < len) {
		u32 want = min_t(u32, len - done, COPY_MAX);
		ssize_t n = copy_some(d, token, &p, off + done, from, want);

		if (n < 0)
			return n;
		done += n;
		if (n < want && fault_in_iov_iter_readable(from, want - n) == want - n)
			return done ? (ssize_t)done : -EFAULT;
		cond_resched();
	}
	return done;
}

static bool fabric_reach(struct smc_ism_dev *dev, const u64 gid[2], u16 vlan)
{
	return smc_fabric_reaches(smc_fabric_of(dev), gid);
}

/* Returns the DMB whose connection writes to the peer's DMB with a token, or NULL. */
static struct smc_fabric_dmb *dmb_of_peer(struct smc_fabric *f, u64 token)
{
	struct smc_fabric_dmb *d;

	lockdep_assert_held(&f->lock);
	hash_for_each_possible(f->peers, d, peer_node, token)
		if (d->peer == token)
			return d;
	return NULL;
}

/* The peer names its DMB in CLC, where anybody could name that of another connection: no two connections write to one. Does not sleep. */
static bool fabric_set_peer(struct smc_ism_dmb *own, u64 token, u8 index, u32 len)
{
	struct smc_fabric_dmb *d = fabric_dmb_of(own);
	struct smc_fabric *f = d->fabric;
	struct smc_fabric_place p;
	bool ok;

	if (!smc_fabric_place_of(f, token, &p) || place_len(&p) != len || index || p.member != own->gid[1] >> SMC_FABRIC_TOKEN_MEMBER)
		return false;
	spin_lock_bh(&f->lock);
	ok = !dmb_of_peer(f, token);
	if (ok) {
		d->peer = token;
		hash_add(f->peers, &d->peer_node, token);
	}
	spin_unlock_bh(&f->lock);
	return ok;
}

const struct smc_ism_ops smc_fabric_ops = {
	.reach		= fabric_reach,
	.dmb_get	= fabric_dmb_get,
	.dmb_close	= fabric_dmb_close,
	.dmb_put	= fabric_dmb_put,
	.set_peer	= fabric_set_peer,
	.move		= fabric_move,
	.copy		= fabric_copy,
};

/* smc_fabric_dmbs_init() - makes the own area empty. Return: 0 or -ENOMEM; what is allocated goes with the fabric. */
int smc_fabric_dmbs_init(struct smc_fabric *f)
{
	u32 block;

	might_sleep();
	f->used = bitmap_zalloc(f->n_blocks, GFP_KERNEL);
	f->dmbs = kvcalloc(f->n_blocks, sizeof(*f->dmbs), GFP_KERNEL);
	if (!f->used || !f->dmbs)
		return -ENOMEM;
	for (block = 0; block < f->n_blocks; block++)
		memset(smc_fabric_descriptor(f, f->own, block), 0, SMC_FABRIC_DMB_LEN);
	virt_mb(); /* pairs with begin_writing() */
	memset(smc_fabric_area(f, f->own) + SMC_FABRIC_SIGNALS, 0, f->n_blocks);
	return smc_fabric_keep_written(f);
}
