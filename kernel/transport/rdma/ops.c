// SPDX-License-Identifier: GPL-2.0-only
/*
 * SMC-R as a transport. match and attach go as far as they get without waiting for the peer, and are called again when the
 * group has news: see smc_rdma_wait().
 */

#include <linux/etherdevice.h>
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "../../control/sysctl.h"
#include "../../net.h"
#include "../../wire/reason.h"
#include "rdma.h"

#define LARGE_CODE_MAX 6	/* 1 MiB */

static int is_active(struct smc_rdma_dev *dev, void *arg)
{
	unsigned int i;

	for (i = 0; i < dev->n_ports; i++)
		if (READ_ONCE(dev->ports[i].active))
			return 1;
	return 0;
}

static void rdma_local(struct smc_local *l)
{
	l->r1 = smc_rdma_dev_walk(is_active, NULL);
	l->r2 = l->r1;
}

/* smc_rdma_offer_new() - begins SMC-R's part of a rendezvous. Return: NULL without memory. */
struct smc_rdma_offer *smc_rdma_offer_new(struct smc_offer *offer)
{
	struct smc_rdma_offer *ro = kzalloc(sizeof(*ro), GFP_KERNEL_ACCOUNT);

	might_sleep();
	if (!ro)
		return NULL;
	INIT_LIST_HEAD(&ro->list);
	INIT_LIST_HEAD(&ro->call.list);
	ro->offer = offer;
	ro->last = jiffies + SMC_RDMA_LLC_WAIT;
	offer->opaque[SMC_ROLE_R] = ro;
	return ro;
}

static unsigned long min_time(unsigned long a, unsigned long b)
{
	return time_before(a, b) ? a : b;
}

/*
 * smc_rdma_wait() - has the rendezvous called again when its group has news, when a time in jiffies has passed, or at
 * ro->last, before the peer gives up. The caller looks for news after this. Softirq.
 */
void smc_rdma_wait(struct smc_rdma_offer *ro, unsigned long timeout)
{
	struct smc_lgr_rdma *group = smc_lgr_rdma_of(ro->lgr);

	ro->deadline = min_time(jiffies + timeout, ro->last);
	ro->offer->deadline = ro->deadline;
	spin_lock_bh(&group->lock);
	if (list_empty(&ro->list))
		list_add_tail(&ro->list, &group->waiting);
	spin_unlock_bh(&group->lock);
}

/* smc_rdma_stop_waiting() - ends smc_rdma_wait(): no news of the group wakes the rendezvous any more. Softirq. */
void smc_rdma_stop_waiting(struct smc_rdma_offer *ro)
{
	struct smc_lgr_rdma *group = smc_lgr_rdma_of(ro->lgr);

	spin_lock_bh(&group->lock);
	list_del_init(&ro->list);
	spin_unlock_bh(&group->lock);
}

/* smc_rdma_timed_out() - has the rendezvous waited for too long? */
bool smc_rdma_timed_out(const struct smc_rdma_offer *ro)
{
	return !time_before(jiffies, ro->deadline);
}

/* Returns the code of the size that an application or administrator asks for. */
static u8 size_code(u64 want)
{
	want = clamp_t(u64, want, SMC_RDMA_SIZE_MIN, (u64)SMC_RDMA_SIZE_MIN << SMC_RDMA_CODE_MAX);
	return order_base_2(want) - order_base_2(SMC_RDMA_SIZE_MIN);
}

/* Large buffers have four times the configured size, but no more than 1 MiB because of that. */
static u8 default_code(unsigned int set, bool large)
{
	u8 code = size_code(set);

	return large ? max_t(u8, code, min_t(u8, code + 2, LARGE_CODE_MAX)) : code;
}

static u8 rmb_code(const struct sock *sk, bool large)
{
	if (sk->sk_userlocks & SOCK_RCVBUF_LOCK)
		return size_code(READ_ONCE(sk->sk_rcvbuf) / 2);
	return default_code(smc_sysctl_rmem(smc_net(sock_net(sk))), large);
}

