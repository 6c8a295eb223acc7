// SPDX-License-Identifier: Apache-2.0
/*
 * sysfuzz [--seed N] [--seconds N] [--workers N] [--hang SECONDS]
 * sysfuzz --seed N --run WORKER.PROGRAM [--calls THREAD.INDEX,...] [--repeat N] [--trace]
 *
 * Runs programs for some time, or one of them again. It stops, with an exit status of 1, as soon as a
 * process cannot be killed, the kernel is tainted by a warning, or a well-behaved client is not served.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fuzz.h"

struct settings settings = { .seconds = 60, .workers = 6, .hang_seconds = 60, .only_worker = -1, .repeat = 1 };

enum {
	TAINTS = 1 << 5 | 1 << 7 | 1 << 9 | 1 << 14, /* bad page, died, warned, soft lockup */
	FIRST_PORT = 20000,
	WELL_BEHAVED_PORT = 19999,
};

void die(const char *what)
{
	printf("sysfuzz: %s: %s\n", what, strerror(errno));
	fflush(stdout);
	_exit(2);
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

/* Whether the kernel has reported an error since it was booted. */
static unsigned long tainted(void)
{
	char text[32] = "";
	int fd = open("/proc/sys/kernel/tainted", O_RDONLY);

	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
		die("/proc/sys/kernel/tainted");
	close(fd);
	return strtoul(text, NULL, 10) & TAINTS;
}

static void print_file(const char *name)
{
	char text[4096];
	ssize_t n;
	int fd = open(name, O_RDONLY);

	while (fd >= 0 && (n = read(fd, text, sizeof(text))) > 0)
		fwrite(text, 1, n, stdout);
	if (fd >= 0)
		close(fd);
}

/* Prints the kernel stacks of the threads of a process group. */
static void print_stacks(pid_t group)
{
	DIR *proc = opendir("/proc");

	for (struct dirent *e; proc && (e = readdir(proc));) {
		char name[600];
		pid_t pid = atoi(e->d_name);

		if (pid <= 0 || getpgid(pid) != group)
			continue;
		snprintf(name, sizeof(name), "/proc/%d/task", pid);
		DIR *tasks = opendir(name);

		for (struct dirent *t; tasks && (t = readdir(tasks));) {
			if (t->d_name[0] == '.')
				continue;
			printf("thread %s of process %d:\n", t->d_name, pid);
			snprintf(name, sizeof(name), "/proc/%d/task/%s/stack", pid, t->d_name);
			print_file(name);
		}
		if (tasks)
			closedir(tasks);
	}
	if (proc)
		closedir(proc);
}

/* Waits for a process to end, up to a time limit. Return: whether it has ended. */
static bool ends(pid_t pid, double seconds)
{
	int fd = syscall(SYS_pidfd_open, pid, 0);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	bool over = poll(&p, 1, seconds * 1000) == 1;

	close(fd);
	return over;
}

/* Kills a process group whose processes are, or become, children of this one. Return: whether all have ended. */
static bool kill_group(pid_t group)
{
	double end = now() + settings.hang_seconds;

	for (pid_t pid;;) {
		kill(-group, SIGKILL);
		pid = waitpid(-group, NULL, WNOHANG);
		if (pid < 0)
			return true;
		if (!pid) {
			if (now() > end)
				return false;
			poll(NULL, 0, 1);
		}
	}
}

/* Runs a process until it ends or is killed. Return: whether it could be. */
static bool supervise(pid_t pid, double seconds)
{
	ends(pid, seconds);
	return kill_group(pid);
}

static uint64_t program_seed(int worker, long number)
{
	return rnd_mix(settings.seed + rnd_mix(worker * 1000003ull + number));
}

static const char *const env_names[ENVS] = { "nobody", "root", "user namespace" };

/* Runs one program. Return: false if it leaves something to report. */
static bool run_one(int worker, long number)
{
	static struct program p;
	static int reported;

	generate(&p, program_seed(worker, number));
	inflight_init();
	/* The last lines show which programs ran when a kernel died. */
	printf("run %d.%ld\n", worker, number);
	fflush(stdout);
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (!pid) {
		setpgid(0, 0);
		program_run(&p, FIRST_PORT + worker * PORTS);
	}
	setpgid(pid, pid);
	bool ended = supervise(pid, p.deadline_ms / 1e3);

	if (!ended) {
		printf("program %d.%ld (%s) cannot be killed\n", worker, number, env_names[p.env]);
		inflight_report(&p);
		print_stacks(pid);
	}
	if (tainted() && !reported++)
		printf("the kernel reports something during or before program %d.%ld (%s)\n", worker, number, env_names[p.env]);
	fflush(stdout);
	return ended && !reported;
}

/* Runs programs until the time is over. Return: exit status. */
static int work(int worker, double end)
{
	long n = 0;

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	while (now() < end) {
		if (!run_one(worker, n++))
			return 1;
	}
	printf("worker %d: %ld programs\n", worker, n);
	fflush(stdout);
	return 0;
}

/*
 * Prints which call of a well-behaved end failed, and how long after the end began: a handshake fails after 6 seconds of silence, which
 * a host without time for it may need. Return: exit status.
 */
static int failed_call(int role, const char *call, double since)
{
	printf("the well-behaved %s: %s: %s after %.1f s\n", role ? "client" : "server", call, strerror(errno), now() - since);
	fflush(stdout);
	return 1;
}

static int well_behaved_end(int role, const struct sockaddr_in *addr, int ready)
{
	static const char hello[] = "hello";
	char text[sizeof(hello)] = "";
	int fd = socket(AF_SMC, SOCK_STREAM, 0), one = 1;
	double since = now();

	errno = 0;
	if (role == 0) {
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		if (bind(fd, (void *)addr, sizeof(*addr)) || listen(fd, 1) || write(ready, "", 1) != 1)
			return failed_call(role, "bind, listen or write", since);
		fd = accept(fd, NULL, NULL);
	} else if (connect(fd, (void *)addr, sizeof(*addr))) {
		return failed_call(role, "connect", since);
	}
	if (send(fd, hello, sizeof(hello), MSG_NOSIGNAL) != sizeof(hello))
		return failed_call(role, role ? "send" : "accept or send", since);
	if (recv(fd, text, sizeof(text), MSG_WAITALL) != sizeof(text) || memcmp(text, hello, sizeof(hello)))
		return failed_call(role, "recv", since);
	return 0;
}

/* Whether two well-behaved programs can communicate while fuzzing runs. */
static bool well_behaved(void)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(WELL_BEHAVED_PORT) };
	int ready[2], status = 1;
	char c;
	pid_t pid;

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		setpgid(0, 0);
		if (pipe(ready))
			_exit(1);
		pid_t server = fork();

		if (!server)
			_exit(well_behaved_end(0, &addr, ready[1]));
		close(ready[1]);
		int failed = read(ready[0], &c, 1) != 1 || well_behaved_end(1, &addr, -1);

		waitpid(server, &status, 0);
		_exit(failed || status);
	}
	setpgid(pid, pid);
	/* Ended by itself, with the right status? It is a zombie then, which kill_group() would reap. */
	bool ok = ends(pid, settings.hang_seconds) && waitpid(pid, &status, 0) == pid && !status;

	if (!ok) {
		printf("two well-behaved programs cannot talk to each other (status %#x)\n", status);
		print_stacks(pid);
	}
	kill_group(pid);
	return ok;
}

