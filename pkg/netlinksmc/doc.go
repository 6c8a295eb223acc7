// SPDX-License-Identifier: Apache-2.0

// Package netlinksmc is a client of the netlink interfaces of Linux's AF_SMC: the generic netlink family
// SMC_GEN_NETLINK and sock_diag for AF_SMC.
//
// It works with the module of a stock kernel and with smckit's own. It returns typed values, prints nothing, and never panics,
// whatever the kernel sends: attributes that it does not know are ignored, those that an older kernel does not send are absent
// (see Optional), and those of a wrong length are an error that names them.
//
// Client asks about link groups, devices, statistics and settings, and changes the settings; Diag lists sockets. Both build on
// every operating system, and return an error on systems other than Linux. Tools can use the types and their names without
// cost: no socket is opened before New and NewDiag.
//
// To see the netlink messages, set the environment variable NLDEBUG=level=1.
package netlinksmc
