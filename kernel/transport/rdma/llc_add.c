// SPDX-License-Identifier: GPL-2.0-only
/*
 * How a group gets a second link: ADD LINK (docs/protocol.md, 7.3, 7.4 and 8; RFC 7609, 3.5.5.1.1). The server chooses
 * another port and asks, the client answers with its own, both tell the keys that their RMBs have on the new link, and
 * CONFIRM LINK goes over that. Making a link sleeps, so a work does it. No other exchange about links or RMBs that we
 * begin runs meanwhile.
 */

#include <linux/slab.h>

#include "../../control/stats.h"
#include "../../control/trace.h"
#include "../../lgr/lgr.h"
#include "../../net.h"
#include "../../wire/llc.h"
#include "group.h"

/* How long the peer has for ADD LINK and its continuations, and for CONFIRM LINK, which waits for the queue pair. */
#define KEYS_TIMEOUT (2 * HZ)
#define CONFIRM_TIMEOUT (5 * HZ)
/* A server that has lost a second link looks for another after the first time, then twice that, and so on (RFC 7609, C.8). */
#define RETRY_FIRST (10 * HZ)
#define RETRY_MOST (300 * HZ)

static void add_step(struct smc_lgr_rdma *group, enum smc_rdma_add_step step, unsigned long timeout)
{
	spin_lock_bh(&group->lock);
	group->add.step = step;
	group->add.deadline = jiffies + timeout;
	spin_unlock_bh(&group->lock);
}

/* smc_rdma_add_runs() - does an exchange that adds a link run, or wait for its turn? Then no call begins. Any context. */
bool smc_rdma_add_runs(const struct smc_lgr_rdma *group)
{
	lockdep_assert_held(&group->lock);
	return group->add.step != SMC_RDMA_ADD_NONE || group->add.msg || group->add.wanted;
}

/* Has the work run after some jiffies. */
static void add_queue(struct smc_lgr_rdma *group, unsigned long delay)
{
	lockdep_assert_held(&group->lock);
	if (group->state == SMC_LGR_RDMA_ENDED)
		return;
	smc_lgr_get(group->lgr);
	if (mod_delayed_work(smc_lgr_wq, &group->add.work, delay))
		smc_lgr_put(group->lgr);
}

/* smc_rdma_add_look() - the exchange may go on, or begin. Any context. */
void smc_rdma_add_look(struct smc_lgr_rdma *group)
{
	lockdep_assert_held(&group->lock);
	if (smc_rdma_add_runs(group))
		add_queue(group, 0);
}

/* smc_rdma_add_want() - has a server look for a second link. Softirq. */
void smc_rdma_add_want(struct smc_lgr_rdma *group)
{
	spin_lock_bh(&group->lock);
	if (group->server && group->state == SMC_LGR_RDMA_READY && group->link_limit > 1) {
		group->add.wanted = true;
		add_queue(group, 0);
	}
	spin_unlock_bh(&group->lock);
}

/*
 * smc_rdma_add_link_lost() - a link of a group is gone: an exchange that was to add it stops, and a server looks for
 * another. Softirq.
 */
void smc_rdma_add_link_lost(struct smc_link *link)
{
	struct smc_lgr_rdma *group = link->group;
	struct smc_rdma_add *add = &group->add;

	spin_lock_bh(&group->lock);
	if (add->link == link || add->carrier == link)
		add->deadline = jiffies;
	/* An operator who deletes a link does not want another one at once. */
	if (!link->unwanted) {
		add->lost = group->server;
		add->wanted |= group->server;
	}
	smc_rdma_add_look(group);
	spin_unlock_bh(&group->lock);
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
			add_queue(group, 0);
	}
	spin_unlock_bh(&group->lock);
}

