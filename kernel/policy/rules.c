// SPDX-License-Identifier: GPL-2.0-only
/* Matches rules against sockets: see rules.h. */

#include "rules.h"

static bool in_list(const struct smc_policy_port_list *list, u16 port)
{
	unsigned int i;

	for (i = 0; i < list->n; i++)
		if (port && port >= list->ranges[i].first && port <= list->ranges[i].last)
			return true;
	return !list->n;
}

static bool is_mapped(const u8 *addr)
{
	static const u8 mapped[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(addr, mapped, sizeof(mapped));
}

static bool in_prefix(const struct smc_policy_prefix *net, const u8 *addr)
{
	unsigned int bytes = net->bits / 8, bits = net->bits % 8;

	/* A network of IPv6 has no addresses of IPv4, although they are mapped. */
	if (memcmp(net->addr, addr, bytes) || (net->bits < 96 && is_mapped(addr)))
		return false;
	return !bits || !((net->addr[bytes] ^ addr[bytes]) >> (8 - bits));
}

/* smc_policy_matches_peer() - does a rule match an address, as far as networks are concerned? @addr: 16 bytes, or NULL. Any context. */
bool smc_policy_matches_peer(const struct smc_policy_rule *rule, const u8 *addr)
{
	unsigned int i;

	for (i = 0; addr && i < rule->n_nets; i++)
		if (in_prefix(&rule->nets[i], addr))
			return true;
	return !rule->n_nets;
}

/* Is a control group another one, or below it? */
static bool in_cgroup(const char *cgroup, const char *top)
{
	size_t len = strlen(top);

	/* The root has all below it. */
	if (len == 1)
		return cgroup;
	return cgroup && !strncmp(cgroup, top, len) && (!cgroup[len] || cgroup[len] == '/');
}

/* smc_policy_matches_who() - does a rule match a socket, as far as its maker is concerned? Any context. */
bool smc_policy_matches_who(const struct smc_policy_rule *rule, const struct smc_policy_who *who)
{
	if ((rule->has_uid && rule->uid != who->uid) || (rule->has_gid && rule->gid != who->gid))
		return false;
	return !rule->cgroup || in_cgroup(who->cgroup, rule->cgroup);
}

/* smc_policy_asks_use() - does it depend on what a socket is used for whether a rule matches? Any context. */
bool smc_policy_asks_use(const struct smc_policy_rule *rule)
{
	return rule->roles != (SMC_POLICY_CONNECTS | SMC_POLICY_LISTENS) || rule->service.n || rule->local.n || rule->remote.n ||
	       rule->n_nets;
}

/*
 * smc_policy_matches_use() - does a rule match a socket and its use, as far as they are known when a listener begins to listen: all but
 * the peer's address? Any context.
 */
bool smc_policy_matches_use(const struct smc_policy_rule *rule, const struct smc_policy_who *who, const struct smc_policy_use *use)
{
	u16 service = use->role == SMC_POLICY_LISTENS ? use->local : use->remote;

	return (rule->roles & use->role) && smc_policy_matches_who(rule, who) && in_list(&rule->service, service) &&
	       in_list(&rule->local, use->local) && in_list(&rule->remote, use->remote);
}

/* smc_policy_matches() - does a rule match a socket and its use? Any context. */
bool smc_policy_matches(const struct smc_policy_rule *rule, const struct smc_policy_who *who, const struct smc_policy_use *use)
{
	return smc_policy_matches_use(rule, who, use) && smc_policy_matches_peer(rule, use->addr);
}
