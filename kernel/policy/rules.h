/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The rules about which sockets use SMC, and what they match. Nothing here locks, sleeps or allocates. It also builds in user
 * space, where tests/wire tests it. pkg/policy has the same in Go.
 */
#ifndef SMC_POLICY_RULES_H
#define SMC_POLICY_RULES_H

#include "../wire/shim.h"

/* Bytes of the path of a control group, with the zero at its end. */
#define SMC_POLICY_PATH 256

enum smc_policy_verdict {
	SMC_POLICY_NONE,		/* no rule matches */
	SMC_POLICY_SMC,
	SMC_POLICY_TCP,
	SMC_POLICY_AUTO,		/* what the service has learned: auto.h */
};

/* Roles of a socket; bits. */
#define SMC_POLICY_CONNECTS 1
#define SMC_POLICY_LISTENS 2

struct smc_policy_ports {
	u16 first, last;
};

/* A network. Those of IPv4 are mapped: ::ffff:0:0/96 and longer. */
struct smc_policy_prefix {
	u8 addr[16];
	u8 bits;
};

/* A list of ports; an empty one matches all, also a port of 0, which is not known. */
struct smc_policy_port_list {
	const struct smc_policy_ports *ranges;
	unsigned int n;
};

/* A rule matches a socket for which all of its conditions hold. */
struct smc_policy_rule {
	enum smc_policy_verdict verdict;
	u8 roles;
	bool has_uid, has_gid;
	u32 uid, gid;			/* as the initial user namespace has them */
	const char *cgroup;		/* path from the root, "/a/b", which stands for all below, too; or NULL */
	struct smc_policy_port_list service;	/* the local port of a listener, the remote one of a client */
	struct smc_policy_port_list local, remote;
	const struct smc_policy_prefix *nets;	/* that the remote address is in one of */
	unsigned int n_nets;		/* 0: any address */
};

/* The maker of a socket. */
struct smc_policy_who {
	u32 uid, gid;
	const char *cgroup;		/* as in a rule; it may be cut off after SMC_POLICY_PATH bytes; NULL if there is none */
};

/* The use of a socket. */
struct smc_policy_use {
	u8 role;			/* one of the bits */
	u16 local, remote;		/* ports in host order, 0 if not known */
	const u8 *addr;			/* of the peer, 16 bytes; NULL if it is not known */
};

bool smc_policy_matches(const struct smc_policy_rule *rule, const struct smc_policy_who *who, const struct smc_policy_use *use);
bool smc_policy_matches_use(const struct smc_policy_rule *rule, const struct smc_policy_who *who, const struct smc_policy_use *use);
bool smc_policy_matches_peer(const struct smc_policy_rule *rule, const u8 *addr);
bool smc_policy_matches_who(const struct smc_policy_rule *rule, const struct smc_policy_who *who);
bool smc_policy_asks_use(const struct smc_policy_rule *rule);

#endif /* SMC_POLICY_RULES_H */
