// SPDX-License-Identifier: Apache-2.0

package ism

import (
	"encoding/binary"
	"errors"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	mdnetlink "github.com/mdlayher/netlink"
	"github.com/mdlayher/netlink/nltest"
	"github.com/vishvananda/netlink"
)

// attributes encodes the attributes of a port.
func attributes(t *testing.T, encode func(*mdnetlink.AttributeEncoder)) []byte {
	t.Helper()
	ae := mdnetlink.NewAttributeEncoder()
	encode(ae)
	b, err := ae.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// reply answers a request.
func reply(req mdnetlink.Message, typ mdnetlink.HeaderType, data []byte) mdnetlink.Message {
	return mdnetlink.Message{
		Header: mdnetlink.Header{Type: typ, Sequence: req.Header.Sequence, PID: req.Header.PID},
		Data:   data,
	}
}

// refusal answers with an errno. The one of nltest copies the flags of the request, which mean other things in answers.
func refusal(req mdnetlink.Message, errno syscall.Errno) ([]mdnetlink.Message, error) {
	code := binary.NativeEndian.AppendUint32(nil, -uint32(errno))
	return []mdnetlink.Message{reply(req, mdnetlink.Error, code)}, nil
}

func TestRDMADevices(t *testing.T) {
	links := []*netlink.RdmaLink{
		{Attrs: netlink.RdmaLinkAttrs{Index: 7, Name: "rxe0", FirmwareVersion: "1", NodeGuid: "56:34:12:fe:ff:00:54:50"}},
		{Attrs: netlink.RdmaLinkAttrs{Index: 8, Name: "gone"}},
		{Attrs: netlink.RdmaLinkAttrs{Index: 9, Name: "x", NodeGuid: "short"}},
	}
	answers := map[uint32][][]byte{
		7: {
			attributes(t, func(ae *mdnetlink.AttributeEncoder) {
				ae.Uint32(nldevAttrPortIndex, 1)
				ae.Uint8(nldevAttrPortState, 4)
				ae.Uint32(50, 2)
				ae.String(nldevAttrNdevName, "eth0")
				ae.Bytes(9999, []byte{1, 2, 3})
			}),
			attributes(t, func(ae *mdnetlink.AttributeEncoder) {
				ae.Uint32(nldevAttrPortIndex, 2)
				ae.Uint8(nldevAttrPortState, 99)
			}),
			attributes(t, func(ae *mdnetlink.AttributeEncoder) { ae.Uint32(nldevAttrPortIndex, 256) }),
			{},
		},
		9: {},
	}
	conn := nltest.Dial(func(req []mdnetlink.Message) ([]mdnetlink.Message, error) {
		if len(req) != 1 || req[0].Header.Type != 5<<10|5 || req[0].Header.Flags != mdnetlink.Request|mdnetlink.Dump {
			t.Errorf("request %+v", req)
		}
		ad, err := mdnetlink.NewAttributeDecoder(req[0].Data)
		if err != nil || !ad.Next() || ad.Type() != nldevAttrDevIndex {
			t.Fatalf("request without the index of a device: %x", req[0].Data)
		}
		bodies, ok := answers[ad.Uint32()]
		if !ok {
			return refusal(req[0], syscall.ENODEV)
		}
		out := []mdnetlink.Message{}
		for _, b := range bodies {
			out = append(out, reply(req[0], nldev|nldevPortGet, b))
		}
		return nltest.Multipart(append(out, reply(req[0], mdnetlink.Done, make([]byte, 4))))
	})
	defer conn.Close()
	got, err := rdmaDevices(conn, links)
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

func TestRDMADevicesFails(t *testing.T) {
	links := []*netlink.RdmaLink{{Attrs: netlink.RdmaLinkAttrs{Name: "rxe0"}}}
	conn := nltest.Dial(func(req []mdnetlink.Message) ([]mdnetlink.Message, error) {
		return refusal(req[0], syscall.ENOMEM)
	})
	defer conn.Close()
	if _, err := rdmaDevices(conn, links); !errors.Is(err, syscall.ENOMEM) {
		t.Errorf("error %v", err)
	}
	conn = nltest.Dial(func(req []mdnetlink.Message) ([]mdnetlink.Message, error) {
		return []mdnetlink.Message{reply(req[0], nldev|nldevPortGet, []byte{1, 0, 3, 0})}, nil
	})
	defer conn.Close()
	if _, err := rdmaDevices(conn, links); err == nil {
		t.Error("a malformed port is accepted")
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
