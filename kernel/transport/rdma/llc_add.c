// SPDX-License-Identifier: GPL-2.0-only
/*
 * How a group gets a second link: ADD LINK (docs/protocol.md, 7.3, 7.4 and 8; RFC 7609, 3.5.5.1.1). The server chooses
 * another port and asks, the client answers with its own, both tell the keys that their RMBs have on the new link, and
 * CONFIRM LINK goes over that. Making a link sleeps, so a work does it. We begin no exchange about RMBs meanwhile, except that one
 * with a peer of this implementation may run while CONFIRM LINK is awaited: if the new path leads nowhere, new connections would
 * wait for its timeout.
 */

#include <linux/slab.h>

#include "../../control/stats.h"
#include "../../control/trace.h"
#include "../../lgr/lgr.h"
#include "../../net.h"
#include "../../wire/llc.h"
#include "group.h"

/*
 * How long the peer has for ADD LINK and its continuations, and for CONFIRM LINK, which waits for the queue pair. Slow hosts with many
 * buffers to map and register need longer: they have more time each time that this host looks again.
 */
#define KEYS_TIMEOUT (2 * HZ)
#define CONFIRM_TIMEOUT (5 * HZ)
#define TIMEOUT_MOST (10 * HZ)
/* For the rest of the exchange, if a connection waits for its end, which it does for SMC_RDMA_LLC_WAIT. */
#define EXPEDITED_TIMEOUT (3 * HZ)

/* How often a client takes the links that its server offers, but for the first few: several ports may come up together. */
#define TAKE_INTERVAL HZ
#define TAKE_BURST (4 * HZ)

/* Begins a step, for which the peer has a time; less if a call waits for the end of the exchange. */
static void add_step_locked(struct smc_lgr_rdma *group, enum smc_rdma_add_step step, unsigned long timeout)
{
	struct smc_rdma_add *add = &group->add;

	lockdep_assert_held(&group->lock);
	add->step = step;
	add->deadline = jiffies + min_t(unsigned long, timeout + add->retry / 5, TIMEOUT_MOST);
	if (!group->llc.call_runs)
		smc_rdma_llc_next_call(group);
}

static void add_step(struct smc_lgr_rdma *group, enum smc_rdma_add_step step, unsigned long timeout)
{
	spin_lock_bh(&group->lock);
	add_step_locked(group, step, timeout);
	spin_unlock_bh(&group->lock);
}

/* smc_rdma_add_runs() - does an exchange that adds a link run, or wait for its turn? Any context. */
bool smc_rdma_add_runs(const struct smc_lgr_rdma *group)
{
	lockdep_assert_held(&group->lock);
	return group->add.step != SMC_RDMA_ADD_NONE || group->add.msg || group->add.handles || group->add.wanted;
}

/* smc_rdma_add_allows_call() - may a call begin? Any context. */
bool smc_rdma_add_allows_call(const struct smc_lgr_rdma *group)
{
	const struct smc_rdma_add *add = &group->add;

	lockdep_assert_held(&group->lock);
	if (!smc_rdma_add_runs(group))
		return true;
	/* A message may begin another exchange, whose keys would not include the one that the call is about. */
	return !add->msg && !add->handles && (add->calls || add->step == SMC_RDMA_ADD_ENDING);
}

/* Both hosts have sent the keys of all RMBs that the other one knows: CONFIRM LINK is awaited, and calls may run meanwhile. */
static void await_confirm(struct smc_lgr_rdma *group)
{
	spin_lock_bh(&group->lock);
	group->add.calls = group->immediate;
	group->add.handles = false;
	add_step_locked(group, SMC_RDMA_ADD_CONFIRM, CONFIRM_TIMEOUT);
	spin_unlock_bh(&group->lock);
}

/* smc_rdma_add_queue() - has the work of the exchange run after some jiffies. Any context. */
void smc_rdma_add_queue(struct smc_lgr_rdma *group, unsigned long delay)
{
	lockdep_assert_held(&group->lock);
	if (group->state == SMC_LGR_RDMA_ENDED)
		return;
	smc_lgr_get(group->lgr);
	if (mod_delayed_work(smc_lgr_wq, &group->add.work, delay))
		smc_lgr_put(group->lgr);
}

