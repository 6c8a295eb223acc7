/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory that guests of one host share, as a provider: fabric.c is the ivshmem device and the other members, fabric_dmb.c has the
 * DMBs, fabric_reuse.c what becomes of their memory, fabric_signal.c the signals.
 */
#ifndef SMC_TRANSPORT_ISM_FABRIC_H
#define SMC_TRANSPORT_ISM_FABRIC_H

#include <linux/hashtable.h>
#include <linux/interrupt.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/pci.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "fabric_header.h"
#include "fabric_layout.h"
#include "fabric_place.h"
#include "provider.h"

struct smc_fabric;

struct smc_fabric_dmb {
	struct smc_ism_dmb	dmb;
	struct smc_fabric	*fabric;	/* with a reference */
	u32			block;		/* the first one */
	u32			n;		/* blocks */
	u64			peer;		/* token of the DMB that the connection writes to; 0 as long as it is not known */
	struct hlist_node	peer_node;	/* smc_fabric.peers, from then on */
	struct list_head	list;		/* smc_fabric.closing */
	u8			absent;		/* seconds that the writer was not in the directory, while on that list */
};

/* How long to go on looking for signals. */
struct smc_fabric_poll {
	u64	since;		/* when there was a signal last, or looking began; in ns */
	u32	span;		/* ns without a signal */
	u32	next;		/* block to go on from, after enough signals for one run; else 0 */
	u32	next_check;	/* the same for smc_fabric.check */
};

/* Another member. */
struct smc_fabric_member {
	u64			gid;		/* the second half, or 0; single word */
	bool			silent;		/* its kernel seems not to run; single word */
	struct smc_fabric_beat	beat;		/* members_lock */
	/* fabric_reuse.c, one caller at a time: */
	unsigned long		*kept;		/* own blocks that it may write to as those of an earlier member; NULL if there are none */
	u8			absent;		/* seconds that no member of this number was in the directory, since then */
};

struct smc_fabric {
	struct smc_ism_dev	dev;		/* gid[1] is what the directory says of us */
	struct pci_dev		*pdev;
	char			name[16];	/* PCI address */
	refcount_t		ref;		/* of the driver and the DMBs */
	bool			leaving;	/* the tasklet shall do nothing; single word */
	bool			gone;		/* nothing may be written to the memory, or the registers; under RCU */
	void __iomem		*regs;
	u8			*mem;
	/* From the header, checked. */
	u64			areas, area_size;
	u32			n_members, n_blocks, blocks_at, dmbs_at;
	u8			own;		/* number of this member */

	spinlock_t		lock;		/* the next five; softirqs off */
	unsigned long		*used;		/* own blocks */
	struct smc_fabric_dmb	**dmbs;		/* by first block; open ones, which get signals */
	struct list_head	closing;	/* DMBs that a writer may still write to, but for those that fabric_reuse.c looks at */
	DECLARE_HASHTABLE(peers, 10);		/* DMBs by the tokens of their peers */
	u32			top;		/* beyond the last block in use */
	unsigned long		*named;		/* own blocks that a member names; fabric_reuse.c, one caller at a time */

	struct mutex		members_lock;	/* one comparison with the directory at a time */
	struct smc_fabric_member members[SMC_FABRIC_MEMBERS_MAX]; /* as the directory was then */
	bool			news;		/* a member is new since the peers were forgotten; single word */
	unsigned long		forget_from;	/* jiffies from when on they may be forgotten again; the work */
	u64			beat;		/* the work */
	struct delayed_work	watch;
	bool			joined;		/* the watch runs; single word */
	bool			stopped;	/* connections cannot use the fabric any more */
	unsigned long		watched;	/* when it did what it does once a second, in jiffies; the work */
	struct tasklet_struct	look;
	struct smc_fabric_poll	poll;		/* the tasklet */
	bool			check;		/* the tasklet shall look at each open DMB, or go on with it; single word */
	atomic64_t		used_bytes, rung, spared; /* for the directory */
	struct work_struct	free;
	struct notifier_block	crash;
};

static inline struct smc_fabric *smc_fabric_of(struct smc_ism_dev *dev)
{
	return container_of(dev, struct smc_fabric, dev);
}

/* The entry of a member in the directory, and its area. @member is below n_members. */
static inline u8 *smc_fabric_entry(const struct smc_fabric *f, u8 member)
{
	return f->mem + SMC_FABRIC_DIRECTORY + member * SMC_FABRIC_ENTRY_LEN;
}

static inline u8 *smc_fabric_area(const struct smc_fabric *f, u8 member)
{
	return f->mem + f->areas + member * f->area_size;
}

static inline void smc_fabric_write64(u8 *at, u64 v)
{
	WRITE_ONCE(*(__le64 *)at, cpu_to_le64(v));
}

static inline u8 *smc_fabric_descriptor(const struct smc_fabric *f, u8 member, u32 block)
{
	return smc_fabric_area(f, member) + f->dmbs_at + block * SMC_FABRIC_DMB_LEN;
}

/* Returns whether a token leads to a DMB that there can be. */
static inline bool smc_fabric_place_of(const struct smc_fabric *f, u64 token, struct smc_fabric_place *p)
{
	return smc_fabric_find(f->n_members, f->n_blocks, token, p);
}

/* fabric.c */
u64 smc_fabric_gid_of(const struct smc_fabric *f, u8 member);
bool smc_fabric_reaches(const struct smc_fabric *f, const u64 gid[2]);
bool smc_fabric_has(const struct smc_fabric *f, const u64 gid[2]);
bool smc_fabric_knows(struct smc_fabric *f, const u64 gid[2]);
void smc_fabric_get(struct smc_fabric *f);
void smc_fabric_put(struct smc_fabric *f);

/* fabric_dmb.c */
extern const struct smc_ism_ops smc_fabric_ops;
int smc_fabric_dmbs_init(struct smc_fabric *f);
void smc_fabric_dmb_free(struct smc_fabric_dmb *d);
void smc_fabric_return_blocks(struct smc_fabric *f, u32 block, u32 n);
struct smc_ism_dmb *smc_fabric_dmb_at(struct smc_fabric *f, u32 block, bool *damaged);

/* fabric_reuse.c */
int smc_fabric_keep_written(struct smc_fabric *f);
bool smc_fabric_is_written(const struct smc_fabric *f, const struct smc_fabric_dmb *d);
void smc_fabric_dmbs_close(struct smc_fabric *f, bool second);

/* fabric_signal.c */
void smc_fabric_signals_init(struct smc_fabric *f);
void smc_fabric_check(struct smc_fabric *f);
irqreturn_t smc_fabric_signal_irq(int irq, void *fabric);
void smc_fabric_signal(struct smc_fabric *f, u8 member, u32 block);
void smc_fabric_ring(struct smc_fabric *f, u8 member, u8 vector);

#endif /* SMC_TRANSPORT_ISM_FABRIC_H */
