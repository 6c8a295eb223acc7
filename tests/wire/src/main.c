// SPDX-License-Identifier: Apache-2.0
/*
 * Tests of kernel/wire in user space.
 *
 *   wiretest run [VECTORS...] runs everything; a line "ok NAME" or "not ok NAME" for each test
 *   wiretest encode           prints each sample message: name, tab, bytes in hex
 *   wiretest seeds DIR        writes each sample message to a file, for the fuzzers
 *   wiretest reasons          prints the codes and names of the reasons
 */
#include "check.h"
#include "reason.h"

const char *check_case = "";
static int failures;

void check_that(bool ok, const char *what, const char *file, int line)
{
	if (ok)
		return;
	failures++;
	printf("%s:%d: %s: %s is false\n", file, line, check_case, what);
}

void check_equal(long long got, long long want, const char *what, const char *file, int line)
{
	if (got == want)
		return;
	failures++;
	printf("%s:%d: %s: %s is %lld (%#llx), want %lld (%#llx)\n", file, line, check_case, what,
	       got, got, want, want);
}

u8 *exact(const u8 *buf, size_t len)
{
	u8 *copy = malloc(len);

	if (!copy && len)
		abort();
	if (len)
		memcpy(copy, buf, len);
	return copy;
}

int decode_as(u8 type, const u8 *buf, size_t len, union message *m)
{
	u8 *copy = exact(buf, len);
	int rc;

	/* so that a decoder that leaves a byte of its result unset is noticed */
	memset(m, 0xa5, sizeof(*m));
	if (type == SMC_CLC_PROPOSAL)
		rc = smc_clc_proposal_decode(copy, len, &m->proposal);
	else if (type == SMC_CLC_DECLINE)
		rc = smc_clc_decline_decode(copy, len, &m->decline);
	else
		rc = smc_clc_accept_decode(copy, len, &m->accept);
	free(copy);
	return rc;
}

int encode_as(u8 type, const union message *m, u8 *buf, size_t size)
{
	if (type == SMC_CLC_PROPOSAL)
		return smc_clc_proposal_encode(&m->proposal, buf, size);
	if (type == SMC_CLC_DECLINE)
		return smc_clc_decline_encode(&m->decline, buf, size);
	return smc_clc_accept_encode(&m->accept, buf, size);
}

static bool report(const char *group, const char *name, int before)
{
	bool ok = failures == before;

	printf("%s %s/%s\n", ok ? "ok" : "not ok", group, name);
	return ok;
}

static int run(int n_vectors, char **vectors)
{
	static const struct {
		const char *name;
		const struct test *tests;
	} groups[] = {
		{ "header", header_tests }, { "proposal", proposal_tests },
		{ "accept", accept_tests }, { "decline", decline_tests },
		{ "samples", sample_tests }, { "tcpopt", tcpopt_tests },
		{ "reason", reason_tests }, { "cdc", cdc_tests },
	};
	size_t g;
	int i;

	for (g = 0; g < sizeof(groups) / sizeof(groups[0]); g++) {
		const struct test *t;

		for (t = groups[g].tests; t->name; t++) {
			int before = failures;

			check_case = t->name;
			t->run();
			report(groups[g].name, t->name, before);
		}
	}
	for (i = 0; i < n_vectors; i++) {
		const char *base = strrchr(vectors[i], '/');
		int before = failures;

		CHECK(check_vectors(vectors[i]) > 0);
		report("capture", base ? base + 1 : vectors[i], before);
	}
	return failures ? 1 : 0;
}

static int encode(void)
{
	u8 buf[SMC_CLC_MAX];
	unsigned int i;
	int j;

	for (i = 0; i < n_samples; i++) {
		int len = sample_encode(&samples[i], buf, sizeof(buf));

		printf("%s\t", samples[i].name);
		for (j = 0; j < len; j++)
			printf("%02x", buf[j]);
		printf("\n");
	}
	return 0;
}

static int seeds(const char *dir)
{
	u8 buf[SMC_CLC_MAX];
	unsigned int i;

	for (i = 0; i < n_samples; i++) {
		int len = sample_encode(&samples[i], buf, sizeof(buf));
		char path[4096];
		FILE *f;

		snprintf(path, sizeof(path), "%s/sample-%02u", dir, i);
		f = fopen(path, "w");
		if (!f || len < 0 || fwrite(buf, (size_t)len, 1, f) != 1 || fclose(f)) {
			perror(path);
			return 1;
		}
	}
	return 0;
}

/* The table of reasons, for a comparison with that of the commands. */
static int print_reasons(void)
{
	unsigned int i;

	for (i = 0; i < SMC_REASON_COUNT; i++)
		printf("%#010x %s\n", smc_reason_at(i), smc_reason_name(smc_reason_at(i)));
	return 0;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!strcmp(mode, "run"))
		return run(argc - 2, argv + 2);
	if (!strcmp(mode, "encode"))
		return encode();
	if (!strcmp(mode, "reasons"))
		return print_reasons();
	if (!strcmp(mode, "seeds") && argc == 3)
		return seeds(argv[2]);
	fprintf(stderr, "usage: %s run [VECTORS...] | encode | reasons | seeds DIR\n", argv[0]);
	return 2;
}
