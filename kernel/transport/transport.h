/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The contract between SMC and the transports that move its data: SMC-D through shared memory,
 * SMC-R by RDMA.
 *
 * The first part is what a transport provides, the second what it may call; beside that it may look
 * at struct smc_conn and struct smc_lgr, where each member says whose it is. Outside of transport/
 * nobody asks whether a connection is SMC-D or SMC-R to decide anything; which transport carries a
 * connection is chosen once, during the CLC handshake, and stays.
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
struct smc_cdc_delta;
struct smc_cdc_rx;
struct smc_conn;
struct smc_diag_info;
struct smc_lgr;
struct smc_lgr_key;
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
	struct smc_conn *conn;			/* what becomes of it: set by match or attach, with a reference */
	bool server;
	bool declined;				/* the peer has said that it stays with TCP */
	bool out_of_sync;			/* and that it has no group like ours */
	u8 id[16];				/* PNET ID of the device that carries it */
	bool has_id;
	const struct smc_transport_ops *ops[SMC_ROLES];	/* that have something to offer; pinned */
	void *opaque[SMC_ROLES];
	/*
	 * After -EINPROGRESS: when the operation is called again at the latest, in jiffies, and what
	 * to call if it may get on earlier. Any context; not once detach has returned.
	 */
	unsigned long deadline;
	void (*again)(struct smc_offer *offer);
};

/**
 * struct smc_transport_ops - what a transport provides
 *
 * An operation may sleep, and is called without any lock, unless its description says otherwise. For one
 * connection at most one of offer, match, attach and detach runs at a time.
 *
 * @name:	for messages
 * @role:	each role is taken by one transport at most
 * @owner:	its module, pinned while a rendezvous, connection or group uses the transport
 *
 * @local:	adds what the transport can do at all
 * @offer:	client: adds what the transport has to offer for this connection to the proposal; -ENODEV if nothing
 * @match:	server: finds a device and a group, or forms one, for what the peer offers, gets buffers, and fills the
 *		ACCEPT; a positive reason if there is none, which leaves nothing to detach but a connection in the offer
 * @attach:	client, with the peer's ACCEPT: joins or forms the group that it names and fills our CONFIRM; once that is
 *		sent, again with NULL, for what first contact takes beyond CLC. Server, with the peer's CONFIRM: takes what
 *		it says, and does what first contact takes; there is nothing to fill. Afterwards the peer may write.
 *		match and attach wait for nobody: what takes an answer that does not come by TCP returns -EINPROGRESS, and
 *		is called again with the same arguments when offer->again has been called or offer->deadline has come,
 *		or without a reason. A DECLINE that comes meanwhile ends it.
 * @release:	the connection is over: the peer cannot write any more. Softirq.
 * @free:	nobody looks at the connection any more, not even a reader of the rest of its data: gives back its buffers.
 *		Softirq.
 *
 * @write:	puts bytes of the stream where the transport sends them from, or into the peer's element; there is room
 *		for them. Under tx_lock; sleeps only as far as copying from user space and memory do. Returns the number of
 *		bytes, or -ENOMEM or -EFAULT if not one could be put.
 * @signal:	sends the peer what is new, of the enum smc_signal bits: bytes written (under tx_lock), bytes consumed and
 *		what close_flags says (any context). Does not sleep.
 * @describe:	adds what sock_diag shows of the transport's part of a connection that has entered its group. Does not
 *		sleep.
 * @lgr_init:	a group is about to be formed; sets what it has of the transport
 *
 * SMC-D alone; another transport has NULL:
 *
 * @pair:	both ends of a connection are in this namespace: does what match and attach would, for both at once.
 *		Afterwards both may write. -ENODEV if nothing fits; what an offer has got is its connection.
 * @consumed:	bytes of our own element will not be read again; before the peer hears of it. Under rx_lock; does not
 *		sleep.
 * @trim:	gives memory back that the connection does not need while nothing moves
 *
 * SMC-R alone, whose groups have links and send from rings of their own; another transport has NULL:
 *
 * @detach:	undoes offer, match and attach, of a rendezvous that failed; what a connection in it has got goes with
 *		the connection, by release
 * @peer_full:	is all of the peer's element in use, so that no room in our own ring would help? Any context.
 * @lgr_fits:	may a connection join this group, which has the right key? With the hint of smc_lgr_join(). Under locks;
 *		does not sleep.
 * @lgr_delete_link: the group is going to end with others: sends DELETE LINK now, and waits in @lgr_end. Under locks.
 * @lgr_flush:	after @lgr_delete_link: waits until the peer has been told, or for a time in jiffies
 * @lgr_end:	no connection joins the group any more, and those that were in it have been ended or told
 * @lgr_free:	the last reference on a group is gone. Softirq.
 */
