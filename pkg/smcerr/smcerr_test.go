// SPDX-License-Identifier: Apache-2.0

package smcerr_test

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/netlink"
	"github.com/mdlayher/netlink/nltest"
	"github.com/smckit/smckit/internal/pnettest"
	"github.com/smckit/smckit/pkg/internal/attrtest"
	"github.com/smckit/smckit/pkg/ism"
	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/smckit/smckit/pkg/pnet"
	"github.com/smckit/smckit/pkg/policy"
	"github.com/smckit/smckit/pkg/smcerr"
	"github.com/smckit/smckit/pkg/smcstats"
)

// kernel answers the look-up of a family, and any other request with the messages that it returns. Their headers need no
// sequence number. Before the look-up it is refuseLookUp that answers, if that is not 0.
type kernel struct {
	refuseLookUp syscall.Errno
	answer       func(netlink.Message) []netlink.Message
}

func (k kernel) dial() *netlink.Conn {
	return nltest.Dial(func(reqs []netlink.Message) ([]netlink.Message, error) {
		const controller = 0x10
		var out []netlink.Message
		switch {
		case reqs[0].Header.Type != controller:
			out = k.answer(reqs[0])
		case k.refuseLookUp != 0:
			out = refuse(k.refuseLookUp)(reqs[0])
		default:
			out = []netlink.Message{{Data: []byte("\x01\x02\x00\x00" + attrtest.Attr(1, "\x21\x21"))}}
		}
		for i := range out {
			out[i].Header.Sequence, out[i].Header.PID = reqs[0].Header.Sequence, nltest.PID
		}
		return out, nil
	})
}

// refuse answers with an errno.
func refuse(errno syscall.Errno) func(netlink.Message) []netlink.Message {
	return func(netlink.Message) []netlink.Message {
		return []netlink.Message{{
			Header: netlink.Header{Type: netlink.Error},
			Data:   binary.NativeEndian.AppendUint32(nil, -uint32(errno)),
		}}
	}
}

// list answers a dump with one message.
func list(flags netlink.HeaderFlags, data string) func(netlink.Message) []netlink.Message {
	return func(req netlink.Message) []netlink.Message {
		return []netlink.Message{
			{Header: netlink.Header{Type: req.Header.Type, Flags: flags | netlink.Multi}, Data: []byte(data)},
			{Header: netlink.Header{Type: netlink.Done, Flags: netlink.Multi}, Data: make([]byte, 4)},
		}
	}
}

// requests are one dump and one change of each package that speaks netlink. genetlink says that the package uses families.
var requests = []struct {
	name      string
	genetlink bool
	call      func(ctx context.Context, conn *netlink.Conn) error
}{
	{"pnet.List", true, withPNET(func(ctx context.Context, c *pnet.Client) error { _, err := c.List(ctx); return err })},
	{"pnet.Add", true, withPNET(func(ctx context.Context, c *pnet.Client) error {
		return c.Add(ctx, pnet.Entry{ID: "NET1", Eth: "eth0"})
	})},
	{"netlinksmc.LinkGroupsR", true, withClient(func(ctx context.Context, c *netlinksmc.Client) error {
		_, err := c.LinkGroupsR(ctx)
		return err
	})},
	{"netlinksmc.FlushUEIDs", true, withClient(func(ctx context.Context, c *netlinksmc.Client) error { return c.FlushUEIDs(ctx) })},
	{"netlinksmc.Sockets", false, func(ctx context.Context, conn *netlink.Conn) error {
		for _, err := range netlinksmc.NewDiagFromConn(conn).Sockets(ctx, 0) {
			if err != nil {
				return err
			}
		}
		return nil
	}},
	{"smcstats.Collect", true, withClient(func(ctx context.Context, c *netlinksmc.Client) error {
		_, err := smcstats.Collect(ctx, c)
		return err
	})},
}

func withPNET(f func(context.Context, *pnet.Client) error) func(context.Context, *netlink.Conn) error {
	return func(ctx context.Context, conn *netlink.Conn) error {
		c, err := pnet.NewFromConn(genetlink.NewConn(conn))
		if err != nil {
			return err
		}
		defer c.Close()
		return f(ctx, c)
	}
}

func withClient(f func(context.Context, *netlinksmc.Client) error) func(context.Context, *netlink.Conn) error {
	return func(ctx context.Context, conn *netlink.Conn) error {
		c, err := netlinksmc.NewFromConn(genetlink.NewConn(conn))
		if err != nil {
			return err
		}
		defer c.Close()
		return f(ctx, c)
	}
}

// check checks that err is the shared error is, none of the other shared ones, and each of also.
func check(t *testing.T, err, is error, also ...error) {
	t.Helper()
	for _, shared := range []error{
		smcerr.ErrNoModule, smcerr.ErrNotSupported, smcerr.ErrPermission, smcerr.ErrDumpInterrupted, smcerr.ErrMalformed,
		smcerr.ErrChanged,
	} {
		if errors.Is(err, shared) != (shared == is) {
			t.Errorf("errors.Is(%v, %q) is %v", err, shared, shared != is)
		}
	}
	for _, other := range also {
		if !errors.Is(err, other) {
			t.Errorf("%v is not %v", err, other)
		}
	}
}

