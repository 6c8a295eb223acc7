// SPDX-License-Identifier: Apache-2.0
#include "check.h"

/* Offsets of the parts of the message that sample "everything" gives: 8 prefixes, 8 EIDs. */
enum { PREFIX_OFFSET = 38, AREA = 40, V2_OFFSET = 50, PREFIX = 80, V2 = 224, D2 = 520 };

/* RFC 7609, IPv4: the base, 8 bytes about the subnet, the trailer. Written by hand. */
static const u8 rfc[52] = {
	0xe2, 0xd4, 0xc3, 0xd9, 1, 0, 52, 0x10,
	1, 2, 3, 4, 5, 6, 7, 8,
	0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x50, 0x54, 0, 0xff, 0xfe, 0, 9, 2,
	0x52, 0x54, 0, 0, 9, 2,
	0, 0,
	10, 0, 9, 0, 24, 0, 0, 0,
	0xe2, 0xd4, 0xc3, 0xd9,
};

static int decode(const u8 *buf, size_t len, struct smc_clc_proposal *p)
{
	union message m;
	int rc = decode_as(SMC_CLC_PROPOSAL, buf, len, &m);

	*p = m.proposal;
	return rc;
}

/* The bytes of a sample; fails if there is none of that name. */
static int sample(const char *name, u8 *buf)
{
	unsigned int i;

	for (i = 0; i < n_samples; i++) {
		if (!strcmp(samples[i].name, name))
			return sample_encode(&samples[i], buf, SMC_CLC_MAX);
	}
	CHECK(!"no sample of that name");
	exit(1);
}

/* Decodes a sample with a byte changed. */
static int decode_with(const char *name, size_t at, u8 value)
{
	struct smc_clc_proposal p;
	u8 buf[SMC_CLC_MAX];
	int len = sample(name, buf);

	buf[at] = value;
	return decode(buf, (size_t)len, &p);
}

/* Decodes a sample with a 16-bit field changed. */
static int decode_with16(const char *name, size_t at, u16 value, struct smc_clc_proposal *p)
{
	u8 buf[SMC_CLC_MAX];
	int len = sample(name, buf);

	smc_put_be16(buf + at, value);
	return decode(buf, (size_t)len, p);
}

static void rfc7609(void)
{
	struct smc_clc_proposal p;
	u8 buf[SMC_CLC_MAX];

	CHECK_EQ(decode(rfc, sizeof(rfc), &p), 0);
	CHECK_EQ(p.version, 1);
	CHECK_EQ(p.path_v1, SMC_PATH_R);
	CHECK_EQ(p.path_v2, SMC_PATH_N);
	CHECK(!memcmp(p.peer_id, rfc + 8, 8) && !memcmp(p.gid, rfc + 16, 16));
	CHECK(!memcmp(p.mac, rfc + 32, 6) && !memcmp(p.subnet, rfc + 40, 4));
	CHECK_EQ(p.prefix_len, 24);
	CHECK_EQ(p.n_v6, 0);
	CHECK(p.has_prefix && !p.has_v2 && !p.has_d2);
	CHECK_EQ(smc_clc_proposal_encode(&p, buf, sizeof(buf)), sizeof(rfc));
	CHECK(!memcmp(buf, rfc, sizeof(rfc)));
}

/* Version 1 may leave any room up to 40 bytes before the prefixes, for growth. */
static void growth_area(void)
{
	struct smc_clc_proposal want, p;
	unsigned int room;

	CHECK_EQ(decode(rfc, sizeof(rfc), &want), 0);
	for (room = 0; room <= 41; room++) {
		u8 buf[128];

		memcpy(buf, rfc, 40);
		memset(buf + 40, 0xff, room);
		memcpy(buf + 40 + room, rfc + 40, 12);
		smc_put_be16(buf + 5, (u16)(sizeof(rfc) + room));
		smc_put_be16(buf + PREFIX_OFFSET, (u16)room);
		CHECK_EQ(decode(buf, sizeof(rfc) + room, &p), room <= 40 ? 0 : -EPROTO);
		CHECK(room > 40 || !memcmp(&p, &want, sizeof(p)));
		/* with SMC-D on offer the room is read, if it is all there */
		buf[7] = 0x11;
		CHECK_EQ(decode(buf, sizeof(rfc) + room, &p), room <= 40 ? 0 : -EPROTO);
		CHECK(room > 40 || p.ism_chid == (room == 40 ? 0xffff : 0));
	}
}

