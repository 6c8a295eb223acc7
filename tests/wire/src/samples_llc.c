// SPDX-License-Identifier: Apache-2.0
#include "samples.h"

#define MAC	{ 0x52, 0x54, 0x00, 0x00, 0x09, 0x02 }
#define GID_V1	{ 0xfe, 0x80, [8] = 0x50, 0x54, 0x00, 0xff, 0xfe, 0x00, 0x09, 0x02 }
#define GID_V2	{ [10] = 0xff, 0xff, 10, 0, 9, 2 }

#define V1(t)	.type = SMC_LLC_##t, .version = 1
#define V2(t)	.type = SMC_LLC_##t, .version = 2
#define LE(t)	V2(t), .swapped = true
#define ANSWER	.response = true

#define CONFIRM(gid_, conns) \
	.confirm_link = { \
		.mac = MAC, .gid = gid_, .qpn = 0x123456, .link = 1, .user_id = { 0, 1, 2, 0xff }, \
		.max_links = 2, .max_conns = (conns), .no_eyecatcher = true, \
	}
#define ADD(gid_, ...) \
	.add_link = { \
		.mac = MAC, .gid = gid_, .qpn = 0xfedcba, .link = 2, .mtu_code = 3, \
		.psn = 0x6773f2, __VA_ARGS__ \
	}
#define EXT(n)	.has_ext = true, .direct = true, .target_gid = GID_V2, .n_pairs = (n)
#define KEYS(n, ...) \
	.confirm_rkey = { \
		.left = (n), .rkey = 0x89abcdef, .addr = 0xff2824c2c5130000, \
		.others = { { 1, 0x4c0, 0xff2245e0823e0000 }, { 3, 0x4f3, 0xff2245e0823f0000 } }, \
		__VA_ARGS__ \
	}
#define DELETE_ALL(why) \
	.delete_link = { .all = true, .orderly = true, .reason = (why) }

#define S(n, l, h, ...) { n, l, h, { .length = l, __VA_ARGS__ } }

