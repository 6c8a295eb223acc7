// SPDX-License-Identifier: Apache-2.0
/* A service learns about its connections: kernel/policy/auto.c. */
#include "check.h"
#include "policy/auto.h"

static const struct smc_auto_limits limits = { .bytes = 1000, .time = 2000, .forget = 60000, .samples = 4 };

/* A step: some connections, one after the other, which begin @before milliseconds later, and what new ones are then. */
struct step {
	unsigned int n;
	u64 before, bytes, time;
	int score;
	bool tcp;
};

#define STEPS 6

struct auto_case {
	const char *name;
	struct step steps[STEPS];
};

static const struct auto_case cases[] = {
	{ "short ones are SMC until there are enough", { { 3, 0, 10, 10, -3, false }, { 1, 0, 10, 10, -4, true }, { 9, 0, 10, 10, -4, true } } },
	{ "many bytes", { { 3, 0, 1000, 10, 3, false }, { 9, 0, 1000, 10, 4, false } } },
	{ "a byte less", { { 4, 0, 999, 1999, -4, true } } },
	{ "a multiple of the bytes", { { 4, 0, 10, 10, -4, true }, { 1, 0, 3999, 10, -1, true }, { 1, 0, 5000, 10, 4, false } } },
	{ "no connection counts more than all others", { { 4, 0, 10, 10, -4, true }, { 1, 0, ~0ULL, 10, 4, false }, { 7, 0, 10, 10, -3, false } } },
	{ "time", { { 1, 0, 10, 2000, 1, false }, { 1, 0, 0, 3999, 2, false } } },
	/* Connections that were open in the whole of a period count once for each of these, and once when they end. */
	{ "a multiple of the time", { { 4, 0, 10, 10, -4, true }, { 1, 0, 10, 8010, 0, true }, { 1, 0, 10, 20000, 4, false } } },
	{ "it comes back after twice as many", { { 4, 0, 10, 10, -4, true }, { 7, 0, 1000, 10, 3, true }, { 1, 0, 1000, 10, 4, false } } },
	{ "it goes again after twice as many", { { 4, 0, 1000, 10, 4, false }, { 7, 0, 10, 10, -3, false }, { 1, 0, 10, 10, -4, true } } },
	{ "half and half stay as they are", { { 1, 0, 10, 10, -1, false }, { 1, 0, 1000, 10, 0, false }, { 1, 0, 10, 10, -1, false },
					      { 1, 0, 1000, 10, 0, false } } },
	{ "forgotten", { { 4, 0, 10, 10, -4, true }, { 1, 59999, 10, 10, -4, true }, { 1, 60000, 10, 10, -1, false } } },
};

static void run_case(const struct auto_case *c)
{
	struct smc_auto a;
	u64 now = 1000000;
	unsigned int i, n;

	check_case = c->name;
	smc_auto_init(&a, now);
	CHECK(!smc_auto_is_tcp(&a, &limits, now));
	for (i = 0; i < STEPS && c->steps[i].n; i++) {
		const struct step *s = &c->steps[i];

		for (n = 0; n < s->n; n++) {
			const struct smc_auto_sample sample = { .bytes = s->bytes, .time = s->time };
			u32 period;

			now += s->before;
			period = smc_auto_begin(&a, &limits, now);
			now += s->time;
			smc_auto_end(&a, &limits, now, period, &sample);
		}
		CHECK_EQ(a.score, s->score);
		CHECK_EQ(smc_auto_is_tcp(&a, &limits, now), s->tcp);
	}
}

static void test_cases(void)
{
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		run_case(&cases[i]);
}

static const struct smc_auto_sample brief = { .bytes = 1, .time = 1 };

/* Short connections beside some that stay open: each of these counts once in a period, so it depends on how many there are of both. */
static bool beside(unsigned int pool, unsigned int brief_per_period)
{
	struct smc_auto a;
	u64 now = 5000;
	unsigned int i, n;

	smc_auto_init(&a, now);
	for (i = 0; i < pool; i++)
		smc_auto_begin(&a, &limits, now);
	for (n = 0; n < 20; n++) {
		now += limits.time;
		for (i = 0; i < brief_per_period; i++)
			smc_auto_end(&a, &limits, now, smc_auto_begin(&a, &limits, now), &brief);
	}
	CHECK_EQ(a.open[0] + a.open[1] + a.open[2], pool);
	return smc_auto_is_tcp(&a, &limits, now);
}

static void test_pool(void)
{
	CHECK(!beside(3, 2));
	CHECK(beside(1, 5));
	CHECK(beside(0, 1));
	CHECK(!beside(1, 0));
}

/* Connections that have failed count as neither, and open ones keep a service from being forgotten. */
static void test_open(void)
{
	struct smc_auto a;
	u64 now = 0;
	u32 period;

	smc_auto_init(&a, now);
	period = smc_auto_begin(&a, &limits, now);
	now += 10 * limits.forget;
	CHECK_EQ(smc_auto_left(&a, &limits, now), limits.forget);
	smc_auto_end(&a, &limits, now, period, NULL);
	CHECK_EQ(a.paid + a.unpaid, 0);
	CHECK_EQ(smc_auto_left(&a, &limits, now + 1), limits.forget - 1);
	CHECK_EQ(smc_auto_left(&a, &limits, now + limits.forget), 0);
	/* It ends twice, or is one of a service that was forgotten. */
	smc_auto_end(&a, &limits, now, period, NULL);
	smc_auto_end(&a, &limits, now, 77, NULL);
	CHECK_EQ(a.open[0] + a.open[1] + a.open[2], 0);
}

/* The clock of another processor may be behind, and settings may change while connections are open. */
static void test_changes(void)
{
	struct smc_auto_limits other = limits;
	struct smc_auto a;
	u32 first, second;

	smc_auto_init(&a, 10000);
	first = smc_auto_begin(&a, &limits, 9000);
	CHECK(smc_auto_left(&a, &limits, 8000) > 0);
	second = smc_auto_begin(&a, &limits, 15000);
	other.time = 1;
	other.samples = 1;
	CHECK(!smc_auto_is_tcp(&a, &other, 1ULL << 40));
	CHECK_EQ(a.score, 1);
	smc_auto_end(&a, &other, 1ULL << 40, first, &brief);
	smc_auto_end(&a, &other, 1ULL << 40, second, &brief);
	CHECK_EQ(a.open[0] + a.open[1] + a.open[2], 0);
}

const struct test auto_tests[] = {
	{ "cases", test_cases },
	{ "pool", test_pool },
	{ "open", test_open },
	{ "changes", test_changes },
	{ NULL, NULL },
};
