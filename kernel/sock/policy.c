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
#include <net/ipv6.h>

#include "../conn/conn.h"
#include "../policy/policy.h"
#include "../wire/reason.h"
#include "sock.h"

/* Of a socket of TCP that may become SMC. */
static struct proto_ops undecided_ops[SMC_IPVS] __ro_after_init;

static struct proto_ops *undecided(const struct sock *sk)
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
		WRITE_ONCE(sock->ops, undecided(sock->sk));
}

/*
 * Has the address a family and length that TCP would connect to? Sets how it is written in rules: TCP takes the address "any" for that
 * of the loopback interface.
 */
static bool peer_of(const struct sock *sk, const smc_sockaddr_t *addr, int len, struct in6_addr *peer, u16 *port)
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

/* Asks the rules about a socket that is to connect. Return: false for an address that TCP refuses. */
static bool ask_connect(struct socket *sock, const smc_sockaddr_t *addr, int len, enum smc_policy_verdict *verdict,
			struct smc_policy_entry **entry)
{
	struct smc_policy_use use = { .role = SMC_POLICY_CONNECTS, .local = READ_ONCE(inet_sk(sock->sk)->inet_num) };
	struct in6_addr peer;

	if (!peer_of(sock->sk, addr, len, &peer, &use.remote))
		return false;
	use.addr = peer.s6_addr;
	*verdict = smc_policy_decide(sock, &use, entry);
	return true;
}

static enum smc_policy_verdict ask_listen(struct socket *sock, struct smc_policy_entry **entry)
{
	const struct smc_policy_use use = { .role = SMC_POLICY_LISTENS, .local = READ_ONCE(inet_sk(sock->sk)->inet_num) };

	return smc_policy_decide(sock, &use, entry);
}

/* Makes a socket TCP if the verdict says so, or, if a rule has made it SMC, unless one says SMC. The rule, if any, counts what follows. */
static void apply(struct smc_sock *smc, struct socket *sock, enum smc_policy_verdict verdict, struct smc_policy_entry *entry)
{
	struct smc_policy_entry *old;

	if (entry)
		atomic64_inc(&entry->decisions);
	spin_lock_bh(&smc->lock);
	old = smc->rule;
	smc->rule = entry;
	spin_unlock_bh(&smc->lock);
	smc_policy_put(old);
	if (verdict == SMC_POLICY_TCP || (verdict == SMC_POLICY_NONE && READ_ONCE(smc->converted)))
		smc_fallback_take(smc, sock, SMC_PHASE_OPEN, SMC_REASON_POLICY, 0);
}

/* smc_policy_connect() - evaluates the rules for an SMC socket that is to connect, and is OPEN. May sleep. */
void smc_policy_connect(struct smc_sock *smc, struct socket *sock, const smc_sockaddr_t *addr, int len)
{
	enum smc_policy_verdict verdict;
	struct smc_policy_entry *entry;

	lockdep_assert_held(&smc->state_mutex);
	if (ask_connect(sock, addr, len, &verdict, &entry))
		apply(smc, sock, verdict, entry);
}

/* smc_policy_listen() - the same for one that is to listen. May sleep. */
void smc_policy_listen(struct smc_sock *smc, struct socket *sock)
{
	struct smc_policy_entry *entry;
	enum smc_policy_verdict verdict = ask_listen(sock, &entry);

	lockdep_assert_held(&smc->state_mutex);
	if (entry && verdict == SMC_POLICY_TCP) {
		/* There is no connection to count. */
		atomic64_inc(&entry->decisions);
		smc_policy_put(entry);
		entry = NULL;
	}
	apply(smc, sock, verdict, entry);
}

/* Gives an undecided socket other operations, unless another thread has done so. Return: what it has now. */
static const struct proto_ops *become(struct socket *sock, const struct proto_ops *ops)
{
	cmpxchg(&sock->ops, (const struct proto_ops *)undecided(sock->sk), ops);
	return READ_ONCE(sock->ops);
}

