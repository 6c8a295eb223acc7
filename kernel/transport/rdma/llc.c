// SPDX-License-Identifier: GPL-2.0-only
/*
 * LLC (docs/protocol.md, 7 and 8; RFC 7609, 3.3 and A.3). Exchanges belong to a link group, a message to the link
 * that it comes by: the response goes back by that link, at once. llc_call.c has the exchanges about RMBs that we begin,
 * llc_end.c DELETE LINK, llc_test.c TEST LINK.
 */

#include <linux/random.h>
#include <linux/slab.h>

#include "../../control/stats.h"
#include "../../control/trace.h"
#include "../../lgr/lgr.h"
#include "../../net.h"
#include "../../wire/llc.h"
#include "group.h"

/* While calls run, the timer looks after them at least this often. */
#define CALL_INTERVAL (2 * HZ)

/* Return: false if the message has to wait for room. */
static bool llc_post(struct smc_link *link, const u8 msg[SMC_LINK_MSG_LEN])
{
	struct smc_link_send_req req = {
		.msg = msg, .len = msg[0] ? 0 : link->llc.long_len, .signaled = true, .waiter = &link->llc.waiter,
	};
	int rc = smc_link_send(link, &req);

	lockdep_assert_held(&link->group->lock);
	if (!rc)
		link->llc.posted = req.at;
	if (!rc && req.len) {
		link->llc.long_posted = req.at;
		link->llc.long_waits = false;
	}
	return rc != -EAGAIN;
}

/* smc_rdma_llc_send() - sends a message by a link, now or once its send queue has room. Any context. */
void smc_rdma_llc_send(struct smc_link *link, const u8 msg[SMC_LINK_MSG_LEN])
{
	struct smc_link_llc *llc = &link->llc;

	lockdep_assert_held(&link->group->lock);
	if (!llc->n && llc_post(link, msg))
		return;
	/* The peer asks for more than it lets us answer. */
	if (llc->n == SMC_LINK_OUT) {
		smc_link_fail(link, SMC_LINK_FLOODED, 0);
		return;
	}
	memcpy(llc->out[(llc->first + llc->n++) % SMC_LINK_OUT], msg, SMC_LINK_MSG_LEN);
}

/*
 * smc_rdma_llc_long_free() - has the peer got the long message that was sent last by a link? Until then, the adapter may have to send it
 * again. Any context. Return: also true if the link is down.
 */
bool smc_rdma_llc_long_free(struct smc_link *link)
{
	const struct smc_link_llc *llc = &link->llc;

	lockdep_assert_held(&link->group->lock);
	return !smc_link_usable(link) || (!llc->long_waits && smc_link_passed(link, llc->long_posted));
}

/*
 * smc_rdma_llc_send_long() - sends a message of any length, as smc_rdma_llc_send() does. The link has a buffer for it, and
 * smc_rdma_llc_long_free().
 */
void smc_rdma_llc_send_long(struct smc_link *link, const u8 *msg, u32 len)
{
	static const u8 stand_in[SMC_LINK_MSG_LEN];
	struct ib_device *ib = link->path.dev->ib;

	lockdep_assert_held(&link->group->lock);
	if (len <= SMC_LINK_MSG_LEN) {
		smc_rdma_llc_send(link, msg);
		return;
	}
	/* The end of a link waits for us before it frees the buffer. */
	if (!smc_link_usable(link))
		return;
	ib_dma_sync_single_for_cpu(ib, link->long_dma, len, DMA_TO_DEVICE);
	memcpy(link->long_buf, msg, len);
	ib_dma_sync_single_for_device(ib, link->long_dma, len, DMA_TO_DEVICE);
	link->llc.long_len = len;
	link->llc.long_waits = true;
	smc_rdma_llc_send(link, stand_in);
}

static void llc_sq_has_room(struct smc_link_waiter *waiter)
{
	struct smc_link *link = container_of(waiter, struct smc_link, llc.waiter);
	struct smc_link_llc *llc = &link->llc;

	spin_lock_bh(&link->group->lock);
	while (llc->n && llc_post(link, llc->out[llc->first])) {
		llc->first = (llc->first + 1) % SMC_LINK_OUT;
		llc->n--;
	}
	spin_unlock_bh(&link->group->lock);
}

