/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Why a connection is plain TCP: the diagnosis codes of DECLINE messages, which are also the
 * fallback reasons that user space sees. Values are those of the wire, as integers.
 */
#ifndef SMC_WIRE_REASON_H
#define SMC_WIRE_REASON_H

#include "reason_gen.h"
#include "shim.h"

/* The table is dense and ascending. Its names are those that tools print. */
struct smc_reason_entry {
	u32 code;
	const char *name;
	bool lasting;
};

extern const struct smc_reason_entry smc_reasons[SMC_REASON_COUNT];

const char *smc_reason_name(u32 code);
int smc_reason_index(u32 code);
u32 smc_reason_at(unsigned int index);
bool smc_reason_is_lasting(u32 reason, u32 peer_diagnosis);
u32 smc_reason_for_peer(u32 code);

#endif /* SMC_WIRE_REASON_H */
