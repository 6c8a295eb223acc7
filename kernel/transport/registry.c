// SPDX-License-Identifier: GPL-2.0-only
/* The registered transports, one for each role, and the choice between them. */

#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>

#include "../control/eid.h"
#include "../control/peers.h"
#include "../wire/reason.h"
#include "transport.h"

static DEFINE_MUTEX(registry_lock);
static const struct smc_transport_ops __rcu *transports[SMC_ROLES];

/**
 * smc_transport_register() - makes a transport available for new connections
 * @ops: the transport; must stay until smc_transport_unregister()
 *
 * Return: 0, -EBUSY if another transport has its role, -EINVAL if it lacks an operation that every handshake needs.
 */
int smc_transport_register(const struct smc_transport_ops *ops)
{
	int rc = -EBUSY;

	might_sleep();
	if (ops->role >= SMC_ROLES || !ops->local || !ops->offer || !ops->match || !ops->attach)
		return -EINVAL;
	mutex_lock(&registry_lock);
	if (!rcu_access_pointer(transports[ops->role])) {
		rcu_assign_pointer(transports[ops->role], ops);
		rc = 0;
	}
	mutex_unlock(&registry_lock);
	smc_peers_device(NULL);
	return rc;
}
EXPORT_SYMBOL_GPL(smc_transport_register);

/**
 * smc_transport_unregister() - undoes smc_transport_register()
 * @ops: the transport. Rendezvous and connections pin its module, so none is left if its exit function calls this
 */
void smc_transport_unregister(const struct smc_transport_ops *ops)
{
	might_sleep();
	mutex_lock(&registry_lock);
	if (rcu_access_pointer(transports[ops->role]) == ops)
		RCU_INIT_POINTER(transports[ops->role], NULL);
	mutex_unlock(&registry_lock);
	synchronize_rcu();
}
EXPORT_SYMBOL_GPL(smc_transport_unregister);

static const struct smc_transport_ops *transport_pin(enum smc_transport_role role)
{
	const struct smc_transport_ops *ops;

	rcu_read_lock();
	ops = rcu_dereference(transports[role]);
	if (ops && !try_module_get(ops->owner))
		ops = NULL;
	rcu_read_unlock();
	return ops;
}

/* smc_registry_local() - fills in the capabilities of this host */
void smc_registry_local(struct smc_local *local)
{
	const struct smc_transport_ops *ops;
	enum smc_transport_role role;

	might_sleep();
	memset(local, 0, sizeof(*local));
	for (role = 0; role < SMC_ROLES; role++) {
		ops = transport_pin(role);
		if (!ops)
			continue;
		ops->local(local);
		module_put(ops->owner);
	}
	local->n_eid = smc_eid_list(local->eid, SMC_CLC_EIDS);
	local->seid_on = smc_eid_seid(local->seid);
}

/*
 * smc_registry_offer() - lets every transport add its devices to a proposal. Return: 0 if one has a device,
 * else the reason for the fallback.
 */
int smc_registry_offer(struct smc_offer *offer, struct smc_clc_proposal *p)
{
	const struct smc_transport_ops *ops;
	enum smc_transport_role role;
	bool any = false;

	might_sleep();
	for (role = 0; role < SMC_ROLES; role++) {
		ops = transport_pin(role);
		if (!ops)
			continue;
		if (ops->offer(offer, p)) {
			module_put(ops->owner);
			continue;
		}
		offer->ops[role] = ops;
		any = true;
	}
	return any ? 0 : SMC_REASON_NO_DEV;
}

/* Returns whether the offer waits for the transport of another role. */
static bool waits_for_other(const struct smc_offer *offer, enum smc_transport_role role)
{
	enum smc_transport_role r;

	for (r = 0; r < SMC_ROLES; r++)
		if (offer->ops[r] && r != role)
			return true;
	return false;
}

static bool role_is_offered(const struct smc_clc_proposal *p, enum smc_transport_role role)
{
	if (role == SMC_ROLE_D)
		return smc_clc_path_has_d(p->path_v1) || smc_clc_path_has_d(p->path_v2);
	return smc_clc_path_has_r(p->path_v1) || smc_clc_path_has_r(p->path_v2);
}

