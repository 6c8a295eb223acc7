// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counters, per namespace and processor
 *
 * Writers never wait. Sums are taken while other threads count, so the numbers need not be of one moment.
 */
#include <linux/log2.h>
#include <linux/percpu.h>
#include <linux/string.h>

#include "../net.h"
#include "stats.h"

/* Between the two, interrupts are off on 32-bit kernels only. */
static struct smc_stats_cpu *stats_begin(struct smc_net *snet, unsigned long *flags)
{
	struct smc_stats_cpu *cpu = get_cpu_ptr(snet->stats->cpu);

	*flags = u64_stats_update_begin_irqsave(&cpu->sync);
	return cpu;
}

static void stats_end(struct smc_net *snet, struct smc_stats_cpu *cpu, unsigned long flags)
{
	u64_stats_update_end_irqrestore(&cpu->sync, flags);
	put_cpu_ptr(snet->stats->cpu);
}

/**
 * smc_stats_fallback() - count a fallback to TCP
 * @snet: namespace
 * @server: whether this side has accepted the connection
 * @code: reason; an unknown one counts for the total only
 */
void smc_stats_fallback(struct smc_net *snet, bool server, u32 code)
{
	int reason = smc_reason_index(code);
	struct smc_stats_cpu *cpu;
	unsigned long flags;

	cpu = stats_begin(snet, &flags);
	u64_stats_inc(&cpu->fallbacks[server]);
	if (reason >= 0)
		u64_stats_inc(&cpu->reasons[server][reason]);
	stats_end(snet, cpu, flags);
}

/**
 * smc_stats_handshake_error() - count a rendezvous that has failed, so that the connection does not continue over TCP either
 * @snet: namespace
 * @server: whether this side has accepted the connection
 */
void smc_stats_handshake_error(struct smc_net *snet, bool server)
{
	struct smc_stats_cpu *cpu;
	unsigned long flags;

	cpu = stats_begin(snet, &flags);
	u64_stats_inc(&cpu->handshake_errors[server]);
	stats_end(snet, cpu, flags);
}

/**
 * smc_stats_add() - add to a counter
 * @snet: namespace
 * @tech: technology
 * @counter: enum smc_stats_counter, plus the size class or the enum smc_stats_buf
 * @n: number to add
 */
void smc_stats_add(struct smc_net *snet, enum smc_stats_tech tech, unsigned int counter,
		   unsigned long n)
{
	struct smc_stats_cpu *cpu;
	unsigned long flags;

	cpu = stats_begin(snet, &flags);
	u64_stats_add(&cpu->tech[tech][counter], n);
	stats_end(snet, cpu, flags);
}

/**
 * smc_stats_link() - count what becomes of a link, or of a connection whose link is lost
 * @snet: namespace of the link group, or of the connection
 * @counter: enum smc_stats_link, plus the enum smc_link_why
 */
void smc_stats_link(struct smc_net *snet, unsigned int counter)
{
	struct smc_stats_cpu *cpu;
	unsigned long flags;

	cpu = stats_begin(snet, &flags);
	u64_stats_inc(&cpu->links[counter]);
	stats_end(snet, cpu, flags);
}

/* Returns the class of a number of bytes. */
static unsigned int size_class(size_t bytes)
{
	return bytes <= 8192 ? 0 : min_t(unsigned int, ilog2(bytes - 1) - 12, SMC_STATS_SIZES - 1);
}

/* Counts a call, and the bytes that it moved in the class of @size. */
static void stats_count_call(struct smc_stats_cpu *cpu, enum smc_stats_tech tech, size_t size, ssize_t moved,
			     unsigned int calls, unsigned int total, unsigned int sizes)
{
	u64_stats_inc(&cpu->tech[tech][calls]);
	if (moved > 0) {
		u64_stats_add(&cpu->tech[tech][total], moved);
		u64_stats_inc(&cpu->tech[tech][sizes + size_class(size)]);
	}
}

static void stats_count_found(struct smc_stats_cpu *cpu, enum smc_stats_tech tech, struct smc_stats_found found)
{
	if (found.full)
		u64_stats_inc(&cpu->tech[tech][SMC_STATS_RX_BUF + SMC_STATS_BUF_FULL]);
	if (found.more)
		u64_stats_inc(&cpu->tech[tech][SMC_STATS_RX_BUF + SMC_STATS_BUF_SIZE_SMALL]);
}

/**
 * smc_stats_tx() - count a call that sends
 * @snet: namespace
 * @tech: technology
 * @asked: bytes that the application wanted to send; they choose the size class, as in Linux 6.12
 * @sent: bytes that were sent, or a negative errno, which counts as a call only
 */
void smc_stats_tx(struct smc_net *snet, enum smc_stats_tech tech, size_t asked, ssize_t sent)
{
	struct smc_stats_cpu *cpu;
	unsigned long flags;

	cpu = stats_begin(snet, &flags);
	stats_count_call(cpu, tech, asked, sent, SMC_STATS_TX_CALLS, SMC_STATS_TX_BYTES, SMC_STATS_TX_SIZE);
	stats_end(snet, cpu, flags);
}

/**
 * smc_stats_rx() - count a call that receives
 * @snet: namespace
 * @tech: technology
 * @received: bytes that the application got, also by MSG_PEEK, or a negative errno
 * @found: what the call has found
 */
