// SPDX-License-Identifier: Apache-2.0
/* bind() and the names of sockets. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"
#include "net.h"

static int at(int fd, const struct addr *addr)
{
	return bind(fd, &addr->sa, addr->len);
}

CHECK(bind_port_0_chooses)
{
	struct addr addr;
	int fd = net_sock(0);

	net_loopback(&addr, 0);
	EQ(0, at(fd, &addr));
	net_name(fd, &addr);
	EXPECT(net_port(&addr), "no port was chosen");
	EQ(net_domain()->af, addr.sa.sa_family);
}

CHECK(bind_given_port)
{
	struct addr addr, name;
	int first = net_sock(0), second = net_sock(0);

	net_loopback(&addr, 0);
	OK(at(first, &addr));
	net_name(first, &addr);
	OK(close(first));
	EQ(0, at(second, &addr));
	net_name(second, &name);
	EQ(net_port(&addr), net_port(&name));
}

CHECK(bind_twice)
{
	struct addr addr;
	int fd = net_sock(0);

	net_loopback(&addr, 0);
	OK(at(fd, &addr));
	FAILS(EINVAL, at(fd, &addr));
}

CHECK(bind_in_use)
{
	struct addr addr;
	int fd = net_sock(0), other = net_sock(0);

	net_listen_on(fd, &addr, 1);
	FAILS(EADDRINUSE, at(other, &addr));
}

CHECK(bind_in_use_by_tcp)
{
	struct addr addr;
	int fd = net_tcp(0), other = net_sock(0);

	/* AF_SMC and TCP share the port numbers. */
	net_listen_on(fd, &addr, 1);
	FAILS(EADDRINUSE, at(other, &addr));
}

CHECK(bind_takes_port_from_tcp)
{
	struct addr addr;
	int fd = net_sock(0), other = net_tcp(0);

	net_listen_on(fd, &addr, 1);
	FAILS(EADDRINUSE, at(other, &addr));
}

CHECK(bind_after_failure)
{
	struct addr addr, other;
	int fd = net_sock(0);

	net_listen_on(net_tcp(0), &addr, 1);
	FAILS(EADDRINUSE, at(fd, &addr));
	net_loopback(&other, 0);
	EQ(0, at(fd, &other));
}

CHECK(bind_foreign_address)
{
	struct addr addr;
	int fd = net_sock(0);

	net_any(&addr, 0);
	if (addr.sa.sa_family == AF_INET)
		inet_pton(AF_INET, "192.0.2.77", &addr.in.sin_addr);
	else
		inet_pton(AF_INET6, "2001:db8::77", &addr.in6.sin6_addr);
	FAILS(EADDRNOTAVAIL, at(fd, &addr));
}

CHECK(bind_short_address)
{
	struct addr addr;
	int fd = net_sock(0);

	net_loopback(&addr, 0);
	FAILS(EINVAL, bind(fd, &addr.sa, 0));
	FAILS(EINVAL, bind(fd, &addr.sa, 8));
	EQ(0, at(fd, &addr));
}

CHECK(bind_bad_family)
{
	struct addr addr;
	int fd = net_sock(0);

	net_loopback(&addr, 0);
	addr.sa.sa_family = AF_UNIX;
	FAILS(EAFNOSUPPORT, at(fd, &addr));
	addr.sa.sa_family = AF_SMC;
	FAILS(EAFNOSUPPORT, at(fd, &addr));
}

CHECK(bind_bad_pointer)
{
	FAILS(EFAULT, bind(net_sock(0), (struct sockaddr *)8, sizeof(struct sockaddr_in6)));
}

CHECK(bind_reuseaddr_two_bound)
{
	struct addr addr;
	int fd = net_sock(0), other = net_sock(0);

	OK(net_set(fd, SOL_SOCKET, SO_REUSEADDR, 1));
	OK(net_set(other, SOL_SOCKET, SO_REUSEADDR, 1));
	net_loopback(&addr, 0);
	OK(at(fd, &addr));
	net_name(fd, &addr);
	EQ(0, at(other, &addr));
	/* Both sockets may be bound, but only one may listen. */
	EQ(0, listen(fd, 1));
	FAILS(EADDRINUSE, listen(other, 1));
}

