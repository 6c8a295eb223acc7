/* SPDX-License-Identifier: GPL-2.0-only */
/* The peers with which SMC was not possible, for a time: net.smc.remember_peers. */
#ifndef SMC_CONTROL_PEERS_H
#define SMC_CONTROL_PEERS_H

#include <linux/in6.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <net/sock.h>

struct smc_net;

#define SMC_PEERS_BUCKETS 256
/* Peers of each role that a namespace remembers, and ports of one host. A host of IPv6 has a prefix of 64 bits. */
#define SMC_PEERS_MAX 2048
#define SMC_PEERS_OF_HOST 64

/* The role of this host: a remote host cannot make it forget servers. */
enum smc_peers_role { SMC_PEERS_SERVER, SMC_PEERS_CLIENT, SMC_PEERS_ROLES };

struct smc_peers_key {
	struct in6_addr		addr;		/* of the peer; an IPv4 address is mapped */
	int			ifindex;	/* of the interface that the socket is bound to, or 0 */
	u32			uid;		/* as a client, of the socket: users cannot keep SMC from each other */
	u16			port;		/* of the service, in host order */
	enum smc_peers_role	role;
};

/* Why connections with a peer are TCP. */
struct smc_peers_why {
	u32 reason;		/* a code of wire/reason.h; 0 of a peer with which SMC was possible */
	u32 diagnosis;		/* that the peer's DECLINE had, or 0 */
};

/* The state of this host when it found that SMC with a peer is not possible. When the state changes, the peer is forgotten. */
struct smc_peers_stamp {
	unsigned int host, net;	/* changes of the host and of the namespace */
	u32 settings;		/* that have a say in what is possible */
};

/* A namespace's peers. */
struct smc_peers_net {
	spinlock_t		lock;		/* the rest, for writers; readers of the buckets are under RCU */
	struct hlist_head	buckets[SMC_PEERS_BUCKETS];	/* by role and host */
	struct list_head	age[SMC_PEERS_ROLES];		/* the oldest first */
	unsigned int		n[SMC_PEERS_ROLES];
	u64			last_id;
	atomic_t		changes;	/* any context; see smc_peers_forget() */
};

/* A position in the list of peers, zero at first. */
struct smc_peers_pos {
	unsigned int role;
	u64 id;
};

/* smc_peers_uid() - returns the user of a socket, as the initial user namespace has it. Any context. */
static inline u32 smc_peers_uid(const struct sock *sk)
{
	return __kuid_val(READ_ONCE(((struct sock *)sk)->sk_uid));
}

void smc_peers_stamp(const struct smc_net *sn, struct smc_peers_stamp *stamp);
void smc_peers_add(struct smc_net *sn, const struct smc_peers_key *key, const struct smc_peers_why *why,
		   const struct smc_peers_stamp *stamp);
bool smc_peers_find(const struct smc_net *sn, const struct smc_peers_key *key, struct smc_peers_why *why);
bool smc_peers_proven(const struct smc_net *sn, const struct smc_peers_key *key);
void smc_peers_forget(struct smc_net *sn);
void smc_peers_register(int (*device)(struct smc_net *sn));
void smc_peers_device(struct smc_net *sn);
void smc_peers_device_soon(void);
void smc_peers_device_exit(void);
void smc_peers_flush(struct smc_net *sn);
int smc_peers_walk(struct smc_net *sn, struct smc_peers_pos *pos,
		   int (*fn)(const struct smc_peers_key *key, const struct smc_peers_why *why, unsigned int seconds, void *arg), void *arg);
void smc_peers_net_init(struct smc_net *sn);
void smc_peers_net_exit(struct smc_net *sn);

#endif /* SMC_CONTROL_PEERS_H */
