/* SPDX-License-Identifier: Apache-2.0 */
/* Requests over netlink. */
#ifndef MESSAGE_H
#define MESSAGE_H

#include <linux/netlink.h>

#include "fuzz.h"

struct message {
	struct nlmsghdr header;
	unsigned char body[1024];
};

/* Sends a message and reads some of the answer. */
long message_send(struct ctx *c, int protocol, struct message *m);

/* The number of a generic netlink family, or 0. */
int message_family(const char *name);

#endif
