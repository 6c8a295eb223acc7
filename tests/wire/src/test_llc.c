// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "llc.h"
#include "llc_lists.h"

/*
 * A message whose byte at i is i, with 0x80 added from offset 44 on, except for the first four
 * bytes.
 */
static void count_up(u8 *buf, size_t len, u32 head)
{
	size_t i;

	for (i = 0; i < len; i++)
		buf[i] = (u8)(i < SMC_LLC_LEN ? i : i + 0x80);
	smc_put_be32(buf, head);
}

#define MAC	{ 4, 5, 6, 7, 8, 9 }
#define GID(n)	{ (n), (n) + 1, (n) + 2, (n) + 3, (n) + 4, (n) + 5, (n) + 6, (n) + 7, \
		  (n) + 8, (n) + 9, (n) + 10, (n) + 11, (n) + 12, (n) + 13, (n) + 14, (n) + 15 }
#define CONFIRM(...) \
	.confirm_link = { \
		.mac = MAC, .gid = GID(10), .qpn = 0x1a1b1c, .link = 0x1d, \
		.user_id = { 0x1e, 0x1f, 0x20, 0x21 }, .max_links = 0x22, __VA_ARGS__ \
	}
#define ADD(...) \
	.add_link = { \
		.mac = MAC, .gid = GID(12), .qpn = 0x1c1d1e, .link = 0x1f, .mtu_code = 3, \
		.psn = 0x212223, __VA_ARGS__ \
	}

