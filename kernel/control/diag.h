/* SPDX-License-Identifier: GPL-2.0-only */
/* The facts about a connection that sock_diag shows. conn/ fills it in, and the transport where that is said. */
#ifndef SMC_CONTROL_DIAG_H
#define SMC_CONTROL_DIAG_H

#include "../uapi/smc_uapi.h"

struct smc_diag_info {
	struct sock *sk;	/* the TCP sock beneath */
	u8 state;	/* as in struct smc_diag_msg, which has no names for it */
	u8 mode;	/* SMC_DIAG_MODE_*; transport */
	u8 shutdown;	/* RCV_SHUTDOWN, SEND_SHUTDOWN */
	bool has_dmb;	/* transport */
	struct smc_diag_conninfo conn;
	struct smc_uapi_progress progress;
	struct smc_uapi_dmbinfo dmb;	/* transport */
	bool has_lgr;	/* transport */
	struct smc_diag_lgrinfo lgr;	/* transport */
};

#endif /* SMC_CONTROL_DIAG_H */
