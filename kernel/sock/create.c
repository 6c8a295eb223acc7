// SPDX-License-Identifier: GPL-2.0-only
/* Creating SMC sockets: socket(AF_SMC, …) and socket(AF_INET|AF_INET6, SOCK_STREAM, IPPROTO_SMC). */

#include <linux/in.h>
#include <net/protocol.h>
#include <net/tcp.h>
#include <net/transp_v6.h>

#include "../uapi/smc_uapi.h"
#include "sock.h"

/*
 * Puts a new TCP sock into a socket. __sock_create() makes it in a socket of its own, so that security modules,
 * control groups and the namespace handle it as any TCP sock; then it moves.
 */
static int create_tcp(struct net *net, struct socket *sock, enum smc_ipv ipv, int kern)
{
	int family = ipv == SMC_IPV6 ? AF_INET6 : AF_INET;
	struct socket *tmp;
	struct sock *sk;
	int rc;

	rc = __sock_create(net, family, SOCK_STREAM, IPPROTO_TCP, &tmp, kern);
	if (rc)
		return rc;
	sk = tmp->sk;
	smc_sock_copy_zc(tmp, sock);
	tmp->sk = NULL;
	sock_graft(sk, sock);
	sock_release(tmp);
	return 0;
}

static int create_socket(struct net *net, struct socket *sock, int protocol, int kern)
{
	enum smc_ipv ipv = protocol == SMCPROTO_SMC6 ? SMC_IPV6 : SMC_IPV4;
	struct smc_sock *smc;
	int rc;

	if (sock->type != SOCK_STREAM)
		return -ESOCKTNOSUPPORT;
	if (protocol != SMCPROTO_SMC && protocol != SMCPROTO_SMC6)
		return -EPROTONOSUPPORT;
	sock->state = SS_UNCONNECTED;
	rc = create_tcp(net, sock, ipv, kern);
	if (rc)
		return rc;
	smc = smc_table_new(sock->sk, GFP_KERNEL);
	if (!smc) {
		smc_ops_of_tcp(sock->sk)->release(sock);
		return -ENOMEM;
	}
	smc_table_add(smc);
	sock->ops = &smc_ops[ipv];
	return 0;
}

static const struct net_proto_family family = {
	.family	= PF_SMC,
	.owner	= THIS_MODULE,
	.create	= create_socket,
};

/*
 * With IPPROTO_SMC the kernel allocates the sock, from a struct proto of ours. That is TCP's, except for init,
 * which makes the sock an ordinary TCP one: nothing of ours is left in it when it outlives its socket in FIN-WAIT
 * or TIME-WAIT.
 */
static struct proto prots[SMC_IPVS];

static int init_as_tcp(struct sock *sk, struct proto *tcp)
{
	sk->sk_prot = tcp;
	sk->sk_prot_creator = tcp;
	sk->sk_protocol = IPPROTO_TCP;
	return tcp->init(sk);
}

static int init4(struct sock *sk)
{
	return init_as_tcp(sk, &tcp_prot);
}

static struct inet_protosw protosw4 = {
	.type		= SOCK_STREAM,
	.protocol	= IPPROTO_SMC,
	.prot		= &prots[SMC_IPV4],
	.ops		= &smc_ops[SMC_IPV4],
	.flags		= INET_PROTOSW_ICSK,
};

#if IS_ENABLED(CONFIG_IPV6)
static int init6(struct sock *sk)
{
	return init_as_tcp(sk, &tcpv6_prot);
}

static struct inet_protosw protosw6 = {
	.type		= SOCK_STREAM,
	.protocol	= IPPROTO_SMC,
	.prot		= &prots[SMC_IPV6],
	.ops		= &smc_ops[SMC_IPV6],
	.flags		= INET_PROTOSW_ICSK,
};

static int __init register6(void)
{
	prots[SMC_IPV6] = tcpv6_prot;
	prots[SMC_IPV6].init = init6;
	strscpy(prots[SMC_IPV6].name, "SMC6", sizeof(prots[SMC_IPV6].name));
	return inet6_register_protosw(&protosw6);
}

static void unregister6(void)
{
	inet6_unregister_protosw(&protosw6);
}
#else
static int __init register6(void)
{
	return 0;
}

static void unregister6(void)
{
}
#endif

/* smc_create_init() - from here on sockets can be created. Return: 0 or a negative errno. */
int __init smc_create_init(void)
{
	int rc;

	might_sleep();
	prots[SMC_IPV4] = tcp_prot;
	prots[SMC_IPV4].init = init4;
	strscpy(prots[SMC_IPV4].name, "SMC", sizeof(prots[SMC_IPV4].name));
	/* The calls that may fail come first: a socket, once created, keeps pointing to this module. */
	rc = sock_register(&family);
	if (rc)
		return rc;
	rc = register6();
	if (rc) {
		sock_unregister(PF_SMC);
		return rc;
	}
	inet_register_protosw(&protosw4);
	return 0;
}

/* smc_create_exit() - from here on no socket can be created. */
void smc_create_exit(void)
{
	might_sleep();
	sock_unregister(PF_SMC);
	unregister6();
	inet_unregister_protosw(&protosw4);
}
