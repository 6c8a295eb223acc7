// SPDX-License-Identifier: Apache-2.0

package smcss

import (
	"fmt"
	"strings"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/pkg/netlinksmc"
)

// column is a column of the text output. To add one, add an entry below: the header, the rows and the manual are generated from
// it. JSON has fields of its own, in json.go. The head that was the last one needs blanks at its end then.
type column struct {
	// head is the column's part of the header. Scripts find columns by it, so it has exactly the blanks of smc-tools, including
	// those at the end.
	head string
	// cell appends the column's part of a row, including the blanks after it.
	cell cell
	// last reports whether the row of s ends after this column. It is nil for columns that never end a row.
	last func(s *netlinksmc.Socket) bool
	// help is the text of the manual for this column, or for several columns that end with this one.
	help string
}

// cell appends the value of a column for s. It appends nothing if the kernel does not provide the value.
type cell func(c *columns, b []byte, s *netlinksmc.Socket) []byte

// part is a group of columns that options select together.
type part []column

// header returns the header of the columns.
func (p part) header() string {
	var b strings.Builder
	for _, col := range p {
		b.WriteString(col.head)
	}
	return b.String()
}

// help returns the text of the manual on the columns.
func (p part) help() string {
	var b strings.Builder
	for _, col := range p {
		b.WriteString(col.help)
	}
	return b.String()
}

// appendCells appends the cells of a row. more is false if the row has ended.
func (p part) appendCells(c *columns, b []byte, s *netlinksmc.Socket) (_ []byte, more bool) {
	for i := range p {
		b = p[i].cell(c, b, s)
		if p[i].last != nil && p[i].last(s) {
			return b, false
		}
	}
	return b, true
}

// inState returns a function for column.last.
func inState(state netlinksmc.SocketState) func(*netlinksmc.Socket) bool {
	return func(s *netlinksmc.Socket) bool { return s.State == state }
}

// socketf makes a cell of a format and the value of a socket.
func socketf[T any](format string, value func(s *netlinksmc.Socket) T) cell {
	return func(_ *columns, b []byte, s *netlinksmc.Socket) []byte { return fmt.Appendf(b, format, value(s)) }
}

// connf, linkf and dmbf do the same for values in structures that the kernel may leave out.
func connf[T any](format string, value func(c *netlinksmc.ConnInfo) T) cell {
	return func(_ *columns, b []byte, s *netlinksmc.Socket) []byte { return appendPart(b, s.Conn, format, value) }
}

func linkf[T any](format string, value func(l *netlinksmc.LinkGroupInfo) T) cell {
	return func(_ *columns, b []byte, s *netlinksmc.Socket) []byte {
		return appendPart(b, s.LinkGroup, format, value)
	}
}

func dmbf[T any](format string, value func(d *netlinksmc.DMBInfo) T) cell {
	return func(_ *columns, b []byte, s *netlinksmc.Socket) []byte { return appendPart(b, s.DMB, format, value) }
}

func appendPart[P, T any](b []byte, part *P, format string, value func(*P) T) []byte {
	if part == nil {
		return b
	}
	return fmt.Appendf(b, format, value(part))
}

// cursorf makes a cell of a cursor.
func cursorf(cursor func(c *netlinksmc.ConnInfo) netlinksmc.Cursor) cell {
	return func(_ *columns, b []byte, s *netlinksmc.Socket) []byte {
		if s.Conn == nil {
			return b
		}
		at := cursor(s.Conn)
		return fmt.Appendf(b, "%04x:%08x ", at.Wrap, at.Count)
	}
}

// flagsf makes a cell of the producer's flags and those of the connection.
func flagsf(flags func(c *netlinksmc.ConnInfo) (prod, conn uint8)) cell {
	return func(_ *columns, b []byte, s *netlinksmc.Socket) []byte {
		if s.Conn == nil {
			return b
		}
		prod, conn := flags(s.Conn)
		return fmt.Appendf(b, "%02x:%02x   ", prod, conn)
	}
}

