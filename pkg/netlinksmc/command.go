// SPDX-License-Identifier: Apache-2.0

package netlinksmc

// command is a command of the family: its number and name in <linux/smc.h>, its description, and the first Linux version that
// has it.
type command struct {
	number uint8
	name   string
	op     string
	since  string
}
