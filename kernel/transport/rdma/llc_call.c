// SPDX-License-Identifier: GPL-2.0-only
/*
 * Exchanges about RMBs that we begin (docs/protocol.md, 7.7 and 7.8; RFC 7609, A.3.5 and A.3.7), one at a time. No thread
 * sleeps for the answer: the rendezvous that waits for it is called again.
 */

#include "../../wire/llc.h"
#include "group.h"

/* How long the peer has for an answer that no rendezvous waits for. */
#define DELETE_RKEY_TIMEOUT (10 * HZ)
/* After this many consecutive timeouts while the peer answers promptly, assume that an earlier answer was lost. */
#define LOST 3
#define PROMPT (HZ / 2)
/* A CONFIRM RKEY that the peer refuses for now is repeated after this time, this often (RFC 7609, A.3.5). */
#define REPEAT_DELAY (HZ / 2)
#define REPEATS 3

/*
 * Does the peer need the keys that RMBs have on a link? It may be about to use the link, and it may still do so when the link is down
 * here, until it has got DELETE LINK: a key that is missing would tell it that the link has failed.
 */
static bool wants_keys(const struct smc_link *link)
{
	lockdep_assert_held(&link->group->lock);
	return !link->delete_sent && !link->no_delete && (link->llc.confirmed || link->group->add.link == link);
}

/*
 * Does a call have to wait for DELETE LINK? An RMB that is made while a link is stopped gets no key there, and the peer would read in
 * CONFIRM RKEY that the link has failed because of us (RFC 7609, C.7.1). smc_rdma_llc_link_lost() has the call begin. If DELETE LINK
 * cannot be sent, the group ends, or the link leaves its slot.
 */
static bool awaits_delete_link(const struct smc_lgr_rdma *group, const struct smc_rdma_call *call)
{
	struct smc_link *link;

	lockdep_assert_held(&group->lock);
	if (call->type != SMC_LLC_CONFIRM_RKEY)
		return false;
	smc_for_each_link(group, link)
		if (wants_keys(link) && list_empty(&smc_rdma_buf_map_of(call->rmb, link)->list))
			return true;
	return false;
}

/* The keys of an RMB: first on the link that carries the message, then on the others. */
static void put_keys(struct smc_rdma_buf *rmb, struct smc_link *link, struct smc_llc_confirm_rkey *c)
{
	const struct smc_buf_map *map = smc_rdma_buf_map_of(rmb, link);
	struct smc_link *other;

	*c = (struct smc_llc_confirm_rkey){ .rkey = map->rkey, .addr = map->addr };
	smc_for_each_link(link->group, other) {
		map = smc_rdma_buf_map_of(rmb, other);
		if (other == link || !wants_keys(other) || list_empty(&map->list))
			continue;
		c->others[c->left++] = (struct smc_llc_rtoken){ .link = other->id, .rkey = map->rkey, .addr = map->addr };
	}
}

/* Sends a call by a usable link, with the keys that the RMB has on that link. Without any, the group ends soon. */
static void send_call(struct smc_lgr_rdma *group, struct smc_rdma_call *call)
{
	struct smc_link *link = smc_lgr_rdma_call_link(group);
	struct smc_llc m = { .type = call->type };
	const struct smc_buf_map *map;
	u8 msg[SMC_LLC_LEN];

	lockdep_assert_held(&group->lock);
	if (!link)
		return;
	map = smc_rdma_buf_map_of(call->rmb, link);
	call->rkey = map->rkey;
	if (call->type == SMC_LLC_CONFIRM_RKEY)
		put_keys(call->rmb, link, &m.confirm_rkey);
	else
		m.delete_rkey.n_rkeys = 1;
	if (!smc_rdma_llc_encode(group, &m, msg))
		return;
	if (call->type == SMC_LLC_DELETE_RKEY)
		smc_llc_rkey_set(msg, 0, call->rkey);
	group->llc.sent_by = link->serial;
	smc_rdma_llc_send(link, msg);
}

/*
 * smc_rdma_llc_call_lost() - a link is gone, and perhaps the running call, or its answer, with it: it is sent again by another
 * link. Answers name the RMB, and to ask twice is harmless. Softirq.
 */
void smc_rdma_llc_call_lost(struct smc_link *link)
{
	struct smc_lgr_rdma *group = link->group;

	spin_lock_bh(&group->lock);
	if (group->llc.call_runs && group->llc.sent_by == link->serial) {
		group->llc.sent_at = jiffies;
		send_call(group, list_first_entry(&group->llc.calls, struct smc_rdma_call, list));
	}
	spin_unlock_bh(&group->lock);
}

/* Does a rendezvous wait for a call? */
static bool call_is_awaited(const struct smc_lgr_rdma *group)
{
	const struct list_head *calls = &group->llc.calls;

	lockdep_assert_held(&group->lock);
	return !list_empty(calls) && !(list_is_singular(calls) && list_is_first(&group->delete_call.list, calls));
}

