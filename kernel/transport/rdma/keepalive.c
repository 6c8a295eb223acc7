// SPDX-License-Identifier: GPL-2.0-only
/*
 * SO_KEEPALIVE of connections by SMC-R (RFC 7609, 4.5.3). TCP's own probes go on, and say whether the peer's TCP can be
 * reached; whether the link works, TEST LINK shows. It stands for all connections of the link, which is silent for as
 * long as each of them at least.
 */

#include <net/tcp.h>

#include "rdma.h"

static bool has_keepalive(const struct smc_conn *conn)
{
	return sock_flag(conn->sk, SOCK_KEEPOPEN) && !smc_conn_meaning(conn)->over;
}

/**
 * smc_keepalive_find() - which times the connections of a group ask for
 * @group: the group; the caller holds its lock
 * @k: the shortest of them, as TCP_KEEPIDLE, TCP_KEEPINTVL and TCP_KEEPCNT or the namespace have them
 *
 * The settings of a namespace may be anything, while the link is the host's: a second is the least of each. Does not
 * sleep.
 */
void smc_keepalive_find(struct smc_lgr_rdma *group, struct smc_keepalive *k)
{
	struct smc_conn *conn;
	unsigned long token;

	lockdep_assert_held(&group->lock);
	*k = (struct smc_keepalive){ .idle = MAX_JIFFY_OFFSET, .limit = MAX_JIFFY_OFFSET };
	rcu_read_lock();
	xa_for_each(&group->conns, token, conn) {
		const struct tcp_sock *tp = tcp_sk(conn->sk);

		if (!has_keepalive(conn))
			continue;
		k->idle = min_t(unsigned long, k->idle, max_t(int, keepalive_time_when(tp), HZ));
		k->limit = min_t(unsigned long, k->limit,
				 (unsigned long)max_t(int, keepalive_intvl_when(tp), HZ) * max_t(int, keepalive_probes(tp), 1));
	}
	rcu_read_unlock();
}

/* smc_keepalive_expire() - the link is dead: connections with keepalive end by ETIMEDOUT. Under the lock, does not sleep. */
void smc_keepalive_expire(struct smc_lgr_rdma *group)
{
	struct smc_conn *conn;
	unsigned long token;

	lockdep_assert_held(&group->lock);
	rcu_read_lock();
	xa_for_each(&group->conns, token, conn)
		if (has_keepalive(conn))
			WRITE_ONCE(conn->timed_out, true);
	rcu_read_unlock();
}
