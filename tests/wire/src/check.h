/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A test is a function; it fails by CHECK and goes on. Bytes given to a decoder are copied to a
 * heap block of their exact size first, so that the address sanitizer sees each read beyond.
 */
#ifndef TESTS_WIRE_CHECK_H
#define TESTS_WIRE_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#include "clc.h"
#include "samples.h"

struct test {
	const char *name;
	void (*run)(void);
};

/* Each list ends with a test without name. */
extern const struct test header_tests[];
extern const struct test proposal_tests[];
extern const struct test accept_tests[];
extern const struct test decline_tests[];
extern const struct test sample_tests[];
extern const struct test tcpopt_tests[];
extern const struct test reason_tests[];
extern const struct test cdc_tests[];
extern const struct test cdc_state_tests[];
extern const struct test failover_tests[];
extern const struct test llc_tests[];
extern const struct test llc_sample_tests[];
extern const struct test range_tests[];
extern const struct test policy_tests[];
extern const struct test auto_tests[];
extern const struct test memory_tests[];
extern const struct test fabric_tests[];

/* The current check, for messages. Loops over tables set it. */
extern const char *check_case;

void check_that(bool ok, const char *what, const char *file, int line);
void check_equal(long long got, long long want, const char *what, const char *file, int line);

#define CHECK(cond) check_that((cond), #cond, __FILE__, __LINE__)
#define CHECK_EQ(got, want) \
	check_equal((long long)(got), (long long)(want), #got, __FILE__, __LINE__)

/* A copy of exactly len bytes. */
u8 *exact(const u8 *buf, size_t len);

/* Decode a copy of the bytes, by the type in their header or as the given one. */
union message {
	struct smc_clc_proposal proposal;
	struct smc_clc_accept accept;
	struct smc_clc_decline decline;
};

int decode_as(u8 type, const u8 *buf, size_t len, union message *m);
int encode_as(u8 type, const union message *m, u8 *buf, size_t size);

/*
 * Decodes a copy of an LLC message, and reads each entry of its list, so that nothing that is said
 * to be there is beyond its end.
 */
int decode_llc(const u8 *buf, size_t len, struct smc_llc *m);

/* The result that decode_llc() must have for the first n bytes of a longer message. */
int llc_cut(const struct smc_llc *m, size_t n);

/* Reads the vectors of a capture and checks each; returns how many there were. */
int check_vectors(const char *path);

#endif /* TESTS_WIRE_CHECK_H */
