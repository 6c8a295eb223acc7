/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The tracepoints of the stock module, with its names and fields, for scripts that attach to them.
 *
 * Fields that point to a struct smc_sock or to a TCP socket of the stock module point to the one sock that an SMC socket
 * has here. They identify the socket, as in the events of trace.h.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM smc

#if !defined(SMC_CONTROL_TRACE_STOCK_H) || defined(TRACE_HEADER_MULTI_READ)
#define SMC_CONTROL_TRACE_STOCK_H

#include <linux/tracepoint.h>
#include <net/net_namespace.h>
#include <net/sock.h>

/* The state of a link in the stock module's smcr_link_down: no longer active. */
#define SMC_TRACE_LINK_INACTIVE 1

TRACE_EVENT(smc_switch_to_fallback,
	TP_PROTO(const struct sock *sk, u32 reason),
	TP_ARGS(sk, reason),
	TP_STRUCT__entry(
		__field(const void *, sk)
		__field(const void *, clcsk)
		__field(u64, net_cookie)
		__field(int, fallback_rsn)
	),
	TP_fast_assign(
		__entry->sk = sk;
		__entry->clcsk = sk;
		__entry->net_cookie = sock_net(sk)->net_cookie;
		__entry->fallback_rsn = reason;
	),
	TP_printk("sk=%p clcsk=%p net=%llu fallback_rsn=%d", __entry->sk, __entry->clcsk, __entry->net_cookie,
		  __entry->fallback_rsn)
);

/* Bytes that a connection has moved to or from the application in one piece, and the device that it uses. */
DECLARE_EVENT_CLASS(smc_msg_event,
	TP_PROTO(const struct sock *sk, const char *device, size_t len),
	TP_ARGS(sk, device, len),
	TP_STRUCT__entry(
		__field(const void *, smc)
		__field(u64, net_cookie)
		__field(size_t, len)
		__string(name, device)
	),
	TP_fast_assign(
		__entry->smc = sk;
		__entry->net_cookie = sock_net(sk)->net_cookie;
		__entry->len = len;
		smc_compat_assign_str(name, device);
	),
	TP_printk("smc=%p net=%llu len=%zu dev=%s", __entry->smc, __entry->net_cookie, __entry->len,
		  __get_str(name))
);

DEFINE_EVENT(smc_msg_event, smc_tx_sendmsg,
	TP_PROTO(const struct sock *sk, const char *device, size_t len),
	TP_ARGS(sk, device, len)
);

DEFINE_EVENT(smc_msg_event, smc_rx_recvmsg,
	TP_PROTO(const struct sock *sk, const char *device, size_t len),
	TP_ARGS(sk, device, len)
);

/* A link of SMC-R, of a group of that namespace and over that device, is given up by the code at @location. */
TRACE_EVENT(smcr_link_down,
	TP_PROTO(const void *link, const void *lgr, const struct net *net, const char *device, void *location),
	TP_ARGS(link, lgr, net, device, location),
	TP_STRUCT__entry(
		__field(const void *, lnk)
		__field(const void *, lgr)
		__field(u64, net_cookie)
		__field(int, state)
		__string(name, device)
		__field(void *, location)
	),
	TP_fast_assign(
		__entry->lnk = link;
		__entry->lgr = lgr;
		__entry->net_cookie = net->net_cookie;
		__entry->state = SMC_TRACE_LINK_INACTIVE;
		smc_compat_assign_str(name, device);
		__entry->location = location;
	),
	TP_printk("lnk=%p lgr=%p net=%llu state=%d dev=%s location=%pS", __entry->lnk, __entry->lgr,
		  __entry->net_cookie, __entry->state, __get_str(name), __entry->location)
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH control
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace_stock
#include <trace/define_trace.h>
