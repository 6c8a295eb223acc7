// SPDX-License-Identifier: GPL-2.0-only
#include "llc_body.h"

#define FORM_V1			0x00
#define FORM_V2			0x20
#define FORM_MASK		0xf0
#define FLAG_RESPONSE		0x80
/* The two highest bits of a type say what a receiver does with a message that it does not know. */
#define OPTIONAL_MASK		0xc0
#define OPTIONAL		0x80

static bool is_known(u8 type, u8 version)
{
	if (version != 1 && version != 2)
		return false;
	switch (type) {
	case SMC_LLC_ADD_LINK_CONTINUATION:
	case SMC_LLC_CONFIRM_RKEY_CONTINUATION:
		return version == 1;
	case SMC_LLC_REQUEST_ADD_LINK:
		return version == 2;
	default:
		return type >= SMC_LLC_CONFIRM_LINK && type <= SMC_LLC_DELETE_RKEY;
	}
}

static bool is_about_rkeys(u8 type)
{
	return type == SMC_LLC_CONFIRM_RKEY || type == SMC_LLC_CONFIRM_RKEY_CONTINUATION ||
	       type == SMC_LLC_DELETE_RKEY;
}

static bool is_possible_length(u16 length, size_t len)
{
	return length >= SMC_LLC_LEN && length <= len;
}

/*
 * Version 2. Linux writes the length in the byte order of its machine, other peers big-endian. If the
 * length in one order is that of the message, that order is right. If not, one order may be impossible.
 */
static int decode_length(const u8 *buf, size_t len, struct smc_llc *m)
{
	u16 be = smc_get_be16(buf + LLC_LENGTH), le = smc_llc_swab16(be);

	if (be == len || le == len)
		m->swapped = be != len;
	else if (is_possible_length(be, len) != is_possible_length(le, len))
		m->swapped = is_possible_length(le, len);
	else
		return -EPROTO;
	m->length = m->swapped ? le : be;
	return 0;
}

/*
 * A client of stock Linux whose port is lost may take the ADD LINK that it waits with for a DELETE LINK: it sends the first 44 bytes
 * back as a response, with the length of all that came. Its refusal follows.
 */
static bool is_sent_back(const u8 *buf, size_t len)
{
	u16 length = smc_get_be16(buf + LLC_LENGTH), swapped = smc_llc_swab16(length);

	if (len != SMC_LLC_LEN || buf[LLC_TYPE] != (FORM_V2 | SMC_LLC_ADD_LINK) || !(buf[LLC_FLAGS] & FLAG_RESPONSE))
		return false;
	return (length > len && length <= SMC_LLC_MAX) || (swapped > len && swapped <= SMC_LLC_MAX);
}

static int decode_header(const u8 *buf, size_t len, struct smc_llc *m)
{
	u8 form = buf[LLC_TYPE] & FORM_MASK;

	m->type = buf[LLC_TYPE] & LLC_TYPE_MASK;
	m->version = form == FORM_V1 ? 1 : form == FORM_V2 ? 2 : 0;
	m->response = buf[LLC_FLAGS] & FLAG_RESPONSE;
	m->length = SMC_LLC_LEN;
	if (!is_known(m->type, m->version))
		return -EPROTO;
	if (m->version == 2)
		return decode_length(buf, len, m);
	return buf[LLC_LENGTH] == SMC_LLC_LEN ? 0 : -EPROTO;
}

/**
 * smc_llc_decode - reads a message
 * @buf: the message
 * @len: its size in bytes
 * @m: result; smc_llc_pair_at(), smc_llc_gid_at() and smc_llc_rkey_at() read the lists
 *
 * A receiver discards an optional message (the two highest bits of the type are 10) that it does not
 * know, and takes any other unknown type for a protocol error (RFC 7609, A.3 and C.7.1). It also discards
 * what a stock client sends back of an ADD LINK that it has taken for another message.
 *
 * Return: 0; -ENOMSG if the message is to be discarded; -EPROTO if the type is unknown, the message
 * is shorter than SMC_LLC_LEN, its length field is impossible, or its lists do not fit. The link is
 * out of sync then.
 */
int smc_llc_decode(const u8 *buf, size_t len, struct smc_llc *m)
{
	int rc;

	if (len && (buf[LLC_TYPE] & OPTIONAL_MASK) == OPTIONAL)
		return -ENOMSG;
	if (len < SMC_LLC_LEN)
		return -EPROTO;
	if (is_sent_back(buf, len))
		return -ENOMSG;
	memset(m, 0, sizeof(*m));
	rc = decode_header(buf, len, m);
	if (rc)
		return rc;
	return is_about_rkeys(m->type) ? smc_llc_rkey_decode(buf, m) : smc_llc_link_decode(buf, m);
}

/**
 * smc_llc_encode - writes a message
 * @m: what to write
 * @buf: where to
 * @size: space there in bytes
 *
 * The entries of a list are zero, until smc_llc_pair_set(), smc_llc_gid_set() or smc_llc_rkey_set()
 * writes them.
 *
 * Return: the length of the message; -EINVAL if a field does not fit its bits, or the version has
 * no such message or part; -ENOSPC.
 */
int smc_llc_encode(const struct smc_llc *m, u8 *buf, size_t size)
{
	bool about_rkeys = is_about_rkeys(m->type);
	size_t length;

	if (!is_known(m->type, m->version))
		return -EINVAL;
	length = about_rkeys ? smc_llc_rkey_length(m) : smc_llc_link_length(m);
	if (!length)
		return -EINVAL;
	if (size < length)
		return -ENOSPC;
	memset(buf, 0, length);
	buf[LLC_TYPE] = (u8)((m->version == 1 ? FORM_V1 : FORM_V2) | m->type);
	if (m->version == 1)
		buf[LLC_LENGTH] = SMC_LLC_LEN;
	else
		smc_llc_put16(m, buf + LLC_LENGTH, (u16)length);
	buf[LLC_FLAGS] = m->response ? FLAG_RESPONSE : 0;
	if (about_rkeys)
		smc_llc_rkey_encode(m, buf);
	else
		smc_llc_link_encode(m, buf);
	return (int)length;
}