/* Runs and monitors the workers. Return: exit status. */
static int fuzz(void)
{
	double end = now() + settings.seconds;
	int running = settings.workers, status, failed = 0;
	sigset_t child;
	struct timespec pause = { 5, 0 };

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	for (int w = 0; w < settings.workers; w++) {
		if (!fork()) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			sigprocmask(SIG_UNBLOCK, &child, NULL);
			_exit(work(w, end));
		}
	}
	while (running && !failed) {
		sigtimedwait(&child, NULL, &pause);
		for (pid_t pid; (pid = waitpid(-getpgrp(), &status, WNOHANG)) > 0;) {
			running--;
			failed |= status != 0;
		}
		if (!failed && !well_behaved())
			failed = 1;
	}
	return failed;
}

static void parse(int argc, char **argv)
{
	static const struct option options[] = {
		{ "seed", 1, 0, 's' }, { "seconds", 1, 0, 't' }, { "workers", 1, 0, 'w' }, { "hang", 1, 0, 'h' },
		{ "run", 1, 0, 'r' }, { "calls", 1, 0, 'c' }, { "repeat", 1, 0, 'n' }, { "trace", 0, 0, 'v' }, {},
	};
	static char calls[65536];

	settings.seed = rnd_mix(time(NULL)) % 1000000;
	for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;) {
		switch (o) {
		case 's': settings.seed = strtoull(optarg, NULL, 0); break;
		case 't': settings.seconds = atoi(optarg); break;
		case 'w': settings.workers = atoi(optarg); break;
		case 'h': settings.hang_seconds = atoi(optarg); break;
		case 'n': settings.repeat = atoi(optarg); break;
		case 'v': settings.trace = true; break;
		case 'c':
			snprintf(calls, sizeof(calls), ",%s,", optarg);
			settings.only_calls = calls;
			break;
		case 'r':
			if (sscanf(optarg, "%d.%ld", &settings.only_worker, &settings.only_program) == 2)
				break;
			/* fall through */
		default:
			_exit(2);
		}
	}
}

int main(int argc, char **argv)
{
	int failed = 0;

	parse(argc, argv);
	printf("seed %llu\n", (unsigned long long)settings.seed);
	if (tainted()) {
		printf("the kernel has reported something already\n");
		return 2;
	}
	fflush(stdout);
	relay_start();
	if (settings.only_worker < 0)
		return fuzz();
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	for (int i = 0; i < settings.repeat && !failed; i++)
		failed = !run_one(settings.only_worker, settings.only_program) || !well_behaved();
	return failed;
}
