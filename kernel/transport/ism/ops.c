// SPDX-License-Identifier: GPL-2.0-only
/* SMC-D as a transport, for every provider: link groups, DMBs and signals. */

#include <linux/log2.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "../../control/diag.h"
#include "../../control/memory.h"
#include "../../net.h"
#include "../../wire/reason.h"
#include "ism.h"

static int dmb_error_reason(long err)
{
	if (err == -EDQUOT)
		return SMC_REASON_MEM_LIMIT;
	return err == -ENOSPC ? SMC_REASON_MAX_DMB : SMC_REASON_MEM;
}

/* Frees what no connection has taken over. A provider that signals the DMB right now may still read it. */
static void ism_conn_free(struct smc_ism_conn *ic)
{
	ic->dev->ops->dmb_close(ic->dev, ic->own);
	synchronize_rcu(); /* pairs with the RCU section of smc_ism_signalled() and of providers that call it */
	ic->dev->ops->dmb_put(ic->dev, ic->own);
	kfree(ic);
}

/*
 * Returns the namespace that owns a group. The peer cannot tell the namespaces of this host apart, so they share the
 * groups of a hardware device, which belong to the initial namespace. A device within this kernel stands for one in each
 * namespace, so the groups belong to the namespace of their sockets.
 */
static struct net *ism_lgr_net(const struct smc_ism_dev *dev, const struct sock *sk)
{
	return dev->host ? sock_net(sk) : &init_net;
}

/* Makes a connection in a group. Takes over the slot that smc_lgr_join() has reserved. */
static int ism_make_conn(struct smc_offer *offer, struct smc_ism_dev *dev, struct smc_lgr *lgr, const u64 *peer)
{
	struct smc_ism_conn *ic = kzalloc(sizeof(*ic), GFP_KERNEL_ACCOUNT);
	struct smc_conn *conn;
	int rc = SMC_REASON_MEM;
	u8 asked, code;

	if (!ic)
		goto err_leave;
	ic->dev = dev;
	ic->own = smc_ism_dmb_new(dev, offer->sk, peer, &asked, &code);
	if (IS_ERR(ic->own)) {
		rc = dmb_error_reason(PTR_ERR(ic->own));
		goto err_free;
	}
	conn = smc_conn_new(lgr, offer);
	if (!conn) {
		ism_conn_free(ic);
		return SMC_REASON_MEM;
	}
	conn->rx = ic->own->rcvbuf;
	conn->update_each_read = dev->ops->map;
	conn->priv = ic;
	rcu_assign_pointer(ic->own->conn, conn);
	offer->conn = conn;
	smc_stats_buf(conn->member.sn, SMC_STATS_D, true, SMC_ISM_SIZE_MIN << asked, SMC_ISM_SIZE_MIN << code, false);
	atomic64_add(SMC_ISM_SIZE_MIN << code, &lgr->buf_bytes);
	/* After an error the registry ends the connection of the offer. */
	return smc_lgr_add_member(lgr, &conn->member) ? 0 : SMC_REASON_INTERNAL;

err_free:
	kfree(ic);
err_leave:
	smc_lgr_leave(lgr);
	return rc;
}

/*
 * Joins or forms a group and makes a connection with a DMB. @peer: the GID that may write to the DMB; without it, only
 * @share of the provider gives access. @first: result: whether the group was formed. Return: 0, or a reason.
 */
static int ism_create_conn(struct smc_offer *offer, struct smc_ism_dev *dev, const u64 *peer, u8 version, bool *first)
{
	const u64 *gid = peer ?: dev->gid;
	const struct smc_lgr_key key = {
		.ops = &smc_ism_transport,
		.net = ism_lgr_net(dev, offer->sk),
		.version = version,
		.ends = { .dev = dev, .gid = { gid[0], gid[1] } },
	};
	struct smc_lgr *lgr = smc_lgr_join(&key, SMC_LGR_FIND_OR_FORM, NULL, first);

	if (IS_ERR(lgr))
		return SMC_REASON_MEM;
	return ism_make_conn(offer, dev, lgr, peer);
}

