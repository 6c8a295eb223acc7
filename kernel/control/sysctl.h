/* SPDX-License-Identifier: GPL-2.0-only */
/* Settings of a namespace: net.smc.* and what /proc/net/smc shows of them. */
#ifndef SMC_CONTROL_SYSCTL_H
#define SMC_CONTROL_SYSCTL_H

#include <linux/types.h>

#include "sysctl_gen.h"

struct ctl_table;
struct ctl_table_header;
struct net;
struct smc_net;

/* Which connections within this host may use the loopback device: net.smc.loopback. */
enum smc_loopback {
	SMC_LOOPBACK_OFF,
	SMC_LOOPBACK_NAMESPACE,	/* those whose ends are in one network namespace */
	SMC_LOOPBACK_HOST,	/* all, also between namespaces */
};

/* How a setting is kept. */
enum smc_sysctl_kind {
	SMC_KIND_NUMBER,	/* unsigned int */
	SMC_KIND_SECONDS,	/* int in jiffies, seconds outside */
	SMC_KIND_BOOL,
	SMC_KIND_BUFFER,	/* unsigned int; 0 is valid beside the range */
};

struct smc_sysctl_desc {
	const char *name;
	size_t offset;	/* in struct smc_sysctl */
	enum smc_sysctl_kind kind;
	unsigned int min, max, init;
	bool host;	/* of the host: only the initial namespace shows it */
};

extern const struct smc_sysctl_desc smc_sysctls[SMC_SYSCTL_KNOBS];

/* These four may be called in any context. */
unsigned int smc_sysctl_get(const struct smc_net *snet, enum smc_sysctl_knob knob);
int smc_sysctl_set(struct smc_net *snet, enum smc_sysctl_knob knob, unsigned int value);
unsigned int smc_sysctl_wmem(const struct smc_net *snet);
unsigned int smc_sysctl_rmem(const struct smc_net *snet);

int smc_sysctl_net_init(struct smc_net *snet);
void smc_sysctl_net_exit(struct smc_net *snet);

#endif /* SMC_CONTROL_SYSCTL_H */
