// SPDX-License-Identifier: Apache-2.0

//go:build linux

package badpeer

// Reasons in DECLINE messages of our module.
const (
	reasonTimeout    = 0x02010000
	reasonNoDevice   = 0x03030000
	reasonDevice     = 0x03030002
	reasonNoISM      = 0x03030003
	reasonNoISMv2    = 0x03030005
	reasonRelease    = 0x03030009
	reasonConns      = 0x0303000a
	reasonLinks      = 0x0303000b
	reasonMode       = 0x03040000
	reasonEyecatcher = 0x03050000
	reasonPrefix     = 0x03070000
	reasonLink       = 0x030a0000
	reasonVersion    = 0x030c0000
	reasonRoute      = 0x030e0000
	reasonSync       = 0x04000000
	reasonInternal   = 0x09990000 // of smc_null.ko, for all that it is to carry
	reasonToken      = 0x09990001
	reasonReady      = 0x09990002
	reasonBuffer     = 0x09990003
)
