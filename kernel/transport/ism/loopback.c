// SPDX-License-Identifier: GPL-2.0-only
/*
 * An emulated ISM device within this kernel: the writer copies into the reader's DMB, and the reader out of it.
 *
 * A DMB has a page only where there are unread bytes. The writer adds pages, the reader removes each page that it has read
 * and returns it to the writer by a ring. So a connection with small messages uses the same warm page or two, however large
 * its buffer, and an idle connection needs no page. A page that a pipe refers to is not returned.
 *
 * With loopback_move=1 the device acts like hardware, so that the code for hardware can be tested: a DMB has all its pages
 * from the beginning, no one maps it, data is moved there, and a signal is a call.
 */

#include <linux/hashtable.h>
#include <linux/highmem.h>
#include <linux/moduleparam.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/uuid.h>

#include "../../control/memory.h"
#include "provider.h"

#define TABLE_BITS 12

static bool loopback_move;
module_param(loopback_move, bool, 0444);
MODULE_PARM_DESC(loopback_move, "the loopback device acts like one of hardware, for tests");

struct lo_dmb {
	struct smc_ism_dmb	dmb;
	struct hlist_node	node;		/* table; lo_table_lock */
	refcount_t		ref;		/* of the owner and the peer that has mapped it */
	bool			mapped;		/* only once; lo_table_lock */
	bool			filled;		/* has had a page; writer */
	u32			n_pages;
	atomic_t		held;		/* pages that it has, the returned ones included */
	/* A ring of pages that the reader returns to the writer: free[tail..head[. It has room for all pages. */
	unsigned int		head;		/* reader */
	unsigned int		tail;		/* writer */
	struct page		**free;
	struct page		*pages[];	/* of the element, then the ring */
};

static DEFINE_HASHTABLE(lo_table, TABLE_BITS);
static DEFINE_SPINLOCK(lo_table_lock); /* softirqs off */

static struct lo_dmb *lo_of(struct smc_ism_dmb *dmb)
{
	return container_of(dmb, struct lo_dmb, dmb);
}

static void lo_free_page(struct lo_dmb *lo, struct page *page)
{
	if (lo->dmb.rcvbuf.fixed)
		put_page(page);
	else
		smc_ism_dmb_put_page(&lo->dmb, &lo->held, page);
}

static void lo_put(struct lo_dmb *lo)
{
	u32 i;

	if (!refcount_dec_and_test(&lo->ref))
		return;
	for (i = 0; lo->filled && i < 2 * lo->n_pages; i++)
		if (lo->pages[i])
			lo_free_page(lo, lo->pages[i]);
	smc_memory_spare(-(int)(lo->head - lo->tail));
	smc_ism_dmb_freed(&lo->dmb);
	kvfree(lo);
}

static bool lo_reach(struct smc_ism_dev *dev, const u64 gid[2], u16 vlan)
{
	return gid[0] == dev->gid[0] && gid[1] == dev->gid[1];
}

static struct lo_dmb *lo_find(u64 token)
{
	struct lo_dmb *lo;

	lockdep_assert_held(&lo_table_lock);
	hash_for_each_possible(lo_table, lo, node, token)
		if (lo->dmb.token == token)
			return lo;
	return NULL;
}

/*
 * The token gives the right to write, so it is random. A DMB without @gid is not in the table, and its token is a number
 * for listings only.
 */
static void lo_assign_token(struct lo_dmb *lo, const u64 gid[2])
{
	static atomic64_t unnamed;

	if (!gid) {
		lo->dmb.token = atomic64_inc_return(&unnamed);
		lo->dmb.token_used = true;
		return;
	}
	lo->dmb.gid[0] = gid[0];
	lo->dmb.gid[1] = gid[1];
	spin_lock_bh(&lo_table_lock);
	do {
		lo->dmb.token = get_random_u64();
	} while (!lo->dmb.token || lo_find(lo->dmb.token));
	hash_add(lo_table, &lo->node, lo->dmb.token);
	spin_unlock_bh(&lo_table_lock);
}

static struct smc_ism_dmb *lo_dmb_get(struct smc_ism_dev *dev, u32 len, const u64 gid[2])
{
	u32 n = len >> PAGE_SHIFT;
	struct lo_dmb *lo;

	lo = kvzalloc(struct_size(lo, pages, 2 * n), GFP_KERNEL_ACCOUNT);
	if (!lo)
		return ERR_PTR(-ENOMEM);
	lo->n_pages = n;
	lo->free = lo->pages + n;
	refcount_set(&lo->ref, 1);
	lo->dmb.rcvbuf.size = len - SMC_ISM_CDC_LEN;
	lo->dmb.rcvbuf.skip = SMC_ISM_CDC_LEN;
	lo->dmb.rcvbuf.pages = lo->pages;
	lo_assign_token(lo, gid);
	return &lo->dmb;
}

static void lo_dmb_close(struct smc_ism_dev *dev, struct smc_ism_dmb *dmb)
{
	if (hlist_unhashed_lockless(&lo_of(dmb)->node))
		return;
	spin_lock_bh(&lo_table_lock);
	hash_del(&lo_of(dmb)->node);
	spin_unlock_bh(&lo_table_lock);
}

