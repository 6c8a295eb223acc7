// SPDX-License-Identifier: Apache-2.0
/*
 * An echo server and a client for tests of smc_run, to be linked statically.
 *
 *	echo serve PORT
 *	echo call PORT TEXT	sends the text to 127.0.0.1, prints the answer
 *	echo hold PORT		connects, and does nothing until it is killed
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void need(int ok, const char *what)
{
	if (!ok) {
		perror(what);
		exit(1);
	}
}

static void copy(int from, int to)
{
	char buf[4096];
	ssize_t n;

	while ((n = read(from, buf, sizeof(buf))) > 0)
		need(write(to, buf, (size_t)n) == n, "write");
}

static void serve(int fd)
{
	need(!listen(fd, 5), "listen");
	for (;;) {
		int conn = accept(fd, NULL, NULL);

		need(conn >= 0, "accept");
		if (!fork()) {
			copy(conn, conn);
			_exit(0);
		}
		close(conn);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_in addr = {.sin_family = AF_INET};
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	need(fd >= 0, "socket");
	if (argc < 3)
		return 2;
	addr.sin_port = htons((unsigned short)atoi(argv[2]));
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (!strcmp(argv[1], "serve")) {
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		need(!bind(fd, (struct sockaddr *)&addr, sizeof(addr)), "bind");
		serve(fd);
	}
	need(!connect(fd, (struct sockaddr *)&addr, sizeof(addr)), "connect");
	if (!strcmp(argv[1], "hold"))
		pause();
	need(argc == 4, "usage");
	need(write(fd, argv[3], strlen(argv[3])) == (ssize_t)strlen(argv[3]), "write");
	need(!shutdown(fd, SHUT_WR), "shutdown");
	copy(fd, STDOUT_FILENO);
	puts("");
	return 0;
}
