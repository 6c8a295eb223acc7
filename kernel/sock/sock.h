/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SMC_SOCK_SOCK_H
#define SMC_SOCK_SOCK_H

#include <linux/mutex.h>
#include <linux/net.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <net/inet_sock.h>
#include <net/sock.h>

#include "../handshake/handshake.h"
#include "../net.h"
#include "../policy/policy.h"

struct smc_conn;

/*
 * The phase of an SMC socket. An SMC socket is a TCP socket from the first moment: sock->sk is a tcp_sock. Only
 * sock->ops is ours, and our state is in struct smc_sock.
 */
enum smc_phase {
	SMC_PHASE_OPEN,		/* neither connected nor listening; may be bound */
	SMC_PHASE_LISTEN,	/* children come out of smc_sock.listener */
	SMC_PHASE_CONNECT,	/* TCP connects, its SYN carries the option */
	SMC_PHASE_RENDEZVOUS,	/* TCP is connected, CLC messages are exchanged */
	SMC_PHASE_TCP,		/* the application has the TCP socket: fallback; final */
	SMC_PHASE_ACTIVE,	/* a transport moves the data; final until disconnected */
};

/* Must close() reset the connection? SO_LINGER with a time of 0 asks for that. */
static inline bool smc_sock_aborts(const struct sock *sk)
{
	return sock_flag(sk, SOCK_LINGER) && !sk->sk_lingertime;
}

/* Copies, when a sock moves to another socket, the flag that it supports zero-copy sends. */
static inline void smc_sock_copy_zc(const struct socket *from, struct socket *to)
{
	if (test_bit(SOCK_SUPPORT_ZC, &from->flags))
		set_bit(SOCK_SUPPORT_ZC, &to->flags);
}

/* The two address families a socket comes in; an index. */
enum smc_ipv { SMC_IPV4, SMC_IPV6, SMC_IPVS };

/*
 * Our state of an SMC socket. References: the table holds one from smc_table_add() to smc_table_remove();
 * callers of smc_table_find() hold one; a child of a listener holds one on the listener's. The last put drops
 * the reference on the TCP sock and frees the struct after a grace period.
 *
 * A child of a listener has its own as soon as its handshake begins, and enters the table in accept().
 */
