/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The layout of a fabric: the memory that guests of one host share by ivshmem devices (docs/ism.md). smc_ismd, the host's
 * server, writes the header before the first member joins; internal/fabric has the same layout in Go. All numbers are
 * little-endian. No number depends on the page size or the cache lines of a member, and members may differ in both. Members
 * are numbered as ivshmem numbers peers. Each has an entry of the directory and an area, which it owns: it makes DMBs there,
 * which others write to.
 *
 * A member can write anywhere at any time. Nothing in it is trusted: the header is read once and checked, what a
 * member knows about its own area it keeps outside of the fabric, and what it reads of others selects memory of the fabric
 * only, within bounds that it keeps, too.
 *
 * Members write bytes and aligned words of 8 bytes with plain stores, each with one writer at a time, so that nothing depends on
 * atomic operations between guests.
 */
#ifndef SMC_TRANSPORT_ISM_FABRIC_LAYOUT_H
#define SMC_TRANSPORT_ISM_FABRIC_LAYOUT_H

#define SMC_FABRIC_MAGIC	"SMCFABR\x01"	/* the last byte is the version of the layout */
#define SMC_FABRIC_MEMBERS_MAX	64

/* The header, at 0 */
#define SMC_FABRIC_MAGIC_AT	0	/* 8 bytes */
#define SMC_FABRIC_MEMBERS	8	/* 4 bytes: how many members there can be, 2 to 64 */
#define SMC_FABRIC_CHID		12	/* 4 bytes: CHID of the members' devices, 0xff00 to 0xfffe */
#define SMC_FABRIC_SIZE		16	/* 8 bytes: of the memory */
#define SMC_FABRIC_UUID		24	/* 16 bytes; the first 8 begin the GIDs of all members */
#define SMC_FABRIC_AREAS	40	/* 8 bytes: offset of the first area, a multiple of 4096 */
#define SMC_FABRIC_AREA_SIZE	48	/* 8 bytes: of each area, a multiple of 4096 */
#define SMC_FABRIC_BLOCKS	56	/* 4 bytes: blocks in each area, 1 to 65536 */
#define SMC_FABRIC_BLOCKS_AT	60	/* 4 bytes: offset of the first block in an area, a multiple of 4096 */
#define SMC_FABRIC_NAME		64	/* 32 bytes: the fabric's name, ends with a zero byte */
#define SMC_FABRIC_HEADER_LEN	96

/* The directory: an entry of 64 bytes for each member */
#define SMC_FABRIC_DIRECTORY	4096
#define SMC_FABRIC_ENTRY_LEN	64
/*
 * 8 bytes: the second half of the member's GID: its number (8 bits), and 56 random bits that change whenever it joins. 0: it is
 * not there. The member writes it when its area is ready; smc_ismd writes 0 when the member's connection ends.
 */
#define SMC_FABRIC_ENTRY_GID	0
/* In its place if smc_ismd has removed the member, whose connection is there yet: it has to leave the fabric. */
#define SMC_FABRIC_REMOVED	(~0ULL)
/* For smc_ismd list only: bytes of DMBs, doorbells that it has rung, signals that needed none; its host name. */
#define SMC_FABRIC_ENTRY_USED	8	/* 8 bytes */
#define SMC_FABRIC_ENTRY_RUNG	16	/* 8 bytes */
#define SMC_FABRIC_ENTRY_SPARED	24	/* 8 bytes */
#define SMC_FABRIC_ENTRY_HOST	32	/* 32 bytes, ends with a zero byte */

/* An area */
#define SMC_FABRIC_LOOKING	0	/* 1 byte, of the owner: it looks for signals, and needs no doorbell */
/*
 * 8 bytes, of the owner: another number each second while its kernel runs. Others end their groups with one that does not change it for a
 * minute. It may continue all the same, so this does not say that it writes to nothing any more.
 */
#define SMC_FABRIC_BEAT		8
#define SMC_FABRIC_SIGNALS	4096	/* 1 byte for each block: a writer has signalled the DMB that begins there */
#define SMC_FABRIC_BLOCK_LEN	16384

/*
 * After the signals, from a multiple of 64 on: 64 bytes for each block, in use if a DMB begins there. All of it is written by the
 * owner, whose connection has this DMB to read from, and one of the peer's to write to.
 */
#define SMC_FABRIC_DMB_LEN	64
#define SMC_FABRIC_DMB_TOKEN	0	/* 8 bytes; 0: no one may begin to write to it any more */
#define SMC_FABRIC_DMB_COPIES	8	/* 8 bytes: token of the peer's DMB while data is copied there, else 0 */
#define SMC_FABRIC_DMB_SENDS	16	/* 8 bytes: the same for a CDC message */
#define SMC_FABRIC_DMB_WRITER	24	/* 8 bytes: second half of the GID of the member that may write to it */

/*
 * The token of a DMB, from the highest bit on: member (8 bits), first block (16), size code as in CLC (4), random (36, not 0). A writer
 * writes the token of the peer's DMB into its own descriptor, then looks whether that DMB still has the token and is for this writer,
 * copies, and writes 0. An owner that has cleared a token uses the blocks again when no descriptor of the writer names the token, or the
 * writer has left the fabric. Without the word for the writer, someone who is no member could have a member write to a third one, by
 * naming a token.
 */
#define SMC_FABRIC_TOKEN_MEMBER	56
#define SMC_FABRIC_TOKEN_BLOCK	40
#define SMC_FABRIC_TOKEN_CODE	36
#define SMC_FABRIC_TOKEN_RANDOM	((1ULL << SMC_FABRIC_TOKEN_CODE) - 1)

/* Vectors of doorbells */
#define SMC_FABRIC_VECTOR_SIGNAL	0	/* a DMB of the member is signalled */
#define SMC_FABRIC_VECTOR_MEMBERS	1	/* the directory has changed */
#define SMC_FABRIC_VECTORS		2

#endif /* SMC_TRANSPORT_ISM_FABRIC_LAYOUT_H */
