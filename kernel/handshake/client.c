// SPDX-License-Identifier: GPL-2.0-only
/*
 * The connecting side of a rendezvous (RFC 7609, 3.5), as one sequence that pauses where a message
 * is due.
 */

#include "../control/eid.h"
#include "../wire/reason.h"
#include "handshake.h"

/* The application may have given up meanwhile. */
static int fall_back(struct smc_sock *smc, u32 reason, u32 peer)
{
	return smc_fallback_take(smc, smc->sock, SMC_PHASE_RENDEZVOUS, reason, peer) ? 0 : -ECANCELED;
}

/* The connection stays TCP, and the peer is told so. */
static int decline(struct smc_sock *smc, u32 reason)
{
	int rc = smc_clc_io_decline(smc, reason);

	return rc ?: fall_back(smc, reason, 0);
}

/* Without any device a DECLINE goes out where the PROPOSAL would. */
static int propose(struct smc_sock *smc)
{
	struct smc_rendezvous *rv = smc->rv;
	struct smc_clc_proposal *p = &rv->proposal;
	struct smc_local local;
	int rc;

	if (smc_local_connect(smc, true))
		return 0;
	smc_registry_local(&local);
	rv->version = local.d2 ? SMC_V2 : SMC_V1;
	if (smc_negotiate_ipsec(smc->sk))
		return decline(smc, SMC_REASON_IPSEC);
	p->version = SMC_V2;
	p->path_v1 = SMC_PATH_N;
	p->path_v2 = SMC_PATH_N;
	p->n_eid = local.n_eid;
	memcpy(p->eid, local.eid, sizeof(p->eid));
	p->release = SMC_CLC_RELEASE;
	p->features = SMC_CLC_FEATURES;
	rv->offer.sk = smc->sk;
	rc = smc_registry_offer(&rv->offer, p);
	if (rc > 0)
		return decline(smc, rc);
	if (rc < 0)
		return rc;
	/* Version 1 is between hosts of one subnet only, so they have to say which. */
	if (p->path_v1 != SMC_PATH_N && smc_prefix_fill(smc->sk, p)) {
		if (p->path_v2 == SMC_PATH_N)
			return decline(smc, SMC_REASON_CONFIG);
		p->path_v1 = SMC_PATH_N;
		p->ism_gid = 0;
		p->ism_chid = 0;
	}
	if (!p->has_v2)
		p->n_eid = 0;
	rc = smc_clc_io_send(smc, smc_clc_proposal_encode(p, rv->buf, sizeof(rv->buf)));
	if (rc && rc != -EINPROGRESS)
		return rc;
	rv->step = SMC_STEP_ACCEPT;
	rv->deadline = jiffies + SMC_HANDSHAKE_TIMEOUT;
	return -EINPROGRESS;
}

/* Both sides are ready: from here on data goes by the transport. */
static int begin(struct smc_sock *smc)
{
	struct smc_offer *offer = &smc->rv->offer;
	bool mine = smc_active_take(smc, smc->sock, offer->conn);

	offer->conn = NULL;
	return mine ? 0 : -ECANCELED;
}

/*
 * When the server is not to be waited for any longer. CONFIRM is the last message that was sent. That
 * the link is gone, it finds out by itself, perhaps this very moment.
 */
static unsigned long crossing(const struct smc_rendezvous *rv, u32 reason)
{
	bool early = reason != SMC_REASON_NO_ACTIVE_LINK &&
		     time_before(jiffies, rv->sent + SMC_HANDSHAKE_EARLY);

	return early ? jiffies + SMC_HANDSHAKE_CROSSING : rv->sent + SMC_HANDSHAKE_LATE;
}

/* The peer knows that we have joined. What does the transport take beyond that? */
static int link_up(struct smc_sock *smc)
{
	struct smc_rendezvous *rv = smc->rv;
	int rc = rv->ops->attach(&rv->offer, NULL, NULL);

	if (rc == -EINPROGRESS)
		return smc_handshake_pause(smc, SMC_STEP_LINK);
	if (rc > 0)
		return smc_handshake_decline_later(rv, rc, crossing(rv, rc));
	return rc ?: begin(smc);
}

/* Joins what the peer has chosen, and says so. */
static int join(struct smc_sock *smc)
{
	struct smc_rendezvous *rv = smc->rv;
	int rc = rv->ops->attach(&rv->offer, &rv->peer, &rv->local);

	if (rc == -EINPROGRESS)
		return smc_handshake_pause(smc, SMC_STEP_JOIN);
	if (rc)
		return rc > 0 ? decline(smc, rc) : rc;
	rc = smc_clc_io_send(smc, smc_clc_accept_encode(&rv->local, rv->buf, sizeof(rv->buf)));
	if (rc == -EINPROGRESS)
		return smc_handshake_pause(smc, SMC_STEP_LINK);
	return rc ?: link_up(smc);
}

/* The peer's ACCEPT is there. */
static int accepted(struct smc_sock *smc)
{
	struct smc_rendezvous *rv = smc->rv;
	int rc;

	rc = smc_clc_accept_decode(rv->buf, rv->len, &rv->peer);
	if (rc)
		return rc;
	rv->version = rv->peer.version;
	rc = smc_negotiate_accept(&rv->proposal, &rv->peer);
	if (rc)
		return decline(smc, rc);
	rv->ops = rv->offer.ops[rv->peer.smcd ? SMC_ROLE_D : SMC_ROLE_R];
	return join(smc);
}

/*
 * smc_client_expired() - the peer's time is up. Return: 0 if that makes the connection TCP, else
 * why it breaks.
 */
int smc_client_expired(struct smc_sock *smc)
{
	if (smc->rv->step == SMC_STEP_DECLINE)
		return decline(smc, smc->rv->reason);
	return -ETIMEDOUT;
}

/* Without a message, the transport may get on. */
static int go_on(struct smc_sock *smc)
{
	switch (smc->rv->step) {
	case SMC_STEP_JOIN:
		return join(smc);
	case SMC_STEP_LINK:
		return link_up(smc);
	default:
		return -EINPROGRESS;
	}
}

static u8 due(enum smc_rendezvous_step step)
{
	return step == SMC_STEP_ACCEPT ? SMC_CLC_ACCEPT : SMC_CLC_DECLINE;
}

static int received(struct smc_sock *smc, u8 type)
{
	return accepted(smc);
}

static const struct smc_handshake_side client = { .due = due, .received = received, .go_on = go_on };

/**
 * smc_client_step() - goes on with the rendezvous of a client as far as the peer's messages allow
 * @smc: the record
 *
 * The rendezvous' worker. Return: 0 if the socket has its outcome, -EINPROGRESS if a message is
 * due, else why the connection breaks.
 */
int smc_client_step(struct smc_sock *smc)
{
	struct smc_rendezvous *rv = smc->rv;
	u32 diagnosis;
	int rc;

	if (rv->step == SMC_STEP_START) {
		rc = propose(smc);
		if (rc != -EINPROGRESS || rv->unsent)
			return rc;
	}
	if (rv->step == SMC_STEP_DECLINED)
		return fall_back(smc, rv->reason, 0);
	rc = smc_handshake_exchange(smc, &client);
	if (rc <= 0)
		return rc;
	rc = smc_clc_io_declined(smc, &diagnosis);
	return rc ?: fall_back(smc, SMC_REASON_PEER_DECLINED, diagnosis);
}
