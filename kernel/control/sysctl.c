// SPDX-License-Identifier: GPL-2.0-only
/*
 * Settings: net.smc.*
 *
 * specs/sysctl.yaml has their names, ranges and defaults, and says which of them the stock module has, too.
 * hs_ctrl, the BPF program that decides whether a connection tries SMC, is missing, because a module can offer such a hook
 * from Linux 6.9 on only, with BTF that machines often have no tools to build.
 */
#include <linux/capability.h>
#include <linux/jiffies.h>
#include <linux/slab.h>
#include <linux/sysctl.h>
#include <linux/user_namespace.h>
#include <net/net_namespace.h>

#include "../net.h"
#include "peers.h"
#include "sysctl.h"

static void *data_of(const struct smc_net *snet, const struct smc_sysctl_desc *knob)
{
	return (char *)snet->sysctl + knob->offset;
}

static bool is_in_range(const struct smc_sysctl_desc *knob, unsigned int value)
{
	if (!value && knob->kind == SMC_KIND_BUFFER)
		return true;
	return value >= knob->min && value <= knob->max;
}

/**
 * smc_sysctl_get() - read a setting
 * @snet: namespace
 * @knob: which
 *
 * Return: the value in the unit of its file.
 */
unsigned int smc_sysctl_get(const struct smc_net *snet, enum smc_sysctl_knob knob)
{
	const void *data = data_of(snet, &smc_sysctls[knob]);

	switch (smc_sysctls[knob].kind) {
	case SMC_KIND_SECONDS:
		return READ_ONCE(*(const int *)data) / HZ;
	case SMC_KIND_BOOL:
		return READ_ONCE(*(const bool *)data);
	default:
		return READ_ONCE(*(const unsigned int *)data);
	}
}

/**
 * smc_sysctl_set() - change a setting
 * @snet: namespace
 * @knob: which
 * @value: new value in the unit of its file
 *
 * Return: 0, or -EINVAL if the value is out of range.
 */
int smc_sysctl_set(struct smc_net *snet, enum smc_sysctl_knob knob, unsigned int value)
{
	void *data = data_of(snet, &smc_sysctls[knob]);

	if (!is_in_range(&smc_sysctls[knob], value))
		return -EINVAL;
	switch (smc_sysctls[knob].kind) {
	case SMC_KIND_SECONDS:
		WRITE_ONCE(*(int *)data, value * HZ);
		break;
	case SMC_KIND_BOOL:
		WRITE_ONCE(*(bool *)data, value);
		break;
	default:
		WRITE_ONCE(*(unsigned int *)data, value);
	}
	return 0;
}

/**
 * smc_sysctl_wmem() - returns the size of send buffers
 * @snet: namespace
 *
 * Return: bytes; TCP's default (tcp_wmem[1]) if net.smc.wmem is 0.
 */
unsigned int smc_sysctl_wmem(const struct smc_net *snet)
{
	return READ_ONCE(snet->sysctl->wmem) ?: READ_ONCE(snet->net->ipv4.sysctl_tcp_wmem[1]);
}

/**
 * smc_sysctl_rmem() - returns the size of receive buffers
 * @snet: namespace
 *
 * Return: bytes; TCP's default (tcp_rmem[1]) if net.smc.rmem is 0.
 */
unsigned int smc_sysctl_rmem(const struct smc_net *snet)
{
	return READ_ONCE(snet->sysctl->rmem) ?: READ_ONCE(snet->net->ipv4.sysctl_tcp_rmem[1]);
}

/* Reads or writes a setting of SMC_KIND_BUFFER. The table's extra1 is the least value other than 0. */
static int sysctl_buffer(smc_compat_ctl_table *table, int write, void *buffer, size_t *len, loff_t *pos)
{
	static const unsigned int zero;
	unsigned int value = READ_ONCE(*(unsigned int *)table->data);
	struct ctl_table entry = *table;
	int rc;

	entry.data = &value;
	entry.extra1 = (void *)&zero;
	rc = proc_douintvec_minmax(&entry, write, buffer, len, pos);
	if (rc || !write)
		return rc;
	if (value && value < *(const unsigned int *)table->extra1)
		return -EINVAL;
	WRITE_ONCE(*(unsigned int *)table->data, value);
	return 0;
}

