// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sockets that the policy of their namespace decides about (policy/rules.h).
 *
 * A socket of TCP that may become SMC gets operations of ours as soon as it exists, from hook.c. What it is used for is known
 * when it is to connect or to listen: then it becomes an SMC socket, or TCP's again. Like a socket that has fallen back, it keeps
 * our release, because threads may be inside of operations of ours, and the socket is what holds the module. A socket that was
 * made for SMC keeps its operations unless the rules say TCP.
 */

#include <linux/module.h>
#include <linux/tcp.h>
#include <net/ipv6.h>

#include "../conn/conn.h"
#include "../net.h"
#include "../wire/reason.h"
#include "listener.h"

/* Of a socket of TCP that may become SMC. */
static struct proto_ops undecided_ops[SMC_IPVS] __ro_after_init;

static struct proto_ops *undecided_ops_of(const struct sock *sk)
{
	return &undecided_ops[READ_ONCE(sk->sk_family) == AF_INET6 ? SMC_IPV6 : SMC_IPV4];
}

/*
 * smc_policy_take() - a fresh socket of TCP gets our operations, if the rules may make it SMC. Does not sleep.
 *
 * The kernel has taken a reference on the module that the socket's operations belong to, which it drops when the socket is closed:
 * TCP's belong to none.
 */
void smc_policy_take(struct socket *sock)
{
	if (sock->ops == smc_ops_of_tcp(sock->sk) && smc_policy_converts(sock) && try_module_get(THIS_MODULE))
		WRITE_ONCE(sock->ops, undecided_ops_of(sock->sk));
}

/*
 * smc_policy_peer_of() - has an address a family and length that TCP would connect to? Sets how it is written in rules: TCP takes the
 * address "any" for that of the loopback interface. Any context.
 */
bool smc_policy_peer_of(const struct sock *sk, const smc_sockaddr_t *addr, int len, struct in6_addr *peer, u16 *port)
{
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)addr;
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)addr;

	if (len >= (int)sizeof(*v4) && addr->sa_family == AF_INET && sk->sk_family == AF_INET) {
		ipv6_addr_set_v4mapped(v4->sin_addr.s_addr ?: htonl(INADDR_LOOPBACK), peer);
		*port = ntohs(v4->sin_port);
		return true;
	}
	if (len < SIN6_LEN_RFC2133 || addr->sa_family != AF_INET6 || sk->sk_family != AF_INET6)
		return false;
	*peer = ipv6_addr_any(&v6->sin6_addr) ? in6addr_loopback : v6->sin6_addr;
	*port = ntohs(v6->sin6_port);
	return true;
}

/* Asks the rules about a socket that is to connect to @to. */
static enum smc_policy_verdict ask_connect(struct socket *sock, const struct smc_service_key *to, struct smc_policy_entry **entry)
{
	const struct smc_policy_use use = {
		.role = SMC_POLICY_CONNECTS, .local = READ_ONCE(inet_sk(sock->sk)->inet_num), .remote = to->port, .addr = to->addr.s6_addr,
	};

	return smc_policy_decide(sock, &use, entry);
}

/* Sets the rule that counts what follows, or for a listener the rules for its connections. Takes over the references. */
static void set_rules(struct smc_sock *smc, struct smc_policy_entry *entry, struct smc_policy_plan *plan)
{
	struct smc_policy_entry *old;

	lockdep_assert_held(&smc->state_mutex);
	/* Nobody else sets them: most sockets have none, and need no lock. */
	if (!entry && !plan && !smc->rule && !rcu_access_pointer(smc->plan))
		return;
	spin_lock_bh(&smc->lock);
	old = smc->rule;
	smc->rule = entry;
	plan = rcu_replace_pointer(smc->plan, plan, lockdep_is_held(&smc->lock));
	spin_unlock_bh(&smc->lock);
	smc_policy_put(old);
	smc_policy_plan_drop(plan);
}

