// SPDX-License-Identifier: GPL-2.0-only
/*
 * The listening side of a rendezvous (RFC 7609, 3.5), as one sequence that pauses where a message
 * is due.
 */

#include <net/inet_connection_sock.h>
#include <net/tcp_states.h>

#include "../conn/conn.h"
#include "../wire/reason.h"
#include "handshake.h"

static int decline(struct smc_sock *smc, u32 reason)
{
	int rc = smc_clc_io_decline(smc, reason);

	if (!rc)
		smc_fallback_child(smc, reason, 0);
	return rc;
}

/* Chooses a transport for what is possible here, and says so. */
static int match(struct smc_sock *smc)
{
	struct smc_rendezvous *rv = smc->rv;
	int rc = smc_registry_match(&rv->offer, &rv->proposal, &rv->local, &rv->ops);

	if (rc == -EINPROGRESS)
		return smc_handshake_pause(smc, SMC_STEP_MATCH);
	if (rc)
		return rc > 0 ? decline(smc, rc) : rc;
	rc = smc_clc_io_send(smc, smc_clc_accept_encode(&rv->local, rv->buf, sizeof(rv->buf)));
	if (rc && rc != -EINPROGRESS)
		return rc;
	rv->step = SMC_STEP_CONFIRM;
	rv->deadline = jiffies + SMC_HANDSHAKE_TIMEOUT;
	return -EINPROGRESS;
}

/* The peer's PROPOSAL is there. Which of what it offers can be had here? */
static int answer(struct smc_sock *smc)
{
	struct smc_rendezvous *rv = smc->rv;
	struct smc_local local;
	int rc;

	rc = smc_clc_proposal_decode(rv->buf, rv->len, &rv->proposal);
	if (rc)
		return rc;
	rv->version = min_t(u8, rv->proposal.version, SMC_V2);
	if (smc_negotiate_ipsec(smc->sk))
		return decline(smc, SMC_REASON_IPSEC);
	smc_registry_local(&local);
	rc = smc_negotiate_server(smc->sk, &rv->proposal, &local);
	if (rc)
		return decline(smc, rc);
	rv->offer.sk = smc->sk;
	rv->offer.server = true;
	return match(smc);
}

/* The peer knows where to write. What does the transport take beyond that? */
static int link_up(struct smc_sock *smc)
{
	struct smc_rendezvous *rv = smc->rv;
	int rc = rv->ops->attach(&rv->offer, &rv->peer, NULL);

	if (rc == -EINPROGRESS)
		return smc_handshake_pause(smc, SMC_STEP_LINK);
	if (rc > 0 && rv->step == SMC_STEP_LINK)
		return smc_handshake_decline_later(rv, rc, jiffies + SMC_HANDSHAKE_CROSSING);
	if (rc > 0)
		return decline(smc, rc);
	if (!rc) {
		smc_active_child(smc, rv->offer.conn);
		smc_conn_count(rv->offer.conn);
		rv->offer.conn = NULL;
	}
	return rc;
}

static int confirmed(struct smc_sock *smc)
{
	struct smc_rendezvous *rv = smc->rv;
	int rc;

	rc = smc_clc_accept_decode(rv->buf, rv->len, &rv->peer);
	if (rc)
		return rc;
	rc = smc_negotiate_confirm(&rv->local, &rv->peer);
	return rc ? decline(smc, rc) : link_up(smc);
}

/*
 * TCP_DEFER_ACCEPT is counted in repetitions of the SYN-ACK: 1, 2, 4 … seconds. Return: jiffies, 0
 * if it is not set.
 */
static unsigned long deferral(const struct smc_sock *smc)
{
	unsigned int n = READ_ONCE(inet_csk(smc->parent->sk)->icsk_accept_queue.rskq_defer_accept);

	return n ? ((1UL << min(n, 6U)) - 1) * HZ : 0;
}

static bool idle(const struct smc_sock *smc)
{
	const struct sock *sk = smc->sk;

	const struct smc_conn *conn = rcu_access_pointer(smc->conn);

	/* A child's is not taken from it before accept() has it. */
	if (conn)
		return !smc_conn_readable(conn);
	return inet_sk_state_load(sk) == TCP_ESTABLISHED && skb_queue_empty_lockless(&sk->sk_receive_queue);
}

/*
 * The outcome is known. A listener that wants connections only once there is data did not mean the
 * handshake's, for which TCP has let this one through.
 */
static int settled(struct smc_sock *smc)
{
	unsigned long delay = deferral(smc);

	if (!delay || !idle(smc) || !smc_listen_defer(smc))
		return 0;
	smc_limit_end(smc);
	/* Others wait for what comes of a link group that this has begun to form. */
	smc_registry_release(&smc->rv->offer);
	smc->rv->step = SMC_STEP_DATA;
	smc->rv->deadline = jiffies + delay;
	return -EINPROGRESS;
}

/*
 * smc_server_expired() - the peer's time is up. Return: 0 if the connection may be accepted, else
 * why it breaks.
 */
int smc_server_expired(struct smc_sock *smc)
{
	if (smc->rv->step == SMC_STEP_DECLINE)
		return decline(smc, smc->rv->reason);
	return smc->rv->step == SMC_STEP_DATA ? 0 : -ETIMEDOUT;
}

static u8 due(enum smc_rendezvous_step step)
{
	switch (step) {
	case SMC_STEP_PROPOSAL:
		return SMC_CLC_PROPOSAL;
	case SMC_STEP_CONFIRM:
		return SMC_CLC_CONFIRM;
	default:
		return SMC_CLC_DECLINE;
	}
}

/* Without a message, the transport may get on. */
static int go_on(struct smc_sock *smc)
{
	switch (smc->rv->step) {
	case SMC_STEP_MATCH:
		return match(smc);
	case SMC_STEP_LINK:
		return link_up(smc);
	default:
		return -EINPROGRESS;
	}
}

static int received(struct smc_sock *smc, u8 type)
{
	return type == SMC_CLC_PROPOSAL ? answer(smc) : confirmed(smc);
}

static const struct smc_handshake_side server = { .due = due, .received = received, .go_on = go_on };

/**
 * smc_server_step() - goes on with the rendezvous of a listener's child as far as the peer's
 * messages allow
 * @smc: the child's record
 *
 * The rendezvous' worker. Return: 0 if the connection may be accepted, -EINPROGRESS if a message is
 * due, else why it breaks.
 */
int smc_server_step(struct smc_sock *smc)
{
	u32 diagnosis;
	int rc;

	if (smc->rv->step == SMC_STEP_DATA)
		return idle(smc) ? -EINPROGRESS : 0;
	if (smc->rv->step == SMC_STEP_DECLINED) {
		smc_fallback_child(smc, smc->rv->reason, 0);
		return settled(smc);
	}
	rc = smc_handshake_exchange(smc, &server);
	if (rc == SMC_CLC_DECLINE) {
		rc = smc_clc_io_declined(smc, &diagnosis);
		if (!rc)
			smc_fallback_child(smc, SMC_REASON_PEER_DECLINED, diagnosis);
	}
	return rc ?: settled(smc);
}
