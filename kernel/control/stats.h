/* SPDX-License-Identifier: GPL-2.0-only */
/* Counters of a namespace. They may be counted and read in any context. */
#ifndef SMC_CONTROL_STATS_H
#define SMC_CONTROL_STATS_H

#include <linux/atomic.h>
#include <linux/stddef.h>
#include <linux/types.h>
#include <linux/u64_stats_sync.h>

#include "../wire/reason.h"

struct smc_net;

enum smc_stats_tech {
	SMC_STATS_D,
	SMC_STATS_R,
	SMC_STATS_TECHS
};

/* Classes of sizes: up to 8 KiB, 16 KiB and so on up to 1 MiB, and more. */
#define SMC_STATS_SIZES 9

/*
 * Counters of buffers, for each direction, with the meaning of the module of Linux 6.12, which never counts the first and
 * the third for receiving.
 */
enum smc_stats_buf {
	SMC_STATS_BUF_SIZE_SMALL_PEER,	/* a send() was longer than the peer's whole buffer */
	SMC_STATS_BUF_SIZE_SMALL,	/* a send() was longer than our whole buffer; more was unread than a recv() asked for */
	SMC_STATS_BUF_FULL_PEER,	/* a send() found the peer's buffer full */
	SMC_STATS_BUF_FULL,		/* a full buffer held up senders; a recv() found its buffer full */
	SMC_STATS_BUF_REUSED,
	SMC_STATS_BUF_ALLOCATED,
	SMC_STATS_BUF_DOWNGRADED,	/* a connection got a smaller buffer than it asked for */
	SMC_STATS_BUFS
};

/* Counters of a technology. SIZE and BUF are the first of one for each size class or enum smc_stats_buf. */
enum smc_stats_counter {
	SMC_STATS_TX_BUF_SIZE,
	SMC_STATS_RX_BUF_SIZE = SMC_STATS_TX_BUF_SIZE + SMC_STATS_SIZES,
	SMC_STATS_TX_SIZE = SMC_STATS_RX_BUF_SIZE + SMC_STATS_SIZES,
	SMC_STATS_RX_SIZE = SMC_STATS_TX_SIZE + SMC_STATS_SIZES,
	SMC_STATS_TX_BUF = SMC_STATS_RX_SIZE + SMC_STATS_SIZES,
	SMC_STATS_RX_BUF = SMC_STATS_TX_BUF + SMC_STATS_BUFS,
	SMC_STATS_CLIENT_V1 = SMC_STATS_RX_BUF + SMC_STATS_BUFS,
	SMC_STATS_CLIENT_V2,
	SMC_STATS_SERVER_V1,
	SMC_STATS_SERVER_V2,
	SMC_STATS_SPLICE,	/* calls of splice() from a socket */
	SMC_STATS_CORK,		/* TCP_CORK was cleared */
	SMC_STATS_NODELAY,	/* TCP_NODELAY was set */
	SMC_STATS_URGENT,	/* calls that sent or received with MSG_OOB */
	SMC_STATS_RX_BYTES,
	SMC_STATS_TX_BYTES,
	SMC_STATS_RX_CALLS,
	SMC_STATS_TX_CALLS,
	SMC_STATS_COUNTERS
};

/* Conditions that a call which receives has found; they are counted as SMC_STATS_BUF_FULL and SMC_STATS_BUF_SIZE_SMALL. */
struct smc_stats_found {
	bool full;
	bool more;	/* than it asked for */
};

/* Counters of SMC-R's links. LOST is the first of one for each enum smc_link_why. */
enum smc_stats_link {
	SMC_STATS_LINKS_ADDED,		/* beside another one */
	SMC_STATS_LINKS_REFUSED,	/* by us */
	SMC_STATS_LINKS_REFUSED_BY_PEER,
	SMC_STATS_LINKS_NOT_ADDED,	/* a host gave up */
	SMC_STATS_CONNS_MOVED,		/* to another link */
	SMC_STATS_CONNS_NOT_MOVED,
	SMC_STATS_LINKS_LOST,
	SMC_STATS_LINK_COUNTERS = SMC_STATS_LINKS_LOST + 18
};

/* The counters of one processor. Index 0 of a pair is the client side, 1 the server side. */
struct smc_stats_cpu {
	struct u64_stats_sync sync;
	struct_group(counters,
		u64_stats_t tech[SMC_STATS_TECHS][SMC_STATS_COUNTERS];
		u64_stats_t links[SMC_STATS_LINK_COUNTERS];
		u64_stats_t handshake_errors[2];
		u64_stats_t fallbacks[2];	/* including those with an unknown reason */
		u64_stats_t reasons[2][SMC_REASON_COUNT];
	);
};

/* Sums over all processors, in the order in which struct smc_stats_cpu has the counters. */
struct smc_stats_sum {
	u64 tech[SMC_STATS_TECHS][SMC_STATS_COUNTERS];
	u64 links[SMC_STATS_LINK_COUNTERS];
	u64 handshake_errors[2];
	u64 fallbacks[2];
	u64 reasons[2][SMC_REASON_COUNT];
	u64 buf_usage[SMC_STATS_TECHS][2];	/* bytes; index 0 is sending, 1 receiving */
};

struct smc_stats_net {
	struct smc_stats_cpu __percpu *cpu;
	atomic64_t buf_usage[SMC_STATS_TECHS][2];	/* not per processor, since it also goes down */
};

void smc_stats_fallback(struct smc_net *snet, bool server, u32 code);
void smc_stats_handshake_error(struct smc_net *snet, bool server);
void smc_stats_add(struct smc_net *snet, enum smc_stats_tech tech, unsigned int counter,
		   unsigned long n);
void smc_stats_link(struct smc_net *snet, unsigned int counter);
void smc_stats_tx(struct smc_net *snet, enum smc_stats_tech tech, size_t asked, ssize_t sent);
void smc_stats_rx(struct smc_net *snet, enum smc_stats_tech tech, ssize_t received, struct smc_stats_found found);
void smc_stats_splice(struct smc_net *snet, enum smc_stats_tech tech, struct smc_stats_found found);
void smc_stats_buf(struct smc_net *snet, enum smc_stats_tech tech, bool rx, u32 asked, u32 size, bool reused);
void smc_stats_buf_usage(struct smc_net *snet, enum smc_stats_tech tech, bool rx, s64 bytes);
void smc_stats_sum(struct smc_net *snet, struct smc_stats_sum *sum);

int smc_stats_net_init(struct smc_net *snet);
void smc_stats_net_exit(struct smc_net *snet);

#endif /* SMC_CONTROL_STATS_H */