CHECK(bind_reuseaddr_not_beside_listener)
{
	struct addr addr;
	int fd = net_sock(0), other = net_sock(0);

	OK(net_set(fd, SOL_SOCKET, SO_REUSEADDR, 1));
	OK(net_set(other, SOL_SOCKET, SO_REUSEADDR, 1));
	net_listen_on(fd, &addr, 1);
	FAILS(EADDRINUSE, at(other, &addr));
}

/* Leaves a connection with @addr's port in TIME_WAIT at the server's side. */
static void leave_time_wait(struct addr *addr)
{
	int listener = net_server(0);

	/* The socket in TIME_WAIT inherits this. Both sockets need it to share a port. */
	OK(net_set(listener, SOL_SOCKET, SO_REUSEADDR, 1));
	net_listen_on(listener, addr, 1);
	int client = net_connect(addr), server = net_accept(listener);
	OK(close(server));
	net_recv_eof(client);
	OK(close(client));
	OK(close(listener));
}

CHECK_CONN(bind_over_time_wait)
{
	struct addr addr;

	leave_time_wait(&addr);
	int plain = net_server(0), reuse = net_server(0);
	FAILS(EADDRINUSE, at(plain, &addr));
	OK(net_set(reuse, SOL_SOCKET, SO_REUSEADDR, 1));
	EQ(0, at(reuse, &addr));
	EQ(0, listen(reuse, 1));
	int fd = net_connect(&addr);
	net_exchange(fd, net_accept(reuse));
}

CHECK_CONN(bind_reuseport_distributes)
{
	struct addr addr;
	int first = net_server(0), second = net_server(0), got[2] = { 0, 0 };

	OK(net_set(first, SOL_SOCKET, SO_REUSEPORT, 1));
	OK(net_set(second, SOL_SOCKET, SO_REUSEPORT, 1));
	net_listen_on(first, &addr, 100);
	EQ(0, at(second, &addr));
	EQ(0, listen(second, 100));
	for (int i = 0; i < 64; i++) {
		int fd = net_connect(&addr);
		struct pollfd p[2] = { { first, POLLIN, 0 }, { second, POLLIN, 0 } };

		OK(poll(p, 2, -1));
		int which = !(p[0].revents & POLLIN);
		net_exchange(fd, OK(accept(which ? second : first, NULL, NULL)));
		got[which]++;
	}
	EXPECT(got[0] && got[1], "one listener got %d, the other %d", got[0], got[1]);
}

CHECK(bind_reuseport_needs_both)
{
	struct addr addr;
	int first = net_sock(0), second = net_sock(0);

	OK(net_set(second, SOL_SOCKET, SO_REUSEPORT, 1));
	net_listen_on(first, &addr, 1);
	FAILS(EADDRINUSE, at(second, &addr));
}

CHECK(bind_closed_port_is_free)
{
	struct addr addr;
	int fd = net_sock(0), other = net_sock(0);

	net_listen_on(fd, &addr, 1);
	OK(close(fd));
	EQ(0, at(other, &addr));
	EQ(0, listen(other, 1));
}

CHECK_CONN(bind_connected)
{
	struct addr addr, other;
	int fd;

	net_listen(&addr, 1);
	fd = net_connect(&addr);
	net_loopback(&other, 0);
	FAILS(EINVAL, at(fd, &other));
}

/* Whether an IPv4 socket can bind to the port of an IPV6_V6ONLY socket. */
static bool shares_with_ipv4(void)
{
	struct addr addr, four = { .in = { .sin_family = AF_INET }, .len = sizeof(four.in) };
	int fd = net_sock(0), plain = OK(socket(AF_INET, SOCK_STREAM, 0));
	long rc;

	OK(net_set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1));
	net_any(&addr, 0);
	EQ(0, at(fd, &addr));
	net_name(fd, &addr);
	four.in.sin_port = addr.in6.sin6_port;
	rc = at(plain, &four);
	OK(close(plain));
	OK(close(fd));
	return !rc;
}

CHECK(bind_v6only)
{
	enum { PORTS = 20 };
	int i = 0;

	if (net_domain()->af != AF_INET6)
		harness_skip("needs IPv6 addresses");
	/* Another program may use the IPv4 port, but not all of those that the kernel chooses. */
	while (i < PORTS && !shares_with_ipv4())
		i++;
	EXPECT(i < PORTS, "%d ports of IPv6 alone are not free for IPv4", i);
}

