// SPDX-License-Identifier: GPL-2.0-only
/*
 * How a group ends: DELETE LINK (RFC 7609, 3.5.4, 3.5.5.1.3 and 3.5.5.1.4). The server deletes links. A client
 * asks it to, and the server then deletes the link by an exchange of its own: at once, or, if the client asks for
 * an orderly end, when the last connection has left the group. One of two links is deleted alone.
 */

#include <linux/slab.h>

#include "../../lgr/lgr.h"
#include "../../wire/llc.h"
#include "group.h"

/* How long DELETE LINK may take to arrive, and the peer to answer it. */
#define DELETE_LINK_TIMEOUT (2 * HZ)
/*
 * How long a client's queue pair outlives its DELETE LINK if the server is a stock module. That answers at once, while
 * its programs close the connections, each of which waits until its last message is acknowledged.
 */
#define LINGER (HZ / 2)

/* Sends DELETE LINK, or the response to it: from here on no connection joins the group. */
static void send_delete_link(struct smc_link *link, const struct smc_llc_delete_link *d, bool response)
{
	struct smc_lgr_rdma *group = link->group;
	struct smc_llc m = { .type = SMC_LLC_DELETE_LINK, .response = response, .delete_link = *d };
	struct smc_rdma_llc *llc = &group->llc;

	lockdep_assert_held(&group->lock);
	WRITE_ONCE(llc->deleted, d->all ? 0 : d->link);
	WRITE_ONCE(llc->deleting, true);
	llc->delete_sent = jiffies;
	/* A client's request is answered by a request of the server's, that of a server for one link by a response. */
	WRITE_ONCE(llc->awaits_delete, !response && group->server != d->all);
	smc_rdma_llc_send_msg(link, &m);
}

/* The peer deletes the only link: answers it, and ends the group. */
static void comply_with_delete(struct smc_link *link, const struct smc_llc_delete_link *d, bool response)
{
	struct smc_lgr_rdma *group = link->group;

	spin_lock_bh(&group->lock);
	send_delete_link(link, d, response);
	spin_unlock_bh(&group->lock);
	smc_link_count(link, SMC_LINK_DELETED, d->reason);
	smc_link_retire(link);
	wake_up(&group->llc.flushed);
}

/*
 * DELETE LINK of a client. A server that has begun its own exchange needs no other for a client that asks for the same.
 */
static void on_client_request(struct smc_link *link, const struct smc_llc_delete_link *d)
{
	struct smc_lgr_rdma *group = link->group;
	bool drain;

	spin_lock_bh(&group->lock);
	if (group->llc.deleting) {
		spin_unlock_bh(&group->lock);
		return;
	}
	/* A rendezvous counts as a connection, so that a group that is being formed is not ended as an empty one. */
	drain = d->orderly && READ_ONCE(group->lgr->n_conns);
	if (drain) {
		group->llc.request = *d;
		WRITE_ONCE(group->llc.draining, true);
	}
	spin_unlock_bh(&group->lock);
	if (drain)
		smc_lgr_drain(group->lgr);
	else
		comply_with_delete(link, d, false);
}

/* The server has ended the group, and may have destroyed its queue pairs. */
static void on_server_end(struct smc_lgr_rdma *group, u32 reason)
{
	struct smc_link *link;

	spin_lock_bh(&group->lock);
	WRITE_ONCE(group->llc.deleting, true);
	smc_for_each_link(group, link)
		smc_link_fail(link, SMC_LINK_DELETED, reason);
	spin_unlock_bh(&group->lock);
}

/* DELETE LINK of the server, with which a client must comply at once. It also answers a request of ours. */
static void on_server_request(struct smc_link *link, const struct smc_llc_delete_link *d)
{
	struct smc_llc_delete_link answer = *d;

	if (d->all) {
		on_server_end(link->group, d->reason);
		return;
	}
	answer.reason = 0;
	comply_with_delete(link, &answer, true);
}

/* The reason of a DELETE LINK for a link that has been stopped: what a host has decided, or what was wrong with the link. */
static u32 delete_reason(const struct smc_link *link)
{
	lockdep_assert_held(&link->group->lock);
	if (link->reason)
		return link->reason;
	switch (READ_ONCE(link->why)) {
	case SMC_LINK_NO_MESSAGE:
	case SMC_LINK_FLOODED:
	case SMC_LINK_FORGETFUL:
	case SMC_LINK_AHEAD:
	case SMC_LINK_BAD_IMMEDIATE:
	case SMC_LINK_BAD_LLC:
		return SMC_LLC_VIOLATION;
	default:
		return SMC_LLC_PATH_LOST;
	}
}

