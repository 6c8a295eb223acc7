// SPDX-License-Identifier: Apache-2.0
/*
 * The job idle: measures the memory that idle connections need at both ends together, before they
 * have transferred any data, and afterwards.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "load.h"
#include "meter.h"
#include "peer.h"
#include "sockets.h"

static char *request, *response;

/* Do not count the first connection: it allocates memory that all connections share. */
static int total(void)
{
	return settings.connections + 1;
}

static int *make_fds(void)
{
	int *fds = calloc(total(), sizeof(*fds));

	request = calloc(1, settings.request);
	response = calloc(1, settings.response);
	if (!fds || !request || !response)
		die("calloc");
	return fds;
}

static void answer(const int *fds, int from, int to)
{
	for (int i = from; i < to; i++) {
		if (!sockets_read(fds[i], request, settings.request) ||
		    !sockets_write(fds[i], response, settings.response))
			die("answering");
	}
}

/*
 * Send all requests first, because connections may be accepted in another order than they were
 * made.
 */
static void ask(const int *fds, int from, int to)
{
	for (int i = from; i < to; i++)
		if (!sockets_write(fds[i], request, settings.request))
			die("asking");
	for (int i = from; i < to; i++)
		if (!sockets_read(fds[i], response, settings.response))
			die("being answered");
}

static void serve(int listener)
{
	int *fds = make_fds();

	for (int i = 0; i < total(); i++) {
		fds[i] = sockets_accept(listener);
		shared->accepted++;
		if (!i)
			answer(fds, 0, 1);
	}
	answer(fds, 1, total());
	/* Keep the connections until the client has measured: it closes first. */
	char byte;
	for (int i = 0; i < total(); i++)
		(void)!read(fds[i], &byte, 1);
}

static void open_all(int *fds, int from, int to)
{
	for (int i = from; i < to; i++)
		fds[i] = sockets_connect();
	while (peer_accepted() < to)
		meter_sleep(0.001);
}

static void drive(void)
{
	int *fds = make_fds();

	open_all(fds, 0, 1);
	ask(fds, 0, 1);
	long before = meter_memory();
	open_all(fds, 1, total());
	long connected = meter_memory();
	ask(fds, 1, total());
	long used = meter_memory();

	printf("connected_kib=%.3f used_kib=%.3f\n",
	       (double)(before - connected) / settings.connections,
	       (double)(before - used) / settings.connections);
	peer_over();
	for (int i = 0; i < total(); i++)
		close(fds[i]);
}

const struct job job_idle = { "idle", serve, drive };
