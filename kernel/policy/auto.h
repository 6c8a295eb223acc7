/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A service learns whether SMC pays for its connections. Nothing here locks, sleeps or allocates. It also builds in
 * user space, where tests/wire tests it.
 *
 * A connection pays if it moves many bytes or lives long. Each one that ends moves a score up or down: by one down if it does not pay, and
 * up by the number of times that it has moved enough bytes. A connection that lives long ends late, so each one that is open for long
 * moves the score up once in a period. At the lower end of the score new connections are TCP, at the upper end SMC; between the two they
 * stay what they were.
 */
#ifndef SMC_POLICY_AUTO_H
#define SMC_POLICY_AUTO_H

#include "../wire/shim.h"

/* The settings. None is 0. */
struct smc_auto_limits {
	u32 bytes;		/* that a connection moves, in both directions, to pay */
	u32 time;		/* milliseconds that it lives to pay: a period */
	u64 forget;		/* milliseconds without connections after which all is forgotten */
	int samples;		/* the ends of the score */
};

/* The state of a service. Times are milliseconds of a clock that does not go back. */
struct smc_auto {
	int score;
	bool tcp;		/* what new connections are */
	u32 period;		/* number of the present one */
	u64 began;		/* when it began */
	u64 last;		/* when a connection began or ended last */
	u32 open[3];		/* connections that began in this period, in the one before, and before that */
	u64 paid, unpaid;	/* connections that have ended, for people */
};

/* A connection that has ended. */
struct smc_auto_sample {
	u64 bytes, time;
};

void smc_auto_init(struct smc_auto *a, u64 now);
bool smc_auto_is_tcp(struct smc_auto *a, const struct smc_auto_limits *limits, u64 now);
u32 smc_auto_begin(struct smc_auto *a, const struct smc_auto_limits *limits, u64 now);
void smc_auto_end(struct smc_auto *a, const struct smc_auto_limits *limits, u64 now, u32 began, const struct smc_auto_sample *sample);
u64 smc_auto_left(const struct smc_auto *a, const struct smc_auto_limits *limits, u64 now);

#endif /* SMC_POLICY_AUTO_H */
