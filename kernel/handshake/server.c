// SPDX-License-Identifier: GPL-2.0-only
/* The listening side of a rendezvous (RFC 7609, 3.5), as one sequence that pauses where a message is due. */

#include "../conn/conn.h"
#include "../wire/reason.h"
#include "handshake.h"

/* Chooses a transport, and sends ACCEPT. */
static int match_transport(struct smc_rendezvous *rv)
{
	int rc = smc_registry_match(&rv->offer, &rv->proposal, &rv->local, &rv->ops);

	if (rc == -EINPROGRESS)
		return smc_rendezvous_pause(rv, SMC_STEP_MATCH);
	if (rc)
		return rc > 0 ? smc_clc_io_decline(rv, rc) : rc;
	rc = smc_clc_io_send(rv, smc_clc_accept_encode(&rv->local, rv->buf, sizeof(rv->buf)));
	if (rc && rc != -EINPROGRESS)
		return rc;
	rv->step = SMC_STEP_CONFIRM;
	rv->deadline = jiffies + SMC_HANDSHAKE_TIMEOUT;
	return -EINPROGRESS;
}

/* The peer's PROPOSAL has come. Which of its offers are possible here? */
static int recv_proposal(struct smc_rendezvous *rv)
{
	struct smc_local local;
	int rc;

	rc = smc_clc_proposal_decode(rv->buf, rv->len, &rv->proposal);
	if (rc)
		return rc;
	rv->version = min_t(u8, rv->proposal.version, SMC_V2);
	rc = smc_negotiate_policy(rv->sk);
	if (rc)
		return smc_clc_io_decline(rv, rc);
	smc_registry_local(&local);
	rc = smc_negotiate_server(rv->sk, &rv->proposal, &local);
	if (rc)
		return smc_clc_io_decline(rv, rc);
	rv->offer.sk = rv->sk;
	rv->offer.server = true;
	return match_transport(rv);
}

/* CONFIRM has come. Has the transport brought up the link? */
static int server_link_up(struct smc_rendezvous *rv)
{
	int rc = rv->ops->attach(&rv->offer, &rv->peer, NULL);

	if (rc == -EINPROGRESS)
		return smc_rendezvous_pause(rv, SMC_STEP_LINK);
	if (rc > 0 && rv->step == SMC_STEP_LINK)
		return smc_rendezvous_decline_later(rv, rc, jiffies + SMC_HANDSHAKE_CROSSING);
	if (rc > 0)
		return smc_clc_io_decline(rv, rc);
	return rc ?: SMC_OUTCOME_SMC;
}

static int recv_confirm(struct smc_rendezvous *rv)
{
	int rc;

	rc = smc_clc_accept_decode(rv->buf, rv->len, &rv->peer);
	if (rc)
		return rc;
	rc = smc_negotiate_confirm(&rv->local, &rv->peer);
	return rc ? smc_clc_io_decline(rv, rc) : server_link_up(rv);
}

static u8 server_expects(enum smc_rendezvous_step step)
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

/* No message has come, but the transport may be ready. */
static int server_resume(struct smc_rendezvous *rv)
{
	switch (rv->step) {
	case SMC_STEP_MATCH:
		return match_transport(rv);
	case SMC_STEP_LINK:
		return server_link_up(rv);
	default:
		return -EINPROGRESS;
	}
}

static int server_recv(struct smc_rendezvous *rv, u8 type)
{
	return type == SMC_CLC_PROPOSAL ? recv_proposal(rv) : recv_confirm(rv);
}

const struct smc_rendezvous_side smc_server = { .expects = server_expects, .recv = server_recv, .resume = server_resume };
