// SPDX-License-Identifier: Apache-2.0
/* Options of TCP, TCP Fast Open, and TCP_INFO. */
#define _GNU_SOURCE
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "harness.h"
#include "net.h"

#ifndef TCP_FASTOPEN_CONNECT
#define TCP_FASTOPEN_CONNECT 30
#endif

static const struct {
	const char *name;
	int option, value;
} plain[] = {
	{ "TCP_NODELAY", TCP_NODELAY, 1 },	   { "TCP_CORK", TCP_CORK, 1 },
	{ "TCP_KEEPIDLE", TCP_KEEPIDLE, 77 },	   { "TCP_KEEPINTVL", TCP_KEEPINTVL, 11 },
	{ "TCP_KEEPCNT", TCP_KEEPCNT, 5 },	   { "TCP_SYNCNT", TCP_SYNCNT, 3 },
	{ "TCP_LINGER2", TCP_LINGER2, 8 },	   { "TCP_WINDOW_CLAMP", TCP_WINDOW_CLAMP, 30000 },
	{ "TCP_QUICKACK", TCP_QUICKACK, 1 },	   { "TCP_USER_TIMEOUT", TCP_USER_TIMEOUT, 5000 },
	{ "TCP_SAVE_SYN", TCP_SAVE_SYN, 1 },	   { "TCP_NOTSENT_LOWAT", TCP_NOTSENT_LOWAT, 9999 },
	{ "TCP_INQ", TCP_INQ, 1 },
	{ "TCP_THIN_LINEAR_TIMEOUTS", TCP_THIN_LINEAR_TIMEOUTS, 1 },
};

static void set_all(int fd)
{
	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
		EXPECT(!net_set(fd, IPPROTO_TCP, plain[i].option, plain[i].value), "%s: %s",
		       plain[i].name, strerrorname_np(errno));
		int got = net_int(fd, IPPROTO_TCP, plain[i].option);
		EXPECT(got == plain[i].value, "%s is %d", plain[i].name, got);
	}
}

CHECK(tcp_plain_on_fresh)
{
	set_all(net_sock(0));
}

CHECK_PAIR(tcp_plain_on_connected)
{
	int a, b;

	net_pair(&a, &b);
	set_all(a);
	OK(net_set(a, IPPROTO_TCP, TCP_CORK, 0));
	net_exchange(a, b);
}

CHECK_CONN(tcp_plain_on_listener)
{
	struct addr addr;
	int listener = net_listen(&addr, 1);

	OK(net_set(listener, IPPROTO_TCP, TCP_NODELAY, 1));
	OK(net_set(listener, IPPROTO_TCP, TCP_MAXSEG, 1000));
	EQ(1000, net_int(listener, IPPROTO_TCP, TCP_MAXSEG));
}

CHECK(tcp_default_values_like_tcp)
{
	static const int options[] = {
		TCP_NODELAY,	TCP_MAXSEG,	  TCP_CORK,	    TCP_KEEPIDLE, TCP_KEEPINTVL,
		TCP_KEEPCNT,	TCP_SYNCNT,	  TCP_LINGER2,	    TCP_QUICKACK, TCP_DEFER_ACCEPT,
		TCP_FASTOPEN,	TCP_WINDOW_CLAMP, TCP_USER_TIMEOUT,
	};
	int fd = net_sock(0), tcp = net_tcp(0);

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		int want = net_int(tcp, IPPROTO_TCP, options[i]);
		int got = net_int(fd, IPPROTO_TCP, options[i]);

		EXPECT(want == got, "option %d is %d, TCP's is %d", options[i], got, want);
	}
}

CHECK(tcp_wrong)
{
	int fd = net_sock(0), value;
	socklen_t len = sizeof(value);

	FAILS(ENOPROTOOPT, net_set(fd, IPPROTO_TCP, 9999, 1));
	FAILS(ENOPROTOOPT, getsockopt(fd, IPPROTO_TCP, 9999, &value, &len));
	FAILS(EINVAL, setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &value, 1));
	FAILS(EFAULT, setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, (void *)8, 4));
	FAILS(EINVAL, net_set(fd, IPPROTO_TCP, TCP_KEEPIDLE, 0));
	FAILS(EINVAL, net_set(fd, IPPROTO_TCP, TCP_KEEPCNT, 1000));
	FAILS(EINVAL, net_set(fd, IPPROTO_TCP, TCP_MAXSEG, 5));
	FAILS(EINVAL, net_set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, -1));
}

