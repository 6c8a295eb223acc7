// SPDX-License-Identifier: GPL-2.0-only
/*
 * Groups that end although they are used: at the request of an operator (RFC 7609, 3.5.4), and when the host goes
 * down (4.8.3). Peers are told, since those that have nothing to send would otherwise keep their connections until
 * they test the link.
 */

#include <linux/notifier.h>
#include <linux/reboot.h>
#include <net/net_namespace.h>

#include "../transport/transport.h"
#include "lgr.h"

/* A shutdown is not held up for longer, however many peers there are. */
#define SHUTDOWN_TIMEOUT (HZ / 2)

/* The host may end any group, a namespace those that belong to it, but not those that it shares with others. */
static bool may_delete(const struct smc_lgr *lgr, const struct net *net)
{
	return net_eq(net, &init_net) || net_eq(net, lgr->key.net);
}

/**
 * smc_lgr_delete() - an operator ends a group
 * @net: the namespace of the operator
 * @role: of the transport, enum smc_transport_role
 * @id: of the group, as it is shown
 *
 * Nobody joins the group any more, its connections are aborted, which both applications hear of, and the peer is
 * asked to end its side. May sleep, until that has answered, or for two seconds. Return: 0, -ENOENT if there is no
 * such group that the namespace may end.
 */
int smc_lgr_delete(const struct net *net, unsigned int role, u32 id)
{
	struct smc_lgr *lgr = id ? smc_lgr_next(id - 1) : NULL;
	int rc = -ENOENT;

	might_sleep();
	if (!lgr)
		return rc;
	if (lgr->id == id && lgr->key.ops->role == role && may_delete(lgr, net)) {
		WRITE_ONCE(lgr->deleted, true);
		smc_lgr_terminate(lgr);
		rc = 0;
	}
	smc_lgr_put(lgr);
	return rc;
}

/* The groups themselves stay as they are, and nobody joins them any more. */
static void delete_all_links(void)
{
	struct smc_lgr *lgr;
	u32 id = 0;

	while ((lgr = smc_lgr_next(id))) {
		id = lgr->id;
		if (lgr->key.ops->lgr_delete_link)
			lgr->key.ops->lgr_delete_link(lgr);
		smc_lgr_put(lgr);
	}
}

/* All peers have the same time to hear of it. */
static void flush_all_links(unsigned long until)
{
	struct smc_lgr *lgr;
	u32 id = 0;

	while (time_before(jiffies, until) && (lgr = smc_lgr_next(id))) {
		id = lgr->id;
		if (lgr->key.ops->lgr_flush)
			lgr->key.ops->lgr_flush(lgr, until);
		smc_lgr_put(lgr);
	}
}

/* For a restart, a halt and power off alike. Process context. */
static int lgr_reboot_notify(struct notifier_block *nb, unsigned long code, void *cmd)
{
	unsigned long until = jiffies + SHUTDOWN_TIMEOUT;

	delete_all_links();
	flush_all_links(until);
	return NOTIFY_DONE;
}

static struct notifier_block reboot_notifier = { .notifier_call = lgr_reboot_notify };

/* smc_reboot_init() - at load, once groups may be formed. May sleep. Return: 0 or a negative errno. */
int __init smc_reboot_init(void)
{
	return register_reboot_notifier(&reboot_notifier);
}

/* smc_reboot_exit() - at unload, before the groups end. May sleep. */
void smc_reboot_exit(void)
{
	unregister_reboot_notifier(&reboot_notifier);
}
