// SPDX-License-Identifier: GPL-2.0-only
/*
 * An ISM device without hardware, which reaches itself only, and its driver. Callbacks run in hardirq, several signals may become one, and
 * there are few DMBs. Tests can remove the device and add it again, and have it report events.
 */

#include <linux/gfp.h>
#include <linux/init.h>
#include <linux/irq_work.h>
#include <linux/kstrtox.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/random.h>
#include <linux/spinlock.h>

#include "../../net.h"
#include "fake.h"
#include "hw.h"

/* A DMB that is registered; its index is its place. */
struct fake_dmb {
	u64	token;		/* 0: free */
	void	*addr;
	u32	len;		/* bytes */
	u16	mask;		/* of signals that were not delivered yet */
};

static void deliver(struct irq_work *work);

static struct {
	struct device		*dev, *parent;
	struct mutex		mutex;		/* the next two; held while the client learns that the device comes or goes */
	bool			present, has_client;
	spinlock_t		lock;		/* what follows; interrupts off; held in callbacks */
	bool			forwards;	/* the client gets callbacks */
	struct fake_dmb		dmbs[FAKE_DMBS];
	struct fake_event	event;		/* one that was not delivered yet */
	bool			has_event;
	struct irq_work		irq;
} fake = {
	.mutex	 = __MUTEX_INITIALIZER(fake.mutex),
	.present = true,
	.lock	 = __SPIN_LOCK_UNLOCKED(fake.lock),
	.irq	 = IRQ_WORK_INIT(deliver),
};

static unsigned int dmbs, answers;
static unsigned long long last_answer;
module_param(dmbs, uint, 0444);
MODULE_PARM_DESC(dmbs, "how many DMBs are registered");
module_param(answers, uint, 0444);
MODULE_PARM_DESC(answers, "how many software events the client has sent");
module_param(last_answer, ullong, 0444);
MODULE_PARM_DESC(last_answer, "the information of the last of them");

/* Enters a DMB into the table. Return: its index, or -ENOSPC. */
static int add_dmb(const struct fake_dmb *fresh)
{
	unsigned long flags;
	int i, idx = -ENOSPC;

	spin_lock_irqsave(&fake.lock, flags);
	for (i = FAKE_FIRST_DMB; i < FAKE_DMBS && idx < 0; i++)
		if (!fake.dmbs[i].token)
			idx = i;
	if (idx >= 0) {
		fake.dmbs[idx] = *fresh;
		dmbs++;
	}
	spin_unlock_irqrestore(&fake.lock, flags);
	return idx;
}

/* fake_dmb_get() - registers a DMB of @len bytes. Sleeps. Return: its index, -ENOSPC or -ENOMEM. */
int fake_dmb_get(u32 len, u64 *token, void **addr)
{
	struct fake_dmb fresh = { .token = get_random_u64() | 1, .len = len };
	int idx;

	fresh.addr = alloc_pages_exact(len, GFP_KERNEL | __GFP_ZERO | __GFP_NOWARN);
	if (!fresh.addr)
		return -ENOMEM;
	idx = add_dmb(&fresh);
	if (idx < 0) {
		free_pages_exact(fresh.addr, len);
		return idx;
	}
	*token = fresh.token;
	*addr = fresh.addr;
	return idx;
}

