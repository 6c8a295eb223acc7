// SPDX-License-Identifier: Apache-2.0
/* Sockets of the domain under test and of its peer. */
#define _GNU_SOURCE
#include "net.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "harness.h"

static const struct domain domains[] = {
	{ "inet", AF_INET, 0, AF_INET, false },
	{ "inet6", AF_INET6, 0, AF_INET6, false },
	{ "smc", AF_SMC, SMCPROTO_SMC, AF_INET, true },
	{ "smc6", AF_SMC, SMCPROTO_SMC6, AF_INET6, true },
	{ "ipproto", AF_INET, IPPROTO_SMC, AF_INET, true },
	{ "ipproto6", AF_INET6, IPPROTO_SMC, AF_INET6, true },
};

static const struct domain *domain;
/* The address on which servers listen. It differs from loopback only in its interface. */
static struct in_addr host;
static bool client_is_tcp, server_is_tcp, server_is_subject;

int net_setup(const char *name, const char *address, bool tcp_peer, bool server)
{
	if (inet_pton(AF_INET, address ? address : "127.0.0.1", &host) != 1)
		return -1;
	for (size_t i = 0; i < sizeof(domains) / sizeof(domains[0]); i++)
		if (!strcmp(domains[i].name, name))
			domain = &domains[i];
	client_is_tcp = tcp_peer && server;
	server_is_tcp = tcp_peer && !server;
	server_is_subject = server;
	return domain ? 0 : -1;
}

const struct domain *net_domain(void)
{
	return domain;
}

int net_sock(int flags)
{
	return OK(socket(domain->family, SOCK_STREAM | flags, domain->protocol));
}

int net_tcp(int flags)
{
	return OK(socket(domain->af, SOCK_STREAM | flags, 0));
}

int net_client(int flags)
{
	return client_is_tcp ? net_tcp(flags) : net_sock(flags);
}

int net_server(int flags)
{
	return server_is_tcp ? net_tcp(flags) : net_sock(flags);
}

void net_any(struct addr *addr, uint16_t port)
{
	memset(addr, 0, sizeof(*addr));
	addr->sa.sa_family = domain->af;
	/* The port has the same offset in both families. */
	addr->in.sin_port = htons(port);
	addr->len = domain->af == AF_INET ? sizeof(addr->in) : sizeof(addr->in6);
}

void net_loopback(struct addr *addr, uint16_t port)
{
	net_any(addr, port);
	if (domain->af == AF_INET)
		addr->in.sin_addr = host;
	else
		addr->in6.sin6_addr = in6addr_loopback;
}

uint16_t net_port(const struct addr *addr)
{
	return ntohs(addr->in.sin_port);
}

void net_name(int fd, struct addr *addr)
{
	addr->len = sizeof(addr->ss);
	OK(getsockname(fd, &addr->sa, &addr->len));
}

void net_listen_on(int fd, struct addr *addr, int backlog)
{
	net_loopback(addr, 0);
	OK(bind(fd, &addr->sa, addr->len));
	OK(listen(fd, backlog));
	net_name(fd, addr);
}

int net_listen(struct addr *addr, int backlog)
{
	int fd = net_server(0);

	net_listen_on(fd, addr, backlog);
	return fd;
}

int net_connect(const struct addr *addr)
{
	int fd = net_client(0);

	OK(connect(fd, &addr->sa, addr->len));
	return fd;
}

void net_dead(struct addr *addr)
{
	/* The socket is bound but does not listen, so no other program can get the port. */
	int fd = net_tcp(0);

	net_loopback(addr, 0);
	OK(bind(fd, &addr->sa, addr->len));
	net_name(fd, addr);
}

int net_accept(int listener)
{
	net_wait(listener, POLLIN);
	return OK(accept(listener, NULL, NULL));
}

void net_pair(int *subject, int *peer)
{
	struct addr addr;
	int listener = net_listen(&addr, 1);
	int client = net_connect(&addr);
	int server = net_accept(listener);

	OK(close(listener));
	*subject = server_is_subject ? server : client;
	*peer = server_is_subject ? client : server;
}

