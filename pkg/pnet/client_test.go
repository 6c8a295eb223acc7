// SPDX-License-Identifier: Apache-2.0

package pnet_test

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/genetlink/genltest"
	"github.com/mdlayher/netlink"
	"github.com/mdlayher/netlink/nltest"
	"github.com/smckit/smckit/internal/pnettest"
	"github.com/smckit/smckit/pkg/internal/attrtest"
	"github.com/smckit/smckit/pkg/pnet"
	"golang.org/x/sys/unix"
)

func dial(t *testing.T, k *pnettest.Kernel) *pnet.Client {
	t.Helper()
	c, err := pnet.NewFromConn(k.Dial())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// methods are all requests of a Client, for tables of methods and errors.
var methods = map[string]func(context.Context, *pnet.Client) error{
	"List":   func(ctx context.Context, c *pnet.Client) error { _, err := c.List(ctx); return err },
	"Add":    func(ctx context.Context, c *pnet.Client) error { return c.Add(ctx, eth("NET1", "eth0")) },
	"Delete": func(ctx context.Context, c *pnet.Client) error { return c.Delete(ctx, "NET1") },
	"Flush":  func(ctx context.Context, c *pnet.Client) error { return c.Flush(ctx) },
}

func TestClientList(t *testing.T) {
	k := &pnettest.Kernel{}
	c := dial(t, k)
	if got, err := c.List(t.Context()); err != nil || len(got) != 0 {
		t.Errorf("empty table: %v, %v", got, err)
	}
	k.Rows = []pnettest.Row{
		pnettest.Eth("NET1", "eth0"), pnettest.IB("NET1", "mlx4_0", 2), pnettest.Eth("NET\xd6", "\xff"),
		{ID: "OLD", Eth: "eth1", IB: "mlx5_0", Port: 1},
	}
	got, err := c.List(t.Context())
	want := pnet.Table{
		eth("NET1", "eth0"), ib("NET1", "mlx4_0", 2), eth("NET\xd6", "\xff"), eth("OLD", "eth1"), ib("OLD", "mlx5_0", 1),
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestClientRequests(t *testing.T) {
	tests := []struct {
		name    string
		do      func(context.Context, *pnet.Client) error
		command uint8
		flags   netlink.HeaderFlags
		data    string
	}{
		{name: "List", do: methods["List"], command: 1, flags: netlink.Request | netlink.Dump},
		{
			name: "Add eth", do: methods["Add"], command: 2, flags: netlink.Request | netlink.Acknowledge,
			data: attrtest.Attr(1, "NET1\x00") + attrtest.Attr(2, "eth0\x00"),
		},
		{
			name:    "Add ib",
			do:      func(ctx context.Context, c *pnet.Client) error { return c.Add(ctx, ib("NET1", "m", 2)) },
			command: 2, flags: netlink.Request | netlink.Acknowledge,
			data: attrtest.Attr(1, "NET1\x00") + attrtest.Attr(3, "m\x00") + attrtest.Attr(4, "\x02"),
		},
		{
			name: "Delete", do: methods["Delete"], command: 3, flags: netlink.Request | netlink.Acknowledge,
			data: attrtest.Attr(1, "NET1\x00"),
		},
		{name: "Flush", do: methods["Flush"], command: 4, flags: netlink.Request | netlink.Acknowledge},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			asked := false
			check := func(g genetlink.Message, _ netlink.Message) ([]genetlink.Message, error) {
				asked = true
				if g.Header.Version != 1 {
					t.Errorf("version %d", g.Header.Version)
				}
				if diff := cmp.Diff(tt.data, string(g.Data)); diff != "" {
					t.Error(diff)
				}
				return nil, io.EOF
			}
			family := genetlink.Family{ID: 33, Name: "SMC_PNETID", Version: 1}
			c, err := pnet.NewFromConn(genltest.Dial(
				genltest.ServeFamily(family, genltest.CheckRequest(33, tt.command, tt.flags, check))))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if err := tt.do(t.Context(), c); err != nil || !asked {
				t.Errorf("error %v, asked %v", err, asked)
			}
		})
	}
}

func TestClientErrors(t *testing.T) {
	tests := []struct {
		errno  syscall.Errno
		method string // "" is all
		is     []error
		text   string
	}{
		{errno: syscall.EPERM, is: []error{os.ErrPermission}, text: "permission denied: run as root, that is with CAP_NET_ADMIN"},
		{errno: syscall.EACCES, is: []error{os.ErrPermission}, text: "permission denied: run as root"},
		{errno: syscall.EOPNOTSUPP, is: []error{pnet.ErrNotSupported}, text: "not supported"},
		{errno: syscall.ENOMEM, is: []error{syscall.ENOMEM}, text: "cannot allocate memory"},
		{errno: syscall.ENOENT, method: "List", is: []error{pnet.ErrNoModule, os.ErrNotExist}, text: "SMC module not loaded: run"},
		{errno: syscall.ENOENT, method: "Add", is: []error{pnet.ErrNoModule, os.ErrNotExist}, text: "SMC module not loaded: run"},
		{errno: syscall.ENOENT, method: "Delete", is: []error{pnet.ErrNoID}, text: "deleting PNET ID NET1: not in the table"},
		{errno: syscall.ENOENT, method: "Flush"},
		{errno: syscall.EEXIST, method: "Add", is: []error{pnet.ErrRefused, os.ErrExist}, text: "adding NET1 eth eth0: the device has"},
		{errno: syscall.EINVAL, method: "Add", is: []error{syscall.EINVAL}, text: "adding NET1 eth eth0: refused by the kernel as invalid"},
		{errno: syscall.ERANGE, method: "Add", is: []error{syscall.ERANGE}, text: "refused by the kernel as too long"},
	}
	for _, tt := range tests {
		for name, do := range methods {
			if tt.method != "" && tt.method != name {
				continue
			}
			c, err := pnet.NewFromConn(refuse(tt.errno))
			if err != nil {
				t.Fatal(err)
			}
			err = do(t.Context(), c)
			c.Close()
			if len(tt.is) == 0 {
				if err != nil {
					t.Errorf("%s, %v: %v", name, tt.errno, err)
				}
				continue
			}
			for _, is := range tt.is {
				if !errors.Is(err, is) {
					t.Errorf("%s, %v: %v is not %v", name, tt.errno, err, is)
				}
			}
			var op *netlink.OpError
			if !errors.As(err, &op) || !strings.Contains(err.Error(), tt.text) || strings.Contains(err.Error(), "netlink") {
				t.Errorf("%s, %v: error %q, want %q", name, tt.errno, err, tt.text)
			}
		}
	}
}

// refuse returns a connection to a kernel that answers all requests to the family with errno. It is below genltest,
// whose error replies to a dump carry the flags of the request, which mean something else in a reply.
func refuse(errno syscall.Errno) *genetlink.Conn {
	return genetlink.NewConn(nltest.Dial(func(reqs []netlink.Message) ([]netlink.Message, error) {
		if reqs[0].Header.Type == unix.GENL_ID_CTRL {
			reply := reqs[0]
			reply.Header.Flags = 0
			reply.Data = []byte("\x01\x02\x00\x00" + attrtest.Attr(1, "\x21\x21"))
			return []netlink.Message{reply}, nil
		}
		replies, err := nltest.Error(int(errno), reqs)
		replies[0].Header.Flags = 0
		return replies, err
	}))
}

func TestClientNoModule(t *testing.T) {
	_, err := pnet.NewFromConn((&pnettest.Kernel{NoModule: true}).Dial())
	if !errors.Is(err, pnet.ErrNoModule) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
	if want := "SMC module not loaded: run 'modprobe smc', or use a kernel that has it"; err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
}

// TestClientLookUpMalformed has answers to the look-up of the family that make no sense.
func TestClientLookUpMalformed(t *testing.T) {
	tests := map[string][]genetlink.Message{
		"no message": {},
		"no number":  {{Data: []byte(attrtest.Attr(3, "\x01\x00\x00\x00"))}},
		"short":      {{Data: []byte(attrtest.Attr(1, "\x01"))}},
		"garbage":    {{Data: []byte("\xff\xff\x01")}},
	}
	for name, replies := range tests {
		_, err := pnet.NewFromConn(genltest.Dial(func(genetlink.Message, netlink.Message) ([]genetlink.Message, error) {
			if len(replies) == 0 {
				return nil, io.EOF
			}
			return replies, nil
		}))
		if !errors.Is(err, pnet.ErrMalformed) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestClientContext(t *testing.T) {
	k := &pnettest.Kernel{}
	c := dial(t, k)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, do := range methods {
		if err := do(ctx, c); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if len(k.Log) > 0 {
		t.Errorf("the kernel was asked: %q", k.Log)
	}
}

func TestClientAddInvalid(t *testing.T) {
	k := &pnettest.Kernel{}
	c := dial(t, k)
	for _, e := range []pnet.Entry{{}, eth("net1", "eth0"), eth("NET1", "n/a"), ib("NET1", "mlx4_0", 0)} {
		var invalid *pnet.InvalidError
		if err := c.Add(t.Context(), e); !errors.As(err, &invalid) {
			t.Errorf("%v: error %v", e, err)
		}
	}
	if len(k.Log) > 0 {
		t.Errorf("the kernel was asked: %q", k.Log)
	}
}
