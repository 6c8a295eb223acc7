// SPDX-License-Identifier: Apache-2.0
/*
 * The server process, which has the other ends of the connections. It is a child of the client with
 * shared memory, or it is on another host, and answers every byte from the client with a report.
 */
#define _GNU_SOURCE
#include "peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sockets.h"

/* Both hosts have the same architecture and run this program, so the structure is sent as it is. */
struct report {
	struct meter meter;
	int accepted;
};

enum { REPORT = 'r', OVER = 'o' };

struct shared *shared;

/* The client has one of these: a server on its host, or a control connection. */
static pid_t child;
static int control = -1;

static void share(void)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		die("mmap");
}

void peer_fork(const struct job *job, int listener)
{
	pid_t client = getpid();

	share();
	child = fork();
	if (child < 0)
		die("fork");
	if (child) {
		/* If the server ends, connections must be refused. */
		close(listener);
		return;
	}
	/* The server ends with the client, however the client ends. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != client)
		_exit(1);
	job->serve(listener);
	_exit(0);
}

static struct sockaddr_in control_address(const struct place *at)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_addr = at->addr,
		.sin_port = htons(at->port + 1),
	};
}

static int control_socket(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		die("control socket");
	return fd;
}

/*
 * Answers the client's requests until the control connection ends, and ends this process then: the
 * client has finished, or has failed.
 */
static void *answer(void *arg)
{
	int listener = *(int *)arg;
	char question;

	control = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	if (control < 0)
		die("accept of control");
	while (read(control, &question, 1) == 1) {
		if (question == OVER)
			shared->over = true;
		struct report r = { .meter = meter_read(), .accepted = shared->accepted };

		if (write(control, &r, sizeof(r)) != sizeof(r))
			break;
	}
	_exit(0);
}

void peer_serve(const struct job *job, int listener, const struct place *at)
{
	struct sockaddr_in sin = control_address(at);
	int fd = control_socket(), on = 1;
	pthread_t thread;

	share();
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&sin, sizeof(sin)) || listen(fd, 1))
		die("listening for control");
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (pid)
		_exit(0);
	set_deadline();
	errno = pthread_create(&thread, NULL, answer, &fd);
	if (errno)
		die("pthread_create");
	job->serve(listener);
	/* The client still needs its last reports. */
	pthread_join(thread, NULL);
}

void peer_reach(const struct place *at)
{
	struct sockaddr_in sin = control_address(at);

	share();
	control = control_socket();
	if (connect(control, (struct sockaddr *)&sin, sizeof(sin)))
		die("connecting for control");
}

static struct report request_report(char question)
{
	struct report r;

	if (write(control, &question, 1) != 1 || recv(control, &r, sizeof(r), MSG_WAITALL) != sizeof(r)) {
		errno = EPIPE;
		die("asking the server");
	}
	return r;
}

int peer_accepted(void)
{
	return control < 0 ? shared->accepted : request_report(REPORT).accepted;
}

struct meter peer_meter(void)
{
	struct meter m = meter_read();

	if (control < 0) {
		m.cpu += meter_process(child);
	} else {
		struct report r = request_report(REPORT);

		m.cpu += r.meter.cpu;
		m.busy += r.meter.busy;
	}
	return m;
}

void peer_over(void)
{
	if (control >= 0)
		request_report(OVER);
	shared->over = true;
}

int peer_end(void)
{
	int status = 0;

	if (control >= 0)
		close(control);
	else if (waitpid(child, &status, 0) < 0)
		die("waitpid");
	return status;
}
