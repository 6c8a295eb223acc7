// SPDX-License-Identifier: GPL-2.0-only
/*
 * When the hooks of the TCP option are there. Each packet of a namespace costs something then, so they are there while a socket listens
 * or connects and there is a device, and for UNHOOK_DELAY after the last socket, because registering is expensive and another socket may
 * follow; longer while there are promises. When a device comes, the sockets that listen already get their hooks. When the last device
 * goes, they stay: it may come back.
 */

#include <linux/netfilter.h>
#include <net/net_namespace.h>

#include "../net.h"
#include "../transport/transport.h"
#include "handshake.h"

#define UNHOOK_DELAY (5 * HZ)
#define REAP_INTERVAL HZ

/* All namespaces. */
static LIST_HEAD(namespaces);
static DEFINE_MUTEX(namespaces_lock);

/* smc_synopt_syns() - returns the table of promises of a namespace, NULL if there are no hooks. Use it under RCU. Any context. */
struct smc_syntab *smc_synopt_syns(const struct smc_net *sn)
{
	return smp_load_acquire(&sn->synopt->syns); /* pairs with register_hooks() */
}

/* Frees the table of promises of a namespace that goes on, and whose hooks are removed. */
static void free_syns(struct smc_synopt_net *so)
{
	struct smc_syntab *syns = so->syns;

	lockdep_assert_held(&so->lock);
	/* Wait for packets that are in a hook and use the table; then for other users, which check whether it is there. */
	synchronize_net();
	cancel_delayed_work_sync(&so->reap);
	WRITE_ONCE(so->syns, NULL);
	synchronize_net();
	smc_syntab_free(syns);
}

/* Registers the hooks of a namespace, one after another: those that are there already wait for smc_synopt_net.hooked. */
static int register_hooks(struct smc_net *sn)
{
	struct smc_synopt_net *so = sn->synopt;
	struct nf_hook_ops *ops = so->hooks;
	struct smc_syntab *syns;
	unsigned int i;
	int rc;

	lockdep_assert_held(&so->lock);
	if (so->hooked || so->ending)
		return 0;
	syns = smc_syntab_new();
	if (!syns)
		return -ENOMEM;
	smp_store_release(&so->syns, syns); /* pairs with smc_synopt_syns(), and the hooks' registration with theirs */
	for (i = 0; i < ARRAY_SIZE(so->hooks); i++) {
		ops[i] = smc_synopt_hooks[i];
		ops[i].priv = sn;
	}
	rc = nf_register_net_hooks(sn->net, ops, ARRAY_SIZE(so->hooks));
	if (rc)
		free_syns(so);
	else
		smp_store_release(&so->hooked, true); /* pairs with smc_synopt_hooked() */
	return rc;
}

static void unregister_hooks(struct smc_synopt_net *so)
{
	lockdep_assert_held(&so->lock);
	if (!so->hooked)
		return;
	WRITE_ONCE(so->hooked, false);
	nf_unregister_net_hooks(so->net, so->hooks, ARRAY_SIZE(so->hooks));
	free_syns(so);
}

/* Runs again while there are entries. */
static void reap_work(struct work_struct *work)
{
	struct smc_synopt_net *so = container_of(to_delayed_work(work), struct smc_synopt_net, reap);

	if (smc_syntab_reap(so->syns, so))
		queue_delayed_work(smc_net_wq, &so->reap, REAP_INTERVAL);
}

static void synopt_unhook_work(struct work_struct *work)
{
	struct smc_synopt_net *so = container_of(to_delayed_work(work), struct smc_synopt_net, unhook);

	mutex_lock(&so->lock);
	if (!atomic_read(&so->users)) {
		/* TCP may have moved a client that has a promise to a listener of plain TCP: accept() there looks for it. */
		if (so->hooked && !smc_syntab_is_empty(so->syns))
			queue_delayed_work(smc_net_wq, &so->unhook, UNHOOK_DELAY);
		else
			unregister_hooks(so);
	}
	mutex_unlock(&so->lock);
}

/* smc_synopt_reap() - has promises that no client claims removed soon. Any context. */
void smc_synopt_reap(struct smc_synopt_net *so)
{
	if (!delayed_work_pending(&so->reap))
		queue_delayed_work(smc_net_wq, &so->reap, REAP_INTERVAL);
}

