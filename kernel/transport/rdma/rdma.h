/* SPDX-License-Identifier: GPL-2.0-only */
/* SMC-R as a transport: shared by both sides of a rendezvous. */
#ifndef SMC_RDMA_RDMA_H
#define SMC_RDMA_RDMA_H

#include "../../control/diag.h"
#include "group.h"
#include "init.h"

/* How long a rendezvous may wait for LLC in all: the peer gives up after six seconds without a message. */
#define SMC_RDMA_LLC_WAIT (4 * HZ)

extern const struct smc_transport_ops smc_rdma_transport;

/* SMC-R's part of a rendezvous; NULL if there is none yet. */
static inline struct smc_rdma_offer *smc_rdma_offer_of(const struct smc_offer *offer)
{
	return offer->opaque[SMC_ROLE_R];
}

static inline struct smc_rdma_conn *smc_rdma_conn_of(const struct smc_conn *conn)
{
	return conn->priv;
}

/* ops.c */
struct smc_rdma_offer *smc_rdma_offer_new(struct smc_offer *offer);
void smc_rdma_wait(struct smc_rdma_offer *ro, unsigned long timeout);
void smc_rdma_stop_waiting(struct smc_rdma_offer *ro);
bool smc_rdma_timed_out(const struct smc_rdma_offer *ro);
int smc_rdma_form(struct smc_rdma_offer *ro, const struct smc_rdma_path *path);
int smc_rdma_make_conn(struct smc_rdma_offer *ro);
int smc_rdma_confirm_rmb(struct smc_rdma_offer *ro);
int smc_rdma_open_link(struct smc_rdma_offer *ro);
int smc_rdma_confirmed(const struct smc_rdma_offer *ro);
void smc_rdma_fill_local(const struct smc_rdma_offer *ro, struct smc_clc_accept *a);
int smc_rdma_set_peer(struct smc_rdma_offer *ro, const struct smc_clc_accept *peer);

/* show.c */
void smc_rdma_describe(const struct smc_conn *conn, struct smc_diag_info *info);

/* route.c */
int smc_rdma_route(const struct smc_offer *offer, const u8 gid[16], u8 mac[ETH_ALEN], bool *gateway);

/* client.c, server.c: operations of the transport */
int smc_rdma_client_offer(struct smc_offer *offer, struct smc_clc_proposal *p);
int smc_rdma_client_attach(struct smc_offer *offer, const struct smc_clc_accept *peer, struct smc_clc_accept *us);
int smc_rdma_server_match(struct smc_offer *offer, const struct smc_clc_proposal *p, struct smc_clc_accept *us);
int smc_rdma_server_attach(struct smc_offer *offer, const struct smc_clc_accept *peer);

#endif /* SMC_RDMA_RDMA_H */
