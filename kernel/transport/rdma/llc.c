// SPDX-License-Identifier: GPL-2.0-only
/*
 * LLC of a group with one link (docs/protocol.md, 7 and 8; RFC 7609, 3.3 and A.3): what
 * the peer asks is answered at once, from where it came in; whether the link still works. What we ask
 * of RMBs is in llc_call.c.
 */

#include <linux/random.h>
#include <linux/slab.h>

#include "../../control/sysctl.h"
#include "../../net.h"
#include "../../wire/llc.h"
#include "group.h"

/* How long the peer has for an answer. It comes after all that the two have sent before. */
#define PATIENCE (2 * HZ)
/* A link that has passed a test is not tested again for so long, whoever says that it does not know the group. */
#define TRUST HZ
/* The least that keepalive of a connection leaves for it. The link has other connections, and survives a port that flaps. */
#define KEEPALIVE_LIMIT (4 * HZ)
/* How long nothing may arrive of what was sent. */
#define STALL_TIME (10 * HZ)

/* Return: false if it has to wait for room. */
static bool post(struct smc_lgr_rdma *group, const u8 msg[SMC_LINK_MSG_LEN])
{
	struct smc_link_send_req req = { .msg = msg, .signaled = true, .waiter = &group->llc.waiter };
	int rc = smc_link_send(group->link, &req);

	lockdep_assert_held(&group->lock);
	if (!rc)
		group->llc.posted = req.at;
	return rc != -EAGAIN;
}

/*
 * smc_rdma_llc_send() - sends a message; what does not fit into the queue will be sent by the waiter.
 * Under the group's lock, does not sleep.
 */
void smc_rdma_llc_send(struct smc_lgr_rdma *group, const u8 msg[SMC_LINK_MSG_LEN])
{
	struct smc_rdma_llc *llc = &group->llc;

	lockdep_assert_held(&group->lock);
	if (!llc->n && post(group, msg))
		return;
	/* A peer that asks more than it lets us answer has itself to blame. */
	if (llc->n == SMC_RDMA_OUT) {
		smc_link_fail(group->link, SMC_LINK_FLOODED, 0);
		return;
	}
	memcpy(llc->out[(llc->first + llc->n++) % SMC_RDMA_OUT], msg, SMC_LINK_MSG_LEN);
}

static void room_again(struct smc_link_waiter *waiter)
{
	struct smc_rdma_llc *llc = container_of(waiter, struct smc_rdma_llc, waiter);
	struct smc_lgr_rdma *group = container_of(llc, struct smc_lgr_rdma, llc);

	spin_lock_bh(&group->lock);
	while (llc->n && post(group, llc->out[llc->first])) {
		llc->first = (llc->first + 1) % SMC_RDMA_OUT;
		llc->n--;
	}
	spin_unlock_bh(&group->lock);
}

/* Encodes a message into 44 bytes, which all of ours fit into. */
static bool encode_msg(struct smc_lgr_rdma *group, struct smc_llc *m, u8 msg[SMC_LLC_LEN])
{
	lockdep_assert_held(&group->lock);
	m->version = group->version;
	m->swapped = group->llc.swapped;
	return !WARN_ON_ONCE(smc_llc_encode(m, msg, SMC_LLC_LEN) != SMC_LLC_LEN);
}

/* smc_rdma_llc_send_msg() - encodes a message, and sends it as smc_rdma_llc_send() does. */
void smc_rdma_llc_send_msg(struct smc_lgr_rdma *group, struct smc_llc *m)
{
	u8 msg[SMC_LLC_LEN];

	if (encode_msg(group, m, msg))
		smc_rdma_llc_send(group, msg);
}

/* smc_rdma_llc_respond() - sends a message back as a response. Softirq. */
void smc_rdma_llc_respond(struct smc_lgr_rdma *group, struct smc_llc *m)
{
	m->response = true;
	spin_lock_bh(&group->lock);
	smc_rdma_llc_send_msg(group, m);
	spin_unlock_bh(&group->lock);
}

/*
 * smc_rdma_llc_look_soon() - has the timer look after so many jiffies, or earlier if it would anyway. The
 * group has not ended: else, the timer may be about to be stopped for
 * good, and not be started, which nobody would hear of.
 */
void smc_rdma_llc_look_soon(struct smc_lgr_rdma *group, unsigned long delay)
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

/* What we receive cannot be right: the two ends of the link are out of step (RFC 7609, C.7.1). */
static void bad_message(struct smc_link *link, u8 type)
{
	smc_link_fail(link, SMC_LINK_BAD_LLC, type);
}