static u8 snd_code(const struct sock *sk, bool large)
{
	if (sk->sk_userlocks & SOCK_SNDBUF_LOCK)
		return size_code(READ_ONCE(sk->sk_sndbuf) / 2);
	return default_code(smc_sysctl_wmem(smc_net(sock_net(sk))), large);
}

/* Returns the reason for an error of allocating memory or making a link. */
static int memory_reason(int err)
{
	if (err == -ENODEV || err == -ENOTCONN)
		return SMC_REASON_NO_ACTIVE_LINK;
	return err == -EDQUOT ? SMC_REASON_MEM_LIMIT : SMC_REASON_MEM;
}

/* smc_rdma_form() - makes the first link of a group that the rendezvous forms. Return: 0 or a reason. */
int smc_rdma_form(struct smc_rdma_offer *ro, const struct smc_rdma_path *path)
{
	struct smc_lgr_rdma *group = smc_lgr_rdma_of(ro->lgr);
	struct smc_link *link = smc_link_new(group, path, smc_net(ro->lgr->key.net)->sysctl);

	might_sleep();
	if (IS_ERR(link))
		return memory_reason(PTR_ERR(link));
	strscpy(ro->lgr->device, path->dev->ib->name, sizeof(ro->lgr->device));
	if (!smc_lgr_rdma_add_link(group, link, false)) {
		smc_link_discard(link);
		return SMC_REASON_NO_ACTIVE_LINK;
	}
	ro->link = smc_link_get(link);
	return 0;
}

/*
 * Returns how many connections of a namespace may have large buffers in a group; 0 if the application has set both
 * sizes.
 */
static unsigned int large_conns(const struct sock *sk)
{
	/* The application has set both sizes. */
	if (!(~sk->sk_userlocks & (SOCK_RCVBUF_LOCK | SOCK_SNDBUF_LOCK)))
		return 0;
	return READ_ONCE(smc_net(sock_net(sk))->sysctl->smcr_large_conns_per_lgr);
}

static int get_bufs(struct smc_rdma_conn *rc, const struct sock *sk)
{
	struct smc_lgr_rdma *group = rc->group;
	int err;

	smc_lgr_rdma_take_large(group, rc, large_conns(sk));
	rc->rmb_code = rmb_code(sk, rc->large);
	rc->snd_code = snd_code(sk, rc->large);
	rc->rmb = smc_lgr_rdma_buf(rc->link, rc->memory, true, rc->rmb_code);
	err = PTR_ERR_OR_ZERO(rc->rmb);
	if (err)
		goto err_large;
	rc->snd = smc_lgr_rdma_buf(rc->link, rc->memory, false, rc->snd_code);
	err = PTR_ERR_OR_ZERO(rc->snd);
	if (!err)
		return 0;
	smc_lgr_rdma_retire_rmb(group, rc->rmb, 0, true);
	smc_lgr_rdma_put_rmb(group, rc->memory, rc->rmb);
err_large:
	smc_lgr_rdma_put_large(group, rc);
	return err;
}

/* Frees a connection that nobody uses any more. How much of its buffers was used is known. */
static void free_conn(struct smc_rdma_conn *rc)
{
	rc->rmb->used = min_t(u64, rc->rx.prod.pos, rc->rmb->size);
	rc->snd->used = rc->conn ? min_t(u64, rc->conn->tx_prod, rc->snd->size) : 0;
	smc_lgr_rdma_put_rmb(rc->group, rc->memory, rc->rmb);
	smc_lgr_rdma_put_snd(rc->link, rc->memory, rc->snd, rc->tx.prod.pos);
	smc_lgr_rdma_put_large(rc->group, rc);
	smc_memory_pool_put(rc->memory);
	smc_link_put(rc->link);
	kfree(rc);
}

/* Makes a connection with its buffers, which is not in its group yet. Returns ERR_PTR(-EDQUOT) at a ceiling. */
static struct smc_rdma_conn *alloc_conn(struct smc_rdma_offer *ro)
{
	struct smc_rdma_conn *rc = kzalloc(sizeof(*rc), GFP_KERNEL_ACCOUNT);
	int err;

