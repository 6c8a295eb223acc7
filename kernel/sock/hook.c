// SPDX-License-Identifier: GPL-2.0-only
/*
 * The hook of socket creation: it runs when the kernel calls a function because a socket is complete. Security modules, control groups
 * and BPF programs have seen a socket of TCP by then, as it is one; only its operations change. The hook is there only while a namespace
 * has rules by which sockets become SMC. It uses the function tracer, or a probe, which costs more, if the kernel lacks that.
 */

#include <linux/in.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/sched/task_stack.h>
#include <asm/syscall.h>
#include <asm/unistd.h>

#include "sock.h"

#ifdef SMC_COMPAT_FTRACE
#include <linux/ftrace.h>
#define CAN_HOOK
#elif defined(CONFIG_KPROBES) && defined(CONFIG_HAVE_FUNCTION_ARG_ACCESS_API)
#include <linux/kprobes.h>
#define CAN_HOOK
#endif

#if defined(CAN_HOOK) && defined(CONFIG_SECURITY_NETWORK)
#define HOOKED "security_socket_post_create"

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

/* The arguments of HOOKED. */
static void on_created(struct socket *sock, int family, int kern)
{
	if (is_tcp(sock, family, kern))
		smc_policy_take(sock);
}

#ifdef SMC_COMPAT_FTRACE
static void on_call(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops, struct ftrace_regs *regs)
{
	on_created((struct socket *)smc_compat_ftrace_arg(regs, 0), (int)smc_compat_ftrace_arg(regs, 1),
		   (int)smc_compat_ftrace_arg(regs, 4));
}

/* While it is there, kernel.ftrace_enabled cannot become 0, which would end the rules' effect without a word. */
static struct ftrace_ops tracer = { .func = on_call, .flags = FTRACE_OPS_FL_PERMANENT | SMC_COMPAT_FTRACE_FLAGS };

static int install(void)
{
	might_sleep();
	return register_ftrace_function(&tracer);
}

/* If the tracer has broken, it still calls the module, which must stay. */
static void remove(void)
{
	if (WARN_ON(unregister_ftrace_function(&tracer)))
		__module_get(THIS_MODULE);
}

/* Before 6.15 a filter that has been freed cannot be set again: it is there as long as the module. */
static int prepare(void)
{
	char name[] = HOOKED;

	return ftrace_set_filter(&tracer, name, sizeof(name) - 1, true);
}

static void finish(void)
{
	ftrace_free_filter(&tracer);
}
#else
static int on_probe(struct kprobe *probe, struct pt_regs *regs)
{
	on_created((struct socket *)smc_compat_regs_arg(regs, 0), (int)smc_compat_regs_arg(regs, 1),
		   (int)smc_compat_regs_arg(regs, 4));
	return 0;
}

static struct kprobe probe;

static int install(void)
{
	might_sleep();
	probe = (struct kprobe){ .symbol_name = HOOKED, .pre_handler = on_probe };
	return register_kprobe(&probe) ? -EOPNOTSUPP : 0;
}

static void remove(void)
{
	unregister_kprobe(&probe);
}

static int prepare(void)
{
	return 0;
}

static void finish(void)
{
}
#endif

static const struct smc_policy_hook hook = { .install = install, .remove = remove };

/* smc_hook_init() - registers with the policy, if this kernel can have the hook; at load. Return: 0 or -ENOMEM. */
int smc_hook_init(void)
{
	int rc;

	might_sleep();
	rc = prepare();
	if (!rc)
		smc_policy_set_hook(&hook);
	return rc == -ENOMEM ? rc : 0;
}

/* smc_hook_exit() - at unload: the hook does not run any more. */
void smc_hook_exit(void)
{
	might_sleep();
	smc_policy_drop_hook();
	finish();
}
#else
/* smc_hook_init() - this kernel cannot have the hook. Return: 0. */
int smc_hook_init(void)
{
	return 0;
}

/* smc_hook_exit() - there is none. */
void smc_hook_exit(void)
{
}
#endif
