// SPDX-License-Identifier: GPL-2.0-only
/*
 * The struct proto of a sock while a transport moves its data.
 *
 * io_uring does not always use sock->ops. SOCKET_URING_OP_SIOCINQ and SIOCOUTQ call
 * sk->sk_prot->ioctl(), which counts TCP's bytes, and zero-copy receive reads TCP's receive queue if
 * sk_prot->recvmsg() is TCP's. BPF programs that put the sock into a sockmap would move TCP's bytes,
 * too. None of these bytes are the application's. Therefore an ACTIVE socket has a copy of TCP's
 * struct proto in which these functions are ours.
 *
 * Why nothing keeps a pointer to the copy, or to our functions, when the module is unloaded:
 *
 * - smc_release() and smc_active_disconnect() restore TCP's struct proto before TCP closes or
 *   reuses the sock. TIME-WAIT and the slab cache use sk_prot_creator, which does not change.
 * - Children get the struct proto of their listener. An ACTIVE socket cannot listen: smc_listen().
 * - kTLS copies the struct proto that it finds, for all sockets of the host. An ACTIVE socket
 *   refuses TCP_ULP, and so does one that may become ACTIVE: smc_fallback_detach(). IPV6_ADDRFORM
 *   is refused, too.
 * - Sockmap code saves the struct proto that it finds, and copies it if it is one of IPv6, but calls
 *   psock_update_sk_prot() first. Ours fails. All of that happens under the sock's lock or its
 *   spin lock, of which smc_proto_restore() holds both.
 * - ioctl() and recvmsg() are called for an open file only, whose socket holds the module.
 * - Other readers of sk_prot read only fields and functions that are TCP's. Those in softirqs end
 *   before the smc_sock of the socket is freed by RCU. smc_proto_exit() waits for those that may be
 *   preempted, such as sock_diag_destroy().
 */

#include <linux/rcupdate.h>
#include <net/tcp.h>
#include <net/transp_v6.h>

#include "sock.h"

struct sk_psock;

static struct proto active_prots[SMC_IPVS] __ro_after_init;

static struct proto *tcp_prot_of(enum smc_ipv ipv)
{
#if IS_ENABLED(CONFIG_IPV6)
	if (ipv == SMC_IPV6)
		return &tcpv6_prot;
#endif
	return &tcp_prot;
}

/* IPV6_ADDRFORM, which changes the family, is refused while the copy is in use. */
static enum smc_ipv proto_ipv(const struct sock *sk)
{
	return READ_ONCE(sk->sk_family) == AF_INET6 ? SMC_IPV6 : SMC_IPV4;
}

#ifdef SMC_COMPAT_PROTO_IOCTL
static int active_ioctl(struct sock *sk, int cmd, int *karg)
{
	int rc = smc_active_count(sk, cmd);

	if (rc == -ENOIOCTLCMD)
		return tcp_prot_of(proto_ipv(sk))->ioctl(sk, cmd, karg);
	*karg = rc;
	return 0;
}
#endif

/*
 * The error queue is still TCP's. This is a function of ours because io_uring's zero-copy receive
 * compares pointers, and fails with -EPROTONOSUPPORT if this is not tcp_recvmsg().
 */
static int active_recvmsg(SMC_COMPAT_PROTO_RECVMSG_PARAMS)
{
	return tcp_prot_of(proto_ipv(sk))->recvmsg(SMC_COMPAT_PROTO_RECVMSG_ARGS);
}

#ifdef CONFIG_BPF_SYSCALL
/* The kernel drops a psock that is refused at once; then there is nothing to restore. */
static int active_psock_update(struct sock *sk, struct sk_psock *psock, bool restore)
{
	return restore ? 0 : -EOPNOTSUPP;
}
#endif

/**
 * smc_proto_install() - gives a sock the struct proto of ACTIVE sockets
 * @sk: the sock, which does not listen
 *
 * A sock that is in a sockmap already keeps its struct proto. Any context.
 */
void smc_proto_install(struct sock *sk)
{
	enum smc_ipv ipv = proto_ipv(sk);

	cmpxchg(&sk->sk_prot, tcp_prot_of(ipv), &active_prots[ipv]);
}

/**
 * smc_proto_restore() - gives a sock TCP's struct proto again, if it has that of ACTIVE sockets
 * @sk: the sock, on which smc_proto_install() cannot be called at the same time
 *
 * May sleep: takes the sock's lock, and its spin lock because BPF programs take only that.
 */
void smc_proto_restore(struct sock *sk)
{
	enum smc_ipv ipv = proto_ipv(sk);

	might_sleep();
	if (READ_ONCE(sk->sk_prot) != &active_prots[ipv])
		return;
	lock_sock(sk);
	spin_lock_bh(&sk->sk_lock.slock);
	cmpxchg(&sk->sk_prot, &active_prots[ipv], tcp_prot_of(ipv));
	spin_unlock_bh(&sk->sk_lock.slock);
	release_sock(sk);
}

static void __init fill_prot(enum smc_ipv ipv)
{
	struct proto *p = &active_prots[ipv];

	*p = *tcp_prot_of(ipv);
	p->recvmsg = active_recvmsg;
#ifdef SMC_COMPAT_PROTO_IOCTL
	p->ioctl = active_ioctl;
#endif
#ifdef CONFIG_BPF_SYSCALL
	p->psock_update_sk_prot = active_psock_update;
#endif
}

/* smc_proto_init() - at load, before there are sockets. */
void __init smc_proto_init(void)
{
	fill_prot(SMC_IPV4);
	fill_prot(SMC_IPV6);
}

/*
 * smc_proto_exit() - at unload, when there are no sockets. May sleep: waits for preempted tasks that
 * have read sk_prot of a socket that has been closed meanwhile.
 */
void smc_proto_exit(void)
{
	might_sleep();
	synchronize_rcu_tasks();
}
