/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The only file that knows kernel versions. The code is written for the newest kernel, and this file adapts older ones to
 * it. Kbuild includes it before all other files. Each entry says which version has introduced the newest form.
 */
#ifndef SMC_COMPAT_H
#define SMC_COMPAT_H

#include <linux/build_bug.h>
#include <linux/types.h>
#include <linux/version.h>

/* 6.19: bind and connect take an address type of its own, which has no fixed length. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 19, 0)
typedef struct sockaddr_unsized smc_sockaddr_t;
#else
typedef struct sockaddr smc_sockaddr_t;
#endif

/* s390 has its accessor of arguments, which are in registers from r2 on, for the kernel itself: it exports none. */
#ifdef CONFIG_S390
#define smc_compat_regs_arg(regs, n) ((regs)->gprs[2 + (n)])
#else
#define smc_compat_regs_arg(regs, n) regs_get_kernel_argument((regs), (n))
#endif

/* For memory that other guests write to: on x86, cmpxchg() of a kernel that runs on one processor is not atomic for others. */
#ifdef CONFIG_X86
#define smc_compat_sync_cmpxchg(at, old, new) sync_cmpxchg((at), (old), (new))
#else
#define smc_compat_sync_cmpxchg(at, old, new) cmpxchg((at), (old), (new))
#endif

/* 6.2: the function tracer has the arguments of a function without its other registers, but on s390, where these begin with a pt_regs. */
#if defined(CONFIG_DYNAMIC_FTRACE_WITH_ARGS) && LINUX_VERSION_CODE >= KERNEL_VERSION(6, 2, 0)
#define SMC_COMPAT_FTRACE
#define SMC_COMPAT_FTRACE_FLAGS 0
#ifdef CONFIG_S390
#define smc_compat_ftrace_arg(regs, n) smc_compat_regs_arg((struct pt_regs *)(regs), n)
#else
#define smc_compat_ftrace_arg(regs, n) ftrace_regs_get_argument((regs), (n))
#endif
#elif defined(CONFIG_DYNAMIC_FTRACE_WITH_REGS) && defined(CONFIG_HAVE_FUNCTION_ARG_ACCESS_API)
#define SMC_COMPAT_FTRACE
#define SMC_COMPAT_FTRACE_FLAGS FTRACE_OPS_FL_SAVE_REGS
#define smc_compat_ftrace_arg(regs, n) smc_compat_regs_arg(ftrace_get_regs(regs), n)
#endif

/* 6.10: arguments and results of accept travel in one structure. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
#define smc_compat_accept(ops, sock, newsock, arg) ((ops)->accept((sock), (newsock), (arg)))
#define smc_compat_ops_accept(ops, fn) ((ops)->accept = (fn))
#define SMC_COMPAT_ACCEPT_WRAP(fn)
#else
struct proto_accept_arg {
	int flags;
	int err;
	bool kern;
};
#define smc_compat_accept(ops, sock, newsock, arg) \
	((ops)->accept((sock), (newsock), (arg)->flags, (arg)->kern))
#define SMC_COMPAT_ACCEPT_WRAP(fn)						\
static int fn##_old(struct socket *sock, struct socket *newsock, int flags, bool kern)	\
{										\
	struct proto_accept_arg arg = { .flags = flags, .kern = kern };		\
										\
	return fn(sock, newsock, &arg);						\
}
#define smc_compat_ops_accept(ops, fn) ((ops)->accept = fn##_old)
#endif

/*
 * 6.5: sendpage is gone, pages travel through sendmsg. So is sendpage_locked, of the two operations that are called with
 * the sock's lock.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)
#define smc_compat_ops_sendpage(ops) ((ops)->sendpage = sock_no_sendpage)
#define smc_compat_ops_splice_eof(ops, fn) do { } while (0)
#define smc_compat_ops_locked(ops) \
	do { (ops)->sendmsg_locked = NULL; (ops)->sendpage_locked = NULL; } while (0)
#else
#define smc_compat_ops_sendpage(ops) do { } while (0)
#define smc_compat_ops_splice_eof(ops, fn) ((ops)->splice_eof = (fn))
#define smc_compat_ops_locked(ops) ((ops)->sendmsg_locked = NULL)
#endif

/* 6.16: notifications of zero-copy sends have an argument for device memory. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 16, 0)
#define smc_compat_zerocopy(sk, len) msg_zerocopy_realloc((sk), (len), NULL, NULL)
#else
#define smc_compat_zerocopy(sk, len) msg_zerocopy_realloc((sk), (len), NULL)
#endif

/* 6.5: the ioctl of a struct proto takes a pointer to kernel memory. Before 6.7 only TCP's operations call it. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0)
#define SMC_COMPAT_PROTO_IOCTL
#endif

/* 7.1: recvmsg of a struct proto has no argument for the length of the address. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 1, 0)
#define SMC_COMPAT_PROTO_RECVMSG_PARAMS struct sock *sk, struct msghdr *msg, size_t len, int flags
#define SMC_COMPAT_PROTO_RECVMSG_ARGS sk, msg, len, flags
#else
#define SMC_COMPAT_PROTO_RECVMSG_PARAMS \
	struct sock *sk, struct msghdr *msg, size_t len, int flags, int *addr_len
#define SMC_COMPAT_PROTO_RECVMSG_ARGS sk, msg, len, flags, addr_len
#endif

/* 6.2: timers are deleted by timer_delete() and timer_delete_sync(), which some releases of 6.1 have, too. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
#include <linux/timer.h>

#define timer_delete del_timer
#define timer_delete_sync del_timer_sync
#endif

/* 7.1: an operation beside getsockopt, which the core would prefer. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 1, 0)
#define smc_compat_ops_getsockopt(ops, fn) \
	do { (ops)->getsockopt = (fn); (ops)->getsockopt_iter = NULL; } while (0)
#else
#define smc_compat_ops_getsockopt(ops, fn) ((ops)->getsockopt = (fn))
#endif

/* 6.17: TCP's tables of sockets are found through the namespace. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 17, 0)
#define SMC_COMPAT_TCP_TABLE(net) (net)
#else
#define SMC_COMPAT_TCP_TABLE(net) (net), (net)->ipv4.tcp_death_row.hashinfo
#endif
#define smc_compat_lookup4(net, saddr, sport, daddr, dport, dif, sdif) \
	__inet_lookup_established(SMC_COMPAT_TCP_TABLE(net), saddr, sport, daddr, ntohs(dport), dif, sdif)
#define smc_compat_lookup6(net, saddr, sport, daddr, dport, dif, sdif) \
	__inet6_lookup_established(SMC_COMPAT_TCP_TABLE(net), saddr, sport, daddr, ntohs(dport), dif, sdif)
#define smc_compat_listener4(net, skb, doff, saddr, sport, daddr, dport, dif, sdif) \
	__inet_lookup_listener(SMC_COMPAT_TCP_TABLE(net), skb, doff, saddr, sport, daddr, ntohs(dport), dif, sdif)
#define smc_compat_listener6(net, skb, doff, saddr, sport, daddr, dport, dif, sdif) \
	inet6_lookup_listener(SMC_COMPAT_TCP_TABLE(net), skb, doff, saddr, sport, daddr, ntohs(dport), dif, sdif)

/* 6.7: attributes that are as long as their value needs, 4 or 8 bytes. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 7, 0)
#include <net/netlink.h>

static inline int compat_nla_put_uint(struct sk_buff *skb, int type, u64 value)
{
	u32 small = value;

	if (small == value)
		return nla_put_u32(skb, type, small);
	return nla_put(skb, type, sizeof(value), &value);
}
#define nla_put_uint compat_nla_put_uint
#endif

/*
 * 6.6: the length of a sysctl table is passed; before, an empty entry ends it. A table therefore
 * has an entry more.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 6, 0)
#include <net/net_namespace.h>

#define register_net_sysctl_sz(net, path, table, size) register_net_sysctl(net, path, table)
#endif

/* 6.12 is the first of the supported kernels whose <linux/smc.h> has all attributes. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)
#define COMPAT_ASSERT_UAPI(name, number) static_assert((name) == (number))
#else
#define COMPAT_ASSERT_UAPI(name, number)
#endif

/* 6.16: the owner of a sock is read with sk_uid(). */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 16, 0)
#define smc_compat_uid(sk) sk_uid(sk)
#else
#define smc_compat_uid(sk) sock_i_uid(sk)
#endif

