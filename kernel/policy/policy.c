// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which sockets use SMC: the rules of a network namespace (rules.h), evaluated for the layer of sockets. The table of rules is
 * replaced as a whole, so a decision is always by one state of it. A namespace without rules may use those of the initial one.
 */

#include <linux/cgroup.h>
#include <linux/net.h>
#include <linux/slab.h>
#include <net/sock.h>

#include "../control/sysctl.h"
#include "../net.h"
#include "policy.h"

/*
 * The hook is installed while the tables of some namespaces convert sockets, and for a while after that: to install and to remove it is
 * work for all processors, which can take seconds, and users can have namespaces of their own. Nobody waits for the removal but who needs
 * the hook again.
 */
#define UNHOOK_DELAY (10 * HZ)
static void policy_unhook_work(struct work_struct *work);
static DECLARE_DELAYED_WORK(unhook, policy_unhook_work);
static DEFINE_MUTEX(hook_mutex);	/* installing and removing, one at a time; taken before hook_lock */
static DEFINE_SPINLOCK(hook_lock);
static const struct smc_policy_hook *hook;	/* hook_mutex */
static unsigned int hook_users;			/* hook_lock; grows with hook_mutex, too */
static bool installed;				/* hook_lock to read, and hook_mutex, too, to change */

static void set_installed(bool is)
{
	lockdep_assert_held(&hook_mutex);
	spin_lock(&hook_lock);
	installed = is;
	spin_unlock(&hook_lock);
}

static void remove_hook(void)
{
	lockdep_assert_held(&hook_mutex);
	if (installed)
		hook->remove();
	set_installed(false);
}

static bool is_used(void)
{
	bool used;

	lockdep_assert_held(&hook_mutex);
	spin_lock(&hook_lock);
	used = hook_users;
	spin_unlock(&hook_lock);
	return used;
}

static void policy_unhook_work(struct work_struct *work)
{
	mutex_lock(&hook_mutex);
	if (!is_used())
		remove_hook();
	mutex_unlock(&hook_mutex);
}

/* smc_policy_set_hook() - registers what turns sockets of TCP into our own, at load. */
void smc_policy_set_hook(const struct smc_policy_hook *h)
{
	might_sleep();
	mutex_lock(&hook_mutex);
	hook = h;
	mutex_unlock(&hook_mutex);
}

/* smc_policy_drop_hook() - undoes it, at unload: from here on the hook does not run, although namespaces have rules. */
void smc_policy_drop_hook(void)
{
	might_sleep();
	mutex_lock(&hook_mutex);
	remove_hook();
	hook = NULL;
	mutex_unlock(&hook_mutex);
	/* Nobody queues it any more. */
	cancel_delayed_work_sync(&unhook);
}

static int hook_get(void)
{
	int rc = 0;

	mutex_lock(&hook_mutex);
	if (!installed)
		rc = hook ? hook->install() : -EOPNOTSUPP;
	if (!rc) {
		spin_lock(&hook_lock);
		installed = true;
		hook_users++;
		spin_unlock(&hook_lock);
	}
	mutex_unlock(&hook_mutex);
	return rc;
}

static void hook_put(void)
{
	spin_lock(&hook_lock);
	if (!--hook_users && installed)
		mod_delayed_work(smc_net_wq, &unhook, UNHOOK_DELAY);
	spin_unlock(&hook_lock);
}

/* smc_policy_get() - takes another reference. Any context. */
void smc_policy_get(struct smc_policy_entry *entry)
{
	refcount_inc(&entry->ref);
}

/* smc_policy_put() - drops a reference on a rule, or nothing for NULL. Any context. */
void smc_policy_put(struct smc_policy_entry *entry)
{
	if (entry && refcount_dec_and_test(&entry->ref))
		kfree_rcu(entry, rcu);
}

/* smc_policy_table_new() - makes a table with room for @n rules. Return: NULL without memory. */
struct smc_policy_table *smc_policy_table_new(unsigned int n, gfp_t gfp)
{
	struct smc_policy_table *table = kvzalloc(struct_size(table, entries, n), gfp);

	might_sleep();
	if (table)
		table->n = n;
	return table;
}

/* smc_policy_table_free() - frees a table that no reader has, with its references. May sleep. */
void smc_policy_table_free(struct smc_policy_table *table)
{
	unsigned int i;

	might_sleep();
	for (i = 0; i < table->n; i++) {
		smc_policy_put(table->entries[i]);
		cond_resched();
	}
	kvfree(table);
}

/* It is a work because a table may have a thousand rules: a callback of RCU would hold up all programs of its processor. */
static void free_table_work(struct work_struct *work)
{
	smc_policy_table_free(container_of(to_rcu_work(work), struct smc_policy_table, free));
}

static bool converts(const struct smc_policy_table *table)
{
	unsigned int i;

	for (i = 0; table && !table->off && i < table->n; i++)
		if (table->entries[i]->rule.verdict != SMC_POLICY_TCP)
			return true;
	return false;
}

static bool asks_cgroup(const struct smc_policy_table *table)
{
	unsigned int i;

	for (i = 0; i < table->n; i++)
		if (table->entries[i]->rule.cgroup)
			return true;
	return false;
}

/**
 * smc_policy_replace() - gives a namespace another table
 * @pn: its policy, with the lock
 * @fresh: belongs to the namespace from now on; NULL for none
 *
 * May sleep. Return: 0, or if the table needs the hook, -EOPNOTSUPP if the kernel cannot have it, -EBUSY if it cannot now, or -ENOMEM. Then
 * nothing has changed, and the caller still has the table.
 */
