// SPDX-License-Identifier: GPL-2.0-only
/*
 * A device as <linux/dibs.h> describes it, which reaches itself only, and dibs itself: for tests of hw.c and hw_dibs.c where there is no
 * hardware and the kernel has no dibs. Callbacks run in hardirq, several signals may become one, and there are few DMBs.
 */

#include <linux/dibs.h>
#include <linux/gfp.h>
#include <linux/init.h>
#include <linux/irq_work.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/spinlock.h>

#include "../../net.h"
#include "hw.h"

/* A CHID of hardware. */
#define FABRIC 0x07c0
#define DMBS 640

/* A DMB that is registered; its index is its place. */
struct fake_dmb {
	u64	token;		/* 0: free */
	void	*addr;
	u32	len;		/* bytes */
	u16	mask;		/* of signals that were not delivered yet */
};

static void deliver(struct irq_work *work);

static struct {
	struct dibs_dev		dev;
	struct device		*parent;
	spinlock_t		lock;		/* what follows; interrupts off */
	struct dibs_client	*client;	/* gets callbacks */
	struct fake_dmb		dmbs[DMBS];
	struct dibs_event	event;		/* one that was not delivered yet */
	bool			has_event;
	struct irq_work		irq;
} fake = {
	.lock	= __SPIN_LOCK_UNLOCKED(fake.lock),
	.irq	= IRQ_WORK_INIT_HARD(deliver),
};

static unsigned int dmbs, answers;
static unsigned long long last_answer;
module_param(dmbs, uint, 0444);
MODULE_PARM_DESC(dmbs, "how many DMBs are registered");
module_param(answers, uint, 0444);
MODULE_PARM_DESC(answers, "how many software events the client has sent");
module_param(last_answer, ullong, 0444);
MODULE_PARM_DESC(last_answer, "the information of the last of them");

static u16 fake_get_fabric_id(struct dibs_dev *dev)
{
	return FABRIC;
}

static int fake_query_remote_gid(struct dibs_dev *dev, const uuid_t *rgid, u32 vid_valid, u32 vid)
{
	return uuid_equal(rgid, &dev->gid) ? 0 : -ENETUNREACH;
}

static int fake_max_dmbs(void)
{
	return DMBS;
}

/* Enters a DMB into the table. Return: its index, or -ENOSPC. */
static int add_dmb(const struct fake_dmb *fresh)
{
	unsigned long flags;
	int i, idx = -ENOSPC;

	spin_lock_irqsave(&fake.lock, flags);
	for (i = 0; i < DMBS && idx < 0; i++)
		if (!fake.dmbs[i].token)
			idx = i;
	if (idx >= 0) {
		fake.dmbs[idx] = *fresh;
		dmbs++;
	}
	spin_unlock_irqrestore(&fake.lock, flags);
	return idx;
}

static int fake_register_dmb(struct dibs_dev *dev, struct dibs_dmb *dmb, struct dibs_client *client)
{
	struct fake_dmb fresh = { .token = get_random_u64() | 1, .len = dmb->dmb_len };
	int idx;

	if (!uuid_equal(&dmb->rgid, &dev->gid))
		return -EINVAL;
	fresh.addr = alloc_pages_exact(dmb->dmb_len, GFP_KERNEL | __GFP_ZERO | __GFP_NOWARN);
	if (!fresh.addr)
		return -ENOMEM;
	idx = add_dmb(&fresh);
	if (idx < 0) {
		free_pages_exact(fresh.addr, dmb->dmb_len);
		return idx;
	}
	dmb->dmb_tok = fresh.token;
	dmb->cpu_addr = fresh.addr;
	dmb->idx = idx;
	return 0;
}

static int fake_unregister_dmb(struct dibs_dev *dev, struct dibs_dmb *dmb)
{
	struct fake_dmb *d = &fake.dmbs[dmb->idx];
	unsigned long flags;
	void *addr = NULL;

	spin_lock_irqsave(&fake.lock, flags);
	if (!WARN_ON(dmb->idx >= DMBS || d->token != dmb->dmb_tok || d->addr != dmb->cpu_addr)) {
		addr = d->addr;
		d->token = 0;
		dmbs--;
	}
	spin_unlock_irqrestore(&fake.lock, flags);
	if (!addr)
		return -EINVAL;
	free_pages_exact(addr, dmb->dmb_len);
	return 0;
}

/* Copies aligned words of 8 bytes whole, in their order, as the hardware does. */
static void copy_in_words(void *to, const void *from, unsigned int len)
{
	const u64 *src = from;
	u64 *dst = to;

	if (!IS_ALIGNED((unsigned long)to | (unsigned long)from | len, sizeof(u64))) {
		memcpy(to, from, len);
		return;
	}
	for (; len; len -= sizeof(u64), src++, dst++)
		smp_store_release(dst, *src);
}

static int fake_move_data(struct dibs_dev *dev, u64 token, unsigned int idx, bool sf, unsigned int offset, void *data, unsigned int size)
{
	struct fake_dmb *d = NULL;
	unsigned long flags;
	int i, rc = -EINVAL;

	spin_lock_irqsave(&fake.lock, flags);
	for (i = 0; i < DMBS && token; i++)
		if (fake.dmbs[i].token == token)
			d = &fake.dmbs[i];
	if (d && offset <= d->len && size <= d->len - offset) {
		copy_in_words(d->addr + offset, data, size);
		if (sf)
			d->mask |= BIT(idx);
		rc = 0;
	}
	spin_unlock_irqrestore(&fake.lock, flags);
	if (!rc && sf)
		irq_work_queue(&fake.irq);
	return rc;
}

