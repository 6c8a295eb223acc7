// SPDX-License-Identifier: GPL-2.0-only
/*
 * Enterprise IDs
 *
 * Two hosts use version 2 if they have an EID in common. EIDs belong to the host, not to a namespace. The system EID is
 * derived from the machine and exists on s390 only; elsewhere it is all zero.
 */
#include <linux/ctype.h>
#include <linux/kernel.h>
#include <linux/netlink.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#ifdef CONFIG_S390
#include <asm/processor.h>
#endif

#include "eid.h"
#include "peers.h"

static struct {
	spinlock_t lock;	/* the rest; softirqs off */
	unsigned int n;
	u8 ueids[SMC_MAX_UEID][SMC_MAX_EID_LEN];	/* in the order of their addition */
	u8 seid[SMC_MAX_EID_LEN];
	bool seid_enabled;
} eids = {
	.lock = __SPIN_LOCK_UNLOCKED(eids.lock),
};

static bool have_seid(void)
{
	lockdep_assert_held(&eids.lock);
	return eids.seid[0];
}

/* Letters are in upper case, of the kernel's character set Latin-1. Blanks only pad. */
static bool is_valid(const u8 eid[SMC_MAX_EID_LEN])
{
	size_t len = SMC_MAX_EID_LEN;
	size_t i;

	while (len && eid[len - 1] == ' ')
		len--;
	if (!len || !isalnum(eid[0]))
		return false;
	for (i = 0; i < len; i++)
		if ((!isalnum(eid[i]) || islower(eid[i])) && eid[i] != '.' && eid[i] != '-')
			return false;
	return true;
}

/* Returns the index of a user EID, or eids.n. */
static unsigned int find_ueid(const u8 eid[SMC_MAX_EID_LEN])
{
	unsigned int i;

	lockdep_assert_held(&eids.lock);
	for (i = 0; i < eids.n; i++)
		if (!memcmp(eids.ueids[i], eid, SMC_MAX_EID_LEN))
			break;
	return i;
}

/**
 * smc_eid_add() - add a user EID
 * @eid: EID
 * @extack: gets the reason of a refusal
 *
 * Return: 0; -EINVAL if it is not valid; -ERANGE if the table is full; -EEXIST.
 */
int smc_eid_add(const u8 eid[SMC_MAX_EID_LEN], struct netlink_ext_ack *extack)
{
	int rc = 0;

	if (!is_valid(eid)) {
		NL_SET_ERR_MSG(extack,
			       "an EID has A-Z, 0-9, '.' and '-', and starts with A-Z or 0-9");
		return -EINVAL;
	}
	spin_lock_bh(&eids.lock);
	if (eids.n == SMC_MAX_UEID) {
		NL_SET_ERR_MSG(extack, "there is no room for another user EID");
		rc = -ERANGE;
	} else if (find_ueid(eid) < eids.n) {
		NL_SET_ERR_MSG(extack, "the user EID is defined already");
		rc = -EEXIST;
	} else {
		memcpy(eids.ueids[eids.n++], eid, SMC_MAX_EID_LEN);
	}
	spin_unlock_bh(&eids.lock);
	smc_peers_forget(NULL);
	return rc;
}

/**
 * smc_eid_remove() - remove a user EID
 * @eid: EID
 * @extack: gets the reason of a refusal
 *
 * Return: 0; -ENOENT; -EAGAIN if the last user EID was removed and the system EID therefore enabled.
 */
int smc_eid_remove(const u8 eid[SMC_MAX_EID_LEN], struct netlink_ext_ack *extack)
{
	unsigned int at;
	int rc = 0;

	spin_lock_bh(&eids.lock);
	at = find_ueid(eid);
	if (at == eids.n) {
		NL_SET_ERR_MSG(extack, "the user EID is not defined");
		rc = -ENOENT;
		goto unlock;
	}
	eids.n--;
	memmove(eids.ueids[at], eids.ueids[at + 1], (eids.n - at) * SMC_MAX_EID_LEN);
	if (!eids.n && have_seid() && !eids.seid_enabled) {
		NL_SET_ERR_MSG(extack, "the last user EID was removed and the system EID enabled");
		eids.seid_enabled = true;
		rc = -EAGAIN;
	}
unlock:
	spin_unlock_bh(&eids.lock);
	smc_peers_forget(NULL);
	return rc;
}

