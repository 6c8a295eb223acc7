/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of every shape, with the length and the bytes that the protocol gives them. */
#ifndef TESTS_WIRE_SAMPLES_H
#define TESTS_WIRE_SAMPLES_H

#include "clc.h"
#include "llc.h"

struct sample {
	const char *name;
	u8 type;
	int length;
	u8 byte7;
	/* exactly one is set */
	const struct smc_clc_proposal *proposal;
	const struct smc_clc_accept *accept;
	const struct smc_clc_decline *decline;
};

extern const struct sample samples[];
extern const unsigned int n_samples;

/* Encodes a sample; returns the result of the encoder. */
int sample_encode(const struct sample *s, u8 *buf, size_t size);

struct llc_sample {
	const char *name;	/* begins as Wireshark calls it */
	int length;
	u32 head;		/* its first four bytes */
	struct smc_llc m;
};

extern const struct llc_sample llc_samples[];
extern const unsigned int n_llc_samples;

/* Encodes a sample and fills its list; returns the result of the encoder. */
int llc_sample_encode(const struct llc_sample *s, u8 *buf, size_t size);

/* Encodes a CDC message as immediate data, in the byte order of the wire; returns its name. */
const char *imm_sample_encode(unsigned int i, u8 buf[4]);
extern const unsigned int n_imm_samples;

#endif /* TESTS_WIRE_SAMPLES_H */
