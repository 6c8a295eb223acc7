// SPDX-License-Identifier: GPL-2.0-only
/* The memory that SMC has for data, and its ceilings: net.smc.max_memory_kbytes and net.smc.host_max_memory_kbytes. */

#include <linux/percpu.h>
#include <linux/refcount.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include <net/tcp.h>

#include "../net.h"
#include "memory.h"
#include "memory_fit.h"
#include "sysctl.h"

/* Of the host, or of a namespace. Those of namespaces outlive these as long as buffers of their connections exist. */
struct smc_memory_pool {
	refcount_t		ref;
	atomic64_t		reserved ____cacheline_aligned_in_smp;
	atomic64_t		peak;
	atomic64_t		kinds[SMC_MEMORY_KINDS];
	atomic64_t		refused;
	unsigned int		limit_kbytes;	/* of a namespace that goes; else the setting counts */
	const unsigned int	*limit;		/* the setting, or limit_kbytes */
};

static struct smc_memory_pool host = { .limit = &host.limit_kbytes };

/* Bytes of buffers of the host that no connection has. */
static atomic64_t idle;
/* For each processor, how many pages without data it has added to DMBs, less those that it has taken from them. */
static DEFINE_PER_CPU(long, spare_pages);
/* Has link groups give buffers back; set once, before there is any connection. Does not sleep. */
static void (*on_shortage)(void);

/* Returns the ceiling in bytes; 0 if there is none. The host has what TCP may have, unless the setting says otherwise. */
static u64 pool_limit(const struct smc_memory_pool *pool)
{
	unsigned int kbytes;

	rcu_read_lock(); /* the setting goes with its namespace */
	kbytes = READ_ONCE(*READ_ONCE(pool->limit));
	rcu_read_unlock();
	if (pool != &host)
		return (u64)kbytes << 10;
	if (!kbytes)
		return (u64)max(READ_ONCE(tcp_prot.sysctl_mem[2]), 1L) << PAGE_SHIFT;
	return kbytes == UINT_MAX ? 0 : (u64)kbytes << 10;
}

/* Returns the bytes of the host that are not idle. A hint. */
static u64 host_busy(void)
{
	return max_t(s64, atomic64_read(&host.reserved) - atomic64_read(&idle), 0);
}

static void raise_peak(struct smc_memory_pool *pool, s64 reserved)
{
	s64 peak = atomic64_read(&pool->peak);

	while (peak < reserved && !atomic64_try_cmpxchg(&pool->peak, &peak, reserved))
		;
}

/* Adds to what is reserved, unless that would be above the ceiling: it is never above, not even for a moment. */
static bool pool_charge(struct smc_memory_pool *pool, enum smc_memory_kind kind, u64 bytes)
{
	s64 old = atomic64_read(&pool->reserved);

	do {
		if (!smc_memory_fits(pool_limit(pool), old, bytes))
			return false;
	} while (!atomic64_try_cmpxchg(&pool->reserved, &old, old + bytes));
	atomic64_add(bytes, &pool->kinds[kind]);
	raise_peak(pool, old + bytes);
	return true;
}

static void pool_uncharge(struct smc_memory_pool *pool, enum smc_memory_kind kind, u64 bytes)
{
	atomic64_sub(bytes, &pool->kinds[kind]);
	atomic64_sub(bytes, &pool->reserved);
}

/* smc_memory_pool_get() - returns the pool of a namespace, with a reference. Any context. */
struct smc_memory_pool *smc_memory_pool_get(const struct smc_net *sn)
{
	refcount_inc(&sn->memory->ref);
	return sn->memory;
}

/* smc_memory_pool_put() - drops a reference. Any context but hardirq. */
void smc_memory_pool_put(struct smc_memory_pool *pool)
{
	if (refcount_dec_and_test(&pool->ref))
		kfree(pool);
}

/**
 * smc_memory_code() - chooses the size of a buffer near a ceiling
 * @pool: of the connection's namespace
 * @code: the size code that is asked for
 * @least: the smallest one
 *
 * Context: any.
 * Return: a size code from @least to @code. smc_memory_reserve() may still refuse it.
 */
u8 smc_memory_code(const struct smc_memory_pool *pool, u8 code, u8 least)
{
	code = smc_memory_fit_code(pool_limit(pool), atomic64_read(&pool->reserved), code, least);
	return smc_memory_fit_code(pool_limit(&host), host_busy(), code, least);
}

/**
 * smc_memory_reserve() - reserves memory before it is allocated
 * @pool: of the connection's namespace, or NULL for memory of a link group
 * @kind: what for
 * @bytes: how much
 *
 * If buffers that no connection has fill up the ceiling of the host, link groups give them back, for later connections.
 *
 * Context: any.
 * Return: 0, or -EDQUOT if it would be above a ceiling.
 */
int smc_memory_reserve(struct smc_memory_pool *pool, enum smc_memory_kind kind, u64 bytes)
{
	if (pool && !pool_charge(pool, kind, bytes))
		return -EDQUOT;
	if (pool_charge(&host, kind, bytes))
		return 0;
	if (pool)
		pool_uncharge(pool, kind, bytes);
	if (smc_memory_idle_bytes())
		on_shortage();
	return -EDQUOT;
}

/* smc_memory_release() - undoes smc_memory_reserve(), after the memory is freed. Any context. */
void smc_memory_release(struct smc_memory_pool *pool, enum smc_memory_kind kind, u64 bytes)
{
	if (pool)
		pool_uncharge(pool, kind, bytes);
	pool_uncharge(&host, kind, bytes);
}