static bool lacks_device(int reason)
{
	return reason == SMC_REASON_NO_D_DEV || reason == SMC_REASON_NO_D2_DEV || reason == SMC_REASON_NO_R_DEV;
}

/*
 * Chooses which of two transports' reasons is sent to the peer: the first one, unless that is a missing device and the
 * second one is not.
 */
static int choose_reason(int first, int second)
{
	if (!first || !second)
		return first ?: second;
	if (!lacks_device(first))
		return first;
	return lacks_device(second) ? SMC_REASON_NO_DEV : second;
}

/* Ends the connection of an offer that has failed. */
static void offer_drop_conn(struct smc_offer *offer)
{
	if (!offer->conn)
		return;
	smc_conn_kill(offer->conn, false);
	smc_conn_put(offer->conn);
	offer->conn = NULL;
}

/*
 * smc_registry_match() - chooses the first transport, in the order of preference, that matches a proposal. The
 * offer pins it; after -EINPROGRESS, the next call goes on with it. Return: 0, a negative errno, or a reason.
 */
int smc_registry_match(struct smc_offer *offer, const struct smc_clc_proposal *p,
		       struct smc_clc_accept *accept, const struct smc_transport_ops **chosen)
{
	const struct smc_transport_ops *ops;
	enum smc_transport_role role;
	int rc, reason = 0;

	might_sleep();
	for (role = 0; role < SMC_ROLES; role++) {
		if (!role_is_offered(p, role) || waits_for_other(offer, role))
			continue;
		ops = offer->ops[role] ?: transport_pin(role);
		if (!ops)
			continue;
		rc = ops->match(offer, p, accept);
		offer->ops[role] = rc && rc != -EINPROGRESS ? NULL : ops;
		if (!rc)
			*chosen = ops;
		if (offer->ops[role])
			return rc;
		module_put(ops->owner);
		if (rc < 0)
			return rc;
		/* The next transport makes its own connection. */
		offer_drop_conn(offer);
		reason = choose_reason(reason, rc);
	}
	return reason ?: SMC_REASON_NO_DEV;
}

/*
 * smc_registry_present() - returns whether a transport has a device that could serve some connection of a namespace. Any context.
 */
bool smc_registry_present(const struct net *net)
{
	const struct smc_transport_ops *ops;
	enum smc_transport_role role;
	bool present = false;

	rcu_read_lock();
	for (role = 0; role < SMC_ROLES && !present; role++) {
		ops = rcu_dereference(transports[role]);
		present = ops && (!ops->present || ops->present(net));
	}
	rcu_read_unlock();
	return present;
}

/* smc_registry_pairs() - returns whether a transport has @pair. Any context. */
bool smc_registry_pairs(void)
{
	const struct smc_transport_ops *ops;
	enum smc_transport_role role;
	bool pairs = false;

	rcu_read_lock();
	for (role = 0; role < SMC_ROLES; role++) {
		ops = rcu_dereference(transports[role]);
		pairs |= ops && ops->pair;
	}
	rcu_read_unlock();
	return pairs;
}

/*
 * smc_registry_pair() - connects both ends of a connection within a namespace, without a handshake. Return: 0,
 * -ENODEV if no transport can, or -ENOMEM.
 */
int smc_registry_pair(struct smc_offer *client, struct smc_offer *server)
{
	const struct smc_transport_ops *ops;
	enum smc_transport_role role;
	int rc = -ENODEV;

	might_sleep();
	for (role = 0; role < SMC_ROLES && rc; role++) {
		ops = transport_pin(role);
		if (!ops)
			continue;
		if (ops->pair)
			rc = ops->pair(client, server);
		module_put(ops->owner);
	}
	return rc;
}

/* smc_registry_release() - detaches and unpins all transports of an offer, and ends its connection, if any */
void smc_registry_release(struct smc_offer *offer)
{
	enum smc_transport_role role;

	might_sleep();
	for (role = 0; role < SMC_ROLES; role++) {
		const struct smc_transport_ops *ops = offer->ops[role];

		if (!ops)
			continue;
		offer->ops[role] = NULL;
		if (ops->detach)
			ops->detach(offer);
		module_put(ops->owner);
	}
	offer_drop_conn(offer);
}