int net_stuck(struct addr *addr)
{
	int listener = net_tcp(0), filler = net_tcp(0);

	/* A queue of length 0 accepts one connection. The kernel drops other SYNs. */
	net_listen_on(listener, addr, 0);
	OK(connect(filler, &addr->sa, addr->len));
	net_wait(listener, POLLIN);
	return listener;
}

void net_unstick(int listener)
{
	OK(accept(listener, NULL, NULL));
}

int net_poll(int fd, int events, int ms)
{
	struct pollfd p = { .fd = fd, .events = events };

	int n;

	do {
		n = poll(&p, 1, ms);
	} while (n < 0 && errno == EINTR);
	OK(n);
	return p.revents;
}

int net_wait(int fd, int events)
{
	int got;

	do {
		got = net_poll(fd, events, -1);
		/* poll() always reports these. Fail if the check does not wait for them. */
		if (!(got & events) && (got & (POLLERR | POLLHUP | POLLNVAL)))
			FAIL("waited for events %#x, got %#x", (unsigned int)events,
			     (unsigned int)got);
	} while (!(got & events));
	return got;
}

void net_wait_rcvq(int fd, int bytes)
{
	int have;

	/* poll() is not enough, because less data than SO_RCVLOWAT does not wake it. */
	while (OK(ioctl(fd, FIONREAD, &have)), have < bytes)
		net_poll(fd, 0, 1);
}

void net_nonblock(int fd, bool on)
{
	int flags = OK(fcntl(fd, F_GETFL));

	OK(fcntl(fd, F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK));
}

int net_int(int fd, int level, int option)
{
	int value = -1;
	socklen_t len = sizeof(value);

	OK(getsockopt(fd, level, option, &value, &len));
	return value;
}

int net_set(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof(value));
}

int net_error(int fd)
{
	return net_int(fd, SOL_SOCKET, SO_ERROR);
}

void net_private(void)
{
	struct ifreq ifr = { .ifr_name = "lo", .ifr_flags = IFF_UP };

	if (unshare(CLONE_NEWNET))
		harness_skip("no network namespace: %s", strerrorname_np(errno));
	OK(ioctl(net_tcp(0), SIOCSIFFLAGS, &ifr));
	/* This machine has no other address. */
	host.s_addr = htonl(INADDR_LOOPBACK);
}

void net_need_lo(void)
{
	if (domain->af == AF_INET && host.s_addr != htonl(INADDR_LOOPBACK))
		harness_skip("connections are not by the loopback interface");
}

void net_sysctl(const char *name, const char *value)
{
	char path[128];

	snprintf(path, sizeof(path), "/proc/sys/net/%s", name);
	int fd = OK(open(path, O_WRONLY));
	EQ(strlen(value), write(fd, value, strlen(value)));
	OK(close(fd));
}

/* Neighbouring bytes and neighbouring pages differ. */
static unsigned char pattern(size_t at)
{
	return at * 7 + (at >> 8) * 13 + (at >> 16);
}

void net_send(int fd, size_t from, size_t count)
{
	unsigned char buf[16384];

	while (count) {
		size_t n = count < sizeof(buf) ? count : sizeof(buf);

		for (size_t i = 0; i < n; i++)
			buf[i] = pattern(from + i);
		n = OK(send(fd, buf, n, 0));
		from += n;
		count -= n;
	}
}

void net_recv(int fd, size_t from, size_t count)
{
	unsigned char buf[16384];

	while (count) {
		size_t n = OK(recv(fd, buf, count < sizeof(buf) ? count : sizeof(buf), 0));

		if (!n)
			FAIL("end of the stream at %zu, %zu bytes too early", from, count);
		for (size_t i = 0; i < n; i++)
			if (buf[i] != pattern(from + i))
				FAIL("byte %zu of the stream is wrong", from + i);
		from += n;
		count -= n;
	}
}

void net_recv_eof(int fd)
{
	char byte;

	EQ(0, recv(fd, &byte, 1, 0));
}

void net_exchange(int a, int b)
{
	net_send(a, 0, 1000);
	net_recv(b, 0, 1000);
	net_send(b, 5, 3000);
	net_recv(a, 5, 3000);
}

int net_tcp_state(int fd)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);

	OK(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len));
	return info.tcpi_state;
}
