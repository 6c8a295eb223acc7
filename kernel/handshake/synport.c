// SPDX-License-Identifier: GPL-2.0-only
/*
 * Listeners by their port, as the hooks find them, and the number of handshakes that each may have.
 *
 * A connection counts from the SYN-ACK with the option until the end of its handshake. These connections
 * get at most half of the listener's backlog, so that peers which ask for SMC and then stay silent leave
 * room for plain TCP connections.
 */

#include <net/inet_sock.h>
#include <net/sock.h>

#include "../net.h"
#include "synopt.h"

/* Entries of one listener in the table of promises, which has four times as many. */
#define PROMISES_MAX 4096

static struct smc_synopt_net *net_of(const struct smc_synopt_port *port)
{
	return smc_net(sock_net(port->sk))->synopt;
}

/*
 * smc_synopt_port_find() - a listener on a port; with @id the one of that identifier. Under RCU.
 * Return: NULL if there is none.
 */
struct smc_synopt_port *smc_synopt_port_find(struct smc_synopt_net *so, u16 port, u64 id)
{
	struct smc_synopt_port *p;

	hlist_for_each_entry_rcu(p, &so->ports[port % SMC_SYNOPT_PORTS], node,
				 lockdep_is_held(&so->ports_lock))
		if (p->port == port && (!id || p->id == id))
			return p;
	return NULL;
}

/* smc_synopt_port_of() - the port that a sock listens on. Under RCU. Return: NULL if it is no listener of ours. */
struct smc_synopt_port *smc_synopt_port_of(const struct sock *lsk)
{
	struct smc_synopt_net *so = smc_net(sock_net(lsk))->synopt;
	struct smc_synopt_port *p;

	hlist_for_each_entry_rcu(p, &so->ports[READ_ONCE(inet_sk(lsk)->inet_num) % SMC_SYNOPT_PORTS], node)
		if (p->sk == lsk)
			return p;
	return NULL;
}

/*
 * smc_synopt_port_add() - lets the hooks know of a listener. Its port is bound. Does not sleep.
 */
void smc_synopt_port_add(struct smc_synopt_port *port, struct sock *sk, const struct smc_synopt_sock *opt)
{
	struct smc_synopt_net *so = smc_net(sock_net(sk))->synopt;
	static atomic64_t ids;

	spin_lock_bh(&so->ports_lock);
	port->sk = sk;
	port->opt = opt;
	port->id = atomic64_inc_return(&ids);
	port->port = inet_sk(sk)->inet_num;
	port->reserved = 0;
	port->promises = 0;
	hlist_add_head_rcu(&port->node, &so->ports[port->port % SMC_SYNOPT_PORTS]);
	spin_unlock_bh(&so->ports_lock);
}

/*
 * smc_synopt_port_del() - undoes smc_synopt_port_add(); hooks may look at the port for a grace
 * period. Does not sleep.
 */
void smc_synopt_port_del(struct smc_synopt_port *port)
{
	struct smc_synopt_net *so = net_of(port);

	spin_lock_bh(&so->ports_lock);
	hlist_del_init_rcu(&port->node);
	spin_unlock_bh(&so->ports_lock);
}

/*
 * smc_synopt_port_full() - is the backlog full, counting the connections that have left TCP's queue? TCP counts
 * only those in its queue. Under RCU.
 */
bool smc_synopt_port_full(const struct smc_synopt_port *port)
{
	const struct sock *sk = port->sk;

	return (u64)READ_ONCE(sk->sk_ack_backlog) + atomic_read(&port->held) > READ_ONCE(sk->sk_max_ack_backlog);
}

/*
 * smc_synopt_port_hold() - adds @n to the number of connections that have left TCP's queue and count for the
 * backlog. Any context.
 */
void smc_synopt_port_hold(struct smc_synopt_port *port, int n)
{
	atomic_add(n, &port->held);
	atomic_add(n, &net_of(port)->held);
}

/* Is there room for one more handshake? A backlog of 0 takes one connection, and so one handshake. */
static bool has_room(const struct smc_synopt_port *port)
{
	unsigned int backlog = READ_ONCE(port->sk->sk_max_ack_backlog);

	lockdep_assert_held(&net_of(port)->ports_lock);
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
	if (!hlist_unhashed(&port->node) && has_room(port) && port->promises < PROMISES_MAX) {
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
void smc_synopt_promise_end(struct smc_synopt_net *so, u16 port, u64 listener, bool promise, bool reserved)
{
	struct smc_synopt_port *p;

	spin_lock_bh(&so->ports_lock);
	p = smc_synopt_port_find(so, port, listener);
	if (p && promise && !WARN_ON_ONCE(!p->promises))
		p->promises--;
	if (p && reserved && p->reserved)
		p->reserved--;
	spin_unlock_bh(&so->ports_lock);
}

/*
 * smc_synopt_reserve() - reserves a place for a child that has lost its own, because its client took long to
 * acknowledge the SYN-ACK. Does not sleep. Return: false if there is no room.
 */
bool smc_synopt_reserve(struct smc_synopt_port *port)
{
	struct smc_synopt_net *so = net_of(port);
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
	struct smc_synopt_net *so = net_of(port);

	spin_lock_bh(&so->ports_lock);
	/* A place that was reserved before listening ended and began again does not count any more. */
	if (port->reserved)
		port->reserved--;
	spin_unlock_bh(&so->ports_lock);
}
