/* SPDX-License-Identifier: GPL-2.0-only */
/* What listen.c and accept_queue.c share. */
#ifndef SMC_SOCK_LISTENER_H
#define SMC_SOCK_LISTENER_H

#include "sock.h"

/* What a listener has beyond TCP. Belongs to its record and goes with it. */
struct smc_listener {
	struct mutex		accept_mutex;	/* one at a time takes connections out of TCP's queue, so that they keep their order */
	spinlock_t		lock;		/* what has no other rule */
	struct list_head	running;	/* children in their handshake */
	struct list_head	ready;		/* children for accept(), after their handshake */
	struct list_head	plain;		/* children for accept() that never had one */
	struct list_head	local;		/* children that their clients have connected, in TCP's queue still */
	bool			open;		/* listens; else children are refused */
	bool			moving;		/* the worker has one in its hands */
	bool			blocked;	/* someone has been told to wait for an earlier child, or for that one */
	bool			overlooked;	/* someone has looked no further than at one that wants a handshake */
	bool			denied;		/* someone has gone back to sleep, woken for one that was not the next */
	u64			last_seq;	/* of the children */
	unsigned int		deferred_n;	/* those on it that wait for data, see smc_listen_defer() */
	struct delayed_work	drain;
	struct delayed_work	release;	/* a child that is ready has waited for earlier ones for long enough */
	struct smc_sock		*smc;		/* the listener itself */
	struct smc_synopt_port	port;		/* lets the hooks know of us */
};

/* accept_queue.c: those that nobody has accepted yet */
void smc_accept_queue_init(struct smc_listener *l);
void smc_accept_queue_hold(struct smc_listener *l, struct smc_sock *child);
bool smc_accept_queue_await(struct smc_listener *l);
bool smc_accept_queue_plain_next(const struct smc_listener *l);
void smc_accept_queue_moving(struct smc_listener *l, bool moving);
void smc_accept_queue_put(struct smc_listener *l, struct smc_sock *child);

/* dequeue.c */
int smc_listen_dequeue(struct socket *lsock, struct socket *sock);

/* listen.c */
void smc_listen_drop(struct smc_sock *child);

#endif
