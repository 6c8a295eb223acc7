/* SPDX-License-Identifier: Apache-2.0 */
/* State that the runner and the harness share across the fork. */
#ifndef RUNNER_H
#define RUNNER_H

enum { STATUS_FAIL = 1, STATUS_SKIP = 77 };

/* The position of a check, in shared memory. The strings are literals, at the same address in both processes. */
struct mark {
	const char *volatile file;
	const char *volatile what;
	volatile int line;
};

struct settings {
	const char *domain;
	const char *only;	/* pattern, or NULL for all */
	const char *address;	/* as net_setup() takes it */
	int timeout_ms;		/* of one check */
	int scale_percent;	/* of times within checks */
	int jobs;
	bool tcp_peer;
	bool server;
};

/* harness_attach() - set the destinations of marks and reports in the check's process */
void harness_attach(struct mark *shared, int fd, int percent);

/**
 * runner_run() - run all checks of the settings and print their verdicts
 *
 * Return: number of checks that failed.
 */
int runner_run(const struct settings *settings);

/** runner_list() - print the names of the checks of the settings. Return: how many there are. */
int runner_list(const struct settings *settings);

#endif
