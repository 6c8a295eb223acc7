/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The contract between SMC-D and what moves its bytes: an ISM device, or something that acts like
 * one.
 */
#ifndef SMC_TRANSPORT_ISM_PROVIDER_H
#define SMC_TRANSPORT_ISM_PROVIDER_H

#include <linux/list.h>
#include <linux/refcount.h>
#include <linux/types.h>
#include <linux/uio.h>

#include "../../conn/conn.h"
#include "../../wire/cdc.h"

/* Bytes of a DMB element that come before the ring: the CDC message. */
#define SMC_ISM_CDC_LEN SMC_CDC_D_LEN
/* Devices that are none have CHIDs from here on, and GIDs of 128 bits. */
#define SMC_ISM_CHID_EMULATED 0xff00
#define SMC_ISM_CHID_LOOPBACK 0xffff

static inline bool smc_ism_emulated(u16 chid)
{
	return (chid & SMC_ISM_CHID_EMULATED) == SMC_ISM_CHID_EMULATED;
}

/* A buffer that a peer may write to. The provider allocates it as part of something larger. */
struct smc_ism_dmb {
	u64			token;
	bool			token_used;		/* nobody else can use the token any more: it may be shown; single word */
	u64			gid[2];		/* who may write to it */
	struct smc_rcvbuf	rcvbuf;
	struct smc_conn __rcu	*conn;		/* whose it is; NULL when that is over */
};

struct smc_ism_dev;

/**
 * struct smc_ism_ops - what a provider does
 *
 * @reach:	can a GID be talked to, through a VLAN?
 * @dmb_get:	registers a DMB of so many bytes that this GID may write to. Sleeps. ERR_PTR(-ENOMEM), ERR_PTR(-ENOSPC).
 *		Without a GID, for a provider with @share, nobody but @share gets at it.
 * @dmb_close:	the peer cannot get at it any more, unless it has mapped it; then what it writes is of no matter. Softirq.
 * @dmb_put:	nobody reads it any more, either. Softirq.
 * @map:	gets at a peer's DMB, by its token, to write to it directly. Sleeps. ERR_PTR(-ENOENT) if there is none.
 *		NULL if the provider has only @move, and so are the five that follow.
 * @share:	the same, for who has the DMB itself. Does not sleep, and cannot fail. NULL if the provider has no such.
 * @unmap:	undoes either. Softirq.
 * @write:	puts bytes from an iterator into a mapped DMB, at an offset of its ring; up to its end and on from its
 *		beginning. Sleeps. Bytes, -EFAULT or -ENOMEM.
 * @consumed:	that part of the ring will not be read again. Does not sleep. May be NULL.
 * @trim:	nobody writes to the mapped DMB now: give memory back that holds no unread byte. @empty: none does, and
 *		this is where the writer goes on. May be NULL.
 * @move:	puts bytes into a peer's DMB, at an offset of the whole of it. They are there when it returns; of aligned
 *		words of 8 bytes nobody sees a part, and nobody sees a later one before an earlier one. If asked to, tells
 *		the peer, which calls smc_ism_signalled(); several times may become one. The index tells parts of a DMB
 *		apart. Softirq, with bytes in the kernel's own memory. 0, or a negative errno if there is no such DMB.
 *
 * A provider without @map has the pages of a DMB from the beginning, and at the same place.
 */
struct smc_ism_ops {
	bool (*reach)(struct smc_ism_dev *dev, const u64 gid[2], u16 vlan);
	struct smc_ism_dmb *(*dmb_get)(struct smc_ism_dev *dev, u32 len, const u64 gid[2]);
	void (*dmb_close)(struct smc_ism_dev *dev, struct smc_ism_dmb *dmb);
	void (*dmb_put)(struct smc_ism_dev *dev, struct smc_ism_dmb *dmb);
	struct smc_ism_dmb *(*map)(struct smc_ism_dev *dev, u64 token, const u64 gid[2]);
	void (*share)(struct smc_ism_dev *dev, struct smc_ism_dmb *dmb);
	void (*unmap)(struct smc_ism_dev *dev, struct smc_ism_dmb *dmb);
	ssize_t (*write)(struct smc_ism_dmb *dmb, u32 off, struct iov_iter *from, u32 len);
	void (*consumed)(struct smc_ism_dmb *dmb, u32 off, u32 len);
	void (*trim)(struct smc_ism_dmb *dmb, bool empty, u32 off);
	int (*move)(struct smc_ism_dev *dev, u64 token, u8 index, bool signal, u32 off, void *data, u32 len);
};

struct smc_ism_dev {
	const struct smc_ism_ops *ops;
	const char	*name;
	u64		gid[2];
	u16		chid;
	bool		v1, v2;		/* which versions of SMC-D it is good for */
	bool		host;		/* within this kernel only: both ends are ours */
	struct list_head list;		/* device.c, as what follows */
	atomic_t	users;		/* by those who are about to join a group of it */
};

int smc_ism_register(struct smc_ism_dev *dev);
void smc_ism_unregister(struct smc_ism_dev *dev);
/* dmb_cdc.c: a peer has moved something into a DMB, and wants that to be known. Softirq. */
void smc_ism_signalled(struct smc_ism_dmb *dmb);

/* loopback.c */
int smc_loopback_init(void);
void smc_loopback_exit(void);

/* hw_*.c, where the kernel has such devices */
#ifdef SMC_ISM_HW
int smc_hw_init(void);
void smc_hw_exit(void);
#else
static inline int smc_hw_init(void) { return 0; }
static inline void smc_hw_exit(void) { }
#endif

#endif /* SMC_TRANSPORT_ISM_PROVIDER_H */
