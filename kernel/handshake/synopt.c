// SPDX-License-Identifier: GPL-2.0-only
/*
 * The TCP option by which two hosts find out that both speak SMC (RFC 7609, 3.1 and appendix A),
 * without help from TCP. Hooks on local output put it into the SYN of a socket that connects and
 * into the answer to a SYN that had it; hooks on local input look for it. They are registered in a
 * network namespace while a socket there listens or connects, and a little longer, as that costs
 * more than it saves if the next socket is about to come.
 *
 * Input is looked at as TCP will see it, and output as TCP has made it: our hooks are the last and
 * the first, so address translation is of no concern.
 */

#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/netfilter.h>
#include <linux/netfilter_ipv4.h>
#include <linux/netfilter_ipv6.h>
#include <linux/tcp.h>
#include <net/inet6_hashtables.h>
#include <net/inet_hashtables.h>
#include <net/inet_sock.h>
#include <net/ip6_checksum.h>
#include <net/ipv6.h>
#include <net/request_sock.h>
#include <net/tcp.h>

#include "../control/trace.h"
#include "../wire/tcpopt.h"
#include "handshake.h"
#include "synpkt.h"

#define UNHOOK_DELAY (5 * HZ)

/* A listener on a port, or there the one with a record, or the one with an id. Under RCU. */
static struct smc_synopt_port *port_of(struct smc_net *sn, u16 port, const struct smc_sock *smc, u64 id)
{
	struct smc_synopt_port *p;

	hlist_for_each_entry_rcu(p, &sn->synopt.ports[port % SMC_SYNOPT_PORTS], node)
		if (p->port == port && (!smc || p->smc == smc) && (!id || p->id == id))
			return p;
	return NULL;
}

/*
 * smc_synopt_port_add() - lets the hooks know of a listener. Its port is bound. Does not sleep.
 */
void smc_synopt_port_add(struct smc_sock *smc, struct smc_synopt_port *port)
{
	struct smc_synopt_net *so = &smc_net(sock_net(smc->sk))->synopt;
	static atomic64_t ids;

	port->smc = smc;
	port->id = atomic64_inc_return(&ids);
	port->port = inet_sk(smc->sk)->inet_num;
	spin_lock(&so->ports_lock);
	hlist_add_head_rcu(&port->node, &so->ports[port->port % SMC_SYNOPT_PORTS]);
	spin_unlock(&so->ports_lock);
}

/*
 * smc_synopt_port_del() - undoes it; hooks may look at the port for a grace period. Does not sleep.
 */
void smc_synopt_port_del(struct smc_synopt_port *port)
{
	struct smc_synopt_net *so = &smc_net(sock_net(port->smc->sk))->synopt;

	spin_lock(&so->ports_lock);
	hlist_del_rcu(&port->node);
	spin_unlock(&so->ports_lock);
}

static void key_of(const struct sock *child, struct smc_syn_key *key)
{
	memset(key, 0, sizeof(*key));
#if IS_ENABLED(CONFIG_IPV6)
	if (child->sk_family == AF_INET6) {
		key->peer = child->sk_v6_daddr;
		key->self = child->sk_v6_rcv_saddr;
	} else
#endif
	{
		ipv6_addr_set_v4mapped(child->sk_daddr, &key->peer);
		ipv6_addr_set_v4mapped(child->sk_rcv_saddr, &key->self);
	}
	key->peer_port = child->sk_dport;
	/* Not sk_num: a child that its peer has reset has given back its port. */
	key->self_port = inet_sk(child)->inet_sport;
	/* Nothing has been read of it. */
	key->isn = READ_ONCE(tcp_sk(child)->copied_seq) - 1;
}

/* The key of a connection whose client is in this namespace, from its end; nothing has been sent yet. */
static void key_of_client(const struct sock *client, struct smc_syn_key *key)
{
	struct smc_syn_key end;

	key_of(client, &end);
	*key = (struct smc_syn_key){
		.peer = end.self, .self = end.peer,
		.peer_port = end.self_port, .self_port = end.peer_port,
		.isn = READ_ONCE(tcp_sk(client)->snd_una) - 1,
	};
}

