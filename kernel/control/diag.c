// SPDX-License-Identifier: GPL-2.0-only
/* smc_diag: SMC sockets by sock_diag, for smcss and its like. Only reads. */

#include <linux/init.h>
#include <linux/module.h>
#include <linux/smc_diag.h>
#include <linux/sock_diag.h>
#include <net/inet_sock.h>
#include <net/netlink.h>
#include <net/tcp_states.h>

#include "../sock/sock.h"

/* Where a dump goes on. */
struct position {
	unsigned int bucket, skip;
};

struct dump {
	struct sk_buff *skb;
	struct netlink_callback *cb;
};

/* The states of a connection that user space knows, as far as a socket gets without a transport. */
enum state { STATE_ACTIVE = 1, STATE_INIT = 2, STATE_CLOSED = 7, STATE_LISTEN = 10 };

static enum state state_of(const struct smc_sock *smc, const struct sock *sk)
{
	switch (inet_sk_state_load(sk)) {
	case TCP_LISTEN:
		return STATE_LISTEN;
	case TCP_CLOSE:
		return READ_ONCE(smc->phase) == SMC_PHASE_TCP && inet_sk(sk)->inet_dport ? STATE_CLOSED : STATE_INIT;
	default:
		return READ_ONCE(smc->phase) == SMC_PHASE_TCP ? STATE_ACTIVE : STATE_INIT;
	}
}

static void fill_id(struct inet_diag_sockid *id, struct sock *sk)
{
	id->idiag_sport = htons(sk->sk_num);
	id->idiag_dport = sk->sk_dport;
	id->idiag_if = sk->sk_bound_dev_if;
	sock_diag_save_cookie(sk, id->idiag_cookie);
	switch (sk->sk_family) {
#if IS_ENABLED(CONFIG_IPV6)
	case AF_INET6:
		memcpy(id->idiag_src, &sk->sk_v6_rcv_saddr, sizeof(id->idiag_src));
		memcpy(id->idiag_dst, &sk->sk_v6_daddr, sizeof(id->idiag_dst));
		break;
#endif
	case AF_INET:
		id->idiag_src[0] = sk->sk_rcv_saddr;
		id->idiag_dst[0] = sk->sk_daddr;
		break;
	}
}

static int put_attrs(struct sk_buff *skb, struct smc_sock *smc)
{
	struct smc_diag_fallback fallback = {
		.reason = READ_ONCE(smc->reason),
		.peer_diagnosis = READ_ONCE(smc->peer_diagnosis),
	};

	return nla_put_u8(skb, SMC_DIAG_SHUTDOWN, READ_ONCE(smc->sk->sk_shutdown)) ?:
	       nla_put(skb, SMC_DIAG_FALLBACK, sizeof(fallback), &fallback);
}

/* One socket. Under RCU. Return: nonzero if the message is full. */
static int fill(struct smc_sock *smc, void *arg)
{
	struct dump *d = arg;
	struct user_namespace *user_ns = sk_user_ns(NETLINK_CB(d->cb->skb).sk);
	struct sock *sk = smc->sk;
	struct smc_diag_msg *msg;
	struct nlmsghdr *nlh;

	if (!net_eq(sock_net(sk), sock_net(d->skb->sk)))
		return 0;
	nlh = nlmsg_put(d->skb, NETLINK_CB(d->cb->skb).portid, d->cb->nlh->nlmsg_seq,
			d->cb->nlh->nlmsg_type, sizeof(*msg), NLM_F_MULTI);
	if (!nlh)
		return -EMSGSIZE;
	msg = nlmsg_data(nlh);
	memset(msg, 0, sizeof(*msg));
	msg->diag_family = PF_SMC;
	msg->diag_state = state_of(smc, sk);
	msg->diag_mode = READ_ONCE(smc->phase) == SMC_PHASE_TCP ? SMC_DIAG_MODE_FALLBACK_TCP : SMC_DIAG_MODE_SMCR;
	msg->diag_shutdown = READ_ONCE(sk->sk_shutdown);
	msg->diag_uid = from_kuid_munged(user_ns, smc_compat_uid(sk));
	msg->diag_inode = sock_i_ino(sk);
	fill_id(&msg->id, sk);
	if (put_attrs(d->skb, smc)) {
		nlmsg_cancel(d->skb, nlh);
		return -EMSGSIZE;
	}
	nlmsg_end(d->skb, nlh);
	return 0;
}

static int dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct position *pos = (void *)cb->ctx;
	struct dump d = { .skb = skb, .cb = cb };

	NL_ASSERT_CTX_FITS(struct position);
	smc_table_walk(&pos->bucket, &pos->skip, fill, &d);
	return skb->len;
}

static int request(struct sk_buff *skb, struct nlmsghdr *nlh)
{
	struct netlink_dump_control control = { .dump = dump, .min_dump_alloc = SKB_WITH_OVERHEAD(32768) };

	if (nlmsg_len(nlh) < (int)sizeof(struct smc_diag_req))
		return -EINVAL;
	if (!(nlh->nlmsg_flags & NLM_F_DUMP))
		return -EOPNOTSUPP;
	return netlink_dump_start(sock_net(skb->sk)->diag_nlsk, skb, nlh, &control);
}

static const struct sock_diag_handler handler = {
	.owner	= THIS_MODULE,
	.family	= PF_SMC,
	.dump	= request,
};

static int __init smc_diag_init(void)
{
	return sock_diag_register(&handler);
}

static void __exit smc_diag_exit(void)
{
	sock_diag_unregister(&handler);
}

module_init(smc_diag_init);
module_exit(smc_diag_exit);
MODULE_LICENSE("GPL");
MODULE_AUTHOR("The smckit authors");
MODULE_DESCRIPTION("Monitoring of SMC sockets by sock_diag");
MODULE_VERSION(SMC_MODULE_VERSION);
/* NETLINK_SOCK_DIAG is 4, AF_SMC is 43; the macro wants plain numbers */
MODULE_ALIAS_NET_PF_PROTO_TYPE(PF_NETLINK, 4, 43);
