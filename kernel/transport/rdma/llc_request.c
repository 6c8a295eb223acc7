// SPDX-License-Identifier: GPL-2.0-only
/*
 * When a group gets a second link: a port comes up, a link has been lost, or could not be added. A server begins by itself. A client
 * tells its server of the port (docs/protocol.md, 7.3 and 7.6), which then may send ADD LINK.
 */

#include "../../lgr/lgr.h"
#include "../../wire/llc.h"
#include "rdma.h"

/* A host that has lost, or failed to add, a link looks for another after the first time, then twice that (RFC 7609, C.8). */
#define RETRY_FIRST (10 * HZ)
#define RETRY_MOST (300 * HZ)
/* A client may ask as often as it likes: this is how often its server follows. */
#define REQUEST_INTERVAL HZ

/* A path may carry the messages by which a link is made, and nothing else: such a link is made again later and later. */
static bool link_has_lasted(const struct smc_link *link)
{
	return time_after(jiffies, link->active_since + RETRY_FIRST);
}

/* smc_rdma_add_back_off() - sets when to look again: each time after twice as long. Any context. */
void smc_rdma_add_back_off(struct smc_lgr_rdma *group)
{
	struct smc_rdma_add *add = &group->add;

	lockdep_assert_held(&group->lock);
	add->retry = min_t(unsigned long, add->retry ? 2 * add->retry : RETRY_FIRST, RETRY_MOST);
	add->retry_at = jiffies + add->retry;
}

/*
 * smc_rdma_add_retries() - does this host see to it that the group gets a link that it lacks? A client asks again if its server may
 * not look again by itself. Any context.
 */
bool smc_rdma_add_retries(const struct smc_lgr_rdma *group)
{
	return group->server || (group->link_limit > 1 && !group->immediate);
}

static bool may_want(const struct smc_lgr_rdma *group)
{
	lockdep_assert_held(&group->lock);
	return group->server && group->state == SMC_LGR_RDMA_READY && group->link_limit > 1;
}

/* smc_rdma_add_want() - has a server look for a second link. Softirq. */
void smc_rdma_add_want(struct smc_lgr_rdma *group)
{
	spin_lock_bh(&group->lock);
	if (may_want(group)) {
		group->add.wanted = true;
		smc_rdma_add_queue(group, 0);
	}
	spin_unlock_bh(&group->lock);
}

/* smc_rdma_add_requested() - a client tells its server of a port: as smc_rdma_add_want(), but not at once if it does so often. Softirq. */
void smc_rdma_add_requested(struct smc_lgr_rdma *group)
{
	struct smc_rdma_add *add = &group->add;

	spin_lock_bh(&group->lock);
	WRITE_ONCE(add->peer_has_two, true);
	if (may_want(group) && !time_before(jiffies, add->request_from)) {
		add->wanted = true;
		/* Not in an exchange, whose steps have more time after retries. */
		if (add->step == SMC_RDMA_ADD_NONE)
			add->retry = 0;
		add->request_from = jiffies + REQUEST_INTERVAL;
	} else if (may_want(group) && (!add->lost || time_before(add->request_from, add->retry_at))) {
		add->lost = true;
		add->retry_at = add->request_from;
		smc_rdma_add_queue(group, add->request_from - jiffies);
	}
	smc_rdma_add_resume(group);
	spin_unlock_bh(&group->lock);
}

/*
 * smc_rdma_add_link_lost() - a link of a group is gone: an exchange that was to add it stops, and the hosts look for
 * another. Softirq.
 */
void smc_rdma_add_link_lost(struct smc_link *link)
{
	struct smc_lgr_rdma *group = link->group;
	struct smc_rdma_add *add = &group->add;
	bool lasted;

	spin_lock_bh(&group->lock);
	/* A new link that is active does not need the old one any more. */
	if (add->link == link || (add->carrier == link && !(add->link && add->link->active))) {
		WRITE_ONCE(add->broken, true);
		add->deadline = jiffies;
	}
	/* A host that deletes a link for these reasons does not want another one instead. */
	if (link->reason == SMC_LLC_BY_OPERATOR) {
		add->lost = add->wanted = add->request = false;
	} else if (link->reason != SMC_LLC_ASYMMETRIC && smc_rdma_add_retries(group)) {
		lasted = add->link != link && link_has_lasted(link);
		add->lost = true;
		if (lasted)
			add->retry = 0;
		if (group->server && lasted) {
			add->wanted = true;
		} else if (add->step == SMC_RDMA_ADD_NONE) {
			smc_rdma_add_back_off(group);
			smc_rdma_add_queue(group, add->retry);
		}
	}
	smc_rdma_add_resume(group);
	spin_unlock_bh(&group->lock);
}