/* Writes the keys of up to @most RMBs into a message, from the one with a number on. Return: how many the peer knows. */
static unsigned int put_pairs(const struct smc_lgr_rdma *group, u8 *msg, unsigned int from, unsigned int most)
{
	const struct smc_rdma_add *add = &group->add;
	struct smc_rdma_buf *buf;
	unsigned int n = 0;

	lockdep_assert_held(&group->lock);
	list_for_each_entry(buf, &group->bufs, on_group) {
		const struct smc_buf_map *fresh = smc_rdma_buf_map_of(buf, add->link);
		struct smc_llc_pair pair = {
			.known = smc_rdma_buf_map_of(buf, add->carrier)->rkey, .rkey = fresh->rkey, .addr = fresh->addr,
		};

		if (!buf->rmb || !buf->announced || list_empty(&fresh->list))
			continue;
		if (n >= from && n - from < most)
			smc_llc_pair_set(msg, n - from, &pair);
		n++;
	}
	return n;
}

/* Returns how many RMBs the peer knows; a group has SMC_RDMA_RTOKENS at most. */
static unsigned int count_pairs(const struct smc_lgr_rdma *group)
{
	return put_pairs(group, NULL, 0, 0);
}

/* Takes in the keys that a message of the peer's has. */
static void recv_pairs(struct smc_lgr_rdma *group, const struct smc_llc *m, const u8 *msg)
{
	struct smc_rdma_add *add = &group->add;
	struct smc_llc_pair pair;
	unsigned int i;

	for (i = 0; smc_llc_pair_at(m, msg, i, &pair); i++)
		smc_rtoken_add_on(add->carrier, pair.known, add->link, pair.rkey, pair.addr);
}

/* Sends our ADD LINK with the keys of all RMBs, in version 2. Return: 0 or -ENOMEM. */
static int send_add_link(struct smc_lgr_rdma *group, bool response)
{
	struct smc_rdma_add *add = &group->add;
	const struct smc_link *link = add->link;
	struct smc_llc m = {
		.type = SMC_LLC_ADD_LINK,
		.version = group->version,
		.response = response,
		.add_link = { .qpn = link->qpn, .link = link->id, .psn = link->psn, .has_ext = group->version > 1, .direct = true },
	};
	u8 *msg = kmalloc(SMC_LLC_MAX, GFP_KERNEL);
	size_t len;
	int rc;

	if (!msg)
		return -ENOMEM;
	rc = m.add_link.has_ext ? smc_link_make_long_buf(add->carrier) : 0;
	if (rc)
		goto out;
	memcpy(m.add_link.mac, link->path.mac, sizeof(m.add_link.mac));
	memcpy(m.add_link.gid, link->path.gid, sizeof(m.add_link.gid));
	memcpy(m.add_link.target_gid, link->path.gid, sizeof(m.add_link.target_gid));
	m.add_link.mtu_code = response ? min(link->path.mtu_code, link->peer.mtu_code) : link->path.mtu_code;
	spin_lock_bh(&group->lock);
	m.swapped = group->llc.swapped;
	m.add_link.n_pairs = m.add_link.has_ext ? count_pairs(group) : 0;
	len = smc_llc_encode(&m, msg, SMC_LLC_MAX);
	put_pairs(group, msg, 0, m.add_link.n_pairs);
	if (!WARN_ON_ONCE(!len))
		smc_rdma_llc_send_long(add->carrier, msg, len);
	spin_unlock_bh(&group->lock);
out:
	kfree(msg);
	return rc;
}

/* Sends the next keys of ours, in version 1: two at most. */
static void send_continuation(struct smc_lgr_rdma *group)
{
	struct smc_rdma_add *add = &group->add;
	struct smc_llc m = { .type = SMC_LLC_ADD_LINK_CONTINUATION, .response = !group->server };
	unsigned int total, left;
	u8 msg[SMC_LLC_LEN];

	spin_lock_bh(&group->lock);
	/* The peer may have forgotten one since. */
	total = count_pairs(group);
	left = total > add->sent ? total - add->sent : 0;
	m.add_link_continuation.link = add->link->id;
	m.add_link_continuation.left = left;
	if (smc_rdma_llc_encode(group, &m, msg)) {
		put_pairs(group, msg, add->sent, min(left, 2U));
		smc_rdma_llc_send(add->carrier, msg);
		add->sent += min(left, 2U);
	}
	spin_unlock_bh(&group->lock);
}

