/* SPDX-License-Identifier: Apache-2.0 */
/* The operations, by file. The name of each, or the comment at its definition, describes it. */
#ifndef CALLS_H
#define CALLS_H

#include <poll.h>

#include "fuzz.h"

/* call_socket.c */
DECLARE_OP(op_socket);
DECLARE_OP(op_bind);
DECLARE_OP(op_listen);
DECLARE_OP(op_connect);
DECLARE_OP(op_disconnect);
DECLARE_OP(op_accept);
DECLARE_OP(op_shutdown);
DECLARE_OP(op_close);
DECLARE_OP(op_names);
DECLARE_OP(op_dup);
DECLARE_OP(op_pass);
DECLARE_OP(op_take);
DECLARE_OP(op_fcntl);
DECLARE_OP(op_fork);
DECLARE_OP(op_signal);
DECLARE_OP(op_pause);
DECLARE_OP(op_unshare);

/* call_data.c */
DECLARE_OP(op_send);
DECLARE_OP(op_sendmsg);
DECLARE_OP(op_write);
DECLARE_OP(op_recv);
DECLARE_OP(op_recvmsg);
DECLARE_OP(op_read);
DECLARE_OP(op_pipe);
DECLARE_OP(op_splice_in);
DECLARE_OP(op_splice_out);
DECLARE_OP(op_sendfile);
DECLARE_OP(op_clc);
DECLARE_OP(op_forward);

/* call_option.c */
DECLARE_OP(op_setsockopt);
DECLARE_OP(op_getsockopt);
DECLARE_OP(op_ioctl);
DECLARE_OP(op_zerocopy_receive);
DECLARE_OP(op_filter);

/* call_poll.c */
DECLARE_OP(op_await);
DECLARE_OP(op_poll);
DECLARE_OP(op_epoll);
DECLARE_OP(op_epoll_ctl);
DECLARE_OP(op_epoll_wait);
DECLARE_OP(op_uring);

/* call_control.c */
DECLARE_OP(op_generic);
DECLARE_OP(op_diag);
DECLARE_OP(op_destroy);
DECLARE_OP(op_sysctl);
DECLARE_OP(op_proc);

/* call_policy.c */
DECLARE_OP(op_policy);

/* Waits at most @ms milliseconds for one of some events. */
static inline int await(int fd, short events, int ms)
{
	struct pollfd p = { .fd = fd, .events = events };

	return poll(&p, 1, ms);
}

#endif
