// SPDX-License-Identifier: GPL-2.0-only
/*
 * The TCP option by which two hosts find out that both speak SMC (RFC 7609, 3.1 and A.1),
 * without help from TCP. Hooks on local output put it into the SYN of a socket that connects and
 * into the answer to a SYN that had it; hooks on local input look for it. synreg.c registers them.
 *
 * Our hooks are the last on input and the first on output, so they see addresses as TCP does, whatever
 * address translation there is.
 */

#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/netfilter.h>
#include <linux/netfilter_ipv4.h>
#include <linux/netfilter_ipv6.h>
#include <linux/tcp.h>
#include <net/inet_sock.h>
#include <net/ip6_checksum.h>
#include <net/ipv6.h>
#include <net/request_sock.h>
#include <net/sock_reuseport.h>
#include <net/tcp.h>

#include "../control/sysctl.h"
#include "../net.h"
#include "../transport/transport.h"
#include "../wire/tcpopt.h"
#include "handshake.h"
#include "synpkt.h"

/*
 * The last SYN with the option that came in on a processor. TCP answers it, or not, before that
 * processor handles another one, so we store no SYNs that TCP does not answer. A SYN that NFQUEUE has
 * delayed comes in process context, as do SYN-ACKs that TCP repeats when a socket is unlocked: if the
 * thread has moved to another processor, the answer does not have the option.
 */
struct pending_syn {
	spinlock_t		lock;
	struct smc_net		*sn;	/* of its namespace; NULL if there is no SYN */
	struct smc_syn		syn;
};

static DEFINE_PER_CPU(struct pending_syn, pending_syn) = {
	.lock = __SPIN_LOCK_UNLOCKED(pending_syn.lock),
};

/* Locks the pending SYN of this processor. Any context but hardirq. */
static struct pending_syn *lock_pending(void) __acquires(pending_syn.lock)
{
	struct pending_syn *pending;

	local_bh_disable();
	pending = this_cpu_ptr(&pending_syn);
	spin_lock(&pending->lock);
	return pending;
}

static void syn_key_of(const struct sock *child, struct smc_syn_key *key)
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

/* Makes the key of a connection from its client, which is in this namespace and has sent nothing yet. */
static void key_of_client(const struct sock *client, struct smc_syn_key *key)
{
	struct smc_syn_key end;

	syn_key_of(client, &end);
	*key = (struct smc_syn_key){
		.peer = end.self, .self = end.peer,
		.peer_port = end.self_port, .self_port = end.peer_port,
		.isn = READ_ONCE(tcp_sk(client)->snd_una) - 1,
	};
}

/*
 * Returns the sequence number of the SYN-ACK that has made a child, which has sent nothing yet. TCP may forget
 * a SYN and answer it again: then the number tells the answers apart.
 */
static u32 synack_of(const struct sock *child)
{
	return READ_ONCE(tcp_sk(child)->snd_una) - 1;
}

/* Returns the table of promises of a sock's namespace, NULL while there is none. */
static struct smc_syntab *syns_of(const struct sock *sk)
{
	RCU_LOCKDEP_WARN(!rcu_read_lock_held(), "syns_of() outside of an RCU section");
	return smc_synopt_syns(smc_net(sock_net(sk)));
}

/*
 * smc_synopt_state() - did both sides of an inbound connection have the option? Its listener is armed. Does
 * not sleep.
 */
enum smc_syn_state smc_synopt_state(const struct sock *child)
{
	enum smc_syn_state state = SMC_SYN_NOTHING;
	struct smc_syntab *syns;
	struct smc_syn_key key;

	rcu_read_lock();
	syns = syns_of(child);
	if (syns && !smc_syntab_is_empty(syns)) {
		syn_key_of(child, &key);
		state = smc_syntab_find(syns, &key, synack_of(child));
	}
	rcu_read_unlock();
	return state;
}

/*
 * smc_synopt_claim() - the same, and removes the entry, so that one caller gets the connection. @port: of the
 * listener that asks, NULL if that is plain TCP; @any: also if another listener has answered the SYN. Does not sleep.
 */
