// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"
#include "llc.h"
#include "llc_lists.h"

/*
 * A length that is the same in both byte orders does not show the order, unless there is a count.
 */
static bool tells_order(const struct smc_llc *m)
{
	return m->type == SMC_LLC_ADD_LINK || (m->length & 0xff) != m->length >> 8;
}

/* A peer may leave it out, but we may not. */
static bool lacks_ext(const struct smc_llc *m)
{
	return m->type == SMC_LLC_ADD_LINK && m->version > 1 && !m->add_link.reject &&
	       !m->add_link.has_ext;
}

static void check(const u8 *data, size_t size)
{
	static u8 out[SMC_LLC_MAX];
	struct smc_llc m, again;
	unsigned int n_entries;
	int n, rc;

	rc = smc_llc_decode(data, size, &m);
	MUST(!rc || rc == -EPROTO || rc == -ENOMSG);
	if (rc)
		return;
	MUST(m.length >= SMC_LLC_LEN && m.length <= size);
	n = smc_llc_encode(&m, out, sizeof(out));
	if (lacks_ext(&m)) {
		MUST(n == -EINVAL);
		return;
	}
	MUST(n >= SMC_LLC_LEN && n <= m.length);
	MUST(!smc_llc_decode(out, (size_t)n, &again));
	n_entries = llc_copy_lists(&m, data, &again, out);
	MUST(!smc_llc_decode(out, (size_t)n, &again) && again.length == n);
	MUST(llc_copy_lists(&again, out, &again, out) == n_entries);
	m.length = (u16)n;
	if (!tells_order(&m))
		m.swapped = again.swapped;
	MUST(!memcmp(&m, &again, sizeof(m)));
}

/* Decode the input unchanged, and as a message of each type with a correct length. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	u8 *copy = calloc(1, size);

	MUST(copy || !size);
	if (size)
		memcpy(copy, data, size);
	check(copy, size);
	if (size < SMC_LLC_LEN) {
		free(copy);
		return 0;
	}
	copy[0] = data[0] % 9 + 1;
	copy[1] = SMC_LLC_LEN;
	check(copy, size);
	copy[0] |= 0x20;
	smc_put_be16(copy + 1, (u16)size);
	check(copy, size);
	copy[1] = (u8)(size & 0xff);
	copy[2] = (u8)(size >> 8);
	check(copy, size);
	free(copy);
	return 0;
}
