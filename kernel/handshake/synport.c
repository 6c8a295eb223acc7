// SPDX-License-Identifier: GPL-2.0-only
/*
 * Listeners, as the hooks find them, and the number of handshakes that each may have.
 *
 * One table has the listeners of all namespaces, by their sock. One user may have thousands, perhaps on one port, and softirqs
 * look for one with each SYN-ACK and each promise that ends: the table grows, so that finding one takes the same time however
 * many there are. A listener enters the table before it listens first, where an allocation may fail, and leaves it when its
 * struct smc_sock goes.
 *
 * A connection counts from the SYN-ACK with the option until the end of its handshake. These connections
 * get at most half of the listener's backlog, so that peers which ask for SMC and then stay silent leave
 * room for plain TCP connections.
 */

#include <linux/rhashtable.h>
#include <net/inet_connection_sock.h>
#include <net/inet_sock.h>
#include <net/sock.h>

#include "../net.h"
#include "synopt.h"

/* Entries of one listener in the table of promises, which has four times as many. */
#define PROMISES_MAX 4096

static struct rhashtable listeners;

static const struct rhashtable_params params = {
	.head_offset		= offsetof(struct smc_synopt_port, node),
	.key_offset		= offsetof(struct smc_synopt_port, sk),
	.key_len		= sizeof_field(struct smc_synopt_port, sk),
	.automatic_shrinking	= true,
};

static struct smc_synopt_net *port_net(const struct smc_synopt_port *port)
{
	return smc_net(sock_net(port->sk))->synopt;
}

/* smc_synopt_init() - at load. Return: 0 or -ENOMEM. */
int __init smc_synopt_init(void)
{
	return rhashtable_init(&listeners, &params);
}

/* smc_synopt_exit() - at unload, when no socket is left. */
void smc_synopt_exit(void)
{
	might_sleep();
	rhashtable_destroy(&listeners);
}

/* Returns the number of listeners on ports with the hash of this one. */
static unsigned int *count_of(struct smc_synopt_net *so, u16 port)
{
	return &so->ports[port % SMC_SYNOPT_PORTS];
}

/*
 * smc_synopt_port_used() - may a listener of ours be on a port? If not, the hook has less to do. True of a port without one,
 * if there is one on another port with the same hash. Any context.
 */
bool smc_synopt_port_used(struct smc_synopt_net *so, u16 port)
{
	return READ_ONCE(*count_of(so, port));
}

/* smc_synopt_port_of() - what the hooks know of a sock that listens. Return: NULL if it is no listener of ours. */
struct smc_synopt_port *smc_synopt_port_of(const struct sock *lsk)
{
	struct smc_synopt_port *port = rhashtable_lookup(&listeners, &lsk, params);

	RCU_LOCKDEP_WARN(!rcu_read_lock_held(), "smc_synopt_port_of() outside of an RCU section");
	return port && smp_load_acquire(&port->id) ? port : NULL; /* pairs with smc_synopt_port_open(): `port` is set */
}

/* smc_synopt_port_find() - a listener that has made a promise. Return: NULL if it has been closed. */
struct smc_synopt_port *smc_synopt_port_find(const struct smc_syn_listener *listener)
{
	struct smc_synopt_port *port = rhashtable_lookup(&listeners, &listener->sk, params);

	RCU_LOCKDEP_WARN(!rcu_read_lock_held(), "smc_synopt_port_find() outside of an RCU section");
	return port && READ_ONCE(port->id) == listener->id ? port : NULL;
}

/*
 * smc_synopt_port_register() - has the hooks find a sock, which does not listen yet, unless they do already. One caller at a
 * time. Return: 0 or -ENOMEM.
 */
int smc_synopt_port_register(struct smc_synopt_port *port, struct sock *sk, const struct smc_synopt_sock *opt)
{
	if (port->registered)
		return 0;
	port->sk = sk;
	port->opt = opt;
	if (rhashtable_insert_fast(&listeners, &port->node, params))
		return -ENOMEM;
	port->registered = true;
	return 0;
}

/*
 * smc_synopt_port_unregister() - undoes smc_synopt_port_register(), if it was called, before the sock is put. Hooks may look at
 * the port for a grace period. Any context but hardirq.
 */
void smc_synopt_port_unregister(struct smc_synopt_port *port)
{
	if (port->registered)
		rhashtable_remove_fast(&listeners, &port->node, params);
	port->registered = false;
}

/* smc_synopt_port_open() - a listener begins to listen. Its port is bound. Does not sleep. */
void smc_synopt_port_open(struct smc_synopt_port *port)
{
	struct smc_synopt_net *so = port_net(port);
	static atomic64_t ids;
	unsigned int *count;

	spin_lock_bh(&so->ports_lock);
	WRITE_ONCE(port->port, inet_sk(port->sk)->inet_num);
	port->reserved = 0;
	port->promises = 0;
	smp_store_release(&port->id, atomic64_inc_return(&ids)); /* pairs with smc_synopt_port_of() */
	count = count_of(so, port->port);
	WRITE_ONCE(*count, *count + 1);
	spin_unlock_bh(&so->ports_lock);
}

