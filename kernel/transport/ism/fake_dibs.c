// SPDX-License-Identifier: GPL-2.0-only
/* dibs with the device of fake.c, as <linux/dibs.h> describes it: for kernels that have that file, and no dibs. */

#include <linux/dibs.h>

#include "fake.h"

static struct dibs_dev fake_dibs;
static struct dibs_client *fake_dibs_client;

static u16 fake_dibs_get_fabric_id(struct dibs_dev *dev)
{
	return FAKE_CHID;
}

static int fake_dibs_query_remote_gid(struct dibs_dev *dev, const uuid_t *rgid, u32 vid_valid, u32 vid)
{
	return uuid_equal(rgid, &dev->gid) ? 0 : -ENETUNREACH;
}

static int fake_dibs_max_dmbs(void)
{
	return FAKE_DMBS;
}

static int fake_dibs_register_dmb(struct dibs_dev *dev, struct dibs_dmb *dmb, struct dibs_client *client)
{
	int idx;

	if (!uuid_equal(&dmb->rgid, &dev->gid))
		return -EINVAL;
	idx = fake_dmb_get(dmb->dmb_len, &dmb->dmb_tok, &dmb->cpu_addr);
	if (idx < 0)
		return idx;
	dmb->idx = idx;
	return 0;
}

static int fake_dibs_unregister_dmb(struct dibs_dev *dev, struct dibs_dmb *dmb)
{
	return fake_dmb_put(dmb->idx, dmb->dmb_tok, dmb->cpu_addr, dmb->dmb_len);
}

static int fake_dibs_move_data(struct dibs_dev *dev, u64 token, unsigned int idx, bool sf, unsigned int off, void *data, unsigned int len)
{
	return fake_move(token, idx, sf, off, data, len);
}

static int fake_dibs_signal_event(struct dibs_dev *dev, const uuid_t *rgid, u32 trigger_irq, u32 code, u64 info)
{
	if (!uuid_equal(rgid, &dev->gid))
		return -ENETUNREACH;
	fake_client_event(code, info);
	return 0;
}

static const struct dibs_dev_ops fake_dibs_ops = {
	.get_fabric_id		= fake_dibs_get_fabric_id,
	.query_remote_gid	= fake_dibs_query_remote_gid,
	.max_dmbs		= fake_dibs_max_dmbs,
	.register_dmb		= fake_dibs_register_dmb,
	.unregister_dmb		= fake_dibs_unregister_dmb,
	.move_data		= fake_dibs_move_data,
	.signal_event		= fake_dibs_signal_event,
};

/* dibs_register_client() - as <linux/dibs.h> says. */
int dibs_register_client(struct dibs_client *client)
{
	fake_dibs_client = client;
	client->id = 0;
	fake_client_come();
	return 0;
}

/* dibs_unregister_client() - the same. */
int dibs_unregister_client(struct dibs_client *client)
{
	return fake_client_leave(true);
}

/* fake_call_add() - tells the client that there is the device. */
void fake_call_add(void)
{
	fake_dibs_client->ops->add_dev(&fake_dibs);
}

/* fake_call_remove() - tells the client that the device goes. */
void fake_call_remove(void)
{
	fake_dibs_client->ops->del_dev(&fake_dibs);
}

/* fake_call_irq() - tells the client that a DMB has been signalled. Hardirq. */
void fake_call_irq(u32 idx, u16 mask)
{
	fake_dibs_client->ops->handle_irq(&fake_dibs, idx, mask);
}

/* fake_call_event() - tells the client of an event. Hardirq. */
void fake_call_event(const struct fake_event *e)
{
	const struct dibs_event gone = { .type = DIBS_DEV_EVENT, .subtype = DIBS_DEV_DISABLED, .gid = fake_dibs.gid };
	const struct dibs_event sw = { .type = DIBS_SW_EVENT, .subtype = e->code, .gid = fake_dibs.gid, .data = e->info };

	fake_dibs_client->ops->handle_event(&fake_dibs, e->gone ? &gone : &sw);
}

/* fake_client_data() - returns the data of the client, which it has set. */
void *fake_client_data(void)
{
	return dibs_get_priv(&fake_dibs, fake_dibs_client);
}

/* fake_setup() - returns the device. */
struct device *fake_setup(void)
{
	fake_dibs.ops = &fake_dibs_ops;
	generate_random_uuid(fake_dibs.gid.b);
	memset(fake_dibs.gid.b + 8, 0, 8); /* the GIDs of ISM devices have 64 bits */
	return &fake_dibs.dev;
}
