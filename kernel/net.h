/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SMC_NET_H
#define SMC_NET_H

#include <linux/mutex.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>

#include "control/pnet.h"
#include "control/stats.h"
#include "control/sysctl.h"
#include "handshake/synopt.h"
#include "lgr/lgr.h"

/*
 * What one network namespace owns. Each part is initialised and torn down by the file that its type
 * comes from.
 */
struct smc_net {
	struct net		*net;
	struct smc_pnet_net	pnet;
	struct smc_stats_net	stats;
	struct smc_sysctl	sysctl;
	struct smc_synopt_net	synopt;
	struct smc_lgr_net	lgr;
	struct work_struct	ipsec;		/* connections are compared with policies, see conn/ipsec.c */
	atomic_t		handshakes;	/* that are running as a server, see limit.c */
	atomic_t		conns;		/* that transports carry and that have not given everything back */
	bool			limit_hs;	/* handshake limitation is on; single word, no lock */
};

struct smc_net *smc_net(const struct net *net);
struct sock *smc_net_peer(const struct sock *sk);
int smc_net_init(void);
void smc_net_exit(void);

extern struct workqueue_struct *smc_net_wq;
extern struct workqueue_struct *smc_lgr_wq;

#endif