/*
 * Does CONFIRM LINK come from the peer that has made the link, and for this link? The server asks and gives the
 * number, the client answers and repeats it; so does whoever says it again.
 */
static bool confirms_link(const struct smc_lgr_rdma *group, const struct smc_link *link, const struct smc_llc *m)
{
	const struct smc_llc_confirm_link *c = &m->confirm_link;

	lockdep_assert_held(&group->lock);
	if (m->response != group->server || !smc_link_is_peer(link, c->gid, c->mac, c->qpn))
		return false;
	return group->server ? c->link == link->id : !group->llc.confirmed || c->link == group->llc.confirm_link;
}

static void on_confirm_link(struct smc_lgr_rdma *group, struct smc_link *link, const struct smc_llc *m)
{
	spin_lock_bh(&group->lock);
	if (!confirms_link(group, link, m)) {
		bad_message(link, m->type);
	} else if (!group->llc.confirmed) {
		group->llc.confirm_plain = m->confirm_link.no_eyecatcher;
		group->llc.confirm_link = m->confirm_link.link;
		memcpy(group->link->peer.user_id, m->confirm_link.user_id, sizeof(group->link->peer.user_id));
		smp_store_release(&group->llc.confirmed, true); /* pairs with smc_rdma_confirmed() */
		smc_lgr_rdma_wake_locked(group);
	}
	spin_unlock_bh(&group->lock);
}

/* We have no second link to offer. */
static void on_add_link(struct smc_lgr_rdma *group, struct smc_llc *m)
{
	if (m->response)
		return;
	m->add_link.reject = true;
	m->add_link.reason = SMC_LLC_REJECT_PATH;
	m->add_link.has_ext = false;
	m->add_link.n_pairs = 0;
	smc_rdma_llc_respond(group, m);
}

static void on_confirm_rkey(struct smc_lgr_rdma *group, struct smc_llc *m)
{
	struct smc_llc_confirm_rkey *c = &m->confirm_rkey;

	if (m->response) {
		smc_rdma_llc_answered(group, m->type, c->rkey, c->negative);
		return;
	}
	if (c->left > 2 || smc_rtoken_add(group, c->rkey, c->addr)) {
		c->negative = true;
		c->retry = true;
	}
	smc_rdma_llc_respond(group, m);
}

/* The answer repeats the keys (RFC 7609, A.3.7), as many as have place. */
static void repeat_keys(struct smc_lgr_rdma *group, struct smc_llc *m, const u8 *asked)
{
	u8 msg[SMC_LLC_LEN];
	unsigned int i;
	u32 rkey;

	m->response = true;
	spin_lock_bh(&group->lock);
	if (encode_msg(group, m, msg)) {
		for (i = 0; i < SMC_LLC_RKEYS_V1 && smc_llc_rkey_at(m, asked, i, &rkey); i++)
			smc_llc_rkey_set(msg, i, rkey);
		smc_rdma_llc_send(group, msg);
	}
	spin_unlock_bh(&group->lock);
}

/* Of the keys, the answer tells how many, or which, were unknown. */
static void on_delete_rkey(struct smc_lgr_rdma *group, struct smc_llc *m, const u8 *msg)
{
	unsigned int i;
	u8 unknown = 0, mask = 0;
	u32 rkey;

	if (m->response) {
		smc_rdma_llc_answered(group, m->type, smc_llc_rkey_at(m, msg, 0, &rkey) ? rkey : 0, m->delete_rkey.negative);
		return;
	}
	for (i = 0; smc_llc_rkey_at(m, msg, i, &rkey); i++) {
		if (!smc_rtoken_del(group, rkey))
			continue;
		unknown++;
		mask |= i < 8 ? 0x80 >> i : 0;
	}
	m->delete_rkey.negative = unknown;
	m->delete_rkey.failed = group->version > 1 ? unknown : mask;
	repeat_keys(group, m, msg);
}

/*
 * The user data of TEST LINK: what no other group has, then the number of the test, which nobody but us reads. So
 * the answer to an earlier test, which may be late, is told from one to a test that was never sent.
 */
static void fill_test(const struct smc_rdma_llc *llc, u8 data[16])
{
	static_assert(sizeof(llc->test_id) + sizeof(llc->tests) == 16);
	memcpy(data, llc->test_id, sizeof(llc->test_id));
	memcpy(data + sizeof(llc->test_id), &llc->tests, sizeof(llc->tests));
}