CHECK(bind_both_families)
{
	struct addr addr, four = { .in = { .sin_family = AF_INET }, .len = sizeof(four.in) };
	int fd = net_sock(0);

	if (net_domain()->af != AF_INET6)
		harness_skip("needs IPv6 addresses");
	OK(net_set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0));
	net_any(&addr, 0);
	EQ(0, at(fd, &addr));
	net_name(fd, &addr);
	int plain = OK(socket(AF_INET, SOCK_STREAM, 0));
	four.in.sin_port = addr.in6.sin6_port;
	FAILS(EADDRINUSE, at(plain, &four));
}

CHECK(name_of_fresh)
{
	struct addr addr;
	int fd = net_sock(0);

	net_name(fd, &addr);
	EQ(net_domain()->af, addr.sa.sa_family);
	EQ(0, net_port(&addr));
	EQ(net_domain()->af == AF_INET ? sizeof(addr.in) : sizeof(addr.in6), addr.len);
}

CHECK(name_of_peer_enotconn)
{
	struct addr addr, peer = { .len = sizeof(peer.ss) };
	int fd = net_sock(0);

	FAILS(ENOTCONN, getpeername(fd, &peer.sa, &peer.len));
	net_listen_on(fd, &addr, 1);
	FAILS(ENOTCONN, getpeername(fd, &peer.sa, &peer.len));
}

CHECK(name_of_peer_while_connecting)
{
	struct addr addr, name = { .len = sizeof(name.ss) };
	int fd = net_sock(SOCK_NONBLOCK);

	net_stuck(&addr);
	FAILS(EINPROGRESS, connect(fd, &addr.sa, addr.len));
	FAILS(ENOTCONN, getpeername(fd, &name.sa, &name.len));
	net_name(fd, &name);
	EXPECT(net_port(&name), "no port while connecting");
}

CHECK_CONN(name_of_both_ends)
{
	struct addr addr, a, b;
	int listener = net_listen(&addr, 1), fd = net_connect(&addr);
	int peer = net_accept(listener);

	net_name(fd, &a);
	b.len = sizeof(b.ss);
	OK(getpeername(peer, &b.sa, &b.len));
	EQ(0, memcmp(&a.ss, &b.ss, a.len));
	net_name(peer, &b);
	a.len = sizeof(a.ss);
	OK(getpeername(fd, &a.sa, &a.len));
	EQ(0, memcmp(&a.ss, &b.ss, a.len));
	EQ(net_port(&addr), net_port(&a));
	EQ(net_domain()->af, a.sa.sa_family);
}

CHECK_PAIR(name_is_cut_short)
{
	struct addr addr;
	int a, b;

	net_pair(&a, &b);
	memset(&addr, 0x55, sizeof(addr));
	addr.len = 3;
	OK(getsockname(a, &addr.sa, &addr.len));
	/* The kernel returns the full length but writes three bytes. */
	EQ(net_domain()->af == AF_INET ? sizeof(addr.in) : sizeof(addr.in6), addr.len);
	EQ(0x55, ((unsigned char *)&addr.ss)[3]);
}

CHECK_PAIR(name_of_peer_after_shutdown)
{
	struct addr addr = { .len = sizeof(addr.ss) };
	int a, b;

	net_pair(&a, &b);
	OK(shutdown(a, SHUT_WR));
	OK(getpeername(a, &addr.sa, &addr.len));
	OK(close(b));
	net_wait(a, POLLRDHUP);
	addr.len = sizeof(addr.ss);
	/* Both directions are closed. A socket in TIME_WAIT has no peer. */
	FAILS(ENOTCONN, getpeername(a, &addr.sa, &addr.len));
}

CHECK(name_bad_arguments)
{
	struct addr addr = { .len = sizeof(addr.ss) };
	int fd = net_sock(0);

	FAILS(EFAULT, getsockname(fd, &addr.sa, (socklen_t *)8));
	addr.len = -1;
	FAILS(EINVAL, getsockname(fd, &addr.sa, &addr.len));
	addr.len = sizeof(addr.ss);
	FAILS(EFAULT, getsockname(fd, (struct sockaddr *)8, &addr.len));
}
