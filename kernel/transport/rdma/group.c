// SPDX-License-Identifier: GPL-2.0-only
/* The part of a link group that is SMC-R's: how it comes to be, what it keeps, how it ends. */

#include <linux/slab.h>

#include "../../net.h"
#include "group.h"

/* smc_lgr_rdma_init() - lgr_init of the transport. May sleep. Return: 0 or -ENOMEM. */
int smc_lgr_rdma_init(struct smc_lgr *lgr)
{
	struct smc_lgr_rdma *group = kzalloc(sizeof(*group), GFP_KERNEL);

	if (!group)
		return -ENOMEM;
	group->lgr = lgr;
	group->server = lgr->key.server;
	group->version = lgr->key.version;
	group->buf_type = READ_ONCE(smc_net(lgr->key.net)->sysctl.smcr_buf_type);
	spin_lock_init(&group->lock);
	__set_bit(0, group->rmb_ids);
	xa_init_flags(&group->conns, XA_FLAGS_LOCK_BH);
	INIT_LIST_HEAD(&group->waiting);
	INIT_LIST_HEAD(&group->large);
	INIT_LIST_HEAD(&group->attached);
	INIT_LIST_HEAD(&group->bufs);
	INIT_LIST_HEAD(&group->rmbs);
	INIT_LIST_HEAD(&group->sndbufs);
	INIT_LIST_HEAD(&group->rmbs_pending);
	smc_rdma_llc_init(group);
	lgr->priv = group;
	/*
	 * A server's limit, until the peers have agreed. A client joins as long as it has an RMB for one more connection: only
	 * the server knows which of the connections are over.
	 */
	lgr->max_conns = lgr->key.server ? 255 : 0;
	return 0;
}

/* What a client knows of the link that it is to use, from the server's ACCEPT. */
static bool is_link(const struct smc_link *link, const struct smc_clc_accept *peer)
{
	return smc_link_usable(link) && link->peer.qpn == peer->qpn && !memcmp(link->peer.gid, peer->gid, sizeof(peer->gid));
}

/* smc_lgr_rdma_has_rmb() - is there one for one more connection? A peer has places for so many, used or not. A hint. */
bool smc_lgr_rdma_has_rmb(const struct smc_lgr_rdma *group)
{
	return READ_ONCE(group->n_rmbs) < SMC_RDMA_RTOKENS || !list_empty_careful(&group->rmbs);
}

/*
 * smc_lgr_rdma_fits() - lgr_fits of the transport: the hint is the server's ACCEPT, or NULL for a
 * server, whose connections also wait for a group that is being formed. Under locks.
 */
bool smc_lgr_rdma_fits(const struct smc_lgr *lgr, const void *hint)
{
	const struct smc_lgr_rdma *group = smc_lgr_rdma_of(lgr);

	switch (READ_ONCE(group->state)) {
	case SMC_GROUP_FORMING:
		return !hint && smc_lgr_rdma_has_rmb(group);
	case SMC_GROUP_READY:
		if (smc_rdma_llc_closing(group))
			return false;
		/* The group may not have heard yet that its link is down. */
		return hint ? is_link(group->link, hint) : smc_link_usable(group->link) && smc_lgr_rdma_has_rmb(group);
	default:
		return false;
	}
}

/*
 * smc_lgr_rdma_wake_locked() - those who wait look again. Under the lock, so that none of them goes
 * meanwhile.
 */
void smc_lgr_rdma_wake_locked(struct smc_lgr_rdma *group)
{
	struct smc_rdma_offer *ro;

	lockdep_assert_held(&group->lock);
	list_for_each_entry(ro, &group->waiting, list)
		ro->offer->again(ro->offer);
}

/* smc_lgr_rdma_ready() - first contact is complete: connections may join. Softirq. */
void smc_lgr_rdma_ready(struct smc_lgr_rdma *group)
{
	spin_lock_bh(&group->lock);
	if (group->state == SMC_GROUP_FORMING) {
		WRITE_ONCE(group->state, SMC_GROUP_READY);
		smc_rdma_llc_watch(group);
	}
	smc_lgr_rdma_wake_locked(group);
	spin_unlock_bh(&group->lock);
}

/* smc_lgr_rdma_receive() - a message has come over a link. Softirq. */
void smc_lgr_rdma_receive(struct smc_lgr_rdma *group, struct smc_link *link, const u8 *msg, u32 len)
{
	if (len && msg[0] == SMC_CDC_TYPE)
		smc_rdma_cdc_recv(group, msg, len);
	else
		smc_rdma_llc_receive(group, link, msg, len);
}

/* smc_lgr_rdma_uncount() - an RMB by that number is no more, if there was one. Under the lock. */
void smc_lgr_rdma_uncount(struct smc_lgr_rdma *group, u8 id)
{
	lockdep_assert_held(&group->lock);
	if (!id)
		return;
	__clear_bit(id, group->rmb_ids);
	WRITE_ONCE(group->n_rmbs, group->n_rmbs - 1);
}

