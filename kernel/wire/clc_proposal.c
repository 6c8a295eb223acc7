// SPDX-License-Identifier: GPL-2.0-only
#include "clc.h"

/* Offsets in the message */
enum {
	PEER_ID = 8,
	GID = 16,
	MAC = 32,
	PREFIX_OFFSET = 38,
	BASE_LEN = 40,
};

/* The area after the base: always there in version 2, and if version 1 offers SMC-D */
enum {
	AREA_GID = 40,
	AREA_CHID = 48,
	AREA_V2_OFFSET = 50,
	AREA_V2_ORIGIN = 52,
	AREA_VENDOR = 52,
	AREA_LEN = 40,
};

/* Offsets in the part about IP prefixes */
enum {
	PREFIX_SUBNET = 0,
	PREFIX_BITS = 4,
	PREFIX_N_V6 = 7,
	PREFIX_LEN = 8,
	V6_BITS = 16,
	V6_LEN = 17,
};

/* Offsets in the version 2 part */
enum {
	V2_N_EID = 0,
	V2_N_GID = 1,
	V2_RELEASE = 3,
	V2_D2_OFFSET = 6,
	V2_D2_ORIGIN = 8,
	V2_ROCEV2_GID = 8,
	V2_MAX_CONNS = 24,
	V2_MAX_LINKS = 25,
	V2_FEATURES = 26,
	V2_LEN = 40,
};

/* Offsets in the SMC-Dv2 part */
enum {
	D2_SEID = 0,
	D2_LEN = 48,
	GID_CHID = 8,
	GID_LEN = 10,
};

#define V2_OFFSET_MAX	172	/* with eight IPv6 prefixes before it */
#define D2_OFFSET_MAX	288	/* with eight EIDs before it */
#define SEID_VALID	0x01

/*
 * The peer chooses the offsets of the parts. Each function reads one part, which must end at @end
 * or before, and returns its size in bytes or -EPROTO. smc_clc_proposal_decode() checks that the
 * sizes add up to the length of the message, as Linux does.
 */

static int decode_prefix(const u8 *buf, size_t end, struct smc_clc_proposal *p)
{
	const u8 *part;
	size_t at, size;
	unsigned int i;

	at = BASE_LEN + (size_t)smc_get_be16(buf + PREFIX_OFFSET);
	if (at + PREFIX_LEN > end)
		return -EPROTO;
	part = buf + at;
	p->n_v6 = part[PREFIX_N_V6];
	if (p->n_v6 > SMC_CLC_PREFIXES)
		return -EPROTO;
	size = PREFIX_LEN + (size_t)p->n_v6 * V6_LEN;
	if (at + size > end)
		return -EPROTO;
	p->has_prefix = true;
	memcpy(p->subnet, part + PREFIX_SUBNET, sizeof(p->subnet));
	p->prefix_len = part[PREFIX_BITS];
	for (i = 0; i < p->n_v6; i++) {
		const u8 *v6 = part + PREFIX_LEN + i * V6_LEN;

		memcpy(p->v6[i].prefix, v6, sizeof(p->v6[i].prefix));
		p->v6[i].len = v6[V6_BITS];
	}
	return (int)size;
}

/* @v2: where the version 2 part begins */
static int decode_d2(const u8 *buf, size_t v2, size_t end, struct smc_clc_proposal *p)
{
	size_t offset = smc_get_be16(buf + v2 + V2_D2_OFFSET);
	u8 n_gid = buf[v2 + V2_N_GID];
	size_t at = v2 + V2_D2_ORIGIN + offset;
	size_t size = D2_LEN + (size_t)n_gid * GID_LEN;
	unsigned int i;

	if (n_gid > SMC_CLC_GIDS)
		return -EPROTO;
	/* Linux counts a part to which no offset leads, and goes on as if it were not offered */
	if (!offset || offset > D2_OFFSET_MAX)
		return (int)size;
	if (at + size > end)
		return -EPROTO;
	p->has_d2 = true;
	memcpy(p->seid, buf + at + D2_SEID, sizeof(p->seid));
	p->n_gid = n_gid;
	for (i = 0; i < n_gid; i++) {
		const u8 *entry = buf + at + D2_LEN + i * GID_LEN;

		p->gids[i].gid = smc_get_be64(entry);
		p->gids[i].chid = smc_get_be16(entry + GID_CHID);
	}
	return (int)size;
}

