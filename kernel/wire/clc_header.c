// SPDX-License-Identifier: GPL-2.0-only
#include "clc.h"

#define EYECATCHER_R	0xE2D4C3D9u	/* "SMCR" in EBCDIC */
#define EYECATCHER_D	0xE2D4C3C4u	/* "SMCD" */

/* Offsets */
enum {
	TYPE = 4,
	LENGTH = 5,
	VERSION = 7,
};

/* Peers accept either in every message, so the eye catcher does not tell the path. */
static bool is_eyecatcher(const u8 *p)
{
	u32 v = smc_get_be32(p);

	return v == EYECATCHER_R || v == EYECATCHER_D;
}

/**
 * smc_clc_header_decode - reads the first bytes of a message
 * @buf: received bytes
 * @len: how many, SMC_CLC_HEADER_LEN or more
 * @h: result
 *
 * The message need not be there yet: @h says how much there is to wait for.
 *
 * Return: 0, or -EPROTO if this is not the beginning of a message.
 */
int smc_clc_header_decode(const u8 *buf, size_t len, struct smc_clc_header *h)
{
	if (len < SMC_CLC_HEADER_LEN || !is_eyecatcher(buf))
		return -EPROTO;
	memset(h, 0, sizeof(*h));
	h->smcd = smc_get_be32(buf) == EYECATCHER_D;
	h->type = buf[TYPE];
	h->length = smc_get_be16(buf + LENGTH);
	h->version = buf[VERSION] >> 4;
	h->flags = buf[VERSION] & 0x0f;
	if (h->type < SMC_CLC_PROPOSAL || h->type > SMC_CLC_DECLINE || h->version < 1)
		return -EPROTO;
	if (h->length < SMC_CLC_HEADER_LEN + SMC_CLC_TRAILER_LEN)
		return -EPROTO;
	return 0;
}

static size_t max_length(u8 type)
{
	switch (type) {
	case SMC_CLC_PROPOSAL:
		return SMC_CLC_PROPOSAL_MAX;
	case SMC_CLC_ACCEPT:
		return SMC_CLC_ACCEPT_MAX;
	case SMC_CLC_CONFIRM:
		return SMC_CLC_CONFIRM_MAX;
	default:
		return SMC_CLC_DECLINE_MAX;
	}
}

/**
 * smc_clc_header_keep - how much of a message the decoders want
 * @h: a decoded header
 *
 * A future version may send more than is understood today. The first bytes are enough; the reader
 * discards the others, up to h->length.
 *
 * Return: bytes, at most SMC_CLC_MAX and at most h->length.
 */
size_t smc_clc_header_keep(const struct smc_clc_header *h)
{
	size_t max = max_length(h->type);

	return h->length < max ? h->length : max;
}

/**
 * smc_clc_header_check - reads the header of a message that is there in full
 * @buf: the message, as much of it as smc_clc_header_keep() says
 * @len: how much that is
 * @h: result
 *
 * The trailer is checked if the whole message was kept, but not in a DECLINE, after which the
 * connection goes on with TCP in any case.
 *
 * Return: 0, or -EPROTO.
 */
int smc_clc_header_check(const u8 *buf, size_t len, struct smc_clc_header *h)
{
	if (smc_clc_header_decode(buf, len, h) || len != smc_clc_header_keep(h))
		return -EPROTO;
	if (len < h->length || h->type == SMC_CLC_DECLINE)
		return 0;
	return is_eyecatcher(buf + len - SMC_CLC_TRAILER_LEN) ? 0 : -EPROTO;
}

/**
 * smc_clc_header_encode - writes the frame of a message: header and trailer
 * @h: what to write; version and flags below 16
 * @buf: h->length bytes
 */
void smc_clc_header_encode(const struct smc_clc_header *h, u8 *buf)
{
	u32 eyecatcher = h->smcd ? EYECATCHER_D : EYECATCHER_R;

	smc_put_be32(buf, eyecatcher);
	buf[TYPE] = h->type;
	smc_put_be16(buf + LENGTH, h->length);
	buf[VERSION] = (u8)(h->version << 4 | h->flags);
	smc_put_be32(buf + h->length - SMC_CLC_TRAILER_LEN, eyecatcher);
}
