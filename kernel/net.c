// SPDX-License-Identifier: GPL-2.0-only
/* The SMC part of each network namespace. */

#include <linux/export.h>
#include <net/inet6_hashtables.h>
#include <net/inet_hashtables.h>
#include <net/netns/generic.h>

#include "conn/conn.h"
#include "control/memory.h"
#include "control/peers.h"
#include "control/pnet.h"
#include "control/proc.h"
#include "control/stats.h"
#include "control/sysctl.h"
#include "handshake/synopt.h"
#include "lgr/lgr.h"
#include "net.h"
#include "policy/policy.h"

/* A namespace's parts, in one piece. Each is initialised and torn down by the file that its type comes from. */
struct parts {
	struct smc_net		sn;
	struct smc_sysctl	sysctl;
	struct smc_stats_net	stats;
	struct smc_pnet_net	pnet;
	struct smc_synopt_net	synopt;
	struct smc_lgr_net	lgr;
	struct smc_policy_net	policy;
	struct smc_peers_net	peers;
};

/*
 * Deferred work, except that of link groups. Unbound, because none of it is short or frequent enough to stay on its
 * processor. It has the priority of programs, since peers decide how much of it there is.
 */
struct workqueue_struct *smc_net_wq;

/*
 * The work of link groups and devices: LLC timers, links that go down, idle groups. It must not wait for handshakes, of
 * which users and remote peers can start as many as they like. It has the usual priority: its deadlines are seconds, and a
 * peer that lets links fail must not take processor time from programs. No work here waits for a lock that a user can hold.
 */
struct workqueue_struct *smc_lgr_wq;
EXPORT_SYMBOL_GPL(smc_lgr_wq);

static unsigned int net_id __read_mostly;

/* smc_net() - returns the SMC part of a namespace, which is not NULL while the module is loaded. Any context. */
struct smc_net *smc_net(const struct net *net)
{
	return &((struct parts *)net_generic(net, net_id))->sn;
}

/*
 * smc_net_peer() - returns the other end of a TCP connection if it is a sock of the same namespace, in any state, with a
 * reference for sock_gen_put(); else NULL. Any context but hardirq.
 */
struct sock *smc_net_peer(const struct sock *sk)
{
	struct net *net = sock_net(sk);
	struct sock *peer;

	rcu_read_lock();
#if IS_ENABLED(CONFIG_IPV6)
	if (sk->sk_family == AF_INET6 && !ipv6_addr_v4mapped(&sk->sk_v6_daddr))
		peer = smc_compat_lookup6(net, &sk->sk_v6_rcv_saddr, inet_sk(sk)->inet_sport,
					  &sk->sk_v6_daddr, sk->sk_dport, LOOPBACK_IFINDEX, 0);
	else
#endif
		peer = smc_compat_lookup4(net, sk->sk_rcv_saddr, inet_sk(sk)->inet_sport, sk->sk_daddr,
					  sk->sk_dport, LOOPBACK_IFINDEX, 0);
	rcu_read_unlock();
	return peer;
}

/* smc_net_peer_addr() - returns the address of the other end of a TCP connection; one of IPv4 is mapped. Any context. */
struct in6_addr smc_net_peer_addr(const struct sock *sk)
{
	struct in6_addr addr;

#if IS_ENABLED(CONFIG_IPV6)
	if (sk->sk_family == AF_INET6)
		return sk->sk_v6_daddr;
#endif
	ipv6_addr_set_v4mapped(sk->sk_daddr, &addr);
	return addr;
}

static int __net_init smc_ns_init(struct net *net)
{
	struct parts *parts = net_generic(net, net_id);
	struct smc_net *sn = &parts->sn;
	int rc;

	sn->net = net;
	sn->sysctl = &parts->sysctl;
	sn->stats = &parts->stats;
	sn->pnet = &parts->pnet;
	sn->synopt = &parts->synopt;
	sn->lgr = &parts->lgr;
	sn->policy = &parts->policy;
	sn->peers = &parts->peers;
	smc_ipsec_net_init(sn);
	smc_lgr_net_init(sn);
	smc_synopt_net_init(sn);
	smc_policy_net_init(sn);
	smc_peers_net_init(sn);
	rc = smc_pnet_net_init(sn);
	if (rc)
		goto err_synopt;
	rc = smc_stats_net_init(sn);
	if (rc)
		goto err_pnet;
	rc = smc_sysctl_net_init(sn);
	if (rc)
		goto err_stats;
	rc = smc_memory_net_init(sn);
	if (rc)
		goto err_sysctl;
	rc = smc_proc_net_init(sn);
	if (!rc)
		return 0;
	smc_memory_net_exit(sn);
err_sysctl:
	smc_sysctl_net_exit(sn);
err_stats:
	smc_stats_net_exit(sn);
err_pnet:
	smc_pnet_net_exit(sn);
err_synopt:
	smc_synopt_net_exit(sn);
	return rc;
}

static void __net_exit smc_ns_pre_exit(struct net *net)
{
	smc_memory_net_pre_exit(smc_net(net));
	smc_synopt_net_pre_exit(smc_net(net));
}

static void __net_exit smc_ns_exit(struct net *net)
{
	struct smc_net *sn = smc_net(net);

	smc_ipsec_net_exit(sn);
	smc_lgr_net_exit(sn);
	smc_synopt_net_exit(sn);
	smc_policy_net_exit(sn);
	smc_peers_net_exit(sn);
	smc_proc_net_exit(sn);
	smc_memory_net_exit(sn);
	smc_sysctl_net_exit(sn);
	smc_stats_net_exit(sn);
	smc_pnet_net_exit(sn);
}

static struct pernet_operations ns_ops = {
	.init		= smc_ns_init,
	.pre_exit	= smc_ns_pre_exit,
	.exit		= smc_ns_exit,
	.id		= &net_id,
	.size		= sizeof(struct parts),
};

/*
 * smc_net_init() - makes the work queues and the parts of all namespaces, now and later. Return: 0 or a
 * negative errno.
 */
int __init smc_net_init(void)
{
	int rc;

	might_sleep();
	smc_net_wq = alloc_workqueue("smc", WQ_UNBOUND, 0);
	if (!smc_net_wq)
		return -ENOMEM;
	smc_lgr_wq = alloc_workqueue("smc_lgr", WQ_UNBOUND, 0);
	rc = smc_lgr_wq ? register_pernet_subsys(&ns_ops) : -ENOMEM;
	if (!rc)
		return 0;
	if (smc_lgr_wq)
		destroy_workqueue(smc_lgr_wq);
	destroy_workqueue(smc_net_wq);
	return rc;
}

/* smc_net_exit() - undoes it, at unload, when no socket is left. */
void smc_net_exit(void)
{
	might_sleep();
	smc_peers_device_exit();
	unregister_pernet_subsys(&ns_ops);
	/* Works that wait for a grace period are queued after it: tables of rules, and plans of listeners. */
	rcu_barrier();
	destroy_workqueue(smc_lgr_wq);
	destroy_workqueue(smc_net_wq);
}
