// SPDX-License-Identifier: Apache-2.0
#include "check.h"

/* RFC 7609, version 1, written by hand; each byte of a field differs from its neighbours. */
static const u8 rfc[68] = {
	0xe2, 0xd4, 0xc3, 0xd9, 2, 0, 68, 0x18,
	1, 2, 3, 4, 5, 6, 7, 8,
	0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x50, 0x54, 0, 0xff, 0xfe, 0, 9, 2,
	0x52, 0x54, 0, 0, 9, 2,
	0x11, 0x22, 0x33,
	0x44, 0x55, 0x66, 0x77,
	1,
	0x88, 0x99, 0xaa, 0xbb,
	0x53,
	0,
	0xc0, 0xc1, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7,
	0,
	0xd0, 0xd1, 0xd2,
	0xe2, 0xd4, 0xc3, 0xd9,
};

static int decode(const u8 *buf, size_t len, struct smc_clc_accept *a)
{
	union message m;
	int rc = decode_as(SMC_CLC_ACCEPT, buf, len, &m);

	*a = m.accept;
	return rc;
}

static const struct smc_clc_accept *find(const char *name)
{
	unsigned int i;

	for (i = 0; i < n_samples; i++) {
		if (!strcmp(samples[i].name, name))
			return samples[i].accept;
	}
	CHECK(!"no sample of that name");
	exit(1);
}

static size_t encode(const char *name, u8 *buf)
{
	return (size_t)smc_clc_accept_encode(find(name), buf, SMC_CLC_MAX);
}

static void rfc7609(void)
{
	struct smc_clc_accept a;
	u8 buf[SMC_CLC_MAX];

	CHECK_EQ(decode(rfc, sizeof(rfc), &a), 0);
	CHECK(a.version == 1 && a.type == SMC_CLC_ACCEPT && !a.smcd && a.first_contact);
	CHECK(!memcmp(a.peer_id, rfc + 8, 8) && !memcmp(a.gid, rfc + 16, 16));
	CHECK(!memcmp(a.mac, rfc + 32, 6));
	CHECK_EQ(a.qpn, 0x112233);
	CHECK_EQ(a.rkey, 0x44556677);
	CHECK_EQ(a.rmbe_idx, 1);
	CHECK_EQ(a.token, 0x8899aabb);
	CHECK_EQ(a.size_code, 5);
	CHECK_EQ(a.mtu_code, 3);
	CHECK(a.rmb_addr == 0xc0c1c2c3c4c5c6c7);
	CHECK_EQ(a.psn, 0xd0d1d2);
	CHECK(!a.has_fce && !a.n_gids);
	CHECK_EQ(smc_clc_accept_encode(&a, buf, sizeof(buf)), sizeof(rfc));
	CHECK(!memcmp(buf, rfc, sizeof(rfc)));
}

/* The low two bits are the path, in version 2, too. Neither "none" nor "both" is a valid answer. */
static void path(void)
{
	static const struct {
		const char *name;
		bool smcd;
	} cases[] = {
		{ "ACCEPT R1 first", false }, { "ACCEPT D1 first", true },
		{ "CONFIRM R2 later", false }, { "CONFIRM D2 later", true },
	};
	struct smc_clc_accept a;
	u8 buf[SMC_CLC_MAX];
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t len = encode(cases[i].name, buf);
		u8 flags = buf[7] & 0xfc;

		check_case = cases[i].name;
		CHECK_EQ(decode(buf, len, &a), 0);
		CHECK_EQ(a.smcd, cases[i].smcd);
		buf[7] = flags | SMC_PATH_N;
		CHECK_EQ(decode(buf, len, &a), -EPROTO);
		buf[7] = flags | SMC_PATH_B;
		CHECK_EQ(decode(buf, len, &a), -EPROTO);
		/* 0x04 is reserved, not a path */
		buf[7] = flags | 0x04 | (cases[i].smcd ? SMC_PATH_D : SMC_PATH_R);
		CHECK_EQ(decode(buf, len, &a), 0);
		CHECK_EQ(a.smcd, cases[i].smcd);
	}
}

/*
 * If a peer sets the first contact flag without its extension, a stock host reads beyond the
 * message.
 */
static void extension_missing(void)
{
	static const char *const later[] = {
		"ACCEPT R2 later", "CONFIRM R2 later", "CONFIRM D2 later",
	};
	struct smc_clc_accept a;
	u8 buf[SMC_CLC_MAX];
	size_t i;

	for (i = 0; i < 3; i++) {
		size_t len = encode(later[i], buf);

		check_case = later[i];
		buf[7] |= 0x08;
		CHECK_EQ(decode(buf, len, &a), -EPROTO);
	}
}