/* Lets the connection write to a peer's DMB that it has mapped. */
static void ism_set_peer_dmb(struct smc_conn *conn, struct smc_ism_dmb *dmb)
{
	struct smc_ism_conn *ic = conn->priv;

	ic->peer_token = dmb->token;
	conn->tx_size = dmb->rcvbuf.size;
	conn->tx_window = conn->tx_size;
	conn->tx_buf = conn->tx_size;
	conn->tx_skip = dmb->rcvbuf.skip;
	conn->granule = PAGE_SIZE;
	smp_store_release(&ic->peer, dmb); /* pairs with ism_peer_conn() */
}

/* Maps the peer's DMB. Return: 0, or -ECONNRESET if the peer is gone already. */
static int ism_map_dmb(struct smc_conn *conn, u64 token)
{
	struct smc_ism_dev *dev = ((const struct smc_ism_conn *)conn->priv)->dev;
	struct smc_ism_dmb *dmb = dev->ops->map(dev, token, dev->gid);

	if (IS_ERR(dmb))
		return -ECONNRESET;
	ism_set_peer_dmb(conn, dmb);
	return 0;
}

/* Maps the peer's DMB, or starts to move data there. Return: 0 or -ECONNRESET. */
static int ism_connect_dmb(struct smc_conn *conn, const struct smc_clc_accept *peer)
{
	struct smc_ism_conn *ic = conn->priv;

	if (ic->dev->ops->map)
		return ism_map_dmb(conn, peer->dmb_token);
	if (ic->dev->ops->set_peer &&
	    !ic->dev->ops->set_peer(ic->own, peer->dmb_token, peer->dmbe_idx, SMC_ISM_SIZE_MIN << peer->size_code))
		return -ECONNRESET;
	ic->peer_token = peer->dmb_token;
	return smc_ism_cdc_start(conn, peer);
}

/* Returns whether the peer is a client that has mapped our DMB. A client maps before it sends CONFIRM. */
static bool ism_is_mutual(const struct smc_conn *conn)
{
	const struct smc_ism_conn *ic = conn->priv;
	const struct smc_conn *peer;
	bool mutual;

	rcu_read_lock();
	peer = rcu_dereference(ic->peer->conn);
	mutual = peer && !peer->server && smp_load_acquire(&((const struct smc_ism_conn *)peer->priv)->peer) == ic->own;
	rcu_read_unlock();
	return mutual;
}

/* Fills in the first contact extension (docs/protocol.md, 3.5). */
static void fill_first_contact(struct smc_clc_accept *a)
{
	a->has_fce = true;
	a->os_type = SMC_CLC_OS_LINUX;
	a->features = a->release ? SMC_CLC_FEATURES : 0;
	smc_lgr_hostname(a->host);
}

/* Fills in our part of an ACCEPT or CONFIRM (docs/protocol.md, 3.4). */
static void fill_accept(const struct smc_conn *conn, struct smc_clc_accept *a)
{
	const struct smc_ism_conn *ic = conn->priv;

	a->smcd = true;
	a->size_code = order_base_2(conn->rx.size + conn->rx.skip) - order_base_2(SMC_ISM_SIZE_MIN);
	a->ism_gid = ic->dev->gid[0];
	a->dmb_token = ic->own->token;
	memcpy(a->link_id, &conn->member.lgr->id, sizeof(a->link_id));
	if (a->version < 2)
		return;
	a->chid = ic->dev->chid;
	a->ext_gid = smc_ism_emulated(a->chid) ? ic->dev->gid[1] : 0;
	if (a->first_contact)
		fill_first_contact(a);
}

/*
 * Stores what the server has sent about itself. If it is this host, that is known even if the message lacks it: what is
 * a subsequent contact for the server may be the first one of our group.
 */
static void ism_set_lgr_peer(struct smc_lgr *lgr, const struct smc_ism_dev *dev, const struct smc_clc_accept *peer)
{
	struct smc_clc_accept known = *peer;

	if (dev->host && !known.has_fce) {
		fill_first_contact(&known);
		known.release = SMC_CLC_RELEASE;
	}
	smc_lgr_set_peer(lgr, &known);
}

