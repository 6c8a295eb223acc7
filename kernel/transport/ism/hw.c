// SPDX-License-Identifier: GPL-2.0-only
/*
 * Hardware ISM devices as providers. Never run on a machine that has one; tests have a stand-in for it, fake.c.
 *
 * The driver calls in hardirq; a tasklet delivers signals, and workers do what sleeps.
 */

#include <linux/completion.h>
#include <linux/interrupt.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>

#include "../../net.h"
#include "hw.h"
#include "ism.h"

/* The last 16 bits of a test event's information */
#define CODE_REQUEST 1
#define CODE_RESPONSE 2

struct smc_hw_dev {
	struct smc_ism_dev	dev;
	const struct smc_hw_api	*api;
	void			*drv;
	u32			n_dmbs;
	spinlock_t		lock;		/* dmbs; softirqs off */
	struct smc_hw_dmb	**dmbs;		/* by index; open ones, which get signals */
	unsigned long		*signalled;	/* bitmap of indices, for the tasklet */
	struct tasklet_struct	tasklet;
	atomic_t		used;		/* by DMBs and events; hw_del() waits for them */
	struct completion	unused;
	struct list_head	list;		/* hw_devs_lock */
};

static LIST_HEAD(hw_devs);
/* Held until a device is gone: the driver frees its part after smc_hw_del(), even if smc_hw_del_all() removes the device. */
static DEFINE_MUTEX(hw_devs_lock);
static bool hw_leaving;	/* hw_devs_lock; devices are not added any more */

/* An event of the driver, for a worker. */
struct hw_event {
	struct work_struct	work;
	struct smc_hw_dev	*hw;
	u64			gid[2];
	bool			gone;	/* the peer is gone; else the event has to be answered */
	u64			info;
};

static struct smc_hw_dev *hw_of(struct smc_ism_dev *dev)
{
	return container_of(dev, struct smc_hw_dev, dev);
}

static void hw_free(struct smc_hw_dev *hw)
{
	kvfree(hw->dmbs);
	bitmap_free(hw->signalled);
	kfree(hw);
}

static void hw_put(struct smc_hw_dev *hw)
{
	if (atomic_dec_and_test(&hw->used))
		complete(&hw->unused);
}

static bool hw_reach(struct smc_ism_dev *dev, const u64 gid[2], u16 vlan)
{
	/* DMBs have no VLAN. */
	return !vlan && hw_of(dev)->api->query(hw_of(dev)->drv, gid);
}

static void hw_unregister_work(struct work_struct *work)
{
	struct smc_hw_dmb *d = container_of(work, struct smc_hw_dmb, work);
	struct smc_hw_dev *hw = d->hw;

	hw->api->put(hw->drv, d);
	smc_ism_dmb_freed(&d->dmb);
	kvfree(d);
	hw_put(hw);
}

static void hw_fill_ring(struct smc_hw_dmb *d)
{
	u32 i;

	for (i = 0; i < d->len >> PAGE_SHIFT; i++)
		d->pages[i] = virt_to_page(d->addr + ((unsigned long)i << PAGE_SHIFT));
	d->dmb.rcvbuf.size = d->len - SMC_ISM_CDC_LEN;
	d->dmb.rcvbuf.skip = SMC_ISM_CDC_LEN;
	d->dmb.rcvbuf.fixed = true;
	d->dmb.rcvbuf.pages = d->pages;
}

static struct smc_ism_dmb *hw_dmb_get(struct smc_ism_dev *dev, u32 len, const u64 gid[2])
{
	struct smc_hw_dev *hw = hw_of(dev);
	struct smc_hw_dmb *d;
	int rc;

	d = kvzalloc(struct_size(d, pages, len >> PAGE_SHIFT), GFP_KERNEL_ACCOUNT);
	if (!d)
		return ERR_PTR(-ENOMEM);
	d->hw = hw;
	d->len = len;
	d->dmb.gid[0] = gid[0];
	d->dmb.gid[1] = gid[1];
	INIT_WORK(&d->work, hw_unregister_work);
	rc = hw->api->get(hw->drv, d);
	if (rc) {
		kvfree(d);
		return ERR_PTR(rc == -ENOMEM ? -ENOMEM : -ENOSPC);
	}
	hw_fill_ring(d);
	atomic_inc(&hw->used);
	spin_lock_bh(&hw->lock);
	if (d->idx < hw->n_dmbs)
		hw->dmbs[d->idx] = d;
	spin_unlock_bh(&hw->lock);
	return &d->dmb;
}

