/* SPDX-License-Identifier: GPL-2.0-only */
/* /proc/net/smc */
#ifndef SMC_CONTROL_PROC_H
#define SMC_CONTROL_PROC_H

struct smc_net;

int smc_proc_net_init(struct smc_net *snet);
void smc_proc_net_exit(struct smc_net *snet);

#endif /* SMC_CONTROL_PROC_H */