// TestRequests has each answer that fails for requests of each package. What package ism says about its own requests, which
// have no fake outside of the package, is in TestRDMADevicesErrors there.
func TestRequests(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer func(netlink.Message) []netlink.Message
		is     error
		also   []error
		dumps  bool // of no meaning for changes
	}{
		{"ENOENT", refuse(syscall.ENOENT), smcerr.ErrNoModule, []error{os.ErrNotExist, syscall.ENOENT}, true},
		{"EPERM", refuse(syscall.EPERM), smcerr.ErrPermission, []error{os.ErrPermission, syscall.EPERM}, false},
		{"EACCES", refuse(syscall.EACCES), smcerr.ErrPermission, []error{os.ErrPermission, syscall.EACCES}, false},
		{"EOPNOTSUPP", refuse(syscall.EOPNOTSUPP), smcerr.ErrNotSupported, []error{errors.ErrUnsupported}, false},
		{"EPROTONOSUPPORT", refuse(syscall.EPROTONOSUPPORT), smcerr.ErrNotSupported, nil, false},
		{"EAFNOSUPPORT", refuse(syscall.EAFNOSUPPORT), smcerr.ErrNotSupported, nil, false},
		{"ENOMEM", refuse(syscall.ENOMEM), nil, []error{syscall.ENOMEM}, false},
		{"malformed", list(0, "\x00\x01\x00\x00\xff"), smcerr.ErrMalformed, nil, true},
	} {
		for _, r := range requests {
			dump := r.name != "pnet.Add" && r.name != "netlinksmc.FlushUEIDs"
			if tt.dumps && !dump {
				continue
			}
			t.Run(tt.name+"/"+r.name, func(t *testing.T) {
				check(t, r.call(t.Context(), kernel{answer: tt.answer}.dial()), tt.is, tt.also...)
			})
		}
	}
}

// TestLookUp has each answer that fails while a client looks its family up.
func TestLookUp(t *testing.T) {
	for errno, is := range map[syscall.Errno]error{
		syscall.ENOENT: smcerr.ErrNoModule, syscall.EPERM: smcerr.ErrPermission, syscall.EOPNOTSUPP: smcerr.ErrNotSupported,
		syscall.ENOBUFS: nil,
	} {
		for _, r := range requests {
			if r.genetlink {
				t.Run(errno.Error()+"/"+r.name, func(t *testing.T) {
					check(t, r.call(t.Context(), kernel{refuseLookUp: errno}.dial()), is, errno)
				})
			}
		}
	}
}

// TestInterrupted has lists that change each time they are read.
func TestInterrupted(t *testing.T) {
	for _, conn := range []struct {
		name, data string
	}{
		{"pnet.List", "\x01\x01\x00\x00" + attrtest.Attr(1, "N") + attrtest.Attr(2, "e")},
		{"netlinksmc.LinkGroupsR", "\x02\x01\x00\x00"},
	} {
		for _, r := range requests {
			if r.name == conn.name {
				check(t, r.call(t.Context(), kernel{answer: list(netlink.DumpInterrupted, conn.data)}.dial()), smcerr.ErrDumpInterrupted)
			}
		}
	}
}

// TestChanged has a table and a policy that another program changes: both errors are of one kind.
func TestChanged(t *testing.T) {
	stale := kernel{answer: refuse(syscall.ESTALE)}
	p, err := policy.NewFromConn(genetlink.NewConn(stale.dial()))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	check(t, p.SetRules(t.Context(), 1, nil), smcerr.ErrChanged, policy.ErrChanged, syscall.ESTALE)

	c, err := pnet.NewFromConn((&pnettest.Kernel{Rows: []pnettest.Row{pnettest.Eth("OTHER", "eth1")}}).Dial())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	plan := pnet.Diff(nil, pnet.Table{{ID: "NET1", Eth: "eth0"}})
	check(t, pnet.Apply(t.Context(), c, plan), smcerr.ErrChanged, pnet.ErrChanged)
}

// TestEnded has contexts that have ended, and connections that are closed.
func TestEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, r := range requests {
		check(t, r.call(ctx, kernel{answer: refuse(syscall.EPERM)}.dial()), nil, context.Canceled)
	}
	_, err := (&ism.Scanner{Root: sysfs(t)}).Scan(ctx)
	check(t, err, nil, context.Canceled)
}

// TestFiles has what packages say about files that they may not use, or that hold garbage.
func TestFiles(t *testing.T) {
	root := sysfs(t)
	slot := &ism.Device{Slot: &ism.Slot{Name: "00000001", Switch: true}}
	setPower := func(err error) error {
		s := ism.Scanner{Root: root, WriteFile: func(string, []byte) error { return &os.PathError{Op: "write", Path: "power", Err: err} }}
		_, err = s.SetPower(t.Context(), slot, true)
		return err
	}
	check(t, setPower(syscall.EACCES), smcerr.ErrPermission, os.ErrPermission)
	check(t, setPower(syscall.ENOENT), nil, os.ErrNotExist)
	_, err := (&ism.Scanner{}).SetPower(t.Context(), &ism.Device{}, true)
	check(t, err, smcerr.ErrNotSupported, errors.ErrUnsupported)

	_, err = pnet.Sysfs{Root: root}.Interface("eth0")
	check(t, err, smcerr.ErrMalformed)
	_, err = smcstats.UnmarshalBaseline([]byte("{"))
	check(t, err, smcerr.ErrMalformed)
	_, err = smcstats.ParseLegacy([]byte("1 2 3\n"))
	check(t, err, smcerr.ErrMalformed)
}

// sysfs makes a tree with a slot that is off, and an interface whose port has no number.
func sysfs(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for path, text := range map[string]string{
		"bus/pci/slots/00000001/power": "0", "class/net/eth0/dev_port": "x",
		"class/net/eth0/device/util_string": "\xd5\xc5\xe3\xf1" + strings.Repeat("\x40", 12) + strings.Repeat("\x00", 48),
	} {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}
