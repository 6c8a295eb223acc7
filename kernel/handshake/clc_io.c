// SPDX-License-Identifier: GPL-2.0-only
/*
 * CLC messages on the TCP connection. Not one byte beyond a message is read: after a DECLINE the
 * application's data may follow at once.
 */

#include <linux/uio.h>
#include <net/inet_sock.h>
#include <net/tcp.h>
#include <net/tcp_states.h>

#include "../control/trace.h"
#include "../trylock.h"
#include "../wire/clc.h"
#include "../wire/reason.h"
#include "handshake.h"

/*
 * Copies from TCP's queue what is wanted. What does not fit into the buffer is skipped: it is the end
 * of a message that is longer than any we know. Return: bytes.
 */
static int copy_clc(read_descriptor_t *desc, struct sk_buff *skb, unsigned int offset, size_t len)
{
	struct smc_rendezvous *rv = desc->arg.data;
	size_t n = min(len, desc->count);

	if (rv->have < sizeof(rv->buf)) {
		n = min(n, sizeof(rv->buf) - rv->have);
		if (skb_copy_bits(skb, offset, rv->buf + rv->have, n))
			return -EFAULT;
	}
	rv->have += n;
	desc->count -= n;
	return n;
}

/*
 * Is the byte that a message goes on with urgent? No message has urgent data, and reading stops before that for ever. Data
 * that follows a DECLINE may be urgent: that is the application's, and not read here.
 */
static bool urgent_is_next(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return tp->urg_data && tp->urg_seq == tp->copied_seq;
}

/* Nothing was read. Why? Return: 0 for the end of the stream, -EAGAIN if more may come, or the error. */
static int read_error(struct sock *sk)
{
	sock_owned_by_me(sk);
	if (urgent_is_next(sk))
		return -EPROTO;
	if (sock_flag(sk, SOCK_DONE))
		return 0;
	if (sk->sk_err)
		return sock_error(sk);
	if (sk->sk_shutdown & RCV_SHUTDOWN)
		return 0;
	return sk->sk_state == TCP_CLOSE ? -ENOTCONN : -EAGAIN;
}

/*
 * Reads until there have been so many bytes, or as many as there are. Return: bytes, 0 for the end of
 * the stream, -EAGAIN, or the error.
 */
static int read_clc(struct smc_rendezvous *rv, unsigned int want)
{
	read_descriptor_t desc = { .count = want - rv->have, .arg.data = rv };
	struct sock *sk = rv->sk;
	int rc;

	if (!smc_sock_trylock_retry(sk, &rv->retry))
		return -EAGAIN;
	rc = tcp_read_sock(sk, &desc, copy_clc);
	if (!rc)
		rc = read_error(sk);
	release_sock(sk);
	return rc;
}

/*
 * May the peer have nothing more to say by CLC? Once CONFIRM is through, a client's end of the link may
 * be up, and its application have closed its direction, of which TCP can tell before the link does.
 */
static bool peer_may_be_done(const struct smc_rendezvous *rv)
{
	return rv->server && rv->step == SMC_STEP_LINK && !rv->have && inet_sk_state_load(rv->sk) != TCP_CLOSE;
}

/*
 * Reads until there have been so many bytes. Return: 0, -EINPROGRESS if they are not there yet, or
 * the error.
 */
static int read_until(struct smc_rendezvous *rv, unsigned int want)
{
	int rc;

	while (rv->have < want) {
		rc = read_clc(rv, want);
		if (rc == -EAGAIN)
			return -EINPROGRESS;
		if (rc < 0)
			return rc;
		if (rc == 0)
			return peer_may_be_done(rv) ? -EINPROGRESS : -ECONNRESET;
	}
	return 0;
}

/**
 * smc_clc_io_recv() - reads a message into the rendezvous' buffer, as far as it is there
 * @rv: the rendezvous
 * @expected: the type that is due; a DECLINE may come instead
 *
 * The header is looked at as soon as it is there, so what is no message, or not the one that is
 * due, ends the connection without waiting for the rest. Of a message that is longer than any we
 * know, the end is thrown away: it comes from a newer peer, and says nothing that we could
 * understand. May sleep, but does not wait for the peer.
 *
 * Return: the type if the message is complete, rv->len bytes in rv->buf; the next call begins the
 * next message. Else -EINPROGRESS, -EPROTO, or the connection's error.
 */
