// SPDX-License-Identifier: GPL-2.0-only
/*
 * CLC messages on the TCP connection. Not one byte beyond a message is read: after a DECLINE the
 * application's data may follow at once.
 */

#include <linux/uio.h>
#include <net/inet_sock.h>
#include <net/tcp_states.h>

#include "../control/trace.h"
#include "../wire/clc.h"
#include "../wire/reason.h"
#include "handshake.h"

/* One read, into the buffer or, what is beyond it, to nowhere. Return: bytes, or the error. */
static int read_some(struct smc_sock *smc, unsigned int want)
{
	const struct proto_ops *tcp = smc_ops_of_tcp(smc->sk);
	struct msghdr msg = { .msg_flags = MSG_DONTWAIT };
	struct smc_rendezvous *rv = smc->rv;
	struct kvec vec;
	u8 waste[64];

	if (rv->have < sizeof(rv->buf)) {
		vec.iov_base = rv->buf + rv->have;
		vec.iov_len = min_t(size_t, want, sizeof(rv->buf)) - rv->have;
	} else {
		vec.iov_base = waste;
		vec.iov_len = min_t(size_t, want - rv->have, sizeof(waste));
	}
	iov_iter_kvec(&msg.msg_iter, ITER_DEST, &vec, 1, vec.iov_len);
	return tcp->recvmsg(smc->sock, &msg, vec.iov_len, MSG_DONTWAIT);
}

/*
 * May the peer have nothing more to say by CLC? Once CONFIRM is through, a client's end of the link may
 * be up, and its application have closed its direction, of which TCP can tell before the link does.
 */
static bool said_all(const struct smc_sock *smc)
{
	return smc_handshake_is_child(smc) && smc->rv->step == SMC_STEP_LINK && !smc->rv->have &&
	       inet_sk_state_load(smc->sk) != TCP_CLOSE;
}

/*
 * Reads until there have been so many bytes. Return: 0, -EINPROGRESS if they are not there yet, or
 * the error.
 */
static int fill(struct smc_sock *smc, unsigned int want)
{
	int rc;

	while (smc->rv->have < want) {
		rc = read_some(smc, want);
		if (rc == -EAGAIN)
			return -EINPROGRESS;
		if (rc < 0)
			return rc;
		if (rc == 0)
			return said_all(smc) ? -EINPROGRESS : -ECONNRESET;
		smc->rv->have += rc;
	}
	return 0;
}

/**
 * smc_clc_io_recv() - reads a message into the rendezvous' buffer, as far as it is there
 * @smc: the record of the socket in its rendezvous
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
int smc_clc_io_recv(struct smc_sock *smc, u8 expected)
{
	struct smc_rendezvous *rv = smc->rv;
	struct smc_clc_header h;
	int rc;

	rc = fill(smc, SMC_CLC_HEADER_LEN);
	if (rc)
		return rc;
	rc = smc_clc_header_decode(rv->buf, SMC_CLC_HEADER_LEN, &h);
	if (rc)
		return rc;
	if (h.type != expected && h.type != SMC_CLC_DECLINE)
		return -EPROTO;
	rc = fill(smc, h.length);
	if (rc)
		return rc;
	rv->have = 0;
	rv->len = smc_clc_header_keep(&h);
	trace_smc_clc_recv(smc->sk, rv->buf, rv->len);
	return h.type;
}

/**
 * smc_clc_io_send() - sends a message
 * @smc: the record
 * @buf: the message
 * @len: bytes of it, or the negative errno of the encoder
 *
 * There is always room: at most two messages go each way, and the send buffer is empty. May sleep
 * for memory.
 *
 * Return: 0 or a negative errno.
 */
int smc_clc_io_send(struct smc_sock *smc, const u8 *buf, int len)
{
	struct kvec vec = { .iov_base = (void *)buf, .iov_len = len };
	struct msghdr msg = { .msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL };
	int rc;

	if (len < 0)
		return len;
	iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, &vec, 1, len);
	rc = smc_ops_of_tcp(smc->sk)->sendmsg(smc->sock, &msg, len);
	trace_smc_clc_send(smc->sk, buf, len);
	if (rc < 0)
		return rc;
	return rc == len ? 0 : -ENOBUFS;
}

/**
 * smc_clc_io_decline() - tells the peer that the connection stays TCP, and why
 * @smc: the record
 * @reason: a positive code of wire/reason.h
 *
 * Return: 0 or a negative errno; then the connection is broken.
 */
int smc_clc_io_decline(struct smc_sock *smc, u32 reason)
{
	struct smc_clc_decline d = {
		.version = smc->rv->version,
		.code = reason,
		.sync = reason == SMC_REASON_SYNC,
		.os_type = smc->rv->version > 1 ? SMC_OS_LINUX : 0,
	};
	u8 buf[SMC_CLC_DECLINE_V2_LEN];

	return smc_clc_io_send(smc, buf, smc_clc_decline_encode(&d, buf, sizeof(buf)));
}

/**
 * smc_clc_io_declined() - looks into the DECLINE that has come
 * @smc: the record
 * @diagnosis: gets the peer's reason
 *
 * Return: 0 or -EPROTO.
 */
int smc_clc_io_declined(struct smc_sock *smc, u32 *diagnosis)
{
	struct smc_clc_decline d;
	int rc = smc_clc_decline_decode(smc->rv->buf, smc->rv->len, &d);

	*diagnosis = rc ? 0 : d.code;
	if (rc)
		return rc;
	smc->rv->offer.declined = true;
	smc->rv->offer.out_of_sync = d.sync;
	return 0;
}
