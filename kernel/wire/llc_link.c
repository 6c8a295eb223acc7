// SPDX-License-Identifier: GPL-2.0-only
#include "llc_body.h"

/* Offsets in CONFIRM LINK */
enum {
	CL_MAC = 4,
	CL_GID = 10,
	CL_QPN = 26,
	CL_LINK = 29,
	CL_USER_ID = 30,
	CL_MAX_LINKS = 34,
	CL_MAX_CONNS = 35,	/* version 2 */
};

#define CL_NO_EYECATCHER	0x03	/* both bits are written, one is enough */

/* Offsets in ADD LINK */
enum {
	AL_MAC = 4,
	AL_GID = 12,
	AL_QPN = 28,
	AL_LINK = 31,
	AL_MTU = 32,
	AL_PSN = 33,
	/* extension */
	AL_DIRECT = 44,
	AL_TARGET_GID = 46,
	AL_COUNT = 70,
	AL_PAIRS = 72,
};

#define AL_REJECT		0x40
#define AL_REASON_MASK		0x0f	/* version 2: of the flags, version 1: of LLC_REASON */
#define AL_DIRECT_FLAG		0x80

/* Offsets in its continuation */
enum {
	AC_LINK = 4,
	AC_LEFT = 5,
	AC_PAIRS = 8,
};

#define AC_N_PAIRS		2	/* at most */

/* Offsets in a pair of either */
enum {
	PAIR_KNOWN = 0,
	PAIR_RKEY = 4,
	PAIR_ADDR = 8,
	PAIR_LEN = 16,
};

/* Offsets in DELETE LINK */
enum {
	DL_LINK = 4,
	DL_REASON = 5,
};

#define DL_ALL			0x40
#define DL_ORDERLY		0x20

/* Offsets in REQUEST ADD LINK */
enum {
	RA_COUNT = 24,
	RA_GIDS = 28,
	RA_GID_LEN = 16,
};

/* Offsets in TEST LINK */
enum {
	TL_DATA = 4,
};

static void decode_confirm_link(const u8 *buf, u8 version, struct smc_llc_confirm_link *c)
{
	memcpy(c->mac, buf + CL_MAC, sizeof(c->mac));
	memcpy(c->gid, buf + CL_GID, sizeof(c->gid));
	c->qpn = smc_get_be24(buf + CL_QPN);
	c->link = buf[CL_LINK];
	memcpy(c->user_id, buf + CL_USER_ID, sizeof(c->user_id));
	c->max_links = buf[CL_MAX_LINKS];
	if (version > 1)
		c->max_conns = buf[CL_MAX_CONNS];
	c->no_eyecatcher = buf[LLC_FLAGS] & CL_NO_EYECATCHER;
}

/*
 * The count of Linux may be larger than its list. It is 255 at most, so the lower of its values in the
 * two byte orders is right.
 */
static void decode_ext(const u8 *buf, struct smc_llc *m)
{
	struct smc_llc_add_link *a = &m->add_link;
	size_t n = (m->length - (size_t)AL_PAIRS) / PAIR_LEN;
	u16 be = smc_get_be16(buf + AL_COUNT), le = smc_llc_swab16(be);
	u16 count = be < le ? be : le;

	/* With 124 pairs the length is 0x0808, and only the count tells the order. */
	if (buf[LLC_LENGTH] == buf[LLC_LENGTH + 1])
		m->swapped = le < be;
	a->has_ext = true;
	a->direct = buf[AL_DIRECT] & AL_DIRECT_FLAG;
	memcpy(a->target_gid, buf + AL_TARGET_GID, sizeof(a->target_gid));
	if (n > count)
		n = count;
	a->n_pairs = (u8)(n < 255 ? n : 255);
}

static int decode_add(const u8 *buf, struct smc_llc *m)
{
	struct smc_llc_add_link *a = &m->add_link;

	memcpy(a->mac, buf + AL_MAC, sizeof(a->mac));
	memcpy(a->gid, buf + AL_GID, sizeof(a->gid));
	a->qpn = smc_get_be24(buf + AL_QPN);
	a->link = buf[AL_LINK];
	a->mtu_code = buf[AL_MTU] & 0x0f;
	a->psn = smc_get_be24(buf + AL_PSN);
	a->reject = buf[LLC_FLAGS] & AL_REJECT;
	if (a->reject) {
		a->reason = buf[m->version == 1 ? LLC_REASON : LLC_FLAGS] & AL_REASON_MASK;
		return 0;
	}
	if (m->length == SMC_LLC_LEN)
		return 0;
	if (m->length < AL_PAIRS)
		return -EPROTO;
	decode_ext(buf, m);
	return 0;
}