/* Makes a socket TCP if the verdict says so, or, if a rule has made it SMC, unless one says SMC. The rule, if any, counts what follows. */
static void apply_verdict(struct smc_sock *smc, struct socket *sock, enum smc_policy_verdict verdict, struct smc_policy_entry *entry)
{
	lockdep_assert_held(&smc->state_mutex);
	if (entry)
		atomic64_inc(&entry->decisions);
	set_rules(smc, entry, NULL);
	if (verdict == SMC_POLICY_AUTO && smc_service_is_tcp(smc_net(sock_net(sock->sk)), &smc->service.key))
		verdict = SMC_POLICY_TCP;
	if (verdict == SMC_POLICY_TCP || (verdict == SMC_POLICY_NONE && READ_ONCE(smc->converted)))
		smc_fallback_take(smc, sock, SMC_PHASE_OPEN, SMC_REASON_POLICY, 0);
}

/* smc_policy_connect() - evaluates the rules for an SMC socket that is to connect to @to, and is OPEN. */
void smc_policy_connect(struct smc_sock *smc, struct socket *sock, const struct smc_service_key *to)
{
	enum smc_policy_verdict verdict;
	struct smc_policy_entry *entry;

	lockdep_assert_held(&smc->state_mutex);
	might_sleep();
	verdict = ask_connect(sock, to, &entry);
	smc->service.key = *to;
	apply_verdict(smc, sock, verdict, entry);
}

/* Counts a call of listen() for the rule that decides about all connections that no rule before it decides about, if there is one. */
static void count_listen(const struct smc_policy_plan *plan)
{
	struct smc_policy_entry *last = plan ? plan->entries[plan->n - 1] : NULL;

	if (last && !last->rule.n_nets)
		atomic64_inc(&last->decisions);
}

/*
 * smc_policy_listen() - the same for one that is to listen. It becomes TCP if all of its connections are. Return: 0 or
 * -ENOMEM.
 */
int smc_policy_listen(struct smc_sock *smc, struct socket *sock)
{
	struct smc_policy_plan *plan;
	int rc = smc_policy_plan_new(sock, &plan);

	lockdep_assert_held(&smc->state_mutex);
	might_sleep();
	if (rc == -ENOMEM)
		return rc;
	count_listen(plan);
	if (!rc && smc_policy_plan_has_smc(plan, !READ_ONCE(smc->converted))) {
		set_rules(smc, NULL, plan);
		return 0;
	}
	/* There is no connection to count. */
	smc_policy_plan_free(plan);
	set_rules(smc, NULL, NULL);
	smc_fallback_take(smc, sock, SMC_PHASE_OPEN, SMC_REASON_POLICY, 0);
	return 0;
}

/* Gives an undecided socket other operations, unless another thread has done so. Return: what it has now. */
static const struct proto_ops *become(struct socket *sock, const struct proto_ops *ops)
{
	cmpxchg(&sock->ops, (const struct proto_ops *)undecided_ops_of(sock->sk), ops);
	return READ_ONCE(sock->ops);
}

static const struct proto_ops *policy_become_tcp(struct socket *sock)
{
	return become(sock, smc_ops_after(sock->sk));
}

/*
 * An undecided socket becomes SMC: its own operations evaluate the rules again, and count. Return: the socket's operations; NULL without
 * memory.
 */
static const struct proto_ops *become_smc(struct socket *sock)
{
	struct smc_sock *smc = smc_table_make(sock);

	if (!smc)
		return NULL;
	WRITE_ONCE(smc->converted, true);
	return become(sock, smc_ops_open(sock->sk));
}

/* An undecided socket that is to connect becomes SMC or TCP. Takes over the reference. Return: its operations. */
static const struct proto_ops *settle(struct socket *sock, enum smc_policy_verdict verdict, struct smc_policy_entry *entry)
{
	bool may = verdict == SMC_POLICY_SMC || verdict == SMC_POLICY_AUTO;
	const struct proto_ops *ops = may ? become_smc(sock) : NULL;

	if (entry && !ops) {
		atomic64_inc(&entry->decisions);
		atomic64_inc(&entry->conns_tcp);
	}
	smc_policy_put(entry);
	return ops ?: policy_become_tcp(sock);
}

