/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of every shape, with the length and the byte 7 that the protocol gives them. */
#ifndef TESTS_WIRE_SAMPLES_H
#define TESTS_WIRE_SAMPLES_H

#include "clc.h"

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

/* Encodes a sample; returns what the encoder does. */
int sample_encode(const struct sample *s, u8 *buf, size_t size);

#endif /* TESTS_WIRE_SAMPLES_H */
