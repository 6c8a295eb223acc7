/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks, and their assertions. A check is a function that asserts the behaviour of TCP. Each runs
 * in a separate process, so that a crash or a hang is a failure of that check only. Therefore
 * checks need not clean up.
 */
#ifndef HARNESS_H
#define HARNESS_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* The kind of a check determines its runs. A run has a domain under test, a peer and a role. */
enum kind {
	KIND_SINGLE,	/* one socket: nothing depends on the peer */
	KIND_CONN,	/* a client and a server, which the check distinguishes */
	KIND_PAIR,	/* net_pair(): a connection seen from the end that is under test */
	KIND_SMC,	/* behaviour of AF_SMC itself, which TCP does not have */
};

struct check {
	const char *name;
	void (*run)(void);
	enum kind kind;
};

/* The section contains pointers rather than structures, because their alignment is certain. */
#define DEFINE_CHECK(id, which)                                                                    \
	static void run_##id(void);                                                                \
	static const struct check check_##id = { #id, run_##id, which };                           \
	static const struct check *const entry_##id                                                \
		__attribute__((used, section("checks"))) = &check_##id;                            \
	static void run_##id(void)

#define CHECK(id)	DEFINE_CHECK(id, KIND_SINGLE)
#define CHECK_CONN(id)	DEFINE_CHECK(id, KIND_CONN)
#define CHECK_PAIR(id)	DEFINE_CHECK(id, KIND_PAIR)
#define CHECK_SMC(id)	DEFINE_CHECK(id, KIND_SMC)

/**
 * harness_mark() - record the position of the check, for the report of a hang
 * @file: source file
 * @line: its line
 * @what: the expression about to be evaluated; must be a literal
 */
void harness_mark(const char *file, int line, const char *what);

/**
 * harness_fail() - end the check as failed
 * @format: the expected and the actual result
 *
 * May be called in any thread of the check. In a process that the check has forked it ends that
 * process with status 1, and task_reap() passes the failure on.
 */
void harness_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/**
 * harness_skip() - end the check as not possible on this system
 * @format: the reason
 */
void harness_skip(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/**
 * harness_ms() - stretch a time to the speed of the machine
 * @ms: milliseconds that are right for real hardware
 *
 * Return: milliseconds.
 */
int harness_ms(int ms);

/**
 * harness_now() - monotonic clock
 *
 * By this clock, timers of an emulated guest may expire early, when the guest makes up for lost
 * ticks. Checks must not require more than half of a time limit.
 *
 * Return: milliseconds.
 */
long harness_now(void);

/**
 * harness_expected() - look up an expected difference of a domain from TCP
 * @check: name of the check
 * @domain: name of the domain
 *
 * Return: the reason for an expected difference, or NULL if there is none.
 */
const char *harness_expected(const char *check, const char *domain);

#define FAIL(format, ...)                                                                          \
	harness_fail("%s:%d: " format, __FILE_NAME__, __LINE__, ##__VA_ARGS__)

/* Evaluates to the value of a call that must not fail. */
#define OK(expr)                                                                                   \
	({                                                                                         \
		harness_mark(__FILE_NAME__, __LINE__, #expr);                                      \
		long r_ = (long)(expr);                                                            \
		if (r_ < 0)                                                                        \
			FAIL("%s: expected success, got %s", #expr, strerrorname_np(errno));       \
		r_;                                                                                \
	})

/* Asserts that a call fails with the given errno. */
#define FAILS(err, expr)                                                                           \
	do {                                                                                       \
		harness_mark(__FILE_NAME__, __LINE__, #expr);                                      \
		errno = 0;                                                                         \
		long r_ = (long)(expr);                                                            \
		if (r_ >= 0)                                                                       \
			FAIL("%s: expected %s, got %ld", #expr, #err, r_);                         \
		if (errno != (err))                                                                \
			FAIL("%s: expected %s, got %s", #expr, #err, strerrorname_np(errno));      \
	} while (0)

/*
 * Asserts that an expression has the given value. The report includes the errno of a failed call.
 */
#define EQ(want, expr)                                                                             \
	do {                                                                                       \
		harness_mark(__FILE_NAME__, __LINE__, #expr);                                      \
		errno = 0;                                                                         \
		long w_ = (long)(want), r_ = (long)(expr);                                         \
		if (r_ != w_)                                                                      \
			FAIL("%s: expected %ld (%s), got %ld%s%s", #expr, w_, #want, r_,           \
			     r_ == -1 && errno ? " " : "",                                         \
			     r_ == -1 && errno ? strerrorname_np(errno) : "");                     \
	} while (0)

/* Asserts a condition. The format explains it. */
#define EXPECT(cond, format, ...)                                                                  \
	do {                                                                                       \
		harness_mark(__FILE_NAME__, __LINE__, #cond);                                      \
		if (!(cond))                                                                       \
			FAIL("expected %s: " format, #cond, ##__VA_ARGS__);                        \
	} while (0)

#endif
