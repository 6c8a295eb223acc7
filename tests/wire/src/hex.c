// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>

#include "hex.h"

int parse_hex(const char *hex, u8 *buf, size_t size)
{
	size_t n = 0;
	unsigned int byte;

	while (n < size && sscanf(hex + 2 * n, "%2x", &byte) == 1)
		buf[n++] = (u8)byte;
	return strlen(hex) == 2 * n ? (int)n : -1;
}

int read_inputs(const char *path, bool (*use)(void *arg, int n, const u8 *buf, size_t len), void *arg)
{
	FILE *f = fopen(path, "r");
	char *line = NULL;
	size_t room = 0;
	int n = 0;

	if (!f) {
		perror(path);
		return -1;
	}
	while (n >= 0 && getline(&line, &room, f) > 0) {
		u8 *buf;
		int len;

		if (line[0] == '#')
			continue;
		line[strcspn(line, "\n")] = '\0';
		buf = malloc(room);
		len = buf ? parse_hex(line, buf, room) : -1;
		if (len < 0)
			fprintf(stderr, "%s: input %d is no hexadecimal number\n", path, n);
		n = len >= 0 && use(arg, n, buf, (size_t)len) ? n + 1 : -1;
		free(buf);
	}
	free(line);
	fclose(f);
	return n;
}
