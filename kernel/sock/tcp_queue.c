// SPDX-License-Identifier: GPL-2.0-only
/* TCP's accept queue: what its first child is, and how that counts for the backlog while it moves to our queue. */

#include <net/inet_connection_sock.h>

#include "listener.h"

static const enum smc_queue_head heads[] = {
	[SMC_SYN_NOTHING]	= SMC_HEAD_TCP,
	[SMC_SYN_SMC]		= SMC_HEAD_SMC,
	[SMC_SYN_UNDECIDED]	= SMC_HEAD_UNDECIDED,
};

/* Has the child's client, in this kernel, connected it? */
static bool child_is_local(const struct sock *sk)
{
	struct smc_sock *child = smc_table_find(sk);

	smc_table_put(child);
	return child != NULL;
}

/* Returns what the first child of TCP's accept queue, locked, is. */
static enum smc_queue_head locked_queue_head(struct request_sock_queue *queue)
{
	enum smc_queue_head head = SMC_HEAD_NONE;
	struct sock *sk;

	lockdep_assert_held(&queue->rskq_lock);
	if (queue->rskq_accept_head) {
		sk = queue->rskq_accept_head->sk;
		head = heads[smc_synopt_state(sk)];
		if (head == SMC_HEAD_TCP && child_is_local(sk))
			head = SMC_HEAD_LOCAL;
	}
	return head;
}

/* smc_accept_queue_head() - returns what the first child of TCP's accept queue is. Does not sleep. */
enum smc_queue_head smc_accept_queue_head(const struct smc_listener *l)
{
	struct request_sock_queue *queue = &inet_csk(l->smc->sk)->icsk_accept_queue;
	enum smc_queue_head head;

	if (!smc_listener_may_promise(l))
		return reqsk_queue_empty(queue) ? SMC_HEAD_NONE : SMC_HEAD_TCP;
	spin_lock_bh(&queue->rskq_lock);
	head = locked_queue_head(queue);
	spin_unlock_bh(&queue->rskq_lock);
	return head;
}

/* Can a child be taken out of TCP's queue? */
static bool can_leave(enum smc_queue_head head)
{
	return head == SMC_HEAD_TCP || head == SMC_HEAD_LOCAL || head == SMC_HEAD_SMC;
}

/**
 * smc_listen_leave() - begins to take the first child out of TCP's queue
 * @lsmc: the listener
 * @accept: for the application, which gets it at once if it is plain TCP; else for our queue
 *
 * Until smc_listen_left(), a child that may come into our queue counts for the backlog once, wherever it is. Does not sleep. Return: false
 * if there is no child, or it cannot be taken out yet.
 */
bool smc_listen_leave(struct smc_sock *lsmc, bool accept)
{
	struct request_sock_queue *queue = &inet_csk(lsmc->sk)->icsk_accept_queue;
	struct smc_listener *l = lsmc->listener;
	enum smc_queue_head head;

	lockdep_assert_held(&l->accept_mutex);
	if (!smc_listener_may_promise(l))
		return !reqsk_queue_empty(queue);
	spin_lock_bh(&l->lock);
	spin_lock(&queue->rskq_lock);
	head = locked_queue_head(queue);
	if (l->open && can_leave(head) && !(accept && head == SMC_HEAD_TCP)) {
		smc_synopt_port_leave(&l->port, queue->rskq_accept_head->sk);
		WRITE_ONCE(l->leaving, true);
	}
	spin_unlock(&queue->rskq_lock);
	spin_unlock_bh(&l->lock);
	return can_leave(head);
}

/* Ends the time in which a child leaves TCP's queue. @arrived: it goes on to count. Return: false if there is none. */
static bool end_leaving(struct smc_listener *l, bool arrived)
{
	struct request_sock_queue *queue = &inet_csk(l->smc->sk)->icsk_accept_queue;
	bool leaving = l->leaving;

	lockdep_assert_held(&l->lock);
	if (!leaving)
		return false;
	WRITE_ONCE(l->leaving, false);
	spin_lock(&queue->rskq_lock);
	smc_synopt_port_leave(&l->port, NULL);
	if (!arrived)
		smc_synopt_port_hold(&l->port, -1);
	spin_unlock(&queue->rskq_lock);
	return true;
}

/* smc_accept_queue_uncount() - no child of a listener, which is closed, counts any more. */
void smc_accept_queue_uncount(struct smc_listener *l)
{
	lockdep_assert_held(&l->lock);
	end_leaving(l, false);
	smc_synopt_port_hold(&l->port, -atomic_read(&l->port.held));
	l->deferred_n = 0;
}

/* smc_listen_left() - ends smc_listen_leave(): unless the child is in our queue, it does not count any more. Does not sleep. */
void smc_listen_left(struct smc_sock *lsmc)
{
	struct smc_listener *l = lsmc->listener;

	lockdep_assert_held(&l->accept_mutex);
	/* Only the owner of the mutex sets it. */
	if (!READ_ONCE(l->leaving))
		return;
	spin_lock_bh(&l->lock);
	end_leaving(l, false);
	spin_unlock_bh(&l->lock);
}

/* smc_accept_queue_arrive() - the child that has left TCP's queue is in ours, and goes on to count for the backlog. */
void smc_accept_queue_arrive(struct smc_listener *l, struct smc_sock *child)
{
	lockdep_assert_held(&l->lock);
	if (end_leaving(l, true))
		child->held = true;
	else
		smc_accept_queue_hold(l, child);
}

/* smc_accept_queue_plain_next() - is the first child of TCP's queue plain TCP? Does not sleep. */
bool smc_accept_queue_plain_next(const struct smc_listener *l)
{
	return smc_accept_queue_head(l) == SMC_HEAD_TCP;
}

/* smc_listen_pending() - can the first child of TCP's queue be taken out? Does not sleep. */
bool smc_listen_pending(const struct smc_sock *lsmc)
{
	return can_leave(smc_accept_queue_head(lsmc->listener));
}