struct smc_sock {
	struct sock		*sk;		/* the TCP sock, held; never changes */
	refcount_t		ref;
	enum smc_phase		phase;		/* lock; read without it as a hint */
	bool			server;		/* the connection is an accepted one, for statistics; lock */
	struct smc_synopt_sock	opt;		/* shared with the hooks of the option */
	bool			armed;		/* counts for the hooks of the option; lock */
	bool			watching;	/* `wait` is on a queue; lock */
	bool			held;		/* lock of the parent's listener; this child counts for its backlog */
	bool			reserved;	/* the same lock; this child has a reserved place for its handshake */
	bool			deferred;	/* the same lock; this child does not count for the backlog: it waits for data, or its client was late */
	bool			stepping;	/* the same lock; this child's worker runs */
	u8			steps;		/* the same lock; how often it has run, up to a limit */
	unsigned long		ready_at;	/* the same lock; jiffies when it became ready for accept() */
	u64			seq;		/* of a child: its order in TCP's queue; never changes */
	/*
	 * The thread that has begun an attempt, while it is in TCP's connect(). Only compared. Set and cancelled under state_mutex; the thread
	 * itself clears it without.
	 */
	const struct task_struct *connecting;
	bool			attended;	/* a thread in connect() will begin the rendezvous; single word */
	bool			stopped;	/* lock; of a child: the worker must not run any more */
	bool			inline_busy;	/* lock; connect() runs the rendezvous, so the worker must not; only in RENDEZVOUS */
	bool			started;	/* `work` has been queued; single word */
	bool			converted;	/* it was made for TCP, and a rule has made it SMC; single word */
	bool			detached;	/* lock; another protocol may have replaced sock->ops, see fallback.c */
	int			err;		/* lock; negative errno of the rendezvous, for connect(); written before the phase */
	u32			reason;		/* lock; why the socket fell back, 0 if it did not */
	u32			peer_diagnosis;	/* lock; the reason in the peer's DECLINE, 0 if none */
	struct socket		*sock;		/* whose wait queue `wait` is on; a child's placeholder */
	struct smc_conn __rcu	*conn;		/* while ACTIVE, with a reference; lock */
	int			failed;		/* only in `work`: why the client's rendezvous has failed; its connection is to be reset */
	unsigned long		retry;		/* only in `work`: jiffies until it tries the sock's lock again, 0 if it was free */
	struct smc_rendezvous	*rv;		/* only in `work`: NULL before and after the rendezvous */
	bool			awaits_data;	/* only in `work`: the outcome is known, but accept() gets the child when it has data */
	unsigned long		data_deadline;	/* jiffies; accept() gets it then, even without data */
	struct smc_policy_entry	*rule;		/* that has decided, with a reference; lock */
	struct smc_policy_plan __rcu *plan;	/* of a listener: the rules for its connections, NULL if there are none; lock */
	struct smc_service_ref	service;	/* of the connection; begins under lock, ends when it is over */
	struct smc_listener	*listener;	/* if it has ever listened; set once, freed with the struct */
	struct smc_sock		*parent;	/* of a child until it is accepted: the listener */
	/* From here on nothing is zero at first. These two are free whenever the struct is: init_once() initialises them. */
	struct mutex		state_mutex;	/* listening or connecting begins or ends, with TCP's */
	spinlock_t		lock;		/* see "lock" above; and sock->ops */
	/* smc_table_new() initialises these; the last two are initialised where they are used. */
	struct hlist_node	node;		/* table bucket; its lock */
	struct list_head	child;		/* on a list of the parent's listener; its lock */
	struct delayed_work	work;		/* runs the rendezvous, on a wakeup or a timeout */
	struct wait_queue_entry	wait;		/* starts `work` when TCP wakes sleepers */
	struct rcu_head		rcu;
};

/*
 * Is the socket a child that accept() has not returned, so that its rendezvous is a server's? A socket that accept()
 * has returned may be disconnected, and connect as a client. Only while the rendezvous cannot end concurrently,
 * or under smc->lock.
 */
static inline bool smc_sock_is_child(const struct smc_sock *smc)
{
	return smc->parent;
}

/* table.c: by TCP sock */
int smc_table_init(void);
void smc_table_exit(void);
struct smc_sock *smc_table_new(struct sock *sk, gfp_t gfp);
void smc_table_add(struct smc_sock *smc);
void smc_table_remove(struct smc_sock *smc);
struct smc_sock *smc_table_find(const struct sock *sk);
struct smc_sock *smc_table_of(const struct socket *sock);
struct smc_sock *smc_table_make(struct socket *sock);
void smc_table_put(struct smc_sock *smc);
bool smc_table_get(struct smc_sock *smc);

/* ops.c: the tables of socket operations */
extern struct proto_ops smc_ops[SMC_IPVS];
struct proto_ops *smc_ops_open(const struct sock *sk);
const struct proto_ops *smc_ops_of_tcp(const struct sock *sk);
struct proto_ops *smc_ops_after(const struct sock *sk);
struct proto_ops *smc_ops_active(const struct sock *sk);
int smc_ops_init(void);

/* create.c */
int smc_create_init(void);
void smc_create_exit(void);

/* connect.c */
int smc_connect(struct socket *sock, smc_sockaddr_t *addr, int len, int flags);
enum smc_phase smc_connect_progress(struct smc_sock *smc, struct socket *sock);
int smc_connect_undo(struct smc_sock *smc);
void smc_connect_cancel(struct smc_sock *smc);
int smc_connect_settled(struct socket *sock, long timeo);