static int decode_request(const u8 *buf, struct smc_llc *m)
{
	if (buf[RA_COUNT] > (m->length - (size_t)RA_GIDS) / RA_GID_LEN)
		return -EPROTO;
	m->request_add_link.n_gids = buf[RA_COUNT];
	return 0;
}

/* smc_llc_link_decode - see llc_body.h. */
int smc_llc_link_decode(const u8 *buf, struct smc_llc *m)
{
	switch (m->type) {
	case SMC_LLC_CONFIRM_LINK:
		decode_confirm_link(buf, m->version, &m->confirm_link);
		return 0;
	case SMC_LLC_ADD_LINK:
		return decode_add(buf, m);
	case SMC_LLC_ADD_LINK_CONTINUATION:
		m->add_link_continuation.link = buf[AC_LINK];
		m->add_link_continuation.left = buf[AC_LEFT];
		return 0;
	case SMC_LLC_DELETE_LINK:
		m->delete_link.all = buf[LLC_FLAGS] & DL_ALL;
		m->delete_link.orderly = buf[LLC_FLAGS] & DL_ORDERLY;
		m->delete_link.link = buf[DL_LINK];
		m->delete_link.reason = smc_get_be32(buf + DL_REASON);
		return 0;
	case SMC_LLC_REQUEST_ADD_LINK:
		return decode_request(buf, m);
	default:
		memcpy(m->test_link.data, buf + TL_DATA, sizeof(m->test_link.data));
		return 0;
	}
}

static bool add_fits(const struct smc_llc_add_link *a, u8 version)
{
	if (a->qpn >> 24 || a->psn >> 24 || a->mtu_code > 15)
		return false;
	if (a->reason > (a->reject ? AL_REASON_MASK : 0))
		return false;
	/* a peer reads the extension without a look at the length */
	if (a->has_ext != (version > 1 && !a->reject))
		return false;
	return a->has_ext || !a->n_pairs;
}

/* smc_llc_link_length - see llc_body.h. */
size_t smc_llc_link_length(const struct smc_llc *m)
{
	const struct smc_llc_confirm_link *c = &m->confirm_link;
	size_t len = 0;

	switch (m->type) {
	case SMC_LLC_CONFIRM_LINK:
		if (c->qpn >> 24 || (m->version == 1 && c->max_conns))
			return 0;
		break;
	case SMC_LLC_ADD_LINK:
		if (!add_fits(&m->add_link, m->version))
			return 0;
		if (m->add_link.has_ext)
			len = AL_PAIRS + (size_t)m->add_link.n_pairs * PAIR_LEN;
		break;
	case SMC_LLC_REQUEST_ADD_LINK:
		len = RA_GIDS + (size_t)m->request_add_link.n_gids * RA_GID_LEN;
		break;
	}
	return len < SMC_LLC_LEN ? SMC_LLC_LEN : len;
}

static void encode_confirm_link(const struct smc_llc_confirm_link *c, u8 *buf)
{
	memcpy(buf + CL_MAC, c->mac, sizeof(c->mac));
	memcpy(buf + CL_GID, c->gid, sizeof(c->gid));
	smc_put_be24(buf + CL_QPN, c->qpn);
	buf[CL_LINK] = c->link;
	memcpy(buf + CL_USER_ID, c->user_id, sizeof(c->user_id));
	buf[CL_MAX_LINKS] = c->max_links;
	buf[CL_MAX_CONNS] = c->max_conns;
	if (c->no_eyecatcher)
		buf[LLC_FLAGS] |= CL_NO_EYECATCHER;
}

static void encode_add(const struct smc_llc *m, u8 *buf)
{
	const struct smc_llc_add_link *a = &m->add_link;

	memcpy(buf + AL_MAC, a->mac, sizeof(a->mac));
	memcpy(buf + AL_GID, a->gid, sizeof(a->gid));
	smc_put_be24(buf + AL_QPN, a->qpn);
	buf[AL_LINK] = a->link;
	buf[AL_MTU] = a->mtu_code;
	smc_put_be24(buf + AL_PSN, a->psn);
	if (a->reject) {
		buf[LLC_FLAGS] |= AL_REJECT;
		buf[m->version == 1 ? LLC_REASON : LLC_FLAGS] |= a->reason;
	}
	if (!a->has_ext)
		return;
	buf[AL_DIRECT] = a->direct ? AL_DIRECT_FLAG : 0;
	memcpy(buf + AL_TARGET_GID, a->target_gid, sizeof(a->target_gid));
	smc_llc_put16(m, buf + AL_COUNT, a->n_pairs);
}

