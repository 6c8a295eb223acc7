// SPDX-License-Identifier: Apache-2.0
/* Other threads and processes of a check. */
#define _GNU_SOURCE
#include "task.h"

#include <fcntl.h>
#include <sched.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"

static atomic_int signals;

static void *begin(void *arg)
{
	struct task *task = arg;

	task->tid = gettid();
	task->result = task->body(&task->call);
	task->ended = true;
	return NULL;
}

void task_start(struct task *task, long (*body)(struct call *call), struct call call)
{
	task->tid = 0;
	task->ended = false;
	task->body = body;
	task->call = call;
	int err = pthread_create(&task->thread, NULL, begin, task);

	EXPECT(!err, "pthread_create: %s", strerrorname_np(err));
}

long task_join(struct task *task)
{
	harness_mark(__FILE_NAME__, __LINE__, "joining a thread");
	pthread_join(task->thread, NULL);
	return task->result;
}

/*
 * /proc/PID/syscall shows the system call in which a task sleeps, and no number while the task
 * runs.
 */
static bool blocked(pid_t pid, long nr)
{
	char path[64], text[256];

	snprintf(path, sizeof(path), "/proc/%d/syscall", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ssize_t n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return false;
	text[n] = 0;
	char *end;
	long now = strtol(text, &end, 10);
	return end != text && now == nr;
}

void task_wait_blocked(struct task *task, long nr)
{
	harness_mark(__FILE_NAME__, __LINE__, "waiting until a thread blocks");
	while (!task->tid || !blocked(task->tid, nr)) {
		EXPECT(!task->ended, "the call has returned %ld", task->result);
		sched_yield();
	}
}

void task_connect(struct task *task, int fd, const struct addr *addr)
{
	task_start(task, task_do_connect, (struct call){ .fd = fd, .addr = addr });
	task_wait_blocked(task, SYS_connect);
}

void task_stays_blocked(struct task *task, int ms)
{
	for (long end = harness_now() + harness_ms(ms); harness_now() < end; poll(NULL, 0, 1))
		EXPECT(!task->ended, "the call has returned %ld", task->result);
}

void task_wait_pid_blocked(pid_t pid, long nr)
{
	harness_mark(__FILE_NAME__, __LINE__, "waiting until a process blocks");
	while (!blocked(pid, nr))
		sched_yield();
}

static long value(long r)
{
	return r < 0 ? -errno : r;
}

long task_do_connect(struct call *c)
{
	return value(connect(c->fd, &c->addr->sa, c->addr->len));
}

long task_do_accept(struct call *c)
{
	return value(accept(c->fd, NULL, NULL));
}

long task_do_recv(struct call *c)
{
	return value(recv(c->fd, c->buf, c->len, c->flags));
}

long task_do_send(struct call *c)
{
	return value(send(c->fd, c->buf, c->len, c->flags));
}

long task_do_poll(struct call *c)
{
	struct pollfd p = { .fd = c->fd, .events = c->flags };

	return poll(&p, 1, -1) < 0 ? -errno : p.revents;
}

pid_t task_fork(void (*body)(struct call *call), struct call *call)
{
	pid_t pid = OK(fork());

	if (!pid) {
		body(call);
		_exit(0);
	}
	return pid;
}

void task_reap(pid_t pid)
{
	int status;

	EQ(pid, waitpid(pid, &status, 0));
	/* The process has already written its own report, which takes precedence. */
	if (status)
		harness_fail(" (in a forked process)");
}

static void count(int nr)
{
	(void)nr;
	signals++;
}

void task_on_signal(int nr, int flags)
{
	struct sigaction sa = { .sa_handler = count, .sa_flags = flags };

	signals = 0;
	OK(sigaction(nr, &sa, NULL));
}

int task_signals(void)
{
	return signals;
}

void task_wait_signal(void)
{
	harness_mark(__FILE_NAME__, __LINE__, "waiting for a signal");
	while (!signals)
		sched_yield();
}

void task_kill(struct task *task, int nr)
{
	pthread_kill(task->thread, nr);
}
