// SPDX-License-Identifier: Apache-2.0
/*
 * Vectors are lines "FRAME KIND HEX", where KIND is clc, llc or cdc for a message, smc or plain for
 * the options of a TCP header with and without ours.
 */
#include "cdc.h"
#include "check.h"
#include "hex.h"
#include "llc_lists.h"
#include "tcpopt.h"

/* Encoding a decoded message must give the bytes that the stock host sent. */
static void check_message(const u8 *buf, size_t len)
{
	u8 again[SMC_CLC_MAX];
	union message m, cut;
	size_t n;

	CHECK_EQ(decode_as(buf[4], buf, len, &m), 0);
	CHECK_EQ(encode_as(buf[4], &m, again, sizeof(again)), len);
	CHECK(!memcmp(buf, again, len));
	for (n = 0; n < len; n++)
		CHECK_EQ(decode_as(buf[4], buf, n, &cut), -EPROTO);
}

static void check_cdc(const u8 *buf, size_t len)
{
	u8 *copy = exact(buf, len), again[SMC_CDC_R_LEN];
	struct smc_cdc c;

	CHECK_EQ(len, SMC_CDC_R_LEN);
	CHECK_EQ(smc_cdc_r_decode(copy, len, &c), 0);
	smc_cdc_r_encode(&c, again);
	CHECK(!memcmp(copy, again, SMC_CDC_R_LEN));
	free(copy);
}

/* Checks an LLC message. All of them have version 2 and the byte order of a little-endian machine. */
static void check_llc(const u8 *buf, size_t len)
{
	u8 again[SMC_CLC_MAX];
	struct smc_llc m, cut;
	size_t n;

	CHECK_EQ(decode_llc(buf, len, &m), 0);
	CHECK(m.version == 2 && m.swapped && m.length == len);
	CHECK_EQ(smc_llc_encode(&m, again, sizeof(again)), len);
	llc_copy_lists(&m, buf, &m, again);
	CHECK(!memcmp(buf, again, len));
	for (n = 0; n < len; n++)
		CHECK_EQ(decode_llc(buf, n, &cut), llc_cut(&m, n));
}

static void check_options(const char *kind, const u8 *buf, size_t len)
{
	bool smc = !strcmp(kind, "smc");
	u8 *copy = exact(buf, len);
	int at = smc_tcpopt_find(copy, len);

	CHECK_EQ(at, smc ? (int)len - SMC_TCPOPT_LEN : -ENOENT);
	CHECK_EQ(smc_tcpopt_room(copy, len), !smc);
	free(copy);
}

static bool is(const u8 *bytes, const char *text)
{
	return !memcmp(bytes, text, strlen(text));
}

/*
 * The fields of one message of each kind, as another program reads them: a field that is read
 * from the wrong place and written back there would pass the comparison of bytes.
 */

static void check_proposal_r(const struct smc_clc_proposal *p)
{
	static const u8 gid[16] = { [10] = 0xff, 0xff, 10, 0, 9, 2 };

	CHECK(p->path_v1 == SMC_PATH_N && p->path_v2 == SMC_PATH_R && p->release == 1);
	CHECK(p->n_eid == 1 && is(p->eid[0], "SMCLAB-EID                      "));
	CHECK(!memcmp(p->rocev2_gid, gid, 16));
	CHECK(p->max_conns == 255 && p->max_links == 2 && p->features == 1 && !p->seid_valid);
}

static void check_confirm_r(const struct smc_clc_accept *a)
{
	static const u8 gid[16] = { [10] = 0xff, 0xff, 10, 0, 9, 2 };

	CHECK(is(a->peer_id, "\x2b\x0b\x52\x54") && !memcmp(a->gid, gid, 16));
	CHECK(is(a->mac, "\x52\x54") && a->mac[5] == 2);
	CHECK(a->qpn == 0x11 && a->rkey == 0x331 && a->rmbe_idx == 1 && a->token == 1);
	CHECK(a->size_code == 2 && a->mtu_code == 3 && a->psn == 0x6773f2);
	CHECK(a->rmb_addr == 0xff2824c2c5130000 && a->direct && a->os_type == 2);
	CHECK(a->release == 1 && is(a->host, "vmb     ") && is(a->eid, "SMCLAB-EID "));
	CHECK(a->max_conns == 255 && a->max_links == 2 && a->features == 1);
	CHECK(a->n_gids == 1 && !memcmp(a->gids[0], gid, 16));
}