/* smc_rdma_llc_encode() - encodes a message into 44 bytes, which all of ours fit into. Any context. */
bool smc_rdma_llc_encode(struct smc_lgr_rdma *group, struct smc_llc *m, u8 msg[SMC_LLC_LEN])
{
	lockdep_assert_held(&group->lock);
	m->version = group->version;
	m->swapped = group->llc.swapped;
	return !WARN_ON_ONCE(smc_llc_encode(m, msg, SMC_LLC_LEN) != SMC_LLC_LEN);
}

/* smc_rdma_llc_send_msg() - encodes a message, and sends it as smc_rdma_llc_send() does. */
void smc_rdma_llc_send_msg(struct smc_link *link, struct smc_llc *m)
{
	u8 msg[SMC_LLC_LEN];

	if (smc_rdma_llc_encode(link->group, m, msg))
		smc_rdma_llc_send(link, msg);
}

/* smc_rdma_llc_respond() - sends a message back as a response, by the link that it came by. Softirq. */
void smc_rdma_llc_respond(struct smc_link *link, struct smc_llc *m)
{
	m->response = true;
	spin_lock_bh(&link->group->lock);
	smc_rdma_llc_send_msg(link, m);
	spin_unlock_bh(&link->group->lock);
}

/*
 * smc_rdma_llc_mod_timer() - has the timer look after some jiffies, or earlier if it would anyway. Any context. The group
 * has not ended: its end stops the timer for good.
 */
void smc_rdma_llc_mod_timer(struct smc_lgr_rdma *group, unsigned long delay)
{
	unsigned long next = jiffies + delay;

	lockdep_assert_held(&group->lock);
	if (delayed_work_pending(&group->llc.timer) && !time_before(next, group->llc.next))
		return;
	group->llc.next = next;
	smc_lgr_get(group->lgr);
	if (mod_delayed_work(smc_lgr_wq, &group->llc.timer, delay))
		smc_lgr_put(group->lgr);
}

/* smc_rdma_llc_bad() - a message shows that the two ends of a link are out of step (RFC 7609, C.7.1). Any context. */
void smc_rdma_llc_bad(struct smc_link *link, u8 type)
{
	smc_link_fail(link, SMC_LINK_BAD_LLC, type);
}

/*
 * Does CONFIRM LINK come from the peer that has made the link, and for this link? The server asks and gives the
 * number, the client answers and repeats it. A second CONFIRM LINK has to repeat the number, too.
 */
static bool confirms_link(const struct smc_link *link, const struct smc_llc *m)
{
	const struct smc_llc_confirm_link *c = &m->confirm_link;
	const struct smc_lgr_rdma *group = link->group;
	bool server = group->server;

	lockdep_assert_held(&group->lock);
	if (m->response != server || !smc_link_is_peer(link, c->gid, c->mac, c->qpn))
		return false;
	return c->link == link->id || (!server && !link->id);
}

/* Has the client confirmed the new link before its server has asked for that? It will have to do so again. */
static bool is_too_early(const struct smc_link *link)
{
	const struct smc_lgr_rdma *group = link->group;

	lockdep_assert_held(&group->lock);
	return group->server && group->add.link == link && group->add.step != SMC_RDMA_ADD_CONFIRM;
}

static void on_confirm_link(struct smc_link *link, const struct smc_llc *m)
{
	struct smc_lgr_rdma *group = link->group;

	spin_lock_bh(&group->lock);
	if (!confirms_link(link, m)) {
		smc_rdma_llc_bad(link, m->type);
	} else if (!link->llc.confirmed && !is_too_early(link)) {
		link->llc.has_eyecatcher = !m->confirm_link.no_eyecatcher;
		link->id = m->confirm_link.link;
		memcpy(link->peer.user_id, m->confirm_link.user_id, sizeof(link->peer.user_id));
		smp_store_release(&link->llc.confirmed, true); /* pairs with smc_rdma_confirmed(), and add_go_on() */
		smc_lgr_rdma_wake_locked(group);
		smc_rdma_add_confirm(link);
	}
	spin_unlock_bh(&group->lock);
}

/* smc_rdma_llc_refuse_add_link() - answers ADD LINK, which it changes, by a refusal. Softirq. */
void smc_rdma_llc_refuse_add_link(struct smc_link *link, struct smc_llc *m, u8 reason)
{
	/* A client's ADD LINK only tells of a port. */
	if (!link->group->server)
		smc_stats_link(smc_net(link->group->lgr->key.net), SMC_STATS_LINKS_REFUSED);
	m->add_link.reject = true;
	m->add_link.reason = reason;
	m->add_link.has_ext = false;
	m->add_link.n_pairs = 0;
	smc_rdma_llc_respond(link, m);
}

