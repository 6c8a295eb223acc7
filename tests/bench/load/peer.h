/* SPDX-License-Identifier: Apache-2.0 */
/* The process that has the other ends of the connections: a child of ours, or one on another host. */
#ifndef PEER_H
#define PEER_H

#include "load.h"
#include "meter.h"

/**
 * peer_fork() - start a server on this host
 * @job: what it does
 * @listener: for it to accept from; closed here
 */
void peer_fork(const struct job *job, int listener);

/**
 * peer_serve() - be the server of a client on another host
 * @job: what to do
 * @listener: to accept from
 * @at: where that is; the client's questions come by TCP to the port that follows
 *
 * Returns in a child, once it can be reached; the parent has ended by then. So a shell that has started this
 * goes on.
 */
void peer_serve(const struct job *job, int listener, const struct place *at);

/**
 * peer_reach() - find the server on another host
 * @at: where it listens
 */
void peer_reach(const struct place *at);

/**
 * peer_accepted() - how many connections does the server have?
 *
 * Return: connections, of all that it has ever accepted.
 */
int peer_accepted(void);

/**
 * peer_meter() - read the clocks, of both processes and of all machines that they are on
 *
 * Return: readings.
 */
struct meter peer_meter(void);

/**
 * peer_over() - tell the server, and all here, that ends of connections are expected from now on
 */
void peer_over(void);

/**
 * peer_end() - wait for the server's end
 *
 * Return: 0 if it was in order.
 */
int peer_end(void);

#endif