/* Each field is at its place and nowhere else; reserved bytes are neither read nor set. */
static const struct {
	const char *name;
	int length;
	u32 head;		/* with bits that are reserved */
	u32 head_again;		/* without */
	u8 set[3][2];		/* bytes and their meaning, where counting up does not work */
	u8 zero[4][2];		/* from, to: reserved bytes */
	struct smc_llc want;
} fields[] = {
	{
		"confirm link", 44, 0x012cff7d, 0x012c0003, { { 0 } }, { { 35, 44 } },
		{ 1, 1, .length = 44, CONFIRM(.no_eyecatcher = true) },
	}, {
		"confirm link, eye catcher", 44, 0x012c00fc, 0x012c0080, { { 0 } }, { { 35, 44 } },
		{ 1, 1, .response = true, .length = 44, CONFIRM() },
	}, {
		"confirm link v2", 44, 0x21002c02, 0x21002c03, { { 0 } }, { { 36, 44 } },
		{ 1, 2, .length = 44, CONFIRM(.max_conns = 0x23, .no_eyecatcher = true) },
	}, {
		"add link", 44, 0x022cff3f, 0x022c0000, { { 32, 0xf3 } },
		{ { 10, 12 }, { 36, 44 } },
		{ 2, 1, .length = 44, ADD() },
	}, {
		"add link rejected", 44, 0x022cfeff, 0x022c0ec0, { { 32, 0xf3 } },
		{ { 10, 12 }, { 36, 44 } },
		{ 2, 1, .response = true, .length = 44, ADD(.reject = true, .reason = 14) },
	}, {
		"add link v2", 104, 0x22006800, 0x22006800, { { 32, 0xf3 }, { 70, 0 }, { 71, 2 } },
		{ { 10, 12 }, { 36, 44 }, { 45, 46 }, { 62, 70 } },
		{ 2, 2, .length = 104,
		  ADD(.has_ext = true, .direct = true, .target_gid = GID(0xae), .n_pairs = 2) },
	}, {
		"add link v2 rejected", 44, 0x222c00fe, 0x222c00ce, { { 32, 0xf3 } },
		{ { 10, 12 }, { 36, 44 } },
		{ 2, 2, true, true, 44, ADD(.reject = true, .reason = 14) },
	}, {
		"continuation", 44, 0x032cffff, 0x032c0080, { { 0 } }, { { 6, 8 }, { 40, 44 } },
		{ 3, 1, .response = true, .length = 44, .add_link_continuation = { 4, 5 } },
	}, {
		"delete link, all", 44, 0x042cffdf, 0x042c00c0, { { 0 } }, { { 9, 44 } },
		{ 4, 1, .response = true, .length = 44,
		  .delete_link = { true, false, 4, 0x05060708 } },
	}, {
		"delete link, orderly", 44, 0x24002c3f, 0x24002c20, { { 0 } }, { { 9, 44 } },
		{ 4, 2, .length = 44, .delete_link = { false, true, 4, 0x05060708 } },
	}, {
		"request add link", 60, 0x253c007f, 0x253c0000, { { 24, 2 } },
		{ { 4, 24 }, { 25, 28 } },
		{ 5, 2, .swapped = true, .length = 60, .request_add_link = { 2 } },
	}, {
		"confirm rkey", 44, 0x062cffaf, 0x062c00a0, { { 0 } }, { { 43, 44 } },
		{ 6, 1, .response = true, .length = 44, .confirm_rkey = {
			true, false, 0x05060708, 0x090a0b0c0d0e0f10, 4, {
				{ 0x11, 0x12131415, 0x161718191a1b1c1d },
				{ 0x1e, 0x1f202122, 0x232425262728292a },
			} } },
	}, {
		"confirm rkey, retry", 44, 0x26002c5f, 0x26002c10, { { 4, 1 } }, { { 30, 44 } },
		{ 6, 2, .length = 44, .confirm_rkey = {
			false, true, 0x05060708, 0x090a0b0c0d0e0f10, 1, {
				{ 0x11, 0x12131415, 0x161718191a1b1c1d },
			} } },
	}, {
		"confirm rkey continuation", 44, 0x082cffff, 0x082c00b0, { { 0 } }, { { 0 } },
		{ 8, 1, .response = true, .length = 44, .confirm_rkey = {
			true, true, 0, 0, 4, {
				{ 0x05, 0x06070809, 0x0a0b0c0d0e0f1011 },
				{ 0x12, 0x13141516, 0x1718191a1b1c1d1e },
				{ 0x1f, 0x20212223, 0x2425262728292a2b },
			} } },
	}, {
		"test link", 44, 0x27002c7f, 0x27002c00, { { 0 } }, { { 20, 44 } },
		{ 7, 2, .length = 44, .test_link = { GID(4) } },
	}, {
		"delete rkey", 44, 0x092cffff, 0x092c00a0, { { 0 } }, { { 6, 8 }, { 24, 44 } },
		{ 9, 1, .response = true, .length = 44, .delete_rkey = { true, 4, 5 } },
	}, {
		"delete rkey v2", 48, 0x2930005f, 0x29300000, { { 4, 10 } }, { { 6, 8 } },
		{ 9, 2, .swapped = true, .length = 48, .delete_rkey = { false, 10, 5 } },
	},
};

static void each_field(void)
{
	u8 buf[104], again[104];
	struct smc_llc m;
	size_t i, j;

	for (i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		size_t len = (size_t)fields[i].length;

		check_case = fields[i].name;
		count_up(buf, len, fields[i].head);
		for (j = 0; j < 3 && fields[i].set[j][0]; j++)
			buf[fields[i].set[j][0]] = fields[i].set[j][1];
		CHECK_EQ(decode_llc(buf, len, &m), 0);
		CHECK(!memcmp(&m, &fields[i].want, sizeof(m)));
		memset(again, 0xa5, sizeof(again));
		CHECK_EQ(smc_llc_encode(&m, again, sizeof(again)), len);
		llc_copy_lists(&m, buf, &m, again);
		smc_put_be32(buf, fields[i].head_again);
		if (m.type == SMC_LLC_ADD_LINK) {
			buf[32] &= 0x0f;
			if (m.add_link.has_ext)
				buf[44] &= 0x80;
		}
		for (j = 0; j < 4 && fields[i].zero[j][0]; j++)
			memset(buf + fields[i].zero[j][0], 0,
			       (size_t)(fields[i].zero[j][1] - fields[i].zero[j][0]));
		CHECK(!memcmp(again, buf, len));
	}
}