/* The table of a namespace; NULL while there is none. Under RCU. */
static struct smc_syntab *syns_of(const struct sock *sk)
{
	return smp_load_acquire(&smc_net(sock_net(sk))->synopt.syns); /* pairs with hook() */
}

/*
 * smc_synopt_seen() - have both sides of an inbound connection had the option? Its listener is
 * armed. Does not sleep.
 */
enum smc_syn_said smc_synopt_seen(const struct sock *child)
{
	enum smc_syn_said said;
	struct smc_syntab *syns;
	struct smc_syn_key key;

	key_of(child, &key);
	rcu_read_lock();
	syns = syns_of(child);
	said = syns ? smc_syntab_look(syns, &key) : SMC_SYN_NOTHING;
	rcu_read_unlock();
	return said;
}

/*
 * smc_synopt_claim() - the same, for good: the next connection with these addresses has to say it
 * anew, and of those who ask, one gets it. @listener: whose child it has to be, or 0.
 */
bool smc_synopt_claim(const struct sock *child, u64 listener)
{
	struct smc_syntab *syns;
	struct smc_syn_key key;
	bool said;

	key_of(child, &key);
	rcu_read_lock();
	syns = syns_of(child);
	said = syns && smc_syntab_claim(syns, &key, listener);
	rcu_read_unlock();
	return said;
}

/* smc_synopt_remote() - a client of this namespace is going to talk CLC. Does not sleep. */
void smc_synopt_remote(const struct sock *client)
{
	struct smc_syntab *syns;
	struct smc_syn_key key;

	key_of_client(client, &key);
	rcu_read_lock();
	syns = syns_of(client);
	if (syns)
		smc_syntab_remote(syns, &key);
	rcu_read_unlock();
}

/*
 * smc_synopt_listener() - the record of the listener of this namespace that has answered a client,
 * with a reference, if the two may do without CLC messages; else NULL. Does not sleep.
 */
struct smc_sock *smc_synopt_listener(const struct sock *client)
{
	struct smc_synopt_port *p = NULL;
	struct smc_sock *smc = NULL;
	struct smc_syntab *syns;
	struct smc_syn_key key;
	u64 id;

	key_of_client(client, &key);
	rcu_read_lock();
	syns = syns_of(client);
	id = syns ? smc_syntab_local(syns, &key) : 0;
	if (id)
		p = port_of(smc_net(sock_net(client)), ntohs(client->sk_dport), NULL, id);
	if (p && smc_table_get(p->smc))
		smc = p->smc;
	rcu_read_unlock();
	return smc;
}

/* A SYN goes out. Is it from a socket that is to become an SMC connection? */
static bool wants_syn(const struct sock *sk)
{
	struct smc_sock *smc;
	bool wants;

	if (!sk || !sk_fullsock(sk) || sk->sk_state != TCP_SYN_SENT)
		return false;
	smc = smc_table_find(sk);
	if (!smc)
		return false;
	wants = READ_ONCE(smc->phase) == SMC_PHASE_CONNECT;
	smc_table_put(smc);
	return wants;
}

/*
 * A SYN-ACK goes out. Did the SYN have the option, is the listener one of ours, and may it have one
 * more handshake? One that gets connections to a port which is not its own, as a transparent proxy
 * does, is none of ours. A SYN-ACK with a cookie belongs to no request: TCP will have forgotten the
 * SYN, and so do we.
 */
static bool wants_synack(struct smc_net *sn, const struct smc_synpkt *pkt, const struct sock *sk)
{
	u16 port = ntohs(pkt->out.self_port);
	const struct smc_synopt_port *p;
	struct smc_sock *smc = NULL;
	bool wants = false;

	if (!port_of(sn, port, NULL, 0))
		return false;
	if (sk && sk->sk_state == TCP_NEW_SYN_RECV && inet_reqsk(sk)->rsk_listener)
		smc = smc_table_find(inet_reqsk(sk)->rsk_listener);
	p = smc ? port_of(sn, port, smc, 0) : NULL;
	if (p)
		wants = smc_syntab_answer(sn->synopt.syns, &pkt->out, !smc_limit_reached(smc), p->id);
	else
		smc_syntab_withdraw(sn->synopt.syns, &pkt->out);
	smc_table_put(smc);
	return wants;
}

