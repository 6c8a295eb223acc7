// SPDX-License-Identifier: GPL-2.0-only
/* The links of a group: their slots, the choice among them, and what happens when one of several is lost. */

#include "../../lgr/lgr.h"
#include "../../net.h"
#include "rdma.h"

/*
 * How long connections of a link that is lost are limited if the peer does not say that it has stopped the link. After that, no
 * packet of it is in the network any more.
 */
#define LATE_TIMEOUT HZ

/* smc_lgr_rdma_next_link() - returns the link after another, or the first one for NULL; NULL at the end. Any context. */
struct smc_link *smc_lgr_rdma_next_link(const struct smc_lgr_rdma *group, const struct smc_link *link)
{
	u8 slot = link ? link->slot + 1 : 0;

	lockdep_assert_held(&group->lock);
	while (slot < SMC_LINKS_PER_LGR_MAX && !group->links[slot])
		slot++;
	return slot < SMC_LINKS_PER_LGR_MAX ? group->links[slot] : NULL;
}

/* smc_lgr_rdma_link_by_id() - returns the link with a number, or NULL. Any context. */
struct smc_link *smc_lgr_rdma_link_by_id(const struct smc_lgr_rdma *group, u8 id)
{
	struct smc_link *link;

	smc_for_each_link(group, link)
		if (link->id == id)
			return link;
	return NULL;
}

/* Gives a link of a server a number that no other link of the group has. */
static void number_link(struct smc_lgr_rdma *group, struct smc_link *link)
{
	u8 id = group->last_id;

	lockdep_assert_held(&group->lock);
	do
		id++;
	while (!id || smc_lgr_rdma_link_by_id(group, id));
	group->last_id = id;
	link->id = id;
}

/*
 * smc_lgr_rdma_add_link() - gives a group a link, and the link its slot, and with @number its number. Softirq. Return: false
 * if the group has ended or has no free slot.
 */
bool smc_lgr_rdma_add_link(struct smc_lgr_rdma *group, struct smc_link *link, bool number)
{
	bool added = false;
	u8 slot;

	spin_lock_bh(&group->lock);
	for (slot = 0; slot < SMC_LINKS_PER_LGR_MAX && group->links[slot]; slot++)
		;
	if (slot < SMC_LINKS_PER_LGR_MAX && group->state != SMC_LGR_RDMA_ENDED) {
		link->slot = slot;
		link->serial = ++group->last_serial;
		if (number)
			number_link(group, link);
		group->links[slot] = link;
		added = true;
	}
	spin_unlock_bh(&group->lock);
	/* If it has failed before it had a slot, what ends it has not found it. */
	if (added && READ_ONCE(link->state) == SMC_LINK_DOWN)
		smc_link_retire(link);
	return added;
}

/*
 * smc_lgr_rdma_find_link() - returns a usable link: the one that ACCEPT names; or for NULL that with the fewest users, each
 * connection being one. Any context. ACCEPT has to repeat the MAC of the link in version 1 only.
 */
struct smc_link *smc_lgr_rdma_find_link(const struct smc_lgr_rdma *group, const struct smc_clc_accept *peer)
{
	struct smc_link *link, *found = NULL;

	smc_for_each_link(group, link) {
		const u8 *mac = peer && group->version < 2 ? peer->mac : link->peer.clc_mac;

		if (!smc_link_usable(link) || !link->active || (peer && !smc_link_is_peer(link, peer->gid, mac, peer->qpn)))
			continue;
		if (!found || refcount_read(&link->ref) < refcount_read(&found->ref))
			found = link;
	}
	return found;
}

/* Is this the address of the peer's that a link leads to? */
static bool leads_to(const struct smc_link *link, const struct smc_lgr_ends *ends)
{
	return !memcmp(link->peer.clc_gid, ends->gid, sizeof(link->peer.clc_gid)) &&
	       (link->group->version > 1 || !memcmp(link->peer.clc_mac, ends->mac, sizeof(ends->mac)));
}

/*
 * smc_lgr_rdma_serves() - server: may a connection between two addresses join the group? It has a link to that address of
 * the peer's. A namespace may be reached by an address that goes with it: links that use such are for connections to it alone.
 * Any context.
 */