/* smc_rdma_add_expedite() - a call waits until the exchange is over, or lets it begin: the peer has less time for the rest. Any context. */
void smc_rdma_add_expedite(struct smc_lgr_rdma *group)
{
	struct smc_rdma_add *add = &group->add;

	lockdep_assert_held(&group->lock);
	if (add->step == SMC_RDMA_ADD_NONE || add->calls)
		return;
	if (!add->expedited)
		add->expedited_deadline = jiffies + EXPEDITED_TIMEOUT;
	add->expedited = true;
	if (time_after(add->deadline, add->expedited_deadline))
		add->deadline = add->expedited_deadline;
}

/* smc_rdma_add_resume() - the exchange may go on, or begin. Any context. */
void smc_rdma_add_resume(struct smc_lgr_rdma *group)
{
	lockdep_assert_held(&group->lock);
	if (smc_rdma_add_runs(group))
		smc_rdma_add_queue(group, 0);
}

/*
 * smc_rdma_add_recv() - ADD LINK, or a continuation of it, has come by a link. A peer has one such message under way: one
 * more is lost. Softirq.
 */
void smc_rdma_add_recv(struct smc_link *link, const u8 *msg, u32 len)
{
	struct smc_lgr_rdma *group = link->group;
	struct smc_rdma_add *add = &group->add;

	spin_lock_bh(&group->lock);
	if (!add->msg && group->state == SMC_LGR_RDMA_READY) {
		add->msg = kmemdup(msg, len, GFP_ATOMIC);
		add->msg_len = len;
		add->by = link->id;
		if (add->msg)
			smc_rdma_add_queue(group, 0);
	}
	spin_unlock_bh(&group->lock);
}

/* The exchange is over. The work goes on with what has come meanwhile, before calls may begin. */
static void add_done(struct smc_lgr_rdma *group)
{
	struct smc_rdma_add *add = &group->add;
	struct smc_link *link = add->link, *carrier = add->carrier;

	spin_lock_bh(&group->lock);
	add->step = SMC_RDMA_ADD_NONE;
	add->link = NULL;
	add->carrier = NULL;
	add->broken = false;
	add->expedited = false;
	add->calls = false;
	/* A client sets the time when it asks. */
	if (add->lost && (group->server || !time_before(jiffies, add->retry_at)))
		smc_rdma_add_back_off(group);
	spin_unlock_bh(&group->lock);
	smc_link_put(link);
	smc_link_put(carrier);
}

/* Gives up the new link. @tell: the peer has made its end of it, and gets DELETE LINK. */
static void add_abort(struct smc_lgr_rdma *group, bool tell, int err)
{
	struct smc_link *link = group->add.link;

	trace_smc_link_not_added(group->lgr->id + (link ? link->id : 0), group->server, group->add.step, err);

	/* From here on, the peer cannot confirm the link. */
	spin_lock_bh(&group->lock);
	group->add.step = SMC_RDMA_ADD_ENDING;
	group->add.calls = false;
	if (link) {
		link->active = false;
		link->no_delete = !tell;
	}
	smc_rdma_llc_start_calls(group); /* to end the link may take seconds */
	spin_unlock_bh(&group->lock);
	if (link)
		smc_lgr_rdma_remove_link(link, tell);
	add_done(group);
}

static void add_count(const struct smc_lgr_rdma *group, enum smc_stats_link counter)
{
	smc_stats_link(smc_net(group->lgr->key.net), counter);
}

/*
 * Gives up the new link because a host cannot make it, or not in time. The group is to get one later, unless an operator has
 * deleted a link meanwhile.
 */
