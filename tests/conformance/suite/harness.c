// SPDX-License-Identifier: Apache-2.0
/* The marks and verdicts of a check, in the process of the check. */
#define _GNU_SOURCE
#include "harness.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "runner.h"

static struct mark *mark;
static int report = -1;
static int scale_percent = 100;

void harness_attach(struct mark *shared, int fd, int percent)
{
	mark = shared;
	report = fd;
	scale_percent = percent;
}

void harness_mark(const char *file, int line, const char *what)
{
	/* Threads may race here: any of their last positions is useful in a report. */
	mark->file = file;
	mark->what = what;
	mark->line = line;
}

static void end(int status, const char *format, va_list ap)
{
	char text[512];
	int len = vsnprintf(text, sizeof(text), format, ap);

	if (len > (int)sizeof(text) - 1)
		len = sizeof(text) - 1;
	for (char *nl = text; (nl = strchr(nl, '\n'));)
		*nl = ' ';
	/* If the report cannot be written, the exit status still shows the failure. */
	if (write(report, text, len) < 0)
		status = STATUS_FAIL;
	_exit(status);
}

void harness_fail(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	end(STATUS_FAIL, format, ap);
	va_end(ap);
	_exit(STATUS_FAIL);
}

void harness_skip(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	end(STATUS_SKIP, format, ap);
	va_end(ap);
	_exit(STATUS_SKIP);
}

int harness_ms(int ms)
{
	return ms * scale_percent / 100;
}

long harness_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}
