/* SPDX-License-Identifier: GPL-2.0-only */
/* The services of a namespace about which rules with the verdict "auto" decide, and what they have learned: a table of bounded size. */
#ifndef SMC_POLICY_SERVICES_H
#define SMC_POLICY_SERVICES_H

#include <linux/in6.h>
#include <linux/list.h>
#include <linux/spinlock.h>

#include "auto.h"

struct smc_net;

#define SMC_SERVICE_BUCKETS 256
#define SMC_SERVICE_DEPTH 8	/* services in a bucket; a new one replaces the one that was used longest ago */

/* A service: the local port of a server, or the address and port to which a client connects. Without padding, because it is compared. */
struct smc_service_key {
	struct in6_addr addr;	/* IPv4 is mapped; zeroes of a server */
	u16 port;
	u16 server;		/* 1, or 0 of a client */
};

/* Part of a connection: its service. */
struct smc_service_ref {
	struct smc_service_key key;
	bool open;		/* it has begun, and has not ended */
	u32 id;			/* of the service, 0 if the table had no room */
	u32 period;		/* in which it began */
	u64 since;		/* milliseconds */
};

/* Netlink shows this of a service. */
struct smc_service_view {
	struct smc_service_key key;
	bool tcp;
	u64 paid, unpaid, open;
	u32 left;		/* seconds */
};

/* The services of a namespace. */
struct smc_service_net {
	spinlock_t lock;	/* all; taken in softirq, too */
	u32 seed, last_id;
	struct hlist_head buckets[SMC_SERVICE_BUCKETS];
};

void smc_service_net_init(struct smc_service_net *services);
void smc_service_flush(struct smc_net *sn);
bool smc_service_is_tcp(struct smc_net *sn, const struct smc_service_key *key);
void smc_service_begin(struct smc_net *sn, struct smc_service_ref *ref);
void smc_service_end(struct smc_net *sn, struct smc_service_ref *ref, const u64 *bytes);
unsigned int smc_service_show(struct smc_net *sn, unsigned int bucket, struct smc_service_view views[SMC_SERVICE_DEPTH]);

#endif /* SMC_POLICY_SERVICES_H */
