/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which connections may use SMC, by port and address. Pure: no system call, no allocation, no static data.
 */
#ifndef SMCKIT_PRELOAD_RULES_H
#define SMCKIT_PRELOAD_RULES_H

#include "abi.h"

#define RULES_MOST 64

struct ports {
	uint16_t first, last;
};

/* An IPv4 address is IPv4-mapped: it is in the last four bytes, and bits includes the prefix of the mapping. */
struct network {
	uint8_t addr[16];
	uint8_t bits;
	bool v4;
};

struct list {
	struct ports ports[RULES_MOST];
	struct network networks[RULES_MOST];
	unsigned int nr_ports, nr_networks;
};

struct rules {
	struct list only; /* ports and networks: if there are any of a kind, a connection must match one */
	struct list not;  /* ports and networks that a connection must not match */
};

bool rules_any(const struct rules *r);
bool rules_add_ports(struct list *l, const char *text);
bool rules_add_networks(struct list *l, const char *text);
bool rules_add_either(struct list *l, const char *text);
bool rules_match(const struct rules *r, const union address *a);

#endif