static int decode_v2(const u8 *buf, size_t end, struct smc_clc_proposal *p)
{
	size_t offset = smc_get_be16(buf + AREA_V2_OFFSET);
	size_t at = AREA_V2_ORIGIN + offset;
	const u8 *part;
	size_t size;
	int d2 = 0;

	if (!offset || offset > V2_OFFSET_MAX || at + V2_LEN > end)
		return -EPROTO;
	part = buf + at;
	p->n_eid = part[V2_N_EID];
	if (p->n_eid > SMC_CLC_EIDS)
		return -EPROTO;
	size = V2_LEN + (size_t)p->n_eid * SMC_EID_LEN;
	if (at + size > end)
		return -EPROTO;
	p->has_v2 = true;
	memcpy(p->eid, part + V2_LEN, (size_t)p->n_eid * SMC_EID_LEN);
	p->release = part[V2_RELEASE] >> 4;
	p->seid_valid = part[V2_RELEASE] & SEID_VALID;
	memcpy(p->rocev2_gid, part + V2_ROCEV2_GID, sizeof(p->rocev2_gid));
	p->max_conns = part[V2_MAX_CONNS];
	p->max_links = part[V2_MAX_LINKS];
	p->features = smc_get_be16(part + V2_FEATURES);
	if (smc_clc_path_has_d(p->path_v2))
		d2 = decode_d2(buf, at, end, p);
	return d2 < 0 ? d2 : (int)size + d2;
}

/*
 * A peer that offers SMC-D in version 1 leaves exactly the size of the area before the prefixes. With
 * any other offset there is no area.
 */
static bool has_area(const struct smc_clc_proposal *p, size_t prefix_offset)
{
	if (smc_clc_path_has_d(p->path_v1))
		return prefix_offset == AREA_LEN;
	return p->version > 1;
}

/* Reads what follows the base. Returns the size of the message up to its trailer, or -EPROTO. */
static int decode_parts(const u8 *buf, size_t end, struct smc_clc_proposal *p)
{
	size_t prefix_offset = smc_get_be16(buf + PREFIX_OFFSET);
	bool area = has_area(p, prefix_offset);
	int size, part;

	if (prefix_offset > AREA_LEN)
		return -EPROTO;
	size = BASE_LEN + (p->version == 1 ? (int)prefix_offset : AREA_LEN);
	if ((size_t)size > end)
		return -EPROTO;
	if (area) {
		p->ism_gid = smc_get_be64(buf + AREA_GID);
		p->ism_chid = smc_get_be16(buf + AREA_CHID);
	}
	if (p->version > 1)
		p->vendor = smc_get_be32(buf + AREA_VENDOR);
	if (p->path_v1 != SMC_PATH_N) {
		part = decode_prefix(buf, end, p);
		if (part < 0)
			return part;
		size += part;
	}
	if (p->path_v2 != SMC_PATH_N) {
		part = area ? decode_v2(buf, end, p) : -EPROTO;
		if (part < 0)
			return part;
		size += part;
	}
	return size;
}

/**
 * smc_clc_proposal_decode - reads a PROPOSAL
 * @buf: the message
 * @len: its length in bytes
 * @p: result
 *
 * Where SMC-D is offered in version 1 but the area for it is missing, @p->ism_gid and
 * @p->ism_chid are zero. Where it is offered in version 2 but its part cannot be found,
 * @p->has_d2 is false.
 *
 * Return: 0, or -EPROTO.
 */
int smc_clc_proposal_decode(const u8 *buf, size_t len, struct smc_clc_proposal *p)
{
	struct smc_clc_header h;
	int size;

	if (smc_clc_header_check(buf, len, &h) || h.type != SMC_CLC_PROPOSAL)
		return -EPROTO;
	if (len < BASE_LEN + SMC_CLC_TRAILER_LEN)
		return -EPROTO;
	memset(p, 0, sizeof(*p));
	p->version = h.version;
	p->path_v1 = h.flags & 0x03;
	p->path_v2 = h.version > 1 ? h.flags >> 2 : SMC_PATH_N;
	if (p->version == 1 && p->path_v1 == SMC_PATH_N)
		return -EPROTO;
	memcpy(p->peer_id, buf + PEER_ID, sizeof(p->peer_id));
	memcpy(p->gid, buf + GID, sizeof(p->gid));
	memcpy(p->mac, buf + MAC, sizeof(p->mac));
	size = decode_parts(buf, len - SMC_CLC_TRAILER_LEN, p);
	if (size < 0 || (size_t)size + SMC_CLC_TRAILER_LEN != h.length)
		return -EPROTO;
	return 0;
}

/* The sizes of the parts of a message to be written; 0 for those that it does not have */
struct layout {
	size_t area;
	size_t prefix;
	size_t v2;
	size_t d2;
};

static size_t layout_of(const struct smc_clc_proposal *p, struct layout *l)
{
	l->area = p->version > 1 || smc_clc_path_has_d(p->path_v1) ? AREA_LEN : 0;
	l->prefix = p->has_prefix ? PREFIX_LEN + (size_t)p->n_v6 * V6_LEN : 0;
	l->v2 = p->has_v2 ? V2_LEN + (size_t)p->n_eid * SMC_EID_LEN : 0;
	l->d2 = p->has_d2 ? D2_LEN + (size_t)p->n_gid * GID_LEN : 0;
	return BASE_LEN + l->area + l->prefix + l->v2 + l->d2 + SMC_CLC_TRAILER_LEN;
}

