// SPDX-License-Identifier: GPL-2.0-only
/*
 * RMBs that the peer has announced (RFC 7609, 3.5.5.2), and which connection writes to which RMBE. A connection whose RMBE
 * the peer has deleted, or has given to another connection, is aborted and writes nothing more (4.4.2): one write with a
 * key that the peer's adapter has forgotten breaks the link, for all its connections.
 */

#include <net/ipv6.h>

#include "../../net.h"
#include "rdma.h"

/* Returns the key that the RMB of a row has, or had, on a link; NULL if that is not known any more. */
static const struct smc_rtoken *key_on(const struct smc_lgr_rdma *group, int row, const struct smc_link *link)
{
	lockdep_assert_held(&group->lock);
	if (group->links[link->slot] == link)
		return &group->rtokens[row][link->slot];
	return group->lost_serials[link->slot] == link->serial ? &group->lost_keys[row][link->slot] : NULL;
}

/*
 * Returns the row of an RMB by the key and address that it has on a link, or -ENOENT. The link of a rendezvous may be lost
 * before the peer names the key.
 */
static int rtoken_find(const struct smc_lgr_rdma *group, const struct smc_link *link, u32 rkey, u64 addr)
{
	int row;

	lockdep_assert_held(&group->lock);
	for_each_set_bit(row, group->rtoken_rows, SMC_RDMA_RTOKENS) {
		const struct smc_rtoken *t = key_on(group, row, link);

		if (t && t->rkey == rkey && t->addr == addr)
			return row;
	}
	return -ENOENT;
}

/* Forgets the keys that the RMB of a row has, and had on links that are lost. */
static void clear_row(struct smc_lgr_rdma *group, int row)
{
	lockdep_assert_held(&group->lock);
	memset(group->rtokens[row], 0, sizeof(group->rtokens[row]));
	memset(group->lost_keys[row], 0, sizeof(group->lost_keys[row]));
}

/* smc_rtoken_add() - the peer has an RMB, with this key on a link. Softirq. Return: 0, -ENOSPC if it has too many. */
int smc_rtoken_add(struct smc_link *link, u32 rkey, u64 addr)
{
	struct smc_lgr_rdma *group = link->group;
	int row;

	spin_lock_bh(&group->lock);
	row = rtoken_find(group, link, rkey, addr);
	if (row < 0)
		row = find_first_zero_bit(group->rtoken_rows, SMC_RDMA_RTOKENS);
	if (row < SMC_RDMA_RTOKENS) {
		if (!__test_and_set_bit(row, group->rtoken_rows))
			clear_row(group, row);
		group->rtokens[row][link->slot] = (struct smc_rtoken){ rkey, addr };
	}
	spin_unlock_bh(&group->lock);
	return row < SMC_RDMA_RTOKENS ? 0 : -ENOSPC;
}

/*
 * smc_rtoken_add_on() - an RMB that has a key on one link has another one on another link. Does nothing if the peer has not
 * announced the RMB, or if the other link has left its slot. Softirq.
 */
void smc_rtoken_add_on(struct smc_link *link, u32 known, struct smc_link *other, u32 rkey, u64 addr)
{
	struct smc_lgr_rdma *group = link->group;
	int row;

	spin_lock_bh(&group->lock);
	if (known && group->links[other->slot] == other)
		for_each_set_bit(row, group->rtoken_rows, SMC_RDMA_RTOKENS)
			if (group->rtokens[row][link->slot].rkey == known)
				group->rtokens[row][other->slot] = (struct smc_rtoken){ rkey, addr };
	spin_unlock_bh(&group->lock);
}

static bool has_key(const struct smc_lgr_rdma *group, int row)
{
	unsigned int slot;

	lockdep_assert_held(&group->lock);
	for (slot = 0; slot < SMC_LINKS_PER_LGR_MAX; slot++)
		if (group->rtokens[row][slot].rkey)
			return true;
	return false;
}

