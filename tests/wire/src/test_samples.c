// SPDX-License-Identifier: Apache-2.0
/* Properties of every message, independent of its type. */
#include "check.h"

static const u8 trailer[] = { 0xe2, 0xd4, 0xc3, 0xd9 };

static const void *content(const struct sample *s, size_t *size)
{
	if (s->proposal) {
		*size = sizeof(*s->proposal);
		return s->proposal;
	}
	if (s->accept) {
		*size = sizeof(*s->accept);
		return s->accept;
	}
	*size = sizeof(*s->decline);
	return s->decline;
}

static void each(void (*check)(const struct sample *s, const u8 *buf, int len))
{
	u8 buf[SMC_CLC_MAX];
	unsigned int i;

	for (i = 0; i < n_samples; i++) {
		int len = sample_encode(&samples[i], buf, sizeof(buf));

		check_case = samples[i].name;
		CHECK_EQ(len, samples[i].length);
		if (len > 0)
			check(&samples[i], buf, len);
	}
}

static void round_trip_one(const struct sample *s, const u8 *buf, int len)
{
	u8 again[SMC_CLC_MAX];
	union message m;
	size_t size;
	const void *want = content(s, &size);

	CHECK_EQ(buf[4], s->type);
	CHECK_EQ(buf[7], s->byte7);
	CHECK_EQ(decode_as(s->type, buf, (size_t)len, &m), 0);
	CHECK(!memcmp(&m, want, size));
	CHECK_EQ(encode_as(s->type, &m, again, sizeof(again)), len);
	CHECK(!memcmp(buf, again, (size_t)len));
}

static void round_trip(void)
{
	each(round_trip_one);
}

static void no_space_one(const struct sample *s, const u8 *buf, int len)
{
	int size;

	for (size = 0; size <= len; size++) {
		u8 *block = malloc((size_t)size);

		CHECK_EQ(sample_encode(s, block, (size_t)size), size < len ? -ENOSPC : len);
		if (size == len)
			CHECK(!memcmp(block, buf, (size_t)len));
		free(block);
	}
}

static void no_space(void)
{
	each(no_space_one);
}

static void truncated_one(const struct sample *s, const u8 *buf, int len)
{
	union message m;
	int n;

	for (n = 0; n < len; n++)
		CHECK_EQ(decode_as(s->type, buf, (size_t)n, &m), -EPROTO);
}

static void truncated(void)
{
	each(truncated_one);
}

/* Whether a version 2 ACCEPT or CONFIRM is complete when it is truncated to n bytes and its header corrected. */
static bool whole(const struct smc_clc_accept *a, int n)
{
	int least = a->smcd ? 78 : 108;

	if (!a->has_fce)
		return n >= least;
	if (a->smcd)
		return n >= least + (a->release ? 52 : 36);
	least += 52;
	if (a->type == SMC_CLC_ACCEPT)
		return n >= least;
	/* without the list, which is not read, or with all of it */
	return (n >= least && n < least + 4) || n >= least + 4 + 16 * a->n_gids;
}

static void shortened_one(const struct sample *s, const u8 *buf, int len)
{
	u8 copy[SMC_CLC_MAX];
	union message m;
	int n;

	for (n = 12; n < len; n++) {
		bool ok = s->accept && s->accept->version > 1 && whole(s->accept, n);

		memcpy(copy, buf, (size_t)n);
		smc_put_be16(copy + 5, (u16)n);
		memcpy(copy + n - 4, trailer, sizeof(trailer));
		CHECK_EQ(decode_as(s->type, copy, (size_t)n, &m), ok ? 0 : -EPROTO);
	}
}

static void shortened(void)
{
	each(shortened_one);
}

/*
 * Lengths are exact, except those of ACCEPT and CONFIRM of version 2, which may grow at their end.
 */
static void extended_one(const struct sample *s, const u8 *buf, int len)
{
	u8 copy[SMC_CLC_MAX + 1] = { 0 };
	bool ok = s->accept && s->accept->version > 1 && len < SMC_CLC_ACCEPT_MAX;
	union message m;

	memcpy(copy, buf, (size_t)len);
	CHECK_EQ(decode_as(s->type, copy, (size_t)len + 1, &m), -EPROTO);
	if (s->accept && s->accept->version > 1 && len >= SMC_CLC_ACCEPT_MAX)
		return;		/* see accept/oversized */
	smc_put_be16(copy + 5, (u16)(len + 1));
	memcpy(copy + len - 3, trailer, sizeof(trailer));
	CHECK_EQ(decode_as(s->type, copy, (size_t)len + 1, &m), ok ? 0 : -EPROTO);
}

static void extended(void)
{
	each(extended_one);
}

static void frame_one(const struct sample *s, const u8 *buf, int len)
{
	u8 copy[SMC_CLC_MAX];
	union message m, same;

	CHECK_EQ(decode_as(s->type, buf, (size_t)len, &m), 0);
	memcpy(copy, buf, (size_t)len);
	/* the other eye catcher, before and behind, is as good */
	copy[3] ^= 0xd9 ^ 0xc4;
	copy[len - 1] ^= 0xd9 ^ 0xc4;
	CHECK_EQ(decode_as(s->type, copy, (size_t)len, &same), 0);
	CHECK(!memcmp(&m, &same, sizeof(m)));
	copy[len - 2] = 0;
	CHECK_EQ(decode_as(s->type, copy, (size_t)len, &m),
		 s->type == SMC_CLC_DECLINE ? 0 : -EPROTO);
}

static void frame(void)
{
	each(frame_one);
}

/* No decoder takes a message of another type; ACCEPT and CONFIRM are one. */
static void other_type_one(const struct sample *s, const u8 *buf, int len)
{
	u8 type;

	for (type = SMC_CLC_PROPOSAL; type <= SMC_CLC_DECLINE; type++) {
		bool ok = type == s->type ||
			  (s->accept && (type == SMC_CLC_ACCEPT || type == SMC_CLC_CONFIRM));
		union message m;

		CHECK_EQ(decode_as(type, buf, (size_t)len, &m), ok ? 0 : -EPROTO);
	}
}

static void other_type(void)
{
	each(other_type_one);
}

/*
 * Each byte takes every value: the decoder does not read beyond the message, and an accepted
 * message can be encoded.
 */
static void changed_one(const struct sample *s, const u8 *buf, int len)
{
	u8 copy[SMC_CLC_MAX];
	union message m;
	int at, v;

	memcpy(copy, buf, (size_t)len);
	for (at = 0; at < len; at++) {
		for (v = 0; v < 256; v++) {
			copy[at] = (u8)v;
			CHECK(decode_as(s->type, copy, (size_t)len, &m) <= 0);
		}
		copy[at] = buf[at];
	}
}

static void changed(void)
{
	each(changed_one);
}

const struct test sample_tests[] = {
	{ "round trip", round_trip }, { "no space", no_space }, { "truncated", truncated },
	{ "shortened", shortened }, { "extended", extended }, { "frame", frame },
	{ "other type", other_type }, { "changed byte", changed }, { NULL, NULL },
};
