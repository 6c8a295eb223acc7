// SPDX-License-Identifier: Apache-2.0
/*
 * Tests of kernel/wire, kernel/conn/cdc.c, kernel/policy/rules.c and kernel/policy/auto.c in user space.
 *
 *   wiretest run [VECTORS...] runs everything; a line "ok NAME" or "not ok NAME" for each test
 *   wiretest encode           prints each sample message: name, tab, bytes in hex
 *   wiretest encode-llc       the same of LLC
 *   wiretest encode-imm       the same of CDC in immediate data
 *   wiretest seeds DIR        writes each sample message to a file, for the fuzzers
 *   wiretest unpack FILE DIR  writes each input of a packed file to a file, for the fuzzers
 *   wiretest reasons          prints the codes and names of the reasons
 */
#include "check.h"
#include "hex.h"
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

int decode_llc(const u8 *buf, size_t len, struct smc_llc *m)
{
	u8 *copy = exact(buf, len), gid[16];
	struct smc_llc_pair pair;
	unsigned int i = 0;
	u32 rkey;
	int rc;

	memset(m, 0xa5, sizeof(*m));
	rc = smc_llc_decode(copy, len, m);
	while (!rc && (smc_llc_pair_at(m, copy, i, &pair) || smc_llc_gid_at(m, copy, i, gid) ||
		       smc_llc_rkey_at(m, copy, i, &rkey)))
		i++;
	free(copy);
	return rc;
}

int llc_cut(const struct smc_llc *m, size_t n)
{
	bool sent_back = m->version == 2 && m->type == SMC_LLC_ADD_LINK && m->response && n == SMC_LLC_LEN;

	return sent_back ? -ENOMSG : -EPROTO;
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
		{ "llc", llc_tests }, { "llc samples", llc_sample_tests },
		{ "range", range_tests }, { "cdc state", cdc_state_tests },
		{ "failover", failover_tests }, { "policy", policy_tests },
		{ "auto", auto_tests },
		{ "memory", memory_tests },
		{ "fabric", fabric_tests },
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

static void print(const char *name, const u8 *buf, int len)
{
	int i;

	printf("%s\t", name);
	for (i = 0; i < len; i++)
		printf("%02x", buf[i]);
	printf("\n");
}

static int encode(void)
{
	u8 buf[SMC_CLC_MAX];
	unsigned int i;

	for (i = 0; i < n_samples; i++)
		print(samples[i].name, buf, sample_encode(&samples[i], buf, sizeof(buf)));
	return 0;
}

static int encode_llc(void)
{
	u8 buf[SMC_LLC_MAX];
	unsigned int i;

	for (i = 0; i < n_llc_samples; i++)
		print(llc_samples[i].name, buf,
		      llc_sample_encode(&llc_samples[i], buf, sizeof(buf)));
	return 0;
}

static int encode_imm(void)
{
	unsigned int i;
	u8 buf[4];

	for (i = 0; i < n_imm_samples; i++)
		print(imm_sample_encode(i, buf), buf, sizeof(buf));
	return 0;
}

static bool write_seed(const char *dir, const char *kind, unsigned int i, const u8 *buf, int len)
{
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s-%02u", dir, kind, i);
	f = fopen(path, "w");
	if (f && len >= 0 && fwrite(buf, (size_t)len, 1, f) == 1 && !fclose(f))
		return true;
	perror(path);
	return false;
}

static int seeds(const char *dir)
{
	u8 buf[SMC_LLC_MAX];
	unsigned int i;

	for (i = 0; i < n_samples; i++) {
		int len = sample_encode(&samples[i], buf, sizeof(buf));

		if (!write_seed(dir, "sample", i, buf, len))
			return 1;
	}
	for (i = 0; i < n_llc_samples; i++) {
		int len = llc_sample_encode(&llc_samples[i], buf, sizeof(buf));

		if (!write_seed(dir, "llc", i, buf, len))
			return 1;
	}
	return 0;
}

static bool unpack_one(void *dir, int n, const u8 *buf, size_t len)
{
	return write_seed(dir, "input", (unsigned int)n, buf, (int)len);
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
	if (!strcmp(mode, "encode-llc"))
		return encode_llc();
	if (!strcmp(mode, "encode-imm"))
		return encode_imm();
	if (!strcmp(mode, "reasons"))
		return print_reasons();
	if (!strcmp(mode, "seeds") && argc == 3)
		return seeds(argv[2]);
	if (!strcmp(mode, "unpack") && argc == 4)
		return read_inputs(argv[2], unpack_one, argv[3]) > 0 ? 0 : 1;
	fprintf(stderr, "usage: %s run [VECTORS...] | encode | encode-llc | encode-imm | reasons | seeds DIR | unpack FILE DIR\n",
		argv[0]);
	return 2;
}
