// SPDX-License-Identifier: Apache-2.0

// Package ism finds the devices that SMC can use: RoCE adapters (SMC-R) and ISM devices (SMC-D), as sysfs and the
// kernel's RDMA netlink family show them, on IBM Z and elsewhere. It knows their place on the PCI bus, their ports and
// interfaces, their PNET IDs and where these come from, and it switches PCI functions on and off where the platform can.
//
// A file that is missing, cannot be read or holds garbage costs the value that it would have given, never the device.
package ism