static void version1_offers_something(void)
{
	CHECK_EQ(decode_with("PROPOSAL RFC 7609 IPv4", 7, 0x12), -EPROTO);
	CHECK_EQ(decode_with("PROPOSAL RFC 7609 IPv4", 7, 0x1c), 0);
}

/*
 * Zero means SMC-R: a proposal of version 2 without its own paths offers the path that it does not
 * describe.
 */
static void version2_part_missing(void)
{
	CHECK_EQ(decode_with("PROPOSAL R1", 7, 0x28), 0);
	CHECK_EQ(decode_with("PROPOSAL R1", 7, 0x20), -EPROTO);
	CHECK_EQ(decode_with("PROPOSAL R1", 7, 0x24), -EPROTO);
	CHECK_EQ(decode_with("PROPOSAL R1", 7, 0x2c), -EPROTO);
}

/* In version 2 the 40 bytes after the base are there, used or not. */
static void area_missing(void)
{
	struct smc_clc_proposal p;
	u8 buf[sizeof(rfc)];

	memcpy(buf, rfc, sizeof(buf));
	buf[7] = 0x28;
	CHECK_EQ(decode(buf, sizeof(buf), &p), -EPROTO);
}

static void counts(void)
{
	static const char all[] = "PROPOSAL everything";
	unsigned int n;

	for (n = 0; n < 256; n++) {
		int want = n == 8 ? 0 : -EPROTO;

		CHECK_EQ(decode_with(all, PREFIX + 7, (u8)n), want);
		CHECK_EQ(decode_with(all, V2, (u8)n), want);
		CHECK_EQ(decode_with(all, V2 + 1, (u8)n), want);
	}
	/* where SMC-D is not on offer, no entries are read */
	CHECK_EQ(decode_with("PROPOSAL R2", 80 + 1, 9), 0);
}

static void prefix_offset(void)
{
	struct smc_clc_proposal p;

	CHECK_EQ(decode_with16("PROPOSAL R1", PREFIX_OFFSET, 40, &p), 0);
	CHECK_EQ(decode_with16("PROPOSAL R1", PREFIX_OFFSET, 41, &p), -EPROTO);
	CHECK_EQ(decode_with16("PROPOSAL R1", PREFIX_OFFSET, 0xffff, &p), -EPROTO);
	/* another place is taken for SMC-R, although the length counts both */
	CHECK_EQ(decode_with16("PROPOSAL R1", PREFIX_OFFSET, 0, &p), 0);
	CHECK(p.has_prefix && p.prefix_len == 0);
	CHECK_EQ(decode_with16("PROPOSAL R2", PREFIX_OFFSET, 41, &p), -EPROTO);
}

/* SMC-D in version 1 needs offset 40, else neither its device nor version 2 can be found. */
static void prefix_offset_of_d(void)
{
	struct smc_clc_proposal p;
	u8 buf[SMC_CLC_MAX];
	int len = sample("PROPOSAL R1", buf);

	buf[7] = 0x29;
	smc_put_be16(buf + AREA + 8, 0x07c1);
	CHECK_EQ(decode(buf, (size_t)len, &p), 0);
	CHECK_EQ(p.ism_chid, 0x07c1);
	smc_put_be16(buf + PREFIX_OFFSET, 39);
	CHECK_EQ(decode(buf, (size_t)len, &p), 0);
	CHECK_EQ(p.ism_chid, 0);
	CHECK_EQ(decode_with("PROPOSAL everything", PREFIX_OFFSET + 1, 39), -EPROTO);
}