/* Sends DELETE LINK for a link that has been stopped, or the response to that of the server, by another link. */
static void send_delete_one(struct smc_link *link, struct smc_link *by)
{
	struct smc_llc m = {
		.type = SMC_LLC_DELETE_LINK, .response = link->delete_asked, .delete_link.link = link->id,
	};
	struct smc_llc_delete_link *d = &m.delete_link;

	lockdep_assert_held(&link->group->lock);
	if (!m.response) {
		d->reason = delete_reason(link);
		/* The link worked until a host has decided to delete it (RFC 7609, A.3.4). */
		d->orderly = d->reason == SMC_LLC_BY_OPERATOR || d->reason == SMC_LLC_ASYMMETRIC;
	}
	link->delete_sent = true;
	link->delete_by = by->serial;
	smc_rdma_llc_send_msg(by, &m);
}

/*
 * DELETE LINK for one of several links, which a peer of this implementation has stopped. The server has the last word: it answers a
 * client by the same request, which the client then answers; each when it has stopped the link, too. Return: false if the group has no
 * other link.
 */
static bool delete_one(struct smc_link *by, const struct smc_llc_delete_link *d)
{
	struct smc_lgr_rdma *group = by->group;
	struct smc_link *named, *other = NULL;

	spin_lock_bh(&group->lock);
	named = smc_lgr_rdma_link_by_id(group, d->link);
	if (named && !group->llc.deleting)
		other = smc_lgr_rdma_other_link(named);
	if (other) {
		WRITE_ONCE(named->peer_stopped, true);
		named->delete_asked = !group->server;
		if ((!named->stopped && named->reason != SMC_LLC_BY_OPERATOR) || d->reason == SMC_LLC_BY_OPERATOR)
			named->reason = d->reason;
		/* If both hosts have lost it, the request of the server has crossed that of the client, or answers it. */
		if (named->stopped && !(group->server && named->delete_sent))
			send_delete_one(named, by == named ? other : by);
		smc_link_fail(named, SMC_LINK_DELETED, d->reason);
		smc_lgr_rdma_expedite_late(named);
		smc_rdma_llc_start_calls(group);
	}
	spin_unlock_bh(&group->lock);
	return other;
}

/* The client has stopped a link that the server has deleted. */
static void on_link_stopped(struct smc_lgr_rdma *group, u8 id)
{
	struct smc_link *link;

	spin_lock_bh(&group->lock);
	link = smc_lgr_rdma_link_by_id(group, id);
	if (link && link->delete_sent) {
		WRITE_ONCE(link->peer_stopped, true);
		smc_lgr_rdma_expedite_late(link);
	}
	spin_unlock_bh(&group->lock);
}

/*
 * smc_rdma_llc_link_lost() - tells the peer, by another link, that a link is down and has been stopped. Of three links, it may have been to
 * carry DELETE LINK for another one, which then goes again. Softirq.
 */
void smc_rdma_llc_link_lost(struct smc_link *link)
{
	struct smc_lgr_rdma *group = link->group;
	struct smc_link *other, *lost;

	spin_lock_bh(&group->lock);
	other = smc_lgr_rdma_other_link(link);
	if (other && !link->delete_sent)
		send_delete_one(link, other);
	smc_for_each_link(group, lost)
		if (other && lost->delete_sent && lost->delete_by == link->serial && !READ_ONCE(lost->peer_stopped))
			send_delete_one(lost, other);
	smc_rdma_llc_start_calls(group);
	spin_unlock_bh(&group->lock);
}

/*
 * smc_rdma_llc_on_delete_link() - DELETE LINK, or the response to it, has come by a link. Changes the message. Softirq.
 */
void smc_rdma_llc_on_delete_link(struct smc_link *link, struct smc_llc *m)
{
	struct smc_lgr_rdma *group = link->group;
	struct smc_llc_delete_link *d = &m->delete_link;

	if (m->response) {
		/* It may answer the end of a link just before that of the group. */
		if (!READ_ONCE(group->llc.deleting) || (!d->all && d->link != READ_ONCE(group->llc.deleted))) {
			on_link_stopped(group, d->link);
			return;
		}
		WRITE_ONCE(group->llc.delete_answered, true);
		wake_up(&group->llc.flushed);
	} else if (!d->all && delete_one(link, d)) {
		return;
	} else if (!d->all && d->link != link->id) {
		d->reason = SMC_LLC_NO_LINK;
		smc_rdma_llc_respond(link, m);
	} else if (group->server) {
		on_client_request(link, d);
	} else {
		on_server_request(link, d);
	}
}

/* smc_rdma_llc_closing() - is the group about to end, so that no connection joins it? Any context. */
bool smc_rdma_llc_closing(const struct smc_lgr_rdma *group)
{
	return READ_ONCE(group->llc.deleting) || READ_ONCE(group->llc.draining);
}

/* The link of a group whose first contact is not complete here, although it may be at the peer. */
static struct smc_link *forming_link(const struct smc_lgr_rdma *group)
{
	struct smc_link *link = smc_lgr_rdma_next_link(group, NULL);

	return link && smc_link_usable(link) ? link : NULL;
}

