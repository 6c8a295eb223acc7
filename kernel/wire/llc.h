/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Link Layer Control (RFC 7609, A.3; docs/protocol.md, 7): the two ends of an SMC-R link group add and
 * delete links, and exchange the keys of their buffers on each link. A message takes 44 bytes, some of
 * version 2 more.
 *
 * A list may take 4 KiB, too much for a kernel stack, so it stays in the message: the caller reads it
 * there after decoding, and writes it there after encoding, entry by entry. Integers in the structs
 * are in host order, GIDs, MACs and user IDs are the bytes of the wire. A decoder sets every byte
 * of its result, which is undefined after an error. The functions may be called in any context.
 *
 * llc.c has the functions for messages, llc_link.c those for pairs and GIDs, llc_rkey.c those for keys.
 */
#ifndef SMC_WIRE_LLC_H
#define SMC_WIRE_LLC_H

#include "shim.h"

enum smc_llc_type {
	SMC_LLC_CONFIRM_LINK = 1,
	SMC_LLC_ADD_LINK,
	SMC_LLC_ADD_LINK_CONTINUATION,		/* version 1 */
	SMC_LLC_DELETE_LINK,
	SMC_LLC_REQUEST_ADD_LINK,		/* version 2 */
	SMC_LLC_CONFIRM_RKEY,
	SMC_LLC_TEST_LINK,
	SMC_LLC_CONFIRM_RKEY_CONTINUATION,	/* version 1; for groups of more than three links */
	SMC_LLC_DELETE_RKEY,
};

/* Why an ADD LINK is rejected */
enum smc_llc_reject {
	SMC_LLC_REJECT_PATH = 1,	/* there is no other path */
	SMC_LLC_REJECT_MTU,
};

/* Why a link is deleted, or why it was not */
enum smc_llc_reason {
	SMC_LLC_PATH_LOST = 0x00010000,
	SMC_LLC_BY_OPERATOR = 0x00020000,
	SMC_LLC_BY_PROGRAM = 0x00030000,	/* no connection uses it */
	SMC_LLC_VIOLATION = 0x00040000,		/* of the protocol */
	SMC_LLC_ASYMMETRIC = 0x00050000,	/* and no longer needed */
	SMC_LLC_NO_LINK = 0x00100000,		/* responses: no such link */
	SMC_LLC_NO_GROUP = 0x00200000,		/* responses: no such link group */
};

#define SMC_LLC_LEN		44
#define SMC_LLC_MAX		8192	/* what peers have room for */
#define SMC_LLC_RKEYS_V1	8	/* at most, in a DELETE RKEY of version 1 */

struct smc_llc_confirm_link {
	u8 mac[6];
	u8 gid[16];
	u32 qpn;		/* 24 bits */
	u8 link;		/* its number, which the server gives */
	u8 user_id[4];		/* means something to the sender only */
	u8 max_links;		/* per link group */
	u8 max_conns;		/* per link group; version 2 */
	bool no_eyecatcher;	/* in the sender's buffers; Linux insists on it */
};

struct smc_llc_add_link {
	u8 mac[6];
	u8 gid[16];
	u32 qpn;		/* 24 bits */
	u8 link;
	u8 mtu_code;		/* 4 bits */
	u32 psn;		/* 24 bits */
	bool reject;		/* of a response */
	u8 reason;		/* enum smc_llc_reject; Linux gives none in version 2 */

	/* extension: version 2 and not rejected; peers other than Linux may leave it out */
	bool has_ext;
	bool direct;		/* no gateway between the peers */
	u8 target_gid[16];	/* Linux: gid once more */
	u8 n_pairs;
};

/* A buffer on two links, in ADD LINK of version 2 and in its continuation of version 1 */
struct smc_llc_pair {
	u32 known;		/* its key on the link that carries the message */
	u32 rkey;		/* on the new link, as is the address */
	u64 addr;
};

struct smc_llc_add_link_continuation {
	u8 link;
	u8 left;		/* pairs to come, those of this message included */
};

struct smc_llc_delete_link {
	bool all;		/* the link group ends; no number is given */
	bool orderly;
	u8 link;
	u32 reason;		/* enum smc_llc_reason, 0 for a response that it is done */
};

struct smc_llc_request_add_link {
	u8 n_gids;
};

struct smc_llc_rtoken {
	u8 link;
	u32 rkey;
	u64 addr;
};

/* CONFIRM RKEY, two other links in a message, and its continuation, three */
struct smc_llc_confirm_rkey {
	bool negative;		/* of a response, as is retry */
	bool retry;		/* once no link is being added or deleted */
	u32 rkey;		/* on the link that carries it; not in the continuation */
	u64 addr;		/* on the link that carries it; not in the continuation */
	u8 left;		/* other links to come, those of this message included */
	struct smc_llc_rtoken others[3];
};

struct smc_llc_delete_rkey {
	bool negative;		/* of a response */
	u8 n_rkeys;
	u8 failed;		/* of a response: how many; version 1: which, 0x80 the first */
};

struct smc_llc_test_link {
	u8 data[16];		/* comes back in the response */
};

struct smc_llc {
	u8 type;		/* enum smc_llc_type */
	u8 version;		/* 1 or 2 */
	bool response;
	/*
	 * Version 2: lengths and counts are little-endian. Linux uses the byte order of its machine,
	 * which its first message tells; until then, our own is the best guess.
	 */
	bool swapped;
	u16 length;		/* in bytes; smc_llc_encode() ignores it */
	union {
		struct smc_llc_confirm_link confirm_link;
		struct smc_llc_add_link add_link;
		struct smc_llc_add_link_continuation add_link_continuation;
		struct smc_llc_delete_link delete_link;
		struct smc_llc_request_add_link request_add_link;
		struct smc_llc_confirm_rkey confirm_rkey;	/* and its continuation */
		struct smc_llc_delete_rkey delete_rkey;
		struct smc_llc_test_link test_link;
	};
};

int smc_llc_decode(const u8 *buf, size_t len, struct smc_llc *m);
int smc_llc_encode(const struct smc_llc *m, u8 *buf, size_t size);

bool smc_llc_pair_at(const struct smc_llc *m, const u8 *buf, unsigned int i,
		     struct smc_llc_pair *p);
void smc_llc_pair_set(u8 *buf, unsigned int i, const struct smc_llc_pair *p);
bool smc_llc_gid_at(const struct smc_llc *m, const u8 *buf, unsigned int i, u8 gid[16]);
void smc_llc_gid_set(u8 *buf, unsigned int i, const u8 gid[16]);
bool smc_llc_rkey_at(const struct smc_llc *m, const u8 *buf, unsigned int i, u32 *rkey);
void smc_llc_rkey_set(u8 *buf, unsigned int i, u32 rkey);

#endif /* SMC_WIRE_LLC_H */
