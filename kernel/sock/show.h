/* SPDX-License-Identifier: GPL-2.0-only */
/* Listing of sockets by sock_diag. */
#ifndef SMC_SOCK_SHOW_H
#define SMC_SOCK_SHOW_H

#include <linux/types.h>

struct smc_conn;
struct sock;

struct smc_sock_view {
	struct sock *sk;
	struct smc_conn *conn;	/* that carries its data, or NULL */
	bool tcp;		/* it has fallen back */
	u32 reason;		/* why */
	u32 peer_diagnosis;	/* the peer's reason, 0 if it gave none */
};

int smc_table_walk(unsigned int *bucket, unsigned int *skip,
		   int (*fn)(const struct smc_sock_view *view, void *arg), void *arg);

#endif /* SMC_SOCK_SHOW_H */
