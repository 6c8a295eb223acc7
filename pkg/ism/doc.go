// SPDX-License-Identifier: Apache-2.0

// Package ism finds the devices that SMC can use: RoCE adapters (SMC-R) and ISM devices (SMC-D), as sysfs and the kernel's RDMA
// netlink family show them, on IBM Z and elsewhere. It reports their PCI addresses, their ports and interfaces, their PNET IDs
// and the origin of these, and it switches PCI functions on and off if the platform supports that.
//
// If a file is missing, cannot be read or has invalid contents, only its value is missing, never the device.
package ism
