// SPDX-License-Identifier: GPL-2.0-only
/*
 * ISM between guests of one host (docs/ism.md): QEMU's ivshmem-doorbell device gives them common memory, a fabric, which smc_ismd
 * has laid out (fabric_layout.h), and lets each interrupt the others. A guest is a member of the fabric by the number of its device.
 *
 * The module is not loaded because such a device is there, as others use them, too, and it leaves memory alone that is no fabric.
 */

#include <linux/io.h>
#include <linux/panic_notifier.h>
#include <linux/pm.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/utsname.h>

#include "../../control/peers.h"
#include "../../control/sysctl.h"
#include "../../net.h"
#include "fabric.h"

#define IVSHMEM_VENDOR 0x1af4
#define IVSHMEM_DEVICE 0x1110
#define IVSHMEM_BAR_REGS 0
#define IVSHMEM_BAR_MEM 2
/* The register with the number of this member, which is negative as long as there is none */
#define IVSHMEM_POSITION 8

/* How often to compare members and closed DMBs with the memory, in case that a doorbell is not rung */
#define WATCH_INTERVAL HZ

/* Looks at a member's beat. Return: whether it is silent, as it was if the GID is new, or as before if no second has passed. */
static bool look_at_beat(struct smc_fabric *f, u8 member, bool is_new, bool second)
{
	struct smc_fabric_member *m = &f->members[member];

	lockdep_assert_held(&f->members_lock);
	if (is_new) {
		m->beat.same = 0;
		return false;
	}
	if (!second || !m->gid)
		return m->silent;
	return smc_fabric_beat_seen(&m->beat, smc_fabric_read64(smc_fabric_area(f, member) + SMC_FABRIC_BEAT));
}

/* smc_fabric_gid_of() - returns the second half of a member's GID as the directory has it, or 0 if it has none. Any context. */
u64 smc_fabric_gid_of(const struct smc_fabric *f, u8 member)
{
	u64 gid = smc_fabric_read64(smc_fabric_entry(f, member) + SMC_FABRIC_ENTRY_GID);

	return gid >> SMC_FABRIC_TOKEN_MEMBER == member ? gid : 0;
}

/* smc_fabric_has() - returns whether a member with this GID is there now. Any context. */
bool smc_fabric_has(const struct smc_fabric *f, const u64 gid[2])
{
	u64 member = gid[1] >> SMC_FABRIC_TOKEN_MEMBER;

	if (gid[0] != f->dev.gid[0] || !gid[1] || member >= f->n_members || member == f->own)
		return false;
	return smc_fabric_gid_of(f, member) == gid[1];
}

/* Compares a member with the directory, and ends the groups with the one that was there before, or that has become silent. */
static void compare_member(struct smc_fabric *f, u8 member, bool second)
{
	struct smc_fabric_member *m = &f->members[member];
	const u64 was[2] = { f->dev.gid[0], m->gid };
	u64 is = smc_fabric_gid_of(f, member);
	bool silent;

	lockdep_assert_held(&f->members_lock);
	might_sleep();
	silent = look_at_beat(f, member, is != was[1], second);
	if (is == was[1] && silent == m->silent)
		return;
	WRITE_ONCE(m->silent, silent);
	WRITE_ONCE(m->gid, is);
	if (is && !silent)
		WRITE_ONCE(f->news, true);
	if (was[1] && (silent || is != was[1]))
		smc_lgr_terminate_peer(&f->dev, was);
}

/* @second: a second has passed since it was called with this argument. */
static void compare_members(struct smc_fabric *f, bool second)
{
	u8 member;

	might_sleep();
	mutex_lock(&f->members_lock);
	for (member = 0; member < f->n_members; member++)
		if (member != f->own)
			compare_member(f, member, second);
	mutex_unlock(&f->members_lock);
}

