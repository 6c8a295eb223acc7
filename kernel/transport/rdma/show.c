// SPDX-License-Identifier: GPL-2.0-only
/* Groups, links and devices of SMC-R, as control interfaces show them. */

#include <linux/pci.h>

#include "../../lgr/lgr.h"
#include "../../net.h"
#include "../../uapi/smc_uapi.h"
#include "rdma.h"
#include "show.h"

static void show_pnet_id(const struct smc_rdma_dev *dev, u8 port, char text[SMC_PNET_ID_LEN + 1], bool *by_user)
{
	u8 id[SMC_PNET_ID_LEN];

	memset(text, 0, SMC_PNET_ID_LEN + 1);
	if (!smc_rdma_pnet_id(dev, port, id, by_user))
		memcpy(text, id, sizeof(id));
	else
		*by_user = false;
}

static void show_link(const struct smc_link *link, struct smc_rdma_link_view *view)
{
	lockdep_assert_held(&link->group->lock);
	static_assert(sizeof(view->ib_dev) == SMC_PNET_IB_LEN + 1);
	strscpy(view->ib_dev, link->path.dev->ib->name, sizeof(view->ib_dev));
	view->ib_port = link->path.port;
	view->id = link->id;
	view->state = smc_link_usable(link) && link->active ? SMC_UAPI_LINK_STATE_ACTIVE : SMC_UAPI_LINK_STATE_ACTIVATING;
	memcpy(view->gid, link->path.gid, sizeof(view->gid));
	memcpy(view->peer_gid, link->peer.gid, sizeof(view->peer_gid));
	smc_rdma_user_id(link, view->uid);
	memcpy(view->peer_uid, link->peer.user_id, sizeof(view->peer_uid));
	view->net_dev = link->path.ifindex;
	view->tx_bytes = READ_ONCE(link->tx_bytes);
	view->rx_bytes = READ_ONCE(link->rx_bytes) + atomic64_read(&link->rx_deferred);
}

/* The first link of a group. One that has not ended keeps its links, and they their devices, while its lock is held. */
static struct smc_link *shown_link(const struct smc_lgr_rdma *group)
{
	struct smc_link *link;

	lockdep_assert_held(&group->lock);
	smc_for_each_link(group, link)
		if (group->state != SMC_LGR_RDMA_ENDED && !READ_ONCE(link->gone))
			return link;
	return NULL;
}

/* Counts the connections over a link: all, or those of a namespace. The links of the group stay while its lock is held. */
static unsigned int count_conns(const struct smc_link *link, const struct net *net)
{
	struct smc_conn *conn;
	unsigned long token;
	unsigned int n = 0;

	lockdep_assert_held(&link->group->lock);
	rcu_read_lock();
	xa_for_each(&link->group->conns, token, conn)
		n += READ_ONCE(smc_rdma_conn_of(conn)->link) == link && (!net || net_eq(conn->member.sn->net, net));
	rcu_read_unlock();
	return n;
}

static void count_bufs(struct smc_lgr_member *member, void *arg)
{
	const struct smc_rdma_conn *rc = smc_rdma_conn_of(smc_conn_of(member));
	struct smc_rdma_lgr_view *view = arg;

	lockdep_assert_held(&member->lgr->lock);
	view->snd_bytes += rc->snd->size;
	view->rmb_bytes += rc->rmb->size;
}

/*
 * smc_rdma_show_lgr() - describes a group of SMC-R. With a namespace, only the buffers of that one's connections are
 * counted, and the bytes of links are left out, because they are those of all connections. Softirq.
 */
void smc_rdma_show_lgr(struct smc_lgr *lgr, const struct net *net, struct smc_rdma_lgr_view *view)
{
	struct smc_lgr_rdma *group = smc_lgr_rdma_of(lgr);
	struct smc_link *first, *link;
	bool by_user;

	static_assert(SMC_RDMA_SHOW_LINKS == SMC_LINKS_PER_LGR_MAX);
	memset(view, 0, sizeof(*view));
	view->server = group->server;
	view->direct = group->direct;
	view->max_conns = group->max_conns;
	view->max_links = group->max_links;
	view->buf_type = group->buf_type;
	spin_lock_bh(&group->lock);
	first = shown_link(group);
	if (first) {
		view->snd_bytes = net ? 0 : group->bytes[false];
		view->rmb_bytes = net ? 0 : group->bytes[true];
		show_pnet_id(first->path.dev, first->path.port, view->pnet_id, &by_user);
		smc_for_each_link(group, link) {
			if (READ_ONCE(link->gone))
				continue;
			view->links[view->n_links].conn_cnt = count_conns(link, net);
			view->links[view->n_links].has_bytes = !net;
			show_link(link, &view->links[view->n_links++]);
		}
	}
	spin_unlock_bh(&group->lock);
	if (net)
		smc_lgr_walk_own(lgr, net, count_bufs, view);
}

