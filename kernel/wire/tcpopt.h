/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The TCP option (docs/protocol.md, 2) by which two hosts tell each other in the three-way handshake
 * that they speak SMC. The functions get the options of a TCP header, which follow its first 20 bytes,
 * and may be called in any context.
 */
#ifndef SMC_WIRE_TCPOPT_H
#define SMC_WIRE_TCPOPT_H

#include "shim.h"

#define SMC_TCPOPT_KIND		254		/* shared by all experiments, RFC 6994 */
#define SMC_TCPOPT_LEN		6
#define SMC_TCPOPT_MAGIC	0xE2D4C3D9u	/* "SMCR" in EBCDIC */
#define SMC_TCPOPT_SPACE	8		/* with two NOPs, to keep what follows aligned */
#define SMC_TCPOPT_MAX		40		/* all options of one TCP header */

int smc_tcpopt_find(const u8 *opts, size_t len);
bool smc_tcpopt_room(const u8 *opts, size_t len);
void smc_tcpopt_put(u8 *at);

#endif /* SMC_WIRE_TCPOPT_H */
