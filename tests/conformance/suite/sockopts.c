// SPDX-License-Identifier: Apache-2.0
/* Options at the level of sockets and of IP, and how accepted sockets inherit them. */
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/net_tstamp.h>
#include <linux/sock_diag.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <sys/time.h>
#include <unistd.h>

#include "harness.h"
#include "net.h"

/*
 * Options that accepted sockets inherit from their listener, with a value other than the default.
 */
static const struct {
	const char *name;
	int level, option, value, got;
} inherited[] = {
	{ "SO_KEEPALIVE", SOL_SOCKET, SO_KEEPALIVE, 1, 1 },
	{ "SO_SNDBUF", SOL_SOCKET, SO_SNDBUF, 30000, 60000 },
	{ "SO_RCVBUF", SOL_SOCKET, SO_RCVBUF, 30000, 60000 },
	{ "SO_OOBINLINE", SOL_SOCKET, SO_OOBINLINE, 1, 1 },
	{ "SO_RCVLOWAT", SOL_SOCKET, SO_RCVLOWAT, 7, 7 },
	{ "SO_REUSEADDR", SOL_SOCKET, SO_REUSEADDR, 1, 1 },
	{ "TCP_NODELAY", IPPROTO_TCP, TCP_NODELAY, 1, 1 },
	{ "TCP_KEEPIDLE", IPPROTO_TCP, TCP_KEEPIDLE, 111, 111 },
	{ "TCP_KEEPINTVL", IPPROTO_TCP, TCP_KEEPINTVL, 22, 22 },
	{ "TCP_KEEPCNT", IPPROTO_TCP, TCP_KEEPCNT, 3, 3 },
	{ "TCP_USER_TIMEOUT", IPPROTO_TCP, TCP_USER_TIMEOUT, 4444, 4444 },
	{ "TCP_LINGER2", IPPROTO_TCP, TCP_LINGER2, 9, 9 },
	{ "TCP_SYNCNT", IPPROTO_TCP, TCP_SYNCNT, 4, 4 },
};

CHECK_CONN(opt_inherited_by_accepted)
{
	struct addr addr;
	int listener = net_server(0);

	for (size_t i = 0; i < sizeof(inherited) / sizeof(inherited[0]); i++)
		OK(net_set(listener, inherited[i].level, inherited[i].option, inherited[i].value));
	net_listen_on(listener, &addr, 1);
	net_connect(&addr);
	int fd = net_accept(listener);
	for (size_t i = 0; i < sizeof(inherited) / sizeof(inherited[0]); i++) {
		int got = net_int(fd, inherited[i].level, inherited[i].option);

		EXPECT(got == inherited[i].got, "%s of the accepted socket is %d, not %d",
		       inherited[i].name, got, inherited[i].got);
	}
}

CHECK_CONN(opt_inherited_after_listen)
{
	struct addr addr;
	int listener = net_listen(&addr, 2);

	/* An option that is set while the socket listens applies to later connections. */
	OK(net_set(listener, SOL_SOCKET, SO_KEEPALIVE, 1));
	OK(net_set(listener, IPPROTO_TCP, TCP_NODELAY, 1));
	net_connect(&addr);
	int fd = net_accept(listener);
	EQ(1, net_int(fd, SOL_SOCKET, SO_KEEPALIVE));
	EQ(1, net_int(fd, IPPROTO_TCP, TCP_NODELAY));
}

CHECK_CONN(opt_kept_across_connect)
{
	struct addr addr;
	int listener = net_listen(&addr, 2), fd = net_client(0);

	for (size_t i = 0; i < sizeof(inherited) / sizeof(inherited[0]); i++)
		OK(net_set(fd, inherited[i].level, inherited[i].option, inherited[i].value));
	OK(connect(fd, &addr.sa, addr.len));
	for (size_t i = 0; i < sizeof(inherited) / sizeof(inherited[0]); i++) {
		int got = net_int(fd, inherited[i].level, inherited[i].option);

		EXPECT(got == inherited[i].got, "%s is %d, not %d", inherited[i].name, got,
		       inherited[i].got);
	}
	net_accept(listener);
}

