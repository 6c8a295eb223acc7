/* SPDX-License-Identifier: GPL-2.0-only */
/* Listing of connections by sock_diag. */
#ifndef SMC_CONN_SHOW_H
#define SMC_CONN_SHOW_H

struct smc_conn;
struct smc_diag_info;
struct smc_lgr_member;

struct smc_conn *smc_conn_orphan(struct smc_lgr_member *member);
void smc_conn_describe(struct smc_conn *conn, struct smc_diag_info *info);

#endif /* SMC_CONN_SHOW_H */
