// SPDX-License-Identifier: GPL-2.0-only
/*
 * IPsec. Data that a transport moves bypasses the host's policies. So a connection to which a policy applies stays TCP,
 * and a connection to which a new policy applies ends, because its data must not go on unencrypted.
 *
 * A policy applies if it applies to TCP's own packets, wherever the peer is. The kernel exempts the loopback device from
 * IPsec for IPv4, so there it does not.
 */

#include <linux/security.h>
#include <net/ip6_route.h>
#include <net/ipv6.h>
#include <net/route.h>
#include <net/xfrm.h>

#include "../control/peers.h"
#include "../net.h"
#include "conn.h"

#ifdef CONFIG_XFRM

/* Returns whether a namespace has any policy for outgoing packets. */
static bool ipsec_any_policy(const struct net *net)
{
	return READ_ONCE(net->xfrm.policy_count[XFRM_POLICY_OUT]) ||
	       READ_ONCE(net->xfrm.policy_default[XFRM_POLICY_OUT]) != XFRM_USERPOLICY_ACCEPT;
}

/* Returns whether a policy changes what happens to packets on a route. Puts the route. */
static bool ipsec_changes_route(struct net *net, struct sock *sk, struct dst_entry *route, struct flowi *fl)
{
	struct dst_entry *dst = xfrm_lookup(net, route, fl, sk, 0);
	bool changed;

	/* A policy that blocks packets, or that has no key yet, applies, too. */
	if (IS_ERR(dst))
		return true;
	changed = dst != route;
	dst_release(dst);
	return changed;
}

static bool ipsec_applies4(struct net *net, struct sock *sk)
{
	const struct inet_sock *inet = inet_sk(sk);
	struct flowi4 fl4 = {
		.flowi4_oif = READ_ONCE(sk->sk_bound_dev_if),
		.flowi4_mark = READ_ONCE(sk->sk_mark),
		.flowi4_proto = IPPROTO_TCP,
		.flowi4_uid = sock_net_uid(net, sk),
		.daddr = sk->sk_daddr,
		.saddr = sk->sk_rcv_saddr,
		.fl4_dport = sk->sk_dport,
		.fl4_sport = inet->inet_sport,
	};
	struct rtable *rt;

	security_sk_classify_flow(sk, flowi4_to_flowi_common(&fl4));
	rt = __ip_route_output_key(net, &fl4);
	/* Without a route TCP cannot send either. */
	return !IS_ERR(rt) && ipsec_changes_route(net, sk, &rt->dst, flowi4_to_flowi(&fl4));
}

#if IS_ENABLED(CONFIG_IPV6)
static bool ipsec_applies6(struct net *net, struct sock *sk)
{
	struct flowi6 fl6 = {
		.flowi6_oif = READ_ONCE(sk->sk_bound_dev_if),
		.flowi6_mark = READ_ONCE(sk->sk_mark),
		.flowi6_proto = IPPROTO_TCP,
		.flowi6_uid = sock_net_uid(net, sk),
		.daddr = sk->sk_v6_daddr,
		.saddr = sk->sk_v6_rcv_saddr,
		.fl6_dport = sk->sk_dport,
		.fl6_sport = inet_sk(sk)->inet_sport,
	};
	struct dst_entry *dst;

	security_sk_classify_flow(sk, flowi6_to_flowi_common(&fl6));
	dst = ip6_route_output(net, sk, &fl6);
	if (dst->error) {
		dst_release(dst);
		return false;
	}
	return ipsec_changes_route(net, sk, dst, flowi6_to_flowi(&fl6));
}
#endif

/* Returns whether the route that TCP has cached transforms packets. */
static bool ipsec_route_transforms(struct sock *sk)
{
	struct dst_entry *dst = sk_dst_get(sk);
	bool transforms = dst && dst_xfrm(dst);

	dst_release(dst);
	return transforms;
}

/**
 * smc_ipsec_applies() - returns whether a policy of the socket or of the host applies to a connection
 * @sk: its TCP sock
 */
bool smc_ipsec_applies(struct sock *sk)
{
	struct net *net = sock_net(sk);

	might_sleep();
	if (rcu_access_pointer(sk->sk_policy[0]) || rcu_access_pointer(sk->sk_policy[1]))
		return true;
	if (!ipsec_any_policy(net))
		return false;
	if (ipsec_route_transforms(sk))
		return true;
#if IS_ENABLED(CONFIG_IPV6)
	if (sk->sk_family == AF_INET6 && !ipv6_addr_v4mapped(&sk->sk_v6_daddr))
		return ipsec_applies6(net, sk);
#endif
	return ipsec_applies4(net, sk);
}

/**
 * smc_ipsec_check() - ends a connection if a policy applies to it
 * @conn: the connection, which became active before the call: so this sees a policy that comes at the same time, or
 *        ipsec_recheck() sees the connection
 *
 * The application gets ECONNRESET, and the peer an abort by CDC, since a reset of TCP may not reach it any more.
 */
void smc_ipsec_check(struct smc_conn *conn)
{
	might_sleep();
	if (smc_conn_meaning(conn)->over || !smc_ipsec_applies(conn->sk))
		return;
	smc_close_event(conn, SMC_CLOSE_RESET);
	/* The socket is closed already, and the state ignored the reset. */
	if (!smc_conn_meaning(conn)->over)
		smc_close_event(conn, SMC_CLOSE_ABORT);
}