static void check_proposal_d(const struct smc_clc_proposal *p)
{
	CHECK(p->path_v1 == SMC_PATH_N && p->path_v2 == SMC_PATH_D && p->n_gid == 2);
	CHECK(p->gids[0].gid == 0xbd73c0badada443e && p->gids[0].chid == 0xffff);
	CHECK(p->gids[1].gid == 0xbdf32c6b61053fd7 && p->gids[1].chid == 0xffff);
}

static void check_accept_d(const struct smc_clc_accept *a)
{
	CHECK(a->smcd && a->first_contact && a->ism_gid == 0xbd73c0badada443e);
	CHECK(a->dmb_token == 0x9ef5f031b8fb04ee && a->dmbe_idx == 0 && a->size_code == 2);
	CHECK(smc_get_be32(a->link_id) == 0x00010000 && a->chid == 0xffff);
	CHECK(a->ext_gid == 0xbdf32c6b61053fd7 && a->os_type == 2 && a->release == 1);
	CHECK(is(a->host, "vma     ") && is(a->eid, "SMCLAB-EID "));
}

static void check_decline(const struct smc_clc_decline *d)
{
	CHECK(d->version == 2 && !d->sync && d->code == 0x03030008 && d->os_type == 2);
}

static void check_known(const char *path, int frame, const u8 *buf, size_t len)
{
	union message m;

	decode_as(buf[4], buf, len, &m);
	if (strstr(path, "smcr-v2-linux-6.12") && frame == 9)
		check_proposal_r(&m.proposal);
	if (strstr(path, "smcr-v2-linux-6.12") && frame == 13)
		check_confirm_r(&m.accept);
	if (strstr(path, "smcd-v2-linux-7.2") && frame == 4)
		check_proposal_d(&m.proposal);
	if (strstr(path, "smcd-v2-linux-7.2") && frame == 6)
		check_accept_d(&m.accept);
	if (strstr(path, "smcd-v2-linux-7.2") && frame == 52)
		check_decline(&m.decline);
}

/*
 * Frame 571 has the urgent byte of the second connection, 557 an answer in the middle of much data.
 */
static void check_known_cdc(const char *path, int frame, const u8 *buf)
{
	struct smc_cdc c;

	if (!strstr(path, "smcr-v2-linux-6.12") || smc_cdc_r_decode(buf, SMC_CDC_R_LEN, &c))
		return;
	if (frame == 571) {
		CHECK(c.token == 2 && c.seq == 3 && !c.prod.wrap && c.prod.count == 0x13ed);
		CHECK(!c.cons.wrap && c.cons.count == 0x13ec && !c.state);
		CHECK_EQ(c.flags, SMC_CDC_URGENT | SMC_CDC_URGENT_PENDING);
	}
	if (frame == 557) {
		CHECK(c.token == 1 && c.prod.wrap == 3 && c.prod.count == 0x13ec);
		CHECK(c.cons.wrap == 3 && c.cons.count == 0x212c && c.flags == SMC_CDC_BLOCKED);
	}
}

static void check_confirm_link(const struct smc_llc *m)
{
	static const u8 gid[16] = { [10] = 0xff, 0xff, 10, 0, 9, 1 };
	const struct smc_llc_confirm_link *c = &m->confirm_link;

	CHECK(m->type == SMC_LLC_CONFIRM_LINK && !m->response && c->no_eyecatcher);
	CHECK(is(c->mac, "\x52\x54") && c->mac[5] == 1 && !memcmp(c->gid, gid, 16));
	CHECK(c->qpn == 0x11 && c->link == 1 && smc_get_be32(c->user_id) == 0x00000101);
	CHECK(c->max_links == 2 && c->max_conns == 255);
}

