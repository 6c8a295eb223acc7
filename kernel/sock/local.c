// SPDX-License-Identifier: GPL-2.0-only
/*
 * A connection within one namespace. Its client, once TCP is connected, makes the connection of both
 * ends, while TCP still has the child in the listener's queue, and accept() finds it ready.
 *
 * One of two threads claims the entry in the table of promises: the client here, or the thread that takes the
 * child out of TCP's queue, which then waits for a PROPOSAL.
 */

#include "../conn/conn.h"
#include "../control/memory.h"
#include "listener.h"

/* Returns the listener that has answered a client, with a reference, if they may connect without CLC messages. */
static struct smc_sock *local_listener(const struct sock *client)
{
	const struct smc_synopt_port *port;
	struct smc_sock *lsmc = NULL;

	rcu_read_lock();
	port = smc_synopt_listener(client);
	if (port)
		lsmc = container_of(port, struct smc_listener, port)->smc;
	if (lsmc && !smc_table_get(lsmc))
		lsmc = NULL;
	rcu_read_unlock();
	return lsmc;
}

/* Gives both sockets their ends, and puts the pair. Return: false if the listener does not take its child. */
static bool publish(struct smc_sock *smc, struct smc_sock *lsmc, const struct smc_pair *pair)
{
	struct smc_sock *child = smc_table_new(pair->peer, GFP_KERNEL);
	bool done = false;

	if (child) {
		child->server = true;
		smc_policy_inherit(child, lsmc);
		child->opt.peer_smc = true;
		smc_conn_get(pair->server); /* once it is published, the application may accept and close it */
		smc_active_child(child, pair->server);
		done = smc_listen_publish(lsmc, child);
	}
	if (done) {
		smc_conn_count(pair->server);
		smc_handshake_mark_reachable(smc->sk);
		smc_active_take(smc, smc->sock, pair->client);
	} else {
		/* Both ends continue with CLC messages: the applications must not notice these connections. */
		smc_conn_kill(pair->server, true);
		smc_conn_kill(pair->client, true);
		smc_conn_put(pair->client);
		smc_table_put(child);
	}
	smc_conn_put(pair->server);
	sock_put(pair->peer);
	return done;
}

/**
 * smc_local_connect() - connects a client whose peer is in this namespace
 * @smc: the client, in RENDEZVOUS, before any step
 * @last: CLC messages follow if this does not succeed; else the caller tries again, because the server's TCP may
 *        not have received the last packet of its handshake yet
 *
 * May sleep. Return: whether the client is connected.
 */
bool smc_local_connect(struct smc_sock *smc, bool last)
{
	struct smc_sock *lsmc = local_listener(smc->sk);
	struct smc_pair pair;
	bool done;

	might_sleep();
	if (!lsmc)
		return false;
	done = !smc_pair_connect(smc->sk, smc_memory_cgroup(lsmc->sk), &pair) && publish(smc, lsmc, &pair);
	if (!done && last)
		smc_synopt_set_remote(smc->sk);
	if (done || last)
		smc_listen_wake(lsmc);
	smc_table_put(lsmc);
	return done;
}
