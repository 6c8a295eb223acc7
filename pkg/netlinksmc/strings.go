// SPDX-License-Identifier: Apache-2.0

package netlinksmc

import "fmt"

// The words below are those of smc-tools, which scripts look for. A value without a word is shown as a number.

// String returns SERV or CLNT.
func (r Role) String() string {
	if r == RoleClient {
		return "CLNT"
	}
	return "SERV"
}

// MarshalText returns String.
func (r Role) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

var portStates = map[PortState]string{
	PortInactive: "INACTIVE",
	PortActive:   "ACTIVE",
}

// String returns INACTIVE or ACTIVE, or a number such as "0x9?".
func (s PortState) String() string { return word(portStates, s, "0x%x?") }

// MarshalText returns String.
func (s PortState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// String returns "<->" while both directions are open, with an R in place of the arrow head once receiving is shut down
// and a W once sending is: "R->", "<-W", "R-W".
func (s Shutdown) String() string {
	b := []byte("<->")
	if s&ShutdownReceive != 0 {
		b[0] = 'R'
	}
	if s&ShutdownSend != 0 {
		b[2] = 'W'
	}
	return string(b)
}

// MarshalText returns String.
func (s Shutdown) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// word returns the word for v, or v by the format for numbers without one.
func word[T ~uint8 | ~uint32](words map[T]string, v T, unknown string) string {
	if w, ok := words[v]; ok {
		return w
	}
	return fmt.Sprintf(unknown, uint32(v))
}
