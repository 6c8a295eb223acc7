// SPDX-License-Identifier: Apache-2.0
/*
 * A network of one TUN device. Packets to RELAY_PEER come back as if RELAY_PEER had sent them to
 * RELAY_SELF, so that both ends of a connection are sockets of this host, but each appears to the
 * other as a socket of another host. The relay adds the SMC option to SYNs with the type of service
 * RELAY_TOS. This makes a plain TCP socket, whose bytes the fuzzer controls, an SMC peer. Some
 * packets are lost or duplicated.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "fuzz.h"

enum { SYN = 2, IP_LEN = 20, OPTION_LEN = 8 };

static const unsigned char option[OPTION_LEN] = { 1, 1, 254, 6, 0xe2, 0xd4, 0xc3, 0xd9 };

static unsigned int sum16(const unsigned char *p, int len, unsigned int sum)
{
	for (int i = 0; i < len; i++)
		sum += i % 2 ? p[i] : p[i] << 8;
	return sum;
}

static void put_sum(unsigned char *at, unsigned int sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	sum = ~sum;
	at[0] = sum >> 8;
	at[1] = sum;
}

/* Adds the SMC option to a SYN without data. Return: the packet's new length. */
static int add_option(unsigned char *p, int len)
{
	unsigned char *tcp = p + IP_LEN;
	int header = (tcp[12] >> 4) * 4;

	if (header + OPTION_LEN > 60 || len != IP_LEN + header)
		return len;
	memcpy(tcp + header, option, OPTION_LEN);
	header += OPTION_LEN;
	len += OPTION_LEN;
	tcp[12] = header / 4 << 4;
	p[2] = len >> 8;
	p[3] = len;
	p[10] = p[11] = 0;
	put_sum(p + 10, sum16(p, IP_LEN, 0));
	tcp[16] = tcp[17] = 0;
	put_sum(tcp + 16, sum16(tcp, header, sum16(p + 12, 8, IPPROTO_TCP + header)));
	return len;
}

/* Sends packets back, as the peer that they are for. */
static void relay(int fd)
{
	static unsigned char p[65536];
	struct in_addr silent;
	struct rnd r = { settings.seed };
	int len;

	inet_aton(RELAY_SILENT, &silent);
	while ((len = read(fd, p, sizeof(p))) > 0) {
		unsigned char address[4], tos = p[1] & 0xfc;

		if (len < IP_LEN + 20 || p[0] != 0x45 || p[9] != IPPROTO_TCP || !memcmp(p + 16, &silent, 4))
			continue;
		if (rnd_one_in(&r, 200))
			continue;
		/* Swapping the addresses changes no checksum. */
		memcpy(address, p + 12, 4);
		memcpy(p + 12, p + 16, 4);
		memcpy(p + 16, address, 4);
		if (tos == RELAY_TOS && (p[IP_LEN + 13] & SYN))
			len = add_option(p, len);
		/* Packets that the device does not accept are lost. */
		(void)!write(fd, p, len);
		if (rnd_one_in(&r, 200))
			(void)!write(fd, p, len);
	}
	_exit(1);
}

static void address(int s, struct ifreq *ifr, unsigned long request, const char *addr)
{
	struct sockaddr_in *sin = (void *)&ifr->ifr_addr;

	memset(sin, 0, sizeof(*sin));
	sin->sin_family = AF_INET;
	inet_aton(addr, &sin->sin_addr);
	if (ioctl(s, request, ifr))
		die("setting the relay's address");
}

/** relay_start() - make the device and start the process that serves it, which ends with this one */
void relay_start(void)
{
	struct ifreq ifr = { .ifr_name = "relay0", .ifr_flags = IFF_TUN | IFF_NO_PI };
	int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC), s = socket(AF_INET, SOCK_DGRAM, 0);
	pid_t parent = getpid();

	if (fd < 0 || ioctl(fd, TUNSETIFF, &ifr))
		die("/dev/net/tun");
	address(s, &ifr, SIOCSIFADDR, RELAY_SELF);
	address(s, &ifr, SIOCSIFNETMASK, "255.255.255.0");
	ifr.ifr_flags = IFF_UP | IFF_RUNNING;
	if (ioctl(s, SIOCSIFFLAGS, &ifr))
		die("setting the relay up");
	close(s);
	if (!fork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() == parent)
			relay(fd);
		_exit(1);
	}
	close(fd);
}
