// SPDX-License-Identifier: Apache-2.0
/* The command line, the two processes, and the output. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "load.h"
#include "peer.h"
#include "sockets.h"

struct settings settings = {
	.connections = 1,
	.warmup = 0.5,
	.seconds = 3,
	.request = 200,
	.response = 1000,
	.read = 30720,
};

/*
 * The server's address if it is not on the client's host, and whether this process is that server.
 */
static struct place at;
static enum { BOTH, SERVER, CLIENT } role;

static const struct job *const jobs[] = { &job_rr, &job_stream, &job_connect, &job_idle };

static const struct option options[] = {
	{ "family", required_argument, NULL, 'f' },
	{ "job", required_argument, NULL, 'j' },
	{ "connections", required_argument, NULL, 'n' },
	{ "seconds", required_argument, NULL, 's' },
	{ "warmup", required_argument, NULL, 'w' },
	{ "request", required_argument, NULL, 'q' },
	{ "response", required_argument, NULL, 'a' },
	{ "read", required_argument, NULL, 'r' },
	{ "listen", required_argument, NULL, 'l' },
	{ "connect", required_argument, NULL, 'c' },
	{ "help", no_argument, NULL, 'h' },
	{},
};

static void usage(FILE *to)
{
	fputs("usage: load --family unix|tcp|smc|ipproto --job rr|stream|connect|idle [options]\n"
	      "  rr       transactions: the client writes a request and reads the response\n"
	      "  stream   the server writes, the client reads\n"
	      "  connect  connections are made, accepted and closed, one after the other\n"
	      "  idle     memory that connections take which are just there\n"
	      "\n"
	      "  --connections N   at once (1); connect has one\n"
	      "  --seconds S       that are measured (3)\n"
	      "  --warmup S        before (0.5)\n"
	      "  --request BYTES   of a transaction (200)\n"
	      "  --response BYTES  of a transaction (1000)\n"
	      "  --read BYTES      of a read and a write of a stream (30720)\n"
	      "  --listen IPV4:PORT   be the server of a client on another host that has the same\n"
	      "                       options, in the background; the next port is taken, too\n"
	      "  --connect IPV4:PORT  be that client\n"
	      "\n"
	      "Prints what was done, at what rate, and the microseconds that each took: cpu_us is\n"
	      "time of the two processes, busy_us of the machine, or both. starved is the number of\n"
	      "connections that moved nothing. idle prints KiB of each connection, both ends together,\n"
	      "before and after a transaction; it wants them on one host.\n",
	      to);
}

void die(const char *what)
{
	fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
	_exit(1);
}

void result_print(const struct result *r)
{
	double per = r->count ? 1e6 / r->count : 0;

	printf("unit=%s count=%.3f seconds=%.3f rate=%.3f cpu_us=%.3f busy_us=%.3f starved=%d total=%.3f\n",
	       r->unit, r->count, r->seconds, r->count / r->seconds, r->cpu * per, r->busy * per,
	       r->starved, r->total);
	fflush(stdout);
}

static double number(const char *value, double least, double most)
{
	char *end;
	double n = strtod(value, &end);

	if (end == value || *end || !(n >= least && n <= most)) {
		usage(stderr);
		exit(2);
	}
	return n;
}

static const struct job *find_job(const char *name)
{
	for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++)
		if (!strcmp(jobs[i]->name, name))
			return jobs[i];
	return NULL;
}

static void find_place(const char *value, int as)
{
	const char *colon = strrchr(value, ':');
	char addr[INET_ADDRSTRLEN] = "";

	if (colon && (size_t)(colon - value) < sizeof(addr))
		memcpy(addr, value, colon - value);
	if (inet_pton(AF_INET, addr, &at.addr) != 1) {
		usage(stderr);
		exit(2);
	}
	at.port = (in_port_t)number(colon + 1, 1, 65534);
	role = as;
}

static const struct job *parse(int argc, char **argv)
{
	const struct job *job = NULL;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'f')
			settings.family = family_find(optarg);
		else if (c == 'j')
			job = find_job(optarg);
		else if (c == 'n')
			settings.connections = (int)number(optarg, 1, 100000);
		else if (c == 's')
			settings.seconds = number(optarg, 0.001, 3600);
		else if (c == 'w')
			settings.warmup = number(optarg, 0, 3600);
		else if (c == 'q')
			settings.request = (size_t)number(optarg, 1, 1 << 20);
		else if (c == 'a')
			settings.response = (size_t)number(optarg, 1, 1 << 20);
		else if (c == 'r')
			settings.read = (size_t)number(optarg, 1, 1 << 20);
		else if (c == 'l' || c == 'c')
			find_place(optarg, c == 'l' ? SERVER : CLIENT);
		else
			usage(c == 'h' ? stdout : stderr), exit(c == 'h' ? 0 : 2);
	}
	if (optind < argc || !settings.family || !job ||
	    (role != BOTH && (job == &job_idle || !family_is_ip(settings.family)))) {
		usage(stderr);
		exit(2);
	}
	return job;
}

static void out_of_time(int nr)
{
	static const char text[] = "load: connections hang: no end long after the time is up\n";

	(void)nr;
	(void)!write(STDERR_FILENO, text, sizeof(text) - 1);
	_exit(1);
}

void set_deadline(void)
{
	alarm((unsigned int)(settings.warmup + settings.seconds) + 60);
}

static void prepare(void)
{
	rlim_t most = settings.connections + 64;
	struct rlimit files = { .rlim_cur = most, .rlim_max = most };

	signal(SIGPIPE, SIG_IGN);
	signal(SIGALRM, out_of_time);
	set_deadline();
	if (setrlimit(RLIMIT_NOFILE, &files))
		die("setrlimit");
}

int main(int argc, char **argv)
{
	const struct job *job = parse(argc, argv);

	prepare();
	if (role == SERVER) {
		peer_serve(job, sockets_listen(&at), &at);
		return 0;
	}
	if (role == CLIENT) {
		sockets_listener(&at);
		peer_reach(&at);
	} else {
		peer_fork(job, sockets_listen(NULL));
	}
	job->drive();
	return peer_end() != 0;
}
