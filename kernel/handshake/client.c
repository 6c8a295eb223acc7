// SPDX-License-Identifier: GPL-2.0-only
/* The connecting side of a rendezvous (RFC 7609, 3.5), as one sequence that pauses where a message is due. */

#include "../conn/conn.h"
#include "../control/eid.h"
#include "../wire/reason.h"
#include "handshake.h"

/*
 * smc_client_propose() - sends the PROPOSAL, or DECLINE if there is no device. Return: as
 * smc_rendezvous_step().
 */
int smc_client_propose(struct smc_rendezvous *rv)
{
	struct smc_clc_proposal *p = &rv->proposal;
	struct smc_local local;
	int rc;

	might_sleep();
	smc_registry_local(&local);
	rv->version = local.d2 ? SMC_V2 : SMC_V1;
	rc = smc_negotiate_policy(rv->sk);
	if (rc)
		return smc_clc_io_decline(rv, rc);
	p->version = SMC_V2;
	p->path_v1 = SMC_PATH_N;
	p->path_v2 = SMC_PATH_N;
	p->n_eid = local.n_eid;
	memcpy(p->eid, local.eid, sizeof(p->eid));
	p->release = SMC_CLC_RELEASE;
	p->features = SMC_CLC_FEATURES;
	rv->offer.sk = rv->sk;
	rc = smc_registry_offer(&rv->offer, p);
	if (rc > 0)
		return smc_clc_io_decline(rv, rc);
	if (rc < 0)
		return rc;
	/* Version 1 is for hosts of one subnet, so the PROPOSAL names it. */
	if (p->path_v1 != SMC_PATH_N && smc_prefix_fill(rv->sk, p)) {
		if (p->path_v2 == SMC_PATH_N)
			return smc_clc_io_decline(rv, SMC_REASON_CONFIG);
		p->path_v1 = SMC_PATH_N;
		p->ism_gid = 0;
		p->ism_chid = 0;
	}
	if (!p->has_v2)
		p->n_eid = 0;
	rc = smc_clc_io_send(rv, smc_clc_proposal_encode(p, rv->buf, sizeof(rv->buf)));
	if (rc && rc != -EINPROGRESS)
		return rc;
	rv->step = SMC_STEP_ACCEPT;
	rv->deadline = jiffies + SMC_HANDSHAKE_TIMEOUT;
	return -EINPROGRESS;
}

/*
 * Returns until when a client waits for the server's DECLINE, after its CONFIRM. If the link is gone, the
 * server notices that by itself, perhaps at this moment.
 */
static unsigned long decline_deadline(const struct smc_rendezvous *rv, u32 reason)
{
	bool early = reason != SMC_REASON_NO_ACTIVE_LINK &&
		     time_before(jiffies, rv->sent + SMC_HANDSHAKE_EARLY);

	return early ? jiffies + SMC_HANDSHAKE_CROSSING : rv->sent + SMC_HANDSHAKE_LATE;
}

/* CONFIRM is sent. Has the transport brought up the link? */
static int client_link_up(struct smc_rendezvous *rv)
{
	int rc = rv->ops->attach(&rv->offer, NULL, NULL);

	if (rc == -EINPROGRESS)
		return smc_rendezvous_pause(rv, SMC_STEP_LINK);
	if (rc > 0)
		return smc_rendezvous_decline_later(rv, rc, decline_deadline(rv, rc));
	return rc ?: SMC_OUTCOME_SMC;
}

/* Joins the link group that the peer has chosen, and confirms it. */
static int join_lgr(struct smc_rendezvous *rv)
{
	int rc = rv->ops->attach(&rv->offer, &rv->peer, &rv->local);

	if (rc == -EINPROGRESS)
		return smc_rendezvous_pause(rv, SMC_STEP_JOIN);
	if (rc)
		return rc > 0 ? smc_clc_io_decline(rv, rc) : rc;
	rc = smc_clc_io_send(rv, smc_clc_accept_encode(&rv->local, rv->buf, sizeof(rv->buf)));
	if (rc == -EINPROGRESS)
		return smc_rendezvous_pause(rv, SMC_STEP_LINK);
	return rc ?: client_link_up(rv);
}

/* The peer's ACCEPT has come. */
static int recv_accept(struct smc_rendezvous *rv)
{
	int rc;

	rc = smc_clc_accept_decode(rv->buf, rv->len, &rv->peer);
	if (rc)
		return rc;
	rv->version = rv->peer.version;
	rc = smc_negotiate_accept(&rv->proposal, &rv->peer);
	if (rc)
		return smc_clc_io_decline(rv, rc);
	rv->ops = rv->offer.ops[rv->peer.smcd ? SMC_ROLE_D : SMC_ROLE_R];
	rv->step = SMC_STEP_JOIN;
	return join_lgr(rv);
}

/* No message has come, but the transport may be ready. */
static int client_resume(struct smc_rendezvous *rv)
{
	switch (rv->step) {
	case SMC_STEP_JOIN:
		return join_lgr(rv);
	case SMC_STEP_LINK:
		return client_link_up(rv);
	default:
		return -EINPROGRESS;
	}
}

static u8 client_expects(enum smc_rendezvous_step step)
{
	return step == SMC_STEP_ACCEPT ? SMC_CLC_ACCEPT : SMC_CLC_DECLINE;
}

static int client_recv(struct smc_rendezvous *rv, u8 type)
{
	return recv_accept(rv);
}

const struct smc_rendezvous_side smc_client = { .expects = client_expects, .recv = client_recv, .resume = client_resume };
