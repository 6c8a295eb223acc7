/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SMC_HANDSHAKE_HANDSHAKE_H
#define SMC_HANDSHAKE_HANDSHAKE_H

#include <linux/workqueue.h>

#include "../control/peers.h"
#include "../transport/transport.h"
#include "../wire/clc.h"
#include "synopt.h"

/* How long each side waits for the next message. RFC 7609 leaves it open; other implementations wait as long. */
#define SMC_HANDSHAKE_TIMEOUT (6 * HZ)
/*
 * After CONFIRM only one side may send DECLINE: the other would take a second one for data. If both sides
 * fail at once, the server declines, and a client that fails early waits for that for CROSSING. A server
 * waits 2 s for the link and 1 s for a DECLINE, so it still receives the DECLINE of such a client. A client
 * that fails later waits for the server's DECLINE until LATE: stock servers first end their link group,
 * which takes 2 s; the rest is for busy hosts.
 */
#define SMC_HANDSHAKE_CROSSING HZ
#define SMC_HANDSHAKE_EARLY (3 * HZ / 2)
#define SMC_HANDSHAKE_LATE (8 * HZ)
/*
 * How long a message waits for the sock's lock. Other connections may wait for this rendezvous, if it
 * forms their link group.
 */
#define SMC_HANDSHAKE_UNSENT HZ

#define SMC_V1 1
#define SMC_V2 2
#define SMC_CONNS_MIN 16	/* connections per link group, the least that may be negotiated */
#define SMC_LINKS_MAX 2		/* links per link group, the most */

/* The step that is due next. */
enum smc_rendezvous_step {
	SMC_STEP_START,		/* client: decide what to offer */
	SMC_STEP_PROPOSAL,	/* server: the peer's proposal */
	SMC_STEP_MATCH,		/* server: the transport, with the peer's proposal */
	SMC_STEP_ACCEPT,	/* client: the peer's answer to ours */
	SMC_STEP_JOIN,		/* client: the transport, with the peer's answer */
	SMC_STEP_CONFIRM,	/* server: the peer's confirmation */
	SMC_STEP_LINK,		/* the transport, after CONFIRM */
	SMC_STEP_DECLINE,	/* the peer's DECLINE, before we send ours after CONFIRM */
	SMC_STEP_DECLINED,	/* our own DECLINE is sent as soon as the sock's lock is free */
};

/* How a connection goes on after its rendezvous, unless it breaks. */
enum smc_outcome {
	SMC_OUTCOME_TCP = 1,	/* it stays TCP, for the reason in the rendezvous */
	SMC_OUTCOME_SMC,	/* a transport carries it: offer.conn, whose reference the caller takes */
};

/* The state of a rendezvous, from the moment TCP is connected until the outcome is known. One thread at a time uses it. */
struct smc_rendezvous {
	struct sock			*sk;		/* the TCP connection */
	bool				server;
	struct delayed_work		*work;		/* takes the steps */
	enum smc_rendezvous_step	step;
	unsigned long			deadline;	/* jiffies: for the message that is due */
	unsigned long			sent;		/* jiffies: when the last message went to TCP */
	unsigned long			retry;		/* jiffies until the sock's lock is tried again, 0 if it was free */
	u8				version;	/* of the messages that we send */
	u32				reason;		/* why the connection stays TCP, or is to */
	u32				peer_diagnosis;	/* and the peer's reason, if it has declined */
	bool				late;		/* the message that was due has not come in time */
	struct smc_peers_stamp		stamp;		/* of the time when it began */
	unsigned int			unsent;		/* bytes of a message in buf that waits for the sock's lock */
	unsigned long			unsent_since;	/* jiffies */
	struct smc_offer		offer;		/* of the transports */
	struct smc_clc_proposal		proposal;	/* client: ours; server: the peer's */
	struct smc_clc_accept		local;		/* our ACCEPT or CONFIRM */
	struct smc_clc_accept		peer;		/* theirs */
	const struct smc_transport_ops	*ops;		/* the transport that was chosen */
	unsigned int			have;		/* bytes of the message that have been read */
	unsigned long			have_since;	/* jiffies: when the first of them was */
	unsigned int			len;		/* bytes of a complete message that are in buf */
	u8				buf[SMC_CLC_MAX];
};

/* Differences between client and server. Functions return what smc_rendezvous_step() does. */
struct smc_rendezvous_side {
	u8 (*expects)(enum smc_rendezvous_step step);	/* type of the next message, or a DECLINE */
	int (*recv)(struct smc_rendezvous *rv, u8 type);	/* it has come */
	int (*resume)(struct smc_rendezvous *rv);	/* it has not, but the transport may be ready */
};

/* rendezvous.c: for sock/, which takes the steps, and for the two sides */
struct smc_rendezvous *smc_rendezvous_new(struct sock *sk, bool server, struct delayed_work *work);
int smc_rendezvous_step(struct smc_rendezvous *rv);
void smc_rendezvous_free(struct smc_rendezvous *rv);
int smc_rendezvous_pause(struct smc_rendezvous *rv, enum smc_rendezvous_step step);
int smc_rendezvous_decline_later(struct smc_rendezvous *rv, u32 reason, unsigned long deadline);
int smc_handshake_init(void);
void smc_handshake_exit(void);

/* pair.c: both ends in this namespace */
struct smc_pair {
	struct sock *peer;
	struct smc_conn *client, *server;
};

int smc_pair_connect(struct sock *sk, struct mem_cgroup *memcg, struct smc_pair *pair);

/* clc_io.c: messages on the TCP socket */
int smc_clc_io_recv(struct smc_rendezvous *rv, u8 expected);
int smc_clc_io_send(struct smc_rendezvous *rv, int len);
int smc_clc_io_flush(struct smc_rendezvous *rv);
int smc_clc_io_decline(struct smc_rendezvous *rv, u32 reason);
int smc_clc_io_recv_decline(struct smc_rendezvous *rv);

/* client.c, server.c */
extern const struct smc_rendezvous_side smc_client, smc_server;
int smc_client_propose(struct smc_rendezvous *rv);

/* negotiate.c: decisions; each returns 0 or the reason to fall back */
u32 smc_negotiate_policy(struct sock *sk);
u32 smc_negotiate_server(struct sock *sk, struct smc_clc_proposal *p, const struct smc_local *local);
u32 smc_negotiate_accept(const struct smc_clc_proposal *p, const struct smc_clc_accept *a);
u32 smc_negotiate_confirm(const struct smc_clc_accept *ours, const struct smc_clc_accept *theirs);

/* peers.c: handshakes that would be in vain */
bool smc_handshake_futile(const struct smc_net *sn, const struct smc_peers_key *key, struct smc_peers_why *why);
bool smc_handshake_futile_sock(const struct sock *sk, enum smc_peers_role role, struct smc_peers_why *why);
bool smc_handshake_futile_syn(const struct smc_syn *syn, const struct request_sock *req);
void smc_handshake_mark_reachable(const struct sock *sk);
void smc_handshake_remember(const struct smc_rendezvous *rv, int rc);

/* prefix.c: the subnets of a connection */
int smc_prefix_fill(struct sock *sk, struct smc_clc_proposal *p);
bool smc_prefix_match(struct sock *sk, const struct smc_clc_proposal *p);

#endif
