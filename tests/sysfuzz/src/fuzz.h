/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A system-call fuzzer for AF_SMC sockets.
 *
 * A program is a list of calls that are drawn from a seed: first a few setups that bring sockets into
 * states that random calls rarely reach, then two processes of up to three threads each that call at
 * random on a common pool of descriptors. Each call draws its arguments from a seed of its own, so that a
 * program that misbehaves can be run again, and cut down, call by call.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#ifndef AF_SMC
#define AF_SMC 43
#endif
#ifndef IPPROTO_SMC
#define IPPROTO_SMC 256
#endif
#ifndef SOL_SMC
#define SOL_SMC 286
#endif

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum {
	SLOTS = 24,		/* descriptors in the pool */
	THREADS = 6,		/* of a program, in both processes together */
	SETUP_CALLS = 64,
	THREAD_CALLS = 48,
	PORTS = 8,		/* that a worker listens at */
	DATA = 1 << 18,		/* bytes to send from, and to receive to */
};

/* Pseudo-random numbers: splitmix64. */
struct rnd {
	uint64_t state;
};

static inline uint64_t rnd_mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

static inline uint64_t rnd_next(struct rnd *r)
{
	return rnd_mix(r->state += 0x9e3779b97f4a7c15ull);
}

/* A number from 0 to n - 1. */
static inline uint32_t rnd_below(struct rnd *r, uint32_t n)
{
	return rnd_next(r) % n;
}

static inline bool rnd_one_in(struct rnd *r, uint32_t n)
{
	return !rnd_below(r, n);
}

#define RND_PICK(r, array) ((array)[rnd_below(r, COUNT(array))])

/* The generator's idea of the contents of a slot: bits. */
enum kind {
	FRESH = 1,		/* a socket without a connection */
	LISTENER = 2,
	CLIENT = 4,		/* has called connect() */
	SERVER = 8,		/* comes from accept() */
	HOSTILE = 16,		/* TCP whose SYN the relay marks with the SMC option, or its connection */
	PIPE = 32,
	EPOLL = 64,
	STREAM = CLIENT | SERVER | HOSTILE,
	SOCKET = FRESH | LISTENER | STREAM,
	ANY = SOCKET | PIPE | EPOLL,
};

/* The arguments of socket(); VARIANT_ANY lets the call draw them. */
enum variant {
	VARIANT_ANY,
	VARIANT_SMC,
	VARIANT_SMC6,
	VARIANT_IPPROTO,
	VARIANT_IPPROTO6,
	VARIANT_TCP,
	VARIANT_TCP6,
	VARIANT_HOSTILE,
	VARIANTS,
};

/* Where connect() goes; ROUTE_ANY lets the call draw it. */
enum route {
	ROUTE_ANY,
	ROUTE_LOOPBACK,
	ROUTE_RELAY,		/* through the relay: the peer seems to be another host */
	ROUTE_RDMA,		/* an address that leaves by an RDMA device, if the lab has set one up */
	ROUTE_SILENT,		/* without a host, so nothing answers */
	ROUTES,
};

/* The credentials that run a program. */
enum env {
	ENV_NOBODY,		/* an unprivileged user, in the initial network namespace */
	ENV_ROOT,
	ENV_USERNS,		/* an unprivileged user who is root in namespaces of its own */
	ENVS,
};

struct call {
	uint8_t op;		/* index into ops */
	uint8_t slot, other;
	uint32_t arg;		/* 0, or a value that the setup of the call needs; see the op */
	uint64_t seed;
};

struct thread {
	int process;		/* 0 or 1 */
	int n;
	struct call calls[THREAD_CALLS];
};

struct program {
	uint64_t seed;
	enum env env;
	int deadline_ms;	/* when it is killed */
	int n_setup;
	struct call setup[SETUP_CALLS];
	int n_threads;
	struct thread threads[THREADS];
};

/* The state of a call. One for each thread. */
struct ctx {
	const struct program *program;
	struct rnd rnd;		/* of the call that runs */
	int port;		/* the first of PORTS */
	bool loop_only;		/* in a namespace that has the loopback interface only */
	bool full;		/* privileged in the namespace, which only this program uses */
	char text[256];		/* the call in words, if it is traced */
};

/* An operation of the fuzzer: one system call, or a few that belong together. */
struct op {
	const char *name;
	long (*run)(struct ctx *c, const struct call *call);
	int weight;		/* how often it is drawn; 0: only setups use it */
	int wants;		/* kinds of slot it is of use for */
	int makes;		/* kind that slot 'slot' has afterwards, or 0 */
	int other;		/* kinds of the second slot, or 0 if it needs none */
};

extern const struct op ops[];
extern const int n_ops;

/* options of the command line */
extern struct settings {
	uint64_t seed;
	int seconds, workers, hang_seconds;
	bool trace;
	int only_worker;	/* -1, or the worker of the one program to run */
	long only_program;
	const char *only_calls;	/* comma-separated thread.index, or NULL for all */
	int repeat;
} settings;

/* generate.c */
int op_by_name(const char *name);
void generate(struct program *p, uint64_t seed);

/* run.c */
void program_run(const struct program *p, int port) __attribute__((noreturn));
void inflight_report(const struct program *p);
void inflight_init(void);
void *shared_map(size_t size);

/* pool.c */
void pool_init(void);
int pool_fd(int slot);
void pool_put(int slot, int fd);
int pool_take(int slot);
void pool_share(int pair[2]);
unsigned char *pool_data(struct ctx *c, size_t len);
unsigned char *pool_sink(void);

/* relay.c */
void relay_start(void);
enum { RELAY_TOS = 0x28 };
#define RELAY_SELF "10.88.0.1"
#define RELAY_PEER "10.88.0.2"
#define RELAY_SILENT "10.88.0.77"
#define RDMA_PEER "10.9.0.2"

/* clc.c */
size_t clc_message(struct rnd *r, unsigned char *buf, size_t size);
void clc_mutate(struct rnd *r, unsigned char *buf, size_t len);

/* main.c */
void die(const char *what) __attribute__((noreturn));

/* Prints a call before it runs, if calls are traced. */
void trace(struct ctx *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define DECLARE_OP(name) long name(struct ctx *c, const struct call *call)

#endif
