// SPDX-License-Identifier: GPL-2.0-only
/*
 * The client of the ISM driver, for kernels without dibs. Some of its operations take a device of the stock module, of
 * which they only read priv.
 */

#include <linux/device.h>
#include <linux/ism.h>
#include <linux/rcupdate.h>
#include <net/smc.h>

#include "hw.h"

static struct ism_client client;

static void drv_set_dev(void *drv, struct smc_hw_dev *hw)
{
	WRITE_ONCE(((struct ism_dev *)drv)->priv[client.id], hw);
}

static bool drv_query(void *drv, const u64 gid[2])
{
	struct smcd_gid peer = { .gid = gid[0] };
	struct smcd_dev dev = { .priv = drv };

	return !ism_get_smcd_ops()->query_remote_gid(&dev, &peer, 0, 0);
}

static int drv_get_dmb(void *drv, struct smc_hw_dmb *d)
{
	struct ism_dmb dmb = { .rgid = d->dmb.gid[0], .dmb_len = d->len };
	int rc = ism_register_dmb(drv, &dmb, &client);

	if (rc)
		return rc;
	d->dmb.token = dmb.dmb_tok;
	d->idx = dmb.sba_idx;
	d->addr = dmb.cpu_addr;
	d->dma = dmb.dma_addr;
	return 0;
}

static void drv_put_dmb(void *drv, struct smc_hw_dmb *d)
{
	struct ism_dmb dmb = {
		.rgid = d->dmb.gid[0], .dmb_len = d->len, .dmb_tok = d->dmb.token,
		.sba_idx = d->idx, .cpu_addr = d->addr, .dma_addr = d->dma,
	};

	ism_unregister_dmb(drv, &dmb);
}

static int drv_move(void *drv, u64 token, u8 index, bool signal, u32 off, void *data, u32 len)
{
	return ism_move(drv, token, index, signal, off, data, len);
}

static void drv_event(void *drv, const u64 gid[2], u32 code, u64 info)
{
	struct smcd_gid peer = { .gid = gid[0] };
	struct smcd_dev dev = { .priv = drv };

	if (ism_get_smcd_ops()->signal_event)
		ism_get_smcd_ops()->signal_event(&dev, &peer, 0, code, info);
}

static const struct smc_hw_api drv_api = {
	.set_dev = drv_set_dev, .query = drv_query, .get = drv_get_dmb, .put = drv_put_dmb, .move = drv_move,
	.event = drv_event,
};

static void client_add(struct ism_dev *ism)
{
	struct smcd_dev dev = { .priv = ism };
	u64 gid[2] = { ism->local_gid, 0 };

	smc_hw_add(&drv_api, ism, &ism->dev, ism_get_smcd_ops()->get_chid(&dev), gid, ISM_NR_DMBS);
}

static void client_remove(struct ism_dev *ism)
{
	smc_hw_del(ism);
}

static void client_handle_irq(struct ism_dev *ism, unsigned int bit, u16 mask)
{
	struct smc_hw_dev *hw;

	rcu_read_lock();
	hw = READ_ONCE(ism->priv[client.id]); /* drv_set_dev() may clear it meanwhile */
	if (hw)
		smc_hw_signalled(hw, bit);
	rcu_read_unlock();
}

/* The token of these events is the GID of the peer. */
static void client_handle_event(struct ism_dev *ism, struct ism_event *e)
{
	u64 gid[2] = { e->tok, 0 };
	struct smc_hw_dev *hw;

	rcu_read_lock();
	hw = READ_ONCE(ism->priv[client.id]); /* drv_set_dev() may clear it meanwhile */
	if (hw && e->type == ISM_EVENT_SWR)
		smc_hw_sw_event(hw, gid, e->code, e->info);
	else if (hw && e->type == ISM_EVENT_GID)
		smc_hw_peer_gone(hw, gid);
	rcu_read_unlock();
}

static struct ism_client client = {
	.name		= "smckit",
	.add		= client_add,
	.remove		= client_remove,
	.handle_irq	= client_handle_irq,
	.handle_event	= client_handle_event,
};

/* smc_hw_init() - registers the client. Return: 0 or a negative errno. */
int __init smc_hw_init(void)
{
	might_sleep();
	return ism_register_client(&client);
}

/* smc_hw_exit() - undoes it. */
void smc_hw_exit(void)
{
	might_sleep();
	smc_hw_del_all();
	ism_unregister_client(&client);
}
