/* SPDX-License-Identifier: GPL-2.0-only */
/* Listing of ISM devices by netlink. */
#ifndef SMC_TRANSPORT_ISM_SHOW_H
#define SMC_TRANSPORT_ISM_SHOW_H

#include <linux/types.h>

#include "../../control/pnet.h"

struct smc_ism_view {
	const char *name;
	u64 gid[2];
	u16 chid;
	u16 pci_vendor, pci_device; /* 0 for a device that is on no PCI bus */
	char pnet_id[SMC_PNET_ID_LEN + 1]; /* empty if there is none */
	bool pnet_by_user;
	unsigned int groups;	/* that use it; of a walk only */
};

void smc_ism_describe(const void *dev, struct smc_ism_view *view);
int smc_ism_walk(unsigned int *next, int (*fn)(struct smc_ism_view *view, void *arg), void *arg);

#endif /* SMC_TRANSPORT_ISM_SHOW_H */
