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

// String returns ZOS, LINUX or AIX, or a number such as "Unknown (0x9)".
func (o PeerOS) String() string {
	switch o {
	case PeerOSZOS:
		return "ZOS"
	case PeerOSLinux:
		return "LINUX"
	case PeerOSAIX:
		return "AIX"
	default:
		return fmt.Sprintf("Unknown (0x%x)", uint8(o))
	}
}

// MarshalText returns String.
func (o PeerOS) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

var portStates = map[PortState]string{
	PortInactive: "INACTIVE",
	PortActive:   "ACTIVE",
}

// String returns INACTIVE or ACTIVE, or a number such as "0x9?".
func (s PortState) String() string { return word(portStates, s) }

// MarshalText returns String.
func (s PortState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

var socketStates = map[SocketState]string{
	StateActive:           "ACTIVE",
	StateInit:             "INIT",
	StateClosed:           "CLOSED",
	StateListen:           "LISTEN",
	StatePeerCloseWait1:   "PEERCLOSEWAIT1",
	StatePeerCloseWait2:   "PEERCLOSEWAIT2",
	StateAppCloseWait1:    "APPCLOSEWAIT1",
	StateAppCloseWait2:    "APPCLOSEWAIT2",
	StateAppFinCloseWait:  "APPFINCLOSEWAIT1",
	StatePeerFinCloseWait: "PEERFINCLOSEWAIT",
	StatePeerAbortWait:    "PEERABORTWAIT",
	StateProcessAbort:     "PROCESSABORT",
}

// String returns the state as smcss prints it, such as ACTIVE or PEERCLOSEWAIT1, or a number such as "0x9?".
func (s SocketState) String() string { return word(socketStates, s) }

// MarshalText returns String.
func (s SocketState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

var modes = map[Mode]string{
	ModeSMCR: "SMCR",
	ModeTCP:  "TCP",
	ModeSMCD: "SMCD",
}

// String returns SMCR, TCP or SMCD, or a number such as "0x9?".
func (m Mode) String() string { return word(modes, m) }

// MarshalText returns String.
func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

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

// word returns the word for v, or v as a hexadecimal number with a question mark.
func word[T ~uint8 | ~uint32](words map[T]string, v T) string {
	if w, ok := words[v]; ok {
		return w
	}
	return fmt.Sprintf("0x%x?", uint32(v))
}