bool smc_lgr_rdma_serves(const struct smc_lgr_rdma *group, const struct smc_lgr_ends *ends)
{
	struct smc_link *link;
	bool to_peer = false;

	smc_for_each_link(group, link) {
		if (!link->path.of_host && memcmp(link->path.gid, ends->own_gid, sizeof(link->path.gid)))
			return false;
		to_peer |= link->active && leads_to(link, ends);
	}
	return to_peer;
}

/* smc_lgr_rdma_get_link() - as smc_lgr_rdma_find_link(), without the lock, and with a reference on the link. Softirq. */
struct smc_link *smc_lgr_rdma_get_link(struct smc_lgr_rdma *group, const struct smc_clc_accept *peer)
{
	struct smc_link *link;

	spin_lock_bh(&group->lock);
	link = smc_link_get(smc_lgr_rdma_find_link(group, peer));
	spin_unlock_bh(&group->lock);
	return link;
}

/* smc_lgr_rdma_link_at() - returns the link in a slot, with a reference, or NULL. Softirq. */
struct smc_link *smc_lgr_rdma_link_at(struct smc_lgr_rdma *group, unsigned int slot)
{
	struct smc_link *link;

	spin_lock_bh(&group->lock);
	link = smc_link_get(group->links[slot]);
	spin_unlock_bh(&group->lock);
	return link;
}

/* smc_lgr_rdma_get_by_id() - as smc_lgr_rdma_link_by_id(), without the lock, and with a reference on the link. Softirq. */
struct smc_link *smc_lgr_rdma_get_by_id(struct smc_lgr_rdma *group, u8 id)
{
	struct smc_link *link;

	spin_lock_bh(&group->lock);
	link = smc_link_get(smc_lgr_rdma_link_by_id(group, id));
	spin_unlock_bh(&group->lock);
	return link;
}

/*
 * smc_lgr_rdma_get_by_serial() - returns the link with a serial number, with a reference, or NULL if it has left its slot.
 * Softirq.
 */
struct smc_link *smc_lgr_rdma_get_by_serial(struct smc_lgr_rdma *group, u32 serial)
{
	struct smc_link *link, *found = NULL;

	spin_lock_bh(&group->lock);
	smc_for_each_link(group, link)
		if (link->serial == serial)
			found = smc_link_get(link);
	spin_unlock_bh(&group->lock);
	return found;
}

/* Returns the link that came last of the active and usable ones except one, or NULL. */
static struct smc_link *newest_link(const struct smc_lgr_rdma *group, const struct smc_link *except)
{
	struct smc_link *link, *found = NULL;

	smc_for_each_link(group, link)
		if (link != except && link->active && smc_link_usable(link) && (!found || link->serial > found->serial))
			found = link;
	return found;
}

/*
 * smc_lgr_rdma_other_link() - returns the link that came last of the active and usable ones beside a link, or NULL. If there are
 * three, one of the older ones is about to go. Any context.
 */
struct smc_link *smc_lgr_rdma_other_link(const struct smc_link *link)
{
	return newest_link(link->group, link);
}

/*
 * smc_lgr_rdma_call_link() - returns the link that calls go by, or NULL. DELETE LINK for a lost link goes by the same one, and so comes
 * before a call that has no keys for that link. Any context.
 */
struct smc_link *smc_lgr_rdma_call_link(const struct smc_lgr_rdma *group)
{
	return newest_link(group, NULL);
}

/*
 * smc_lgr_rdma_rmb_is_quiet() - can nothing arrive any more that a peer has written for the connection that had an RMB? The last message
 * of that may have come by another link than data before it, which is late as long as its link can receive: until the link has been
 * stopped. The peer's failover validation tells by which link it sends now; DELETE LINK for the other one may come later. Any context.
 */
bool smc_lgr_rdma_rmb_is_quiet(const struct smc_lgr_rdma *group, const struct smc_rdma_buf *rmb)
{
	bool moved = rmb->moved_to && time_before(jiffies, rmb->moved_at + LATE_TIMEOUT);
	struct smc_link *link;

	smc_for_each_link(group, link) {
		/* By a link that is given up before it is confirmed, nothing has been written. */
		bool lost = READ_ONCE(link->state) == SMC_LINK_DOWN && link->llc.confirmed;

		if (!link->stopped && (lost || (moved && link->serial != rmb->moved_to)))
			return false;
	}
	return true;
}

/*
 * smc_lgr_rdma_next_conn() - returns the next connection of a group after the one with a token, with a reference; NULL at the
 * end. With a link, only those that write by it. Any context.
 */
