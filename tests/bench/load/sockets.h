/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets of the family that is measured. What fails ends the process. */
#ifndef SOCKETS_H
#define SOCKETS_H

#include <stdbool.h>
#include <stddef.h>

/**
 * family_find() - look a family up
 * @name: unix, tcp or smc
 *
 * Return: the family, or NULL.
 */
const struct family *family_find(const char *name);

/**
 * sockets_listen() - listen on an address that nobody else has; sockets_connect() knows it
 *
 * Return: descriptor.
 */
int sockets_listen(void);

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