static void add_fail(struct smc_lgr_rdma *group, bool tell, int err)
{
	struct smc_rdma_add *add = &group->add;

	add_count(group, SMC_STATS_LINKS_NOT_ADDED);
	spin_lock_bh(&group->lock);
	if (smc_rdma_add_retries(group) && !(add->link && add->link->reason == SMC_LLC_BY_OPERATOR) &&
	    add->carrier->reason != SMC_LLC_BY_OPERATOR)
		add->lost = true;
	spin_unlock_bh(&group->lock);
	add_abort(group, tell, err);
}

/* Ends an exchange before the peer knows of the new link. If there is no port for that, the one that comes up begins another. */
static void give_up(struct smc_lgr_rdma *group, int err)
{
	if (!group->add.link && err == -ENODEV)
		add_abort(group, false, err);
	else
		add_fail(group, false, err);
}

/* Refuses ADD LINK of the server's. Linux gives no reason in version 2. */
static void add_refuse(struct smc_link *by, struct smc_llc *m, u8 reason)
{
	smc_rdma_llc_refuse_add_link(by, m, by->group->version > 1 ? 0 : reason);
}

/* Server: asks for a second link. Return: 0 or a negative errno. */
static int ask_for_link(struct smc_lgr_rdma *group)
{
	struct smc_rdma_path path;
	int rc = smc_rdma_add_choose_path(group, NULL, &path);

	if (rc)
		return rc;
	rc = smc_rdma_add_make_link(group, &path, NULL);
	smc_rdma_dev_put(path.dev);
	if (!rc)
		rc = smc_rdma_add_send_link(group, false);
	/* To make this end of the link may have taken as long as the peer has. */
	if (!rc)
		add_step(group, SMC_RDMA_ADD_SENT, KEYS_TIMEOUT);
	return rc;
}

/* Server: may an exchange begin? Takes the link that is to carry it. */
static bool may_ask(struct smc_lgr_rdma *group)
{
	struct smc_rdma_add *add = &group->add;
	bool may;

	spin_lock_bh(&group->lock);
	add->wanted = false;
	may = smc_lgr_rdma_may_add(group);
	add->lost &= may;
	may &= group->state == SMC_LGR_RDMA_READY && !smc_rdma_llc_closing(group);
	add->carrier = may ? smc_lgr_rdma_find_link(group, NULL) : NULL;
	if (add->carrier) {
		smc_link_get(add->carrier);
		add_step_locked(group, SMC_RDMA_ADD_SENT, KEYS_TIMEOUT);
	}
	spin_unlock_bh(&group->lock);
	return add->carrier;
}

static void begin_add(struct smc_lgr_rdma *group)
{
	struct smc_link *carrier;
	int rc;

	if (!may_ask(group)) {
		add_done(group);
		return;
	}
	carrier = smc_link_get(group->add.carrier);
	rc = ask_for_link(group);
	if (rc) {
		give_up(group, rc);
		/* Clients whose version has no word for it wait for an offer. */
		if (!group->release)
			smc_rdma_llc_no_second(carrier);
	}
	smc_link_put(carrier);
}

/* Client: answers ADD LINK of the server's. Return: 0, or a negative errno if it has to be refused. */
static int answer_add_link(struct smc_lgr_rdma *group, const struct smc_llc *m, const u8 *msg)
{
	struct smc_rdma_path path;
	int rc = smc_rdma_add_choose_path(group, &m->add_link, &path);

	if (rc)
		return rc;
	rc = smc_rdma_add_make_link(group, &path, &m->add_link);
	smc_rdma_dev_put(path.dev);
	if (rc)
		return rc;
	smc_rdma_add_recv_keys(group, m, msg);
	return smc_rdma_add_send_link(group, true);
}

/* Client: may the group have one more link, and the link this number? */
static bool may_take(struct smc_lgr_rdma *group, u8 id)
{
	bool may;

	spin_lock_bh(&group->lock);
	may = id && !smc_lgr_rdma_link_by_id(group, id) && smc_lgr_rdma_may_add(group);
	spin_unlock_bh(&group->lock);
	return may;
}

