// SPDX-License-Identifier: Apache-2.0
/* CLC messages of hostile peers: well-formed ones, and slightly malformed ones. */
#include <string.h>

#include "fuzz.h"

enum { PROPOSAL = 1, ACCEPT, CONFIRM, DECLINE };

static const unsigned char eye_r[4] = { 0xe2, 0xd4, 0xc3, 0xd9 }, eye_d[4] = { 0xe2, 0xd4, 0xc3, 0xc4 };
static const char eid[] = "SMCKIT.LAB                      ";

/* Puts header and trailer around len bytes of body, which begin at buf + 8. Return: length of the message. */
static size_t frame(unsigned char *buf, bool smcd, int type, int flags, size_t len)
{
	size_t all = 8 + len + 4;

	memcpy(buf, smcd ? eye_d : eye_r, 4);
	buf[4] = type;
	buf[5] = all >> 8;
	buf[6] = all;
	buf[7] = flags;
	memcpy(buf + 8 + len, smcd ? eye_d : eye_r, 4);
	return all;
}

static size_t proposal_v1(struct rnd *r, unsigned char *buf)
{
	static const unsigned char flags[] = { 0x28, 0x29, 0x2a, 0x2b, 0x10, 0x11, 0x13 };

	buf[8 + 31] = 40;	/* offset of the prefix area */
	memcpy(buf + 8 + 72, "\x0a\x58\x00\x00\x18\x00\x00\x00", 8);
	return frame(buf, false, PROPOSAL, RND_PICK(r, flags), 80);
}

static size_t proposal_v2(struct rnd *r, unsigned char *buf)
{
	static const unsigned char flags[] = { 0x22, 0x26, 0x2a, 0x2e };
	unsigned char *v2 = buf + 8 + 72;
	int gids = rnd_below(r, 9);
	size_t len = 72 + 40 + 32;

	buf[8 + 42 + 1] = 28;	/* offset of this part */
	v2[0] = 1;
	v2[1] = gids;
	v2[3] = 1 << 4;
	v2[6] = 0;
	v2[7] = 64;
	v2[24] = 255;
	v2[25] = 2;
	v2[27] = 1;
	memcpy(v2 + 40, eid, 32);
	len += 48;
	for (int i = 0; i < gids; i++, len += 10) {
		buf[8 + len + 7] = i;
		buf[8 + len + 8] = buf[8 + len + 9] = 0xff;
	}
	return frame(buf, false, PROPOSAL, RND_PICK(r, flags), len);
}

static size_t accept_d(struct rnd *r, unsigned char *buf, int type)
{
	buf[8 + 7] = 7;
	buf[8 + 15] = 9;
	if (rnd_one_in(r, 2))
		return frame(buf, true, type, 0x19, 36);
	buf[8 + 24] = buf[8 + 25] = 0xff;
	memcpy(buf + 8 + 26, eid, 32);
	buf[8 + 67] = 2 << 4 | 1;
	memcpy(buf + 8 + 70, eid, 32);
	return frame(buf, true, type, 0x29, 118);
}

static size_t accept_r(struct rnd *r, unsigned char *buf, int type)
{
	bool v2 = rnd_one_in(r, 2), first = rnd_one_in(r, 2);

	for (int i = 0; i < 56; i++)
		buf[8 + i] = rnd_next(r);
	return frame(buf, false, type, (v2 ? 0x20 : 0x10) | (first ? 8 : 0), v2 ? 96 : 56);
}

static size_t decline(struct rnd *r, unsigned char *buf)
{
	bool v2 = rnd_one_in(r, 2), sync = rnd_one_in(r, 2);

	buf[8 + 8] = buf[8 + 9] = 3;
	return frame(buf, rnd_one_in(r, 2), DECLINE, (v2 ? 0x20 : 0x10) | (sync ? 8 : 0), v2 ? 32 : 16);
}

/**
 * clc_mutate() - change a few bytes of a message
 * @buf: message
 * @len: its length
 */
void clc_mutate(struct rnd *r, unsigned char *buf, size_t len)
{
	static const unsigned char odd[] = { 0, 1, 0x7f, 0x80, 0xff };

	for (int n = rnd_below(r, 4); n > 0 && len; n--) {
		unsigned char *b = &buf[rnd_below(r, len)];

		switch (rnd_below(r, 3)) {
		case 0: *b ^= 1 << rnd_below(r, 8); break;
		case 1: *b = RND_PICK(r, odd); break;
		default: *b = rnd_next(r);
		}
	}
}

/**
 * clc_message() - make a message
 * @buf: where it goes
 * @size: of buf; at least 512
 *
 * Return: its length.
 */
size_t clc_message(struct rnd *r, unsigned char *buf, size_t size)
{
	size_t len;

	memset(buf, 0, size);
	switch (rnd_below(r, 8)) {
	case 0: len = proposal_v1(r, buf); break;
	case 1: len = proposal_v2(r, buf); break;
	case 2: len = accept_d(r, buf, ACCEPT); break;
	case 3: len = accept_d(r, buf, CONFIRM); break;
	case 4: len = accept_r(r, buf, ACCEPT); break;
	case 5: len = accept_r(r, buf, CONFIRM); break;
	default: len = decline(r, buf);
	}
	if (rnd_one_in(r, 2))
		clc_mutate(r, buf, len);
	if (rnd_one_in(r, 8))
		len = rnd_below(r, len + 40);
	return len;
}
