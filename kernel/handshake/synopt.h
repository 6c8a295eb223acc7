/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SMC_HANDSHAKE_SYNOPT_H
#define SMC_HANDSHAKE_SYNOPT_H

#include <linux/atomic.h>
#include <linux/in6.h>
#include <linux/jiffies.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/netfilter.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

struct net;
struct smc_net;
struct smc_sock;
struct smc_syntab;
struct sock;

#define SMC_SYNOPT_PORTS 64	/* hash buckets of listening ports */

/* What the option needs of a network namespace. */
struct smc_synopt_net {
	atomic_t		users;		/* sockets that listen or connect */
	struct mutex		lock;		/* hooked, users from and to 0 */
	bool			hooked;		/* lock */
	struct delayed_work	unhook;
	struct nf_hook_ops	hooks[4];	/* lock */
	struct smc_syntab	*syns;		/* inbound SYNs with the option; there while hooked */
	spinlock_t		ports_lock;	/* changes of ports */
	struct hlist_head	ports[SMC_SYNOPT_PORTS];
};

/* A listener, as the hooks know it. Part of the listener; freed after a grace period with it. */
struct smc_synopt_port {
	struct hlist_node	node;
	struct smc_sock		*smc;
	u64			id;		/* of this time that it listens; never 0, never used again */
	u16			port;
};

/* How long a client of this namespace has to say whether it does without CLC messages. */
#define SMC_SYN_LOCAL_TIME msecs_to_jiffies(10)

/* What both sides of an inbound connection have said. */
enum smc_syn_said {
	SMC_SYN_NOTHING,	/* it is TCP */
	SMC_SYN_SMC,		/* a handshake is to follow */
	SMC_SYN_UNDECIDED,	/* the client is about to say whether one does */
};

/* synopt.c */
int smc_synopt_net_init(struct smc_net *sn);
void smc_synopt_net_exit(struct smc_net *sn);
int smc_synopt_get(struct smc_net *sn);
void smc_synopt_put(struct smc_net *sn);
void smc_synopt_port_add(struct smc_sock *smc, struct smc_synopt_port *port);
void smc_synopt_port_del(struct smc_synopt_port *port);
enum smc_syn_said smc_synopt_seen(const struct sock *child);
void smc_synopt_remote(const struct sock *client);
struct smc_sock *smc_synopt_listener(const struct sock *client);
bool smc_synopt_claim(const struct sock *child, u64 listener);

/*
 * A connection, as its server sees it. IPv4 addresses are mapped ones. With the sequence number of
 * the SYN, so that a stray SYN can neither take the option from a connection nor give it one.
 */
struct smc_syn_key {
	struct in6_addr		peer, self;
	__be16			peer_port, self_port;
	u32			isn;
};

/* syntab.c: a bounded table of the SYNs that came with the option; entries expire */
struct smc_syntab *smc_syntab_new(void);
void smc_syntab_free(struct smc_syntab *t);
bool smc_syntab_add(struct smc_syntab *t, const struct smc_syn_key *key, bool local);
bool smc_syntab_answer(struct smc_syntab *t, const struct smc_syn_key *key, bool may, u64 listener);
void smc_syntab_withdraw(struct smc_syntab *t, const struct smc_syn_key *key);
enum smc_syn_said smc_syntab_look(struct smc_syntab *t, const struct smc_syn_key *key);
void smc_syntab_remote(struct smc_syntab *t, const struct smc_syn_key *key);
u64 smc_syntab_local(struct smc_syntab *t, const struct smc_syn_key *key);
bool smc_syntab_claim(struct smc_syntab *t, const struct smc_syn_key *key, u64 listener);

#endif