/* 6.8, and releases of older series: accept() initializes the locks that the connection needs to listen itself. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 1, 76)
#define smc_compat_init_csk_locks(sk) inet_init_csk_locks(sk)
#else
#define smc_compat_init_csk_locks(sk) do { } while (0)
#endif

/* 6.8: the largest order of pages has its name; before 6.4, another was one beyond it. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 4, 0)
#define MAX_PAGE_ORDER (MAX_ORDER - 1)
#endif

/* 6.14: a check that a dump's position fits into what is there for it. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 14, 0)
#define NL_ASSERT_CTX_FITS(type) BUILD_BUG_ON(sizeof(type) > sizeof_field(struct netlink_callback, ctx))
#endif

/* 6.10: a string of a trace event is assigned by its name; its source is that of __string(). */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
#define smc_compat_assign_str(field, source) __assign_str(field)
#else
#define smc_compat_assign_str(field, source) __assign_str(field, source)
#endif

/* 6.7: shrinkers are allocated by the kernel. */
#include <linux/shrinker.h>
#include <linux/slab.h>

typedef unsigned long (*smc_compat_shrink_fn)(struct shrinker *shrinker, struct shrink_control *sc);

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 7, 0)
static inline struct shrinker *smc_compat_shrinker_new(const char *name, smc_compat_shrink_fn count, smc_compat_shrink_fn scan)
{
	struct shrinker *shrinker = shrinker_alloc(0, "%s", name);

	if (!shrinker)
		return NULL;
	shrinker->count_objects = count;
	shrinker->scan_objects = scan;
	shrinker_register(shrinker);
	return shrinker;
}

static inline void smc_compat_shrinker_free(struct shrinker *shrinker)
{
	shrinker_free(shrinker);
}
#else
static inline struct shrinker *smc_compat_shrinker_new(const char *name, smc_compat_shrink_fn count, smc_compat_shrink_fn scan)
{
	struct shrinker *shrinker = kzalloc(sizeof(*shrinker), GFP_KERNEL);

	if (!shrinker)
		return NULL;
	shrinker->count_objects = count;
	shrinker->scan_objects = scan;
	shrinker->seeks = DEFAULT_SEEKS;
	if (!register_shrinker(shrinker, "%s", name))
		return shrinker;
	kfree(shrinker);
	return NULL;
}

static inline void smc_compat_shrinker_free(struct shrinker *shrinker)
{
	unregister_shrinker(shrinker);
	kfree(shrinker);
}
#endif

/* 6.12: to destroy a slab cache waits until its objects are freed that were given to kfree_rcu(). */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)
#define smc_compat_kfree_rcu(object, member, fn) kfree_rcu((object), member)
#else
#define smc_compat_kfree_rcu(object, member, fn) call_rcu(&(object)->member, (fn))
#endif

/* 6.11: handlers of sysctls do not change the table. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
#define smc_compat_ctl_table const struct ctl_table
#else
#define smc_compat_ctl_table struct ctl_table
#endif

#endif