/*
 * An RMB is counted already, and has its number; else that is 0. The adapter may take long for it, so others
 * go on with the link meanwhile; only its end has to wait. If the link ends next, the buffer is already on
 * `attached`, and will be detached.
 */
static struct smc_rdma_buf *make_buf(struct smc_lgr_rdma *group, u8 id, u8 code)
{
	struct smc_rdma_buf *buf = ERR_PTR(-ENOTCONN);
	bool rmb = id;
	u8 asked = code;

	down_read(&group->link->making);
	while (!group->link->gone) {
		buf = smc_rdma_buf_new(group->link, rmb, code, group->buf_type);
		/* There may be memory for less, or the adapter take it in fewer pieces. */
		if (!IS_ERR(buf) || !code--)
			break;
	}
	spin_lock_bh(&group->lock);
	if (IS_ERR(buf)) {
		smc_lgr_rdma_uncount(group, id);
	} else {
		buf->id = id;
		buf->asked = asked;
		list_add(&buf->all, &group->attached);
		group->bytes[rmb] += buf->size;
	}
	spin_unlock_bh(&group->lock);
	up_read(&group->link->making);
	return buf;
}

/*
 * An RMB that another connection had, for which as much was asked. A peer does not take more than so
 * many: if there are these, any is better than none.
 */
static struct smc_rdma_buf *idle_rmb(struct smc_lgr_rdma *group, u8 code, bool full)
{
	struct smc_rdma_buf *buf;

	lockdep_assert_held(&group->lock);
	list_for_each_entry(buf, &group->rmbs, list)
		if (buf->asked == code)
			return buf;
	return full ? list_first_entry_or_null(&group->rmbs, struct smc_rdma_buf, list) : NULL;
}

/* A ring of which the adapter sends nothing any more. */
static struct smc_rdma_buf *idle_ring(struct smc_lgr_rdma *group, u8 code)
{
	struct smc_rdma_buf *buf;

	lockdep_assert_held(&group->lock);
	list_for_each_entry(buf, &group->sndbufs, list)
		if (buf->asked == code && smc_link_passed(group->link, buf->busy))
			return buf;
	return NULL;
}

/**
 * smc_lgr_rdma_buf() - a buffer for a connection: one that another had, or a new one
 * @group: the group, which has its link
 * @rmb: for the peer to write to, else to send from
 * @code: its size; smaller ones are tried if memory is short
 *
 * May sleep. Return: the buffer, or ERR_PTR(-ENOMEM) and the like.
 */
struct smc_rdma_buf *smc_lgr_rdma_buf(struct smc_lgr_rdma *group, bool rmb, u8 code)
{
	struct smc_rdma_buf *found;
	bool full;
	u8 id = 0;

	might_sleep();
	spin_lock_bh(&group->lock);
	full = rmb && group->n_rmbs >= SMC_RDMA_RTOKENS;
	found = rmb ? idle_rmb(group, code, full) : idle_ring(group, code);
	if (found)
		list_del_init(&found->list);
	if (!found && !full && rmb) {
		id = find_first_zero_bit(group->rmb_ids, SMC_RDMA_RTOKENS + 1);
		__set_bit(id, group->rmb_ids);
		WRITE_ONCE(group->n_rmbs, group->n_rmbs + 1);
	}
	spin_unlock_bh(&group->lock);
	if (found) {
		found->reused = true;
		smc_rdma_buf_clear(found);
		return found;
	}
	return full ? ERR_PTR(-ENOSPC) : make_buf(group, id, code);
}

/**
 * smc_lgr_rdma_take_large() - may one more connection have large buffers?
 * @group: the group
 * @rc: the connection, whose namespace is known
 * @most: so many connections of that namespace may have them
 *
 * Sets @rc->large. To be undone by smc_lgr_rdma_put_large(). Does not sleep.
 */
void smc_lgr_rdma_take_large(struct smc_lgr_rdma *group, struct smc_rdma_conn *rc, unsigned int most)
{
	struct smc_rdma_conn *other;
	unsigned int n = 0;

	spin_lock_bh(&group->lock);
	list_for_each_entry(other, &group->large, on_large)
		n += other->net == rc->net;
	rc->large = n < most;
	if (rc->large)
		list_add(&rc->on_large, &group->large);
	spin_unlock_bh(&group->lock);
}

/* smc_lgr_rdma_put_large() - a connection is over that had large buffers, or had none. Softirq. */
void smc_lgr_rdma_put_large(struct smc_lgr_rdma *group, struct smc_rdma_conn *rc)
{
	spin_lock_bh(&group->lock);
	list_del_init(&rc->on_large);
	spin_unlock_bh(&group->lock);
}

/*
 * smc_lgr_rdma_keep() - puts a buffer that no connection has any more on a list of the group. Under the lock.
 * Return: false if the group has ended, and the caller is to free it.
 */
