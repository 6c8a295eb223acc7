// SPDX-License-Identifier: GPL-2.0-only
/*
 * RMBs whose connection is over cannot be used again while the peer may still write to them. A peer says that it is done
 * when its application closes the socket: long after the connection was aborted, or never, if the peer does not know the
 * connection. So after a while DELETE RKEY asks the peer to forget the RMB, which is then unmapped (RFC 7609, 4.4.2 and
 * 4.8.2).
 */

#include <linux/jiffies.h>

#include "../../lgr/lgr.h"
#include "../../wire/llc.h"
#include "group.h"

/* How long an RMB waits for its peer to say that it is done. */
#define TERM (10 * HZ)
/* After this many requests in a row without an answer, assume that the peer will never answer. */
#define UNANSWERED 8

/*
 * smc_lgr_rdma_has_rmb() - is there an RMB for one more connection, now or soon? A peer has SMC_RDMA_RTOKENS rows, for RMBs in
 * use or not. Any context.
 */
bool smc_lgr_rdma_has_rmb(const struct smc_lgr_rdma *group)
{
	lockdep_assert_held(&group->lock);
	return group->n_rmbs < SMC_RDMA_RTOKENS || !list_empty(&group->rmbs);
}

/* smc_lgr_rdma_has_quiet_rmb() - is there an RMB for one more connection now? Any context. */
bool smc_lgr_rdma_has_quiet_rmb(const struct smc_lgr_rdma *group)
{
	const struct smc_rdma_buf *buf;

	lockdep_assert_held(&group->lock);
	if (group->n_rmbs < SMC_RDMA_RTOKENS)
		return true;
	list_for_each_entry(buf, &group->rmbs, list)
		if (smc_lgr_rdma_rmb_is_quiet(group, buf))
			return true;
	return false;
}

/*
 * smc_lgr_rdma_idle_rmb() - returns an RMB that another connection has asked for in the same size, or NULL. If the group may have no
 * more RMBs, any will do. Any context.
 */
struct smc_rdma_buf *smc_lgr_rdma_idle_rmb(const struct smc_lgr_rdma *group, u8 code, bool full)
{
	struct smc_rdma_buf *buf, *any = NULL;

	lockdep_assert_held(&group->lock);
	list_for_each_entry(buf, &group->rmbs, list) {
		if (!smc_lgr_rdma_rmb_is_quiet(group, buf))
			continue;
		if (buf->asked == code)
			return buf;
		any = any ?: buf;
	}
	return full ? any : NULL;
}

/* Makes an RMB reusable, which neither end needs any more. */
static void make_reusable(struct smc_lgr_rdma *group, struct smc_rdma_buf *rmb)
{
	lockdep_assert_held(&group->lock);
	/* If the peer is asked to forget the RMB, the answer decides. */
	if (rmb != group->deleted_rmb)
		list_move(&rmb->list, &group->rmbs);
}

/*
 * smc_lgr_rdma_retire_rmb() - the connection with a token is over; programs may still read its RMB until
 * smc_lgr_rdma_put_rmb(). Unless the peer is done with it, the peer may still write (RFC 7609, 4.8.2): the RMB waits
 * until the peer says that it is, or has forgotten the RMB, or the group ends. Softirq.
 */
void smc_lgr_rdma_retire_rmb(struct smc_lgr_rdma *group, struct smc_rdma_buf *rmb, u32 token, bool done)
{
	spin_lock_bh(&group->lock);
	rmb->token = token;
	rmb->done = done;
	rmb->held = true;
	rmb->since = jiffies;
	list_add(&rmb->list, &group->rmbs_pending);
	spin_unlock_bh(&group->lock);
}

/* smc_lgr_rdma_put_rmb() - a connection gives its RMB back: no program reads it any more. Softirq. */
void smc_lgr_rdma_put_rmb(struct smc_lgr_rdma *group, struct smc_memory_pool *pool, struct smc_rdma_buf *rmb)
{
	bool added;

	smc_memory_idle(pool, SMC_MEMORY_RMB, smc_rdma_buf_memory(rmb->code));
	spin_lock_bh(&group->lock);
	rmb->held = false;
	added = smc_lgr_rdma_add_idle(group, rmb, rmb->done ? &group->rmbs : &group->rmbs_pending);
	spin_unlock_bh(&group->lock);
	if (!added)
		smc_rdma_buf_free(rmb);
}

/* smc_lgr_rdma_peer_closed() - the peer of a connection, which may be over, writes no more. Softirq. */
void smc_lgr_rdma_peer_closed(struct smc_lgr_rdma *group, u32 token)
{
	struct smc_rdma_buf *rmb;

	spin_lock_bh(&group->lock);
	list_for_each_entry(rmb, &group->rmbs_pending, list) {
		if (rmb->token != token)
			continue;
		rmb->done = true;
		if (!rmb->held)
			make_reusable(group, rmb);
		break;
	}
	spin_unlock_bh(&group->lock);
}

