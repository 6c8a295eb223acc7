// SPDX-License-Identifier: Apache-2.0
#include "cdc.h"
#include "check.h"

static const u8 message_r[SMC_CDC_R_LEN] = {
	0xfe, 44, 0x12, 0x34, 0x01, 0x02, 0x03, 0x04, 0, 0,
	0xff, 0xfe, 0x00, 0x01, 0xff, 0xdf, 0, 0,
	0x00, 0x05, 0x00, 0x00, 0x40, 0x01, 0xf8, 0xe0,
};

static const struct smc_cdc meant = {
	.token = 0x01020304, .seq = 0x1234,
	.prod = { 0xfffe, 0x1ffdf }, .cons = { 5, 0x4001 },
	.flags = 0xf8, .state = 0xe0,
};

static void check_same(const struct smc_cdc *got, const struct smc_cdc *want)
{
	CHECK_EQ(got->token, want->token);
	CHECK_EQ(got->seq, want->seq);
	CHECK_EQ(got->prod.wrap, want->prod.wrap);
	CHECK_EQ(got->prod.count, want->prod.count);
	CHECK_EQ(got->cons.wrap, want->cons.wrap);
	CHECK_EQ(got->cons.count, want->cons.count);
	CHECK_EQ(got->flags, want->flags);
	CHECK_EQ(got->state, want->state);
}

static void smcr(void)
{
	u8 buf[SMC_CDC_R_LEN];
	struct smc_cdc c;
	size_t n;

	memset(buf, 0xa5, sizeof(buf));
	smc_cdc_r_encode(&meant, buf);
	CHECK(!memcmp(buf, message_r, sizeof(buf)));
	for (n = 0; n <= SMC_CDC_R_LEN; n++) {
		u8 *copy = exact(message_r, n);

		memset(&c, 0xa5, sizeof(c));
		CHECK_EQ(smc_cdc_r_decode(copy, n, &c), n < SMC_CDC_R_MIN ? -EPROTO : 0);
		if (n >= SMC_CDC_R_MIN)
			check_same(&c, &meant);
		free(copy);
	}
	buf[0] = 0xfd;
	CHECK_EQ(smc_cdc_r_decode(buf, sizeof(buf), &c), -EPROTO);
	buf[0] = 0xfe;
	buf[1] = 43;
	CHECK_EQ(smc_cdc_r_decode(buf, sizeof(buf), &c), -EPROTO);
}

/* Flags beside the producer cursor and the consumer cursor, which may be of different messages. */
static const struct {
	u8 at_prod, at_cons, want;
} beside[] = {
	{ 0x21, 0xf8, 0xf8 },
	{ 0x01, 0xf8, 0xd8 },	/* the urgent byte is of the message before */
	{ 0x21, 0xd8, 0xf8 },	/* or of the one after */
	{ 0x01, 0xd8, 0xd8 },
	{ 0x00, 0xf8, 0xf8 },	/* other peers write 0 */
	{ 0xfe, 0xd8, 0xd8 },
	{ 0xff, 0x80, 0xa0 },	/* no other flag is there */
};

/* The words are in host byte order. The test checks the offsets. */
static void smcd(void)
{
	struct smc_cdc want = meant, c;
	u8 buf[SMC_CDC_D_LEN];
	u16 wrap;
	u32 count;
	u64 word[2];

	memset(buf, 0xa5, sizeof(buf));
	smc_cdc_d_encode(&meant, buf);
	CHECK_EQ(buf[0], 0xfe);
	memcpy(&wrap, buf + 8, 2);
	memcpy(&count, buf + 10, 4);
	CHECK(wrap == 0xfffe && count == 0x1ffdf);
	memcpy(&wrap, buf + 16, 2);
	memcpy(&count, buf + 18, 4);
	CHECK(wrap == 5 && count == 0x4001);
	CHECK(buf[14] == 0x21 && !buf[15] && buf[22] == 0xf8 && buf[23] == 0xe0);
	want.token = 0;
	want.seq = 0;
	buf[15] = 0xff;
	for (size_t i = 0; i < sizeof(beside) / sizeof(beside[0]); i++) {
		buf[14] = beside[i].at_prod;
		buf[22] = beside[i].at_cons;
		want.flags = beside[i].want;
		memcpy(word, buf + 8, sizeof(word));
		memset(&c, 0xa5, sizeof(c));
		smc_cdc_d_decode(word[0], word[1], &c);
		check_same(&c, &want);
	}
}

#define RING 16352u	/* the smallest of SMC-D */
#define BAD (-EPROTO)

static const struct {
	const char *name;
	u64 pos;		/* known */
	struct smc_cursor at;	/* that comes */
	s64 by;
} comes[] = {
	{ "nothing new", 100, { 0, 100 }, 0 },
	{ "a byte", 100, { 0, 101 }, 1 },
	{ "to the last byte", 0, { 0, RING - 1 }, RING - 1 },
	{ "to the ring's end", 100, { 1, 0 }, RING - 100 },
	{ "around", 100, { 1, 50 }, RING - 50 },
	{ "a full ring", 100, { 1, 100 }, RING },
	{ "a full ring from 0", 0, { 1, 0 }, RING },
	{ "more than a full ring", 100, { 1, 101 }, BAD },
	{ "two rounds", 100, { 2, 0 }, BAD },
	{ "half of all rounds", 100, { 0x7fff, 100 }, BAD },
	{ "behind", 100, { 0, 99 }, 0 },
	{ "a round behind", 2 * RING + 100, { 1, 200 }, 0 },
	{ "before the beginning", 100, { 0xffff, 200 }, 0 },
	{ "count of the ring's size", 100, { 0, RING }, BAD },
	{ "count beyond", 100, { 0, 0xffffffff }, BAD },
	{ "count beyond, behind", 100, { 0xffff, RING }, BAD },
	{ "rounds wrap", 0xffffull * RING + 7, { 0, 6 }, RING - 1 },
	{ "rounds have wrapped", 0x10000ull * RING + 7, { 0, 8 }, 1 },
	{ "behind the wrap", 0x10000ull * RING + 7, { 0xffff, 8 }, 0 },
	{ "far", 0x123456789ull * RING + 7, { 0x678a, 7 }, RING },
};

static struct smc_track track(u64 pos)
{
	return (struct smc_track){ .pos = pos, .at = { (u16)(pos / RING), (u32)(pos % RING) } };
}

static void cursors(void)
{
	size_t i;

	for (i = 0; i < sizeof(comes) / sizeof(comes[0]); i++) {
		struct smc_track t = track(comes[i].pos), back = t;
		s64 by = comes[i].by;

		check_case = comes[i].name;
		CHECK_EQ(smc_track_from(&t, comes[i].at, RING), by);
		by = by > 0 ? by : 0;
		CHECK_EQ(t.pos, comes[i].pos + (u64)by);
		smc_track_to(&back, t.pos, RING);
		CHECK(back.at.wrap == t.at.wrap && back.at.count == t.at.count);
		CHECK_EQ(t.at.count, t.pos % RING);
	}
}

const struct test cdc_tests[] = {
	{ "smcr", smcr }, { "smcd", smcd }, { "cursors", cursors }, { NULL, NULL },
};
