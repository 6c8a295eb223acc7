// SPDX-License-Identifier: GPL-2.0-only
/* All SMC sockets of this kernel, by their TCP sock. */

#include <linux/hash.h>
#include <linux/slab.h>

#include "show.h"
#include "sock.h"

#define TABLE_BITS 12

struct bucket {
	spinlock_t lock;
	struct hlist_head head;
};

static struct bucket *table;
static struct kmem_cache *cache;

static struct bucket *sock_bucket(const struct sock *sk)
{
	return &table[hash_ptr(sk, TABLE_BITS)];
}

/* The constructor of the cache. The kernel does not zero objects that have one: smc_table_new() zeroes less. */
static void init_once(void *object)
{
	struct smc_sock *smc = object;

	spin_lock_init(&smc->lock);
	mutex_init(&smc->state_mutex);
}

/**
 * smc_table_new() - makes a struct smc_sock for a TCP sock, not in the table yet
 * @sk: the sock; takes a reference on it
 * @gfp: how to allocate
 *
 * Return: the struct with one reference, the caller's; NULL without memory.
 */
struct smc_sock *smc_table_new(struct sock *sk, gfp_t gfp)
{
	struct smc_sock *smc = kmem_cache_alloc(cache, gfp);

	if (!smc)
		return NULL;
	memset(smc, 0, offsetof(struct smc_sock, state_mutex));
	sock_hold(sk);
	smc->sk = sk;
	refcount_set(&smc->ref, 1);
	INIT_LIST_HEAD(&smc->child);
	INIT_HLIST_NODE(&smc->node);
	smc_setup_prepare(smc);
	return smc;
}

/* smc_table_add() - adds to the table. The caller's reference becomes the table's. Any context but hardirq. */
void smc_table_add(struct smc_sock *smc)
{
	struct bucket *b = sock_bucket(smc->sk);

	spin_lock_bh(&b->lock);
	hlist_add_head_rcu(&smc->node, &b->head);
	spin_unlock_bh(&b->lock);
}

/* smc_table_remove() - removes from the table, and puts the table's reference. Any context but hardirq. */
void smc_table_remove(struct smc_sock *smc)
{
	struct bucket *b = sock_bucket(smc->sk);

	spin_lock_bh(&b->lock);
	hlist_del_init_rcu(&smc->node);
	spin_unlock_bh(&b->lock);
	smc_table_put(smc);
}

/* smc_table_get() - takes a reference under RCU. Return: false if the last one has been put. */
bool smc_table_get(struct smc_sock *smc)
{
	return refcount_inc_not_zero(&smc->ref);
}

static void free_rcu(struct rcu_head *head)
{
	struct smc_sock *smc = container_of(head, struct smc_sock, rcu);

	/* Hooks may have found a listener just before smc_listen_unregister(). */
	smc_listen_free(smc);
	smc_active_free(smc);
	kmem_cache_free(cache, smc);
}

/*
 * smc_table_put() - drops a reference; the last one drops the TCP sock, too. Not with that sock's lock held. Does
 * not sleep.
 */
void smc_table_put(struct smc_sock *smc)
{
	if (!smc || !refcount_dec_and_test(&smc->ref))
		return;
	if (smc->parent)
		smc_table_put(smc->parent);
	smc_listen_unregister(smc);
	smc_policy_end(smc);
	sock_put(smc->sk);
	if (smc->listener || rcu_access_pointer(smc->conn)) {
		call_rcu(&smc->rcu, free_rcu);
		return;
	}
	/* Most have neither, and hooks that have found one look at nothing that it points to. */
	smc_policy_free(smc);
	smc_compat_kfree_rcu(smc, rcu, free_rcu);
}

static struct smc_sock *find_rcu(const struct sock *sk)
{
	struct smc_sock *smc;

	RCU_LOCKDEP_WARN(!rcu_read_lock_held(), "find_rcu() outside of an RCU section");
	hlist_for_each_entry_rcu(smc, &sock_bucket(sk)->head, node)
		if (smc->sk == sk)
			return smc;
	return NULL;
}

/* smc_table_find() - finds by a sock. Any context. Return: with a reference for the caller, or NULL. */
struct smc_sock *smc_table_find(const struct sock *sk)
{
	struct smc_sock *smc;

	rcu_read_lock();
	smc = find_rcu(sk);
	if (smc && !smc_table_get(smc))
		smc = NULL;
	rcu_read_unlock();
	return smc;
}

/* Returns what is shared with the hooks, of a sock that connects; NULL of any other sock. */
static struct smc_synopt_sock *connecting(const struct sock *sk)
{
	struct smc_sock *smc = find_rcu(sk);

	return smc && READ_ONCE(smc->phase) == SMC_PHASE_CONNECT ? &smc->opt : NULL;
}

/* Returns what smc_table_of() does. Under RCU, or with the bucket's lock. */
static struct smc_sock *find_own(const struct bucket *b, const struct sock *sk)
{
	struct smc_sock *smc;

