/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * <linux/smc.h>, and what it lacks before Linux 6.12. Numbers of attributes have names of their own, because the preprocessor
 * cannot ask for the members of an enum.
 */
#ifndef SMC_UAPI_H
#define SMC_UAPI_H

#include <linux/build_bug.h>
#include <linux/in.h>
#include <linux/smc.h>
#include <linux/smc_diag.h>

#include "smc_uapi_gen.h"

/* The protocols of AF_SMC sockets: which addresses they use. No header of the kernel has them. */
#define SMCPROTO_SMC 0
#define SMCPROTO_SMC6 1

/* socket(AF_INET or AF_INET6, SOCK_STREAM, IPPROTO_SMC); in <linux/in.h> since Linux 6.11. */
#ifndef IPPROTO_SMC
#define IPPROTO_SMC 256
#endif

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

/* How far a connection is: SMC_UAPI_DIAG_PROGRESS. Members may be added at the end. */
struct smc_uapi_progress {
	__aligned_u64	sent;		/* bytes that the application has written */
	__aligned_u64	acked;		/* of these, those that the peer has reported as read */
	__aligned_u64	received;	/* bytes that the peer has written */
	__aligned_u64	read;		/* of these, those that the application has read */
	__aligned_u64	age_ms;		/* since the handshake made the connection */
	__aligned_u64	failovers;	/* how often it has changed to another link */
};

#endif /* SMC_UAPI_H */