static void v2_offset(void)
{
	static const char name[] = "PROPOSAL R2";
	struct smc_clc_proposal p;

	CHECK_EQ(decode_with16(name, V2_OFFSET, 28, &p), 0);
	CHECK_EQ(decode_with16(name, V2_OFFSET, 0, &p), -EPROTO);
	/* another EID count, so another length */
	CHECK_EQ(decode_with16(name, V2_OFFSET, 29, &p), -EPROTO);
	CHECK_EQ(decode_with16("PROPOSAL everything", V2_OFFSET, 172, &p), 0);
	CHECK_EQ(decode_with16("PROPOSAL everything", V2_OFFSET, 173, &p), -EPROTO);
	CHECK_EQ(decode_with16(name, V2_OFFSET, 172, &p), -EPROTO);
	CHECK_EQ(decode_with16(name, V2_OFFSET, 0xffff, &p), -EPROTO);
}

/* Offsets out of range are refused even if they lead to a plausible part. */
static void v2_offset_bounds(void)
{
	struct smc_clc_proposal p;
	u8 buf[SMC_CLC_MAX];
	int len = sample("PROPOSAL R2", buf);

	/* where offsets 1 and 0 lead: one EID, as the length says */
	buf[V2_OFFSET + 2] = 1;
	smc_put_be16(buf + V2_OFFSET, 1);
	buf[V2_OFFSET + 3] = 1;
	CHECK_EQ(decode(buf, (size_t)len, &p), 0);
	smc_put_be16(buf + V2_OFFSET, 0);
	CHECK_EQ(decode(buf, (size_t)len, &p), -EPROTO);

	len = sample("PROPOSAL everything", buf);
	buf[V2 + 2] = 8;		/* one byte on: eight EIDs, eight entries */
	smc_put_be16(buf + V2_OFFSET, 173);
	CHECK_EQ(decode(buf, (size_t)len, &p), -EPROTO);
}

/* Linux takes a message that offers nothing and then declines; so it must be readable. */
static void offers_nothing(void)
{
	struct smc_clc_proposal p;
	u8 buf[84] = { 0xe2, 0xd4, 0xc3, 0xd9, 1, 0, 84, 0x2a };

	memcpy(buf + 80, rfc, 4);
	CHECK_EQ(decode(buf, sizeof(buf), &p), 0);
	CHECK(!p.has_prefix && !p.has_v2 && !p.has_d2);
}

static void d2_offset(void)
{
	static const char all[] = "PROPOSAL everything";
	struct smc_clc_proposal p;
	u8 buf[SMC_CLC_MAX];

	CHECK_EQ(decode_with16(all, V2 + 6, 288, &p), 0);
	CHECK(p.has_d2 && p.n_gid == 8 && p.gids[7].chid == 0xff00);
	/* counted but absent: SMC-R remains */
	CHECK_EQ(decode_with16(all, V2 + 6, 0, &p), 0);
	CHECK(!p.has_d2 && p.n_gid == 0 && p.path_v2 == SMC_PATH_B);
	CHECK_EQ(smc_clc_proposal_encode(&p, buf, sizeof(buf)), -EINVAL);
	CHECK_EQ(decode_with16(all, V2 + 6, 289, &p), 0);
	CHECK(!p.has_d2);
	/* in range, but it leads beyond this message */
	CHECK_EQ(decode_with16("PROPOSAL D2", 80 + 6, 65, &p), -EPROTO);
	CHECK_EQ(decode_with16("PROPOSAL D2", 80 + 6, 288, &p), -EPROTO);
}

/*
 * Without an IP part, a stock peer still takes byte 47 for its number of IPv6 prefixes. We do not
 * need to, and we never write anything there.
 */
