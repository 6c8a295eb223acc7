/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Connection Layer Control (RFC 7609, A.2; docs/protocol.md, 3): the four messages of the handshake
 * over the TCP connection, PROPOSAL, ACCEPT, CONFIRM and DECLINE, in versions 1 and 2.
 *
 * Decoders accept what a stock Linux peer accepts, and RFC 7609 messages of version 1; encoders
 * write what such peers expect and refuse the rest. Integers in the structs are in host order,
 * identifiers (GIDs, MACs, EIDs, prefixes) are the bytes of the wire. A decoder sets every byte
 * of its result, which is undefined after an error.
 *
 * The functions may be called in any context. A PROPOSAL is too large for a kernel stack: its struct
 * takes about 700 bytes, and so does its message.
 *
 * clc_header.c, clc_proposal.c, clc_accept.c and clc_decline.c have the functions of that name.
 */
#ifndef SMC_WIRE_CLC_H
#define SMC_WIRE_CLC_H

#include "shim.h"

enum smc_clc_type {
	SMC_CLC_PROPOSAL = 1,
	SMC_CLC_ACCEPT,
	SMC_CLC_CONFIRM,
	SMC_CLC_DECLINE,
};

/* Offers of a PROPOSAL, for each version. */
enum smc_clc_path {
	SMC_PATH_R,	/* zero means SMC-R, so a version without any path has to say so */
	SMC_PATH_D,
	SMC_PATH_N,	/* none */
	SMC_PATH_B,	/* both */
};

#define SMC_CLC_HEADER_LEN	8
#define SMC_CLC_TRAILER_LEN	4

/* How much of a message a peer keeps; see smc_clc_header_keep(). */
#define SMC_CLC_PROPOSAL_MAX	652
#define SMC_CLC_ACCEPT_MAX	160
#define SMC_CLC_CONFIRM_MAX	652
#define SMC_CLC_DECLINE_MAX	44
#define SMC_CLC_MAX		652

#define SMC_CLC_DECLINE_V1_LEN	28
#define SMC_CLC_DECLINE_V2_LEN	44

#define SMC_CLC_RELEASE		1	/* of version 2, the newest that this module speaks: 2.1 */
#define SMC_CLC_OS_LINUX	2

#define SMC_EID_LEN		32
#define SMC_HOSTNAME_LEN	32
#define SMC_CLC_EIDS		8	/* at most, of users, in a PROPOSAL */
#define SMC_CLC_PREFIXES	8	/* at most, of IPv6, in a PROPOSAL */
#define SMC_CLC_GIDS		8	/* at most, in a PROPOSAL (SMC-D) or CONFIRM (SMC-R) */

struct smc_clc_header {
	u8 type;	/* enum smc_clc_type */
	u8 version;	/* 1 to 15 */
	u16 length;	/* of the message in bytes, header and trailer included */
	bool smcd;	/* which of the two eye catchers it has */
	u8 flags;	/* low nibble of byte 7; its meaning depends on the type */
};

int smc_clc_header_decode(const u8 *buf, size_t len, struct smc_clc_header *h);
size_t smc_clc_header_keep(const struct smc_clc_header *h);
int smc_clc_header_check(const u8 *buf, size_t len, struct smc_clc_header *h);
void smc_clc_header_encode(const struct smc_clc_header *h, u8 *buf);

/* true if the path includes SMC-D */
static inline bool smc_clc_path_has_d(u8 path)
{
	return path == SMC_PATH_D || path == SMC_PATH_B;
}

/* true if the path includes SMC-R */
static inline bool smc_clc_path_has_r(u8 path)
{
	return path == SMC_PATH_R || path == SMC_PATH_B;
}

struct smc_clc_prefix6 {
	u8 prefix[16];
	u8 len;		/* in bits */
};

struct smc_clc_gid {
	u64 gid;
	u16 chid;
};

/*
 * The vendor word (docs/protocol.md, 12). Three bytes are an OUI, locally administered, so that no company
 * owns it; one byte has flags. The lowest bit: CDC messages of SMC-R may be immediate data. The upper four
 * bits, in ACCEPT and CONFIRM: the binary logarithm of the number of receives that the link has posted, 0
 * if unknown. Receivers ignore the other bits.
 */
#define SMC_CLC_VENDOR_IMMEDIATE 0x02534b01
#define SMC_CLC_VENDOR_OUI 0xffffff00

/* smc_clc_vendor_immediate() - returns whether a vendor word allows CDC messages as immediate data */
static inline bool smc_clc_vendor_immediate(u32 vendor)
{
	u32 mask = SMC_CLC_VENDOR_OUI | 1;

	return (vendor & mask) == (SMC_CLC_VENDOR_IMMEDIATE & mask);
}

/* smc_clc_vendor_recvs() - returns how many receives are posted by a vendor word, 0 if unknown */
static inline u32 smc_clc_vendor_recvs(u32 vendor)
{
	u32 code = vendor >> 4 & 0xf;

	return smc_clc_vendor_immediate(vendor) && code ? 1U << code : 0;
}

