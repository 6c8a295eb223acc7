// SPDX-License-Identifier: Apache-2.0
/* Properties of every LLC message, independent of its type. */
#include "check.h"
#include "llc_lists.h"

static void each(void (*check)(const struct llc_sample *s, const u8 *buf, int len))
{
	u8 buf[SMC_LLC_MAX];
	unsigned int i;

	for (i = 0; i < n_llc_samples; i++) {
		int len = llc_sample_encode(&llc_samples[i], buf, sizeof(buf));

		check_case = llc_samples[i].name;
		CHECK_EQ(len, llc_samples[i].length);
		if (len > 0)
			check(&llc_samples[i], buf, len);
	}
}

static void round_trip_one(const struct llc_sample *s, const u8 *buf, int len)
{
	u8 again[SMC_LLC_MAX];
	struct smc_llc m;

	CHECK_EQ(smc_get_be32(buf), s->head);
	CHECK_EQ(decode_llc(buf, (size_t)len, &m), 0);
	CHECK(!memcmp(&m, &s->m, sizeof(m)));
	CHECK_EQ(smc_llc_encode(&m, again, sizeof(again)), len);
	llc_copy_lists(&m, buf, &m, again);
	CHECK(!memcmp(buf, again, (size_t)len));
}

static void round_trip(void)
{
	each(round_trip_one);
}

static void no_space_one(const struct llc_sample *s, const u8 *buf, int len)
{
	int size;

	for (size = 0; size <= len; size += size < 100 || size >= len - 1 ? 1 : len - 1 - size) {
		u8 *block = malloc((size_t)size);

		CHECK_EQ(llc_sample_encode(s, block, (size_t)size), size < len ? -ENOSPC : len);
		if (size == len)
			CHECK(!memcmp(block, buf, (size_t)len));
		free(block);
	}
}

static void no_space(void)
{
	each(no_space_one);
}

/* A cut message is accepted if its length is the length of a whole one in the other byte order. */
static void truncated_one(const struct llc_sample *s, const u8 *buf, int len)
{
	int other = s->m.version == 1 ? 0 : (len >> 8 & 0xff) | (len << 8 & 0xff00);
	struct smc_llc m;
	int n;

	for (n = 0; n < len; n++)
		if (other < SMC_LLC_LEN || other > n)
			CHECK_EQ(decode_llc(buf, (size_t)n, &m), llc_cut(&s->m, (size_t)n));
}

static void truncated(void)
{
	each(truncated_one);
}

/* Any byte may be anything; in long messages, any before the list. */
static void changed_one(const struct llc_sample *s, const u8 *buf, int len)
{
	u8 copy[SMC_LLC_MAX];
	struct smc_llc m;
	int at, v;

	(void)s;
	memcpy(copy, buf, (size_t)len);
	for (at = 0; at < len && at < 80; at++) {
		for (v = 0; v < 256; v += len > 1000 && at > 3 ? 51 : 1) {
			int rc;

			copy[at] = (u8)v;
			rc = decode_llc(copy, (size_t)len, &m);
			CHECK(!rc || rc == -EPROTO || rc == -ENOMSG);
		}
		copy[at] = buf[at];
	}
}

static void changed(void)
{
	each(changed_one);
}

const struct test llc_sample_tests[] = {
	{ "round trip", round_trip }, { "no space", no_space }, { "truncated", truncated },
	{ "changed byte", changed }, { NULL, NULL },
};