/* smc_synopt_port_close() - undoes smc_synopt_port_open(). Does not sleep. */
void smc_synopt_port_close(struct smc_synopt_port *port)
{
	struct smc_synopt_net *so = port_net(port);
	unsigned int *count;

	spin_lock_bh(&so->ports_lock);
	WRITE_ONCE(port->id, 0);
	count = count_of(so, port->port);
	WRITE_ONCE(*count, *count - 1);
	spin_unlock_bh(&so->ports_lock);
}

/*
 * smc_synopt_port_full() - is the backlog full, counting the connections that have left TCP's queue? TCP counts
 * only those in its queue.
 */
bool smc_synopt_port_full(const struct smc_synopt_port *port)
{
	struct request_sock_queue *queue = &inet_csk(port->sk)->icsk_accept_queue;
	u64 max = READ_ONCE(port->sk->sk_max_ack_backlog), n;

	RCU_LOCKDEP_WARN(!rcu_read_lock_held(), "smc_synopt_port_full() outside of an RCU section");
	/* One that leaves TCP's queue between the two reads may be missing. */
	n = (u64)READ_ONCE(port->sk->sk_ack_backlog) + atomic_read(&port->held);
	if (n < max)
		return false;
	spin_lock_bh(&queue->rskq_lock);
	n = (u64)port->sk->sk_ack_backlog + atomic_read(&port->held);
	/* One that is about to leave is in both. */
	if (queue->rskq_accept_head && queue->rskq_accept_head->sk == port->leaving)
		n--;
	spin_unlock_bh(&queue->rskq_lock);
	return n > max;
}

/*
 * smc_synopt_port_leave() - the first connection of TCP's queue is about to leave it: from now on it counts as one that has left, so that
 * it counts all the time, and once. NULL if it has left, or stays; the caller knows how it counts then. Does not sleep.
 */
void smc_synopt_port_leave(struct smc_synopt_port *port, const struct sock *child)
{
	lockdep_assert_held(&inet_csk(port->sk)->icsk_accept_queue.rskq_lock);
	port->leaving = child;
	if (child)
		smc_synopt_port_hold(port, 1);
}

/*
 * smc_synopt_port_hold() - adds @n to the number of connections that have left TCP's queue and count for the
 * backlog. Any context.
 */
void smc_synopt_port_hold(struct smc_synopt_port *port, int n)
{
	atomic_add(n, &port->held);
	atomic_add(n, &port_net(port)->moves);
}

/* Is there room for one more handshake? A backlog of 0 takes one connection, and so one handshake. */
static bool has_room(const struct smc_synopt_port *port)
{
	unsigned int backlog = READ_ONCE(port->sk->sk_max_ack_backlog);

	lockdep_assert_held(&port_net(port)->ports_lock);
	/* As an unsigned number, a negative backlog is the largest one. */
	return port->reserved < max(backlog / 2 + backlog % 2, 1U);
}

/*
 * smc_synopt_promise() - reserves a place for a connection whose SYN-ACK will have the option. Does not sleep.
 * Return: the listener's identifier, or 0 if there is no room or the listener has been closed.
 */
u64 smc_synopt_promise(struct smc_synopt_net *so, struct smc_synopt_port *port)
{
	u64 id = 0;

	spin_lock_bh(&so->ports_lock);
	if (port->id && has_room(port) && port->promises < PROMISES_MAX) {
		port->reserved++;
		port->promises++;
		id = port->id;
	}
	spin_unlock_bh(&so->ports_lock);
	return id;
}

/*
 * smc_synopt_promise_end() - undoes smc_synopt_promise(), unless the listener has been closed meanwhile.
 * @promise: the entry in the table is gone; @reserved: the reserved place is free. Any context but hardirq.
 */
void smc_synopt_promise_end(struct smc_synopt_net *so, const struct smc_syn_listener *listener, bool promise, bool reserved)
{
	struct smc_synopt_port *port;

	rcu_read_lock();
	spin_lock_bh(&so->ports_lock);
	port = smc_synopt_port_find(listener);
	if (port && promise && !WARN_ON_ONCE(!port->promises))
		port->promises--;
	if (port && reserved && port->reserved)
		port->reserved--;
	spin_unlock_bh(&so->ports_lock);
	rcu_read_unlock();
}

/*
 * smc_synopt_reserve() - reserves a place for a child that has lost its own, because its client took long to
 * acknowledge the SYN-ACK. Does not sleep. Return: false if there is no room.
 */
bool smc_synopt_reserve(struct smc_synopt_port *port)
{
	struct smc_synopt_net *so = port_net(port);
	bool room;

	spin_lock_bh(&so->ports_lock);
	room = has_room(port);
	if (room)
		port->reserved++;
	spin_unlock_bh(&so->ports_lock);
	return room;
}

/* smc_synopt_unreserve() - the handshake of a child is over. Does not sleep. */
void smc_synopt_unreserve(struct smc_synopt_port *port)
{
	struct smc_synopt_net *so = port_net(port);

	spin_lock_bh(&so->ports_lock);
	/* A place that was reserved before listening ended and began again does not count any more. */
	if (port->reserved)
		port->reserved--;
	spin_unlock_bh(&so->ports_lock);
}
