// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whether a link still works: TEST LINK (docs/protocol.md, 7; RFC 7609, 4.5.3), which SO_KEEPALIVE of its connections
 * asks for, too, and whether the send queue moves. TCP's own keepalive probes go on, and tell whether the peer's TCP can
 * be reached.
 */

#include <net/tcp.h>

#include "../../control/sysctl.h"
#include "../../net.h"
#include "../../wire/llc.h"
#include "rdma.h"

/* A peer that has passed a test is not tested again for this time if a DECLINE says that it does not know the group. */
#define PASSED_TIME HZ
/*
 * The least time that SO_KEEPALIVE leaves for an answer. The link has other connections, and survives a port that
 * flaps.
 */
#define KEEPALIVE_LIMIT (4 * HZ)
/* A link is stuck if nothing of what was sent has arrived for this time. */
#define STALL_TIME (10 * HZ)

/*
 * The user data of TEST LINK: bytes that no other link has, then the number of the test, which only we read. They
 * tell a late answer to an earlier test from an answer to a test that was never sent.
 */
static void fill_test(const struct smc_link *link, u8 data[16])
{
	const struct smc_link_llc *llc = &link->llc;

	static_assert(sizeof(llc->test_id) + sizeof(llc->tests) == 16);
	lockdep_assert_held(&link->group->lock);
	memcpy(data, llc->test_id, sizeof(llc->test_id));
	memcpy(data + sizeof(llc->test_id), &llc->tests, sizeof(llc->tests));
}

static bool echoes_test(const struct smc_link *link, const u8 data[16])
{
	const struct smc_link_llc *llc = &link->llc;
	u32 number;

	lockdep_assert_held(&link->group->lock);
	memcpy(&number, data + sizeof(llc->test_id), sizeof(number));
	return !memcmp(data, llc->test_id, sizeof(llc->test_id)) && number && number <= llc->tests;
}

static void begin_test(struct smc_link *link)
{
	struct smc_llc m = { .type = SMC_LLC_TEST_LINK };

	lockdep_assert_held(&link->group->lock);
	link->llc.testing = true;
	link->llc.tested = jiffies;
	link->llc.tests++;
	fill_test(link, m.test_link.data);
	smc_rdma_llc_send_msg(link, &m);
}

/* The link works, so the peer knows the group: connections may join. */
static void pass_test(struct smc_link *link)
{
	struct smc_rdma_llc *llc = &link->group->llc;

	lockdep_assert_held(&link->group->lock);
	link->llc.testing = false;
	llc->verified = jiffies;
	if (!llc->verifying)
		return;
	WRITE_ONCE(llc->verifying, false);
	smc_lgr_rdma_wake_locked(link->group);
}

/**
 * smc_rdma_llc_verify_group() - somebody has declined a connection as out of sync: it does not know the group
 * @group: the group
 *
 * CLC messages do not prove who sends them: that may be the peer, which has lost the group, or anybody else who gives the
 * peer's identity. Only the peer can answer on the links: no connection joins until it has answered TEST LINK. If it does
 * not, the group ends. Softirq.
 */
void smc_rdma_llc_verify_group(struct smc_lgr_rdma *group)
{
	struct smc_rdma_llc *llc = &group->llc;
	struct smc_link *link;

	spin_lock_bh(&group->lock);
	if (group->state != SMC_LGR_RDMA_READY || llc->verifying || time_before(jiffies, llc->verified + PASSED_TIME))
		goto unlock;
	WRITE_ONCE(llc->verifying, true);
	llc->verifying_since = jiffies;
	smc_for_each_link(group, link)
		if (link->active && !link->llc.testing)
			begin_test(link);
	smc_rdma_llc_mod_timer(group, SMC_RDMA_ANSWER_TIMEOUT);
unlock:
	spin_unlock_bh(&group->lock);
}

/* smc_rdma_llc_on_test_link() - TEST LINK has come, or the response to it. Softirq. */
void smc_rdma_llc_on_test_link(struct smc_link *link, struct smc_llc *m)
{
	if (!m->response) {
		smc_rdma_llc_respond(link, m);
		return;
	}
	spin_lock_bh(&link->group->lock);
	if (!echoes_test(link, m->test_link.data))
		smc_rdma_llc_bad(link, m->type);
	else if (link->llc.testing)
		pass_test(link);
	spin_unlock_bh(&link->group->lock);
}

static bool has_keepalive(const struct smc_conn *conn, const struct smc_link *link)
{
	return READ_ONCE(smc_rdma_conn_of(conn)->link) == link && sock_flag(conn->sk, SOCK_KEEPOPEN) &&
	       !smc_conn_meaning(conn)->over;
}

/* The shortest times that SO_KEEPALIVE of a link's connections asks for, in jiffies; MAX_JIFFY_OFFSET if none does. */
struct keepalive {
	unsigned long idle;	/* until the link is tested */
	unsigned long limit;	/* then, until the peer is dead */
};

/*
 * Reads TCP_KEEPIDLE, TCP_KEEPINTVL and TCP_KEEPCNT of a link's connections, or the namespaces' values. Settings of a
 * namespace may be anything, while the link is the host's, so each counts as a second at least.
 */
static struct keepalive find_keepalive(const struct smc_link *link)
{
	struct keepalive k = { .idle = MAX_JIFFY_OFFSET, .limit = MAX_JIFFY_OFFSET };
	struct smc_conn *conn;
	unsigned long token;

