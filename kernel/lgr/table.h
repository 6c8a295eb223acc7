/* SPDX-License-Identifier: GPL-2.0-only */
/* The table of link groups, for the files of this folder. */
#ifndef SMC_LGR_TABLE_H
#define SMC_LGR_TABLE_H

#include "lgr.h"

/* The lists and the hash table below, and together with the group's lock its `listed`. Softirqs are off. */
extern spinlock_t smc_lgr_table_lock;
/* Groups that connections may join, in ascending order of their identifiers. */
extern struct list_head smc_lgr_listed;
/* Groups that have left that list and have not given everything back. */
extern struct list_head smc_lgr_ending;

struct smc_lgr *smc_lgr_table_find(const struct smc_lgr_key *key, const void *hint);
void smc_lgr_table_add(struct smc_lgr *lgr);
bool smc_lgr_table_unlist(struct smc_lgr *lgr);
void smc_lgr_table_del(struct smc_lgr *lgr);

/* lgr.c */
extern const struct smc_lgr_member_ops *smc_lgr_member_ops;
void smc_lgr_stop_work(struct smc_lgr *lgr);
void smc_lgr_wait_freed(void);
bool smc_lgr_end_idle(struct smc_lgr *lgr);
void smc_lgr_trim(struct smc_lgr *lgr);

/* netns.c */
void smc_lgr_net_add(struct smc_lgr_member *member);
void smc_lgr_net_del(struct smc_lgr_member *member);
struct smc_lgr_member *smc_lgr_net_take(struct smc_net *sn);
void smc_lgr_net_mark(struct smc_net *sn, u64 mark);

/* end.c */
void smc_lgr_finish(struct smc_lgr *lgr);

#endif /* SMC_LGR_TABLE_H */
