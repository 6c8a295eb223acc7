// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whether the peer's adapter acknowledges what is sent by a link, while it does so by another link of the group, by which connections
 * can go on. A queue pair gives up by itself, but some adapters take four times as long as the timeout and the retries say, and
 * soft-RoCE takes seven retries for any number. If nothing is acknowledged by either link, no link is worse than the other: each host
 * might fail another one. An adapter that has no receives left acknowledges nothing either, but asks to be sent to again.
 */

#include "group.h"
#include "link.h"

#define LOOK_INTERVAL (HZ / 8)
/*
 * A link fails after LOOKS looks without an acknowledgement, not counting the first: in little more than the time of the seven retries
 * of its queue pair. What is acknowledged as a whole may take longer on a slow path: one look more for each BYTES_PER_LOOK of it, up
 * to a second.
 */
#define LOOKS 7
#define BYTES_PER_LOOK (32 << 10)
#define MORE_LOOKS 8U

/* Posts a write of nothing, so that a completion tells that all before it has arrived. It takes no receive of the peer's. */
static void post_probe(struct smc_link *link)
{
	struct ib_rdma_wr wr = { .wr = { .opcode = IB_WR_RDMA_WRITE, .send_flags = IB_SEND_SIGNALED } };

	lockdep_assert_held(&link->sq_lock);
	wr.wr.wr_cqe = smc_link_signal(link, ++link->sq_posted);
	if (ib_post_send(link->qp, &wr.wr, NULL))
		smc_link_fail(link, SMC_LINK_NOT_POSTED, 0);
}

/* Has anything been acknowledged by the other link since the last time? Sees to it that something will be, if that works. */
static bool other_acks(struct smc_link *link, struct smc_link *other)
{
	struct smc_link_acks *acks = &link->acks;
	bool some;

	spin_lock_bh(&other->sq_lock);
	some = acks->other == other->serial && acks->other_done != other->sq_done;
	acks->other = other->serial;
	acks->other_done = other->sq_done;
	if (smc_link_usable(other) && other->sq_signaled == other->sq_done)
		post_probe(other);
	spin_unlock_bh(&other->sq_lock);
	return some;
}

/* Looks at the send queue. Sets whether something has been missing since the last look, too. Return: whether to look again. */
static bool check_queue_acks(struct smc_link *link, bool *missing)
{
	struct smc_link_acks *acks = &link->acks;
	bool more;

	spin_lock_bh(&link->sq_lock);
	more = smc_link_usable(link) && link->sq_done != link->sq_posted;
	/*
	 * On a slow path, completions may come late. A path that brings messages is not dead, unless in one direction: then what the
	 * peer sends by it is not acknowledged, either, and it finds out.
	 */
	*missing = more && link->sq_done == acks->done && link->sq_signaled != link->sq_done &&
		   !time_after(READ_ONCE(link->last_recv), acks->looked);
	if (!*missing)
		acks->missing = acks->other = 0;
	if (!more)
		link->sq_largest = 0;
	acks->done = link->sq_done;
	acks->looked = jiffies;
	if (more && link->sq_signaled == link->sq_done)
		post_probe(link);
	if (more)
		mod_timer(&acks->timer, jiffies + LOOK_INTERVAL);
	spin_unlock_bh(&link->sq_lock);
	return more;
}

static void acks_timer(struct timer_list *timer)
{
	struct smc_link *link = container_of(timer, struct smc_link, acks.timer);
	struct smc_lgr_rdma *group = link->group;
	struct smc_link *other;
	bool missing;

	/* All of it with the lock: otherwise both links might fail, each because of the other. */
	spin_lock_bh(&group->lock);
	other = smc_lgr_rdma_other_link(link);
	WRITE_ONCE(link->acks.wanted, other);
	if (other && check_queue_acks(link, &missing) && missing && other_acks(link, other) &&
	    ++link->acks.missing >= LOOKS + min(READ_ONCE(link->sq_largest) / BYTES_PER_LOOK, MORE_LOOKS))
		smc_link_fail(link, SMC_LINK_STUCK, 0);
	spin_unlock_bh(&group->lock);
}

/* smc_link_acks_init() - of a fresh link. */
void smc_link_acks_init(struct smc_link *link)
{
	timer_setup(&link->acks.timer, acks_timer, 0);
}

/* smc_link_acks_begin() - the group of a link has another one from now on. Any context. */
void smc_link_acks_begin(struct smc_link *link)
{
	lockdep_assert_held(&link->group->lock);
	spin_lock_bh(&link->sq_lock);
	WRITE_ONCE(link->acks.wanted, true);
	smc_link_acks_posted(link);
	spin_unlock_bh(&link->sq_lock);
}

/* smc_link_acks_posted() - something has been posted. Any context. */
void smc_link_acks_posted(struct smc_link *link)
{
	lockdep_assert_held(&link->sq_lock);
	if (READ_ONCE(link->acks.wanted) && smc_link_usable(link) && !timer_pending(&link->acks.timer))
		mod_timer(&link->acks.timer, jiffies + LOOK_INTERVAL);
}

/* smc_link_acks_end() - a link is down, and nothing is posted any more. */
void smc_link_acks_end(struct smc_link *link)
{
	might_sleep();
	timer_delete_sync(&link->acks.timer);
}