static void entries(void)
{
	struct smc_llc_pair pair;
	struct smc_llc m;
	u8 buf[104], gid[16];
	u32 rkey;

	count_up(buf, 44, 0x032c0000);
	CHECK_EQ(decode_llc(buf, 44, &m), 0);
	CHECK(smc_llc_pair_at(&m, buf, 0, &pair) && pair.known == 0x08090a0b);
	CHECK(pair.rkey == 0x0c0d0e0f && pair.addr == 0x1011121314151617);
	CHECK(smc_llc_pair_at(&m, buf, 1, &pair) && pair.known == 0x18191a1b);
	CHECK(pair.rkey == 0x1c1d1e1f && pair.addr == 0x2021222324252627);
	CHECK(!smc_llc_pair_at(&m, buf, 2, &pair));
	CHECK(!smc_llc_gid_at(&m, buf, 0, gid) && !smc_llc_rkey_at(&m, buf, 0, &rkey));

	count_up(buf, 104, 0x22006800);
	smc_put_be16(buf + 70, 2);
	CHECK_EQ(decode_llc(buf, 104, &m), 0);
	CHECK(smc_llc_pair_at(&m, buf, 0, &pair) && pair.known == 0xc8c9cacb);
	CHECK(pair.rkey == 0xcccdcecf && pair.addr == 0xd0d1d2d3d4d5d6d7);
	CHECK(smc_llc_pair_at(&m, buf, 1, &pair) && pair.known == 0xd8d9dadb);
	CHECK(!smc_llc_pair_at(&m, buf, 2, &pair));
	CHECK(!smc_llc_gid_at(&m, buf, 0, gid) && !smc_llc_rkey_at(&m, buf, 0, &rkey));

	count_up(buf, 60, 0x25003c00);
	buf[24] = 2;
	CHECK_EQ(decode_llc(buf, 60, &m), 0);
	CHECK(smc_llc_gid_at(&m, buf, 0, gid) && gid[0] == 28 && gid[15] == 43);
	CHECK(smc_llc_gid_at(&m, buf, 1, gid) && gid[0] == 0xac && gid[15] == 0xbb);
	CHECK(!smc_llc_gid_at(&m, buf, 2, gid));
	CHECK(!smc_llc_pair_at(&m, buf, 0, &pair) && !smc_llc_rkey_at(&m, buf, 0, &rkey));

	count_up(buf, 48, 0x29003000);
	buf[4] = 10;
	CHECK_EQ(decode_llc(buf, 48, &m), 0);
	CHECK(smc_llc_rkey_at(&m, buf, 0, &rkey) && rkey == 0x08090a0b);
	CHECK(smc_llc_rkey_at(&m, buf, 8, &rkey) && rkey == 0x28292a2b);
	CHECK(smc_llc_rkey_at(&m, buf, 9, &rkey) && rkey == 0xacadaeaf);
	CHECK(!smc_llc_rkey_at(&m, buf, 10, &rkey));
	CHECK(!smc_llc_pair_at(&m, buf, 0, &pair) && !smc_llc_gid_at(&m, buf, 0, gid));
}

/* Each first byte, with a length of version 1 and one of version 2. */
static void types(void)
{
	u8 buf[SMC_LLC_LEN] = { 0 };
	struct smc_llc m;
	int t;

	for (t = 0; t < 256; t++) {
		bool v1 = t >= 1 && t <= 9 && t != 5;
		bool v2 = t >= 0x21 && t <= 0x29 && t != 0x23 && t != 0x28;
		int unknown = t >= 0x80 && t < 0xc0 ? -ENOMSG : -EPROTO;

		buf[0] = (u8)t;
		buf[1] = 44;
		buf[2] = 0;
		CHECK_EQ(decode_llc(buf, sizeof(buf), &m), v1 || v2 ? 0 : unknown);
		if (v1 || v2)
			CHECK(m.type == (t & 0xf) && m.version == (v1 ? 1 : 2) && m.swapped == v2);
		buf[1] = 0;
		buf[2] = 44;
		CHECK_EQ(decode_llc(buf, sizeof(buf), &m), v2 ? 0 : unknown);
		if (v2)
			CHECK(m.type == (t & 0xf) && m.version == 2 && !m.swapped);
	}
}