/* Has an event delivered. One that still waits is lost, as with a full queue. */
static void queue_event(const struct dibs_event *e)
{
	unsigned long flags;

	spin_lock_irqsave(&fake.lock, flags);
	fake.event = *e;
	fake.has_event = true;
	spin_unlock_irqrestore(&fake.lock, flags);
	irq_work_queue(&fake.irq);
}

static int fake_signal_event(struct dibs_dev *dev, const uuid_t *rgid, u32 trigger_irq, u32 event_code, u64 info)
{
	const struct dibs_event e = { .type = DIBS_SW_EVENT, .subtype = event_code, .gid = dev->gid, .data = info };

	answers++;
	last_answer = info;
	if (!uuid_equal(rgid, &dev->gid))
		return -ENETUNREACH;
	queue_event(&e);
	return 0;
}

static const struct dibs_dev_ops fake_ops = {
	.get_fabric_id		= fake_get_fabric_id,
	.query_remote_gid	= fake_query_remote_gid,
	.max_dmbs		= fake_max_dmbs,
	.register_dmb		= fake_register_dmb,
	.unregister_dmb		= fake_unregister_dmb,
	.move_data		= fake_move_data,
	.signal_event		= fake_signal_event,
};

/* The interrupt of the device. */
static void deliver(struct irq_work *work)
{
	unsigned long flags;
	unsigned int i;

	spin_lock_irqsave(&fake.lock, flags);
	for (i = 0; i < DMBS; i++) {
		u16 mask = fake.dmbs[i].mask;

		fake.dmbs[i].mask = 0;
		if (mask && fake.dmbs[i].token && fake.client)
			fake.client->ops->handle_irq(&fake.dev, i, mask);
	}
	if (fake.has_event && fake.client)
		fake.client->ops->handle_event(&fake.dev, &fake.event);
	fake.has_event = false;
	spin_unlock_irqrestore(&fake.lock, flags);
}

static void set_client(struct dibs_client *client)
{
	unsigned long flags;

	spin_lock_irqsave(&fake.lock, flags);
	fake.client = client;
	spin_unlock_irqrestore(&fake.lock, flags);
}

/* dibs_register_client() - as <linux/dibs.h> says. */
int dibs_register_client(struct dibs_client *client)
{
	client->id = 0;
	client->ops->add_dev(&fake.dev);
	set_client(client);
	return 0;
}

/* dibs_unregister_client() - the same. It waits until the client has given back its DMBs. */
int dibs_unregister_client(struct dibs_client *client)
{
	set_client(NULL);
	irq_work_sync(&fake.irq);
	client->ops->del_dev(&fake.dev);
	return WARN_ON(dmbs) ? -EBUSY : 0;
}

/* The peer of the device, which is the device itself, is gone. */
static int set_gone(const char *val, const struct kernel_param *kp)
{
	const struct dibs_event e = { .type = DIBS_DEV_EVENT, .subtype = DIBS_DEV_DISABLED, .gid = fake.dev.gid };

	queue_event(&e);
	irq_work_sync(&fake.irq);
	return 0;
}

/* The device gets a software event from itself: a code, and 64 bits of information in the order of memory. */
static int set_event(const char *val, const struct kernel_param *kp)
{
	struct dibs_event e = { .type = DIBS_SW_EVENT, .gid = fake.dev.gid };

	if (sscanf(val, "%x %llx", &e.subtype, &e.data) != 2)
		return -EINVAL;
	queue_event(&e);
	irq_work_sync(&fake.irq);
	return 0;
}

static const struct kernel_param_ops gone_ops = { .set = set_gone }, event_ops = { .set = set_event };
module_param_cb(gone, &gone_ops, NULL, 0200);
MODULE_PARM_DESC(gone, "the peer is gone");
module_param_cb(event, &event_ops, NULL, 0200);
MODULE_PARM_DESC(event, "a software event: its code and its information, in hexadecimal digits");

static void fake_release(struct device *dev)
{
}

static int __init fake_init(void)
{
	int rc;

	fake.parent = root_device_register("fake_ism");
	if (IS_ERR(fake.parent))
		return PTR_ERR(fake.parent);
	fake.dev.ops = &fake_ops;
	generate_random_uuid(fake.dev.gid.b);
	memset(fake.dev.gid.b + 8, 0, 8); /* the GIDs of ISM devices have 64 bits */
	fake.dev.dev.parent = fake.parent;
	fake.dev.dev.release = fake_release;
	dev_set_name(&fake.dev.dev, "ism0");
	rc = device_register(&fake.dev.dev);
	if (rc) {
		put_device(&fake.dev.dev);
		root_device_unregister(fake.parent);
		return rc;
	}
	return smc_hw_init();
}

static void __exit fake_exit(void)
{
	smc_hw_exit();
	/* Connections that ended meanwhile may have signalled, and works may not have returned. */
	irq_work_sync(&fake.irq);
	flush_workqueue(smc_lgr_wq);
	device_unregister(&fake.dev.dev);
	root_device_unregister(fake.parent);
}

module_init(fake_init);
module_exit(fake_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("An ISM device without hardware, for tests");