/* The exchange is over: calls may begin. */
static void add_done(struct smc_lgr_rdma *group)
{
	struct smc_rdma_add *add = &group->add;
	struct smc_link *link = add->link, *carrier = add->carrier;

	spin_lock_bh(&group->lock);
	add->step = SMC_RDMA_ADD_NONE;
	add->link = NULL;
	add->carrier = NULL;
	add->sent = 0;
	if (add->lost && smc_lgr_rdma_has_slot(group)) {
		add->retry = min_t(unsigned long, add->retry ? 2 * add->retry : RETRY_FIRST, RETRY_MOST);
		add_queue(group, add->retry);
	}
	smc_rdma_llc_next_call(group);
	spin_unlock_bh(&group->lock);
	smc_link_put(link);
	smc_link_put(carrier);
}

/* Gives up the new link; the peer, if it has made its end of that, is told. */
static void add_abort(struct smc_lgr_rdma *group, bool tell)
{
	struct smc_link *link = group->add.link;

	if (link) {
		if (tell)
			smc_rdma_llc_link_lost(link);
		smc_lgr_rdma_remove_link(link);
	}
	add_done(group);
}

static void add_count(const struct smc_lgr_rdma *group, enum smc_stats_link counter)
{
	smc_stats_link(smc_net(group->lgr->key.net), counter);
}

/* Gives up the new link because a host cannot make it, or not in time. */
static void add_fail(struct smc_lgr_rdma *group, bool tell)
{
	add_count(group, SMC_STATS_LINKS_NOT_ADDED);
	add_abort(group, tell);
}

/* Refuses ADD LINK of the server's. Linux gives no reason in version 2. */
static void add_refuse(struct smc_link *by, struct smc_llc *m, u8 reason)
{
	smc_rdma_llc_refuse_add_link(by, m, by->group->version > 1 ? 0 : reason);
}

/* Sets the peer's end of the new link, as its ADD LINK states it. */
static void set_peer(struct smc_link *link, const struct smc_llc_add_link *a)
{
	link->peer = (struct smc_link_peer){ .qpn = a->qpn, .psn = a->psn, .mtu_code = a->mtu_code };
	memcpy(link->peer.gid, a->gid, sizeof(link->peer.gid));
	memcpy(link->peer.mac, a->mac, sizeof(link->peer.mac));
	memcpy(link->peer.clc_gid, a->gid, sizeof(link->peer.clc_gid));
	memcpy(link->peer.clc_mac, a->mac, sizeof(link->peer.clc_mac));
}

/* Makes the new link over a path, in a slot of the group, with all buffers mapped. Return: 0 or a negative errno. */
static int make_link(struct smc_lgr_rdma *group, const struct smc_rdma_path *path, const struct smc_llc_add_link *peer)
{
	struct smc_link *link = smc_link_new(group, path, smc_net(group->lgr->key.net)->sysctl);
	int rc;

	if (IS_ERR(link))
		return PTR_ERR(link);
	if (peer) {
		link->id = peer->link;
		set_peer(link, peer);
	}
	smc_link_get(link);
	if (!smc_lgr_rdma_add_link(group, link, !peer)) {
		/* Not smc_link_discard(): the link's work may wait for this one to end. */
		smc_link_end(link);
		smc_link_put(link);
		smc_link_put(link);
		return -ENOSPC;
	}
	group->add.link = link;
	rc = peer ? smc_link_to_rtr(link) : 0;
	return rc ?: smc_lgr_rdma_map_bufs(link);
}

static bool is_same_port(const struct smc_link *link, const struct smc_llc_add_link *a)
{
	return !memcmp(link->peer.clc_gid, a->gid, sizeof(a->gid)) && !memcmp(link->peer.clc_mac, a->mac, sizeof(a->mac));
}

/*
 * Chooses the port for the new link, with a reference on its device: another one, or the same if the peer has another.
 * Return: 0 or -ENODEV.
 */
static int choose_path(const struct smc_link *carrier, const struct smc_llc_add_link *peer, struct smc_rdma_path *path)
{
	if (!smc_rdma_choose_second(&carrier->path, peer ? peer->gid : NULL, path))
		return 0;
	if (peer && is_same_port(carrier, peer))
		return -ENODEV;
	*path = carrier->path;
	smc_rdma_dev_get(path->dev);
	return 0;
}