/* Server: makes a connection on the chosen device, and fills the ACCEPT. */
static int ism_match_dev(struct smc_offer *offer, struct smc_ism_dev *dev, const u64 gid[2], struct smc_clc_accept *a)
{
	int rc = ism_create_conn(offer, dev, gid, a->version, &a->first_contact);

	if (rc)
		return rc;
	a->type = SMC_CLC_ACCEPT;
	fill_accept(offer->conn, a);
	return 0;
}

static int ism_match(struct smc_offer *offer, const struct smc_clc_proposal *p, struct smc_clc_accept *a)
{
	struct smc_ism_dev *dev;
	u32 reason;
	u64 gid[2];
	int rc;

	memset(a, 0, sizeof(*a));
	dev = smc_ism_choose(offer, p, a, gid, &reason);
	if (!dev)
		return reason;
	rc = ism_match_dev(offer, dev, gid, a);
	smc_ism_dev_put(dev);
	return rc;
}

/* Fills the CONFIRM that answers the server's ACCEPT. */
static void ism_fill_confirm(struct smc_offer *offer, const struct smc_clc_accept *peer, struct smc_clc_accept *us)
{
	memset(us, 0, sizeof(*us));
	us->type = SMC_CLC_CONFIRM;
	us->version = peer->version;
	us->first_contact = peer->first_contact;
	us->release = peer->release;
	memcpy(us->eid, peer->eid, sizeof(us->eid));
	fill_accept(offer->conn, us);
	us->features &= peer->features;
}

/* Client: makes a connection on the device that the server has chosen, and fills the CONFIRM. */
static int ism_join_dev(struct smc_offer *offer, struct smc_ism_dev *dev, const struct smc_clc_accept *peer,
		   struct smc_clc_accept *us)
{
	u64 gid[2] = { peer->ism_gid, smc_ism_ext_gid(dev, peer) };
	bool first;
	int rc;

	/*
	 * What is a subsequent contact for the server may be our first one: within this kernel each end has a group of its own, and
	 * the ACCEPT of another connection may come later.
	 */
	rc = ism_create_conn(offer, dev, gid, peer->version, &first);
	if (rc)
		return rc;
	rc = ism_connect_dmb(offer->conn, peer);
	if (rc)
		return rc;
	ism_set_lgr_peer(offer->conn->member.lgr, dev, peer);
	ism_fill_confirm(offer, peer, us);
	return 0;
}

static int ism_join(struct smc_offer *offer, const struct smc_clc_accept *peer, struct smc_clc_accept *us)
{
	struct smc_ism_dev *dev = smc_ism_of_server(peer);
	int rc;

	/* It may have gone since the proposal, at either end. */
	if (!dev)
		return peer->version < 2 ? SMC_REASON_NO_D_DEV : SMC_REASON_NO_D2_DEV;
	rc = ism_join_dev(offer, dev, peer, us);
	smc_ism_dev_put(dev);
	return rc;
}

static int ism_attach(struct smc_offer *offer, const struct smc_clc_accept *peer, struct smc_clc_accept *us)
{
	int rc;

	if (!offer->server)
		return peer ? ism_join(offer, peer, us) : 0;
	rc = ism_connect_dmb(offer->conn, peer);
	if (rc)
		return rc;
	if (((const struct smc_ism_conn *)offer->conn->priv)->peer && !ism_is_mutual(offer->conn))
		return -ECONNRESET;
	smc_lgr_set_peer(offer->conn->member.lgr, peer);
	return 0;
}

/* Makes the connection of one end of a pair. */
static int ism_pair_end(struct smc_offer *offer, struct smc_ism_dev *dev)
{
	bool first;
	int rc = ism_create_conn(offer, dev, NULL, 2, &first);

	if (!rc && first)
		smc_lgr_set_peer_self(offer->conn->member.lgr, smc_ism_host_eid());
	return rc;
}

