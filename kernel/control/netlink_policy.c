// SPDX-License-Identifier: GPL-2.0-only
/*
 * The policy of a network namespace over netlink. A change replaces all rules at once, and names the generation that it is made to,
 * so user space adds or deletes a rule by sending the others, too.
 */
#include <linux/cred.h>
#include <linux/slab.h>
#include <linux/uidgid.h>
#include <net/sock.h>

#include "../net.h"
#include "../policy/policy.h"
#include "netlink.h"
#include "netlink_attrs_gen.h"

/* The policies of the attributes are generated, with limits that the types of rules share. */
static_assert(ARRAY_SIZE(smc_netlink_rule_attrs) == SMCKIT_A_RULE_MAX + 1);
static_assert(SMCKIT_A_POLICY_COUNT_MOST == SMC_POLICY_RULES);
static_assert(SMCKIT_A_RULE_NAME_LEN == SMC_POLICY_NAME - 1);
static_assert(SMCKIT_A_RULE_CGROUP_LEN == SMC_POLICY_PATH - 1);
static_assert(SMCKIT_A_RULE_VERDICT_LEAST == SMC_POLICY_SMC);
static_assert(SMCKIT_A_RULE_VERDICT_MOST == SMC_POLICY_AUTO);
static_assert(SMCKIT_A_RULE_ROLES_LEAST == SMC_POLICY_CONNECTS);
static_assert(SMCKIT_A_RULE_ROLES_MOST == (SMC_POLICY_CONNECTS | SMC_POLICY_LISTENS));
static_assert(SMCKIT_A_RULE_SERVICE_PORTS_LEN == SMC_POLICY_LIST * sizeof(struct smc_policy_ports));
static_assert(SMCKIT_A_RULE_LOCAL_PORTS_LEN == SMC_POLICY_LIST * sizeof(struct smc_policy_ports));
static_assert(SMCKIT_A_RULE_REMOTE_PORTS_LEN == SMC_POLICY_LIST * sizeof(struct smc_policy_ports));
static_assert(SMCKIT_A_RULE_NETWORKS_LEN == SMC_POLICY_LIST * sizeof(struct smc_policy_prefix));

static int put_list(struct sk_buff *skb, int type, const void *list, size_t bytes)
{
	return bytes ? nla_put(skb, type, bytes, list) : 0;
}

static int put_ports(struct sk_buff *skb, int type, const struct smc_policy_port_list *list)
{
	return put_list(skb, type, list->ranges, list->n * sizeof(*list->ranges));
}

static int put_counters(struct sk_buff *skb, const struct smc_policy_entry *entry)
{
	return smc_netlink_put_u64(skb, SMCKIT_A_RULE_DECISIONS, atomic64_read(&entry->decisions)) ||
	       smc_netlink_put_u64(skb, SMCKIT_A_RULE_CONNS_SMC, atomic64_read(&entry->conns_smc)) ||
	       smc_netlink_put_u64(skb, SMCKIT_A_RULE_CONNS_TCP, atomic64_read(&entry->conns_tcp)) ||
	       smc_netlink_put_u64(skb, SMCKIT_A_RULE_BYTES, atomic64_read(&entry->bytes));
}

/* Puts the conditions about the maker of a socket, in numbers of the reader's user namespace. */
static int put_who(struct sk_buff *skb, const struct smc_policy_rule *rule)
{
	struct user_namespace *ns = current_user_ns();

	if (rule->has_uid && nla_put_u32(skb, SMCKIT_A_RULE_UID, from_kuid_munged(ns, KUIDT_INIT(rule->uid))))
		return -EMSGSIZE;
	if (rule->has_gid && nla_put_u32(skb, SMCKIT_A_RULE_GID, from_kgid_munged(ns, KGIDT_INIT(rule->gid))))
		return -EMSGSIZE;
	return rule->cgroup ? nla_put_string(skb, SMCKIT_A_RULE_CGROUP, rule->cgroup) : 0;
}

