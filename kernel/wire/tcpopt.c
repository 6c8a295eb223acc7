// SPDX-License-Identifier: GPL-2.0-only
#include "tcpopt.h"

enum {
	KIND_EOL = 0,
	KIND_NOP = 1,
	KIND_MD5 = 19,
	KIND_AO = 29,
};

/*
 * Returns the size of the option at @opts, of which @left > 0 bytes remain, or -EPROTO if it does
 * not fit. An end-of-list option counts as one byte; the caller decides what follows from it.
 */
static int option_size(const u8 *opts, size_t left)
{
	if (opts[0] == KIND_EOL || opts[0] == KIND_NOP)
		return 1;
	if (left < 2 || opts[1] < 2 || opts[1] > left)
		return -EPROTO;
	return opts[1];
}

/*
 * TCP Fast Open once used the same kind with the 16-bit magic F989. The first bytes of the two
 * magics differ, so comparing all four bytes of ours tells them apart.
 */
static bool is_smc(const u8 *opt, int size)
{
	return opt[0] == SMC_TCPOPT_KIND && size >= SMC_TCPOPT_LEN && size % 2 == 0 &&
	       smc_get_be32(opt + 2) == SMC_TCPOPT_MAGIC;
}

/**
 * smc_tcpopt_find - looks for the SMC option
 * @opts: the options of a TCP header
 * @len: their size in bytes
 *
 * The function stops at the option, or at the end of the list. It ignores bytes of the option after
 * the magic, as all peers do.
 *
 * Return: the offset of the option's kind byte; -ENOENT if there is none; -EPROTO if an option
 * before it is cut off or has an impossible length.
 */
int smc_tcpopt_find(const u8 *opts, size_t len)
{
	size_t at = 0;

	while (at < len && opts[at] != KIND_EOL) {
		int size = option_size(opts + at, len - at);

		if (size < 0)
			return size;
		if (is_smc(opts + at, size))
			return (int)at;
		at += (size_t)size;
	}
	return -ENOENT;
}

/**
 * smc_tcpopt_room - whether the option may be appended
 * @opts: the options of a TCP header
 * @len: their size in bytes
 *
 * There is no room if the header is full, if the list is malformed, or if the option is there
 * already. Signed segments (MD5, TCP-AO) stay as they are, because the option is not in the
 * signature. A list with an end-of-list option, which Linux never sends, has no room either:
 * receivers stop there.
 *
 * Return: true if SMC_TCPOPT_SPACE bytes may be put at @opts + @len.
 */
bool smc_tcpopt_room(const u8 *opts, size_t len)
{
	size_t at = 0;

	if (len + SMC_TCPOPT_SPACE > SMC_TCPOPT_MAX)
		return false;
	while (at < len) {
		int size = option_size(opts + at, len - at);

		if (size < 0 || is_smc(opts + at, size))
			return false;
		if (opts[at] == KIND_EOL || opts[at] == KIND_MD5 || opts[at] == KIND_AO)
			return false;
		at += (size_t)size;
	}
	return true;
}

/**
 * smc_tcpopt_put - writes the option
 * @at: SMC_TCPOPT_SPACE bytes
 */
void smc_tcpopt_put(u8 *at)
{
	at[0] = KIND_NOP;
	at[1] = KIND_NOP;
	at[2] = SMC_TCPOPT_KIND;
	at[3] = SMC_TCPOPT_LEN;
	smc_put_be32(at + 4, SMC_TCPOPT_MAGIC);
}