/* Bytes after a message of version 1 are not part of it. */
static void length_v1(void)
{
	u8 buf[100] = { 7, 44 };
	struct smc_llc m;
	int l;

	for (l = 0; l < 44; l++)
		CHECK_EQ(decode_llc(buf, (size_t)l, &m), -EPROTO);
	for (l = 44; l <= 100; l++) {
		CHECK_EQ(decode_llc(buf, (size_t)l, &m), 0);
		CHECK_EQ(m.length, 44);
	}
	for (l = 0; l < 256; l++) {
		buf[1] = (u8)l;
		CHECK_EQ(decode_llc(buf, sizeof(buf), &m), l == 44 ? 0 : -EPROTO);
	}
}

static const struct {
	const char *name;
	size_t len;
	u8 high, low;		/* bytes 1 and 2 */
	int length;		/* or -EPROTO */
	bool swapped;
} lengths[] = {
	{ "shortest", 44, 0, 44, 44, false },
	{ "shortest, swapped", 44, 44, 0, 44, true },
	{ "shorter", 44, 0, 43, -EPROTO, false },
	{ "shorter, swapped", 44, 43, 0, -EPROTO, false },
	{ "nothing", 44, 0, 0, -EPROTO, false },
	{ "longer than it is", 44, 0, 45, -EPROTO, false },
	{ "longer than it is, swapped", 44, 45, 0, -EPROTO, false },
	{ "of version 1, kind of", 44, 44, 1, -EPROTO, false },
	{ "long", 88, 0, 88, 88, false },
	{ "long, swapped", 88, 88, 0, 88, true },
	{ "more behind", 88, 0, 44, 44, false },
	{ "more behind, swapped", 88, 44, 0, 44, true },
	{ "cut", 87, 0, 88, -EPROTO, false },
	{ "cut, swapped", 87, 88, 0, -EPROTO, false },
	{ "longest", SMC_LLC_MAX, 0x20, 0, 8192, false },
	{ "longest, swapped", SMC_LLC_MAX, 0, 0x20, 8192, true },
	{ "both can be, the longer", 2312, 9, 8, 2312, false },
	{ "both can be, the longer, swapped", 2312, 8, 9, 2312, true },
	{ "both can be, the shorter", 2057, 8, 9, 2057, false },
	{ "both can be, the shorter, swapped", 2057, 9, 8, 2057, true },
	{ "both can be, neither is all", 2313, 9, 8, -EPROTO, false },
	{ "alike in both orders", 1028, 4, 4, 1028, false },
	{ "alike in both orders, more behind", 1029, 4, 4, -EPROTO, false },
	{ "44 in the wrong order can be, too", 11264, 0, 44, 11264, true },
};

static void length_v2(void)
{
	static u8 buf[11264];
	struct smc_llc m;
	size_t i;

	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		int length = lengths[i].length;

		check_case = lengths[i].name;
		buf[0] = 0x27;
		buf[1] = lengths[i].high;
		buf[2] = lengths[i].low;
		CHECK_EQ(decode_llc(buf, lengths[i].len, &m), length < 0 ? length : 0);
		if (length < 0)
			continue;
		CHECK_EQ(m.length, length);
		CHECK_EQ(m.swapped, lengths[i].swapped);
	}
}

static const struct {
	const char *name;
	size_t len;
	u8 type, high, low, flags;
	int result;
} sent_back[] = {
	{ "a long ADD LINK", 44, 0x22, 0, 232, 0x80, -ENOMSG },
	{ "a long ADD LINK, swapped", 44, 0x22, 232, 0, 0x80, -ENOMSG },
	{ "the longest", 44, 0x22, 0x20, 0, 0x80, -ENOMSG },
	{ "longer than any", 44, 0x22, 0x20, 0x20, 0x80, -EPROTO },
	{ "not a response", 44, 0x22, 232, 0, 0, -EPROTO },
	{ "another message", 44, 0x24, 232, 0, 0x80, -EPROTO },
	{ "of version 1", 44, 0x02, 232, 0, 0x80, -EPROTO },
	{ "more than the first 44 bytes", 48, 0x22, 232, 0, 0x80, -EPROTO },
	{ "a refusal of 44 bytes", 44, 0x22, 44, 0, 0xc0, 0 },
};