static int put_rule(struct sk_buff *skb, const struct smc_policy_entry *entry)
{
	const struct smc_policy_rule *rule = &entry->rule;
	struct nlattr *nest = nla_nest_start(skb, SMCKIT_A_POLICY_RULE);

	if (!nest)
		return -EMSGSIZE;
	if (nla_put_u32(skb, SMCKIT_A_RULE_ID, entry->id) ||
	    (*entry->name && nla_put_string(skb, SMCKIT_A_RULE_NAME, entry->name)) ||
	    nla_put_u8(skb, SMCKIT_A_RULE_VERDICT, rule->verdict) || nla_put_u8(skb, SMCKIT_A_RULE_ROLES, rule->roles) ||
	    put_who(skb, rule) || put_ports(skb, SMCKIT_A_RULE_SERVICE_PORTS, &rule->service) ||
	    put_ports(skb, SMCKIT_A_RULE_LOCAL_PORTS, &rule->local) || put_ports(skb, SMCKIT_A_RULE_REMOTE_PORTS, &rule->remote) ||
	    put_list(skb, SMCKIT_A_RULE_NETWORKS, rule->nets, rule->n_nets * sizeof(*rule->nets)) || put_counters(skb, entry)) {
		nla_nest_cancel(skb, nest);
		return -EMSGSIZE;
	}
	nla_nest_end(skb, nest);
	return 0;
}

/* Puts what every message has, and as many rules as fit. Return: the number of the next one, or a negative errno. */
static int put_table(struct sk_buff *skb, const struct smc_policy_table *table, bool inherits, unsigned int from)
{
	unsigned int i;

	if (nla_put_u32(skb, SMCKIT_A_POLICY_GENERATION, table ? table->generation : 0) ||
	    nla_put_u8(skb, SMCKIT_A_POLICY_ENABLED, !table || !table->off) || nla_put_u8(skb, SMCKIT_A_POLICY_INHERITED, inherits))
		return -EMSGSIZE;
	for (i = from; table && i < table->n; i++)
		if (put_rule(skb, table->entries[i]))
			break;
	return i == from && table && from < table->n ? -EMSGSIZE : (int)i;
}

/* smc_netlink_get_policy() - the answer to SMCKIT_CMD_POLICY_GET. Return: as smc_netlink_dump_info(). */
int smc_netlink_get_policy(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct smc_net *sn = smc_net(sock_net(skb->sk));
	struct smc_netlink_cursor *pos = smc_netlink_cursor_of(cb);
	const struct smc_policy_table *table;
	void *head;
	int next;

	might_sleep();
	/* One more than the next rule, so that an empty table has a message, too. */
	rcu_read_lock();
	table = rcu_dereference(sn->policy->table);
	cb->seq = table ? table->generation : 0;
	if (pos->next && (!table || pos->next - 1 >= table->n)) {
		rcu_read_unlock();
		return skb->len;
	}
	head = genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq, &smc_netlink_own_family, NLM_F_MULTI, SMCKIT_CMD_POLICY_GET);
	next = head ? put_table(skb, table, smc_policy_inherits(sn, table), pos->next ? pos->next - 1 : 0) : -EMSGSIZE;
	rcu_read_unlock();
	if (next < 0)
		return next;
	pos->next = next + 1;
	genl_dump_check_consistent(cb, head);
	genlmsg_end(skb, head);
	return skb->len;
}

/* Bytes of a list in a request; it consists of whole entries. */
static int list_len(const struct nlattr *attr, size_t entry, unsigned int *n)
{
	*n = attr ? nla_len(attr) / entry : 0;
	return attr && (!*n || nla_len(attr) % entry) ? -EINVAL : 0;
}

/* Copies a list of ports to @to, which moves on. */
static int take_ports(const struct nlattr *attr, struct smc_policy_port_list *list, u8 **to)
{
	struct smc_policy_ports *ranges = (struct smc_policy_ports *)*to;
	unsigned int i;

	if (list_len(attr, sizeof(*ranges), &list->n))
		return -EINVAL;
	list->ranges = ranges;
	if (attr)
		memcpy(ranges, nla_data(attr), list->n * sizeof(*ranges));
	*to += list->n * sizeof(*ranges);
	for (i = 0; i < list->n; i++)
		if (!ranges[i].first || ranges[i].first > ranges[i].last)
			return -EINVAL;
	return 0;
}

static int take_nets(const struct nlattr *attr, struct smc_policy_rule *rule, u8 **to)
{
	struct smc_policy_prefix *nets = (struct smc_policy_prefix *)*to;
	unsigned int i;

	static_assert(sizeof(*nets) == 17);
	if (list_len(attr, sizeof(*nets), &rule->n_nets))
		return -EINVAL;
	rule->nets = nets;
	if (attr)
		memcpy(nets, nla_data(attr), rule->n_nets * sizeof(*nets));
	*to += rule->n_nets * sizeof(*nets);
	for (i = 0; i < rule->n_nets; i++)
		if (nets[i].bits > 128)
			return -EINVAL;
	return 0;
}

