/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The memory that SMC has for data, of the host and of each network namespace, and its ceilings.
 *
 * Memory is reserved before it is allocated: for a whole buffer when a connection gets it, or page by page when data comes, if the
 * buffer has pages only where data is. A namespace counts the memory of its connections. The host also counts that of link groups: buffers
 * that wait for their next connection, and the messages in the queues of links.
 */
#ifndef SMC_CONTROL_MEMORY_H
#define SMC_CONTROL_MEMORY_H

#include <linux/types.h>
#include <net/sock.h>

struct smc_memory_pool;
struct smc_net;

enum smc_memory_kind {
	SMC_MEMORY_RMB,
	SMC_MEMORY_SNDBUF,
	SMC_MEMORY_DMB,
	SMC_MEMORY_QUEUES,	/* messages in the queues of links; of the host only */
	SMC_MEMORY_KINDS
};

/* A snapshot of a pool, in bytes. */
struct smc_memory_view {
	u64 limit;		/* 0 if there is none */
	u64 reserved;
	u64 peak;		/* the most that was reserved at any time */
	u64 kinds[SMC_MEMORY_KINDS];	/* of what is reserved */
	u64 idle;		/* reserved for buffers that no connection has; of the host only */
	u64 refused;		/* connections that are TCP because of a ceiling */
};

/* Pools. The pool of the host is NULL where one may be passed. */
struct smc_memory_pool *smc_memory_pool_get(const struct smc_net *sn);
void smc_memory_pool_put(struct smc_memory_pool *pool);

u8 smc_memory_code(const struct smc_memory_pool *pool, u8 code, u8 least);
int smc_memory_reserve(struct smc_memory_pool *pool, enum smc_memory_kind kind, u64 bytes);
void smc_memory_release(struct smc_memory_pool *pool, enum smc_memory_kind kind, u64 bytes);
int smc_memory_reuse(struct smc_memory_pool *pool, enum smc_memory_kind kind, u64 bytes);
void smc_memory_idle(struct smc_memory_pool *pool, enum smc_memory_kind kind, u64 bytes);
void smc_memory_release_idle(enum smc_memory_kind kind, u64 bytes);

bool smc_memory_is_near_limit(const struct smc_memory_pool *pool);
bool smc_memory_full(const struct smc_net *sn);
void smc_memory_refused(const struct smc_net *sn);
void smc_memory_view(const struct smc_net *sn, struct smc_memory_view *view);
u64 smc_memory_idle_bytes(void);
void smc_memory_spare(int pages);
unsigned long smc_memory_spare_pages(void);
void smc_memory_set_shortage(void (*fn)(void));

int smc_memory_net_init(struct smc_net *sn);
void smc_memory_net_pre_exit(struct smc_net *sn);
void smc_memory_net_exit(struct smc_net *sn);

/*
 * smc_memory_cgroup() - returns the control group that pays for the memory of a socket, as TCP charges it; NULL if there is
 * none: then the thread that allocates pays. Any context; it stays as long as the sock.
 */
static inline struct mem_cgroup *smc_memory_cgroup(const struct sock *sk)
{
#ifdef CONFIG_MEMCG
	return sk->sk_memcg;
#else
	return NULL;
#endif
}

#endif /* SMC_CONTROL_MEMORY_H */
