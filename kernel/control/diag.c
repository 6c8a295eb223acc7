// SPDX-License-Identifier: GPL-2.0-only
/* smc_diag: shows SMC sockets by sock_diag, for smcss. */

#include <linux/init.h>
#include <linux/module.h>
#include <linux/smc_diag.h>
#include <linux/sock_diag.h>
#include <net/inet_sock.h>
#include <net/netlink.h>
#include <net/tcp_states.h>

#include "../conn/show.h"
#include "../lgr/lgr.h"
#include "../net.h"
#include "../sock/show.h"
#include "../uapi/smc_diag_gen.h"
#include "diag.h"

/*
 * The position of a dump. It has the sockets first, then the connections without one: those that are not accepted yet,
 * and those whose close the peer has not answered yet.
 */
struct position {
	unsigned int bucket, skip;
	u64 conn;	/* order of the last connection without a socket */
};

struct dump_arg {
	struct sk_buff *skb;
	struct netlink_callback *cb;
	u8 ext;		/* attributes asked for, a bit mask of SMC_DIAG_* - 1 */
};

/* The state of a socket without a connection. */
static u8 state_of(const struct smc_sock_view *view)
{
	switch (inet_sk_state_load(view->sk)) {
	case TCP_LISTEN:
		return SMC_UAPI_STATE_LISTEN;
	case TCP_CLOSE:
		return view->tcp && inet_sk(view->sk)->inet_dport ? SMC_UAPI_STATE_CLOSED : SMC_UAPI_STATE_INIT;
	default:
		return view->tcp ? SMC_UAPI_STATE_ACTIVE : SMC_UAPI_STATE_INIT;
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

/* Begins a message. Return: NULL if there is no room. */
static struct smc_diag_msg *begin_msg(struct dump_arg *d, struct sock *sk, struct nlmsghdr **nlh)
{
	struct user_namespace *user_ns = sk_user_ns(NETLINK_CB(d->cb->skb).sk);
	struct smc_diag_msg *msg;

	*nlh = nlmsg_put(d->skb, NETLINK_CB(d->cb->skb).portid, d->cb->nlh->nlmsg_seq,
			 d->cb->nlh->nlmsg_type, sizeof(*msg), NLM_F_MULTI);
	if (!*nlh)
		return NULL;
	msg = nlmsg_data(*nlh);
	memset(msg, 0, sizeof(*msg));
	msg->diag_family = PF_SMC;
	msg->diag_uid = from_kuid_munged(user_ns, smc_compat_uid(sk));
	fill_id(&msg->id, sk);
	return msg;
}

/* Adds the attributes, and ends the message, or cancels it if there is no room. */
static int finish_msg(struct dump_arg *d, struct nlmsghdr *nlh, u8 shutdown, const struct smc_diag_fallback *fallback,
		  const struct smc_diag_info *info)
{
	if (nla_put_u8(d->skb, SMC_DIAG_SHUTDOWN, shutdown) ||
	    nla_put(d->skb, SMC_DIAG_FALLBACK, sizeof(*fallback), fallback))
		goto cancel;
	if (info && (d->ext & BIT(SMC_DIAG_CONNINFO - 1)) &&
	    nla_put(d->skb, SMC_DIAG_CONNINFO, sizeof(info->conn), &info->conn))
		goto cancel;
	if (info && (d->ext & BIT(SMC_DIAG_CONNINFO - 1)) &&
	    nla_put(d->skb, SMC_UAPI_DIAG_PROGRESS, sizeof(info->progress), &info->progress))
		goto cancel;
	if (info && info->has_lgr && (d->ext & BIT(SMC_DIAG_LGRINFO - 1)) &&
	    nla_put(d->skb, SMC_DIAG_LGRINFO, sizeof(info->lgr), &info->lgr))
		goto cancel;
	if (info && info->has_dmb && (d->ext & BIT(SMC_DIAG_DMBINFO - 1)) &&
	    nla_put(d->skb, SMC_DIAG_DMBINFO, sizeof(info->dmb), &info->dmb))
		goto cancel;
	nlmsg_end(d->skb, nlh);
	return 0;
cancel:
	nlmsg_cancel(d->skb, nlh);
	return -EMSGSIZE;
}

/* Adds a connection, with the inode of its socket, or 0. */
static int fill_conn(struct dump_arg *d, struct smc_conn *conn, u64 inode)
{
	static const struct smc_diag_fallback none;
	struct smc_diag_info info;
	struct smc_diag_msg *msg;
	struct nlmsghdr *nlh;

	smc_conn_describe(conn, &info);
	msg = begin_msg(d, info.sk, &nlh);
	if (!msg)
		return -EMSGSIZE;
	msg->diag_state = info.state;
	msg->diag_mode = info.mode;
	msg->diag_shutdown = info.shutdown;
	msg->diag_inode = inode;
	/* TCP may have given the port back already. */
	if (!msg->id.idiag_sport)
		msg->id.idiag_sport = inet_sk(info.sk)->inet_sport;
	return finish_msg(d, nlh, info.shutdown, &none, &info);
}

/* Adds a socket without a connection. */
static int fill_socket(struct dump_arg *d, const struct smc_sock_view *view)
{
	struct smc_diag_fallback fallback = { .reason = view->reason, .peer_diagnosis = view->peer_diagnosis };
	u8 shutdown = READ_ONCE(view->sk->sk_shutdown);
	struct smc_diag_msg *msg;
	struct nlmsghdr *nlh;

	msg = begin_msg(d, view->sk, &nlh);
	if (!msg)
		return -EMSGSIZE;
	msg->diag_state = state_of(view);
	msg->diag_mode = view->tcp ? SMC_DIAG_MODE_FALLBACK_TCP : SMC_DIAG_MODE_SMCR;
	msg->diag_shutdown = shutdown;
	msg->diag_inode = sock_i_ino(view->sk);
	return finish_msg(d, nlh, shutdown, &fallback, NULL);
}

/* Adds a socket. Return: nonzero if there is no room. */
static int fill_sock(const struct smc_sock_view *view, void *arg)
{
	struct dump_arg *d = arg;

	RCU_LOCKDEP_WARN(!rcu_read_lock_held(), "fill_sock() outside of an RCU section");
	if (!net_eq(sock_net(view->sk), sock_net(d->skb->sk)))
		return 0;
	return view->conn ? fill_conn(d, view->conn, sock_i_ino(view->sk)) : fill_socket(d, view);
}

/* Adds a connection if it has no socket. */
static int fill_orphan(struct smc_lgr_member *member, void *arg)
{
	struct smc_conn *conn = smc_conn_orphan(member);

	lockdep_assert_held(&member->sn->lgr->lock);
	return conn ? fill_conn(arg, conn, 0) : 0;
}

static int diag_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct position *pos = (void *)cb->ctx;
	const struct smc_diag_req *req = nlmsg_data(cb->nlh);
	struct dump_arg d = { .skb = skb, .cb = cb, .ext = req->diag_ext };

	NL_ASSERT_CTX_FITS(struct position);
	if (!smc_table_walk(&pos->bucket, &pos->skip, fill_sock, &d))
		smc_lgr_walk_members(sock_net(skb->sk), &pos->conn, fill_orphan, &d);
	return skb->len;
}

static int diag_request(struct sk_buff *skb, struct nlmsghdr *nlh)
{
	struct netlink_dump_control control = { .dump = diag_dump, .min_dump_alloc = SKB_WITH_OVERHEAD(32768) };

	if (nlmsg_len(nlh) < (int)sizeof(struct smc_diag_req))
		return -EINVAL;
	if (!(nlh->nlmsg_flags & NLM_F_DUMP))
		return -EOPNOTSUPP;
	return netlink_dump_start(sock_net(skb->sk)->diag_nlsk, skb, nlh, &control);
}

static const struct sock_diag_handler handler = {
	.owner	= THIS_MODULE,
	.family	= PF_SMC,
	.dump	= diag_request,
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
