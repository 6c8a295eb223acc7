/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load - a client and a server process that keep sockets of one family busy, and measure the costs.
 *
 * A connection has one thread at each end, and all calls block. uperf, from which the workloads
 * come, works like this, and so do most programs that are moved to SMC without changes. An event
 * loop would serve many connections with one wake-up, and wake-ups are part of the comparison.
 */
#ifndef LOAD_H
#define LOAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <netinet/in.h>

/* A server's address. */
struct place {
	struct in_addr addr;
	in_port_t port; /* host byte order */
};

struct settings {
	const struct family *family;
	int connections;
	double warmup, seconds;
	size_t request, response, read;
};

/**
 * struct shared - state that the two processes share if they are on one host
 * @accepted: connections that the server has accepted
 * @over: the measurement has ended, so connections may be closed
 */
struct shared {
	atomic_int accepted;
	atomic_bool over;
};

extern struct settings settings;
extern struct shared *shared;

/**
 * struct result - the result of a job
 * @unit: the unit that is counted
 * @count: number of units during the measurement
 * @total: number of units since the start
 * @seconds: duration of the measurement
 * @cpu: seconds of processor time of both processes
 * @busy: seconds in which a processor of the machine, or of either machine, was not idle
 * @starved: connections that have not transferred any data
 */
struct result {
	const char *unit;
	double count, total, seconds, cpu, busy;
	int starved;
};

/**
 * struct job - a kind of load
 * @name: name on the command line
 * @serve: the server process, from listen() on
 * @drive: the client process; prints its result
 */
struct job {
	const char *name;
	void (*serve)(int listener);
	void (*drive)(void);
};

extern const struct job job_rr, job_stream, job_connect, job_idle;

/**
 * result_print() - print the result as one line, which the benchmarks parse
 * @r: result
 */
void result_print(const struct result *r);

/**
 * set_deadline() - kill this process if it still runs long after it should have ended
 *
 * A lost wake-up must not block the caller of this program for ever.
 */
void set_deadline(void);

/**
 * die() - end the process with an error message for errno
 * @what: the call that has failed
 */
void die(const char *what) __attribute__((noreturn));

#endif