/* smc_fabric_reaches() - returns whether a member with this GID is there now, and its kernel runs. Any context. */
bool smc_fabric_reaches(const struct smc_fabric *f, const u64 gid[2])
{
	return smc_fabric_has(f, gid) && !READ_ONCE(f->members[gid[1] >> SMC_FABRIC_TOKEN_MEMBER].silent);
}

/*
 * smc_fabric_knows() - returns whether a member with this GID is there, and will be missed when it leaves or becomes silent: its groups end
 * then.
 */
bool smc_fabric_knows(struct smc_fabric *f, const u64 gid[2])
{
	const struct smc_fabric_member *m = &f->members[gid[1] >> SMC_FABRIC_TOKEN_MEMBER & (SMC_FABRIC_MEMBERS_MAX - 1)];

	might_sleep();
	if (!smc_fabric_has(f, gid))
		return false;
	if (READ_ONCE(m->gid) != gid[1])
		compare_members(f, false);
	return READ_ONCE(m->gid) == gid[1] && !READ_ONCE(m->silent);
}

/* Writes what smc_ismd list shows. */
static void show_own(struct smc_fabric *f)
{
	u8 *entry = smc_fabric_entry(f, f->own);

	smc_fabric_write64(entry + SMC_FABRIC_ENTRY_USED, atomic64_read(&f->used_bytes));
	smc_fabric_write64(entry + SMC_FABRIC_ENTRY_RUNG, atomic64_read(&f->rung));
	smc_fabric_write64(entry + SMC_FABRIC_ENTRY_SPARED, atomic64_read(&f->spared));
}

/* Has smc_ismd removed a member from the fabric? */
static bool is_removed(const struct smc_fabric *f, u8 member)
{
	return smc_fabric_read64(smc_fabric_entry(f, member) + SMC_FABRIC_ENTRY_GID) == SMC_FABRIC_REMOVED;
}

/*
 * Replaces the GID in the entry of this host, if that is still @old: smc_ismd may have marked the entry meanwhile, or another guest have
 * taken it. Return: whether it was.
 */
static bool replace_gid(struct smc_fabric *f, u64 old, u64 gid)
{
	__le64 *at = (__le64 *)(smc_fabric_entry(f, f->own) + SMC_FABRIC_ENTRY_GID);

	return smc_compat_sync_cmpxchg(at, cpu_to_le64(old), cpu_to_le64(gid)) == cpu_to_le64(old);
}

/* Ends the use of the fabric, once. */
static void stop_using(struct smc_fabric *f)
{
	might_sleep();
	if (!xchg(&f->stopped, true))
		smc_ism_unregister(&f->dev);
}

/*
 * Returns why this host has to leave the fabric, or NULL. After hibernation, or when a snapshot of the guest starts, its emulator may have
 * another number, or none. Another guest may have this number if smc_ismd does not know of us. Both of them would use one area. @entry: the
 * GID in this host's entry; @number: that of the emulator
 */
static const char *why_to_leave(const struct smc_fabric *f, u64 entry, u32 number)
{
	if (entry == SMC_FABRIC_REMOVED)
		return "it was removed";
	if (smc_fabric_is_stolen(entry, f->dev.gid[1]))
		return "another host has its number";
	if (number != f->own)
		return "its number has changed";
	return NULL;
}

/*
 * Nobody writes to the memory after this, and nobody but the watch reads it. May sleep; not concurrently with the watch, unless it is the
 * caller.
 */
static void leave_memory(struct smc_fabric *f)
{
	might_sleep();
	spin_lock_bh(&f->lock);
	WRITE_ONCE(f->gone, true);
	spin_unlock_bh(&f->lock);
	synchronize_rcu(); /* pairs with begin_writing(), dmb_open(), look_for_signals(), and readers of smc_rcvbuf.gone */
	smc_fabric_dmbs_close(f, false);
}

