// SPDX-License-Identifier: Apache-2.0
/*
 * Draws programs: setups that bring sockets into a state, and random calls on the existing sockets.
 */
#include <string.h>

#include "calls.h"

const struct op ops[] = {
	{ "socket", op_socket, 20, ANY, FRESH, 0 },
	{ "bind", op_bind, 12, FRESH, 0, 0 },
	{ "listen", op_listen, 14, FRESH | SERVER | CLIENT, LISTENER, 0 },
	{ "connect", op_connect, 30, FRESH | STREAM, CLIENT, 0 },
	{ "disconnect", op_disconnect, 16, STREAM | LISTENER, FRESH, 0 },
	{ "accept", op_accept, 30, ANY, SERVER, LISTENER },
	{ "shutdown", op_shutdown, 14, STREAM | LISTENER, 0, 0 },
	{ "close", op_close, 10, ANY, 0, 0 },
	{ "names", op_names, 4, SOCKET, 0, 0 },
	{ "dup", op_dup, 6, ANY, 0, SOCKET },
	{ "pass", op_pass, 4, SOCKET, 0, 0 },
	{ "take", op_take, 4, ANY, 0, 0 },
	{ "fcntl", op_fcntl, 16, SOCKET, 0, 0 },
	{ "fork", op_fork, 2, SOCKET, 0, 0 },
	{ "signal", op_signal, 4, ANY, 0, 0 },
	{ "pause", op_pause, 6, ANY, 0, 0 },
	{ "unshare", op_unshare, 2, ANY, 0, 0 },
	{ "send", op_send, 24, STREAM, 0, 0 },
	{ "sendmsg", op_sendmsg, 12, STREAM, 0, 0 },
	{ "write", op_write, 12, STREAM | PIPE, 0, 0 },
	{ "recv", op_recv, 24, STREAM, 0, 0 },
	{ "recvmsg", op_recvmsg, 12, STREAM, 0, 0 },
	{ "read", op_read, 12, STREAM | PIPE, 0, 0 },
	{ "pipe", op_pipe, 3, ANY, PIPE, 0 },
	{ "splice_in", op_splice_in, 8, STREAM, 0, PIPE },
	{ "splice_out", op_splice_out, 8, STREAM, 0, PIPE },
	{ "sendfile", op_sendfile, 5, STREAM, 0, 0 },
	{ "clc", op_clc, 8, HOSTILE, 0, 0 },
	{ "forward", op_forward, 8, HOSTILE, 0, HOSTILE },
	{ "setsockopt", op_setsockopt, 34, SOCKET, 0, 0 },
	{ "getsockopt", op_getsockopt, 12, SOCKET, 0, 0 },
	{ "ioctl", op_ioctl, 10, SOCKET, 0, 0 },
	{ "zerocopy_receive", op_zerocopy_receive, 3, STREAM, 0, 0 },
	{ "filter", op_filter, 3, SOCKET, 0, 0 },
	{ "await", op_await, 14, SOCKET, 0, 0 },
	{ "poll", op_poll, 14, SOCKET, 0, 0 },
	{ "epoll", op_epoll, 3, ANY, EPOLL, 0 },
	{ "epoll_ctl", op_epoll_ctl, 8, EPOLL, 0, SOCKET },
	{ "epoll_wait", op_epoll_wait, 5, EPOLL, 0, 0 },
	{ "uring", op_uring, 24, SOCKET, 0, PIPE },
	{ "generic", op_generic, 5, ANY, 0, 0 },
	{ "policy", op_policy, 6, ANY, 0, 0 },
	{ "diag", op_diag, 6, ANY, 0, 0 },
	{ "destroy", op_destroy, 3, STREAM | LISTENER, 0, 0 },
	{ "sysctl", op_sysctl, 4, ANY, 0, 0 },
	{ "proc", op_proc, 3, SOCKET, 0, 0 },
};
const int n_ops = COUNT(ops);

/* The state of the generator. */
struct generator {
	struct rnd rnd;
	int kind[SLOTS];	/* enum kind; 0 if empty */
	int port;		/* the slot where a setup has last made a socket listen, from 1; 0 if none has */
	struct call *calls;	/* where calls go */
	int *n, max;
};

/** op_by_name() - index of an operation */
int op_by_name(const char *name)
{
	for (int i = 0; i < n_ops; i++) {
		if (!strcmp(ops[i].name, name))
			return i;
	}
	die(name);
}

/* A slot of one of these kinds, or, if there is none and at times, any. */
static int slot_of(struct generator *g, int kinds)
{
	int start = rnd_below(&g->rnd, SLOTS);

	for (int i = 0; i < SLOTS && !rnd_one_in(&g->rnd, 40); i++) {
		int slot = (start + i) % SLOTS;

		if (g->kind[slot] & kinds)
			return slot;
	}
	return start;
}

