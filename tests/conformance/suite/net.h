/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sockets of the domain under test and of its peer. The functions here have no deadlines: the
 * harness ends, and reports, a wait that does not end.
 */
#ifndef NET_H
#define NET_H

#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#ifndef AF_SMC
#define AF_SMC 43
#endif
#define SMCPROTO_SMC	0
#define SMCPROTO_SMC6	1
#ifndef IPPROTO_SMC
#define IPPROTO_SMC	256
#endif

struct addr {
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
		struct sockaddr_storage ss;
	};
	socklen_t len;
};

struct domain {
	const char *name;
	int family;	/* first argument of socket() */
	int protocol;	/* third argument of socket() */
	int af;		/* family of its addresses */
	bool smc;
};

/**
 * net_setup() - choose the sockets that the other functions make
 * @domain: name of the domain under test
 * @address: IPv4 address to listen at, or NULL for the loopback address
 * @tcp_peer: the other end is plain TCP rather than of the same domain
 * @server: the server's end is the one under test
 *
 * Return: 0, or -1 if there is no such domain or address.
 */
int net_setup(const char *domain, const char *address, bool tcp_peer, bool server);

/** net_domain() - the domain under test */
const struct domain *net_domain(void);

/**
 * net_sock() - a fresh socket of the domain under test
 * @flags: SOCK_NONBLOCK, SOCK_CLOEXEC
 */
int net_sock(int flags);

/** net_client() - a fresh socket of the domain that clients have; @flags as in net_sock() */
int net_client(int flags);

/** net_server() - a fresh socket of the domain that servers have; @flags as in net_sock() */
int net_server(int flags);

/** net_tcp() - a fresh plain TCP socket of the same address family; @flags as in net_sock() */
int net_tcp(int flags);

/** net_loopback() - the loopback address with a port (host byte order) */
void net_loopback(struct addr *addr, uint16_t port);

/** net_any() - the wildcard address with a port (host byte order) */
void net_any(struct addr *addr, uint16_t port);

/** net_port() - port of an address, host byte order */
uint16_t net_port(const struct addr *addr);

/** net_name() - getsockname(), which must succeed */
void net_name(int fd, struct addr *addr);

/**
 * net_listen_on() - bind a socket to a free port of the loopback address and let it listen
 * @fd: socket
 * @addr: is set to where it listens
 * @backlog: as for listen()
 */
void net_listen_on(int fd, struct addr *addr, int backlog);

/** net_listen() - net_listen_on() for a fresh server's socket. Return: the socket. */
int net_listen(struct addr *addr, int backlog);

/** net_connect() - a fresh client's socket, connected to @addr */
int net_connect(const struct addr *addr);

/** net_dead() - an address that refuses connections, for as long as the check runs */
void net_dead(struct addr *addr);

/** net_accept() - accept() that must succeed, also on a non-blocking listener */
int net_accept(int listener);

/**
 * net_pair() - a connection
 * @subject: the end under test
 * @peer: the other end
 */
void net_pair(int *subject, int *peer);

/**
 * net_stuck() - make a TCP listener whose queue is full, so that connecting to it never ends
 * @addr: its address
 *
 * It is plain TCP, so that checks of a client do not depend on the domain under test.
 * Return: the listener, for net_unstick().
 */
int net_stuck(struct addr *addr);

/* net_unstick() - let the waiting clients connect to @listener, with their next retransmission */
void net_unstick(int listener);

/** net_poll() - poll() one socket for at most @ms (-1 for ever). Return: the events. */
int net_poll(int fd, int events, int ms);

/* net_wait() - wait for one of @events. Return: the events. */
int net_wait(int fd, int events);

/** net_wait_rcvq() - wait until @fd has @bytes to read */
void net_wait_rcvq(int fd, int bytes);

/** net_nonblock() - set or clear O_NONBLOCK */
void net_nonblock(int fd, bool on);

/* net_error() - read SO_ERROR, which clears it */
int net_error(int fd);

/** net_int() - an option of type int */
int net_int(int fd, int level, int option);

/** net_set() - set an option of type int. Return: as setsockopt(). */
int net_set(int fd, int level, int option, int value);

/* net_private() - move this process to a new network namespace, or skip the check */
void net_private(void);

/* net_need_lo() - skip the check if connections do not use the loopback interface */
void net_need_lo(void);

/* net_sysctl() - write a file below /proc/sys/net, which must belong to this namespace */
void net_sysctl(const char *name, const char *value);

/**
 * net_send() - send bytes of a pattern that depends on the position in the stream
 * @fd: socket, blocking
 * @from: position in the stream
 * @count: bytes
 */
void net_send(int fd, size_t from, size_t count);

/*
 * net_recv() - receive exactly @count bytes, and compare them with those that net_send() sends at
 * @from
 */
void net_recv(int fd, size_t from, size_t count);

/* net_recv_eof() - check that the next read returns the end of the stream */
void net_recv_eof(int fd);

/* net_exchange() - send bytes in both directions, to prove that a connection works */
void net_exchange(int a, int b);

/** net_tcp_state() - TCP_INFO's state: TCP_ESTABLISHED and so on */
int net_tcp_state(int fd);

#endif