static void ism_share_dmb(struct smc_conn *conn, const struct smc_conn *peer)
{
	struct smc_ism_dmb *dmb = ((const struct smc_ism_conn *)peer->priv)->own;
	struct smc_ism_dev *dev = ((const struct smc_ism_conn *)conn->priv)->dev;

	dev->ops->share(dev, dmb);
	ism_set_peer_dmb(conn, dmb);
}

static int ism_pair(struct smc_offer *client, struct smc_offer *server)
{
	struct smc_ism_dev *dev = smc_ism_for_pair(client->sk);
	struct mem_cgroup *old;
	int rc;

	if (!dev)
		return -ENODEV;
	server->server = true;
	if (ism_pair_end(client, dev))
		return -ENOMEM;
	/* This is the client's thread, or a worker for the client. */
	old = set_active_memcg(server->memcg);
	rc = ism_pair_end(server, dev);
	set_active_memcg(old);
	if (rc)
		return -ENOMEM;
	ism_share_dmb(client->conn, server->conn);
	ism_share_dmb(server->conn, client->conn);
	return 0;
}

static void ism_release(struct smc_conn *conn)
{
	struct smc_ism_conn *ic = conn->priv;
	s64 bytes = conn->rx.size + conn->rx.skip;

	RCU_INIT_POINTER(ic->own->conn, NULL);
	ic->dev->ops->dmb_close(ic->dev, ic->own);
	smc_stats_buf_usage(conn->member.sn, SMC_STATS_D, true, -bytes);
	atomic64_sub(bytes, &conn->member.lgr->buf_bytes);
}

static void ism_free(struct smc_conn *conn)
{
	struct smc_ism_conn *ic = conn->priv;

	if (ic->peer)
		ic->dev->ops->unmap(ic->dev, ic->peer);
	ic->dev->ops->dmb_put(ic->dev, ic->own);
	kfree(ic);
}

static ssize_t ism_write(struct smc_conn *conn, struct iov_iter *from, u32 len)
{
	struct smc_ism_conn *ic = conn->priv;
	struct mem_cgroup *old;
	ssize_t rc;

	if (!ic->dev->ops->map)
		return smc_ism_move(conn, from, len);
	/* As with TCP, the control group of the socket pays for the pages, not that of the thread that calls send(). */
	old = set_active_memcg(smc_memory_cgroup(conn->sk));
	rc = ic->dev->ops->write(ic->peer, conn->tx_off, from, len);
	set_active_memcg(old);
	return rc;
}

/* Returns the peer's connection, which is in this kernel, too; NULL if it is over. */
static struct smc_conn *ism_peer_conn(const struct smc_ism_conn *ic)
{
	const struct smc_ism_dmb *peer = smp_load_acquire(&ic->peer), *back;
	struct smc_conn *conn = peer ? rcu_dereference(peer->conn) : NULL;

	RCU_LOCKDEP_WARN(!rcu_read_lock_held(), "ism_peer_conn() outside of an RCU section");
	if (!conn)
		return NULL;
	/* Tokens come by TCP. If they were exchanged on the way, the two connections are not peers. */
	back = smp_load_acquire(&((const struct smc_ism_conn *)conn->priv)->peer);
	return back && back != ic->own ? NULL : conn;
}

static void ism_signal(struct smc_conn *conn, unsigned int what)
{
	struct smc_ism_conn *ic = conn->priv;
	struct smc_conn *peer;

	/* SMC-D holds no data back. */
	if (what == SMC_SIGNAL_PUSH)
		return;
	if (!ic->dev->ops->map) {
		smc_ism_cdc_send(conn, what);
		return;
	}
	rcu_read_lock();
	peer = ism_peer_conn(ic);
	if (!peer)
		goto out;
	if (what & SMC_SIGNAL_SHORT)
		WRITE_ONCE(peer->rx_short, conn->tx_prod);
	if (what & SMC_SIGNAL_DATA)
		smc_upcall_data(peer, conn->tx_prod, what & SMC_SIGNAL_URGENT);
	if (what & SMC_SIGNAL_SPACE)
		smc_upcall_space(peer, conn->rx_cons);
	if (what & SMC_SIGNAL_CLOSE)
		smc_upcall_close(peer, READ_ONCE(conn->close_flags));
out:
	rcu_read_unlock();
}

