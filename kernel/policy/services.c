// SPDX-License-Identifier: GPL-2.0-only
/* The table of services: see services.h. */

#include <linux/jhash.h>
#include <linux/ktime.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "../control/sysctl.h"
#include "../net.h"
#include "policy.h"

struct service {
	struct hlist_node node;
	struct smc_service_key key;
	u32 id;			/* no other service of the namespace has, or had it */
	struct smc_auto learned;
};

static u64 now_ms(void)
{
	return ktime_to_ms(ktime_get_boottime());
}

static struct smc_auto_limits limits_of(const struct smc_net *sn)
{
	return (struct smc_auto_limits){
		.bytes = READ_ONCE(sn->sysctl->auto_bytes),
		.time = (u64)READ_ONCE(sn->sysctl->auto_time) * MSEC_PER_SEC,
		.forget = (u64)READ_ONCE(sn->sysctl->auto_forget) * MSEC_PER_SEC,
		.samples = READ_ONCE(sn->sysctl->auto_samples),
	};
}

static struct hlist_head *service_bucket(struct smc_service_net *services, const struct smc_service_key *key)
{
	static_assert(sizeof(*key) % 4 == 0);
	return &services->buckets[jhash2((const u32 *)key, sizeof(*key) / 4, services->seed) % SMC_SERVICE_BUCKETS];
}

static struct service *find_service(struct smc_service_net *services, const struct smc_service_key *key)
{
	struct service *s;

	lockdep_assert_held(&services->lock);
	hlist_for_each_entry(s, service_bucket(services, key), node)
		if (!memcmp(&s->key, key, sizeof(*key)))
			return s;
	return NULL;
}

/* Removes the service of a full bucket that was used longest ago. */
static void service_make_room(const struct smc_service_net *services, struct hlist_head *bucket)
{
	struct service *s, *oldest = NULL;
	unsigned int n = 0;

	lockdep_assert_held(&services->lock);
	hlist_for_each_entry(s, bucket, node) {
		n++;
		if (!oldest || s->learned.last < oldest->learned.last)
			oldest = s;
	}
	if (n < SMC_SERVICE_DEPTH)
		return;
	hlist_del(&oldest->node);
	kfree(oldest);
}

/* Returns a new service, or NULL without memory. */
static struct service *service_add(struct smc_service_net *services, const struct smc_service_key *key, u64 now)
{
	struct service *s = kzalloc(sizeof(*s), GFP_ATOMIC | __GFP_NOWARN | __GFP_ACCOUNT);
	struct hlist_head *bucket = service_bucket(services, key);

	lockdep_assert_held(&services->lock);
	if (!s)
		return NULL;
	service_make_room(services, bucket);
	s->key = *key;
	services->last_id += services->last_id + 1 ? 1 : 2;
	s->id = services->last_id;
	smc_auto_init(&s->learned, now);
	hlist_add_head(&s->node, bucket);
	return s;
}

/* smc_service_net_init() - of a new namespace. */
void smc_service_net_init(struct smc_service_net *services)
{
	spin_lock_init(&services->lock);
	services->seed = get_random_u32();
}

/* smc_service_flush() - forgets all services. */
void smc_service_flush(struct smc_net *sn)
{
	struct smc_service_net *services = &sn->policy->services;
	struct hlist_node *next;
	struct service *s;
	unsigned int i;

	might_sleep();
	for (i = 0; i < SMC_SERVICE_BUCKETS; i++) {
		spin_lock_bh(&services->lock);
		hlist_for_each_entry_safe(s, next, &services->buckets[i], node) {
			hlist_del(&s->node);
			kfree(s);
		}
		spin_unlock_bh(&services->lock);
	}
}

/* smc_service_is_tcp() - has a service learned that its connections are to be TCP? Any context but hardirq. */
bool smc_service_is_tcp(struct smc_net *sn, const struct smc_service_key *key)
{
	const struct smc_auto_limits limits = limits_of(sn);
	struct smc_service_net *services = &sn->policy->services;
	struct service *s;
	bool tcp;

	spin_lock_bh(&services->lock);
	s = find_service(services, key);
	tcp = s && smc_auto_is_tcp(&s->learned, &limits, now_ms());
	spin_unlock_bh(&services->lock);
	return tcp;
}

/* smc_service_begin() - a connection of the service ref->key has begun, whether SMC or TCP. Any context but hardirq. */
void smc_service_begin(struct smc_net *sn, struct smc_service_ref *ref)
{
	const struct smc_auto_limits limits = limits_of(sn);
	struct smc_service_net *services = &sn->policy->services;
	u64 now = now_ms();
	struct service *s;

	ref->open = true;
	ref->since = now;
	spin_lock_bh(&services->lock);
	s = find_service(services, &ref->key) ?: service_add(services, &ref->key, now);
	ref->id = s ? s->id : 0;
	ref->period = s ? smc_auto_begin(&s->learned, &limits, now) : 0;
	spin_unlock_bh(&services->lock);
}

/*
 * smc_service_end() - a connection has ended, unless that is known already. @bytes: that it has moved; NULL if it was not established, or
 * nobody has accepted it. Any context but hardirq.
 */
void smc_service_end(struct smc_net *sn, struct smc_service_ref *ref, const u64 *bytes)
{
	const struct smc_auto_limits limits = limits_of(sn);
	struct smc_service_net *services = &sn->policy->services;
	u64 now = now_ms();
	struct smc_auto_sample sample = { .bytes = bytes ? *bytes : 0, .time = now > ref->since ? now - ref->since : 0 };
	struct service *s;

	if (!ref->open)
		return;
	ref->open = false;
	spin_lock_bh(&services->lock);
	s = find_service(services, &ref->key);
	/* A service that was forgotten meanwhile does not know of this connection. */
	if (s && s->id == ref->id)
		smc_auto_end(&s->learned, &limits, now, ref->period, bytes ? &sample : NULL);
	spin_unlock_bh(&services->lock);
}

/*
 * smc_service_show() - shows the services of a bucket, and frees those that are forgotten. Does not sleep. Return: the number of views
 * that are filled in.
 */
unsigned int smc_service_show(struct smc_net *sn, unsigned int bucket, struct smc_service_view views[SMC_SERVICE_DEPTH])
{
	const struct smc_auto_limits limits = limits_of(sn);
	struct smc_service_net *services = &sn->policy->services;
	u64 now = now_ms(), left;
	struct hlist_node *next;
	unsigned int n = 0;
	struct service *s;

	spin_lock_bh(&services->lock);
	hlist_for_each_entry_safe(s, next, &services->buckets[bucket], node) {
		const struct smc_auto *a = &s->learned;

		left = smc_auto_left(a, &limits, now);
		if (!left) {
			hlist_del(&s->node);
			kfree(s);
			continue;
		}
		views[n++] = (struct smc_service_view){
			.key = s->key, .tcp = smc_auto_is_tcp(&s->learned, &limits, now), .paid = a->paid, .unpaid = a->unpaid,
			.open = (u64)a->open[0] + a->open[1] + a->open[2], .left = DIV_ROUND_UP_ULL(left, MSEC_PER_SEC),
		};
	}
	spin_unlock_bh(&services->lock);
	return n;
}
