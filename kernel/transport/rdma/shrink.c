// SPDX-License-Identifier: GPL-2.0-only
/*
 * Freeing buffers of a group that no connection has: a send ring at once, an RMB when the peer has forgotten its key
 * (RFC 7609, 4.4.2). The timer of LLC does both, because no link of the group ends while it runs.
 */

#include "../../lgr/lgr.h"
#include "group.h"

/*
 * smc_lgr_rdma_shrink() - lgr_shrink of the transport. The peer is asked to forget one RMB after the other; the rest can be used
 * meanwhile. Softirq.
 */
void smc_lgr_rdma_shrink(struct smc_lgr *lgr)
{
	struct smc_lgr_rdma *group = smc_lgr_rdma_of(lgr);

	spin_lock_bh(&group->lock);
	if (group->state == SMC_LGR_RDMA_READY) {
		group->spare_rmbs = SMC_RDMA_RTOKENS;
		group->shrinks = true;
		smc_rdma_llc_mod_timer(group, 0);
	}
	spin_unlock_bh(&group->lock);
}

/* Takes a ring that no connection has, and that no adapter sends from any more, from the group. NULL if there is none. */
static struct smc_rdma_buf *take_ring(struct smc_lgr_rdma *group)
{
	struct smc_rdma_buf *ring, *found = NULL;

	spin_lock_bh(&group->lock);
	list_for_each_entry(ring, &group->sndbufs, list) {
		if (!smc_lgr_rdma_adapters_done(group, ring))
			continue;
		found = ring;
		break;
	}
	if (found) {
		list_del_init(&found->list);
		list_del_init(&found->on_group);
		group->bytes[false] -= found->size;
	}
	spin_unlock_bh(&group->lock);
	return found;
}

/* smc_lgr_rdma_drop_rings() - frees rings that no connection has, if memory is short. Called by the timer. */
void smc_lgr_rdma_drop_rings(struct smc_lgr_rdma *group)
{
	struct smc_rdma_buf *ring;
	bool shrinks;

	might_sleep();
	spin_lock_bh(&group->lock);
	shrinks = group->shrinks && group->state == SMC_LGR_RDMA_READY;
	group->shrinks = false;
	spin_unlock_bh(&group->lock);
	while (shrinks && (ring = take_ring(group)))
		smc_lgr_rdma_drop_buf(group, ring);
}

/*
 * smc_lgr_rdma_drop_buf() - frees a buffer that is on no list of the group, an RMB after the peer has forgotten it. No link of
 * the group ends meanwhile.
 */
void smc_lgr_rdma_drop_buf(struct smc_lgr_rdma *group, struct smc_rdma_buf *buf)
{
	struct smc_buf_map *map;
	bool mapped;

	might_sleep();
	mutex_lock(&group->map_mutex);
	for (map = buf->maps; map < buf->maps + ARRAY_SIZE(buf->maps); map++) {
		spin_lock_bh(&group->lock);
		mapped = !list_empty(&map->list);
		list_del_init(&map->list);
		spin_unlock_bh(&group->lock);
		if (mapped)
			smc_rdma_buf_unmap(map);
	}
	mutex_unlock(&group->map_mutex);
	smc_rdma_buf_free(buf);
}