	if (!rc)
		return ERR_PTR(-ENOMEM);
	rc->group = ro->link->group;
	rc->link = smc_link_get(ro->link);
	rc->net = sock_net(ro->offer->sk);
	rc->memory = smc_memory_pool_get(smc_net(rc->net));
	INIT_LIST_HEAD(&rc->on_large);
	smc_rdma_cdc_init(rc);
	err = get_bufs(rc, ro->offer->sk);
	if (err) {
		smc_memory_pool_put(rc->memory);
		smc_link_put(rc->link);
		kfree(rc);
		return ERR_PTR(err);
	}
	return rc;
}

/* Messages of the peer do not find a connection any more. Softirq. */
static void unpublish_conn(struct smc_rdma_conn *rc)
{
	RCU_INIT_POINTER(rc->group->by_rmb[rc->rmb->id], NULL);
	xa_erase_bh(&rc->group->conns, rc->conn->member.token);
}

/* From here on, messages of the peer find a connection. Return: 0 or a reason. */
static int publish_conn(struct smc_rdma_conn *rc)
{
	struct smc_conn *conn = rc->conn;
	bool ended;

	might_sleep();
	if (xa_err(xa_store_bh(&rc->group->conns, conn->member.token, conn, GFP_KERNEL)))
		return SMC_REASON_MEM;
	rcu_assign_pointer(rc->group->by_rmb[rc->rmb->id], rc);
	/* Its namespace may have ended since it became a member, and have released it before it could be found. */
	spin_lock_bh(&conn->lock);
	ended = conn->state == SMC_CLOSE_CLOSED;
	spin_unlock_bh(&conn->lock);
	if (!ended)
		return 0;
	unpublish_conn(rc);
	return SMC_REASON_NO_ACTIVE_LINK;
}

/*
 * smc_rdma_make_conn() - makes a connection in the place that the rendezvous has in a group, over its link.
 * Return: 0, -EXFULL if the group, which this rendezvous does not form, has no RMB for it yet, or a reason.
 */
int smc_rdma_make_conn(struct smc_rdma_offer *ro)
{
	struct smc_rdma_conn *rc = alloc_conn(ro);
	struct smc_conn *conn;

	might_sleep();
	if (PTR_ERR(rc) == -EXFULL)
		return -EXFULL;
	if (IS_ERR(rc))
		return memory_reason(PTR_ERR(rc));
	smc_lgr_get(ro->lgr);
	conn = smc_conn_new(ro->lgr, ro->offer);
	ro->placed = false;
	if (!conn) {
		smc_lgr_rdma_retire_rmb(rc->group, rc->rmb, 0, true);
		free_conn(rc);
		return SMC_REASON_MEM;
	}
	conn->rx = (struct smc_rcvbuf){ .size = rc->rmb->size, .fixed = true, .pages = rc->rmb->pages };
	conn->priv = rc;
	rc->conn = conn;
	conn->member.tag = rc->rmb->id;
	ro->offer->conn = conn;
	smc_stats_buf(conn->member.sn, SMC_STATS_R, true, SMC_RDMA_SIZE_MIN << rc->rmb_code, rc->rmb->size, rc->rmb->reused);
	smc_stats_buf(conn->member.sn, SMC_STATS_R, false, SMC_RDMA_SIZE_MIN << rc->snd_code, rc->snd->size, rc->snd->reused);
	if (!smc_lgr_add_member(ro->lgr, &conn->member))
		return SMC_REASON_INTERNAL;
	return publish_conn(rc);
}

/* Registers the connection's buffers. Return: 0, -EINPROGRESS if the send queue is full, or a reason. */
static int register_bufs(struct smc_rdma_offer *ro, struct smc_rdma_conn *rc)
{
	int err = smc_lgr_rdma_register_buf(rc->link, rc->rmb) ?: smc_lgr_rdma_register_buf(rc->link, rc->snd);

	if (err == -EAGAIN && time_before(jiffies, ro->last)) {
		ro->offer->deadline = jiffies + 1;
		return -EINPROGRESS;
	}
	return err ? SMC_REASON_REG_BUF : 0;
}

