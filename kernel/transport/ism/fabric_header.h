/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The numbers of a fabric's header. smc_ismd writes them, but the server may be hostile, and so may the members, which can overwrite the
 * header at any time. So each number is read once, and none is used before all of them are found possible. It also builds in user space,
 * where tests/wire tests it.
 */
#ifndef SMC_TRANSPORT_ISM_FABRIC_HEADER_H
#define SMC_TRANSPORT_ISM_FABRIC_HEADER_H

#include "../../wire/shim.h"
#include "fabric_layout.h"

/* The CHIDs that virtual ISM devices can have, except the loopback device */
#define SMC_FABRIC_CHID_MIN	0xff00
#define SMC_FABRIC_CHID_MAX	0xfffe
/* The blocks of an area that tokens can name */
#define SMC_FABRIC_BLOCKS_MAX	65536

/* The layout of a fabric. Every entry, area, descriptor and block is within its memory. */
struct smc_fabric_header {
	u64	areas, area_size;
	u32	n_members, n_blocks, blocks_at;
	u32	dmbs_at;	/* offset of the descriptors in an area */
	u64	gid;		/* the first half of the members' GIDs */
	u16	chid;
};

static inline u32 smc_fabric_read32(const u8 *at)
{
	return le32_to_cpu(READ_ONCE(*(const __le32 *)at));
}

static inline u64 smc_fabric_read64(const u8 *at)
{
	return le64_to_cpu(READ_ONCE(*(const __le64 *)at));
}

/* Are the numbers such that each entry, area and block is within @size bytes? */
static inline bool smc_fabric_is_possible(const struct smc_fabric_header *h, u64 size)
{
	u64 dmbs_end = h->dmbs_at + (u64)h->n_blocks * SMC_FABRIC_DMB_LEN;
	u64 directory_end = SMC_FABRIC_DIRECTORY + SMC_FABRIC_MEMBERS_MAX * SMC_FABRIC_ENTRY_LEN;

	return h->n_members >= 2 && h->n_members <= SMC_FABRIC_MEMBERS_MAX && h->n_blocks && h->n_blocks <= SMC_FABRIC_BLOCKS_MAX &&
	       !((h->blocks_at | h->areas | h->area_size) & 4095) && h->blocks_at >= dmbs_end &&
	       h->areas >= directory_end && h->areas <= size && h->area_size <= size &&
	       h->blocks_at + (u64)h->n_blocks * SMC_FABRIC_BLOCK_LEN <= h->area_size &&
	       h->n_members * h->area_size <= size - h->areas;
}

/**
 * smc_fabric_header_decode() - reads the header of a fabric
 * @mem: the memory, aligned to 8
 * @size: its length, that of a PCI device's memory: less than 2^58, so that no sum or product overflows
 * @h: result; undefined after an error
 *
 * Context: any.
 * Return: 0, -ENODEV if the memory is not a fabric of this layout, -EPROTO if its numbers are impossible.
 */
static inline int smc_fabric_header_decode(const u8 *mem, u64 size, struct smc_fabric_header *h)
{
	u32 chid, signals;

	if (size < SMC_FABRIC_DIRECTORY + SMC_FABRIC_MEMBERS_MAX * SMC_FABRIC_ENTRY_LEN ||
	    memcmp(mem + SMC_FABRIC_MAGIC_AT, SMC_FABRIC_MAGIC, 8))
		return -ENODEV;
	h->n_members = smc_fabric_read32(mem + SMC_FABRIC_MEMBERS);
	h->areas = smc_fabric_read64(mem + SMC_FABRIC_AREAS);
	h->area_size = smc_fabric_read64(mem + SMC_FABRIC_AREA_SIZE);
	h->n_blocks = smc_fabric_read32(mem + SMC_FABRIC_BLOCKS);
	h->blocks_at = smc_fabric_read32(mem + SMC_FABRIC_BLOCKS_AT);
	signals = h->n_blocks < SMC_FABRIC_BLOCKS_MAX ? h->n_blocks : SMC_FABRIC_BLOCKS_MAX;
	h->dmbs_at = (SMC_FABRIC_SIGNALS + signals + SMC_FABRIC_DMB_LEN - 1) / SMC_FABRIC_DMB_LEN * SMC_FABRIC_DMB_LEN;
	h->gid = smc_fabric_read64(mem + SMC_FABRIC_UUID);
	chid = smc_fabric_read32(mem + SMC_FABRIC_CHID);
	if (chid < SMC_FABRIC_CHID_MIN || chid > SMC_FABRIC_CHID_MAX || !smc_fabric_is_possible(h, size))
		return -EPROTO;
	h->chid = (u16)chid;
	return 0;
}

#endif /* SMC_TRANSPORT_ISM_FABRIC_HEADER_H */
