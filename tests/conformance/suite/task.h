/* SPDX-License-Identifier: Apache-2.0 */
/* Other threads and processes of a check, and functions that wait until they are blocked. */
#ifndef TASK_H
#define TASK_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "net.h"

/* A system call for another thread to make. Unused members may be zero. */
struct call {
	int fd;
	const struct addr *addr;
	void *buf;
	size_t len;
	int flags;	/* of send and recv; the events of poll */
};

struct task {
	pthread_t thread;
	_Atomic pid_t tid;
	long (*body)(struct call *call);
	struct call call;
	long result;	/* negative errno for a failure */
	_Atomic bool ended;
};

/**
 * task_start() - make a call in a new thread
 * @task: not moved or freed before task_join()
 * @body: one of the task_do_…() below, or the check's own; returns a value or a negative errno
 * @call: copied
 */
void task_start(struct task *task, long (*body)(struct call *call), struct call call);

/* task_join() - wait for the thread. Return: the return value of its body. */
long task_join(struct task *task);

/** task_wait_blocked() - wait until the thread sleeps in system call @nr; a thread that ends fails the check */
void task_wait_blocked(struct task *task, long nr);

/** task_connect() - connect in a new thread, and wait until it sleeps in that */
void task_connect(struct task *task, int fd, const struct addr *addr);

/**
 * task_stays_blocked() - check that the thread does not wake up without an event
 * @task: one that task_wait_blocked() has seen asleep
 * @ms: duration of the check on real hardware
 */
void task_stays_blocked(struct task *task, int ms);

/** task_wait_pid_blocked() - wait until the process sleeps in system call @nr */
void task_wait_pid_blocked(pid_t pid, long nr);

long task_do_connect(struct call *call);
long task_do_accept(struct call *call);
long task_do_recv(struct call *call);
long task_do_send(struct call *call);
/* Returns the events. */
long task_do_poll(struct call *call);

/**
 * task_fork() - run a function in a new process, which ends with status 0 when the function returns
 * @body: function
 * @call: its argument
 *
 * Return: the process, for task_reap().
 */
pid_t task_fork(void (*body)(struct call *call), struct call *call);

/* task_reap() - wait for a process; the check fails if the process has failed */
void task_reap(pid_t pid);

/** task_on_signal() - count signal @nr with a handler; @flags as SA_RESTART. Clears the count. */
void task_on_signal(int nr, int flags);

/** task_signals() - how often the handler has run */
int task_signals(void);

/** task_wait_signal() - wait until the handler has run */
void task_wait_signal(void);

/** task_kill() - send a signal to the thread */
void task_kill(struct task *task, int nr);

#endif