/* An ADD LINK that a stock client sends back is discarded, and no other message. */
static void add_link_sent_back(void)
{
	struct smc_llc m;
	size_t i;

	for (i = 0; i < sizeof(sent_back) / sizeof(sent_back[0]); i++) {
		u8 buf[48] = { sent_back[i].type, sent_back[i].high, sent_back[i].low, sent_back[i].flags };

		check_case = sent_back[i].name;
		CHECK_EQ(decode_llc(buf, sent_back[i].len, &m), sent_back[i].result);
	}
}

static const struct llc_sample *find(const char *name)
{
	unsigned int i;

	for (i = 0; i < n_llc_samples; i++) {
		if (!strcmp(llc_samples[i].name, name))
			return &llc_samples[i];
	}
	CHECK(!"no sample of that name");
	exit(1);
}

/*
 * Half of an extension is an error, a missing one is not; a rejection has none, whatever its
 * length.
 */
static void extension(void)
{
	u8 buf[SMC_LLC_MAX];
	struct smc_llc m;
	int l;

	llc_sample_encode(find("Add Link (v2), 0 pairs"), buf, sizeof(buf));
	for (l = 44; l <= 72; l++) {
		buf[2] = (u8)l;
		buf[3] = 0;
		CHECK_EQ(decode_llc(buf, (size_t)l, &m), l > 44 && l < 72 ? -EPROTO : 0);
		if (l == 44 || l == 72)
			CHECK_EQ(m.add_link.has_ext, l == 72);
		buf[3] = 0xc0;
		CHECK_EQ(decode_llc(buf, (size_t)l, &m), 0);
		CHECK(m.add_link.reject && !m.add_link.has_ext);
	}
}

static const struct {
	const char *name;
	size_t room;
	u8 high, low;		/* the count */
	unsigned int n;
} counts[] = {
	{ "none", 0, 0, 0, 0 },
	{ "none, but room", 3, 0, 0, 0 },
	{ "none, and a length of no order", 124, 0, 0, 0 },
	{ "as many as there is room for", 3, 0, 3, 3 },
	{ "as many, swapped", 3, 3, 0, 3 },
	{ "less", 3, 0, 1, 1 },
	{ "less, swapped", 3, 1, 0, 1 },
	{ "more", 3, 0, 255, 3 },
	{ "more, swapped", 3, 255, 0, 3 },
	{ "more, no room", 0, 0, 1, 0 },
	{ "far more", 3, 255, 255, 3 },
	{ "all but one", 254, 0, 255, 254 },
	{ "most", 255, 0, 255, 255 },
	{ "most, swapped", 255, 255, 0, 255 },
	{ "more than there can be", 300, 2, 3, 255 },
};

/* The count may be in an order of its own, and may be wrong. */
static void pair_counts(void)
{
	u8 buf[SMC_LLC_MAX] = { 0x22 };
	struct smc_llc m;
	size_t i, more;

	for (i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		check_case = counts[i].name;
		buf[70] = counts[i].high;
		buf[71] = counts[i].low;
		/* a rest shorter than an entry is no entry */
		for (more = 0; more < 16; more += 15) {
			size_t len = 72 + counts[i].room * 16 + more;

			smc_put_be16(buf + 1, (u16)len);
			CHECK_EQ(decode_llc(buf, len, &m), 0);
			CHECK_EQ(m.add_link.n_pairs, counts[i].n);
			CHECK(!m.swapped);
		}
	}
}

