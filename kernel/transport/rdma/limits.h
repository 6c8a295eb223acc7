/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Limits of a device, and the objects that are made of it. The module parameter rdma_test lowers the limits, so that tests
 * find over soft-RoCE the cases that otherwise only some adapters cause.
 */
#ifndef SMC_RDMA_LIMITS_H
#define SMC_RDMA_LIMITS_H

#include <linux/atomic.h>
#include <linux/types.h>
#include <rdma/ib_verbs.h>

/* Objects, and work requests, that rdma_test has the device refuse, although it reports that it has them. */
enum smc_rdma_refusal {
	SMC_RDMA_REFUSE_CQ,
	SMC_RDMA_REFUSE_QP,
	SMC_RDMA_REFUSE_MR,
	SMC_RDMA_REFUSE_REG,
	SMC_RDMA_REFUSALS
};

struct smc_rdma_limits {
	u32 qp_wr;		/* work requests in a queue of a queue pair */
	u32 cqe;		/* entries of a completion queue */
	u32 recv_sge;		/* scatter/gather elements of a receive */
	u32 inline_data;	/* bytes; devices report this per queue pair only, so U32_MAX without rdma_test */
	u32 reg_pages;		/* pages of a fast registration */
	u32 vectors;		/* completion vectors */
	atomic_t refuse[SMC_RDMA_REFUSALS];	/* how many more requests are refused */
};

void smc_rdma_limits_read(const struct ib_device *ib, struct smc_rdma_limits *limits);
struct ib_cq *smc_rdma_alloc_cq(struct ib_device *ib, struct smc_rdma_limits *limits, void *context, u32 cqe,
				unsigned int vector);
struct ib_qp *smc_rdma_create_qp(struct ib_pd *pd, struct smc_rdma_limits *limits, struct ib_qp_init_attr *init);
struct ib_mr *smc_rdma_alloc_mr(struct ib_pd *pd, struct smc_rdma_limits *limits, u32 pages);
void smc_rdma_delay_reg(void);
void smc_rdma_delay_stop(void);
int smc_rdma_post_reg(struct ib_qp *qp, struct smc_rdma_limits *limits, const struct ib_reg_wr *wr);
const struct ib_gid_attr *smc_rdma_get_gid(struct ib_device *ib, u32 port, int index);
unsigned long smc_rdma_gid_delay(void);

#endif /* SMC_RDMA_LIMITS_H */
