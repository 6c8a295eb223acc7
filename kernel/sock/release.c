// SPDX-License-Identifier: GPL-2.0-only
/* The end of an SMC socket. */

#include "../handshake/handshake.h"
#include "sock.h"

/*
 * smc_release() - closes a socket in whatever phase it is. May sleep.
 *
 * No operation of the socket runs any more. Left are the rendezvous and, of a listener, its drain
 * and its children; they end before the record leaves the table, and that before TCP frees the
 * sock. Hooks may hold a reference on the record a little longer; they look at nothing but the
 * record.
 *
 * Return: 0.
 */
int smc_release(struct socket *sock)
{
	struct sock *sk = sock->sk;
	const struct proto_ops *tcp;
	struct smc_sock *smc;

	if (!sk)
		return 0;
	tcp = smc_ops_of_tcp(sk);
	smc = smc_table_of(sock);
	if (smc) {
		mutex_lock(&smc->gate);
		smc_listen_stop(smc);
		mutex_unlock(&smc->gate);
		smc_handshake_stop(smc);
		smc_table_remove(smc);
	}
	return tcp->release(sock);
}
