// SPDX-License-Identifier: Apache-2.0
#include "cdc.h"
#include "fuzz.h"

static void check_r(const u8 *data, size_t size)
{
	struct smc_cdc c, again;
	u8 *copy = malloc(size), buf[SMC_CDC_R_LEN];

	MUST(copy || !size);
	if (size)
		memcpy(copy, data, size);
	memset(&c, 0, sizeof(c));
	memset(&again, 0, sizeof(again));
	if (!smc_cdc_r_decode(copy, size, &c)) {
		smc_cdc_r_encode(&c, buf);
		MUST(!smc_cdc_r_decode(buf, sizeof(buf), &again));
		MUST(!memcmp(&c, &again, sizeof(c)));
	}
	free(copy);
}

static void check_d(const u8 *data)
{
	struct smc_cdc c, again;
	u8 buf[SMC_CDC_D_LEN];
	u64 word[2];

	memset(&c, 0, sizeof(c));
	memset(&again, 0, sizeof(again));
	memcpy(word, data, sizeof(word));
	smc_cdc_d_decode(word[0], word[1], &c);
	smc_cdc_d_encode(&c, buf);
	memcpy(word, buf + SMC_CDC_D_PROD, sizeof(word));
	smc_cdc_d_decode(word[0], word[1], &again);
	MUST(!memcmp(&c, &again, sizeof(c)));
}

/* Two ends, one of which follows the other by cursors alone; then anything at all. */
static void check_cursors(const u8 *data, size_t size)
{
	u32 ring = 1 + (u32)smc_get_be16(data);
	struct smc_track ours = { 0 }, theirs = { 0 };
	size_t i;

	for (i = 2; i + 6 <= size; i += 6) {
		u32 by = smc_get_be32(data + i) % (ring + 1);
		struct smc_cursor any = { smc_get_be16(data + i), smc_get_be32(data + i + 2) };
		struct smc_track t;
		s64 rc;

		smc_track_to(&ours, ours.pos + by, ring);
		MUST(ours.at.count == ours.pos % ring && ours.at.wrap == (u16)(ours.pos / ring));
		MUST(smc_track_from(&theirs, ours.at, ring) == by && theirs.pos == ours.pos);
		t = theirs;
		rc = smc_track_from(&t, any, ring);
		MUST(rc <= (s64)ring && t.pos == theirs.pos + (rc > 0 ? (u64)rc : 0));
		MUST(t.at.count == t.pos % ring && (rc <= 0 || t.at.wrap == any.wrap));
		MUST(any.count < ring || rc == -EPROTO);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	u8 copy[SMC_CDC_R_LEN] = { SMC_CDC_TYPE, SMC_CDC_R_LEN };

	check_r(data, size);
	if (size <= sizeof(copy) - 2 && size) {
		memcpy(copy + 2, data, size);
		check_r(copy, size + 2);
	}
	if (size < 16)
		return 0;
	check_d(data);
	check_cursors(data, size);
	return 0;
}