enum smc_syn_claim smc_synopt_claim(const struct sock *child, struct smc_synopt_port *port, bool any)
{
	struct smc_net *sn = smc_net(sock_net(child));
	enum smc_syn_claim claim = SMC_CLAIM_NONE;
	struct smc_syntab *syns;
	struct smc_syn_key key;

	rcu_read_lock();
	syns = smc_synopt_syns(sn);
	if (syns && !smc_syntab_is_empty(syns)) {
		syn_key_of(child, &key);
		claim = smc_syntab_claim(syns, sn->synopt, &key, synack_of(child), port ? port->id : 0, any);
	}
	rcu_read_unlock();
	return claim;
}

/* smc_synopt_set_remote() - a client of this namespace is going to send CLC messages. Does not sleep. */
void smc_synopt_set_remote(const struct sock *client)
{
	struct smc_syntab *syns;
	struct smc_syn_key key;

	key_of_client(client, &key);
	rcu_read_lock();
	syns = syns_of(client);
	if (syns)
		smc_syntab_set_remote(syns, &key);
	rcu_read_unlock();
}

/*
 * smc_synopt_listener() - returns the port of the listener in this namespace that has answered a client, if
 * they may connect without CLC messages; else NULL.
 */
struct smc_synopt_port *smc_synopt_listener(const struct sock *client)
{
	struct smc_syntab *syns = syns_of(client);
	struct smc_syn_listener listener = {};
	struct smc_syn_key key;

	RCU_LOCKDEP_WARN(!rcu_read_lock_held(), "smc_synopt_listener() outside of an RCU section");
	key_of_client(client, &key);
	if (syns)
		listener = smc_syntab_local(syns, &key);
	return listener.id ? smc_synopt_port_find(&listener) : NULL;
}

/* Returns what the hooks know of a sock whose SYN is to ask for SMC, NULL of any other. Under RCU. */
static struct smc_synopt_sock *(*connecting)(const struct sock *sk);

/* May a listener answer a SYN from an address with the option? Under RCU. */
static bool (*admits)(const struct smc_synopt_port *port, const struct in6_addr *peer);

/*
 * smc_synopt_register() - before there are sockets, sock/ tells how the hooks find those that connect, and which SYNs the policy has
 * listeners answer with the option.
 */
void smc_synopt_register(struct smc_synopt_sock *(*connecting_fn)(const struct sock *sk),
			 bool (*admits_fn)(const struct smc_synopt_port *port, const struct in6_addr *peer))
{
	connecting = connecting_fn;
	admits = admits_fn;
}

/*
 * Is SMC not possible with the server of a SYN? connect() has asked for the address that it was given, and a BPF program may have
 * changed that.
 */
static bool is_futile(const struct sock *sk, struct smc_synopt_sock *opt)
{
	struct smc_peers_why why;

	if (!smc_handshake_futile_sock(sk, SMC_PEERS_CLIENT, &why))
		return false;
	WRITE_ONCE(opt->futile_diagnosis, why.diagnosis);
	WRITE_ONCE(opt->futile, why.reason);
	return true;
}

/* Is an outgoing SYN from a socket that wants SMC, and will our hooks see the answer? */
static bool wants_option(const struct sk_buff *skb)
{
	const struct sock *sk = skb->sk;
	struct smc_synopt_sock *opt;

	if (!sk || !sk_fullsock(sk) || sk->sk_state != TCP_SYN_SENT)
		return false;
	opt = connecting(sk);
	if (!opt)
		return false;
	/* Such a device may send the SYN through here again, by a route that does not reveal the device. */
	if (READ_ONCE(opt->answer_hidden) || smc_synopt_hidden(skb, sock_net(sk))) {
		WRITE_ONCE(opt->answer_hidden, true);
		return false;
	}
	if (is_futile(sk, opt))
		return false;
	WRITE_ONCE(opt->asked, true);
	return true;
}

