// SPDX-License-Identifier: Apache-2.0

// Package pnettest is a fake of the kernel's PNET table for tests. It answers netlink requests like the kernel, with its
// quirks.
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

// Numbers of the netlink family. They are independent of those in pkg/pnet, so that tests notice a mistake there.
const (
	familyID = 0x21

	get   = 1
	add   = 2
	del   = 3
	flush = 4
)

// noPort is the port in rows of interfaces.
const noPort = 255

// Row is an entry in the format of the kernel's answers.
type Row struct {
	ID, Eth, IB string
	Port        uint8
}

// Eth returns the row of an interface.
func Eth(id, name string) Row { return Row{ID: id, Eth: name, IB: "n/a", Port: noPort} }

// IB returns the row of an RDMA device.
func IB(id, name string, port uint8) Row { return Row{ID: id, Eth: "n/a", IB: name, Port: port} }

// Kernel is the fake kernel. Tests may change its fields between requests.
type Kernel struct {
	// Rows is the table.
	Rows []Row
	// Hardware contains the names of devices whose hardware provides a PNET ID.
	Hardware []string
	// NetNS means that the requests come from a network namespace other than the initial one.
	NetNS bool
	// NoModule means that the netlink family does not exist.
	NoModule bool
	// Unprivileged refuses all changes.
	Unprivileged bool
	// Fail is called before each change, with the number of the change, counted from 1. If the result is not zero, the fake
	// returns it as the error and changes nothing. Fail may change Rows, like another process.
	Fail func(n int) syscall.Errno
	// Log lists the requested changes as text: "add NET1 eth eth0", "del NET1", "flush".
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

// change executes a request that changes the table.
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

// request contains the attributes of a request, "" or nil if absent.
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

// add adds the interface and the device of a request, and succeeds if one of them is new.
func (k *Kernel) add(r request) syscall.Errno {
	id := upper(strings.Trim(r.name, " \t\n\v\f\r"))
	if id == "" {
		return syscall.EINVAL
	}
	// The kernel's isalnum() accepts letters of Latin-1.
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

// upper converts ASCII letters to upper case, and keeps other bytes.
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

// del deletes all rows whose ID equals that of the request, byte by byte.
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
