// SPDX-License-Identifier: Apache-2.0
/*
 * A static program, for which no library can be preloaded: ask PORT CONNECTIONS THREADS. Each
 * connection to 127.0.0.1 sends data and compares the echo. It closes the connections after all of
 * them have done so.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct sockaddr_in peer = { .sin_family = AF_INET };
static int each;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void *ask(void *unused)
{
	char sent[4096], got[sizeof(sent)];

	for (int i = 0; i < each; i++) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP);

		if (fd < 0)
			fail("socket");
		if (connect(fd, (struct sockaddr *)&peer, sizeof(peer)))
			fail("connect");
		memset(sent, 'a' + fd % 26, sizeof(sent));
		if (write(fd, sent, sizeof(sent)) != sizeof(sent))
			fail("write");
		if (recv(fd, got, sizeof(got), MSG_WAITALL) != sizeof(got))
			fail("recv");
		if (memcmp(sent, got, sizeof(sent))) {
			fputs("the answer differs\n", stderr);
			exit(1);
		}
	}
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t threads[64];
	int n;

	if (argc != 4)
		return 2;
	n = atoi(argv[3]);
	if (n < 1 || n > 64)
		return 2;
	peer.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	peer.sin_port = htons(atoi(argv[1]));
	each = atoi(argv[2]) / n;
	for (int i = 0; i < n; i++)
		if (pthread_create(&threads[i], NULL, ask, NULL))
			fail("pthread_create");
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