/* Writes what others have to know of this member, and finds what they have overwritten, unless this host has to leave. */
static void restore_own(struct smc_fabric *f)
{
	u32 number = ioread32(f->regs + IVSHMEM_POSITION);
	/* Read once, and after the register, which takes an exit to the emulator: what others write meanwhile is not overwritten. */
	u64 entry = smc_fabric_read64(smc_fabric_entry(f, f->own) + SMC_FABRIC_ENTRY_GID);
	const char *why = why_to_leave(f, entry, number);

	might_sleep();
	if (why) {
		dev_warn(&f->pdev->dev, "this host leaves the fabric: %s\n", why);
		/* First, because the area may be another guest's, to which nothing of the connections that end now may be written. */
		leave_memory(f);
		stop_using(f);
		return;
	}
	if (entry != f->dev.gid[1] && !replace_gid(f, entry, f->dev.gid[1]))
		return; /* the next second decides */
	smc_fabric_write64(smc_fabric_area(f, f->own) + SMC_FABRIC_BEAT, ++f->beat);
	show_own(f);
	smc_fabric_check(f);
}

/*
 * Forgets the peers of this host when a member is new: what was not possible with a peer may be now. Members can make up new ones in the
 * directory all the time, so that this host would remember nothing; therefore not more often than peers are remembered.
 */
static void forget_peers(struct smc_fabric *f)
{
	if (time_before(jiffies, f->forget_from) || !xchg(&f->news, false))
		return;
	f->forget_from = jiffies + READ_ONCE(smc_net(&init_net)->sysctl->remember_peers) * HZ;
	smc_peers_forget(NULL);
}

/* Looks after the fabric: each second, and when the directory has changed, which other members can claim as often as they like. */
static void watch_fabric(struct work_struct *work)
{
	struct smc_fabric *f = container_of(to_delayed_work(work), struct smc_fabric, watch);
	bool second = time_after_eq(jiffies, f->watched + WATCH_INTERVAL);

	compare_members(f, second);
	smc_fabric_dmbs_close(f, second);
	if (second) {
		f->watched = jiffies;
		if (!READ_ONCE(f->stopped))
			restore_own(f);
		if (!READ_ONCE(f->stopped))
			forget_peers(f);
	}
	queue_delayed_work(smc_lgr_wq, &f->watch, WATCH_INTERVAL);
}

static irqreturn_t members_irq(int irq, void *fabric)
{
	struct smc_fabric *f = fabric;

	/* Before it is a member, there is no one to compare. Pairs with join_fabric(). */
	if (smp_load_acquire(&f->joined))
		mod_delayed_work(smc_lgr_wq, &f->watch, 0);
	return IRQ_HANDLED;
}

/* Has the other members compare the directory. The device is there. */
static void ring_members(struct smc_fabric *f)
{
	u8 member;

	rcu_read_lock();
	for (member = 0; member < f->n_members; member++)
		if (member != f->own && smc_fabric_read64(smc_fabric_entry(f, member) + SMC_FABRIC_ENTRY_GID))
			smc_fabric_ring(f, member, SMC_FABRIC_VECTOR_MEMBERS);
	rcu_read_unlock();
}

/*
 * The kernel has crashed, and other processors are stopped, perhaps with locks: the peers of this host need not wait until its beat is
 * missed. Any context.
 */
static int fabric_crashed(struct notifier_block *crash, unsigned long action, void *reason)
{
	struct smc_fabric *f = container_of(crash, struct smc_fabric, crash);

	if (!READ_ONCE(f->gone) && replace_gid(f, f->dev.gid[1], 0))
		ring_members(f);
	return NOTIFY_DONE;
}

static void fabric_free_work(struct work_struct *work)
{
	struct smc_fabric *f = container_of(work, struct smc_fabric, free);
	unsigned int i;

	memunmap(f->mem);
	for (i = 0; i < ARRAY_SIZE(f->members); i++)
		bitmap_free(f->members[i].kept);
	bitmap_free(f->named);
	bitmap_free(f->used);
	kvfree(f->dmbs);
	kfree(f);
}

