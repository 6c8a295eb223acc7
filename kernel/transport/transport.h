/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The contract between SMC and the transports that move its data: SMC-D through shared memory,
 * SMC-R by RDMA.
 *
 * The first part is what a transport provides, the second what it may call. It may also read struct smc_conn and struct
 * smc_lgr. The CLC handshake chooses the transport of a connection once. No code outside of transport/ decides anything
 * by whether that is SMC-D or SMC-R.
 *
 * Results: 0, a negative errno if the connection has to be reset, or a positive reason of wire/reason.h if it has to fall
 * back to TCP. In wire structures, integers are in host order.
 */
#ifndef SMC_TRANSPORT_TRANSPORT_H
#define SMC_TRANSPORT_TRANSPORT_H

#include <linux/types.h>
#include <linux/uio.h>

#include "../wire/clc.h"

struct mem_cgroup;
struct module;
struct smc_cdc_delta;
struct smc_cdc_rx;
struct smc_conn;
struct smc_diag_info;
struct smc_lgr;
struct smc_lgr_ends;
struct smc_lgr_key;
struct net;
struct sock;

/* In the order of preference: within a machine, memory is faster than an adapter. */
enum smc_transport_role { SMC_ROLE_D, SMC_ROLE_R, SMC_ROLES };

/* The capabilities of this host, whatever the connection. */
struct smc_local {
	bool d1, d2, r1, r2;
	unsigned int n_eid;			/* user EIDs that are configured */
	u8 eid[SMC_CLC_EIDS][SMC_EID_LEN];
	bool seid_on;				/* the system EID may be used */
	u8 seid[SMC_EID_LEN];
};

/*
 * A rendezvous as the transports see it. `opaque` belongs to the transport of that role, from offer or match until detach.
 */
struct smc_offer {
	struct sock *sk;			/* the TCP connection, held, not locked */
	struct mem_cgroup *memcg;		/* of the server of a pair: pays for its memory; or NULL */
	struct smc_conn *conn;			/* the result: set by match or attach, with a reference */
	bool server;
	bool declined;				/* the peer has sent DECLINE */
	bool out_of_sync;			/* which said that it does not have our link group */
	u8 id[16];				/* PNET ID of the interface that TCP uses */
	bool has_id;
	const struct smc_transport_ops *ops[SMC_ROLES];	/* transports that take part; pinned */
	void *opaque[SMC_ROLES];
	/*
	 * After -EINPROGRESS: the time in jiffies by which the operation is called again, and the function that the
	 * transport calls if the operation can go on earlier, in any context, until detach has returned.
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
 * @role:	one transport at most has a role
 * @owner:	its module, pinned while a rendezvous, connection or group uses the transport
 *
 * @local:	adds the capabilities of the transport
 * @present:	returns whether there is a device that could serve some connection of a namespace; NULL: always. Any context.
 * @offer:	client: adds its devices for this connection to the proposal; -ENODEV if there are none
 * @match:	server: chooses a device, finds or forms a group, gets buffers, and fills the ACCEPT. After a positive reason
 *		there is nothing to detach but a connection in the offer
 * @attach:	client, with the peer's ACCEPT: joins or forms the group that it names and fills our CONFIRM; once that is
 *		sent, again with NULL, for the LLC messages of first contact. Server, with the peer's CONFIRM: connects to the
 *		peer, and exchanges the LLC messages; it fills nothing. Afterwards the peer may write.
 *		match and attach do not wait for the peer. An operation that needs an answer by LLC returns -EINPROGRESS; it is
 *		called again with the same arguments when offer->again was called or offer->deadline has come, or spuriously.
 *		A DECLINE that comes meanwhile ends it.
 * @release:	the connection is over, so the peer must not write any more. Softirq.
 * @free:	frees the buffers. There is no reference on the connection any more. Softirq.
 *
 * @write:	copies bytes of the stream to the transport's send ring, or into the peer's receive buffer; there is room
 *		for them. Under tx_lock; sleeps only for user memory and allocations. Returns the number of bytes, or if that
 *		is 0 -EFAULT, or -ENOMEM: there is no memory for data until the peer has read some.
 * @signal:	tells the peer what is new, by enum smc_signal: data (under tx_lock), a consumer update, closing flags
 *		(any context). Does not sleep.
 * @describe:	adds what sock_diag shows about the transport of a connection in a group. Does not sleep.
 * @lgr_init:	initialises the transport's part of a group
 *
 * Only SMC-D has these, another transport has NULL:
 *
 * @pair:	connects two ends that are both in this namespace. Afterwards both may write. -ENODEV if there is no device;
 *		after another error each offer may have a connection.
 * @consumed:	bytes of our receive buffer will not be read again; called before the consumer update. Under rx_lock; does not
 *		sleep.
 * @trim:	frees memory that the connection does not need while no data moves
 *
 * Only SMC-R has these, whose groups have links and whose connections have send rings; another transport has NULL:
 *
 * @detach:	undoes offer, match and attach after a rendezvous has failed, except what the connection has, for @release
 * @peer_full:	returns whether the peer's whole receive buffer is in use. Any context.
 * @lgr_fits:	returns whether a connection between two addresses may join a group with the right peer; with the hint of
 *		smc_lgr_join(). NULL: if the group is of these addresses. Under smc_lgr_table_lock.
 * @lgr_needs:	returns whether a group ends with a device; NULL: with the one of its key. Under smc_lgr_table_lock.
 * @lgr_delete_link: sends DELETE LINK, because the group ends soon; @lgr_end waits for the answer. Does not sleep.
 * @lgr_delete_one: deletes a link by its number for an operator, and waits until its connections have moved. Returns 0,
 *		-ENOENT, or -EBUSY if the group has no other link.
 * @lgr_flush:	after @lgr_delete_link: waits until the peer has got it, or until a time in jiffies
 * @lgr_shrink:	gives memory back, soon, that no connection has. Does not sleep.
 * @lgr_end:	ends the links. No connection joins the group any more; those in it are ended or have an error
 * @lgr_free:	the last reference on a group is gone. Softirq.
 */
enum smc_signal {
	SMC_SIGNAL_DATA = 1,
	SMC_SIGNAL_SPACE = 2,
	SMC_SIGNAL_URGENT = 4,	/* with DATA: the byte before the cursor is urgent */
	SMC_SIGNAL_CLOSE = 8,
	SMC_SIGNAL_PUSH = 16,	/* send what autocorking holds back; alone, or with DATA */
	SMC_SIGNAL_SHORT = 32,	/* with DATA, after -ENOMEM: no more comes before some of it is read */
};

struct smc_transport_ops {
	const char *name;
	enum smc_transport_role role;
	struct module *owner;

