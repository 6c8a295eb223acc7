/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * <linux/smc.h>, and the numbers that it lacks before Linux 6.12. They have names of their own, because the preprocessor
 * cannot ask for the members of an enum.
 */
#ifndef SMC_UAPI_H
#define SMC_UAPI_H

#include <linux/build_bug.h>
#include <linux/in.h>
#include <linux/smc.h>
#include <linux/smc_diag.h>

/* The protocols of AF_SMC sockets: which addresses they use. No header of the kernel has them. */
#define SMCPROTO_SMC 0
#define SMCPROTO_SMC6 1

/* socket(AF_INET or AF_INET6, SOCK_STREAM, IPPROTO_SMC); in <linux/in.h> since Linux 6.11. */
#ifndef IPPROTO_SMC
#define IPPROTO_SMC 256
#endif

/*
 * of SMC_NLA_STATS_SMCD_TECH and SMC_NLA_STATS_SMCR_TECH: bytes of buffers in use, 4 or 8 bytes as
 * the value needs
 */
#define SMC_UAPI_STATS_T_RX_RMB_USAGE 20
#define SMC_UAPI_STATS_T_TX_RMB_USAGE 21

/* of SMC_GEN_LGR_SMCD: the second halves of GIDs of 128 bits; bytes of buffers */
#define SMC_UAPI_LGR_D_EXT_GID 10
#define SMC_UAPI_LGR_D_PEER_EXT_GID 11
#define SMC_UAPI_LGR_D_SNDBUF_ALLOC 12
#define SMC_UAPI_LGR_D_DMB_ALLOC 13

/* of SMC_NLA_LGR_R_V2: limits of the group; of SMC_GEN_LGR_SMCR: bytes of buffers */
#define SMC_UAPI_LGR_R_V2_MAX_CONNS 2
#define SMC_UAPI_LGR_R_V2_MAX_LINKS 3
#define SMC_UAPI_LGR_R_SNDBUF_ALLOC 12
#define SMC_UAPI_LGR_R_RMB_ALLOC 13

/* struct smcd_diag_dmbinfo with the members that Linux 6.8 has added. */
struct smc_uapi_dmbinfo {
	__u32		linkid;
	__aligned_u64	peer_gid;
	__aligned_u64	my_gid;
	__aligned_u64	token;
	__aligned_u64	peer_token;
	__aligned_u64	peer_gid_ext;
	__aligned_u64	my_gid_ext;
};
static_assert(sizeof(struct smc_uapi_dmbinfo) >= sizeof(struct smcd_diag_dmbinfo));
static_assert(offsetof(struct smc_uapi_dmbinfo, peer_token) == offsetof(struct smcd_diag_dmbinfo, peer_token));

#endif /* SMC_UAPI_H */
