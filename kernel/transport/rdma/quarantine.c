// SPDX-License-Identifier: GPL-2.0-only
/*
 * RMBs whose connection is over, while the peer may still write to them. A peer that lives says that
 * it is done when its application closes the socket. That may be long after the connection has been
 * aborted, or never, if the peer has not got to know of the connection; so after a while it is asked
 * to forget the RMB, and then the adapter is (RFC 7609, 4.5.5 and 4.8.2).
 */

#include <linux/jiffies.h>

#include "../../lgr/lgr.h"
#include "../../wire/llc.h"
#include "group.h"

/* How long an RMB waits for its peer's word. */
#define TERM (10 * HZ)
/* So many requests without an answer in between: the peer is not slow, it will never answer. */
#define UNANSWERED 8

/* Nobody needs an RMB any more, neither here nor there. The caller holds the lock. */
static void shelve(struct smc_rdma_group *group, struct smc_rdma_buf *rmb)
{
	lockdep_assert_held(&group->lock);
	/* What becomes of that is known when it has been answered. */
	if (rmb != group->leaving)
		list_move(&rmb->list, &group->rmbs);
}

/**
 * smc_group_quarantine() - a connection is over
 * @group: the group
 * @rmb: its RMB, which may still be read here; see smc_group_put_rmb()
 * @token: of the connection
 * @done: the peer has said that it writes no more
 *
 * If it has not, it may still write (RFC 7609, 4.8.2): the RMB is of no use before it says so, has
 * forgotten the RMB, or the link is gone. Softirq.
 */
void smc_group_quarantine(struct smc_rdma_group *group, struct smc_rdma_buf *rmb, u32 token, bool done)
{
	spin_lock_bh(&group->lock);
	rmb->token = token;
	rmb->done = done;
	rmb->held = true;
	rmb->since = jiffies;
	list_add(&rmb->list, &group->quarantine);
	spin_unlock_bh(&group->lock);
}

/* smc_group_put_rmb() - nobody reads it here any more, either. Softirq. */
void smc_group_put_rmb(struct smc_rdma_group *group, struct smc_rdma_buf *rmb)
{
	bool kept;

	spin_lock_bh(&group->lock);
	rmb->held = false;
	kept = smc_group_keep(group, rmb, rmb->done ? &group->rmbs : &group->quarantine);
	spin_unlock_bh(&group->lock);
	if (!kept)
		smc_rdma_buf_free(rmb);
}

/* smc_group_heard() - the peer of a connection that may be no more has said that it is done. Softirq. */
void smc_group_heard(struct smc_rdma_group *group, u32 token)
{
	struct smc_rdma_buf *rmb;

	spin_lock_bh(&group->lock);
	list_for_each_entry(rmb, &group->quarantine, list) {
		if (rmb->token != token)
			continue;
		rmb->done = true;
		if (!rmb->held)
			shelve(group, rmb);
		break;
	}
	spin_unlock_bh(&group->lock);
}

/*
 * The RMB that the peer was asked to forget, if the answer is there. One that is not sure to have been
 * forgotten stays, and is announced anew before it is used again. The caller holds the lock.
 */
static struct smc_rdma_buf *forgotten(struct smc_rdma_group *group)
{
	struct smc_rdma_buf *rmb = group->leaving;

	if (!rmb || group->leave.result == -EINPROGRESS)
		return NULL;
	group->leaving = NULL;
	/* The peer may not know it, either. */
	if (!group->leave.result || group->leave.result == -EREMOTEIO) {
		list_del_init(&rmb->list);
		list_del_init(&rmb->all);
		smc_group_uncount(group, rmb->id);
		group->bytes[true] -= rmb->size;
		return rmb;
	}
	rmb->announced = false;
	rmb->since = jiffies;
	if (rmb->done)
		shelve(group, rmb);
	/* It would have us keep RMBs for as long as it keeps one connection. */
	if (++group->unanswered == UNANSWERED)
		smc_link_fail(group->link, SMC_LINK_FORGETFUL, 0);
	return NULL;
}

/* The RMB that has waited longest, if that is long enough. The caller holds the lock. */
static struct smc_rdma_buf *overdue(struct smc_rdma_group *group)
{
	struct smc_rdma_buf *rmb, *oldest = NULL;

	list_for_each_entry(rmb, &group->quarantine, list) {
		if (rmb->done || rmb->held || time_before(jiffies, rmb->since + TERM))
			continue;
		if (!oldest || time_before(rmb->since, oldest->since))
			oldest = rmb;
	}
	return oldest;
}

/**
 * smc_group_withdraw() - has the peer forget what it has been silent about for too long
 * @group: the group, which is ready
 *
 * To be called now and then, and when a DELETE RKEY of ours has been answered, or not. Under the
 * lock. Return: an RMB that the peer has forgotten, for smc_group_drop_rmb(), or NULL.
 */
struct smc_rdma_buf *smc_group_withdraw(struct smc_rdma_group *group)
{
	struct smc_rdma_buf *gone = forgotten(group);

	lockdep_assert_held(&group->lock);
	if (group->leaving)
		return NULL;
	/* Of use to nobody, and who fills groups like that may have many. */
	if (!smc_group_has_rmb(group) && !READ_ONCE(group->lgr->n_conns)) {
		smc_link_retire(group->link);
		return gone;
	}
	group->leaving = overdue(group);
	if (group->leaving)
		smc_rdma_llc_delete_rkey(group, group->leaving, &group->leave);
	return gone;
}

/*
 * smc_group_drop_rmb() - frees an RMB that the peer does not know any more. The link does not go
 * meanwhile. May sleep.
 */
void smc_group_drop_rmb(struct smc_rdma_buf *rmb)
{
	smc_rdma_buf_detach(rmb);
	smc_rdma_buf_free(rmb);
}
