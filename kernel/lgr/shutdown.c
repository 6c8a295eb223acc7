// SPDX-License-Identifier: GPL-2.0-only
/*
 * Groups and links that end while they are in use: at the request of an operator (RFC 7609, 3.5.4), and when the host shuts
 * down (4.8.3). Peers get DELETE LINK. Otherwise those that have nothing to send would keep their connections until they test
 * the link.
 */

#include <linux/notifier.h>
#include <linux/reboot.h>
#include <net/net_namespace.h>

#include "../transport/transport.h"
#include "lgr.h"

/* How long a shutdown waits for peers to get DELETE LINK, whatever their number. */
#define SHUTDOWN_TIMEOUT (HZ / 2)

/* The initial namespace may end any group, another one only those that it owns. */
static bool may_delete(const struct smc_lgr *lgr, const struct net *net)
{
	return net_eq(net, &init_net) || net_eq(net, lgr->key.net);
}

/* Returns a group that an operator in a namespace may change, with a reference, or NULL. */
static struct smc_lgr *find_deletable(const struct net *net, unsigned int role, u32 id)
{
	struct smc_lgr *lgr = smc_lgr_get_id(id);

	if (!lgr || (lgr->key.ops->role == role && may_delete(lgr, net)))
		return lgr;
	smc_lgr_put(lgr);
	return NULL;
}

/**
 * smc_lgr_delete() - ends a group for an operator (RFC 7609, 3.5.4)
 * @net: the namespace of the operator
 * @role: enum smc_transport_role of the group's transport
 * @id: identifier of the group
 *
 * The connections are aborted, of which both applications get an error, and the peer is asked to end its side.
 *
 * Context: process; sleeps until the peer has answered, two seconds at most.
 * Return: 0, or -ENOENT if there is no such group that the namespace may end.
 */
int smc_lgr_delete(const struct net *net, unsigned int role, u32 id)
{
	struct smc_lgr *lgr = find_deletable(net, role, id);

	might_sleep();
	if (!lgr)
		return -ENOENT;
	WRITE_ONCE(lgr->deleted, true);
	smc_lgr_terminate(lgr);
	smc_lgr_put(lgr);
	return 0;
}

/**
 * smc_lgr_delete_one() - deletes a link of a group for an operator; its connections go on by another link
 * @net: the namespace of the operator
 * @id: identifier of the group
 * @link: number of the link
 *
 * Context: process; sleeps until the connections have moved.
 * Return: 0; -ENOENT if there is no such group that the namespace may end, or no such link; -EBUSY if the group has no other
 * link.
 */
int smc_lgr_delete_one(const struct net *net, u32 id, u8 link)
{
	struct smc_lgr *lgr = find_deletable(net, SMC_ROLE_R, id);
	int rc;

	might_sleep();
	if (!lgr)
		return -ENOENT;
	rc = lgr->key.ops->lgr_delete_one(lgr, link);
	smc_lgr_put(lgr);
	return rc;
}

/* Sends DELETE LINK to all peers. The groups stay, but no connection joins them any more. */
static void delete_all_links(void)
{
	struct smc_lgr *lgr = NULL;

	while ((lgr = smc_lgr_next(lgr)))
		if (lgr->key.ops->lgr_delete_link)
			lgr->key.ops->lgr_delete_link(lgr);
}

/* Waits until all peers have got it, or until @until. */
static void flush_all_links(unsigned long until)
{
	struct smc_lgr *lgr = NULL;

	while ((lgr = smc_lgr_next(lgr))) {
		if (lgr->key.ops->lgr_flush)
			lgr->key.ops->lgr_flush(lgr, until);
		if (time_after_eq(jiffies, until)) {
			smc_lgr_put(lgr);
			return;
		}
	}
}

/* The host restarts, halts or powers off. Process context. */
static int lgr_reboot_notify(struct notifier_block *nb, unsigned long code, void *cmd)
{
	unsigned long until = jiffies + SHUTDOWN_TIMEOUT;

	delete_all_links();
	flush_all_links(until);
	return NOTIFY_DONE;
}

static struct notifier_block reboot_notifier = { .notifier_call = lgr_reboot_notify };

/* smc_reboot_init() - registers the notifier. Return: 0 or a negative errno. */
int __init smc_reboot_init(void)
{
	might_sleep();
	return register_reboot_notifier(&reboot_notifier);
}

/* smc_reboot_exit() - unregisters it, before the groups end. */
void smc_reboot_exit(void)
{
	might_sleep();
	unregister_reboot_notifier(&reboot_notifier);
}
