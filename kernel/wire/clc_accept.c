// SPDX-License-Identifier: GPL-2.0-only
#include "clc.h"

/* Offsets of SMC-R */
enum {
	R_PEER_ID = 8,
	R_GID = 16,
	R_MAC = 32,
	R_QPN = 38,
	R_RKEY = 41,
	R_RMBE_IDX = 45,
	R_TOKEN = 46,
	R_SIZE_MTU = 50,
	R_RMB_ADDR = 52,
	R_PSN = 61,
	R_EID = 64,	/* version 2; in version 1 the trailer is here */
	R_FCE = 104,
};

/* Offsets of SMC-D */
enum {
	D_GID = 8,
	D_TOKEN = 16,
	D_DMBE_IDX = 24,
	D_SIZE = 25,
	D_LINK_ID = 28,
	D_CHID = 32,	/* version 2 */
	D_EID = 34,
	D_EXT_GID = 66,
	D_FCE = 74,
	D_V1_LEN = 48,
};

/* Offsets within the first contact extension */
enum {
	FCE_FLAGS = 0,
	FCE_OS_RELEASE = 1,
	FCE_HOST = 4,
	FCE_SHORT = 36,	/* ends here in release 0 of SMC-D */
	FCE_MAX_CONNS = 36,
	FCE_MAX_LINKS = 37,
	FCE_FEATURES = 38,
	FCE_VENDOR = 40,
	FCE_LEN = 52,
};

/* The list of GIDs after it */
enum {
	LIST_COUNT = 0,
	LIST_GIDS = 4,
	LIST_GID_LEN = 16,
};

#define R_V1_LEN		68
#define FLAG_FIRST_CONTACT	0x08
#define PATH_MASK		0x03
#define FCE_DIRECT		0x80

static size_t fce_len(bool smcd, u8 release)
{
	return smcd && !release ? FCE_SHORT : FCE_LEN;
}

static void decode_r(const u8 *buf, struct smc_clc_accept *a)
{
	memcpy(a->peer_id, buf + R_PEER_ID, sizeof(a->peer_id));
	memcpy(a->gid, buf + R_GID, sizeof(a->gid));
	memcpy(a->mac, buf + R_MAC, sizeof(a->mac));
	a->qpn = smc_get_be24(buf + R_QPN);
	a->rkey = smc_get_be32(buf + R_RKEY);
	a->rmbe_idx = buf[R_RMBE_IDX];
	a->token = smc_get_be32(buf + R_TOKEN);
	a->size_code = buf[R_SIZE_MTU] >> 4;
	a->mtu_code = buf[R_SIZE_MTU] & 0x0f;
	a->rmb_addr = smc_get_be64(buf + R_RMB_ADDR);
	a->psn = smc_get_be24(buf + R_PSN);
	if (a->version > 1)
		memcpy(a->eid, buf + R_EID, sizeof(a->eid));
}

static void decode_d(const u8 *buf, struct smc_clc_accept *a)
{
	a->ism_gid = smc_get_be64(buf + D_GID);
	a->dmb_token = smc_get_be64(buf + D_TOKEN);
	a->dmbe_idx = buf[D_DMBE_IDX];
	a->size_code = buf[D_SIZE] >> 4;
	memcpy(a->link_id, buf + D_LINK_ID, sizeof(a->link_id));
	if (a->version > 1) {
		a->chid = smc_get_be16(buf + D_CHID);
		memcpy(a->eid, buf + D_EID, sizeof(a->eid));
		a->ext_gid = smc_get_be64(buf + D_EXT_GID);
	}
}

/*
 * Reads the extension at @ext, of which @left bytes are part of the message. Stock Linux does not
 * look at its length; a peer that sets the flag and leaves the extension out is refused here.
 */
static int decode_fce(const u8 *ext, size_t left, struct smc_clc_accept *a)
{
	if (left < fce_len(a->smcd, 0))
		return -EPROTO;
	a->has_fce = true;
	a->direct = ext[FCE_FLAGS] & FCE_DIRECT;
	a->os_type = ext[FCE_OS_RELEASE] >> 4;
	a->release = ext[FCE_OS_RELEASE] & 0x0f;
	memcpy(a->host, ext + FCE_HOST, sizeof(a->host));
	if (!a->release)
		return 0;
	if (left < FCE_LEN)
		return -EPROTO;
	a->max_conns = ext[FCE_MAX_CONNS];
	a->max_links = ext[FCE_MAX_LINKS];
	a->features = smc_get_be16(ext + FCE_FEATURES);
	a->vendor = smc_get_be32(ext + FCE_VENDOR);
	return 0;
}

