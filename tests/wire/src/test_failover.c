// SPDX-License-Identifier: Apache-2.0
/*
 * Tests of the functions of kernel/conn/cdc.c that failover needs: what is taken back, what is not sent again after all, and
 * the order of messages of several links. tests/conn/failover.pml shows why they have to be so; here cursors and numbers wrap.
 */
#include "check.h"
#include "conn/cdc.h"

#define SIZE 700u /* of the receiver's ring */

static struct smc_track track(u64 pos, u16 wrap, u32 count)
{
	return (struct smc_track){ pos, { wrap, count } };
}

static void check_track(const struct smc_track *got, u64 pos, u16 wrap, u32 count)
{
	CHECK_EQ(got->pos, pos);
	CHECK_EQ(got->at.wrap, wrap);
	CHECK_EQ(got->at.count, count);
}

static const struct {
	const char *name;
	struct smc_track from, to;
} rewinds[] = {
	{ "nothing", { 50, { 0, 50 } }, { 50, { 0, 50 } } },
	{ "within a round", { 50, { 0, 50 } }, { 20, { 0, 20 } } },
	{ "to the beginning", { 50, { 0, 50 } }, { 0, { 0, 0 } } },
	{ "to the end of the round before", { 710, { 1, 10 } }, { 699, { 0, 699 } } },
	{ "to where the round begins", { 710, { 1, 10 } }, { 700, { 1, 0 } } },
	{ "from where a round begins", { 700, { 1, 0 } }, { 699, { 0, 699 } } },
	{ "a whole ring", { 710, { 1, 10 } }, { 10, { 0, 10 } } },
	{ "a whole ring, from where a round begins", { 1400, { 2, 0 } }, { 700, { 1, 0 } } },
	{ "before the wraps start from 0 again", { 700ull * 65536 + 3, { 0, 3 } }, { 700ull * 65536 - 1, { 65535, 699 } } },
	{ "beyond 32 bits", { 700ull * 6135667 + 1, { 40819, 1 } }, { 700ull * 6135667 - 699, { 40818, 1 } } },
};

static void rewinding(void)
{
	size_t i;

	for (i = 0; i < sizeof(rewinds) / sizeof(rewinds[0]); i++) {
		const struct smc_track *from = &rewinds[i].from, *to = &rewinds[i].to;
		struct smc_cdc_tx tx = { .prod = *from, .most_sent = from->pos, .seq = 7 };
		const struct smc_cdc_rx rx = { .cons.pos = from->pos };

		check_case = rewinds[i].name;
		smc_cdc_rewind(&tx, to->pos, SIZE);
		check_track(&tx.prod, to->pos, to->at.wrap, to->at.count);
		CHECK_EQ(tx.most_sent, from->pos);
		CHECK_EQ(tx.seq, 7);
		CHECK(!tx.urgent_again);
		/* The peer has read it all: the way back forward. */
		CHECK_EQ(smc_cdc_catch_up(&tx, &rx, SIZE), from->pos - to->pos);
		check_track(&tx.prod, from->pos, from->at.wrap, from->at.count);
		CHECK_EQ(tx.most_sent, from->pos);
	}
}

static const struct {
	const char *name;
	struct smc_track prod;
	u64 read;
	struct smc_track to;
} catches[] = {
	{ "nothing is read", { 50, { 0, 50 } }, 0, { 50, { 0, 50 } } },
	{ "less", { 50, { 0, 50 } }, 49, { 50, { 0, 50 } } },
	{ "as much", { 50, { 0, 50 } }, 50, { 50, { 0, 50 } } },
	{ "a byte more", { 50, { 0, 50 } }, 51, { 51, { 0, 51 } } },
	{ "to the end of the round", { 50, { 0, 50 } }, 699, { 699, { 0, 699 } } },
	{ "a round", { 50, { 0, 50 } }, 700, { 700, { 1, 0 } } },
	{ "a whole ring", { 50, { 0, 50 } }, 750, { 750, { 1, 50 } } },
	{ "the wraps start from 0 again", { 700ull * 65536 - 1, { 65535, 699 } }, 700ull * 65536 + 1, { 700ull * 65536 + 1, { 0, 1 } } },
};