/* The bytes of the extension, and of the list behind it. */
static void extension_bytes(void)
{
	u8 buf[SMC_CLC_MAX];
	size_t i, len = encode("ACCEPT R2 first", buf);

	CHECK_EQ(len, 160);
	CHECK_EQ(buf[104], 0x80);
	CHECK_EQ(buf[105], 0x21);
	CHECK(!memcmp(buf + 108, "vmb  ", 5));
	CHECK_EQ(buf[140], 255);
	CHECK_EQ(buf[141], 2);
	CHECK_EQ(smc_get_be16(buf + 142), 0x8001);
	CHECK_EQ(smc_get_be32(buf + 144), 0xa1b2c3d4);
	for (i = 148; i < 156; i++)
		CHECK_EQ(buf[i], 0);
	len = encode("CONFIRM R2 first, 2 GIDs", buf);
	CHECK_EQ(smc_get_be32(buf + 156), 0x02000000);
	CHECK(buf[160 + 10] == 0xff && buf[176] == 0xfe && len == 196);
	encode("ACCEPT D2 first", buf);
	CHECK_EQ(smc_get_be32(buf + 74), 0x00210000);
}

/* Release 0 of SMC-D ends its extension early; the longer form of it is read as no more. */
static void extension_of_release_0(void)
{
	struct smc_clc_accept a;
	u8 buf[SMC_CLC_MAX];
	size_t len = encode("ACCEPT D2.0 first", buf);

	CHECK_EQ(len, 114);
	buf[74 + 1] |= 1;	/* release 1, but no room for its fields */
	CHECK_EQ(decode(buf, len, &a), -EPROTO);
	len = encode("CONFIRM D2 first", buf);
	CHECK_EQ(decode(buf, len, &a), 0);
	CHECK(a.release == 1 && a.max_conns && a.features && a.vendor);
	buf[74 + 1] &= 0xf0;
	CHECK_EQ(decode(buf, len, &a), 0);
	CHECK(a.has_fce && !a.release && !a.max_conns && !a.features && !a.vendor);
}

/* A peer truncates a message that is longer than its buffer, so the trailer is lost. */
static void oversized(void)
{
	struct smc_clc_accept want, a;
	u8 buf[SMC_CLC_MAX] = { 0 };
	size_t len = encode("ACCEPT R2 first", buf);

	CHECK_EQ(len, SMC_CLC_ACCEPT_MAX);
	CHECK_EQ(decode(buf, len, &want), 0);
	smc_put_be16(buf + 5, (u16)(len + 100));
	buf[len - 1] = 0;
	CHECK_EQ(decode(buf, len, &a), 0);
	CHECK(!memcmp(&a, &want, sizeof(a)));
	CHECK_EQ(decode(buf, len + 100, &a), -EPROTO);

	len = encode("CONFIRM R2 first, 2 GIDs", buf);
	smc_put_be16(buf + 5, SMC_CLC_CONFIRM_MAX + 1);
	CHECK_EQ(decode(buf, len, &a), -EPROTO);
	CHECK_EQ(decode(buf, SMC_CLC_CONFIRM_MAX, &a), 0);
	CHECK_EQ(a.n_gids, 2);
	buf[156] = 30;		/* the last entry ends at 640 */
	CHECK_EQ(decode(buf, SMC_CLC_CONFIRM_MAX, &a), 0);
	buf[156] = 31;
	CHECK_EQ(decode(buf, SMC_CLC_CONFIRM_MAX, &a), -EPROTO);
}

/* More entries than are kept are no error, more than are there are one. */
static void gid_list(void)
{
	struct smc_clc_accept a;
	u8 buf[SMC_CLC_MAX];
	size_t len = encode("CONFIRM R2 first, 8 GIDs", buf);

	buf[156] = 9;
	CHECK_EQ(decode(buf, len, &a), -EPROTO);
	memcpy(buf + len + 12, buf + len - 4, 4);
	smc_put_be16(buf + 5, (u16)(len + 16));
	CHECK_EQ(decode(buf, len + 16, &a), 0);
	CHECK_EQ(a.n_gids, SMC_CLC_GIDS);
	CHECK_EQ(a.gids[7][15], 9);
	/* in an ACCEPT the same bytes mean nothing */
	buf[4] = SMC_CLC_ACCEPT;
	CHECK_EQ(decode(buf, SMC_CLC_ACCEPT_MAX, &a), 0);
	CHECK_EQ(a.n_gids, 0);
}

/* Linux requires version 1 or later, so later versions are decoded as the latest known version. */
static void later_version(void)
{
	struct smc_clc_accept a;
	u8 buf[SMC_CLC_MAX];
	size_t len = encode("CONFIRM R2 later", buf);

	buf[7] = 0xf0;
	CHECK_EQ(decode(buf, len, &a), 0);
	CHECK_EQ(a.version, 15);
	CHECK(a.eid[0] == 'S');
}