/* smc_rdma_describe() - describe of the transport. Shows nothing of a link that has ended. Any context. */
void smc_rdma_describe(const struct smc_conn *conn, struct smc_diag_info *info)
{
	const struct smc_rdma_conn *rc = smc_rdma_conn_of(conn);
	struct smc_diag_linkinfo *l = &info->lgr.lnk[0];
	struct smc_rdma_link_view view = {};
	const struct smc_link *link;

	info->mode = SMC_DIAG_MODE_SMCR;
	info->conn.sndbuf_size = rc->snd->size;
	info->progress.failovers = READ_ONCE(rc->failovers);
	spin_lock_bh(&rc->group->lock);
	link = READ_ONCE(rc->link);
	info->has_lgr = shown_link(rc->group) && !READ_ONCE(link->gone);
	if (info->has_lgr)
		show_link(link, &view);
	spin_unlock_bh(&rc->group->lock);
	if (!info->has_lgr)
		return;
	info->lgr.role = rc->group->server;
	l->link_id = view.id;
	strscpy((char *)l->ibname, view.ib_dev, sizeof(l->ibname));
	l->ibport = view.ib_port;
	snprintf((char *)l->gid, sizeof(l->gid), "%pI6", view.gid);
	snprintf((char *)l->peer_gid, sizeof(l->peer_gid), "%pI6", view.peer_gid);
}

static void show_pci(const struct smc_rdma_dev *dev, struct smc_rdma_dev_view *view)
{
	struct device *parent = dev->ib->dev.parent;
	struct pci_dev *pci;

	if (!parent || !dev_is_pci(parent))
		return;
	pci = to_pci_dev(parent);
	view->is_pci = true;
	view->vendor = pci->vendor;
	view->device = pci->device;
	strscpy(view->pci, pci_name(pci), sizeof(view->pci));
#ifdef CONFIG_S390
	view->fid = to_zpci(pci)->fid;
	view->chid = to_zpci(pci)->pchid;
#endif
}

static void show_port(struct smc_rdma_dev *dev, u8 number, struct smc_rdma_port_view *view)
{
	const struct smc_rdma_port *port = &dev->ports[number - 1];

	view->valid = true;
	view->active = READ_ONCE(port->active);
	view->ifindex = READ_ONCE(port->ifindex);
	view->links = atomic_read(&port->links);
	show_pnet_id(dev, number, view->pnet_id, &view->by_user);
}

/* State of a walk through devices. */
struct dev_walk {
	const struct net *net;
	unsigned int at, *next;
	int (*fn)(const struct smc_rdma_dev_view *view, void *arg);
	void *arg;
};

static int show_device(struct smc_rdma_dev *dev, void *arg)
{
	struct smc_rdma_dev_view view = {};
	struct dev_walk *s = arg;
	unsigned int i, conns;
	int rc;

	if (!rdma_dev_access_netns(dev->ib, s->net) || s->at++ < *s->next)
		return 0;
	strscpy(view.name, dev->ib->name, sizeof(view.name));
	show_pci(dev, &view);
	view.critical = smc_lgr_count_dev(dev, &conns);
	static_assert(SMC_RDMA_SHOW_PORTS == SMC_RDMA_PORTS);
	for (i = 0; i < dev->n_ports; i++) {
		show_port(dev, i + 1, &view.ports[i]);
		view.links += view.ports[i].links;
	}
	rc = s->fn(&view, s->arg);
	if (!rc)
		*s->next = s->at;
	return rc;
}

/*
 * smc_rdma_show_devices() - calls a function for each device that a namespace may use, beginning after the first *next
 * ones, until it returns nonzero; *next counts those for which it returned 0. Return: 0 at the end, else
 * what the function returned.
 */
int smc_rdma_show_devices(const struct net *net, unsigned int *next,
			  int (*fn)(const struct smc_rdma_dev_view *view, void *arg), void *arg)
{
	struct dev_walk s = { .net = net, .next = next, .fn = fn, .arg = arg };

	might_sleep();
	return smc_rdma_dev_walk(show_device, &s);
}
