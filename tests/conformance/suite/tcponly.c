// SPDX-License-Identifier: Apache-2.0
/* Uses that only TCP has: signed segments, and connections without a handshake. They work, over TCP. */
#define _GNU_SOURCE
#include <netinet/tcp.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"
#include "net.h"

/* Has a socket sign its segments to an address with a key, and expect signed ones, or skips the check. */
static void sign(int fd, const struct addr *peer, const char *key)
{
	struct tcp_md5sig md5 = { .tcpm_keylen = strlen(key) };

	memcpy(&md5.tcpm_addr, &peer->ss, peer->len);
	memcpy(md5.tcpm_key, key, md5.tcpm_keylen);
	if (!setsockopt(fd, IPPROTO_TCP, TCP_MD5SIG, &md5, sizeof(md5)))
		return;
	if (errno == ENOPROTOOPT || errno == EPROTONOSUPPORT)
		harness_skip("the kernel does not sign segments");
	FAIL("TCP_MD5SIG: %s", strerrorname_np(errno));
}

CHECK_CONN(tcp_md5)
{
	struct addr addr;
	int listener = net_listen(&addr, 1), fd = net_client(0);

	sign(listener, &addr, "secret");
	sign(fd, &addr, "secret");
	OK(connect(fd, &addr.sa, addr.len));
	net_exchange(fd, net_accept(listener));
}

CHECK_CONN(tcp_md5_of_one_end)
{
	struct addr addr;
	int listener = net_listen(&addr, 1), fd = net_client(SOCK_NONBLOCK), other = net_client(0);

	/* The listener drops segments that are not signed, so the first attempt waits. */
	sign(listener, &addr, "secret");
	FAILS(EINPROGRESS, connect(fd, &addr.sa, addr.len));
	sign(other, &addr, "secret");
	OK(connect(other, &addr.sa, addr.len));
	net_exchange(other, net_accept(listener));
	EQ(0, net_poll(fd, POLLOUT, 0));
}

/* Gives a socket that is in repair mode the next sequence number of one direction. */
static void set_seq(int fd, int queue, int seq)
{
	OK(net_set(fd, IPPROTO_TCP, TCP_REPAIR_QUEUE, queue));
	OK(net_set(fd, IPPROTO_TCP, TCP_QUEUE_SEQ, seq));
}

/* The options that both ends would have agreed on. */
static const struct tcp_repair_opt negotiated[] = {
	{ TCPOPT_MAXSEG, 1400 },
	{ TCPOPT_WINDOW, 7 | 7 << 16 },
};

/* Makes one end of a connection from its state, as programs do that move processes to another host. */
static void restore(int fd, const struct addr *local, const struct addr *peer, int snd, int rcv)
{
	OK(net_set(fd, SOL_SOCKET, SO_REUSEADDR, 1));
	OK(bind(fd, &local->sa, local->len));
	if (net_set(fd, IPPROTO_TCP, TCP_REPAIR, 1)) {
		EQ(EPERM, errno);
		harness_skip("only root may restore connections");
	}
	set_seq(fd, TCP_SEND_QUEUE, snd);
	set_seq(fd, TCP_RECV_QUEUE, rcv);
	OK(connect(fd, &peer->sa, peer->len));
	EQ(TCP_ESTABLISHED, net_tcp_state(fd));
	OK(setsockopt(fd, IPPROTO_TCP, TCP_REPAIR_OPTIONS, negotiated, sizeof(negotiated)));
}

CHECK(tcp_repair_restores)
{
	struct addr at[2];
	int fd[2];

	/* Nobody else has these ports in a namespace of its own. */
	net_private();
	for (int i = 0; i < 2; i++) {
		fd[i] = net_sock(0);
		net_loopback(&at[i], 5000 + i);
	}
	restore(fd[0], &at[0], &at[1], 1000, 2000);
	restore(fd[1], &at[1], &at[0], 2000, 1000);
	for (int i = 0; i < 2; i++)
		OK(net_set(fd[i], IPPROTO_TCP, TCP_REPAIR, 0));
	net_exchange(fd[0], fd[1]);
}