static void ism_consumed(struct smc_conn *conn, u32 off, u32 len)
{
	struct smc_ism_conn *ic = conn->priv;

	if (ic->dev->ops->consumed)
		ic->dev->ops->consumed(ic->own, off, len);
}

static void ism_describe(const struct smc_conn *conn, struct smc_diag_info *info)
{
	const struct smc_ism_conn *ic = conn->priv;
	const struct smc_lgr *lgr = conn->member.lgr;

	info->mode = SMC_DIAG_MODE_SMCD;
	info->has_dmb = true;
	info->dmb.linkid = lgr->id;
	info->dmb.my_gid = ic->dev->gid[0];
	info->dmb.my_gid_ext = ic->dev->gid[1];
	info->dmb.peer_gid = lgr->key.ends.gid[0];
	info->dmb.peer_gid_ext = lgr->key.ends.gid[1];
	/* Show no token that another user could write with. */
	if (READ_ONCE(ic->own->token_used) || !ic->dev->host)
		info->dmb.token = ic->own->token & ~ic->dev->token_secret;
	info->dmb.peer_token = ic->peer_token & ~ic->dev->token_secret;
}

static void ism_trim(struct smc_conn *conn)
{
	struct smc_ism_conn *ic = conn->priv;

	if (!ic->dev->ops->trim || !mutex_trylock(&conn->tx_lock))
		return;
	if (ic->peer)
		ic->dev->ops->trim(ic->peer, conn->tx_prod == smp_load_acquire(&conn->tx_cons), conn->tx_off);
	mutex_unlock(&conn->tx_lock);
}

static int ism_init_lgr(struct smc_lgr *lgr)
{
	const struct smc_ism_dev *dev = lgr->key.ends.dev;

	strscpy(lgr->device, dev->name, sizeof(lgr->device));
	return 0;
}

const struct smc_transport_ops smc_ism_transport = {
	.name		= "SMC-D",
	.role		= SMC_ROLE_D,
	.owner		= THIS_MODULE,
	.local		= smc_ism_local,
	.present	= smc_ism_present,
	.offer		= smc_ism_offer,
	.match		= ism_match,
	.attach		= ism_attach,
	.pair		= ism_pair,
	.release	= ism_release,
	.free		= ism_free,
	.write		= ism_write,
	.signal		= ism_signal,
	.consumed	= ism_consumed,
	.trim		= ism_trim,
	.describe	= ism_describe,
	.lgr_init	= ism_init_lgr,
};

/* Read at load only. Without SMC-D another module may be its transport, as smc_null.ko is. */
static bool smcd = true;
module_param(smcd, bool, 0444);
MODULE_PARM_DESC(smcd, "SMC-D, over ISM devices and between sockets of this host");

/* smc_ism_init() - registers SMC-D and its devices, at load. Return: 0 or a negative errno. */
int __init smc_ism_init(void)
{
	int rc;

	might_sleep();
	if (!smcd)
		return 0;
	rc = smc_loopback_init();
	if (rc)
		return rc;
	rc = smc_hw_init();
	if (rc)
		goto err_loopback;
	rc = smc_fabric_init();
	if (rc)
		goto err_hw;
	rc = smc_transport_register(&smc_ism_transport);
	if (rc)
		goto err_fabric;
	return 0;

err_fabric:
	smc_fabric_exit();
err_hw:
	smc_hw_exit();
err_loopback:
	smc_loopback_exit();
	return rc;
}

/* smc_ism_exit() - undoes it, at unload, when no socket is left. */
void smc_ism_exit(void)
{
	might_sleep();
	if (!smcd)
		return;
	smc_transport_unregister(&smc_ism_transport);
	smc_lgr_exit();
	smc_fabric_exit();
	smc_hw_exit();
	smc_loopback_exit();
}
