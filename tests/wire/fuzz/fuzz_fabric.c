// SPDX-License-Identifier: Apache-2.0
/*
 * Headers of fabrics, and tokens of DMBs in them: 8 bytes are the size of the memory, 8 a token, the rest is the header. Nothing beyond the
 * memory may be reached by numbers that are accepted.
 */
#include "fuzz.h"
#include "fabric_header.h"
#include "fabric_place.h"

/* More bits than addresses of memory have */
#define SIZE_BITS 52

static u64 get_le(const u8 *at, unsigned int bytes)
{
	u64 v = 0;

	while (bytes--)
		v = v << 8 | at[bytes];
	return v;
}

/* Are @len bytes at @at within @end, without overflow? */
static bool is_within(u64 at, u64 len, u64 end)
{
	return at <= end && len <= end - at;
}

/* Every number that was accepted is that of the header, and leads to memory of its own. */
static void check_layout(const struct smc_fabric_header *h, const u8 *mem, u64 size)
{
	u64 at = h->areas;
	u32 member;

	MUST(h->n_members == get_le(mem + SMC_FABRIC_MEMBERS, 4) && h->chid == get_le(mem + SMC_FABRIC_CHID, 4));
	MUST(h->areas == get_le(mem + SMC_FABRIC_AREAS, 8) && h->area_size == get_le(mem + SMC_FABRIC_AREA_SIZE, 8));
	MUST(h->n_blocks == get_le(mem + SMC_FABRIC_BLOCKS, 4) && h->blocks_at == get_le(mem + SMC_FABRIC_BLOCKS_AT, 4));
	MUST(h->gid == get_le(mem + SMC_FABRIC_UUID, 8));
	MUST(h->chid >= 0xff00 && h->chid != 0xffff && h->n_members >= 2 && h->n_members <= 64);
	MUST(is_within(SMC_FABRIC_DIRECTORY, h->n_members * SMC_FABRIC_ENTRY_LEN, h->areas));
	MUST(h->n_blocks && is_within(SMC_FABRIC_SIGNALS, h->n_blocks, h->dmbs_at) && !(h->dmbs_at % 64));
	MUST(is_within(h->dmbs_at, (u64)h->n_blocks * SMC_FABRIC_DMB_LEN, h->blocks_at) && !(h->blocks_at % 4096));
	MUST(is_within(h->blocks_at, (u64)h->n_blocks * SMC_FABRIC_BLOCK_LEN, h->area_size) && !(h->area_size % 4096));
	for (member = 0; member < h->n_members; member++, at += h->area_size)
		MUST(is_within(at, h->area_size, size) && !(at % 4096));
}

/* A token leads to blocks of one area. Made again from what it leads to, it is the same. */
static void check_token(const struct smc_fabric_header *h, u64 token, u64 size)
{
	struct smc_fabric_place p;
	u64 area, blocks;
	u8 code = 0;

	if (!smc_fabric_find(h->n_members, h->n_blocks, token, &p))
		return;
	MUST(p.member < h->n_members && p.n && p.n <= SMC_FABRIC_DMB_BLOCKS_MAX);
	area = h->areas + p.member * h->area_size;
	blocks = h->blocks_at + (u64)p.block * SMC_FABRIC_BLOCK_LEN;
	MUST(is_within(blocks, (u64)p.n * SMC_FABRIC_BLOCK_LEN, h->area_size) && is_within(area, h->area_size, size));
	while (1U << code < p.n)
		code++;
	MUST(smc_fabric_token(p.member, p.block, code, token) == token);
}

static void check_memory(const u8 *mem, u64 size, u64 token)
{
	struct smc_fabric_header h;
	int rc;

	/* so that a number that is not set is noticed */
	memset(&h, 0xa5, sizeof(h));
	rc = smc_fabric_header_decode(mem, size, &h);
	MUST(!rc || rc == -ENODEV || rc == -EPROTO);
	if (rc)
		return;
	check_layout(&h, mem, size);
	check_token(&h, token, size);
	check_token(&h, token | (u64)(h.n_members - 1) << SMC_FABRIC_TOKEN_MEMBER, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	u8 *mem;
	u64 length, token;

	if (size < 16)
		return 0;
	length = get_le(data, 8) & ((1ULL << SIZE_BITS) - 1);
	token = get_le(data + 8, 8);
	mem = calloc(1, SMC_FABRIC_HEADER_LEN);
	MUST(mem);
	size = size - 16 < SMC_FABRIC_HEADER_LEN ? size - 16 : SMC_FABRIC_HEADER_LEN;
	memcpy(mem, data + 16, size);
	check_memory(mem, length, token);
	/* As an accepted fabric begins, and with aligned numbers, which few inputs would have. */
	memcpy(mem + SMC_FABRIC_MAGIC_AT, SMC_FABRIC_MAGIC, 8);
	mem[SMC_FABRIC_CHID + 1] = 0xff;
	mem[SMC_FABRIC_CHID + 2] = 0;
	mem[SMC_FABRIC_CHID + 3] = 0;
	check_memory(mem, length, token);
	mem[SMC_FABRIC_AREAS] = mem[SMC_FABRIC_AREA_SIZE] = mem[SMC_FABRIC_BLOCKS_AT] = 0;
	mem[SMC_FABRIC_AREAS + 1] &= 0xf0;
	mem[SMC_FABRIC_AREA_SIZE + 1] &= 0xf0;
	mem[SMC_FABRIC_BLOCKS_AT + 1] &= 0xf0;
	check_memory(mem, length, token);
	free(mem);
	return 0;
}