/*
 * smc_rtoken_clear() - a link is about to leave its slot, and its keys with it. An RMB that has no key on another link cannot be
 * written to any more, so its row is free. Any context.
 */
void smc_rtoken_clear(struct smc_link *link)
{
	struct smc_lgr_rdma *group = link->group;
	struct smc_rdma_conn *rc;
	struct smc_conn *conn;
	unsigned long token;
	bool had;
	int row;

	lockdep_assert_held(&group->lock);
	/* A link that was never confirmed is that of no rendezvous. */
	if (link->llc.confirmed)
		group->lost_serials[link->slot] = link->serial;
	for_each_set_bit(row, group->rtoken_rows, SMC_RDMA_RTOKENS) {
		if (link->llc.confirmed)
			group->lost_keys[row][link->slot] = group->rtokens[row][link->slot];
		/* One without any key is being deleted: smc_rtoken_del() frees it. */
		had = has_key(group, row);
		group->rtokens[row][link->slot] = (struct smc_rtoken){};
		if (had && !has_key(group, row))
			__clear_bit(row, group->rtoken_rows);
	}
	rcu_read_lock();
	xa_for_each(&group->conns, token, conn) {
		rc = smc_rdma_conn_of(conn);
		if (rc->bound && !test_bit(rc->rtoken, group->rtoken_rows))
			WRITE_ONCE(rc->bound, false);
	}
	rcu_read_unlock();
}

/*
 * smc_rtoken_serves() - is a link of use for the open connections: has the peer sent the key that the RMB of one of them has there, if there
 * are any? Those that write no more need none. Any context.
 */
bool smc_rtoken_serves(const struct smc_link *link)
{
	struct smc_lgr_rdma *group = link->group;
	const struct smc_rdma_conn *rc;
	bool needed = false, known = false;
	struct smc_conn *conn;
	unsigned long token;

	lockdep_assert_held(&group->lock);
	rcu_read_lock();
	xa_for_each(&group->conns, token, conn) {
		rc = smc_rdma_conn_of(conn);
		/* One whose RMB has no key any more is being deleted: smc_rtoken_del(). */
		if (!rc->bound || READ_ONCE(rc->over) || READ_ONCE(rc->tx.write_closed) || !has_key(group, rc->rtoken))
			continue;
		needed = true;
		known |= group->rtokens[rc->rtoken][link->slot].rkey != 0;
	}
	rcu_read_unlock();
	return known || !needed;
}

/* Which connections are to be aborted: those that write to some RMBs, or to one element of them. */
struct writers {
	DECLARE_BITMAP(rows, SMC_RDMA_RTOKENS);
	u64 off;			/* of the RMBE */
	bool any_off;
	const struct smc_rdma_conn *but;	/* except this one */
};

static bool is_writer(const struct smc_rdma_conn *rc, const struct writers *v)
{
	lockdep_assert_held(&rc->group->lock);
	return rc != v->but && rc->bound && test_bit(rc->rtoken, v->rows) && (v->any_off || rc->peer_off == v->off);
}

/*
 * Does a connection with another address of the peer's write to the RMBE? CLC messages do not prove who sends them, and
 * keys are sent in clear, but TCP's address is one that answers come back from.
 */
static bool is_of_another_address(struct smc_lgr_rdma *group, const struct writers *v)
{
	struct in6_addr ours = smc_net_peer_addr(v->but->conn->sk), theirs;
	struct smc_conn *conn;
	unsigned long token;
	bool any = false;

	lockdep_assert_held(&group->lock);
	rcu_read_lock();
	xa_for_each(&group->conns, token, conn) {
		if (!is_writer(smc_rdma_conn_of(conn), v) || READ_ONCE(smc_rdma_conn_of(conn)->tx.write_closed))
			continue;
		theirs = smc_net_peer_addr(conn->sk);
		any |= !ipv6_addr_equal(&ours, &theirs);
	}
	rcu_read_unlock();
	return any;
}

