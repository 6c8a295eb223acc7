// SPDX-License-Identifier: GPL-2.0-only
/*
 * The keys that RMBs have on a new link: both hosts tell them in ADD LINK, or in version 1 by ADD LINK CONTINUATION
 * (docs/protocol.md, 7.3 and 7.4; RFC 7609, A.3.2 and A.3.3).
 */

#include <linux/slab.h>

#include "../../wire/llc.h"
#include "group.h"

/* How long a long message waits until the one before it has arrived. */
#define LONG_TIMEOUT HZ

/*
 * Writes the keys of up to @most RMBs into a message: of those that the peer knows, and whose keys on the new link it has not
 * got. Return: how many there were.
 */
static unsigned int put_pairs(const struct smc_lgr_rdma *group, u8 *msg, unsigned int most)
{
	const struct smc_rdma_add *add = &group->add;
	struct smc_rdma_buf *buf;
	unsigned int n = 0;

	lockdep_assert_held(&group->lock);
	list_for_each_entry(buf, &group->bufs, on_group) {
		struct smc_buf_map *fresh = smc_rdma_buf_map_of(buf, add->link);
		struct smc_llc_pair pair = {
			.known = smc_rdma_buf_map_of(buf, add->carrier)->rkey, .rkey = fresh->rkey, .addr = fresh->addr,
		};

		if (!buf->rmb || !buf->announced || list_empty(&fresh->list) || fresh->key_sent)
			continue;
		if (n < most) {
			smc_llc_pair_set(msg, n, &pair);
			fresh->key_sent = true;
		}
		n++;
	}
	return n;
}

/* Returns the number of RMBs whose keys are still to be sent; a group has SMC_RDMA_RTOKENS at most. */
static unsigned int count_pairs(const struct smc_lgr_rdma *group)
{
	return put_pairs(group, NULL, 0);
}

/* smc_rdma_add_recv_keys() - takes in the keys that a message of the peer's has. Softirq. */
void smc_rdma_add_recv_keys(struct smc_lgr_rdma *group, const struct smc_llc *m, const u8 *msg)
{
	struct smc_rdma_add *add = &group->add;
	struct smc_llc_pair pair;
	unsigned int i;

	for (i = 0; smc_llc_pair_at(m, msg, i, &pair); i++)
		smc_rtoken_add_on(add->carrier, pair.known, add->link, pair.rkey, pair.addr);
}

/* Has the last long message arrived, or is there no use in waiting? */
static bool long_is_free(struct smc_link *link)
{
	bool is_free;

	spin_lock_bh(&link->group->lock);
	is_free = smc_rdma_llc_long_free(link) || link->group->state == SMC_LGR_RDMA_ENDED;
	spin_unlock_bh(&link->group->lock);
	return is_free;
}

/* Has the link that carries the exchange ready for a long message. Return: 0 or a negative errno. */
static int prepare_long(struct smc_lgr_rdma *group)
{
	struct smc_link *carrier = group->add.carrier;
	int rc = smc_link_make_long_buf(carrier);

	if (rc)
		return rc;
	if (!wait_event_timeout(group->llc.flushed, long_is_free(carrier), LONG_TIMEOUT))
		return -ETIMEDOUT;
	return READ_ONCE(group->state) == SMC_LGR_RDMA_ENDED ? -ENOTCONN : 0;
}

/*
 * smc_rdma_add_send_link() - sends our ADD LINK, in version 2 with the keys of all RMBs. Return: 0, -ENOMEM, -ENOTCONN if the
 * link that carries the exchange has ended, or -ETIMEDOUT.
 */
int smc_rdma_add_send_link(struct smc_lgr_rdma *group, bool response)
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

	might_sleep();
	if (!msg)
		return -ENOMEM;
	rc = m.add_link.has_ext ? prepare_long(group) : 0;
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
	put_pairs(group, msg, m.add_link.n_pairs);
	if (!WARN_ON_ONCE(!len))
		smc_rdma_llc_send_long(add->carrier, msg, len);
	spin_unlock_bh(&group->lock);
out:
	kfree(msg);
	return rc;
}

/* smc_rdma_add_send_keys() - sends the next keys of ours, in version 1: two at most. Softirq. */
void smc_rdma_add_send_keys(struct smc_lgr_rdma *group)
{
	struct smc_rdma_add *add = &group->add;
	struct smc_llc m = { .type = SMC_LLC_ADD_LINK_CONTINUATION, .response = !group->server };
	unsigned int left;
	u8 msg[SMC_LLC_LEN];

	spin_lock_bh(&group->lock);
	left = count_pairs(group);
	m.add_link_continuation.link = add->link->id;
	m.add_link_continuation.left = left;
	if (smc_rdma_llc_encode(group, &m, msg)) {
		put_pairs(group, msg, min(left, 2U));
		smc_rdma_llc_send(add->carrier, msg);
	}
	spin_unlock_bh(&group->lock);
}

/* smc_rdma_add_keys_sent() - version 1: have the keys of all RMBs that the peer knows been sent? Softirq. */
bool smc_rdma_add_keys_sent(struct smc_lgr_rdma *group)
{
	bool sent;

	spin_lock_bh(&group->lock);
	sent = !count_pairs(group);
	spin_unlock_bh(&group->lock);
	return sent;
}