/* The number of keys in DELETE RKEY and REQUEST ADD LINK must not exceed the room in the message. */
static void other_counts(void)
{
	u8 buf[SMC_LLC_MAX] = { 0 };
	struct smc_llc m;
	unsigned int n;
	u32 rkey;

	for (n = 0; n < 256; n++) {
		smc_put_be32(buf, 0x092c0000);
		buf[4] = (u8)n;
		CHECK_EQ(decode_llc(buf, 44, &m), n <= 8 ? 0 : -EPROTO);
		buf[3] = 0x80;
		CHECK_EQ(decode_llc(buf, 44, &m), n <= 8 ? 0 : -EPROTO);
		smc_put_be32(buf, 0x29002c00);
		CHECK_EQ(decode_llc(buf, 44, &m), n <= 9 ? 0 : -EPROTO);
		smc_put_be32(buf, 0x29003300);
		CHECK_EQ(decode_llc(buf, 51, &m), n <= 10 ? 0 : -EPROTO);
		/* a response need not have them, and so does not have those beyond it */
		smc_put_be32(buf, 0x29002c80);
		CHECK_EQ(decode_llc(buf, 44, &m), 0);
		CHECK_EQ(m.delete_rkey.n_rkeys, n);
		CHECK_EQ(smc_llc_rkey_at(&m, buf, 8, &rkey), n > 8);
		CHECK(!smc_llc_rkey_at(&m, buf, 9, &rkey));
		buf[4] = 0;

		buf[24] = (u8)n;
		smc_put_be32(buf, 0x25002c00);
		CHECK_EQ(decode_llc(buf, 44, &m), n <= 1 ? 0 : -EPROTO);
		smc_put_be32(buf, 0x25004b00);
		CHECK_EQ(decode_llc(buf, 75, &m), n <= 2 ? 0 : -EPROTO);
		buf[24] = 0;
	}
}

/* The number of other links is limited by the space, whatever the message announces. */
static void others(void)
{
	u8 buf[SMC_LLC_LEN], again[SMC_LLC_LEN];
	struct smc_llc m;
	unsigned int n;

	for (n = 0; n < 256; n++) {
		count_up(buf, sizeof(buf), 0x062c0000);
		buf[4] = (u8)n;
		CHECK_EQ(decode_llc(buf, sizeof(buf), &m), 0);
		CHECK_EQ(m.confirm_rkey.left, n);
		CHECK_EQ(m.confirm_rkey.others[0].link, n > 0 ? 0x11 : 0);
		CHECK_EQ(m.confirm_rkey.others[1].link, n > 1 ? 0x1e : 0);
		CHECK_EQ(m.confirm_rkey.others[2].link, 0);
		/* the fields of an absent entry are not written */
		m.confirm_rkey.others[n < 2 ? n : 2].link = 1;
		CHECK_EQ(smc_llc_encode(&m, again, sizeof(again)), 44);
		CHECK(n > 0 || !again[17]);
		CHECK(n > 1 || !again[30]);
		buf[0] = 8;
		CHECK_EQ(decode_llc(buf, sizeof(buf), &m), 0);
		CHECK_EQ(m.confirm_rkey.others[0].link, n > 0 ? 0x05 : 0);
		CHECK_EQ(m.confirm_rkey.others[1].link, n > 1 ? 0x12 : 0);
		CHECK_EQ(m.confirm_rkey.others[2].link, n > 2 ? 0x1f : 0);
	}
}

#define CHANGE(name, statement) \
	static void name(struct smc_llc *m) { statement; }