/**
 * smc_eid_flush() - remove all user EIDs, and enable the system EID where there is one
 */
void smc_eid_flush(void)
{
	spin_lock_bh(&eids.lock);
	eids.n = 0;
	eids.seid_enabled = have_seid();
	spin_unlock_bh(&eids.lock);
	smc_peers_forget(NULL);
}

/**
 * smc_eid_list() - copy the user EIDs in the order of their addition
 * @list: where to
 * @max: how many fit
 *
 * Return: how many were copied.
 */
unsigned int smc_eid_list(u8 (*list)[SMC_MAX_EID_LEN], unsigned int max)
{
	unsigned int n;

	spin_lock_bh(&eids.lock);
	n = min(eids.n, max);
	memcpy(list, eids.ueids, n * SMC_MAX_EID_LEN);
	spin_unlock_bh(&eids.lock);
	return n;
}

/* Returns whether this is a user EID of this host, or its enabled system EID. */
static bool is_known_eid(const u8 eid[SMC_MAX_EID_LEN])
{
	bool found;

	spin_lock_bh(&eids.lock);
	found = find_ueid(eid) < eids.n ||
		(eids.seid_enabled && !memcmp(eids.seid, eid, SMC_MAX_EID_LEN));
	spin_unlock_bh(&eids.lock);
	return found;
}

/**
 * smc_eid_negotiate() - finds the first EID of a peer that this host has, too (docs/protocol.md, 4.1)
 * @list: EIDs of the peer, in its order
 * @n: their number
 * @eid: result
 *
 * Return: whether there is one.
 */
bool smc_eid_negotiate(const u8 (*list)[SMC_MAX_EID_LEN], unsigned int n, u8 eid[SMC_MAX_EID_LEN])
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		if (!is_known_eid(list[i]))
			continue;
		memcpy(eid, list[i], SMC_MAX_EID_LEN);
		return true;
	}
	return false;
}

/**
 * smc_eid_seid() - get the system EID
 * @seid: the system EID; all zero if there is none
 *
 * Return: whether it is enabled.
 */
bool smc_eid_seid(u8 seid[SMC_MAX_EID_LEN])
{
	bool enabled;

	spin_lock_bh(&eids.lock);
	memcpy(seid, eids.seid, SMC_MAX_EID_LEN);
	enabled = eids.seid_enabled;
	spin_unlock_bh(&eids.lock);
	return enabled;
}

/**
 * smc_eid_enable_seid() - enable or disable the system EID
 * @enable: which
 * @extack: gets the reason of a refusal
 *
 * Return: 0; -EOPNOTSUPP if there is none; -ENOENT if no EID would be left.
 */
int smc_eid_enable_seid(bool enable, struct netlink_ext_ack *extack)
{
	int rc = 0;

	spin_lock_bh(&eids.lock);
	if (!have_seid()) {
		NL_SET_ERR_MSG(extack, "this host has no system EID");
		rc = -EOPNOTSUPP;
	} else if (!enable && !eids.n) {
		NL_SET_ERR_MSG(extack, "there is no user EID");
		rc = -ENOENT;
	} else {
		eids.seid_enabled = enable;
	}
	spin_unlock_bh(&eids.lock);
	smc_peers_forget(NULL);
	return rc;
}

/* smc_eid_init() - derives the system EID, at load */
void smc_eid_init(void)
{
#ifdef CONFIG_S390
	char text[SMC_MAX_EID_LEN + 1];
	struct cpuid id;

	get_cpu_id(&id);
	snprintf(text, sizeof(text), "IBM-SYSZ-ISMSEID00000000%04X%04X",
		 id.ident & 0xffff, id.machine & 0xffff);
	memcpy(eids.seid, text, SMC_MAX_EID_LEN);
	eids.seid_enabled = true;
#endif
}
