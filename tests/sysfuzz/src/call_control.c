// SPDX-License-Identifier: Apache-2.0
/* Control: the netlink families of the stock module, sock_diag, sysctls, procfs. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/genetlink.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "calls.h"
#include "message.h"

/* Adds an attribute with a value that may suit it. */
static void add_attribute(struct ctx *c, struct message *m, int type)
{
	static const char *const words[] = { "FUZZ", "FUZZ2", "lo", "relay0", "self0", "v0", "", "SMCKIT.LAB",
					     "A.NAME.THAT.IS.LONGER.THAN.ANY.IDENTIFIER" };
	unsigned char value[64] = {};
	int len;

	switch (rnd_below(&c->rnd, 4)) {
	case 0: len = 1, value[0] = rnd_below(&c->rnd, 4); break;
	case 1: len = rnd_below(&c->rnd, sizeof(value)); break;
	case 2:
		memset(value, ' ', 32);
		memcpy(value, "FUZZ.EID", 8);
		len = 33, value[32] = 0;
		break;
	default: len = 1 + snprintf((char *)value, sizeof(value), "%s", RND_PICK(&c->rnd, words));
	}
	struct nlattr *a = (void *)((char *)m + NLMSG_ALIGN(m->header.nlmsg_len));

	a->nla_type = type | (rnd_one_in(&c->rnd, 20) ? NLA_F_NESTED : 0);
	a->nla_len = NLA_HDRLEN + len + (rnd_one_in(&c->rnd, 40) ? 3 : 0);
	memcpy((char *)a + NLA_HDRLEN, value, len);
	m->header.nlmsg_len = NLMSG_ALIGN(m->header.nlmsg_len) + NLA_ALIGN(NLA_HDRLEN + len);
}

/* A request to SMC_GEN_NETLINK or SMC_PNETID. */
DECLARE_OP(op_generic)
{
	static const uint16_t flags[] = { NLM_F_DUMP, NLM_F_DUMP, NLM_F_ACK, 0 };
	bool pnet = rnd_one_in(&c->rnd, 3);
	struct message m = { { .nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN), .nlmsg_type = message_family(pnet ? "SMC_PNETID" : "SMC_GEN_NETLINK"),
			       .nlmsg_flags = NLM_F_REQUEST | RND_PICK(&c->rnd, flags) }, {} };
	struct genlmsghdr *g = (void *)m.body;

	(void)call;
	g->cmd = rnd_below(&c->rnd, pnet ? 6 : 32);
	g->version = 1;
	/*
	 * Root's requests change the view of all programs: flushing a table would end their test.
	 */
	if (c->program->env == ENV_ROOT && (pnet ? g->cmd == 4 : g->cmd == 12))
		return 0;
	for (int i = 1 + rnd_below(&c->rnd, 5); i > 1; i--)
		add_attribute(c, &m, pnet || rnd_one_in(&c->rnd, 2) ? 5 - i : (int)rnd_below(&c->rnd, 20));
	trace(c, "%s command %d, flags %#x", pnet ? "SMC_PNETID" : "SMC_GEN_NETLINK", g->cmd, m.header.nlmsg_flags);
	return message_send(c, NETLINK_GENERIC, &m);
}

/* A dump, or a request for one socket, of AF_SMC. */
DECLARE_OP(op_diag)
{
	struct message m = { { .nlmsg_len = NLMSG_LENGTH(72), .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST }, {} };

	(void)call;
	m.body[0] = AF_SMC;
	if (!rnd_one_in(&c->rnd, 6))
		m.header.nlmsg_flags |= NLM_F_DUMP;
	m.body[2] = rnd_next(&c->rnd);	/* extensions */
	for (int i = 3; i < 56 && rnd_one_in(&c->rnd, 4); i++)
		m.body[i] = rnd_next(&c->rnd);
	if (rnd_one_in(&c->rnd, 8))
		m.header.nlmsg_len = NLMSG_LENGTH(rnd_below(&c->rnd, 72));
	trace(c, "extensions %#x, flags %#x", m.body[2], m.header.nlmsg_flags);
	return message_send(c, NETLINK_SOCK_DIAG, &m);
}

