// SPDX-License-Identifier: GPL-2.0-only
/* The connecting side of a rendezvous over RDMA (docs/protocol.md, 5.1 and 5.2). */

#include <linux/etherdevice.h>

#include "../../control/sysctl.h"
#include "../../net.h"
#include "../../wire/reason.h"
#include "rdma.h"

/* How long the server has for CONFIRM LINK. */
#define CLIENT_CONFIRM_LINK_TIMEOUT (4 * HZ)
/* How often a connection that waits for an RMB looks for one. */
#define RMB_INTERVAL (HZ / 50)

static u8 with_r(u8 path)
{
	return path == SMC_PATH_D || path == SMC_PATH_B ? SMC_PATH_B : SMC_PATH_R;
}

static void offer_v1(const struct smc_rdma_path *path, struct smc_clc_proposal *p)
{
	p->path_v1 = with_r(p->path_v1);
	memcpy(p->gid, path->gid, sizeof(p->gid));
	memcpy(p->mac, path->mac, sizeof(p->mac));
}

static void offer_v2(const struct smc_rdma_path *path, const struct smc_sysctl *sysctl, struct smc_clc_proposal *p)
{
	p->path_v2 = with_r(p->path_v2);
	p->has_v2 = true;
	memcpy(p->rocev2_gid, path->gid, sizeof(p->rocev2_gid));
	/* Also if version 1 is not offered. */
	memcpy(p->mac, path->mac, sizeof(p->mac));
	p->max_conns = READ_ONCE(sysctl->smcr_max_conns_per_lgr);
	p->max_links = READ_ONCE(sysctl->smcr_max_links_per_lgr);
	p->vendor = READ_ONCE(sysctl->smcr_immediate) ? SMC_CLC_VENDOR_IMMEDIATE : 0;
}

static bool same_port(const struct smc_rdma_path *a, const struct smc_rdma_path *b)
{
	return a->dev == b->dev && a->port == b->port;
}

/* smc_rdma_client_offer() - offer of the transport. Return: 0 or -ENODEV. */
int smc_rdma_client_offer(struct smc_offer *offer, struct smc_clc_proposal *p)
{
	struct smc_rdma_offer *ro = smc_rdma_offer_new(offer);
	bool v1, v2;

	might_sleep();
	if (!ro)
		return -ENODEV;
	v1 = !smc_rdma_choose(offer->sk, 1, NULL, &ro->path[0]);
	v2 = p->n_eid && !smc_rdma_choose(offer->sk, 2, NULL, &ro->path[1]);
	if ((!v1 && !v2) || !smc_rdma_peer_id(p->peer_id)) {
		smc_rdma_transport.detach(offer);
		return -ENODEV;
	}
	/* One MAC stands for both, and a server may use it with the address of version 2. */
	if (v1 && v2 && !same_port(&ro->path[0], &ro->path[1])) {
		smc_rdma_dev_put(ro->path[0].dev);
		ro->path[0] = (struct smc_rdma_path){};
		v1 = false;
	}
	if (v1)
		offer_v1(&ro->path[0], p);
	if (v2)
		offer_v2(&ro->path[1], smc_net(ro->path[1].net)->sysctl, p);
	return 0;
}

static void client_lgr_key(const struct smc_rdma_offer *ro, const struct smc_clc_accept *peer, struct smc_lgr_key *key)
{
	const struct smc_rdma_path *path = &ro->path[peer->version - 1];

	*key = (struct smc_lgr_key){
		.ops = &smc_rdma_transport,
		.net = path->net,
		.vlan = path->vlan,
		.version = peer->version,
		/* The server's address is that of one of the links, see smc_lgr_rdma_fits(). */
		.ends.dev = path->dev,
	};
	memcpy(key->peer_id, peer->peer_id, sizeof(key->peer_id));
}

/* Finds the MAC to reach the server by, which may be a gateway's. Return: 0 or a reason. */
static int find_server_mac(const struct smc_offer *offer, const struct smc_clc_accept *peer, struct smc_link_peer *to)
{
	int rc;

	memcpy(to->mac, peer->mac, sizeof(to->mac));
	if (peer->version < 2 || peer->direct)
		return 0;
	rc = smc_rdma_route(offer, peer->gid, to->mac, &to->gateway);
	if (rc)
		return SMC_REASON_NO_ROUTE;
	return to->gateway ? 0 : SMC_REASON_NOT_INDIRECT;
}

static void set_lgr_params(struct smc_lgr_rdma *group, const struct smc_clc_accept *peer)
{
	group->direct = peer->version < 2 || peer->direct; /* version 1 has no gateways */
	group->release = peer->has_fce ? peer->release : 0;
	group->features = peer->features & SMC_CLC_FEATURES;
	group->max_conns = group->release ? peer->max_conns : 255;
	group->max_links = group->release ? peer->max_links : 2;
	group->link_limit = min_t(u8, group->max_links, READ_ONCE(smc_net(group->lgr->key.net)->sysctl->smcr_max_links_per_lgr));
	group->immediate = group->release && smc_clc_vendor_immediate(peer->vendor) &&
			   READ_ONCE(smc_net(group->lgr->key.net)->sysctl->smcr_immediate);
}