CHECK(tcp_congestion)
{
	int fd = net_sock(0);
	char name[16] = "";
	socklen_t len = sizeof(name);

	OK(setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4));
	OK(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &len));
	EQ(0, strcmp(name, "reno"));
	FAILS(ENOENT, setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "nosuch", 6));
}

CHECK_PAIR(tcp_congestion_on_connected)
{
	char name[16] = "";
	socklen_t len = sizeof(name);
	int a, b;

	net_pair(&a, &b);
	OK(setsockopt(a, IPPROTO_TCP, TCP_CONGESTION, "reno", 4));
	OK(getsockopt(a, IPPROTO_TCP, TCP_CONGESTION, name, &len));
	EQ(0, strcmp(name, "reno"));
	net_exchange(a, b);
}

CHECK(tcp_ulp_unknown)
{
	char name[16] = "";
	socklen_t len = sizeof(name);
	int fd = net_sock(0);

	FAILS(ENOENT, setsockopt(fd, IPPROTO_TCP, TCP_ULP, "nosuch", 6));
	/*
	 * A socket without ULP has no name, in particular not that of the ULP by which IPPROTO_SMC
	 * could be implemented.
	 */
	OK(getsockopt(fd, IPPROTO_TCP, TCP_ULP, name, &len));
	EQ(0, len);
}

/* The kernel has protocols that only it may put on top of a connection. After the error, the socket connects as any other. */
CHECK_CONN(tcp_ulp_of_kernel)
{
	struct addr addr;
	int listener = net_listen(&addr, 1), fd = net_client(0);

	/* Which error that is depends on whether the kernel has MPTCP. */
	int tcp = setsockopt(net_tcp(0), IPPROTO_TCP, TCP_ULP, "mptcp", 5) ? errno : 0;
	int own = setsockopt(fd, IPPROTO_TCP, TCP_ULP, "mptcp", 5) ? errno : 0;

	EXPECT(tcp, "TCP takes it");
	EQ(tcp, own);
	EQ(0, connect(fd, &addr.sa, addr.len));
	net_exchange(fd, net_accept(listener));
}

/* Whether this kernel has TLS. If not, the socket must return the same error as TCP. */
static bool has_tls(int fd)
{
	if (!setsockopt(net_tcp(0), IPPROTO_TCP, TCP_ULP, "tls", 3) || errno != ENOENT)
		return true;
	FAILS(ENOENT, setsockopt(fd, IPPROTO_TCP, TCP_ULP, "tls", 3));
	return false;
}

CHECK(tcp_ulp_tls_on_fresh)
{
	int fd = net_sock(0);

	if (has_tls(fd))
		FAILS(ENOTCONN, setsockopt(fd, IPPROTO_TCP, TCP_ULP, "tls", 3));
}

CHECK_PAIR(tcp_ulp_tls)
{
	char name[16] = "";
	socklen_t len = sizeof(name);
	int a, b;

	if (!has_tls(net_sock(0)))
		harness_skip("the kernel has no TLS");
	net_pair(&a, &b);
	OK(setsockopt(a, IPPROTO_TCP, TCP_ULP, "tls", 3));
	OK(getsockopt(a, IPPROTO_TCP, TCP_ULP, name, &len));
	EQ(0, strcmp(name, "tls"));
	/* Without keys, the connection is not encrypted. */
	net_exchange(a, b);
}

CHECK_CONN(tcp_info_states)
{
	struct addr addr, stuck;
	int listener = net_server(0), connecting = net_client(SOCK_NONBLOCK);

	EQ(TCP_CLOSE, net_tcp_state(listener));
	net_listen_on(listener, &addr, 1);
	EQ(TCP_LISTEN, net_tcp_state(listener));
	net_stuck(&stuck);
	FAILS(EINPROGRESS, connect(connecting, &stuck.sa, stuck.len));
	EQ(TCP_SYN_SENT, net_tcp_state(connecting));
	int fd = net_connect(&addr), peer = net_accept(listener);
	EQ(TCP_ESTABLISHED, net_tcp_state(fd));
	EQ(TCP_ESTABLISHED, net_tcp_state(peer));
	OK(shutdown(fd, SHUT_WR));
	net_recv_eof(peer);
	EQ(TCP_CLOSE_WAIT, net_tcp_state(peer));
	OK(shutdown(peer, SHUT_WR));
	net_wait(fd, POLLHUP);
	EQ(TCP_CLOSE, net_tcp_state(fd));
	EQ(TCP_CLOSE, net_tcp_state(peer));
}

