// SPDX-License-Identifier: GPL-2.0-only
/*
 * Link groups keep buffers for their next connections, and give them back when the kernel, or SMC below its own ceiling, is short
 * of memory. Freeing takes locks that are held while memory is allocated, so a worker does it, and the shrinker does not wait.
 */

#include <linux/shrinker.h>

#include "../control/memory.h"
#include "../net.h"
#include "../transport/transport.h"
#include "table.h"

/* Has all groups give back what no connection has. */
static void shrink_work_fn(struct work_struct *work)
{
	struct smc_lgr *lgr = NULL;

	while ((lgr = smc_lgr_next(lgr))) {
		if (lgr->key.ops->lgr_shrink && !smc_lgr_end_idle(lgr))
			lgr->key.ops->lgr_shrink(lgr);
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
	return smc_memory_idle_bytes() >> PAGE_SHIFT ?: SHRINK_EMPTY;
}

static unsigned long shrink_scan(struct shrinker *shrinker, struct shrink_control *sc)
{
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
