// SPDX-License-Identifier: GPL-2.0-only
/*
 * Signals between guests that share memory. A writer sets a byte in the owner's area, and rings the owner's doorbell unless the
 * owner looks for such bytes anyway: while it delivers signals, and then for a time that grows when signals come within it, and
 * shrinks when none do.
 */

#include <linux/ktime.h>

#include "fabric.h"
#include "ism.h"

/* The longest time to go on looking without a signal, and the first, in ns */
#define SPAN_MAX 30000
#define SPAN_MIN 2000
/* The most signals, and checks of DMBs, in one run of the tasklet. Other softirqs have their turn then. */
#define RUN_MAX 256

/* smc_fabric_ring() - interrupts a member. Any context, with the device there. */
void smc_fabric_ring(struct smc_fabric *f, u8 member, u8 vector)
{
	RCU_LOCKDEP_WARN(!rcu_read_lock_held(), "smc_fabric_ring() outside of an RCU section");
	/* The doorbell register: the peer in the upper half, the vector in the lower. */
	iowrite32((u32)member << 16 | vector, f->regs + 12);
	atomic64_inc(&f->rung);
}

/* smc_fabric_signal() - signals the DMB of a member that begins at a block. Any context, with the device there. */
void smc_fabric_signal(struct smc_fabric *f, u8 member, u32 block)
{
	u8 *area = smc_fabric_area(f, member), *signal = area + SMC_FABRIC_SIGNALS + block;

	RCU_LOCKDEP_WARN(!rcu_read_lock_held(), "smc_fabric_signal() outside of an RCU section");
	virt_mb(); /* after the message; pairs with deliver_signal(), which clears the signal and then reads the message */
	WRITE_ONCE(*signal, 1);
	virt_mb(); /* pairs with look_for_signals(): the owner sees the signal, or we see that it does not look */
	if (READ_ONCE(area[SMC_FABRIC_LOOKING]))
		atomic64_inc(&f->spared);
	else
		smc_fabric_ring(f, member, SMC_FABRIC_VECTOR_SIGNAL);
}

/* Returns whether the signal was one of an open DMB. */
static bool deliver_signal(struct smc_fabric *f, u32 block)
{
	struct smc_ism_dmb *dmb;

	lockdep_assert_in_softirq();
	WRITE_ONCE(smc_fabric_area(f, f->own)[SMC_FABRIC_SIGNALS + block], 0);
	virt_mb(); /* a message that comes after this sets the byte again; one before it is seen now, as is that its DMB is open */
	/* Others may signal what is not open. */
	if (!READ_ONCE(f->dmbs[block]))
		return false;
	dmb = smc_fabric_dmb_at(f, block, NULL);
	if (dmb)
		smc_ism_signalled(dmb);
	return dmb;
}

/* Delivers all signals, or as many as there may be in one run. Return: whether there were any, or there may be more. */
static bool deliver_signals(struct smc_fabric *f)
{
	const u8 *signals = smc_fabric_area(f, f->own) + SMC_FABRIC_SIGNALS;
	u32 top = READ_ONCE(f->top), block = f->poll.next;
	unsigned int left = RUN_MAX;
	bool any = block; /* it begins in the middle */

	lockdep_assert_in_softirq();
	for (; block < top && left; block++) {
		if (IS_ALIGNED(block, sizeof(u64)) && !READ_ONCE(*(const u64 *)(signals + block))) {
			block += sizeof(u64) - 1;
		} else if (READ_ONCE(signals[block])) {
			any |= deliver_signal(f, block);
			left--;
		}
	}
	f->poll.next = left ? 0 : block;
	return any || !left;
}

