/* SPDX-License-Identifier: GPL-2.0-only */
/* Groups, links and devices of SMC-R as they are shown; none on kernels without RDMA. */
#ifndef SMC_RDMA_SHOW_H
#define SMC_RDMA_SHOW_H

#include <linux/types.h>

#include "../../control/pnet.h"
#include "link_view_gen.h"

struct net;
struct smc_lgr;

#define SMC_RDMA_SHOW_PORTS 2
#define SMC_RDMA_SHOW_LINKS 3

struct smc_rdma_lgr_view {
	bool server, direct;
	u8 max_conns, max_links;
	u8 buf_type;			/* net.smc.smcr_buf_type when it was formed */
	u64 snd_bytes, rmb_bytes;	/* of all its buffers, or of those of a namespace's connections */
	char pnet_id[SMC_PNET_ID_LEN + 1];
	unsigned int n_links;		/* 0 if the group has none yet, or has ended */
	struct smc_rdma_link_view links[SMC_RDMA_SHOW_LINKS];
};

struct smc_rdma_port_view {
	bool valid, active;
	bool by_user;			/* the PNET ID is from the table */
	char pnet_id[SMC_PNET_ID_LEN + 1];
	int ifindex;
	unsigned int links;
};

struct smc_rdma_dev_view {
	char name[SMC_PNET_IB_LEN + 1];
	bool is_pci;
	u32 fid;			/* IBM Z; as what follows, 0 if none */
	u16 chid, vendor, device;
	char pci[32];
	unsigned int links, critical;	/* links over it, groups that would end with it */
	struct smc_rdma_port_view ports[SMC_RDMA_SHOW_PORTS];
};

#ifdef SMC_RDMA
void smc_rdma_show_lgr(struct smc_lgr *lgr, const struct net *net, struct smc_rdma_lgr_view *view);
int smc_rdma_show_devices(const struct net *net, unsigned int *next,
			  int (*fn)(const struct smc_rdma_dev_view *view, void *arg), void *arg);
#else
static inline void smc_rdma_show_lgr(struct smc_lgr *lgr, const struct net *net,
				     struct smc_rdma_lgr_view *view) { }

static inline int smc_rdma_show_devices(const struct net *net, unsigned int *next,
					int (*fn)(const struct smc_rdma_dev_view *view, void *arg), void *arg)
{
	return 0;
}
#endif

#endif /* SMC_RDMA_SHOW_H */
