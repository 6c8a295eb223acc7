// SPDX-License-Identifier: Apache-2.0
/*
 * For LD_PRELOAD: a program that asks for a TCP socket gets an AF_SMC one. Nothing else is touched, so that whatever
 * the program does to its sockets afterwards reaches the kernel as the program meant it.
 */
#define _GNU_SOURCE
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef AF_SMC
#define AF_SMC 43
#endif

/* Protocols of AF_SMC. */
#define SMC_OVER_IPV4 0
#define SMC_OVER_IPV6 1

/* The type argument of socket(2) without its flags. */
#define TYPE_MASK 0xf

static int is_tcp(int domain, int type, int protocol)
{
	if (domain != AF_INET && domain != AF_INET6)
		return 0;
	if ((type & TYPE_MASK) != SOCK_STREAM)
		return 0;
	return protocol == 0 || protocol == IPPROTO_TCP;
}

int socket(int domain, int type, int protocol)
{
	if (is_tcp(domain, type, protocol)) {
		protocol = domain == AF_INET6 ? SMC_OVER_IPV6 : SMC_OVER_IPV4;
		domain = AF_SMC;
	}
	/* Do not call the next library's socket(), which cannot be looked up before main() in this way. */
	return syscall(SYS_socket, domain, type, protocol);
}
