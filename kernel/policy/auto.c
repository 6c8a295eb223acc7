// SPDX-License-Identifier: GPL-2.0-only
/* Learns whether SMC pays: see auto.h. */

#include "auto.h"

/*
 * smc_auto_init() - of a service that is not known. Its connections are SMC until it is: a connection that lives long, such as one of a
 * pool that a program opens when it starts, stays for ever what it was in the beginning. Those that do not pay cost a few handshakes.
 * Any context.
 */
void smc_auto_init(struct smc_auto *a, u64 now)
{
	*a = (struct smc_auto){ .began = now, .last = now };
}

static void move_score(struct smc_auto *a, const struct smc_auto_limits *limits, int by)
{
	a->score += by;
	if (a->score <= -limits->samples) {
		a->score = -limits->samples;
		a->tcp = true;
	}
	if (a->score >= limits->samples) {
		a->score = limits->samples;
		a->tcp = false;
	}
}

/* Returns a number as far as the score can move: from one end to the other. */
static int bounded(u64 n, const struct smc_auto_limits *limits)
{
	return n < 2 * (u64)limits->samples ? (int)n : 2 * limits->samples;
}

/* Begins the periods that have begun. After two of them, all connections that are open are old. */
static void begin_periods(struct smc_auto *a, const struct smc_auto_limits *limits, u64 now)
{
	u64 n = now > a->began ? div_u64(now - a->began, limits->time) : 0;

	a->began += n * limits->time;
	for (; n && (a->open[0] || a->open[1]); n--) {
		a->open[2] += a->open[1];
		a->open[1] = a->open[0];
		a->open[0] = 0;
		a->period++;
		move_score(a, limits, bounded(a->open[2], limits));
	}
	if (n && a->open[2])
		move_score(a, limits, bounded(n < 2 * (u64)limits->samples ? n * a->open[2] : n, limits));
}

/* smc_auto_left() - returns the milliseconds until the service is forgotten, if no connection begins or ends. Any context. */
u64 smc_auto_left(const struct smc_auto *a, const struct smc_auto_limits *limits, u64 now)
{
	u64 idle = now > a->last ? now - a->last : 0;

	if (a->open[0] || a->open[1] || a->open[2])
		return limits->forget;
	return idle < limits->forget ? limits->forget - idle : 0;
}

/* smc_auto_is_tcp() - is a new connection of the service to be TCP? Any context. */
bool smc_auto_is_tcp(struct smc_auto *a, const struct smc_auto_limits *limits, u64 now)
{
	begin_periods(a, limits, now);
	return a->tcp && smc_auto_left(a, limits, now);
}

/* smc_auto_begin() - a connection has begun. Any context. Return: the period, for smc_auto_end(). */
u32 smc_auto_begin(struct smc_auto *a, const struct smc_auto_limits *limits, u64 now)
{
	if (!smc_auto_left(a, limits, now))
		smc_auto_init(a, now);
	begin_periods(a, limits, now);
	a->open[0]++;
	a->last = now;
	return a->period;
}

/*
 * smc_auto_end() - a connection has ended. @began: what smc_auto_begin() has returned; @sample: what it was like, NULL if that says
 * nothing, because it has failed. Any context.
 */
void smc_auto_end(struct smc_auto *a, const struct smc_auto_limits *limits, u64 now, u32 began, const struct smc_auto_sample *sample)
{
	u32 age;
	u64 times;

	begin_periods(a, limits, now);
	age = a->period - began < 2 ? a->period - began : 2;
	if (a->open[age])
		a->open[age]--;
	a->last = now;
	if (!sample)
		return;
	times = div_u64(sample->bytes, limits->bytes);
	if (!times && sample->time < limits->time) {
		a->unpaid++;
		move_score(a, limits, -1);
		return;
	}
	a->paid++;
	move_score(a, limits, times > 1 ? bounded(times, limits) : 1);
}