/* Server: asks for a second link. Return: 0 or a negative errno. */
static int ask_for_link(struct smc_lgr_rdma *group)
{
	struct smc_rdma_path path;
	int rc = choose_path(group->add.carrier, NULL, &path);

	if (rc)
		return rc;
	rc = make_link(group, &path, NULL);
	smc_rdma_dev_put(path.dev);
	return rc ?: send_add_link(group, false);
}

/* Server: may an exchange begin? Takes the link that is to carry it. */
static bool may_ask(struct smc_lgr_rdma *group)
{
	struct smc_rdma_add *add = &group->add;
	bool may;

	spin_lock_bh(&group->lock);
	add->wanted = false;
	add->lost &= smc_lgr_rdma_has_slot(group);
	may = group->state == SMC_LGR_RDMA_READY && !smc_rdma_llc_closing(group) && smc_lgr_rdma_has_slot(group);
	add->carrier = may ? smc_lgr_rdma_find_link(group, NULL) : NULL;
	if (add->carrier) {
		smc_link_get(add->carrier);
		add->step = SMC_RDMA_ADD_SENT;
		add->deadline = jiffies + KEYS_TIMEOUT;
	}
	spin_unlock_bh(&group->lock);
	return add->carrier;
}

static void begin_add(struct smc_lgr_rdma *group)
{
	struct smc_link *carrier;

	if (!may_ask(group)) {
		add_done(group);
		return;
	}
	carrier = smc_link_get(group->add.carrier);
	if (ask_for_link(group)) {
		add_fail(group, false);
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
	int rc = choose_path(group->add.carrier, &m->add_link, &path);

	if (rc)
		return rc;
	rc = make_link(group, &path, &m->add_link);
	smc_rdma_dev_put(path.dev);
	if (rc)
		return rc;
	recv_pairs(group, m, msg);
	return send_add_link(group, true);
}

static void on_server_asks(struct smc_lgr_rdma *group, struct smc_link *by, struct smc_llc *m, const u8 *msg)
{
	struct smc_rdma_add *add = &group->add;

	/* The server has given up the exchange that we know of. */
	if (add->step != SMC_RDMA_ADD_NONE)
		add_fail(group, false);
	if (m->add_link.reject || group->link_limit < 2 || !m->add_link.mtu_code || !group->direct) {
		add_refuse(by, m, m->add_link.mtu_code ? SMC_LLC_REJECT_PATH : SMC_LLC_REJECT_MTU);
		return;
	}
	add->carrier = smc_link_get(by);
	add_step(group, SMC_RDMA_ADD_CONFIRM, CONFIRM_TIMEOUT);
	if (answer_add_link(group, m, msg)) {
		add_abort(group, false);
		add_refuse(by, m, SMC_LLC_REJECT_PATH);
	}
}

/* Server: the keys are exchanged. */
static void ask_for_confirm(struct smc_lgr_rdma *group)
{
	add_step(group, SMC_RDMA_ADD_CONFIRM, CONFIRM_TIMEOUT);
	smc_rdma_llc_confirm_link(group->add.link, false);
}

/* Server: the client has made its end of the link. Return: 0 or a negative errno. */
static int on_client_answers(struct smc_lgr_rdma *group, const struct smc_llc *m, const u8 *msg)
{
	struct smc_link *link = group->add.link;
	int rc;

	set_peer(link, &m->add_link);
	rc = smc_link_to_rtr(link) ?: smc_link_to_rts(link) ?: smc_lgr_rdma_register_bufs(link);
	if (rc)
		return rc;
	recv_pairs(group, m, msg);
	if (group->version > 1) {
		ask_for_confirm(group);
	} else {
		add_step(group, SMC_RDMA_ADD_KEYS, KEYS_TIMEOUT);
		send_continuation(group);
	}
	return 0;
}

/* A continuation: the next keys of the peer's, which ours follow until both sides have told all. */
static void on_continuation(struct smc_lgr_rdma *group, const struct smc_llc *m, const u8 *msg)
{
	bool done;

	recv_pairs(group, m, msg);
	spin_lock_bh(&group->lock);
	done = count_pairs(group) <= group->add.sent;
	spin_unlock_bh(&group->lock);
	if (group->server && m->add_link_continuation.left <= 2 && done) {
		ask_for_confirm(group);
		return;
	}
	if (group->server)
		add_step(group, SMC_RDMA_ADD_KEYS, KEYS_TIMEOUT);
	send_continuation(group);
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
	if (!by)
		return;
	if (m.type == SMC_LLC_ADD_LINK && !m.response) {
		on_server_asks(group, by, &m, msg);
	} else if (m.type == SMC_LLC_ADD_LINK && add->step == SMC_RDMA_ADD_SENT && m.add_link.link == add->link->id) {
		if (m.add_link.reject) {
			add_count(group, SMC_STATS_LINKS_REFUSED_BY_PEER);
			add_abort(group, false);
		} else {
			rc = on_client_answers(group, &m, msg);
		}
	} else if (m.type == SMC_LLC_ADD_LINK_CONTINUATION && m.response == group->server && add->link &&
		   (!group->server || add->step == SMC_RDMA_ADD_KEYS)) {
		on_continuation(group, &m, msg);
	}
	if (rc)
		add_fail(group, true);
	smc_link_put(by);
}

/* CONFIRM LINK has come by the new link, or the response to ours: the link is active. */
static void add_confirmed(struct smc_lgr_rdma *group)
{
	struct smc_link *link = group->add.link;

	if ((!group->server && (smc_link_to_rts(link) || smc_lgr_rdma_register_bufs(link))) || !smc_link_usable(link)) {
		add_fail(group, true);
		return;
	}
	spin_lock_bh(&group->lock);
	link->active = true;
	group->add.lost = false;
	group->add.retry = 0;
	smc_rdma_llc_watch_link(link);
	spin_unlock_bh(&group->lock);
	if (!group->server)
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
	/* The call that runs has the work queued again. */
	if (!may && add->lost && group->state == SMC_LGR_RDMA_READY)
		add->wanted = true;
	*msg = may ? add->msg : NULL;
	*len = add->msg_len;
	*by = add->by;
	if (may)
		add->msg = NULL;
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
	else if (add->step == SMC_RDMA_ADD_NONE && (READ_ONCE(add->wanted) || add->lost))
		begin_add(group);
	else if (add->step == SMC_RDMA_ADD_CONFIRM && smp_load_acquire(&add->link->llc.confirmed))
		add_confirmed(group);
	else if (add->step != SMC_RDMA_ADD_NONE && !time_before(jiffies, add->deadline))
		add_fail(group, add->step != SMC_RDMA_ADD_SENT);
	kfree(msg);
}

static void add_work(struct work_struct *work)
{
	struct smc_rdma_add *add = container_of(to_delayed_work(work), struct smc_rdma_add, work);
	struct smc_lgr_rdma *group = container_of(add, struct smc_lgr_rdma, add);

	add_go_on(group);
	spin_lock_bh(&group->lock);
	if (add->step == SMC_RDMA_ADD_NONE && !group->llc.call_runs)
		smc_rdma_llc_next_call(group); /* the message may have been of no exchange, and have held up calls */
	else if (add->step != SMC_RDMA_ADD_NONE && !delayed_work_pending(&add->work))
		add_queue(group, max_t(long, add->deadline - jiffies, 0));
	spin_unlock_bh(&group->lock);
	smc_lgr_put(group->lgr);
}

/* smc_rdma_add_init() - of a fresh group. */
void smc_rdma_add_init(struct smc_lgr_rdma *group)
{
	INIT_DELAYED_WORK(&group->add.work, add_work);
}

/* smc_rdma_add_end() - the group has ended, and ends its links: the exchange stops. May sleep. */
void smc_rdma_add_end(struct smc_lgr_rdma *group)
{
	struct smc_rdma_add *add = &group->add;

	might_sleep();
	if (cancel_delayed_work_sync(&add->work))
		smc_lgr_put(group->lgr);
	smc_link_put(add->link);
	smc_link_put(add->carrier);
	kfree(add->msg);
	add->link = NULL;
	add->carrier = NULL;
	add->msg = NULL;
}
