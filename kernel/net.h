/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SMC_NET_H
#define SMC_NET_H

#include <linux/atomic.h>
#include <linux/in6.h>
#include <linux/workqueue.h>

struct net;
struct smc_lgr_net;
struct smc_memory_pool;
struct smc_peers_net;
struct smc_policy_net;
struct smc_pnet_net;
struct smc_stats_net;
struct smc_synopt_net;
struct smc_sysctl;
struct sock;

/* Our part of a network namespace. Each part is known to the layer that its type comes from. */
struct smc_net {
	struct net		*net;
	struct smc_pnet_net	*pnet;
	struct smc_stats_net	*stats;
	struct smc_sysctl	*sysctl;
	struct smc_synopt_net	*synopt;
	struct smc_lgr_net	*lgr;
	struct smc_policy_net	*policy;
	struct smc_peers_net	*peers;
	struct smc_memory_pool	*memory;
	struct work_struct	ipsec;		/* connections are compared with policies, see conn/ipsec.c */
	atomic_t		handshakes;	/* that are running as a server, see limit.c */
	atomic_t		conns;		/* that transports carry and that have not given everything back */
};

struct smc_net *smc_net(const struct net *net);
struct sock *smc_net_peer(const struct sock *sk);
struct in6_addr smc_net_peer_addr(const struct sock *sk);
int smc_net_init(void);
void smc_net_exit(void);

extern struct workqueue_struct *smc_net_wq;
extern struct workqueue_struct *smc_lgr_wq;

#endif
