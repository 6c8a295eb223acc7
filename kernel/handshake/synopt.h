/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SMC_HANDSHAKE_SYNOPT_H
#define SMC_HANDSHAKE_SYNOPT_H

#include <linux/atomic.h>
#include <linux/in6.h>
#include <linux/jiffies.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/netfilter.h>
#include <linux/rhashtable-types.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

struct net;
struct sk_buff;
struct smc_net;
struct smc_syntab;
struct sock;

#define SMC_SYNOPT_HOOKS (IS_ENABLED(CONFIG_IPV6) ? 4 : 2)
#define SMC_SYNOPT_PORTS 256	/* hash values of listening ports */

/* The state of the option in a network namespace. */
struct smc_synopt_net {
	struct net		*net;
	struct list_head	all;		/* namespaces_lock of synreg.c */
	atomic_t		users;		/* sockets that listen or connect */
	atomic_t		connecting;	/* sockets whose SYN may ask for SMC, in the phase CONNECT */
	struct mutex		lock;		/* hooked, users from 0 */
	bool			hooked;		/* all hooks are there; lock; single word */
	bool			ending;		/* the namespace goes, and gets no hooks any more; lock */
	struct delayed_work	unhook;
	struct nf_hook_ops	hooks[SMC_SYNOPT_HOOKS];	/* lock */
	struct smc_syntab	*syns;		/* the promises of listeners; there while hooked, and until an ending namespace has gone */
	struct delayed_work	reap;		/* removes promises that no client will claim */
	spinlock_t		ports_lock;	/* that listening begins or ends; what listeners have reserved */
	unsigned int		ports[SMC_SYNOPT_PORTS];	/* ports_lock; how many listen on ports of a hash value */
	atomic_t		moves;		/* children that `held` counts, of all listeners, and workers that are to look for more */
};

/*
 * smc_synopt_hooked() - are all hooks of a namespace there? As long as only some are, they neither ask for SMC nor promise it: the option in
 * an answer would not be seen. Any context.
 */
static inline bool smc_synopt_hooked(const struct smc_synopt_net *so)
{
	return smp_load_acquire(&so->hooked); /* pairs with register_hooks() */
}

/* State that hooks and socket share. Part of struct smc_sock. All are single words, without a lock. */
struct smc_synopt_sock {
	bool			peer_smc;	/* the peer's SYN or SYN-ACK had the option; hooks write that of a client */
	bool			answer_hidden;	/* our hooks cannot see the SYN-ACK; hooks write it */
	bool			asked;		/* a SYN was to have the option; hooks write it */
	bool			limit_hs;	/* SMC_LIMIT_HS is set */
	u32			futile;		/* why the SYN had no option, or 0; hooks write it, and what follows before it */
	u32			futile_diagnosis;	/* the peer's reason, or 0 */
};

/* A listener, as the hooks know it. Part of struct smc_listener; freed with it after a grace period. */
struct smc_synopt_port {
	struct rhash_head	node;
	bool			registered;	/* it is in the table; written by listen(), and when the last user has gone */
	struct sock		*sk;		/* of the listener; valid while it listens */
	const struct smc_synopt_sock *opt;
	u64			id;		/* ports_lock; of this call of listen(), never reused; 0 if it does not listen */
	u16			port;		/* ports_lock */
	unsigned int		reserved;	/* ports_lock; promises and handshakes, at most half of the backlog */
	unsigned int		promises;	/* ports_lock; its entries in the table of promises */
	atomic_t		held;		/* children out of TCP's queue that count for the backlog, and the one that leaves it */
	const struct sock	*leaving;	/* TCP's rskq_lock; see smc_synopt_port_leave(). Only compared */
};

/* Which call of listen() has made a promise. */
struct smc_syn_listener {
	const struct sock	*sk;		/* may be freed: only compared */
	u64			id;		/* smc_synopt_port.id */
};

/* How long a client of this namespace may take to decide whether it needs CLC messages. */
#define SMC_SYN_LOCAL_TIME msecs_to_jiffies(10)

/* Whether both sides of an inbound connection had the option. */
enum smc_syn_state {
	SMC_SYN_NOTHING,	/* it is TCP */
	SMC_SYN_SMC,		/* a handshake is to follow */
	SMC_SYN_UNDECIDED,	/* the client, in this namespace, is about to decide whether one follows */
};

/* Whether a child of a listener is SMC, and what is reserved for it. */
enum smc_syn_claim {
	SMC_CLAIM_NONE,		/* it is TCP */
	SMC_CLAIM_RESERVED,	/* a handshake is due, with a reserved place, which is the caller's now */
	SMC_CLAIM_LATE,		/* a handshake is due, but its place has been freed */
};

