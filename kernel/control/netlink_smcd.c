// SPDX-License-Identifier: GPL-2.0-only
/*
 * SMC_GEN_NETLINK: link groups and devices of SMC-D
 *
 * Groups are those that the namespace sees which asks, with its own connections (see smc_lgr_walk()), devices those of
 * the host. Attributes and their order are the stock module's. What it does not do is to list its loopback device; without it a
 * host that uses SMC-D would look like one that cannot.
 */
#include "../lgr/lgr.h"
#include "../net.h"
#include "../transport/ism/ism.h"
#include "netlink.h"

COMPAT_ASSERT_UAPI(SMC_NLA_LGR_D_EXT_GID, SMC_UAPI_LGR_D_EXT_GID);
COMPAT_ASSERT_UAPI(SMC_NLA_LGR_D_PEER_EXT_GID, SMC_UAPI_LGR_D_PEER_EXT_GID);
COMPAT_ASSERT_UAPI(SMC_NLA_LGR_D_SNDBUF_ALLOC, SMC_UAPI_LGR_D_SNDBUF_ALLOC);
COMPAT_ASSERT_UAPI(SMC_NLA_LGR_D_DMB_ALLOC, SMC_UAPI_LGR_D_DMB_ALLOC);

struct dump {
	struct sk_buff *skb;
	struct netlink_callback *cb;
};

