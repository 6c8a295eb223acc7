// SPDX-License-Identifier: GPL-2.0-only
#include "cdc.h"

static struct smc_cursor get_cursor(const u8 *p)
{
	return (struct smc_cursor){ .wrap = smc_get_be16(p), .count = smc_get_be32(p + 2) };
}

static void put_cursor(u8 *p, struct smc_cursor c)
{
	smc_put_be16(p, c.wrap);
	smc_put_be32(p + 2, c.count);
}

/**
 * smc_cdc_r_decode - reads a message of SMC-R
 * @buf: the message
 * @len: its size in bytes
 * @c: result. The caller, who knows the sizes of the rings, checks the cursors
 *
 * Return: 0, or -EPROTO.
 */
int smc_cdc_r_decode(const u8 *buf, size_t len, struct smc_cdc *c)
{
	if (len < SMC_CDC_R_MIN || buf[0] != SMC_CDC_TYPE || buf[1] != SMC_CDC_R_LEN)
		return -EPROTO;
	c->seq = smc_get_be16(buf + 2);
	c->token = smc_get_be32(buf + 4);
	c->prod = get_cursor(buf + 10);
	c->cons = get_cursor(buf + 18);
	c->flags = buf[24];
	c->state = buf[25];
	return 0;
}

/* smc_cdc_r_encode - writes a message of SMC-R. */
void smc_cdc_r_encode(const struct smc_cdc *c, u8 buf[SMC_CDC_R_LEN])
{
	memset(buf, 0, SMC_CDC_R_LEN);
	buf[0] = SMC_CDC_TYPE;
	buf[1] = SMC_CDC_R_LEN;
	smc_put_be16(buf + 2, c->seq);
	smc_put_be32(buf + 4, c->token);
	put_cursor(buf + 10, c->prod);
	put_cursor(buf + 18, c->cons);
	buf[24] = c->flags;
	buf[25] = c->state;
}

/* SMC-D uses the byte order of the machine, which both ends run on. Counts are not aligned. */
static struct smc_cursor get_host_cursor(const u8 *p)
{
	struct smc_cursor c;

	memcpy(&c.wrap, p, sizeof(c.wrap));
	memcpy(&c.count, p + 2, sizeof(c.count));
	return c;
}

static void put_host_cursor(u8 *p, struct smc_cursor c)
{
	memcpy(p, &c.wrap, sizeof(c.wrap));
	memcpy(p + 2, &c.count, sizeof(c.count));
}

/**
 * smc_cdc_d_decode - reads a message of SMC-D
 * @prod: the word at SMC_CDC_D_PROD, as it is in memory
 * @cons: the word at SMC_CDC_D_CONS
 * @c: result; token and sequence number are 0
 *
 * The peer may be writing the next message, so the two words may be of different messages. A peer with this module writes the
 * flag of an urgent byte beside the cursor that it belongs to, too; others write 0 there.
 */
void smc_cdc_d_decode(u64 prod, u64 cons, struct smc_cdc *c)
{
	u8 word[sizeof(u64)];

	c->token = 0;
	c->seq = 0;
	memcpy(word, &prod, sizeof(word));
	c->prod = get_host_cursor(word);
	memcpy(word, &cons, sizeof(word));
	c->cons = get_host_cursor(word);
	c->flags = word[6];
	c->state = word[7];
	memcpy(word, &prod, sizeof(word));
	if (word[6] & SMC_CDC_D_HAS_URGENT)
		c->flags = (u8)((c->flags & ~SMC_CDC_URGENT) | (word[6] & SMC_CDC_URGENT));
}

/* smc_cdc_d_encode - writes a message of SMC-D. */
void smc_cdc_d_encode(const struct smc_cdc *c, u8 buf[SMC_CDC_D_LEN])
{
	memset(buf, 0, SMC_CDC_D_LEN);
	buf[0] = SMC_CDC_TYPE;
	put_host_cursor(buf + SMC_CDC_D_PROD, c->prod);
	buf[SMC_CDC_D_PROD + 6] = (u8)(SMC_CDC_D_HAS_URGENT | (c->flags & SMC_CDC_URGENT));
	put_host_cursor(buf + SMC_CDC_D_CONS, c->cons);
	buf[SMC_CDC_D_CONS + 6] = c->flags;
	buf[SMC_CDC_D_CONS + 7] = c->state;
}