int smc_policy_replace(struct smc_policy_net *pn, struct smc_policy_table *fresh)
{
	struct smc_policy_table *old = rcu_dereference_protected(pn->table, lockdep_is_held(&pn->lock));
	bool had = old && old->converts, has = converts(fresh);
	int rc = 0;

	lockdep_assert_held(&pn->lock);
	might_sleep();
	if (!old && !fresh)
		return 0;
	if (has && !had)
		rc = hook_get();
	if (rc)
		return rc;
	if (fresh) {
		fresh->generation = ++pn->generation;
		fresh->converts = has;
		fresh->cgroups = asks_cgroup(fresh);
	}
	rcu_assign_pointer(pn->table, fresh);
	if (had && !has)
		hook_put();
	if (old) {
		INIT_RCU_WORK(&old->free, free_table_work);
		queue_rcu_work(smc_net_wq, &old->free);
	}
	return 0;
}

/* smc_policy_get_maker() - finds out who has made a socket, as far as a table asks for it. */
void smc_policy_get_maker(const struct smc_policy_table *table, const struct socket *sock, struct smc_policy_maker *m)
{
	const struct inode *inode = SOCK_INODE((struct socket *)sock);

	RCU_LOCKDEP_WARN(!rcu_read_lock_held(), "smc_policy_get_maker() outside of an RCU section");
	m->who = (struct smc_policy_who){ .uid = __kuid_val(inode->i_uid), .gid = __kgid_val(inode->i_gid) };
#ifdef CONFIG_SOCK_CGROUP_DATA
	if (table->cgroups) {
		cgroup_path(sock_cgroup_ptr(&sock->sk->sk_cgrp_data), m->path, sizeof(m->path));
		m->who.cgroup = m->path;
	}
#endif
}

/*
 * smc_policy_inherits() - do the rules of the initial namespace decide about the sockets of a namespace? Only if its table, or NULL, has no
 * rules. Any context.
 */
bool smc_policy_inherits(const struct smc_net *sn, const struct smc_policy_table *table)
{
	return (!table || (!table->n && !table->off)) && !net_eq(sn->net, &init_net) &&
	       READ_ONCE(smc_net(&init_net)->sysctl->policy_for_namespaces);
}

/* smc_policy_table_of() - returns the table that decides about a socket, NULL if there is none. Under RCU. */
const struct smc_policy_table *smc_policy_table_of(const struct socket *sock)
{
	const struct smc_net *sn = smc_net(sock_net(sock->sk));
	const struct smc_policy_table *table = rcu_dereference(sn->policy->table);

	return smc_policy_inherits(sn, table) ? rcu_dereference(smc_net(&init_net)->policy->table) : table;
}

/*
 * smc_policy_converts() - may a fresh socket of TCP become SMC, whatever it will be used for? The first rule that matches its maker
 * and asks for nothing else decides. Does not sleep.
 */
bool smc_policy_converts(const struct socket *sock)
{
	const struct smc_policy_table *table;
	bool may = false;
	struct smc_policy_maker m __uninitialized;
	unsigned int i;

	rcu_read_lock();
	table = smc_policy_table_of(sock);
	if (!table || !table->converts)
		goto out;
	/* The path of a control group takes a lock that may sleep there: connect() and listen() decide. */
	if (IS_ENABLED(CONFIG_PREEMPT_RT) && table->cgroups) {
		may = true;
		goto out;
	}
	smc_policy_get_maker(table, sock, &m);
	for (i = 0; i < table->n && !may; i++) {
		const struct smc_policy_rule *rule = &table->entries[i]->rule;

		if (!smc_policy_matches_who(rule, &m.who))
			continue;
		may = rule->verdict != SMC_POLICY_TCP;
		if (!smc_policy_asks_use(rule))
			break;
	}
out:
	rcu_read_unlock();
	return may;
}

/**
 * smc_policy_decide() - evaluates the rules of a socket's namespace, when it is to connect
 * @sock: the socket
 * @use: where to
 * @entry: the rule that has decided, with a reference; NULL if there is none
 *
 * Any context but hardirq. Return: SMC_POLICY_TCP also if the policy is off.
 */
enum smc_policy_verdict smc_policy_decide(const struct socket *sock, const struct smc_policy_use *use,
					  struct smc_policy_entry **entry)
{
	enum smc_policy_verdict verdict = SMC_POLICY_NONE;
	const struct smc_policy_table *table;
	struct smc_policy_maker m __uninitialized;
	unsigned int i;

	*entry = NULL;
	rcu_read_lock();
	table = smc_policy_table_of(sock);
	if (!table)
		goto out;
	if (table->off) {
		verdict = SMC_POLICY_TCP;
		goto out;
	}
	smc_policy_get_maker(table, sock, &m);
	for (i = 0; i < table->n; i++) {
		if (!smc_policy_matches(&table->entries[i]->rule, &m.who, use))
			continue;
		*entry = table->entries[i];
		verdict = (*entry)->rule.verdict;
		smc_policy_get(*entry);
		break;
	}
out:
	rcu_read_unlock();
	return verdict;
}

/* smc_policy_net_init() - of a fresh namespace, which has no rules. */
void smc_policy_net_init(struct smc_net *sn)
{
	mutex_init(&sn->policy->lock);
	smc_service_net_init(&sn->policy->services);
}

/* smc_policy_net_exit() - of a namespace that has no sockets any more. */
void smc_policy_net_exit(struct smc_net *sn)
{
	might_sleep();
	mutex_lock(&sn->policy->lock);
	smc_policy_replace(sn->policy, NULL);
	mutex_unlock(&sn->policy->lock);
	smc_service_flush(sn);
}
