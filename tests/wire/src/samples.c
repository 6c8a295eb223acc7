// SPDX-License-Identifier: Apache-2.0
#include "samples.h"

#define PEER	{ 0x2b, 0x0b, 0x52, 0x54, 0x00, 0x00, 0x09, 0x02 }
#define MAC	{ 0x52, 0x54, 0x00, 0x00, 0x09, 0x02 }
#define GID_V1	{ 0xfe, 0x80, [8] = 0x50, 0x54, 0x00, 0xff, 0xfe, 0x00, 0x09, 0x02 }
#define GID_V2	{ [10] = 0xff, 0xff, 10, 0, 9, 2 }
#define EID	"SMCLAB-EID                      "
#define SEID	"IBM-SYSZ-ISMSEID0000000023456789"
#define HOST	"vmb                             "
#define NET6(n)	{ { 0x20, 0x01, 0x0d, 0xb8, 0, (n) }, 48 }

static const struct smc_clc_proposal rfc_v4 = {
	.version = 1, .path_v1 = SMC_PATH_R, .path_v2 = SMC_PATH_N,
	.peer_id = PEER, .gid = GID_V1, .mac = MAC,
	.has_prefix = true, .subnet = { 10, 0, 9, 0 }, .prefix_len = 24,
};

static const struct smc_clc_proposal rfc_v6 = {
	.version = 1, .path_v1 = SMC_PATH_R, .path_v2 = SMC_PATH_N,
	.peer_id = PEER, .gid = GID_V1, .mac = MAC,
	.has_prefix = true, .n_v6 = 2, .v6 = { NET6(1), NET6(2) },
};

static const struct smc_clc_proposal v1_d = {
	.version = 1, .path_v1 = SMC_PATH_D, .path_v2 = SMC_PATH_N,
	.ism_gid = 0x0102030405060708, .ism_chid = 0x07c1,
	.has_prefix = true, .subnet = { 10, 0, 9, 0 }, .prefix_len = 24,
};

static const struct smc_clc_proposal r1 = {
	.version = 2, .path_v1 = SMC_PATH_R, .path_v2 = SMC_PATH_N,
	.peer_id = PEER, .gid = GID_V1, .mac = MAC,
	.has_prefix = true, .subnet = { 10, 0, 9, 0 }, .prefix_len = 24,
};

static const struct smc_clc_proposal r1_r2 = {
	.version = 2, .path_v1 = SMC_PATH_R, .path_v2 = SMC_PATH_R,
	.peer_id = PEER, .gid = GID_V1, .mac = MAC,
	.has_prefix = true, .subnet = { 10, 0, 9, 0 }, .prefix_len = 24,
	.has_v2 = true, .n_eid = 1, .eid = { EID }, .release = 1,
	.rocev2_gid = GID_V2, .max_conns = 255, .max_links = 2, .features = 1,
};

static const struct smc_clc_proposal r2 = {
	.version = 2, .path_v1 = SMC_PATH_N, .path_v2 = SMC_PATH_R,
	.has_v2 = true, .n_eid = 1, .eid = { EID }, .release = 1,
	.rocev2_gid = GID_V2, .max_conns = 16, .max_links = 1, .features = 1,
};

static const struct smc_clc_proposal d2 = {
	.version = 2, .path_v1 = SMC_PATH_N, .path_v2 = SMC_PATH_D,
	.has_v2 = true, .n_eid = 1, .eid = { EID }, .release = 1, .features = 1,
	.has_d2 = true, .n_gid = 2,
	.gids = { { 0xbd73c0badada443e, 0xffff }, { 0xbdf32c6b61053fd7, 0xffff } },
};

static const struct smc_clc_proposal everything = {
	.version = 2, .path_v1 = SMC_PATH_B, .path_v2 = SMC_PATH_B,
	.peer_id = PEER, .gid = GID_V1, .mac = MAC,
	.ism_gid = 0x0102030405060708, .ism_chid = 0x07c1,
	.has_prefix = true, .n_v6 = 8,
	.v6 = { NET6(1), NET6(2), NET6(3), NET6(4), NET6(5), NET6(6), NET6(7), NET6(8) },
	.has_v2 = true, .n_eid = 8, .eid = { EID, SEID, EID, SEID, EID, SEID, EID, HOST },
	.release = 15, .seid_valid = true,
	.rocev2_gid = GID_V2, .max_conns = 0xfe, .max_links = 0xfd, .features = 0xfcfb,
	.vendor = SMC_CLC_VENDOR_IMMEDIATE,
	.has_d2 = true, .seid = SEID, .n_gid = 8,
	.gids = { { 1, 2 }, { 3, 4 }, { 5, 6 }, { 7, 8 }, { 9, 10 }, { 11, 12 }, { 13, 14 },
		  { 0xfedcba9876543210, 0xff00 } },
};

