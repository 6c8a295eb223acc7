/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory that an adapter reads from or writes to: RMBs, which the peer writes to, and rings that
 * data is sent from. Both are kept by their group for the next connection.
 */
#ifndef SMC_RDMA_BUF_H
#define SMC_RDMA_BUF_H

#include <linux/list.h>
#include <linux/scatterlist.h>
#include <linux/types.h>

struct ib_device;
struct ib_mr;
struct page;
struct smc_link;

#define SMC_RDMA_SIZE_MIN 16384
#define SMC_RDMA_CODE_MAX 15

struct smc_rdma_buf {
	struct list_head list;		/* of the group, if no connection has it; the group's lock */
	struct list_head all;		/* group->bufs; likewise */
	u8 code;
	u8 asked;			/* the code that was asked for; there may have been memory for less */
	u8 id;				/* RMB: from 1; no other of the group has it */
	bool rmb;
	bool reused;			/* not its first connection */
	bool registered;		/* the adapter knows it, as far as it has to; link->lock */
	bool bounces;			/* the adapter may have another copy, or the processor's cache: see smc_rdma_buf_sync() */
	bool announced;			/* RMB: the peer knows it, too */
	u32 token;			/* RMB: of the connection that had it; as what follows, the group's lock */
	bool done;			/* RMB: the peer writes no more */
	bool held;			/* RMB: someone here may still read */
	u64 busy;			/* to send from: up to where in the link's queue */
	unsigned long since;		/* RMB: jiffies; when it got onto rmbs_pending */
	u32 size;			/* bytes */
	u32 used;			/* of these, from the first on, may have been written to */
	u32 cleared;		/* of these, from the first on, were cleared since the adapter had it last */
	unsigned int n_pages;
	unsigned int order;		/* pages are allocated by so many */
	struct page **pages;
	struct sg_table sgt;		/* mapped for the device */
	struct ib_device *ib;
	struct ib_mr *mr;		/* RMB, or several pieces */
	u64 addr;			/* of the first byte, as the adapter knows it */
	u32 lkey, rkey;			/* for us, for the peer */
};

struct smc_rdma_buf *smc_rdma_buf_new(struct smc_link *link, bool rmb, u8 code, unsigned int type);
void smc_rdma_buf_detach(struct smc_rdma_buf *buf);
void smc_rdma_buf_free(struct smc_rdma_buf *buf);
void smc_rdma_buf_clear(struct smc_rdma_buf *buf);
void smc_rdma_buf_hand_over(struct smc_rdma_buf *buf);
void smc_rdma_buf_sync(struct smc_rdma_buf *buf, u32 off, u64 n);

#endif /* SMC_RDMA_BUF_H */
