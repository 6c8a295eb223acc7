// SPDX-License-Identifier: GPL-2.0-only
/*
 * /proc/net/smc: the PNET table and some settings, under the names of the first design of AF_SMC
 *
 * Each write is one command, which changes nothing if it fails.
 */
#include <linux/capability.h>
#include <linux/ctype.h>
#include <linux/fs.h>
#include <linux/kernel.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/seq_file_net.h>
#include <linux/string.h>
#include <net/net_namespace.h>

#include "../net.h"
#include "pnet.h"
#include "proc.h"
#include "sysctl.h"

#define COMMAND_WORDS 5	/* add|del ID eth|ib DEVICE [PORT] */
#define COMMAND_LEN 256	/* longer than any that is valid */

struct show_walk {
	struct smc_pnet_walk walk;
	struct seq_file *seq;
};

/* Writes an entry as "add" takes it. */
static int show_entry(struct smc_pnet_walk *walk, const struct smc_pnet_entry *entry)
{
	struct seq_file *seq = container_of(walk, struct show_walk, walk)->seq;

	if (entry->kind == SMC_PNET_ETH)
		seq_printf(seq, "%s eth %s\n", entry->id, entry->name);
	else
		seq_printf(seq, "%s ib %s %u\n", entry->id, entry->name, entry->port);
	return 0;
}

static int show_pnet_conf(struct seq_file *seq, void *v)
{
	struct show_walk show = { .walk.visit = show_entry, .seq = seq };

	return smc_pnet_for_each(smc_net(seq_file_single_net(seq)), &show.walk);
}

/* Returns the namespace of a file, or -EPERM if the process that opened it may not change the namespace. */
static struct smc_net *writable_net(struct file *file)
{
	struct net *net = seq_file_single_net(file->private_data);

	if (!file_ns_capable(file, net->user_ns, CAP_NET_ADMIN))
		return ERR_PTR(-EPERM);
	return smc_net(net);
}

/*
 * Splits a line at its blanks. Returns the number of words, or -EINVAL if there are more lines or
 * words.
 */
static int split_words(char *line, char *words[COMMAND_WORDS])
{
	char *word;
	int n = 0;

	line = strim(line);
	if (strchr(line, '\n'))
		return -EINVAL;
	while ((word = strsep(&line, " \t\r\v\f"))) {
		if (!*word)
			continue;
		if (n == COMMAND_WORDS)
			return -EINVAL;
		words[n++] = word;
	}
	return n;
}

/* Reads "eth NAME" or "ib NAME [PORT]". Without a port it is 0. */
static int parse_device(char *words[], int n, struct smc_pnet_device *device)
{
	device->name = words[1];
	device->port = 0;
	if (!strcmp(words[0], "eth")) {
		device->kind = SMC_PNET_ETH;
		return n == 2 ? 0 : -EINVAL;
	}
	if (strcmp(words[0], "ib"))
		return -EINVAL;
	device->kind = SMC_PNET_IB;
	if (n == 2)
		return 0;
	if (kstrtouint(words[2], 10, &device->port) || !device->port ||
	    device->port > SMC_PNET_PORT_MAX)
		return -EINVAL;
	return 0;
}

static int run_command(struct smc_net *snet, char *line)
{
	struct smc_pnet_device device;
	char id[SMC_PNET_ID_LEN + 1];
	char *words[COMMAND_WORDS];
	bool add;
	int n;

	n = split_words(line, words);
	if (n < 2 || n == 3)
		return -EINVAL;
	add = !strcmp(words[0], "add");
	if (!add && strcmp(words[0], "del"))
		return -EINVAL;
	if (smc_pnet_parse_id(words[1], id, NULL))
		return -EINVAL;
	if (n == 2)
		return add ? -EINVAL : smc_pnet_remove(snet, id, NULL);
	if (parse_device(&words[2], n - 2, &device))
		return -EINVAL;
	if (!add)
		return smc_pnet_remove(snet, id, &device);
	if (!device.port)
		device.port = SMC_PNET_PORT_DEFAULT;
	return smc_pnet_add(snet, id, &device, 1, NULL);
}

static int write_pnet_conf(struct file *file, char *text, size_t size)
{
	struct smc_net *snet = writable_net(file);

	if (IS_ERR(snet))
		return PTR_ERR(snet);
	/* A zero byte would hide what follows it. */
	if (size > COMMAND_LEN || strlen(text) != size)
		return -EINVAL;
	return run_command(snet, text);
}

static const struct setting {
	const char *name;
	enum smc_sysctl_knob knob;
} settings[] = {
	{ "sndbuf", SMC_SYSCTL_WMEM },
	{ "rcvbuf", SMC_SYSCTL_RMEM },
	{ "ctrl_buffer_count", SMC_SYSCTL_SMCR_MAX_SEND_WR },
	{ "max_conn_per_lgr", SMC_SYSCTL_SMCR_MAX_CONNS_PER_LGR },
	{ "port_add_delay", SMC_SYSCTL_PORT_ADD_DELAY },
};

static const struct setting *setting_of(const struct file *file)
{
	return pde_data(file_inode(file));
}

static int show_setting(struct seq_file *seq, void *v)
{
	struct smc_net *snet = smc_net(seq_file_single_net(seq));

	seq_printf(seq, "%u\n", smc_sysctl_get(snet, setting_of(seq->file)->knob));
	return 0;
}

static int write_setting(struct file *file, char *text, size_t size)
{
	struct smc_net *snet = writable_net(file);
	unsigned int value;

	if (IS_ERR(snet))
		return PTR_ERR(snet);
	if (strlen(text) != size || kstrtouint(strim(text), 10, &value))
		return -EINVAL;
	return smc_sysctl_set(snet, setting_of(file)->knob, value);
}

/* smc_proc_net_init() - makes /proc/net/smc of a namespace. Return: 0 or -ENOMEM. */
int smc_proc_net_init(struct smc_net *snet)
{
	struct proc_dir_entry *dir;
	unsigned int i;

	might_sleep();
	/* The files find their namespace by the directory. */
	dir = proc_net_mkdir(snet->net, "smc", snet->net->proc_net);
	if (!dir)
		return -ENOMEM;
	if (!proc_create_net_single_write("pnet_conf", 0644, dir, show_pnet_conf, write_pnet_conf,
					  NULL))
		goto remove;
	for (i = 0; i < ARRAY_SIZE(settings); i++)
		if (!proc_create_net_single_write(settings[i].name, 0644, dir, show_setting,
						  write_setting, (void *)&settings[i]))
			goto remove;
	return 0;
remove:
	remove_proc_subtree("smc", snet->net->proc_net);
	return -ENOMEM;
}

/* smc_proc_net_exit() - removes it, before the table and the settings of the namespace. */
void smc_proc_net_exit(struct smc_net *snet)
{
	might_sleep();
	remove_proc_subtree("smc", snet->net->proc_net);
}