/* Stops signals. The peer may still write until hw_dmb_put() unregisters the DMB. */
static void hw_dmb_close(struct smc_ism_dev *dev, struct smc_ism_dmb *dmb)
{
	struct smc_hw_dmb *d = container_of(dmb, struct smc_hw_dmb, dmb);
	struct smc_hw_dev *hw = hw_of(dev);

	spin_lock_bh(&hw->lock);
	if (d->idx < hw->n_dmbs && hw->dmbs[d->idx] == d)
		hw->dmbs[d->idx] = NULL;
	spin_unlock_bh(&hw->lock);
}

static void hw_dmb_put(struct smc_ism_dev *dev, struct smc_ism_dmb *dmb)
{
	queue_work(smc_lgr_wq, &container_of(dmb, struct smc_hw_dmb, dmb)->work);
}

static int hw_move(struct smc_ism_dev *dev, struct smc_ism_dmb *own, u64 token, u8 index, bool signal, u32 off, void *data, u32 len)
{
	struct smc_hw_dev *hw = hw_of(dev);

	return hw->api->move(hw->drv, token, index, signal, off, data, len);
}

static const struct smc_ism_ops hw_ops = {
	.reach		= hw_reach,
	.dmb_get	= hw_dmb_get,
	.dmb_close	= hw_dmb_close,
	.dmb_put	= hw_dmb_put,
	.move		= hw_move,
};

/*
 * The tasklet. A DMB that is found under the lock is freed after a grace period at the earliest, by its connection.
 */
static void hw_deliver_signals(struct tasklet_struct *tasklet)
{
	struct smc_hw_dev *hw = container_of(tasklet, struct smc_hw_dev, tasklet);
	struct smc_hw_dmb *d;
	u32 i;

	rcu_read_lock();
	for_each_set_bit(i, hw->signalled, hw->n_dmbs) {
		if (!test_and_clear_bit(i, hw->signalled))
			continue;
		spin_lock(&hw->lock);
		d = hw->dmbs[i];
		spin_unlock(&hw->lock);
		if (d)
			smc_ism_signalled(&d->dmb);
	}
	rcu_read_unlock();
}

/* smc_hw_signalled() - a peer has signalled a DMB, by its index. Any context. */
void smc_hw_signalled(struct smc_hw_dev *hw, u32 idx)
{
	if (idx >= hw->n_dmbs)
		return;
	set_bit(idx, hw->signalled);
	tasklet_schedule(&hw->tasklet);
}

static void hw_event_work(struct work_struct *work)
{
	struct hw_event *e = container_of(work, struct hw_event, work);
	struct smc_hw_dev *hw = e->hw;

	if (e->gone)
		smc_lgr_terminate_peer(&hw->dev, e->gid);
	else if (hw->api->event)
		hw->api->event(hw->drv, e->gid, SMC_HW_EVENT_TEST, e->info);
	kfree(e);
	hw_put(hw);
}

static void hw_queue_event(struct smc_hw_dev *hw, const u64 gid[2], bool gone, u64 info)
{
	struct hw_event *e = kmalloc(sizeof(*e), GFP_ATOMIC);

	if (!e)
		return;
	*e = (struct hw_event){ .hw = hw, .gid = { gid[0], gid[1] }, .gone = gone, .info = info };
	INIT_WORK(&e->work, hw_event_work);
	atomic_inc(&hw->used);
	queue_work(smc_lgr_wq, &e->work);
}

/* smc_hw_peer_gone() - a peer is gone or shuts down: ends its groups. Any context. */
void smc_hw_peer_gone(struct smc_hw_dev *hw, const u64 gid[2])
{
	hw_queue_event(hw, gid, true, 0);
}

/**
 * smc_hw_sw_event() - a peer has sent a software event
 * @hw: the device
 * @gid: the peer
 * @code: SMC_HW_EVENT_*; other codes are ignored
 * @info: group (32 bits), VLAN (16 bits), CODE_* (16 bits), in this order in memory
 *
 * Context: any.
 */
