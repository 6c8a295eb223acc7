// SPDX-License-Identifier: GPL-2.0-only
/*
 * Handshake limitation: where an administrator or a program has asked for it, connections beyond
 * what the handshakes can keep up with are TCP from the start, instead of waiting for their turn.
 * What counts everywhere is the half of a listener's backlog: see synport.c.
 */

#include <linux/cpumask.h>

#include "handshake.h"

/* More than this many in progress for each processor means that they do not keep up. */
#define PER_CPU 8

/*
 * smc_limit_reached() - shall a SYN for this listener be answered without the option? Any context.
 */
bool smc_limit_reached(struct smc_sock *listener)
{
	struct smc_net *sn = smc_net(sock_net(listener->sk));

	if (!READ_ONCE(sn->limit_hs) && !READ_ONCE(listener->limit_hs))
		return false;
	return atomic_read(&sn->handshakes) >= PER_CPU * (int)num_online_cpus();
}

/* smc_limit_begin() - a server's handshake begins. Its worker. */
void smc_limit_begin(struct smc_sock *child)
{
	child->rv->limited = true;
	atomic_inc(&smc_net(sock_net(child->sk))->handshakes);
}

/* smc_limit_end() - it is over; once is enough. Its worker, or who has stopped that. */
void smc_limit_end(struct smc_sock *child)
{
	if (child->rv->limited)
		atomic_dec(&smc_net(sock_net(child->sk))->handshakes);
	child->rv->limited = false;
}