const struct llc_sample llc_samples[] = {
	S("Confirm Link", 44, 0x012c0003, V1(CONFIRM_LINK), CONFIRM(GID_V1, 0)),
	S("Confirm Link(Resp)", 44, 0x012c0083, V1(CONFIRM_LINK), ANSWER, CONFIRM(GID_V1, 0)),
	S("Add Link", 44, 0x022c0000, V1(ADD_LINK), ADD(GID_V1)),
	S("Add Link(Resp)", 44, 0x022c0080, V1(ADD_LINK), ANSWER, ADD(GID_V1)),
	S("Add Link(Resp), no path", 44, 0x022c01c0, V1(ADD_LINK), ANSWER,
	  ADD(GID_V1, .reject = true, .reason = SMC_LLC_REJECT_PATH)),
	S("Add Link(Resp), MTU", 44, 0x022c02c0, V1(ADD_LINK), ANSWER,
	  ADD(GID_V1, .reject = true, .reason = SMC_LLC_REJECT_MTU)),
	S("Add Link, a client's", 44, 0x022c0000, V1(ADD_LINK),
	  .add_link = { .mac = MAC, .gid = GID_V1 }),
	S("Add Link Continuous, none", 44, 0x032c0000, V1(ADD_LINK_CONTINUATION),
	  .add_link_continuation = { 2, 0 }),
	S("Add Link Continuous, one", 44, 0x032c0000, V1(ADD_LINK_CONTINUATION),
	  .add_link_continuation = { 2, 1 }),
	S("Add Link Continuous(Resp), more", 44, 0x032c0080, V1(ADD_LINK_CONTINUATION), ANSWER,
	  .add_link_continuation = { 2, 255 }),
	S("Delete Link, all", 44, 0x042c0060, V1(DELETE_LINK), DELETE_ALL(SMC_LLC_BY_PROGRAM)),
	S("Delete Link, one", 44, 0x042c0020, V1(DELETE_LINK),
	  .delete_link = { .orderly = true, .link = 2, .reason = SMC_LLC_PATH_LOST }),
	S("Delete Link(Resp)", 44, 0x042c0080, V1(DELETE_LINK), ANSWER,
	  .delete_link = { .link = 2, .reason = SMC_LLC_NO_LINK }),
	S("Confirm Rkey", 44, 0x062c0000, V1(CONFIRM_RKEY), KEYS(2)),
	S("Confirm Rkey(Resp), refused", 44, 0x062c00b0, V1(CONFIRM_RKEY), ANSWER,
	  KEYS(7, .negative = true, .retry = true)),
	S("Confirm Rkey Continuous", 44, 0x082c0000, V1(CONFIRM_RKEY_CONTINUATION),
	  .confirm_rkey = { .left = 5, .others = { { 4, 5, 6 }, { 5, 6, 7 }, { 6, 7, 8 } } }),
	S("Delete Rkey", 44, 0x092c0000, V1(DELETE_RKEY), .delete_rkey = { .n_rkeys = 8 }),
	S("Delete Rkey(Resp), not all", 44, 0x092c00a0, V1(DELETE_RKEY), ANSWER,
	  .delete_rkey = { .negative = true, .n_rkeys = 8, .failed = 0x50 }),
	S("Test Link", 44, 0x072c0000, V1(TEST_LINK), .test_link = { "sixteen bytes.." }),
	S("Test Link(Resp)", 44, 0x072c0080, V1(TEST_LINK), ANSWER,
	  .test_link = { "sixteen bytes.." }),

	S("Confirm Link (v2)", 44, 0x21002c03, V2(CONFIRM_LINK), CONFIRM(GID_V2, 255)),
	S("Confirm Link (v2), swapped", 44, 0x212c0003, LE(CONFIRM_LINK), CONFIRM(GID_V2, 16)),
	S("Add Link (v2), 0 pairs", 72, 0x22004800, V2(ADD_LINK),
	  ADD(GID_V2, .has_ext = true, .target_gid = GID_V2)),
	S("Add Link (v2), 1 pair", 88, 0x22005800, V2(ADD_LINK), ADD(GID_V2, EXT(1))),
	S("Add Link (v2), 124 pairs", 2056, 0x22080800, V2(ADD_LINK), ADD(GID_V2, EXT(124))),
	S("Add Link (v2), 140 pairs", 2312, 0x22090800, V2(ADD_LINK), ADD(GID_V2, EXT(140))),
	S("Add Link (v2), 255 pairs", 4152, 0x22103800, V2(ADD_LINK), ADD(GID_V2, EXT(255))),
	S("Add Link (v2), 1 pair, swapped", 88, 0x22580000, LE(ADD_LINK), ADD(GID_V2, EXT(1))),
	S("Add Link (v2), 124 pairs, swapped", 2056, 0x22080800, LE(ADD_LINK),
	  ADD(GID_V2, EXT(124))),
	S("Add Link (v2), 140 pairs, swapped", 2312, 0x22080900, LE(ADD_LINK),
	  ADD(GID_V2, EXT(140))),
	S("Add Link (v2)(Resp), 255 pairs, swapped", 4152, 0x22381080, LE(ADD_LINK), ANSWER,
	  ADD(GID_V2, EXT(255))),
	S("Add Link (v2)(Resp), no path", 44, 0x22002cc1, V2(ADD_LINK), ANSWER,
	  ADD(GID_V2, .reject = true, .reason = SMC_LLC_REJECT_PATH)),
	S("Add Link (v2)(Resp), no path, swapped", 44, 0x222c00c0, LE(ADD_LINK), ANSWER,
	  ADD(GID_V2, .reject = true)),
	S("Delete Link (v2)", 44, 0x24002c60, V2(DELETE_LINK), DELETE_ALL(SMC_LLC_VIOLATION)),
	S("Request Add Link (v2), 2 GIDs", 60, 0x25003c00, V2(REQUEST_ADD_LINK),
	  .request_add_link = { 2 }),
	S("Request Add Link (v2), 1 GID, swapped", 44, 0x252c0000, LE(REQUEST_ADD_LINK),
	  .request_add_link = { 1 }),
	S("Request Add Link (v2), 255 GIDs, swapped", 4108, 0x250c1000, LE(REQUEST_ADD_LINK),
	  .request_add_link = { 255 }),
	S("Request Add Link (v2)(Resp)", 44, 0x25002c80, V2(REQUEST_ADD_LINK), ANSWER),
	S("Confirm Rkey (v2)", 44, 0x26002c00, V2(CONFIRM_RKEY), KEYS(2)),
	S("Confirm Rkey (v2)(Resp), swapped", 44, 0x262c0080, LE(CONFIRM_RKEY), ANSWER, KEYS(2)),
	S("Test Link (v2)", 44, 0x27002c00, V2(TEST_LINK)),
	S("Delete Rkey (v2), 9 keys", 44, 0x29002c00, V2(DELETE_RKEY),
	  .delete_rkey = { .n_rkeys = 9 }),
	S("Delete Rkey (v2), 10 keys", 48, 0x29003000, V2(DELETE_RKEY),
	  .delete_rkey = { .n_rkeys = 10 }),
	S("Delete Rkey (v2), 254 keys, swapped", 1024, 0x29000400, LE(DELETE_RKEY),
	  .delete_rkey = { .n_rkeys = 254 }),
	S("Delete Rkey (v2), 255 keys", 1028, 0x29040400, V2(DELETE_RKEY),
	  .delete_rkey = { .n_rkeys = 255 }),
	S("Delete Rkey (v2)(Resp), 255 keys", 44, 0x29002ca0, V2(DELETE_RKEY), ANSWER,
	  .delete_rkey = { .negative = true, .n_rkeys = 255, .failed = 3 }),
};

const unsigned int n_llc_samples = sizeof(llc_samples) / sizeof(llc_samples[0]);

/* Entries that differ from each other, as long as there are places for them. */
static void fill(const struct smc_llc *m, u8 *buf)
{
	struct smc_llc_pair pair;
	u8 gid[16] = GID_V2;
	unsigned int i;
	u32 rkey;

	for (i = 0; smc_llc_pair_at(m, buf, i, &pair); i++) {
		pair.known = 0x80000001 + i;
		pair.rkey = 0x40000100 + i;
		pair.addr = 0xff2824c2c5130000 + (u64)i * 0x10000;
		smc_llc_pair_set(buf, i, &pair);
	}
	for (i = 0; smc_llc_gid_at(m, buf, i, gid); i++) {
		gid[0] = 0xfe;
		gid[15] = (u8)i;
		smc_llc_gid_set(buf, i, gid);
	}
	for (i = 0; smc_llc_rkey_at(m, buf, i, &rkey); i++)
		smc_llc_rkey_set(buf, i, 0x20000001 + i);
}

int llc_sample_encode(const struct llc_sample *s, u8 *buf, size_t size)
{
	int len = smc_llc_encode(&s->m, buf, size);

	if (len > 0)
		fill(&s->m, buf);
	return len;
}
