// SPDX-License-Identifier: GPL-2.0-only
/* The link that an exchange adds to a group (llc_add.c): its port, and both ends of it. */

#include "../../net.h"
#include "../../wire/llc.h"
#include "group.h"

/* smc_rdma_add_set_peer() - sets the peer's end of the new link, as its ADD LINK states it. Work of the exchange. */
void smc_rdma_add_set_peer(struct smc_link *link, const struct smc_llc_add_link *a)
{
	link->peer = (struct smc_link_peer){ .qpn = a->qpn, .psn = a->psn, .mtu_code = a->mtu_code };
	memcpy(link->peer.gid, a->gid, sizeof(link->peer.gid));
	memcpy(link->peer.mac, a->mac, sizeof(link->peer.mac));
	memcpy(link->peer.clc_gid, a->gid, sizeof(link->peer.clc_gid));
	memcpy(link->peer.clc_mac, a->mac, sizeof(link->peer.clc_mac));
}

static void set_link(struct smc_lgr_rdma *group, struct smc_link *link)
{
	spin_lock_bh(&group->lock);
	group->add.link = link;
	spin_unlock_bh(&group->lock);
}

/**
 * smc_rdma_add_make_link() - makes this host's end of the new link, in a slot of the group, with all buffers mapped
 * @group: gets it as the link of its exchange, even if the buffers cannot be mapped
 * @path: the port
 * @peer: a client: the server's end, by its ADD LINK; a server: NULL
 *
 * Work of the exchange. Return: 0 or a negative errno; -ENETDOWN if the port has gone meanwhile.
 */
int smc_rdma_add_make_link(struct smc_lgr_rdma *group, const struct smc_rdma_path *path, const struct smc_llc_add_link *peer)
{
	struct smc_link *link = smc_link_new(group, path, smc_net(group->lgr->key.net)->sysctl);
	int rc;

	might_sleep();
	if (IS_ERR(link))
		return PTR_ERR(link) == -ENODEV ? -ENETDOWN : PTR_ERR(link);
	if (peer) {
		link->id = peer->link;
		smc_rdma_add_set_peer(link, peer);
	}
	smc_link_get(link);
	/* Before the link has a slot: it may be lost at once. */
	set_link(group, link);
	if (!smc_lgr_rdma_add_link(group, link, !peer)) {
		set_link(group, NULL);
		/* Not smc_link_discard(): the link's work may wait for this one to end. */
		smc_link_end(link);
		smc_link_put(link);
		smc_link_put(link);
		return -ENOSPC;
	}
	rc = peer ? smc_link_to_rtr(link) : 0;
	return rc ?: smc_lgr_rdma_map_bufs(link);
}

/**
 * smc_rdma_add_choose_path() - chooses the port for the new link: another one, or the same if the peer has another
 * @group: of the exchange; a third link is to share no port with the one that carries that
 * @peer: a client: the server's end, by its ADD LINK; a server: NULL
 * @path: gets the port, with a reference on its device
 *
 * Work of the exchange. Return: 0, -ENODEV, also if that would be parallel to another link, or -ENOTCONN if the link that carries the
 * exchange has ended.
 */
int smc_rdma_add_choose_path(struct smc_lgr_rdma *group, const struct smc_llc_add_link *peer, struct smc_rdma_path *path)
{
	struct smc_link *carrier = group->add.carrier;
	bool second;
	int rc = 0;

	might_sleep();
	spin_lock_bh(&group->lock);
	second = smc_lgr_rdma_has_slot(group);
	spin_unlock_bh(&group->lock);
	/* The link that carries the exchange has its device until it ends. */
	mutex_lock(&group->end_mutex);
	if (carrier->gone) {
		rc = -ENOTCONN;
	} else if (smc_rdma_choose_second(&carrier->path, peer ? peer->gid : NULL, path)) {
		if (second) {
			*path = carrier->path;
			smc_rdma_dev_get(path->dev);
		} else {
			rc = -ENODEV;
		}
	}
	mutex_unlock(&group->end_mutex);
	if (!rc && peer && smc_lgr_rdma_is_parallel(group, path, peer)) {
		smc_rdma_dev_put(path->dev);
		rc = -ENODEV;
	}
	return rc;
}