/* Takes in the last message of a DMB, and sends that of its connection again, or ends it. Return: whether there is such a DMB. */
static bool check_dmb(struct smc_fabric *f, u32 block)
{
	struct smc_ism_dmb *dmb;
	struct smc_conn *conn;
	bool damaged;

	RCU_LOCKDEP_WARN(!rcu_read_lock_held(), "check_dmb() outside of an RCU section");
	dmb = READ_ONCE(f->dmbs[block]) ? smc_fabric_dmb_at(f, block, &damaged) : NULL;
	conn = dmb ? rcu_dereference(dmb->conn) : NULL;
	if (!conn)
		return false;
	smc_ism_signalled(dmb);
	/* In its handshake it may still become TCP. */
	if (smp_load_acquire(&conn->holder) == SMC_CONN_RENDEZVOUS)
		return true;
	if (damaged)
		smc_close_event(conn, SMC_CLOSE_RESET);
	else
		smc_ism_cdc_repeat(conn);
	return true;
}

/*
 * Checks each DMB, or as many as there may be in one run, in case that another member has overwritten a signal or a message. A connection
 * whose peer can write no more ends. Return: whether to go on in the next run.
 */
static bool check_dmbs(struct smc_fabric *f)
{
	u32 top = READ_ONCE(f->top), block = f->poll.next_check;
	unsigned int left = RUN_MAX;

	lockdep_assert_in_softirq();
	for (; block < top && left; block++)
		if (check_dmb(f, block))
			left--;
	f->poll.next_check = left ? 0 : block;
	return !left;
}

/* Returns whether to look again, as a signal was there now or not long ago. */
static bool go_on(struct smc_fabric_poll *poll, bool any)
{
	u64 now = ktime_get_ns();

	if (any) {
		/* Signals that would have come by a doorbell are worth a longer time. */
		if (now - poll->since < SPAN_MAX)
			poll->span = clamp_t(u32, poll->span * 2, SPAN_MIN, SPAN_MAX);
		poll->since = now;
		return true;
	}
	if (num_online_cpus() > 1 && now - poll->since < poll->span)
		return true;
	poll->span /= 2;
	return false;
}

/* The device is there. Return: whether to look again, soon. */
static bool look(struct smc_fabric *f)
{
	u8 *looking = smc_fabric_area(f, f->own) + SMC_FABRIC_LOOKING;

	RCU_LOCKDEP_WARN(!rcu_read_lock_held(), "look() outside of an RCU section");
	lockdep_assert_in_softirq();
	if (xchg(&f->check, false) && check_dmbs(f))
		WRITE_ONCE(f->check, true);
	WRITE_ONCE(*looking, 1);
	if (go_on(&f->poll, deliver_signals(f)))
		return true;
	WRITE_ONCE(*looking, 0);
	virt_mb(); /* pairs with smc_fabric_signal() */
	if (!deliver_signals(f))
		return READ_ONCE(f->check);
	f->poll.since = ktime_get_ns();
	return true;
}

static void look_for_signals(struct tasklet_struct *tasklet)
{
	struct smc_fabric *f = container_of(tasklet, struct smc_fabric, look);

	rcu_read_lock();
	/* Signals of a hostile member could keep it going for ever. The area may be another guest's when this host has left the fabric. */
	if (!READ_ONCE(f->leaving) && !READ_ONCE(f->gone) && look(f))
		tasklet_schedule(tasklet);
	rcu_read_unlock();
}

/* smc_fabric_signal_irq() - the interrupt handler for signals */
irqreturn_t smc_fabric_signal_irq(int irq, void *fabric)
{
	struct smc_fabric *f = fabric;

	tasklet_schedule(&f->look);
	return IRQ_HANDLED;
}

/* smc_fabric_check() - has the tasklet look at each DMB. Any context, while the device is there. */
void smc_fabric_check(struct smc_fabric *f)
{
	WRITE_ONCE(f->check, true);
	tasklet_schedule(&f->look);
}

/* smc_fabric_signals_init() - prepares the tasklet, which the caller ends by tasklet_kill() */
void smc_fabric_signals_init(struct smc_fabric *f)
{
	WRITE_ONCE(smc_fabric_area(f, f->own)[SMC_FABRIC_LOOKING], 0);
	tasklet_setup(&f->look, look_for_signals);
}
