// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ISM driver's interface to the device of fake.c, as <linux/ism.h> declares it, for kernels that have that file, and not dibs. What the
 * file does not say is as in the driver of Linux 6.12: positive codes of the adapter as results, and ism_unregister_client().
 */

#include <linux/device.h>
#include <linux/ism.h>
#include <linux/random.h>
#include <net/smc.h>

#include "fake.h"

/* The code of an adapter that has no DMB left. */
#define FAKE_NO_DMB 1

static struct ism_dev fake_ism;
static struct ism_client *fake_ism_client;

static int fake_ism_query_remote_gid(struct smcd_dev *dev, struct smcd_gid *rgid, u32 vid_valid, u32 vid)
{
	struct ism_dev *ism = dev->priv;

	return rgid->gid != ism->local_gid;
}

static u16 fake_ism_get_chid(struct smcd_dev *dev)
{
	return dev->priv == &fake_ism ? FAKE_CHID : 0;
}

static int fake_ism_signal_event(struct smcd_dev *dev, struct smcd_gid *rgid, u32 trigger_irq, u32 code, u64 info)
{
	int rc = fake_ism_query_remote_gid(dev, rgid, 0, 0);

	if (!rc)
		fake_client_event(code, info);
	return rc;
}

/* Only these are of use to a client that calls the driver itself. */
static const struct smcd_ops fake_ism_ops = {
	.query_remote_gid	= fake_ism_query_remote_gid,
	.get_chid		= fake_ism_get_chid,
	.signal_event		= fake_ism_signal_event,
};

/* ism_get_smcd_ops() - returns operations of which some are nowhere else. */
const struct smcd_ops *ism_get_smcd_ops(void)
{
	return &fake_ism_ops;
}

/* ism_register_dmb() - registers a DMB. Return: 0, a negative errno, or a code of the adapter. */
int ism_register_dmb(struct ism_dev *ism, struct ism_dmb *dmb, struct ism_client *client)
{
	int idx;

	if (dmb->rgid != ism->local_gid)
		return -EINVAL;
	idx = fake_dmb_get(dmb->dmb_len, &dmb->dmb_tok, &dmb->cpu_addr);
	if (idx < 0)
		return idx == -ENOSPC ? FAKE_NO_DMB : idx;
	dmb->sba_idx = idx;
	return 0;
}

/* ism_unregister_dmb() - undoes it. Return: 0 or a negative errno. */
int ism_unregister_dmb(struct ism_dev *ism, struct ism_dmb *dmb)
{
	return fake_dmb_put(dmb->sba_idx, dmb->dmb_tok, dmb->cpu_addr, dmb->dmb_len);
}

/* ism_move() - writes into a DMB. Any context. Return: 0 or a negative errno. */
int ism_move(struct ism_dev *ism, u64 token, unsigned int idx, bool sf, unsigned int off, void *data, unsigned int len)
{
	return fake_move(token, idx, sf, off, data, len);
}

/* ism_register_client() - has a client get devices and callbacks. Return: 0. */
int ism_register_client(struct ism_client *client)
{
	fake_ism_client = client;
	client->id = 0;
	fake_client_come();
	return 0;
}

/* ism_unregister_client() - undoes it, but does not remove the client's devices. Return: 0, or -EBUSY if the client has DMBs. */
int ism_unregister_client(struct ism_client *client)
{
	return fake_client_leave(false);
}

/* fake_call_add() - tells the client that there is the device. */
void fake_call_add(void)
{
	fake_ism_client->add(&fake_ism);
}

/* fake_call_remove() - tells the client that the device goes. */
void fake_call_remove(void)
{
	fake_ism_client->remove(&fake_ism);
}

/* fake_call_irq() - tells the client that a DMB has been signalled. Hardirq. */
void fake_call_irq(u32 idx, u16 mask)
{
	fake_ism_client->handle_irq(&fake_ism, idx, mask);
}

/* fake_call_event() - tells the client of an event. Hardirq. */
void fake_call_event(const struct fake_event *e)
{
	struct ism_event event = { .type = ISM_EVENT_GID, .tok = fake_ism.local_gid };

	if (!e->gone) {
		event.type = ISM_EVENT_SWR;
		event.code = e->code;
		event.info = e->info;
	}
	fake_ism_client->handle_event(&fake_ism, &event);
}

/* fake_client_data() - returns the data of the client, which it has set. */
void *fake_client_data(void)
{
	return ism_get_priv(&fake_ism, fake_ism_client);
}

/* fake_setup() - returns the device. */
struct device *fake_setup(void)
{
	fake_ism.local_gid = get_random_u64();
	return &fake_ism.dev;
}
