/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Why a connection is plain TCP: the diagnosis codes of DECLINE messages, which are also the
 * fallback reasons that user space sees. Values are those of the wire, as integers.
 */
#ifndef SMC_WIRE_REASON_H
#define SMC_WIRE_REASON_H

#include "shim.h"

enum smc_reason {
	SMC_REASON_MEM = 0x01010000,                  /* no memory or RDMA resources */
	SMC_REASON_TIMEOUT_CONFIRM_LINK = 0x02010000, /* no CONFIRM LINK over the first link */
	SMC_REASON_TIMEOUT_ADD_LINK = 0x02020000,     /* no answer to ADD LINK */
	SMC_REASON_CONFIG = 0x03000000,               /* configuration */
	SMC_REASON_PEER_NO_SMC = 0x03010000,          /* no SMC option in the TCP handshake */
	SMC_REASON_IPSEC = 0x03020000,                /* IPsec policy of the host or the socket */
	SMC_REASON_NO_DEV = 0x03030000,               /* neither an RDMA nor an ISM device */
	SMC_REASON_NO_D_DEV = 0x03030001,             /* no ISM device */
	SMC_REASON_NO_R_DEV = 0x03030002,             /* no RDMA device */
	SMC_REASON_NO_ISM_V2 = 0x03030003,            /* ISM hardware without version 2 */
	SMC_REASON_NO_V2_EXT = 0x03030004,            /* PROPOSAL without version 2 part */
	SMC_REASON_NO_V2_D_EXT = 0x03030005,          /* PROPOSAL without SMC-Dv2 part */
	SMC_REASON_NO_SEID = 0x03030006,              /* PROPOSAL without system EID */
	SMC_REASON_NO_D2_DEV = 0x03030007,            /* no SMC-Dv2 device */
	SMC_REASON_NO_UEID = 0x03030008,              /* no common user EID */
	SMC_REASON_RELEASE = 0x03030009,              /* no common release */
	SMC_REASON_MAX_CONNS = 0x0303000a,            /* connections per link group */
	SMC_REASON_MAX_LINKS = 0x0303000b,            /* links per link group */
	SMC_REASON_MODE = 0x03040000,                 /* SMC-R here, SMC-D there */
	SMC_REASON_RMBE_EYECATCHER = 0x03050000,      /* peer wants eye catchers in its buffer */
	SMC_REASON_OPTION = 0x03060000,               /* socket option, such as TCP Fast Open */
	SMC_REASON_PREFIX = 0x03070000,               /* not in one IP subnet */
	SMC_REASON_GET_VLAN = 0x03080000,             /* VLAN ID unknown */
	SMC_REASON_ISM_VLAN = 0x03090000,             /* VLAN ID not registered with the ISM */
	SMC_REASON_NO_ACTIVE_LINK = 0x030a0000,       /* link group without active link */
	SMC_REASON_NO_SERVER_LINK = 0x030b0000,       /* link named by the server unknown */
	SMC_REASON_VERSION = 0x030c0000,              /* versions do not fit */
	SMC_REASON_MAX_DMB = 0x030d0000,              /* limit of SMC-D buffers */
	SMC_REASON_NO_ROUTE = 0x030e0000,             /* SMC-Rv2: no route to the peer */
	SMC_REASON_NOT_INDIRECT = 0x030f0000,         /* SMC-Rv2: direct here, routed there */
	SMC_REASON_SYNC = 0x04000000,                 /* peers out of step; the link group ends */
	SMC_REASON_PEER_DECLINED = 0x05000000,        /* received a DECLINE; never sent */
	SMC_REASON_INTERNAL = 0x09990000,             /* internal error */
	SMC_REASON_RTOKEN = 0x09990001,               /* RDMA token of the peer */
	SMC_REASON_READY_LINK = 0x09990002,           /* link not ready */
	SMC_REASON_REG_BUF = 0x09990003,              /* buffer registration */
};

#define SMC_REASON_COUNT 36	/* indexes of smc_reason_at() and smc_reason_index() */

const char *smc_reason_name(u32 code);
int smc_reason_index(u32 code);
u32 smc_reason_at(unsigned int index);

#endif /* SMC_WIRE_REASON_H */
