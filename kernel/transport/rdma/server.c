// SPDX-License-Identifier: GPL-2.0-only
/* The listening side of a rendezvous over RDMA (docs/protocol.md, 5.1 and 5.2). */

#include <linux/etherdevice.h>

#include "../../control/eid.h"
#include "../../control/sysctl.h"
#include "../../net.h"
#include "../../wire/reason.h"
#include "rdma.h"

/* How long the client has for its response to CONFIRM LINK. */
#define SERVER_CONFIRM_LINK_TIMEOUT (2 * HZ)
/* How long a connection that wants to join waits for first contact, or a test of the links. */
#define FORMING_TIMEOUT (5 * HZ / 2)

/* Return: 0 or a reason. */
static int server_choose_path(struct smc_rdma_offer *ro, const struct smc_clc_proposal *p)
{
	int reason = SMC_REASON_NO_R_DEV;

	if (p->has_v2 && smc_clc_path_has_r(p->path_v2)) {
		if (!smc_eid_negotiate(p->eid, p->n_eid, ro->eid))
			reason = SMC_REASON_NO_UEID;
		else if (!smc_rdma_choose(ro->offer->sk, 2, p->rocev2_gid, &ro->path[0]))
			return 0;
	}
	if (smc_clc_path_has_r(p->path_v1) && !smc_rdma_choose(ro->offer->sk, 1, p->gid, &ro->path[0]))
		return 0;
	return reason;
}

static int server_join_lgr(struct smc_rdma_offer *ro, const struct smc_clc_proposal *p)
{
	const struct smc_rdma_path *path = &ro->path[0];
	struct smc_lgr_key key = {
		.ops = &smc_rdma_transport,
		.net = path->net,
		.vlan = path->vlan,
		.version = path->version,
		.server = true,
		.ends.dev = path->dev,
	};
	struct smc_lgr *lgr;

	memcpy(key.peer_id, p->peer_id, sizeof(key.peer_id));
	memcpy(key.ends.gid, path->version > 1 ? p->rocev2_gid : p->gid, sizeof(key.ends.gid));
	memcpy(key.ends.own_gid, path->gid, sizeof(key.ends.own_gid));
	if (path->version < 2)
		memcpy(key.ends.mac, p->mac, sizeof(key.ends.mac));
	lgr = smc_lgr_join(&key, SMC_LGR_FIND_OR_FORM, NULL, &ro->first);
	if (IS_ERR(lgr))
		return SMC_REASON_MEM;
	ro->lgr = lgr;
	ro->placed = true;
	return 0;
}

static void set_limits(struct smc_lgr_rdma *group, const struct smc_clc_proposal *p)
{
	const struct smc_sysctl *sysctl = smc_net(group->lgr->key.net)->sysctl;

	group->release = group->version > 1 ? min_t(u8, p->release, SMC_CLC_RELEASE) : 0;
	group->max_conns = min_t(unsigned int, READ_ONCE(sysctl->smcr_max_conns_per_lgr), 255);
	group->max_links = 2;
	if (group->release) {
		group->max_conns = min(group->max_conns, p->max_conns);
		group->max_links = min_t(u8, p->max_links, READ_ONCE(sysctl->smcr_max_links_per_lgr));
		group->features = SMC_CLC_FEATURES;
		/* Until the client agrees; there is no link before that. */
		group->immediate = smc_clc_vendor_immediate(p->vendor) && READ_ONCE(sysctl->smcr_immediate);
	}
	group->link_limit = min_t(u8, group->max_links, READ_ONCE(sysctl->smcr_max_links_per_lgr));
	group->lgr->max_conns = group->max_conns;
}