static void catching_up(void)
{
	size_t i;

	for (i = 0; i < sizeof(catches) / sizeof(catches[0]); i++) {
		const struct smc_track *prod = &catches[i].prod, *to = &catches[i].to;
		struct smc_cdc_tx tx = { .prod = *prod, .most_sent = 700ull * 65537 };
		const struct smc_cdc_rx rx = { .cons.pos = catches[i].read };

		check_case = catches[i].name;
		CHECK_EQ(smc_cdc_catch_up(&tx, &rx, SIZE), to->pos - prod->pos);
		check_track(&tx.prod, to->pos, to->at.wrap, to->at.count);
		CHECK_EQ(smc_cdc_catch_up(&tx, &rx, SIZE), 0);
	}
}

/* A connection that ends reports no data beyond what was sent, nor less than the peer has read of what was taken back. */
static void ended(void)
{
	static const struct {
		const char *name;
		u64 back_to, read, written, end;
	} ends[] = {
		{ "nothing is taken back", 50, 0, 60, 50 },
		{ "the peer has read nothing of it", 20, 20, 60, 20 },
		{ "the peer has read some", 20, 30, 60, 30 },
		{ "the peer has read everything", 20, 50, 60, 50 },
	};
	size_t i;

	for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		struct smc_cdc_tx tx = { .prod = track(50, 0, 50), .most_sent = 50 };
		const struct smc_cdc_rx rx = { .cons.pos = ends[i].read };
		const struct smc_cdc_now now = { .written = ends[i].written, .tx_size = SIZE, .rx_size = SIZE };
		struct smc_cdc_update u;

		check_case = ends[i].name;
		smc_cdc_rewind(&tx, ends[i].back_to, SIZE);
		smc_cdc_stop(&tx);
		smc_cdc_catch_up(&tx, &rx, SIZE);
		smc_cdc_build(&tx, &rx, &now, &u);
		CHECK_EQ(u.prod.pos, ends[i].end);
		CHECK_EQ(tx.prod.pos, ends[i].end);
	}
}

/* The message after a rewind, and the one after that, of 60 bytes. */
static const struct {
	const char *name;
	u64 urgent_sent, urgent, back_to, read;
	u64 end;		/* of the message */
	bool again, flag;	/* urgent_again after the rewind; the message has U */
	bool next;		/* the next one has U */
} urgents[] = {
	{ "none", 0, 0, 20, 0, 60, false, false, false },
	{ "taken back", 50, 50, 20, 0, 50, true, true, false },
	{ "only its last byte is taken back", 50, 50, 49, 0, 50, true, true, false },
	{ "not taken back", 50, 50, 50, 0, 50, false, false, false },
	{ "taken back, and read", 50, 50, 20, 50, 60, true, false, false },
	{ "taken back with a later one", 50, 60, 20, 0, 50, true, true, false },
	{ "taken back with a later one, and read", 50, 60, 20, 50, 60, true, true, false },
	{ "not sent before", 0, 40, 20, 0, 40, false, true, false },
};

static void urgent_again(void)
{
	size_t i;

	for (i = 0; i < sizeof(urgents) / sizeof(urgents[0]); i++) {
		struct smc_cdc_tx tx = { .prod = track(50, 0, 50), .most_sent = 50, .urgent_sent = urgents[i].urgent_sent };
		const struct smc_cdc_rx rx = { .cons.pos = urgents[i].read };
		const struct smc_cdc_now now = {
			.written = 60, .urgent = urgents[i].urgent, .tx_size = SIZE, .rx_size = SIZE,
		};
		struct smc_cdc_update u;

		check_case = urgents[i].name;
		smc_cdc_rewind(&tx, urgents[i].back_to, SIZE);
		CHECK_EQ(tx.urgent_again, urgents[i].again);
		smc_cdc_catch_up(&tx, &rx, SIZE);
		smc_cdc_build(&tx, &rx, &now, &u);
		CHECK_EQ(u.prod.pos, urgents[i].end);
		CHECK_EQ(!!(u.msg.flags & SMC_CDC_URGENT), urgents[i].flag);
		/* Not sent yet: it is not forgotten. */
		smc_cdc_build(&tx, &rx, &now, &u);
		CHECK_EQ(!!(u.msg.flags & SMC_CDC_URGENT), urgents[i].flag);
		smc_cdc_sent(&tx, &u);
		CHECK(!urgents[i].flag || !tx.urgent_again);
		smc_cdc_build(&tx, &rx, &now, &u);
		CHECK_EQ(!!(u.msg.flags & SMC_CDC_URGENT), urgents[i].next);
	}
}

