// SPDX-License-Identifier: GPL-2.0-only
/*
 * Link groups keep buffers for their next connections, and give them back when the kernel, or SMC below its own ceiling, is short
 * of memory. If it is the kernel, connections give back the pages that they keep for their next data, too. Freeing takes locks that are held while
 * memory is allocated, so a worker does it, and the shrinker does not wait.
 */

#include <linux/shrinker.h>

#include "../control/memory.h"
#include "../net.h"
#include "../transport/transport.h"
#include "table.h"

/* How often connections give back pages while memory is short: those that move data soon keep some again. */
#define TRIM_INTERVAL HZ

/* The kernel is short of memory; single word */
static bool kernel_short;
/* When connections gave back pages last, in jiffies; the work */
static unsigned long trimmed;

/* Has all groups give back what no connection has, and, not too often, what connections do not need. */
static void shrink_work_fn(struct work_struct *work)
{
	bool trim = xchg(&kernel_short, false) && time_after_eq(jiffies, trimmed + TRIM_INTERVAL);
	struct smc_lgr *lgr = NULL;

	if (trim)
		trimmed = jiffies;
	while ((lgr = smc_lgr_next(lgr))) {
		if (lgr->key.ops->lgr_shrink && !smc_lgr_end_idle(lgr))
			lgr->key.ops->lgr_shrink(lgr);
		if (trim)
			smc_lgr_trim(lgr);
		cond_resched();
	}
}

static DECLARE_WORK(shrink_work, shrink_work_fn);

static void shrink_soon(void)
{
	queue_work(smc_lgr_wq, &shrink_work);
}

static unsigned long shrink_count(struct shrinker *shrinker, struct shrink_control *sc)
{
	return (smc_memory_idle_bytes() >> PAGE_SHIFT) + smc_memory_spare_pages() ?: SHRINK_EMPTY;
}

static unsigned long shrink_scan(struct shrinker *shrinker, struct shrink_control *sc)
{
	WRITE_ONCE(kernel_short, true);
	shrink_soon();
	/* The memory comes back later, so there is no point in scanning more now. */
	return SHRINK_STOP;
}

static struct shrinker *shrinker;

/* smc_lgr_shrink_init() - registers the shrinker, at load. Return: 0 or -ENOMEM. */
int __init smc_lgr_shrink_init(void)
{
	might_sleep();
	shrinker = smc_compat_shrinker_new("smc", shrink_count, shrink_scan);
	if (!shrinker)
		return -ENOMEM;
	trimmed = jiffies - TRIM_INTERVAL;
	smc_memory_set_shortage(shrink_soon);
	return 0;
}

/* smc_lgr_shrink_exit() - undoes it, at unload, when all groups have ended. */
void smc_lgr_shrink_exit(void)
{
	might_sleep();
	smc_compat_shrinker_free(shrinker);
	cancel_work_sync(&shrink_work);
}
