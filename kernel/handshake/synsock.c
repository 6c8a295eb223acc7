// SPDX-License-Identifier: GPL-2.0-only
/* Looks up the sock that TCP has for an incoming SYN or SYN-ACK, or the listener and whether it has room. */

#include <net/inet6_hashtables.h>
#include <net/inet_hashtables.h>
#include <net/inet_sock.h>
#include <net/tcp.h>

#include "../net.h"
#include "synpkt.h"

/*
 * smc_synsock_find() - looks up the sock that TCP has for an incoming packet, other than a listener. From a
 * hook on input. Return: a full sock, a request or one in TIME-WAIT, with a reference that sock_gen_put()
 * drops; NULL if there is none.
 */
struct sock *smc_synsock_find(struct net *net, const struct smc_synpkt *pkt, struct sk_buff *skb)
{
	RCU_LOCKDEP_WARN(!rcu_read_lock_held(), "smc_synsock_find() outside of an RCU section");
#if IS_ENABLED(CONFIG_IPV6)
	if (pkt->ipv6)
		return smc_compat_lookup6(net, &pkt->in.peer, pkt->in.peer_port, &pkt->in.self,
					  pkt->in.self_port, inet6_iif(skb), inet6_sdif(skb));
#endif
	return smc_compat_lookup4(net, pkt->in.peer.s6_addr32[3], pkt->in.peer_port,
				  pkt->in.self.s6_addr32[3], pkt->in.self_port, inet_iif(skb), inet_sdif(skb));
}

/*
 * smc_synsock_state() - the state of the sock that TCP has for a packet that comes in, such as
 * TCP_NEW_SYN_RECV of a request. From a hook on input. Return: 0 if TCP has none but perhaps a listener.
 */
int smc_synsock_state(struct net *net, const struct smc_synpkt *pkt, struct sk_buff *skb)
{
	struct sock *sk = smc_synsock_find(net, pkt, skb);
	int state = sk ? READ_ONCE(sk->sk_state) : 0;

	if (sk)
		sock_gen_put(sk);
	return state;
}

/*
 * Returns the listener that TCP will choose for a SYN, which RCU keeps; NULL if it has none, or without memory. A BPF
 * program that chooses one (SO_ATTACH_REUSEPORT_EBPF) expects the TCP header first, as when TCP calls it, and softirqs
 * disabled.
 */
static struct sock *syn_listener(struct net *net, const struct smc_synpkt *pkt, struct sk_buff *skb)
{
	struct sock *lsk = skb->sk;

	RCU_LOCKDEP_WARN(!rcu_read_lock_held(), "syn_listener() outside of an RCU section");
	lockdep_assert_in_softirq();
	/* A transparent proxy may have set it. */
	if (lsk && sk_fullsock(lsk))
		return lsk->sk_state == TCP_LISTEN ? lsk : NULL;
	if (!pskb_may_pull(skb, pkt->tcp + pkt->tcp_len))
		return NULL;
	__skb_pull(skb, pkt->tcp);
#if IS_ENABLED(CONFIG_IPV6)
	if (pkt->ipv6)
		lsk = smc_compat_listener6(net, skb, pkt->tcp_len, &pkt->in.peer, pkt->in.peer_port, &pkt->in.self,
					   pkt->in.self_port, inet6_iif(skb), inet6_sdif(skb));
	else
#endif
		lsk = smc_compat_listener4(net, skb, pkt->tcp_len, pkt->in.peer.s6_addr32[3], pkt->in.peer_port,
					   pkt->in.self.s6_addr32[3], pkt->in.self_port, inet_iif(skb),
					   inet_sdif(skb));
	__skb_push(skb, pkt->tcp);
	return lsk;
}

/**
 * smc_synsock_overflows() - is a SYN for a listener of ours whose backlog is full?
 * @sn: the namespace
 * @pkt: the SYN's headers; TCP has no request and no connection for it
 * @skb: the SYN, as a hook on input has it
 *
 * TCP would drop it, but sees only those connections that are in its own queue, see
 * smc_synopt_port_full(). The caller is to drop it; it is counted, as TCP counts. Any context but
 * hardirq.
 */
bool smc_synsock_overflows(struct smc_net *sn, const struct smc_synpkt *pkt, struct sk_buff *skb)
{
	const struct smc_synopt_port *port;
	struct sock *lsk;
	bool full;

	RCU_LOCKDEP_WARN(!rcu_read_lock_held(), "smc_synsock_overflows() outside of an RCU section");
	local_bh_disable(); /* after NFQUEUE, the hook runs in process context */
	lsk = syn_listener(sn->net, pkt, skb);
	port = lsk ? smc_synopt_port_of(lsk) : NULL;
	full = port && smc_synopt_port_full(port);
	if (full) {
		__NET_INC_STATS(sn->net, LINUX_MIB_LISTENOVERFLOWS);
		tcp_listendrop(lsk);
	}
	local_bh_enable();
	return full;
}