/* smc_fabric_get() - adds a reference to one that the caller has */
void smc_fabric_get(struct smc_fabric *f)
{
	refcount_inc(&f->ref);
}

/* smc_fabric_put() - releases a reference. The last one is the driver's or, after that, that of a DMB. Any context but hardirq. */
void smc_fabric_put(struct smc_fabric *f)
{
	if (refcount_dec_and_test(&f->ref))
		queue_work(smc_lgr_wq, &f->free);
}

/* Reads the header. Return: 0, -ENODEV if the memory is not a fabric of this layout, -EPROTO if its numbers are impossible. */
static int read_header(struct smc_fabric *f, u64 size)
{
	struct smc_fabric_header h;
	int rc = smc_fabric_header_decode(f->mem, size, &h);

	BUILD_BUG_ON(SMC_FABRIC_CHID_MIN != SMC_ISM_CHID_EMULATED || SMC_FABRIC_CHID_MAX >= SMC_ISM_CHID_LOOPBACK);
	if (rc)
		return rc;
	f->areas = h.areas;
	f->area_size = h.area_size;
	f->n_members = h.n_members;
	f->n_blocks = h.n_blocks;
	f->blocks_at = h.blocks_at;
	f->dmbs_at = h.dmbs_at;
	f->dev.gid[0] = h.gid;
	f->dev.chid = h.chid;
	return 0;
}

/* A member that was removed has no doorbells any more. Return: -ENODEV. */
static int refuse_removed(const struct smc_fabric *f)
{
	dev_err(&f->pdev->dev, "this host was removed from the fabric: start its emulator again\n");
	return -ENODEV;
}

/*
 * Finds out which member this is. The random part of its GID tells it from those that had the number before. Return: 0, or -ENODEV.
 */
static int read_position(struct smc_fabric *f)
{
	u32 own = ioread32(f->regs + IVSHMEM_POSITION);

	if (own >= f->n_members)
		return -ENODEV;
	f->own = own;
	f->dev.gid[1] = (u64)own << SMC_FABRIC_TOKEN_MEMBER |
			((get_random_u64() & GENMASK_ULL(SMC_FABRIC_TOKEN_MEMBER - 1, 0)) ?: 1);
	return is_removed(f, f->own) ? refuse_removed(f) : 0;
}

static int map_device(struct smc_fabric *f)
{
	struct pci_dev *pdev = f->pdev;
	int rc = pci_enable_device_mem(pdev);

	if (rc)
		return rc;
	rc = pci_request_regions(pdev, "smc");
	if (rc)
		goto err_disable;
	rc = -ENOMEM;
	f->regs = pci_iomap(pdev, IVSHMEM_BAR_REGS, 0);
	f->mem = memremap(pci_resource_start(pdev, IVSHMEM_BAR_MEM), pci_resource_len(pdev, IVSHMEM_BAR_MEM), MEMREMAP_WB);
	if (f->regs && f->mem)
		return 0;
	if (f->mem)
		memunmap(f->mem);
	if (f->regs)
		pci_iounmap(pdev, f->regs);
	f->mem = NULL;
	pci_release_regions(pdev);
err_disable:
	pci_disable_device(pdev);
	return rc;
}

/* Undoes map_device(), but for the memory, which DMBs may still refer to. */
static void unmap_device(struct smc_fabric *f)
{
	pci_iounmap(f->pdev, f->regs);
	pci_release_regions(f->pdev);
	pci_disable_device(f->pdev);
}

static void free_interrupts(struct smc_fabric *f)
{
	WRITE_ONCE(f->leaving, true);
	free_irq(pci_irq_vector(f->pdev, SMC_FABRIC_VECTOR_MEMBERS), f);
	free_irq(pci_irq_vector(f->pdev, SMC_FABRIC_VECTOR_SIGNAL), f);
	pci_free_irq_vectors(f->pdev);
	/* Nothing but the watch schedules the tasklet now. */
	cancel_delayed_work_sync(&f->watch);
	tasklet_kill(&f->look);
}

