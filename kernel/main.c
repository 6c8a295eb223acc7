// SPDX-License-Identifier: GPL-2.0-only
/* The order in which the parts come up and go down. */

#include <linux/init.h>
#include <linux/module.h>
#include <linux/net.h>
#include <linux/socket.h>

#include "control/eid.h"
#include "control/netlink.h"
#include "control/pnet.h"
#include "conn/conn.h"
#include "handshake/handshake.h"
#include "lgr/lgr.h"
#include "sock/sock.h"
#include "transport/ism/ism.h"
#include "transport/rdma/init.h"

#define CREATE_TRACE_POINTS
#include "control/trace.h"
#include "control/trace_stock.h"

/* Parts come up in this order, and go down in the reverse. Some have nothing to do at one end. */
static const struct part {
	int (*init)(void);
	void (*exit)(void);
} parts[] __refconst = {
	{ smc_synopt_reg_init, NULL },
	{ smc_synopt_init, smc_synopt_exit },
	{ smc_table_init, smc_table_exit },
	{ smc_handshake_init, smc_handshake_exit },
	{ smc_conn_init, smc_conn_exit },
	{ smc_net_init, smc_net_exit },
	{ smc_lgr_shrink_init, smc_lgr_shrink_exit },
	{ smc_ipsec_init, smc_ipsec_exit },
	{ smc_pnet_init, smc_pnet_exit },
	{ smc_netlink_init, smc_netlink_exit },
	{ smc_pnet_netlink_init, smc_pnet_netlink_exit },
	{ smc_ops_init, NULL },
	{ smc_ism_init, smc_ism_exit },
	{ smc_rdma_init, smc_rdma_exit },
	{ smc_reboot_init, smc_reboot_exit },
	{ smc_netlink_own_init, smc_netlink_own_exit },
	{ NULL, smc_proto_exit },
	{ NULL, smc_fallback_exit },
	{ smc_create_init, smc_create_exit },
	{ smc_hook_init, smc_hook_exit },
};

/* Ends the first @n parts, the last one first. */
static void exit_parts(unsigned int n)
{
	while (n--)
		if (parts[n].exit)
			parts[n].exit();
}

static int __init smc_init(void)
{
	unsigned int n;
	int rc;

	smc_eid_init();
	smc_proto_init();
	for (n = 0; n < ARRAY_SIZE(parts); n++) {
		rc = parts[n].init ? parts[n].init() : 0;
		if (rc) {
			exit_parts(n);
			return rc;
		}
	}
	return 0;
}

/* The kernel does not call this while an SMC socket exists. */
static void __exit smc_exit(void)
{
	exit_parts(ARRAY_SIZE(parts));
}

module_init(smc_init);
module_exit(smc_exit);
MODULE_LICENSE("GPL");
MODULE_AUTHOR("The smckit authors");
MODULE_DESCRIPTION("Shared Memory Communications (AF_SMC): SMC-R, SMC-D and fallback to TCP");
MODULE_VERSION(SMC_MODULE_VERSION);
MODULE_ALIAS_NETPROTO(PF_SMC);
/*
 * socket(AF_INET or AF_INET6, SOCK_STREAM, IPPROTO_SMC); enum members would go into the text as
 * they are
 */
MODULE_ALIAS_NET_PF_PROTO_TYPE(PF_INET, 256, 1);
MODULE_ALIAS_NET_PF_PROTO_TYPE(PF_INET6, 256, 1);
MODULE_ALIAS_GENL_FAMILY(SMC_GENL_FAMILY_NAME);
MODULE_ALIAS_GENL_FAMILY(SMCR_GENL_FAMILY_NAME);
MODULE_ALIAS_GENL_FAMILY(SMCKIT_GENL_FAMILY_NAME);
