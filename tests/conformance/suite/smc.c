// SPDX-License-Identifier: Apache-2.0
/* Behaviour that only AF_SMC has. */
#define _GNU_SOURCE
#include <unistd.h>

#include "harness.h"
#include "net.h"

#ifndef SOL_SMC
#define SOL_SMC 286
#endif
#define SMC_LIMIT_HS 1

CHECK_SMC(smc_type_dgram)
{
	FAILS(ESOCKTNOSUPPORT, socket(AF_SMC, SOCK_DGRAM, 0));
}

CHECK_SMC(smc_type_raw)
{
	FAILS(ESOCKTNOSUPPORT, socket(AF_SMC, SOCK_RAW, 0));
}

CHECK_SMC(smc_type_seqpacket)
{
	FAILS(ESOCKTNOSUPPORT, socket(AF_SMC, SOCK_SEQPACKET, 0));
}

CHECK_SMC(smc_type_unknown)
{
	/* The socket layer rejects invalid types before it calls the family. */
	FAILS(EINVAL, socket(AF_SMC, 15, 0));
}

CHECK_SMC(smc_protocol_unknown)
{
	FAILS(EPROTONOSUPPORT, socket(AF_SMC, SOCK_STREAM, 2));
	FAILS(EPROTONOSUPPORT, socket(AF_SMC, SOCK_STREAM, IPPROTO_TCP));
	FAILS(EPROTONOSUPPORT, socket(AF_SMC, SOCK_STREAM, IPPROTO_SMC));
	FAILS(EPROTONOSUPPORT, socket(AF_SMC, SOCK_STREAM, -1));
}

CHECK_SMC(smc_protocol_of_each_address_family)
{
	int four = OK(socket(AF_SMC, SOCK_STREAM, SMCPROTO_SMC));
	int six = OK(socket(AF_SMC, SOCK_STREAM, SMCPROTO_SMC6));

	EQ(AF_INET, net_int(four, SOL_SOCKET, SO_DOMAIN));
	EQ(AF_INET6, net_int(six, SOL_SOCKET, SO_DOMAIN));
}

CHECK_SMC(smc_addresses_of_the_other_family)
{
	struct addr addr = { .in6 = { .sin6_family = AF_INET6 }, .len = sizeof(addr.in6) };

	FAILS(EAFNOSUPPORT, bind(net_sock(0), &addr.sa, addr.len));
	FAILS(EAFNOSUPPORT, connect(net_sock(0), &addr.sa, addr.len));
}

CHECK_SMC(smc_limit_handshakes)
{
	int fd = net_sock(0);

	EQ(0, net_int(fd, SOL_SMC, SMC_LIMIT_HS));
	OK(net_set(fd, SOL_SMC, SMC_LIMIT_HS, 1));
	EQ(1, net_int(fd, SOL_SMC, SMC_LIMIT_HS));
	/* Any nonzero number means yes. */
	OK(net_set(fd, SOL_SMC, SMC_LIMIT_HS, 7));
	EQ(1, net_int(fd, SOL_SMC, SMC_LIMIT_HS));
	OK(net_set(fd, SOL_SMC, SMC_LIMIT_HS, 0));
	EQ(0, net_int(fd, SOL_SMC, SMC_LIMIT_HS));
}

CHECK_SMC(smc_limit_handshakes_wrong)
{
	int fd = net_sock(0), value = 1;
	socklen_t len = sizeof(value);
	char byte = 1;

	FAILS(EINVAL, setsockopt(fd, SOL_SMC, SMC_LIMIT_HS, &byte, 1));
	FAILS(EFAULT, setsockopt(fd, SOL_SMC, SMC_LIMIT_HS, (void *)8, sizeof(int)));
	FAILS(EFAULT, getsockopt(fd, SOL_SMC, SMC_LIMIT_HS, (void *)8, &len));
	FAILS(ENOPROTOOPT, net_set(fd, SOL_SMC, 999, 1));
	FAILS(ENOPROTOOPT, getsockopt(fd, SOL_SMC, 999, &value, &len));
}

CHECK_SMC(smc_limit_handshakes_on_listener)
{
	struct addr addr;
	int listener = net_listen(&addr, 4);

	OK(net_set(listener, SOL_SMC, SMC_LIMIT_HS, 1));
	for (int i = 0; i < 4; i++) {
		int fd = net_connect(&addr);

		net_exchange(fd, net_accept(listener));
	}
}

CHECK_SMC(smc_option_level_unknown_to_tcp)
{
	FAILS(ENOPROTOOPT, net_set(net_tcp(0), SOL_SMC, SMC_LIMIT_HS, 1));
}

CHECK_SMC(smc_mixed_domains)
{
	struct addr addr;
	int listener = net_listen(&addr, 1);
	int fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SMC);

	if (fd < 0)
		harness_skip("no IPPROTO_SMC: %s", strerrorname_np(errno));
	OK(connect(fd, &addr.sa, addr.len));
	net_exchange(fd, net_accept(listener));
}

CHECK_SMC(smc_ipproto_types)
{
	if (socket(AF_INET, SOCK_STREAM, IPPROTO_SMC) < 0)
		harness_skip("no IPPROTO_SMC: %s", strerrorname_np(errno));
	FAILS(ESOCKTNOSUPPORT, socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SMC));
	FAILS(EPROTONOSUPPORT, socket(AF_INET, SOCK_DGRAM, IPPROTO_SMC));
}

CHECK_SMC(smc_v6_client_of_v4_mapped_address)
{
	struct addr addr;
	struct addr mapped = { .in6 = { .sin6_family = AF_INET6 }, .len = sizeof(mapped.in6) };
	int listener = net_listen(&addr, 1), fd = OK(socket(AF_SMC, SOCK_STREAM, SMCPROTO_SMC6));

	mapped.in6.sin6_port = addr.in.sin_port;
	mapped.in6.sin6_addr.s6_addr[10] = mapped.in6.sin6_addr.s6_addr[11] = 0xff;
	memcpy(&mapped.in6.sin6_addr.s6_addr[12], &addr.in.sin_addr, 4);
	OK(connect(fd, &mapped.sa, mapped.len));
	net_exchange(fd, net_accept(listener));
}