CHECK_CONN(opt_linger_inherited)
{
	struct linger linger = { 1, 5 };
	socklen_t len = sizeof(linger);
	struct addr addr;
	int listener = net_listen(&addr, 2);

	OK(setsockopt(listener, SOL_SOCKET, SO_LINGER, &linger, len));
	net_connect(&addr);
	memset(&linger, 0, sizeof(linger));
	OK(getsockopt(net_accept(listener), SOL_SOCKET, SO_LINGER, &linger, &len));
	EQ(1, linger.l_onoff);
	EQ(5, linger.l_linger);
}

CHECK_CONN(opt_timeouts_inherited)
{
	struct timeval tv = { .tv_sec = 12, .tv_usec = 500000 };
	socklen_t len = sizeof(tv);
	struct addr addr;
	int listener = net_listen(&addr, 2);

	OK(setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &tv, len));
	net_connect(&addr);
	int fd = net_accept(listener);
	memset(&tv, 0, sizeof(tv));
	OK(getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, &len));
	EQ(12, tv.tv_sec);
	EXPECT(tv.tv_usec >= 496000 && tv.tv_usec <= 504000, "%ld us", (long)tv.tv_usec);
}

CHECK(opt_what_it_is)
{
	int fd = net_sock(0);

	/* The socket looks like TCP to applications. */
	EQ(SOCK_STREAM, net_int(fd, SOL_SOCKET, SO_TYPE));
	EQ(net_domain()->af, net_int(fd, SOL_SOCKET, SO_DOMAIN));
	EQ(IPPROTO_TCP, net_int(fd, SOL_SOCKET, SO_PROTOCOL));
	EQ(0, net_int(fd, SOL_SOCKET, SO_ERROR));
	FAILS(ENOPROTOOPT, net_set(fd, SOL_SOCKET, SO_TYPE, 1));
	FAILS(ENOPROTOOPT, net_set(fd, SOL_SOCKET, SO_PROTOCOL, 1));
	FAILS(ENOPROTOOPT, net_set(fd, SOL_SOCKET, SO_DOMAIN, 1));
	FAILS(ENOPROTOOPT, net_set(fd, SOL_SOCKET, SO_ERROR, 1));
}

CHECK_PAIR(opt_what_it_is_when_connected)
{
	int a, b;

	net_pair(&a, &b);
	EQ(SOCK_STREAM, net_int(a, SOL_SOCKET, SO_TYPE));
	EQ(net_domain()->af, net_int(a, SOL_SOCKET, SO_DOMAIN));
	EQ(IPPROTO_TCP, net_int(a, SOL_SOCKET, SO_PROTOCOL));
}

CHECK_CONN(opt_acceptconn)
{
	struct addr addr;
	int listener = net_server(0);

	EQ(0, net_int(listener, SOL_SOCKET, SO_ACCEPTCONN));
	net_listen_on(listener, &addr, 1);
	EQ(1, net_int(listener, SOL_SOCKET, SO_ACCEPTCONN));
	int fd = net_connect(&addr);
	EQ(0, net_int(fd, SOL_SOCKET, SO_ACCEPTCONN));
	EQ(0, net_int(net_accept(listener), SOL_SOCKET, SO_ACCEPTCONN));
}

CHECK(opt_buffers_double)
{
	int fd = net_sock(0);

	OK(net_set(fd, SOL_SOCKET, SO_SNDBUF, 50000));
	EQ(100000, net_int(fd, SOL_SOCKET, SO_SNDBUF));
	OK(net_set(fd, SOL_SOCKET, SO_RCVBUF, 70000));
	EQ(140000, net_int(fd, SOL_SOCKET, SO_RCVBUF));
	/* A value that is too small becomes the minimum. */
	OK(net_set(fd, SOL_SOCKET, SO_RCVBUF, 1));
	EXPECT(net_int(fd, SOL_SOCKET, SO_RCVBUF) > 1000, "too small");
	OK(net_set(fd, SOL_SOCKET, SO_SNDBUF, 1));
	EXPECT(net_int(fd, SOL_SOCKET, SO_SNDBUF) > 1000, "too small");
}

CHECK(opt_buffers_like_tcp)
{
	int fd = net_sock(0), tcp = net_tcp(0);

	/* Compare the sizes that a program reads before it sets any. */
	EQ(net_int(tcp, SOL_SOCKET, SO_SNDBUF), net_int(fd, SOL_SOCKET, SO_SNDBUF));
	EQ(net_int(tcp, SOL_SOCKET, SO_RCVBUF), net_int(fd, SOL_SOCKET, SO_RCVBUF));
}

