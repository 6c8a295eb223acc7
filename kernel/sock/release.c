// SPDX-License-Identifier: GPL-2.0-only
/* Closing an SMC socket. */

#include "sock.h"

/*
 * SMC tells the peer first, except of a reset: then TCP goes first, and the peer reports one error, because the
 * abort after it is ignored.
 */
static int close_conn(struct smc_sock *smc, struct socket *sock)
{
	const struct proto_ops *tcp = smc_ops_of_tcp(sock->sk);
	bool hard = smc_sock_aborts(sock->sk);
	int rc;

	smc_proto_restore(sock->sk);
	if (!hard)
		smc_active_end(smc, false);
	rc = tcp->release(sock);
	if (hard)
		smc_active_end(smc, true);
	smc_table_remove(smc);
	return rc;
}

/* Has the socket become TCP before anything was started that has to be stopped? Nobody else uses it any more. */
static bool is_settled(const struct smc_sock *smc)
{
	return smc->phase == SMC_PHASE_TCP && !smc->started && !smc->armed && !smc->watching;
}

static int close_tcp(struct smc_sock *smc, struct socket *sock)
{
	int rc;

	smc_policy_sample(smc, NULL);
	rc = smc_ops_of_tcp(sock->sk)->release(sock);
	smc_table_remove(smc);
	return rc;
}

/*
 * smc_release() - closes a socket in whatever phase it is.
 *
 * No operation of the socket runs any more. The rendezvous, and a listener's works and children, end before the
 * socket leaves the table, and that happens before TCP frees the sock. Dumps may hold a reference a little longer.
 *
 * Return: 0.
 */
int smc_release(struct socket *sock)
{
	struct sock *sk = sock->sk;
	const struct proto_ops *tcp;
	struct smc_sock *smc;

	might_sleep();
	if (!sk)
		return 0;
	tcp = smc_ops_of_tcp(sk);
	smc = smc_table_of(sock);
	if (smc) {
		if (smc->listener) {
			mutex_lock(&smc->state_mutex);
			smc_listen_stop(smc);
			mutex_unlock(&smc->state_mutex);
		}
		if (is_settled(smc))
			return close_tcp(smc, sock);
		smc_setup_stop(smc);
		smc_policy_sample(smc, rcu_dereference_protected(smc->conn, true));
		return close_conn(smc, sock);
	}
	return tcp->release(sock);
}