/*
 * smc_rdma_llc_next_call() - runs the first call that waits, unless a link is added, which goes first, or the peer does not know yet that
 * one is lost. Any context.
 */
void smc_rdma_llc_next_call(struct smc_lgr_rdma *group)
{
	struct smc_rdma_call *call = list_first_entry_or_null(&group->llc.calls, struct smc_rdma_call, list);

	lockdep_assert_held(&group->lock);
	group->llc.call_runs = call && smc_rdma_add_allows_call(group) && !awaits_delete_link(group, call);
	if (!group->llc.call_runs) {
		if (call_is_awaited(group))
			smc_rdma_add_expedite(group);
		smc_rdma_add_resume(group);
		return;
	}
	group->llc.sent_at = jiffies;
	group->llc.overtaken = false;
	send_call(group, call);
	smc_rdma_llc_mod_timer(group, SMC_RDMA_ANSWER_TIMEOUT);
}

/* smc_rdma_llc_start_calls() - runs the first call that waits, if none runs and it may begin. Any context. */
void smc_rdma_llc_start_calls(struct smc_lgr_rdma *group)
{
	const struct smc_rdma_call *call = list_first_entry_or_null(&group->llc.calls, struct smc_rdma_call, list);

	lockdep_assert_held(&group->lock);
	/* A call that has to wait is left alone: otherwise add_work(), which ends here, would run again at once. */
	if (!group->llc.call_runs && call && smc_rdma_add_allows_call(group) && !awaits_delete_link(group, call))
		smc_rdma_llc_next_call(group);
}

/* The running call is over. */
static void finish_call(struct smc_lgr_rdma *group, struct smc_rdma_call *call, int result)
{
	lockdep_assert_held(&group->lock);
	list_del_init(&call->list);
	WRITE_ONCE(call->result, result);
	/* The peer knows the RMB on every active link. */
	if (call->type == SMC_LLC_CONFIRM_RKEY && !result)
		call->rmb->announced = true;
	if (call != &group->delete_call)
		smc_lgr_rdma_wake_locked(group);
	smc_rdma_llc_next_call(group);
	if (call == &group->delete_call)
		smc_rdma_llc_mod_timer(group, 0);
}

/*
 * The peer has refused the running call for now: it may be about to change the links, or has no room for an RMB. Meanwhile, a link may
 * be added, and other calls run; DELETE RKEY gives it room. Return: false if it has refused the call too often.
 */
static bool repeat_call(struct smc_lgr_rdma *group, struct smc_rdma_call *call)
{
	lockdep_assert_held(&group->lock);
	if (call->repeats == REPEATS)
		return false;
	call->repeats++;
	call->repeat_at = jiffies + REPEAT_DELAY;
	list_move_tail(&call->list, &group->llc.refused);
	smc_rdma_llc_mod_timer(group, REPEAT_DELAY);
	smc_rdma_llc_next_call(group);
	return true;
}

/* Has the calls wait that are due again, with the keys of the links that there are by then. Return: jiffies until the next one is due. */
static unsigned long requeue_calls(struct smc_lgr_rdma *group)
{
	struct smc_rdma_llc *llc = &group->llc;
	unsigned long now = jiffies;
	struct smc_rdma_call *call;

	lockdep_assert_held(&group->lock);
	while ((call = list_first_entry_or_null(&llc->refused, struct smc_rdma_call, list))) {
		if (time_before(now, call->repeat_at))
			return call->repeat_at - now;
		list_move_tail(&call->list, &llc->calls);
		if (!llc->call_runs)
			smc_rdma_llc_next_call(group);
	}
	return MAX_JIFFY_OFFSET;
}

/* Does an answer belong to the running call? It names the same key, or no key, if no late answer is expected. */
static bool answers_call(const struct smc_lgr_rdma *group, const struct smc_rdma_call *call, u8 type, u32 rkey)
{
	lockdep_assert_held(&group->lock);
	if (!call || call->type != type)
		return false;
	return rkey ? call->rkey == rkey : type != SMC_LLC_DELETE_RKEY || !group->llc.late;
}

/*
 * smc_rdma_llc_answered() - the peer has answered a call: @result is 0, -EREMOTEIO if it could not do what we asked, or -EAGAIN if we are
 * to ask again later. Softirq.
 *
 * The key is 0 if the answer names none, as Linux has it of DELETE RKEY in version 2: that is taken for the answer to
 * the oldest call that has got none.
 */
