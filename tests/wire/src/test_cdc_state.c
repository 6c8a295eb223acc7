// SPDX-License-Identifier: Apache-2.0
/*
 * Tests of kernel/conn/cdc.c: what an end of a connection sends, and what it makes of messages. Two
 * ends, a and b, talk by messages that go through the encoding of SMC-R.
 */
#include "check.h"
#include "conn/cdc.h"

#define SIZE_A 1000u /* bytes of a's element; no power of 2, so that cursors and positions differ */
#define SIZE_B 700u

struct end {
	struct smc_cdc_tx tx;
	struct smc_cdc_rx rx;
	u64 read;		/* by its application */
	u8 close_flags;
	bool replaces;
	u32 tx_size, rx_size;
};

static struct end ends[2];
#define A (&ends[0])
#define B (&ends[1])

static void start(void)
{
	memset(ends, 0, sizeof(ends));
	A->tx_size = SIZE_B;
	A->rx_size = SIZE_A;
	B->tx_size = SIZE_A;
	B->rx_size = SIZE_B;
}

static void build(struct end *e, struct smc_cdc_update *u)
{
	const struct smc_cdc_now now = {
		.written = e->tx.written, .urgent = e->tx.urgent, .read = e->read, .close_flags = e->close_flags,
		.full = e->tx.written - e->rx.cons.pos >= e->tx_size, .replaces = e->replaces,
		.tx_size = e->tx_size, .rx_size = e->rx_size,
	};

	smc_cdc_build(&e->tx, &e->rx, &now, u);
}

/* One message from an end to the other. */
static struct smc_cdc_delta pass(struct end *from, struct end *to)
{
	struct smc_cdc_delta delta;
	u8 buf[SMC_CDC_R_LEN];
	struct smc_cdc_update u;
	struct smc_cdc msg;

	build(from, &u);
	smc_cdc_sent(&from->tx, &u);
	smc_cdc_r_encode(&u.msg, buf);
	CHECK_EQ(smc_cdc_r_decode(buf, sizeof(buf), &msg), 0);
	CHECK(!smc_cdc_is_late(&to->rx, msg.seq));
	to->rx.seq = msg.seq;
	CHECK_EQ(smc_cdc_recv(&to->rx, &msg, to->tx.most_sent, to->rx_size, to->tx_size, &delta), 0);
	return delta;
}

/*
 * Data in both directions, which wraps around both rings many times, while each side reads its
 * data.
 */
static void streams(void)
{
	unsigned int i;

	start();
	check_case = "streams";
	for (i = 0; i < 20000; i++) {
		u32 n = i * 7919 % SIZE_B + 1, m = i * 104729 % SIZE_A + 1;
		struct smc_cdc_delta delta;

		A->tx.written += n;
		delta = pass(A, B);
		CHECK_EQ(delta.data, n);
		CHECK_EQ(B->rx.prod.pos, A->tx.written);
		CHECK_EQ(delta.blocked, n == SIZE_B);
		B->read = B->rx.prod.pos;
		B->tx.written += m;
		delta = pass(B, A);
		CHECK_EQ(delta.data, m);
		CHECK_EQ(delta.space, n);
		CHECK_EQ(A->rx.cons.pos, A->tx.written);
		A->read = A->rx.prod.pos;
		CHECK(!delta.urgent && !delta.update_requested && !delta.closing);
	}
	CHECK_EQ(A->tx.seq, 20000);
}