/* fake_dmb_put() - undoes it. Return: 0, or -EINVAL if there is no such DMB. */
int fake_dmb_put(u32 idx, u64 token, void *addr, u32 len)
{
	struct fake_dmb *d = &fake.dmbs[idx];
	unsigned long flags;
	bool there;

	spin_lock_irqsave(&fake.lock, flags);
	there = !WARN_ON(idx >= FAKE_DMBS || d->token != token || d->addr != addr || d->len != len);
	if (there) {
		d->token = 0;
		dmbs--;
	}
	spin_unlock_irqrestore(&fake.lock, flags);
	if (!there)
		return -EINVAL;
	free_pages_exact(addr, len);
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

/* fake_move() - writes into a DMB, and signals it if asked to. Any context. Return: 0, or -EINVAL if there is no such place. */
int fake_move(u64 token, unsigned int idx, bool sf, unsigned int off, const void *data, unsigned int len)
{
	struct fake_dmb *d = NULL;
	unsigned long flags;
	int i, rc = -EINVAL;

	spin_lock_irqsave(&fake.lock, flags);
	for (i = FAKE_FIRST_DMB; i < FAKE_DMBS && token; i++)
		if (fake.dmbs[i].token == token)
			d = &fake.dmbs[i];
	if (d && off <= d->len && len <= d->len - off) {
		copy_in_words(d->addr + off, data, len);
		if (sf)
			d->mask |= BIT(idx % 16);
		rc = 0;
	}
	spin_unlock_irqrestore(&fake.lock, flags);
	if (!rc && sf)
		irq_work_queue(&fake.irq);
	return rc;
}

/* fake_peer_event() - has an event delivered. One that still waits is lost, as with a full queue. Any context. */
void fake_peer_event(const struct fake_event *e)
{
	unsigned long flags;

	spin_lock_irqsave(&fake.lock, flags);
	fake.event = *e;
	fake.has_event = true;
	spin_unlock_irqrestore(&fake.lock, flags);
	irq_work_queue(&fake.irq);
}

/* fake_client_event() - the client sends the peer a software event. Any context. */
void fake_client_event(u32 code, u64 info)
{
	const struct fake_event e = { .code = code, .info = info };

	answers++;
	last_answer = info;
	fake_peer_event(&e);
}

/* The interrupt of the device. */
static void deliver(struct irq_work *work)
{
	unsigned long flags;
	unsigned int i;

	spin_lock_irqsave(&fake.lock, flags);
	for (i = FAKE_FIRST_DMB; i < FAKE_DMBS; i++) {
		u16 mask = fake.dmbs[i].mask;

		fake.dmbs[i].mask = 0;
		if (mask && fake.dmbs[i].token && fake.forwards)
			fake_call_irq(i, mask);
	}
	if (fake.has_event && fake.forwards)
		fake_call_event(&fake.event);
	fake.has_event = false;
	spin_unlock_irqrestore(&fake.lock, flags);
}

static void set_forwards(bool on)
{
	unsigned long flags;

	spin_lock_irqsave(&fake.lock, flags);
	fake.forwards = on;
	spin_unlock_irqrestore(&fake.lock, flags);
}

static void attach_client(void)
{
	lockdep_assert_held(&fake.mutex);
	fake_call_add();
	set_forwards(true);
}

/* fake_client_come() - a client has registered itself. */
void fake_client_come(void)
{
	mutex_lock(&fake.mutex);
	fake.has_client = true;
	if (fake.present)
		attach_client();
	mutex_unlock(&fake.mutex);
}

/**
 * fake_client_leave() - the client wants to leave
 * @removes: whether the driver removes the device from the client, as it does when the device goes
 *
 * Return: 0, or -EBUSY if the client has DMBs: the drivers refuse to let it go then, and would call it still.
 */
int fake_client_leave(bool removes)
{
	int rc = 0;

	mutex_lock(&fake.mutex);
	set_forwards(false);
	if (WARN(dmbs, "the client leaves with %u DMBs\n", dmbs)) {
		rc = -EBUSY;
	} else {
		if (removes && fake.present)
			fake_call_remove();
		fake.has_client = false;
	}
	mutex_unlock(&fake.mutex);
	return rc;
}

/* Removes the device as its driver does when it is unplugged, or adds it again. */
static int set_present(const char *val, const struct kernel_param *kp)
{
	bool present;
	int rc = kstrtobool(val, &present);

	if (rc)
		return rc;
	mutex_lock(&fake.mutex);
	if (fake.has_client && present && !fake.present) {
		attach_client();
	} else if (fake.has_client && !present && fake.present) {
		set_forwards(false);
		fake_call_remove();
	}
	fake.present = present;
	mutex_unlock(&fake.mutex);
	return 0;
}

/* The peer of the device, which is the device itself, is gone. */
static int set_gone(const char *val, const struct kernel_param *kp)
{
	const struct fake_event e = { .gone = true };

	fake_peer_event(&e);
	irq_work_sync(&fake.irq);
	return 0;
}

/* The device gets a software event from itself: a code, and 64 bits of information in the order of memory. */
static int set_event(const char *val, const struct kernel_param *kp)
{
	struct fake_event e = { };

	if (sscanf(val, "%x %llx", &e.code, &e.info) != 2)
		return -EINVAL;
	fake_peer_event(&e);
	irq_work_sync(&fake.irq);
	return 0;
}

static const struct kernel_param_ops present_ops = { .set = set_present }, gone_ops = { .set = set_gone }, event_ops = { .set = set_event };
module_param_cb(present, &present_ops, NULL, 0200);
MODULE_PARM_DESC(present, "whether the device is there; removing it waits until its connections are closed");
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
	fake.dev = fake_setup();
	fake.dev->parent = fake.parent;
	fake.dev->release = fake_release;
	dev_set_name(fake.dev, "ism0");
	rc = device_register(fake.dev);
	if (rc) {
		put_device(fake.dev);
		root_device_unregister(fake.parent);
		return rc;
	}
	return smc_hw_init();
}

static void __exit fake_exit(void)
{
	smc_hw_exit();
	WARN(fake_client_data(), "the client has left without its data\n");
	/* Connections that ended meanwhile may have signalled, and works may not have returned. */
	irq_work_sync(&fake.irq);
	flush_workqueue(smc_lgr_wq);
	device_unregister(fake.dev);
	root_device_unregister(fake.parent);
}

module_init(fake_init);
module_exit(fake_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("An ISM device without hardware, for tests");
