/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Hardware ISM devices: hw.c has what all of them share; hw_dibs.c and hw_ism.c call the driver, whose interface differs
 * between kernels. Kbuild chooses one of the two.
 */
#ifndef SMC_TRANSPORT_ISM_HW_H
#define SMC_TRANSPORT_ISM_HW_H

#include <linux/dma-mapping.h>

#include "provider.h"

struct smc_hw_dev;

struct smc_hw_dmb {
	struct smc_ism_dmb	dmb;
	struct smc_hw_dev	*hw;
	u32			len;		/* bytes */
	u32			idx;		/* this and what follows: filled in by @get */
	void			*addr;
	dma_addr_t		dma;
	struct work_struct	work;		/* unregisters it */
	struct page		*pages[];
};

/**
 * struct smc_hw_api - a driver
 *
 * @set_dev:	has the driver's callbacks find this device, or none if it is NULL. Does not sleep.
 * @query:	returns whether a GID can be reached. Sleeps.
 * @get:	registers a DMB that dmb.gid may write to: fills in token, index, address. Sleeps. 0 or a negative errno.
 * @put:	undoes @get. Sleeps.
 * @move:	as in struct smc_ism_ops
 * @event:	sends a peer a software event. May be NULL. Sleeps.
 */
struct smc_hw_api {
	void (*set_dev)(void *drv, struct smc_hw_dev *hw);
	bool (*query)(void *drv, const u64 gid[2]);
	int (*get)(void *drv, struct smc_hw_dmb *d);
	void (*put)(void *drv, struct smc_hw_dmb *d);
	int (*move)(void *drv, u64 token, u8 index, bool signal, u32 off, void *data, u32 len);
	void (*event)(void *drv, const u64 gid[2], u32 code, u64 info);
};

/* Codes of software events. An answer has the 64 bits of information of the request. */
#define SMC_HW_EVENT_SHUTDOWN	0x80
#define SMC_HW_EVENT_TEST	0x83

void smc_hw_add(const struct smc_hw_api *api, void *drv, struct device *dev, u16 chid, const u64 gid[2], u32 n_dmbs);
void smc_hw_del(const void *drv);
void smc_hw_del_all(void);
void smc_hw_signalled(struct smc_hw_dev *hw, u32 idx);
void smc_hw_sw_event(struct smc_hw_dev *hw, const u64 gid[2], u32 code, u64 info);
void smc_hw_peer_gone(struct smc_hw_dev *hw, const u64 gid[2]);

#endif /* SMC_TRANSPORT_ISM_HW_H */
