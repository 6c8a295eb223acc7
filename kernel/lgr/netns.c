// SPDX-License-Identifier: GPL-2.0-only
/* The connections of a network namespace, in whichever link groups they are. */

#include <linux/export.h>

#include "../net.h"
#include "table.h"

/* smc_lgr_net_init() - initialises the part of a namespace. */
void smc_lgr_net_init(struct smc_net *sn)
{
	spin_lock_init(&sn->lgr->lock);
	INIT_LIST_HEAD(&sn->lgr->members);
}

/*
 * smc_lgr_net_add() - numbers a connection that joins its group, and lists it for its namespace. The locks of both make
 * the numbers ascend in both lists.
 */
void smc_lgr_net_add(struct smc_lgr_member *member)
{
	static atomic64_t orders;

	lockdep_assert_held(&member->lgr->lock);
	spin_lock(&member->sn->lgr->lock);
	do
		member->order = atomic64_inc_return(&orders);
	while (!lower_32_bits(member->order));
	member->serial = lower_32_bits(member->order);
	list_add_tail(&member->net_list, &member->sn->lgr->members);
	spin_unlock(&member->sn->lgr->lock);
}

/* smc_lgr_net_del() - removes a connection from the list of its namespace */
void smc_lgr_net_del(struct smc_lgr_member *member)
{
	lockdep_assert_held(&member->lgr->lock);
	spin_lock(&member->sn->lgr->lock);
	list_del_init(&member->net_list);
	spin_unlock(&member->sn->lgr->lock);
}

/*
 * smc_lgr_net_take() - takes the first connection of a namespace off both lists. Any context but hardirq. Return: the
 * connection with a reference, NULL if none is left.
 */
struct smc_lgr_member *smc_lgr_net_take(struct smc_net *sn)
{
	struct smc_lgr_member *member;

	spin_lock_bh(&sn->lgr->lock);
	member = list_first_entry_or_null(&sn->lgr->members, struct smc_lgr_member, net_list);
	if (member) {
		list_del_init(&member->net_list);
		smc_lgr_member_ops->get(member);
	}
	spin_unlock_bh(&sn->lgr->lock);
	if (!member)
		return NULL;
	spin_lock_bh(&member->lgr->lock);
	list_del_init(&member->list);
	spin_unlock_bh(&member->lgr->lock);
	return member;
}

/* smc_lgr_net_mark() - marks the groups in which a namespace has connections */
void smc_lgr_net_mark(struct smc_net *sn, u64 mark)
{
	struct smc_lgr_member *member;

	lockdep_assert_held(&smc_lgr_table_lock);
	spin_lock(&sn->lgr->lock);
	list_for_each_entry(member, &sn->lgr->members, net_list)
		member->lgr->mark = mark;
	spin_unlock(&sn->lgr->lock);
}

/**
 * smc_lgr_net_next() - returns the next connection of a namespace
 * @sn: the namespace
 * @before: an earlier connection, from which the search starts if it is still listed; or NULL
 * @order: order of the last connection visited, 0 at first
 *
 * Context: any but hardirq.
 * Return: the first connection with a higher order, with a reference; NULL at the end.
 */
struct smc_lgr_member *smc_lgr_net_next(struct smc_net *sn, const struct smc_lgr_member *before, u64 order)
{
	struct smc_lgr_member *member, *next = NULL;
	const struct list_head *pos;

	spin_lock_bh(&sn->lgr->lock);
	pos = before && !list_empty(&before->net_list) ? &before->net_list : &sn->lgr->members;
	list_for_each_continue(pos, &sn->lgr->members) {
		member = list_entry(pos, struct smc_lgr_member, net_list);
		if (member->order <= order)
			continue;
		smc_lgr_member_ops->get(member);
		next = member;
		break;
	}
	spin_unlock_bh(&sn->lgr->lock);
	return next;
}

/**
 * smc_lgr_walk_members() - visits the connections of a namespace, in their order
 * @net: the namespace
 * @order: order of the last connection visited, 0 at first; updated
 * @fn: called with smc_lgr_net.lock held; if it returns nonzero, the walk ends and the connection counts as not visited
 * @arg: passed on to @fn
 *
 * Context: any but hardirq.
 * Return: 0 at the end, else what @fn returned.
 */
int smc_lgr_walk_members(const struct net *net, u64 *order, int (*fn)(struct smc_lgr_member *member, void *arg), void *arg)
{
	struct smc_net *sn = smc_net(net);
	struct smc_lgr_member *member;
	int rc = 0;

	spin_lock_bh(&sn->lgr->lock);
	list_for_each_entry(member, &sn->lgr->members, net_list) {
		if (member->order <= *order)
			continue;
		rc = fn(member, arg);
		if (rc)
			break;
		*order = member->order;
	}
	spin_unlock_bh(&sn->lgr->lock);
	return rc;
}
EXPORT_SYMBOL_GPL(smc_lgr_walk_members);