struct smc_conn *smc_lgr_rdma_next_conn(struct smc_lgr_rdma *group, const struct smc_link *link, unsigned long *token)
{
	struct smc_conn *conn, *found = NULL;

	rcu_read_lock();
	xa_for_each_start(&group->conns, *token, conn, *token) {
		if ((link && READ_ONCE(smc_rdma_conn_of(conn)->link) != link) || !smc_conn_get_live(conn))
			continue;
		found = conn;
		break;
	}
	rcu_read_unlock();
	(*token)++;
	return found;
}

/*
 * smc_lgr_rdma_needs() - lgr_needs of the transport: does a group end with a device? It goes on if it has a link over
 * another one.
 */
bool smc_lgr_rdma_needs(const struct smc_lgr *lgr, const void *dev)
{
	struct smc_lgr_rdma *group = smc_lgr_rdma_of(lgr);
	bool uses = lgr->key.ends.dev == dev, other = false;
	struct smc_link *link;

	smc_lgr_assert_table_locked();
	spin_lock_bh(&group->lock);
	smc_for_each_link(group, link) {
		uses |= link->path.dev == dev;
		other |= link->path.dev != dev && link->active && smc_link_usable(link);
	}
	spin_unlock_bh(&group->lock);
	return uses && !other;
}

/* Lists the links of a group but those that are down, which are about to leave it. Return: their number. */
static unsigned int list_links(const struct smc_lgr_rdma *group, struct smc_link *links[SMC_LINKS_PER_LGR_MAX])
{
	struct smc_link *link;
	unsigned int n = 0;

	smc_for_each_link(group, link)
		if (READ_ONCE(link->state) != SMC_LINK_DOWN)
			links[n++] = link;
	return n;
}

/* smc_lgr_rdma_has_slot() - has the group fewer links than it may have for long? Any context. */
bool smc_lgr_rdma_has_slot(const struct smc_lgr_rdma *group)
{
	struct smc_link *links[SMC_LINKS_PER_LGR_MAX];

	return list_links(group, links) < group->link_limit;
}

/* Do two links share a port here or at the peer, so that both go with it? */
static bool share_port(const struct smc_link *a, const struct smc_link *b)
{
	if (a->path.dev == b->path.dev && a->path.port == b->path.port)
		return true;
	return smc_link_is_peer_port(a, b->peer.clc_gid, b->peer.clc_mac);
}

/*
 * smc_lgr_rdma_is_parallel() - has a group a link between a port here and the one that the peer states in ADD LINK? A second one would
 * add nothing (RFC 7609, 2.2.1). Softirq.
 */
bool smc_lgr_rdma_is_parallel(struct smc_lgr_rdma *group, const struct smc_rdma_path *path, const struct smc_llc_add_link *peer)
{
	struct smc_link *links[SMC_LINKS_PER_LGR_MAX];
	bool parallel = false;
	unsigned int n;

	spin_lock_bh(&group->lock);
	n = list_links(group, links);
	while (n--)
		parallel |= links[n]->path.dev == path->dev && links[n]->path.port == path->port &&
			    smc_link_is_peer_port(links[n], peer->gid, peer->mac);
	spin_unlock_bh(&group->lock);
	return parallel;
}

/*
 * smc_lgr_rdma_may_add() - may the group get one more link now? One whose two links share a port may, for a better one
 * than the second of them. Any context.
 */
bool smc_lgr_rdma_may_add(const struct smc_lgr_rdma *group)
{
	struct smc_link *links[SMC_LINKS_PER_LGR_MAX];
	unsigned int n = list_links(group, links);

	if (n < group->link_limit)
		return true;
	return group->link_limit == 2 && n == 2 && links[0]->active && links[1]->active && share_port(links[0], links[1]);
}

/*
 * smc_lgr_rdma_drop_asymmetric() - server: the group has a link that shares no port with the one that has carried its
 * exchange: deletes the third, if there is one. Softirq.
 */