CHANGE(type_0, m->type = 0)
CHANGE(type_10, m->type = 10)
CHANGE(version_0, m->version = 0)
CHANGE(version_1, m->version = 1)
CHANGE(version_2, m->version = 2)
CHANGE(version_3, m->version = 3)
CHANGE(confirm_qpn, m->confirm_link.qpn = 1 << 24)
CHANGE(confirm_largest, m->confirm_link.qpn = 0xffffff)
CHANGE(conns, m->confirm_link.max_conns = 1)
CHANGE(add_qpn, m->add_link.qpn = 1 << 24)
CHANGE(psn, m->add_link.psn = 1 << 24)
CHANGE(mtu, m->add_link.mtu_code = 16)
CHANGE(add_largest, m->add_link.qpn = m->add_link.psn = 0xffffff; m->add_link.mtu_code = 15)
CHANGE(reason_0, m->add_link.reason = 0)
CHANGE(reason_1, m->add_link.reason = 1)
CHANGE(reason_16, m->add_link.reason = 16)
CHANGE(no_reject, m->add_link.reject = false)
CHANGE(reject, m->add_link.reject = true)
CHANGE(ext, m->add_link.has_ext = true)
CHANGE(no_ext, m->add_link.has_ext = false)
CHANGE(plain, m->add_link.has_ext = false; m->add_link.reject = true)
CHANGE(plain_v1, m->add_link.has_ext = false; m->version = 1)
CHANGE(keys_9, m->delete_rkey.n_rkeys = 9)

static const struct {
	const char *name;
	void (*change)(struct smc_llc *m);
	bool taken;
} changes[] = {
	{ "Test Link", type_0, false }, { "Test Link", type_10, false },
	{ "Test Link", version_0, false }, { "Test Link", version_2, true },
	{ "Test Link", version_3, false },
	{ "Confirm Link", confirm_qpn, false }, { "Confirm Link", confirm_largest, true },
	{ "Confirm Link", conns, false },
	{ "Confirm Link", version_2, true }, { "Confirm Link (v2)", version_1, false },
	{ "Add Link", add_qpn, false }, { "Add Link", psn, false }, { "Add Link", mtu, false },
	{ "Add Link", add_largest, true },
	{ "Add Link", reason_1, false }, { "Add Link", reject, true }, { "Add Link", ext, false },
	{ "Add Link", version_2, false },
	{ "Add Link(Resp), MTU", reason_0, true }, { "Add Link(Resp), MTU", reason_16, false },
	{ "Add Link(Resp), MTU", no_reject, false },
	{ "Add Link (v2), 0 pairs", no_ext, false }, { "Add Link (v2), 0 pairs", reject, false },
	{ "Add Link (v2), 0 pairs", version_1, false },
	{ "Add Link (v2), 1 pair", plain, false }, { "Add Link (v2), 1 pair", plain_v1, false },
	{ "Add Link (v2), 0 pairs", plain_v1, true },
	{ "Add Link (v2)(Resp), no path", reason_16, false },
	{ "Add Link (v2)(Resp), no path", ext, false },
	{ "Add Link (v2)(Resp), no path", version_1, true },
	{ "Add Link Continuous, one", version_2, false },
	{ "Request Add Link (v2), 2 GIDs", version_1, false },
	{ "Confirm Rkey", version_2, true }, { "Confirm Rkey Continuous", version_2, false },
	{ "Delete Rkey", keys_9, false }, { "Delete Rkey", version_2, true },
	{ "Delete Rkey (v2), 9 keys", version_1, false },
	{ "Delete Rkey (v2), 10 keys", keys_9, true },
};

static void encode_refuses(void)
{
	u8 buf[SMC_LLC_MAX];
	size_t i;

	for (i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		struct smc_llc m = find(changes[i].name)->m;
		int rc;

		changes[i].change(&m);
		rc = smc_llc_encode(&m, buf, sizeof(buf));
		if (changes[i].taken ? rc < 0 : rc != -EINVAL)
			printf("change %zu of %s\n", i, changes[i].name);
		CHECK(changes[i].taken ? rc > 0 : rc == -EINVAL);
	}
}

const struct test llc_tests[] = {
	{ "each field", each_field }, { "entries", entries }, { "types", types },
	{ "length of version 1", length_v1 }, { "length of version 2", length_v2 },
	{ "ADD LINK sent back", add_link_sent_back },
	{ "extension", extension }, { "count of pairs", pair_counts },
	{ "other counts", other_counts }, { "others", others },
	{ "encode refuses", encode_refuses }, { NULL, NULL },
};