static int take_who(struct nlattr **a, struct smc_policy_rule *rule, u8 **to, struct netlink_ext_ack *extack)
{
	kuid_t uid = a[SMCKIT_A_RULE_UID] ? make_kuid(current_user_ns(), nla_get_u32(a[SMCKIT_A_RULE_UID])) : GLOBAL_ROOT_UID;
	kgid_t gid = a[SMCKIT_A_RULE_GID] ? make_kgid(current_user_ns(), nla_get_u32(a[SMCKIT_A_RULE_GID])) : GLOBAL_ROOT_GID;
	const struct nlattr *cgroup = a[SMCKIT_A_RULE_CGROUP];

	if (!uid_valid(uid) || !gid_valid(gid)) {
		NL_SET_ERR_MSG(extack, "the user or group of a rule has no number in the initial user namespace");
		return -EINVAL;
	}
	rule->has_uid = a[SMCKIT_A_RULE_UID];
	rule->has_gid = a[SMCKIT_A_RULE_GID];
	rule->uid = __kuid_val(uid);
	rule->gid = __kgid_val(gid);
	if (!cgroup)
		return 0;
	if (!IS_ENABLED(CONFIG_SOCK_CGROUP_DATA))
		return -EOPNOTSUPP;
	rule->cgroup = (char *)*to;
	/* A zero follows, see extra(). */
	memcpy(*to, nla_data(cgroup), nla_len(cgroup));
	*to += nla_len(cgroup);
	return *rule->cgroup == '/' ? 0 : -EINVAL;
}

/* Returns the bytes that the lists and the path of a rule need, with a zero. Ports come first: they are aligned then. */
static size_t extra(struct nlattr **a)
{
	static const int types[] = {
		SMCKIT_A_RULE_SERVICE_PORTS, SMCKIT_A_RULE_LOCAL_PORTS, SMCKIT_A_RULE_REMOTE_PORTS, SMCKIT_A_RULE_NETWORKS, SMCKIT_A_RULE_CGROUP,
	};
	size_t bytes = 1;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(types); i++)
		bytes += a[types[i]] ? nla_len(a[types[i]]) : 0;
	return bytes;
}

/* Makes a rule of a request. Return: ERR_PTR(-EINVAL) for an invalid one. */
static struct smc_policy_entry *make_entry(struct nlattr **a, struct netlink_ext_ack *extack)
{
	struct smc_policy_entry *entry;
	u8 *to;
	int rc;

	if (!a[SMCKIT_A_RULE_VERDICT] || !a[SMCKIT_A_RULE_ROLES])
		return ERR_PTR(-EINVAL);
	entry = kzalloc(sizeof(*entry) + extra(a), GFP_KERNEL_ACCOUNT);
	if (!entry)
		return ERR_PTR(-ENOMEM);
	refcount_set(&entry->ref, 1);
	entry->rule.verdict = nla_get_u8(a[SMCKIT_A_RULE_VERDICT]);
	entry->rule.roles = nla_get_u8(a[SMCKIT_A_RULE_ROLES]);
	if (a[SMCKIT_A_RULE_NAME])
		nla_strscpy(entry->name, a[SMCKIT_A_RULE_NAME], sizeof(entry->name));
	to = (u8 *)(entry + 1);
	rc = take_ports(a[SMCKIT_A_RULE_SERVICE_PORTS], &entry->rule.service, &to) ?:
	     take_ports(a[SMCKIT_A_RULE_LOCAL_PORTS], &entry->rule.local, &to) ?:
	     take_ports(a[SMCKIT_A_RULE_REMOTE_PORTS], &entry->rule.remote, &to) ?:
	     take_nets(a[SMCKIT_A_RULE_NETWORKS], &entry->rule, &to) ?: take_who(a, &entry->rule, &to, extack);
	if (!rc)
		return entry;
	smc_policy_put(entry);
	return ERR_PTR(rc);
}

/* The rule of a table that has a number, or NULL. */
static struct smc_policy_entry *by_id(const struct smc_policy_table *table, u32 id)
{
	unsigned int i;

	for (i = 0; table && i < table->n; i++)
		if (table->entries[i]->id == id)
			return table->entries[i];
	return NULL;
}

