// SPDX-License-Identifier: GPL-2.0-only
#include "llc_body.h"

/* Offsets in CONFIRM RKEY and in its continuation */
enum {
	CR_LEFT = 4,
	CR_RKEY = 5,	/* the continuation lists other links here */
	CR_ADDR = 9,
	CR_OTHERS = 17,
	CC_OTHERS = 5,
};

/* Offsets in the entry of another link */
enum {
	OTHER_LINK = 0,
	OTHER_RKEY = 1,
	OTHER_ADDR = 5,
	OTHER_LEN = 13,
};

/* Offsets in DELETE RKEY */
enum {
	DR_COUNT = 4,
	DR_FAILED = 5,
	DR_RKEYS = 8,
	DR_RKEY_LEN = 4,
};

#define RKEY_NEGATIVE		0x20
#define RKEY_RETRY		0x10	/* not in DELETE RKEY */

/* Returns how many other links are in this message, the first one at @at. */
static unsigned int count_others(const struct smc_llc *m, size_t *at)
{
	bool first = m->type == SMC_LLC_CONFIRM_RKEY;
	unsigned int room = first ? 2 : 3;

	*at = first ? CR_OTHERS : CC_OTHERS;
	return m->confirm_rkey.left < room ? m->confirm_rkey.left : room;
}

static void decode_confirm_rkey(const u8 *buf, struct smc_llc *m)
{
	struct smc_llc_confirm_rkey *c = &m->confirm_rkey;
	unsigned int i, n;
	size_t at;

	c->negative = buf[LLC_FLAGS] & RKEY_NEGATIVE;
	c->retry = buf[LLC_FLAGS] & RKEY_RETRY;
	c->left = buf[CR_LEFT];
	if (m->type == SMC_LLC_CONFIRM_RKEY) {
		c->rkey = smc_get_be32(buf + CR_RKEY);
		c->addr = smc_get_be64(buf + CR_ADDR);
	}
	n = count_others(m, &at);
	for (i = 0; i < n; i++, at += OTHER_LEN) {
		c->others[i].link = buf[at + OTHER_LINK];
		c->others[i].rkey = smc_get_be32(buf + at + OTHER_RKEY);
		c->others[i].addr = smc_get_be64(buf + at + OTHER_ADDR);
	}
}

/* A response of version 2 repeats the count, but need not list the keys. */
static int decode_delete(const u8 *buf, struct smc_llc *m)
{
	struct smc_llc_delete_rkey *d = &m->delete_rkey;
	size_t room = (m->length - (size_t)DR_RKEYS) / DR_RKEY_LEN;

	d->negative = buf[LLC_FLAGS] & RKEY_NEGATIVE;
	d->n_rkeys = buf[DR_COUNT];
	d->failed = buf[DR_FAILED];
	if (m->version == 1)
		return d->n_rkeys > SMC_LLC_RKEYS_V1 ? -EPROTO : 0;
	return d->n_rkeys > room && !m->response ? -EPROTO : 0;
}

/* smc_llc_rkey_decode - see llc_body.h. */
int smc_llc_rkey_decode(const u8 *buf, struct smc_llc *m)
{
	if (m->type == SMC_LLC_DELETE_RKEY)
		return decode_delete(buf, m);
	decode_confirm_rkey(buf, m);
	return 0;
}

/* smc_llc_rkey_length - see llc_body.h. */
size_t smc_llc_rkey_length(const struct smc_llc *m)
{
	size_t len;

	if (m->type != SMC_LLC_DELETE_RKEY)
		return SMC_LLC_LEN;
	if (m->version == 1)
		return m->delete_rkey.n_rkeys > SMC_LLC_RKEYS_V1 ? 0 : SMC_LLC_LEN;
	len = DR_RKEYS + (size_t)m->delete_rkey.n_rkeys * DR_RKEY_LEN;
	return m->response || len < SMC_LLC_LEN ? SMC_LLC_LEN : len;
}

static void encode_confirm_rkey(const struct smc_llc *m, u8 *buf)
{
	const struct smc_llc_confirm_rkey *c = &m->confirm_rkey;
	unsigned int i, n;
	size_t at;

	if (c->negative)
		buf[LLC_FLAGS] |= RKEY_NEGATIVE;
	if (c->retry)
		buf[LLC_FLAGS] |= RKEY_RETRY;
	buf[CR_LEFT] = c->left;
	if (m->type == SMC_LLC_CONFIRM_RKEY) {
		smc_put_be32(buf + CR_RKEY, c->rkey);
		smc_put_be64(buf + CR_ADDR, c->addr);
	}
	n = count_others(m, &at);
	for (i = 0; i < n; i++, at += OTHER_LEN) {
		buf[at + OTHER_LINK] = c->others[i].link;
		smc_put_be32(buf + at + OTHER_RKEY, c->others[i].rkey);
		smc_put_be64(buf + at + OTHER_ADDR, c->others[i].addr);
	}
}

/* smc_llc_rkey_encode - see llc_body.h. */
void smc_llc_rkey_encode(const struct smc_llc *m, u8 *buf)
{
	if (m->type != SMC_LLC_DELETE_RKEY) {
		encode_confirm_rkey(m, buf);
		return;
	}
	if (m->delete_rkey.negative)
		buf[LLC_FLAGS] |= RKEY_NEGATIVE;
	buf[DR_COUNT] = m->delete_rkey.n_rkeys;
	buf[DR_FAILED] = m->delete_rkey.failed;
}

/**
 * smc_llc_rkey_at - reads a key of a DELETE RKEY
 * @m: the result of smc_llc_decode()
 * @buf: the message
 * @i: which one, from 0
 * @rkey: result
 *
 * Return: false if there are not that many.
 */
bool smc_llc_rkey_at(const struct smc_llc *m, const u8 *buf, unsigned int i, u32 *rkey)
{
	if (m->type != SMC_LLC_DELETE_RKEY || i >= m->delete_rkey.n_rkeys)
		return false;
	if (i >= (m->length - (size_t)DR_RKEYS) / DR_RKEY_LEN)
		return false;
	*rkey = smc_get_be32(buf + DR_RKEYS + (size_t)i * DR_RKEY_LEN);
	return true;
}

/**
 * smc_llc_rkey_set - writes a key
 * @buf: a DELETE RKEY by smc_llc_encode()
 * @i: which one; smc_llc_encode() got their number, in a response of version 2 at most
 * nine
 * @rkey: the key
 */
void smc_llc_rkey_set(u8 *buf, unsigned int i, u32 rkey)
{
	smc_put_be32(buf + DR_RKEYS + (size_t)i * DR_RKEY_LEN, rkey);
}
