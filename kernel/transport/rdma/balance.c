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

/* Connections by the slot of the link that they write by. */
struct loads {
	unsigned int conns[SMC_LINKS_PER_LGR_MAX];
};

static void count_conns(struct smc_lgr_rdma *group, struct loads *loads)
{
	struct smc_link *link;

	memset(loads, 0, sizeof(*loads));
	spin_lock_bh(&group->lock);
	smc_for_each_link(group, link)
		loads->conns[link->slot] = smc_lgr_rdma_count_conns(link, NULL);
	spin_unlock_bh(&group->lock);
}

/* Returns the link of a group with the fewest connections, with a reference, or NULL. */
static struct smc_link *least_loaded(struct smc_lgr_rdma *group, const struct loads *loads)
{
	struct smc_link *link, *found = NULL;

	spin_lock_bh(&group->lock);
	smc_for_each_link(group, link)
		if (link->active && smc_link_usable(link) && (!found || loads->conns[link->slot] < loads->conns[found->slot]))
			found = link;
	smc_link_get(found);
	spin_unlock_bh(&group->lock);
	return found;
}

/* Returns the link of a connection, with a reference. */
static struct smc_link *link_of(struct smc_rdma_conn *rc)
{
	struct smc_link *link;

	spin_lock_bh(&rc->lock);
	link = smc_link_get(rc->link);
	spin_unlock_bh(&rc->lock);
	return link;
}

/* Moves a connection if another link has at least two connections less. */
static void balance_conn(struct smc_rdma_conn *rc, struct loads *loads)
{
	struct smc_link *from = link_of(rc), *to = least_loaded(rc->group, loads);

	if (to && to != from && loads->conns[from->slot] > loads->conns[to->slot] + 1 && smc_rdma_go_over(rc, from, to)) {
		loads->conns[from->slot]--;
		loads->conns[to->slot]++;
	}
	smc_link_put(from);
	smc_link_put(to);
}

static void balance_work(struct work_struct *work)
{
	struct smc_lgr_rdma *group = container_of(to_delayed_work(work), struct smc_lgr_rdma, balance);
	unsigned long token = 0;
	struct smc_conn *conn;
	struct loads loads;

	count_conns(group, &loads);
	while (READ_ONCE(group->state) == SMC_LGR_RDMA_READY && (conn = smc_lgr_rdma_next_conn(group, NULL, &token))) {
		balance_conn(conn->priv, &loads);
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

/* smc_rdma_balance_end() - the group has ended: no connection goes over any more. May sleep. */
void smc_rdma_balance_end(struct smc_lgr_rdma *group)
{
	might_sleep();
	wake_up(&group->llc.flushed);
	if (cancel_delayed_work_sync(&group->balance))
		smc_lgr_put(group->lgr);
}