	void (*local)(struct smc_local *local);
	bool (*present)(const struct net *net);
	int (*offer)(struct smc_offer *offer, struct smc_clc_proposal *p);
	int (*match)(struct smc_offer *offer, const struct smc_clc_proposal *p, struct smc_clc_accept *accept);
	int (*attach)(struct smc_offer *offer, const struct smc_clc_accept *peer, struct smc_clc_accept *local);
	void (*release)(struct smc_conn *conn);
	void (*free)(struct smc_conn *conn);

	ssize_t (*write)(struct smc_conn *conn, struct iov_iter *from, u32 len);
	void (*signal)(struct smc_conn *conn, unsigned int what);
	void (*describe)(const struct smc_conn *conn, struct smc_diag_info *info);
	int (*lgr_init)(struct smc_lgr *lgr);

	/* SMC-D */
	int (*pair)(struct smc_offer *client, struct smc_offer *server);
	void (*consumed)(struct smc_conn *conn, u32 from, u32 len);
	void (*trim)(struct smc_conn *conn);

	/* SMC-R */
	void (*detach)(struct smc_offer *offer);
	bool (*peer_full)(const struct smc_conn *conn);
	bool (*lgr_fits)(const struct smc_lgr *lgr, const struct smc_lgr_ends *ends, const void *hint);
	bool (*lgr_needs)(const struct smc_lgr *lgr, const void *dev);
	void (*lgr_delete_link)(struct smc_lgr *lgr);
	int (*lgr_delete_one)(struct smc_lgr *lgr, u8 link);
	void (*lgr_flush)(struct smc_lgr *lgr, unsigned long until);
	void (*lgr_shrink)(struct smc_lgr *lgr);
	void (*lgr_end)(struct smc_lgr *lgr);
	void (*lgr_free)(struct smc_lgr *lgr);
};

/* How a connection comes to a group. */
enum smc_lgr_how {
	SMC_LGR_FIND,		/* it must exist */
	SMC_LGR_FIND_OR_FORM,
	SMC_LGR_FORM,		/* the peer has formed it just now */
};

/* Functions that a transport may call. Registering and unregistering may sleep. */
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
 * Upcalls (conn.c): a CDC message was received; the peer has written or consumed data, has sent closing flags, or the
 * connection has to be aborted. Any context but hardirq, under RCU, so that the connection is not freed meanwhile.
 */
void smc_upcall_received(struct smc_conn *conn, const struct smc_cdc_rx *rx, const struct smc_cdc_delta *delta);
void smc_upcall_data(struct smc_conn *conn, u64 prod, bool urgent);
void smc_upcall_space(struct smc_conn *conn, u64 cons);
void smc_upcall_close(struct smc_conn *conn, u8 flags);
void smc_upcall_reset(struct smc_conn *conn);

/* registry.c: for the handshake. Process context; all but smc_registry_pairs() and smc_registry_present() may sleep. */
void smc_registry_local(struct smc_local *local);
int smc_registry_offer(struct smc_offer *offer, struct smc_clc_proposal *p);
int smc_registry_match(struct smc_offer *offer, const struct smc_clc_proposal *p,
		       struct smc_clc_accept *accept, const struct smc_transport_ops **chosen);
bool smc_registry_pairs(void);
bool smc_registry_present(const struct net *net);
int smc_registry_pair(struct smc_offer *client, struct smc_offer *server);
void smc_registry_release(struct smc_offer *offer);

#endif