/*
 * smc_rdma_llc_delete_link() - tells the peer that the group is about to end, if it has a usable link: as a client has
 * asked for, or by the reason of the group. Any context.
 *
 * A server names the link, although it is the last one, instead of all links. A client answers that, and the server
 * keeps the queue pair until then (3.5.5.1.3). It does not answer a DELETE LINK for all, after which the server may
 * destroy the queue pair at once (3.5.4): what the client has posted is then repeated until its adapter gives up.
 * Soft-RoCE does not give up after the seven retries that Linux asks for, and Linux waits for each of its connections
 * until what it has posted is complete. Its programs would block for ever.
 */
void smc_rdma_llc_delete_link(struct smc_lgr_rdma *group)
{
	struct smc_link *link = smc_lgr_rdma_find_link(group, NULL) ?: forming_link(group);
	bool all = !group->server || (link && smc_lgr_rdma_other_link(link));
	struct smc_llc_delete_link d = {
		.all = all,
		.link = !all && link ? link->id : 0,
		.reason = READ_ONCE(group->lgr->deleted) ? SMC_LLC_BY_OPERATOR : SMC_LLC_BY_PROGRAM,
		/* A server would wait for the connections that it has, of which a client's operator wants to be rid. */
		.orderly = (group->server && READ_ONCE(group->lgr->deleted)) || !READ_ONCE(group->lgr->n_conns),
	};

	lockdep_assert_held(&group->lock);
	if (group->llc.deleting || !link)
		return;
	send_delete_link(link, group->llc.draining ? &group->llc.request : &d, false);
}

/*
 * Has the peer answered our DELETE LINK, or can it not any more? A client also stops waiting when a DELETE LINK of the
 * server crosses its own.
 */
static bool delete_done(struct smc_lgr_rdma *group)
{
	bool done;

	spin_lock_bh(&group->lock);
	done = !smc_lgr_rdma_find_link(group, NULL) || group->llc.delete_answered || !group->llc.awaits_delete;
	spin_unlock_bh(&group->lock);
	return done;
}

/*
 * Has the peer's adapter acknowledged all LLC messages, including those that had to wait for room, or can it not any
 * more?
 */
static bool llc_delivered(struct smc_lgr_rdma *group)
{
	struct smc_link *link;
	bool done = true;

	spin_lock_bh(&group->lock);
	smc_for_each_link(group, link)
		if (smc_link_usable(link) && (link->llc.n || !smc_link_passed(link, link->llc.posted)))
			done = false;
	spin_unlock_bh(&group->lock);
	return done;
}

/*
 * smc_rdma_llc_flush() - waits until the peer's adapter has our DELETE LINK, or until a time in jiffies; not for the
 * answer.
 */
void smc_rdma_llc_flush(struct smc_lgr_rdma *group, unsigned long until)
{
	long left = until - jiffies;

	might_sleep();
	if (READ_ONCE(group->llc.deleting) && left > 0)
		wait_event_timeout(group->llc.flushed, llc_delivered(group), left);
}

/*
 * smc_rdma_llc_wait_deleted() - tells the peer that the group has ended, and waits for the answer, if there is to be
 * one.
 */
void smc_rdma_llc_wait_deleted(struct smc_lgr_rdma *group)
{
	unsigned long until;
	bool awaits_delete;
	long left;

	might_sleep();
	spin_lock_bh(&group->lock);
	smc_rdma_llc_delete_link(group);
	until = group->llc.delete_sent + DELETE_LINK_TIMEOUT;
	awaits_delete = group->llc.awaits_delete;
	spin_unlock_bh(&group->lock);
	smc_rdma_llc_flush(group, until);
	if (!awaits_delete)
		return;
	left = until - jiffies;
	if (left > 0)
		wait_event_timeout(group->llc.flushed, delete_done(group), left);
	/* Our answer to a DELETE LINK of the server, which keeps its queue pair for it. */
	smc_rdma_llc_flush(group, until);
	left = group->llc.delete_sent + LINGER - jiffies;
	if (!group->server && !group->immediate && left > 0)
		schedule_timeout_uninterruptible(left);
}

/* smc_rdma_add_end() - the group has ended, and ends its links: the exchange that adds one stops. */
void smc_rdma_add_end(struct smc_lgr_rdma *group)
{
	struct smc_rdma_add *add = &group->add;
	struct smc_link *link, *carrier;
	u8 *msg;

	might_sleep();
	if (cancel_delayed_work_sync(&add->work))
		smc_lgr_put(group->lgr);
	/* A link that goes down looks at them. */
	spin_lock_bh(&group->lock);
	link = add->link;
	carrier = add->carrier;
	msg = add->msg;
	add->link = NULL;
	add->carrier = NULL;
	add->msg = NULL;
	spin_unlock_bh(&group->lock);
	smc_link_put(link);
	smc_link_put(carrier);
	kfree(msg);
}