int smc_clc_io_recv(struct smc_rendezvous *rv, u8 expected)
{
	struct smc_clc_header h;
	int rc;

	rc = read_until(rv, SMC_CLC_HEADER_LEN);
	if (rc)
		return rc;
	rc = smc_clc_header_decode(rv->buf, SMC_CLC_HEADER_LEN, &h);
	if (rc)
		return rc;
	if (h.type != expected && h.type != SMC_CLC_DECLINE)
		return -EPROTO;
	rc = read_until(rv, h.length);
	if (rc)
		return rc;
	rv->have = 0;
	rv->len = smc_clc_header_keep(&h);
	trace_smc_clc_recv(rv->sk, rv->buf, rv->len);
	return h.type;
}

/*
 * Hands a message to TCP, which sends it at once: the peer waits for it, whatever TCP_CORK and Nagle's
 * algorithm are to do with the application's data. There is always room: at most two messages go each
 * way, and the send buffer is empty. The caller holds the sock's lock. May sleep for memory.
 */
static int send_clc(struct sock *sk, const u8 *buf, unsigned int len)
{
	struct kvec vec = { .iov_base = (void *)buf, .iov_len = len };
	struct msghdr msg = { .msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL };
	struct tcp_sock *tp = tcp_sk(sk);
	u8 nonagle = tp->nonagle;
	int rc;

	sock_owned_by_me(sk);
	might_sleep();
	iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, &vec, 1, len);
	tp->nonagle = TCP_NAGLE_OFF | TCP_NAGLE_PUSH;
	rc = tcp_sendmsg_locked(sk, &msg, len);
	tp->nonagle = nonagle;
	if (rc < 0)
		return rc;
	return rc == len ? 0 : -ENOBUFS;
}

/**
 * smc_clc_io_flush() - sends a message that had to wait for the sock's lock, if there is one
 * @rv: the rendezvous
 *
 * May sleep for memory. Return: 0; -EINPROGRESS if it still has to wait, and the worker will run
 * again; or a negative errno.
 */
int smc_clc_io_flush(struct smc_rendezvous *rv)
{
	struct sock *sk = rv->sk;
	int rc;

	if (!rv->unsent)
		return 0;
	if (!smc_sock_trylock_retry(sk, &rv->retry))
		return time_before(jiffies, rv->unsent_since + SMC_HANDSHAKE_UNSENT) ? -EINPROGRESS : -ETIMEDOUT;
	rc = send_clc(sk, rv->buf, rv->unsent);
	release_sock(sk);
	trace_smc_clc_send(sk, rv->buf, rv->unsent);
	rv->unsent = 0;
	rv->sent = jiffies;
	return rc;
}

/**
 * smc_clc_io_send() - sends the message that has been encoded into the rendezvous' buffer
 * @rv: the rendezvous
 * @len: bytes of it, or the negative errno of the encoder
 *
 * May sleep for memory.
 *
 * Return: 0; -EINPROGRESS if a thread holds the sock's lock, so that smc_clc_io_flush() is to send the
 * message before anything else happens; or a negative errno.
 */
int smc_clc_io_send(struct smc_rendezvous *rv, int len)
{
	if (len < 0)
		return len;
	rv->unsent = len;
	rv->unsent_since = jiffies;
	return smc_clc_io_flush(rv);
}

/**
 * smc_clc_io_decline() - tells the peer that the connection stays TCP, and why
 * @rv: the rendezvous
 * @reason: a positive code of wire/reason.h
 *
 * Return: SMC_OUTCOME_TCP, or a negative errno; then the connection is broken, unless it is -EINPROGRESS:
 * the message waits for the sock's lock.
 */
int smc_clc_io_decline(struct smc_rendezvous *rv, u32 reason)
{
	struct smc_clc_decline d = {
		.version = rv->version,
		.code = reason,
		.sync = reason == SMC_REASON_SYNC,
		.os_type = rv->version > 1 ? SMC_CLC_OS_LINUX : 0,
	};
	int rc = smc_clc_io_send(rv, smc_clc_decline_encode(&d, rv->buf, sizeof(rv->buf)));

	rv->reason = reason;
	if (rc == -EINPROGRESS)
		rv->step = SMC_STEP_DECLINED;
	return rc ?: SMC_OUTCOME_TCP;
}

/* smc_clc_io_recv_decline() - looks into the DECLINE that has come. Return: SMC_OUTCOME_TCP or -EPROTO. */
int smc_clc_io_recv_decline(struct smc_rendezvous *rv)
{
	struct smc_clc_decline d;
	int rc = smc_clc_decline_decode(rv->buf, rv->len, &d);

	if (rc)
		return rc;
	rv->reason = SMC_REASON_PEER_DECLINED;
	rv->peer_diagnosis = d.code;
	rv->offer.declined = true;
	rv->offer.out_of_sync = d.sync;
	return SMC_OUTCOME_TCP;
}
