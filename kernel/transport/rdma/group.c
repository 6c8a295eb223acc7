// SPDX-License-Identifier: GPL-2.0-only
/* The part of a link group that is SMC-R's: its formation, links, buffers and end. */

#include <linux/slab.h>

#include "../../control/sysctl.h"
#include "../../net.h"
#include "group.h"

/* smc_lgr_rdma_init() - lgr_init of the transport. Return: 0 or -ENOMEM. */
int smc_lgr_rdma_init(struct smc_lgr *lgr)
{
	struct smc_lgr_rdma *group = kvzalloc(sizeof(*group), GFP_KERNEL);

	might_sleep();
	if (!group)
		return -ENOMEM;
	group->lgr = lgr;
	group->server = lgr->key.server;
	group->version = lgr->key.version;
	group->buf_type = READ_ONCE(smc_net(lgr->key.net)->sysctl->smcr_buf_type);
	spin_lock_init(&group->lock);
	__set_bit(0, group->rmb_ids);
	xa_init_flags(&group->conns, XA_FLAGS_LOCK_BH);
	mutex_init(&group->end_mutex);
	mutex_init(&group->map_mutex);
	smc_rdma_add_init(group);
	smc_rdma_balance_init(group);
	INIT_LIST_HEAD(&group->bufs);
	INIT_LIST_HEAD(&group->waiting);
	INIT_LIST_HEAD(&group->large);
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

/*
 * smc_lgr_rdma_fits() - lgr_fits of the transport. The hint is the server's ACCEPT, or NULL for a server, whose
 * connections also wait for a group that is being formed.
 */
bool smc_lgr_rdma_fits(const struct smc_lgr *lgr, const struct smc_lgr_ends *ends, const void *hint)
{
	struct smc_lgr_rdma *group = smc_lgr_rdma_of(lgr);
	bool fits = false;

	smc_lgr_assert_table_locked();
	spin_lock_bh(&group->lock);
	if (group->state == SMC_LGR_RDMA_FORMING)
		fits = !hint && smc_lgr_same_ends(&lgr->key.ends, ends);
	else if (group->state == SMC_LGR_RDMA_READY && !smc_rdma_llc_closing(group))
		fits = smc_lgr_rdma_find_link(group, hint) &&
		       (hint || smc_lgr_same_ends(&lgr->key.ends, ends) || smc_lgr_rdma_serves(group, ends));
	/* A client has no choice. It waits for an RMB. */
	fits = fits && (hint || smc_lgr_rdma_has_quiet_rmb(group));
	spin_unlock_bh(&group->lock);
	return fits;
}

/*
 * smc_lgr_rdma_wake_locked() - has the rendezvous that wait in a group look again. The lock keeps them from going. Any
 * context.
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
	struct smc_link *link;

	spin_lock_bh(&group->lock);
	if (group->state == SMC_LGR_RDMA_FORMING) {
		WRITE_ONCE(group->state, SMC_LGR_RDMA_READY);
		smc_for_each_link(group, link) {
			link->active = true;
			link->active_since = jiffies;
			group->last_id = link->id;
			smc_rdma_llc_watch_link(link);
		}
	}
	smc_lgr_rdma_wake_locked(group);
	spin_unlock_bh(&group->lock);
}

/* smc_lgr_rdma_uncount() - gives the number of an RMB back; 0 is no number. Any context. */
void smc_lgr_rdma_uncount(struct smc_lgr_rdma *group, u8 id)
{
	lockdep_assert_held(&group->lock);
	if (!id)
		return;
	__clear_bit(id, group->rmb_ids);
	WRITE_ONCE(group->n_rmbs, group->n_rmbs - 1);
}

/*
 * Maps a buffer for a link, unless it is mapped already. Return: 0, -ENOMEM and the like, -ENOTCONN if the link has ended.
 */
static int map_for(struct smc_rdma_buf *buf, struct smc_link *link)
{
	struct smc_buf_map *map = smc_rdma_buf_map_of(buf, link);
	int rc = 0;

	lockdep_assert_held(&link->group->map_mutex);
	down_read(&link->map_rwsem);
	if (link->gone)
		rc = -ENOTCONN;
	else if (list_empty(&map->list))
		rc = smc_rdma_buf_map(buf, link);
	if (!rc && list_empty(&map->list)) {
		spin_lock_bh(&link->group->lock);
		list_add(&map->list, &link->maps);
		spin_unlock_bh(&link->group->lock);
	}
	up_read(&link->map_rwsem);
	return rc;
}

/*
 * Maps a fresh buffer for the other links of its group, too. A link that comes later is not among them, but finds the
 * buffer on group->bufs. The link whose adapter cannot have it fails, because all connections may have to move there.
 */
static void map_for_others(struct smc_lgr_rdma *group, struct smc_rdma_buf *buf)
{
	struct smc_link *link;
	unsigned int slot;
	int rc;

	mutex_lock(&group->map_mutex);
	for (slot = 0; slot < SMC_LINKS_PER_LGR_MAX; slot++) {
		link = smc_lgr_rdma_link_at(group, slot);
		rc = link ? map_for(buf, link) : 0;
		if (rc && rc != -ENOTCONN)
			smc_link_fail(link, SMC_LINK_NOT_REGISTERED, 0);
		smc_link_put(link);
	}
	mutex_unlock(&group->map_mutex);
}

/* Returns a buffer of the group that is not mapped for a link. */
static struct smc_rdma_buf *next_unmapped(struct smc_lgr_rdma *group, const struct smc_link *link)
{
	struct smc_rdma_buf *buf, *found = NULL;

	spin_lock_bh(&group->lock);
	list_for_each_entry(buf, &group->bufs, on_group) {
		if (!list_empty(&smc_rdma_buf_map_of(buf, link)->list))
			continue;
		found = buf;
		break;
	}
	spin_unlock_bh(&group->lock);
	return found;
}

/*
 * smc_lgr_rdma_map_bufs() - maps all buffers of a group for a link that it has just got. Return: 0, -ENOMEM and
 * the like.
 */
int smc_lgr_rdma_map_bufs(struct smc_link *link)
{
	struct smc_lgr_rdma *group = link->group;
	struct smc_rdma_buf *buf;
	int rc = 0;

	might_sleep();
	mutex_lock(&group->map_mutex);
	while (!rc && (buf = next_unmapped(group, link)))
		rc = map_for(buf, link);
	mutex_unlock(&group->map_mutex);
	return rc;
}

/* Returns a buffer that is mapped for a link, and not registered, although it has to be. */
static struct smc_rdma_buf *next_unregistered(struct smc_lgr_rdma *group, const struct smc_link *link)
{
	struct smc_rdma_buf *buf, *found = NULL;

	lockdep_assert_held(&group->map_mutex);

	spin_lock_bh(&group->lock);
	list_for_each_entry(buf, &group->bufs, on_group) {
		const struct smc_buf_map *map = smc_rdma_buf_map_of(buf, link);

		/* After DELETE RKEY, the next connection that gets the RMB registers it. */
		if (list_empty(&map->list) || !map->mr || READ_ONCE(map->registered) || buf == group->deleted_rmb)
			continue;
		found = buf;
		found->registering = true;
		break;
	}
	spin_unlock_bh(&group->lock);
	return found;
}

/*
 * smc_lgr_rdma_register_bufs() - registers all buffers of a group with the adapter of a link that can send.
 * Return: 0 or a negative errno.
 */
int smc_lgr_rdma_register_bufs(struct smc_link *link)
{
	struct smc_rdma_buf *buf;
	int rc = 0;

	might_sleep();
	mutex_lock(&link->group->map_mutex);
	while (!rc && (buf = next_unregistered(link->group, link))) {
		rc = smc_link_register(link, buf);
		spin_lock_bh(&link->group->lock);
		buf->registering = false;
		spin_unlock_bh(&link->group->lock);
		if (rc != -EAGAIN)
			continue;
		schedule_timeout_uninterruptible(1);
		rc = 0;
	}
	mutex_unlock(&link->group->map_mutex);
	return rc;
}

/*
 * smc_lgr_rdma_register_buf() - registers a buffer of a connection with the adapters of all links that can send, beginning
 * with the connection's. Another link whose adapter refuses it fails. Return: as smc_link_register() does.
 */
int smc_lgr_rdma_register_buf(struct smc_link *link, struct smc_rdma_buf *buf)
{
	struct smc_lgr_rdma *group = link->group;
	struct smc_link *other;
	unsigned int slot;
	int rc = smc_link_register(link, buf);

	might_sleep();
	for (slot = 0; slot < SMC_LINKS_PER_LGR_MAX && !rc; slot++) {
		other = smc_lgr_rdma_link_at(group, slot);
		if (other && other != link && smc_link_usable(other))
			rc = smc_link_register(other, buf);
		/* A link that is down has no connections any more. */
		if (rc == -ENOTCONN)
			rc = 0;
		smc_link_put(other);
	}
	return rc;
}

/*
 * Maps a fresh buffer, and lists it. Mapping may take long, so other connections use the link meanwhile, and only the end of the link
 * waits. If the link ends next, the buffer is already on `maps`, and will be unmapped. Return: 0, -ENOTCONN if the link has ended,
 * -ENOMEM and the like.
 */
static int place_buf(struct smc_link *link, struct smc_rdma_buf *buf)
{
	struct smc_lgr_rdma *group = link->group;
	int rc;

	might_sleep();
	down_read(&link->map_rwsem);
	rc = link->gone ? -ENOTCONN : smc_rdma_buf_map(buf, link);
	if (!rc) {
		spin_lock_bh(&group->lock);
		list_add(&smc_rdma_buf_map_of(buf, link)->list, &link->maps);
		list_add(&buf->on_group, &group->bufs);
		group->bytes[buf->rmb] += buf->size;
		spin_unlock_bh(&group->lock);
	}
	up_read(&link->map_rwsem);
	return rc;
}

/* Makes a buffer of a size for a connection: reserves memory, gets it, and has the link's adapter map it. */
static struct smc_rdma_buf *new_buf(struct smc_link *link, struct smc_memory_pool *pool, u8 id, u8 code, u8 asked)
{
	enum smc_memory_kind kind = smc_rdma_buf_kind(id);
	struct smc_rdma_buf *buf;
	int rc = smc_memory_reserve(pool, kind, smc_rdma_buf_memory(code));

	if (rc)
		return ERR_PTR(rc);
	buf = smc_rdma_buf_new(id, code, link->group->buf_type);
	if (!IS_ERR(buf)) {
		buf->id = id;
		buf->asked = asked;
		rc = place_buf(link, buf);
		if (!rc)
			return buf;
		smc_rdma_buf_discard(buf);
		buf = ERR_PTR(rc);
	}
	smc_memory_release(pool, kind, smc_rdma_buf_memory(code));
	return buf;
}

/* Makes a buffer for a connection; an RMB has its number already, a send ring has 0. */
static struct smc_rdma_buf *make_buf(struct smc_link *link, struct smc_memory_pool *pool, u8 id, u8 asked)
{
	struct smc_lgr_rdma *group = link->group;
	struct smc_rdma_buf *buf;
	u8 code = asked;

	/* There may be memory for less, or the adapter take it in fewer pieces. */
	do
		buf = new_buf(link, pool, id, code, asked);
	while (IS_ERR(buf) && PTR_ERR(buf) != -ENOTCONN && code--);
	if (!IS_ERR(buf)) {
		if (group->link_limit > 1)
			map_for_others(group, buf);
		return buf;
	}
	spin_lock_bh(&group->lock);
	smc_lgr_rdma_uncount(group, id);
	spin_unlock_bh(&group->lock);
	return buf;
}

/* smc_lgr_rdma_adapters_done() - has each link's adapter registered a buffer, and sent all data of a ring? Any context. */
bool smc_lgr_rdma_adapters_done(const struct smc_lgr_rdma *group, struct smc_rdma_buf *buf)
{
	struct smc_link *link;

	lockdep_assert_held(&group->lock);
	smc_for_each_link(group, link)
		if (!smc_link_passed(link, smc_rdma_buf_map_of(buf, link)->busy))
			return false;
	return !buf->registering;
}

/* A ring that another connection had, and that no adapter sends from any more. */
static struct smc_rdma_buf *idle_ring(struct smc_lgr_rdma *group, u8 code)
{
	struct smc_rdma_buf *buf;

	lockdep_assert_held(&group->lock);
	list_for_each_entry(buf, &group->sndbufs, list)
		if (buf->asked == code && smc_lgr_rdma_adapters_done(group, buf))
			return buf;
	return NULL;
}

/*
 * A connection gets a buffer that another one had, unless its namespace is at its ceiling. Return: the buffer, or
 * ERR_PTR(-EDQUOT).
 */
static struct smc_rdma_buf *reuse_buf(struct smc_lgr_rdma *group, struct smc_memory_pool *pool, struct smc_rdma_buf *buf)
{
	bool added;

	if (!smc_memory_reuse(pool, smc_rdma_buf_kind(buf->rmb), smc_rdma_buf_memory(buf->code))) {
		buf->reused = true;
		smc_rdma_buf_clear(buf);
		return buf;
	}
	spin_lock_bh(&group->lock);
	added = smc_lgr_rdma_add_idle(group, buf, buf->rmb ? &group->rmbs : &group->sndbufs);
	spin_unlock_bh(&group->lock);
	if (!added)
		smc_rdma_buf_free(buf);
	return ERR_PTR(-EDQUOT);
}

/*
 * smc_lgr_rdma_buf() - returns an RMB or a send ring for a connection over a link: one that another connection had, or
 * a new one. If memory is short, or near a ceiling, it is smaller than the code says. The pool is that of the
 * connection's namespace. Return: the buffer, ERR_PTR(-EDQUOT) at a ceiling, ERR_PTR(-EXFULL) if an RMB will be quiet soon, or
 * ERR_PTR(-ENOMEM) and the like.
 */
struct smc_rdma_buf *smc_lgr_rdma_buf(struct smc_link *link, struct smc_memory_pool *pool, bool rmb, u8 code)
{
	struct smc_lgr_rdma *group = link->group;
	struct smc_rdma_buf *found;
	bool full, waits;
	u8 id = 0;

	might_sleep();
	code = smc_memory_code(pool, code, SMC_RDMA_CODE_PAGE);
	spin_lock_bh(&group->lock);
	full = rmb && group->n_rmbs >= SMC_RDMA_RTOKENS;
	found = rmb ? smc_lgr_rdma_idle_rmb(group, code, full) : idle_ring(group, code);
	waits = !found && full && smc_lgr_rdma_has_rmb(group);
	if (found) {
		list_del_init(&found->list);
		found->moved_to = 0;
	}
	if (!found && !full && rmb) {
		id = find_first_zero_bit(group->rmb_ids, SMC_RDMA_RTOKENS + 1);
		__set_bit(id, group->rmb_ids);
		WRITE_ONCE(group->n_rmbs, group->n_rmbs + 1);
	}
	spin_unlock_bh(&group->lock);
	if (found)
		return reuse_buf(group, pool, found);
	if (full)
		return ERR_PTR(waits ? -EXFULL : -ENOSPC);
	return make_buf(link, pool, id, code);
}

/*
 * smc_lgr_rdma_take_large() - sets rc->large if fewer connections of the same namespace than @most have large buffers;
 * smc_lgr_rdma_put_large() undoes that. Softirq.
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

/* smc_lgr_rdma_put_large() - the connection is over, with large buffers or without. Softirq. */
void smc_lgr_rdma_put_large(struct smc_lgr_rdma *group, struct smc_rdma_conn *rc)
{
	spin_lock_bh(&group->lock);
	list_del_init(&rc->on_large);
	spin_unlock_bh(&group->lock);
}

/*
 * smc_lgr_rdma_add_idle() - puts a buffer that no connection has on a list of the group. Any context. Return: false if the
 * group has ended, and the caller frees the buffer.
 */
bool smc_lgr_rdma_add_idle(struct smc_lgr_rdma *group, struct smc_rdma_buf *buf, struct list_head *list)
{
	lockdep_assert_held(&group->lock);
	if (!group->detached) {
		list_move(&buf->list, list);
		return true;
	}
	list_del_init(&buf->list);
	list_del_init(&buf->on_group);
	return false;
}

/*
 * smc_lgr_rdma_put_snd() - a connection gives its send ring back; if @sent, the link may still be sending from it. Softirq.
 */
void smc_lgr_rdma_put_snd(struct smc_link *link, struct smc_memory_pool *pool, struct smc_rdma_buf *snd, bool sent)
{
	struct smc_lgr_rdma *group = link->group;
	bool added;

	smc_memory_idle(pool, SMC_MEMORY_SNDBUF, smc_rdma_buf_memory(snd->code));
	spin_lock_bh(&group->lock);
	/* A link that has ended has left its slot, perhaps to another. */
	if (sent && group->links[link->slot] == link && !list_empty(&smc_rdma_buf_map_of(snd, link)->list))
		smc_rdma_buf_map_of(snd, link)->busy = smc_link_position(link);
	added = smc_lgr_rdma_add_idle(group, snd, &group->sndbufs);
	spin_unlock_bh(&group->lock);
	if (!added)
		smc_rdma_buf_free(snd);
}

/*
 * Frees the buffers that no connection has. Each of the others is freed when it is given back, because a program may
 * keep a dead socket, and with it the group, for long.
 */
static void free_idle_bufs(struct smc_lgr_rdma *group)
{
	struct smc_rdma_buf *buf, *next;
	LIST_HEAD(spare);

	spin_lock_bh(&group->lock);
	group->detached = true;
	group->deleted_rmb = NULL;
	list_splice_init(&group->rmbs, &spare);
	list_splice_init(&group->sndbufs, &spare);
	list_for_each_entry_safe(buf, next, &group->rmbs_pending, list)
		if (!buf->held)
			list_move(&buf->list, &spare);
	list_for_each_entry(buf, &spare, list)
		list_del_init(&buf->on_group);
	spin_unlock_bh(&group->lock);
	list_for_each_entry_safe(buf, next, &spare, list)
		smc_rdma_buf_free(buf);
}

/* smc_lgr_rdma_delete_link() - lgr_delete_link of the transport. Softirq. */
void smc_lgr_rdma_delete_link(struct smc_lgr *lgr)
{
	struct smc_lgr_rdma *group = smc_lgr_rdma_of(lgr);

	spin_lock_bh(&group->lock);
	if (group->state == SMC_LGR_RDMA_READY)
		smc_rdma_llc_delete_link(group);
	spin_unlock_bh(&group->lock);
}

/* smc_lgr_rdma_flush() - lgr_flush of the transport. */
void smc_lgr_rdma_flush(struct smc_lgr *lgr, unsigned long until)
{
	struct smc_lgr_rdma *group = smc_lgr_rdma_of(lgr);

	might_sleep();
	smc_rdma_llc_flush(group, until);
}

/*
 * smc_lgr_rdma_end() - lgr_end of the transport: no connection joins any more, the peer gets DELETE LINK, the links end, and
 * with them the peer's access to our memory.
 */
void smc_lgr_rdma_end(struct smc_lgr *lgr)
{
	struct smc_lgr_rdma *group = smc_lgr_rdma_of(lgr);
	unsigned int i;

	might_sleep();
	spin_lock_bh(&group->lock);
	WRITE_ONCE(group->state, SMC_LGR_RDMA_ENDED);
	smc_lgr_rdma_wake_locked(group);
	spin_unlock_bh(&group->lock);
	smc_rdma_balance_end(group);
	smc_rdma_add_end(group);
	smc_rdma_llc_end(group);
	smc_lgr_rdma_end_late(group);
	/* A group that has ended gets no more links, and keeps those that it has. The mutex waits for one that is ending. */
	mutex_lock(&group->end_mutex);
	for (i = 0; i < SMC_LINKS_PER_LGR_MAX; i++)
		if (group->links[i] && !group->links[i]->gone)
			smc_link_stop(group->links[i]);
	for (i = 0; i < SMC_LINKS_PER_LGR_MAX; i++)
		if (group->links[i])
			smc_link_finish(group->links[i]);
	mutex_unlock(&group->end_mutex);
	free_idle_bufs(group);
}

/* smc_lgr_rdma_free() - lgr_free of the transport: the group has ended, and no connection is left. Softirq. */
void smc_lgr_rdma_free(struct smc_lgr *lgr)
{
	struct smc_lgr_rdma *group = smc_lgr_rdma_of(lgr);
	unsigned int i;

	xa_destroy(&group->conns);
	for (i = 0; i < SMC_LINKS_PER_LGR_MAX; i++)
		smc_link_put(group->links[i]);
	kvfree(group);
}