/* ADD LINK: a client may take the link that its server offers. A server has no use for offers of clients. */
static void on_add_link(struct smc_link *link, struct smc_llc *m, const u8 *msg, u32 len)
{
	struct smc_lgr_rdma *group = link->group;

	if (m->response == group->server && group->link_limit > 1) {
		smc_rdma_add_recv(link, msg, len);
		return;
	}
	if (m->response)
		return;
	smc_rdma_add_requested(group);
	smc_rdma_llc_refuse_add_link(link, m, SMC_LLC_REJECT_PATH);
}

/* Takes in the keys that an RMB has on other links. Those of links that we do not know are of no use. */
static void recv_others(struct smc_link *link, const struct smc_llc_confirm_rkey *c)
{
	struct smc_lgr_rdma *group = link->group;
	struct smc_link *other;
	unsigned int i;

	for (i = 0; i < c->left; i++) {
		other = smc_lgr_rdma_get_by_id(group, c->others[i].link);
		if (other && other != link)
			smc_rtoken_add_on(link, c->rkey, other, c->others[i].rkey, c->others[i].addr);
		smc_link_put(other);
	}
}

static bool has_key_for(const struct smc_llc_confirm_rkey *c, const struct smc_link *link)
{
	unsigned int i;

	for (i = 0; i < c->left; i++)
		if (c->others[i].link == link->id && c->others[i].rkey)
			return true;
	return false;
}

/*
 * The peer has sent no key of its RMB on a link: that has failed for it (RFC 7609, C.7.1). A connection that writes to the RMB could
 * not go on by the link.
 */
static void fail_keyless(struct smc_link *link, const struct smc_llc *m)
{
	struct smc_lgr_rdma *group = link->group;
	struct smc_link *other;

	spin_lock_bh(&group->lock);
	smc_for_each_link(group, other)
		if (other != link && other->active && smc_link_usable(other) && !has_key_for(&m->confirm_rkey, other))
			smc_rdma_llc_bad(other, m->type);
	spin_unlock_bh(&group->lock);
}

static void on_confirm_rkey(struct smc_link *link, struct smc_llc *m)
{
	struct smc_llc_confirm_rkey *c = &m->confirm_rkey;

	if (m->response) {
		smc_rdma_llc_answered(link->group, m->type, c->rkey, !c->negative ? 0 : c->retry ? -EAGAIN : -EREMOTEIO);
		return;
	}
	if (c->left > 2 || smc_rtoken_add(link, c->rkey, c->addr)) {
		c->negative = true;
		c->retry = true;
	} else {
		recv_others(link, c);
	}
	smc_rdma_llc_respond(link, m);
	if (!c->negative)
		fail_keyless(link, m);
}

/* The answer repeats the keys, as many as fit (RFC 7609, A.3.7). */
static void repeat_keys(struct smc_link *link, struct smc_llc *m, const u8 *asked)
{
	u8 msg[SMC_LLC_LEN];
	unsigned int i;
	u32 rkey;

	m->response = true;
	spin_lock_bh(&link->group->lock);
	if (smc_rdma_llc_encode(link->group, m, msg)) {
		for (i = 0; i < SMC_LLC_RKEYS_V1 && smc_llc_rkey_at(m, asked, i, &rkey); i++)
			smc_llc_rkey_set(msg, i, rkey);
		smc_rdma_llc_send(link, msg);
	}
	spin_unlock_bh(&link->group->lock);
}

/* The answer tells how many of the keys were unknown, or which. */
static void on_delete_rkey(struct smc_link *link, struct smc_llc *m, const u8 *msg)
{
	struct smc_lgr_rdma *group = link->group;
	u8 unknown = 0, mask = 0;
	unsigned int i;
	u32 rkey;

	if (m->response) {
		smc_rdma_llc_answered(group, m->type, smc_llc_rkey_at(m, msg, 0, &rkey) ? rkey : 0,
				      m->delete_rkey.negative ? -EREMOTEIO : 0);
		return;
	}
	for (i = 0; smc_llc_rkey_at(m, msg, i, &rkey); i++) {
		if (!smc_rtoken_del(link, rkey))
			continue;
		unknown++;
		mask |= i < 8 ? 0x80 >> i : 0;
	}
	m->delete_rkey.negative = unknown;
	m->delete_rkey.failed = group->version > 1 ? unknown : mask;
	repeat_keys(link, m, msg);
}

