// SPDX-License-Identifier: GPL-2.0-only
/*
 * SMC_GEN_NETLINK: link groups, links and devices of SMC-R
 *
 * A namespace is shown the groups that smc_lgr_walk() visits for it, and the devices that it may use. Attributes and
 * their order are the stock module's.
 */
#include <net/sock.h>

#include "../lgr/lgr.h"
#include "../transport/rdma/show.h"
#include "../transport/transport.h"
#include "netlink.h"

/* A group of which messages are made. */
struct shown_lgr {
	const struct smc_lgr_view *view;
	struct smc_rdma_lgr_view r;
	const struct smc_rdma_link_view *link;
};

static bool is_same_port(const struct smc_rdma_link_view *a, const struct smc_rdma_link_view *b)
{
	return a->ib_port == b->ib_port && !strcmp(a->ib_dev, b->ib_dev);
}

static u8 lgr_type(const struct smc_rdma_lgr_view *r)
{
	const struct smc_rdma_link_view *a = &r->links[0], *b = &r->links[1];

	if (r->n_links < 2 || a->state != SMC_UAPI_LINK_STATE_ACTIVE || b->state != SMC_UAPI_LINK_STATE_ACTIVE)
		return SMC_UAPI_LGR_TYPE_SINGLE;
	if (is_same_port(a, b))
		return SMC_UAPI_LGR_TYPE_ASYMMETRIC_LOCAL;
	if (!memcmp(a->peer_gid, b->peer_gid, sizeof(a->peer_gid)))
		return SMC_UAPI_LGR_TYPE_ASYMMETRIC_PEER;
	return SMC_UAPI_LGR_TYPE_SYMMETRIC;
}