	hlist_for_each_entry_rcu(smc, &b->head, node, lockdep_is_held(&b->lock))
		if (smc->sk == sk && !READ_ONCE(smc->parent))
			return smc;
	return NULL;
}

/*
 * smc_table_of() - finds by a socket whose operation the caller is; NULL if smc_table_make() has not been called.
 * Valid without a reference until release, which cannot run at the same time as another operation.
 *
 * A listener's child is not the socket's: if TCP has moved its sock to a listener that is not ours, an application has that sock,
 * and the first listener still has the child.
 */
struct smc_sock *smc_table_of(const struct socket *sock)
{
	struct smc_sock *smc;

	rcu_read_lock();
	smc = find_own(sock_bucket(sock->sk), sock->sk);
	rcu_read_unlock();
	return smc;
}

/*
 * smc_table_make() - as smc_table_of(), but makes the struct if there is none. IPPROTO_SMC sockets get it with the
 * first operation that needs it, because socket(2) may still fail after our init, and drops the sock without
 * telling us. Return: NULL without memory.
 */
struct smc_sock *smc_table_make(struct socket *sock)
{
	struct smc_sock *smc = smc_table_of(sock), *other;
	struct bucket *b;

	might_sleep();
	if (smc)
		return smc;
	smc = smc_table_new(sock->sk, GFP_KERNEL);
	if (!smc)
		return NULL;
	/* Two threads may do this at once. */
	b = sock_bucket(sock->sk);
	spin_lock_bh(&b->lock);
	other = find_own(b, sock->sk);
	if (!other)
		hlist_add_head_rcu(&smc->node, &b->head);
	spin_unlock_bh(&b->lock);
	if (!other)
		return smc;
	smc_table_put(smc);
	return other;
}

/* Return: false if the socket is not shown: a closed connection is shown without it. */
static bool describe_sock(const struct smc_sock *smc, struct smc_sock_view *view)
{
	enum smc_phase phase;

	RCU_LOCKDEP_WARN(!rcu_read_lock_held(), "describe_sock() outside of an RCU section");
	view->sk = smc->sk;
	view->conn = smc_active_of(smc);
	phase = READ_ONCE(smc->phase);
	view->tcp = phase == SMC_PHASE_TCP;
	view->reason = READ_ONCE(smc->reason);
	view->peer_diagnosis = READ_ONCE(smc->peer_diagnosis);
	return view->conn || phase != SMC_PHASE_ACTIVE;
}

static int walk_bucket(const struct hlist_head *head, unsigned int *skip,
		       int (*fn)(const struct smc_sock_view *view, void *arg), void *arg)
{
	struct smc_sock_view view;
	struct smc_sock *smc;
	unsigned int n = 0;
	int rc;

	hlist_for_each_entry_rcu(smc, head, node) {
		if (n++ < *skip || !smc_table_get(smc))
			continue;
		rc = describe_sock(smc, &view) ? fn(&view, arg) : 0;
		smc_table_put(smc);
		if (rc)
			return rc;
		*skip = n;
	}
	return 0;
}

/**
 * smc_table_walk() - shows the sockets, from a position on
 * @bucket: in and out, the bucket to continue with; 0 at first
 * @skip: in and out, the number of sockets in it to skip; 0 at first
 * @fn: called under RCU; nonzero ends the walk, before that socket counts as visited
 * @arg: passed on
 *
 * A walk in several parts may miss or repeat a socket of a bucket that changes meanwhile.
 *
 * Return: 0 at the end of the table, else what @fn said.
 */
int smc_table_walk(unsigned int *bucket, unsigned int *skip,
		   int (*fn)(const struct smc_sock_view *view, void *arg), void *arg)
{
	int rc = 0;

	might_sleep();
	while (*bucket < 1 << TABLE_BITS) {
		rcu_read_lock();
		rc = walk_bucket(&table[*bucket].head, skip, fn, arg);
		rcu_read_unlock();
		if (rc)
			break;
		(*bucket)++;
		*skip = 0;
		cond_resched();
	}
	return rc;
}
EXPORT_SYMBOL_GPL(smc_table_walk);

/* smc_table_init() - at load. Return: 0 or -ENOMEM. */
int smc_table_init(void)
{
	unsigned int i;

	cache = kmem_cache_create("smc_sock", sizeof(struct smc_sock), __alignof__(struct smc_sock), SLAB_ACCOUNT, init_once);
	if (!cache)
		return -ENOMEM;
	table = kvmalloc_array(1 << TABLE_BITS, sizeof(*table), GFP_KERNEL);
	if (!table) {
		kmem_cache_destroy(cache);
		return -ENOMEM;
	}
	for (i = 0; i < 1 << TABLE_BITS; i++) {
		spin_lock_init(&table[i].lock);
		INIT_HLIST_HEAD(&table[i].head);
	}
	smc_synopt_register(connecting, smc_policy_admits);
	return 0;
}

/* smc_table_exit() - at unload, when no socket is left. */
void smc_table_exit(void)
{
	might_sleep();
	rcu_barrier();
	kvfree(table);
	kmem_cache_destroy(cache);
}