static int encode_with(const char *name, void (*change)(struct smc_clc_accept *a))
{
	struct smc_clc_accept a = *find(name);
	u8 buf[SMC_CLC_MAX];

	change(&a);
	return smc_clc_accept_encode(&a, buf, sizeof(buf));
}

#define CHANGE(name, statement) \
	static void name(struct smc_clc_accept *a) { statement; }

CHANGE(none, (void)a)
CHANGE(bad_type, a->type = SMC_CLC_PROPOSAL)
CHANGE(version_0, a->version = 0)
CHANGE(version_16, a->version = 16)
CHANGE(big_size_code, a->size_code = 16)
CHANGE(big_mtu_code, a->mtu_code = 16)
CHANGE(big_qpn, a->qpn = 1 << 24)
CHANGE(big_psn, a->psn = 1 << 24)
CHANGE(big_os_type, a->os_type = 16)
CHANGE(big_release, a->release = 16)
CHANGE(no_fce, a->has_fce = false)
CHANGE(not_first, a->first_contact = false)
CHANGE(version_1, a->version = 1)
CHANGE(largest, a->version = a->size_code = a->mtu_code = a->os_type = a->release = 15)
CHANGE(release_0_conns, a->release = 0; a->max_links = 0; a->features = 0; a->vendor = 0)
CHANGE(release_0_links, a->release = 0; a->max_conns = 0; a->features = 0; a->vendor = 0)
CHANGE(release_0_features, a->release = 0; a->max_conns = a->max_links = 0; a->vendor = 0)
CHANGE(release_0_vendor, a->release = 0; a->max_conns = a->max_links = 0; a->features = 0)
CHANGE(nine_gids, a->n_gids = 9)
CHANGE(as_accept, a->type = SMC_CLC_ACCEPT)
CHANGE(as_d, a->smcd = true)

/*
 * The number of receives in the vendor word: the actual number, or the next smaller power of two.
 */
static void vendor_word(void)
{
	static const struct {
		u32 recvs, said;
	} cases[] = { { 0, 0 }, { 1, 0 }, { 2, 2 }, { 3, 2 }, { 16, 16 }, { 48, 32 }, { 2048, 2048 }, { 0xffffffff, 32768 } };
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		u32 vendor = smc_clc_vendor_with_recvs(cases[i].recvs);

		CHECK(smc_clc_vendor_immediate(vendor));
		CHECK_EQ(smc_clc_vendor_recvs(vendor), cases[i].said);
	}
	CHECK(smc_clc_vendor_immediate(SMC_CLC_VENDOR_IMMEDIATE));
	CHECK(smc_clc_vendor_immediate(SMC_CLC_VENDOR_IMMEDIATE | 0x0e));
	CHECK(!smc_clc_vendor_immediate(0));
	CHECK(!smc_clc_vendor_immediate(SMC_CLC_VENDOR_IMMEDIATE & SMC_CLC_VENDOR_OUI));
	CHECK(!smc_clc_vendor_immediate(SMC_CLC_VENDOR_IMMEDIATE ^ 0x100));
	CHECK_EQ(smc_clc_vendor_recvs(0xf0), 0);
	CHECK_EQ(smc_clc_vendor_recvs(SMC_CLC_VENDOR_IMMEDIATE ^ 0xf1), 0);
}

static void encode_refuses(void)
{
	static void (*const changes[])(struct smc_clc_accept *) = {
		bad_type, version_0, version_16, big_size_code, big_mtu_code, big_qpn, big_psn,
		big_os_type, big_release, no_fce, not_first, version_1,
		release_0_conns, release_0_links, release_0_features, release_0_vendor,
		nine_gids, as_accept, as_d,
	};
	static const char name[] = "CONFIRM R2 first, 1 GID";
	size_t i;

	CHECK_EQ(encode_with(name, none), 180);
	CHECK_EQ(encode_with(name, largest), 180);
	for (i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		int rc = encode_with(name, changes[i]);

		if (rc != -EINVAL)
			printf("change %zu is taken\n", i);
		CHECK_EQ(rc, -EINVAL);
	}
}

const struct test accept_tests[] = {
	{ "RFC 7609", rfc7609 }, { "path", path }, { "extension missing", extension_missing },
	{ "extension bytes", extension_bytes },
	{ "extension of release 0", extension_of_release_0 }, { "oversized", oversized },
	{ "GID list", gid_list }, { "later version", later_version },
	{ "vendor word", vendor_word },
	{ "encode refuses", encode_refuses }, { NULL, NULL },
};
