/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets of the measured family. Errors end the process. */
#ifndef SOCKETS_H
#define SOCKETS_H

#include <stdbool.h>
#include <stddef.h>

#include "load.h"

/**
 * family_find() - look up a family
 * @name: unix, tcp or smc
 *
 * Return: the family, or NULL.
 */
const struct family *family_find(const char *name);

/**
 * family_is_ip() - check whether a family can connect to another host
 * @family: the family
 *
 * Return: whether it can.
 */
bool family_is_ip(const struct family *family);

/**
 * sockets_listen() - listen, and store the address for sockets_connect()
 * @at: the address, or NULL for an unused address of this host
 *
 * Return: descriptor.
 */
int sockets_listen(const struct place *at);

/**
 * sockets_listener() - make sockets_connect() connect to a listener on another host
 * @at: its address
 */
void sockets_listener(const struct place *at);

/**
 * sockets_connect() - connect to the listener
 *
 * Return: descriptor.
 */
int sockets_connect(void);

/**
 * sockets_accept() - wait for a connection
 * @listener: descriptor
 *
 * Return: descriptor.
 */
int sockets_accept(int listener);

/**
 * sockets_read() - read until the buffer is full
 * @fd: descriptor
 * @buf: buffer
 * @len: its size
 *
 * Return: false if the other side has ended the connection, which is a failure before the end of
 * the measurement.
 */
bool sockets_read(int fd, void *buf, size_t len);

/**
 * sockets_write() - write all of a buffer
 * @fd: descriptor
 * @buf: buffer
 * @len: its size
 *
 * Return: false if the other side has ended the connection, which is a failure before the end of
 * the measurement.
 */
bool sockets_write(int fd, const void *buf, size_t len);

#endif
