/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The contract between SMC-D and a provider, which moves its data: an ISM device, or an emulation of one.
 */
#ifndef SMC_TRANSPORT_ISM_PROVIDER_H
#define SMC_TRANSPORT_ISM_PROVIDER_H

#include <linux/list.h>
#include <linux/refcount.h>
#include <linux/types.h>
#include <linux/uio.h>

#include "../../conn/conn.h"
#include "../../control/pnet.h"
#include "../../wire/cdc.h"

/* Bytes of a DMB before the ring: the CDC message. */
#define SMC_ISM_CDC_LEN SMC_CDC_D_LEN
/* Emulated devices have CHIDs from here on, and GIDs of 128 bits. */
#define SMC_ISM_CHID_EMULATED 0xff00
#define SMC_ISM_CHID_LOOPBACK 0xffff

static inline bool smc_ism_emulated(u16 chid)
{
	return (chid & SMC_ISM_CHID_EMULATED) == SMC_ISM_CHID_EMULATED;
}

struct smc_memory_pool;

/* A buffer that a peer may write to. The provider embeds it in a structure of its own. */
struct smc_ism_dmb {
	u64			token;
	bool			token_used;	/* no one else can map the token, so it may be shown; single word */
	u64			gid[2];		/* of the peer that may write to it */
	struct smc_rcvbuf	rcvbuf;
	struct smc_conn __rcu	*conn;		/* its connection, NULL once that is over */
	struct smc_memory_pool	*memory;	/* where it is reserved, with a reference; NULL until it is in use */
	u32			reserved;	/* bytes there, besides pages of smc_ism_dmb_page() */
};

struct smc_ism_dev;

/**
 * struct smc_ism_ops - the operations of a provider
 *
 * @reach:	returns whether a GID can be reached through a VLAN
 * @dmb_get:	registers a DMB of @len bytes that this GID may write to. Sleeps. ERR_PTR(-ENOMEM), ERR_PTR(-ENOSPC).
 *		@len is a power of 2, and at least PAGE_SIZE unless the provider has @copy.
 *		Without a GID, for a provider with @share, only @share gives access to it.
 * @dmb_close:	the peer cannot map the DMB or move data into it any more. One that has mapped it may still write. Softirq.
 * @dmb_put:	frees the DMB, which is not read any more either. Softirq. The provider calls smc_ism_dmb_freed() then, or when
 *		the last peer has unmapped it.
 * @map:	maps a peer's DMB, by its token, to write to it directly. Sleeps. ERR_PTR(-ENOENT) if there is none. A
 *		provider without @map has only @move, and NULL for the five that follow.
 * @share:	maps a DMB whose structure the caller has. Does not sleep, and cannot fail. May be NULL.
 * @unmap:	undoes either. Softirq.
 * @write:	copies bytes from an iterator into a mapped DMB, from an offset of its ring on, up to the end of the ring and
 *		then from its beginning. Sleeps. Returns bytes, -EFAULT, or -ENOMEM if there is no memory for more now.
 * @consumed:	this part of the ring will not be read again. Does not sleep. May be NULL.
 * @trim:	frees memory of the mapped DMB that holds no unread byte, while no thread writes. @empty: there is no unread
 *		byte, and @off is where the writer goes on. May be NULL.
 * @move:	copies bytes into a peer's DMB, at an offset of the whole DMB, for the connection whose own DMB is @own. They are there when it returns. The peer sees
 *		aligned words of 8 bytes whole, and in their order. If asked to, signals the peer, which calls
 *		smc_ism_signalled(); several signals may become one. The index tells parts of a DMB apart. Softirq; the bytes
 *		are in kernel memory. 0, or a negative errno if there is no such DMB.
 *
 * @set_peer:	the connection of a DMB writes to the peer's one with this token and index, of @len bytes. Returns whether that can be.
 *		Once, before @move and @copy. Does not sleep. May be NULL.
 * @copy:	copies bytes from an iterator into the peer's DMB, at an offset of the whole DMB, without a signal; one thread at a time
 *		for each connection, whose own DMB is @own. Sleeps. Returns bytes, -EFAULT, -EINVAL, or -ENOENT if there is no such DMB.
 *		May be NULL. DMBs of a provider with @copy are memory without pages (smc_rcvbuf.mem).
 *
 * A provider without @map allocates all pages of a DMB at once, and keeps them.
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
	int (*move)(struct smc_ism_dev *dev, struct smc_ism_dmb *own, u64 token, u8 index, bool signal, u32 off, void *data, u32 len);
	bool (*set_peer)(struct smc_ism_dmb *own, u64 token, u8 index, u32 len);
	ssize_t (*copy)(struct smc_ism_dmb *own, u64 token, u32 off, struct iov_iter *from, u32 len);
};

struct smc_ism_dev {
	const struct smc_ism_ops *ops;
	const char	*name;
	u64		gid[2];
	u16		chid;
	bool		v1, v2;		/* versions of SMC-D that can use it */
	bool		host;		/* both ends are in this kernel */
	u64		token_secret;	/* the bits of tokens that are not shown: who knows them could name the DMB of another user */
	u16		pci_vendor, pci_device; /* 0 for a device that is on no PCI bus */
	struct device	*parent;	/* which firmware may have attached to a physical network; NULL if there is none */
	bool		has_hw_id;	/* device.c; firmware has done so */
	u8		hw_id[SMC_PNET_ID_LEN];
	struct list_head list;		/* device.c; devices_lock */
	atomic_t	users;		/* device.c; rendezvous that are about to join a group of it */
};

int smc_ism_register(struct smc_ism_dev *dev);
void smc_ism_unregister(struct smc_ism_dev *dev);
/* memory.c */
void smc_ism_dmb_freed(struct smc_ism_dmb *dmb);
struct page *smc_ism_dmb_page(struct smc_ism_dmb *dmb, atomic_t *held);
void smc_ism_dmb_put_page(struct smc_ism_dmb *dmb, atomic_t *held, struct page *page);
bool smc_ism_dmb_keeps_page(const struct smc_ism_dmb *dmb, const atomic_t *held);
/* dmb_cdc.c */
void smc_ism_signalled(struct smc_ism_dmb *dmb);

/* loopback.c */
int smc_loopback_init(void);
void smc_loopback_exit(void);

/* fabric.c, where memory of PCI devices is as other memory, and they have interrupts by messages */
#ifdef SMC_ISM_FABRIC
int smc_fabric_init(void);
void smc_fabric_exit(void);
#else
static inline int smc_fabric_init(void) { return 0; }
static inline void smc_fabric_exit(void) { }
#endif

/* hw_*.c, where the kernel has such devices */
#ifdef SMC_ISM_HW
int smc_hw_init(void);
void smc_hw_exit(void);
#else
static inline int smc_hw_init(void) { return 0; }
static inline void smc_hw_exit(void) { }
#endif

#endif /* SMC_TRANSPORT_ISM_PROVIDER_H */