/*
 * The message that follows names the link of the rendezvous, and the key that the RMB has there. If that link is lost later,
 * failover moves the connection. Return: 0 or a reason.
 */
static int still_there(const struct smc_rdma_offer *ro, const struct smc_rdma_conn *rc)
{
	return READ_ONCE(rc->link) == ro->link && smc_link_usable(ro->link) ? 0 : SMC_REASON_NO_ACTIVE_LINK;
}

/*
 * smc_rdma_confirm_rmb() - makes sure that the peer knows the RMB of a connection in a group that is ready.
 * Return: 0, -EINPROGRESS if it is to be called again, or a reason.
 */
int smc_rdma_confirm_rmb(struct smc_rdma_offer *ro)
{
	struct smc_rdma_conn *rc = smc_rdma_conn_of(ro->offer->conn);
	struct smc_rdma_buf *rmb = rc->rmb;
	int result;

	might_sleep();
	if (!ro->started) {
		result = register_bufs(ro, rc);
		if (result)
			return result;
		if (rmb->announced)
			return still_there(ro, rc);
		ro->started = true;
		smc_rdma_wait(ro, SMC_RDMA_LLC_WAIT);
		smc_rdma_llc_confirm_rkey(rc->group, rmb, &ro->call);
	}
	result = READ_ONCE(ro->call.result);
	if (result == -EINPROGRESS)
		return smc_rdma_timed_out(ro) ? SMC_REASON_REG_BUF : -EINPROGRESS;
	smc_rdma_stop_waiting(ro);
	return result ? SMC_REASON_REG_BUF : still_there(ro, rc);
}

/*
 * smc_rdma_open_link() - lets the link of first contact send, and the peer write to the first RMB. Return: 0
 * or a reason.
 */
int smc_rdma_open_link(struct smc_rdma_offer *ro)
{
	struct smc_rdma_conn *rc = smc_rdma_conn_of(ro->offer->conn);

	might_sleep();
	if (smc_link_to_rts(rc->link))
		return SMC_REASON_READY_LINK;
	if (smc_link_register(rc->link, rc->rmb) || smc_link_register(rc->link, rc->snd))
		return SMC_REASON_REG_BUF;
	/* By the rest of first contact. */
	rc->rmb->announced = true;
	return 0;
}

/*
 * smc_rdma_confirmed() - has the peer sent the CONFIRM LINK that the rendezvous waits for? Return: 0, -EINPROGRESS if
 * it has not yet, or a reason.
 */
int smc_rdma_confirmed(const struct smc_rdma_offer *ro)
{
	const struct smc_lgr_rdma *group = smc_lgr_rdma_of(ro->lgr);

	if (READ_ONCE(group->state) == SMC_LGR_RDMA_ENDED)
		return SMC_REASON_NO_ACTIVE_LINK;
	if (!smp_load_acquire(&ro->link->llc.confirmed)) /* orders has_eyecatcher */
		return smc_rdma_timed_out(ro) ? SMC_REASON_TIMEOUT_CONFIRM_LINK : -EINPROGRESS;
	return ro->link->llc.has_eyecatcher ? SMC_REASON_RMBE_EYECATCHER : 0;
}

/*
 * Returns how many messages the peer may have under way. The peer counts one as done when our adapter has acknowledged
 * it, which is before the softirq posts the receive again, so a third of the receives is kept for messages that arrive
 * in between. The least number that can be stated is two.
 */
static u32 stated_recvs(const struct smc_link *link)
{
	return max_t(u32, link->rq_size * 2 / 3, 2);
}

static void fill_fce(const struct smc_link *link, struct smc_clc_accept *a)
{
	const struct smc_lgr_rdma *group = link->group;

	a->has_fce = true;
	a->direct = group->direct;
	a->os_type = SMC_CLC_OS_LINUX;
	a->release = group->release;
	smc_lgr_hostname(a->host);
	if (!group->release)
		return;
	a->max_conns = group->max_conns;
	a->max_links = group->max_links;
	a->features = group->features;
	a->vendor = group->immediate ? smc_clc_vendor_with_recvs(stated_recvs(link)) : 0;
}