/*
 * Linux never reads the list, so its absence and entries beyond what we keep are no errors; a
 * count that reaches beyond the message is one.
 */
static int decode_list(const u8 *list, size_t left, struct smc_clc_accept *a)
{
	if (left < LIST_GIDS)
		return 0;
	if (list[LIST_COUNT] > (left - LIST_GIDS) / LIST_GID_LEN)
		return -EPROTO;
	a->n_gids = list[LIST_COUNT] < SMC_CLC_GIDS ? list[LIST_COUNT] : SMC_CLC_GIDS;
	memcpy(a->gids, list + LIST_GIDS, (size_t)a->n_gids * LIST_GID_LEN);
	return 0;
}

/* Version 1 has a fixed length. Later versions have a minimum, since they may be extended. */
static bool length_fits(const struct smc_clc_header *h, bool smcd)
{
	if (h->version == 1)
		return h->length == (smcd ? D_V1_LEN : R_V1_LEN);
	return h->length >= (smcd ? D_FCE : R_FCE) + SMC_CLC_TRAILER_LEN;
}

/**
 * smc_clc_accept_decode - reads an ACCEPT or a CONFIRM
 * @buf: the message, as much of it as smc_clc_header_keep() says
 * @len: how much that is, in bytes
 * @a: result
 *
 * In every version the flags of the header say the path. Either eye catcher is accepted.
 *
 * Return: 0, or -EPROTO.
 */
int smc_clc_accept_decode(const u8 *buf, size_t len, struct smc_clc_accept *a)
{
	struct smc_clc_header h;
	size_t at, end;
	u8 path;

	if (smc_clc_header_check(buf, len, &h))
		return -EPROTO;
	path = h.flags & PATH_MASK;
	if (h.type != SMC_CLC_ACCEPT && h.type != SMC_CLC_CONFIRM)
		return -EPROTO;
	if (path > SMC_PATH_D || !length_fits(&h, path == SMC_PATH_D))
		return -EPROTO;
	memset(a, 0, sizeof(*a));
	a->type = h.type;
	a->version = h.version;
	a->smcd = path == SMC_PATH_D;
	a->first_contact = h.flags & FLAG_FIRST_CONTACT;
	if (a->smcd)
		decode_d(buf, a);
	else
		decode_r(buf, a);
	if (a->version == 1 || !a->first_contact)
		return 0;

	/* The kept part of a longer message has no trailer. */
	end = len < h.length ? len : len - SMC_CLC_TRAILER_LEN;
	at = a->smcd ? D_FCE : R_FCE;
	if (decode_fce(buf + at, end - at, a))
		return -EPROTO;
	if (a->smcd)
		return 0;
	at += FCE_LEN;
	return a->type == SMC_CLC_CONFIRM ? decode_list(buf + at, end - at, a) : 0;
}

static void encode_r(const struct smc_clc_accept *a, u8 *buf)
{
	memcpy(buf + R_PEER_ID, a->peer_id, sizeof(a->peer_id));
	memcpy(buf + R_GID, a->gid, sizeof(a->gid));
	memcpy(buf + R_MAC, a->mac, sizeof(a->mac));
	smc_put_be24(buf + R_QPN, a->qpn);
	smc_put_be32(buf + R_RKEY, a->rkey);
	buf[R_RMBE_IDX] = a->rmbe_idx;
	smc_put_be32(buf + R_TOKEN, a->token);
	buf[R_SIZE_MTU] = (u8)(a->size_code << 4 | a->mtu_code);
	smc_put_be64(buf + R_RMB_ADDR, a->rmb_addr);
	smc_put_be24(buf + R_PSN, a->psn);
	if (a->version > 1)
		memcpy(buf + R_EID, a->eid, sizeof(a->eid));
}

