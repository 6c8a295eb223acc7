/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Generic netlink family "smckit": requests that stock modules lack. smckit.yaml describes it for tools that read netlink
 * specifications. Numbers are never reused.
 */
#ifndef SMCKIT_UAPI_H
#define SMCKIT_UAPI_H

#define SMCKIT_GENL_FAMILY_NAME "smckit"
#define SMCKIT_GENL_FAMILY_VERSION 1

enum {
	SMCKIT_CMD_LGR_DELETE = 1,
};

/* What moves the data of a link group. */
enum {
	SMCKIT_TECH_SMCD,
	SMCKIT_TECH_SMCR,
};

/* Attributes of SMCKIT_CMD_LGR_DELETE */
enum {
	SMCKIT_A_LGR_ID = 1,	/* u32, as SMC_NLA_LGR_R_ID and SMC_NLA_LGR_D_ID */
	SMCKIT_A_LGR_TECH,	/* u8, SMCKIT_TECH_* */
	SMCKIT_A_LGR_END
};
#define SMCKIT_A_LGR_MAX (SMCKIT_A_LGR_END - 1)

#endif /* SMCKIT_UAPI_H */
