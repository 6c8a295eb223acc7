// SPDX-License-Identifier: Apache-2.0
/*
 * A library that simulates a kernel with AF_SMC, to be preloaded after the tested library. AF_SMC sockets are TCP sockets with
 * a mark that the program can read. Setting TCP_FASTOPEN_NO_COOKIE to any value removes the mark, because an AF_SMC socket
 * would fall back. FAKE_ERRNO makes AF_SMC sockets fail.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define AF_FAKE 43
#define MARK 6 /* SO_PRIORITY of AF_SMC sockets */

int socket(int domain, int type, int protocol)
{
	const char *fail = getenv("FAKE_ERRNO");
	int fd, mark = MARK;

	if (domain != AF_FAKE)
		return syscall(SYS_socket, domain, type, protocol);
	if (fail) {
		errno = atoi(fail);
		return -1;
	}
	fd = syscall(SYS_socket, protocol == 1 ? AF_INET6 : AF_INET, type, IPPROTO_TCP);
	if (fd >= 0)
		syscall(SYS_setsockopt, fd, SOL_SOCKET, SO_PRIORITY, &mark, sizeof(mark));
	return fd;
}

int setsockopt(int fd, int level, int name, const void *value, socklen_t size)
{
	int none = 0;

	if (level == IPPROTO_TCP && name == TCP_FASTOPEN_NO_COOKIE)
		syscall(SYS_setsockopt, fd, SOL_SOCKET, SO_PRIORITY, &none, sizeof(none));
	return syscall(SYS_setsockopt, fd, level, name, value, size);
}
