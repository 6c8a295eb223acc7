// SPDX-License-Identifier: Apache-2.0
/* Requests over netlink. */
#define _GNU_SOURCE
#include <linux/genetlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "message.h"

long message_send(struct ctx *c, int protocol, struct message *m)
{
	static const int sizes[] = { 0, 16, 100, 1000, 8192 };
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
	long r = sendto(fd, m, m->header.nlmsg_len, 0, (void *)&kernel, sizeof(kernel));

	for (int i = rnd_below(&c->rnd, 6); r > 0 && i > 0; i--) {
		if (recv(fd, pool_sink(), RND_PICK(&c->rnd, sizes), MSG_DONTWAIT) <= 0)
			break;
	}
	close(fd);
	return r;
}

int message_family(const char *name)
{
	struct message m = { { .nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN), .nlmsg_type = GENL_ID_CTRL, .nlmsg_flags = NLM_F_REQUEST }, {} };
	struct genlmsghdr *g = (void *)m.body;
	struct nlattr *a = (void *)(m.body + GENL_HDRLEN);
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC), id = 0;

	g->cmd = CTRL_CMD_GETFAMILY;
	g->version = 1;
	a->nla_type = CTRL_ATTR_FAMILY_NAME;
	a->nla_len = NLA_HDRLEN + strlen(name) + 1;
	strcpy((char *)(a + 1), name);
	m.header.nlmsg_len += NLA_ALIGN(a->nla_len);
	ssize_t n = send(fd, &m, m.header.nlmsg_len, 0) < 0 ? -1 : recv(fd, &m, sizeof(m), 0);
	unsigned char *end = (unsigned char *)&m + (n > 0 ? n : 0);

	if (n > 0 && m.header.nlmsg_type == GENL_ID_CTRL) {
		for (; (unsigned char *)(a + 1) < end && a->nla_len >= NLA_HDRLEN; a = (void *)((char *)a + NLA_ALIGN(a->nla_len))) {
			if (a->nla_type == CTRL_ATTR_FAMILY_ID)
				id = *(uint16_t *)(a + 1);
		}
	}
	close(fd);
	return id;
}
