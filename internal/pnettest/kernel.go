// SPDX-License-Identifier: Apache-2.0

// Package pnettest is a PNET table for tests, served at the netlink socket as the kernel does it, with its quirks.
package pnettest

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/genetlink/genltest"
	"github.com/mdlayher/netlink"
	"github.com/mdlayher/netlink/nlenc"
)

// Numbers of the family, apart from those in pkg/pnet so that a mistake there is noticed.
const (
	familyID = 0x21

	get   = 1
	add   = 2
	del   = 3
	flush = 4
)

// noPort is the port of an interface.
const noPort = 255

// Row is an entry as the kernel shows it.
type Row struct {
	ID, Eth, IB string
	Port        uint8
}

// Eth returns the row of an interface.
func Eth(id, name string) Row { return Row{ID: id, Eth: name, IB: "n/a", Port: noPort} }

// IB returns the row of an RDMA device.
func IB(id, name string, port uint8) Row { return Row{ID: id, Eth: "n/a", IB: name, Port: port} }

// Kernel is the fake. Its fields may be changed between requests.
type Kernel struct {
	// Rows is the table.
	Rows []Row
	// Hardware holds the names of devices that have a PNET ID from their hardware.
	Hardware []string
	// NetNS tells another network namespace from the initial one.
	NetNS bool
	// NoModule makes the family unknown.
	NoModule bool
	// Unprivileged refuses all changes.
	Unprivileged bool
	// Fail is called before each change, with its number, counted from 1. A non-zero result is the answer, and nothing
	// is changed. It may change Rows, as another process would.
	Fail func(n int) syscall.Errno
	// Log has the changes that were asked for, in words: "add NET1 eth eth0", "del NET1", "flush".
	Log []string
}

// Dial returns a connection to the fake.
func (k *Kernel) Dial() *genetlink.Conn {
	family := genetlink.Family{ID: familyID, Name: "SMC_PNETID", Version: 1}
	serve := genltest.ServeFamily(family, k.serve)
	return genltest.Dial(func(g genetlink.Message, n netlink.Message) ([]genetlink.Message, error) {
		if k.NoModule {
			return nil, genltest.Error(int(syscall.ENOENT))
		}
		return serve(g, n)
	})
}

// serve answers one request.
func (k *Kernel) serve(g genetlink.Message, n netlink.Message) ([]genetlink.Message, error) {
	if n.Header.Type != familyID || g.Header.Version != 1 {
		return nil, fmt.Errorf("pnettest: family %d version %d", n.Header.Type, g.Header.Version)
	}
	attrs, err := netlink.UnmarshalAttributes(g.Data)
	if err != nil {
		return nil, err
	}
	want := netlink.Request | netlink.Acknowledge
	if g.Header.Command == get {
		want = netlink.Request | netlink.Dump
	}
	if n.Header.Flags != want {
		return nil, fmt.Errorf("pnettest: command %d with flags %s", g.Header.Command, n.Header.Flags)
	}
	if g.Header.Command == get {
		return k.dump()
	}
	if errno := k.change(g.Header.Command, attrs); errno != 0 {
		return nil, genltest.Error(int(errno))
	}
	return nil, io.EOF
}

// dump returns the rows that the network namespace may see.
func (k *Kernel) dump() ([]genetlink.Message, error) {
	var out []genetlink.Message
	for _, r := range k.Rows {
		if k.NetNS && r.Port != noPort {
			continue
		}
		b, err := netlink.MarshalAttributes([]netlink.Attribute{
			{Type: 1, Data: nlenc.Bytes(r.ID)},
			{Type: 2, Data: nlenc.Bytes(r.Eth)},
			{Type: 3, Data: nlenc.Bytes(r.IB)},
			{Type: 4, Data: []byte{r.Port}},
		})
		if err != nil {
			return nil, err
		}
		out = append(out, genetlink.Message{Header: genetlink.Header{Command: flush, Version: 1}, Data: b})
	}
	if out == nil {
		return nil, io.EOF
	}
	return out, nil
}