CHECK_PAIR(tcp_info_bytes)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);
	int a, b;

	net_pair(&a, &b);
	OK(getsockopt(a, IPPROTO_TCP, TCP_INFO, &info, &len));
	/* The SMC option must not displace the TCP options of either end. */
	EXPECT(info.tcpi_options & TCPI_OPT_SACK, "no SACK: %#x", (unsigned int)info.tcpi_options);
	EXPECT(info.tcpi_options & TCPI_OPT_TIMESTAMPS, "no timestamps");
	EXPECT(info.tcpi_options & TCPI_OPT_WSCALE, "no window scaling");
}

CHECK_PAIR(tcp_maxseg_of_loopback)
{
	int a, b;

	net_need_lo();
	net_pair(&a, &b);
	int mss = net_int(a, IPPROTO_TCP, TCP_MAXSEG);
	EXPECT(mss > 10000, "it is %d", mss);
}

CHECK_CONN(tcp_maxseg_before_connect)
{
	struct addr addr;
	int fd = net_client(0);

	net_listen(&addr, 1);
	OK(net_set(fd, IPPROTO_TCP, TCP_MAXSEG, 1200));
	OK(connect(fd, &addr.sa, addr.len));
	int mss = net_int(fd, IPPROTO_TCP, TCP_MAXSEG);
	EXPECT(mss <= 1200, "it is %d", mss);
}

CHECK_CONN(tcp_defer_accept)
{
	struct addr addr;
	int listener = net_listen(&addr, 2);

	OK(net_set(listener, IPPROTO_TCP, TCP_DEFER_ACCEPT, 10));
	int fd = net_connect(&addr);
	EQ(0, net_poll(listener, POLLIN, harness_ms(50)));
	net_send(fd, 0, 10);
	int peer = net_accept(listener);
	/* The data that woke the listener can be read. */
	char buf[10];
	EQ(10, recv(peer, buf, sizeof(buf), MSG_DONTWAIT));
}

CHECK_PAIR(tcp_cork)
{
	int a, b;

	net_pair(&a, &b);
	OK(net_set(a, IPPROTO_TCP, TCP_CORK, 1));
	long begin = harness_now();
	net_send(a, 0, 10);
	/* TCP waits for at most 200 ms, which may have passed by now in a slow guest. */
	if (net_poll(b, POLLIN, 20))
		EXPECT(harness_now() - begin >= 150, "sent after %ld ms", harness_now() - begin);
	net_send(a, 10, 10);
	OK(net_set(a, IPPROTO_TCP, TCP_CORK, 0));
	net_recv(b, 0, 20);
}

CHECK_PAIR(tcp_inq_message)
{
	char control[64], byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
			      .msg_controllen = sizeof(control) };
	int a, b, left;

	net_pair(&a, &b);
	OK(net_set(a, IPPROTO_TCP, TCP_INQ, 1));
	net_send(b, 0, 10);
	net_wait_rcvq(a, 10);
	EQ(1, recvmsg(a, &msg, 0));
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
	EXPECT(cmsg && cmsg->cmsg_level == IPPROTO_TCP && cmsg->cmsg_type == TCP_INQ, "no message");
	memcpy(&left, CMSG_DATA(cmsg), sizeof(left));
	EQ(9, left);
}

CHECK_CONN(tcp_saved_syn)
{
	struct addr addr;
	int listener = net_listen(&addr, 1);
	unsigned char syn[200];
	socklen_t len = sizeof(syn);

	OK(net_set(listener, IPPROTO_TCP, TCP_SAVE_SYN, 1));
	net_connect(&addr);
	OK(getsockopt(net_accept(listener), IPPROTO_TCP, TCP_SAVED_SYN, syn, &len));
	EXPECT(len >= 40, "%u bytes", len);
	EQ(net_domain()->af == AF_INET ? 4 : 6, syn[0] >> 4);
}

static void allow_fastopen(void)
{
	net_private();
	/* Enable both roles without cookies, which a first connection would have to request. */
	net_sysctl("ipv4/tcp_fastopen", "519");
}

CHECK(fastopen_option)
{
	struct addr addr;
	int fd = net_sock(0);

	net_listen_on(fd, &addr, 5);
	OK(net_set(fd, IPPROTO_TCP, TCP_FASTOPEN, 5));
	EQ(5, net_int(fd, IPPROTO_TCP, TCP_FASTOPEN));
}

