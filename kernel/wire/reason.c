// SPDX-License-Identifier: GPL-2.0-only
#include "reason.h"

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
	int first = 0, end = SMC_REASON_COUNT, middle;

	while (first < end) {
		middle = (first + end) / 2;
		if (smc_reasons[middle].code == code)
			return middle;
		if (smc_reasons[middle].code < code)
			first = middle + 1;
		else
			end = middle;
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
	return index < SMC_REASON_COUNT ? smc_reasons[index].code : 0;
}

/**
 * smc_reason_for_peer - the code that a DECLINE gives for a reason of this host
 * @code: the reason
 *
 * A peer cannot change our settings, so all it needs to know is that memory is short.
 *
 * Context: any.
 * Return: the same code, or a more general one that all implementations know.
 */
u32 smc_reason_for_peer(u32 code)
{
	return code == SMC_REASON_MEM_LIMIT ? SMC_REASON_MEM : code;
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

	return i < 0 ? "UNKNOWN" : smc_reasons[i].name;
}

/**
 * smc_reason_is_lasting - would the next connection with the peer most likely be TCP for the same reason?
 * @reason: why a connection is TCP
 * @peer_diagnosis: the code that the peer's DECLINE had, if @reason is SMC_REASON_PEER_DECLINED; peers may send any
 *
 * Context: any.
 * Return: false for a code that is not known.
 */
bool smc_reason_is_lasting(u32 reason, u32 peer_diagnosis)
{
	int i = smc_reason_index(reason == SMC_REASON_PEER_DECLINED ? peer_diagnosis : reason);

	return i >= 0 && smc_reasons[i].lasting;
}
