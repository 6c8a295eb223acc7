/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SMC_HANDSHAKE_HANDSHAKE_H
#define SMC_HANDSHAKE_HANDSHAKE_H

#include "../sock/sock.h"
#include "../transport/transport.h"
#include "../wire/clc.h"

/*
 * How long each side waits for the message that is due (RFC 7609 leaves it open; the field agrees
 * on this).
 */
#define SMC_HANDSHAKE_TIMEOUT (6 * HZ)
/*
 * Who of the two sides is the first to decline after CONFIRM? Each would take the other's DECLINE
 * for data after its own. What fails at once on both, the server declines at once: who fails early
 * waits for that for a while. A server waits for the link for 2 s and for a DECLINE for 1 s, so it
 * still hears such a client. One that fails later waits for the server's DECLINE instead, before
 * which stock servers end their link group, in 2 s; the rest is for busy ones.
 */
#define SMC_HANDSHAKE_CROSSING HZ
#define SMC_HANDSHAKE_EARLY (3 * HZ / 2)
#define SMC_HANDSHAKE_LATE (8 * HZ)
/*
 * How long a message waits for a thread to let go of the sock's lock. Other connections may wait for
 * this rendezvous: it may be the first of a link group.
 */
#define SMC_HANDSHAKE_UNSENT HZ

#define SMC_V1 1
#define SMC_V2 2
#define SMC_CONNS_MIN 16	/* connections per link group, the least that may be negotiated */
#define SMC_LINKS_MAX 2		/* links per link group, the most */

/* What is due next. */
enum smc_rendezvous_step {
	SMC_STEP_START,		/* client: decide what to offer */
	SMC_STEP_PROPOSAL,	/* server: the peer's proposal */
	SMC_STEP_MATCH,		/* server: the transport, with the peer's proposal */
	SMC_STEP_ACCEPT,	/* client: the peer's answer to ours */
	SMC_STEP_JOIN,		/* client: the transport, with the peer's answer */
	SMC_STEP_CONFIRM,	/* server: the peer's confirmation */
	SMC_STEP_LINK,		/* the transport, after that */
	SMC_STEP_DATA,		/* server: the first data, see TCP_DEFER_ACCEPT */
	SMC_STEP_DECLINE,	/* a DECLINE that crosses ours, after CONFIRM */
	SMC_STEP_DECLINED,	/* our own DECLINE is sent as soon as the sock's lock is free */
};

/*
 * The one structure that travels through a rendezvous, from the moment TCP is connected until the
 * outcome is known. Its worker alone touches it.
 */
struct smc_rendezvous {
	struct smc_sock			*smc;		/* whose it is */
	enum smc_rendezvous_step	step;
	unsigned long			deadline;	/* jiffies: for the message that is due */
	unsigned long			sent;		/* jiffies: when the last message went to TCP */
	bool				limited;	/* counts for handshake limitation */
	u8				version;	/* of the messages that we send */
	u32				reason;		/* of our own DECLINE, while the peer's or the sock's lock is waited for */
	unsigned int			unsent;		/* bytes of a message in buf that waits for the sock's lock */
	unsigned long			unsent_since;	/* jiffies */
	struct smc_offer		offer;		/* what the transports have to say */
	struct smc_clc_proposal		proposal;	/* client: ours; server: the peer's */
	struct smc_clc_accept		local;		/* our ACCEPT or CONFIRM */
	struct smc_clc_accept		peer;		/* theirs */
	const struct smc_transport_ops	*ops;		/* the transport that was chosen */
	unsigned int			have;		/* bytes of the message that have been read */
	unsigned int			len;		/* bytes of a complete message that are in buf */
	u8				buf[SMC_CLC_MAX];
};

/* What differs between the two sides of a rendezvous when a message has come, or none. */
struct smc_handshake_side {
	u8 (*due)(enum smc_rendezvous_step step);	/* type of the next message; a DECLINE may come at any time */
	int (*received)(struct smc_sock *smc, u8 type);	/* it is there */
	int (*go_on)(struct smc_sock *smc);		/* it is not, but the transport may get on */
};

/*
 * Is the socket a child that its listener still has, so that its rendezvous is a server's? What
 * accept() has handed out is a socket like any other: it may be disconnected, and connect as a
 * client. Only while the rendezvous cannot end concurrently, or under the record's lock.
 */
static inline bool smc_handshake_is_child(const struct smc_sock *smc)
{
	return smc->parent;
}

/* handshake.c: the worker and the ways to start and stop it */
void smc_handshake_prepare(struct smc_sock *smc);
void smc_handshake_phase(struct smc_sock *smc, enum smc_phase phase);
bool smc_handshake_trylock(struct smc_sock *smc);
int smc_handshake_arm(struct smc_sock *smc);
void smc_handshake_disarm(struct smc_sock *smc);
void smc_handshake_watch(struct smc_sock *smc, struct socket *sock, wait_queue_func_t fn);
void smc_handshake_unwatch(struct smc_sock *smc);
void smc_handshake_unwatch_locked(struct smc_sock *smc);
int smc_handshake_wake(struct wait_queue_entry *wait, unsigned int mode, int flags, void *key);
void smc_handshake_kick(struct smc_sock *smc);
void smc_handshake_tell(struct smc_sock *smc);
void smc_handshake_serve(struct smc_sock *child);
void smc_handshake_stop(struct smc_sock *smc);
void smc_handshake_free(struct smc_sock *smc);
int smc_handshake_init(void);
void smc_handshake_exit(void);

void smc_handshake_inline(struct smc_sock *smc);
int smc_handshake_pause(struct smc_sock *smc, enum smc_rendezvous_step step);
int smc_handshake_decline_later(struct smc_rendezvous *rv, u32 reason, unsigned long deadline);
int smc_handshake_exchange(struct smc_sock *smc, const struct smc_handshake_side *side);

/* local.c: both ends in this kernel */
bool smc_local_connect(struct smc_sock *smc, bool last);

/* clc_io.c: messages on the TCP socket */
int smc_clc_io_recv(struct smc_sock *smc, u8 expected);
int smc_clc_io_send(struct smc_sock *smc, int len);
int smc_clc_io_flush(struct smc_sock *smc);
int smc_clc_io_decline(struct smc_sock *smc, u32 reason);
int smc_clc_io_declined(struct smc_sock *smc, u32 *diagnosis);

/*
 * client.c, server.c: one step; 0 if the outcome is known, -EINPROGRESS if a message is due, else
 * the error
 */
int smc_client_step(struct smc_sock *smc);
int smc_client_expired(struct smc_sock *smc);
int smc_server_step(struct smc_sock *smc);
int smc_server_expired(struct smc_sock *smc);

/* negotiate.c: decisions, of which each is 0 or the reason to fall back */
bool smc_negotiate_ipsec(struct sock *sk);
u32 smc_negotiate_server(struct sock *sk, struct smc_clc_proposal *p, const struct smc_local *local);
u32 smc_negotiate_accept(const struct smc_clc_proposal *p, const struct smc_clc_accept *a);
u32 smc_negotiate_confirm(const struct smc_clc_accept *ours, const struct smc_clc_accept *theirs);

/* prefix.c: the subnets of a connection */
int smc_prefix_fill(struct sock *sk, struct smc_clc_proposal *p);
bool smc_prefix_match(struct sock *sk, const struct smc_clc_proposal *p);

/* limit.c: handshake limitation */
bool smc_limit_reached(struct smc_sock *listener);
void smc_limit_begin(struct smc_sock *child);
void smc_limit_end(struct smc_sock *child);

#endif