CHECK_CONN(fastopen_sendto)
{
	struct addr addr;

	allow_fastopen();
	int listener = net_listen(&addr, 5), fd = net_client(0);
	OK(net_set(listener, IPPROTO_TCP, TCP_FASTOPEN, 5));
	/* This connects and sends. It does not matter whether the SYN carried the data. */
	EQ(5, sendto(fd, "hello", 5, MSG_FASTOPEN, &addr.sa, addr.len));
	int peer = net_accept(listener);
	char buf[5];
	EQ(5, recv(peer, buf, 5, MSG_WAITALL));
	EQ(0, memcmp(buf, "hello", 5));
	net_exchange(fd, peer);
}

CHECK_CONN(fastopen_sendto_nonblocking)
{
	struct addr addr;

	allow_fastopen();
	int listener = net_listen(&addr, 5), fd = net_client(SOCK_NONBLOCK);
	ssize_t n = sendto(fd, "hello", 5, MSG_FASTOPEN, &addr.sa, addr.len);

	/*
	 * If the listener has not enabled the option, the data are queued or not. TCP may do both.
	 */
	EXPECT(n == 5 || (n < 0 && errno == EINPROGRESS), "sendto() returned %zd, %s", n,
	       strerrorname_np(errno));
	net_wait(fd, POLLOUT);
	net_nonblock(fd, false);
	if (n != 5)
		EQ(5, send(fd, "hello", 5, 0));
	char buf[5];
	EQ(5, recv(net_accept(listener), buf, 5, MSG_WAITALL));
	EQ(0, memcmp(buf, "hello", 5));
}

CHECK_CONN(fastopen_refused)
{
	struct addr dead;
	int fd;

	allow_fastopen();
	fd = net_client(0);
	net_dead(&dead);
	FAILS(ECONNREFUSED, sendto(fd, "hello", 5, MSG_FASTOPEN, &dead.sa, dead.len));
}

CHECK_CONN(fastopen_connect)
{
	struct addr addr;

	allow_fastopen();
	int listener = net_listen(&addr, 5), fd = net_client(0);
	OK(net_set(listener, IPPROTO_TCP, TCP_FASTOPEN, 5));
	OK(net_set(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 1));
	EQ(1, net_int(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT));
	/* connect() returns at once. The first data connect the socket. */
	EQ(0, connect(fd, &addr.sa, addr.len));
	EQ(5, send(fd, "hello", 5, 0));
	int peer = net_accept(listener);
	char buf[5];
	EQ(5, recv(peer, buf, 5, MSG_WAITALL));
	net_exchange(fd, peer);
}

CHECK_CONN(fastopen_connect_poll)
{
	struct addr addr;

	allow_fastopen();
	int listener = net_listen(&addr, 5), fd = net_client(SOCK_NONBLOCK);
	OK(net_set(listener, IPPROTO_TCP, TCP_FASTOPEN, 5));
	OK(net_set(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 1));
	EQ(0, connect(fd, &addr.sa, addr.len));
	net_wait(fd, POLLOUT);
	EQ(5, send(fd, "hello", 5, 0));
	char buf[5];
	EQ(5, recv(net_accept(listener), buf, 5, MSG_WAITALL));
}

CHECK_CONN(fastopen_connect_after_refused)
{
	struct addr addr, dead;

	allow_fastopen();
	int listener = net_listen(&addr, 5), fd = net_client(SOCK_NONBLOCK);
	OK(net_set(listener, IPPROTO_TCP, TCP_FASTOPEN, 5));
	net_dead(&dead);
	FAILS(EINPROGRESS, connect(fd, &dead.sa, dead.len));
	net_wait(fd, POLLERR);
	EQ(ECONNREFUSED, net_error(fd));
	OK(net_set(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 1));
	/* The first call says that the attempt has failed. */
	FAILS(ECONNABORTED, connect(fd, &addr.sa, addr.len));
	EQ(0, connect(fd, &addr.sa, addr.len));
	EQ(5, send(fd, "hello", 5, 0));
	int peer = net_accept(listener);
	char buf[5];
	EQ(5, recv(peer, buf, 5, MSG_WAITALL));
	net_nonblock(fd, false);
	net_exchange(fd, peer);
}

CHECK_CONN(fastopen_key)
{
	struct addr addr;
	int listener = net_listen(&addr, 5);
	char key[16] = "0123456789abcdef", got[32];
	socklen_t len = sizeof(got);

	OK(setsockopt(listener, IPPROTO_TCP, TCP_FASTOPEN_KEY, key, sizeof(key)));
	OK(getsockopt(listener, IPPROTO_TCP, TCP_FASTOPEN_KEY, got, &len));
	EQ(16, len);
	EQ(0, memcmp(key, got, 16));
}
