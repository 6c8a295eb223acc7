/* SPDX-License-Identifier: GPL-2.0-only */
/* The policy of a network namespace: its rules, in their order, and what they have decided. */
#ifndef SMC_POLICY_POLICY_H
#define SMC_POLICY_POLICY_H

#include <linux/atomic.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <linux/workqueue.h>

#include "rules.h"
#include "services.h"

struct smc_net;
struct socket;

#define SMC_POLICY_RULES 1024	/* of a namespace */
#define SMC_POLICY_LIST 64	/* entries of a list in a rule */
#define SMC_POLICY_NAME 32	/* bytes, with the zero at the end */

/*
 * A rule and what it has decided. References: each table that has it, and each socket whose outcome it counts. All but the
 * counters never changes.
 */
struct smc_policy_entry {
	refcount_t		ref;
	struct rcu_head		rcu;
	struct smc_policy_rule	rule;		/* its lists follow the struct */
	u32			id;		/* no other rule of the namespace has, or had it */
	char			name[SMC_POLICY_NAME];
	atomic64_t		decisions;	/* calls of connect() and listen() that the rule decided; of servers, see smc_policy_count() */
	atomic64_t		conns_smc;	/* connections of these, by outcome; those to a listener that is TCP do not count */
	atomic64_t		conns_tcp;	/* that of a client counts when it begins */
	atomic64_t		bytes;		/* that ended connections moved by SMC, in both directions */
};

/* The policy at one time. Readers are in an RCU section. */
struct smc_policy_table {
	struct rcu_work		free;
	u32			generation;	/* one more with each change */
	bool			off;		/* connections are TCP */
	bool			converts;	/* it has a rule by which sockets of TCP become SMC */
	bool			cgroups;	/* it has a rule that asks for a control group */
	unsigned int		n;
	struct smc_policy_entry	*entries[];	/* in the order in which they are evaluated */
};

/*
 * The maker of a socket, and room for the path of its control group. Variables are __uninitialized: to zero the path would take longer than
 * the rules.
 */
struct smc_policy_maker {
	struct smc_policy_who who;
	char path[SMC_POLICY_PATH + 1];
};

/*
 * The verdict of the rules about a listener's connections, as they were when it began to listen: the rules that match the listener, down to the
 * first one that does not ask for the peer's address. Readers are in an RCU section; nothing but the counters changes.
 */
struct smc_policy_plan {
	struct rcu_work		free;
	unsigned int		n;
	struct smc_policy_entry	*entries[];	/* with a reference each */
};

/* The policy of a namespace. */
struct smc_policy_net {
	struct mutex			lock;	/* serialises changes */
	struct smc_policy_table __rcu	*table;	/* NULL: no rules, and on */
	u32				generation, last_id;	/* lock */
	struct smc_service_net		services;
};

/* The hook of socket creation, which turns sockets of TCP into our own. The layer that knows sockets registers it. */
struct smc_policy_hook {
	int (*install)(void);	/* may sleep; 0, -EBUSY if tracing is switched off, or another negative errno */
	void (*remove)(void);	/* may sleep; the hook does not run afterwards */
};

void smc_policy_set_hook(const struct smc_policy_hook *hook);
void smc_policy_drop_hook(void);
void smc_policy_net_init(struct smc_net *sn);
void smc_policy_net_exit(struct smc_net *sn);
int smc_policy_replace(struct smc_policy_net *pn, struct smc_policy_table *fresh);
struct smc_policy_table *smc_policy_table_new(unsigned int n, gfp_t gfp);
void smc_policy_table_free(struct smc_policy_table *table);
void smc_policy_put(struct smc_policy_entry *entry);
void smc_policy_get(struct smc_policy_entry *entry);
bool smc_policy_converts(const struct socket *sock);
enum smc_policy_verdict smc_policy_decide(const struct socket *sock, const struct smc_policy_use *use,
					  struct smc_policy_entry **entry);
bool smc_policy_inherits(const struct smc_net *sn, const struct smc_policy_table *table);
const struct smc_policy_table *smc_policy_table_of(const struct socket *sock);
void smc_policy_get_maker(const struct smc_policy_table *table, const struct socket *sock, struct smc_policy_maker *m);

/* plan.c: listeners */
int smc_policy_plan_new(const struct socket *sock, struct smc_policy_plan **plan);
void smc_policy_plan_free(struct smc_policy_plan *plan);
void smc_policy_plan_drop(struct smc_policy_plan *plan);
bool smc_policy_plan_has_smc(const struct smc_policy_plan *plan, bool by_default);
struct smc_policy_entry *smc_policy_plan_find(const struct smc_policy_plan *plan, const u8 *addr);

#endif /* SMC_POLICY_POLICY_H */