// The columns, in the order of the output.
var (
	// baseColumns are always shown. A row ends early if there are no further values.
	baseColumns = part{
		{
			head: "State          ",
			cell: socketf("%-14s ", func(s *netlinksmc.Socket) netlinksmc.SocketState { return s.State }),
			help: "  State     see below\n",
		},
		{
			head: "UID   ",
			cell: socketf("%05d ", func(s *netlinksmc.Socket) uint32 { return s.UID }),
			help: "  UID       owner of the socket\n",
		},
		{
			head: "Inode   ",
			cell: socketf("%07d ", func(s *netlinksmc.Socket) uint64 { return s.Inode }),
			last: inState(netlinksmc.StateInit),
			help: "  Inode     inode of the socket, as in /proc/PID/fd\n",
		},
		{
			head: "Local Address           ",
			cell: func(c *columns, b []byte, s *netlinksmc.Socket) []byte { return c.appendEndpoint(b, s.Local) },
			last: inState(netlinksmc.StateListen),
		},
		{
			head: "Peer Address            ",
			cell: func(c *columns, b []byte, s *netlinksmc.Socket) []byte { return c.appendEndpoint(b, s.Peer) },
			help: `  Local Address, Peer Address
            address and port of the TCP connection below. An address that does
            not fit is cut and ends in "..", except with -W. The kernel does not
            report the family of an address: the IPv6 wildcard is shown as
            0.0.0.0
`,
		},
		{
			head: "Intf ",
			cell: socketf("%04x ", func(s *netlinksmc.Socket) uint32 { return s.BoundIfindex }),
			last: inState(netlinksmc.StateClosed),
			help: `  Intf      index, in hex, of the interface the socket is bound to (with
            SO_BINDTODEVICE), 0000 if it is not
`,
		},
		{
			head: "Mode ",
			cell: appendMode,
			last: func(s *netlinksmc.Socket) bool { return s.Mode == netlinksmc.ModeTCP },
			help: `  Mode      SMCR over RDMA, SMCD over ISM, TCP after a fallback. TCP is followed
            by this host's reason and, after a slash, the peer's reason
`,
		},
	}

	// debugColumns are those of -d.
	debugColumns = part{
		{
			head: "Shutd ",
			cell: socketf(" %s  ", func(s *netlinksmc.Socket) netlinksmc.Shutdown { return s.Shutdown }),
			help: "  Shutd     <-> open, R-> receiving shut down, <-W sending shut down, R-W both\n",
		},
		{
			head: "Token    ",
			cell: connf("%08x ", func(c *netlinksmc.ConnInfo) uint32 { return c.Token }),
			help: "  Token     alert token of the connection\n",
		},
		{
			head: "Sndbuf   ",
			cell: connf("%08x ", func(c *netlinksmc.ConnInfo) uint32 { return c.SndbufSize }),
		},
		{
			head: "Rcvbuf   ",
			cell: connf("%08x ", func(c *netlinksmc.ConnInfo) uint32 { return c.RMBESize }),
		},
		{
			head: "Peerbuf  ",
			cell: connf("%08x ", func(c *netlinksmc.ConnInfo) uint32 { return c.PeerRMBESize }),
			help: `  Sndbuf, Rcvbuf, Peerbuf
            bytes of the send buffer, the receive buffer and the peer's receive
            buffer
`,
		},
		{
			head: "rxprod-Cursor ",
			cell: cursorf(func(c *netlinksmc.ConnInfo) netlinksmc.Cursor { return c.RxProd }),
		},
		{
			head: "rxcons-Cursor ",
			cell: cursorf(func(c *netlinksmc.ConnInfo) netlinksmc.Cursor { return c.RxCons }),
			help: `  rxprod-Cursor, rxcons-Cursor
            producer and consumer in the own receive buffer, as wraps:offset
`,
		},
		{
			head: "rxFlags ",
			cell: flagsf(func(c *netlinksmc.ConnInfo) (prod, conn uint8) { return c.RxProdFlags, c.RxConnFlags }),
		},
		{
			head: "txprod-Cursor ",
			cell: cursorf(func(c *netlinksmc.ConnInfo) netlinksmc.Cursor { return c.TxProd }),
		},
		{
			head: "txcons-Cursor ",
			cell: cursorf(func(c *netlinksmc.ConnInfo) netlinksmc.Cursor { return c.TxCons }),
			help: `  txprod-Cursor, txcons-Cursor
            the same in the peer's receive buffer
`,
		},
		{
			head: "txFlags ",
			cell: flagsf(func(c *netlinksmc.ConnInfo) (prod, conn uint8) { return c.TxProdFlags, c.TxConnFlags }),
			help: `  rxFlags, txFlags
            flags last received and sent, as producer:connection
`,
		},
		{
			head: "txprep-Cursor ",
			cell: cursorf(func(c *netlinksmc.ConnInfo) netlinksmc.Cursor { return c.TxPrep }),
		},
		{
			head: "txsent-Cursor ",
			cell: cursorf(func(c *netlinksmc.ConnInfo) netlinksmc.Cursor { return c.TxSent }),
		},
		{
			head: "txfin-Cursor  ",
			cell: cursorf(func(c *netlinksmc.ConnInfo) netlinksmc.Cursor { return c.TxFin }),
			help: `  txprep-Cursor, txsent-Cursor, txfin-Cursor
            how far the send buffer is filled, sent and confirmed
`,
		},
	}

	// linkColumns are those of -R.
	linkColumns = part{
		{
			head: "Role ",
			cell: linkf("%4s ", func(l *netlinksmc.LinkGroupInfo) netlinksmc.Role { return l.Role }),
			help: "  Role      SERV or CLNT: this host's part in the link group\n",
		},
		{
			head: "IB-device       ",
			cell: linkf("%-15s ", func(l *netlinksmc.LinkGroupInfo) string { return cli.Printable(l.IBDev) }),
		},
		{
			head: "Port ",
			cell: linkf("%02x   ", func(l *netlinksmc.LinkGroupInfo) uint8 { return l.IBPort }),
		},
		{
			head: "Linkid ",
			cell: linkf("%02x     ", func(l *netlinksmc.LinkGroupInfo) uint8 { return l.LinkID }),
			help: `  IB-device, Port, Linkid
            RDMA device, its port, and the number of the link in its group
`,
		},
		{
			head: "GID                                      ",
			cell: linkf("%-40s ", func(l *netlinksmc.LinkGroupInfo) string { return l.GID }),
		},
		{
			head: "Peer-GID",
			cell: linkf("%s", func(l *netlinksmc.LinkGroupInfo) string { return l.PeerGID }),
			help: `  GID, Peer-GID
            RDMA addresses of both ends
`,
		},
	}

	// dmbColumns are those of -D.
	dmbColumns = part{
		{
			head: "GID              ",
			cell: dmbf("%016x ", func(d *netlinksmc.DMBInfo) uint64 { return d.GID }),
			help: `  GID, Peer-GID
            ISM addresses of both ends
`,
		},
		{
			head: "Token            ",
			cell: dmbf("%016x ", func(d *netlinksmc.DMBInfo) uint64 { return d.Token }),
			help: `  Token, Peer-Token
            the buffers (DMBs) of both ends
`,
		},
		{
			head: "Peer-GID         ",
			cell: dmbf("%016x ", func(d *netlinksmc.DMBInfo) uint64 { return d.PeerGID }),
		},
		{
			head: "Peer-Token       ",
			cell: dmbf("%016x ", func(d *netlinksmc.DMBInfo) uint64 { return d.PeerToken }),
		},
		{
			head: "Linkid",
			cell: dmbf("%08x ", func(d *netlinksmc.DMBInfo) uint32 { return d.LinkGroupID }),
			help: "  Linkid    the link group, as 'smcd linkgroup' shows it\n",
		},
	}
)