/* smc_rdma_fill_local() - fills the fields that ACCEPT and CONFIRM have in common. */
void smc_rdma_fill_local(const struct smc_rdma_offer *ro, struct smc_clc_accept *a)
{
	const struct smc_conn *conn = ro->offer->conn;
	const struct smc_rdma_conn *rc = smc_rdma_conn_of(conn);
	const struct smc_link *link = ro->link;
	const struct smc_buf_map *map = smc_rdma_buf_map_of(rc->rmb, link);

	might_sleep();
	a->version = rc->group->version;
	a->smcd = false;
	a->first_contact = ro->first;
	a->size_code = rc->rmb->code;
	smc_rdma_peer_id(a->peer_id);
	memcpy(a->gid, link->path.gid, sizeof(a->gid));
	memcpy(a->mac, link->path.mac, sizeof(a->mac));
	a->qpn = link->qpn;
	a->rkey = map->rkey;
	a->rmbe_idx = 1;
	a->token = conn->member.token;
	a->mtu_code = link->mtu_code ?: link->path.mtu_code;
	a->rmb_addr = map->addr;
	a->psn = link->psn;
	if (a->version > 1 && ro->first)
		fill_fce(link, a);
}

/*
 * smc_rdma_set_peer() - takes in the peer's end of the connection from its ACCEPT or CONFIRM. Return: 0 or
 * a reason.
 *
 * Only in first contact does that message announce the RMB itself; otherwise the peer has announced it by a link before
 * (RFC 7609, 3.5.5.2.1). So a host that takes the name of another cannot have us write into that one's memory.
 */
int smc_rdma_set_peer(struct smc_rdma_offer *ro, const struct smc_clc_accept *peer)
{
	struct smc_rdma_conn *rc = smc_rdma_conn_of(ro->offer->conn);

	might_sleep();
	if (ro->first)
		smc_rtoken_add(rc->link, peer->rkey, peer->rmb_addr);
	if (!smc_rtoken_bind(rc, peer, ro->first))
		return SMC_REASON_RTOKEN;
	smc_rdma_cdc_start(rc, peer);
	return smc_rdma_failover_late(rc) ? 0 : SMC_REASON_NO_ACTIVE_LINK;
}

static int rdma_attach(struct smc_offer *offer, const struct smc_clc_accept *peer, struct smc_clc_accept *us)
{
	return offer->server ? smc_rdma_server_attach(offer, peer) : smc_rdma_client_attach(offer, peer, us);
}

/*
 * Undoes the connection of a rendezvous that has failed. Its socket stays as it is, because it falls back. A peer that
 * does not know enough to write, or has declined, learns of it by CLC.
 */
static void undo_conn(struct smc_offer *offer)
{
	struct smc_rdma_conn *rc = smc_rdma_conn_of(offer->conn);

	if (offer->declined)
		rc->exposed = false;
	if (rc->exposed)
		return;
	smc_conn_kill(offer->conn, true);
	smc_conn_put(offer->conn);
	offer->conn = NULL;
}

/*
 * Ending a group takes until its link has flushed what it was about to send, so that is left to a work: other
 * rendezvous, accept() and the close of the listener may be waiting for this one.
 */
static void end_unused_lgr(struct smc_rdma_offer *ro)
{
	if (ro->link)
		smc_link_fail(ro->link, SMC_LINK_UNUSED, 0);
	else
		smc_lgr_terminate(ro->lgr);
}

/*
 * A group that only this rendezvous has seen ends with it, unless it has ended before. A group that the peer does not
 * know is tested.
 */
static void undo_rendezvous(struct smc_offer *offer, struct smc_rdma_offer *ro)
{
	bool alone = ro->first && READ_ONCE(smc_lgr_rdma_of(ro->lgr)->state) != SMC_LGR_RDMA_READY;

	if (offer->conn) {
		if (alone)
			smc_rdma_conn_of(offer->conn)->exposed = false;
		undo_conn(offer);
	}
	if (alone)
		end_unused_lgr(ro);
	else if (offer->out_of_sync)
		smc_rdma_llc_verify_group(smc_lgr_rdma_of(ro->lgr));
}

