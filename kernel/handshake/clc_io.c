// SPDX-License-Identifier: GPL-2.0-only
/*
 * CLC messages on the TCP connection. We read no byte beyond a message, because the application's data may
 * follow a DECLINE at once.
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
 * Copies a message from TCP's queue. Skips what does not fit into the buffer: the end of a message that is
 * longer than any we know. Return: bytes.
 */
static int copy_clc(read_descriptor_t *desc, struct sk_buff *skb, unsigned int offset, size_t len)
{
	struct smc_rendezvous *rv = desc->arg.data;
	size_t n = min(len, desc->count);

	if (!rv->have)
		rv->have_since = jiffies;
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
 * Is the next byte of a message urgent? No message has urgent data, and TCP would never read past it. Urgent data after a
 * DECLINE is the application's, and is not read here.
 */
static bool urgent_is_next(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return tp->urg_data && tp->urg_seq == tp->copied_seq;
}

/* Returns why nothing was read: 0 for the end of the stream, -EAGAIN if more may come, or the error. */
static int read_error(struct sock *sk)
{
	sock_owned_by_me(sk);
	if (urgent_is_next(sk))
		return -EPROTO;
	if (sock_flag(sk, SOCK_DONE))
		return 0;
	if (sk->sk_err)
		return sock_error(sk);
	/* The application has shut the socket down, which is not the peer's fault: see smc_handshake_remember(). */
	if (sk->sk_shutdown & RCV_SHUTDOWN)
		return -EPIPE;
	return sk->sk_state == TCP_CLOSE ? -ENOTCONN : -EAGAIN;
}

/*
 * Reads those of the first @want bytes of a message that have come. Return: bytes, 0 for the end of the stream,
 * -EAGAIN, or the error.
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
 * May the end of the stream be the end of CLC messages? After CONFIRM the client's link may be up, and its
 * application may have closed its direction. TCP can tell us before the link does.
 */
static bool peer_may_be_done(const struct smc_rendezvous *rv)
{
	return rv->server && rv->step == SMC_STEP_LINK && !rv->have && inet_sk_state_load(rv->sk) != TCP_CLOSE;
}

/* Reads the first @want bytes of a message. Return: 0, -EINPROGRESS if they are not there yet, or the error. */
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
 * smc_clc_io_recv() - reads a message into the rendezvous' buffer, as far as it has come
 * @rv: the rendezvous
 * @expected: the type that is due; a DECLINE may come instead
 *
 * Checks the header as soon as it has come, so that a wrong message ends the connection without waiting for
 * the rest. Discards the end of a message that is longer than any we know: a newer peer sent it, and we
 * would not understand it. May sleep, but does not wait for the peer.
 *
 * Return: the type if the message is complete, rv->len bytes in rv->buf; the next call begins the
 * next message. Else -EINPROGRESS, -EPROTO, or the connection's error.
 */
int smc_clc_io_recv(struct smc_rendezvous *rv, u8 expected)
{
	struct smc_clc_header h;
	int rc;

	might_sleep();
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
 * Hands a message to TCP, which sends it at once, because the peer waits for it: TCP_CORK and Nagle's
 * algorithm are for the application's data. There is always room: at most two messages go each way, and the
 * send buffer is empty. May sleep for memory.
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
 * smc_clc_io_flush() - sends a message that has waited for the sock's lock, if there is one
 * @rv: the rendezvous
 *
 * May sleep for memory. Return: 0; -EINPROGRESS if it still has to wait, and the worker will run
 * again; or a negative errno.
 */
int smc_clc_io_flush(struct smc_rendezvous *rv)
{
	struct sock *sk = rv->sk;
	int rc;

	might_sleep();
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
 * Return: 0; -EINPROGRESS if a thread holds the sock's lock, and smc_clc_io_flush() has to send the message;
 * or a negative errno.
 */
int smc_clc_io_send(struct smc_rendezvous *rv, int len)
{
	might_sleep();
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
		.code = smc_reason_for_peer(reason),
		.sync = reason == SMC_REASON_SYNC,
		.os_type = rv->version > 1 ? SMC_CLC_OS_LINUX : 0,
	};
	int rc = smc_clc_io_send(rv, smc_clc_decline_encode(&d, rv->buf, sizeof(rv->buf)));

	rv->reason = reason;
	if (rc == -EINPROGRESS)
		rv->step = SMC_STEP_DECLINED;
	return rc ?: SMC_OUTCOME_TCP;
}

/* smc_clc_io_recv_decline() - decodes the DECLINE that has come. Return: SMC_OUTCOME_TCP or -EPROTO. */
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
