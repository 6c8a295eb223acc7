/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Link groups: what the connections between two hosts have in common. A group belongs to the host, not to a
 * namespace: connections of several namespaces share it when they leave by the same device. A connection holds a
 * reference on its group; the table of groups holds one as long as new connections may join.
 */
#ifndef SMC_LGR_LGR_H
#define SMC_LGR_LGR_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "../wire/clc.h"

struct net;
struct smc_net;
struct smc_transport_ops;

/* What makes two connections belong together. */
struct smc_lgr_key {
	const struct smc_transport_ops *ops;
	const void *dev;	/* the transport's, only compared here */
	/*
	 * Whom the group belongs to: the namespace that owns the device, or the sockets' where each namespace has a
	 * device to itself. Its settings count for the group, and it goes after the group.
	 */
	struct net *net;
	u64 gid[2];		/* the peer's */
	u16 vlan;		/* 0 if none, or of no matter */
	u8 version;
	bool server;		/* SMC-R: the two ends of a group have roles */
	u8 peer_id[8];		/* SMC-R, as what follows; zero otherwise */
	u8 mac[6];		/* version 1 */
	u8 own_gid[16];		/* of a server: the address here that the link is made with */
};

/* What a group knows of a connection in it. */
struct smc_lgr_member {
	struct smc_lgr *lgr;		/* a reference; never changes */
	struct smc_net *sn;		/* its namespace's; never changes */
	u32 token;			/* names it in its group; never changes */
	u8 tag;				/* its low byte, if the transport wants to choose that; else 0 */
	u64 order;			/* rises along both lists that it is on; never used again */
	u32 serial;			/* of it, for the token; not 0 */
	struct list_head list;		/* lgr->members; lgr->lock */
	struct list_head net_list;	/* sn->lgr.members; sn->lgr.lock */
};

/* How a group ends. */
enum smc_lgr_end {
	SMC_LGR_END_FAILED,		/* applications whose socket is open hear of it */
	SMC_LGR_END_BY_OPERATOR,	/* so do their peers, while the group can still send */
	SMC_LGR_END_ALL,		/* no socket is open any more: connections give everything back */
};

/**
 * struct smc_lgr_member_ops - what a group does with the connections in it
 * @get: takes a reference. Any context
 * @put: drops one. Does not sleep
 * @end: the group ends. Does not sleep
 * @trim: the connection may give memory back that it does not use; of transports that can. May sleep
 * @buf_bytes: memory that it receives in. Any context
 */
struct smc_lgr_member_ops {
	void (*get)(struct smc_lgr_member *member);
	void (*put)(struct smc_lgr_member *member);
	void (*end)(struct smc_lgr_member *member, enum smc_lgr_end how);
	void (*trim)(struct smc_lgr_member *member);
	u32 (*buf_bytes)(const struct smc_lgr_member *member);
};

/* What the peer of a group has said of itself at first contact, to be shown: docs/protocol.md, 3.5. */
struct smc_lgr_peer {
	u8 eid[SMC_EID_LEN];
	u8 host[SMC_HOSTNAME_LEN];
	u8 release;
	u8 os_type;
};

/* With the terminating zero; as that of an RDMA device. */
#define SMC_LGR_DEVICE_LEN 64

struct smc_lgr {
	struct smc_lgr_key key;		/* never changes */
	u32 id;				/* never changes; unique on this host */
	refcount_t ref;
	struct list_head list;		/* smc_lgr_table_lock */
	u64 mark;			/* the walk that found a connection of its namespace here; smc_lgr_table_lock */
	struct hlist_node hash;		/* the same */
	bool listed;			/* connections may join; changes under smc_lgr_table_lock and lock */
	spinlock_t lock;		/* members, n_conns, what is known of the peer; softirqs off */
	struct list_head members;
	unsigned int n_conns;		/* on the list, or about to be */
	unsigned long idle_since;	/* jiffies; when the last connection went. lock */
	bool draining;			/* it ends with its last connection; set under lock, read without */
	bool deleted;			/* an operator ends it; single word, no lock */
	struct delayed_work idle;	/* ends a group that nobody has used for long */
	struct delayed_work trim;	/* lets connections give memory back that do not use it */
	atomic64_t buf_bytes;		/* of the elements that its connections receive in */
	unsigned int max_conns;		/* 0 if there is no limit; set when it is formed */
	void *priv;			/* the transport's, from lgr_init to lgr_free */
	char device[SMC_LGR_DEVICE_LEN];	/* its name, by the transport, before connections enter; for tracepoints */

	struct smc_lgr_peer peer;	/* lock */
};

/* What may change of a group, of one moment, as a namespace sees it. */
struct smc_lgr_view {
	bool whole;		/* the namespace sees all of the group, else its own connections */
	unsigned int n_conns;
	u64 buf_bytes;
	struct smc_lgr_peer peer;
};

/* The connections of a namespace that are in groups. A walk through them costs nothing for those of others. */
struct smc_lgr_net {
	spinlock_t lock;	/* members; taken within smc_lgr_table_lock and a group's lock; softirqs off */
	struct list_head members;	/* by their order */
};

void smc_lgr_set_member_ops(const struct smc_lgr_member_ops *ops);
bool smc_lgr_add_member(struct smc_lgr *lgr, struct smc_lgr_member *member);
void smc_lgr_del_member(struct smc_lgr_member *member);
void smc_lgr_get(struct smc_lgr *lgr);
void smc_lgr_put(struct smc_lgr *lgr);
void smc_lgr_hostname(u8 host[SMC_HOSTNAME_LEN]);
void smc_lgr_set_peer_self(struct smc_lgr *lgr, const u8 eid[SMC_EID_LEN]);
void smc_lgr_set_peer(struct smc_lgr *lgr, const struct smc_clc_accept *peer);
void smc_lgr_terminate(struct smc_lgr *lgr);
void smc_lgr_drain(struct smc_lgr *lgr);
struct smc_lgr *smc_lgr_next(u32 id);
void smc_lgr_terminate_peer(const void *dev, const u64 gid[2]);
int smc_lgr_walk(const struct net *net, unsigned int *next, int (*fn)(struct smc_lgr *lgr, void *arg), void *arg);
void smc_lgr_describe(struct smc_lgr *lgr, const struct net *net, struct smc_lgr_view *view);
unsigned int smc_lgr_count_dev(const void *dev, unsigned int *conns);
void smc_lgr_net_exit(struct smc_net *sn);
void smc_lgr_exit(void);

/* netns.c */
void smc_lgr_net_init(struct smc_net *sn);
struct smc_lgr_member *smc_lgr_net_next(struct smc_net *sn, const struct smc_lgr_member *before, u64 order);
int smc_lgr_walk_members(const struct net *net, u64 *order, int (*fn)(struct smc_lgr_member *member, void *arg), void *arg);

/* shutdown.c */
int smc_lgr_delete(const struct net *net, unsigned int role, u32 id);
int smc_reboot_init(void);
void smc_reboot_exit(void);

#endif /* SMC_LGR_LGR_H */