/**
 * smc_memory_reuse() - a connection gets a buffer that its group had
 * @pool: of the connection's namespace
 * @kind: of the buffer
 * @bytes: of the buffer
 *
 * Context: any.
 * Return: 0, or -EDQUOT if it would be above the ceiling of the namespace.
 */
int smc_memory_reuse(struct smc_memory_pool *pool, enum smc_memory_kind kind, u64 bytes)
{
	if (!pool_charge(pool, kind, bytes))
		return -EDQUOT;
	atomic64_sub(bytes, &idle);
	return 0;
}

/* smc_memory_idle() - a connection gives its buffer to its group: it counts for the host only. Any context. */
void smc_memory_idle(struct smc_memory_pool *pool, enum smc_memory_kind kind, u64 bytes)
{
	atomic64_add(bytes, &idle);
	pool_uncharge(pool, kind, bytes);
}

/* smc_memory_release_idle() - a buffer that no connection has is freed. Any context. */
void smc_memory_release_idle(enum smc_memory_kind kind, u64 bytes)
{
	atomic64_sub(bytes, &idle);
	pool_uncharge(&host, kind, bytes);
}

/*
 * smc_memory_is_near_limit() - returns whether more than three quarters of what a namespace, or the host, may have are reserved. A
 * hint. Any context.
 */
bool smc_memory_is_near_limit(const struct smc_memory_pool *pool)
{
	u64 own = pool_limit(pool), all = pool_limit(&host);

	return !smc_memory_fits(own - own / 4, atomic64_read(&pool->reserved), 0) ||
	       !smc_memory_fits(all - all / 4, host_busy(), 0);
}

/*
 * smc_memory_full() - returns whether there is no memory for the smallest buffer of a new connection of a namespace. Buffers
 * that no connection has may suit it. A hint. Any context.
 */
bool smc_memory_full(const struct smc_net *sn)
{
	return !smc_memory_fits(pool_limit(sn->memory), atomic64_read(&sn->memory->reserved), SMC_MEMORY_BUF_MIN) ||
	       !smc_memory_fits(pool_limit(&host), host_busy(), SMC_MEMORY_BUF_MIN);
}

/* smc_memory_refused() - counts a connection of a namespace that is TCP because of a ceiling. Any context. */
void smc_memory_refused(const struct smc_net *sn)
{
	atomic64_inc(&sn->memory->refused);
	atomic64_inc(&host.refused);
}

/* smc_memory_idle_bytes() - returns how many bytes the host has in buffers that no connection has. A hint. Any context. */
u64 smc_memory_idle_bytes(void)
{
	return max_t(s64, atomic64_read(&idle), 0);
}

/* smc_memory_spare() - DMBs keep this many more pages that hold no data, or less. Any context. */
void smc_memory_spare(int pages)
{
	this_cpu_add(spare_pages, pages);
}

/* smc_memory_spare_pages() - returns how many pages the DMBs of the host keep that hold no data. A hint. Any context. */
unsigned long smc_memory_spare_pages(void)
{
	long all = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		all += READ_ONCE(per_cpu(spare_pages, cpu));
	return max(all, 0L);
}

/* smc_memory_set_shortage() - sets what is called when idle buffers are in the way of a connection, at load. */
void smc_memory_set_shortage(void (*fn)(void))
{
	on_shortage = fn;
}

/**
 * smc_memory_view() - reads a pool
 * @sn: the namespace, or NULL for the host
 * @view: result. Its values need not be of one moment
 *
 * Context: any.
 */
void smc_memory_view(const struct smc_net *sn, struct smc_memory_view *view)
{
	struct smc_memory_pool *pool = sn ? sn->memory : &host;
	unsigned int i;

	memset(view, 0, sizeof(*view));
	view->limit = pool_limit(pool);
	view->reserved = atomic64_read(&pool->reserved);
	view->peak = atomic64_read(&pool->peak);
	for (i = 0; i < SMC_MEMORY_KINDS; i++)
		view->kinds[i] = atomic64_read(&pool->kinds[i]);
	view->idle = sn ? 0 : smc_memory_idle_bytes();
	view->refused = atomic64_read(&pool->refused);
}

/* smc_memory_net_init() - makes the pool of a namespace. Return: 0 or -ENOMEM. */
int smc_memory_net_init(struct smc_net *sn)
{
	struct smc_memory_pool *pool = kzalloc(sizeof(*pool), GFP_KERNEL_ACCOUNT);

	might_sleep();
	if (!pool)
		return -ENOMEM;
	refcount_set(&pool->ref, 1);
	pool->limit = &sn->sysctl->max_memory_kbytes;
	sn->memory = pool;
	if (net_eq(sn->net, &init_net))
		WRITE_ONCE(host.limit, &sn->sysctl->host_max_memory_kbytes);
	return 0;
}

/* smc_memory_net_pre_exit() - the namespace goes, and its settings after a grace period. Any context. */
void smc_memory_net_pre_exit(struct smc_net *sn)
{
	struct smc_memory_pool *pool = sn->memory;

	pool->limit_kbytes = READ_ONCE(*pool->limit);
	smp_store_release(&pool->limit, &pool->limit_kbytes);
	if (net_eq(sn->net, &init_net))
		WRITE_ONCE(host.limit, &host.limit_kbytes);
}

/* smc_memory_net_exit() - the namespace goes: buffers of its connections may stay. Any context but hardirq. */
void smc_memory_net_exit(struct smc_net *sn)
{
	smc_memory_pool_put(sn->memory);
}