static noinline void syn_out(struct smc_net *sn, struct sk_buff *skb, u8 pf)
{
	struct smc_synpkt pkt;

	if (!smc_synpkt_look(skb, pf, &pkt))
		return;
	if (!pkt.ack) {
		if (wants_syn(skb->sk) && smc_synpkt_room(skb, &pkt))
			smc_synpkt_insert(skb, &pkt);
	} else if (wants_synack(sn, &pkt, skb->sk)) {
		if (!smc_synpkt_room(skb, &pkt) || smc_synpkt_insert(skb, &pkt))
			smc_syntab_withdraw(sn->synopt.syns, &pkt.out);
	}
}

static unsigned int out(void *priv, struct sk_buff *skb, const struct nf_hook_state *state)
{
	if (unlikely(smc_synpkt_is_syn(skb, state->pf)))
		syn_out(priv, skb, state->pf);
	return NF_ACCEPT;
}

/*
 * The socket that has sent the SYN which this SYN-ACK is for, with a reference; NULL if there is
 * none.
 */
static struct sock *syn_sent(struct net *net, const struct smc_synpkt *pkt, struct sk_buff *skb)
{
#if IS_ENABLED(CONFIG_IPV6)
	if (pkt->ipv6)
		return smc_compat_lookup6(net, &pkt->in.peer, pkt->in.peer_port, &pkt->in.self,
					  pkt->in.self_port, inet6_iif(skb), inet6_sdif(skb));
#endif
	return smc_compat_lookup4(net, pkt->in.peer.s6_addr32[3], pkt->in.peer_port,
				  pkt->in.self.s6_addr32[3], pkt->in.self_port, inet_iif(skb), inet_sdif(skb));
}

/*
 * Does it acknowledge what the socket has sent? snd_nxt does not say: TCP moves it when the SYN is
 * on its way already.
 */
static bool acceptable(const struct sock *sk, u32 ack)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return after(ack, READ_ONCE(tp->snd_una)) && !after(ack, READ_ONCE(tp->write_seq));
}

/* A SYN-ACK that TCP will take for the socket's own says whether the peer speaks SMC. */
static void in_synack(struct net *net, const struct smc_synpkt *pkt, struct sk_buff *skb, bool has)
{
	struct sock *sk = syn_sent(net, pkt, skb);
	struct smc_sock *smc;

	if (!sk)
		return;
	if (sk_fullsock(sk) && sk->sk_state == TCP_SYN_SENT && acceptable(sk, pkt->ack_seq)) {
		smc = smc_table_find(sk);
		if (smc && READ_ONCE(smc->phase) == SMC_PHASE_CONNECT)
			WRITE_ONCE(smc->peer_smc, has);
		smc_table_put(smc);
	}
	sock_gen_put(sk);
}

/* Does a SYN come from a socket of this namespace, which may do without a handshake? */
static bool from_here(struct smc_net *sn, const struct nf_hook_state *state)
{
	return state->in && (state->in->flags & IFF_LOOPBACK) &&
	       READ_ONCE(sn->sysctl.loopback) != SMC_LOOPBACK_OFF && smc_registry_pairs();
}

static noinline void syn_in(struct smc_net *sn, struct sk_buff *skb, const struct nf_hook_state *state)
{
	struct smc_synpkt pkt;
	bool has;

	if (!smc_synpkt_look(skb, state->pf, &pkt))
		return;
	has = smc_tcpopt_find(pkt.opts, pkt.opts_len) >= 0;
	if (pkt.ack) {
		in_synack(state->net, &pkt, skb, has);
	} else if (has && port_of(sn, ntohs(pkt.in.self_port), NULL, 0)) {
		smc_syntab_add(sn->synopt.syns, &pkt.in, from_here(sn, state));
	}
}

static unsigned int in(void *priv, struct sk_buff *skb, const struct nf_hook_state *state)
{
	if (unlikely(smc_synpkt_is_syn(skb, state->pf)))
		syn_in(priv, skb, state);
	return NF_ACCEPT;
}