void smc_rdma_llc_answered(struct smc_lgr_rdma *group, u8 type, u32 rkey, int result)
{
	struct smc_rdma_llc *llc = &group->llc;
	struct smc_rdma_call *call;

	spin_lock_bh(&group->lock);
	call = list_first_entry_or_null(&llc->calls, struct smc_rdma_call, list);
	if (llc->call_runs && answers_call(group, call, type, rkey)) {
		if (call == &group->delete_call) {
			llc->overtakes = 0;
			group->unanswered = 0;
		}
		if (result != -EAGAIN)
			finish_call(group, call, result);
		else if (!repeat_call(group, call))
			finish_call(group, call, -EREMOTEIO);
	} else if (type == SMC_LLC_DELETE_RKEY && llc->late) {
		llc->late--;
		llc->overtaken = !rkey && time_before(jiffies, llc->sent_at + PROMPT);
		group->unanswered = 0;
	}
	spin_unlock_bh(&group->lock);
}

/* Begins a call; it runs when those before it are over. */
static void begin_call(struct smc_lgr_rdma *group, struct smc_rdma_call *call, u8 type, struct smc_rdma_buf *rmb)
{
	lockdep_assert_held(&group->lock);
	call->type = type;
	call->rmb = rmb;
	call->repeats = 0;
	call->result = group->state == SMC_LGR_RDMA_ENDED ? -ENOTCONN : -EINPROGRESS;
	if (call->result == -ENOTCONN)
		return;
	list_add_tail(&call->list, &group->llc.calls);
	if (group->llc.call_runs)
		smc_rdma_llc_mod_timer(group, 0); /* the one that runs has less time now */
	else
		smc_rdma_llc_next_call(group);
}

/*
 * smc_rdma_llc_confirm_rkey() - tells the peer of a registered RMB. The call gets the result, and the rendezvous that
 * wait in the group are called again. RMB and call stay until then, or until smc_rdma_llc_cancel(). Softirq.
 */
void smc_rdma_llc_confirm_rkey(struct smc_lgr_rdma *group, struct smc_rdma_buf *rmb, struct smc_rdma_call *call)
{
	spin_lock_bh(&group->lock);
	begin_call(group, call, SMC_LLC_CONFIRM_RKEY, rmb);
	spin_unlock_bh(&group->lock);
}

/*
 * smc_rdma_llc_delete_rkey() - asks the peer to forget an RMB. The call gets the result, and the timer runs. Any
 * context.
 */
void smc_rdma_llc_delete_rkey(struct smc_lgr_rdma *group, struct smc_rdma_buf *rmb, struct smc_rdma_call *call)
{
	begin_call(group, call, SMC_LLC_DELETE_RKEY, rmb);
}

/* smc_rdma_llc_cancel() - ends a call whose result nobody needs any more. Softirq. */
void smc_rdma_llc_cancel(struct smc_lgr_rdma *group, struct smc_rdma_call *call)
{
	spin_lock_bh(&group->lock);
	if (!list_empty(&call->list)) {
		bool runs = group->llc.call_runs && list_is_first(&call->list, &group->llc.calls);

		list_del_init(&call->list);
		if (runs)
			smc_rdma_llc_next_call(group);
		else
			smc_rdma_llc_start_calls(group);
	}
	spin_unlock_bh(&group->lock);
}

/* Returns when the running call times out. */
static unsigned long call_deadline(const struct smc_lgr_rdma *group, const struct smc_rdma_call *call)
{
	lockdep_assert_held(&group->lock);
	return group->llc.sent_at + (call_is_awaited(group) ? SMC_RDMA_ANSWER_TIMEOUT : DELETE_RKEY_TIMEOUT);
}

/*
 * A DELETE RKEY has timed out, and may still be answered. If the peer has lost an earlier one, we have taken its answer
 * for the answer to that one, and would do so with all that follow.
 */
static void expect_late(struct smc_lgr_rdma *group)
{
	struct smc_rdma_llc *llc = &group->llc;

	lockdep_assert_held(&group->lock);
	if (llc->overtaken && ++llc->overtakes == LOST)
		llc->overtakes = 0;
	else
		llc->late++;
}

/* Ends the running call if it has timed out. Return: as smc_rdma_llc_look_at_calls() does. */
static unsigned long look_at_running(struct smc_lgr_rdma *group)
{
	struct smc_rdma_call *call = list_first_entry_or_null(&group->llc.calls, struct smc_rdma_call, list);
	unsigned long now = jiffies;

	lockdep_assert_held(&group->lock);
	if (!call || !group->llc.call_runs)
		return MAX_JIFFY_OFFSET;
	if (time_before(now, call_deadline(group, call)))
		return call_deadline(group, call) - now;
	if (call->type == SMC_LLC_DELETE_RKEY)
		expect_late(group);
	finish_call(group, call, -ETIMEDOUT);
	return SMC_RDMA_ANSWER_TIMEOUT;
}

/*
 * smc_rdma_llc_look_at_calls() - ends the running call if it has timed out, and repeats those that are due again. Any context. Return:
 * jiffies until the next look, MAX_JIFFY_OFFSET if there is none.
 */
unsigned long smc_rdma_llc_look_at_calls(struct smc_lgr_rdma *group)
{
	unsigned long next = requeue_calls(group); /* the one that runs may have less time then */

	return min(next, look_at_running(group));
}