static void llc_handle(struct smc_link *link, const u8 *msg, u32 len)
{
	struct smc_lgr_rdma *group = link->group;
	struct smc_llc m;
	int rc = smc_llc_decode(msg, len, &m);

	if (rc == -ENOMSG)
		return;
	/* Each version has forms of its own, and a group one version. */
	if (rc || m.version != group->version) {
		trace_smc_llc_malformed(group->lgr->id + link->id, msg, len);
		smc_rdma_llc_bad(link, len ? msg[0] : 0);
		return;
	}
	if (m.version > 1 && len == SMC_LLC_LEN)
		WRITE_ONCE(group->llc.swapped, m.swapped);
	switch (m.type) {
	case SMC_LLC_CONFIRM_LINK:
		on_confirm_link(link, &m);
		break;
	case SMC_LLC_ADD_LINK:
		on_add_link(link, &m, msg, len);
		break;
	case SMC_LLC_ADD_LINK_CONTINUATION:
		if (group->link_limit > 1)
			smc_rdma_add_recv(link, msg, len);
		else
			smc_rdma_llc_bad(link, m.type);
		break;
	case SMC_LLC_DELETE_LINK:
		smc_rdma_llc_on_delete_link(link, &m);
		break;
	case SMC_LLC_REQUEST_ADD_LINK:
		if (!m.response) {
			smc_rdma_add_requested(group);
			m.request_add_link.n_gids = 0;
			smc_rdma_llc_respond(link, &m);
		}
		break;
	case SMC_LLC_CONFIRM_RKEY:
		on_confirm_rkey(link, &m);
		break;
	case SMC_LLC_DELETE_RKEY:
		on_delete_rkey(link, &m, msg);
		break;
	case SMC_LLC_TEST_LINK:
		smc_rdma_llc_on_test_link(link, &m);
		break;
	default:
		/* A continuation of CONFIRM RKEY, for more links than a group has. */
		smc_rdma_llc_bad(link, m.type);
		break;
	}
}

/* smc_rdma_llc_receive() - a message that is not CDC has come by a link. Softirq. */
void smc_rdma_llc_receive(struct smc_link *link, const u8 *msg, u32 len)
{
	u8 *whole;

	if (len <= link->rx_len) {
		llc_handle(link, msg, len);
		return;
	}
	if (!link->v2_buf) {
		smc_rdma_llc_bad(link, msg[0]);
		return;
	}
	/* The rest is in v2_buf, which the next long message overwrites. Lost without memory, as on the wire. */
	whole = kmalloc(len, GFP_ATOMIC);
	if (!whole)
		return;
	ib_dma_sync_single_for_cpu(link->path.dev->ib, link->v2_dma, SMC_LINK_V2_BUF_LEN, DMA_FROM_DEVICE);
	memcpy(whole, msg, SMC_LINK_MSG_LEN);
	memcpy(whole + SMC_LINK_MSG_LEN, link->v2_buf, len - SMC_LINK_MSG_LEN);
	ib_dma_sync_single_for_device(link->path.dev->ib, link->v2_dma, SMC_LINK_V2_BUF_LEN, DMA_FROM_DEVICE);
	llc_handle(link, whole, len);
	kfree(whole);
}

/* smc_rdma_user_id() - the name that we show a link by; the peer shows it, too. Any context. */
void smc_rdma_user_id(const struct smc_link *link, u8 id[4])
{
	smc_put_be32(id, link->group->lgr->id + link->id);
}

/* smc_rdma_llc_confirm_link() - sends CONFIRM LINK by a link that can send, or a client's response to it. Softirq. */
void smc_rdma_llc_confirm_link(struct smc_link *link, bool response)
{
	struct smc_lgr_rdma *group = link->group;
	struct smc_llc m = { .type = SMC_LLC_CONFIRM_LINK, .response = response };

	memcpy(m.confirm_link.mac, link->path.mac, sizeof(m.confirm_link.mac));
	memcpy(m.confirm_link.gid, link->path.gid, sizeof(m.confirm_link.gid));
	m.confirm_link.qpn = link->qpn;
	m.confirm_link.link = link->id;
	smc_rdma_user_id(link, m.confirm_link.user_id);
	m.confirm_link.max_links = group->max_links;
	m.confirm_link.max_conns = group->release ? group->max_conns : 0;
	m.confirm_link.no_eyecatcher = true;
	spin_lock_bh(&group->lock);
	smc_rdma_llc_send_msg(link, &m);
	spin_unlock_bh(&group->lock);
}