/* Unbinds the next of these connections. Return: the connection, with a reference, or NULL. */
static struct smc_rdma_conn *next_writer(struct smc_lgr_rdma *group, const struct writers *v)
{
	struct smc_rdma_conn *rc, *found = NULL;
	struct smc_conn *conn;
	unsigned long token;

	rcu_read_lock();
	spin_lock_bh(&group->lock);
	xa_for_each(&group->conns, token, conn) {
		rc = smc_rdma_conn_of(conn);
		if (!is_writer(rc, v))
			continue;
		WRITE_ONCE(rc->bound, false);
		if (!smc_conn_get_live(conn))
			continue;
		found = rc;
		break;
	}
	spin_unlock_bh(&group->lock);
	rcu_read_unlock();
	return found;
}

static void abort_writers(struct smc_lgr_rdma *group, const struct writers *v)
{
	struct smc_rdma_conn *rc;

	while ((rc = next_writer(group, v))) {
		smc_rdma_revoke(rc);
		smc_conn_put(rc->conn);
	}
}

/*
 * smc_rtoken_bind() - gives a connection the RMBE that ACCEPT or CONFIRM of its peer names. In first contact, that
 * message also announces the RMB. Softirq. Return: false if the peer has not announced the RMB, or may not have this RMBE.
 *
 * Another connection that writes to the same RMBE is aborted: the peer has ended it, and no message has said so (RFC
 * 7609, 4.4.2). That takes a TCP connection from the same address; from any other address the RMBE is refused. A
 * connection that has said CLOSED or ABORT does not write any more, so its RMBE may be in use again.
 */
bool smc_rtoken_bind(struct smc_rdma_conn *rc, const struct smc_clc_accept *peer, bool first)
{
	u64 size = (u64)SMC_RDMA_SIZE_MIN << peer->size_code;
	struct writers others = { .off = (peer->rmbe_idx - 1) * size, .but = rc };
	struct smc_lgr_rdma *group = rc->group;
	int row;

	spin_lock_bh(&group->lock);
	row = first || peer->rkey ? rtoken_find(group, rc->link, peer->rkey, peer->rmb_addr) : -ENOENT;
	if (row >= 0) {
		__set_bit(row, others.rows);
		rc->bound = !is_of_another_address(group, &others);
		rc->rtoken = row;
		rc->peer_off = others.off;
		rc->peer_rkey = peer->rkey;
		rc->peer_addr = peer->rmb_addr + others.off;
	}
	spin_unlock_bh(&group->lock);
	if (!rc->bound)
		return false;
	abort_writers(group, &others);
	return true;
}

/*
 * smc_rtoken_del() - the peer deletes the RMBs that have a key on a link. Connections that write to them are aborted,
 * by whichever link they write. Nothing is posted afterwards, and what they have posted by this link arrives before our
 * answer. By another link it may arrive later: the peer asks ten seconds after the connection has ended there, when none is left.
 * Softirq. Return: 0, -ENOENT if there is none.
 */
int smc_rtoken_del(struct smc_link *link, u32 rkey)
{
	struct smc_lgr_rdma *group = link->group;
	struct writers writers = { .any_off = true };
	int row;

	spin_lock_bh(&group->lock);
	for_each_set_bit(row, group->rtoken_rows, SMC_RDMA_RTOKENS)
		if (rkey && group->rtokens[row][link->slot].rkey == rkey) {
			__set_bit(row, writers.rows);
			clear_row(group, row);
		}
	spin_unlock_bh(&group->lock);
	if (bitmap_empty(writers.rows, SMC_RDMA_RTOKENS))
		return -ENOENT;
	abort_writers(group, &writers);
	/* Only now: a row is that of another RMB as soon as it is free, and the writers to that are not meant. */
	spin_lock_bh(&group->lock);
	bitmap_andnot(group->rtoken_rows, group->rtoken_rows, writers.rows, SMC_RDMA_RTOKENS);
	spin_unlock_bh(&group->lock);
	return 0;
}
