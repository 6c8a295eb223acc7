/* SPDX-License-Identifier: GPL-2.0-only */
/* What the files of this folder share. */
#ifndef SMC_TRANSPORT_ISM_ISM_H
#define SMC_TRANSPORT_ISM_ISM_H

#include "provider.h"

/*
 * Something that one thread at a time does. Who comes meanwhile leaves it to the one who is at it:
 * that one does it once more.
 */
struct smc_ism_turn {
	atomic_t n;
};

/* Where the device has nothing but moves: what goes into messages, and what has come out of them. */
struct smc_ism_talk {
	bool			ready;		/* the peer is known; what has come before is in the DMB */
	u8			index;		/* of the peer's element in its DMB */
	struct smc_ism_turn	say;
	u64			written;	/* what the peer is to know of; tx_lock */
	u64			urgent;		/* of that, behind the last urgent byte; tx_lock */
	struct smc_track	prod;		/* what it has been told; who has the turn */
	struct smc_track	cons;
	u64			marked;		/* told as urgent; who has the turn */
	struct smc_ism_turn	hear;
	struct smc_track	peer_prod;	/* what it has told; who has that turn, as the rest */
	struct smc_track	peer_cons;
	u64			peer_marked;
	u8			peer_state;
};

/* What SMC-D knows of a connection: smc_conn.priv. */
struct smc_ism_conn {
	struct smc_ism_dev	*dev;
	struct smc_ism_dmb	*own;		/* what the peer writes to */
	struct smc_ism_dmb	*peer;		/* what we write to; set once, when it is known */
	u64			peer_token;
	struct smc_ism_talk	talk;		/* move.c */
};

extern const struct smc_transport_ops smc_ism_transport;

/* device.c: the devices that there are, and which of them a connection can use. */
int smc_ism_offer(struct smc_offer *offer, struct smc_clc_proposal *p);
struct smc_ism_dev *smc_ism_choose(struct smc_offer *offer, const struct smc_clc_proposal *p,
				   struct smc_clc_accept *accept, u64 peer[2], u32 *reason);
struct smc_ism_dev *smc_ism_by_chid(u16 chid, u8 version);
void smc_ism_drop(struct smc_ism_dev *dev);
struct smc_ism_dev *smc_ism_for_pair(struct sock *sk);
const u8 *smc_ism_host_eid(void);
void smc_ism_local(struct smc_local *local);
int smc_ism_walk(unsigned int *next, int (*fn)(struct smc_ism_dev *dev, void *arg), void *arg);

/* move.c: for devices that cannot map a peer's DMB */
int smc_ism_talk_begin(struct smc_conn *conn, const struct smc_clc_accept *peer);
void smc_ism_talk(struct smc_conn *conn, unsigned int what);
ssize_t smc_ism_move(struct smc_conn *conn, struct iov_iter *from, u32 len);

/* 16 KiB << code, for DMBs. */
#define SMC_ISM_SIZE_MIN 16384

/* ops.c: the transport */
int smc_ism_init(void);
void smc_ism_exit(void);

#endif /* SMC_TRANSPORT_ISM_ISM_H */
