// SPDX-License-Identifier: GPL-2.0-only
/*
 * Handshake limitation: if an administrator or a program has asked for it, new connections are TCP from the
 * start while too many handshakes run. Without it only half of a listener's backlog is the limit: see
 * synport.c.
 */

#include <linux/cpumask.h>
#include <net/sock.h>

#include "../control/sysctl.h"
#include "../net.h"
#include "synopt.h"

/* Handshakes that may run for each processor. */
#define PER_CPU 8

/* smc_limit_reached() - must a SYN for this listener be answered without the option? Any context. */
bool smc_limit_reached(const struct smc_synopt_port *port)
{
	struct smc_net *sn = smc_net(sock_net(port->sk));

	if (!READ_ONCE(sn->sysctl->limit_smc_hs) && !READ_ONCE(port->opt->limit_hs))
		return false;
	return atomic_read(&sn->handshakes) >= PER_CPU * (int)num_online_cpus();
}
