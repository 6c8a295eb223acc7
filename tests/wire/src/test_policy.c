// SPDX-License-Identifier: Apache-2.0
/* Rules and sockets that they match: kernel/policy/rules.c. The table is that of pkg/policy, which has the same in Go. */
#include "check.h"
#include "policy/rules.h"

#define BOTH (SMC_POLICY_CONNECTS | SMC_POLICY_LISTENS)
#define PORTS(...) { .ranges = (struct smc_policy_ports[]){ __VA_ARGS__ }, \
	.n = sizeof((struct smc_policy_ports[]){ __VA_ARGS__ }) / sizeof(struct smc_policy_ports) }
#define V4(a, b, c, d) { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d }

static const u8 peer[16] = V4(10, 9, 1, 2);
static const struct smc_policy_prefix in_net = { V4(10, 9, 0, 0), 112 };
static const struct smc_policy_prefix other_net = { V4(10, 9, 128, 0), 113 };
static const struct smc_policy_prefix one_host = { V4(10, 9, 1, 2), 128 };
static const struct smc_policy_prefix all_v4 = { V4(0, 0, 0, 0), 96 };
static const struct smc_policy_prefix all_v6 = { { 0 }, 0 };

static const struct smc_policy_who who = { .uid = 33, .gid = 44, .cgroup = "/system.slice/redis.service" };
static const struct smc_policy_use client = { .role = SMC_POLICY_CONNECTS, .local = 0, .remote = 6379, .addr = peer };
static const struct smc_policy_use bound = { .role = SMC_POLICY_CONNECTS, .local = 700, .remote = 6379, .addr = peer };
static const struct smc_policy_use server = { .role = SMC_POLICY_LISTENS, .local = 6379 };

static const struct smc_policy_use accepted = { .role = SMC_POLICY_LISTENS, .local = 6379, .addr = peer };

struct rule_case {
	const char *name;
	struct smc_policy_rule rule;
	bool client, bound, server, who, asks;
};

static const struct rule_case cases[] = {
	{ "everything", { .roles = BOTH }, true, true, true, true, false },
	{ "clients", { .roles = SMC_POLICY_CONNECTS }, true, true, false, true, true },
	{ "servers", { .roles = SMC_POLICY_LISTENS }, false, false, true, true, true },
	{ "port", { .roles = BOTH, .service = PORTS({ 6379, 6379 }) }, true, true, true, true, true },
	{ "range", { .roles = BOTH, .service = PORTS({ 1, 9 }, { 6000, 6379 }) }, true, true, true, true, true },
	{ "below", { .roles = BOTH, .service = PORTS({ 6380, 65535 }) }, false, false, false, true, true },
	{ "local", { .roles = BOTH, .local = PORTS({ 700, 6379 }) }, false, true, true, true, true },
	{ "remote", { .roles = BOTH, .remote = PORTS({ 6379, 6379 }) }, true, true, false, true, true },
	{ "network", { .roles = BOTH, .nets = &in_net, .n_nets = 1 }, true, true, false, true, true },
	{ "other network", { .roles = BOTH, .nets = &other_net, .n_nets = 1 }, false, false, false, true, true },
	{ "one host", { .roles = BOTH, .nets = &one_host, .n_nets = 1 }, true, true, false, true, true },
	{ "all of IPv4", { .roles = BOTH, .nets = &all_v4, .n_nets = 1 }, true, true, false, true, true },
	{ "all of IPv6", { .roles = BOTH, .nets = &all_v6, .n_nets = 1 }, false, false, false, true, true },
	{ "user", { .roles = BOTH, .has_uid = true, .uid = 33 }, true, true, true, true, false },
	{ "root", { .roles = BOTH, .has_uid = true }, false, false, false, false, false },
	{ "group", { .roles = BOTH, .has_gid = true, .gid = 44 }, true, true, true, true, false },
	{ "other group", { .roles = BOTH, .has_gid = true, .gid = 33 }, false, false, false, false, false },
	{ "service", { .roles = BOTH, .cgroup = "/system.slice/redis.service" }, true, true, true, true, false },
	{ "slice", { .roles = BOTH, .cgroup = "/system.slice" }, true, true, true, true, false },
	{ "root group", { .roles = BOTH, .cgroup = "/" }, true, true, true, true, false },
	{ "half a name", { .roles = BOTH, .cgroup = "/system.slice/redis" }, false, false, false, false, false },
	{ "below it", { .roles = BOTH, .cgroup = "/system.slice/redis.service/x" }, false, false, false, false, false },
	{ "all at once", { .roles = SMC_POLICY_CONNECTS, .has_uid = true, .uid = 33, .cgroup = "/system.slice",
			   .service = PORTS({ 6379, 6379 }), .nets = &in_net, .n_nets = 1 }, true, true, false, true, true },
	{ "all but one", { .roles = SMC_POLICY_CONNECTS, .has_uid = true, .uid = 33, .cgroup = "/system.slice",
			   .service = PORTS({ 6379, 6379 }), .nets = &other_net, .n_nets = 1 }, false, false, false, true, true },
};

