// SPDX-License-Identifier: Apache-2.0
/* Clocks: wall clock, and processor time of processes and of the machine. */
#define _GNU_SOURCE
#include "meter.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "load.h"

static double seconds_of(clockid_t clock)
{
	struct timespec t;

	if (clock_gettime(clock, &t))
		die("clock_gettime");
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

double meter_now(void)
{
	return seconds_of(CLOCK_MONOTONIC);
}

double meter_process(pid_t pid)
{
	clockid_t clock;

	errno = clock_getcpuclockid(pid, &clock);
	if (errno)
		die("clock_getcpuclockid");
	return seconds_of(clock);
}

static void read_file(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		die(path);
	ssize_t n = read(fd, text, size - 1);

	if (n < 0)
		die(path);
	text[n] = 0;
	close(fd);
}

/* The kernel measures idle time exactly, but only samples the other states of processors. */
static double idle_time(void)
{
	char text[4096];
	long idle, waiting;

	read_file("/proc/stat", text, sizeof(text));
	if (sscanf(text, "cpu %*d %*d %*d %ld %ld", &idle, &waiting) != 2) {
		errno = EPROTO;
		die("/proc/stat");
	}
	return (double)(idle + waiting) / (double)sysconf(_SC_CLK_TCK);
}

struct meter meter_read(void)
{
	double now = meter_now();

	return (struct meter){
		.when = now,
		.cpu = meter_process(getpid()),
		.busy = (double)sysconf(_SC_NPROCESSORS_ONLN) * now - idle_time(),
	};
}

void meter_first(void)
{
	struct sched_param p = { .sched_priority = 1 };

	(void)sched_setscheduler(0, SCHED_FIFO, &p);
}

/* Returns the sum of the numbers in lines of a file in /proc that begin with a word. */
static long sum_of(const char *path, const char *word)
{
	FILE *f = fopen(path, "re");
	char line[256];
	long sum = 0, lines = 0;

	if (!f)
		die(path);
	while (fgets(line, sizeof(line), f)) {
		char *start = line + strspn(line, " ");

		if (!strncmp(start, word, strlen(word))) {
			sum += strtol(start + strlen(word), NULL, 10);
			lines++;
		}
	}
	fclose(f);
	if (!lines) {
		errno = EPROTO;
		die(path);
	}
	return sum;
}

/*
 * Each processor keeps a list of free pages, of up to some megabytes, which MemAvailable counts as
 * used.
 */
static long available(void)
{
	/*
	 * Each processor also updates the global counters only once per second. Root can update
	 * them now.
	 */
	int fd = open("/proc/sys/vm/stat_refresh", O_WRONLY | O_CLOEXEC);

	if (fd >= 0) {
		(void)!write(fd, "1", 1);
		close(fd);
	}
	return sum_of("/proc/meminfo", "MemAvailable:") +
	       sum_of("/proc/zoneinfo", "count:") * (sysconf(_SC_PAGESIZE) / 1024);
}

long meter_memory(void)
{
	enum { STILL = 64, TRIES = 15 };
	long before, now = available();

	/* Acknowledgments may be late, and RCU and work queues free memory later. */
	for (int i = 0; i < TRIES; i++) {
		meter_sleep(0.2);
		before = now;
		now = available();
		if (labs(now - before) < STILL)
			break;
	}
	return now;
}

void meter_sleep(double seconds)
{
	struct timespec t = { .tv_sec = (time_t)seconds };

	t.tv_nsec = (long)((seconds - (double)t.tv_sec) * 1e9);
	while (nanosleep(&t, &t) && errno == EINTR)
		;
}