static void encode_delete(const struct smc_llc_delete_link *d, u8 *buf)
{
	if (d->all)
		buf[LLC_FLAGS] |= DL_ALL;
	if (d->orderly)
		buf[LLC_FLAGS] |= DL_ORDERLY;
	buf[DL_LINK] = d->link;
	smc_put_be32(buf + DL_REASON, d->reason);
}

/* smc_llc_link_encode - see llc_body.h. */
void smc_llc_link_encode(const struct smc_llc *m, u8 *buf)
{
	switch (m->type) {
	case SMC_LLC_CONFIRM_LINK:
		encode_confirm_link(&m->confirm_link, buf);
		break;
	case SMC_LLC_ADD_LINK:
		encode_add(m, buf);
		break;
	case SMC_LLC_ADD_LINK_CONTINUATION:
		buf[AC_LINK] = m->add_link_continuation.link;
		buf[AC_LEFT] = m->add_link_continuation.left;
		break;
	case SMC_LLC_DELETE_LINK:
		encode_delete(&m->delete_link, buf);
		break;
	case SMC_LLC_REQUEST_ADD_LINK:
		buf[RA_COUNT] = m->request_add_link.n_gids;
		break;
	default:
		memcpy(buf + TL_DATA, m->test_link.data, sizeof(m->test_link.data));
	}
}

static unsigned int n_pairs(const struct smc_llc *m)
{
	switch (m->type) {
	case SMC_LLC_ADD_LINK:
		return m->add_link.n_pairs;
	case SMC_LLC_ADD_LINK_CONTINUATION:
		return m->add_link_continuation.left < AC_N_PAIRS ?
		       m->add_link_continuation.left : AC_N_PAIRS;
	default:
		return 0;
	}
}

static size_t pair_offset(u8 type, unsigned int i)
{
	return (type == SMC_LLC_ADD_LINK ? AL_PAIRS : AC_PAIRS) + (size_t)i * PAIR_LEN;
}

/**
 * smc_llc_pair_at - reads a pair of an ADD LINK, or of a continuation of it
 * @m: the result of smc_llc_decode()
 * @buf: the message
 * @i: which one, from 0
 * @p: result
 *
 * Return: false if there are not that many.
 */
bool smc_llc_pair_at(const struct smc_llc *m, const u8 *buf, unsigned int i,
		     struct smc_llc_pair *p)
{
	const u8 *at;

	if (i >= n_pairs(m))
		return false;
	at = buf + pair_offset(m->type, i);
	p->known = smc_get_be32(at + PAIR_KNOWN);
	p->rkey = smc_get_be32(at + PAIR_RKEY);
	p->addr = smc_get_be64(at + PAIR_ADDR);
	return true;
}

/**
 * smc_llc_pair_set - writes a pair
 * @buf: an ADD LINK, or a continuation of it, by smc_llc_encode()
 * @i: which one; smc_llc_encode() got their number
 * @p: the pair
 */
void smc_llc_pair_set(u8 *buf, unsigned int i, const struct smc_llc_pair *p)
{
	u8 *at = buf + pair_offset(buf[LLC_TYPE] & LLC_TYPE_MASK, i);

	smc_put_be32(at + PAIR_KNOWN, p->known);
	smc_put_be32(at + PAIR_RKEY, p->rkey);
	smc_put_be64(at + PAIR_ADDR, p->addr);
}

/**
 * smc_llc_gid_at - reads a GID of a REQUEST ADD LINK
 * @m: the result of smc_llc_decode()
 * @buf: the message
 * @i: which one, from 0: that of the link which carries the message
 * @gid: result
 *
 * Return: false if there are not that many.
 */
bool smc_llc_gid_at(const struct smc_llc *m, const u8 *buf, unsigned int i, u8 gid[16])
{
	if (m->type != SMC_LLC_REQUEST_ADD_LINK || i >= m->request_add_link.n_gids)
		return false;
	memcpy(gid, buf + RA_GIDS + (size_t)i * RA_GID_LEN, RA_GID_LEN);
	return true;
}

/**
 * smc_llc_gid_set - writes a GID
 * @buf: a REQUEST ADD LINK by smc_llc_encode()
 * @i: which one; smc_llc_encode() got their number
 * @gid: the GID
 */
void smc_llc_gid_set(u8 *buf, unsigned int i, const u8 gid[16])
{
	memcpy(buf + RA_GIDS + (size_t)i * RA_GID_LEN, gid, RA_GID_LEN);
}
