/* SPDX-License-Identifier: GPL-2.0-only */
/* The lock of a sock, for workers. */
#ifndef SMC_TRYLOCK_H
#define SMC_TRYLOCK_H

#include <linux/lockdep.h>
#include <net/sock.h>

/* Jiffies after which a worker tries again to lock a sock; the second one limits a delay that grows. */
#define SMC_TRYLOCK_RETRY (HZ / 10)
#define SMC_TRYLOCK_RETRY_MAX HZ

/**
 * smc_sock_trylock() - as lock_sock(), but fails if a thread holds the lock
 * @sk: the sock
 *
 * setsockopt(2) copies from the application's memory with the lock held, and FUSE or userfaultfd may delay that for ever.
 * All sockets share our workers, so no worker calls lock_sock() on a socket that an application has.
 *
 * Context: process; does not sleep.
 * Return: whether the caller has the lock, which it gives back with release_sock().
 */
static inline bool smc_sock_trylock(struct sock *sk)
{
	bool mine;

	spin_lock_bh(&sk->sk_lock.slock);
	mine = !sk->sk_lock.owned;
	if (mine)
		sk->sk_lock.owned = 1;
	spin_unlock_bh(&sk->sk_lock.slock);
	if (mine)
		mutex_acquire(&sk->sk_lock.dep_map, 0, 1, _RET_IP_); /* release_sock() tells lockdep of the release */
	return mine;
}

/*
 * smc_sock_trylock_retry() - the same for a worker that runs again if a thread holds the lock. @retry: gets when, in
 * jiffies from now; 0 if the worker has the lock.
 */
static inline bool smc_sock_trylock_retry(struct sock *sk, unsigned long *retry)
{
	bool mine = smc_sock_trylock(sk);

	*retry = mine ? 0 : clamp_t(unsigned long, 2 * *retry, 1, SMC_TRYLOCK_RETRY_MAX);
	return mine;
}

#endif
