// SPDX-License-Identifier: Apache-2.0

// Package pnet deals with the PNET table of Linux's AF_SMC, which assigns network interfaces and RDMA or ISM devices to
// physical networks.
//
// The package has
//   - the rules for PNET IDs: ID, ParseID;
//   - the grammar of commands and of table files: ParseArgs, Parse, Table.Format;
//   - a client of the kernel's table over netlink: Client;
//   - the change of one table into another, as a whole or not at all: Diff, Apply;
//   - the PNET IDs that firmware has set, which no table overrides: Sysfs, DecodeUtilString.
//
// The table belongs to a network namespace and is in kernel memory: it is empty after a reboot, and after a reload of the
// module.
package pnet