static void lo_dmb_put(struct smc_ism_dev *dev, struct smc_ism_dmb *dmb)
{
	lo_put(lo_of(dmb));
}

static struct smc_ism_dmb *lo_map(struct smc_ism_dev *dev, u64 token, const u64 gid[2])
{
	struct lo_dmb *lo;

	spin_lock_bh(&lo_table_lock);
	lo = lo_find(token);
	if (!lo || lo->mapped || lo->dmb.gid[0] != gid[0] || lo->dmb.gid[1] != gid[1]) {
		spin_unlock_bh(&lo_table_lock);
		return ERR_PTR(-ENOENT);
	}
	lo->mapped = true;
	WRITE_ONCE(lo->dmb.token_used, true);
	refcount_inc(&lo->ref);
	spin_unlock_bh(&lo_table_lock);
	return &lo->dmb;
}

static void lo_share(struct smc_ism_dev *dev, struct smc_ism_dmb *dmb)
{
	refcount_inc(&lo_of(dmb)->ref);
}

static void lo_unmap(struct smc_ism_dev *dev, struct smc_ism_dmb *dmb)
{
	lo_put(lo_of(dmb));
}

/*
 * Returns a page to write to: one that the reader has returned, or a new one. NULL if there is no memory for one now. The caller counts
 * spare pages afterwards, once for all that it takes: see lo_count_taken().
 */
static struct page *lo_get_page(struct lo_dmb *lo)
{
	struct page *page;

	lo->filled = true;
	if (lo->tail == smp_load_acquire(&lo->head)) /* pairs with lo_return_page() */
		return smc_ism_dmb_page(&lo->dmb, &lo->held);
	page = lo->free[lo->tail % lo->n_pages];
	lo->free[lo->tail % lo->n_pages] = NULL;
	smp_store_release(&lo->tail, lo->tail + 1); /* pairs with lo_return_page() */
	return page;
}

/* Counts the spare pages that the writer has taken since its end of the ring was at @tail. */
static void lo_count_taken(const struct lo_dmb *lo, unsigned int tail)
{
	if (lo->tail != tail)
		smc_memory_spare(-(int)(lo->tail - tail));
}

/* The caller counts spare pages. @keep: the DMB may keep it, as smc_ism_dmb_keeps_page() has just said. */
static void lo_return_page(struct lo_dmb *lo, struct page *page, bool keep)
{
	/* A pipe refers to it, or the ring is full, since lo_trim() has freed pages. */
	if (page_ref_count(page) > 1 || lo->head - smp_load_acquire(&lo->tail) == lo->n_pages ||
	    !(keep || smc_ism_dmb_keeps_page(&lo->dmb, &lo->held))) {
		lo_free_page(lo, page);
		return;
	}
	lo->free[lo->head % lo->n_pages] = page;
	smp_store_release(&lo->head, lo->head + 1); /* pairs with lo_get_page() */
}

static ssize_t lo_fill(struct smc_ism_dmb *dmb, u32 off, struct iov_iter *from, u32 len)
{
	struct lo_dmb *lo = lo_of(dmb);
	u32 done = 0;

	while (done < len) {
		u32 at = off + SMC_ISM_CDC_LEN, in = at & (PAGE_SIZE - 1);
		u32 n = min3(len - done, dmb->rcvbuf.size - off, (u32)PAGE_SIZE - in);
		struct page **page = &lo->pages[at >> PAGE_SHIFT];
		size_t copied;

		if (!*page)
			WRITE_ONCE(*page, lo_get_page(lo));
		if (!*page)
			return done ? (ssize_t)done : -ENOMEM;
		copied = copy_page_from_iter(*page, in, n, from);
		done += copied;
		off = off + copied < dmb->rcvbuf.size ? off + copied : 0;
		if (copied < n)
			return done ? (ssize_t)done : -EFAULT;
	}
	return done;
}

/* The writer. smc_tx_room() keeps it off pages that are being read. */
static ssize_t lo_write(struct smc_ism_dmb *dmb, u32 off, struct iov_iter *from, u32 len)
{
	unsigned int tail = lo_of(dmb)->tail;
	ssize_t rc = lo_fill(dmb, off, from, len);

	lo_count_taken(lo_of(dmb), tail);
	return rc;
}

/* The reader removes the pages whose last byte it has read. What one page costs here counts: it is copied in a microsecond. */
static void lo_consumed(struct smc_ism_dmb *dmb, u32 off, u32 len)
{
	u32 first = (off + SMC_ISM_CDC_LEN) >> PAGE_SHIFT;
	u32 end = (off + SMC_ISM_CDC_LEN + len) >> PAGE_SHIFT;
	struct lo_dmb *lo = lo_of(dmb);
	unsigned int head = lo->head;
	bool keep;

	if (first == end)
		return;
	keep = smc_ism_dmb_keeps_page(dmb, &lo->held);
	for (; first < end; first++) {
		struct page *page = lo->pages[first];

		WRITE_ONCE(lo->pages[first], NULL);
		lo_return_page(lo, page, keep);
	}
	smc_memory_spare(lo->head - head);
}