static void encode_d(const struct smc_clc_accept *a, u8 *buf)
{
	smc_put_be64(buf + D_GID, a->ism_gid);
	smc_put_be64(buf + D_TOKEN, a->dmb_token);
	buf[D_DMBE_IDX] = a->dmbe_idx;
	buf[D_SIZE] = (u8)(a->size_code << 4);
	memcpy(buf + D_LINK_ID, a->link_id, sizeof(a->link_id));
	if (a->version > 1) {
		smc_put_be16(buf + D_CHID, a->chid);
		memcpy(buf + D_EID, a->eid, sizeof(a->eid));
		smc_put_be64(buf + D_EXT_GID, a->ext_gid);
	}
}

static void encode_fce(const struct smc_clc_accept *a, u8 *ext)
{
	ext[FCE_FLAGS] = a->direct ? FCE_DIRECT : 0;
	ext[FCE_OS_RELEASE] = (u8)(a->os_type << 4 | a->release);
	memcpy(ext + FCE_HOST, a->host, sizeof(a->host));
	if (!a->release)
		return;
	ext[FCE_MAX_CONNS] = a->max_conns;
	ext[FCE_MAX_LINKS] = a->max_links;
	smc_put_be16(ext + FCE_FEATURES, a->features);
	smc_put_be32(ext + FCE_VENDOR, a->vendor);
}

static bool has_list(const struct smc_clc_accept *a)
{
	return a->has_fce && !a->smcd && a->type == SMC_CLC_CONFIRM;
}

static bool accept_fields_fit(const struct smc_clc_accept *a)
{
	if (a->type != SMC_CLC_ACCEPT && a->type != SMC_CLC_CONFIRM)
		return false;
	if (a->version < 1 || a->version > 15 || a->size_code > 15 || a->mtu_code > 15)
		return false;
	if (a->qpn >> 24 || a->psn >> 24 || a->os_type > 15 || a->release > 15)
		return false;
	/* A peer that finds the flag reads the extension without checking the length. */
	if (a->has_fce != (a->version > 1 && a->first_contact))
		return false;
	if (!a->release && (a->max_conns || a->max_links || a->features || a->vendor))
		return false;
	return a->n_gids <= (has_list(a) ? SMC_CLC_GIDS : 0);
}

static u16 accept_length(const struct smc_clc_accept *a)
{
	size_t len;

	if (a->version == 1)
		return a->smcd ? D_V1_LEN : R_V1_LEN;
	len = a->smcd ? D_FCE : R_FCE;
	if (a->has_fce)
		len += fce_len(a->smcd, a->release);
	if (has_list(a))
		len += LIST_GIDS + (size_t)a->n_gids * LIST_GID_LEN;
	return (u16)(len + SMC_CLC_TRAILER_LEN);
}

/**
 * smc_clc_accept_encode - writes an ACCEPT or a CONFIRM
 * @a: what to write; fields of the other path and, in version 1, of version 2 are left out
 * @buf: where to
 * @size: space there in bytes; SMC_CLC_MAX is always enough
 *
 * Return: the length of the message; -EINVAL if a field does not fit its bits, or if a part is
 * there that this message does not have, or lacks one that it must have; -ENOSPC.
 */
int smc_clc_accept_encode(const struct smc_clc_accept *a, u8 *buf, size_t size)
{
	struct smc_clc_header h = {
		.type = a->type,
		.version = a->version,
		.smcd = a->smcd,
	};
	u8 *ext;

	if (!accept_fields_fit(a))
		return -EINVAL;
	h.length = accept_length(a);
	if (size < h.length)
		return -ENOSPC;
	h.flags = (u8)((a->first_contact ? FLAG_FIRST_CONTACT : 0) |
		       (a->smcd ? SMC_PATH_D : SMC_PATH_R));
	memset(buf, 0, h.length);
	if (a->smcd)
		encode_d(a, buf);
	else
		encode_r(a, buf);
	ext = buf + (a->smcd ? D_FCE : R_FCE);
	if (a->has_fce)
		encode_fce(a, ext);
	if (has_list(a)) {
		u8 *list = ext + FCE_LEN;

		list[LIST_COUNT] = a->n_gids;
		memcpy(list + LIST_GIDS, a->gids, (size_t)a->n_gids * LIST_GID_LEN);
	}
	smc_clc_header_encode(&h, buf);
	return h.length;
}