static const struct {
	const char *name;
	u64 prod, urgent, urgent_sent, read, written;
	u8 peer_state;
	bool write_closed;
	u64 end;
} sendable[] = {
	{ "nothing", 0, 0, 0, 0, 0, 0, false, 0 },
	{ "data", 10, 0, 0, 0, 30, 0, false, 30 },
	{ "up to an urgent byte", 10, 20, 0, 10, 30, 0, false, 20 },
	{ "an urgent byte at the end", 10, 30, 0, 10, 30, 0, false, 30 },
	{ "an urgent byte is not read", 20, 20, 20, 19, 30, 0, false, 20 },
	{ "an urgent byte is not read, nothing is new", 20, 20, 20, 0, 20, 0, false, 20 },
	{ "an urgent byte is read", 20, 20, 20, 20, 30, 0, false, 30 },
	{ "another urgent byte", 20, 25, 20, 20, 30, 0, false, 25 },
	{ "another urgent byte, the first is not read", 20, 25, 20, 10, 30, 0, false, 20 },
	{ "nobody will read the urgent byte", 20, 20, 20, 0, 30, SMC_CDC_CLOSED, false, 30 },
	{ "the peer writes nothing more", 20, 20, 20, 0, 30, SMC_CDC_DONE, false, 20 },
	{ "the peer has aborted", 20, 0, 0, 0, 30, SMC_CDC_ABORT, false, 20 },
	{ "a message has closed", 20, 0, 0, 20, 30, 0, true, 20 },
	{ "a message has closed, an urgent byte came later", 20, 30, 0, 20, 30, 0, true, 20 },
};

static void sendable_end(void)
{
	size_t i;

	for (i = 0; i < sizeof(sendable) / sizeof(sendable[0]); i++) {
		struct smc_cdc_tx tx = {
			.prod.pos = sendable[i].prod, .urgent_sent = sendable[i].urgent_sent,
			.write_closed = sendable[i].write_closed, .closed_end = sendable[i].prod,
		};
		struct smc_cdc_rx rx = { .cons.pos = sendable[i].read, .state = sendable[i].peer_state };

		check_case = sendable[i].name;
		CHECK_EQ(smc_cdc_sendable_end(&tx, &rx, sendable[i].written, sendable[i].urgent), sendable[i].end);
	}
}

/* An urgent byte, data after it, and the end: each waits until the byte before is read. */
static void urgent(void)
{
	struct smc_cdc_delta delta;

	start();
	check_case = "urgent";
	A->tx.written = 130;
	A->tx.urgent = 100;
	A->close_flags = SMC_CDC_DONE;
	delta = pass(A, B);
	CHECK(delta.data == 100 && delta.urgent && !delta.closing);
	CHECK_EQ(A->tx.urgent_sent, 100);
	delta = pass(A, B);
	CHECK(delta.data == 0 && !delta.urgent && !delta.closing);
	B->read = 99;
	CHECK_EQ(pass(B, A).space, 99);
	CHECK_EQ(pass(A, B).data, 0);
	B->read = 100;
	CHECK_EQ(pass(B, A).space, 1);
	delta = pass(A, B);
	CHECK(delta.data == 30 && !delta.urgent && delta.closing == SMC_CDC_DONE);
}

/* Flags of messages about one urgent byte, if they queue and if each replaces the one before. */
static void urgent_flags(void)
{
	const u8 first = SMC_CDC_URGENT | SMC_CDC_URGENT_PENDING;
	struct smc_cdc_update u;
	int replaces;

	for (replaces = 0; replaces < 2; replaces++) {
		start();
		check_case = replaces ? "messages replace each other" : "messages queue";
		A->replaces = replaces;
		build(A, &u);
		CHECK_EQ(u.msg.flags, 0);
		A->tx.written = 50;
		A->tx.urgent = 50;
		build(A, &u);
		CHECK_EQ(u.msg.flags, first);
		/* Not sent yet, so it is built once more. */
		build(A, &u);
		CHECK_EQ(u.msg.flags, first);
		smc_cdc_sent(&A->tx, &u);
		build(A, &u);
		CHECK_EQ(u.msg.flags, replaces ? SMC_CDC_URGENT : 0);
		A->tx.written = 60;
		A->rx.cons.pos = 50;
		build(A, &u);
		CHECK_EQ(u.msg.flags, 0);
	}
}

