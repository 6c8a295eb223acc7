// SPDX-License-Identifier: GPL-2.0-only
/*
 * Handshakes that would most likely be in vain: with a peer with which SMC was not possible lately, or on a host without a device.
 * Then the option is left out of the SYN, or of the SYN-ACK, and the connection is TCP from the start.
 */

#include <net/inet_sock.h>
#include <net/ipv6.h>
#include <net/request_sock.h>

#include "../net.h"
#include "../wire/reason.h"
#include "handshake.h"

/* Is there no device for any connection of a namespace? Sets the reason then. */
static bool without_device(const struct net *net, struct smc_peers_why *why)
{
	if (smc_registry_present(net))
		return false;
	*why = (struct smc_peers_why){ .reason = SMC_REASON_NO_DEV };
	return true;
}

/**
 * smc_handshake_futile() - would a handshake with a peer most likely be in vain?
 * @sn: the namespace
 * @key: the peer
 * @why: result: the reason why the connection is TCP
 *
 * Context: any.
 * Return: whether the option is to be left out.
 */
bool smc_handshake_futile(const struct smc_net *sn, const struct smc_peers_key *key, struct smc_peers_why *why)
{
	return without_device(sn->net, why) || smc_peers_find(sn, key, why);
}

static void peers_key_of(const struct sock *sk, enum smc_peers_role role, struct smc_peers_key *key)
{
	*key = (struct smc_peers_key){
		.role = role,
		.addr = smc_net_peer_addr(sk),
		.ifindex = READ_ONCE(sk->sk_bound_dev_if),
		.uid = role == SMC_PEERS_CLIENT ? smc_peers_uid(sk) : 0,
		.port = ntohs(role == SMC_PEERS_SERVER ? inet_sk(sk)->inet_sport : sk->sk_dport),
	};
}

/**
 * smc_handshake_futile_sock() - the same for the other end of a connection
 * @sk: this end, which may be about to send its SYN
 * @role: of this end
 * @why: result
 *
 * Context: any.
 * Return: as smc_handshake_futile().
 */
bool smc_handshake_futile_sock(const struct sock *sk, enum smc_peers_role role, struct smc_peers_why *why)
{
	struct smc_peers_key key;

	if (without_device(sock_net(sk), why))
		return true;
	peers_key_of(sk, role, &key);
	return smc_peers_find(smc_net(sock_net(sk)), &key, why);
}

/**
 * smc_handshake_futile_syn() - the same for the peer of a SYN with the option
 * @syn: the SYN
 * @req: the request that TCP has made of it
 *
 * Context: softirq.
 * Return: as smc_handshake_futile().
 */
bool smc_handshake_futile_syn(const struct smc_syn *syn, const struct request_sock *req)
{
	const struct smc_peers_key key = {
		.role = SMC_PEERS_SERVER,
		.addr = syn->key.peer,
		.ifindex = inet_rsk(req)->ir_iif,
		.port = ntohs(syn->key.self_port),
	};
	struct smc_peers_why why;

	return smc_handshake_futile(smc_net(read_pnet(&inet_rsk(req)->ireq_net)), &key, &why);
}

/*
 * Has a server that returned the option not answered the PROPOSAL? Of errors, those count that the peer causes: a program can set
 * options of TCP so that its connection times out, or have a filter that loses the answer. A server that has used SMC lately and
 * closes the connection is about to end or to start again.
 */
static bool is_without_clc(const struct smc_rendezvous *rv, const struct smc_peers_key *key, int rc)
{
	if (rv->server || (rv->step != SMC_STEP_START && rv->step != SMC_STEP_ACCEPT) || rcu_access_pointer(rv->sk->sk_filter))
		return false;
	if (rc == -ECONNRESET)
		return !smc_peers_proven(smc_net(sock_net(rv->sk)), key);
	return rc == -EPROTO || (rc == -ETIMEDOUT && rv->late);
}

/*
 * Does the reason come from what the program has chosen: an address to connect from, or IPsec for its socket alone? Other programs may
 * have other reasons. A client with policies for all of its host knows them, and leaves the option out by itself.
 */
static bool is_of_socket(const struct smc_rendezvous *rv)
{
	const struct sock *sk = rv->sk;

	if (rv->server)
		return rv->peer_diagnosis == SMC_REASON_IPSEC;
#ifdef CONFIG_XFRM
	if (rcu_access_pointer(sk->sk_policy[0]) || rcu_access_pointer(sk->sk_policy[1]))
		return true;
#endif
	return sk->sk_userlocks & SOCK_BINDADDR_LOCK;
}

static void mark_reachable(struct smc_net *sn, const struct smc_peers_key *key, const struct smc_peers_stamp *stamp)
{
	const struct smc_peers_why why = {};

	if (!smc_peers_proven(sn, key))
		smc_peers_add(sn, key, &why, stamp);
}

/*
 * smc_handshake_mark_reachable() - SMC was possible with the server of a connection, without a rendezvous: it is remembered as one that may
 * close connections when it starts again. Context: process, may sleep.
 */
void smc_handshake_mark_reachable(const struct sock *sk)
{
	struct smc_net *sn = smc_net(sock_net(sk));
	struct smc_peers_stamp stamp;
	struct smc_peers_key key;

	might_sleep();
	peers_key_of(sk, SMC_PEERS_CLIENT, &key);
	smc_peers_stamp(sn, &stamp);
	mark_reachable(sn, &key, &stamp);
}

/**
 * smc_handshake_remember() - remembers the peer, if the next handshake would most likely end in the same way, or if it is a server with
 * which SMC was possible
 * @rv: a rendezvous that has ended
 * @rc: how, as smc_rendezvous_step() returns it
 */
void smc_handshake_remember(const struct smc_rendezvous *rv, int rc)
{
	struct smc_net *sn = smc_net(sock_net(rv->sk));
	struct smc_peers_why why = {};
	struct smc_peers_key key;

	might_sleep();
	peers_key_of(rv->sk, rv->server ? SMC_PEERS_SERVER : SMC_PEERS_CLIENT, &key);
	if (rc == SMC_OUTCOME_SMC) {
		if (!rv->server)
			mark_reachable(sn, &key, &rv->stamp);
		return;
	}
	if (is_without_clc(rv, &key, rc))
		why.reason = SMC_REASON_PEER_NO_CLC;
	else if (rc == SMC_OUTCOME_TCP && smc_reason_is_lasting(rv->reason, rv->peer_diagnosis) && !is_of_socket(rv))
		why = (struct smc_peers_why){ .reason = rv->reason, .diagnosis = rv->peer_diagnosis };
	else
		return;
	smc_peers_add(sn, &key, &why, &rv->stamp);
}
