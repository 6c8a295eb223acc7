// SPDX-License-Identifier: Apache-2.0

package smcss

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/jsondoc"
	"github.com/smckit/smckit/pkg/netlinksmc"
)

// addrWidth is the width of an address column.
const addrWidth = 23

// columns selects the parts of a row and their format.
type columns struct {
	debug, smcr, smcd, wide bool
	processes, explain      bool
}

// header returns the header line.
func (c *columns) header() string {
	var h string
	for p := range c.parts {
		h += p.header()
	}
	if c.processes {
		h = strings.TrimRight(h, " ") + " Process"
	}
	return h + "\n"
}

// parts are the columns of a row.
func (c *columns) parts(yield func(part) bool) {
	for _, p := range [...]struct {
		shown bool
		part  part
	}{{true, baseColumns}, {c.debug, debugColumns}, {c.smcr, linkColumns}, {c.smcd, dmbColumns}} {
		if p.shown && !yield(p.part) {
			return
		}
	}
}

// appendRow appends the row that smc-tools prints for s, without the end of the line.
func (c *columns) appendRow(b []byte, s *netlinksmc.Socket) []byte {
	for p := range c.parts {
		var more bool
		if b, more = p.appendCells(c, b, s); !more {
			break
		}
	}
	return b
}

// appendMode appends the mode, and after a fallback the reasons.
func appendMode(_ *columns, b []byte, s *netlinksmc.Socket) []byte {
	b = append(b, s.Mode.String()...)
	b = append(b, ' ')
	if s.Mode == netlinksmc.ModeTCP {
		b = appendFallback(b, s.Fallback)
	}
	return b
}

// appendEndpoint appends an address and port, padded to the column. Unless the output is wide, it truncates an address that
// does not fit, but never the port.
func (c *columns) appendEndpoint(b []byte, ap netip.AddrPort) []byte {
	start := len(b)
	b = appendAddr(b, ap.Addr())
	host := len(b) - start
	port := strconv.Itoa(int(ap.Port()))
	if !c.wide && host+1+len(port) > addrWidth {
		b = append(b[:start+addrWidth-len("..:")-len(port)], ".."...)
	}
	b = append(b, ':')
	b = append(b, port...)
	for len(b)-start < addrWidth {
		b = append(b, ' ')
	}
	return append(b, ' ')
}

// appendAddr writes an address as the C library does. That differs from netip for addresses below ::/96, whose last
// 32 bits are written as an IPv4 address if more than 16 of them are used.
func appendAddr(b []byte, a netip.Addr) []byte {
	if !a.IsValid() {
		return append(b, "0.0.0.0"...)
	}
	if a.Is6() {
		raw := a.As16()
		if [12]byte(raw[:12]) == [12]byte{} && (raw[12] != 0 || raw[13] != 0) {
			b = append(b, "::"...)
			a = netip.AddrFrom4([4]byte(raw[12:]))
		}
	}
	return a.AppendTo(b)
}

func appendFallback(b []byte, f *netlinksmc.Fallback) []byte {
	if f == nil {
		return b
	}
	b = append(b, f.Reason.String()...)
	if f.PeerDiagnosis != 0 {
		b = append(b, '/')
		b = append(b, f.PeerDiagnosis.String()...)
	}
	return b
}

// appendProcesses appends the processes that have the socket open, in the notation of ss.
func appendProcesses(b []byte, list []process) []byte {
	if len(list) == 0 {
		return b
	}
	if b[len(b)-1] != ' ' {
		b = append(b, ' ')
	}
	b = append(b, "users:("...)
	for i, p := range list {
		if i > 0 {
			b = append(b, ',')
		}
		name := strings.ReplaceAll(cli.Printable(p.Name), `"`, `\"`)
		b = fmt.Appendf(b, `("%s",pid=%d,fd=%d)`, name, p.PID, p.FD)
	}
	return append(b, ')')
}

// appendExplanation appends a line or two for each reason of a fallback.
func appendExplanation(b []byte, f jsondoc.Fallback) []byte {
	b = appendReason(b, "local", f.Reason)
	if f.PeerReason != nil {
		b = appendReason(b, "peer", *f.PeerReason)
	}
	return b
}

// unknownReason explains codes that no Linux has.
const unknownReason = "unknown code; systems other than Linux have numbers of their own"

func appendReason(b []byte, side string, r jsondoc.Reason) []byte {
	if r.Name == "" {
		return fmt.Appendf(b, "\t%-6s %s\n", side, unknownReason)
	}
	b = fmt.Appendf(b, "\t%-6s %s: %s\n", side, r.Name, r.Text)
	return fmt.Appendf(b, "\t%-6s %s\n", "", r.Remedy)
}
