// SPDX-License-Identifier: GPL-2.0-only
/*
 * Socket options. Nearly all are set on the TCP sock and stay there, whatever the outcome. SMC has one of its own.
 * With a few the connection stays TCP, or another protocol takes the socket over.
 */

#include <linux/in6.h>
#include <linux/sockptr.h>
#include <linux/tcp.h>

#include "../uapi/smc_uapi.h"
#include "../wire/reason.h"
#include "sock.h"

static int set_smc_option(struct socket *sock, int name, sockptr_t val, unsigned int len)
{
	struct smc_sock *smc;
	int on;

	if (name != SMC_LIMIT_HS)
		return -ENOPROTOOPT;
	if (len < sizeof(on))
		return -EINVAL;
	if (copy_from_sockptr(&on, val, sizeof(on)))
		return -EFAULT;
	smc = smc_table_make(sock);
	if (!smc)
		return -ENOMEM;
	WRITE_ONCE(smc->opt.limit_hs, on != 0);
	return 0;
}

/* smc_sockopt_takes_over() - does another protocol replace sock->ops for this option? */
bool smc_sockopt_takes_over(int level, int name)
{
	return (level == SOL_TCP && name == TCP_ULP) || (level == SOL_IPV6 && name == IPV6_ADDRFORM);
}

/* smc_sockopt_excludes() - does the option, which TCP has accepted, keep the next connection from SMC? */
bool smc_sockopt_excludes(int level, int name, sockptr_t val)
{
	int on;

	might_sleep();
	if (level != SOL_TCP)
		return false;
	/* Whatever its value, as in stock kernels: programs use it to keep a socket from SMC. */
	if (name == TCP_FASTOPEN_NO_COOKIE)
		return true;
	if (name != TCP_FASTOPEN_CONNECT && name != TCP_REPAIR)
		return false;
	return !copy_from_sockptr(&on, val, sizeof(on)) && on;
}

/*
 * smc_sockopt_set_tcp() - setsockopt(2) on a socket that has fallen back. Return: as TCP
 * would.
 */
int smc_sockopt_set_tcp(struct socket *sock, int level, int name, sockptr_t val, unsigned int len)
{
	might_sleep();
	if (level == SOL_SMC)
		return set_smc_option(sock, name, val, len);
	if (smc_sockopt_takes_over(level, name))
		return smc_fallback_detach(sock, level, name, val, len);
	return smc_ops_of_tcp(sock->sk)->setsockopt(sock, level, name, val, len);
}

/*
 * smc_sockopt_set() - setsockopt(2). Return: as TCP would; for SOL_SMC 0 or a negative
 * errno.
 */
int smc_sockopt_set(struct socket *sock, int level, int name, sockptr_t val, unsigned int len)
{
	struct smc_sock *smc;
	int rc;

	might_sleep();
	smc = smc_table_of(sock);
	if (smc && smc_sockopt_takes_over(level, name)) {
		switch (smc_connect_progress(smc, sock)) {
		case SMC_PHASE_CONNECT:
		case SMC_PHASE_RENDEZVOUS:
			return -ENOTCONN;
		case SMC_PHASE_ACTIVE:
			return smc_active_setsockopt(sock, level, name, val, len);
		default:
			break;
		}
	}
	rc = smc_sockopt_set_tcp(sock, level, name, val, len);
	if (rc || !smc_sockopt_excludes(level, name, val))
		return rc;
	smc = smc_table_make(sock);
	if (!smc)
		return -ENOMEM;
	/* An attempt that another thread is about to make is TCP, too: see connect_tcp(). */
	smc_connect_undo(smc);
	smc_fallback_take(smc, sock, SMC_PHASE_OPEN, SMC_REASON_OPTION, 0);
	return 0;
}

/* smc_sockopt_get() - getsockopt(2), except SOL_SOCKET. Return: as TCP would. */
int smc_sockopt_get(struct socket *sock, int level, int name, char __user *val, int __user *lenp)
{
	struct smc_sock *smc;
	int len, on;

	might_sleep();
	/* This option receives data. */
	if (level == SOL_TCP && name == TCP_ZEROCOPY_RECEIVE) {
		len = smc_connect_settled(sock, 0);
		if (len)
			return len;
		smc = smc_table_of(sock);
		if (smc && READ_ONCE(smc->phase) == SMC_PHASE_ACTIVE)
			return -EOPNOTSUPP;
	}
	if (level != SOL_SMC)
		return smc_ops_of_tcp(sock->sk)->getsockopt(sock, level, name, val, lenp);
	if (name != SMC_LIMIT_HS)
		return -ENOPROTOOPT;
	if (get_user(len, lenp))
		return -EFAULT;
	if (len < 0)
		return -EINVAL;
	smc = smc_table_of(sock);
	on = smc && READ_ONCE(smc->opt.limit_hs);
	len = min_t(int, len, sizeof(on));
	if (put_user(len, lenp) || copy_to_user(val, &on, len))
		return -EFAULT;
	return 0;
}
