/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings of the environment.
 */
#ifndef SMCKIT_PRELOAD_SETTINGS_H
#define SMCKIT_PRELOAD_SETTINGS_H

#include "rules.h"

struct settings {
	bool debug;	     /* SMC_DEBUG: print for each socket what was done */
	bool quiet;	     /* SMC_QUIET: no warnings */
	bool require;	     /* SMC_REQUIRE: no TCP where AF_SMC is not available */
	bool off;	     /* the rules are invalid: all sockets are TCP or, with require, refused */
	int sndbuf, rcvbuf;  /* SMC_SNDBUF, SMC_RCVBUF: bytes, or 0 */
	struct rules rules;  /* SMC_PORT, SMC_TO, SMC_NOT */
};

const struct settings *settings_get(void);

#endif
