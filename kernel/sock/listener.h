/* SPDX-License-Identifier: GPL-2.0-only */
/* Listeners, for listen.c and accept_queue.c. */
#ifndef SMC_SOCK_LISTENER_H
#define SMC_SOCK_LISTENER_H

#include "sock.h"

/* Our state of a listener. Freed with its struct smc_sock. */
struct smc_listener {
	struct mutex		accept_mutex;	/* taking connections out of TCP's queue, one by one, in their order */
	spinlock_t		lock;		/* the lists and what follows */
	struct list_head	running;	/* children in their handshake */
	struct list_head	ready;		/* children for accept(), after their handshake */
	struct list_head	plain;		/* children for accept() that never had one */
	struct list_head	local;		/* children in TCP's queue that their clients have connected, see local.c */
	bool			open;		/* it listens; else children are reset */
	bool			moving;		/* the worker moves a child from TCP's queue to ours */
	bool			leaving;	/* the first child of TCP's queue leaves it, and counts in @port: see smc_listen_leave() */
	bool			blocked;	/* a thread waits for an earlier child, or for the one that moves */
	bool			overlooked;	/* a thread has found a child that needs a handshake, and no others behind it */
	bool			denied;		/* a thread has gone back to sleep, because the child that woke it was not the next */
	u64			last_seq;	/* of the children */
	unsigned int		deferred_n;	/* children that wait for data, see smc_listen_defer() */
	struct delayed_work	drain;
	struct delayed_work	release;	/* a ready child has waited for earlier ones for HOLD_TIME */
	struct smc_sock		*smc;		/* the listener itself */
	struct smc_net		*sn;		/* its namespace */
	struct smc_synopt_port	port;		/* by which the hooks find the listener */
};

/*
 * Can a connection in TCP's queue need a handshake, or have an end of ours? Without the hooks none can, and all stay there until accept()
 * takes them. A listener keeps the hooks that it once had. Any context.
 */
static inline bool smc_listener_may_promise(const struct smc_listener *l)
{
	return smc_synopt_syns(l->sn);
}

/* accept_queue.c: children that accept() has not returned yet */
void smc_accept_queue_init(struct smc_listener *l);
void smc_accept_queue_hold(struct smc_listener *l, struct smc_sock *child);
bool smc_accept_queue_await(struct smc_listener *l);
void smc_accept_queue_moving(struct smc_listener *l, bool moving);
bool smc_accept_queue_admit(struct smc_listener *l, struct smc_sock *child);
void smc_accept_queue_put(struct smc_listener *l, struct smc_sock *child);

/* tcp_queue.c */

/* Kinds of first children of TCP's accept queue. */
enum smc_queue_head {
	SMC_HEAD_NONE,		/* the queue is empty */
	SMC_HEAD_TCP,		/* plain TCP */
	SMC_HEAD_LOCAL,		/* SMC, and its client, in this kernel, has connected it */
	SMC_HEAD_SMC,		/* it needs a handshake */
	SMC_HEAD_UNDECIDED,	/* its client, in this namespace, has not decided yet */
};

enum smc_queue_head smc_accept_queue_head(const struct smc_listener *l);
bool smc_accept_queue_plain_next(const struct smc_listener *l);
void smc_accept_queue_arrive(struct smc_listener *l, struct smc_sock *child);
void smc_accept_queue_uncount(struct smc_listener *l);

/* dequeue.c */
int smc_listen_dequeue(struct socket *lsock, struct socket *sock);

/* listen.c */
void smc_listen_drain(struct smc_listener *l, unsigned long delay);
void smc_listen_drop(struct smc_sock *child);

#endif
