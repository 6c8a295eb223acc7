/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets of the family that is measured. What fails ends the process. */
#ifndef SOCKETS_H
#define SOCKETS_H

#include <stdbool.h>
#include <stddef.h>

#include "load.h"

/**
 * family_find() - look a family up
 * @name: unix, tcp or smc
 *
 * Return: the family, or NULL.
 */
const struct family *family_find(const char *name);

/**
 * family_is_ip() - can connections of a family go to another host?
 * @family: the family
 *
 * Return: whether they can.
 */
bool family_is_ip(const struct family *family);

/**
 * sockets_listen() - listen; sockets_connect() knows where
 * @at: where, or NULL for an address of this host that nobody else has
 *
 * Return: descriptor.
 */
int sockets_listen(const struct place *at);

/**
 * sockets_listener() - have sockets_connect() connect to a listener on another host
 * @at: where it is
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
