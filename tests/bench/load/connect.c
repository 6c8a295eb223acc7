// SPDX-License-Identifier: Apache-2.0
/*
 * The job connect: makes, accepts and closes connections, one after the other.
 *
 * The server closes first, and the client waits for that. So there is at most one connection at a
 * time, and no queue can overflow. Sockets in TIME-WAIT use the server's one port, and the client's
 * ports are free again at once.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#include "load.h"
#include "meter.h"
#include "peer.h"
#include "sockets.h"

static void serve(int listener)
{
	bool last;

	do {
		int fd = sockets_accept(listener);

		/* Read this before the client can know that this connection is done. */
		last = shared->over;
		close(fd);
	} while (!last);
}

static void one(void)
{
	char byte;
	int fd = sockets_connect();

	if (read(fd, &byte, 1) < 0)
		die("waiting for the server's close");
	close(fd);
}

static double connect_for(double seconds)
{
	double until = meter_now() + seconds, n = 0;

	do {
		one();
		n++;
	} while (meter_now() < until);
	return n;
}

static void drive(void)
{
	struct result r = { .unit = "connection" };

	r.total = connect_for(settings.warmup);
	struct meter begin = peer_meter();
	r.count = connect_for(settings.seconds);
	struct meter end = peer_meter();

	r.seconds = end.when - begin.when;
	r.cpu = end.cpu - begin.cpu;
	r.busy = end.busy - begin.busy;
	/* Make one more connection, so that the server notices the end. */
	peer_over();
	one();
	r.total += r.count + 1;
	result_print(&r);
}

const struct job job_connect = { "connect", serve, drive };