bool smc_lgr_rdma_keep(struct smc_lgr_rdma *group, struct smc_rdma_buf *buf, struct list_head *list)
{
	lockdep_assert_held(&group->lock);
	if (!group->detached) {
		list_move(&buf->list, list);
		return true;
	}
	list_del_init(&buf->list);
	list_del_init(&buf->all);
	return false;
}

/*
 * smc_lgr_rdma_put_snd() - nothing more is put into a ring that is sent from; was anything sent? Softirq.
 */
void smc_lgr_rdma_put_snd(struct smc_lgr_rdma *group, struct smc_rdma_buf *snd, bool sent)
{
	bool kept;

	snd->busy = sent ? smc_link_position(group->link) : 0;
	spin_lock_bh(&group->lock);
	kept = smc_lgr_rdma_keep(group, snd, &group->sndbufs);
	spin_unlock_bh(&group->lock);
	if (!kept)
		smc_rdma_buf_free(snd);
}

/*
 * Frees what no connection has. The others are freed as they are given back, as it may be long until the
 * group goes: with the last program that has a dead socket.
 */
static void free_spare(struct smc_lgr_rdma *group)
{
	struct smc_rdma_buf *buf, *next;
	LIST_HEAD(spare);

	spin_lock_bh(&group->lock);
	group->detached = true;
	group->leaving = NULL;
	list_splice_init(&group->rmbs, &spare);
	list_splice_init(&group->sndbufs, &spare);
	list_for_each_entry_safe(buf, next, &group->rmbs_pending, list)
		if (!buf->held)
			list_move(&buf->list, &spare);
	list_for_each_entry(buf, &spare, list)
		list_del(&buf->all);
	spin_unlock_bh(&group->lock);
	list_for_each_entry_safe(buf, next, &spare, list)
		smc_rdma_buf_free(buf);
}

/* The adapter lets go of all buffers, also of those that connections still have. May sleep. */
static void detach_bufs(struct smc_lgr_rdma *group)
{
	struct smc_rdma_buf *buf;

	for (;;) {
		spin_lock_bh(&group->lock);
		buf = list_first_entry_or_null(&group->attached, struct smc_rdma_buf, all);
		if (buf)
			list_move(&buf->all, &group->bufs);
		spin_unlock_bh(&group->lock);
		if (!buf)
			break;
		smc_rdma_buf_detach(buf);
	}
	free_spare(group);
}

/* smc_lgr_rdma_delete_link() - lgr_delete_link of the transport. Under locks. */
void smc_lgr_rdma_delete_link(struct smc_lgr *lgr)
{
	struct smc_lgr_rdma *group = smc_lgr_rdma_of(lgr);

	spin_lock_bh(&group->lock);
	if (group->state == SMC_GROUP_READY)
		smc_rdma_llc_delete_link(group);
	spin_unlock_bh(&group->lock);
}

/* smc_lgr_rdma_flush() - lgr_flush of the transport. May sleep. */
void smc_lgr_rdma_flush(struct smc_lgr *lgr, unsigned long until)
{
	struct smc_lgr_rdma *group = smc_lgr_rdma_of(lgr);

	smc_rdma_llc_flush(group, until);
}

/*
 * smc_lgr_rdma_end() - lgr_end of the transport: nobody joins any more. The peer is told, then the
 * link goes, and nobody writes to our memory any more. May sleep.
 */
void smc_lgr_rdma_end(struct smc_lgr *lgr)
{
	struct smc_lgr_rdma *group = smc_lgr_rdma_of(lgr);
	struct smc_link *link;

	might_sleep();
	spin_lock_bh(&group->lock);
	WRITE_ONCE(group->state, SMC_GROUP_ENDED);
	link = group->link;
	smc_lgr_rdma_wake_locked(group);
	spin_unlock_bh(&group->lock);
	smc_rdma_llc_end(group);
	if (link)
		smc_link_end(link, detach_bufs);
}

/*
 * smc_lgr_rdma_set_link() - gives a group that is being formed its link. Does not sleep. Return: false
 * if it has ended meanwhile.
 */
bool smc_lgr_rdma_set_link(struct smc_lgr_rdma *group, struct smc_link *link)
{
	bool alive;

	spin_lock_bh(&group->lock);
	alive = group->state != SMC_GROUP_ENDED;
	if (alive)
		group->link = link;
	spin_unlock_bh(&group->lock);
	return alive;
}

/* smc_lgr_rdma_free() - lgr_free of the transport: it has ended, and no connection is left. Softirq. */
void smc_lgr_rdma_free(struct smc_lgr *lgr)
{
	struct smc_lgr_rdma *group = smc_lgr_rdma_of(lgr);
	struct smc_rdma_buf *buf, *next;

	list_for_each_entry_safe(buf, next, &group->bufs, all)
		smc_rdma_buf_free(buf);
	xa_destroy(&group->conns);
	kfree(group->link);
	kfree(group);
}