/* synreg.c: when the hooks are there */
int smc_synopt_reg_init(void);
void smc_synopt_net_init(struct smc_net *sn);
void smc_synopt_net_pre_exit(struct smc_net *sn);
void smc_synopt_net_exit(struct smc_net *sn);
int smc_synopt_get(struct smc_net *sn);
void smc_synopt_put(struct smc_net *sn);
void smc_synopt_reap(struct smc_synopt_net *so);
struct smc_syntab *smc_synopt_syns(const struct smc_net *sn);

/* synopt.c */
extern const struct nf_hook_ops smc_synopt_hooks[SMC_SYNOPT_HOOKS];
void smc_synopt_register(struct smc_synopt_sock *(*connecting)(const struct sock *sk),
			 bool (*admits)(const struct smc_synopt_port *port, const struct in6_addr *peer));
enum smc_syn_state smc_synopt_state(const struct sock *child);
void smc_synopt_set_remote(const struct sock *client);
struct smc_synopt_port *smc_synopt_listener(const struct sock *client);
bool smc_synopt_may_migrate(const struct sock *lsk);
enum smc_syn_claim smc_synopt_claim(const struct sock *child, struct smc_synopt_port *port, bool any);

/* synseen.c: whether an answer can be seen */
bool smc_synopt_hidden(const struct sk_buff *skb, const struct net *net);

/* synport.c: listeners by their sock, and how many handshakes each may have */
int smc_synopt_init(void);
void smc_synopt_exit(void);
int smc_synopt_port_register(struct smc_synopt_port *port, struct sock *sk, const struct smc_synopt_sock *opt);
void smc_synopt_port_unregister(struct smc_synopt_port *port);
void smc_synopt_port_open(struct smc_synopt_port *port);
void smc_synopt_port_close(struct smc_synopt_port *port);
bool smc_synopt_port_used(struct smc_synopt_net *so, u16 port);
struct smc_synopt_port *smc_synopt_port_of(const struct sock *lsk);
struct smc_synopt_port *smc_synopt_port_find(const struct smc_syn_listener *listener);
bool smc_synopt_port_full(const struct smc_synopt_port *port);
void smc_synopt_port_hold(struct smc_synopt_port *port, int n);
void smc_synopt_port_leave(struct smc_synopt_port *port, const struct sock *child);
u64 smc_synopt_promise(struct smc_synopt_net *so, struct smc_synopt_port *port);
void smc_synopt_promise_end(struct smc_synopt_net *so, const struct smc_syn_listener *listener, bool promise, bool reserved);
bool smc_synopt_reserve(struct smc_synopt_port *port);
void smc_synopt_unreserve(struct smc_synopt_port *port);

/* limit.c: handshake limitation */
bool smc_limit_reached(const struct smc_synopt_port *port);

/*
 * A connection, as its server sees it. IPv4 addresses are mapped ones. With the sequence number of
 * the SYN, so that a stray SYN can neither take the option from a connection nor give it one.
 */
struct smc_syn_key {
	struct in6_addr		peer, self;
	__be16			peer_port, self_port;
	u32			isn;
};

/* A SYN with the option, which a listener is about to answer with the option. */
struct smc_syn {
	struct smc_syn_key	key;
	int			dif, sdif;	/* where it came in, as TCP looks sockets up */
	bool			local;		/* its client is in this namespace, and may do without CLC */
};

/* syntab.c: a bounded table of the SYNs that were answered with the option; entries expire */
struct smc_syntab *smc_syntab_new(void);
void smc_syntab_free(struct smc_syntab *t);
bool smc_syntab_is_empty(const struct smc_syntab *t);
bool smc_syntab_add(struct smc_syntab *t, const struct smc_syn *syn, u32 synack, const struct smc_syn_listener *listener);
bool smc_syntab_repeat(struct smc_syntab *t, const struct smc_syn_key *key, u32 synack);
enum smc_syn_claim smc_syntab_claim(struct smc_syntab *t, struct smc_synopt_net *so,
				    const struct smc_syn_key *key, u32 synack, u64 id, bool any);
enum smc_syn_state smc_syntab_find(struct smc_syntab *t, const struct smc_syn_key *key, u32 synack);
void smc_syntab_set_remote(struct smc_syntab *t, const struct smc_syn_key *key);
struct smc_syn_listener smc_syntab_local(struct smc_syntab *t, const struct smc_syn_key *key);
bool smc_syntab_reap(struct smc_syntab *t, struct smc_synopt_net *so);

#endif
