// SPDX-License-Identifier: Apache-2.0

// Package netlinksmc is a client of the netlink interfaces of Linux's AF_SMC: the generic netlink family
// SMC_GEN_NETLINK and sock_diag for AF_SMC.
//
// It speaks to whichever module serves them, the one of a stock kernel or smckit's own. It returns typed values, prints
// nothing, and never panics on what the kernel sends: attributes that it does not know are ignored, those that an older
// kernel does not send are absent (see Optional), and those of a wrong length are an error that names them.
//
// Client asks about link groups, devices, statistics and settings, and changes the settings; Diag lists sockets. Both
// build on every operating system, and say so where they cannot work. Tools that only need the types and their words
// pay for nothing else: no socket is opened before New and NewDiag.
//
// To see the netlink messages, set the environment variable NLDEBUG=level=1.
package netlinksmc
