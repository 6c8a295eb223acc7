/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory that adapters use: RMBs, which the peer writes to, and send rings. Their group keeps both for reuse. */
#ifndef SMC_RDMA_BUF_H
#define SMC_RDMA_BUF_H

#include <linux/dma-direction.h>
#include <linux/list.h>
#include <linux/log2.h>
#include <linux/scatterlist.h>
#include <linux/types.h>

#include "../../control/memory.h"
#include "link.h"

struct ib_device;
struct ib_mr;
struct page;

#define SMC_RDMA_SIZE_MIN 16384
#define SMC_RDMA_CODE_MAX 15
/* A smaller buffer takes as much memory, since buffers have whole pages: 2, which is 64 KiB, with pages of that size. */
#define SMC_RDMA_CODE_PAGE (PAGE_SIZE > SMC_RDMA_SIZE_MIN ? ilog2(PAGE_SIZE / SMC_RDMA_SIZE_MIN) : 0)

/* A buffer as the adapter of a link knows it. */
struct smc_buf_map {
	struct list_head list;		/* link->maps; group->lock. The thread that takes it off the list unmaps the buffer */
	struct ib_device *ib;
	enum dma_data_direction dir;
	struct sg_table sgt;		/* mapped for the device */
	struct ib_mr *mr;		/* RMB, or several pieces */
	u64 addr;			/* of the first byte, as the adapter knows it */
	u32 lkey, rkey;			/* for us, for the peer */
	u32 cleared;			/* bytes, from the first on, that were cleared since the adapter had it last */
	bool bounces;			/* the adapter may have another copy, or the processor's cache: see smc_rdma_buf_sync() */
	bool registered;		/* the adapter knows it, as far as it has to; link->lock */
	bool key_sent;			/* RMB: the key was sent while the link was added; group->lock */
	u64 busy;			/* to send from: up to where in the link's queue */
};

struct smc_rdma_buf {
	struct list_head list;		/* of the group, if no connection has the buffer; group->lock */
	struct list_head on_group;	/* group->bufs; group->lock */
	struct smc_buf_map maps[SMC_LINKS_PER_LGR_MAX];	/* by the link's slot */
	u8 code;
	u8 asked;			/* the code that was asked for; there may have been memory for less */
	u8 id;				/* RMB: from 1; no other of the group has it */
	bool rmb;
	bool registering;		/* it is about to be registered with the adapter of a new link; group->lock */
	bool reused;			/* not its first connection */
	bool announced;			/* RMB: the peer knows it */
	u32 token;			/* RMB: of the connection that had it; as what follows, group->lock */
	bool done;			/* RMB: the peer writes no more */
	bool held;			/* RMB: a program may still read it */
	u32 moved_to;			/* RMB: serial number of the link that the peer has changed to, 0 if it has not */
	unsigned long moved_at;		/* RMB: jiffies; when */
	unsigned long since;		/* RMB: jiffies; when it got onto rmbs_pending */
	u32 size;			/* bytes */
	u32 used;			/* of these, from the first on, may have been written to */
	unsigned int n_pages;
	unsigned int order;		/* pages are allocated in groups of 1 << order */
	struct page **pages;
};

struct smc_rdma_buf *smc_rdma_buf_new(bool rmb, u8 code, unsigned int type);
void smc_rdma_buf_discard(struct smc_rdma_buf *buf);
int smc_rdma_buf_map(struct smc_rdma_buf *buf, struct smc_link *link);
void smc_rdma_buf_unmap(struct smc_buf_map *map);
void smc_rdma_buf_free(struct smc_rdma_buf *buf);
enum smc_memory_kind smc_rdma_buf_kind(bool rmb);
u64 smc_rdma_buf_memory(u8 code);
void smc_rdma_buf_clear(struct smc_rdma_buf *buf);
void smc_rdma_buf_hand_over(struct smc_rdma_buf *buf, const struct smc_link *link);
void smc_rdma_buf_sync(const struct smc_rdma_buf *buf, const struct smc_link *link, u32 off, u64 n);

/* smc_rdma_buf_map_of() - returns what the adapter of a link knows of a buffer. Any context. */
static inline struct smc_buf_map *smc_rdma_buf_map_of(struct smc_rdma_buf *buf, const struct smc_link *link)
{
	return &buf->maps[link->slot];
}

#endif /* SMC_RDMA_BUF_H */
