/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ISM devices of hardware: what all of them have in common (hw.c), and how their drivers are spoken
 * to, which differs between kernels (hw_dibs.c, hw_ism.c; Kbuild takes the one that fits).
 */
#ifndef SMC_TRANSPORT_ISM_HW_H
#define SMC_TRANSPORT_ISM_HW_H

#include <linux/dma-mapping.h>

#include "provider.h"

struct smc_hw_dev;

struct smc_hw_dmb {
	struct smc_ism_dmb	dmb;
	struct smc_hw_dev	*hw;
	u32			len;		/* asked for */
	u32			idx;		/* the rest: filled in by the driver */
	void			*addr;
	dma_addr_t		dma;
	struct work_struct	work;		/* unregisters it */
	struct page		*pages[];
};

/**
 * struct smc_hw_api - a driver
 *
 * @query:	is there a peer of this GID? Sleeps.
 * @get:	registers a DMB that dmb.gid may write to: fills in token, index, address. Sleeps. 0 or an errno.
 * @put:	undoes it. Sleeps.
 * @move:	as in struct smc_ism_ops
 * @event:	tells a peer something. May be NULL. Sleeps.
 */
struct smc_hw_api {
	bool (*query)(void *drv, const u64 gid[2]);
	int (*get)(void *drv, struct smc_hw_dmb *d);
	void (*put)(void *drv, struct smc_hw_dmb *d);
	int (*move)(void *drv, u64 token, u8 index, bool signal, u32 off, void *data, u32 len);
	void (*event)(void *drv, const u64 gid[2], u32 code, u64 info);
};

/* Software events: what 32 bits say; their 64 bits of information go back unread. */
#define SMC_HW_EVENT_SHUTDOWN	0x80
#define SMC_HW_EVENT_TEST	0x83

struct smc_hw_dev *smc_hw_add(const struct smc_hw_api *api, void *drv, const char *name, u16 chid,
			      const u64 gid[2], u32 n_dmbs);
void smc_hw_del(struct smc_hw_dev *hw);
void smc_hw_signalled(struct smc_hw_dev *hw, u32 idx);
void smc_hw_sw_event(struct smc_hw_dev *hw, const u64 gid[2], u32 code, u64 info);
void smc_hw_peer_gone(struct smc_hw_dev *hw, const u64 gid[2]);


#endif /* SMC_TRANSPORT_ISM_HW_H */
