// SPDX-License-Identifier: GPL-2.0-only
#include "clc.h"

/* Offsets */
enum {
	PEER_ID = 8,
	CODE = 16,
	OS_TYPE = 20,
	MORE = 24,	/* version 2; in version 1 the trailer is here */
};

#define FLAG_SYNC	0x08

/* The version of the DECLINE decides, since a version 1 DECLINE may follow version 2 messages. */
static u16 decline_length(u8 version)
{
	return version == 1 ? SMC_CLC_DECLINE_V1_LEN : SMC_CLC_DECLINE_V2_LEN;
}

/**
 * smc_clc_decline_decode - reads a DECLINE
 * @buf: the message
 * @len: its length in bytes
 * @d: result
 *
 * Return: 0, or -EPROTO.
 */
int smc_clc_decline_decode(const u8 *buf, size_t len, struct smc_clc_decline *d)
{
	struct smc_clc_header h;
	int i;

	if (smc_clc_header_check(buf, len, &h) || h.type != SMC_CLC_DECLINE)
		return -EPROTO;
	if (h.length != decline_length(h.version))
		return -EPROTO;
	memset(d, 0, sizeof(*d));
	d->version = h.version;
	d->sync = h.flags & FLAG_SYNC;
	memcpy(d->peer_id, buf + PEER_ID, sizeof(d->peer_id));
	d->code = smc_get_be32(buf + CODE);
	d->os_type = buf[OS_TYPE] >> 4;
	for (i = 0; d->version > 1 && i < 4; i++)
		d->more[i] = smc_get_be32(buf + MORE + 4 * i);
	return 0;
}

/**
 * smc_clc_decline_encode - writes a DECLINE
 * @d: what to write; @d->more is left out of version 1
 * @buf: where to
 * @size: space there in bytes; SMC_CLC_DECLINE_MAX is always enough
 *
 * Return: the length of the message; -EINVAL if a field does not fit its bits, -ENOSPC.
 */
int smc_clc_decline_encode(const struct smc_clc_decline *d, u8 *buf, size_t size)
{
	struct smc_clc_header h = {
		.type = SMC_CLC_DECLINE,
		.version = d->version,
		.length = decline_length(d->version),
		.flags = d->sync ? FLAG_SYNC : 0,
	};
	int i;

	if (d->version < 1 || d->version > 15 || d->os_type > 15)
		return -EINVAL;
	if (size < h.length)
		return -ENOSPC;
	memset(buf, 0, h.length);
	memcpy(buf + PEER_ID, d->peer_id, sizeof(d->peer_id));
	smc_put_be32(buf + CODE, d->code);
	buf[OS_TYPE] = (u8)(d->os_type << 4);
	for (i = 0; d->version > 1 && i < 4; i++)
		smc_put_be32(buf + MORE + 4 * i, d->more[i]);
	smc_clc_header_encode(&h, buf);
	return h.length;
}
