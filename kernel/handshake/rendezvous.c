// SPDX-License-Identifier: GPL-2.0-only
/*
 * A rendezvous, step by step. No thread waits for the peer: a step handles the messages that have come, and
 * returns the outcome, or that the next message is due.
 */

#include <linux/slab.h>
#include <net/sock.h>

#include "../net.h"
#include "../wire/reason.h"
#include "handshake.h"

/* Apart from struct smc_sock: a rendezvous takes a few kilobytes, for milliseconds. */
static struct kmem_cache *cache;

/* A transport has what it had to wait for. */
static void transport_ready(struct smc_offer *offer)
{
	mod_delayed_work(smc_net_wq, container_of(offer, struct smc_rendezvous, offer)->work, 0);
}

/**
 * smc_rendezvous_new() - begins a rendezvous
 * @sk: the TCP connection, which the caller keeps
 * @server: the side
 * @work: calls smc_rendezvous_step(); is started when a transport may continue
 *
 * May sleep. Return: NULL without memory.
 */
struct smc_rendezvous *smc_rendezvous_new(struct sock *sk, bool server, struct delayed_work *work)
{
	struct smc_rendezvous *rv = kmem_cache_zalloc(cache, GFP_KERNEL);

	might_sleep();
	if (!rv)
		return NULL;
	rv->sk = sk;
	rv->server = server;
	rv->work = work;
	rv->offer.again = transport_ready;
	rv->step = server ? SMC_STEP_PROPOSAL : SMC_STEP_START;
	rv->version = SMC_V1;
	rv->deadline = jiffies + SMC_HANDSHAKE_TIMEOUT;
	smc_peers_stamp(smc_net(sock_net(sk)), &rv->stamp);
	if (server)
		atomic_inc(&smc_net(sock_net(sk))->handshakes);
	return rv;
}

/* smc_rendezvous_free() - after the last step; ends a connection that is still in the offer. */
void smc_rendezvous_free(struct smc_rendezvous *rv)
{
	might_sleep();
	if (rv->server)
		atomic_dec(&smc_net(sock_net(rv->sk))->handshakes);
	smc_registry_release(&rv->offer);
	kmem_cache_free(cache, rv);
}

/* smc_rendezvous_pause() - the transport has to wait for its peer. Return: -EINPROGRESS. */
int smc_rendezvous_pause(struct smc_rendezvous *rv, enum smc_rendezvous_step step)
{
	rv->step = step;
	rv->deadline = rv->offer.deadline;
	return -EINPROGRESS;
}

/*
 * smc_rendezvous_decline_later() - sends DECLINE at the deadline, in jiffies, unless the peer's comes before.
 * Return: -EINPROGRESS.
 */
int smc_rendezvous_decline_later(struct smc_rendezvous *rv, u32 reason, unsigned long deadline)
{
	rv->reason = reason;
	rv->step = SMC_STEP_DECLINE;
	rv->deadline = deadline;
	return -EINPROGRESS;
}

/* Handles messages until one is missing. Return: as smc_rendezvous_step(). */
static int exchange(struct smc_rendezvous *rv, const struct smc_rendezvous_side *side)
{
	enum smc_rendezvous_step before;
	int rc;

	do {
		before = rv->step;
		rc = smc_clc_io_recv(rv, side->expects(before));
		/* The buffer of ours has the part of a DECLINE that has come. */
		if (rc == -EINPROGRESS)
			rc = rv->have ? rc : side->resume(rv);
		else if (rc == SMC_CLC_DECLINE)
			rc = smc_clc_io_recv_decline(rv);
		else if (rc > 0)
			rc = side->recv(rv, rc);
		/* The next message may be there already, but ours goes first. */
	} while (rc == -EINPROGRESS && rv->step != before && !rv->unsent);
	return rc;
}

/* Does the transport decide how long to wait? Then the deadline is its own. */
static bool at_transport(enum smc_rendezvous_step step)
{
	return step == SMC_STEP_MATCH || step == SMC_STEP_JOIN || step == SMC_STEP_LINK;
}

/* Has the peer begun a DECLINE that nobody waits for? It decides about the connection, so the rest of it is awaited. */
static bool decline_has_begun(const struct smc_rendezvous *rv)
{
	return rv->have && (at_transport(rv->step) || rv->step == SMC_STEP_DECLINE);
}

/* Takes the steps that are possible now. Return: as smc_rendezvous_step(). */
static int take_steps(struct smc_rendezvous *rv)
{
	int rc = smc_clc_io_flush(rv);

	if (rc)
		return rc;
	if (rv->step == SMC_STEP_DECLINED)
		return SMC_OUTCOME_TCP;
	if (rv->step == SMC_STEP_START) {
		rc = smc_client_propose(rv);
		if (rc != -EINPROGRESS || rv->unsent)
			return rc;
	}
	rc = exchange(rv, rv->server ? &smc_server : &smc_client);
	if (rc != -EINPROGRESS || rv->unsent)
		return rc;
	if (decline_has_begun(rv))
		rv->deadline = rv->have_since + SMC_HANDSHAKE_TIMEOUT;
	else if (at_transport(rv->step))
		return rc;
	if (time_before(jiffies, rv->deadline))
		return rc;
	if (rv->step == SMC_STEP_DECLINE && !rv->have)
		return smc_clc_io_decline(rv, rv->reason);
	/* If the sock was locked, the message may be there. */
	rv->late = !rv->retry;
	return -ETIMEDOUT;
}

/**
 * smc_rendezvous_step() - continues a rendezvous as far as the peer's messages allow
 * @rv: the rendezvous; one thread at a time
 *
 * May sleep, but not for the peer.
 *
 * Return: an enum smc_outcome; -EINPROGRESS if a message is due, and the caller calls again when it comes,
 * at the deadline, or after retry; another negative errno if the connection breaks.
 */
int smc_rendezvous_step(struct smc_rendezvous *rv)
{
	int rc;

	might_sleep();
	rc = take_steps(rv);
	if (rc != -EINPROGRESS)
		smc_handshake_remember(rv, rc);
	return rc;
}

/* smc_handshake_init() - at load. Return: 0 or -ENOMEM. */
int __init smc_handshake_init(void)
{
	cache = KMEM_CACHE(smc_rendezvous, SLAB_ACCOUNT);
	return cache ? 0 : -ENOMEM;
}

/* smc_handshake_exit() - at unload. */
void smc_handshake_exit(void)
{
	kmem_cache_destroy(cache);
}