/* Ends the TCP connection below a socket, as 'ss -K' does. */
DECLARE_OP(op_destroy)
{
	enum { DESTROY = 21 };
	struct sockaddr_in local = {}, remote = {};
	socklen_t len = sizeof(local);
	int fd = pool_fd(call->slot);
	struct message m = { { .nlmsg_len = NLMSG_LENGTH(sizeof(struct inet_diag_req_v2)), .nlmsg_type = DESTROY,
			       .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK }, {} };
	struct inet_diag_req_v2 *q = (void *)m.body;

	if (getsockname(fd, (void *)&local, &len) || local.sin_family != AF_INET)
		return -1;
	len = sizeof(remote);
	if (getpeername(fd, (void *)&remote, &len))
		memset(&remote, 0, sizeof(remote));
	q->sdiag_family = AF_INET;
	q->sdiag_protocol = IPPROTO_TCP;
	q->idiag_states = -1;
	q->id.idiag_sport = local.sin_port;
	q->id.idiag_dport = remote.sin_port;
	q->id.idiag_src[0] = local.sin_addr.s_addr;
	q->id.idiag_dst[0] = remote.sin_addr.s_addr;
	q->id.idiag_cookie[0] = q->id.idiag_cookie[1] = -1;
	trace(c, "fd %d", fd);
	return message_send(c, NETLINK_SOCK_DIAG, &m);
}

static long put_file(const char *name, const char *text)
{
	int fd = open(name, O_WRONLY | O_CLOEXEC);
	long r = fd < 0 ? fd : write(fd, text, strlen(text));

	if (fd >= 0)
		close(fd);
	return r;
}

static const char *const sysctls[] = {
	/* generated: specs/sysctl.yaml */
	"smc/rmem",
	"smc/wmem",
	"smc/limit_smc_hs",
	"smc/loopback",
	"smc/remember_peers",
	"smc/smcr_buf_type",
	"smc/smcr_testlink_time",
	"smc/smcr_max_conns_per_lgr",
	"smc/smcr_max_links_per_lgr",
	"smc/smcr_max_send_wr",
	"smc/smcr_max_recv_wr",
	"smc/smcr_v1_rocev2",
	"smc/smcr_immediate",
	"smc/smcr_large_conns_per_lgr",
	"smc/smcr_traffic_class",
	"smc/autocorking_size",
	"smc/auto_bytes",
	"smc/auto_time",
	"smc/auto_samples",
	"smc/auto_forget",
	"smc/policy_for_namespaces",
	"smc/max_memory_kbytes",
	"smc/host_max_memory_kbytes",
	"smc/lgr_idle_time",
	/* end of the generated part */
	/* Twice as often as the others: it decides which connections are SMC-D. */
	"smc/loopback",
	"ipv4/tcp_fin_timeout", "ipv4/tcp_syncookies", "ipv4/tcp_l3mdev_accept", "ipv4/tcp_timestamps", "ipv4/tcp_abort_on_overflow",
	"ipv4/tcp_migrate_req", "ipv4/tcp_fastopen", "ipv4/tcp_max_tw_buckets",
};

/*
 * Sets a sysctl, but only in a namespace of the program, so that other programs are not affected.
 */
DECLARE_OP(op_sysctl)
{
	static const char *const values[] = { "0", "1", "2", "3", "16", "255", "16384", "65536", "1048576", "4194304", "-1", "x",
					      "99999999999", "1 2" };
	const char *value = RND_PICK(&c->rnd, values), *what = RND_PICK(&c->rnd, sysctls);
	char name[80];

	(void)call;
	snprintf(name, sizeof(name), "/proc/sys/net/%s", what);
	trace(c, "%s = %s", what, value);
	return c->program->env == ENV_ROOT ? 0 : put_file(name, value);
}

DECLARE_OP(op_proc)
{
	static const char *const files[] = { "/proc/net/tcp", "/proc/net/tcp6", "/proc/net/protocols", "/proc/net/sockstat",
					     "/proc/net/smc/pnet_conf", "/proc/net/smc/port_add_delay",
					     "/proc/net/smc/ctrl_buffer_count", "/proc/net/smc/max_conn_per_lgr" };
	static const char *const texts[] = { "FUZZ lo\n", "FUZZ lo 1\n", "5\n", "0\n", "-1\n", "x y z\n", "", "300\n" };
	const char *name = RND_PICK(&c->rnd, files);
	char fdinfo[40];

	if (rnd_one_in(&c->rnd, 4)) {
		snprintf(fdinfo, sizeof(fdinfo), "/proc/self/fdinfo/%d", pool_fd(call->slot));
		name = fdinfo;
	}
	trace(c, "%s", name);
	if (c->full && rnd_one_in(&c->rnd, 3))
		return put_file(name, RND_PICK(&c->rnd, texts));
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	long n = fd < 0 ? fd : read(fd, pool_sink(), rnd_below(&c->rnd, DATA));

	if (fd >= 0)
		close(fd);
	return n;
}