/* First contact: forms a group with a link. Return: 0 or a reason. */
static int server_form_lgr(struct smc_rdma_offer *ro, const struct smc_clc_proposal *p)
{
	struct smc_lgr_rdma *group = smc_lgr_rdma_of(ro->lgr);
	struct smc_link_peer to = {};
	int rc;

	set_limits(group, p);
	memcpy(to.gid, group->version > 1 ? p->rocev2_gid : p->gid, sizeof(to.gid));
	memcpy(to.mac, p->mac, sizeof(to.mac));
	if (group->version > 1 && smc_rdma_route(ro->offer, to.gid, to.mac, &to.gateway))
		return SMC_REASON_NO_ROUTE;
	group->direct = !to.gateway;
	rc = smc_rdma_form(ro, &ro->path[0]);
	if (rc)
		return rc;
	ro->link->peer = to;
	ro->link->id = 1;
	return smc_rdma_make_conn(ro);
}

/*
 * Waits while first contact of another connection with the client, or a test of the links, is under way. Return: 0,
 * -EINPROGRESS, -EAGAIN if the group is of no use, or a reason.
 */
static int wait_for_group(struct smc_rdma_offer *ro)
{
	struct smc_lgr_rdma *group = smc_lgr_rdma_of(ro->lgr);

	if (list_empty(&ro->list))
		smc_rdma_wait(ro, FORMING_TIMEOUT);
	switch (READ_ONCE(group->state)) {
	case SMC_LGR_RDMA_READY:
		if (READ_ONCE(group->llc.verifying))
			break;
		smc_rdma_stop_waiting(ro);
		ro->link = smc_lgr_rdma_get_link(group, NULL);
		return ro->link ? 0 : -EAGAIN;
	case SMC_LGR_RDMA_ENDED:
		return -EAGAIN;
	default:
		break;
	}
	/* The client of the first contact may be at fault, and this one not: no reason that is remembered. */
	return smc_rdma_timed_out(ro) ? SMC_REASON_NO_ACTIVE_LINK : -EINPROGRESS;
}

/* Gives back the place in a group that is of no use. */
static void server_leave_lgr(struct smc_rdma_offer *ro)
{
	smc_rdma_stop_waiting(ro);
	smc_link_put(ro->link);
	ro->link = NULL;
	smc_lgr_leave(ro->lgr);
	ro->lgr = NULL;
	ro->placed = false;
}

/* Makes a connection in a group, which this rendezvous or another forms. Return: 0, -EINPROGRESS or a reason. */
static int server_make_conn(struct smc_rdma_offer *ro, const struct smc_clc_proposal *p)
{
	int rc;

	do {
		rc = ro->lgr ? 0 : server_join_lgr(ro, p);
		if (rc)
			return rc;
		if (ro->first)
			return server_form_lgr(ro, p);
		rc = wait_for_group(ro) ?: smc_rdma_make_conn(ro);
		/* The last quiet RMB is another connection's now, or not quiet any more: another group takes this one. */
		if (rc == -EAGAIN || rc == -EXFULL)
			server_leave_lgr(ro);
	} while (rc == -EAGAIN || rc == -EXFULL);
	return rc;
}

static int server_match(struct smc_rdma_offer *ro, const struct smc_clc_proposal *p)
{
	int rc = ro->path[0].dev ? 0 : server_choose_path(ro, p);

	if (rc)
		return rc;
	if (!ro->offer->conn)
		rc = server_make_conn(ro, p);
	if (rc)
		return rc;
	return ro->first ? 0 : smc_rdma_confirm_rmb(ro);
}

/* smc_rdma_server_match() - match of the transport. Return: as match does. */
int smc_rdma_server_match(struct smc_offer *offer, const struct smc_clc_proposal *p, struct smc_clc_accept *us)
{
	struct smc_rdma_offer *ro = smc_rdma_offer_of(offer);
	int rc;

	might_sleep();
	if (!ro)
		ro = smc_rdma_offer_new(offer);
	if (!ro)
		return SMC_REASON_MEM;
	rc = server_match(ro, p);
	if (rc > 0)
		smc_rdma_transport.detach(offer);
	if (rc)
		return rc;
	memset(us, 0, sizeof(*us));
	us->type = SMC_CLC_ACCEPT;
	smc_rdma_fill_local(ro, us);
	memcpy(us->eid, ro->eid, sizeof(us->eid));
	/* A client that joins writes as soon as it has answered. */
	smc_rdma_conn_of(offer->conn)->exposed = true;
	return 0;
}