/* An empty slot, or any. */
static int new_slot(struct generator *g)
{
	for (int i = 0; i < SLOTS; i++) {
		if (!g->kind[i])
			return i;
	}
	return rnd_below(&g->rnd, SLOTS);
}

static void emit(struct generator *g, const char *name, int slot, int other, uint32_t arg, int kind)
{
	if (*g->n == g->max)
		return;
	g->calls[(*g->n)++] = (struct call){ op_by_name(name), slot, other, arg, rnd_next(&g->rnd) };
	if (kind)
		g->kind[slot] = kind;
}

static void emit_random(struct generator *g)
{
	int total = 0, i;

	for (i = 0; i < n_ops; i++)
		total += ops[i].weight;
	int at = rnd_below(&g->rnd, total);

	for (i = 0; at >= ops[i].weight; i++)
		at -= ops[i].weight;
	int slot = ops[i].makes && ops[i].wants == ANY ? new_slot(g) : slot_of(g, ops[i].wants);

	emit(g, ops[i].name, slot, slot_of(g, ops[i].other ? ops[i].other : ANY), 0, ops[i].makes);
	if (ops[i].makes == PIPE)
		g->kind[(slot + 1) % SLOTS] = PIPE;
}

enum { NONBLOCK = 1, BLOCK = 3 };	/* arguments of op_fcntl, which counts from 1 */

/* A variant of the same address family as hostile sockets or the peer may have. */
static int smc_variant(struct generator *g, bool v6)
{
	static const int v4s[] = { VARIANT_SMC, VARIANT_SMC, VARIANT_IPPROTO }, v6s[] = { VARIANT_SMC6, VARIANT_IPPROTO6 };

	return v6 ? RND_PICK(&g->rnd, v6s) : RND_PICK(&g->rnd, v4s);
}

static int listener(struct generator *g, int variant, int port)
{
	int slot = new_slot(g);

	emit(g, "socket", slot, 0, variant, FRESH);
	emit(g, "bind", slot, 0, port, 0);
	emit(g, "listen", slot, 0, 0, LISTENER);
	g->port = port;
	return slot;
}

static int client(struct generator *g, int variant, int port, int route)
{
	int slot = new_slot(g);

	emit(g, "socket", slot, 0, variant, FRESH);
	emit(g, "fcntl", slot, 0, NONBLOCK, 0);
	emit(g, "connect", slot, 0, port | route << 8, variant == VARIANT_HOSTILE ? HOSTILE : CLIENT);
	return slot;
}

static int accepted(struct generator *g, int listener, int kind)
{
	int slot = new_slot(g);

	emit(g, "accept", slot, listener, 1, kind);
	return slot;
}

/* A connection between two SMC sockets, or an SMC and a TCP socket, with some bytes in flight. */
static void setup_pair(struct generator *g)
{
	static const int routes[] = { ROUTE_LOOPBACK, ROUTE_LOOPBACK, ROUTE_LOOPBACK, ROUTE_RELAY, ROUTE_RDMA };
	bool v6 = rnd_one_in(&g->rnd, 4);
	int port = 1 + rnd_below(&g->rnd, PORTS), tcp = v6 ? VARIANT_TCP6 : VARIANT_TCP;
	int l = listener(g, rnd_one_in(&g->rnd, 8) ? tcp : smc_variant(g, v6), port);
	int n = 1 + rnd_below(&g->rnd, 2);

	for (int i = 0; i < n; i++) {
		int c = client(g, rnd_one_in(&g->rnd, 8) ? tcp : smc_variant(g, v6), port, RND_PICK(&g->rnd, routes));
		int s = accepted(g, l, SERVER);

		emit(g, "await", c, 0, 0, 0);
		if (rnd_one_in(&g->rnd, 2))
			emit(g, "fcntl", c, 0, BLOCK, 0);
		if (rnd_one_in(&g->rnd, 2))
			emit(g, "send", rnd_one_in(&g->rnd, 2) ? c : s, 0, 0, 0);
	}
}

/* A client whose server is a TCP socket that the fuzzer controls. */
static void setup_hostile_server(struct generator *g)
{
	int port = 1 + rnd_below(&g->rnd, PORTS), l = listener(g, VARIANT_HOSTILE, port);
	int c = client(g, smc_variant(g, false), port, ROUTE_RELAY), s = accepted(g, l, HOSTILE);

	emit(g, "await", s, 0, 0, 0);
	if (rnd_one_in(&g->rnd, 2))
		emit(g, "clc", s, 0, 0, 0);
	if (rnd_one_in(&g->rnd, 2))
		emit(g, "fcntl", c, 0, BLOCK, 0);
}