CHECK(opt_buffers_force)
{
	int fd = net_sock(0);

	if (net_set(fd, SOL_SOCKET, SO_SNDBUFFORCE, 1 << 24) && errno == EPERM)
		harness_skip("needs privilege");
	EQ(1 << 25, net_int(fd, SOL_SOCKET, SO_SNDBUF));
	OK(net_set(fd, SOL_SOCKET, SO_RCVBUFFORCE, 1 << 24));
	EQ(1 << 25, net_int(fd, SOL_SOCKET, SO_RCVBUF));
}

/* Integer options: option, value to set, and value to read afterwards. */
static const struct {
	const char *name;
	int level, option, value, got;
} plain[] = {
	{ "SO_REUSEADDR", SOL_SOCKET, SO_REUSEADDR, 1, 1 },
	{ "SO_KEEPALIVE", SOL_SOCKET, SO_KEEPALIVE, 5, 1 },
	{ "SO_BROADCAST", SOL_SOCKET, SO_BROADCAST, 1, 1 },
	{ "SO_DONTROUTE", SOL_SOCKET, SO_DONTROUTE, 1, 1 },
	{ "SO_OOBINLINE", SOL_SOCKET, SO_OOBINLINE, 1, 1 },
	{ "SO_PRIORITY", SOL_SOCKET, SO_PRIORITY, 4, 4 },
	{ "SO_RCVLOWAT", SOL_SOCKET, SO_RCVLOWAT, 99, 99 },
	{ "SO_TIMESTAMP", SOL_SOCKET, SO_TIMESTAMP, 1, 1 },
	{ "SO_TIMESTAMPING", SOL_SOCKET, SO_TIMESTAMPING,
	  SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE,
	  SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE },
	{ "SO_INCOMING_CPU", SOL_SOCKET, SO_INCOMING_CPU, 0, 0 },
	{ "SO_BUSY_POLL", SOL_SOCKET, SO_BUSY_POLL, 0, 0 },
	{ "SO_NO_CHECK", SOL_SOCKET, SO_NO_CHECK, 1, 1 },
	{ "SO_MAX_PACING_RATE", SOL_SOCKET, SO_MAX_PACING_RATE, 1000000, 1000000 },
	{ "SO_TXREHASH", SOL_SOCKET, 74, 0, 0 },
};

CHECK(opt_plain_socket)
{
	int fd = net_sock(0);

	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
		EXPECT(!net_set(fd, plain[i].level, plain[i].option, plain[i].value),
		       "%s: %s", plain[i].name, strerrorname_np(errno));
		int got = net_int(fd, plain[i].level, plain[i].option);
		EXPECT(got == plain[i].got, "%s is %d", plain[i].name, got);
	}
}

CHECK(opt_mark)
{
	int fd = net_sock(0);

	if (net_set(fd, SOL_SOCKET, SO_MARK, 42) && errno == EPERM)
		harness_skip("needs privilege");
	EQ(42, net_int(fd, SOL_SOCKET, SO_MARK));
}

CHECK_CONN(opt_bindtodevice)
{
	struct addr addr;
	int listener = net_listen(&addr, 1), fd = net_client(0);
	char name[IFNAMSIZ] = "";
	socklen_t len = sizeof(name);

	net_need_lo();
	OK(setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, "lo", 3));
	OK(getsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, name, &len));
	EQ(0, strcmp(name, "lo"));
	OK(connect(fd, &addr.sa, addr.len));
	net_exchange(fd, net_accept(listener));
	FAILS(ENODEV, setsockopt(net_sock(0), SOL_SOCKET, SO_BINDTODEVICE, "nosuchdev", 10));
}

CHECK_CONN(opt_bindtodevice_on_listener)
{
	struct addr addr;

	net_need_lo();
	int listener = net_server(0);

	OK(setsockopt(listener, SOL_SOCKET, SO_BINDTODEVICE, "lo", 3));
	net_listen_on(listener, &addr, 1);
	int fd = net_connect(&addr);
	net_exchange(fd, net_accept(listener));
}

