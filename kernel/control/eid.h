/* SPDX-License-Identifier: GPL-2.0-only */
/* Enterprise IDs of this host: user EIDs and the system EID. All contexts but hardirq. */
#ifndef SMC_CONTROL_EID_H
#define SMC_CONTROL_EID_H

#include <linux/smc.h>
#include <linux/types.h>

/* An EID is 32 characters, padded with blanks, without a terminator. */

struct netlink_ext_ack;

int smc_eid_add(const u8 eid[SMC_MAX_EID_LEN], struct netlink_ext_ack *extack);
int smc_eid_remove(const u8 eid[SMC_MAX_EID_LEN], struct netlink_ext_ack *extack);
void smc_eid_flush(void);
unsigned int smc_eid_list(u8 (*eids)[SMC_MAX_EID_LEN], unsigned int max);
bool smc_eid_negotiate(const u8 (*list)[SMC_MAX_EID_LEN], unsigned int n, u8 eid[SMC_MAX_EID_LEN]);
bool smc_eid_seid(u8 seid[SMC_MAX_EID_LEN]);
int smc_eid_enable_seid(bool enable, struct netlink_ext_ack *extack);
void smc_eid_init(void);

#endif /* SMC_CONTROL_EID_H */
