/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which connections may be SMC's, by port and address. Pure: no system call, no allocation, nothing static.
 */
#ifndef SMCKIT_PRELOAD_RULES_H
#define SMCKIT_PRELOAD_RULES_H

#include "abi.h"

#define RULES_MOST 64

struct ports {
	uint16_t first, last;
};

/* Addresses of IPv4 are in the last four bytes, behind the prefix that maps them into IPv6, which bits counts, too. */
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
	struct list only; /* ports and networks that connections need to be of, if there are any of the kind */
	struct list not;  /* and those that they must not be of */
};

bool rules_any(const struct rules *r);
bool rules_add_ports(struct list *l, const char *text);
bool rules_add_networks(struct list *l, const char *text);
bool rules_add_either(struct list *l, const char *text);
bool rules_match(const struct rules *r, const union address *a);

#endif
