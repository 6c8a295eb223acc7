// SPDX-License-Identifier: Apache-2.0

// Package netlinksmc is a client of the netlink interfaces of Linux's AF_SMC: the generic netlink family
// SMC_GEN_NETLINK and sock_diag for AF_SMC.
//
// It speaks to whichever module serves them, the one of a stock kernel or smckit's own. It returns typed values, prints
// nothing, and never panics on what the kernel sends.
package netlinksmc
