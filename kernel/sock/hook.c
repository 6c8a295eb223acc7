// SPDX-License-Identifier: GPL-2.0-only
/*
 * The hook of socket creation: a probe of the function that the kernel calls when a socket is complete. Security modules, control
 * groups and BPF programs have seen a socket of TCP by then, as it is one; only its operations change. The probe is there only while
 * a namespace has rules by which sockets become SMC.
 */

#include <linux/in.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <asm/syscall.h>
#include <asm/unistd.h>

#include "sock.h"

#if defined(CONFIG_KPROBES) && defined(CONFIG_HAVE_FUNCTION_ARG_ACCESS_API) && defined(CONFIG_SECURITY_NETWORK)
/* Of 32-bit programs: socketcall(2), which x86, arm and s390 have as the same number, and socket(2) on x86 and s390, and on arm. */
static bool is_compat_socket(int nr)
{
	return in_compat_syscall() && (nr == 102 || nr == 359 || nr == 281);
}

/*
 * Is it a program that asks for the socket? The kernel also makes sockets of its own in this way, some of them without saying so,
 * for a program that asks for something else; it uses TCP's functions with them.
 */
static bool is_program(void)
{
	int nr;

	if (current->flags & PF_IO_WORKER)
		return true;
	if (current->flags & PF_KTHREAD)
		return false;
	nr = syscall_get_nr(current, task_pt_regs(current));
#ifdef __NR_socketcall
	if (nr == __NR_socketcall)
		return true;
#endif
	return nr == __NR_socket || nr == __NR_io_uring_enter || is_compat_socket(nr);
}

/* Does a program get this socket, and is it one of TCP? */
static bool is_tcp(const struct socket *sock, int family, int kern)
{
	return !kern && (family == AF_INET || family == AF_INET6) && sock->type == SOCK_STREAM && sock->sk &&
	       sock->sk->sk_protocol == IPPROTO_TCP && is_program();
}

static int on_created(struct kprobe *probe, struct pt_regs *regs)
{
	struct socket *sock = (struct socket *)regs_get_kernel_argument(regs, 0);

	if (is_tcp(sock, (int)regs_get_kernel_argument(regs, 1), (int)regs_get_kernel_argument(regs, 4)))
		smc_policy_take(sock);
	return 0;
}

static struct kprobe probe;

static int install(void)
{
	might_sleep();
	probe = (struct kprobe){ .symbol_name = "security_socket_post_create", .pre_handler = on_created };
	return register_kprobe(&probe) ? -EOPNOTSUPP : 0;
}

static void remove(void)
{
	unregister_kprobe(&probe);
}

static const struct smc_policy_hook hook = { .install = install, .remove = remove };

/* smc_hook_init() - registers with the policy; at load. May sleep. Return: 0. */
int smc_hook_init(void)
{
	smc_policy_set_hook(&hook);
	return 0;
}
#else
/* smc_hook_init() - this kernel cannot have the hook. Return: 0. */
int smc_hook_init(void)
{
	return 0;
}
#endif

/* smc_hook_exit() - at unload: the probe does not run any more. May sleep. */
void smc_hook_exit(void)
{
	smc_policy_drop_hook();
}
