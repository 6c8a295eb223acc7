/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Link groups (RFC 7609, 2.2): what the connections between two hosts have in common. Connections of several network
 * namespaces share a group if they use the same device. A connection holds a reference on its group; the table of groups
 * holds one as long as new connections may join.
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

/*
 * Connections with the same key share a group. Of SMC-R, a group serves the addresses of each of its links, so `ends` may
 * differ: lgr_fits of the transport decides.
 */
struct smc_lgr_key {
	const struct smc_transport_ops *ops;
	/*
	 * The owner: the namespace of the device, or that of the sockets where each namespace has a device of its own.
	 * Its settings apply to the group, and the group ends before it.
	 */
	struct net *net;
	u16 vlan;		/* 0 if none */
	u8 version;
	bool server;		/* SMC-R: this host is the server of the group */
	u8 peer_id[8];		/* SMC-R; zero otherwise */

	struct smc_lgr_ends {
		const void *dev;	/* a device of the transport; only compared, unless the group ends with it */
		u64 gid[2];		/* the peer's; zero for a client of SMC-R */
		u8 mac[6];		/* SMC-R, version 1: the peer's */
		u8 own_gid[16];		/* SMC-R, server: the GID of this host */
	} ends;			/* of the first link; zero where nothing is said */
};

/* Part of a connection: its place in a group. */
struct smc_lgr_member {
	struct smc_lgr *lgr;		/* a reference; never changes */
	struct smc_net *sn;		/* of its namespace; never changes */
	u32 token;			/* names it in its group; never changes */
	u8 tag;				/* low byte of the token, 0 if the transport does not choose it */
	u64 order;			/* unique, and ascending in both lists */
	u32 serial;			/* low half of order, not 0; for the token */
	struct list_head list;		/* lgr->members; lgr->lock */
	struct list_head net_list;	/* of its namespace, see struct smc_lgr_net; its lock */
};

/* How a group ends. */
enum smc_lgr_end {
	SMC_LGR_END_FAILED,		/* applications with an open socket get an error */
	SMC_LGR_END_BY_OPERATOR,	/* their peers get an abort, too */
	SMC_LGR_END_ALL,		/* all connections are released; no socket is open any more */
};

/**
 * struct smc_lgr_member_ops - operations of connections, for link groups
 * @get: takes a reference. Any context
 * @put: drops one. Does not sleep
 * @end: the group ends. Does not sleep
 * @trim: frees memory that the connection does not use, if its transport can. May sleep
 * @trim_quiet: the same if no data has moved for a while. One caller at a time
 * @buf_bytes: returns the bytes of its receive buffer. Any context
 */
struct smc_lgr_member_ops {
	void (*get)(struct smc_lgr_member *member);
	void (*put)(struct smc_lgr_member *member);
	void (*end)(struct smc_lgr_member *member, enum smc_lgr_end how);
	void (*trim)(struct smc_lgr_member *member);
	void (*trim_quiet)(struct smc_lgr_member *member);
	u32 (*buf_bytes)(const struct smc_lgr_member *member);
};

/* Facts that the peer of a group has sent about itself at first contact (docs/protocol.md, 3.5), for listings. */
struct smc_lgr_peer {
	u8 eid[SMC_EID_LEN];
	u8 host[SMC_HOSTNAME_LEN];
	u8 release;
	u8 os_type;
};

/* Bytes of a device name, as in the RDMA core; with the terminating zero */
#define SMC_LGR_DEVICE_LEN 64

struct smc_lgr {
	struct smc_lgr_key key;		/* never changes */
	u32 id;				/* never changes; unique on this host */
	refcount_t ref;
	struct list_head list;		/* smc_lgr_table_lock */
	u64 mark;			/* the last walk whose namespace has a connection here; smc_lgr_table_lock */
	struct hlist_node hash;		/* smc_lgr_table_lock */
	bool listed;			/* connections may join; changes under smc_lgr_table_lock and lock */
	spinlock_t lock;		/* members, n_conns, peer; softirqs off */
	struct list_head members;
	unsigned int n_conns;		/* in `members`, or with a reserved slot */
	unsigned long idle_since;	/* jiffies, when the last connection left; lock */
	unsigned long idle_time;	/* jiffies; for which `idle` was queued last; lock */
	bool draining;			/* it ends with its last connection; set under lock, read without */
	bool deleted;			/* an operator ends it; single word, no lock */
	struct delayed_work idle;	/* ends a group that has had no connection for long */
	struct delayed_work trim;	/* frees memory that connections do not use */
	atomic64_t buf_bytes;		/* of the receive buffers of its connections */
	unsigned int max_conns;		/* 0 if there is no limit; set when it is formed */
	void *priv;			/* the transport's, from lgr_init to lgr_free */
	char device[SMC_LGR_DEVICE_LEN];	/* name for tracepoints; the transport sets it before connections join */

	struct smc_lgr_peer peer;	/* lock */
};

/* A snapshot of a group, as a namespace sees it. */
struct smc_lgr_view {
	u32 id;
	u8 role;		/* enum smc_transport_role */
	u8 version;
	u16 vlan;
	u64 gid[2];		/* the peer's */
	const void *dev;	/* the transport's */
	u64 net_cookie;		/* of the namespace that it belongs to */
	bool whole;		/* the namespace sees the whole group, not only its own connections */
	unsigned int n_conns;
	u64 buf_bytes;
	struct smc_lgr_peer peer;
};

/* The connections of a namespace in all groups. A walk does not visit connections of other namespaces. */
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
struct smc_lgr *smc_lgr_get_id(u32 id);
struct smc_lgr *smc_lgr_next(struct smc_lgr *prev);
void smc_lgr_terminate_peer(const void *dev, const u64 gid[2]);
int smc_lgr_walk(const struct net *net, unsigned int *next,
		 int (*fn)(struct smc_lgr *lgr, struct smc_lgr_view *view, void *arg), void *arg);
void smc_lgr_walk_own(struct smc_lgr *lgr, const struct net *net, void (*fn)(struct smc_lgr_member *member, void *arg), void *arg);
bool smc_lgr_same_ends(const struct smc_lgr_ends *a, const struct smc_lgr_ends *b);
void smc_lgr_assert_table_locked(void);
bool smc_lgr_needs(const struct smc_lgr *lgr, const void *dev);
unsigned int smc_lgr_count_dev(const void *dev, unsigned int *conns);
void smc_lgr_net_exit(struct smc_net *sn);
void smc_lgr_exit(void);

/* netns.c */
void smc_lgr_net_init(struct smc_net *sn);
struct smc_lgr_member *smc_lgr_net_next(struct smc_net *sn, const struct smc_lgr_member *before, u64 order);
int smc_lgr_walk_members(const struct net *net, u64 *order, int (*fn)(struct smc_lgr_member *member, void *arg), void *arg);

/* shrink.c */
int smc_lgr_shrink_init(void);
void smc_lgr_shrink_exit(void);

/* shutdown.c */
int smc_lgr_delete(const struct net *net, unsigned int role, u32 id);
int smc_lgr_delete_one(const struct net *net, u32 id, u8 link);
int smc_reboot_init(void);
void smc_reboot_exit(void);

#endif /* SMC_LGR_LGR_H */
