// SPDX-License-Identifier: GPL-2.0-only
#include "reason.h"

/* The names are those under which tools print the codes; ascending, so that a listing is sorted. */
static const struct {
	u32 code;
	const char *name;
} reasons[] = {
	{ SMC_REASON_MEM, "MEMORY" },
	{ SMC_REASON_TIMEOUT_CONFIRM_LINK, "TIMEOUT_CL" },
	{ SMC_REASON_TIMEOUT_ADD_LINK, "TIMEOUT_AL" },
	{ SMC_REASON_CONFIG, "CNF_ERR" },
	{ SMC_REASON_PEER_NO_SMC, "PEER_NO_SMC" },
	{ SMC_REASON_IPSEC, "IPSEC" },
	{ SMC_REASON_NO_DEV, "NOSMCDEV" },
	{ SMC_REASON_NO_D_DEV, "NOSMCDDEV" },
	{ SMC_REASON_NO_R_DEV, "NOSMCRDEV" },
	{ SMC_REASON_NO_ISM_V2, "NOISM2SUPP" },
	{ SMC_REASON_NO_V2_EXT, "NOV2EXT" },
	{ SMC_REASON_NO_V2_D_EXT, "NOV2DEXT" },
	{ SMC_REASON_NO_SEID, "NOSEID" },
	{ SMC_REASON_NO_D2_DEV, "NOSMCD2DEV" },
	{ SMC_REASON_NO_UEID, "NOUEID" },
	{ SMC_REASON_RELEASE, "RELEASEERR" },
	{ SMC_REASON_MAX_CONNS, "MAXCONNERR" },
	{ SMC_REASON_MAX_LINKS, "MAXLINKERR" },
	{ SMC_REASON_MODE, "MODEUNSUPP" },
	{ SMC_REASON_RMBE_EYECATCHER, "RMBE_EC" },
	{ SMC_REASON_OPTION, "OPTUNSUPP" },
	{ SMC_REASON_PREFIX, "DIFFPREFIX" },
	{ SMC_REASON_GET_VLAN, "GETVLANERR" },
	{ SMC_REASON_ISM_VLAN, "ISMVLANERR" },
	{ SMC_REASON_NO_ACTIVE_LINK, "NOACTLINK" },
	{ SMC_REASON_NO_SERVER_LINK, "NOSRVLINK" },
	{ SMC_REASON_VERSION, "VERSMISMAT" },
	{ SMC_REASON_MAX_DMB, "MAX_DMB" },
	{ SMC_REASON_NO_ROUTE, "NOROUTE" },
	{ SMC_REASON_NOT_INDIRECT, "NOINDIRECT" },
	{ SMC_REASON_SYNC, "SYNCERR" },
	{ SMC_REASON_PEER_DECLINED, "PEERDECL" },
	{ SMC_REASON_INTERNAL, "INTERR" },
	{ SMC_REASON_RTOKEN, "ERR_RTOK" },
	{ SMC_REASON_READY_LINK, "ERR_RDYLNK" },
	{ SMC_REASON_REG_BUF, "ERR_REGBUF" },
};

_Static_assert(sizeof(reasons) / sizeof(reasons[0]) == SMC_REASON_COUNT,
	       "SMC_REASON_COUNT does not match the table");

/**
 * smc_reason_index - the place of a code in the table
 * @code: a diagnosis code; peers may send any
 *
 * The index is dense, for arrays of counters.
 *
 * Context: any.
 * Return: 0 to SMC_REASON_COUNT - 1, or -1 for a code that is not known.
 */
int smc_reason_index(u32 code)
{
	int i;

	for (i = 0; i < SMC_REASON_COUNT; i++) {
		if (reasons[i].code == code)
			return i;
	}
	return -1;
}

/**
 * smc_reason_at - the code at a place of the table
 * @index: as smc_reason_index() returns it
 *
 * Context: any.
 * Return: the code, or 0, which is none, beyond the end.
 */
u32 smc_reason_at(unsigned int index)
{
	return index < SMC_REASON_COUNT ? reasons[index].code : 0;
}

/**
 * smc_reason_name - the short name of a code
 * @code: a diagnosis code; peers may send any
 *
 * Context: any.
 * Return: a constant string, "UNKNOWN" for a code that is not known; never NULL.
 */
const char *smc_reason_name(u32 code)
{
	int i = smc_reason_index(code);

	return i < 0 ? "UNKNOWN" : reasons[i].name;
}