static bool proposal_fields_fit(const struct smc_clc_proposal *p)
{
	if (p->version < 1 || p->version > 15 || p->release > 15)
		return false;
	if (p->path_v1 > SMC_PATH_B || p->path_v2 > SMC_PATH_B)
		return false;
	if (p->version == 1 && (p->path_v1 == SMC_PATH_N || p->path_v2 != SMC_PATH_N))
		return false;
	if (p->has_prefix != (p->path_v1 != SMC_PATH_N))
		return false;
	if (p->has_v2 != (p->path_v2 != SMC_PATH_N))
		return false;
	if (p->has_d2 != smc_clc_path_has_d(p->path_v2))
		return false;
	/* Linux takes the last byte of this GID for a number of prefixes if it has no such part */
	if (p->path_v1 == SMC_PATH_N && p->ism_gid)
		return false;
	return p->n_v6 <= (p->has_prefix ? SMC_CLC_PREFIXES : 0) &&
	       p->n_eid <= (p->has_v2 ? SMC_CLC_EIDS : 0) &&
	       p->n_gid <= (p->has_d2 ? SMC_CLC_GIDS : 0);
}

static void encode_prefix(const struct smc_clc_proposal *p, u8 *part)
{
	unsigned int i;

	memcpy(part + PREFIX_SUBNET, p->subnet, sizeof(p->subnet));
	part[PREFIX_BITS] = p->prefix_len;
	part[PREFIX_N_V6] = p->n_v6;
	for (i = 0; i < p->n_v6; i++) {
		u8 *v6 = part + PREFIX_LEN + i * V6_LEN;

		memcpy(v6, p->v6[i].prefix, sizeof(p->v6[i].prefix));
		v6[V6_BITS] = p->v6[i].len;
	}
}

static void encode_v2(const struct smc_clc_proposal *p, u8 *part)
{
	part[V2_N_EID] = p->n_eid;
	part[V2_N_GID] = p->n_gid;
	part[V2_RELEASE] = (u8)(p->release << 4 | (p->seid_valid ? SEID_VALID : 0));
	memcpy(part + V2_ROCEV2_GID, p->rocev2_gid, sizeof(p->rocev2_gid));
	part[V2_MAX_CONNS] = p->max_conns;
	part[V2_MAX_LINKS] = p->max_links;
	smc_put_be16(part + V2_FEATURES, p->features);
	memcpy(part + V2_LEN, p->eid, (size_t)p->n_eid * SMC_EID_LEN);
}

static void encode_d2(const struct smc_clc_proposal *p, u8 *part)
{
	unsigned int i;

	memcpy(part + D2_SEID, p->seid, sizeof(p->seid));
	for (i = 0; i < p->n_gid; i++) {
		u8 *entry = part + D2_LEN + i * GID_LEN;

		smc_put_be64(entry, p->gids[i].gid);
		smc_put_be16(entry + GID_CHID, p->gids[i].chid);
	}
}

static void encode_parts(const struct smc_clc_proposal *p, const struct layout *l, u8 *buf)
{
	u8 *part = buf + BASE_LEN + l->area;

	if (l->area) {
		smc_put_be64(buf + AREA_GID, p->ism_gid);
		smc_put_be16(buf + AREA_CHID, p->ism_chid);
	}
	if (p->version > 1)
		smc_put_be32(buf + AREA_VENDOR, p->vendor);
	if (l->prefix) {
		smc_put_be16(buf + PREFIX_OFFSET, (u16)l->area);
		encode_prefix(p, part);
		part += l->prefix;
	}
	if (l->v2) {
		smc_put_be16(buf + AREA_V2_OFFSET, (u16)(part - buf - AREA_V2_ORIGIN));
		encode_v2(p, part);
		if (l->d2)
			smc_put_be16(part + V2_D2_OFFSET, (u16)(l->v2 - V2_D2_ORIGIN));
		part += l->v2;
	}
	if (l->d2)
		encode_d2(p, part);
}

/**
 * smc_clc_proposal_encode - writes a PROPOSAL
 * @p: what to write; a native ISM device is left out of version 1 without SMC-D
 * @buf: where to
 * @size: space there in bytes; SMC_CLC_PROPOSAL_MAX is always enough
 *
 * Return: the length of the message; -EINVAL if a field does not fit its bits, or if a part is
 * there that is not offered, or offered but not there; -ENOSPC.
 */
int smc_clc_proposal_encode(const struct smc_clc_proposal *p, u8 *buf, size_t size)
{
	struct smc_clc_header h = {
		.type = SMC_CLC_PROPOSAL,
		.version = p->version,
	};
	struct layout l;

	if (!proposal_fields_fit(p))
		return -EINVAL;
	h.length = (u16)layout_of(p, &l);
	if (size < h.length)
		return -ENOSPC;
	h.flags = (u8)(p->path_v1 | (p->version > 1 ? p->path_v2 << 2 : 0));
	memset(buf, 0, h.length);
	memcpy(buf + PEER_ID, p->peer_id, sizeof(p->peer_id));
	memcpy(buf + GID, p->gid, sizeof(p->gid));
	memcpy(buf + MAC, p->mac, sizeof(p->mac));
	encode_parts(p, &l, buf);
	smc_clc_header_encode(&h, buf);
	return h.length;
}
