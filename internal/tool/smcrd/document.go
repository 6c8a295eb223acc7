// SPDX-License-Identifier: Apache-2.0

package smcrd

// The documents of --json, for programs that read them.
type (
	// LinkGroupsR is the document of smcr linkgroup and smcr link.
	LinkGroupsR = linkGroupsRJSON
	// LinkGroupR is a link group of LinkGroupsR.
	LinkGroupR = linkGroupRJSON
	// Link is a link of a LinkGroupR.
	Link = linkJSON
	// LinkGroupsD is the document of smcd linkgroup.
	LinkGroupsD = linkGroupsDJSON
	// LinkGroupD is a link group of LinkGroupsD.
	LinkGroupD = linkGroupDJSON
	// Devices is the document of smcr device and smcd device.
	Devices = devicesJSON
	// Device is a device of Devices.
	Device = deviceJSON
	// Stats is the document of smcr stats and smcd stats.
	Stats = statsJSON
	// Loopback is the document of smcd loopback.
	Loopback = loopbackJSON
)
