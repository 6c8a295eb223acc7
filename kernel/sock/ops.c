// SPDX-License-Identifier: GPL-2.0-only
/* The tables of operations for sock->ops. Each is a copy of TCP's on this kernel, and differs where SMC must. */

#include <linux/fs.h>
#include <linux/file.h>

#include "sock.h"

/* Of a socket without an outcome, and of a listener. */
struct proto_ops smc_ops[SMC_IPVS] __ro_after_init;
/* Of a socket that has fallen back. The functions that move data are TCP's. */
static struct proto_ops after_ops[SMC_IPVS] __ro_after_init;

/* Of one whose data a transport moves. */
static struct proto_ops active_ops[SMC_IPVS] __ro_after_init;

static const struct proto_ops *tcp_ops[SMC_IPVS] __ro_after_init;

SMC_COMPAT_ACCEPT_WRAP(smc_accept)
SMC_COMPAT_ACCEPT_WRAP(smc_accept_fallback)

static enum smc_ipv ops_ipv(const struct sock *sk)
{
	return READ_ONCE(sk->sk_family) == AF_INET6 ? SMC_IPV6 : SMC_IPV4;
}

/* smc_ops_of_tcp() - TCP's own operations for a sock. Any context. */
const struct proto_ops *smc_ops_of_tcp(const struct sock *sk)
{
	return tcp_ops[ops_ipv(sk)];
}

/* smc_ops_after() - our operations for a sock that has fallen back. Any context. */
struct proto_ops *smc_ops_after(const struct sock *sk)
{
	return &after_ops[ops_ipv(sk)];
}

/* smc_ops_active() - our operations for a sock with a connection. Any context. */
struct proto_ops *smc_ops_active(const struct sock *sk)
{
	return &active_ops[ops_ipv(sk)];
}

/* smc_ops_open() - our operations for a sock without an outcome. Any context. */
struct proto_ops *smc_ops_open(const struct sock *sk)
{
	return &smc_ops[ops_ipv(sk)];
}

static void __init fill_active_ops(struct proto_ops *ops, const struct proto_ops *tcp)
{
	*ops = *tcp;
	ops->owner = THIS_MODULE;
	ops->release = smc_release;
	ops->connect = smc_active_connect;
	/* By the time it runs, another thread may have disconnected the socket, and made it a listener. */
	smc_compat_ops_accept(ops, smc_accept);
	ops->listen = smc_listen;
	ops->shutdown = smc_active_shutdown;
	ops->getname = smc_active_getname;
	ops->poll = smc_active_poll;
	ops->ioctl = smc_active_ioctl;
	ops->setsockopt = smc_active_setsockopt;
	smc_compat_ops_getsockopt(ops, smc_active_getsockopt);
	ops->sendmsg = smc_active_sendmsg;
	ops->recvmsg = smc_active_recvmsg;
	ops->splice_read = smc_active_splice_read;
	ops->set_rcvlowat = smc_active_set_rcvlowat;
	smc_compat_ops_splice_eof(ops, smc_active_splice_eof);
	smc_compat_ops_sendpage(ops);
	/* These would use TCP's data. */
	ops->mmap = sock_no_mmap;
	ops->read_sock = NULL;
	ops->read_skb = NULL;
	ops->peek_len = NULL;
	smc_compat_ops_locked(ops);
}

static void __init fill_ops(enum smc_ipv ipv)
{
	struct proto_ops *ops = &smc_ops[ipv], *after = &after_ops[ipv];

	*ops = *tcp_ops[ipv];
	ops->owner = THIS_MODULE;
	ops->release = smc_release;
	ops->connect = smc_connect;
	smc_compat_ops_accept(ops, smc_accept);
	ops->listen = smc_listen;
	ops->shutdown = smc_io_shutdown;
	ops->poll = smc_io_poll;
	ops->getname = smc_io_getname;
	ops->ioctl = smc_io_ioctl;
	ops->setsockopt = smc_sockopt_set;
	smc_compat_ops_getsockopt(ops, smc_sockopt_get);
	ops->sendmsg = smc_io_sendmsg;
	ops->recvmsg = smc_io_recvmsg;
	ops->splice_read = smc_io_splice_read;
	smc_compat_ops_sendpage(ops);
	/* These would read CLC messages. */
	ops->read_sock = NULL;
	ops->read_skb = NULL;

	smc_policy_fill_ops(ipv);
	fill_active_ops(&active_ops[ipv], tcp_ops[ipv]);

	*after = *tcp_ops[ipv];
	after->owner = THIS_MODULE;
	after->release = smc_release;
	after->setsockopt = smc_sockopt_set_tcp;
	smc_compat_ops_accept(after, smc_accept_fallback);
}

/* Copies TCP's operations from a socket, because not all kernels export those for IPv6. */
static int __init copy_tcp_ops(enum smc_ipv ipv, int family)
{
	struct socket *sock;
	int rc;

	rc = sock_create_kern(&init_net, family, SOCK_STREAM, IPPROTO_TCP, &sock);
	if (rc)
		return rc;
	tcp_ops[ipv] = sock->ops;
	sock_release(sock);
	fill_ops(ipv);
	return 0;
}

/* smc_ops_init() - at load. Return: 0 or the error of an IPv4 socket; a kernel may run without IPv6. */
int __init smc_ops_init(void)
{
	int rc;

	might_sleep();
	rc = copy_tcp_ops(SMC_IPV4, AF_INET);
	if (!rc && copy_tcp_ops(SMC_IPV6, AF_INET6)) {
		tcp_ops[SMC_IPV6] = tcp_ops[SMC_IPV4];
		fill_ops(SMC_IPV6);
	}
	return rc;
}
