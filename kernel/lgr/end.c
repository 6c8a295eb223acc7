// SPDX-License-Identifier: GPL-2.0-only
/* Link groups: how they end, and how the connections of a namespace leave them. */

#include <linux/export.h>
#include <linux/wait_bit.h>
#include <net/net_namespace.h>

#include "../net.h"
#include "../transport/transport.h"
#include "table.h"

static DECLARE_WAIT_QUEUE_HEAD(lgr_ended);

/*
 * smc_lgr_finish() - releases what a group has of its transport. The caller, for whom smc_lgr_table_unlist() has returned
 * true, passes the table's reference.
 */
void smc_lgr_finish(struct smc_lgr *lgr)
{
	might_sleep();
	if (lgr->key.ops->lgr_end)
		lgr->key.ops->lgr_end(lgr);
	smc_lgr_table_del(lgr);
	wake_up_all(&lgr_ended);
	smc_lgr_put(lgr);
}

static bool lgr_unlist(struct smc_lgr *lgr)
{
	bool mine;

	spin_lock_bh(&smc_lgr_table_lock);
	spin_lock(&lgr->lock);
	mine = smc_lgr_table_unlist(lgr);
	spin_unlock(&lgr->lock);
	spin_unlock_bh(&smc_lgr_table_lock);
	return mine;
}

/* Takes the first member off the group's list, with a reference. Returns NULL if none is left. */
static struct smc_lgr_member *lgr_take_member(struct smc_lgr *lgr)
{
	struct smc_lgr_member *member;

	spin_lock_bh(&lgr->lock);
	member = list_first_entry_or_null(&lgr->members, struct smc_lgr_member, list);
	if (member) {
		list_del_init(&member->list);
		smc_lgr_member_ops->get(member);
	}
	spin_unlock_bh(&lgr->lock);
	return member;
}

/*
 * Ends a group and its connections. Applications with an open socket get an error. @hard: no socket is open any more, so
 * all connections are released.
 */
static void lgr_terminate(struct smc_lgr *lgr, bool hard)
{
	bool mine = lgr_unlist(lgr);
	struct smc_lgr_member *member;

	might_sleep();
	while ((member = lgr_take_member(lgr))) {
		enum smc_lgr_end how = READ_ONCE(lgr->deleted) ? SMC_LGR_END_BY_OPERATOR : SMC_LGR_END_FAILED;

		smc_lgr_member_ops->end(member, hard ? SMC_LGR_END_ALL : how);
		smc_lgr_member_ops->put(member);
	}
	smc_lgr_stop_work(lgr);
	if (mine)
		smc_lgr_finish(lgr);
}

/* smc_lgr_terminate() - ends a group and all connections in it */
void smc_lgr_terminate(struct smc_lgr *lgr)
{
	lgr_terminate(lgr, false);
}

static bool lgr_matches(const struct smc_lgr *lgr, const void *dev, const struct net *net)
{
	if (dev && !smc_lgr_needs(lgr, dev))
		return false;
	return !net || net_eq(lgr->key.net, net);
}

/* Returns the first group that matches, with a reference, or NULL. */
static struct smc_lgr *lgr_find(const void *dev, const struct net *net, const u64 *gid)
{
	struct smc_lgr *lgr;

	spin_lock_bh(&smc_lgr_table_lock);
	list_for_each_entry(lgr, &smc_lgr_listed, list) {
		if (!lgr_matches(lgr, dev, net))
			continue;
		if (gid && (lgr->key.ends.gid[0] != gid[0] || lgr->key.ends.gid[1] != gid[1]))
			continue;
		smc_lgr_get(lgr);
		spin_unlock_bh(&smc_lgr_table_lock);
		return lgr;
	}
	spin_unlock_bh(&smc_lgr_table_lock);
	return NULL;
}

static void lgr_terminate_all(const void *dev, const struct net *net, bool hard)
{
	struct smc_lgr *lgr;

	might_sleep();
	/* Tell all peers first, so that no peer waits for the end of another group. */
	spin_lock_bh(&smc_lgr_table_lock);
	list_for_each_entry(lgr, &smc_lgr_listed, list)
		if (lgr_matches(lgr, dev, net) && lgr->key.ops->lgr_delete_link)
			lgr->key.ops->lgr_delete_link(lgr);
	spin_unlock_bh(&smc_lgr_table_lock);
	while ((lgr = lgr_find(dev, net, NULL))) {
		lgr_terminate(lgr, hard);
		smc_lgr_put(lgr);
	}
}

/* smc_lgr_terminate_peer() - ends the groups of a device with a peer that is gone */
void smc_lgr_terminate_peer(const void *dev, const u64 gid[2])
{
	struct smc_lgr *lgr;

	might_sleep();
	while ((lgr = lgr_find(dev, NULL, gid))) {
		lgr_terminate(lgr, false);
		smc_lgr_put(lgr);
	}
}
EXPORT_SYMBOL_GPL(smc_lgr_terminate_peer);

/* smc_lgr_terminate_dev() - ends the groups of a device that is gone */
void smc_lgr_terminate_dev(const void *dev)
{
	lgr_terminate_all(dev, NULL, false);
}

/* Returns whether a group that a namespace owns is ending. */
static bool any_lgr_ending(const struct net *net)
{
	struct smc_lgr *lgr;
	bool any = false;

	spin_lock_bh(&smc_lgr_table_lock);
	list_for_each_entry(lgr, &smc_lgr_ending, list)
		any |= net_eq(lgr->key.net, net);
	spin_unlock_bh(&smc_lgr_table_lock);
	return any;
}

/**
 * smc_lgr_net_exit() - ends the groups and connections of a namespace that goes
 * @sn: the namespace
 *
 * Groups that it shares with other namespaces stay. Only sockets of the kernel itself can have connections here, because
 * all others hold a reference on the namespace.
 *
 * Context: process; sleeps until all of them have ended, since they use settings and statistics of the namespace.
 */
void smc_lgr_net_exit(struct smc_net *sn)
{
	struct smc_lgr_member *member;

	might_sleep();
	lgr_terminate_all(NULL, sn->net, true);
	while ((member = smc_lgr_net_take(sn))) {
		smc_lgr_member_ops->end(member, SMC_LGR_END_ALL);
		smc_lgr_member_ops->put(member);
	}
	wait_event(lgr_ended, !any_lgr_ending(sn->net));
	wait_var_event(&sn->conns, !atomic_read(&sn->conns));
}

/*
 * smc_lgr_exit() - ends all groups at unload, when no socket is left. Process context; sleeps until the last group is
 * freed.
 */
void smc_lgr_exit(void)
{
	might_sleep();
	lgr_terminate_all(NULL, NULL, true);
	smc_lgr_wait_freed();
	rcu_barrier();
}
