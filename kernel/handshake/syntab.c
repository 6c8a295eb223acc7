// SPDX-License-Identifier: GPL-2.0-only
/*
 * The promises of listeners: SYNs with the option that were answered with the option, from the
 * SYN-ACK until the connection leaves TCP's accept queue.
 *
 * The table holds no more than TCP itself: an entry is removed when TCP has neither a request nor a
 * connection for it any more. The entries of each port are limited. When there is no room, a connection
 * is plain TCP.
 */

#include <linux/jhash.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <net/inet6_hashtables.h>
#include <net/inet_hashtables.h>
#include <net/ipv6.h>

#include "synopt.h"

#define BUCKETS 1024
#define ENTRIES_MAX 16384
/* TCP repeats a SYN-ACK for no longer. */
#define LIFETIME (64 * HZ)
/*
 * A real client acknowledges the SYN-ACK within this time. After it the entry does not count for the listener's
 * backlog, which a few SYNs with forged addresses could use up otherwise.
 */
#define RESERVED_TIME HZ

struct entry {
	struct hlist_node	node;
	struct smc_syn		syn;
	u32			synack;		/* sequence number of the SYN-ACK */
	struct smc_syn_listener	listener;	/* that has answered */
	unsigned long		since;		/* jiffies; when the SYN came */
	unsigned long		expires;	/* jiffies */
	bool			reserved;	/* the listener has a place reserved for it */
	bool			missed;		/* TCP did not have it at the last look */
};

struct bucket {
	spinlock_t		lock;
	struct hlist_head	entries;
};

struct smc_syntab {
	u32			seed;
	atomic_t		n;		/* entries */
	struct bucket		bucket[BUCKETS];
};

/* smc_syntab_new() - an empty table. Return: NULL without memory. */
struct smc_syntab *smc_syntab_new(void)
{
	struct smc_syntab *t = kvzalloc(sizeof(*t), GFP_KERNEL_ACCOUNT);
	unsigned int i;

	might_sleep();
	if (!t)
		return NULL;
	t->seed = get_random_u32();
	for (i = 0; i < BUCKETS; i++)
		spin_lock_init(&t->bucket[i].lock);
	return t;
}

/* smc_syntab_free() - after the last user. */
void smc_syntab_free(struct smc_syntab *t)
{
	struct hlist_node *next;
	struct entry *e;
	unsigned int i;

	might_sleep();
	for (i = 0; i < BUCKETS; i++)
		hlist_for_each_entry_safe(e, next, &t->bucket[i].entries, node)
			kfree(e);
	kvfree(t);
}

/*
 * smc_syntab_is_empty() - are there no promises? The promise to a client has been there since before the client answered it, so who has
 * found its connection in TCP's queue sees it counted; and who finds that the last one has been claimed finds the child. Any context.
 */
bool smc_syntab_is_empty(const struct smc_syntab *t)
{
	return !atomic_read_acquire(&t->n); /* pairs with the unlock of the list that the child was added to */
}

static struct bucket *syn_bucket(struct smc_syntab *t, const struct smc_syn_key *key)
{
	u32 ports = (__force u32)key->peer_port << 16 | (__force u32)key->self_port;

	return &t->bucket[jhash_3words(ipv6_addr_hash(&key->peer), ports, key->isn, t->seed) % BUCKETS];
}

static bool expired(const struct entry *e)
{
	return !time_before(jiffies, e->expires);
}

/* Returns the entry of a connection, or NULL. */
static struct entry *find_syn(struct bucket *b, const struct smc_syn_key *key)
{
	struct entry *e;

	lockdep_assert_held(&b->lock);
	hlist_for_each_entry(e, &b->entries, node)
		if (e->syn.key.isn == key->isn && !expired(e) && !memcmp(&e->syn.key, key, sizeof(*key)))
			return e;
	return NULL;
}

static void unlink(struct smc_syntab *t, struct bucket *b, struct entry *e)
{
	lockdep_assert_held(&b->lock);
	hlist_del(&e->node);
	atomic_dec(&t->n);
}

/*
 * smc_syntab_add() - adds a SYN that is answered with the option. @synack: sequence number of the answer;
 * @listener: answers, and has reserved a place. Softirq. Return: false if there is no room.
 */
bool smc_syntab_add(struct smc_syntab *t, const struct smc_syn *syn, u32 synack, const struct smc_syn_listener *listener)
{
	struct bucket *b = syn_bucket(t, &syn->key);
	struct entry *e;

	if (atomic_inc_return(&t->n) > ENTRIES_MAX)
		goto full;
	e = kzalloc(sizeof(*e), GFP_ATOMIC | __GFP_NOWARN);
	if (!e)
		goto full;
	e->syn = *syn;
	e->synack = synack;
	e->listener = *listener;
	e->since = jiffies;
	e->expires = jiffies + LIFETIME;
	e->reserved = true;
	spin_lock_bh(&b->lock);
	hlist_add_head(&e->node, &b->entries);
	spin_unlock_bh(&b->lock);
	return true;
full:
	atomic_dec(&t->n);
	return false;
}

/*
 * smc_syntab_repeat() - was the SYN answered with the option before? Then all further answers have it, because
 * any of them may be the one that arrives. @synack: sequence number of this answer. Softirq.
 */
bool smc_syntab_repeat(struct smc_syntab *t, const struct smc_syn_key *key, u32 synack)
{
	struct bucket *b = syn_bucket(t, key);
	struct entry *e;

	spin_lock_bh(&b->lock);
	e = find_syn(b, key);
	if (e) {
		e->synack = synack;
		e->expires = jiffies + LIFETIME;
	}
	spin_unlock_bh(&b->lock);
	return e;
}