/* setup.c: from TCP's connection to the outcome */
void smc_setup_prepare(struct smc_sock *smc);
void smc_setup_set_phase(struct smc_sock *smc, enum smc_phase phase);
int smc_setup_arm(struct smc_sock *smc);
void smc_setup_disarm(struct smc_sock *smc);
void smc_setup_watch(struct smc_sock *smc, struct socket *sock, wait_queue_func_t fn);
void smc_setup_unwatch(struct smc_sock *smc);
void smc_setup_unwatch_locked(struct smc_sock *smc);
int smc_setup_wake(struct wait_queue_entry *wait, unsigned int mode, int flags, void *key);
void smc_setup_start_client(struct smc_sock *smc);
void smc_setup_notify(struct smc_sock *smc);
void smc_setup_inline(struct smc_sock *smc);
void smc_setup_start_server(struct smc_sock *child);
void smc_setup_stop(struct smc_sock *smc);
bool smc_setup_stop_failed(struct smc_sock *smc);
void smc_setup_free(struct smc_sock *smc);

/* local.c: both ends in this kernel */
bool smc_local_connect(struct smc_sock *smc, bool last);

/* listen.c */
int smc_listen(struct socket *sock, int backlog);
void smc_listen_stop(struct smc_sock *smc);		/* under state_mutex */
void smc_listen_unregister(struct smc_sock *smc);
void smc_listen_free(struct smc_sock *smc);
bool smc_listen_ready(struct smc_sock *smc);
bool smc_listen_defer(struct smc_sock *child);
void smc_listen_step(struct smc_sock *child, bool begins);
void smc_listen_no_option(struct smc_sock *child, const struct smc_sock *lsmc);
void smc_listen_begin(struct smc_sock *lsmc, struct socket *sock, const struct smc_sock *verdict);
void smc_listen_finish(struct smc_sock *child, bool keep);
struct smc_sock *smc_listen_take(struct smc_sock *lsmc);
void smc_listen_wake_next(struct smc_sock *lsmc);
bool smc_listen_publish(struct smc_sock *lsmc, struct smc_sock *child);
struct smc_sock *smc_listen_collect(struct smc_sock *lsmc, struct sock *sk);
void smc_listen_wake(struct smc_sock *lsmc);
struct sock *smc_listen_detach_sock(struct socket *sock);
struct socket *smc_listen_set_aside(struct socket *newsock);
bool smc_listen_postpone(struct smc_sock *lsmc, struct smc_sock *child, struct socket *newsock);

/* tcp_queue.c */
bool smc_listen_pending(const struct smc_sock *lsmc);
bool smc_listen_leave(struct smc_sock *lsmc, bool accept);
void smc_listen_left(struct smc_sock *lsmc);

/* accept.c */
int smc_accept(struct socket *sock, struct socket *newsock, struct proto_accept_arg *arg);
int smc_accept_fallback(struct socket *sock, struct socket *newsock, struct proto_accept_arg *arg);

/* io.c */
int smc_io_sendmsg(struct socket *sock, struct msghdr *msg, size_t len);
int smc_io_recvmsg(struct socket *sock, struct msghdr *msg, size_t len, int flags);
ssize_t smc_io_splice_read(struct socket *sock, loff_t *ppos, struct pipe_inode_info *pipe,
			   size_t len, unsigned int flags);
__poll_t smc_io_poll(struct file *file, struct socket *sock, poll_table *wait);
int smc_io_getname(struct socket *sock, struct sockaddr *addr, int peer);
int smc_io_shutdown(struct socket *sock, int how);
int smc_io_ioctl(struct socket *sock, unsigned int cmd, unsigned long arg);

/* sockopt.c */
bool smc_sockopt_takes_over(int level, int name);
bool smc_sockopt_excludes(int level, int name, sockptr_t val);
int smc_sockopt_set(struct socket *sock, int level, int name, sockptr_t val, unsigned int len);
int smc_sockopt_set_tcp(struct socket *sock, int level, int name, sockptr_t val, unsigned int len);
int smc_sockopt_get(struct socket *sock, int level, int name, char __user *val, int __user *len);

