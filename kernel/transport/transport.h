/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The contract between SMC and the transports that move its data: SMC-D through shared memory,
 * SMC-R by RDMA.
 *
 * The first part is what a transport provides, the second what it may call. Nothing else is shared.
 * Outside of transport/ nobody asks whether a connection is SMC-D or SMC-R to decide anything;
 * which transport carries a connection is chosen once, during the CLC handshake, and stays.
 *
 * Results: 0, a negative errno if the connection is to break, or a positive reason of wire/reason.h
 * if it is to fall back to TCP. In wire structures, integers are in host order.
 */
#ifndef SMC_TRANSPORT_TRANSPORT_H
#define SMC_TRANSPORT_TRANSPORT_H

#include <linux/types.h>
#include <linux/uio.h>

#include "../wire/clc.h"

struct module;
struct sk_buff;
struct smc_buf;
struct smc_conn;
struct smc_lgr;
struct sock;

/* In the order of preference: on one machine, memory is faster than an adapter. */
enum smc_transport_role { SMC_ROLE_D, SMC_ROLE_R, SMC_ROLES };

/* What this host can do at all, whichever connection it is about. */
struct smc_local {
	bool d1, d2, r1, r2;
	unsigned int n_eid;			/* user EIDs that are configured */
	u8 eid[SMC_CLC_EIDS][SMC_EID_LEN];
	bool seid_on;				/* the system EID may be used */
	u8 seid[SMC_EID_LEN];
};

/*
 * A rendezvous as the transports see it. `opaque` belongs to the transport of that role from the
 * moment offer or match has set it, until detach.
 */
struct smc_offer {
	struct sock *sk;			/* the TCP connection, held, not locked */
	bool server;
	u8 id[16];				/* PNET ID of the device that carries it */
	bool has_id;
	const struct smc_transport_ops *ops[SMC_ROLES];	/* that have something to offer; pinned */
	void *opaque[SMC_ROLES];
};

/**
 * struct smc_transport_ops - what a transport provides
 *
 * All but signal, write and abort may sleep, and are called without any lock. For one connection at
 * most one of offer, match, attach and detach runs at a time.
 *
 * @name:	for messages
 * @role:	each role is taken by one transport at most
 * @owner:	its module, pinned while a rendezvous, connection or group uses the transport
 *
 * @local:	adds what the transport can do at all. Does not sleep.
 * @offer:	client: adds what the transport has to offer for this connection to the proposal; -ENODEV if nothing
 * @match:	server: finds a device and a group, or forms one, for what the peer offers, gets buffers, and fills the
 *		ACCEPT; a positive reason if there is none, which leaves nothing to detach
 * @attach:	client, with the peer's ACCEPT: joins or forms the group that it names and fills our CONFIRM; once that is
 *		sent, again with NULL, for what first contact takes beyond CLC. Server, with the peer's CONFIRM: takes what
 *		it says, and does what first contact takes; there is nothing to fill. Afterwards the peer may write.
 * @detach:	undoes offer, match and attach, of a rendezvous that failed or a connection that is closed
 *
 * @lgr_init:	makes the transport's part of a new link group
 * @lgr_free:	undoes it, when the last reference on the group is gone
 * @buf_get:	gets a buffer of at least so many bytes that the peer may write to (or, for sending, that we read from)
 * @buf_put:	returns it; the peer cannot write to it any more
 *
 * @write:	puts bytes at an offset of the peer's element. An ISM provider copies from the iterator straight into it.
 *		The socket is locked; sleeps only as far as copying from user space does. Returns the number of bytes.
 * @signal:	sends the CDC message with the connection's cursors and flags; -EAGAIN if there is no slot, in which case
 *		the transport calls smc_upcall_space() later. Softirq.
 * @abort:	the peer shall hear nothing more of this connection. Softirq.
 * @describe:	adds what the transport knows of a group to a netlink message. Takes no lock that the data path holds.
 */
struct smc_transport_ops {
	const char *name;
	enum smc_transport_role role;
	struct module *owner;

	void (*local)(struct smc_local *local);
	int (*offer)(struct smc_offer *offer, struct smc_clc_proposal *p);
	int (*match)(struct smc_offer *offer, const struct smc_clc_proposal *p, struct smc_clc_accept *accept);
	int (*attach)(struct smc_offer *offer, const struct smc_clc_accept *peer, struct smc_clc_accept *local);
	void (*detach)(struct smc_offer *offer);

	int (*lgr_init)(struct smc_lgr *lgr, const struct smc_offer *offer);
	void (*lgr_free)(struct smc_lgr *lgr);
	struct smc_buf *(*buf_get)(struct smc_lgr *lgr, size_t size, bool rmb);
	void (*buf_put)(struct smc_lgr *lgr, struct smc_buf *buf);

	ssize_t (*write)(struct smc_conn *conn, u32 offset, struct iov_iter *from, size_t len);
	int (*signal)(struct smc_conn *conn);
	void (*abort)(struct smc_conn *conn);
	int (*describe)(struct smc_lgr *lgr, struct sk_buff *msg);
};

/* What a transport may call. Registering and its opposite sleep. */
int smc_transport_register(const struct smc_transport_ops *ops);
void smc_transport_unregister(const struct smc_transport_ops *ops);

/* registry.c: for the handshake. All may sleep. */
void smc_registry_local(struct smc_local *local);
int smc_registry_offer(struct smc_offer *offer, struct smc_clc_proposal *p);
int smc_registry_match(struct smc_offer *offer, const struct smc_clc_proposal *p,
		       struct smc_clc_accept *accept, const struct smc_transport_ops **chosen);
void smc_registry_release(struct smc_offer *offer);

#endif