void smc_hw_sw_event(struct smc_hw_dev *hw, const u64 gid[2], u32 code, u64 info)
{
	u16 part[4];

	memcpy(part, &info, sizeof(part));
	if (code == SMC_HW_EVENT_SHUTDOWN) {
		smc_hw_peer_gone(hw, gid);
	} else if (code == SMC_HW_EVENT_TEST && part[3] == CODE_REQUEST) {
		part[3] = CODE_RESPONSE;
		memcpy(&info, part, sizeof(info));
		hw_queue_event(hw, gid, false, info);
	}
}

static struct smc_hw_dev *hw_alloc(u32 n_dmbs)
{
	struct smc_hw_dev *hw = kzalloc(sizeof(*hw), GFP_KERNEL);

	if (!hw)
		return NULL;
	hw->dmbs = kvcalloc(n_dmbs, sizeof(*hw->dmbs), GFP_KERNEL);
	hw->signalled = bitmap_zalloc(n_dmbs, GFP_KERNEL);
	if (hw->dmbs && hw->signalled)
		return hw;
	hw_free(hw);
	return NULL;
}

/**
 * smc_hw_add() - adds a device of a driver
 * @api: the driver's operations
 * @drv: their first argument
 * @dev: the driver's device, a child of the PCI function
 * @chid: of the device
 * @gid: of the device
 * @n_dmbs: number of DMBs; their indices are below
 *
 * Without memory, or after smc_hw_del_all(), there is no device.
 */
void smc_hw_add(const struct smc_hw_api *api, void *drv, struct device *dev, u16 chid, const u64 gid[2], u32 n_dmbs)
{
	struct smc_hw_dev *hw;

	might_sleep();
	hw = hw_alloc(n_dmbs);
	if (!hw)
		return;
	hw->api = api;
	hw->drv = drv;
	hw->n_dmbs = n_dmbs;
	spin_lock_init(&hw->lock);
	tasklet_setup(&hw->tasklet, hw_deliver_signals);
	atomic_set(&hw->used, 1);
	init_completion(&hw->unused);
	hw->dev = (struct smc_ism_dev){
		.ops = &hw_ops, .name = dev_name(dev), .parent = dev->parent, .chid = chid, .gid = { gid[0], gid[1] },
		.v1 = true, .v2 = true,
	};
	mutex_lock(&hw_devs_lock);
	if (hw_leaving) {
		hw_free(hw);
	} else {
		list_add(&hw->list, &hw_devs);
		api->set_dev(drv, hw);
		smc_ism_register(&hw->dev);
	}
	mutex_unlock(&hw_devs_lock);
}

/*
 * Removes a device. Its connections end at once, but the driver owns their DMBs, so this sleeps until the applications have
 * closed their sockets.
 */
static void hw_del(struct smc_hw_dev *hw)
{
	lockdep_assert_held(&hw_devs_lock);
	list_del(&hw->list);
	hw->api->set_dev(hw->drv, NULL);
	/* An interrupt may have found the device before that. */
	synchronize_rcu();
	smc_ism_unregister(&hw->dev);
	hw_put(hw);
	wait_for_completion(&hw->unused);
	tasklet_kill(&hw->tasklet);
	hw_free(hw);
}

/* smc_hw_del() - removes the device of a driver, if there is one; the driver's device must not be used from then on. */
void smc_hw_del(const void *drv)
{
	struct smc_hw_dev *hw, *next;

	might_sleep();
	mutex_lock(&hw_devs_lock);
	list_for_each_entry_safe(hw, next, &hw_devs, list)
		if (hw->drv == drv)
			hw_del(hw);
	mutex_unlock(&hw_devs_lock);
}

/*
 * smc_hw_del_all() - removes all devices, and adds none from then on. Call this before leaving the driver: no driver lets a client go that
 * has DMBs, and the ISM driver does not remove the client's devices.
 */
void smc_hw_del_all(void)
{
	struct smc_hw_dev *hw, *next;

	might_sleep();
	mutex_lock(&hw_devs_lock);
	hw_leaving = true;
	list_for_each_entry_safe(hw, next, &hw_devs, list)
		hw_del(hw);
	mutex_unlock(&hw_devs_lock);
}
