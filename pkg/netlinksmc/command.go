// SPDX-License-Identifier: Apache-2.0

package netlinksmc

const (
	// familyName and familyVersion identify the generic netlink family.
	familyName    = "SMC_GEN_NETLINK"
	familyVersion = 1
)

// command is a command of the family: its number and name in <linux/smc.h>, what it does in words, and the first Linux
// that has it.
type command struct {
	number uint8
	name   string
	op     string
	since  string
}

// The commands.
var (
	cmdSysInfo        = command{1, "SMC_NETLINK_GET_SYS_INFO", "get SMC system information", "5.11"}
	cmdLinkGroupsR    = command{2, "SMC_NETLINK_GET_LGR_SMCR", "list SMC-R link groups", "5.11"}
	cmdLinksR         = command{3, "SMC_NETLINK_GET_LINK_SMCR", "list SMC-R links", "5.11"}
	cmdLinkGroupsD    = command{4, "SMC_NETLINK_GET_LGR_SMCD", "list SMC-D link groups", "5.11"}
	cmdDevicesD       = command{5, "SMC_NETLINK_GET_DEV_SMCD", "list SMC-D devices", "5.11"}
	cmdDevicesR       = command{6, "SMC_NETLINK_GET_DEV_SMCR", "list SMC-R devices", "5.11"}
	cmdStats          = command{7, "SMC_NETLINK_GET_STATS", "get SMC statistics", "5.14"}
	cmdFallbackStats  = command{8, "SMC_NETLINK_GET_FBACK_STATS", "get SMC fallback statistics", "5.14"}
	cmdUEIDs          = command{9, "SMC_NETLINK_DUMP_UEID", "list user EIDs", "5.16"}
	cmdAddUEID        = command{10, "SMC_NETLINK_ADD_UEID", "add user EID", "5.16"}
	cmdRemoveUEID     = command{11, "SMC_NETLINK_REMOVE_UEID", "remove user EID", "5.16"}
	cmdFlushUEIDs     = command{12, "SMC_NETLINK_FLUSH_UEID", "remove all user EIDs", "5.16"}
	cmdSEID           = command{13, "SMC_NETLINK_DUMP_SEID", "get the system EID", "5.16"}
	cmdEnableSEID     = command{14, "SMC_NETLINK_ENABLE_SEID", "enable the system EID", "5.16"}
	cmdDisableSEID    = command{15, "SMC_NETLINK_DISABLE_SEID", "disable the system EID", "5.16"}
	cmdHSLimitation   = command{16, "SMC_NETLINK_DUMP_HS_LIMITATION", "get the handshake limitation", "5.18"}
	cmdEnableHSLimit  = command{17, "SMC_NETLINK_ENABLE_HS_LIMITATION", "enable the handshake limitation", "5.18"}
	cmdDisableHSLimit = command{18, "SMC_NETLINK_DISABLE_HS_LIMITATION", "disable the handshake limitation", "5.18"}
)