/* Client: does the server ask too often? Each time costs a queue pair and the maps of all buffers. */
static bool offer_rate_exceeded(struct smc_rdma_add *add)
{
	unsigned long now = jiffies;

	/* In the past, or after so long that jiffies have wrapped. */
	if (!time_in_range(add->take_from, now, now + TAKE_BURST + TAKE_INTERVAL))
		add->take_from = now;
	if (time_after(add->take_from, now + TAKE_BURST))
		return true;
	add->take_from += TAKE_INTERVAL;
	return false;
}

/* Client: refuses an offer that comes too soon after others. A server that does not ask again by itself is sent a request later. */
static void defer_offer(struct smc_lgr_rdma *group, struct smc_link *by, struct smc_llc *m)
{
	struct smc_rdma_add *add = &group->add;

	add_refuse(by, m, SMC_LLC_REJECT_PATH);
	spin_lock_bh(&group->lock);
	if (!add->lost && smc_rdma_add_retries(group)) {
		add->lost = true;
		smc_rdma_add_back_off(group);
	}
	spin_unlock_bh(&group->lock);
}

static void on_server_asks(struct smc_lgr_rdma *group, struct smc_link *by, struct smc_llc *m, const u8 *msg)
{
	struct smc_rdma_add *add = &group->add;
	int rc;

	/* The server has given up the exchange that we know of. */
	if (add->step != SMC_RDMA_ADD_NONE)
		add_fail(group, false, -ECANCELED);
	if (!m->add_link.reject && m->add_link.mtu_code && offer_rate_exceeded(add)) {
		defer_offer(group, by, m);
		return;
	}
	if (m->add_link.reject || group->link_limit < 2 || !m->add_link.mtu_code || !group->direct ||
	    !may_take(group, m->add_link.link)) {
		add_refuse(by, m, m->add_link.mtu_code ? SMC_LLC_REJECT_PATH : SMC_LLC_REJECT_MTU);
		return;
	}
	add->carrier = smc_link_get(by);
	add_step(group, SMC_RDMA_ADD_CONFIRM, CONFIRM_TIMEOUT);
	rc = answer_add_link(group, m, msg);
	if (rc) {
		give_up(group, rc);
		add_refuse(by, m, SMC_LLC_REJECT_PATH);
		return;
	}
	await_confirm(group);
}

/* Server: the keys are exchanged. If the new path leads nowhere, registrations would wait behind CONFIRM LINK until that has timed out. */
static void ask_for_confirm(struct smc_lgr_rdma *group)
{
	await_confirm(group);
	spin_lock_bh(&group->lock);
	smc_link_acks_begin(group->add.link);
	spin_unlock_bh(&group->lock);
	smc_rdma_llc_confirm_link(group->add.link, false);
}

/*
 * Server: the client has refused the new link, or, with @tell, made it parallel to another (RFC 7609, C.7). If it has one port only, it
 * always will. One that has named two may be able to use the other one a little later (C.8).
 */
static void add_refused(struct smc_lgr_rdma *group, bool tell, int err)
{
	add_count(group, tell ? SMC_STATS_LINKS_NOT_ADDED : SMC_STATS_LINKS_REFUSED_BY_PEER);
	spin_lock_bh(&group->lock);
	group->add.lost |= READ_ONCE(group->add.peer_has_two);
	if (tell)
		group->add.link->reason = SMC_LLC_VIOLATION;
	spin_unlock_bh(&group->lock);
	add_abort(group, tell, err);
}

/* Server: the client has made its end of the link. Return: 0 or a negative errno. */
static int on_client_answers(struct smc_lgr_rdma *group, const struct smc_llc *m, const u8 *msg)
{
	struct smc_link *link = group->add.link;
	int rc;

	if (smc_lgr_rdma_is_parallel(group, &link->path, &m->add_link)) {
		add_refused(group, true, -EADDRINUSE);
		return 0;
	}
	if (!smc_link_is_peer_port(group->add.carrier, m->add_link.gid, m->add_link.mac))
		WRITE_ONCE(group->add.peer_has_two, true);
	smc_rdma_add_set_peer(link, &m->add_link);
	rc = smc_link_to_rtr(link) ?: smc_link_to_rts(link) ?: smc_lgr_rdma_register_bufs(link);
	if (rc)
		return rc;
	smc_rdma_add_recv_keys(group, m, msg);
	if (group->version > 1) {
		ask_for_confirm(group);
	} else {
		add_step(group, SMC_RDMA_ADD_KEYS, KEYS_TIMEOUT);
		smc_rdma_add_send_keys(group);
	}
	return 0;
}