/* Takes a rule of a request: one that the present table has, if it has that one's number, or else a new one. */
static struct smc_policy_entry *take_entry(struct smc_policy_net *pn, const struct nlattr *attr, struct netlink_ext_ack *extack)
{
	const struct smc_policy_table *old = rcu_dereference_protected(pn->table, lockdep_is_held(&pn->lock));
	struct nlattr *a[SMCKIT_A_RULE_MAX + 1];
	struct smc_policy_entry *entry;
	int rc = nla_parse_nested(a, SMCKIT_A_RULE_MAX, attr, smc_netlink_rule_attrs, extack);

	if (rc)
		return ERR_PTR(rc);
	if (a[SMCKIT_A_RULE_ID] && nla_get_u32(a[SMCKIT_A_RULE_ID])) {
		entry = by_id(old, nla_get_u32(a[SMCKIT_A_RULE_ID]));
		if (!entry)
			return ERR_PTR(-ESTALE);
		smc_policy_get(entry);
		return entry;
	}
	entry = make_entry(a, extack);
	if (!IS_ERR(entry))
		entry->id = ++pn->last_id;
	return entry;
}

/* Fills a table with the rules of a request. Return: 0 or a negative errno; the caller frees the table. */
static int take_rules(struct smc_policy_net *pn, struct genl_info *info, struct smc_policy_table *table)
{
	struct smc_policy_entry *entry;
	const struct nlattr *attr;
	unsigned int n = 0;
	int rem;

	nlmsg_for_each_attr(attr, info->nlhdr, GENL_HDRLEN, rem) {
		if (nla_type(attr) != SMCKIT_A_POLICY_RULE)
			continue;
		if (n == table->n)
			return -EINVAL;
		entry = take_entry(pn, attr, info->extack);
		if (IS_ERR(entry)) {
			NL_SET_BAD_ATTR(info->extack, attr);
			return PTR_ERR(entry);
		}
		table->entries[n++] = entry;
		cond_resched();
	}
	return n == table->n ? 0 : -EINVAL;
}

/* The rules stay. */
static void copy_rules(struct smc_policy_table *to, const struct smc_policy_table *from)
{
	unsigned int i;

	for (i = 0; i < to->n; i++) {
		to->entries[i] = from->entries[i];
		smc_policy_get(to->entries[i]);
	}
}

static int change(struct smc_policy_net *pn, struct genl_info *info)
{
	struct nlattr *enabled = info->attrs[SMCKIT_A_POLICY_ENABLED], *count = info->attrs[SMCKIT_A_POLICY_COUNT];
	const struct smc_policy_table *old = rcu_dereference_protected(pn->table, lockdep_is_held(&pn->lock));
	struct smc_policy_table *fresh;
	int rc;

	if (nla_get_u32(info->attrs[SMCKIT_A_POLICY_GENERATION]) != (old ? old->generation : 0)) {
		GENL_SET_ERR_MSG(info, "the policy has been changed meanwhile");
		return -ESTALE;
	}
	fresh = smc_policy_table_new(count ? nla_get_u32(count) : old ? old->n : 0, GFP_KERNEL_ACCOUNT);
	if (!fresh)
		return -ENOMEM;
	fresh->off = enabled ? !nla_get_u8(enabled) : old && old->off;
	rc = count ? take_rules(pn, info, fresh) : 0;
	if (!count && old)
		copy_rules(fresh, old);
	if (!rc)
		rc = smc_policy_replace(pn, fresh);
	if (rc == -EOPNOTSUPP)
		GENL_SET_ERR_MSG(info, "this kernel cannot convert sockets: it lacks tracing of functions, security hooks for networking, or control groups");
	if (rc == -EBUSY)
		GENL_SET_ERR_MSG(info, "tracing of functions, which converts sockets, is off: kernel.ftrace_enabled is 0");
	if (rc)
		smc_policy_table_free(fresh);
	return rc;
}

/* smc_netlink_set_policy() - SMCKIT_CMD_POLICY_SET. Return: 0 or a negative errno. */
int smc_netlink_set_policy(struct sk_buff *skb, struct genl_info *info)
{
	struct smc_policy_net *pn = smc_net(genl_info_net(info))->policy;
	int rc;

	might_sleep();
	if (!info->attrs[SMCKIT_A_POLICY_GENERATION]) {
		GENL_SET_ERR_MSG(info, "the generation is missing");
		return -EINVAL;
	}
	mutex_lock(&pn->lock);
	rc = change(pn, info);
	mutex_unlock(&pn->lock);
	return rc;
}
