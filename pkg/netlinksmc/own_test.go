// SPDX-License-Identifier: Apache-2.0

package netlinksmc

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/genetlink/genltest"
	"github.com/mdlayher/netlink"
	"github.com/smckit/smckit/pkg/smcerr"
)

const ownID = 0x77

// ownClient returns a Client of a module that has the family smckit, where fn answers requests of it, or does not if fn
// is nil.
func ownClient(t *testing.T, fn genltest.Func) *Client {
	t.Helper()
	conn := genltest.Dial(func(greq genetlink.Message, nreq netlink.Message) ([]genetlink.Message, error) {
		if nreq.Header.Type == ownID {
			return fn(greq, nreq)
		}
		id := uint16(testFamily)
		if strings.Contains(string(greq.Data), "smckit\x00") {
			if fn == nil {
				return nil, genltest.Error(int(syscall.ENOENT))
			}
			id = ownID
		}
		attr := append(appendHeader(nil, 1, 2), 0, 0, 0, 0)
		binary.NativeEndian.PutUint16(attr[attrHeaderLen:], id)
		return []genetlink.Message{{Data: attr}}, nil
	})
	c, err := NewFromConn(conn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestDeleteLinkGroup(t *testing.T) {
	for tech, call := range map[byte]func(c *Client) error{
		techSMCR: func(c *Client) error { return c.DeleteLinkGroupR(t.Context(), 0x1200) },
		techSMCD: func(c *Client) error { return c.DeleteLinkGroupD(t.Context(), 0x1200) },
	} {
		requests := 0
		c := ownClient(t, func(greq genetlink.Message, nreq netlink.Message) ([]genetlink.Message, error) {
			requests++
			want := join(u32(1, 0x1200), u8(2, tech))
			diff(t, genetlink.Header{Command: 1, Version: 1}, greq.Header)
			diff(t, string(want), string(greq.Data))
			diff(t, netlink.Request|netlink.Acknowledge, nreq.Header.Flags)
			return nil, io.EOF
		})
		if err := call(c); err != nil || requests != 1 {
			t.Errorf("technology %d: %d requests, %v", tech, requests, err)
		}
	}
}

func TestDeleteLinkGroupErrors(t *testing.T) {
	for errno, want := range map[syscall.Errno]struct {
		is   error
		text string
	}{
		syscall.ENOENT: {
			ErrLinkGroupNotFound, "delete link group 00001200: link group not found: 'smcr linkgroup' lists link groups; " +
				"a shared one can be deleted in the network namespace of the RDMA device",
		},
		syscall.EPERM: {
			os.ErrPermission, "delete link group 00001200: permission denied: run as root, that is with CAP_NET_ADMIN in the user " +
				"namespace that owns the network namespace",
		},
	} {
		c := ownClient(t, func(genetlink.Message, netlink.Message) ([]genetlink.Message, error) {
			return nil, genltest.Error(int(errno))
		})
		err := c.DeleteLinkGroupR(t.Context(), 0x1200)
		if !errors.Is(err, want.is) || err.Error() != want.text || errors.Is(err, ErrNoModule) {
			t.Errorf("%v: %v", errno, err)
		}
	}
	c := ownClient(t, func(genetlink.Message, netlink.Message) ([]genetlink.Message, error) {
		return nil, genltest.Error(int(syscall.ENOENT))
	})
	const notFound = "delete link group 00001200: link group not found: 'smcd linkgroup' lists the link groups of this network namespace"
	if err := c.DeleteLinkGroupD(t.Context(), 0x1200); err == nil || err.Error() != notFound {
		t.Errorf("SMC-D: %v", err)
	}
	err := ownClient(t, nil).DeleteLinkGroupD(t.Context(), 0x1200)
	const stock = "delete link group 00001200: not supported: the loaded SMC module does not support this: " +
		"install smckit's module (package smckit-dkms)"
	if !errors.Is(err, ErrNotSupported) || err.Error() != stock {
		t.Errorf("a stock module: %v", err)
	}
}

func TestDeleteLink(t *testing.T) {
	requests := 0
	c := ownClient(t, func(greq genetlink.Message, nreq netlink.Message) ([]genetlink.Message, error) {
		requests++
		want := join(u32(1, 0x1200), u8(3, 2))
		diff(t, genetlink.Header{Command: 2, Version: 1}, greq.Header)
		diff(t, string(want), string(greq.Data))
		diff(t, netlink.Request|netlink.Acknowledge, nreq.Header.Flags)
		return nil, io.EOF
	})
	if err := c.DeleteLink(t.Context(), 0x1200, 2); err != nil || requests != 1 {
		t.Errorf("%d requests, %v", requests, err)
	}
}

func TestDeleteLinkErrors(t *testing.T) {
	const unsupported = "not supported: the loaded SMC module does not support this: install smckit's module (package smckit-dkms)"
	for errno, want := range map[syscall.Errno]struct {
		is   error
		text string
	}{
		syscall.ENOENT: {
			ErrLinkNotFound, "link not found: 'smcr -d link' lists links; one of a shared group can be deleted in the network namespace " +
				"of the RDMA device",
		},
		syscall.EBUSY: {ErrOnlyLink, "the only usable link of its group: 'smcr linkgroup delete 00001200' ends the whole group"},
		syscall.EPERM: {
			os.ErrPermission, "permission denied: run as root, that is with CAP_NET_ADMIN in the user namespace that owns the network " +
				"namespace",
		},
		syscall.EOPNOTSUPP: {ErrNotSupported, unsupported},
		syscall.ENOMEM:     {syscall.ENOMEM, "cannot allocate memory"},
		0:                  {ErrNotSupported, unsupported}, // a stock module
	} {
		answer := func(genetlink.Message, netlink.Message) ([]genetlink.Message, error) {
			return nil, genltest.Error(int(errno))
		}
		if errno == 0 {
			answer = nil
		}
		err := ownClient(t, answer).DeleteLink(t.Context(), 0x1200, 2)
		if text := "delete link 02 of link group 00001200: " + want.text; !errors.Is(err, want.is) || err.Error() != text {
			t.Errorf("errno %d: %v", errno, err)
		}
		if _, is := errors.AsType[*smcerr.Error](err); !is || errno != 0 && errors.Is(err, ErrNoModule) {
			t.Errorf("errno %d: %#v", errno, err)
		}
	}
}
