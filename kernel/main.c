// SPDX-License-Identifier: GPL-2.0-only
/* The order in which the parts come up and go down. */

#include <linux/init.h>
#include <linux/module.h>
#include <linux/net.h>
#include <linux/socket.h>

#include "control/eid.h"
#include "control/netlink.h"
#include "conn/conn.h"
#include "handshake/handshake.h"
#include "lgr/lgr.h"
#include "sock/sock.h"
#include "transport/ism/ism.h"
#include "transport/rdma/init.h"

#define CREATE_TRACE_POINTS
#include "control/trace.h"
#include "control/trace_stock.h"

static int __init smc_init(void)
{
	int rc;

	smc_eid_init();
	rc = smc_table_init();
	if (rc)
		return rc;
	rc = smc_handshake_init();
	if (rc)
		goto err_table;
	rc = smc_conn_init();
	if (rc)
		goto err_handshake;
	rc = smc_net_init();
	if (rc)
		goto err_conn;
	smc_ipsec_init();
	rc = smc_pnet_init();
	if (rc)
		goto err_ipsec;
	rc = smc_netlink_init();
	if (rc)
		goto err_pnet;
	rc = smc_pnet_netlink_init();
	if (rc)
		goto err_netlink;
	rc = smc_ops_init();
	if (rc)
		goto err_pnet_netlink;
	smc_proto_init();
	rc = smc_ism_init();
	if (rc)
		goto err_pnet_netlink;
	rc = smc_rdma_init();
	if (rc)
		goto err_ism;
	rc = smc_reboot_init();
	if (rc)
		goto err_rdma;
	rc = smc_netlink_own_init();
	if (rc)
		goto err_reboot;
	rc = smc_create_init();
	if (rc)
		goto err_netlink_own;
	return 0;

err_netlink_own:
	smc_netlink_own_exit();
err_reboot:
	smc_reboot_exit();
err_rdma:
	smc_rdma_exit();
err_ism:
	smc_ism_exit();
err_pnet_netlink:
	smc_pnet_netlink_exit();
err_netlink:
	smc_netlink_exit();
err_pnet:
	smc_pnet_exit();
err_ipsec:
	smc_ipsec_exit();
	smc_net_exit();
err_conn:
	smc_conn_exit();
err_handshake:
	smc_handshake_exit();
err_table:
	smc_table_exit();
	return rc;
}

/* The kernel does not call this while there is a socket of ours. */
static void __exit smc_exit(void)
{
	smc_create_exit();
	smc_fallback_exit();
	smc_proto_exit();
	smc_netlink_own_exit();
	smc_reboot_exit();
	smc_rdma_exit();
	smc_ism_exit();
	smc_pnet_netlink_exit();
	smc_netlink_exit();
	smc_pnet_exit();
	smc_ipsec_exit();
	smc_net_exit();
	smc_conn_exit();
	smc_handshake_exit();
	smc_table_exit();
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
