// SPDX-License-Identifier: Apache-2.0
/*
 * conformance - check that AF_SMC and IPPROTO_SMC sockets behave like TCP sockets towards
 * applications.
 *
 * Every check asserts the behaviour of TCP. Runs over the domains inet and inet6 test the checks
 * with TCP itself.
 */
#include "harness.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net.h"
#include "runner.h"

static const struct option options[] = {
	{ "domain", required_argument, NULL, 'd' }, { "peer", required_argument, NULL, 'p' },
	{ "role", required_argument, NULL, 'r' },   { "only", required_argument, NULL, 'o' },
	{ "list", no_argument, NULL, 'l' },	    { "timeout", required_argument, NULL, 't' },
	{ "jobs", required_argument, NULL, 'j' },   { "address", required_argument, NULL, 'a' },
	{ "help", no_argument, NULL, 'h' },
	{},
};

static void usage(FILE *to)
{
	fputs("usage: conformance --domain inet|inet6|smc|smc6|ipproto|ipproto6 [options]\n"
	      "  --peer same|tcp       what the other end is (same)\n"
	      "  --role client|server  which end is the domain's, and under test (client)\n"
	      "  --only PATTERN        checks whose name matches\n"
	      "  --list                print names only\n"
	      "  --timeout SECONDS     of one check (10); other times scale with it\n"
	      "  --jobs N              checks that run at once (8)\n"
	      "  --address A           IPv4 address of this host to listen at (127.0.0.1)\n",
	      to);
}

static bool choose(const char *value, const char *no, const char *yes)
{
	if (strcmp(value, no) && strcmp(value, yes)) {
		usage(stderr);
		exit(2);
	}
	return !strcmp(value, yes);
}

static int number(const char *value, int most)
{
	int n = atoi(value);

	if (n < 1 || n > most) {
		usage(stderr);
		exit(2);
	}
	return n;
}

int main(int argc, char **argv)
{
	struct settings s = { .domain = "", .timeout_ms = 10000, .scale_percent = 100, .jobs = 8 };
	bool list = false;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'd')
			s.domain = optarg;
		else if (c == 'p')
			s.tcp_peer = choose(optarg, "same", "tcp");
		else if (c == 'r')
			s.server = choose(optarg, "client", "server");
		else if (c == 'o')
			s.only = optarg;
		else if (c == 'l')
			list = true;
		else if (c == 't')
			s.timeout_ms = 1000 * number(optarg, 600);
		else if (c == 'j')
			s.jobs = number(optarg, 64);
		else if (c == 'a')
			s.address = optarg;
		else
			usage(c == 'h' ? stdout : stderr), exit(c == 'h' ? 0 : 2);
	}
	s.scale_percent = s.timeout_ms / 100;
	if (optind < argc || net_setup(s.domain, s.address, s.tcp_peer, s.server)) {
		usage(stderr);
		return 2;
	}
	if (list)
		return runner_list(&s) ? 0 : 2;
	return runner_run(&s) ? 1 : 0;
}
