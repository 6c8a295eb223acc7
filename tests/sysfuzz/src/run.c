// SPDX-License-Identifier: Apache-2.0
/* Runs a program: its privileges, its processes and threads, and its calls. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fuzz.h"

/*
 * The current calls of the program's threads, for the report of a program that does not end. Shared
 * with the worker.
 */
static struct {
	_Atomic int in;	/* the call it is in, from 1, or 0 */
} *inflight;

/** shared_map() - memory that processes forked from now on share */
void *shared_map(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		die("mmap");
	return p;
}

/** inflight_init() - forget the last program */
void inflight_init(void)
{
	if (!inflight)
		inflight = shared_map((THREADS + 1) * sizeof(*inflight));
	for (int t = 0; t <= THREADS; t++)
		inflight[t].in = 0;
}

/** inflight_report() - print which calls a program's threads are in */
void inflight_report(const struct program *p)
{
	for (int t = 0; t <= p->n_threads; t++) {
		int in = inflight[t].in;
		const struct call *calls = t ? p->threads[t - 1].calls : p->setup;

		if (in)
			printf("  in call %d.%d: %s(slot %d, %d)\n", t, in - 1, ops[calls[in - 1].op].name, calls[in - 1].slot,
			       calls[in - 1].other);
	}
}

void trace(struct ctx *c, const char *fmt, ...)
{
	va_list args;

	if (!settings.trace)
		return;
	size_t have = strlen(c->text);

	va_start(args, fmt);
	vsnprintf(c->text + have, sizeof(c->text) - have, fmt, args);
	va_end(args);
}

/* Whether the command line asks for a call. */
static bool wanted(int thread, int index)
{
	char name[32];

	if (!settings.only_calls)
		return true;
	snprintf(name, sizeof(name), ",%d.%d,", thread, index);
	return strstr(settings.only_calls, name);
}

/* Runs the calls of one thread; thread 0 is the setup. */
static void run_calls(struct ctx *c, int thread, const struct call *calls, int n)
{
	for (int i = 0; i < n; i++) {
		if (!wanted(thread, i))
			continue;
		c->rnd.state = calls[i].seed;
		c->text[0] = 0;
		inflight[thread].in = i + 1;
		errno = 0;
		long r = ops[calls[i].op].run(c, &calls[i]);

		if (settings.trace)
			printf("%d.%d %s(%s) = %ld %s\n", thread, i, ops[calls[i].op].name, c->text, r,
			       r < 0 ? strerrorname_np(errno) : "");
	}
	inflight[thread].in = 0;
}

static void nothing(int signal)
{
	(void)signal;
}

static void loopback_up(void)
{
	struct ifreq ifr = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	int s = socket(AF_INET, SOCK_DGRAM, 0);

	if (s < 0 || ioctl(s, SIOCSIFFLAGS, &ifr))
		die("setting lo up");
	close(s);
}

static void write_file(const char *name, const char *text)
{
	int fd = open(name, O_WRONLY);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		die(name);
	close(fd);
}

/* Changes to the privileges of a program. */
static void enter(struct ctx *c)
{
	enum { NOBODY = 65534 };
	struct rlimit files = { 256, 256 };

	setrlimit(RLIMIT_NOFILE, &files);
	c->loop_only = c->full = c->program->env == ENV_USERNS;
	if (c->program->env == ENV_ROOT)
		return;
	if (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY))
		die("setresuid");
	/* Otherwise /proc/self would still belong to root. */
	prctl(PR_SET_DUMPABLE, 1);
	if (c->program->env == ENV_NOBODY)
		return;
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
		die("unshare");
	write_file("/proc/self/setgroups", "deny");
	write_file("/proc/self/gid_map", "0 65534 1");
	write_file("/proc/self/uid_map", "0 65534 1");
	loopback_up();
}

struct start {
	struct ctx ctx;
	int number;	/* of the thread in the program */
};

static void *run_thread(void *arg)
{
	struct start *s = arg;
	const struct thread *t = &s->ctx.program->threads[s->number];

	run_calls(&s->ctx, s->number + 1, t->calls, t->n);
	return NULL;
}

/* Interrupts threads that have been in one call for a whole tick, until all have ended. */
static void interrupt_blocked(const pthread_t threads[], bool running[], int n)
{
	enum { TICK_MS = 25 };
	int last[THREADS] = {}, left;

	do {
		struct timespec tick = { 0, TICK_MS * 1000000 };

		nanosleep(&tick, NULL);
		left = 0;
		for (int t = 0; t < n; t++) {
			if (!running[t])
				continue;
			int in = inflight[t + 1].in;

			if (!pthread_tryjoin_np(threads[t], NULL)) {
				running[t] = false;
				continue;
			}
			left++;
			if (in && in == last[t])
				pthread_kill(threads[t], SIGUSR1);
			last[t] = in;
		}
	} while (left);
}

/* Runs the threads of one process. */
static void run_process(const struct ctx *c, int process)
{
	static struct start starts[THREADS];
	pthread_t threads[THREADS];
	bool running[THREADS] = {};

	for (int t = 0; t < c->program->n_threads; t++) {
		if (c->program->threads[t].process != process)
			continue;
		starts[t].ctx = *c;
		starts[t].number = t;
		running[t] = !pthread_create(&threads[t], NULL, run_thread, &starts[t]);
	}
	interrupt_blocked(threads, running, c->program->n_threads);
}

/* Interrupts a blocking call of the setup, which has one thread. */
static void interrupt_setup(int ms)
{
	struct itimerval tick = { { 0, ms * 1000 }, { 0, ms * 1000 } };

	setitimer(ITIMER_REAL, &tick, NULL);
}

/**
 * program_run() - run a program in this process, and end
 * @p: program
 * @port: first of the ports that it may use
 */
void program_run(const struct program *p, int port)
{
	static struct ctx c;
	struct sigaction ignore = { .sa_handler = SIG_IGN }, handle = { .sa_handler = nothing };

	c.program = p;
	c.port = port;
	enter(&c);
	sigaction(SIGPIPE, &ignore, NULL);
	sigaction(SIGCHLD, &handle, NULL);
	for (int s = SIGRTMIN; s <= SIGRTMAX; s++)
		sigaction(s, &ignore, NULL);
	sigaction(SIGUSR1, &handle, NULL);
	sigaction(SIGALRM, &handle, NULL);
	sigaction(SIGIO, &ignore, NULL);
	sigaction(SIGURG, &ignore, NULL);
	sigaction(SIGHUP, &ignore, NULL);
	pool_init();
	interrupt_setup(100);
	run_calls(&c, 0, p->setup, p->n_setup);
	interrupt_setup(0);
	pid_t other = fork();

	run_process(&c, other == 0);
	if (other > 0)
		waitpid(other, NULL, 0);
	fflush(stdout);
	_exit(0);
}