/* Of what was taken back, the peer may have read everything. */
static void most_sent(void)
{
	static const struct {
		const char *name;
		struct smc_cursor cons;
		int rc;
	} reads[] = {
		{ "nothing", { 1, 0 }, 0 },
		{ "what was not taken back", { 1, 20 }, 0 },
		{ "what was taken back", { 1, 100 }, 0 },
		{ "a byte more", { 1, 101 }, -EPROTO },
	};
	size_t i;

	for (i = 0; i < sizeof(reads) / sizeof(reads[0]); i++) {
		struct smc_cdc_tx tx = { .prod = track(750, 1, 50), .most_sent = 750 };
		struct smc_cdc_rx rx = { .cons = track(700, 1, 0) };
		struct smc_cdc_now now = { .written = 800, .tx_size = SIZE, .rx_size = SIZE };
		const struct smc_cdc msg = { .cons = reads[i].cons };
		struct smc_cdc_delta delta;
		struct smc_cdc_update u;

		check_case = reads[i].name;
		smc_cdc_build(&tx, &rx, &now, &u);
		smc_cdc_sent(&tx, &u);
		CHECK_EQ(tx.most_sent, 800);
		/* Twice, because the second link may be lost before it has brought as much. */
		smc_cdc_rewind(&tx, 720, SIZE);
		now.written = 730;
		smc_cdc_build(&tx, &rx, &now, &u);
		smc_cdc_sent(&tx, &u);
		smc_cdc_rewind(&tx, 720, SIZE);
		CHECK_EQ(tx.most_sent, 800);
		CHECK_EQ(smc_cdc_recv(&rx, &msg, tx.most_sent, SIZE, SIZE, &delta), reads[i].rc);
		CHECK_EQ(rx.cons.pos, reads[i].rc ? 700 : 700 + reads[i].cons.count);
	}
}

/* Is a message late after another, and is one missing if validation names it? Never both. */
static void order(void)
{
	static const struct {
		u16 last, seq;
		bool late, gap;
	} orders[] = {
		{ 0, 0, false, false }, { 5, 5, false, false }, { 5, 4, true, false }, { 5, 6, false, true },
		{ 0xffff, 0, false, true }, { 0, 0xffff, true, false }, { 0xfffe, 2, false, true }, { 2, 0xfffe, true, false },
		{ 0, 0x7fff, false, true }, { 0x7fff, 0, true, false }, { 0x7fff, 0x8000, false, true }, { 0x8000, 0x7fff, true, false },
	};
	size_t i;

	check_case = "order";
	for (i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
		const struct smc_cdc_rx rx = { .seq = orders[i].last };

		CHECK_EQ(smc_cdc_is_late(&rx, orders[i].seq), orders[i].late);
		CHECK_EQ(smc_cdc_is_gap(&rx, orders[i].seq), orders[i].gap);
	}
}

/* A message that was sent before a rewind. */
struct sent {
	struct smc_cdc msg;
	u64 end;
};

/* Takes in a message by the rules of a receiver. Returns whether it is new. */
static bool receive(struct smc_cdc_rx *rx, const struct smc_cdc *msg)
{
	struct smc_cdc_delta delta;

	if (smc_cdc_is_late(rx, msg->seq))
		return false;
	rx->seq = msg->seq;
	CHECK_EQ(smc_cdc_recv(rx, msg, 0, SIZE, SIZE, &delta), 0);
	CHECK(delta.data >= 0);
	return true;
}

/*
 * Messages by the old link come before, between and after those by the new one, while cursors and numbers wrap: the position
 * never goes back, what is late changes nothing, and everything comes.
 */
