/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * RDMA devices that can carry SMC-R, and the choice among them (docs/protocol.md, 4.2).
 */
#ifndef SMC_RDMA_DEVICE_H
#define SMC_RDMA_DEVICE_H

#include <linux/completion.h>
#include <linux/list.h>
#include <linux/refcount.h>
#include <linux/types.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>

#include "../../control/pnet.h"

struct dst_entry;
struct sock;

/* SMC-R knows two ports of a device. */
#define SMC_RDMA_PORTS 2

struct smc_rdma_port {
	bool active;			/* it may be used; as what follows, of the last look: single words, no lock */
	bool up;			/* it is active, but perhaps not for long enough; used by work alone, as what follows */
	unsigned long usable;		/* jiffies; since, or from, when it may be used */
	bool link_up;			/* as its adapter reports: single word, no lock */
	unsigned long gids;		/* work; jiffies; since, or from, when it has GIDs: see smc_rdma_gid_delay() */
	u8 mtu_code;			/* as in CLC */
	int n_gids;			/* places in its table of GIDs */
	int ifindex;			/* of its interface; 0 if none */
	atomic_t links;			/* that use it */
	bool has_hw_id;			/* never changes, as what follows: the firmware's PNET ID */
	u8 hw_id[SMC_PNET_ID_LEN];
};

/* A device. A reference keeps its memory; a user of `ib` announces itself, so that the device can wait for it and go. */
struct smc_rdma_dev {
	struct ib_device *ib;
	struct list_head list;		/* devs_lock */
	refcount_t ref;
	refcount_t users;		/* its own, until it goes, and others' */
	bool gone;			/* it is going: single word, no lock */
	struct completion unused;
	struct ib_event_handler events;
	struct delayed_work work;	/* looks at the ports again; announced as a user while it is queued or runs */
	unsigned int n_ports;
	struct smc_rdma_port ports[SMC_RDMA_PORTS];
	spinlock_t lock;		/* links; that work is queued; softirqs off */
	struct list_head links;		/* struct smc_link */
	unsigned int *on_vector;	/* lock: links by completion vector, as many as the device has of those */
};

/* A way out of this host: a GID of a port, and what belongs to it. */
struct smc_rdma_path {
	struct smc_rdma_dev *dev;	/* with a reference */
	struct net *net;		/* the device's owner when it was chosen: the initial one, or the connection's */
	u8 port;			/* from 1 */
	u8 version;			/* of SMC-R */
	u8 mtu_code;			/* of the port, as in CLC */
	u8 gid[16];
	bool of_host;			/* the GID serves all namespaces that share the device; otherwise it goes with one */
	u8 mac[ETH_ALEN];
	int gid_index;
	int ifindex;			/* of the GID's interface, to be shown */
	u16 vlan;			/* 0 if none */
};

int smc_rdma_devices_init(void);
void smc_rdma_devices_exit(void);
void smc_rdma_dev_get(struct smc_rdma_dev *dev);
void smc_rdma_dev_put(struct smc_rdma_dev *dev);
bool smc_rdma_dev_add_user(struct smc_rdma_dev *dev);
void smc_rdma_dev_del_user(struct smc_rdma_dev *dev);
void smc_rdma_dev_check_soon(struct smc_rdma_dev *dev);
bool smc_rdma_peer_id(u8 id[8]);
bool smc_rdma_present(const struct net *net);
unsigned int smc_rdma_vector_get(struct smc_rdma_dev *dev, u32 vectors);
void smc_rdma_vector_put(struct smc_rdma_dev *dev, unsigned int vector);
int smc_rdma_gid_ifindex(const struct ib_gid_attr *attr);
int smc_rdma_dev_walk(int (*fn)(struct smc_rdma_dev *dev, void *arg), void *arg);

/* link.c */
unsigned long smc_link_check(struct smc_rdma_dev *dev);
void smc_link_trace_removal(struct smc_rdma_dev *dev);

/* llc_request.c */
void smc_rdma_add_port_up(void);

/* choose.c */
struct net *smc_rdma_owner(const struct smc_rdma_dev *dev);
int smc_rdma_pnet_id(const struct smc_rdma_dev *dev, u8 port, u8 id[SMC_PNET_ID_LEN], bool *by_user);
struct dst_entry *smc_rdma_dst(const struct sock *sk, const u8 gid[16]);
bool smc_rdma_gid_is_ipv4(const u8 gid[16]);
int smc_rdma_choose(struct sock *sk, u8 version, const u8 *peer_gid, struct smc_rdma_path *path);
int smc_rdma_choose_second(const struct smc_rdma_path *first, const u8 *peer_gid, struct smc_rdma_path *path);

#endif /* SMC_RDMA_DEVICE_H */