static void check_add_link(const struct smc_llc *m, const u8 *buf)
{
	static const u8 gid[16] = { [10] = 0xff, 0xff, 10, 0, 9, 12 };
	const struct smc_llc_add_link *a = &m->add_link;
	struct smc_llc_pair pair;

	CHECK(m->type == SMC_LLC_ADD_LINK && m->response && !a->reject && m->length == 88);
	CHECK(is(a->mac, "\x52\x54") && a->mac[5] == 2 && !memcmp(a->gid, gid, 16));
	CHECK(a->qpn == 0x11 && a->link == 2 && a->mtu_code == 3 && a->psn == 0x69741d);
	CHECK(a->has_ext && a->direct && !memcmp(a->target_gid, gid, 16) && a->n_pairs == 1);
	CHECK(smc_llc_pair_at(m, buf, 0, &pair) && pair.known == 0x3d7 && pair.rkey == 0x3b5);
	CHECK(pair.addr == 0xff232efd42b60000 && !smc_llc_pair_at(m, buf, 1, &pair));
}

static void check_reject(const struct smc_llc *m)
{
	const struct smc_llc_add_link *a = &m->add_link;

	CHECK(m->type == SMC_LLC_ADD_LINK && m->response && a->reject && !a->reason);
	CHECK(!a->has_ext && a->link == 2 && a->psn == 0x85f6d6);
}

static void check_confirm_rkey(const struct smc_llc *m)
{
	const struct smc_llc_confirm_rkey *c = &m->confirm_rkey;

	CHECK(m->type == SMC_LLC_CONFIRM_RKEY && !m->response && !c->negative && c->left == 1);
	CHECK(c->rkey == 0x5a4 && c->addr == 0xff2245e082a00000);
	CHECK(c->others[0].link == 2 && c->others[0].rkey == 0x5e3);
	CHECK(c->others[0].addr == 0xff2245e082a00000 && !c->others[1].link);
}

static void check_delete_rkey(const struct smc_llc *m, const u8 *buf)
{
	u32 rkey;

	CHECK(m->type == SMC_LLC_DELETE_RKEY && !m->response && m->delete_rkey.n_rkeys == 1);
	CHECK(smc_llc_rkey_at(m, buf, 0, &rkey) && rkey == 0x5fb);
}

static void check_delete_link(const struct smc_llc *m)
{
	const struct smc_llc_delete_link *d = &m->delete_link;

	CHECK(m->type == SMC_LLC_DELETE_LINK && !m->response && d->all && !d->orderly);
	CHECK(!d->link && d->reason == SMC_LLC_BY_OPERATOR);
}

static void check_known_llc(const char *path, int frame, const u8 *buf, size_t len)
{
	bool two = strstr(path, "two-links"), one = strstr(path, "smcr-v2-linux-6.12");
	struct smc_llc m;

	if (smc_llc_decode(buf, len, &m))
		return;
	if (one && frame == 15)
		check_confirm_link(&m);
	if (one && frame == 21)
		check_reject(&m);
	if (one && frame == 590)
		check_delete_rkey(&m, buf);
	if (one && frame == 625)
		check_delete_link(&m);
	if (two && frame == 25)
		check_add_link(&m, buf);
	if (two && frame == 103)
		check_confirm_rkey(&m);
}

static void check_line(const char *path, const char *line)
{
	char kind[8], hex[2 * SMC_CLC_MAX + 2], name[64];
	u8 buf[SMC_CLC_MAX];
	int frame, len;

	CHECK_EQ(sscanf(line, "%d %7s %1305s", &frame, kind, hex), 3);
	snprintf(name, sizeof(name), "frame %d", frame);
	check_case = name;
	len = parse_hex(hex, buf, sizeof(buf));
	CHECK(len > 0);
	if (len > 0 && !strcmp(kind, "clc")) {
		check_message(buf, (size_t)len);
		check_known(path, frame, buf, (size_t)len);
	} else if (len > 0 && !strcmp(kind, "cdc")) {
		check_cdc(buf, (size_t)len);
		check_known_cdc(path, frame, buf);
	} else if (len > 0 && !strcmp(kind, "llc")) {
		check_llc(buf, (size_t)len);
		check_known_llc(path, frame, buf, (size_t)len);
	} else if (len > 0) {
		check_options(kind, buf, (size_t)len);
	}
	check_case = "";
}

int check_vectors(const char *path)
{
	char line[2 * SMC_CLC_MAX + 64];
	FILE *f = fopen(path, "r");
	int n = 0;

	if (!f) {
		perror(path);
		return 0;
	}
	while (fgets(line, sizeof(line), f)) {
		if (line[0] == '#')
			continue;
		check_line(path, line);
		n++;
	}
	fclose(f);
	return n;
}