#define R_FIELDS(gid_) \
	.peer_id = PEER, .gid = gid_, .mac = MAC, .qpn = 0x123456, .rkey = 0x89abcdef, \
	.rmbe_idx = 1, .token = 0x01020304, .size_code = 2, .mtu_code = 3, \
	.rmb_addr = 0xff2824c2c5130000, .psn = 0x6773f2
#define D_FIELDS \
	.smcd = true, .ism_gid = 0xbd73c0badada443e, .dmb_token = 0x9ef5f031b8fb04ee, \
	.dmbe_idx = 7, .size_code = 6, .link_id = { 0, 1, 2, 3 }
#define D2_FIELDS D_FIELDS, .chid = 0xffff, .ext_gid = 0xbdf32c6b61053fd7, .eid = EID
#define FCE(r) \
	.first_contact = true, .has_fce = true, .os_type = 2, .release = (r), .host = HOST
#define V21	.max_conns = 255, .max_links = 2, .features = 0x8001, .vendor = 0xa1b2c3d4

static const struct smc_clc_accept r1_accept_fc = {
	.type = SMC_CLC_ACCEPT, .version = 1, .first_contact = true, R_FIELDS(GID_V1),
};

static const struct smc_clc_accept r1_confirm = {
	.type = SMC_CLC_CONFIRM, .version = 1, R_FIELDS(GID_V1),
};

static const struct smc_clc_accept d1_accept_fc = {
	.type = SMC_CLC_ACCEPT, .version = 1, .first_contact = true, D_FIELDS,
};

static const struct smc_clc_accept d1_confirm = {
	.type = SMC_CLC_CONFIRM, .version = 1, D_FIELDS,
};

static const struct smc_clc_accept r2_accept_fc = {
	.type = SMC_CLC_ACCEPT, .version = 2, R_FIELDS(GID_V2), .eid = EID, FCE(1), .direct = true, V21,
};

static const struct smc_clc_accept r2_accept_fc0 = {
	.type = SMC_CLC_ACCEPT, .version = 2, R_FIELDS(GID_V2), .eid = EID, FCE(0),
};

static const struct smc_clc_accept r2_accept = {
	.type = SMC_CLC_ACCEPT, .version = 2, R_FIELDS(GID_V2), .eid = EID,
};

static const struct smc_clc_accept r2_confirm_fc_none = {
	.type = SMC_CLC_CONFIRM, .version = 2, R_FIELDS(GID_V2), .eid = EID, FCE(1), V21,
};

static const struct smc_clc_accept r2_confirm_fc1 = {
	.type = SMC_CLC_CONFIRM, .version = 2, R_FIELDS(GID_V2), .eid = EID, FCE(1), V21,
	.n_gids = 1, .gids = { GID_V2 },
};

static const struct smc_clc_accept r2_confirm_fc2 = {
	.type = SMC_CLC_CONFIRM, .version = 2, R_FIELDS(GID_V2), .eid = EID, FCE(1), V21,
	.n_gids = 2, .gids = { GID_V2, GID_V1 },
};

static const struct smc_clc_accept r2_confirm_fc8 = {
	.type = SMC_CLC_CONFIRM, .version = 2, R_FIELDS(GID_V2), .eid = EID, FCE(1), V21,
	.n_gids = 8,
	.gids = { GID_V2, GID_V1, GID_V2, GID_V1, GID_V2, GID_V1, GID_V2, { [15] = 9 } },
};

static const struct smc_clc_accept r2_confirm = {
	.type = SMC_CLC_CONFIRM, .version = 2, R_FIELDS(GID_V2), .eid = EID,
};

static const struct smc_clc_accept d2_accept_fc0 = {
	.type = SMC_CLC_ACCEPT, .version = 2, D2_FIELDS, FCE(0),
};