/* First contact: forms a group with a link. Return: 0 or a reason. */
static int client_form_lgr(struct smc_rdma_offer *ro, const struct smc_clc_accept *peer)
{
	struct smc_lgr_rdma *group = smc_lgr_rdma_of(ro->lgr);
	struct smc_link_peer to = { .qpn = peer->qpn, .psn = peer->psn, .mtu_code = peer->mtu_code };
	int rc;

	memcpy(to.gid, peer->gid, sizeof(to.gid));
	memcpy(to.clc_gid, peer->gid, sizeof(to.clc_gid));
	memcpy(to.clc_mac, peer->mac, sizeof(to.clc_mac));
	rc = find_server_mac(ro->offer, peer, &to);
	if (rc)
		return rc;
	set_lgr_params(group, peer);
	rc = smc_rdma_form(ro, &ro->path[peer->version - 1]);
	if (rc)
		return rc;
	ro->link->peer = to;
	smc_link_peer_recvs(ro->link, peer->vendor);
	rc = smc_rdma_make_conn(ro);
	if (rc)
		return rc;
	/* The server's first message may come as soon as it has our CONFIRM. */
	return smc_link_to_rtr(ro->link) ? SMC_REASON_READY_LINK : 0;
}

/*
 * Makes a connection in the group that the server means. If data of a lost link may still come for all idle RMBs, the rendezvous is called
 * again. Return: 0, -EINPROGRESS or a reason.
 */
static int client_make_conn(struct smc_rdma_offer *ro)
{
	int rc = smc_rdma_make_conn(ro);

	if (rc != -EXFULL)
		return rc;
	if (!time_before(jiffies, ro->last))
		return SMC_REASON_MEM;
	ro->offer->deadline = jiffies + RMB_INTERVAL;
	return -EINPROGRESS;
}

/* Takes a place in the group that the server means. Return: 0, -EINPROGRESS or a reason. */
static int client_join_lgr(struct smc_rdma_offer *ro, const struct smc_clc_accept *peer)
{
	struct smc_lgr_key key;
	struct smc_lgr *lgr;

	client_lgr_key(ro, peer, &key);
	lgr = smc_lgr_join(&key, peer->first_contact ? SMC_LGR_FORM : SMC_LGR_FIND, peer, &ro->first);
	if (IS_ERR(lgr))
		return PTR_ERR(lgr) == -ENOENT ? SMC_REASON_SYNC : SMC_REASON_MEM;
	ro->lgr = lgr;
	ro->placed = true;
	if (ro->first)
		return client_form_lgr(ro, peer);
	ro->link = smc_lgr_rdma_get_link(smc_lgr_rdma_of(lgr), peer);
	return ro->link ? client_make_conn(ro) : SMC_REASON_NO_ACTIVE_LINK;
}

static void rdma_fill_confirm(const struct smc_rdma_offer *ro, const struct smc_clc_accept *peer, struct smc_clc_accept *us)
{
	memset(us, 0, sizeof(*us));
	us->type = SMC_CLC_CONFIRM;
	smc_rdma_fill_local(ro, us);
	memcpy(us->eid, peer->eid, sizeof(us->eid));
	if (!us->has_fce)
		return;
	us->n_gids = 1;
	memcpy(us->gids[0], us->gid, sizeof(us->gids[0]));
}

/* Waits for CONFIRM LINK of the server, and answers it. Return: 0, -EINPROGRESS or a reason. */
static int client_confirm_link(struct smc_rdma_offer *ro)
{
	struct smc_lgr_rdma *group = smc_lgr_rdma_of(ro->lgr);
	int rc;

	if (!ro->started) {
		ro->started = true;
		ro->last = jiffies + CLIENT_CONFIRM_LINK_TIMEOUT;
		smc_rdma_wait(ro, CLIENT_CONFIRM_LINK_TIMEOUT);
	}
	rc = smc_rdma_confirmed(ro);
	if (rc)
		return rc;
	rc = smc_rdma_open_link(ro);
	if (rc)
		return rc;
	/* After our answer, other connections may join this group, and have to find it ready. */
	smc_lgr_rdma_ready(group);
	smc_rdma_llc_confirm_link(ro->link, true);
	return 0;
}

/* smc_rdma_client_attach() - attach of the transport, for a client. Return: as attach does. */
int smc_rdma_client_attach(struct smc_offer *offer, const struct smc_clc_accept *peer, struct smc_clc_accept *us)
{
	struct smc_rdma_offer *ro = smc_rdma_offer_of(offer);
	int rc;

	might_sleep();
	if (!peer)
		return ro->first ? client_confirm_link(ro) : 0;
	if (peer->version > 2 || !ro->path[peer->version - 1].dev)
		return -EPROTO;
	if (!offer->conn) {
		if (!ro->lgr)
			ro->last = jiffies + SMC_RDMA_LLC_WAIT;
		rc = ro->lgr ? client_make_conn(ro) : client_join_lgr(ro, peer);
		if (rc)
			return rc;
		rc = smc_rdma_set_peer(ro, peer);
		if (rc)
			return rc;
		smc_lgr_set_peer(ro->lgr, peer);
	}
	rc = ro->first ? 0 : smc_rdma_confirm_rmb(ro);
	if (rc)
		return rc;
	rdma_fill_confirm(ro, peer, us);
	smc_rdma_conn_of(offer->conn)->exposed = true;
	return 0;
}
