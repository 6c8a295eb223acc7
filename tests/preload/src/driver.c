// SPDX-License-Identifier: Apache-2.0
/*
 * Makes system calls through the C library according to its arguments, and prints the result of each. See main().
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define UNTOUCHED 77

static int last = -1;

static int option(int fd, int level, int name)
{
	int value = -1;
	socklen_t size = sizeof(value);

	getsockopt(fd, level, name, &value, &size);
	return value;
}

static void make(const char *how)
{
	int domain, type, protocol;

	if (sscanf(how, "%d,%d,%d", &domain, &type, &protocol) != 3)
		exit(2);
	errno = UNTOUCHED;
	last = socket(domain, type, protocol);
	if (last < 0)
		printf("failed %d\n", errno);
	else
		printf("%s %d\n", option(last, SOL_SOCKET, SO_PRIORITY) == 6 ? "smc" : "plain", errno);
}

static socklen_t parse(const char *text, struct sockaddr_storage *ss)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)ss;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ss;
	char host[64];
	int port;

	memset(ss, 0, sizeof(*ss));
	if (sscanf(text, "%63[^,],%d", host, &port) != 2)
		exit(2);
	if (inet_pton(AF_INET, host, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(port);
		return sizeof(*v4);
	}
	if (inet_pton(AF_INET6, host, &v6->sin6_addr) != 1)
		exit(2);
	v6->sin6_family = AF_INET6;
	v6->sin6_port = htons(port);
	return sizeof(*v6);
}

/* Is it still an AF_SMC socket with the same options? */
static void tell(int rc)
{
	printf("%s%s", rc ? "failed " : "", option(last, SOL_SOCKET, SO_PRIORITY) == 6 ? "smc" : "plain");
	if (option(last, IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE) > 0)
		printf(" cookieless");
	printf("\n");
}

static void *many(void *failed)
{
	int fd, i;

	for (i = 0; i < 500; i++) {
		errno = UNTOUCHED;
		fd = socket(AF_INET, SOCK_STREAM, 0);
		if (fd < 0 || errno != UNTOUCHED || option(fd, SOL_SOCKET, SO_PRIORITY) != 6)
			*(int *)failed = 1;
		close(fd);
	}
	return NULL;
}

static void threads(void)
{
	pthread_t t[8];
	int failed[8] = {0}, i, any = 0;

	for (i = 0; i < 8; i++)
		pthread_create(&t[i], NULL, many, &failed[i]);
	for (i = 0; i < 8; i++) {
		pthread_join(t[i], NULL);
		any |= failed[i];
	}
	printf("threads %s\n", any ? "failed" : "done");
}

static volatile sig_atomic_t alarms, bad;

static void on_alarm(int sig)
{
	int saved = errno, fd = socket(AF_INET, SOCK_STREAM, 0);

	(void)sig;
	if (fd < 0 || option(fd, SOL_SOCKET, SO_PRIORITY) != 6)
		bad = 1;
	close(fd);
	alarms++;
	errno = saved;
}

/* Interrupts socket() repeatedly by handlers that call it. */
static void signals(void)
{
	struct itimerval every = {{0, 200}, {0, 200}};
	int failed = 0;

	signal(SIGALRM, on_alarm);
	setitimer(ITIMER_REAL, &every, NULL);
	while (alarms < 500)
		many(&failed);
	memset(&every, 0, sizeof(every));
	setitimer(ITIMER_REAL, &every, NULL);
	printf("signals %s\n", failed || bad ? "failed" : "done");
}

static void *hang(void *unused)
{
	struct sockaddr_storage ss;
	socklen_t len = parse("127.0.0.1,1", &ss);

	(void)unused;
	pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, NULL);
	last = socket(AF_INET, SOCK_STREAM, 0);
	pthread_cancel(pthread_self());
	connect(last, (struct sockaddr *)&ss, len);
	return NULL;
}

/* connect() is a cancellation point. */
static void cancel(void)
{
	pthread_t t;
	void *result = NULL;

	pthread_create(&t, NULL, hang, NULL);
	pthread_join(t, &result);
	printf("%s\n", result == PTHREAD_CANCELED ? "cancelled" : "went on");
}

int main(int argc, char **argv)
{
	struct sockaddr_storage ss;
	socklen_t len;
	int i, two = 2;

	for (i = 1; i < argc; i++) {
		char *value = strchr(argv[i], '=');

		if (value)
			*value++ = '\0';
		if (!strcmp(argv[i], "socket")) {
			make(value);
		} else if (!strcmp(argv[i], "connect")) {
			len = parse(value, &ss);
			errno = UNTOUCHED;
			two = connect(last, (struct sockaddr *)&ss, len);
			tell(two && errno != ECONNREFUSED && errno != ENETUNREACH);
		} else if (!strcmp(argv[i], "badconnect")) {
			/* The compiler must not use its knowledge of readable memory here. */
			printf("%d", connect(last, (struct sockaddr *)(uintptr_t)strtoul(value, NULL, 0), 16));
			printf(" %d\n", errno);
		} else if (!strcmp(argv[i], "bind")) {
			len = parse(value, &ss);
			if (bind(last, (struct sockaddr *)&ss, len))
				exit(3);
		} else if (!strcmp(argv[i], "listen")) {
			tell(listen(last, 1));
		} else if (!strcmp(argv[i], "size")) {
			printf("%d %d\n", option(last, SOL_SOCKET, SO_SNDBUF), option(last, SOL_SOCKET, SO_RCVBUF));
		} else if (!strcmp(argv[i], "close2")) {
			close(2);
		} else if (!strcmp(argv[i], "threads")) {
			threads();
		} else if (!strcmp(argv[i], "signals")) {
			signals();
		} else if (!strcmp(argv[i], "cancel")) {
			cancel();
		} else {
			return 2;
		}
	}
	return 0;
}