/* The same with the roles exchanged. */
static void setup_hostile_client(struct generator *g)
{
	int port = 1 + rnd_below(&g->rnd, PORTS), l = listener(g, smc_variant(g, rnd_one_in(&g->rnd, 4)), port);
	int n = 1 + rnd_below(&g->rnd, 4);

	for (int i = 0; i < n; i++) {
		int c = client(g, VARIANT_HOSTILE, port, ROUTE_RELAY);

		if (rnd_one_in(&g->rnd, 2))
			emit(g, "clc", c, 0, 0, 0);
		if (rnd_one_in(&g->rnd, 3))
			accepted(g, l, SERVER);
	}
}

/* Two well-behaved sockets whose handshake the fuzzer forwards. */
static void setup_middle(struct generator *g)
{
	int front = 1 + rnd_below(&g->rnd, PORTS / 2), back = front + PORTS / 2;
	int hl = listener(g, VARIANT_HOSTILE, front), sl = listener(g, smc_variant(g, false), back);
	int c = client(g, smc_variant(g, false), front, ROUTE_RELAY), hs = accepted(g, hl, HOSTILE);
	int hc = client(g, VARIANT_HOSTILE, back, ROUTE_RELAY);

	emit(g, "await", c, 0, 0, 0);
	for (int i = 0; i < 3; i++) {
		emit(g, "forward", hs, hc, 0, 0);
		emit(g, "forward", hc, hs, 0, 0);
	}
	accepted(g, sl, SERVER);
}

/* Connections that wait for accept(), or for an answer that does not come. */
static void setup_waiting(struct generator *g)
{
	int port = 1 + rnd_below(&g->rnd, PORTS), n = 1 + rnd_below(&g->rnd, 5);

	listener(g, smc_variant(g, false), port);
	for (int i = 0; i < n; i++)
		client(g, smc_variant(g, false), port, rnd_one_in(&g->rnd, 6) ? ROUTE_SILENT : ROUTE_LOOPBACK);
}

/* A socket that is used for another purpose than before. */
static void setup_again(struct generator *g)
{
	static const int kinds[] = { SERVER, SERVER, CLIENT, STREAM | LISTENER };
	int slot = slot_of(g, RND_PICK(&g->rnd, kinds)), port = 1 + rnd_below(&g->rnd, PORTS);

	emit(g, "disconnect", slot, 0, 0, FRESH);
	if (!rnd_one_in(&g->rnd, 3))
		emit(g, "fcntl", slot, 0, rnd_one_in(&g->rnd, 4) ? BLOCK : NONBLOCK, 0);
	if (rnd_one_in(&g->rnd, 3)) {
		emit(g, "bind", slot, 0, port, 0);
		emit(g, "listen", slot, 0, 0, LISTENER);
	} else {
		if (g->port && !rnd_one_in(&g->rnd, 4))
			port = g->port;
		emit(g, "connect", slot, 0, port | (rnd_one_in(&g->rnd, 2) ? ROUTE_ANY : ROUTE_LOOPBACK) << 8, CLIENT);
		emit(g, "await", slot, 0, 0, 0);
	}
}

static void thread(struct generator *g, struct thread *t)
{
	int n = 4 + rnd_below(&g->rnd, THREAD_CALLS - 20);

	g->calls = t->calls;
	g->n = &t->n;
	g->max = THREAD_CALLS;
	while (t->n < n) {
		if (rnd_one_in(&g->rnd, 12))
			setup_again(g);
		else
			emit_random(g);
	}
}

/**
 * generate() - draw a program
 * @p: where it goes
 * @seed: the only input of the generator
 */
void generate(struct program *p, uint64_t seed)
{
	static void (*const setups[])(struct generator *g) = {
		setup_pair, setup_pair, setup_pair, setup_hostile_server, setup_hostile_client, setup_middle, setup_waiting,
	};
	static const enum env envs[] = { ENV_NOBODY, ENV_NOBODY, ENV_NOBODY, ENV_NOBODY, ENV_ROOT, ENV_USERNS };
	struct generator g = { .rnd = { seed }, .calls = p->setup, .n = &p->n_setup, .max = SETUP_CALLS };

	memset(p, 0, sizeof(*p));
	p->seed = seed;
	p->env = RND_PICK(&g.rnd, envs);
	/* Some live long enough for waits of six seconds for a peer. */
	p->deadline_ms = rnd_one_in(&g.rnd, 100) ? 10000 : 300 + rnd_below(&g.rnd, 700);
	for (int n = rnd_below(&g.rnd, 4); n > 0; n--) {
		RND_PICK(&g.rnd, setups)(&g);
		if (rnd_one_in(&g.rnd, 3))
			setup_again(&g);
	}
	p->n_threads = 1 + rnd_below(&g.rnd, THREADS);
	for (int t = 0; t < p->n_threads; t++) {
		p->threads[t].process = rnd_below(&g.rnd, 2);
		thread(&g, &p->threads[t]);
	}
}