/*
 * smc_synopt_may_migrate() - may TCP move children or requests of a listener to another listener when it is
 * closed? The other one may be plain TCP, and its application would read CLC messages. Under RCU.
 */
bool smc_synopt_may_migrate(const struct sock *lsk)
{
	const struct sock_reuseport *group = rcu_dereference(lsk->sk_reuseport_cb);
	const struct bpf_prog *prog;

	if (!group)
		return false;
	if (READ_ONCE(sock_net(lsk)->ipv4.sysctl_tcp_migrate_req))
		return true;
	prog = rcu_dereference(group->prog);
	return prog && prog->expected_attach_type == BPF_SK_REUSEPORT_SELECT_OR_MIGRATE;
}

/*
 * Does a listener answer a SYN with the option? Only if it is ours, and listens on the port of the SYN: a
 * transparent proxy gets connections to other ports.
 */
static bool promise(struct smc_net *sn, const struct smc_syn *syn, u32 synack, const struct sock *lsk)
{
	struct smc_synopt_net *so = sn->synopt;
	struct smc_synopt_port *p = smc_synopt_port_of(lsk);
	struct smc_syn_listener listener = { .sk = lsk };
	u16 port = ntohs(syn->key.self_port);
	bool done = false;

	/* While there were no hooks, the SYN that was saved may have been an earlier one. */
	if (p && smc_synopt_hooked(so) && READ_ONCE(p->port) == port && !smc_synopt_may_migrate(lsk) && !smc_limit_reached(p) && admits(p, &syn->key.peer)) {
		listener.id = smc_synopt_promise(so, p);
		done = listener.id && smc_syntab_add(so->syns, syn, synack, &listener);
		if (listener.id && !done)
			smc_synopt_promise_end(so, &listener, true, true);
	}
	if (done)
		smc_synopt_reap(so);
	return done;
}

/* Takes the last SYN that this processor has seen, if it has this key. */
static bool take_pending(struct smc_net *sn, const struct smc_syn_key *key, struct smc_syn *syn)
{
	struct pending_syn *pending = lock_pending();
	bool found;

	found = pending->sn == sn && !memcmp(&pending->syn.key, key, sizeof(*key));
	if (found) {
		*syn = pending->syn;
		pending->sn = NULL;
	}
	spin_unlock_bh(&pending->lock);
	return found;
}

/* Whether a SYN-ACK has the option. */
enum answer {
	ANSWER_TCP,	/* no */
	ANSWER_SMC,	/* yes, and it is the first answer to the SYN */
	ANSWER_AGAIN,	/* yes, as the answer before */
};

/*
 * Decides whether an outgoing SYN-ACK has the option: all answers to one SYN are alike. A SYN-ACK without a
 * sock is a copy that netfilter has made, or has a cookie, and TCP forgets the SYN. With TCP Fast Open the
 * connection has its data before the first answer: no answer to that SYN has the option.
 */
static enum answer synack_answer(struct smc_net *sn, const struct smc_synpkt *pkt, const struct sock *sk)
{
	struct smc_syn syn;

	if (sk && sk->sk_state == TCP_SYN_RECV)
		take_pending(sn, &pkt->out, &syn);
	if (!sk || sk->sk_state != TCP_NEW_SYN_RECV || !inet_reqsk(sk)->rsk_listener)
		return ANSWER_TCP;
	if (smc_syntab_repeat(sn->synopt->syns, &pkt->out, pkt->seq))
		return ANSWER_AGAIN;
	if (take_pending(sn, &pkt->out, &syn) && !smc_handshake_futile_syn(&syn, inet_reqsk(sk)) &&
	    promise(sn, &syn, pkt->seq, inet_reqsk(sk)->rsk_listener))
		return ANSWER_SMC;
	return ANSWER_TCP;
}

/*
 * Puts the option into a SYN-ACK. Drops a repeated one without room or memory for it, because a client that got
 * it without the option would disagree with its server. TCP is not to know: after an error it would forget the SYN,
 * else it repeats the answer.
 */