/* smc_netlink_put_lgr_v2() - what version 2 tells of the peer, alike for both kinds of groups */
int smc_netlink_put_lgr_v2(struct sk_buff *skb, int type, const struct smc_lgr *lgr, const struct smc_lgr_view *view)
{
	struct nlattr *nest = nla_nest_start(skb, type);

	static_assert(SMC_HOSTNAME_LEN == SMC_MAX_EID_LEN && SMC_EID_LEN == SMC_MAX_EID_LEN);
	if (!nest || nla_put_u8(skb, SMC_NLA_LGR_V2_VER, lgr->key.version) ||
	    nla_put_u8(skb, SMC_NLA_LGR_V2_REL, view->release) ||
	    nla_put_u8(skb, SMC_NLA_LGR_V2_OS, view->os_type) ||
	    smc_netlink_put_eid(skb, SMC_NLA_LGR_V2_PEER_HOST, view->host) ||
	    smc_netlink_put_eid(skb, SMC_NLA_LGR_V2_NEG_EID, view->eid))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static int put_u64(struct sk_buff *skb, int type, u64 value)
{
	return nla_put_u64_64bit(skb, type, value, SMC_NLA_LGR_D_PAD);
}

static int put_group(struct sk_buff *skb, struct smc_lgr *lgr)
{
	const struct smc_ism_dev *dev = lgr->key.dev;
	struct smc_lgr_view view;
	struct nlattr *nest;

	smc_lgr_describe(lgr, sock_net(skb->sk), &view);
	nest = nla_nest_start(skb, SMC_GEN_LGR_SMCD);
	/* The writer copies into the peer's buffer: there are none for sending. */
	if (!nest || nla_put_u32(skb, SMC_NLA_LGR_D_ID, lgr->id) ||
	    put_u64(skb, SMC_NLA_LGR_D_GID, dev->gid[0]) ||
	    put_u64(skb, SMC_UAPI_LGR_D_EXT_GID, dev->gid[1]) ||
	    put_u64(skb, SMC_NLA_LGR_D_PEER_GID, lgr->key.gid[0]) ||
	    put_u64(skb, SMC_UAPI_LGR_D_PEER_EXT_GID, lgr->key.gid[1]) ||
	    nla_put_u8(skb, SMC_NLA_LGR_D_VLAN_ID, lgr->key.vlan) ||
	    nla_put_u32(skb, SMC_NLA_LGR_D_CONNS_NUM, view.n_conns) ||
	    nla_put_u32(skb, SMC_NLA_LGR_D_CHID, dev->chid) ||
	    nla_put_uint(skb, SMC_UAPI_LGR_D_SNDBUF_ALLOC, 0) ||
	    nla_put_uint(skb, SMC_UAPI_LGR_D_DMB_ALLOC, view.buf_bytes) ||
	    nla_put_string(skb, SMC_NLA_LGR_D_PNETID, ""))
		return -EMSGSIZE;
	if (lgr->key.version > 1 && smc_netlink_put_lgr_v2(skb, SMC_NLA_LGR_D_V2_COMMON, lgr, &view))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

/* Under the lock of the list of groups. */
static int dump_group(struct smc_lgr *lgr, void *arg)
{
	struct dump *d = arg;
	void *msg;

	if (lgr->key.ops->role != SMC_ROLE_D)
		return 0;
	msg = smc_netlink_begin(d->skb, d->cb, SMC_NETLINK_GET_LGR_SMCD);
	if (!msg)
		return -EMSGSIZE;
	if (put_group(d->skb, lgr)) {
		genlmsg_cancel(d->skb, msg);
		return -EMSGSIZE;
	}
	genlmsg_end(d->skb, msg);
	return 0;
}

/**
 * smc_netlink_dump_smcd_groups() - answer SMC_NETLINK_GET_LGR_SMCD
 * @skb: answer
 * @cb: dump
 *
 * Context: process, called by generic netlink.
 * Return: length of the answer.
 */
int smc_netlink_dump_smcd_groups(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct dump d = { .skb = skb, .cb = cb };

	smc_lgr_walk(sock_net(skb->sk), &smc_netlink_cursor_of(cb)->next, dump_group, &d);
	return skb->len;
}

/* An emulated device is on no PCI bus: its name stands for its address, and there are no numbers. */
static int put_dev(struct sk_buff *skb, const struct smc_ism_dev *dev)
{
	struct nlattr *nest = nla_nest_start(skb, SMC_GEN_DEV_SMCD), *port;
	unsigned int conns, groups = smc_lgr_count_dev(dev, &conns);

	if (!nest || nla_put_u32(skb, SMC_NLA_DEV_USE_CNT, groups) ||
	    nla_put_u8(skb, SMC_NLA_DEV_IS_CRIT, groups > 0) ||
	    nla_put_u32(skb, SMC_NLA_DEV_PCI_FID, 0) ||
	    nla_put_u16(skb, SMC_NLA_DEV_PCI_CHID, dev->chid) ||
	    nla_put_u16(skb, SMC_NLA_DEV_PCI_VENDOR, 0) ||
	    nla_put_u16(skb, SMC_NLA_DEV_PCI_DEVICE, 0) ||
	    nla_put_string(skb, SMC_NLA_DEV_PCI_ID, dev->name))
		return -EMSGSIZE;
	port = nla_nest_start(skb, SMC_NLA_DEV_PORT);
	if (!port || nla_put_u8(skb, SMC_NLA_DEV_PORT_PNET_USR, false) ||
	    nla_put_string(skb, SMC_NLA_DEV_PORT_PNETID, ""))
		return -EMSGSIZE;
	nla_nest_end(skb, port);
	nla_nest_end(skb, nest);
	return 0;
}

/* Under the lock of the list of devices. */
static int dump_device(struct smc_ism_dev *dev, void *arg)
{
	struct dump *d = arg;
	void *msg = smc_netlink_begin(d->skb, d->cb, SMC_NETLINK_GET_DEV_SMCD);

	if (!msg)
		return -EMSGSIZE;
	if (put_dev(d->skb, dev)) {
		genlmsg_cancel(d->skb, msg);
		return -EMSGSIZE;
	}
	genlmsg_end(d->skb, msg);
	return 0;
}

/**
 * smc_netlink_dump_smcd_devices() - answer SMC_NETLINK_GET_DEV_SMCD
 * @skb: answer
 * @cb: dump
 *
 * Context: process, called by generic netlink; may sleep.
 * Return: length of the answer.
 */
int smc_netlink_dump_smcd_devices(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct dump d = { .skb = skb, .cb = cb };

	smc_ism_walk(&smc_netlink_cursor_of(cb)->next, dump_device, &d);
	return skb->len;
}
