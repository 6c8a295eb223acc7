// SPDX-License-Identifier: GPL-2.0-only
/*
 * SMC_GEN_NETLINK: link groups and devices of SMC-D
 *
 * A namespace is shown the groups that smc_lgr_walk() visits for it, and all devices of the host. Attributes and their
 * order are the stock module's. That does not list its loopback device; a host that uses SMC-D would look as if it could not.
 */
#include <net/sock.h>

#include "../lgr/lgr.h"
#include "../transport/ism/show.h"
#include "../transport/transport.h"
#include "netlink.h"

/* smc_netlink_put_lgr_v2() - puts what the peer of a version 2 group has sent about itself */
int smc_netlink_put_lgr_v2(struct sk_buff *skb, int type, const struct smc_lgr_view *view)
{
	struct nlattr *nest = nla_nest_start(skb, type);

	static_assert(SMC_HOSTNAME_LEN == SMC_MAX_EID_LEN && SMC_EID_LEN == SMC_MAX_EID_LEN);
	if (!nest || nla_put_u8(skb, SMC_NLA_LGR_V2_VER, view->version) ||
	    nla_put_u8(skb, SMC_NLA_LGR_V2_REL, view->peer.release) ||
	    nla_put_u8(skb, SMC_NLA_LGR_V2_OS, view->peer.os_type) ||
	    smc_netlink_put_eid(skb, SMC_NLA_LGR_V2_PEER_HOST, view->peer.host) ||
	    smc_netlink_put_eid(skb, SMC_NLA_LGR_V2_NEG_EID, view->peer.eid))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static int put_smcd_lgr(struct sk_buff *skb, void *arg)
{
	struct nlattr *nest = nla_nest_start(skb, SMC_GEN_LGR_SMCD);
	const struct smc_lgr_view *view = arg;
	struct smc_ism_view dev;

	smc_ism_describe(view->dev, &dev);
	/* There are no send buffers, since the writer copies into the peer's DMB. */
	if (!nest || nla_put_u32(skb, SMC_NLA_LGR_D_ID, view->id) ||
	    smc_netlink_put_u64(skb, SMC_NLA_LGR_D_GID, dev.gid[0]) ||
	    smc_netlink_put_u64(skb, SMC_UAPI_LGR_D_EXT_GID, dev.gid[1]) ||
	    smc_netlink_put_u64(skb, SMC_NLA_LGR_D_PEER_GID, view->gid[0]) ||
	    smc_netlink_put_u64(skb, SMC_UAPI_LGR_D_PEER_EXT_GID, view->gid[1]) ||
	    nla_put_u8(skb, SMC_NLA_LGR_D_VLAN_ID, view->vlan) ||
	    nla_put_u32(skb, SMC_NLA_LGR_D_CONNS_NUM, view->n_conns) ||
	    nla_put_u32(skb, SMC_NLA_LGR_D_CHID, dev.chid) ||
	    nla_put_uint(skb, SMC_UAPI_LGR_D_SNDBUF_ALLOC, 0) ||
	    nla_put_uint(skb, SMC_UAPI_LGR_D_DMB_ALLOC, view->buf_bytes) ||
	    nla_put_string(skb, SMC_NLA_LGR_D_PNETID, dev.pnet_id))
		return -EMSGSIZE;
	if (view->version > 1 && smc_netlink_put_lgr_v2(skb, SMC_NLA_LGR_D_V2_COMMON, view))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static int dump_smcd_lgr(struct smc_lgr *lgr, struct smc_lgr_view *view, void *arg)
{
	if (view->role != SMC_ROLE_D)
		return 0;
	return smc_netlink_add_msg(arg, SMC_NETLINK_GET_LGR_SMCD, put_smcd_lgr, view);
}

/* smc_netlink_dump_smcd_groups() - answers SMC_NETLINK_GET_LGR_SMCD */
int smc_netlink_dump_smcd_groups(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct smc_netlink_dump d = { .skb = skb, .cb = cb };

	smc_lgr_walk(sock_net(skb->sk), &smc_netlink_cursor_of(cb)->next, dump_smcd_lgr, &d);
	return skb->len;
}

/* The loopback device is on no PCI bus, so its name stands for the PCI address and the numbers are 0. */
static int put_smcd_dev(struct sk_buff *skb, void *arg)
{
	const struct smc_ism_view *dev = arg;
	struct nlattr *nest = nla_nest_start(skb, SMC_GEN_DEV_SMCD), *port;

	if (!nest || nla_put_u32(skb, SMC_NLA_DEV_USE_CNT, dev->groups) ||
	    nla_put_u8(skb, SMC_NLA_DEV_IS_CRIT, dev->groups > 0) ||
	    nla_put_u32(skb, SMC_NLA_DEV_PCI_FID, 0) ||
	    nla_put_u16(skb, SMC_NLA_DEV_PCI_CHID, dev->chid) ||
	    nla_put_u16(skb, SMC_NLA_DEV_PCI_VENDOR, dev->pci_vendor) ||
	    nla_put_u16(skb, SMC_NLA_DEV_PCI_DEVICE, dev->pci_device) ||
	    nla_put_string(skb, SMC_NLA_DEV_PCI_ID, dev->name))
		return -EMSGSIZE;
	port = nla_nest_start(skb, SMC_NLA_DEV_PORT);
	if (!port || nla_put_u8(skb, SMC_NLA_DEV_PORT_PNET_USR, dev->pnet_by_user) ||
	    nla_put_string(skb, SMC_NLA_DEV_PORT_PNETID, dev->pnet_id))
		return -EMSGSIZE;
	nla_nest_end(skb, port);
	nla_nest_end(skb, nest);
	return 0;
}

static int dump_smcd_dev(struct smc_ism_view *dev, void *arg)
{
	return smc_netlink_add_msg(arg, SMC_NETLINK_GET_DEV_SMCD, put_smcd_dev, dev);
}

/* smc_netlink_dump_smcd_devices() - answers SMC_NETLINK_GET_DEV_SMCD */
int smc_netlink_dump_smcd_devices(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct smc_netlink_dump d = { .skb = skb, .cb = cb };

	smc_ism_walk(&smc_netlink_cursor_of(cb)->next, dump_smcd_dev, &d);
	return skb->len;
}