static const struct nf_hook_ops hooks[] = {
	{ .hook = out, .pf = NFPROTO_IPV4, .hooknum = NF_INET_LOCAL_OUT, .priority = NF_IP_PRI_FIRST },
	{ .hook = in, .pf = NFPROTO_IPV4, .hooknum = NF_INET_LOCAL_IN, .priority = NF_IP_PRI_LAST },
#if IS_ENABLED(CONFIG_IPV6)
	{ .hook = out, .pf = NFPROTO_IPV6, .hooknum = NF_INET_LOCAL_OUT, .priority = NF_IP6_PRI_FIRST },
	{ .hook = in, .pf = NFPROTO_IPV6, .hooknum = NF_INET_LOCAL_IN, .priority = NF_IP6_PRI_LAST },
#endif
};

/* The hooks of one namespace; they find it by their argument. */
static int hook(struct smc_net *sn)
{
	struct smc_synopt_net *so = &sn->synopt;
	struct nf_hook_ops *ops = so->hooks;
	struct smc_syntab *syns;
	unsigned int i;
	int rc;

	lockdep_assert_held(&so->lock);
	if (so->hooked)
		return 0;
	syns = smc_syntab_new();
	if (!syns)
		return -ENOMEM;
	smp_store_release(&so->syns, syns); /* pairs with syns_of(), and the hooks' registration with theirs */
	for (i = 0; i < ARRAY_SIZE(hooks); i++) {
		ops[i] = hooks[i];
		ops[i].priv = sn;
	}
	rc = nf_register_net_hooks(sn->net, ops, ARRAY_SIZE(hooks));
	if (rc) {
		WRITE_ONCE(so->syns, NULL);
		synchronize_net();
		smc_syntab_free(syns);
		return rc;
	}
	so->hooked = true;
	return 0;
}

static void unhook(struct smc_net *sn)
{
	struct smc_synopt_net *so = &sn->synopt;
	struct smc_syntab *syns = so->syns;

	lockdep_assert_held(&so->lock);
	if (!so->hooked)
		return;
	nf_unregister_net_hooks(sn->net, so->hooks, ARRAY_SIZE(hooks));
	/*
	 * First packets that are in a hook, which count on the table; then others, which see
	 * whether it is there.
	 */
	synchronize_net();
	WRITE_ONCE(so->syns, NULL);
	synchronize_net();
	smc_syntab_free(syns);
	so->hooked = false;
}

static void unhook_work(struct work_struct *work)
{
	struct smc_synopt_net *so = container_of(to_delayed_work(work), struct smc_synopt_net, unhook);

	mutex_lock(&so->lock);
	if (!atomic_read(&so->users))
		unhook(container_of(so, struct smc_net, synopt));
	mutex_unlock(&so->lock);
}

/**
 * smc_synopt_get() - one more socket of a namespace listens or connects
 * @sn: the namespace
 *
 * May sleep. Return: 0 or -ENOMEM.
 */
int smc_synopt_get(struct smc_net *sn)
{
	struct smc_synopt_net *so = &sn->synopt;
	int rc;

	if (atomic_inc_not_zero(&so->users))
		return 0;
	mutex_lock(&so->lock);
	rc = hook(sn);
	if (!rc)
		atomic_inc(&so->users);
	mutex_unlock(&so->lock);
	return rc;
}

/* smc_synopt_put() - one less. Does not sleep. */
void smc_synopt_put(struct smc_net *sn)
{
	if (atomic_dec_and_test(&sn->synopt.users))
		mod_delayed_work(smc_net_wq, &sn->synopt.unhook, UNHOOK_DELAY);
}

/* smc_synopt_net_init() - of a new namespace. Return: 0. */
int smc_synopt_net_init(struct smc_net *sn)
{
	struct smc_synopt_net *so = &sn->synopt;
	unsigned int i;

	mutex_init(&so->lock);
	spin_lock_init(&so->ports_lock);
	INIT_DELAYED_WORK(&so->unhook, unhook_work);
	for (i = 0; i < SMC_SYNOPT_PORTS; i++)
		INIT_HLIST_HEAD(&so->ports[i]);
	return 0;
}

/* smc_synopt_net_exit() - the namespace goes; no socket of ours is left in it. May sleep. */
void smc_synopt_net_exit(struct smc_net *sn)
{
	cancel_delayed_work_sync(&sn->synopt.unhook);
	mutex_lock(&sn->synopt.lock);
	unhook(sn);
	mutex_unlock(&sn->synopt.lock);
}
