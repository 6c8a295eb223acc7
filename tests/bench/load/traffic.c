// SPDX-License-Identifier: Apache-2.0
/* The jobs rr and stream: permanent connections with one thread at each end. */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "load.h"
#include "meter.h"
#include "peer.h"
#include "sockets.h"

/* An end of a connection. Only its thread writes the count, and no cache line is shared. */
struct end {
	_Alignas(64) atomic_ulong count;
	unsigned long before;
	int fd;
	pthread_t thread;
};

static struct end *ends;

/*
 * Blocks the client's threads until all are started. Otherwise each running thread would preempt
 * the one that starts the others; with hundreds of threads, that takes a minute.
 */
static pthread_barrier_t all_connected;

static void *must_alloc(size_t size)
{
	void *p = calloc(1, size);

	if (!p)
		die("calloc");
	return p;
}

static void count(struct end *end, unsigned long n)
{
	unsigned long now = atomic_load_explicit(&end->count, memory_order_relaxed);

	atomic_store_explicit(&end->count, now + n, memory_order_relaxed);
}

static void *rr_client(void *arg)
{
	struct end *end = arg;
	char *request = must_alloc(settings.request), *response = must_alloc(settings.response);

	pthread_barrier_wait(&all_connected);
	while (!shared->over && sockets_write(end->fd, request, settings.request) &&
	       sockets_read(end->fd, response, settings.response))
		count(end, 1);
	free(request);
	free(response);
	close(end->fd);
	return NULL;
}

static void *rr_server(void *arg)
{
	struct end *end = arg;
	char *request = must_alloc(settings.request), *response = must_alloc(settings.response);

	while (sockets_read(end->fd, request, settings.request) &&
	       sockets_write(end->fd, response, settings.response))
		;
	free(request);
	free(response);
	close(end->fd);
	return NULL;
}

static void *stream_client(void *arg)
{
	struct end *end = arg;
	char *buf = must_alloc(settings.read);

	pthread_barrier_wait(&all_connected);
	if (!sockets_write(end->fd, buf, 1))
		die("asking for a stream");
	while (!shared->over && sockets_read(end->fd, buf, settings.read))
		count(end, settings.read);
	free(buf);
	close(end->fd);
	return NULL;
}

/*
 * Sends only after the client's request: filling buffers that are not read yet would delay the
 * thread that makes the other connections.
 */
static void *stream_server(void *arg)
{
	struct end *end = arg;
	char *buf = must_alloc(settings.read);

	if (!sockets_read(end->fd, buf, 1))
		die("being asked for a stream");
	while (sockets_write(end->fd, buf, settings.read))
		;
	free(buf);
	close(end->fd);
	return NULL;
}

static void start(struct end *end, void *(*body)(void *))
{
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	/* The buffers are not on the stack, so that 500 threads need little memory. */
	pthread_attr_setstacksize(&attr, PTHREAD_STACK_MIN + 16384);
	errno = pthread_create(&end->thread, &attr, body, end);
	if (errno)
		die("pthread_create");
	pthread_attr_destroy(&attr);
}

static void join_all(void)
{
	for (int i = 0; i < settings.connections; i++)
		pthread_join(ends[i].thread, NULL);
}

static void make_ends(void)
{
	size_t size = sizeof(*ends) * settings.connections;

	ends = aligned_alloc(_Alignof(struct end), size);
	if (!ends)
		die("aligned_alloc");
	for (int i = 0; i < settings.connections; i++)
		ends[i] = (struct end){ .fd = -1 };
}

static void serve(int listener, void *(*body)(void *))
{
	make_ends();
	for (int i = 0; i < settings.connections; i++) {
		ends[i].fd = sockets_accept(listener);
		shared->accepted++;
		start(&ends[i], body);
	}
	join_all();
}

/* Returns the number of units since the start. */
static double all(void)
{
	double sum = 0;

	for (int i = 0; i < settings.connections; i++)
		sum += (double)atomic_load_explicit(&ends[i].count, memory_order_relaxed);
	return sum;
}

/* Returns the number of units since the last call, and the number of connections without any. */
static double progress(int *starved)
{
	double sum = 0;

	*starved = 0;
	for (int i = 0; i < settings.connections; i++) {
		unsigned long now = atomic_load_explicit(&ends[i].count, memory_order_relaxed);

		sum += (double)(now - ends[i].before);
		*starved += now == ends[i].before;
		ends[i].before = now;
	}
	return sum;
}

/*
 * Makes all connections before it starts the first thread, and starts all threads before the
 * measurement.
 */
static void drive(void *(*body)(void *), const char *unit, double per_unit)
{
	make_ends();
	for (int i = 0; i < settings.connections; i++)
		ends[i].fd = sockets_connect();
	while (peer_accepted() < settings.connections)
		meter_sleep(0.001);
	pthread_barrier_init(&all_connected, NULL, settings.connections + 1);
	for (int i = 0; i < settings.connections; i++)
		start(&ends[i], body);
	meter_first();
	pthread_barrier_wait(&all_connected);
	meter_sleep(settings.warmup);

	struct result r = { .unit = unit };
	struct meter begin = peer_meter();
	progress(&r.starved);
	meter_sleep(settings.seconds);
	struct meter end = peer_meter();
	r.count = progress(&r.starved) / per_unit;
	peer_over();

	r.seconds = end.when - begin.when;
	r.cpu = end.cpu - begin.cpu;
	r.busy = end.busy - begin.busy;
	join_all();
	r.total = all() / per_unit;
	result_print(&r);
}

static void rr_serve(int listener)
{
	serve(listener, rr_server);
}

static void rr_drive(void)
{
	drive(rr_client, "transaction", 1);
}

static void stream_serve(int listener)
{
	serve(listener, stream_server);
}

static void stream_drive(void)
{
	drive(stream_client, "MB", 1e6);
}

const struct job job_rr = { "rr", rr_serve, rr_drive };
const struct job job_stream = { "stream", stream_serve, stream_drive };