/**
 * smc_synopt_get() - one more socket of a namespace listens or connects
 * @sn: the namespace
 *
 * Registers the hooks if there is a device. Return: 0 or -ENOMEM.
 */
int smc_synopt_get(struct smc_net *sn)
{
	struct smc_synopt_net *so = sn->synopt;
	int rc = 0;

	might_sleep();
	if (smc_synopt_hooked(so) && atomic_inc_not_zero(&so->users))
		return 0;
	mutex_lock(&so->lock);
	atomic_inc(&so->users);
	smp_mb__after_atomic(); /* either this sees a device that comes, or hooks_on_device() sees the user */
	if (smc_registry_present(sn->net))
		rc = register_hooks(sn);
	mutex_unlock(&so->lock);
	if (rc)
		smc_synopt_put(sn);
	return rc;
}

/* smc_synopt_put() - one less. Does not sleep. */
void smc_synopt_put(struct smc_net *sn)
{
	if (atomic_dec_and_test(&sn->synopt->users))
		mod_delayed_work(smc_net_wq, &sn->synopt->unhook, UNHOOK_DELAY);
}

/* Registers the hooks of a namespace, if it has got a device and sockets need them. Return: 0 or -ENOMEM. */
static int hook_if_used(struct smc_net *sn)
{
	struct smc_synopt_net *so = sn->synopt;
	int rc = 0;

	mutex_lock(&so->lock);
	if (atomic_read(&so->users) && smc_registry_present(sn->net))
		rc = register_hooks(sn);
	mutex_unlock(&so->lock);
	return rc;
}

/* There may be a device for connections of a namespace, or of all if @sn is NULL. Return: 0 or -ENOMEM. */
static int hooks_on_device(struct smc_net *sn)
{
	struct smc_synopt_net *so;
	int rc = 0;

	might_sleep();
	if (sn)
		return hook_if_used(sn);
	smp_mb(); /* pairs with smc_synopt_get() */
	mutex_lock(&namespaces_lock);
	list_for_each_entry(so, &namespaces, all) {
		/* One that has a socket is set up, so that the reference keeps it. Others must not wait for its hooks. */
		if (!atomic_read(&so->users) || !maybe_get_net(so->net))
			continue;
		mutex_unlock(&namespaces_lock);
		rc = hook_if_used(smc_net(so->net)) ?: rc;
		mutex_lock(&namespaces_lock);
		put_net(so->net);
	}
	mutex_unlock(&namespaces_lock);
	return rc;
}

/* smc_synopt_net_init() - of a new namespace. */
void smc_synopt_net_init(struct smc_net *sn)
{
	struct smc_synopt_net *so = sn->synopt;

	might_sleep();
	so->net = sn->net;
	mutex_init(&so->lock);
	spin_lock_init(&so->ports_lock);
	INIT_DELAYED_WORK(&so->unhook, synopt_unhook_work);
	INIT_DELAYED_WORK(&so->reap, reap_work);
	mutex_lock(&namespaces_lock);
	list_add_tail(&so->all, &namespaces);
	mutex_unlock(&namespaces_lock);
}

/* smc_synopt_net_pre_exit() - the namespace goes, after a grace period; no socket of ours is left in it. */
void smc_synopt_net_pre_exit(struct smc_net *sn)
{
	struct smc_synopt_net *so = sn->synopt;

	might_sleep();
	mutex_lock(&so->lock);
	so->ending = true;
	if (so->hooked)
		nf_unregister_net_hooks(so->net, so->hooks, ARRAY_SIZE(so->hooks));
	WRITE_ONCE(so->hooked, false);
	mutex_unlock(&so->lock);
}

/* smc_synopt_net_exit() - the namespace has gone, or could not be set up: no packet is in a hook any more. */
void smc_synopt_net_exit(struct smc_net *sn)
{
	struct smc_synopt_net *so = sn->synopt;

	might_sleep();
	mutex_lock(&namespaces_lock);
	list_del(&so->all);
	mutex_unlock(&namespaces_lock);
	cancel_delayed_work_sync(&so->unhook);
	cancel_delayed_work_sync(&so->reap);
	if (so->syns)
		smc_syntab_free(so->syns);
}

/* smc_synopt_reg_init() - at load, before there are namespaces and devices. */
int __init smc_synopt_reg_init(void)
{
	smc_peers_register(hooks_on_device);
	return 0;
}