static void rdma_detach(struct smc_offer *offer)
{
	struct smc_rdma_offer *ro = smc_rdma_offer_of(offer);
	unsigned int i;

	if (!ro)
		return;
	offer->opaque[SMC_ROLE_R] = NULL;
	if (ro->lgr) {
		smc_rdma_stop_waiting(ro);
		smc_rdma_llc_cancel(smc_lgr_rdma_of(ro->lgr), &ro->call);
		undo_rendezvous(offer, ro);
		smc_link_put(ro->link);
		if (ro->placed)
			smc_lgr_leave(ro->lgr);
		else
			smc_lgr_put(ro->lgr);
	}
	for (i = 0; i < ARRAY_SIZE(ro->path); i++)
		if (ro->path[i].dev)
			smc_rdma_dev_put(ro->path[i].dev);
	kfree(ro);
}

/*
 * The peer may not know of the end yet, and may write until it says that it is done. It may be saying so right now:
 * rdma_cdc_recv() looks for the RMB on rmbs_pending afterwards.
 */
static void rdma_release(struct smc_conn *conn)
{
	struct smc_rdma_conn *rc = smc_rdma_conn_of(conn);

	/* The last message may still wait for room, and the peer may delete its RMB meanwhile. */
	smc_rdma_stop_writing(rc);
	smc_lgr_rdma_retire_rmb(rc->group, rc->rmb, conn->member.token, !rc->exposed);
	unpublish_conn(rc);
	if (READ_ONCE(conn->peer_close_flags) & (SMC_CDC_CLOSED | SMC_CDC_ABORT))
		smc_lgr_rdma_peer_closed(rc->group, conn->member.token);
	smc_stats_buf_usage(conn->member.sn, SMC_STATS_R, true, -(s64)rc->rmb->size);
	smc_stats_buf_usage(conn->member.sn, SMC_STATS_R, false, -(s64)rc->snd->size);
}

static void rdma_free(struct smc_conn *conn)
{
	free_conn(smc_rdma_conn_of(conn));
}

const struct smc_transport_ops smc_rdma_transport = {
	.name		= "SMC-R",
	.role		= SMC_ROLE_R,
	.owner		= THIS_MODULE,
	.local		= rdma_local,
	.present	= smc_rdma_present,
	.offer		= smc_rdma_client_offer,
	.match		= smc_rdma_server_match,
	.attach		= rdma_attach,
	.detach		= rdma_detach,
	.release	= rdma_release,
	.free		= rdma_free,
	.write		= smc_rdma_write,
	.signal		= smc_rdma_signal,
	.peer_full	= smc_rdma_peer_full,
	.describe	= smc_rdma_describe,
	.lgr_init	= smc_lgr_rdma_init,
	.lgr_fits	= smc_lgr_rdma_fits,
	.lgr_needs	= smc_lgr_rdma_needs,
	.lgr_delete_link	= smc_lgr_rdma_delete_link,
	.lgr_delete_one		= smc_lgr_rdma_delete_one,
	.lgr_flush	= smc_lgr_rdma_flush,
	.lgr_shrink	= smc_lgr_rdma_shrink,
	.lgr_end	= smc_lgr_rdma_end,
	.lgr_free	= smc_lgr_rdma_free,
};

static bool smcr = true;
module_param(smcr, bool, 0444);
MODULE_PARM_DESC(smcr, "SMC-R, over RDMA devices (default on)");

/* smc_rdma_init() - at load. Return: 0 or a negative errno. */
int __init smc_rdma_init(void)
{
	int rc;

	might_sleep();
	if (!smcr)
		return 0;
	rc = smc_rdma_devices_init();
	if (rc)
		return rc;
	rc = smc_transport_register(&smc_rdma_transport);
	if (rc)
		smc_rdma_devices_exit();
	return rc;
}

/* smc_rdma_exit() - at unload, when no socket is left. */
void smc_rdma_exit(void)
{
	might_sleep();
	if (!smcr)
		return;
	smc_transport_unregister(&smc_rdma_transport);
	smc_lgr_exit();
	smc_rdma_devices_exit();
}