/* A continuation: the next keys of the peer's, which ours follow until both sides have sent all. */
static void on_continuation(struct smc_lgr_rdma *group, const struct smc_llc *m, const u8 *msg)
{
	spin_lock_bh(&group->lock);
	group->add.calls = false;
	spin_unlock_bh(&group->lock);
	smc_rdma_add_recv_keys(group, m, msg);
	if (group->server && m->add_link_continuation.left <= 2 && smc_rdma_add_keys_sent(group)) {
		ask_for_confirm(group);
		return;
	}
	smc_rdma_add_send_keys(group);
}

/* Is a continuation expected, and for the new link? All keys have the time that a server gives the step. */
static bool is_continuation(const struct smc_lgr_rdma *group, const struct smc_llc *m)
{
	const struct smc_rdma_add *add = &group->add;

	return m->type == SMC_LLC_ADD_LINK_CONTINUATION && m->response == group->server && add->link &&
	       m->add_link_continuation.link == add->link->id && (!group->server || add->step == SMC_RDMA_ADD_KEYS);
}

/* Handles a message of the exchange. */
static void add_handle(struct smc_lgr_rdma *group, const u8 *msg, u32 len, u8 by_id)
{
	struct smc_rdma_add *add = &group->add;
	struct smc_link *by;
	struct smc_llc m;
	int rc = 0;

	if (smc_llc_decode(msg, len, &m))
		return;
	by = smc_lgr_rdma_get_by_id(group, by_id);
	/* The link that is being added carries none. */
	if (!by || !READ_ONCE(by->active)) {
		smc_link_put(by);
		return;
	}
	if (m.type == SMC_LLC_ADD_LINK && !m.response) {
		on_server_asks(group, by, &m, msg);
	} else if (m.type == SMC_LLC_ADD_LINK && add->step == SMC_RDMA_ADD_SENT && m.add_link.link == add->link->id) {
		if (m.add_link.reject)
			add_refused(group, false, -EREMOTEIO);
		else
			rc = on_client_answers(group, &m, msg);
	} else if (is_continuation(group, &m)) {
		on_continuation(group, &m, msg);
	}
	if (rc)
		add_fail(group, true, rc);
	smc_link_put(by);
}

/* The new link can be used, unless no connection could go on by it. The stock module may leave out the keys of some RMBs. */
static void add_activate(struct smc_lgr_rdma *group, struct smc_link *link)
{
	lockdep_assert_held(&group->lock);
	if (!smc_rtoken_serves(link)) {
		link->reason = SMC_LLC_VIOLATION;
		return;
	}
	link->active = true;
	link->active_since = jiffies;
	smc_rdma_add_link_active(group);
	smc_rdma_llc_watch_link(link);
	smc_rdma_balance_soon(group);
}

/*
 * smc_rdma_add_confirm() - CONFIRM LINK has come by a link, or the response to ours. The new link of a server is active from
 * here on: the client may already use it, or delete the other one. Softirq.
 */
void smc_rdma_add_confirm(struct smc_link *link)
{
	struct smc_lgr_rdma *group = link->group;

	lockdep_assert_held(&group->lock);
	if (group->add.link != link || group->add.step != SMC_RDMA_ADD_CONFIRM)
		return;
	if (group->server && !group->add.broken)
		add_activate(group, link);
	smc_rdma_add_queue(group, 0);
}