/* connect(2) of an undecided socket. Return: as TCP would. */
static int undecided_connect(struct socket *sock, smc_sockaddr_t *addr, int len, int flags)
{
	enum smc_policy_verdict verdict;
	struct smc_policy_entry *entry;
	struct smc_service_key to = {};

	might_sleep();
	if (smc_policy_peer_of(sock->sk, addr, len, &to.addr, &to.port)) {
		verdict = ask_connect(sock, &to, &entry);
		return settle(sock, verdict, entry)->connect(sock, addr, len, flags);
	}
	/* It fails or, for AF_UNSPEC, disconnects what another thread may have connected. */
	return smc_table_of(sock) ? smc_connect(sock, addr, len, flags) : smc_ops_of_tcp(sock->sk)->connect(sock, addr, len, flags);
}

/* listen(2) of an undecided socket. Return: as TCP would. */
static int undecided_listen(struct socket *sock, int backlog)
{
	const struct proto_ops *ops = NULL;
	struct smc_policy_plan *plan;

	might_sleep();
	if (!smc_policy_plan_new(sock, &plan) && smc_policy_plan_has_smc(plan, false))
		ops = become_smc(sock);
	if (!ops)
		count_listen(plan);
	smc_policy_plan_free(plan);
	return (ops ?: policy_become_tcp(sock))->listen(sock, backlog);
}

/* sendmsg(2) of an undecided socket: data in a SYN are TCP's. Return: as TCP would. */
static int undecided_sendmsg(struct socket *sock, struct msghdr *msg, size_t len)
{
	might_sleep();
	if (msg->msg_flags & MSG_FASTOPEN)
		return policy_become_tcp(sock)->sendmsg(sock, msg, len);
	return smc_io_sendmsg(sock, msg, len);
}

/* setsockopt(2) of an undecided socket, which an option that SMC cannot keep makes TCP. Return: as TCP would. */
static int undecided_setsockopt(struct socket *sock, int level, int name, sockptr_t val, unsigned int len)
{
	int rc;

	might_sleep();
	if (smc_sockopt_takes_over(level, name))
		return policy_become_tcp(sock)->setsockopt(sock, level, name, val, len);
	rc = smc_sockopt_set_tcp(sock, level, name, val, len);
	if (!rc && smc_sockopt_excludes(level, name, val))
		policy_become_tcp(sock);
	return rc;
}

/* smc_policy_fill_ops() - of undecided sockets, from those of sockets that are OPEN; at load. */
void __init smc_policy_fill_ops(enum smc_ipv ipv)
{
	struct proto_ops *ops = &undecided_ops[ipv];

	*ops = smc_ops[ipv];
	ops->connect = undecided_connect;
	ops->listen = undecided_listen;
	ops->sendmsg = undecided_sendmsg;
	ops->setsockopt = undecided_setsockopt;
}

/* May a connection of a listener be SMC? @entry: the rule that decides about it, or NULL; @port: of the listener. */
static bool is_admitted(const struct smc_sock *lsmc, const struct smc_policy_entry *entry, u16 port)
{
	const struct smc_service_key service = { .port = port, .server = 1 };

	if (!entry)
		return !READ_ONCE(lsmc->converted);
	if (entry->rule.verdict == SMC_POLICY_AUTO)
		return !smc_service_is_tcp(smc_net(sock_net(lsmc->sk)), &service);
	return entry->rule.verdict == SMC_POLICY_SMC;
}

/*
 * smc_policy_admits() - may a listener answer a SYN with the option? @peer: address of the client. From the hooks of the option, under
 * RCU.
 */
bool smc_policy_admits(const struct smc_synopt_port *port, const struct in6_addr *peer)
{
	const struct smc_sock *lsmc = container_of(port, struct smc_listener, port)->smc;

	return is_admitted(lsmc, smc_policy_plan_find(rcu_dereference(lsmc->plan), peer->s6_addr), port->port);
}

