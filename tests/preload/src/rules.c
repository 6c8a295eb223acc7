// SPDX-License-Identifier: Apache-2.0
/*
 * Reads rules and an address from each line, "PORTS|NETWORKS|NOT|FAMILY|ADDRESS|PORT" with the address in hexadecimal, and
 * prints the decision of the preload library: 1, 0, or "bad" for invalid rules.
 */
#include "../../../preload/rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int answer(char *line)
{
	char *field[6];
	struct rules r;
	union address a;
	unsigned int i, byte, port;
	unsigned char *bytes;

	for (i = 0; i < 6; i++)
		if (!(field[i] = strsep(&line, "|")))
			exit(2);
	memset(&r, 0, sizeof(r));
	memset(&a, 0, sizeof(a));
	if ((*field[0] && !rules_add_ports(&r.only, field[0])) || (*field[1] && !rules_add_networks(&r.only, field[1])) ||
	    (*field[2] && !rules_add_either(&r.not, field[2])))
		return -1;
	a.family = (unsigned short)atoi(field[3]);
	bytes = a.family == AF_INET ? (unsigned char *)&a.v4.sin_addr : a.v6.sin6_addr.s6_addr;
	for (i = 0; sscanf(field[4] + 2 * i, "%2x", &byte) == 1; i++)
		bytes[i] = (unsigned char)byte;
	port = (unsigned int)atoi(field[5]);
	((unsigned char *)&a.v4.sin_port)[0] = (unsigned char)(port >> 8);
	((unsigned char *)&a.v4.sin_port)[1] = (unsigned char)port;
	return rules_match(&r, &a);
}

int main(void)
{
	static char line[65536];

	while (fgets(line, sizeof(line), stdin)) {
		int result;

		line[strcspn(line, "\n")] = '\0';
		result = answer(line);
		puts(result < 0 ? "bad" : result ? "1" : "0");
	}
	return 0;
}
