// SPDX-License-Identifier: GPL-2.0-only
/* The connections of a network namespace, in whichever link groups they are. */

#include <linux/export.h>

#include "../conn/conn.h"
#include "../net.h"
#include "table.h"

/* smc_lgr_net_init() - of a new namespace. */
void smc_lgr_net_init(struct smc_net *sn)
{
	spin_lock_init(&sn->lgr.lock);
	INIT_LIST_HEAD(&sn->lgr.conns);
}

/*
 * smc_lgr_net_add() - a connection joins its group: numbers it and lists it for its namespace. Under the group's lock,
 * which with the namespace's makes the numbers rise along both lists. Does not sleep.
 */
void smc_lgr_net_add(struct smc_conn *conn)
{
	static atomic64_t orders;

	lockdep_assert_held(&conn->lgr->lock);
	spin_lock(&conn->sn->lgr.lock);
	do
		conn->order = atomic64_inc_return(&orders);
	while (!lower_32_bits(conn->order));
	conn->serial = lower_32_bits(conn->order);
	list_add_tail(&conn->net_member, &conn->sn->lgr.conns);
	spin_unlock(&conn->sn->lgr.lock);
}

/* smc_lgr_net_del() - a connection has given everything back. Under the group's lock. Does not sleep. */
void smc_lgr_net_del(struct smc_conn *conn)
{
	lockdep_assert_held(&conn->lgr->lock);
	spin_lock(&conn->sn->lgr.lock);
	list_del_init(&conn->net_member);
	spin_unlock(&conn->sn->lgr.lock);
}

/*
 * smc_lgr_net_take() - takes the first connection of a namespace off the lists, with a reference. Does not sleep.
 * Return: NULL if none is left.
 */
struct smc_conn *smc_lgr_net_take(struct smc_net *sn)
{
	struct smc_conn *conn;

	spin_lock_bh(&sn->lgr.lock);
	conn = list_first_entry_or_null(&sn->lgr.conns, struct smc_conn, net_member);
	if (conn) {
		list_del_init(&conn->net_member);
		smc_conn_get(conn);
	}
	spin_unlock_bh(&sn->lgr.lock);
	if (!conn)
		return NULL;
	spin_lock_bh(&conn->lgr->lock);
	list_del_init(&conn->member);
	spin_unlock_bh(&conn->lgr->lock);
	return conn;
}

/* smc_lgr_net_mark() - marks the groups in which a namespace has connections. Under the table's lock. */
void smc_lgr_net_mark(struct smc_net *sn, u64 mark)
{
	struct smc_conn *conn;

	lockdep_assert_held(&smc_lgr_table_lock);
	spin_lock(&sn->lgr.lock);
	list_for_each_entry(conn, &sn->lgr.conns, net_member)
		conn->lgr->mark = mark;
	spin_unlock(&sn->lgr.lock);
}

/**
 * smc_lgr_net_next() - the next connection of a namespace
 * @sn: the namespace
 * @before: a connection that comes before it, which saves going through the list if it is still there; or NULL
 * @order: that of the last connection visited; 0 at first
 *
 * Does not sleep. Return: the first connection with a higher order, with a reference; NULL if there is none.
 */
struct smc_conn *smc_lgr_net_next(struct smc_net *sn, const struct smc_conn *before, u64 order)
{
	struct smc_conn *conn, *next = NULL;
	const struct list_head *pos;

	spin_lock_bh(&sn->lgr.lock);
	pos = before && !list_empty(&before->net_member) ? &before->net_member : &sn->lgr.conns;
	list_for_each_continue(pos, &sn->lgr.conns) {
		conn = list_entry(pos, struct smc_conn, net_member);
		if (conn->order <= order)
			continue;
		smc_conn_get(conn);
		next = conn;
		break;
	}
	spin_unlock_bh(&sn->lgr.lock);
	return next;
}

/**
 * smc_lgr_walk_conns() - visits the connections of a namespace, in their order
 * @net: the namespace
 * @order: in and out, that of the last connection visited; 0 at first
 * @fn: called with the lock of the namespace's list held; nonzero ends the walk before that connection counts as visited
 * @arg: passed on
 *
 * Does not sleep. Return: 0 at the end, else what @fn said.
 */
int smc_lgr_walk_conns(const struct net *net, u64 *order, int (*fn)(struct smc_conn *conn, void *arg), void *arg)
{
	struct smc_net *sn = smc_net(net);
	struct smc_conn *conn;
	int rc = 0;

	spin_lock_bh(&sn->lgr.lock);
	list_for_each_entry(conn, &sn->lgr.conns, net_member) {
		if (conn->order <= *order)
			continue;
		rc = fn(conn, arg);
		if (rc)
			break;
		*order = conn->order;
	}
	spin_unlock_bh(&sn->lgr.lock);
	return rc;
}
EXPORT_SYMBOL_GPL(smc_lgr_walk_conns);