void smc_lgr_rdma_drop_asymmetric(struct smc_lgr_rdma *group, const struct smc_link *carrier, const struct smc_link *fresh)
{
	struct smc_link *links[SMC_LINKS_PER_LGR_MAX];
	unsigned int n;

	spin_lock_bh(&group->lock);
	n = list_links(group, links);
	if (n > group->link_limit)
		while (n--) {
			if (links[n] == carrier || links[n] == fresh || !links[n]->active)
				continue;
			links[n]->reason = SMC_LLC_ASYMMETRIC;
			smc_link_fail(links[n], SMC_LINK_REPLACED, 0);
		}
	spin_unlock_bh(&group->lock);
}

/*
 * Takes a link that is down out of its slot's use: no message and no connection uses it any more. Return: false if the
 * group cannot go on without it.
 */
static bool unlink_link(struct smc_link *link)
{
	struct smc_lgr_rdma *group = link->group;
	bool goes_on;

	spin_lock_bh(&group->lock);
	goes_on = group->state == SMC_LGR_RDMA_READY && !group->llc.deleting && smc_lgr_rdma_other_link(link);
	if (goes_on)
		link->active = false;
	spin_unlock_bh(&group->lock);
	return goes_on;
}

/* Stops a link, unless the group has ended meanwhile, and does so itself. The slot stays. Return: whether it is ours. */
static bool stop_link(struct smc_link *link)
{
	struct smc_lgr_rdma *group = link->group;
	bool ours;

	mutex_lock(&group->end_mutex);
	ours = READ_ONCE(group->state) != SMC_LGR_RDMA_ENDED && group->links[link->slot] == link && !link->gone;
	if (ours)
		smc_link_stop(link);
	mutex_unlock(&group->end_mutex);
	spin_lock_bh(&group->lock);
	link->stopped |= ours;
	spin_unlock_bh(&group->lock);
	return ours;
}

/*
 * smc_lgr_rdma_delete_one() - lgr_delete_one of the transport: an operator deletes a link. May sleep, until connections have
 * moved. Return: 0, -ENOENT if there is no such link, -EBUSY if the group has no other.
 */
int smc_lgr_rdma_delete_one(struct smc_lgr *lgr, u8 id)
{
	struct smc_lgr_rdma *group = smc_lgr_rdma_of(lgr);
	struct smc_link *link;
	int rc = -ENOENT;

	might_sleep();
	spin_lock_bh(&group->lock);
	link = smc_lgr_rdma_link_by_id(group, id);
	if (link && link->active) {
		smc_link_get(link);
		rc = smc_lgr_rdma_other_link(link) ? 0 : -EBUSY;
	} else {
		link = NULL;
	}
	if (!rc) {
		link->reason = SMC_LLC_BY_OPERATOR;
		smc_link_fail(link, SMC_LINK_OPERATOR, 0);
	}
	spin_unlock_bh(&group->lock);
	if (!rc)
		flush_work(&link->down);
	smc_link_put(link);
	return rc;
}

/* Ends a link that has been stopped, and frees its slot and the peer's keys in it. */
static void free_slot(struct smc_link *link)
{
	struct smc_lgr_rdma *group = link->group;

	/* Not with the mutex: rendezvous wait for that, and the end of the other link. */
	smc_link_finish(link);
	mutex_lock(&group->end_mutex);
	spin_lock_bh(&group->lock);
	smc_rtoken_clear(link);
	group->links[link->slot] = NULL;
	smc_rdma_llc_start_calls(group);
	spin_unlock_bh(&group->lock);
	mutex_unlock(&group->end_mutex);
	smc_rdma_failover_drained(link);
	smc_link_put(link);
}

/* smc_lgr_rdma_fail_qp() - for tests: puts the queue pair of the link with a number into error, in each group that has one. */
void smc_lgr_rdma_fail_qp(u8 id)
{
	struct smc_lgr *lgr = NULL;
	struct smc_link *link;

	might_sleep();
	while ((lgr = smc_lgr_next(lgr))) {
		link = lgr->key.ops == &smc_rdma_transport ? smc_lgr_rdma_get_by_id(smc_lgr_rdma_of(lgr), id) : NULL;
		if (link)
			smc_link_fail_qp(link);
		smc_link_put(link);
	}
}

/* Can nothing that was sent by a link arrive any more, or does it not matter? */
static bool is_quiet(const struct smc_link *link)
{
	return !READ_ONCE(link->limiting) || READ_ONCE(link->peer_stopped) || READ_ONCE(link->group->state) == SMC_LGR_RDMA_ENDED;
}

