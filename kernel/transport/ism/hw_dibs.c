// SPDX-License-Identifier: GPL-2.0-only
/* The client of dibs. It ignores the loopback device of dibs, since loopback.c does more. */

#include <linux/dibs.h>
#include <linux/rcupdate.h>

#include "hw.h"

static void gid_of_uuid(const uuid_t *id, u64 gid[2])
{
	gid[0] = smc_get_be64(id->b);
	gid[1] = smc_get_be64(id->b + 8);
}

static uuid_t uuid_of_gid(const u64 gid[2])
{
	uuid_t id;

	smc_put_be64(id.b, gid[0]);
	smc_put_be64(id.b + 8, gid[1]);
	return id;
}

static struct dibs_client client;

static void drv_set_dev(void *drv, struct smc_hw_dev *hw)
{
	WRITE_ONCE(((struct dibs_dev *)drv)->priv[client.id], hw);
}

static bool drv_query(void *drv, const u64 gid[2])
{
	struct dibs_dev *dev = drv;
	uuid_t id = uuid_of_gid(gid);

	return !dev->ops->query_remote_gid(dev, &id, 0, 0);
}

static int drv_get_dmb(void *drv, struct smc_hw_dmb *d)
{
	struct dibs_dmb dmb = { .rgid = uuid_of_gid(d->dmb.gid), .dmb_len = d->len };
	struct dibs_dev *dev = drv;
	int rc = dev->ops->register_dmb(dev, &dmb, &client);

	if (rc)
		return rc;
	d->dmb.token = dmb.dmb_tok;
	d->idx = dmb.idx;
	d->addr = dmb.cpu_addr;
	d->dma = dmb.dma_addr;
	return 0;
}

static void drv_put_dmb(void *drv, struct smc_hw_dmb *d)
{
	struct dibs_dmb dmb = {
		.rgid = uuid_of_gid(d->dmb.gid), .dmb_len = d->len, .dmb_tok = d->dmb.token,
		.idx = d->idx, .cpu_addr = d->addr, .dma_addr = d->dma,
	};
	struct dibs_dev *dev = drv;

	dev->ops->unregister_dmb(dev, &dmb);
}

static int drv_move(void *drv, u64 token, u8 index, bool signal, u32 off, void *data, u32 len)
{
	struct dibs_dev *dev = drv;

	return dev->ops->move_data(dev, token, index, signal, off, data, len);
}

static void drv_event(void *drv, const u64 gid[2], u32 code, u64 info)
{
	struct dibs_dev *dev = drv;
	uuid_t id = uuid_of_gid(gid);

	if (dev->ops->signal_event)
		dev->ops->signal_event(dev, &id, 0, code, info);
}

static const struct smc_hw_api drv_api = {
	.set_dev = drv_set_dev, .query = drv_query, .get = drv_get_dmb, .put = drv_put_dmb, .move = drv_move,
	.event = drv_event,
};

static void client_add_dev(struct dibs_dev *dev)
{
	u16 chid = dev->ops->get_fabric_id(dev);
	u64 gid[2];

	if (chid == DIBS_LOOPBACK_FABRIC)
		return;
	gid_of_uuid(&dev->gid, gid);
	smc_hw_add(&drv_api, dev, &dev->dev, chid, gid, dev->ops->max_dmbs());
}

static void client_del_dev(struct dibs_dev *dev)
{
	smc_hw_del(dev);
}

static void client_handle_irq(struct dibs_dev *dev, unsigned int idx, u16 mask)
{
	struct smc_hw_dev *hw;

	rcu_read_lock();
	hw = READ_ONCE(dev->priv[client.id]); /* drv_set_dev() may clear it meanwhile */
	if (hw)
		smc_hw_signalled(hw, idx);
	rcu_read_unlock();
}

static void client_handle_event(struct dibs_dev *dev, const struct dibs_event *e)
{
	struct smc_hw_dev *hw;
	u64 gid[2];

	gid_of_uuid(&e->gid, gid);
	rcu_read_lock();
	hw = READ_ONCE(dev->priv[client.id]); /* drv_set_dev() may clear it meanwhile */
	if (hw && e->type == DIBS_SW_EVENT)
		smc_hw_sw_event(hw, gid, e->subtype, e->data);
	else if (hw && e->type == DIBS_DEV_EVENT)
		smc_hw_peer_gone(hw, gid);
	rcu_read_unlock();
}

static const struct dibs_client_ops client_ops = {
	.add_dev	= client_add_dev,
	.del_dev	= client_del_dev,
	.handle_irq	= client_handle_irq,
	.handle_event	= client_handle_event,
};

static struct dibs_client client = { .name = "smckit", .ops = &client_ops };

/* smc_hw_init() - registers the client. Return: 0 or a negative errno. */
int __init smc_hw_init(void)
{
	might_sleep();
	return dibs_register_client(&client);
}

/* smc_hw_exit() - undoes it. */
void smc_hw_exit(void)
{
	might_sleep();
	smc_hw_del_all();
	dibs_unregister_client(&client);
}
