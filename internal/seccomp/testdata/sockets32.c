/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A 32-bit program that makes a TCP socket in each way that the kernel has for it: by the C library, by socket(2) and by
 * socketcall(2). It prints the priority of each socket, and the flag of the last one that close-on-exec is.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static void print_priority(int fd)
{
	int priority = -1;
	socklen_t size = sizeof(priority);

	getsockopt(fd, SOL_SOCKET, SO_PRIORITY, &priority, &size);
	printf("%d ", priority);
}

int main(void)
{
	long args[] = {AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0};
	int fd;

	print_priority(socket(AF_INET, SOCK_STREAM, 0));
	print_priority(syscall(SYS_socket, AF_INET, SOCK_STREAM, 0));
	fd = syscall(SYS_socketcall, 1, args);
	print_priority(fd);
	print_priority(socket(AF_INET, SOCK_DGRAM, 0));
	printf("%d", fcntl(fd, F_GETFD));
	return 0;
}