// change carries one change out.
func (k *Kernel) change(cmd uint8, attrs []netlink.Attribute) syscall.Errno {
	if k.Unprivileged {
		return syscall.EPERM
	}
	req, errno := parse(attrs)
	if errno != 0 {
		return errno
	}
	k.Log = append(k.Log, req.words(cmd))
	if k.Fail != nil {
		if errno := k.Fail(len(k.Log)); errno != 0 {
			return errno
		}
	}
	switch cmd {
	case add:
		return k.add(req)
	case del:
		return k.del(req)
	case flush:
		k.Rows = nil
		return 0
	}
	return syscall.EOPNOTSUPP
}

// request has the attributes of a request; "" or nil is absent.
type request struct {
	name string
	// eth and ib are nil if absent.
	eth, ib *string
	port    *uint8
}

// parse applies the kernel's policy for attributes.
func parse(attrs []netlink.Attribute) (request, syscall.Errno) {
	var r request
	for _, a := range attrs {
		s, terminated := bytes.CutSuffix(a.Data, []byte{0})
		longest := map[uint16]int{1: 16, 2: 15, 3: 63}[a.Type]
		switch {
		case a.Type == 4 && len(a.Data) == 1:
			r.port = &a.Data[0]
			continue
		case longest == 0 || !terminated || len(s) > longest:
			return r, syscall.EINVAL
		}
		value := string(s)
		switch a.Type {
		case 1:
			r.name = value
		case 2:
			r.eth = &value
		case 3:
			r.ib = &value
		}
	}
	return r, 0
}

func (r request) words(cmd uint8) string {
	switch {
	case cmd == flush:
		return "flush"
	case cmd == del:
		return "del " + r.name
	}
	s := "add " + r.name
	if r.eth != nil {
		s += " eth " + *r.eth
	}
	if r.ib != nil {
		s += " ib " + *r.ib
	}
	if r.port != nil {
		s += fmt.Sprintf(" %d", *r.port)
	}
	return s
}

// add adds the halves of a request, and succeeds if one of them was new.
func (k *Kernel) add(r request) syscall.Errno {
	id := upper(strings.Trim(r.name, " \t\n\v\f\r"))
	if id == "" {
		return syscall.EINVAL
	}
	// The kernel's letters are those of Latin-1.
	for i := range len(id) {
		if c := id[i]; c < '0' || c > '9' && c < 'A' || c > 'Z' && c < 0xc0 {
			return syscall.EINVAL
		}
	}
	added := false
	if r.eth != nil {
		added = k.append(Eth(id, *r.eth), *r.eth)
	}
	if r.ib != nil && !k.NetNS {
		port := uint8(1)
		if r.port != nil {
			port = *r.port
		}
		if port < 1 || port > 2 {
			return syscall.EINVAL
		}
		added = k.append(IB(id, *r.ib, port), *r.ib) || added
	}
	if !added {
		return syscall.EEXIST
	}
	return 0
}

// upper turns ASCII letters into upper case, and leaves other bytes alone.
func upper(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'a' <= c && c <= 'z' {
			b[i] = c - 'a' + 'A'
		}
	}
	return string(b)
}

// append adds a row, unless its device has a PNET ID.
func (k *Kernel) append(row Row, device string) bool {
	if slices.Contains(k.Hardware, device) {
		return false
	}
	for _, r := range k.Rows {
		if r.Eth == row.Eth && r.IB == row.IB && (r.Port == noPort) == (row.Port == noPort) {
			return false
		}
	}
	k.Rows = append(k.Rows, row)
	return true
}

// del deletes all rows whose ID is literally that of the request.
func (k *Kernel) del(r request) syscall.Errno {
	var rest []Row
	for _, row := range k.Rows {
		if row.ID != r.name || k.NetNS && row.Port != noPort {
			rest = append(rest, row)
		}
	}
	if len(rest) == len(k.Rows) {
		return syscall.ENOENT
	}
	k.Rows = rest
	return 0
}
