/* SPDX-License-Identifier: GPL-2.0-only */
/* SMC-R as the module's load and unload see it; nothing on kernels without RDMA. */
#ifndef SMC_RDMA_INIT_H
#define SMC_RDMA_INIT_H

#ifdef SMC_RDMA
int smc_rdma_init(void);
void smc_rdma_exit(void);
#else
static inline int smc_rdma_init(void) { return 0; }
static inline void smc_rdma_exit(void) { }
#endif

#endif /* SMC_RDMA_INIT_H */