static bool echoes_test(const struct smc_rdma_llc *llc, const u8 data[16])
{
	u32 number;

	memcpy(&number, data + sizeof(llc->test_id), sizeof(number));
	return !memcmp(data, llc->test_id, sizeof(llc->test_id)) && number && number <= llc->tests;
}

static void begin_test(struct smc_lgr_rdma *group)
{
	struct smc_llc m = { .type = SMC_LLC_TEST_LINK };

	lockdep_assert_held(&group->lock);
	group->llc.testing = true;
	group->llc.tested = jiffies;
	group->llc.tests++;
	fill_test(&group->llc, m.test_link.data);
	smc_rdma_llc_send_msg(group, &m);
}

/* The link works, and connections may join. */
static void pass_test(struct smc_lgr_rdma *group)
{
	struct smc_rdma_llc *llc = &group->llc;

	lockdep_assert_held(&group->lock);
	llc->testing = false;
	llc->proven = jiffies;
	if (!llc->doubted)
		return;
	WRITE_ONCE(llc->doubted, false);
	smc_lgr_rdma_wake_locked(group);
}

/**
 * smc_rdma_llc_doubt() - somebody has declined a connection as out of sync: it does not know the group
 * @group: the group
 *
 * CLC messages do not prove who sends them: that may be the peer, which has lost the group, or anybody else who gives the
 * peer's identity. The link tells, since only the peer can answer on it: no connection joins until TEST LINK has been answered.
 * If it is not, the group ends. Softirq.
 */
void smc_rdma_llc_doubt(struct smc_lgr_rdma *group)
{
	struct smc_rdma_llc *llc = &group->llc;

	spin_lock_bh(&group->lock);
	if (group->state != SMC_GROUP_READY || llc->doubted || time_before(jiffies, llc->proven + TRUST))
		goto unlock;
	WRITE_ONCE(llc->doubted, true);
	llc->doubted_since = jiffies;
	if (!llc->testing)
		begin_test(group);
	smc_rdma_llc_look_soon(group, PATIENCE);
unlock:
	spin_unlock_bh(&group->lock);
}

static void on_test_link(struct smc_lgr_rdma *group, struct smc_link *link, struct smc_llc *m)
{
	if (!m->response) {
		smc_rdma_llc_respond(group, m);
		return;
	}
	spin_lock_bh(&group->lock);
	if (!echoes_test(&group->llc, m->test_link.data))
		bad_message(link, m->type);
	else if (group->llc.testing)
		pass_test(group);
	spin_unlock_bh(&group->lock);
}

static void handle(struct smc_lgr_rdma *group, struct smc_link *link, const u8 *msg, u32 len)
{
	struct smc_llc m;
	int rc = smc_llc_decode(msg, len, &m);

	if (rc == -ENOMSG)
		return;
	/* Each version has forms of its own, and a group one version. */
	if (rc || m.version != group->version) {
		bad_message(link, len ? msg[0] : 0);
		return;
	}
	if (m.version > 1 && len == SMC_LLC_LEN)
		WRITE_ONCE(group->llc.swapped, m.swapped);
	switch (m.type) {
	case SMC_LLC_CONFIRM_LINK:
		on_confirm_link(group, link, &m);
		break;
	case SMC_LLC_ADD_LINK:
		on_add_link(group, &m);
		break;
	case SMC_LLC_DELETE_LINK:
		smc_rdma_llc_on_delete_link(group, link, &m);
		break;
	case SMC_LLC_REQUEST_ADD_LINK:
		if (!m.response) {
			m.request_add_link.n_gids = 0;
			smc_rdma_llc_respond(group, &m);
		}
		break;
	case SMC_LLC_CONFIRM_RKEY:
		on_confirm_rkey(group, &m);
		break;
	case SMC_LLC_DELETE_RKEY:
		on_delete_rkey(group, &m, msg);
		break;
	case SMC_LLC_TEST_LINK:
		on_test_link(group, link, &m);
		break;
	default:
		/* A continuation of what nobody has begun: we accept no ADD LINK, and a group has one link. */
		bad_message(link, m.type);
		break;
	}
}