static void ghost_prefixes(void)
{
	struct smc_clc_proposal p;
	u8 buf[SMC_CLC_MAX];
	unsigned int i;

	CHECK_EQ(decode_with16("PROPOSAL D2", AREA + 6, 9, &p), 0);
	CHECK_EQ(p.ism_gid, 9);
	CHECK_EQ(smc_clc_proposal_encode(&p, buf, sizeof(buf)), -EINVAL);
	for (i = 0; i < n_samples; i++) {
		if (!samples[i].proposal || samples[i].proposal->path_v1 != SMC_PATH_N)
			continue;
		check_case = samples[i].name;
		CHECK(sample_encode(&samples[i], buf, sizeof(buf)) > 0);
		CHECK_EQ(smc_get_be16(buf + PREFIX_OFFSET), 0);
		CHECK_EQ(smc_get_be64(buf + AREA), 0);
	}
}

static void largest(void)
{
	u8 buf[SMC_CLC_MAX];

	CHECK_EQ(sample("PROPOSAL everything", buf), SMC_CLC_PROPOSAL_MAX);
	CHECK_EQ(smc_get_be16(buf + PREFIX_OFFSET), 40);
	CHECK_EQ(smc_get_be16(buf + V2_OFFSET), 172);
	CHECK_EQ(smc_get_be16(buf + V2 + 6), 288);
	CHECK(!memcmp(buf + D2, "IBM-SYSZ-ISMSEID", 16));
}

static struct smc_clc_proposal change(const struct smc_clc_proposal *p, size_t at, u8 value)
{
	struct smc_clc_proposal q = *p;

	((u8 *)&q)[at] = value;
	return q;
}

#define REFUSED(of, field, value) do { \
	struct smc_clc_proposal q_ = change(of, offsetof(struct smc_clc_proposal, field), value); \
	CHECK_EQ(smc_clc_proposal_encode(&q_, buf, sizeof(buf)), -EINVAL); \
} while (0)

static void encode_refuses(void)
{
	const struct smc_clc_proposal *all = NULL, *v1 = samples[0].proposal, *d2 = NULL;
	struct smc_clc_proposal q;
	u8 buf[SMC_CLC_MAX];
	unsigned int i;

	for (i = 0; i < n_samples; i++) {
		if (!strcmp(samples[i].name, "PROPOSAL everything"))
			all = samples[i].proposal;
		if (!strcmp(samples[i].name, "PROPOSAL D2"))
			d2 = samples[i].proposal;
	}
	q = change(all, offsetof(struct smc_clc_proposal, version), 15);
	CHECK_EQ(smc_clc_proposal_encode(&q, buf, sizeof(buf)), SMC_CLC_PROPOSAL_MAX);
	REFUSED(all, version, 0);
	REFUSED(all, version, 16);
	REFUSED(all, version, 1);
	REFUSED(all, release, 16);
	REFUSED(all, path_v1, 4);
	REFUSED(all, path_v2, 4);
	REFUSED(all, path_v1, SMC_PATH_N);
	REFUSED(all, path_v2, SMC_PATH_N);
	REFUSED(all, path_v2, SMC_PATH_R);
	REFUSED(all, has_prefix, false);
	REFUSED(all, has_v2, false);
	REFUSED(all, has_d2, false);
	REFUSED(all, n_v6, 9);
	REFUSED(all, n_eid, 9);
	REFUSED(all, n_gid, 9);
	REFUSED(d2, n_v6, 1);
	REFUSED(d2, ism_gid, 1);
	REFUSED(v1, path_v1, SMC_PATH_N);
	REFUSED(v1, path_v2, SMC_PATH_R);
	REFUSED(v1, n_eid, 1);
	REFUSED(v1, n_gid, 1);
}

const struct test proposal_tests[] = {
	{ "RFC 7609", rfc7609 }, { "growth area", growth_area },
	{ "version 1 offers something", version1_offers_something },
	{ "version 2 part missing", version2_part_missing }, { "area missing", area_missing },
	{ "counts", counts }, { "prefix offset", prefix_offset },
	{ "prefix offset of SMC-D", prefix_offset_of_d }, { "v2 offset", v2_offset },
	{ "v2 offset bounds", v2_offset_bounds }, { "offers nothing", offers_nothing },
	{ "d2 offset", d2_offset }, { "ghost prefixes", ghost_prefixes }, { "largest", largest },
	{ "encode refuses", encode_refuses }, { NULL, NULL },
};