	rcu_read_lock();
	xa_for_each(&link->group->conns, token, conn) {
		const struct tcp_sock *tp = tcp_sk(conn->sk);

		if (!has_keepalive(conn, link))
			continue;
		k.idle = min_t(unsigned long, k.idle, max_t(int, keepalive_time_when(tp), HZ));
		k.limit = min_t(unsigned long, k.limit,
				(unsigned long)max_t(int, keepalive_intvl_when(tp), HZ) * max_t(int, keepalive_probes(tp), 1));
	}
	rcu_read_unlock();
	return k;
}

/* A link is dead: its connections with SO_KEEPALIVE end by ETIMEDOUT. */
static void expire_keepalive(const struct smc_link *link)
{
	struct smc_conn *conn;
	unsigned long token;

	rcu_read_lock();
	xa_for_each(&link->group->conns, token, conn)
		if (has_keepalive(conn, link))
			WRITE_ONCE(conn->timed_out, true);
	rcu_read_unlock();
}

/* Jiffies until a point in time, 0 if it has passed. */
static unsigned long jiffies_until(unsigned long when)
{
	long left = when - jiffies;

	return max(left, 0L);
}

/*
 * When a TEST LINK that is out has failed: SMC_RDMA_ANSWER_TIMEOUT after the link has been silent for the interval that
 * the namespace sets; after the time that SO_KEEPALIVE of a connection sets; and soon while connections wait because the
 * group is being verified.
 * Return: jiffies until then.
 */
static unsigned long test_fails(const struct smc_link *link, unsigned long interval, const struct keepalive *k)
{
	const struct smc_rdma_llc *llc = &link->group->llc;
	unsigned long left = MAX_JIFFY_OFFSET, since = link->llc.tested;
	unsigned long silent = READ_ONCE(link->last_recv) + interval;

	lockdep_assert_held(&link->group->lock);
	if (interval)
		left = jiffies_until((time_after(silent, since) ? silent : since) + SMC_RDMA_ANSWER_TIMEOUT);
	if (llc->verifying)
		left = jiffies_until(llc->verifying_since + SMC_RDMA_ANSWER_TIMEOUT);
	return k->idle == MAX_JIFFY_OFFSET ? left : min(left, jiffies_until(since + max_t(unsigned long, k->limit, KEEPALIVE_LIMIT)));
}

/*
 * Tests a link that has been silent for as long as the namespace, or SO_KEEPALIVE of a connection, allows. Return: jiffies
 * until the next look, MAX_JIFFY_OFFSET if there is none.
 */
static unsigned long check_silence(struct smc_link *link)
{
	unsigned long interval = max(READ_ONCE(smc_net(link->group->lgr->key.net)->sysctl->smcr_testlink_time), 0);
	struct keepalive k = find_keepalive(link);
	unsigned long idle, left;

	lockdep_assert_held(&link->group->lock);
	/* Whatever comes shows that the link works; the answer to a test may be behind much else. */
	if (link->llc.testing && time_after(READ_ONCE(link->last_recv), link->llc.tested))
		pass_test(link);
	if (link->llc.testing) {
		left = test_fails(link, interval, &k);
		if (left)
			return left;
		/* Otherwise its connections go on. */
		if (!smc_lgr_rdma_other_link(link))
			expire_keepalive(link);
		smc_link_fail(link, SMC_LINK_SILENT, 0);
		return MAX_JIFFY_OFFSET;
	}
	idle = min(interval ?: MAX_JIFFY_OFFSET, k.idle);
	if (idle == MAX_JIFFY_OFFSET)
		return idle;
	left = jiffies_until(READ_ONCE(link->last_recv) + idle);
	if (left)
		return left;
	begin_test(link);
	return test_fails(link, interval, &k);
}

/*
 * Fails a link whose send queue is stuck, because the peer has no receives for it. Such a peer may go on sending itself.
 * On a bad path the queue may move late, but then the peer reads what arrives. Return: as check_silence() does.
 */
static unsigned long check_send_queue(struct smc_link *link)
{
	struct smc_link_llc *llc = &link->llc;
	unsigned long taken = READ_ONCE(link->last_read);
	bool expected = llc->expected;
	u64 done;

	lockdep_assert_held(&link->group->lock);
	llc->expected = smc_link_expects(link, &done);
	if (!llc->expected || !expected || done != llc->sq_done || time_after(taken, llc->moved)) {
		llc->sq_done = done;
		llc->moved = jiffies;
	} else if (time_after_eq(jiffies, llc->moved + STALL_TIME)) {
		smc_link_fail(link, SMC_LINK_STUCK, 0);
		return MAX_JIFFY_OFFSET;
	}
	return STALL_TIME / 2;
}

/*
 * smc_rdma_llc_test_links() - looks at each link of a group that is ready. Any context. Return: as check_silence()
 * does.
 */
unsigned long smc_rdma_llc_test_links(struct smc_lgr_rdma *group)
{
	unsigned long next = MAX_JIFFY_OFFSET;
	struct smc_link *link;

	smc_for_each_link(group, link)
		if (link->active)
			next = min3(next, check_silence(link), check_send_queue(link));
	return next;
}

/* smc_rdma_llc_watch_link() - a link can be used, and is tested from now on. Any context. */
void smc_rdma_llc_watch_link(struct smc_link *link)
{
	struct smc_link *other;

	lockdep_assert_held(&link->group->lock);
	link->llc.moved = jiffies;
	WRITE_ONCE(link->last_recv, jiffies);
	link->group->llc.verified = jiffies;
	smc_rdma_llc_mod_timer(link->group, 0);
	if (smc_lgr_rdma_other_link(link))
		smc_for_each_link(link->group, other)
			smc_link_acks_begin(other);
}