static int put_v2(struct sk_buff *skb, const struct smc_rdma_lgr_view *r)
{
	struct nlattr *nest = nla_nest_start(skb, SMC_NLA_LGR_R_V2);

	if (!nest || nla_put_u8(skb, SMC_NLA_LGR_R_V2_DIRECT, r->direct) ||
	    nla_put_u8(skb, SMC_UAPI_LGR_R_V2_MAX_CONNS, r->max_conns) ||
	    nla_put_u8(skb, SMC_UAPI_LGR_R_V2_MAX_LINKS, r->max_links))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static int put_smcr_lgr(struct sk_buff *skb, void *arg)
{
	const struct shown_lgr *shown = arg;
	const struct smc_rdma_lgr_view *r = &shown->r;
	const struct smc_lgr_view *view = shown->view;
	struct nlattr *nest = nla_nest_start(skb, SMC_GEN_LGR_SMCR);

	if (!nest || nla_put_u32(skb, SMC_NLA_LGR_R_ID, view->id) ||
	    nla_put_u32(skb, SMC_NLA_LGR_R_CONNS_NUM, view->n_conns) ||
	    nla_put_u8(skb, SMC_NLA_LGR_R_ROLE, r->server) ||
	    nla_put_u8(skb, SMC_NLA_LGR_R_TYPE, lgr_type(r)) ||
	    nla_put_u8(skb, SMC_NLA_LGR_R_BUF_TYPE, r->buf_type) ||
	    nla_put_u8(skb, SMC_NLA_LGR_R_VLAN_ID, view->vlan) ||
	    smc_netlink_put_u64(skb, SMC_NLA_LGR_R_NET_COOKIE, view->net_cookie) ||
	    nla_put_string(skb, SMC_NLA_LGR_R_PNETID, r->pnet_id) ||
	    nla_put_uint(skb, SMC_UAPI_LGR_R_SNDBUF_ALLOC, r->snd_bytes) ||
	    nla_put_uint(skb, SMC_UAPI_LGR_R_RMB_ALLOC, r->rmb_bytes))
		return -EMSGSIZE;
	if (view->version > 1 && (put_v2(skb, r) || smc_netlink_put_lgr_v2(skb, SMC_NLA_LGR_R_V2_COMMON, view)))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static int put_link(struct sk_buff *skb, void *arg)
{
	const struct shown_lgr *shown = arg;
	struct nlattr *nest = nla_nest_start(skb, SMC_GEN_LINK_SMCR);

	if (!nest || smc_netlink_put_link(skb, shown->link))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

/* Adds a group, and its links if they are asked for: all, or nothing. */
static int add_lgr(struct smc_lgr *lgr, const struct smc_lgr_view *view, const struct smc_netlink_dump *d, bool links)
{
	void *before = skb_tail_pointer(d->skb);
	struct shown_lgr shown = { .view = view };
	unsigned int i;

	if (view->role != SMC_ROLE_R)
		return 0;
	smc_rdma_show_lgr(lgr, view->whole ? NULL : sock_net(d->skb->sk), &shown.r);
	/* A group that is being formed or has ended has no link. */
	if (!shown.r.n_links)
		return 0;
	if (smc_netlink_add_msg(d, SMC_NETLINK_GET_LGR_SMCR, put_smcr_lgr, &shown))
		return -EMSGSIZE;
	/* All connections of a group with one link are over that link. */
	if (shown.r.n_links == 1)
		shown.r.links[0].conn_cnt = view->n_conns;
	for (i = 0; links && i < shown.r.n_links; i++) {
		shown.link = &shown.r.links[i];
		if (smc_netlink_add_msg(d, SMC_NETLINK_GET_LINK_SMCR, put_link, &shown)) {
			nlmsg_trim(d->skb, before);
			return -EMSGSIZE;
		}
	}
	return 0;
}

static int dump_smcr_lgr(struct smc_lgr *lgr, struct smc_lgr_view *view, void *arg)
{
	return add_lgr(lgr, view, arg, false);
}

static int dump_lgr_and_links(struct smc_lgr *lgr, struct smc_lgr_view *view, void *arg)
{
	return add_lgr(lgr, view, arg, true);
}

/* smc_netlink_dump_smcr_groups() - answers SMC_NETLINK_GET_LGR_SMCR */
int smc_netlink_dump_smcr_groups(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct smc_netlink_dump d = { .skb = skb, .cb = cb };

	smc_lgr_walk(sock_net(skb->sk), &smc_netlink_cursor_of(cb)->next, dump_smcr_lgr, &d);
	return skb->len;
}

/* smc_netlink_dump_smcr_links() - answers SMC_NETLINK_GET_LINK_SMCR: each group, then its links */
int smc_netlink_dump_smcr_links(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct smc_netlink_dump d = { .skb = skb, .cb = cb };

	smc_lgr_walk(sock_net(skb->sk), &smc_netlink_cursor_of(cb)->next, dump_lgr_and_links, &d);
	return skb->len;
}

static int put_port(struct sk_buff *skb, int type, const struct smc_rdma_port_view *p)
{
	struct nlattr *nest = nla_nest_start(skb, type);

	if (!nest || nla_put_u8(skb, SMC_NLA_DEV_PORT_PNET_USR, p->by_user) ||
	    nla_put_string(skb, SMC_NLA_DEV_PORT_PNETID, p->pnet_id) ||
	    nla_put_u32(skb, SMC_NLA_DEV_PORT_NETDEV, p->ifindex) ||
	    nla_put_u8(skb, SMC_NLA_DEV_PORT_STATE, p->active) ||
	    nla_put_u8(skb, SMC_NLA_DEV_PORT_VALID, p->valid) ||
	    nla_put_u32(skb, SMC_NLA_DEV_PORT_LNK_CNT, p->links))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static int put_pci(struct sk_buff *skb, const struct smc_rdma_dev_view *view)
{
	return nla_put_u32(skb, SMC_NLA_DEV_PCI_FID, view->fid) ||
	       nla_put_u16(skb, SMC_NLA_DEV_PCI_CHID, view->chid) ||
	       nla_put_u16(skb, SMC_NLA_DEV_PCI_VENDOR, view->vendor) ||
	       nla_put_u16(skb, SMC_NLA_DEV_PCI_DEVICE, view->device) ||
	       nla_put_string(skb, SMC_NLA_DEV_PCI_ID, view->pci);
}

/* A group may have no other link, so each device that is in use counts as critical. */
static int put_smcr_dev(struct sk_buff *skb, void *arg)
{
	const struct smc_rdma_dev_view *view = arg;
	struct nlattr *nest = nla_nest_start(skb, SMC_GEN_DEV_SMCR);

	static_assert(SMC_RDMA_SHOW_PORTS == 2);
	if (!nest || nla_put_u8(skb, SMC_NLA_DEV_IS_CRIT, view->critical > 0) ||
	    (view->is_pci && put_pci(skb, view)) ||
	    nla_put_string(skb, SMC_NLA_DEV_IB_NAME, view->name) ||
	    put_port(skb, SMC_NLA_DEV_PORT, &view->ports[0]) || put_port(skb, SMC_NLA_DEV_PORT2, &view->ports[1]) ||
	    nla_put_u32(skb, SMC_NLA_DEV_USE_CNT, view->links))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static int dump_smcr_dev(const struct smc_rdma_dev_view *view, void *arg)
{
	return smc_netlink_add_msg(arg, SMC_NETLINK_GET_DEV_SMCR, put_smcr_dev, (void *)view);
}

/* smc_netlink_dump_smcr_devices() - answers SMC_NETLINK_GET_DEV_SMCR */
int smc_netlink_dump_smcr_devices(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct smc_netlink_dump d = { .skb = skb, .cb = cb };

	smc_rdma_show_devices(sock_net(skb->sk), &smc_netlink_cursor_of(cb)->next, dump_smcr_dev, &d);
	return skb->len;
}