CHECK_PAIR(opt_peek_off)
{
	int a, b, value = -1;
	socklen_t len = sizeof(value);

	net_pair(&a, &b);
	/*
	 * Newer kernels support this for TCP, older ones refuse it. Expect the result of TCP on
	 * this kernel.
	 */
	int tcp = net_set(net_tcp(0), SOL_SOCKET, SO_PEEK_OFF, 2) ? errno : 0;
	int ours = net_set(a, SOL_SOCKET, SO_PEEK_OFF, 2) ? errno : 0;
	EQ(tcp, ours);
	if (tcp)
		return;
	OK(getsockopt(a, SOL_SOCKET, SO_PEEK_OFF, &value, &len));
	EQ(2, value);
	char byte;
	EQ(4, send(b, "wxyz", 4, 0));
	net_wait_rcvq(a, 4);
	EQ(1, recv(a, &byte, 1, MSG_PEEK));
	EQ('y', byte);
}

CHECK(opt_cookie)
{
	uint64_t one = 0, two = 0, again = 0;
	socklen_t len = sizeof(one);
	int fd = net_sock(0);

	OK(getsockopt(fd, SOL_SOCKET, SO_COOKIE, &one, &len));
	OK(getsockopt(fd, SOL_SOCKET, SO_COOKIE, &again, &len));
	OK(getsockopt(net_sock(0), SOL_SOCKET, SO_COOKIE, &two, &len));
	EXPECT(one && one == again && one != two, "not a name of the socket");
}

CHECK_CONN(opt_cookie_survives_connect)
{
	uint64_t before = 0, after = 1;
	socklen_t len = sizeof(before);
	struct addr addr;
	int fd = net_client(0);

	net_listen(&addr, 1);
	OK(getsockopt(fd, SOL_SOCKET, SO_COOKIE, &before, &len));
	OK(connect(fd, &addr.sa, addr.len));
	OK(getsockopt(fd, SOL_SOCKET, SO_COOKIE, &after, &len));
	EQ(before, after);
}

CHECK_PAIR(opt_meminfo)
{
	uint32_t mem[SK_MEMINFO_VARS] = { 0 };
	socklen_t len = sizeof(mem);
	int a, b;

	net_pair(&a, &b);
	OK(getsockopt(a, SOL_SOCKET, SO_MEMINFO, mem, &len));
	EQ(net_int(a, SOL_SOCKET, SO_RCVBUF), mem[SK_MEMINFO_RCVBUF]);
	EQ(net_int(a, SOL_SOCKET, SO_SNDBUF), mem[SK_MEMINFO_SNDBUF]);
	net_send(b, 0, 500);
	net_wait_rcvq(a, 500);
	OK(getsockopt(a, SOL_SOCKET, SO_MEMINFO, mem, &len));
	EXPECT(mem[SK_MEMINFO_RMEM_ALLOC], "500 bytes to read, no memory used");
}

/* Attaches a classic filter that accepts all packets. */
static int attach(int fd)
{
	struct sock_filter code[] = { { BPF_RET | BPF_K, 0, 0, 0xffffffff } };
	struct sock_fprog prog = { 1, code };

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog));
}

CHECK_PAIR(opt_filter)
{
	int a, b;

	net_pair(&a, &b);
	FAILS(ENOENT, net_set(a, SOL_SOCKET, SO_DETACH_FILTER, 0));
	EQ(0, attach(a));
	net_exchange(a, b);
	EQ(0, net_set(a, SOL_SOCKET, SO_DETACH_FILTER, 0));
	EQ(0, attach(a));
	OK(net_set(a, SOL_SOCKET, SO_LOCK_FILTER, 1));
	FAILS(EPERM, net_set(a, SOL_SOCKET, SO_DETACH_FILTER, 0));
	net_exchange(a, b);
}

CHECK(opt_filter_drops_what_it_rejects)
{
	struct sock_filter code[] = { { BPF_RET | BPF_K, 0, 0, 0 } };
	struct sock_fprog prog = { 1, code };
	struct addr addr;
	int listener = net_sock(0), fd = net_tcp(SOCK_NONBLOCK);

	net_listen_on(listener, &addr, 1);
	OK(setsockopt(listener, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)));
	FAILS(EINPROGRESS, connect(fd, &addr.sa, addr.len));
	/* The listener's filter drops its SYN. */
	EQ(0, net_poll(fd, POLLOUT, harness_ms(50)));
	OK(net_set(listener, SOL_SOCKET, SO_DETACH_FILTER, 0));
	net_wait(fd, POLLOUT);
}