static void set_moved(struct smc_rdma_buf *rmb, const struct smc_link *link)
{
	lockdep_assert_held(&link->group->lock);
	rmb->moved_to = link->serial;
	rmb->moved_at = jiffies;
}

/* smc_lgr_rdma_peer_moved() - the peer of the connection that has an RMB writes by another link from now on. Softirq. */
void smc_lgr_rdma_peer_moved(struct smc_rdma_buf *rmb, const struct smc_link *link)
{
	spin_lock_bh(&link->group->lock);
	set_moved(rmb, link);
	spin_unlock_bh(&link->group->lock);
}

/* smc_lgr_rdma_late_moved() - as smc_lgr_rdma_peer_moved(), of a connection that is over. Softirq. */
void smc_lgr_rdma_late_moved(const struct smc_link *link, u32 token)
{
	struct smc_lgr_rdma *group = link->group;
	struct smc_rdma_buf *rmb;

	spin_lock_bh(&group->lock);
	list_for_each_entry(rmb, &group->rmbs_pending, list)
		if (rmb->token == token)
			set_moved(rmb, link);
	spin_unlock_bh(&group->lock);
}

/*
 * Returns the RMB that the peer was asked to forget, if it has. Unless that is certain, the RMB stays, and CONFIRM RKEY
 * goes to the peer before it is used again.
 */
static struct smc_rdma_buf *take_deleted(struct smc_lgr_rdma *group)
{
	struct smc_rdma_buf *rmb = group->deleted_rmb;
	struct smc_link *link;

	lockdep_assert_held(&group->lock);
	if (!rmb || group->delete_call.result == -EINPROGRESS)
		return NULL;
	group->deleted_rmb = NULL;
	/* EREMOTEIO: the peer does not know it. */
	if (!group->delete_call.result || group->delete_call.result == -EREMOTEIO) {
		list_del_init(&rmb->list);
		list_del_init(&rmb->on_group);
		smc_lgr_rdma_uncount(group, rmb->id);
		group->bytes[true] -= rmb->size;
		return rmb;
	}
	rmb->announced = false;
	rmb->since = jiffies;
	/* The peer writes no more: it was asked because memory is short, or has closed since then. */
	if (rmb->done) {
		make_reusable(group, rmb);
		group->spare_rmbs = 0;
		return NULL;
	}
	/* A peer that never answers would have us keep RMBs for as long as it keeps one connection. */
	if (++group->unanswered == UNANSWERED)
		smc_for_each_link(group, link)
			smc_link_fail(link, SMC_LINK_FORGETFUL, 0);
	return NULL;
}

/* Returns the RMB that has waited longest, if that is long enough. An adapter that still has to register it cannot forget it. */
static struct smc_rdma_buf *find_overdue(struct smc_lgr_rdma *group)
{
	struct smc_rdma_buf *rmb, *oldest = NULL;

	lockdep_assert_held(&group->lock);
	list_for_each_entry(rmb, &group->rmbs_pending, list) {
		if (rmb->done || rmb->held || time_before(jiffies, rmb->since + TERM) || !smc_lgr_rdma_adapters_done(group, rmb))
			continue;
		if (!oldest || time_before(rmb->since, oldest->since))
			oldest = rmb;
	}
	return oldest;
}

/* Returns an RMB that no connection has, if memory is short. The caller asks the peer to forget it. */
static struct smc_rdma_buf *take_spare(struct smc_lgr_rdma *group)
{
	struct smc_rdma_buf *rmb;

	lockdep_assert_held(&group->lock);
	if (!group->spare_rmbs)
		return NULL;
	list_for_each_entry(rmb, &group->rmbs, list) {
		if (!smc_lgr_rdma_adapters_done(group, rmb))
			continue;
		group->spare_rmbs--;
		list_move(&rmb->list, &group->rmbs_pending);
		return rmb;
	}
	group->spare_rmbs = 0;
	return NULL;
}

/*
 * smc_lgr_rdma_delete_rkeys() - sends DELETE RKEY for RMBs that have waited for too long. Called now and then, and when
 * a DELETE RKEY has been answered or has timed out. Any context. Return: an RMB that the peer has forgotten, for
 * smc_lgr_rdma_drop_buf(), or NULL.
 */
struct smc_rdma_buf *smc_lgr_rdma_delete_rkeys(struct smc_lgr_rdma *group)
{
	struct smc_rdma_buf *gone = take_deleted(group);
	struct smc_link *link;

	lockdep_assert_held(&group->lock);
	if (group->deleted_rmb)
		return NULL;
	/* No connection can join the group any more, and a peer that fills groups like this may have many. */
	if (!smc_lgr_rdma_has_rmb(group) && !READ_ONCE(group->lgr->n_conns)) {
		smc_for_each_link(group, link)
			smc_link_retire(link);
		return gone;
	}
	group->deleted_rmb = find_overdue(group) ?: take_spare(group);
	if (group->deleted_rmb)
		smc_rdma_llc_delete_rkey(group, group->deleted_rmb, &group->delete_call);
	return gone;
}
