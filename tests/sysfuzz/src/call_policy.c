// SPDX-License-Identifier: Apache-2.0
/* The netlink family of our module: rules, what services have learned, peers, memory, link groups. */
#include <linux/genetlink.h>
#include <string.h>

#include "../../../kernel/uapi/smckit.h"
#include "calls.h"
#include "message.h"

static struct nlattr *begin(struct message *m, int type)
{
	struct nlattr *a = (void *)((char *)m + NLMSG_ALIGN(m->header.nlmsg_len));

	a->nla_type = type;
	a->nla_len = NLA_HDRLEN;
	m->header.nlmsg_len = NLMSG_ALIGN(m->header.nlmsg_len) + NLA_HDRLEN;
	return a;
}

/* Adds an attribute; at times with bytes too many or too few. */
static void put(struct ctx *c, struct message *m, int type, const void *value, int len)
{
	struct nlattr *a = begin(m, type);

	if (len && rnd_one_in(&c->rnd, 30))
		len = rnd_below(&c->rnd, len);
	memcpy(a + 1, value, len);
	a->nla_len += len + (rnd_one_in(&c->rnd, 60) ? 1 : 0);
	m->header.nlmsg_len += NLA_ALIGN(len);
}

static void put_number(struct ctx *c, struct message *m, int type, uint32_t value, int len)
{
	put(c, m, type, &value, len);
}

/* Ranges of ports, among them those that the programs use. */
static void put_ports(struct ctx *c, struct message *m, int type)
{
	uint16_t ports[6];
	int n = 1 + rnd_below(&c->rnd, 3);

	for (int i = 0; i < 2 * n; i++)
		ports[i] = rnd_one_in(&c->rnd, 4) ? rnd_next(&c->rnd) : c->port + rnd_below(&c->rnd, PORTS);
	put(c, m, type, ports, 4 * n);
}

static void put_networks(struct ctx *c, struct message *m)
{
	unsigned char networks[2 * 17] = {};

	networks[10] = networks[11] = 0xff;
	networks[12] = 127;
	networks[16] = 104;
	networks[17 + 15] = rnd_next(&c->rnd);
	networks[17 + 16] = rnd_below(&c->rnd, 140);
	put(c, m, SMCKIT_A_RULE_NETWORKS, networks, 17 * (1 + rnd_below(&c->rnd, 2)));
}

/* A rule that selects by a few things, or by nothing, and then is for all sockets. */
static void put_rule(struct ctx *c, struct message *m)
{
	static const char *const cgroups[] = { "/", "/a", "/../a", "", "/a//b" }, *const names[] = { "a", "b", "a name", "" };
	struct nlattr *rule = begin(m, SMCKIT_A_POLICY_RULE | NLA_F_NESTED);
	const char *cgroup = RND_PICK(&c->rnd, cgroups), *name = RND_PICK(&c->rnd, names);

	put_number(c, m, SMCKIT_A_RULE_VERDICT, rnd_below(&c->rnd, rnd_one_in(&c->rnd, 20) ? 9 : 4), 1);
	if (rnd_one_in(&c->rnd, 3))
		put_number(c, m, SMCKIT_A_RULE_ID, rnd_below(&c->rnd, 5), 4);
	if (rnd_one_in(&c->rnd, 3))
		put(c, m, SMCKIT_A_RULE_NAME, name, strlen(name) + 1);
	if (rnd_one_in(&c->rnd, 3))
		put_number(c, m, SMCKIT_A_RULE_ROLES, rnd_below(&c->rnd, 5), 1);
	if (rnd_one_in(&c->rnd, 6))
		put_number(c, m, SMCKIT_A_RULE_UID, rnd_below(&c->rnd, 3), 4);
	if (rnd_one_in(&c->rnd, 6))
		put_number(c, m, SMCKIT_A_RULE_GID, rnd_below(&c->rnd, 3), 4);
	if (rnd_one_in(&c->rnd, 6))
		put(c, m, SMCKIT_A_RULE_CGROUP, cgroup, strlen(cgroup) + 1);
	for (int type = SMCKIT_A_RULE_SERVICE_PORTS; type <= SMCKIT_A_RULE_REMOTE_PORTS; type++)
		if (rnd_one_in(&c->rnd, 4))
			put_ports(c, m, type);
	if (rnd_one_in(&c->rnd, 4))
		put_networks(c, m);
	rule->nla_len = (char *)m + m->header.nlmsg_len - (char *)rule;
}

/* Replaces the rules. The generation is one of the first, and so at times that of the rules that are there. */
static void put_policy(struct ctx *c, struct message *m)
{
	uint32_t n = rnd_below(&c->rnd, 4);

	put_number(c, m, SMCKIT_A_POLICY_GENERATION, rnd_below(&c->rnd, 4), 4);
	if (rnd_one_in(&c->rnd, 4))
		put_number(c, m, SMCKIT_A_POLICY_ENABLED, !rnd_one_in(&c->rnd, 4), 1);
	if (rnd_one_in(&c->rnd, 8))
		return;
	put_number(c, m, SMCKIT_A_POLICY_COUNT, rnd_one_in(&c->rnd, 20) ? rnd_below(&c->rnd, 2000) : n, 4);
	while (n--)
		put_rule(c, m);
}

/*
 * A request to our own family. Those that change what other programs see come from namespaces of a program's own; those for
 * numbers of link groups too, as the groups of others are not seen there.
 */
DECLARE_OP(op_policy)
{
	static const uint16_t flags[] = { NLM_F_DUMP, NLM_F_DUMP, NLM_F_ACK, 0 };
	static const int gets[] = { SMCKIT_CMD_POLICY_GET, SMCKIT_CMD_SERVICE_GET, SMCKIT_CMD_PEER_GET, SMCKIT_CMD_MEMORY_GET };
	struct message m = { { .nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN), .nlmsg_type = message_family(SMCKIT_GENL_FAMILY_NAME),
			       .nlmsg_flags = NLM_F_REQUEST | RND_PICK(&c->rnd, flags) }, {} };
	struct genlmsghdr *g = (void *)m.body;

	(void)call;
	g->version = SMCKIT_GENL_FAMILY_VERSION;
	g->cmd = RND_PICK(&c->rnd, gets);
	if (c->program->env != ENV_ROOT && !rnd_one_in(&c->rnd, 4)) {
		g->cmd = rnd_one_in(&c->rnd, 2) ? SMCKIT_CMD_POLICY_SET : rnd_below(&c->rnd, SMCKIT_CMD_MEMORY_GET + 2);
		m.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	}
	if (g->cmd == SMCKIT_CMD_POLICY_SET) {
		put_policy(c, &m);
	} else if (g->cmd <= SMCKIT_CMD_LINK_DELETE) {
		put_number(c, &m, SMCKIT_A_LGR_ID, rnd_below(&c->rnd, 1 << 10), 4);
		put_number(c, &m, SMCKIT_A_LGR_TECH, rnd_below(&c->rnd, 3), 1);
		put_number(c, &m, SMCKIT_A_LGR_LINK_ID, rnd_below(&c->rnd, 3), 1);
	}
	trace(c, "command %d, flags %#x, %u bytes", g->cmd, m.header.nlmsg_flags, m.header.nlmsg_len);
	return message_send(c, NETLINK_GENERIC, &m);
}