static const struct {
	const char *name;
	u8 said, peer_state;
	u64 urgent_unread;	/* an urgent byte that the peer has not read ends here; more is written */
	u8 state;
	bool write_closed;	/* once the message is sent */
} closings[] = {
	{ "nothing", 0, 0, 0, 0, false },
	{ "shut down", SMC_CDC_DONE, 0, 0, SMC_CDC_DONE, false },
	{ "closed", SMC_CDC_DONE | SMC_CDC_CLOSED, 0, 0, SMC_CDC_DONE | SMC_CDC_CLOSED, true },
	{ "aborted", SMC_CDC_ABORT, 0, 0, SMC_CDC_ABORT, true },
	{ "shut down, data is held back", SMC_CDC_DONE, 0, 10, 0, false },
	{ "closed, data is held back", SMC_CDC_CLOSED, 0, 10, 0, false },
	{ "aborted, data is held back", SMC_CDC_CLOSED | SMC_CDC_ABORT, 0, 10, SMC_CDC_ABORT, true },
	{ "closed, nobody reads", SMC_CDC_CLOSED, SMC_CDC_CLOSED, 10, SMC_CDC_CLOSED, true },
	{ "closed, aborted by the peer", SMC_CDC_CLOSED, SMC_CDC_ABORT, 10, SMC_CDC_CLOSED, true },
};

static void closing(void)
{
	struct smc_cdc_update u;
	size_t i;

	for (i = 0; i < sizeof(closings) / sizeof(closings[0]); i++) {
		start();
		check_case = closings[i].name;
		A->tx.written = 10;
		A->tx.urgent = closings[i].urgent_unread;
		build(A, &u);
		smc_cdc_sent(&A->tx, &u);
		A->tx.written = closings[i].urgent_unread ? 20 : 10;
		A->rx.state = closings[i].peer_state;
		A->close_flags = closings[i].said;
		build(A, &u);
		CHECK_EQ(u.msg.state, closings[i].state);
		CHECK(!A->tx.write_closed);
		smc_cdc_sent(&A->tx, &u);
		CHECK_EQ(A->tx.write_closed, closings[i].write_closed);
		/* A direction that a message has closed stays closed, and later messages repeat the flag. */
		build(A, &u);
		if (A->tx.write_closed)
			CHECK_EQ(u.msg.state, closings[i].said);
	}
}

/*
 * Messages are lost with a link, again and again, and what the peer may not have is sent again: a's data comes whole and in
 * order, whatever of it the peer had, the urgent byte is announced, and a's number is never behind what b has seen.
 */
static void failover(void)
{
	unsigned int round, lost;

	start();
	check_case = "failover";
	for (round = 0; round < 3000; round++) {
		u64 known = A->tx.prod.pos, least, most;
		u16 known_seq = A->tx.seq;
		struct smc_cdc_delta delta;
		struct smc_cdc_update u;

		/* Some arrive, then some do not; b may have read some, which a does not know. */
		for (lost = 0; lost < 4; lost++) {
			A->tx.written += (round * 7919 + lost * 104729) % (SIZE_B / 8);
			if (lost < round % 4) {
				pass(A, B);
			} else {
				build(A, &u);
				smc_cdc_sent(&A->tx, &u);
			}
		}
		least = A->rx.cons.pos > known ? A->rx.cons.pos : known;
		most = B->rx.prod.pos;
		CHECK(least <= most);
		CHECK(!smc_cdc_is_gap(&B->rx, known_seq));
		smc_cdc_rewind(&A->tx, least + (round % 2 ? most - least : 0), SIZE_B);
		CHECK(A->tx.most_sent >= A->tx.prod.pos);
		/* b reports what it has read of that, before a sends again; then b's ring has room for more. */
		if (round % 3 == 0) {
			u64 back = A->tx.prod.pos;

			B->read = most;
			CHECK(pass(B, A).space >= 0);
			CHECK_EQ(smc_cdc_catch_up(&A->tx, &A->rx, SIZE_B), most - back);
			CHECK_EQ(A->tx.prod.pos, most);
			A->tx.written = most + SIZE_B;
		}
		CHECK_EQ(smc_cdc_catch_up(&A->tx, &A->rx, SIZE_B), 0);
		if (round % 5 == 0 && A->tx.written > A->tx.most_sent)
			A->tx.urgent = A->tx.written;
		delta = pass(A, B);
		CHECK_EQ(B->rx.prod.pos, A->tx.written);
		CHECK_EQ(delta.data, A->tx.written - most);
		B->read = B->rx.prod.pos;
		pass(B, A);
		CHECK_EQ(A->rx.cons.pos, A->tx.written);
	}
}

