// SPDX-License-Identifier: Apache-2.0

// Package pnet deals with the PNET table of Linux's AF_SMC, which says which network interfaces and RDMA or ISM devices
// are attached to the same physical network.
//
// It has the rules for PNET IDs (ID), the text grammar of entries and of table files (ParseArgs, Parse, Format), a
// client of the kernel's table over netlink (Client), the way from one table to another in few steps that are taken all
// or not at all (Diff, Apply), and the PNET IDs that firmware has set (Sysfs, DecodeUtilString), which no table can
// override.
//
// The table belongs to a network namespace and lives in kernel memory: it is empty after a reboot, and after the module
// was loaded anew.
package pnet
