/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A device for tests of hw.c, hw_dibs.c and hw_ism.c where there is no hardware: fake.c is the device and its driver; fake_dibs.c and
 * fake_ism.c are the driver's interface, which differs between kernels. Kbuild chooses one of the two.
 */
#ifndef SMC_TRANSPORT_ISM_FAKE_H
#define SMC_TRANSPORT_ISM_FAKE_H

#include <linux/device.h>
#include <linux/types.h>

/* A CHID of hardware. */
#define FAKE_CHID 0x07c0
/* Indices of DMBs. No DMB has one of the first, as with the hardware. */
#define FAKE_FIRST_DMB 32
#define FAKE_DMBS 672

/* An event that the peer, which is the device itself, has caused. */
struct fake_event {
	bool	gone;		/* the peer is gone; else it has sent a software event */
	u32	code;
	u64	info;
};

/* fake.c */
int fake_dmb_get(u32 len, u64 *token, void **addr);
int fake_dmb_put(u32 idx, u64 token, void *addr, u32 len);
int fake_move(u64 token, unsigned int idx, bool sf, unsigned int off, const void *data, unsigned int len);
void fake_peer_event(const struct fake_event *e);
void fake_client_event(u32 code, u64 info);
void fake_client_come(void);
int fake_client_leave(bool removes);

/* fake_dibs.c, fake_ism.c. They call the client, except the last two. */
void fake_call_add(void);
void fake_call_remove(void);
void fake_call_irq(u32 idx, u16 mask);
void fake_call_event(const struct fake_event *e);
void *fake_client_data(void);
struct device *fake_setup(void);

#endif /* SMC_TRANSPORT_ISM_FAKE_H */
