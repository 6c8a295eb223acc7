/* SPDX-License-Identifier: GPL-2.0-only */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM smckit

#if !defined(SMC_CONTROL_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define SMC_CONTROL_TRACE_H

#include <linux/tracepoint.h>
#include <net/sock.h>

#include "../wire/llc.h"

#define SMC_TRACE_PHASE(phase)								\
	__print_symbolic(phase, { 0, "OPEN" }, { 1, "LISTEN" }, { 2, "CONNECT" },		\
			 { 3, "RENDEZVOUS" }, { 4, "TCP" }, { 5, "ACTIVE" })

/* A socket changes from one enum smc_phase to another. */
TRACE_EVENT(smc_phase,
	TP_PROTO(const struct sock *sk, int from, int to),
	TP_ARGS(sk, from, to),
	TP_STRUCT__entry(
		__field(const void *, sk)
		__field(u8, from)
		__field(u8, to)
	),
	TP_fast_assign(
		__entry->sk = sk;
		__entry->from = from;
		__entry->to = to;
	),
	TP_printk("sk=%p %s -> %s", __entry->sk,
		  SMC_TRACE_PHASE(__entry->from), SMC_TRACE_PHASE(__entry->to))
);

/* A rendezvous has ended: rc is 0 if the socket can be used, else the errno that broke the connection. */
TRACE_EVENT(smc_rendezvous,
	TP_PROTO(const struct sock *sk, bool server, int rc),
	TP_ARGS(sk, server, rc),
	TP_STRUCT__entry(
		__field(const void *, sk)
		__field(bool, server)
		__field(int, rc)
	),
	TP_fast_assign(
		__entry->sk = sk;
		__entry->server = server;
		__entry->rc = rc;
	),
	TP_printk("sk=%p %s rc=%d", __entry->sk, __entry->server ? "server" : "client", __entry->rc)
);

/* A socket has fallen back to TCP, for a reason of ours or of the peer. */
TRACE_EVENT(smc_fallback,
	TP_PROTO(const struct sock *sk, bool server, u32 reason, u32 peer),
	TP_ARGS(sk, server, reason, peer),
	TP_STRUCT__entry(
		__field(const void *, sk)
		__field(bool, server)
		__field(u32, reason)
		__field(u32, peer)
	),
	TP_fast_assign(
		__entry->sk = sk;
		__entry->server = server;
		__entry->reason = reason;
		__entry->peer = peer;
	),
	TP_printk("sk=%p %s reason=0x%08x peer=0x%08x", __entry->sk,
		  __entry->server ? "server" : "client", __entry->reason, __entry->peer)
);

/* A call that sends or receives: the bytes that it asked for, and what it returned. */
DECLARE_EVENT_CLASS(smc_move,
	TP_PROTO(const struct sock *sk, u32 token, size_t asked, ssize_t done),
	TP_ARGS(sk, token, asked, done),
	TP_STRUCT__entry(
		__field(const void *, sk)
		__field(u32, token)
		__field(size_t, asked)
		__field(ssize_t, done)
	),
	TP_fast_assign(
		__entry->sk = sk;
		__entry->token = token;
		__entry->asked = asked;
		__entry->done = done;
	),
	TP_printk("sk=%p token=%u asked=%zu done=%zd", __entry->sk, __entry->token, __entry->asked,
		  __entry->done)
);

DEFINE_EVENT(smc_move, smc_tx,
	TP_PROTO(const struct sock *sk, u32 token, size_t asked, ssize_t done),
	TP_ARGS(sk, token, asked, done)
);

DEFINE_EVENT(smc_move, smc_rx,
	TP_PROTO(const struct sock *sk, u32 token, size_t asked, ssize_t done),
	TP_ARGS(sk, token, asked, done)
);

/* A connection changes from one enum smc_close_state to another, for an enum smc_close_event. */
TRACE_EVENT(smc_close,
	TP_PROTO(const struct sock *sk, u32 token, u8 from, u8 event, u8 to),
	TP_ARGS(sk, token, from, event, to),
	TP_STRUCT__entry(
		__field(const void *, sk)
		__field(u32, token)
		__field(u8, from)
		__field(u8, event)
		__field(u8, to)
	),
	TP_fast_assign(
		__entry->sk = sk;
		__entry->token = token;
		__entry->from = from;
		__entry->event = event;
		__entry->to = to;
	),
	TP_printk("sk=%p token=%u %u -(%u)-> %u", __entry->sk, __entry->token, __entry->from,
		  __entry->event, __entry->to)
);

#define SMC_TRACE_WHY(why)								\
	__print_symbolic(why, { 0, "NOT_SENT" }, { 1, "NOT_RECEIVED" }, { 2, "NOT_POSTED" },	\
			 { 3, "NOT_REGISTERED" }, { 4, "NO_MESSAGE" }, { 5, "EVENT" },		\
			 { 6, "NO_PORT" }, { 7, "DELETED" }, { 8, "SILENT" }, { 9, "STUCK" },	\
			 { 10, "FLOODED" }, { 11, "FORGETFUL" }, { 12, "AHEAD" },		\
			 { 13, "BAD_IMMEDIATE" }, { 14, "UNUSED" }, { 15, "BAD_LLC" },	\
			 { 16, "OPERATOR" }, { 17, "REPLACED" })