static const struct proto_ops *become_tcp(struct socket *sock)
{
	return become(sock, smc_ops_after(sock->sk));
}

/*
 * An undecided socket becomes SMC or TCP. For one that becomes SMC, its own operations evaluate the rules again, and count. Takes over
 * the reference. Return: the socket's operations.
 */
static const struct proto_ops *settle(struct socket *sock, enum smc_policy_verdict verdict, struct smc_policy_entry *entry, bool connects)
{
	struct smc_sock *smc = verdict == SMC_POLICY_SMC ? smc_table_make(sock) : NULL;

	if (entry && !smc) {
		atomic64_inc(&entry->decisions);
		if (connects)
			atomic64_inc(&entry->conns_tcp);
	}
	smc_policy_put(entry);
	if (!smc)
		return become_tcp(sock);
	WRITE_ONCE(smc->converted, true);
	return become(sock, smc_ops_open(sock->sk));
}

/* connect(2) of an undecided socket. May sleep. Return: as TCP would. */
static int undecided_connect(struct socket *sock, smc_sockaddr_t *addr, int len, int flags)
{
	enum smc_policy_verdict verdict;
	struct smc_policy_entry *entry;

	if (ask_connect(sock, addr, len, &verdict, &entry))
		return settle(sock, verdict, entry, true)->connect(sock, addr, len, flags);
	/* It fails or, for AF_UNSPEC, disconnects what another thread may have connected. */
	return smc_table_of(sock) ? smc_connect(sock, addr, len, flags) : smc_ops_of_tcp(sock->sk)->connect(sock, addr, len, flags);
}

/* listen(2) of an undecided socket. May sleep. Return: as TCP would. */
static int undecided_listen(struct socket *sock, int backlog)
{
	struct smc_policy_entry *entry;
	enum smc_policy_verdict verdict = ask_listen(sock, &entry);

	return settle(sock, verdict, entry, false)->listen(sock, backlog);
}

/* sendmsg(2) of an undecided socket: data in a SYN are TCP's. May sleep. Return: as TCP would. */
static int undecided_sendmsg(struct socket *sock, struct msghdr *msg, size_t len)
{
	if (msg->msg_flags & MSG_FASTOPEN)
		return become_tcp(sock)->sendmsg(sock, msg, len);
	return smc_io_sendmsg(sock, msg, len);
}

/* setsockopt(2) of an undecided socket, which an option that SMC cannot keep makes TCP. May sleep. Return: as TCP would. */
static int undecided_setsockopt(struct socket *sock, int level, int name, sockptr_t val, unsigned int len)
{
	int rc;

	if (smc_sockopt_takes_over(level, name))
		return become_tcp(sock)->setsockopt(sock, level, name, val, len);
	rc = smc_sockopt_set_tcp(sock, level, name, val, len);
	if (!rc && smc_sockopt_excludes(level, name, val))
		become_tcp(sock);
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

/* smc_policy_inherit() - the rule of a listener counts its children, too. Of a fresh child. Any context but hardirq. */
void smc_policy_inherit(struct smc_sock *child, struct smc_sock *lsmc)
{
	spin_lock_bh(&lsmc->lock);
	child->rule = lsmc->rule;
	if (child->rule)
		smc_policy_get(child->rule);
	spin_unlock_bh(&lsmc->lock);
}

/* smc_policy_count() - the outcome of a connection is known. The rule does not change meanwhile: no thread connects or listens. */
void smc_policy_count(const struct smc_sock *smc, bool is_smc)
{
	if (smc->rule)
		atomic64_inc(is_smc ? &smc->rule->conns_smc : &smc->rule->conns_tcp);
}

/* smc_policy_count_bytes() - the connection of a socket, if it has one, is over. Nobody changes the rule meanwhile. Any context. */
void smc_policy_count_bytes(const struct smc_sock *smc, const struct smc_conn *conn)
{
	if (smc->rule && conn)
		atomic64_add(READ_ONCE(conn->tx_prod) + READ_ONCE(conn->rx_prod), &smc->rule->bytes);
}