CHECK(opt_wrong)
{
	int fd = net_sock(0), value = 1;
	socklen_t len = sizeof(value);
	char byte = 1;

	FAILS(ENOPROTOOPT, net_set(fd, SOL_SOCKET, 9999, 1));
	FAILS(ENOPROTOOPT, getsockopt(fd, SOL_SOCKET, 9999, &value, &len));
	FAILS(EINVAL, setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &byte, 1));
	FAILS(EFAULT, setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, (void *)8, sizeof(int)));
	FAILS(EFAULT, getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, (void *)8, &len));
	FAILS(EFAULT, getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &value, (void *)8));
	len = -1;
	FAILS(EINVAL, getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &value, &len));
	FAILS(ENOPROTOOPT, net_set(fd, 12345, 1, 1));
}

CHECK(opt_short_buffer)
{
	int fd = net_sock(0);
	unsigned char value[4] = { 9, 9, 9, 9 };
	socklen_t len = 2;

	OK(net_set(fd, SOL_SOCKET, SO_KEEPALIVE, 1));
	OK(getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, value, &len));
	EQ(2, len);
	EQ(1, value[0]);
	EQ(9, value[2]);
}

CHECK(opt_timeouts)
{
	struct timeval tv = { .tv_sec = 3 }, bad = { .tv_usec = 1000000 };
	socklen_t len = sizeof(tv);
	int fd = net_sock(0);

	OK(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)));
	memset(&tv, 0, sizeof(tv));
	OK(getsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, &len));
	EQ(3, tv.tv_sec);
	FAILS(EDOM, setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &bad, sizeof(bad)));
	FAILS(EINVAL, setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, 4));
}

CHECK_CONN(opt_error_is_read_once)
{
	struct linger linger = { .l_onoff = 1 };
	struct addr addr;
	int listener = net_listen(&addr, 1), fd = net_connect(&addr), peer = net_accept(listener);

	OK(setsockopt(peer, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
	OK(close(peer));
	net_wait(fd, POLLERR);
	EQ(ECONNRESET, net_error(fd));
	EQ(0, net_error(fd));
}

CHECK_PAIR(opt_ip)
{
	int a, b;

	net_pair(&a, &b);
	if (net_domain()->af == AF_INET) {
		OK(net_set(a, IPPROTO_IP, IP_TOS, 0x10));
		EQ(0x10, net_int(a, IPPROTO_IP, IP_TOS));
		OK(net_set(a, IPPROTO_IP, IP_TTL, 33));
		EQ(33, net_int(a, IPPROTO_IP, IP_TTL));
		FAILS(EINVAL, net_set(a, IPPROTO_IP, IP_TTL, 256));
		EQ(0, net_int(a, IPPROTO_IP, IP_RECVERR));
	} else {
		OK(net_set(a, IPPROTO_IPV6, IPV6_TCLASS, 0x20));
		EQ(0x20, net_int(a, IPPROTO_IPV6, IPV6_TCLASS));
		OK(net_set(a, IPPROTO_IPV6, IPV6_UNICAST_HOPS, 44));
		EQ(44, net_int(a, IPPROTO_IPV6, IPV6_UNICAST_HOPS));
		FAILS(EINVAL, net_set(a, IPPROTO_IPV6, IPV6_V6ONLY, 1));
	}
	net_exchange(a, b);
}

CHECK(opt_ip_on_fresh)
{
	int fd = net_sock(0);

	if (net_domain()->af == AF_INET) {
		OK(net_set(fd, IPPROTO_IP, IP_TOS, 0x08));
		EQ(0x08, net_int(fd, IPPROTO_IP, IP_TOS));
		OK(net_set(fd, IPPROTO_IP, IP_FREEBIND, 1));
		EQ(1, net_int(fd, IPPROTO_IP, IP_FREEBIND));
		OK(net_set(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1));
		FAILS(ENOPROTOOPT, net_set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1));
	} else {
		OK(net_set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1));
		EQ(1, net_int(fd, IPPROTO_IPV6, IPV6_V6ONLY));
		OK(net_set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0));
		EQ(0, net_int(fd, IPPROTO_IPV6, IPV6_V6ONLY));
		OK(net_set(fd, IPPROTO_IPV6, IPV6_TCLASS, 0x20));
		EQ(0x20, net_int(fd, IPPROTO_IPV6, IPV6_TCLASS));
	}
}

CHECK(opt_ip_wrong)
{
	int fd = net_sock(0);

	FAILS(ENOPROTOOPT, net_set(fd, IPPROTO_IP, 9999, 1));
	FAILS(ENOPROTOOPT, net_set(fd, IPPROTO_IPV6, 9999, 1));
}
