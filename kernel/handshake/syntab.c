// SPDX-License-Identifier: GPL-2.0-only
/*
 * Inbound SYNs that had the option, from their arrival until the connection is accepted. The table
 * has a fixed size: who floods it with SYNs makes others' connections plain TCP, no more. An entry
 * lives as long as TCP repeats a SYN-ACK.
 */

#include <linux/jhash.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <net/ipv6.h>

#include "synopt.h"

#define BUCKETS 512
#define WAYS 4
#define LIFETIME (64 * HZ)

struct entry {
	struct smc_syn_key	key;
	unsigned long		since;		/* jiffies; when it came */
	unsigned long		expires;	/* jiffies; meaningful if used */
	bool			used;
	bool			answered;	/* our SYN-ACK had the option, too */
	bool			local;		/* the client is in this namespace, and may do without CLC */
	u64			listener;	/* that has answered, see smc_synopt_port.id; 0 before */
};

struct bucket {
	spinlock_t		lock;
	struct entry		way[WAYS];
};

struct smc_syntab {
	u32			seed;
	struct bucket		bucket[BUCKETS];
};

/* smc_syntab_new() - an empty table. May sleep. Return: NULL without memory. */
struct smc_syntab *smc_syntab_new(void)
{
	struct smc_syntab *t = kvzalloc(sizeof(*t), GFP_KERNEL_ACCOUNT);
	unsigned int i;

	if (!t)
		return NULL;
	t->seed = get_random_u32();
	for (i = 0; i < BUCKETS; i++)
		spin_lock_init(&t->bucket[i].lock);
	return t;
}

/* smc_syntab_free() - when no hook can use it any more. May sleep. */
void smc_syntab_free(struct smc_syntab *t)
{
	kvfree(t);
}

/* Who makes keys that fall together fills one bucket with them, and does not know which. */
static struct bucket *bucket_of(struct smc_syntab *t, const struct smc_syn_key *key)
{
	u32 ports = (__force u32)key->peer_port << 16 | (__force u32)key->self_port;

	return &t->bucket[jhash_3words(ipv6_addr_hash(&key->peer), ports, key->isn, t->seed) % BUCKETS];
}

static bool live(const struct entry *e)
{
	return e->used && time_before(jiffies, e->expires);
}

/* The entry of a connection, or NULL. The bucket is locked. */
static struct entry *find(struct bucket *b, const struct smc_syn_key *key)
{
	unsigned int i;

	lockdep_assert_held(&b->lock);
	for (i = 0; i < WAYS; i++)
		if (b->way[i].key.isn == key->isn && live(&b->way[i]) && !memcmp(&b->way[i].key, key, sizeof(*key)))
			return &b->way[i];
	return NULL;
}

static struct entry *vacant(struct bucket *b)
{
	unsigned int i;

	for (i = 0; i < WAYS; i++)
		if (!live(&b->way[i]))
			return &b->way[i];
	return NULL;
}

/*
 * smc_syntab_add() - a SYN with the option has come, or has come again; @local: from this
 * namespace. Softirq. Return: false if there is no room.
 */
bool smc_syntab_add(struct smc_syntab *t, const struct smc_syn_key *key, bool local)
{
	struct bucket *b = bucket_of(t, key);
	struct entry *e;

	spin_lock_bh(&b->lock);
	e = find(b, key);
	if (!e) {
		e = vacant(b);
		if (e) {
			e->key = *key;
			e->used = true;
			e->answered = false;
			e->local = local;
			e->listener = 0;
			e->since = jiffies;
		}
	}
	if (e)
		e->expires = jiffies + LIFETIME;
	spin_unlock_bh(&b->lock);
	return e;
}

/*
 * smc_syntab_answer() - a SYN-ACK goes out. What the first one to a SYN has said, those that repeat
 * it say, too: nobody knows which one arrives. @may: it may have the option. @listener: whose it is.
 * Softirq. Return: it will have it.
 */
bool smc_syntab_answer(struct smc_syntab *t, const struct smc_syn_key *key, bool may, u64 listener)
{
	struct bucket *b = bucket_of(t, key);
	struct entry *e;

	spin_lock_bh(&b->lock);
	e = find(b, key);
	if (e && !e->answered && !may) {
		e->used = false;
		e = NULL;
	}
	if (e) {
		e->answered = true;
		e->listener = listener;
		e->expires = jiffies + LIFETIME;
	}
	spin_unlock_bh(&b->lock);
	return e;
}

/* smc_syntab_withdraw() - a SYN-ACK went without the option after all. Softirq. */
void smc_syntab_withdraw(struct smc_syntab *t, const struct smc_syn_key *key)
{
	struct bucket *b = bucket_of(t, key);
	struct entry *e;

	spin_lock_bh(&b->lock);
	e = find(b, key);
	if (e)
		e->used = false;
	spin_unlock_bh(&b->lock);
}

/* Has a local client still to say whether it does without CLC? */
static bool undecided(const struct entry *e)
{
	return e->answered && e->local && time_before(jiffies, e->since + SMC_SYN_LOCAL_TIME);
}

/*
 * smc_syntab_look() - what both sides of a connection have said. Any context but hardirq.
 */
enum smc_syn_said smc_syntab_look(struct smc_syntab *t, const struct smc_syn_key *key)
{
	struct bucket *b = bucket_of(t, key);
	enum smc_syn_said said = SMC_SYN_NOTHING;
	struct entry *e;

	spin_lock_bh(&b->lock);
	e = find(b, key);
	if (e && e->answered)
		said = undecided(e) ? SMC_SYN_UNDECIDED : SMC_SYN_SMC;
	spin_unlock_bh(&b->lock);
	return said;
}

/*
 * smc_syntab_local() - which listener has a connection, if its client may do without CLC? 0: none,
 * or it may not. Any context but hardirq.
 */
u64 smc_syntab_local(struct smc_syntab *t, const struct smc_syn_key *key)
{
	struct bucket *b = bucket_of(t, key);
	u64 listener = 0;
	struct entry *e;

	spin_lock_bh(&b->lock);
	e = find(b, key);
	if (e && undecided(e))
		listener = e->listener;
	spin_unlock_bh(&b->lock);
	return listener;
}

/* smc_syntab_remote() - a local client wants to talk CLC after all. Any context but hardirq. */
void smc_syntab_remote(struct smc_syntab *t, const struct smc_syn_key *key)
{
	struct bucket *b = bucket_of(t, key);
	struct entry *e;

	spin_lock_bh(&b->lock);
	e = find(b, key);
	if (e)
		e->local = false;
	spin_unlock_bh(&b->lock);
}

/*
 * smc_syntab_claim() - have both sides of a connection said that they speak SMC? If it is of this
 * @listener, or if that is 0, forgets it, so that one hears it. Any context but hardirq.
 */
bool smc_syntab_claim(struct smc_syntab *t, const struct smc_syn_key *key, u64 listener)
{
	struct bucket *b = bucket_of(t, key);
	bool answered;
	struct entry *e;

	spin_lock_bh(&b->lock);
	e = find(b, key);
	if (e && listener && e->listener != listener)
		e = NULL;
	answered = e && e->answered;
	if (e)
		e->used = false;
	spin_unlock_bh(&b->lock);
	return answered;
}