static const struct smc_clc_accept d2_accept_fc1 = {
	.type = SMC_CLC_ACCEPT, .version = 2, D2_FIELDS, FCE(1), .features = 1,
};

static const struct smc_clc_accept d2_confirm_fc1 = {
	.type = SMC_CLC_CONFIRM, .version = 2, D2_FIELDS, FCE(1), V21,
};

static const struct smc_clc_accept d2_confirm = {
	.type = SMC_CLC_CONFIRM, .version = 2, D2_FIELDS,
};

static const struct smc_clc_decline v1_plain = {
	.version = 1, .peer_id = PEER, .code = 0x03030000,
};

static const struct smc_clc_decline v1_sync = {
	.version = 1, .sync = true, .code = 0x04000000,
};

static const struct smc_clc_decline v2_plain = {
	.version = 2, .code = 0x03030008, .os_type = 2,
};

static const struct smc_clc_decline v2_sync = {
	.version = 2, .sync = true, .peer_id = PEER, .code = 0x04000000, .os_type = 15,
	.more = { 0x01020304, 0x05060708, 0x090a0b0c, 0xf00dcafe },
};

#define P(n, len, b7, m) { n, SMC_CLC_PROPOSAL, len, b7, &(m), NULL, NULL }
#define A(n, len, b7, m) { n, SMC_CLC_ACCEPT, len, b7, NULL, &(m), NULL }
#define C(n, len, b7, m) { n, SMC_CLC_CONFIRM, len, b7, NULL, &(m), NULL }
#define D(n, len, b7, m) { n, SMC_CLC_DECLINE, len, b7, NULL, NULL, &(m) }

const struct sample samples[] = {
	P("PROPOSAL RFC 7609 IPv4", 52, 0x10, rfc_v4),
	P("PROPOSAL RFC 7609 IPv6", 86, 0x10, rfc_v6),
	P("PROPOSAL version 1 D", 92, 0x11, v1_d),
	P("PROPOSAL R1", 92, 0x28, r1),
	P("PROPOSAL R1 R2", 164, 0x20, r1_r2),
	P("PROPOSAL R2", 156, 0x22, r2),
	P("PROPOSAL D2", 224, 0x26, d2),
	P("PROPOSAL everything", 652, 0x2f, everything),
	A("ACCEPT R1 first", 68, 0x18, r1_accept_fc),
	C("CONFIRM R1 later", 68, 0x10, r1_confirm),
	A("ACCEPT D1 first", 48, 0x19, d1_accept_fc),
	C("CONFIRM D1 later", 48, 0x11, d1_confirm),
	A("ACCEPT R2 first", 160, 0x28, r2_accept_fc),
	A("ACCEPT R2.0 first", 160, 0x28, r2_accept_fc0),
	A("ACCEPT R2 later", 108, 0x20, r2_accept),
	C("CONFIRM R2 first, no GID", 164, 0x28, r2_confirm_fc_none),
	C("CONFIRM R2 first, 1 GID", 180, 0x28, r2_confirm_fc1),
	C("CONFIRM R2 first, 2 GIDs", 196, 0x28, r2_confirm_fc2),
	C("CONFIRM R2 first, 8 GIDs", 292, 0x28, r2_confirm_fc8),
	C("CONFIRM R2 later", 108, 0x20, r2_confirm),
	A("ACCEPT D2.0 first", 114, 0x29, d2_accept_fc0),
	A("ACCEPT D2 first", 130, 0x29, d2_accept_fc1),
	C("CONFIRM D2 first", 130, 0x29, d2_confirm_fc1),
	C("CONFIRM D2 later", 78, 0x21, d2_confirm),
	D("DECLINE version 1", 28, 0x10, v1_plain),
	D("DECLINE version 1 sync", 28, 0x18, v1_sync),
	D("DECLINE version 2", 44, 0x20, v2_plain),
	D("DECLINE version 2 sync", 44, 0x28, v2_sync),
};

const unsigned int n_samples = sizeof(samples) / sizeof(samples[0]);

int sample_encode(const struct sample *s, u8 *buf, size_t size)
{
	if (s->proposal)
		return smc_clc_proposal_encode(s->proposal, buf, size);
	if (s->accept)
		return smc_clc_accept_encode(s->accept, buf, size);
	return smc_clc_decline_encode(s->decline, buf, size);
}