static unsigned int synack_out(struct smc_net *sn, struct sk_buff *skb, const struct smc_synpkt *pkt)
{
	struct smc_synopt_net *so = sn->synopt;
	enum answer answer = synack_answer(sn, pkt, skb->sk);

	if (answer == ANSWER_TCP)
		return NF_ACCEPT;
	if (smc_synpkt_room(skb, pkt) && !smc_synpkt_insert(skb, pkt))
		return NF_ACCEPT;
	if (answer == ANSWER_AGAIN) {
		kfree_skb(skb);
		return NF_STOLEN;
	}
	smc_syntab_claim(so->syns, so, &pkt->out, pkt->seq, 0, true);
	return NF_ACCEPT;
}

static noinline unsigned int syn_out(struct smc_net *sn, struct sk_buff *skb, u8 pf)
{
	struct smc_synpkt pkt;

	if (!smc_synpkt_look(skb, pf, &pkt))
		return NF_ACCEPT;
	/* It has passed before: with a VRF, packets pass twice. */
	if (smc_tcpopt_find(pkt.opts, pkt.opts_len) >= 0)
		return NF_ACCEPT;
	if (pkt.ack)
		return synack_out(sn, skb, &pkt);
	if (wants_option(skb) && smc_synpkt_room(skb, &pkt))
		smc_synpkt_insert(skb, &pkt);
	return NF_ACCEPT;
}

/* Can a sock send a SYN, or the answer to one? The hook does not change those without a sock: copies, and answers with a cookie. */
static bool sends_syns(const struct sock *sk)
{
	return sk && (1 << READ_ONCE(sk->sk_state)) & (TCPF_SYN_SENT | TCPF_SYN_RECV | TCPF_NEW_SYN_RECV);
}

/* Is there no sock, or no SYN to be answered, that asks for SMC? Then SYNs and answers need not be looked at. */
static bool none_asks(const struct smc_synopt_net *so, const struct sock *sk)
{
	if (READ_ONCE(sk->sk_state) == TCP_SYN_SENT)
		return !atomic_read(&so->connecting) || !smc_synopt_hooked(so);
	/* A SYN that is answered now is that of this processor. */
	return smc_syntab_is_empty(so->syns) && !READ_ONCE(raw_cpu_ptr(&pending_syn)->sn);
}

static unsigned int nf_out(void *priv, struct sk_buff *skb, const struct nf_hook_state *state)
{
	struct smc_net *sn = priv;

	if (likely(!sends_syns(skb->sk)) || none_asks(sn->synopt, skb->sk))
		return NF_ACCEPT;
	if (smc_synpkt_flags(skb, state->pf) & TCPHDR_SYN)
		return syn_out(sn, skb, state->pf);
	return NF_ACCEPT;
}

/* Does @ack acknowledge the socket's SYN? TCP moves snd_nxt only after it has sent the SYN, so that does not tell. */
static bool acceptable(const struct sock *sk, u32 ack)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return after(ack, READ_ONCE(tp->snd_una)) && !after(ack, READ_ONCE(tp->write_seq));
}

/* A SYN-ACK that TCP will accept for a socket shows whether the peer speaks SMC. An option that was not asked for means nothing. */
static void in_synack(struct net *net, const struct smc_synpkt *pkt, struct sk_buff *skb, bool has)
{
	struct sock *sk = smc_synsock_find(net, pkt, skb);
	struct smc_synopt_sock *opt;

	if (!sk)
		return;
	if (sk_fullsock(sk) && sk->sk_state == TCP_SYN_SENT && acceptable(sk, pkt->ack_seq)) {
		opt = connecting(sk);
		if (opt)
			WRITE_ONCE(opt->peer_smc, has && READ_ONCE(opt->asked));
	}
	sock_gen_put(sk);
}