static int request_interrupts(struct smc_fabric *f)
{
	int rc = pci_alloc_irq_vectors(f->pdev, SMC_FABRIC_VECTORS, SMC_FABRIC_VECTORS, PCI_IRQ_MSIX);

	if (rc < 0)
		return rc;
	rc = request_irq(pci_irq_vector(f->pdev, SMC_FABRIC_VECTOR_SIGNAL), smc_fabric_signal_irq, 0, "smc-signal", f);
	if (rc)
		goto err_vectors;
	rc = request_irq(pci_irq_vector(f->pdev, SMC_FABRIC_VECTOR_MEMBERS), members_irq, 0, "smc-members", f);
	if (rc)
		goto err_signal;
	pci_set_master(f->pdev);
	return 0;

err_signal:
	WRITE_ONCE(f->leaving, true); /* members' signals schedule the tasklet again and again */
	free_irq(pci_irq_vector(f->pdev, SMC_FABRIC_VECTOR_SIGNAL), f);
	tasklet_kill(&f->look);
err_vectors:
	pci_free_irq_vectors(f->pdev);
	return rc;
}

/* Writes the GID of this host to its entry. Other members may write there, too. Return: false if smc_ismd has removed this host. */
static bool enter_directory(struct smc_fabric *f)
{
	u64 before;

	do {
		before = smc_fabric_read64(smc_fabric_entry(f, f->own) + SMC_FABRIC_ENTRY_GID);
		if (before == SMC_FABRIC_REMOVED)
			return false;
	} while (!replace_gid(f, before, f->dev.gid[1]));
	return true;
}

/*
 * Lets connections use the fabric, and other members find this one. Return: 0, or -ENODEV if the host was removed since its number
 * was read: preparing the area and the interrupts takes time.
 */
static int join_fabric(struct smc_fabric *f)
{
	u8 *entry = smc_fabric_entry(f, f->own);

	might_sleep();
	memset(entry + SMC_FABRIC_ENTRY_USED, 0, SMC_FABRIC_ENTRY_LEN - SMC_FABRIC_ENTRY_USED);
	strscpy((char *)entry + SMC_FABRIC_ENTRY_HOST, init_utsname()->nodename, SMC_FABRIC_ENTRY_LEN - SMC_FABRIC_ENTRY_HOST);
	smc_ism_register(&f->dev);
	virt_wmb(); /* the area is ready before others find it */
	if (!enter_directory(f)) {
		stop_using(f);
		return refuse_removed(f);
	}
	ring_members(f);
	/* Those who are there already are no reason to wait before peers are forgotten for the next one. */
	compare_members(f, false);
	WRITE_ONCE(f->news, false);
	smc_peers_forget(NULL);
	f->watched = jiffies - WATCH_INTERVAL;
	f->forget_from = jiffies;
	smp_store_release(&f->joined, true); /* what the watch reads is set; pairs with members_irq() */
	mod_delayed_work(smc_lgr_wq, &f->watch, 0);
	return 0;
}

static void init_fabric(struct smc_fabric *f, struct pci_dev *pdev)
{
	refcount_set(&f->ref, 1);
	f->pdev = pdev;
	strscpy(f->name, pci_name(pdev), sizeof(f->name));
	f->dev.ops = &smc_fabric_ops;
	f->dev.name = f->name;
	f->dev.v2 = true;
	f->dev.pci_vendor = pdev->vendor;
	f->dev.pci_device = pdev->device;
	f->dev.parent = &pdev->dev;
	f->dev.token_secret = SMC_FABRIC_TOKEN_RANDOM;
	f->crash.notifier_call = fabric_crashed;
	spin_lock_init(&f->lock);
	INIT_LIST_HEAD(&f->closing);
	hash_init(f->peers);
	mutex_init(&f->members_lock);
	INIT_DELAYED_WORK(&f->watch, watch_fabric);
	INIT_WORK(&f->free, fabric_free_work);
}

