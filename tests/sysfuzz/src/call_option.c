// SPDX-License-Identifier: Apache-2.0
/* Options and controls of sockets. */
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/in6.h>
#include <linux/sockios.h>
#include <linux/tls.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "calls.h"

static const int levels[] = { SOL_SOCKET, SOL_SOCKET, IPPROTO_TCP, IPPROTO_TCP, IPPROTO_TCP, IPPROTO_IP, IPPROTO_IPV6,
			      SOL_SMC, SOL_TLS, 0x7fffffff };
static const int ints[] = { 0, 0, 1, 1, 1, 2, 3, 10, 100, 1000, 65535, 65536, 1 << 20, -1, 0x7fffffff };

/* Options that affect the module, which are drawn more often than random numbers. */
static const struct { int level, name; } known[] = {
	{ SOL_SOCKET, SO_LINGER }, { SOL_SOCKET, SO_LINGER }, { SOL_SOCKET, SO_RCVLOWAT }, { SOL_SOCKET, SO_RCVTIMEO },
	{ SOL_SOCKET, SO_SNDTIMEO }, { SOL_SOCKET, SO_SNDBUF }, { SOL_SOCKET, SO_RCVBUF }, { SOL_SOCKET, SO_KEEPALIVE },
	{ SOL_SOCKET, SO_OOBINLINE }, { SOL_SOCKET, SO_ZEROCOPY }, { SOL_SOCKET, SO_REUSEPORT }, { SOL_SOCKET, SO_ERROR },
	{ SOL_SOCKET, SO_BINDTODEVICE }, { SOL_SOCKET, SO_MARK }, { SOL_SOCKET, SO_TIMESTAMP }, { SOL_SOCKET, SO_PEEK_OFF },
	{ SOL_SOCKET, SO_DETACH_FILTER }, { SOL_SOCKET, SO_PRIORITY }, { SOL_SOCKET, SO_BUSY_POLL }, { SOL_SOCKET, SO_COOKIE },
	{ IPPROTO_TCP, TCP_NODELAY }, { IPPROTO_TCP, TCP_CORK }, { IPPROTO_TCP, TCP_DEFER_ACCEPT }, { IPPROTO_TCP, TCP_ULP },
	{ IPPROTO_TCP, TCP_ULP }, { IPPROTO_TCP, TCP_FASTOPEN }, { IPPROTO_TCP, TCP_FASTOPEN_CONNECT }, { IPPROTO_TCP, TCP_INFO },
	{ IPPROTO_TCP, TCP_USER_TIMEOUT }, { IPPROTO_TCP, TCP_CONGESTION }, { IPPROTO_TCP, TCP_REPAIR }, { IPPROTO_TCP, TCP_INQ },
	{ IPPROTO_TCP, TCP_LINGER2 }, { IPPROTO_TCP, TCP_KEEPIDLE }, { IPPROTO_TCP, TCP_SAVE_SYN }, { IPPROTO_TCP, TCP_SAVED_SYN },
	{ IPPROTO_TCP, TCP_MD5SIG }, { IPPROTO_TCP, TCP_WINDOW_CLAMP }, { IPPROTO_TCP, TCP_NOTSENT_LOWAT }, { IPPROTO_TCP, TCP_MAXSEG },
	{ IPPROTO_IP, IP_OPTIONS }, { IPPROTO_IP, IP_TRANSPARENT }, { IPPROTO_IP, IP_RECVERR }, { IPPROTO_IP, IP_MINTTL },
	{ IPPROTO_IP, IP_TOS }, { IPPROTO_IPV6, IPV6_V6ONLY }, { IPPROTO_IPV6, IPV6_ADDRFORM }, { IPPROTO_IPV6, IPV6_ADDRFORM },
	{ IPPROTO_IPV6, IPV6_RECVPKTINFO }, { IPPROTO_IPV6, IPV6_2292PKTOPTIONS }, { IPPROTO_IPV6, IPV6_HOPOPTS },
	{ SOL_SMC, 1 /* SMC_LIMIT_HS */ }, { SOL_TLS, TLS_TX }, { SOL_TLS, TLS_RX },
};

static void draw(struct ctx *c, int *level, int *name)
{
	if (rnd_one_in(&c->rnd, 3)) {
		*level = RND_PICK(&c->rnd, levels);
		*name = rnd_below(&c->rnd, rnd_one_in(&c->rnd, 10) ? 0x10000 : 90);
	} else {
		int n = rnd_below(&c->rnd, COUNT(known));

		*level = known[n].level;
		*name = known[n].name;
	}
}