enum smc_signal {
	SMC_SIGNAL_DATA = 1,
	SMC_SIGNAL_SPACE = 2,
	SMC_SIGNAL_URGENT = 4,	/* with DATA: the byte before the cursor is urgent */
	SMC_SIGNAL_CLOSE = 8,
	SMC_SIGNAL_PUSH = 16,	/* what autocorking holds back goes out; alone, or with DATA */
};

struct smc_transport_ops {
	const char *name;
	enum smc_transport_role role;
	struct module *owner;

	void (*local)(struct smc_local *local);
	int (*offer)(struct smc_offer *offer, struct smc_clc_proposal *p);
	int (*match)(struct smc_offer *offer, const struct smc_clc_proposal *p, struct smc_clc_accept *accept);
	int (*attach)(struct smc_offer *offer, const struct smc_clc_accept *peer, struct smc_clc_accept *local);
	void (*release)(struct smc_conn *conn);
	void (*free)(struct smc_conn *conn);

	ssize_t (*write)(struct smc_conn *conn, struct iov_iter *from, u32 len);
	void (*signal)(struct smc_conn *conn, unsigned int what);
	void (*describe)(const struct smc_conn *conn, struct smc_diag_info *info);
	int (*lgr_init)(struct smc_lgr *lgr);

	/* SMC-D alone */
	int (*pair)(struct smc_offer *client, struct smc_offer *server);
	void (*consumed)(struct smc_conn *conn, u32 from, u32 len);
	void (*trim)(struct smc_conn *conn);

	/* SMC-R alone */
	void (*detach)(struct smc_offer *offer);
	bool (*peer_full)(const struct smc_conn *conn);
	bool (*lgr_fits)(const struct smc_lgr *lgr, const void *hint);
	void (*lgr_delete_link)(struct smc_lgr *lgr);
	void (*lgr_flush)(struct smc_lgr *lgr, unsigned long until);
	void (*lgr_end)(struct smc_lgr *lgr);
	void (*lgr_free)(struct smc_lgr *lgr);
};

/* How a connection comes to a group. */
enum smc_lgr_how {
	SMC_LGR_FIND,		/* there must be one */
	SMC_LGR_FIND_OR_FORM,
	SMC_LGR_FORM,		/* the peer has formed one, so we do */
};

/* What a transport may call. Registering and its opposite sleep. */
int smc_transport_register(const struct smc_transport_ops *ops);
void smc_transport_unregister(const struct smc_transport_ops *ops);
struct smc_lgr *smc_lgr_join(const struct smc_lgr_key *key, enum smc_lgr_how how, const void *hint, bool *first);
void smc_lgr_leave(struct smc_lgr *lgr);
void smc_lgr_drain(struct smc_lgr *lgr);
void smc_lgr_terminate_dev(const void *dev);
struct smc_conn *smc_conn_new(struct smc_lgr *lgr, struct smc_offer *offer);
void smc_conn_kill(struct smc_conn *conn, bool quiet);
void smc_conn_put(struct smc_conn *conn);
/*
 * Upcalls: a CDC message has brought data or a wish; the peer has written, consumed, said something about closing,
 * or has ended the connection without saying so, or broken a rule in a way that concerns it alone. They do not
 * sleep; the connection may be on its way out, but is not freed before the caller's RCU section ends.
 */
void smc_upcall_received(struct smc_conn *conn, const struct smc_cdc_rx *rx, const struct smc_cdc_delta *delta);
void smc_upcall_data(struct smc_conn *conn, u64 prod, bool urgent);
void smc_upcall_space(struct smc_conn *conn, u64 cons);
void smc_upcall_close(struct smc_conn *conn, u8 flags);
void smc_upcall_reset(struct smc_conn *conn);

/* registry.c: for the handshake. All may sleep. */
void smc_registry_local(struct smc_local *local);
int smc_registry_offer(struct smc_offer *offer, struct smc_clc_proposal *p);
int smc_registry_match(struct smc_offer *offer, const struct smc_clc_proposal *p,
		       struct smc_clc_accept *accept, const struct smc_transport_ops **chosen);
bool smc_registry_pairs(void);
int smc_registry_pair(struct smc_offer *client, struct smc_offer *server);
void smc_registry_release(struct smc_offer *offer);

#endif