static void two_links(void)
{
	struct smc_cdc_tx tx = { .prod = track(0, 0xfff0, 0), .seq = 0xff00 };
	struct smc_cdc_rx rx = { .prod = tx.prod, .seq = tx.seq }, acked = {};
	struct smc_cdc_now now = { .tx_size = SIZE, .rx_size = SIZE };
	struct smc_cdc_update u;
	struct sent old[3];
	unsigned int round, i;
	u64 before;

	check_case = "two links";
	for (round = 0; round < 2000; round++) {
		u64 known = tx.prod.pos;
		u16 known_seq = tx.seq;

		/* In the old link's queue; the first of them has arrived, for all that the sender knows. */
		for (i = 0; i < 3; i++) {
			now.written += (round * 7919 + i * 104729) % (SIZE / 6) + 1;
			smc_cdc_build(&tx, &acked, &now, &u);
			smc_cdc_sent(&tx, &u);
			old[i] = (struct sent){ u.msg, u.prod.pos };
		}
		for (i = 0; i < round % 4; i++)
			CHECK(receive(&rx, &old[i].msg));
		CHECK_EQ(smc_cdc_is_gap(&rx, old[0].msg.seq), round % 4 == 0);
		CHECK(!smc_cdc_is_gap(&rx, known_seq));
		smc_cdc_rewind(&tx, round % 2 ? old[0].end : known, SIZE);
		now.written += round % 3;
		smc_cdc_build(&tx, &acked, &now, &u);
		smc_cdc_sent(&tx, &u);
		CHECK_EQ(u.msg.seq, (u16)(old[2].msg.seq + 1));
		CHECK(receive(&rx, &u.msg));
		before = rx.prod.pos;
		CHECK_EQ(before, now.written);
		for (; i < 3; i++)
			CHECK(!receive(&rx, &old[i].msg));
		CHECK_EQ(rx.prod.pos, before);
		acked.cons.pos = before;
	}
}

static const struct {
	const char *name;
	u32 prod, written, urgent, limit, end;
	enum { OPEN, CLOSED, ABORTED } state;
} limits[] = {
	{ "no limit", 10, 700, 0, 0, 700, OPEN },
	{ "up to it", 10, 700, 0, 700, 700, OPEN },
	{ "beyond it", 10, 701, 0, 700, 700, OPEN },
	{ "nothing more", 700, 900, 0, 700, 700, OPEN },
	{ "the peer has read beyond it", 705, 900, 0, 700, 705, OPEN },
	{ "an urgent byte before it", 10, 900, 500, 700, 500, OPEN },
	{ "an urgent byte beyond it", 10, 900, 800, 700, 700, OPEN },
	{ "the end of the data beyond it", 10, 900, 0, 700, 700, CLOSED },
	{ "an aborted connection", 10, 900, 0, 700, 10, ABORTED },
};

/* Data that was sent by a link that is lost may be late: until then, no place of the ring is used again. */
static void limited(void)
{
	struct smc_cdc_tx twice = {};
	size_t i;

	for (i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		struct smc_cdc_tx tx = { .prod = track(limits[i].prod, (u16)(limits[i].prod / SIZE), limits[i].prod % SIZE) };
		const struct smc_cdc_rx rx = { .cons.pos = limits[i].prod, .state = limits[i].state == ABORTED ? SMC_CDC_ABORT : 0 };
		struct smc_cdc_now now = { .written = limits[i].written, .urgent = limits[i].urgent, .tx_size = SIZE, .rx_size = SIZE,
					   .close_flags = SMC_CDC_DONE };
		struct smc_cdc_update u;

		check_case = limits[i].name;
		if (limits[i].limit)
			smc_cdc_limit(&tx, limits[i].limit - SIZE, SIZE);
		if (limits[i].state == CLOSED) {
			tx.prod.pos = limits[i].written;
			smc_cdc_stop(&tx);
			tx.prod.pos = limits[i].prod;
		}
		CHECK_EQ(smc_cdc_sendable_end(&tx, &rx, now.written, now.urgent), limits[i].end);
		/* While data is held back, so is the flag that says that all was reported. */
		smc_cdc_build(&tx, &rx, &now, &u);
		CHECK_EQ(u.prod.pos, limits[i].end);
		if (limits[i].state == OPEN)
			CHECK_EQ(u.msg.state, limits[i].end == limits[i].written ? SMC_CDC_DONE : 0);
	}
	check_case = "a second link is lost";
	smc_cdc_limit(&twice, 10, SIZE);
	smc_cdc_limit(&twice, 20, SIZE);
	CHECK_EQ(twice.limit, 10 + SIZE);
}

const struct test failover_tests[] = {
	{ "rewinding", rewinding }, { "catching up", catching_up }, { "ended", ended },
	{ "urgent again", urgent_again }, { "most sent", most_sent },
	{ "limited", limited }, { "order", order }, { "two links", two_links }, { NULL, NULL },
};