/* Does a SYN come from a socket of this namespace, which may connect without CLC messages? */
static bool syn_is_local(struct smc_net *sn, const struct nf_hook_state *state)
{
	return state->in && (state->in->flags & IFF_LOOPBACK) &&
	       READ_ONCE(sn->sysctl->loopback) != SMC_LOOPBACK_OFF && smc_registry_pairs();
}

/*
 * Stores a SYN with the option, which is about to reach TCP. @state: of the sock that TCP has for it. A request
 * has been answered already: the option is in all answers to it or in none.
 */
static void save_pending(struct smc_net *sn, const struct smc_synpkt *pkt, struct sk_buff *skb, bool local, int state)
{
	bool repeated = state == TCP_NEW_SYN_RECV || state == TCP_SYN_RECV;
	struct pending_syn *pending = lock_pending();

	pending->sn = repeated ? NULL : sn;
	pending->syn.key = pkt->in;
	pending->syn.local = local;
	pending->syn.dif = pkt->ipv6 ? inet6_iif(skb) : inet_iif(skb);
	pending->syn.sdif = pkt->ipv6 ? inet6_sdif(skb) : inet_sdif(skb);
	spin_unlock_bh(&pending->lock);
}

/* A SYN comes in. @has: it has the option. Drops it if TCP would do so with all children in its own queue. */
static unsigned int in_syn(struct smc_net *sn, const struct smc_synpkt *pkt, struct sk_buff *skb,
			   const struct nf_hook_state *hook, bool has)
{
	bool ours = has && smc_synopt_hooked(sn->synopt) && smc_synopt_port_used(sn->synopt, ntohs(pkt->in.self_port));
	bool counts = atomic_read(&sn->synopt->moves);
	int state;

	if (likely(!ours && !counts))
		return NF_ACCEPT;
	state = smc_synsock_state(sn->net, pkt, skb);
	if (counts && (!state || state == TCP_TIME_WAIT) && smc_synsock_overflows(sn, pkt, skb))
		return NF_DROP;
	if (ours)
		save_pending(sn, pkt, skb, syn_is_local(sn, hook), state);
	return NF_ACCEPT;
}

static noinline unsigned int syn_in(struct smc_net *sn, struct sk_buff *skb, const struct nf_hook_state *state, u8 flags)
{
	struct smc_synpkt pkt;
	bool has;

	/* An answer is for a socket of ours only if one connects. */
	if ((flags & TCPHDR_ACK) && !atomic_read(&sn->synopt->connecting))
		return NF_ACCEPT;
	if (!smc_synpkt_look(skb, state->pf, &pkt))
		return NF_ACCEPT;
	has = smc_tcpopt_find(pkt.opts, pkt.opts_len) >= 0;
	if (!pkt.ack)
		return in_syn(sn, &pkt, skb, state, has);
	in_synack(state->net, &pkt, skb, has);
	return NF_ACCEPT;
}

static unsigned int nf_in(void *priv, struct sk_buff *skb, const struct nf_hook_state *state)
{
	u8 flags = smc_synpkt_flags(skb, state->pf);

	if (unlikely(flags & TCPHDR_SYN))
		return syn_in(priv, skb, state, flags);
	return NF_ACCEPT;
}

/* The hooks of a namespace; priv is its struct smc_net. */
const struct nf_hook_ops smc_synopt_hooks[SMC_SYNOPT_HOOKS] = {
	{ .hook = nf_out, .pf = NFPROTO_IPV4, .hooknum = NF_INET_LOCAL_OUT, .priority = NF_IP_PRI_FIRST },
	{ .hook = nf_in, .pf = NFPROTO_IPV4, .hooknum = NF_INET_LOCAL_IN, .priority = NF_IP_PRI_LAST },
#if IS_ENABLED(CONFIG_IPV6)
	{ .hook = nf_out, .pf = NFPROTO_IPV6, .hooknum = NF_INET_LOCAL_OUT, .priority = NF_IP6_PRI_FIRST },
	{ .hook = nf_in, .pf = NFPROTO_IPV6, .hooknum = NF_INET_LOCAL_IN, .priority = NF_IP6_PRI_LAST },
#endif
};
