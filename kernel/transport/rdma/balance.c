// SPDX-License-Identifier: GPL-2.0-only
/*
 * Connections return to a link that has come (RFC 7609, 2.3): new ones choose the link with the fewest, but those that have lost
 * another link would all stay on the one that was left. Each end of a connection chooses the link that it writes by.
 */

#include "../../lgr/lgr.h"
#include "../../net.h"
#include "group.h"

/* How long a new link has to last before connections go over to it: one that fails at once would only send them back. */
#define BALANCE_DELAY HZ

/* Returns the link of a connection, with a reference. */
static struct smc_link *link_of(struct smc_rdma_conn *rc)
{
	struct smc_link *link;

	spin_lock_bh(&rc->lock);
	link = smc_link_get(rc->link);
	spin_unlock_bh(&rc->lock);
	return link;
}

/* Moves a connection if another link has at least two users less: each connection is one (see smc_lgr_rdma_find_link()). */
static void balance_conn(struct smc_rdma_conn *rc)
{
	struct smc_link *from = link_of(rc), *to = smc_lgr_rdma_get_link(rc->group, NULL);

	if (to && to != from && refcount_read(&from->ref) > refcount_read(&to->ref) + 1)
		smc_rdma_move_drained(rc, from, to);
	smc_link_put(from);
	smc_link_put(to);
}

static void balance_work(struct work_struct *work)
{
	struct smc_lgr_rdma *group = container_of(to_delayed_work(work), struct smc_lgr_rdma, balance);
	unsigned long token = 0;
	struct smc_conn *conn;

	while (READ_ONCE(group->state) == SMC_LGR_RDMA_READY && (conn = smc_lgr_rdma_next_conn(group, NULL, &token))) {
		balance_conn(conn->priv);
		smc_conn_put(conn);
	}
	smc_lgr_put(group->lgr);
}

/* smc_rdma_balance_init() - of a fresh group. */
void smc_rdma_balance_init(struct smc_lgr_rdma *group)
{
	INIT_DELAYED_WORK(&group->balance, balance_work);
}

/* smc_rdma_balance_soon() - a link has come: connections go over to it. Any context. */
void smc_rdma_balance_soon(struct smc_lgr_rdma *group)
{
	lockdep_assert_held(&group->lock);
	if (group->state != SMC_LGR_RDMA_READY)
		return;
	smc_lgr_get(group->lgr);
	if (mod_delayed_work(smc_lgr_wq, &group->balance, BALANCE_DELAY))
		smc_lgr_put(group->lgr);
}

/* smc_rdma_balance_end() - the group has ended: no connection goes over any more. */
void smc_rdma_balance_end(struct smc_lgr_rdma *group)
{
	might_sleep();
	wake_up(&group->llc.flushed);
	if (cancel_delayed_work_sync(&group->balance))
		smc_lgr_put(group->lgr);
}
