/* SPDX-License-Identifier: GPL-2.0-only */
/* Structures and functions that the files of this folder share: SMC-D (docs/protocol.md, 10). */
#ifndef SMC_TRANSPORT_ISM_ISM_H
#define SMC_TRANSPORT_ISM_ISM_H

#include "../../conn/cdc.h"
#include "provider.h"

/* Work that one thread does at a time. Another thread leaves it to the first one, which repeats the work. */
struct smc_ism_turn {
	atomic_t n;
};

/* CDC for devices that can only move data. */
struct smc_ism_cdc {
	bool			ready;		/* the peer is known. Earlier messages wait in the DMB */
	u8			index;		/* index of the connection in the peer's DMB, dmbe_idx of CLC */
	u8			last[SMC_CDC_D_LEN] __aligned(sizeof(u64)); /* the last message sent; as tx */
	struct smc_ism_turn	send_turn;
	struct smc_cdc_tx	tx;		/* written and urgent: tx_lock; the rest: the thread that has send_turn */
	struct smc_ism_turn	recv_turn;
	struct smc_cdc_rx	rx;		/* the thread that has recv_turn */
};

/* The SMC-D part of a connection: smc_conn.priv. */
struct smc_ism_conn {
	struct smc_ism_dev	*dev;
	struct smc_ism_dmb	*own;		/* the peer writes to it */
	struct smc_ism_dmb	*peer;		/* we write to it; set once, if the device maps DMBs */
	u64			peer_token;
	struct smc_ism_cdc	cdc;		/* dmb_cdc.c */
};

extern const struct smc_transport_ops smc_ism_transport;

/* device.c: the registered devices, and the choice between them. */
int smc_ism_offer(struct smc_offer *offer, struct smc_clc_proposal *p);
struct smc_ism_dev *smc_ism_choose(struct smc_offer *offer, const struct smc_clc_proposal *p,
				   struct smc_clc_accept *accept, u64 peer[2], u32 *reason);
u64 smc_ism_ext_gid(const struct smc_ism_dev *dev, const struct smc_clc_accept *peer);
struct smc_ism_dev *smc_ism_of_server(const struct smc_clc_accept *peer);
void smc_ism_dev_put(struct smc_ism_dev *dev);
struct smc_ism_dev *smc_ism_for_pair(struct sock *sk);
const u8 *smc_ism_host_eid(void);
void smc_ism_local(struct smc_local *local);
bool smc_ism_present(const struct net *net);

/* dmb_cdc.c: for devices that cannot map a peer's DMB */
int smc_ism_cdc_start(struct smc_conn *conn, const struct smc_clc_accept *peer);
void smc_ism_cdc_repeat(struct smc_conn *conn);
void smc_ism_cdc_send(struct smc_conn *conn, unsigned int what);
ssize_t smc_ism_move(struct smc_conn *conn, struct iov_iter *from, u32 len);

/* memory.c */
struct smc_ism_dmb *smc_ism_dmb_new(struct smc_ism_dev *dev, const struct sock *sk, const u64 peer[2], u8 *asked, u8 *code);

/* A DMB has 16 KiB << size code. */
#define SMC_ISM_SIZE_MIN 16384
#define SMC_ISM_CODE_MAX 6

/* ops.c: the transport */
int smc_ism_init(void);
void smc_ism_exit(void);

#endif /* SMC_TRANSPORT_ISM_ISM_H */