/* smc_lgr_rdma_late_work() - function of the work `late` of a link. */
void smc_lgr_rdma_late_work(struct work_struct *work)
{
	struct smc_link *link = container_of(to_delayed_work(work), struct smc_link, late);
	struct smc_lgr *lgr = link->group->lgr;

	smc_rdma_failover_unlimit(link);
	free_slot(link);
	smc_link_put(link);
	smc_lgr_put(lgr);
}

/*
 * smc_lgr_rdma_expedite_late() - the peer has stopped a link: no need to wait for a late packet. The work is queued and cancelled with
 * the lock only, because while one thread cancels it, another cannot queue it. Any context.
 */
void smc_lgr_rdma_expedite_late(struct smc_link *link)
{
	lockdep_assert_held(&link->group->lock);
	if (READ_ONCE(link->group->state) == SMC_LGR_RDMA_ENDED)
		return;
	if (cancel_delayed_work(&link->late))
		queue_delayed_work(smc_lgr_wq, &link->late, 0);
}

/* smc_lgr_rdma_end_late() - the group has ended, so that no thread queues the work any more, and keeps its links. */
void smc_lgr_rdma_end_late(struct smc_lgr_rdma *group)
{
	struct smc_link *link;
	unsigned int slot;

	might_sleep();
	for (slot = 0; slot < SMC_LINKS_PER_LGR_MAX; slot++) {
		link = smc_lgr_rdma_link_at(group, slot);
		if (link && cancel_delayed_work_sync(&link->late)) {
			smc_link_put(link);
			smc_lgr_put(group->lgr);
		}
		smc_link_put(link);
	}
}

/*
 * The connections of a link have moved. It leaves its slot when nothing that was sent by it can arrive any more: until then,
 * smc_rdma_failover_unlimit() is due.
 */
static void leave_slot(struct smc_link *link)
{
	struct smc_lgr_rdma *group = link->group;
	bool gone = READ_ONCE(link->path.dev->gone);
	bool waits;

	might_sleep();
	/* The last messages of connections that have ended do not wait. */
	smc_link_call_lost(link);
	spin_lock_bh(&group->lock);
	waits = !is_quiet(link);
	/* A work of its own, because many links may wait at the same time. */
	if (waits) {
		smc_lgr_get(group->lgr);
		queue_delayed_work(smc_lgr_wq, &smc_link_get(link)->late, LATE_TIMEOUT);
	}
	spin_unlock_bh(&group->lock);
	if (!waits) {
		smc_rdma_failover_unlimit(link);
		free_slot(link);
	} else if (gone) {
		smc_link_finish(link); /* the device waits for that */
	}
}

/*
 * smc_lgr_rdma_remove_link() - ends a link that is given up while it is added, and frees its slot. The peer may have
 * confirmed it just before, so it may have connections, and be the last one: then the group ends. @tell: the peer gets DELETE
 * LINK.
 */
void smc_lgr_rdma_remove_link(struct smc_link *link, bool tell)
{
	struct smc_lgr_rdma *group = link->group;
	bool last, ours;

	might_sleep();
	ours = stop_link(link);
	if (tell || READ_ONCE(link->peer_stopped))
		smc_rdma_llc_link_lost(link);
	if (!ours)
		return;
	smc_rdma_failover(link);
	smc_rdma_llc_call_lost(link);
	leave_slot(link);
	spin_lock_bh(&group->lock);
	last = group->state == SMC_LGR_RDMA_READY && !smc_lgr_rdma_other_link(link);
	spin_unlock_bh(&group->lock);
	if (last)
		smc_link_retire(link);
}

/*
 * smc_lgr_rdma_lose_link() - a link is down: its connections move to the other link of the group. Return: false
 * if there is no other, so that the group has to end.
 *
 * The link is stopped first, so that its adapter repeats nothing. What is still in the network may arrive until the peer has
 * stopped it, too, so it gets DELETE LINK before anything is written again, and its answer comes when it has done so. To destroy the
 * queue pair may take long: connections do not wait for that, nor does what looks for another link.
 */
bool smc_lgr_rdma_lose_link(struct smc_link *link)
{
	might_sleep();
	if (!unlink_link(link))
		return false;
	if (!stop_link(link))
		return true;
	smc_rdma_llc_link_lost(link);
	smc_rdma_failover(link);
	smc_rdma_llc_call_lost(link);
	smc_rdma_add_link_lost(link);
	leave_slot(link);
	return true;
}
