// SPDX-License-Identifier: Apache-2.0
/* Runs checks in separate processes, several at a time, each with a deadline. */
#define _GNU_SOURCE
#include "harness.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net.h"
#include "runner.h"

#define MOST_JOBS 64

extern const struct check *const __start_checks[];
extern const struct check *const __stop_checks[];

/* A running check. */
struct slot {
	const struct check *check;
	struct mark *mark;
	long deadline;
	pid_t pid;
	int pidfd;
	int report;
	bool killed;
};

static int failures;

/* With the same domain at both ends, only checks of pairs depend on the end under test. */
static bool belongs_to_run(const struct check *check, const struct settings *s)
{
	if (s->only && fnmatch(s->only, check->name, 0))
		return false;
	switch (check->kind) {
	case KIND_SINGLE:
		return !s->tcp_peer && !s->server;
	case KIND_CONN:
		return s->tcp_peer || !s->server;
	case KIND_PAIR:
		return true;
	case KIND_SMC:
		return !strcmp(s->domain, "smc") && !s->tcp_peer && !s->server;
	}
	return false;
}

static void print(const struct check *check, const struct settings *s, int status, const char *text)
{
	const char *reason = harness_expected(check->name, s->domain);

	if (status == STATUS_SKIP) {
		printf("ok %s # SKIP %s\n", check->name, text);
	} else if (status && reason) {
		printf("ok %s # EXPECTED %s: %s\n", check->name, reason, text);
	} else if (status) {
		printf("not ok %s - %s\n", check->name, text);
		failures++;
	} else if (reason) {
		printf("not ok %s - passes, but is listed as a difference: %s\n", check->name,
		       reason);
		failures++;
	} else {
		printf("ok %s\n", check->name);
	}
	fflush(stdout);
}

/* Stress checks repeat their calls, and need a longer deadline on slow machines. */
static int check_timeout(const struct settings *s, const struct check *check)
{
	return s->timeout_ms * (strncmp(check->name, "stress_", 7) ? 1 : 6);
}

static void start(struct slot *slot, const struct check *check, const struct settings *s)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK)) {
		perror("pipe2");
		exit(2);
	}
	memset(slot->mark, 0, sizeof(*slot->mark));
	pid_t pid = fork();
	if (pid < 0) {
		perror("fork");
		exit(2);
	}
	if (!pid) {
		setpgid(0, 0);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		signal(SIGPIPE, SIG_IGN);
		/* Use the same limit everywhere, so that checks can reach it. */
		setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 1024, 1024 });
		harness_attach(slot->mark, ends[1], s->scale_percent);
		check->run();
		_exit(0);
	}
	setpgid(pid, pid);
	close(ends[1]);
	slot->check = check;
	slot->pid = pid;
	slot->pidfd = syscall(SYS_pidfd_open, pid, 0);
	slot->report = ends[0];
	slot->killed = false;
	slot->deadline = harness_now() + check_timeout(s, check);
	if (slot->pidfd < 0) {
		perror("pidfd_open");
		exit(2);
	}
}

static void drop(struct slot *slot)
{
	close(slot->pidfd);
	close(slot->report);
	slot->check = NULL;
}

static void finish(struct slot *slot, const struct settings *s)
{
	char text[640] = "", said[512];
	int status;

	/* End all processes that the check has started. */
	kill(-slot->pid, SIGKILL);
	waitpid(slot->pid, &status, 0);
	ssize_t n = read(slot->report, said, sizeof(said) - 1);
	said[n > 0 ? n : 0] = 0;
	if (slot->killed)
		snprintf(text, sizeof(text), "hung for %d ms at %s:%d: %s", check_timeout(s, slot->check),
			 slot->mark->file, slot->mark->line, slot->mark->what);
	else if (WIFSIGNALED(status))
		snprintf(text, sizeof(text), "died of signal %d at %s:%d: %s", WTERMSIG(status),
			 slot->mark->file, slot->mark->line, slot->mark->what);
	else
		snprintf(text, sizeof(text), "%s", said);
	print(slot->check, s, WIFEXITED(status) ? WEXITSTATUS(status) : STATUS_FAIL, text);
	drop(slot);
}

static void overdue(struct slot *slot, const struct settings *s)
{
	if (!slot->killed) {
		kill(-slot->pid, SIGKILL);
		slot->killed = true;
		slot->deadline += s->timeout_ms;
		return;
	}
	/* The process hangs in the kernel and cannot be killed, so do not wait for it. */
	char text[640];

	snprintf(text, sizeof(text), "hangs in the kernel, cannot be killed, at %s:%d: %s",
		 slot->mark->file, slot->mark->line, slot->mark->what);
	print(slot->check, s, STATUS_FAIL, text);
	drop(slot);
}

/* Waits until a check has ended or has exceeded its deadline. */
static void wait_for_slot(struct slot *slots, const struct settings *s)
{
	struct pollfd fds[MOST_JOBS];
	long next = LONG_MAX;

	for (int i = 0; i < s->jobs; i++) {
		fds[i] = (struct pollfd){ slots[i].check ? slots[i].pidfd : -1, POLLIN, 0 };
		if (slots[i].check && slots[i].deadline < next)
			next = slots[i].deadline;
	}
	long wait = next - harness_now();

	if (poll(fds, s->jobs, wait > 0 ? wait : 0) < 0)
		return;
	for (int i = 0; i < s->jobs; i++) {
		if (!slots[i].check)
			continue;
		if (fds[i].revents)
			finish(&slots[i], s);
		else if (harness_now() >= slots[i].deadline)
			overdue(&slots[i], s);
	}
}

int runner_run(const struct settings *s)
{
	struct slot slots[MOST_JOBS] = {};
	const struct check *const *next = __start_checks;
	struct mark *marks = mmap(NULL, s->jobs * sizeof(*marks), PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (marks == MAP_FAILED) {
		perror("mmap");
		exit(2);
	}
	for (;;) {
		int busy = 0;

		for (int i = 0; i < s->jobs; i++) {
			slots[i].mark = &marks[i];
			while (next < __stop_checks && !belongs_to_run(*next, s))
				next++;
			if (!slots[i].check && next < __stop_checks)
				start(&slots[i], *next++, s);
			busy += !!slots[i].check;
		}
		if (!busy)
			return failures;
		wait_for_slot(slots, s);
	}
}

int runner_list(const struct settings *s)
{
	int count = 0;

	for (const struct check *const *c = __start_checks; c < __stop_checks; c++) {
		if (!belongs_to_run(*c, s))
			continue;
		puts((*c)->name);
		count++;
	}
	return count;
}