/* fallback.c: the hand-over to TCP */
bool smc_fallback_take(struct smc_sock *smc, struct socket *sock, enum smc_phase from, u32 reason, u32 peer);
void smc_fallback_child(struct smc_sock *smc, u32 reason, u32 peer);
int smc_fallback_detach(struct socket *sock, int level, int name, sockptr_t val, unsigned int len);
void smc_fallback_exit(void);

/* active.c: sockets whose data a transport moves */
bool smc_active_take(struct smc_sock *smc, struct socket *sock, struct smc_conn *conn);
void smc_active_child(struct smc_sock *smc, struct smc_conn *conn);
void smc_active_adopt(struct smc_sock *smc);
struct smc_conn *smc_active_of(const struct smc_sock *smc);
void smc_active_end(struct smc_sock *smc, bool hard);
void smc_active_free(struct smc_sock *smc);
int smc_active_sendmsg(struct socket *sock, struct msghdr *msg, size_t len);
int smc_active_recvmsg(struct socket *sock, struct msghdr *msg, size_t len, int flags);
ssize_t smc_active_splice_read(struct socket *sock, loff_t *ppos, struct pipe_inode_info *pipe,
			       size_t len, unsigned int flags);
__poll_t smc_active_poll(struct file *file, struct socket *sock, poll_table *wait);
int smc_active_shutdown(struct socket *sock, int how);
int smc_active_getname(struct socket *sock, struct sockaddr *addr, int peer);
int smc_active_disconnect(struct smc_sock *smc, struct socket *sock, smc_sockaddr_t *addr, int len,
			  int flags);
void smc_active_splice_eof(struct socket *sock);
int smc_active_connect(struct socket *sock, smc_sockaddr_t *addr, int len, int flags);
int smc_active_ioctl(struct socket *sock, unsigned int cmd, unsigned long arg);
int smc_active_count(struct sock *sk, unsigned int cmd);
int smc_active_set_rcvlowat(struct sock *sk, int val);
int smc_active_setsockopt(struct socket *sock, int level, int name, sockptr_t val, unsigned int len);
int smc_active_getsockopt(struct socket *sock, int level, int name, char __user *val, int __user *len);

/* proto.c: the struct proto of ACTIVE sockets */
void smc_proto_init(void);
void smc_proto_exit(void);
void smc_proto_install(struct sock *sk);
void smc_proto_restore(struct sock *sk);

/* policy.c: sockets that rules decide about */
void smc_policy_take(struct socket *sock);
bool smc_policy_peer_of(const struct sock *sk, const smc_sockaddr_t *addr, int len, struct in6_addr *peer, u16 *port);
void smc_policy_connect(struct smc_sock *smc, struct socket *sock, const struct smc_service_key *to);
int smc_policy_listen(struct smc_sock *smc, struct socket *sock);
void smc_policy_fill_ops(enum smc_ipv ipv);
void smc_policy_inherit(struct smc_sock *child, struct smc_sock *lsmc);
bool smc_policy_admits(const struct smc_synopt_port *port, const struct in6_addr *peer);
u32 smc_policy_child_reason(const struct smc_sock *child, const struct smc_sock *lsmc, u32 otherwise);
void smc_policy_free(struct smc_sock *smc);
void smc_policy_sample(struct smc_sock *smc, const struct smc_conn *conn);
void smc_policy_end(struct smc_sock *smc);
void smc_policy_count(struct smc_sock *smc, bool is_smc);
void smc_policy_count_bytes(const struct smc_sock *smc, const struct smc_conn *conn);

/* hook.c */
int smc_hook_init(void);
void smc_hook_exit(void);

/* release.c */
int smc_release(struct socket *sock);

#endif