/*
 * smc_rdma_llc_no_second() - tells a client whose version has no word for it that the group has one link only, by an
 * offer that the client has to refuse. Otherwise the client waits for an offer (docs/protocol.md, 5.1). Softirq.
 */
void smc_rdma_llc_no_second(struct smc_link *link)
{
	struct smc_llc m = { .type = SMC_LLC_ADD_LINK, .add_link.link = link->id + 1, .add_link.qpn = link->qpn };

	/* In version 2 nothing else goes without a list of RMBs; without an MTU, it is refused anyway. */
	m.add_link.reject = link->group->version > 1;

	memcpy(m.add_link.mac, link->path.mac, sizeof(m.add_link.mac));
	memcpy(m.add_link.gid, link->path.gid, sizeof(m.add_link.gid));
	spin_lock_bh(&link->group->lock);
	smc_rdma_llc_send_msg(link, &m);
	spin_unlock_bh(&link->group->lock);
}

static void timer_work(struct work_struct *work)
{
	struct smc_rdma_llc *llc = container_of(to_delayed_work(work), struct smc_rdma_llc, timer);
	struct smc_lgr_rdma *group = container_of(llc, struct smc_lgr_rdma, llc);
	struct smc_rdma_buf *rmb = NULL;
	unsigned long next;

	spin_lock_bh(&group->lock);
	if (group->state != SMC_LGR_RDMA_ENDED) {
		next = smc_rdma_llc_look_at_calls(group);
		if (group->state == SMC_LGR_RDMA_READY) {
			next = min(next, smc_rdma_llc_test_links(group));
			rmb = smc_lgr_rdma_delete_rkeys(group);
		}
		if (!list_empty(&group->llc.calls))
			next = min_t(unsigned long, next, CALL_INTERVAL);
		if (next != MAX_JIFFY_OFFSET)
			smc_rdma_llc_mod_timer(group, next);
	}
	spin_unlock_bh(&group->lock);
	if (rmb)
		smc_lgr_rdma_drop_buf(group, rmb);
	smc_lgr_rdma_drop_rings(group);
	smc_lgr_put(group->lgr);
}

/* smc_rdma_llc_init() - of a fresh group. */
void smc_rdma_llc_init(struct smc_lgr_rdma *group)
{
	struct smc_rdma_llc *llc = &group->llc;

	INIT_LIST_HEAD(&llc->calls);
	INIT_LIST_HEAD(&llc->refused);
	INIT_DELAYED_WORK(&llc->timer, timer_work);
	init_waitqueue_head(&llc->flushed);
	llc->swapped = !IS_ENABLED(CONFIG_CPU_BIG_ENDIAN);
}

/* smc_rdma_llc_init_link() - of a fresh link. */
void smc_rdma_llc_init_link(struct smc_link *link)
{
	INIT_LIST_HEAD(&link->llc.waiter.list);
	link->llc.waiter.fn = llc_sq_has_room;
	get_random_bytes(link->llc.test_id, sizeof(link->llc.test_id));
}

/*
 * smc_rdma_llc_end() - the group has ended: ends the calls, stops the timer, and waits until the peer has got DELETE LINK. May
 * sleep.
 */
void smc_rdma_llc_end(struct smc_lgr_rdma *group)
{
	struct smc_rdma_call *call;

	might_sleep();
	spin_lock_bh(&group->lock);
	group->llc.call_runs = false;
	list_splice_tail_init(&group->llc.refused, &group->llc.calls);
	while ((call = list_first_entry_or_null(&group->llc.calls, struct smc_rdma_call, list))) {
		list_del_init(&call->list);
		WRITE_ONCE(call->result, -ENOTCONN);
	}
	smc_lgr_rdma_wake_locked(group);
	spin_unlock_bh(&group->lock);
	if (cancel_delayed_work_sync(&group->llc.timer))
		smc_lgr_put(group->lgr);
	smc_rdma_llc_wait_deleted(group);
}