/* smc_rdma_llc_receive() - a message that is none of CDC has come over a link. Softirq. */
void smc_rdma_llc_receive(struct smc_lgr_rdma *group, struct smc_link *link, const u8 *msg, u32 len)
{
	u8 *whole;

	if (len <= link->rx_len) {
		handle(group, link, msg, len);
		return;
	}
	if (!link->v2_buf) {
		bad_message(link, msg[0]);
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
	handle(group, link, whole, len);
	kfree(whole);
}

/* smc_rdma_user_id() - the name that we show the link by; the peer shows it, too. Any context. */
void smc_rdma_user_id(const struct smc_lgr_rdma *group, u8 id[4])
{
	smc_put_be32(id, group->lgr->id + group->link->id);
}

/**
 * smc_rdma_llc_confirm_link() - the last step of first contact
 * @group: the group, whose link can send
 * @response: of a client
 *
 * Does not sleep.
 */
void smc_rdma_llc_confirm_link(struct smc_lgr_rdma *group, bool response)
{
	struct smc_link *link = group->link;
	struct smc_llc m = { .type = SMC_LLC_CONFIRM_LINK, .response = response };

	memcpy(m.confirm_link.mac, link->path.mac, sizeof(m.confirm_link.mac));
	memcpy(m.confirm_link.gid, link->path.gid, sizeof(m.confirm_link.gid));
	m.confirm_link.qpn = link->qpn;
	m.confirm_link.link = link->id;
	smc_rdma_user_id(group, m.confirm_link.user_id);
	m.confirm_link.max_links = group->max_links;
	m.confirm_link.max_conns = group->release ? group->max_conns : 0;
	m.confirm_link.no_eyecatcher = true;
	spin_lock_bh(&group->lock);
	smc_rdma_llc_send_msg(group, &m);
	spin_unlock_bh(&group->lock);
}

/*
 * smc_rdma_llc_no_second() - tells a client whose version has no word for it that there will be no
 * second link, by an offer that it has to refuse; otherwise it waits for one (docs/protocol.md, 5.1).
 * Does not sleep.
 */
void smc_rdma_llc_no_second(struct smc_lgr_rdma *group)
{
	struct smc_link *link = group->link;
	struct smc_llc m = { .type = SMC_LLC_ADD_LINK, .add_link.link = link->id + 1, .add_link.qpn = link->qpn };

	/* In version 2 nothing else goes without a list of RMBs; without an MTU, it is refused anyway. */
	m.add_link.reject = group->version > 1;

	memcpy(m.add_link.mac, link->path.mac, sizeof(m.add_link.mac));
	memcpy(m.add_link.gid, link->path.gid, sizeof(m.add_link.gid));
	spin_lock_bh(&group->lock);
	smc_rdma_llc_send_msg(group, &m);
	spin_unlock_bh(&group->lock);
}

/* Jiffies until a point in time, 0 if it has passed. */
static unsigned long until(unsigned long when)
{
	long left = when - jiffies;

	return max(left, 0L);
}

/*
 * When a TEST LINK that is out will have failed: as the namespace has it, some time after the link has been silent for
 * its interval; as the keepalive of a connection has it; and soon where connections wait because the link is doubted.
 * Return: jiffies until then.
 */
static unsigned long test_fails(const struct smc_lgr_rdma *group, unsigned long interval, const struct smc_keepalive *k)
{
	unsigned long left = MAX_JIFFY_OFFSET, since = group->llc.tested;
	unsigned long silent = READ_ONCE(group->link->last_recv) + interval;

	if (interval)
		left = until((time_after(silent, since) ? silent : since) + PATIENCE);
	if (group->llc.doubted)
		left = until(group->llc.doubted_since + PATIENCE);
	return k->idle == MAX_JIFFY_OFFSET ? left : min(left, until(since + max_t(unsigned long, k->limit, KEEPALIVE_LIMIT)));
}

/*
 * A link that has been silent for as long as the namespace, or the keepalive of a connection, lets it.
 * Return: as before.
 */
static unsigned long look_at_link(struct smc_lgr_rdma *group)
{
	unsigned long interval = max(READ_ONCE(smc_net(group->lgr->key.net)->sysctl.smcr_testlink_time), 0);
	struct smc_keepalive k;
	unsigned long idle, left;

	lockdep_assert_held(&group->lock);
	if (group->state != SMC_GROUP_READY)
		return MAX_JIFFY_OFFSET;
	/* Whatever comes shows that the link works; the answer to a test may be behind much else. */
	if (group->llc.testing && time_after(READ_ONCE(group->link->last_recv), group->llc.tested))
		pass_test(group);
	smc_keepalive_find(group, &k);
	if (group->llc.testing) {
		left = test_fails(group, interval, &k);
		if (left)
			return left;
		smc_keepalive_expire(group);
		smc_link_fail(group->link, SMC_LINK_SILENT, 0);
		return MAX_JIFFY_OFFSET;
	}
	idle = min(interval ?: MAX_JIFFY_OFFSET, k.idle);
	if (idle == MAX_JIFFY_OFFSET)
		return idle;
	left = until(READ_ONCE(group->link->last_recv) + idle);
	if (left)
		return left;
	begin_test(group);
	return test_fails(group, interval, &k);
}

/*
 * A link that takes nothing more, as the peer has no place for what we send: it may go on talking
 * itself. On a bad path it may be long until the queue moves, but the peer reads what arrives.
 * Return: as before.
 */
static unsigned long look_at_queue(struct smc_lgr_rdma *group)
{
	struct smc_rdma_llc *llc = &group->llc;
	unsigned long taken = READ_ONCE(group->link->last_read);
	bool expected = llc->expected;
	u64 done;

	lockdep_assert_held(&group->lock);
	if (group->state != SMC_GROUP_READY)
		return MAX_JIFFY_OFFSET;
	llc->expected = smc_link_expects(group->link, &done);
	if (!llc->expected || !expected || done != llc->sq_done || time_after(taken, llc->moved)) {
		llc->sq_done = done;
		llc->moved = jiffies;
	} else if (time_after_eq(jiffies, llc->moved + STALL_TIME)) {
		smc_link_fail(group->link, SMC_LINK_STUCK, 0);
		return MAX_JIFFY_OFFSET;
	}
	return STALL_TIME / 2;
}

static void timer_work(struct work_struct *work)
{
	struct smc_rdma_llc *llc = container_of(to_delayed_work(work), struct smc_rdma_llc, timer);
	struct smc_lgr_rdma *group = container_of(llc, struct smc_lgr_rdma, llc);
	struct smc_rdma_buf *rmb = NULL;
	unsigned long next;

	spin_lock_bh(&group->lock);
	if (group->state != SMC_GROUP_ENDED) {
		next = smc_rdma_llc_look_at_calls(group);
		next = min(next, look_at_link(group));
		next = min(next, look_at_queue(group));
		if (group->state == SMC_GROUP_READY)
			rmb = smc_lgr_rdma_delete_rkeys(group);
		if (!list_empty(&group->llc.calls))
			next = min_t(unsigned long, next, PATIENCE);
		if (next != MAX_JIFFY_OFFSET)
			smc_rdma_llc_look_soon(group, next);
	}
	spin_unlock_bh(&group->lock);
	if (rmb)
		smc_lgr_rdma_drop_rmb(rmb);
	smc_lgr_put(group->lgr);
}

/* smc_rdma_llc_watch() - the link is to be tested from now on. Softirq. */
void smc_rdma_llc_watch(struct smc_lgr_rdma *group)
{
	lockdep_assert_held(&group->lock);
	group->llc.moved = jiffies;
	group->llc.proven = jiffies;
	smc_rdma_llc_look_soon(group, 0);
}

/* smc_rdma_llc_init() - of a fresh group. */
void smc_rdma_llc_init(struct smc_lgr_rdma *group)
{
	struct smc_rdma_llc *llc = &group->llc;

	INIT_LIST_HEAD(&llc->waiter.list);
	llc->waiter.fn = room_again;
	INIT_LIST_HEAD(&llc->calls);
	INIT_DELAYED_WORK(&llc->timer, timer_work);
	llc->swapped = !IS_ENABLED(CONFIG_CPU_BIG_ENDIAN);
	get_random_bytes(llc->test_id, sizeof(llc->test_id));
}

/*
 * smc_rdma_llc_end() - the group has ended: nobody waits for an answer any more, the timer does not
 * run, the peer has been told. May sleep.
 */
void smc_rdma_llc_end(struct smc_lgr_rdma *group)
{
	struct smc_rdma_call *call;

	spin_lock_bh(&group->lock);
	while ((call = list_first_entry_or_null(&group->llc.calls, struct smc_rdma_call, list))) {
		list_del_init(&call->list);
		WRITE_ONCE(call->result, -ENOTCONN);
	}
	smc_lgr_rdma_wake_locked(group);
	spin_unlock_bh(&group->lock);
	if (cancel_delayed_work_sync(&group->llc.timer))
		smc_lgr_put(group->lgr);
	if (group->link)
		smc_rdma_llc_wait_deleted(group);
}
