// SPDX-License-Identifier: GPL-2.0-only
/*
 * A rendezvous of two ends in one namespace. Messages over TCP would tell this kernel what it knows:
 * so the client's end, once TCP is connected, makes the connection of both, while TCP still has the
 * child in the listener's queue, and accept() finds it ready.
 *
 * Both ends have asked for SMC by the option, as ever. The table of SYNs says so once, either to the
 * client here or to who takes the child out of TCP's queue, which then waits for a PROPOSAL.
 */

#include <net/inet_hashtables.h>
#include <net/tcp_states.h>

#include "../conn/conn.h"
#include "handshake.h"

/* The other end of a connection, if it is a socket of the same namespace and connected, with a reference. */
static struct sock *other_end(struct sock *sk)
{
	struct sock *peer = smc_net_peer(sk);

	if (peer && (!sk_fullsock(peer) || inet_sk_state_load(peer) != TCP_ESTABLISHED || peer == sk)) {
		sock_gen_put(peer);
		return NULL;
	}
	return peer;
}

static bool connect_to(struct smc_sock *smc, struct smc_sock *lsmc, struct sock *peer)
{
	struct smc_offer client = { .sk = smc->sk }, server = { .sk = peer };
	struct smc_sock *child = smc_table_new(peer, GFP_KERNEL);
	bool done = false;

	if (!child)
		return false;
	child->server = true;
	child->peer_smc = true;
	if (!smc_registry_pair(&client, &server)) {
		struct smc_conn *conn = server.conn;

		/* The record has the reference, whatever becomes of it. */
		server.conn = NULL;
		smc_active_child(child, conn);
		smc_conn_get(conn); /* an accept() may have closed it, once it is published */
		done = smc_listen_publish(lsmc, child);
		if (done)
			smc_conn_count(conn);
		smc_conn_put(conn);
	}
	if (done) {
		smc_active_take(smc, smc->sock, client.conn);
		client.conn = NULL;
	} else {
		/* Both ends go on without: nobody may hear of these. */
		if (rcu_access_pointer(child->conn))
			smc_conn_kill(rcu_dereference_protected(child->conn, true), true);
		if (server.conn)
			smc_conn_kill(server.conn, true);
		if (client.conn)
			smc_conn_kill(client.conn, true);
		smc_table_put(child);
	}
	smc_registry_release(&client);
	smc_registry_release(&server);
	return done;
}

static bool try(struct smc_sock *smc, struct smc_sock *lsmc)
{
	struct sock *peer = other_end(smc->sk);
	bool done;

	if (!peer)
		return false;
	done = !smc_negotiate_ipsec(smc->sk) && !smc_negotiate_ipsec(peer) && connect_to(smc, lsmc, peer);
	sock_put(peer);
	return done;
}

/**
 * smc_local_connect() - connects a client whose peer is in this namespace
 * @smc: its record, in its rendezvous, which has not begun
 * @last: CLC messages follow if this does not succeed; else it will be tried once more, as TCP may
 *        not have had the last packet of its own handshake yet
 *
 * May sleep. Return: whether the connection is made.
 */
bool smc_local_connect(struct smc_sock *smc, bool last)
{
	struct smc_sock *lsmc = smc_synopt_listener(smc->sk);
	bool done;

	might_sleep();
	if (!lsmc)
		return false;
	done = try(smc, lsmc);
	if (!done && last)
		smc_synopt_remote(smc->sk);
	if (done || last)
		smc_listen_poke(lsmc);
	smc_table_put(lsmc);
	return done;
}
