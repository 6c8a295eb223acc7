/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server process, which has the other ends of the connections: a child of the client, or a
 * process on another host.
 */
#ifndef PEER_H
#define PEER_H

#include "load.h"
#include "meter.h"

/**
 * peer_fork() - start a server on this host
 * @job: the job to serve
 * @listener: the listener from which the server accepts; peer_fork() closes it in the client
 */
void peer_fork(const struct job *job, int listener);

/**
 * peer_serve() - be the server of a client on another host
 * @job: the job to serve
 * @listener: the listener from which to accept
 * @at: its address; the client sends requests by TCP to the next port
 *
 * Continues in a child and ends the parent once the child can be reached, so that a shell that has
 * started the program continues.
 */
void peer_serve(const struct job *job, int listener, const struct place *at);

/**
 * peer_reach() - connect to the server on another host
 * @at: the server's address
 */
void peer_reach(const struct place *at);

/**
 * peer_accepted() - get the number of connections that the server has accepted
 *
 * Return: number of connections since the start.
 */
int peer_accepted(void);

/**
 * peer_meter() - read the clocks of both processes, and of all machines on which they run
 *
 * Return: readings.
 */
struct meter peer_meter(void);

/**
 * peer_over() - inform the server and all threads that connections may be closed from now on
 */
void peer_over(void);

/**
 * peer_end() - wait until the server ends
 *
 * Return: 0 if it succeeded.
 */
int peer_end(void);

#endif
