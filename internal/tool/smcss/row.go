// SPDX-License-Identifier: Apache-2.0

package smcss

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/pkg/netlinksmc"
)

// The parts of the header. Scripts find columns by it, so every blank is that of smc-tools, at the end of a part too.
const (
	headBase  = "State          UID   Inode   Local Address           Peer Address            Intf Mode "
	headDebug = "Shutd Token    Sndbuf   Rcvbuf   Peerbuf  rxprod-Cursor rxcons-Cursor rxFlags " +
		"txprod-Cursor txcons-Cursor txFlags txprep-Cursor txsent-Cursor txfin-Cursor  "
	headSMCR      = "Role IB-device       Port Linkid GID                                      Peer-GID"
	headSMCD      = "GID              Token            Peer-GID         Peer-Token       Linkid"
	headProcesses = "Process"
)

// addrWidth is the width of an address column.
const addrWidth = 23

// columns says which parts a row has and how they look.
type columns struct {
	debug, smcr, smcd, wide bool
	processes, explain      bool
}

// header returns the header line.
func (c *columns) header() string {
	h := headBase
	if c.debug {
		h += headDebug
	}
	if c.smcr {
		h += headSMCR
	}
	if c.smcd {
		h += headSMCD
	}
	if c.processes {
		h = strings.TrimRight(h, " ") + " " + headProcesses
	}
	return h + "\n"
}

// appendRow appends what smc-tools prints for s, without the end of the line. Rows end early where the kernel has
// nothing to say: INIT after the inode, LISTEN after the local address, CLOSED after the interface, TCP after the
// reason.
func (c *columns) appendRow(b []byte, s *netlinksmc.Socket) []byte {
	b = fmt.Appendf(b, "%-14s %05d %07d ", s.State, s.UID, s.Inode)
	if s.State == netlinksmc.StateInit {
		return b
	}
	b = c.appendEndpoint(b, s.Local)
	if s.State == netlinksmc.StateListen {
		return b
	}
	b = c.appendEndpoint(b, s.Peer)
	b = fmt.Appendf(b, "%04x ", s.BoundIfindex)
	if s.State == netlinksmc.StateClosed {
		return b
	}
	b = append(b, s.Mode.String()...)
	b = append(b, ' ')
	if s.Mode == netlinksmc.ModeTCP {
		return appendFallback(b, s.Fallback)
	}
	if c.debug {
		b = fmt.Appendf(b, " %s  ", s.Shutdown)
		b = appendConn(b, s.Conn)
	}
	if c.smcr {
		b = appendLink(b, s.LinkGroup)
	}
	if c.smcd {
		b = appendDMB(b, s.DMB)
	}
	return b
}

// appendEndpoint appends an address and port padded to the column. Unless the output is wide, an address that does not
// fit is cut, never the port.
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

func appendConn(b []byte, c *netlinksmc.ConnInfo) []byte {
	if c == nil {
		return b
	}
	b = fmt.Appendf(b, "%08x %08x %08x %08x ", c.Token, c.SndbufSize, c.RMBESize, c.PeerRMBESize)
	b = appendCursor(b, c.RxProd)
	b = appendCursor(b, c.RxCons)
	b = fmt.Appendf(b, "%02x:%02x   ", c.RxProdFlags, c.RxConnFlags)
	b = appendCursor(b, c.TxProd)
	b = appendCursor(b, c.TxCons)
	b = fmt.Appendf(b, "%02x:%02x   ", c.TxProdFlags, c.TxConnFlags)
	b = appendCursor(b, c.TxPrep)
	b = appendCursor(b, c.TxSent)
	return appendCursor(b, c.TxFin)
}

func appendCursor(b []byte, c netlinksmc.Cursor) []byte {
	return fmt.Appendf(b, "%04x:%08x ", c.Wrap, c.Count)
}

func appendLink(b []byte, l *netlinksmc.LinkGroupInfo) []byte {
	if l == nil {
		return b
	}
	return fmt.Appendf(b, "%4s %-15s %02x   %02x     %-40s %s",
		l.Role, cli.Printable(l.IBDev), l.IBPort, l.LinkID, l.GID, l.PeerGID)
}

func appendDMB(b []byte, d *netlinksmc.DMBInfo) []byte {
	if d == nil {
		return b
	}
	return fmt.Appendf(b, "%016x %016x %016x %016x %08x ", d.GID, d.Token, d.PeerGID, d.PeerToken, d.LinkGroupID)
}

// appendProcesses appends who has the socket open, in the notation of ss.
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
func appendExplanation(b []byte, f *netlinksmc.Fallback) []byte {
	if f == nil {
		return b
	}
	b = appendReason(b, "local", f.Reason)
	if f.PeerDiagnosis != 0 {
		b = appendReason(b, "peer", f.PeerDiagnosis)
	}
	return b
}

// unknownReason explains codes that no Linux has.
const unknownReason = "unknown code; systems other than Linux have numbers of their own"

func appendReason(b []byte, side string, r netlinksmc.Reason) []byte {
	if !r.Known() {
		return fmt.Appendf(b, "\t%-6s %s\n", side, unknownReason)
	}
	b = fmt.Appendf(b, "\t%-6s %s: %s\n", side, r.Name(), r.Text())
	return fmt.Appendf(b, "\t%-6s %s\n", "", r.Remedy())
}