static void test_rules(void)
{
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct rule_case *c = &cases[i];

		check_case = c->name;
		CHECK_EQ(smc_policy_matches(&c->rule, &who, &client), c->client);
		CHECK_EQ(smc_policy_matches(&c->rule, &who, &bound), c->bound);
		CHECK_EQ(smc_policy_matches(&c->rule, &who, &server), c->server);
		CHECK_EQ(smc_policy_matches_who(&c->rule, &who), c->who);
		CHECK_EQ(smc_policy_asks_use(&c->rule), c->asks);
		/* A listener asks for the networks of each connection. */
		CHECK_EQ(smc_policy_matches_use(&c->rule, &who, &server) && smc_policy_matches_peer(&c->rule, NULL), c->server);
		CHECK_EQ(smc_policy_matches_use(&c->rule, &who, &client) && smc_policy_matches_peer(&c->rule, peer), c->client);
		CHECK_EQ(smc_policy_matches(&c->rule, &who, &accepted), c->server || (c->rule.n_nets && c->client && c->rule.roles == BOTH));
	}
}

/* Without control groups, no rule that asks for one matches. */
static void test_no_cgroup(void)
{
	const struct smc_policy_rule top = { .roles = BOTH, .cgroup = "/" }, below = { .roles = BOTH, .cgroup = "/a" };
	const struct smc_policy_who none = {};

	CHECK(!smc_policy_matches_who(&top, &none));
	CHECK(!smc_policy_matches_who(&below, &none));
}

/* A prefix matches the addresses that share its bits, and no others. */
static void check_prefixes(const u8 *base, unsigned int from)
{
	unsigned int bits, flip;

	for (bits = from; bits <= 128; bits++) {
		struct smc_policy_prefix net = { .bits = (u8)bits };
		struct smc_policy_rule rule = { .roles = BOTH, .nets = &net, .n_nets = 1 };
		struct smc_policy_use use = client;
		u8 addr[16];

		memcpy(net.addr, base, 16);
		use.addr = addr;
		for (flip = 0; flip < 128; flip++) {
			memcpy(addr, base, 16);
			addr[flip / 8] ^= (u8)(0x80 >> flip % 8);
			CHECK_EQ(smc_policy_matches(&rule, &who, &use), flip >= bits);
		}
	}
}

static void test_prefixes(void)
{
	static const u8 v6[16] = { 0xfd, [7] = 0x5a, [15] = 1 };
	const struct smc_policy_rule any_v4 = { .roles = BOTH, .nets = &all_v4, .n_nets = 1 };
	const struct smc_policy_rule any_v6 = { .roles = BOTH, .nets = &all_v6, .n_nets = 1 };
	struct smc_policy_use use = client;

	check_prefixes(peer, 96);
	check_prefixes(v6, 0);
	use.addr = v6;
	CHECK(!smc_policy_matches(&any_v4, &who, &use));
	CHECK(smc_policy_matches(&any_v6, &who, &use));
}

const struct test policy_tests[] = {
	{ "rules", test_rules },
	{ "no control group", test_no_cgroup },
	{ "prefixes", test_prefixes },
	{ NULL, NULL },
};