/* A message with an urgent byte, or the last one, is lost: the next one has what it said. */
static void failover_flags(void)
{
	struct smc_cdc_delta delta;
	struct smc_cdc_update u;

	start();
	check_case = "failover, urgent";
	A->tx.written = 50;
	A->tx.urgent = 40;
	build(A, &u);
	smc_cdc_sent(&A->tx, &u);
	smc_cdc_rewind(&A->tx, 0, SIZE_B);
	/* Another urgent byte waits behind the one that was lost. */
	A->tx.urgent = 50;
	delta = pass(A, B);
	CHECK(delta.data == 40 && delta.urgent);
	CHECK_EQ(pass(A, B).data, 0);
	B->read = 40;
	pass(B, A);
	delta = pass(A, B);
	CHECK(delta.data == 10 && delta.urgent);

	start();
	check_case = "failover, closed";
	A->tx.written = 30;
	A->close_flags = SMC_CDC_DONE | SMC_CDC_CLOSED;
	build(A, &u);
	smc_cdc_sent(&A->tx, &u);
	A->tx.written = 35; /* after the close: not sent */
	smc_cdc_rewind(&A->tx, 10, SIZE_B);
	delta = pass(A, B);
	CHECK(delta.data == 30 && delta.closing == (SMC_CDC_DONE | SMC_CDC_CLOSED));
	CHECK(smc_cdc_is_gap(&B->rx, (u16)(A->tx.seq + 1)));
	CHECK(!smc_cdc_is_gap(&B->rx, A->tx.seq));
}

#define BAD (-EPROTO)

/* Messages to B that has read 100 bytes of A and written 300, of which A has read 50. */
static const struct {
	const char *name;
	struct smc_cdc msg;
	int rc;
	s64 data, space;
	u8 closing;
	bool urgent, blocked, update_requested;
} received[] = {
	{ "again", { .prod = { 0, 100 }, .cons = { 0, 50 } }, 0, 0, 0, 0, false, false, false },
	{ "all read", { .prod = { 0, 100 }, .cons = { 0, 300 } }, 0, 0, 250, 0, false, false, false },
	{ "one more read than sent", { .prod = { 0, 100 }, .cons = { 0, 301 } }, BAD, 0, 0, 0, false, false, false },
	{ "a ring more read than sent", { .prod = { 0, 100 }, .cons = { 1, 50 } }, BAD, 0, 0, 0, false, false, false },
	{ "cursor back", { .prod = { 0, 99 }, .cons = { 0, 49 } }, 0, 0, 0, 0, false, false, false },
	{ "producer beyond the ring", { .prod = { 0, SIZE_B }, .cons = { 0, 50 } }, 0, BAD, 0, 0, false, false, false },
	{ "consumer beyond the ring", { .prod = { 0, 100 }, .cons = { 0, SIZE_A } }, 0, 0, BAD, 0, false, false, false },
	{ "producer two rounds ahead", { .prod = { 2, 0 }, .cons = { 0, 50 } }, 0, BAD, 0, 0, false, false, false },
	{ "data and space", { .prod = { 1, 3 }, .cons = { 0, 60 } }, 0, SIZE_B - 97, 10, 0, false, false, false },
	{ "urgent", { .prod = { 0, 101 }, .cons = { 0, 50 }, .flags = SMC_CDC_URGENT }, 0, 1, 0, 0, true, false, false },
	{ "urgent without data", { .prod = { 0, 100 }, .cons = { 0, 50 }, .flags = SMC_CDC_URGENT },
	  0, 0, 0, 0, true, false, false },
	{ "urgent back", { .prod = { 0, 90 }, .cons = { 0, 50 }, .flags = SMC_CDC_URGENT_PENDING },
	  0, 0, 0, 0, false, false, false },
	{ "wishes", { .prod = { 0, 100 }, .cons = { 0, 50 }, .flags = SMC_CDC_BLOCKED | SMC_CDC_UPDATE },
	  0, 0, 0, 0, false, true, true },
	{ "done", { .prod = { 0, 120 }, .cons = { 0, 50 }, .state = SMC_CDC_DONE }, 0, 20, 0, SMC_CDC_DONE, false, false, false },
};

