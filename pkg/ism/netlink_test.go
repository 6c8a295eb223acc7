// SPDX-License-Identifier: Apache-2.0

package ism

import (
	"encoding/binary"
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/netlink"
	"github.com/mdlayher/netlink/nltest"
	"github.com/smckit/smckit/pkg/internal/nlconn"
	"github.com/smckit/smckit/pkg/smcerr"
)

// attributes encodes the attributes of a device or a port.
func attributes(t *testing.T, encode func(*netlink.AttributeEncoder)) []byte {
	t.Helper()
	ae := netlink.NewAttributeEncoder()
	encode(ae)
	b, err := ae.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// device encodes the attributes of a device. guid is left out if it is 0.
func device(t *testing.T, index uint32, name string, guid uint64) []byte {
	t.Helper()
	return attributes(t, func(ae *netlink.AttributeEncoder) {
		ae.Uint32(1, index)
		ae.String(2, name)
		if guid != 0 {
			ae.String(5, "1")
			ae.Uint64(6, guid)
		}
	})
}

// answer is what the kernel answers to one request: the bodies of a list, or an errno.
type answer struct {
	errno  syscall.Errno
	bodies [][]byte
	// interrupted marks the list as one that changed while it was read.
	interrupted bool
}

// replies returns the messages of the answer to req. nltest's own error has the flags of the request, which mean other
// things in an answer.
func (a answer) replies(req netlink.Message) ([]netlink.Message, error) {
	reply := func(typ netlink.HeaderType, data []byte) netlink.Message {
		return netlink.Message{
			Header: netlink.Header{Type: typ, Sequence: req.Header.Sequence, PID: req.Header.PID},
			Data:   data,
		}
	}
	if a.errno != 0 {
		return []netlink.Message{reply(netlink.Error, binary.NativeEndian.AppendUint32(nil, -uint32(a.errno)))}, nil
	}
	var out []netlink.Message
	for _, b := range a.bodies {
		m := reply(req.Header.Type, b)
		if a.interrupted {
			m.Header.Flags |= netlink.DumpInterrupted
		}
		out = append(out, m)
	}
	return nltest.Multipart(append(out, reply(netlink.Done, make([]byte, 4))))
}

// rdmaKernel is a connection to a kernel with RDMA devices: devices answers the request for them, ports that for the ports
// of the device with an index.
func rdmaKernel(t *testing.T, devices answer, ports map[uint32]answer) *nlconn.Conn {
	t.Helper()
	conn := nlconn.New(nltest.Dial(func(req []netlink.Message) ([]netlink.Message, error) {
		if len(req) != 1 || req[0].Header.Flags != netlink.Request|netlink.Dump {
			t.Fatalf("request %+v", req)
		}
		switch req[0].Header.Type {
		case 5<<10 | 1:
			return devices.replies(req[0])
		case 5<<10 | 5:
			ad, err := netlink.NewAttributeDecoder(req[0].Data)
			if err != nil || !ad.Next() || ad.Type() != 1 {
				t.Fatalf("request without the index of a device: %x", req[0].Data)
			}
			return ports[ad.Uint32()].replies(req[0])
		}
		t.Fatalf("request %+v", req)
		return nil, nil
	}), nil)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestRDMADevices(t *testing.T) {
	conn := rdmaKernel(t, answer{bodies: [][]byte{
		device(t, 7, "rxe0", 0x505400fffe123456), device(t, 8, "gone", 0), device(t, 9, "x", 0),
	}}, map[uint32]answer{
		7: {bodies: [][]byte{
			attributes(t, func(ae *netlink.AttributeEncoder) {
				ae.Uint32(3, 1)
				ae.Uint8(12, 4)
				ae.Uint32(50, 2)
				ae.String(51, "eth0")
				ae.Bytes(9999, []byte{1, 2, 3})
			}),
			attributes(t, func(ae *netlink.AttributeEncoder) {
				ae.Uint32(3, 2)
				ae.Uint8(12, 99)
			}),
			attributes(t, func(ae *netlink.AttributeEncoder) { ae.Uint32(3, 256) }),
			{},
		}},
		8: {errno: syscall.ENODEV},
	})
	got, err := rdmaDevices(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	want := []RDMADevice{
		{
			Name: "rxe0", Firmware: "1", NodeGUID: "5054:00ff:fe12:3456",
			Ports: []RDMAPort{{Number: 1, State: "ACTIVE", NetDev: "eth0"}, {Number: 2, State: "0x63"}},
		},
		{Name: "x"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("devices (-want +got):\n%s", diff)
	}
}

// TestRDMADevicesErrors has each error of both requests, and what it is to errors.Is.
func TestRDMADevicesErrors(t *testing.T) {
	one := answer{bodies: [][]byte{device(t, 1, "rxe0", 0)}}
	malformed := answer{bodies: [][]byte{{1, 0, 3, 0}}}
	interrupted := answer{bodies: one.bodies, interrupted: true}
	for name, tt := range map[string]struct {
		devices, ports answer
		is             []error
		text           string
	}{
		"devices, no right": {
			devices: answer{errno: syscall.EPERM}, is: []error{smcerr.ErrPermission, os.ErrPermission, syscall.EPERM},
			text: "listing RDMA devices by netlink: permission denied: run as root, that is with CAP_NET_ADMIN in the initial user namespace",
		},
		"devices, no such request": {
			devices: answer{errno: syscall.EOPNOTSUPP}, is: []error{ErrNotSupported, errors.ErrUnsupported},
			text: "listing RDMA devices by netlink: not supported",
		},
		"devices, no memory": {
			devices: answer{errno: syscall.ENOMEM}, is: []error{syscall.ENOMEM},
			text: "listing RDMA devices by netlink: cannot allocate memory",
		},
		"devices, malformed": {devices: malformed, is: []error{smcerr.ErrMalformed}},
		"devices, interrupted": {
			devices: interrupted, is: []error{smcerr.ErrDumpInterrupted},
			text: "listing RDMA devices by netlink: changed while it was read: try again",
		},
		"ports, no right":    {devices: one, ports: answer{errno: syscall.EACCES}, is: []error{smcerr.ErrPermission, os.ErrPermission}},
		"ports, no memory":   {devices: one, ports: answer{errno: syscall.ENOMEM}, is: []error{syscall.ENOMEM}},
		"ports, malformed":   {devices: one, ports: malformed, is: []error{smcerr.ErrMalformed}},
		"ports, interrupted": {devices: one, ports: interrupted, is: []error{smcerr.ErrDumpInterrupted}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := rdmaDevices(t.Context(), rdmaKernel(t, tt.devices, map[uint32]answer{1: tt.ports}))
			for _, is := range tt.is {
				if !errors.Is(err, is) {
					t.Errorf("%v is not %v", err, is)
				}
			}
			if tt.text != "" && (err == nil || err.Error() != tt.text) {
				t.Errorf("got %v, want %s", err, tt.text)
			}
		})
	}
}

func FuzzParsePort(f *testing.F) {
	f.Add([]byte{8, 0, 3, 0, 1, 0, 0, 0})
	f.Add([]byte{5, 0, 12, 0, 4, 0, 0, 0})
	f.Add([]byte{7, 0, 51, 0, 'e', 'n', 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, err := parsePort(b); err == nil && len(p.NetDev) > len(b) {
			t.Errorf("%+v out of %d bytes", p, len(b))
		}
	})
}

func FuzzParseDevice(f *testing.F) {
	f.Add([]byte{8, 0, 1, 0, 1, 0, 0, 0})
	f.Add([]byte{7, 0, 2, 0, 'r', 'x', 0, 0})
	f.Add([]byte{12, 0, 6, 0, 1, 2, 3, 4, 5, 6, 7, 8})
	f.Fuzz(func(t *testing.T, b []byte) {
		if d, err := parseDevice(b); err == nil && len(d.Name)+len(d.Firmware) > len(b) {
			t.Errorf("%+v out of %d bytes", d, len(b))
		}
	})
}
