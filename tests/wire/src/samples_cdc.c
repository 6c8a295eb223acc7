// SPDX-License-Identifier: Apache-2.0
/* CDC messages as immediate data; captures have those of stock hosts, which send CDC messages only. */
#include "conn/cdc.h"
#include "samples.h"

/* An end that has reported 1000 bytes as read sends its next message. */
#define READ_BEFORE 1000

static const struct {
	const char *name;
	u8 flags, rmb;
	u64 read;
} imm_samples[] = {
	{ "immediate", 0, 2, 5100 },
	{ "immediate, nothing read", 0, 255, 0 },
	{ "immediate, blocked", SMC_CDC_BLOCKED, 2, 64 },
};

const unsigned int n_imm_samples = sizeof(imm_samples) / sizeof(imm_samples[0]);

const char *imm_sample_encode(unsigned int i, u8 buf[4])
{
	struct smc_cdc_tx tx = { .cons.pos = READ_BEFORE };
	struct smc_cdc_update u = {
		.msg.flags = imm_samples[i].flags, .cons.pos = READ_BEFORE + imm_samples[i].read,
	};

	smc_put_be32(buf, smc_cdc_encode_imm(&tx, &u, imm_samples[i].rmb));
	return imm_samples[i].name;
}