void smc_stats_rx(struct smc_net *snet, enum smc_stats_tech tech, ssize_t received, struct smc_stats_found found)
{
	struct smc_stats_cpu *cpu;
	unsigned long flags;

	cpu = stats_begin(snet, &flags);
	stats_count_call(cpu, tech, received, received, SMC_STATS_RX_CALLS, SMC_STATS_RX_BYTES, SMC_STATS_RX_SIZE);
	stats_count_found(cpu, tech, found);
	stats_end(snet, cpu, flags);
}

/**
 * smc_stats_splice() - count a call of splice() from a socket
 * @snet: namespace
 * @tech: technology
 * @found: what the call has found
 */
void smc_stats_splice(struct smc_net *snet, enum smc_stats_tech tech, struct smc_stats_found found)
{
	struct smc_stats_cpu *cpu;
	unsigned long flags;

	cpu = stats_begin(snet, &flags);
	u64_stats_inc(&cpu->tech[tech][SMC_STATS_SPLICE]);
	stats_count_found(cpu, tech, found);
	stats_end(snet, cpu, flags);
}

/**
 * smc_stats_buf() - count a buffer that a connection gets
 * @snet: namespace
 * @tech: technology
 * @rx: whether it is for receiving
 * @asked: bytes that the connection asked for
 * @size: bytes of the buffer
 * @reused: whether another connection had it before
 */
void smc_stats_buf(struct smc_net *snet, enum smc_stats_tech tech, bool rx, u32 asked, u32 size, bool reused)
{
	unsigned int buf = rx ? SMC_STATS_RX_BUF : SMC_STATS_TX_BUF;

	smc_stats_add(snet, tech, buf + (reused ? SMC_STATS_BUF_REUSED : SMC_STATS_BUF_ALLOCATED), 1);
	if (size < asked)
		smc_stats_add(snet, tech, buf + SMC_STATS_BUF_DOWNGRADED, 1);
	smc_stats_add(snet, tech, (rx ? SMC_STATS_RX_BUF_SIZE : SMC_STATS_TX_BUF_SIZE) + size_class(size), 1);
	smc_stats_buf_usage(snet, tech, rx, size);
}

/**
 * smc_stats_buf_usage() - add to the bytes of buffers in use
 * @snet: namespace
 * @tech: technology
 * @rx: whether they are for receiving
 * @bytes: bytes, negative for buffers that are no longer in use
 */
void smc_stats_buf_usage(struct smc_net *snet, enum smc_stats_tech tech, bool rx, s64 bytes)
{
	atomic64_add(bytes, &snet->stats->buf_usage[tech][rx]);
}

/* Adds what one processor has counted. */
static void add_counters(struct smc_stats_sum *sum, const struct smc_stats_cpu *cpu)
{
	const u64_stats_t *counters = (const u64_stats_t *)&cpu->counters;
	u64 *sums = (u64 *)sum, n;
	unsigned int i, start;

	static_assert(sizeof(cpu->counters) == offsetof(struct smc_stats_sum, buf_usage));
	static_assert(offsetof(struct smc_stats_cpu, reasons) - offsetof(struct smc_stats_cpu, counters) ==
		      offsetof(struct smc_stats_sum, reasons));
	for (i = 0; i < sizeof(cpu->counters) / sizeof(*counters); i++) {
		do {
			start = u64_stats_fetch_begin(&cpu->sync);
			n = u64_stats_read(&counters[i]);
		} while (u64_stats_fetch_retry(&cpu->sync, start));
		sums[i] += n;
	}
}

/**
 * smc_stats_sum() - add up the counters of all processors
 * @snet: namespace
 * @sum: result; too large for the stack
 */
void smc_stats_sum(struct smc_net *snet, struct smc_stats_sum *sum)
{
	unsigned int tech, rx;
	int cpu;

	memset(sum, 0, sizeof(*sum));
	for_each_possible_cpu(cpu)
		add_counters(sum, per_cpu_ptr(snet->stats->cpu, cpu));
	for (tech = 0; tech < SMC_STATS_TECHS; tech++)
		for (rx = 0; rx < 2; rx++)
			sum->buf_usage[tech][rx] = atomic64_read(&snet->stats->buf_usage[tech][rx]);
}

/* smc_stats_net_init() - makes the counters of a namespace. Return: 0 or -ENOMEM. */
int smc_stats_net_init(struct smc_net *snet)
{
	int cpu;

	might_sleep();
	memset(snet->stats->buf_usage, 0, sizeof(snet->stats->buf_usage));
	snet->stats->cpu = alloc_percpu_gfp(struct smc_stats_cpu, GFP_KERNEL_ACCOUNT | __GFP_ZERO);
	if (!snet->stats->cpu)
		return -ENOMEM;
	for_each_possible_cpu(cpu)
		u64_stats_init(&per_cpu_ptr(snet->stats->cpu, cpu)->sync);
	return 0;
}

/* smc_stats_net_exit() - frees the counters of a namespace, which are no longer in use. */
void smc_stats_net_exit(struct smc_net *snet)
{
	might_sleep();
	free_percpu(snet->stats->cpu);
}
