/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes as text: vectors and fuzzing inputs are lines of hexadecimal digits. */
#ifndef TESTS_WIRE_HEX_H
#define TESTS_WIRE_HEX_H

#include "shim.h"

/* Returns the number of bytes, or -1 if the text is no hexadecimal number or does not fit. */
int parse_hex(const char *hex, u8 *buf, size_t size);

/*
 * Reads a file with one input in each line and passes each to @use with its number. Lines that begin with # are comments.
 * Returns the number of inputs, or -1 with a message if the file is wrong or @use fails.
 */
int read_inputs(const char *path, bool (*use)(void *arg, int n, const u8 *buf, size_t len), void *arg);

#endif /* TESTS_WIRE_HEX_H */