/* The client can receive: opens our side of the link, and sends CONFIRM LINK. Return: 0 or a reason. */
static int open_first_link(struct smc_rdma_offer *ro, const struct smc_clc_accept *peer)
{
	struct smc_lgr_rdma *group = smc_lgr_rdma_of(ro->lgr);
	struct smc_link *link = ro->link;
	int rc;

	link->peer.qpn = peer->qpn;
	link->peer.psn = peer->psn;
	link->peer.mtu_code = peer->mtu_code;
	memcpy(link->peer.clc_gid, peer->gid, sizeof(link->peer.clc_gid));
	memcpy(link->peer.clc_mac, peer->mac, sizeof(link->peer.clc_mac));
	group->immediate &= smc_clc_vendor_immediate(peer->vendor);
	smc_link_peer_recvs(link, peer->vendor);
	/* Of version 2, PROPOSAL may have had the address of another port, which serves version 1. */
	if (!link->peer.gateway && (ro->path[0].version > 1 || is_zero_ether_addr(link->peer.mac)))
		memcpy(link->peer.mac, peer->mac, sizeof(link->peer.mac));
	if (smc_link_to_rtr(link))
		return SMC_REASON_READY_LINK;
	rc = smc_rdma_open_link(ro);
	if (rc)
		return rc;
	rc = smc_rdma_set_peer(ro, peer);
	if (rc)
		return rc;
	smc_lgr_set_peer(ro->lgr, peer);
	ro->last = jiffies + SERVER_CONFIRM_LINK_TIMEOUT;
	smc_rdma_wait(ro, SERVER_CONFIRM_LINK_TIMEOUT);
	smc_rdma_llc_confirm_link(link, false);
	return 0;
}

static int first_contact(struct smc_rdma_offer *ro, const struct smc_clc_accept *peer)
{
	struct smc_lgr_rdma *group = smc_lgr_rdma_of(ro->lgr);
	int rc;

	if (!ro->started) {
		ro->started = true;
		rc = open_first_link(ro, peer);
		if (rc)
			return rc;
	}
	rc = smc_rdma_confirmed(ro);
	if (rc)
		return rc;
	smc_lgr_rdma_ready(group);
	if (group->link_limit > 1)
		smc_rdma_add_want(group);
	else if (!group->release)
		smc_rdma_llc_no_second(ro->link);
	return 0;
}

/*
 * Checks the client's CONFIRM of a subsequent contact (RFC 7609, 3.5.2.3): it names the link that our ACCEPT has named, and
 * an RMB that the client has announced. If it does not, the TCP connection breaks: a DECLINE cannot follow an ACCEPT (C.1),
 * because the client has its connection already. So the connection goes on if the link has been lost meanwhile, and moves to
 * another one. Return: 0 or -EPROTO.
 */
static int subsequent_contact(struct smc_rdma_offer *ro, const struct smc_clc_accept *peer)
{
	const struct smc_link *link = ro->link;
	bool same;

	spin_lock_bh(&link->group->lock);
	same = smc_link_is_peer(link, peer->gid, peer->mac, peer->qpn);
	spin_unlock_bh(&link->group->lock);
	return same && !smc_rdma_set_peer(ro, peer) ? 0 : -EPROTO;
}

/* smc_rdma_server_attach() - attach of the transport, for a server. Return: as attach does. */
int smc_rdma_server_attach(struct smc_offer *offer, const struct smc_clc_accept *peer)
{
	struct smc_rdma_offer *ro = smc_rdma_offer_of(offer);

	might_sleep();
	return ro->first ? first_contact(ro, peer) : subsequent_contact(ro, peer);
}
