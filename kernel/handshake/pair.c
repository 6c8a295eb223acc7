// SPDX-License-Identifier: GPL-2.0-only
/*
 * Connecting two ends in one namespace. CLC messages would tell this kernel only what it knows. Both ends
 * have asked for SMC by the option, as usual; then a transport connects them at once.
 */

#include <net/inet_hashtables.h>
#include <net/tcp_states.h>

#include "../conn/conn.h"
#include "../net.h"
#include "handshake.h"

/* Returns the other end of a connection, with a reference, if it is a connected socket of the same namespace. */
static struct sock *other_end(struct sock *sk)
{
	struct sock *peer = smc_net_peer(sk);

	if (peer && (!sk_fullsock(peer) || inet_sk_state_load(peer) != TCP_ESTABLISHED || peer == sk)) {
		sock_gen_put(peer);
		return NULL;
	}
	return peer;
}

/**
 * smc_pair_connect() - connects a client with its server by a transport, without CLC messages
 * @sk: the client's TCP connection
 * @memcg: the control group that pays for the server's memory, or NULL
 * @pair: gets the server's end, with a reference on it, and both connections, with a reference each
 *
 * May sleep. Return: 0 or a negative errno.
 */
int smc_pair_connect(struct sock *sk, struct mem_cgroup *memcg, struct smc_pair *pair)
{
	struct sock *peer = other_end(sk);
	struct smc_offer client = { .sk = sk }, server = { .sk = peer, .memcg = memcg };
	int rc = -ENODEV;

	might_sleep();
	if (!peer)
		return rc;
	if (!smc_negotiate_policy(sk) && !smc_negotiate_policy(peer))
		rc = smc_registry_pair(&client, &server);
	if (rc) {
		smc_registry_release(&client);
		smc_registry_release(&server);
		sock_put(peer);
		return rc;
	}
	*pair = (struct smc_pair) { .peer = peer, .client = client.conn, .server = server.conn };
	return 0;
}