/* Frees the pages that the reader has returned. The caller keeps the writer out. */
static void lo_trim(struct smc_ism_dmb *dmb, bool empty, u32 off)
{
	struct lo_dmb *lo = lo_of(dmb);
	struct page **last = &lo->pages[(off + SMC_ISM_CDC_LEN) >> PAGE_SHIFT];
	unsigned int tail = lo->tail;

	while (lo->tail != smp_load_acquire(&lo->head))
		lo_free_page(lo, lo_get_page(lo));
	lo_count_taken(lo, tail);
	if (empty && *last) {
		lo_free_page(lo, *last);
		WRITE_ONCE(*last, NULL);
	}
}

static struct smc_ism_dmb *lo_dmb_get_with_pages(struct smc_ism_dev *dev, u32 len, const u64 gid[2])
{
	struct smc_ism_dmb *dmb = lo_dmb_get(dev, len, gid);
	u32 i;

	if (IS_ERR(dmb))
		return dmb;
	dmb->rcvbuf.fixed = true;
	lo_of(dmb)->filled = true;
	for (i = 0; i < lo_of(dmb)->n_pages; i++) {
		dmb->rcvbuf.pages[i] = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
		if (dmb->rcvbuf.pages[i])
			continue;
		lo_dmb_close(dev, dmb);
		lo_dmb_put(dev, dmb);
		return ERR_PTR(-ENOMEM);
	}
	return dmb;
}

static struct lo_dmb *lo_find_get(const struct smc_ism_dev *dev, u64 token)
{
	struct lo_dmb *lo;

	spin_lock_bh(&lo_table_lock);
	lo = lo_find(token);
	if (lo && (lo->dmb.gid[0] != dev->gid[0] || lo->dmb.gid[1] != dev->gid[1]))
		lo = NULL;
	if (lo)
		refcount_inc(&lo->ref);
	spin_unlock_bh(&lo_table_lock);
	return lo;
}

/* Copies what may be a message word by word, in order, as the contract of @move requires. */
static void lo_copy(u8 *to, const u8 *from, u32 len)
{
	if (len == SMC_ISM_CDC_LEN && IS_ALIGNED((unsigned long)to, sizeof(u64))) {
		for (; len; len -= sizeof(u64), to += sizeof(u64), from += sizeof(u64))
			smp_store_release((u64 *)to, *(const u64 *)from);
		return;
	}
	memcpy(to, from, len);
}

static int lo_move(struct smc_ism_dev *dev, struct smc_ism_dmb *own, u64 token, u8 index, bool signal, u32 off, void *data, u32 len)
{
	struct lo_dmb *lo = lo_find_get(dev, token);
	u32 done, n;

	if (!lo)
		return -ENOENT;
	if (off > lo->n_pages << PAGE_SHIFT || len > (lo->n_pages << PAGE_SHIFT) - off) {
		lo_put(lo);
		return -EINVAL;
	}
	for (done = 0; done < len; done += n, off += n) {
		n = min_t(u32, len - done, PAGE_SIZE - (off & (PAGE_SIZE - 1)));
		lo_copy(page_address(lo->pages[off >> PAGE_SHIFT]) + (off & (PAGE_SIZE - 1)), data + done, n);
	}
	if (signal) {
		local_bh_disable();
		smc_ism_signalled(&lo->dmb);
		local_bh_enable();
	}
	lo_put(lo);
	return 0;
}

/* The operations that a hardware device has. */
static const struct smc_ism_ops lo_move_ops = {
	.reach		= lo_reach,
	.dmb_get	= lo_dmb_get_with_pages,
	.dmb_close	= lo_dmb_close,
	.dmb_put	= lo_dmb_put,
	.move		= lo_move,
};

static const struct smc_ism_ops lo_ops = {
	.reach		= lo_reach,
	.dmb_get	= lo_dmb_get,
	.dmb_close	= lo_dmb_close,
	.dmb_put	= lo_dmb_put,
	.map		= lo_map,
	.share		= lo_share,
	.unmap		= lo_unmap,
	.write		= lo_write,
	.consumed	= lo_consumed,
	.trim		= lo_trim,
};

static struct smc_ism_dev lo_device = {
	.ops	= &lo_ops,
	.name	= "loopback-ism",
	.chid	= SMC_ISM_CHID_LOOPBACK,
	.v2	= true,
	.host	= true,
};

/* smc_loopback_init() - registers the device, at load. Return: 0 or a negative errno. */
int __init smc_loopback_init(void)
{
	uuid_t id;

	might_sleep();
	uuid_gen(&id);
	memcpy(lo_device.gid, &id, sizeof(lo_device.gid));
	if (loopback_move)
		lo_device.ops = &lo_move_ops;
	return smc_ism_register(&lo_device);
}

/* smc_loopback_exit() - undoes it, at unload, when no connection is left. */
void smc_loopback_exit(void)
{
	might_sleep();
	smc_ism_unregister(&lo_device);
}