/* A link of SMC-R is given up, for an enum smc_link_why; and so is its group, if it has no other link. */
TRACE_EVENT(smc_link_fail,
	TP_PROTO(u32 link, int why, int detail),
	TP_ARGS(link, why, detail),
	TP_STRUCT__entry(
		__field(u32, link)
		__field(u8, why)
		__field(int, detail)
	),
	TP_fast_assign(
		__entry->link = link;
		__entry->why = why;
		__entry->detail = detail;
	),
	TP_printk("link=%08x %s detail=%d", __entry->link, SMC_TRACE_WHY(__entry->why), __entry->detail)
);

/* An LLC message cannot be right, and its link fails: its length in bytes, and what it begins with. */
TRACE_EVENT(smc_llc_malformed,
	TP_PROTO(u32 link, const u8 *msg, unsigned int len),
	TP_ARGS(link, msg, len),
	TP_STRUCT__entry(
		__field(u32, link)
		__field(unsigned int, len)
		__array(u8, head, SMC_LLC_LEN)
	),
	TP_fast_assign(
		__entry->link = link;
		__entry->len = len;
		memset(__entry->head, 0, sizeof(__entry->head));
		memcpy(__entry->head, msg, min_t(unsigned int, len, sizeof(__entry->head)));
	),
	TP_printk("link=%08x len=%u %*phN", __entry->link, __entry->len, (int)sizeof(__entry->head), __entry->head)
);

/* A link group has got a link beside another one. */
TRACE_EVENT(smc_link_add,
	TP_PROTO(u32 link, bool server),
	TP_ARGS(link, server),
	TP_STRUCT__entry(
		__field(u32, link)
		__field(bool, server)
	),
	TP_fast_assign(
		__entry->link = link;
		__entry->server = server;
	),
	TP_printk("link=%08x %s", __entry->link, __entry->server ? "server" : "client")
);

/*
 * A host has given up a link that it was adding to a group. @step: 1 the server asks, 2 keys are exchanged, 3 the client makes its
 * end of the link, or CONFIRM LINK is awaited. @err: -ETIMEDOUT the peer was silent, -EREMOTEIO it has refused, -ECANCELED it has begun again, -ENOTCONN the link, or
 * the one that carries the messages, is lost; or why this host cannot make the link.
 */
TRACE_EVENT(smc_link_not_added,
	TP_PROTO(u32 link, bool server, u8 step, int err),
	TP_ARGS(link, server, step, err),
	TP_STRUCT__entry(
		__field(u32, link)
		__field(bool, server)
		__field(u8, step)
		__field(int, err)
	),
	TP_fast_assign(
		__entry->link = link;
		__entry->server = server;
		__entry->step = step;
		__entry->err = err;
	),
	TP_printk("link=%08x %s step=%u err=%d", __entry->link, __entry->server ? "server" : "client", __entry->step,
		  __entry->err)
);

/*
 * A connection goes on by another link of its group. The peer certainly has what was before @has; bytes from there to @sent
 * are sent again.
 */
TRACE_EVENT(smc_failover,
	TP_PROTO(const struct sock *sk, u32 token, u8 from, u8 to, u64 has, u64 sent),
	TP_ARGS(sk, token, from, to, has, sent),
	TP_STRUCT__entry(
		__field(const void *, sk)
		__field(u32, token)
		__field(u8, from)
		__field(u8, to)
		__field(u64, has)
		__field(u64, sent)
	),
	TP_fast_assign(
		__entry->sk = sk;
		__entry->token = token;
		__entry->from = from;
		__entry->to = to;
		__entry->has = has;
		__entry->sent = sent;
	),
	TP_printk("sk=%p token=%u link %u -> %u has=%llu sent=%llu", __entry->sk, __entry->token, __entry->from,
		  __entry->to, __entry->has, __entry->sent)
);

/* A CLC message, with its first bytes. */
DECLARE_EVENT_CLASS(smc_clc,
	TP_PROTO(const struct sock *sk, const u8 *buf, unsigned int len),
	TP_ARGS(sk, buf, len),
	TP_STRUCT__entry(
		__field(const void *, sk)
		__field(u8, type)
		__field(u8, version)
		__field(unsigned int, len)
		__array(u8, head, 28)
	),
	TP_fast_assign(
		__entry->sk = sk;
		__entry->type = len > 7 ? buf[4] : 0;
		__entry->version = len > 7 ? buf[7] >> 4 : 0;
		__entry->len = len;
		memset(__entry->head, 0, sizeof(__entry->head));
		memcpy(__entry->head, buf, min_t(unsigned int, len, sizeof(__entry->head)));
	),
	TP_printk("sk=%p %s v%u len=%u %*phN", __entry->sk,
		  __print_symbolic(__entry->type, { 1, "PROPOSAL" }, { 2, "ACCEPT" },
				   { 3, "CONFIRM" }, { 4, "DECLINE" }),
		  __entry->version, __entry->len, (int)sizeof(__entry->head), __entry->head)
);

DEFINE_EVENT(smc_clc, smc_clc_send,
	TP_PROTO(const struct sock *sk, const u8 *buf, unsigned int len),
	TP_ARGS(sk, buf, len)
);

DEFINE_EVENT(smc_clc, smc_clc_recv,
	TP_PROTO(const struct sock *sk, const u8 *buf, unsigned int len),
	TP_ARGS(sk, buf, len)
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH control
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
