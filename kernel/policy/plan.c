// SPDX-License-Identifier: GPL-2.0-only
/*
 * The rules that apply to the connections of a listener. Some of them ask for the peer's address, which is known for each
 * connection only, in a softirq. So the rules that match the rest are collected when the listener begins to listen.
 */

#include <linux/net.h>
#include <linux/slab.h>
#include <net/inet_sock.h>

#include "../net.h"
#include "policy.h"

/* Collects the rules that match a listener, if there is room for them. Return: their number. */
static unsigned int collect_rules(const struct smc_policy_table *table, const struct socket *sock, struct smc_policy_plan *plan,
				  unsigned int room)
{
	const struct smc_policy_use use = { .role = SMC_POLICY_LISTENS, .local = READ_ONCE(inet_sk(sock->sk)->inet_num) };
	struct smc_policy_maker m __uninitialized;
	unsigned int i, n = 0;

	smc_policy_get_maker(table, sock, &m);
	for (i = 0; i < table->n; i++) {
		struct smc_policy_entry *entry = table->entries[i];

		if (!smc_policy_matches_use(&entry->rule, &m.who, &use))
			continue;
		if (n < room)
			plan->entries[n] = entry;
		n++;
		if (!entry->rule.n_nets)
			break;
	}
	if (n > room)
		return n;
	plan->n = n;
	for (i = 0; i < n; i++)
		smc_policy_get(plan->entries[i]);
	return n;
}

/**
 * smc_policy_plan_new() - evaluates the rules for a socket that is to listen
 * @sock: the socket
 * @plan: gets the rules for its connections; NULL if there are no rules, or without any of them
 *
 * May sleep. Return: 0, -EPERM if all of its connections are TCP because the policy is off, or -ENOMEM.
 */
int smc_policy_plan_new(const struct socket *sock, struct smc_policy_plan **plan)
{
	const struct smc_policy_table *table;
	unsigned int room = 0, n = 1;
	bool off = false;

	might_sleep();
	*plan = NULL;
	/* The rules may change while memory is allocated for those that match. */
	while (n > room) {
		room = n;
		kvfree(*plan);
		*plan = kvzalloc(struct_size(*plan, entries, room), GFP_KERNEL_ACCOUNT);
		if (!*plan)
			return -ENOMEM;
		rcu_read_lock();
		table = smc_policy_table_of(sock);
		off = table && table->off;
		n = table && !off ? collect_rules(table, sock, *plan, room) : 0;
		rcu_read_unlock();
	}
	if (n)
		return 0;
	kvfree(*plan);
	*plan = NULL;
	return off ? -EPERM : 0;
}

/* smc_policy_plan_free() - frees a plan that no reader has, or nothing for NULL. May sleep. */
void smc_policy_plan_free(struct smc_policy_plan *plan)
{
	unsigned int i;

	might_sleep();
	for (i = 0; plan && i < plan->n; i++) {
		smc_policy_put(plan->entries[i]);
		cond_resched();
	}
	kvfree(plan);
}

static void free_plan_work(struct work_struct *work)
{
	smc_policy_plan_free(container_of(to_rcu_work(work), struct smc_policy_plan, free));
}

/* smc_policy_plan_drop() - the same for one that may have readers. Any context. */
void smc_policy_plan_drop(struct smc_policy_plan *plan)
{
	if (!plan)
		return;
	INIT_RCU_WORK(&plan->free, free_plan_work);
	queue_rcu_work(smc_net_wq, &plan->free);
}

/**
 * smc_policy_plan_has_smc() - may a connection be SMC by a plan?
 * @plan: the plan; NULL is one without rules
 * @by_default: what connections are that no rule matches
 *
 * Under RCU, or of a plan that the caller has. Return: false if all of its connections are TCP.
 */
bool smc_policy_plan_has_smc(const struct smc_policy_plan *plan, bool by_default)
{
	unsigned int i;

	for (i = 0; plan && i < plan->n; i++) {
		if (plan->entries[i]->rule.verdict != SMC_POLICY_TCP)
			return true;
		if (!plan->entries[i]->rule.n_nets)
			return false;
	}
	return by_default;
}

/*
 * smc_policy_plan_find() - returns the rule that decides about a connection from an address of 16 bytes, NULL if there is none.
 */
struct smc_policy_entry *smc_policy_plan_find(const struct smc_policy_plan *plan, const u8 *addr)
{
	unsigned int i;

	RCU_LOCKDEP_WARN(!rcu_read_lock_held(), "smc_policy_plan_find() outside of an RCU section");
	for (i = 0; plan && i < plan->n; i++)
		if (smc_policy_matches_peer(&plan->entries[i]->rule, addr))
			return plan->entries[i];
	return NULL;
}