/* Becomes a member. Return: 0 or a negative errno. */
static int fabric_start(struct pci_dev *pdev)
{
	struct smc_fabric *f;
	int rc;

	might_sleep();
	/* A device without doorbells, or one that has no memory yet. */
	if (!pdev->msix_cap || !pci_resource_len(pdev, IVSHMEM_BAR_MEM))
		return -ENODEV;
	f = kzalloc(sizeof(*f), GFP_KERNEL);
	if (!f)
		return -ENOMEM;
	init_fabric(f, pdev);
	rc = map_device(f);
	if (rc)
		goto err_put;
	rc = read_header(f, pci_resource_len(pdev, IVSHMEM_BAR_MEM)) ?: read_position(f) ?: smc_fabric_dmbs_init(f);
	if (rc)
		goto err_unmap;
	smc_fabric_signals_init(f);
	rc = request_interrupts(f);
	if (rc)
		goto err_unmap;
	rc = join_fabric(f);
	if (rc)
		goto err_interrupts;
	atomic_notifier_chain_register(&panic_notifier_list, &f->crash);
	pci_set_drvdata(pdev, f);
	return 0;

err_interrupts:
	free_interrupts(f);
err_unmap:
	if (rc == -EPROTO)
		dev_err(&pdev->dev, "the fabric's header has impossible numbers\n");
	leave_memory(f);
	unmap_device(f);
err_put:
	smc_fabric_put(f);
	return rc;
}

/*
 * The device goes, or the host. Its connections end at once, and what peers still write to their DMBs is nothing that anyone reads. The
 * structure and the mapping of the memory stay until the last of these is freed.
 */
static void fabric_stop(struct pci_dev *pdev)
{
	struct smc_fabric *f = pci_get_drvdata(pdev);

	/* The host may go down and, meanwhile, the device be removed. Or the fabric could not be joined when the host woke up. */
	if (!f)
		return;
	pci_set_drvdata(pdev, NULL);
	atomic_notifier_chain_unregister(&panic_notifier_list, &f->crash);
	stop_using(f);
	free_interrupts(f);
	leave_memory(f);
	/* Others may use what was ours, as nothing of this host writes to it any more. The entry of another guest is not ours. */
	replace_gid(f, f->dev.gid[1], 0);
	ring_members(f);
	unmap_device(f);
	smc_fabric_put(f);
}

static int fabric_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	return fabric_start(pdev);
}

/*
 * While the host sleeps it is no member, so that its peers do not wait for it. When it wakes up, in another emulator perhaps, it joins as
 * after a boot: it may have another number, and its area may be another guest's.
 */
static int fabric_suspend(struct device *dev)
{
	fabric_stop(to_pci_dev(dev));
	return 0;
}

static int fabric_resume(struct device *dev)
{
	return fabric_start(to_pci_dev(dev));
}

static DEFINE_SIMPLE_DEV_PM_OPS(fabric_pm_ops, fabric_suspend, fabric_resume);

static const struct pci_device_id fabric_ids[] = {
	{ PCI_DEVICE(IVSHMEM_VENDOR, IVSHMEM_DEVICE) },
	{ }
};

static struct pci_driver fabric_driver = {
	.name		= "smc-fabric",
	.id_table	= fabric_ids,
	.probe		= fabric_probe,
	.remove		= fabric_stop,
	.shutdown	= fabric_stop,
	.driver.pm	= pm_sleep_ptr(&fabric_pm_ops),
};

/* smc_fabric_init() - uses the devices that are there, and those that come later; at load. Return: 0 or a negative errno. */
int __init smc_fabric_init(void)
{
	might_sleep();
	return pci_register_driver(&fabric_driver);
}

/* smc_fabric_exit() - undoes it, at unload, when no connection is left. */
void smc_fabric_exit(void)
{
	might_sleep();
	pci_unregister_driver(&fabric_driver);
}
