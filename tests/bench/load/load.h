/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load - a client and a server process that keep sockets of one family busy, and what that costs.
 *
 * A connection has a thread at either end, and all calls block: as uperf has it, whose workloads
 * these are, and as most programs do that are moved to SMC without being changed. A readiness loop
 * would serve many connections with one wake-up, and wake-ups are part of what is compared here.
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
	in_port_t port; /* of this machine's byte order */
};

struct settings {
	const struct family *family;
	int connections;
	double warmup, seconds;
	size_t request, response, read;
};

/**
 * struct shared - what the two processes know of each other, if they are on one host
 * @accepted: connections that the server has
 * @over: the measurement is done; from now on the ends of connections are expected
 */
struct shared {
	atomic_int accepted;
	atomic_bool over;
};

extern struct settings settings;
extern struct shared *shared;

/**
 * struct result - what a job has found out
 * @unit: what is counted
 * @count: of these, in the time that was measured
 * @total: of these, ever
 * @seconds: how long that was
 * @cpu: seconds of processor time of both processes
 * @busy: seconds in which a processor of the machine, or of either machine, was not idle
 * @starved: connections on which nothing has moved
 */
struct result {
	const char *unit;
	double count, total, seconds, cpu, busy;
	int starved;
};

/**
 * struct job - what is done
 * @name: for the command line
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
 * result_print() - print the one line that others read
 * @r: result
 */
void result_print(const struct result *r);

/**
 * end_in_time() - end this process long after it should be done
 *
 * A lost wake-up should not hang whoever has started it.
 */
void end_in_time(void);

/**
 * die() - end the process, because of errno
 * @what: what has failed
 */
void die(const char *what) __attribute__((noreturn));

#endif