/* Puts a value into buf that suits the option at times. Return: its length. */
static socklen_t value(struct ctx *c, int level, int name, unsigned char buf[256])
{
	static const char *const words[] = { "tls", "mptcp", "smc", "espintcp", "cubic", "reno", "lo", "relay0", "nope" };
	const char *word = RND_PICK(&c->rnd, words);
	int number = RND_PICK(&c->rnd, ints);

	for (int i = 0; i < 256; i++)
		buf[i] = rnd_one_in(&c->rnd, 2) ? 0 : rnd_next(&c->rnd);
	if (level == SOL_SOCKET && name == SO_LINGER) {
		struct linger l = { rnd_below(&c->rnd, 3), rnd_below(&c->rnd, 3) };

		memcpy(buf, &l, sizeof(l));
		return sizeof(l);
	}
	if (level == SOL_SOCKET && (name == SO_RCVTIMEO || name == SO_SNDTIMEO)) {
		struct timeval tv = { 0, rnd_below(&c->rnd, 50000) };

		memcpy(buf, &tv, sizeof(tv));
		return sizeof(tv);
	}
	if (level == SOL_TLS) {
		struct tls12_crypto_info_aes_gcm_128 info = { .info = { TLS_1_3_VERSION, TLS_CIPHER_AES_GCM_128 } };

		memcpy(buf, &info, sizeof(info));
		return sizeof(info);
	}
	if (level == IPPROTO_IPV6 && name == IPV6_ADDRFORM)
		number = AF_INET;
	if (name == SO_BINDTODEVICE || (level == IPPROTO_TCP && (name == TCP_ULP || name == TCP_CONGESTION))) {
		strcpy((char *)buf, word);
		return strlen(word);
	}
	memcpy(buf, &number, sizeof(number));
	if (rnd_one_in(&c->rnd, 4))
		return rnd_below(&c->rnd, 257);
	return sizeof(number);
}

/* Forced buffers have no limit except memory, whose exhaustion is not tested here. */
static bool spared(int level, int name)
{
	return level == SOL_SOCKET && (name == SO_RCVBUFFORCE || name == SO_SNDBUFFORCE);
}

DECLARE_OP(op_setsockopt)
{
	int fd = pool_fd(call->slot), level, name;
	unsigned char buf[256];

	draw(c, &level, &name);
	socklen_t len = value(c, level, name, buf);

	trace(c, "fd %d, %d, %d, length %u, %d", fd, level, name, len, *(int *)buf);
	if (spared(level, name))
		return 0;
	return setsockopt(fd, level, name, rnd_one_in(&c->rnd, 40) ? (void *)8 : buf, len);
}

DECLARE_OP(op_getsockopt)
{
	int fd = pool_fd(call->slot), level, name;
	unsigned char buf[1024] = {};
	socklen_t len = rnd_one_in(&c->rnd, 2) ? sizeof(int) : rnd_below(&c->rnd, sizeof(buf) + 1);

	draw(c, &level, &name);
	trace(c, "fd %d, %d, %d, length %u", fd, level, name, len);
	return getsockopt(fd, level, name, rnd_one_in(&c->rnd, 40) ? (void *)8 : buf, &len);
}

DECLARE_OP(op_ioctl)
{
	static const unsigned long requests[] = { FIONREAD, SIOCINQ, SIOCOUTQ, SIOCOUTQNSD, SIOCATMARK, FIONBIO, FIOASYNC, TIOCOUTQ,
						  SIOCGPGRP, SIOCSPGRP, FIOGETOWN, FIOSETOWN, SIOCGSTAMP_OLD, SIOCGIFNAME,
						  SIOCGIFCONF, SIOCETHTOOL, SIOCGSKNS, SIOCADDRT, SIOCDARP, FIOQSIZE, 0x89f0 };
	int fd = pool_fd(call->slot), args[64] = { rnd_below(&c->rnd, 2) };
	unsigned long request = RND_PICK(&c->rnd, requests);

	trace(c, "fd %d, %#lx", fd, request);
	long r = ioctl(fd, request, args);

	if (request == SIOCGSKNS && r >= 0)
		close(r);
	return r;
}

/* Maps the socket's memory, and asks the kernel to map received pages there. */
DECLARE_OP(op_zerocopy_receive)
{
	struct { uint64_t address; uint32_t length, skip; uint8_t rest[48]; } args = {};
	size_t len = 4096u << rnd_below(&c->rnd, 5);
	socklen_t size = rnd_one_in(&c->rnd, 4) ? rnd_below(&c->rnd, sizeof(args)) : 16;
	int fd = pool_fd(call->slot);
	void *p = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, 0);

	trace(c, "fd %d, %zu bytes%s", fd, len, p == MAP_FAILED ? ", not mapped" : "");
	args.address = p == MAP_FAILED ? 4096 : (uint64_t)(uintptr_t)p;
	args.length = len;
	long r = getsockopt(fd, IPPROTO_TCP, 35 /* TCP_ZEROCOPY_RECEIVE */, &args, &size);

	if (p != MAP_FAILED)
		munmap(p, len);
	return r;
}

/* A filter that cuts, drops or passes packets; or one that chooses among listeners of a port. */
DECLARE_OP(op_filter)
{
	static const int verdicts[] = { 0, 1, 20, 40, 60, 0xffff };
	struct sock_filter code[] = { BPF_STMT(BPF_RET | BPF_K, RND_PICK(&c->rnd, verdicts)) };
	struct sock_fprog prog = { COUNT(code), code };
	int fd = pool_fd(call->slot), name = rnd_one_in(&c->rnd, 3) ? SO_ATTACH_REUSEPORT_CBPF : SO_ATTACH_FILTER;

	trace(c, "fd %d, %d, verdict %d", fd, name, code[0].k);
	return setsockopt(fd, SOL_SOCKET, name, &prog, sizeof(prog));
}
