// SPDX-License-Identifier: GPL-2.0-only
/*
 * A port comes up: groups that have one link may get a second. A server begins by itself. A client tells its server of the
 * port (docs/protocol.md, 7.3 and 7.6), which then may send ADD LINK.
 */

#include "../../lgr/lgr.h"
#include "../../wire/llc.h"
#include "rdma.h"

/* Client, version 1: an ADD LINK that has the port alone. */
static void send_invitation(struct smc_link *link, const struct smc_rdma_path *path)
{
	struct smc_llc m = { .type = SMC_LLC_ADD_LINK };

	lockdep_assert_held(&link->group->lock);
	memcpy(m.add_link.mac, path->mac, sizeof(m.add_link.mac));
	memcpy(m.add_link.gid, path->gid, sizeof(m.add_link.gid));
	smc_rdma_llc_send_msg(link, &m);
}

/* Client, version 2: the GIDs of the present link and of the port. */
static void send_request(struct smc_link *link, const struct smc_rdma_path *path)
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
 * smc_rdma_invite() - client: tells the server of a port for a second link (docs/protocol.md, 7.3 and 7.6). A server that has
 * one, too, sends ADD LINK. While an exchange runs, that may already have chosen another port: the server is told afterwards. May
 * sleep.
 */
void smc_rdma_invite(struct smc_lgr_rdma *group)
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
	group->add.invite = smc_rdma_add_runs(group);
	if (!group->add.invite && smc_lgr_rdma_may_add(group)) {
		if (group->version > 1)
			send_request(link, &path);
		else
			send_invitation(link, &path);
	}
	spin_unlock_bh(&group->lock);
	smc_rdma_dev_put(path.dev);
out:
	smc_link_put(link);
	mutex_unlock(&group->end_mutex);
}

/* smc_rdma_add_port_up() - a port has come up: groups with one link may have a second. May sleep. */
void smc_rdma_add_port_up(void)
{
	struct smc_lgr *lgr, *next;

	might_sleep();
	for (lgr = smc_lgr_next(0); lgr; lgr = next) {
		if (lgr->key.ops == &smc_rdma_transport && lgr->key.server)
			smc_rdma_add_want(smc_lgr_rdma_of(lgr));
		else if (lgr->key.ops == &smc_rdma_transport && smc_lgr_rdma_of(lgr)->link_limit > 1)
			smc_rdma_invite(smc_lgr_rdma_of(lgr));
		next = smc_lgr_next(lgr->id);
		smc_lgr_put(lgr);
	}
}