/* Reads or writes net.smc.loopback, by which connections of the namespace may get a device. */
static int sysctl_loopback(smc_compat_ctl_table *table, int write, void *buffer, size_t *len, loff_t *pos)
{
	const struct smc_sysctl *sysctl = container_of(table->data, struct smc_sysctl, loopback);
	int rc = proc_douintvec_minmax(table, write, buffer, len, pos);

	if (!rc && write)
		smc_peers_device(smc_net(sysctl->net));
	return rc;
}

/*
 * Reads or writes net.smc.max_memory_kbytes. Who is root in a user namespace alone may lower it: the host has limited the namespace by
 * it, perhaps.
 */
static int sysctl_max_memory(smc_compat_ctl_table *table, int write, void *buffer, size_t *len, loff_t *pos)
{
	const struct smc_sysctl *sysctl = container_of(table->data, struct smc_sysctl, max_memory_kbytes);
	unsigned int *data = table->data, now, value = READ_ONCE(*data);
	struct ctl_table entry = *table;
	int rc;

	entry.data = &value;
	rc = proc_douintvec_minmax(&entry, write, buffer, len, pos);
	if (rc || !write)
		return rc;
	do {
		now = READ_ONCE(*data);
		/* 0, no ceiling, is the highest: minus 1, it is UINT_MAX. */
		if (value - 1 > now - 1 && sysctl->net->user_ns != &init_user_ns && !capable(CAP_NET_ADMIN))
			return -EPERM;
		/* The host may lower it meanwhile. */
	} while (cmpxchg(data, now, value) != now);
	return 0;
}

/* Returns the function that reads and writes a setting that is a number. */
static proc_handler *handler_of(const struct smc_sysctl_desc *knob)
{
	switch (knob - smc_sysctls) {
	case SMC_SYSCTL_LOOPBACK:
		return sysctl_loopback;
	case SMC_SYSCTL_MAX_MEMORY_KBYTES:
		return sysctl_max_memory;
	default:
		return proc_douintvec_minmax;
	}
}

/* Fills the entry of a setting of a namespace. */
static void fill_ctl_table(struct ctl_table *entry, struct smc_net *snet, const struct smc_sysctl_desc *knob)
{
	entry->procname = knob->name;
	entry->data = data_of(snet, knob);
	entry->mode = 0644;
	entry->extra1 = (void *)&knob->min;
	entry->extra2 = (void *)&knob->max;
	switch (knob->kind) {
	case SMC_KIND_SECONDS:
		entry->maxlen = sizeof(int);
		entry->proc_handler = proc_dointvec_jiffies;
		break;
	case SMC_KIND_BOOL:
		/* A bool is a byte that is 0 or 1, and the range keeps it so. */
		static_assert(sizeof(bool) == sizeof(u8));
		entry->maxlen = sizeof(u8);
		entry->proc_handler = proc_dou8vec_minmax;
		break;
	case SMC_KIND_BUFFER:
		entry->maxlen = sizeof(unsigned int);
		entry->proc_handler = sysctl_buffer;
		break;
	default:
		entry->maxlen = sizeof(unsigned int);
		entry->proc_handler = handler_of(knob);
	}
}

/* smc_sysctl_net_init() - sets and shows the defaults of a namespace. Return: 0 or -ENOMEM. */
int smc_sysctl_net_init(struct smc_net *snet)
{
	struct ctl_table *table;
	unsigned int i, n = 0;

	might_sleep();
	snet->sysctl->net = snet->net;
	for (i = 0; i < SMC_SYSCTL_KNOBS; i++)
		smc_sysctl_set(snet, i, smc_sysctls[i].init);
	/* Older kernels need an empty entry at the end. */
	table = kcalloc(SMC_SYSCTL_COUNT + 1, sizeof(*table), GFP_KERNEL_ACCOUNT);
	if (!table)
		return -ENOMEM;
	for (i = 0; i < SMC_SYSCTL_COUNT; i++)
		if (!smc_sysctls[i].host || net_eq(snet->net, &init_net))
			fill_ctl_table(&table[n++], snet, &smc_sysctls[i]);
	snet->sysctl->header = register_net_sysctl_sz(snet->net, "net/smc", table, n);
	if (!snet->sysctl->header) {
		kfree(table);
		return -ENOMEM;
	}
	snet->sysctl->table = table;
	return 0;
}

/* smc_sysctl_net_exit() - undoes smc_sysctl_net_init(). */
void smc_sysctl_net_exit(struct smc_net *snet)
{
	might_sleep();
	unregister_net_sysctl_table(snet->sysctl->header);
	kfree(snet->sysctl->table);
}