/* The new link is confirmed. */
static void add_confirmed(struct smc_lgr_rdma *group)
{
	struct smc_link *link = group->add.link;
	int rc = group->server ? 0 : smc_link_to_rts(link) ?: smc_lgr_rdma_register_bufs(link);

	if (!rc && (!smc_link_usable(link) || READ_ONCE(group->add.broken)))
		rc = -ENOTCONN;
	if (!rc && !group->server) {
		spin_lock_bh(&group->lock);
		add_activate(group, link);
		spin_unlock_bh(&group->lock);
	}
	if (!rc && !READ_ONCE(link->active))
		rc = -ENOKEY;
	if (rc) {
		add_fail(group, true, rc);
		return;
	}
	if (group->server)
		smc_lgr_rdma_drop_asymmetric(group, group->add.carrier, link);
	else
		smc_rdma_llc_confirm_link(link, true);
	trace_smc_link_add(group->lgr->id + link->id, group->server);
	add_count(group, SMC_STATS_LINKS_ADDED);
	add_done(group);
}

/* Takes the message that is to be handled, unless a call runs, which goes first. Return: whether the work may go on. */
static bool take_msg(struct smc_lgr_rdma *group, u8 **msg, u32 *len, u8 *by)
{
	struct smc_rdma_add *add = &group->add;
	bool may;

	spin_lock_bh(&group->lock);
	may = group->state == SMC_LGR_RDMA_READY && (add->step != SMC_RDMA_ADD_NONE || !group->llc.call_runs);
	/* If a call runs, that has the work queued again. */
	if (add->lost && add->step == SMC_RDMA_ADD_NONE && !time_before(jiffies, add->retry_at))
		smc_rdma_add_retry(group);
	*msg = may && !(add->calls && group->llc.call_runs) ? add->msg : NULL;
	*len = add->msg_len;
	*by = add->by;
	if (*msg) {
		add->msg = NULL;
		add->handles = true;
	}
	spin_unlock_bh(&group->lock);
	return may;
}

static void add_go_on(struct smc_lgr_rdma *group)
{
	struct smc_rdma_add *add = &group->add;
	u8 *msg, by;
	u32 len;

	if (!take_msg(group, &msg, &len, &by))
		return;
	if (msg)
		add_handle(group, msg, len, by);
	else if (add->step == SMC_RDMA_ADD_NONE && READ_ONCE(add->wanted))
		begin_add(group);
	else if (add->step == SMC_RDMA_ADD_CONFIRM && !READ_ONCE(add->broken) && smp_load_acquire(&add->link->llc.confirmed))
		add_confirmed(group);
	else if (add->step != SMC_RDMA_ADD_NONE && (READ_ONCE(add->broken) || !time_before(jiffies, add->deadline)))
		add_fail(group, add->step != SMC_RDMA_ADD_SENT, READ_ONCE(add->broken) ? -ENOTCONN : -ETIMEDOUT);
	kfree(msg);
}

static void add_work(struct work_struct *work)
{
	struct smc_rdma_add *add = container_of(to_delayed_work(work), struct smc_rdma_add, work);
	struct smc_lgr_rdma *group = container_of(add, struct smc_lgr_rdma, add);
	bool request;

	add_go_on(group);
	spin_lock_bh(&group->lock);
	add->handles = false;
	/* The exchange, or a message, has held up calls. */
	if (add->step == SMC_RDMA_ADD_NONE && !group->llc.call_runs)
		smc_rdma_llc_next_call(group);
	else
		smc_rdma_llc_start_calls(group);
	if (!delayed_work_pending(&add->work)) {
		if (add->step != SMC_RDMA_ADD_NONE)
			smc_rdma_add_queue(group, max_t(long, add->deadline - jiffies, 0));
		else if (add->lost && !add->wanted)
			smc_rdma_add_queue(group, max_t(long, add->retry_at - jiffies, 0));
	}
	request = add->request && !smc_rdma_add_runs(group);
	add->request &= !request;
	spin_unlock_bh(&group->lock);
	if (request)
		smc_rdma_request_add_link(group);
	smc_lgr_put(group->lgr);
}

/* smc_rdma_add_init() - of a fresh group. */
void smc_rdma_add_init(struct smc_lgr_rdma *group)
{
	INIT_DELAYED_WORK(&group->add.work, add_work);
	group->add.request_from = group->add.retry_at = group->add.take_from = jiffies;
}