/* smc_clc_vendor_with_recvs() - returns the vendor word for @recvs receives, rounded down to a power of two */
static inline u32 smc_clc_vendor_with_recvs(u32 recvs)
{
	u32 code = 0;

	while (code < 15 && recvs >> (code + 1))
		code++;
	return SMC_CLC_VENDOR_IMMEDIATE | code << 4;
}

/* Feature bits. They help to identify a peer; nothing depends on them. */
#define SMC_CLC_FEATURE_EMULATED_ISM 0x0001	/* knows devices with GIDs of 128 bits */
#define SMC_CLC_FEATURES SMC_CLC_FEATURE_EMULATED_ISM

struct smc_clc_proposal {
	u8 version;
	u8 path_v1;		/* enum smc_clc_path */
	u8 path_v2;		/* enum smc_clc_path; none in version 1 */
	u8 peer_id[8];		/* may be zero, as gid and mac, if path_v1 lacks SMC-R */
	u8 gid[16];
	u8 mac[6];
	u64 ism_gid;		/* of a native ISM device, 0 without path_v1 */
	u16 ism_chid;
	u32 vendor;		/* version 2; 0 names no vendor */

	bool has_prefix;	/* iff path_v1 is not none */
	u8 subnet[4];		/* IPv4, with the host bits zero */
	u8 prefix_len;		/* of subnet, in bits */
	u8 n_v6;		/* 0 for IPv4 */
	struct smc_clc_prefix6 v6[SMC_CLC_PREFIXES];

	bool has_v2;		/* iff path_v2 is not none */
	u8 n_eid;
	u8 eid[SMC_CLC_EIDS][SMC_EID_LEN];
	u8 release;		/* 0 to 15 */
	bool seid_valid;
	u8 rocev2_gid[16];
	u8 max_conns;		/* per link group; SMC-R and release 1 on */
	u8 max_links;		/* per link group; SMC-R and release 1 on */
	u16 features;		/* SMC_CLC_FEATURE_* */

	bool has_d2;		/* path_v2 includes SMC-D, and the part about it is there */
	u8 seid[SMC_EID_LEN];
	u8 n_gid;		/* entries: an emulated ISM device takes two */
	struct smc_clc_gid gids[SMC_CLC_GIDS];
};

int smc_clc_proposal_decode(const u8 *buf, size_t len, struct smc_clc_proposal *p);
int smc_clc_proposal_encode(const struct smc_clc_proposal *p, u8 *buf, size_t size);

/* ACCEPT and CONFIRM: each side describes itself. */
struct smc_clc_accept {
	u8 type;		/* SMC_CLC_ACCEPT or SMC_CLC_CONFIRM */
	u8 version;
	bool smcd;		/* the path chosen: this or SMC-R */
	bool first_contact;	/* the sender forms a new link group */
	u8 size_code;		/* of the receive buffer: 16 KiB << size_code */

	/* SMC-R */
	u8 peer_id[8];
	u8 gid[16];
	u8 mac[6];
	u32 qpn;		/* 24 bits */
	u32 rkey;
	u8 rmbe_idx;		/* from 1 */
	u32 token;
	u8 mtu_code;		/* 1 for 256 bytes to 5 for 4096; not checked */
	u64 rmb_addr;
	u32 psn;		/* 24 bits */

	/* SMC-D */
	u64 ism_gid;
	u64 dmb_token;
	u8 dmbe_idx;		/* from 0 */
	u8 link_id[4];
	u16 chid;		/* version 2 */
	u64 ext_gid;		/* version 2: second half of the GID of an emulated device */

	u8 eid[SMC_EID_LEN];	/* version 2 */

	/* first contact extension: version 2 and first_contact */
	bool has_fce;
	bool direct;		/* SMC-R: no gateway between the peers */
	u8 os_type;
	u8 release;
	u8 host[SMC_HOSTNAME_LEN];
	u8 max_conns;		/* this and what follows: release 1 on */
	u8 max_links;
	u16 features;		/* SMC_CLC_FEATURE_*; in a CONFIRM those that both have */
	u32 vendor;

	/* SMC-R CONFIRM with the extension */
	u8 n_gids;
	u8 gids[SMC_CLC_GIDS][16];
};

int smc_clc_accept_decode(const u8 *buf, size_t len, struct smc_clc_accept *a);
int smc_clc_accept_encode(const struct smc_clc_accept *a, u8 *buf, size_t size);

struct smc_clc_decline {
	u8 version;
	bool sync;		/* the peers are out of step: no new connection joins the group until its link has been tested */
	u8 peer_id[8];
	u32 code;		/* reason.h */
	u8 os_type;
	u32 more[4];		/* version 2 */
};

int smc_clc_decline_decode(const u8 *buf, size_t len, struct smc_clc_decline *d);
int smc_clc_decline_encode(const struct smc_clc_decline *d, u8 *buf, size_t size);

#endif /* SMC_WIRE_CLC_H */
