// SPDX-License-Identifier: Apache-2.0
/* Sockets of the measured family. */
#define _GNU_SOURCE
#include "sockets.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "load.h"

#ifndef AF_SMC
#define AF_SMC 43
#endif

#ifndef IPPROTO_SMC
#define IPPROTO_SMC 256
#endif

struct family {
	const char *name;
	int domain, protocol;
	bool ip;
};

static const struct family families[] = {
	{ "unix", AF_UNIX, 0, false },
	{ "tcp", AF_INET, 0, true },
	{ "smc", AF_SMC, 0, true },
	{ "ipproto", AF_INET, IPPROTO_SMC, true },
};

/* Address of the listener. The client inherits it. */
static union {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_un un;
} address;
static socklen_t address_len;

const struct family *family_find(const char *name)
{
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
		if (!strcmp(families[i].name, name))
			return &families[i];
	return NULL;
}

bool family_is_ip(const struct family *family)
{
	return family->ip;
}

/* The profile of the study sets tcp_nodelay. */
static void no_delay(int fd)
{
	int on = 1;

	if (settings.family->ip && setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)))
		die("TCP_NODELAY");
}

static int new_socket(void)
{
	int fd = socket(settings.family->domain, SOCK_STREAM | SOCK_CLOEXEC, settings.family->protocol);

	if (fd < 0)
		die("socket");
	no_delay(fd);
	return fd;
}

void sockets_listener(const struct place *at)
{
	address.in.sin_family = AF_INET;
	address.in.sin_addr = at->addr;
	address.in.sin_port = htons(at->port);
	address_len = sizeof(address.in);
}

int sockets_listen(const struct place *at)
{
	struct place loopback = { .addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = new_socket(), on = 1;

	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (settings.family->ip) {
		sockets_listener(at ? at : &loopback);
	} else {
		/* If only the family is given, the kernel chooses an abstract name. */
		address.un.sun_family = AF_UNIX;
		address_len = sizeof(address.un.sun_family);
	}
	if (bind(fd, &address.sa, address_len))
		die("bind");
	address_len = sizeof(address);
	if (getsockname(fd, &address.sa, &address_len))
		die("getsockname");
	if (listen(fd, 1024))
		die("listen");
	return fd;
}

int sockets_connect(void)
{
	int fd = new_socket();

	if (connect(fd, &address.sa, address_len))
		die("connect");
	return fd;
}

int sockets_accept(int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0)
		die("accept");
	/* AF_SMC may not inherit the option from the listener, as TCP does. */
	no_delay(fd);
	return fd;
}

/*
 * Whether to continue after a call. Ends the process if the call has failed during the measurement.
 */
static bool can_continue(ssize_t n, const char *what)
{
	if (n > 0 || (n < 0 && errno == EINTR))
		return true;
	if (!shared->over) {
		if (!n)
			errno = EPIPE;
		die(what);
	}
	return false;
}

bool sockets_read(int fd, void *buf, size_t len)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = read(fd, (char *)buf + done, len - done);

		if (!can_continue(n, "read"))
			return false;
		done += n > 0 ? n : 0;
	}
	return true;
}

bool sockets_write(int fd, const void *buf, size_t len)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = write(fd, (const char *)buf + done, len - done);

		if (!can_continue(n, "write"))
			return false;
		done += n > 0 ? n : 0;
	}
	return true;
}