/* The policies of a namespace have changed: ends the connections to which one applies. */
static void ipsec_recheck(struct work_struct *work)
{
	struct smc_net *sn = container_of(work, struct smc_net, ipsec);
	struct smc_lgr_member *member, *before = NULL;
	u64 order = 0;

	if (!ipsec_any_policy(sn->net))
		return;
	smp_mb(); /* pairs with that of smc_close_check_lgr(): we see the holder, or it sees the change */
	while ((member = smc_lgr_net_next(sn, before, order))) {
		struct smc_conn *conn = smc_conn_of(member);

		order = member->order;
		/* The handshake checks when the connection becomes active. */
		if (READ_ONCE(conn->holder) != SMC_CONN_RENDEZVOUS)
			smc_ipsec_check(conn);
		/* A connection that has ended is off the list, so the walk cannot go on from it. */
		if (!list_empty_careful(&member->net_list))
			swap(member, before);
		if (member)
			smc_conn_put(smc_conn_of(member));
		cond_resched();
	}
	if (before)
		smc_conn_put(smc_conn_of(before));
}

/* A namespace that goes has cancelled the work already, since its policies and SAs go later. */
static void ipsec_queue_recheck(const struct net *net)
{
	RCU_LOCKDEP_WARN(!rcu_read_lock_held(), "ipsec_queue_recheck() outside of an RCU section");
	if (check_net(net))
		queue_work(smc_net_wq, &smc_net(net)->ipsec);
}

/* Returns whether a policy may let packets pass unchanged: it has no templates, or all are of level "use". */
static bool policy_lets_pass(const struct xfrm_policy *policy)
{
	unsigned int i;

	for (i = 0; i < policy->xfrm_nr; i++)
		if (!policy->xfrm_vec[i].optional)
			return false;
	return policy->action == XFRM_POLICY_ALLOW;
}

/*
 * Returns whether an event may make a policy apply to a connection to which none applied. The end of a policy may if that
 * policy had exempted the connection, so not if it blocked or transformed packets.
 */
static bool policy_may_matter(const struct xfrm_policy *policy, const struct km_event *event)
{
	switch (event->event) {
	case XFRM_MSG_DELPOLICY:
		return policy_lets_pass(policy);
	case XFRM_MSG_POLEXPIRE:
		return event->data.hard && policy_lets_pass(policy);
	default:
		return true;
	}
}

/* The same for peers whose connections were TCP because of a policy. */
static void ipsec_forget_peers(const struct net *net)
{
	if (check_net(net))
		smc_peers_forget(smc_net(net));
}

/* Called after the change. Without @policy, all policies of the namespace are gone. */
static int ipsec_policy_changed(struct xfrm_policy *policy, int dir, const struct km_event *event)
{
	RCU_LOCKDEP_WARN(!rcu_read_lock_held(), "ipsec_policy_changed() outside of an RCU section");
	ipsec_forget_peers(policy ? xp_net(policy) : event->net);
	if (!policy)
		ipsec_queue_recheck(event->net);
	else if (dir == XFRM_POLICY_OUT && policy_may_matter(policy, event))
		ipsec_queue_recheck(xp_net(policy));
	return 0;
}

/*
 * Called after the change: a template of level "use" transforms packets as soon as there is an SA for it. Without @x, all SAs of the
 * namespace are gone.
 */
static int ipsec_state_changed(struct xfrm_state *x, const struct km_event *event)
{
	RCU_LOCKDEP_WARN(!rcu_read_lock_held(), "ipsec_state_changed() outside of an RCU section");
	ipsec_forget_peers(x ? xs_net(x) : event->net);
	if (event->event == XFRM_MSG_NEWSA || event->event == XFRM_MSG_UPDSA)
		ipsec_queue_recheck(xs_net(x));
	return 0;
}

/* A key manager has to have this. We negotiate no keys. */
static int ipsec_acquire(struct xfrm_state *x, struct xfrm_tmpl *tmpl, struct xfrm_policy *policy)
{
	return -EINVAL;
}

/* A key manager has to have this. We know no policies of sockets; *dir keeps the error that it has. */
static struct xfrm_policy *ipsec_compile_policy(struct sock *sk, int opt, u8 *data, int len, int *dir)
{
	return NULL;
}

/*
 * The kernel calls all key managers for policies and SAs that come or go, but not for a new default policy. So a new
 * default counts for new connections only.
 */
static struct xfrm_mgr ipsec_km = {
	.notify		= ipsec_state_changed,
	.acquire	= ipsec_acquire,
	.compile_policy	= ipsec_compile_policy,
	.notify_policy	= ipsec_policy_changed,
};

/* smc_ipsec_net_init() - initialises the part of a namespace. */
void smc_ipsec_net_init(struct smc_net *sn)
{
	INIT_WORK(&sn->ipsec, ipsec_recheck);
}

/* smc_ipsec_net_exit() - undoes it. */
void smc_ipsec_net_exit(struct smc_net *sn)
{
	might_sleep();
	cancel_work_sync(&sn->ipsec);
}

/* smc_ipsec_init() - at load, after smc_net_init(). Return: 0. */
int __init smc_ipsec_init(void)
{
	might_sleep();
	xfrm_register_km(&ipsec_km);
	return 0;
}

/* smc_ipsec_exit() - at unload, before smc_net_exit(). */
void smc_ipsec_exit(void)
{
	might_sleep();
	xfrm_unregister_km(&ipsec_km);
}

#else /* !CONFIG_XFRM */

bool smc_ipsec_applies(struct sock *sk) { return false; }
void smc_ipsec_check(struct smc_conn *conn) { }
void smc_ipsec_net_init(struct smc_net *sn) { }
void smc_ipsec_net_exit(struct smc_net *sn) { }
int __init smc_ipsec_init(void) { return 0; }
void smc_ipsec_exit(void) { }

#endif
