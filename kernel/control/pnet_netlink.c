// SPDX-License-Identifier: GPL-2.0-only
/*
 * SMC_PNETID: the PNET table over netlink
 *
 * As with the stock module, a PNET ID is converted to upper case only when an entry is added.
 */
#include <linux/module.h>
#include <net/sock.h>

#include "../net.h"
#include "../uapi/smc_uapi.h"
#include "netlink.h"
#include "netlink_attrs_gen.h"
#include "pnet.h"

/* Values for the device that an entry does not have. */
#define ABSENT "n/a"
#define NO_PORT 255

static struct genl_family family;

/* Adds one entry to an answer. */
static int put_pnet_entry(struct sk_buff *skb, u32 portid, u32 seq, int flags,
			  struct netlink_callback *cb, const struct smc_pnet_entry *entry)
{
	bool eth = entry->kind == SMC_PNET_ETH;
	void *msg;

	msg = genlmsg_put(skb, portid, seq, &family, flags, SMC_PNETID_GET);
	if (!msg)
		return -EMSGSIZE;
	if (cb)
		genl_dump_check_consistent(cb, msg);
	if (nla_put_string(skb, SMC_PNETID_NAME, entry->id) ||
	    nla_put_string(skb, SMC_PNETID_ETHNAME, eth ? entry->name : ABSENT) ||
	    nla_put_string(skb, SMC_PNETID_IBNAME, eth ? ABSENT : entry->name) ||
	    nla_put_u8(skb, SMC_PNETID_IBPORT, eth ? NO_PORT : entry->port)) {
		genlmsg_cancel(skb, msg);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, msg);
	return 0;
}

struct dump_walk {
	struct smc_pnet_walk walk;
	struct sk_buff *skb;
	struct netlink_callback *cb;
	unsigned int at;
};

static int dump_entry(struct smc_pnet_walk *walk, const struct smc_pnet_entry *entry)
{
	struct dump_walk *dump = container_of(walk, struct dump_walk, walk);
	struct netlink_callback *cb = dump->cb;
	unsigned int *next = &smc_netlink_cursor_of(cb)->next;

	/* If the table has changed, wrong entries are skipped, and tools learn that by the generation. */
	if (dump->at++ < *next)
		return 0;
	cb->seq = walk->generation;
	if (put_pnet_entry(dump->skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq, NLM_F_MULTI, cb,
			   entry))
		return -EMSGSIZE;
	++*next;
	return 0;
}

static int dump_table(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct dump_walk dump = { .walk.visit = dump_entry, .skb = skb, .cb = cb };

	smc_pnet_for_each(smc_net(sock_net(skb->sk)), &dump.walk);
	/* The final message has it, too, since entries may be removed after the last one was sent. */
	cb->seq = dump.walk.generation;
	return skb->len;
}

struct get_walk {
	struct smc_pnet_walk walk;
	struct sk_buff *skb;
	struct genl_info *info;
	const char *id;
};

static int get_entry(struct smc_pnet_walk *walk, const struct smc_pnet_entry *entry)
{
	struct get_walk *get = container_of(walk, struct get_walk, walk);

	if (strcmp(entry->id, get->id))
		return 0;
	return put_pnet_entry(get->skb, get->info->snd_portid, get->info->snd_seq, 0, NULL, entry);
}

/* Returns the PNET ID of a request, or NULL if that lacks it. */
static const char *id_of(struct genl_info *info)
{
	struct nlattr *attr = info->attrs[SMC_PNETID_NAME];

	if (!attr)
		GENL_SET_ERR_MSG(info, "the PNET ID is missing");
	return attr ? nla_data(attr) : NULL;
}

/*
 * Answers with the entries of a PNET ID that fit into one datagram, which is empty if there are none, because tools wait
 * for one datagram. A dump has all entries.
 */