static void messages(void)
{
	size_t i;

	for (i = 0; i < sizeof(received) / sizeof(received[0]); i++) {
		struct smc_cdc_rx rx = {
			.prod = { 100, { 0, 100 } }, .cons = { 50, { 0, 50 } },
			.state = SMC_CDC_CLOSED,
		};
		struct smc_cdc_delta delta;

		check_case = received[i].name;
		memset(&delta, 0xa5, sizeof(delta));
		CHECK_EQ(smc_cdc_recv(&rx, &received[i].msg, 300, SIZE_B, SIZE_A, &delta), received[i].rc);
		if (received[i].rc) {
			CHECK_EQ(rx.cons.pos, 50);
			continue;
		}
		CHECK_EQ(delta.data, received[i].data);
		CHECK_EQ(delta.space, received[i].space);
		CHECK_EQ(delta.urgent, received[i].urgent);
		CHECK_EQ(delta.blocked, received[i].blocked);
		CHECK_EQ(delta.update_requested, received[i].update_requested);
		CHECK_EQ(delta.closing, received[i].closing);
		CHECK_EQ(rx.state, SMC_CDC_CLOSED | received[i].closing);
		CHECK_EQ(rx.prod.pos, 100 + (received[i].data > 0 ? received[i].data : 0));
		CHECK_EQ(rx.cons.pos, 50 + (received[i].space > 0 ? received[i].space : 0));
		/* The same message once more is no delta. */
		CHECK_EQ(smc_cdc_recv(&rx, &received[i].msg, 300, SIZE_B, SIZE_A, &delta), 0);
		CHECK(delta.data <= 0 && delta.space <= 0 && !delta.urgent && !delta.closing);
	}
}

static const struct {
	const char *name;
	struct smc_cdc_space s;
	bool due;
} spaces[] = {
	{ "the peer asks", { .unsignaled = 1, .size = 65536, .min_update = 2304, .requested = true, .peer_waits_half = true }, true },
	{ "the peer asks, nothing was read", { .size = 65536, .requested = true, .reader_waits = true }, false },
	{ "the reader waits for more", { .unsignaled = 1, .ahead = 40000, .size = 65536, .peer_waits_half = true, .reader_waits = true }, true },
	{ "a little", { .unsignaled = 6553, .size = 65536, .min_update = 2304, .blocked = true }, false },
	{ "more than a tenth, nobody is short of space", { .unsignaled = 6554, .size = 65536, .min_update = 2304 }, false },
	{ "more than a tenth, blocked", { .unsignaled = 6554, .size = 65536, .min_update = 2304, .blocked = true }, true },
	{ "more than a tenth, half is in use", { .unsignaled = 6554, .ahead = 26214, .size = 65536, .min_update = 2304 }, true },
	{ "one less", { .unsignaled = 6554, .ahead = 26213, .size = 65536, .min_update = 2304 }, false },
	{ "a small ring", { .unsignaled = 2304, .size = 16384, .min_update = 2304, .blocked = true }, false },
	{ "a small ring, enough", { .unsignaled = 2305, .size = 16384, .min_update = 2304, .blocked = true }, true },
	{ "halves: less", { .unsignaled = 32767, .size = 65536, .peer_waits_half = true, .blocked = true }, false },
	{ "halves: enough", { .unsignaled = 32768, .size = 65536, .peer_waits_half = true }, true },
	{ "halves: more than half is unread", { .unsignaled = 30000, .ahead = 32769, .size = 65536, .peer_waits_half = true }, false },
	{ "halves: half is unread", { .unsignaled = 1, .ahead = 32768, .size = 65536, .peer_waits_half = true }, true },
};

static void updates(void)
{
	size_t i;

	for (i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++) {
		check_case = spaces[i].name;
		CHECK_EQ(smc_cdc_should_update_cons(&spaces[i].s), spaces[i].due);
	}
}

