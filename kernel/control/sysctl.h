/* SPDX-License-Identifier: GPL-2.0-only */
/* Settings of a namespace: net.smc.* and what /proc/net/smc shows of them. */
#ifndef SMC_CONTROL_SYSCTL_H
#define SMC_CONTROL_SYSCTL_H

#include <linux/types.h>

struct ctl_table;
struct ctl_table_header;
struct smc_net;

/* They may change at any time, so read them with READ_ONCE(). */
struct smc_sysctl {
	unsigned int autocorking_size;	/* bytes; 0 is off */
	unsigned int smcr_buf_type;	/* contiguous: 0 physically, 1 virtually, 2 either */
	int smcr_testlink_time;	/* jiffies of silence before a link is tested; 0 is never */
	unsigned int wmem;	/* bytes of a send buffer, or 0: see smc_sysctl_wmem() */
	unsigned int rmem;	/* bytes of a receive buffer, or 0: see smc_sysctl_rmem() */
	unsigned int smcr_max_conns_per_lgr;
	unsigned int smcr_large_conns_per_lgr;	/* connections with four times wmem and rmem */
	unsigned int smcr_max_send_wr;	/* work requests in flight on a link */
	unsigned int smcr_max_recv_wr;
	unsigned int smcr_v1_rocev2;	/* version 1 may use GIDs of RoCEv2; 0 or 1 */
	unsigned int smcr_traffic_class;	/* of a link's packets */
	unsigned int smcr_immediate;	/* offer peers CDC messages as immediate data; 0 or 1 */
	bool limit_smc_hs;	/* handshake limitation is on */
	unsigned int loopback;	/* enum smc_loopback */
	unsigned int port_add_delay;	/* seconds before a port that comes up is used */
	struct ctl_table *table;
	struct ctl_table_header *header;
};

/* Which connections within this host may use the loopback device: net.smc.loopback. */
enum smc_loopback {
	SMC_LOOPBACK_OFF,
	SMC_LOOPBACK_NAMESPACE,	/* those whose ends are in one network namespace */
	SMC_LOOPBACK_HOST,	/* all, also between namespaces */
};

enum smc_sysctl_knob {
	SMC_SYSCTL_AUTOCORKING_SIZE,
	SMC_SYSCTL_SMCR_BUF_TYPE,
	SMC_SYSCTL_SMCR_TESTLINK_TIME,
	SMC_SYSCTL_WMEM,
	SMC_SYSCTL_RMEM,
	SMC_SYSCTL_SMCR_MAX_CONNS_PER_LGR,
	SMC_SYSCTL_LIMIT_SMC_HS,
	SMC_SYSCTL_SMCR_MAX_SEND_WR,
	SMC_SYSCTL_SMCR_MAX_RECV_WR,
	SMC_SYSCTL_LOOPBACK,
	SMC_SYSCTL_SMCR_V1_ROCEV2,
	SMC_SYSCTL_SMCR_IMMEDIATE,
	SMC_SYSCTL_SMCR_LARGE_CONNS_PER_LGR,
	SMC_SYSCTL_SMCR_TRAFFIC_CLASS,
	SMC_SYSCTL_COUNT,	/* those before are net.smc.* */
	SMC_SYSCTL_PORT_ADD_DELAY = SMC_SYSCTL_COUNT,
	SMC_SYSCTL_KNOBS
};

/* These four may be called in any context. */
unsigned int smc_sysctl_get(const struct smc_net *snet, enum smc_sysctl_knob knob);
int smc_sysctl_set(struct smc_net *snet, enum smc_sysctl_knob knob, unsigned int value);
unsigned int smc_sysctl_wmem(const struct smc_net *snet);
unsigned int smc_sysctl_rmem(const struct smc_net *snet);

int smc_sysctl_net_init(struct smc_net *snet);
void smc_sysctl_net_exit(struct smc_net *snet);

#endif /* SMC_CONTROL_SYSCTL_H */