static int get_id(struct sk_buff *skb, struct genl_info *info)
{
	struct get_walk get = { .walk.visit = get_entry, .info = info, .id = id_of(info) };

	if (!get.id)
		return -EINVAL;
	get.skb = nlmsg_new(NLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (!get.skb)
		return -ENOMEM;
	smc_pnet_for_each(smc_net(genl_info_net(info)), &get.walk);
	return genlmsg_reply(get.skb, info);
}

static int add_devices(struct sk_buff *skb, struct genl_info *info)
{
	const char *text = id_of(info);
	struct nlattr **attrs = info->attrs;
	struct smc_pnet_device devices[2];
	char id[SMC_PNET_ID_LEN + 1];
	unsigned int n = 0;
	int rc;

	if (!text)
		return -EINVAL;
	rc = smc_pnet_parse_id(text, id, info->extack);
	if (rc)
		return rc;
	if (attrs[SMC_PNETID_ETHNAME])
		devices[n++] = (struct smc_pnet_device) {
			.kind = SMC_PNET_ETH,
			.name = nla_data(attrs[SMC_PNETID_ETHNAME]),
		};
	if (attrs[SMC_PNETID_IBNAME])
		devices[n++] = (struct smc_pnet_device) {
			.kind = SMC_PNET_IB,
			.name = nla_data(attrs[SMC_PNETID_IBNAME]),
			.port = attrs[SMC_PNETID_IBPORT] ? nla_get_u8(attrs[SMC_PNETID_IBPORT]) :
							   SMC_PNET_PORT_DEFAULT,
		};
	return smc_pnet_add(smc_net(genl_info_net(info)), id, devices, n, info->extack);
}

static int del_id(struct sk_buff *skb, struct genl_info *info)
{
	const char *id = id_of(info);
	int rc;

	if (!id)
		return -EINVAL;
	rc = smc_pnet_remove(smc_net(genl_info_net(info)), id, NULL);
	if (rc)
		GENL_SET_ERR_MSG(info, "the PNET table has no such PNET ID");
	return rc;
}

static int flush_table(struct sk_buff *skb, struct genl_info *info)
{
	smc_pnet_flush(smc_net(genl_info_net(info)));
	return 0;
}

static_assert(SMC_PNETID_NAME_LEN == SMC_PNET_ID_LEN);
static_assert(SMC_PNETID_ETHNAME_LEN == IFNAMSIZ - 1);
static_assert(SMC_PNETID_IBNAME_LEN == SMC_PNET_IB_LEN);

/* The family is older than strict checking, so it ignores unknown attributes. */
#define LENIENT (GENL_DONT_VALIDATE_STRICT | GENL_DONT_VALIDATE_DUMP)

static const struct genl_small_ops ops[] = {
	{ .cmd = SMC_PNETID_GET, .validate = LENIENT, .doit = get_id, .dumpit = dump_table },
	{ .cmd = SMC_PNETID_ADD, .validate = LENIENT, .flags = GENL_ADMIN_PERM, .doit = add_devices },
	{ .cmd = SMC_PNETID_DEL, .validate = LENIENT, .flags = GENL_ADMIN_PERM, .doit = del_id },
	{ .cmd = SMC_PNETID_FLUSH, .validate = LENIENT, .flags = GENL_ADMIN_PERM, .doit = flush_table },
};

static struct genl_family family __ro_after_init = {
	.name = SMCR_GENL_FAMILY_NAME,
	.version = SMCR_GENL_FAMILY_VERSION,
	.maxattr = ARRAY_SIZE(smc_netlink_pnetid_attrs) - 1,
	.policy = smc_netlink_pnetid_attrs,
	.netnsok = true,
	.module = THIS_MODULE,
	.small_ops = ops,
	.n_small_ops = ARRAY_SIZE(ops),
	.resv_start_op = SMC_PNETID_FLUSH + 1,
};

/* smc_pnet_netlink_init() - registers the family, after smc_net_init(). Return: 0 or a negative errno. */
int __init smc_pnet_netlink_init(void)
{
	might_sleep();
	return genl_register_family(&family);
}

/* smc_pnet_netlink_exit() - unregisters the family, before smc_net_exit(). */
void smc_pnet_netlink_exit(void)
{
	might_sleep();
	genl_unregister_family(&family);
}