/* A message that fits into immediate data has the same effect as a CDC message. */
static void immediate(void)
{
	struct smc_cdc_update u;
	struct smc_cdc msg;
	unsigned int i;
	u32 imm;

	start();
	check_case = "immediate";
	for (i = 0; i < 5000; i++) {
		u32 n = i * 7919 % SIZE_B + 1;
		struct smc_cdc_delta delta;

		A->tx.written += n;
		A->rx.prod.pos = A->read += i % 3;
		build(A, &u);
		CHECK(smc_cdc_fits_imm(&A->tx, &u));
		imm = smc_cdc_encode_imm(&A->tx, &u, (u8)i);
		CHECK_EQ(imm >> SMC_CDC_IMM_RMB_SHIFT, (u8)i);
		smc_cdc_sent(&A->tx, &u);
		B->tx.prod.pos = A->read;
		CHECK_EQ(smc_cdc_decode_imm(&B->rx, imm, n, SIZE_B, SIZE_A, &msg), 0);
		CHECK_EQ(msg.seq, u.msg.seq);
		CHECK(msg.prod.wrap == u.msg.prod.wrap && msg.prod.count == u.msg.prod.count);
		CHECK(msg.cons.wrap == u.msg.cons.wrap && msg.cons.count == u.msg.cons.count);
		CHECK(msg.flags == u.msg.flags && !msg.state && !msg.token);
		B->rx.seq = msg.seq;
		CHECK_EQ(smc_cdc_recv(&B->rx, &msg, B->tx.prod.pos, SIZE_B, SIZE_A, &delta), 0);
		CHECK_EQ(B->rx.prod.pos, A->tx.written);
		CHECK_EQ(B->rx.cons.pos, A->read);
		B->read = B->rx.prod.pos;
		A->rx.cons.pos = B->read;
	}
}

static void immediate_limits(void)
{
	static const struct {
		const char *name;
		u8 flags, state;
		u64 read;
		bool fits;
	} fits[] = {
		{ "data", 0, 0, 0, true },
		{ "blocked", SMC_CDC_BLOCKED, 0, 0, true },
		{ "much read", 0, 0, SMC_CDC_IMM_READ, true },
		{ "too much read", 0, 0, SMC_CDC_IMM_READ + 1, false },
		{ "urgent", SMC_CDC_URGENT | SMC_CDC_URGENT_PENDING, 0, 0, false },
		{ "closing", 0, SMC_CDC_DONE, 0, false },
	};
	static const struct {
		const char *name;
		u32 imm, len;
		int rc;
	} bad[] = {
		{ "a byte", 0, 1, 0 },
		{ "no length", 0, 0, BAD },
		{ "a full ring", 0, SIZE_B, 0 },
		{ "more than a ring", 0, SIZE_B + 1, BAD },
		{ "all read", SIZE_A, 1, 0 },
		{ "more than a ring read", SIZE_A + 1, 1, BAD },
		{ "as much as can be said", SMC_CDC_IMM_READ, 1, BAD },
	};
	struct smc_cdc_tx tx = { .cons.pos = 7 };
	struct smc_cdc_rx rx = {};
	struct smc_cdc msg;
	size_t i;

	for (i = 0; i < sizeof(fits) / sizeof(fits[0]); i++) {
		struct smc_cdc_update u = {
			.msg = { .flags = fits[i].flags, .state = fits[i].state }, .cons.pos = 7 + fits[i].read,
		};

		check_case = fits[i].name;
		CHECK_EQ(smc_cdc_fits_imm(&tx, &u), fits[i].fits);
	}
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		check_case = bad[i].name;
		CHECK_EQ(smc_cdc_decode_imm(&rx, bad[i].imm, bad[i].len, SIZE_B, SIZE_A, &msg), bad[i].rc);
	}
}

const struct test cdc_state_tests[] = {
	{ "streams", streams }, { "sendable end", sendable_end }, { "urgent", urgent }, { "urgent flags", urgent_flags },
	{ "closing", closing }, { "failover", failover }, { "failover flags", failover_flags }, { "messages", messages }, { "updates", updates },
	{ "immediate", immediate }, { "immediate limits", immediate_limits }, { NULL, NULL },
};