/*
 * smc_rdma_add_link_active() - a link can be used. If it shares a port, a client asks for a better one soon, however often links were lost
 * before: the stock module, as a server, does not look again by itself (docs/protocol.md, 14). Our server learns by events of a better
 * one. Any context.
 */
void smc_rdma_add_link_active(struct smc_lgr_rdma *group)
{
	struct smc_rdma_add *add = &group->add;

	lockdep_assert_held(&group->lock);
	add->lost = !group->server && smc_rdma_add_retries(group) && smc_lgr_rdma_may_add(group);
	if (add->lost && time_after(add->retry_at, jiffies + RETRY_FIRST))
		add->retry_at = jiffies + RETRY_FIRST;
}

/* smc_rdma_add_retry() - it is time to look for a link that the group lacks. Any context. */
void smc_rdma_add_retry(struct smc_lgr_rdma *group)
{
	struct smc_rdma_add *add = &group->add;

	lockdep_assert_held(&group->lock);
	if (group->server) {
		add->wanted = true;
		return;
	}
	add->lost = smc_lgr_rdma_may_add(group);
	add->request = add->lost;
	smc_rdma_add_back_off(group);
}

/* Client, version 1: an ADD LINK that has the port alone. */
static void send_request_v1(struct smc_link *link, const struct smc_rdma_path *path)
{
	struct smc_llc m = { .type = SMC_LLC_ADD_LINK };

	lockdep_assert_held(&link->group->lock);
	memcpy(m.add_link.mac, path->mac, sizeof(m.add_link.mac));
	memcpy(m.add_link.gid, path->gid, sizeof(m.add_link.gid));
	smc_rdma_llc_send_msg(link, &m);
}

/* Client, version 2: the GIDs of the present link and of the port. */
static void send_request_v2(struct smc_link *link, const struct smc_rdma_path *path)
{
	struct smc_lgr_rdma *group = link->group;
	struct smc_llc m = {
		.type = SMC_LLC_REQUEST_ADD_LINK, .version = group->version, .swapped = group->llc.swapped, .request_add_link.n_gids = 2,
	};
	u8 msg[2 * SMC_LLC_LEN];
	size_t len = smc_llc_encode(&m, msg, sizeof(msg));

	lockdep_assert_held(&group->lock);
	if (WARN_ON_ONCE(!len))
		return;
	smc_llc_gid_set(msg, 0, link->path.gid);
	smc_llc_gid_set(msg, 1, path->gid);
	smc_rdma_llc_send_long(link, msg, len);
}

/*
 * smc_rdma_request_add_link() - client: tells the server of a port for a second link (docs/protocol.md, 7.3 and 7.6). A server that has
 * one, too, sends ADD LINK. While an exchange runs, that may already have chosen another port: then this is done afterwards. May
 * sleep.
 */
void smc_rdma_request_add_link(struct smc_lgr_rdma *group)
{
	struct smc_rdma_path path;
	struct smc_link *link;

	might_sleep();
	/* No link ends meanwhile, and no namespace that has one goes. */
	mutex_lock(&group->end_mutex);
	link = READ_ONCE(group->state) == SMC_LGR_RDMA_READY ? smc_lgr_rdma_get_link(group, NULL) : NULL;
	if (!link || smc_link_make_long_buf(link) || smc_rdma_choose_second(&link->path, NULL, &path))
		goto out;
	spin_lock_bh(&group->lock);
	group->add.request = smc_rdma_add_runs(group);
	if (!group->add.request && smc_lgr_rdma_may_add(group)) {
		if (group->version == 1)
			send_request_v1(link, &path);
		else if (smc_rdma_llc_long_free(link))
			send_request_v2(link, &path);
		/* Else a message is under way to the server, which adds a link now or has just failed to. */
	}
	spin_unlock_bh(&group->lock);
	smc_rdma_dev_put(path.dev);
out:
	smc_link_put(link);
	mutex_unlock(&group->end_mutex);
}

/* smc_rdma_add_port_up() - a port has come up: groups with one link may have a second. */
void smc_rdma_add_port_up(void)
{
	struct smc_lgr *lgr = NULL;

	might_sleep();
	while ((lgr = smc_lgr_next(lgr))) {
		if (lgr->key.ops == &smc_rdma_transport && lgr->key.server)
			smc_rdma_add_want(smc_lgr_rdma_of(lgr));
		else if (lgr->key.ops == &smc_rdma_transport && smc_lgr_rdma_of(lgr)->link_limit > 1)
			smc_rdma_request_add_link(smc_lgr_rdma_of(lgr));
	}
}
