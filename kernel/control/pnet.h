/* SPDX-License-Identifier: GPL-2.0-only */
/* PNET table: which devices are attached to which physical network. */
#ifndef SMC_CONTROL_PNET_H
#define SMC_CONTROL_PNET_H

#include <linux/if.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/types.h>

struct device;
struct net_device;
struct netlink_ext_ack;
struct smc_net;

#define SMC_PNET_ID_LEN 16	/* of the longest PNET ID, without the terminator */
#define SMC_PNET_IB_LEN 63	/* of the longest name of an RDMA device, without the terminator */
#define SMC_PNET_PORT_MAX 2	/* ports of an RDMA device count from 1 */
#define SMC_PNET_PORT_DEFAULT 1

/* Limits the entries of a namespace that does not belong to the host: events of devices visit them all. */
#define SMC_PNET_USER_MAX 256

struct smc_pnet_net {
	struct mutex lock;	/* writers of the list and of its entries; readers use RCU */
	struct list_head entries;	/* struct smc_pnet_entry, in the order of their addition */
	unsigned int generation;	/* under lock; counts the changes */
	unsigned int n;			/* under lock; entries */
};

enum smc_pnet_kind {
	SMC_PNET_ETH,	/* network interface */
	SMC_PNET_IB,	/* RDMA or ISM device */
};

/* A device as a request names it. */
struct smc_pnet_device {
	enum smc_pnet_kind kind;
	const char *name;
	unsigned int port;	/* SMC_PNET_IB: from 1; 0 to remove any port */
};

struct smc_pnet_entry {
	struct list_head list;
	char id[SMC_PNET_ID_LEN + 1];
	enum smc_pnet_kind kind;
	u8 port;	/* SMC_PNET_IB */
	char name[SMC_PNET_IB_LEN + 1];	/* as configured, even if the device is renamed */
	int ifindex;	/* SMC_PNET_ETH: the device, 0 for none; READ_ONCE() without lock */
	struct rcu_head rcu;
};
static_assert(sizeof_field(struct smc_pnet_entry, name) >= IFNAMSIZ);

/* A walk over the table, which the visitor ends by returning nonzero. */
struct smc_pnet_walk {
	int (*visit)(struct smc_pnet_walk *walk, const struct smc_pnet_entry *entry);
	unsigned int generation;	/* of the table, never 0; set before the first visit */
};

int smc_pnet_parse_id(const char *text, char id[SMC_PNET_ID_LEN + 1],
		      struct netlink_ext_ack *extack);
int smc_pnet_add(struct smc_net *snet, const char *id, const struct smc_pnet_device *devices,
		 unsigned int n, struct netlink_ext_ack *extack);
int smc_pnet_remove(struct smc_net *snet, const char *id, const struct smc_pnet_device *device);
void smc_pnet_flush(struct smc_net *snet);
int smc_pnet_for_each(struct smc_net *snet, struct smc_pnet_walk *walk);

int smc_pnet_of_netdev(struct smc_net *snet, struct net_device *dev, u8 id[SMC_PNET_ID_LEN]);
bool smc_pnet_has_netdev(struct smc_net *snet, const u8 id[SMC_PNET_ID_LEN]);
int smc_pnet_of_hw(struct device *dev, u16 port, u8 id[SMC_PNET_ID_LEN]);
int smc_pnet_of_ib(const char *ibname, u8 port, u8 id[SMC_PNET_ID_LEN]);

int smc_pnet_net_init(struct smc_net *snet);
void smc_pnet_net_exit(struct smc_net *snet);
int smc_pnet_init(void);
void smc_pnet_exit(void);

#endif /* SMC_CONTROL_PNET_H */