/* smc_policy_inherit() - a fresh child of a listener gets the rule that decides about it, which counts it. Any context but hardirq. */
void smc_policy_inherit(struct smc_sock *child, struct smc_sock *lsmc)
{
	if (rcu_access_pointer(lsmc->plan)) {
		struct in6_addr peer = smc_net_peer_addr(child->sk);

		rcu_read_lock();
		child->rule = smc_policy_plan_find(rcu_dereference(lsmc->plan), peer.s6_addr);
		if (child->rule)
			smc_policy_get(child->rule);
		rcu_read_unlock();
	}
	/* Not inet_num: a child that its peer has reset has given back its port. */
	child->service.key = (struct smc_service_key){ .port = ntohs(inet_sk(child->sk)->inet_sport), .server = 1 };
}

/*
 * smc_policy_child_reason() - returns why a child is TCP whose SYN was answered without the option. @otherwise: if it is not by the
 * rules. Of a child that has inherited. Any context.
 */
u32 smc_policy_child_reason(const struct smc_sock *child, const struct smc_sock *lsmc, u32 otherwise)
{
	return is_admitted(lsmc, child->rule, child->service.key.port) ? otherwise : SMC_REASON_POLICY;
}

/*
 * smc_policy_count() - the outcome of a connection is known. The rule does not change meanwhile: no thread connects or listens. A rule
 * that asks for the client's address decides about each connection of a listener; others have decided about the listener.
 */
void smc_policy_count(struct smc_sock *smc, bool is_smc)
{
	struct smc_policy_entry *rule = smc->rule;

	if (!rule)
		return;
	if (rule->rule.verdict == SMC_POLICY_AUTO && !smc->service.open)
		smc_service_begin(smc_net(sock_net(smc->sk)), &smc->service);
	atomic64_inc(is_smc ? &rule->conns_smc : &rule->conns_tcp);
	if (smc->server && rule->rule.n_nets)
		atomic64_inc(&rule->decisions);
}

/* smc_policy_count_bytes() - the connection of a socket, if it has one, is over. Nobody changes the rule meanwhile. Any context. */
void smc_policy_count_bytes(const struct smc_sock *smc, const struct smc_conn *conn)
{
	if (smc->rule && conn)
		atomic64_add(READ_ONCE(conn->tx_prod) + READ_ONCE(conn->rx_prod), &smc->rule->bytes);
}

/* Returns the bytes of a TCP connection, those that wait to be sent or acknowledged included; false if it was never established. */
static bool tcp_bytes(const struct smc_sock *smc, u64 *bytes)
{
	const struct tcp_sock *tp = tcp_sk(smc->sk);
	u64 acked = READ_ONCE(tp->bytes_acked), received = READ_ONCE(tp->bytes_received);

	*bytes = acked + received;
	/* Disconnecting sets all to zero but the sequence numbers. */
	if (*bytes)
		*bytes += (u32)(READ_ONCE(tp->write_seq) - READ_ONCE(tp->snd_una));
	/* A client's SYN counts. */
	return smc->server || acked;
}

/**
 * smc_policy_sample() - a connection is over; its service learns from it, if "auto" has decided
 * @smc: of the socket; the caller has it alone, or has its lock
 * @conn: its SMC connection, or NULL of TCP
 *
 * Before TCP closes or disconnects. Any context but hardirq.
 */
void smc_policy_sample(struct smc_sock *smc, const struct smc_conn *conn)
{
	bool established = true;
	u64 bytes;

	if (!smc->service.open)
		return;
	if (conn)
		bytes = READ_ONCE(conn->tx_prod) + READ_ONCE(conn->rx_prod);
	else
		established = tcp_bytes(smc, &bytes);
	smc_service_end(smc_net(sock_net(smc->sk)), &smc->service, established ? &bytes : NULL);
}

/*
 * smc_policy_end() - the last reference on a smc_sock goes; it may be of a child that was not accepted. The hooks do not find a listener
 * any more, but may still read its plan. Any context but hardirq.
 */
void smc_policy_end(struct smc_sock *smc)
{
	smc_policy_plan_drop(rcu_dereference_protected(smc->plan, true));
	if (smc->service.open)
		smc_service_end(smc_net(sock_net(smc->sk)), &smc->service, NULL);
}

/* smc_policy_free() - of a smc_sock that is about to be freed. Any context. */
void smc_policy_free(struct smc_sock *smc)
{
	smc_policy_put(smc->rule);
	smc->rule = NULL;
}
