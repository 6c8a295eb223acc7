// SPDX-License-Identifier: GPL-2.0-only
/*
 * Handshake limitation: where an administrator or a program has asked for it, connections beyond
 * what the handshakes can keep up with are TCP from the start, instead of waiting for their turn.
 * What counts everywhere is the half of a listener's backlog: see synport.c.
 */

#include <linux/cpumask.h>
#include <net/sock.h>

#include "../control/sysctl.h"
#include "../net.h"
#include "synopt.h"

/* More than this many in progress for each processor means that they do not keep up. */
#define PER_CPU 8

/*
 * smc_limit_reached() - shall a SYN for this listener be answered without the option? Any context.
 */
bool smc_limit_reached(const struct smc_synopt_port *port)
{
	struct smc_net *sn = smc_net(sock_net(port->sk));

	if (!READ_ONCE(sn->sysctl->limit_smc_hs) && !READ_ONCE(port->opt->limit_hs))
		return false;
	return atomic_read(&sn->handshakes) >= PER_CPU * (int)num_online_cpus();
}