/* May a local client still decide to connect without CLC messages? */
static bool is_local_undecided(const struct entry *e)
{
	return e->syn.local && time_before(jiffies, e->since + SMC_SYN_LOCAL_TIME);
}

/*
 * smc_syntab_find() - did both sides of a connection have the option? @synack: sequence number of the SYN-ACK
 * that has made the child. If it differs from the entry's, TCP has forgotten the SYN and answered a later one,
 * perhaps with a cookie. Any context but hardirq.
 */
enum smc_syn_state smc_syntab_find(struct smc_syntab *t, const struct smc_syn_key *key, u32 synack)
{
	struct bucket *b = syn_bucket(t, key);
	enum smc_syn_state state = SMC_SYN_NOTHING;
	struct entry *e;

	spin_lock_bh(&b->lock);
	e = find_syn(b, key);
	if (e && e->synack == synack)
		state = is_local_undecided(e) ? SMC_SYN_UNDECIDED : SMC_SYN_SMC;
	spin_unlock_bh(&b->lock);
	return state;
}

/*
 * smc_syntab_local() - returns the listener of a connection whose client may connect without CLC messages; else its
 * identifier is 0. Any context but hardirq.
 */
struct smc_syn_listener smc_syntab_local(struct smc_syntab *t, const struct smc_syn_key *key)
{
	struct bucket *b = syn_bucket(t, key);
	struct smc_syn_listener listener = {};
	struct entry *e;

	spin_lock_bh(&b->lock);
	e = find_syn(b, key);
	if (e && is_local_undecided(e))
		listener = e->listener;
	spin_unlock_bh(&b->lock);
	return listener;
}

/* smc_syntab_set_remote() - a local client is going to send CLC messages. Any context but hardirq. */
void smc_syntab_set_remote(struct smc_syntab *t, const struct smc_syn_key *key)
{
	struct bucket *b = syn_bucket(t, key);
	struct entry *e;

	spin_lock_bh(&b->lock);
	e = find_syn(b, key);
	if (e)
		e->syn.local = false;
	spin_unlock_bh(&b->lock);
}

/* Frees an entry that is off its list. @keep: its reserved place stays. */
static void discard(struct smc_synopt_net *so, struct entry *e, bool keep)
{
	smc_synopt_promise_end(so, &e->listener, true, e->reserved && !keep);
	kfree(e);
}

/*
 * smc_syntab_claim() - did both sides of a connection have the option? Removes the entry, so that one caller
 * gets it. @synack: see smc_syntab_find(); @id: has to be that of the entry's listener, unless @any. Any context but
 * hardirq.
 */
enum smc_syn_claim smc_syntab_claim(struct smc_syntab *t, struct smc_synopt_net *so,
				    const struct smc_syn_key *key, u32 synack, u64 id, bool any)
{
	struct bucket *b = syn_bucket(t, key);
	bool mine, promised;
	struct entry *e;

	spin_lock_bh(&b->lock);
	e = find_syn(b, key);
	if (e && (e->listener.id == id || any))
		unlink(t, b, e);
	else
		e = NULL;
	spin_unlock_bh(&b->lock);
	if (!e)
		return SMC_CLAIM_NONE;
	promised = e->synack == synack;
	mine = promised && e->listener.id == id && e->reserved;
	discard(so, e, mine);
	if (!promised)
		return SMC_CLAIM_NONE;
	return mine ? SMC_CLAIM_RESERVED : SMC_CLAIM_LATE;
}

/* Does TCP have a request or a connection for an entry? */
static bool tcp_has(const struct entry *e, struct net *net)
{
	const struct smc_syn *syn = &e->syn;
	const struct smc_syn_key *key = &syn->key;
	struct sock *sk;

	rcu_read_lock();
#if IS_ENABLED(CONFIG_IPV6)
	if (!ipv6_addr_v4mapped(&key->peer))
		sk = smc_compat_lookup6(net, &key->peer, key->peer_port, &key->self, key->self_port,
					syn->dif, syn->sdif);
	else
#endif
		sk = smc_compat_lookup4(net, key->peer.s6_addr32[3], key->peer_port,
					key->self.s6_addr32[3], key->self_port, syn->dif, syn->sdif);
	rcu_read_unlock();
	if (sk)
		sock_gen_put(sk);
	return sk;
}

/*
 * Is an entry of no use any more? A lookup may miss a request that becomes a connection at this moment, so only
 * two misses in a row count.
 */
static bool is_dead(const struct bucket *b, struct entry *e, struct net *net)
{
	bool before = e->missed;

	lockdep_assert_held(&b->lock);
	if (expired(e))
		return true;
	e->missed = !tcp_has(e, net);
	return before && e->missed;
}

/*
 * smc_syntab_reap() - removes dead entries, and frees the reserved places of those that are late. Once a second.
 * May sleep. Return: whether entries are left.
 */
bool smc_syntab_reap(struct smc_syntab *t, struct smc_synopt_net *so)
{
	struct hlist_node *next;
	struct entry *e;
	unsigned int i;

	might_sleep();
	for (i = 0; i < BUCKETS; i++) {
		struct bucket *b = &t->bucket[i];

		spin_lock_bh(&b->lock);
		hlist_for_each_entry_safe(e, next, &b->entries, node) {
			if (time_before(jiffies, e->since + RESERVED_TIME))
				continue;
			if (is_dead(b, e, so->net)) {
				unlink(t, b, e);
				discard(so, e, false);
				continue;
			}
			if (e->reserved)
				smc_synopt_promise_end(so, &e->listener, false, true);
			e->reserved = false;
		}
		spin_unlock_bh(&b->lock);
		cond_resched();
	}
	return atomic_read(&t->n);
}
