// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"io"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/netlink"
	"github.com/smckit/smckit/pkg/netlinksmc"
)

func TestServices(t *testing.T) {
	want := []Service{
		{Role: Listen, Port: 80, Verdict: TCP, Unpaid: 12, Open: 1, Left: 600 * time.Second},
		{Role: Connect, Peer: netip.MustParseAddr("10.1.0.2"), Port: 80, Verdict: SMC, Paid: 1 << 40, Left: time.Second},
		{Role: Connect, Peer: netip.MustParseAddr("fd00::2"), Port: 80, Verdict: SMC},
		{Role: Connect, Peer: netip.MustParseAddr("10.1.0.1"), Port: 6379, Verdict: SMC},
	}
	c := client(t, func(greq genetlink.Message, nreq netlink.Message) (all []genetlink.Message, _ error) {
		if greq.Header.Command != netlinksmc.CmdServiceGet || nreq.Header.Flags != netlink.Request|netlink.Dump {
			t.Errorf("%+v, %+v", greq, nreq)
		}
		for _, i := range []int{2, 3, 0, 1} {
			s := want[i]
			all = append(all, genetlink.Message{Data: attributes(t, func(ae *netlink.AttributeEncoder) {
				ae.Uint8(netlinksmc.AttrServiceRole, uint8(s.Role))
				if s.Role == Connect {
					addr := s.Peer.As16()
					ae.Bytes(netlinksmc.AttrServiceAddr, addr[:])
				}
				ae.Uint16(netlinksmc.AttrServicePort, s.Port)
				ae.Uint8(netlinksmc.AttrServiceVerdict, uint8(s.Verdict))
				ae.Uint64(netlinksmc.AttrServicePaid, s.Paid)
				ae.Uint64(netlinksmc.AttrServiceUnpaid, s.Unpaid)
				ae.Uint64(netlinksmc.AttrServiceOpen, s.Open)
				ae.Uint32(netlinksmc.AttrServiceLeft, uint32(s.Left/time.Second))
			})})
		}
		return all, nil
	})
	got, err := c.Services(t.Context())
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); err != nil || diff != "" {
		t.Errorf("%v, %s", err, diff)
	}
	for i, want := range []string{":80", "10.1.0.2:80", "[fd00::2]:80", "10.1.0.1:6379"} {
		if got[i].String() != want {
			t.Errorf("%d: %v", i, got[i])
		}
	}
	client, server := Use{Role: Connect, Remote: 80, Peer: netip.MustParseAddr("::ffff:10.1.0.2")}, Use{Role: Listen, Local: 80}
	if !got[0].Is(server) || !got[1].Is(client) || got[0].Is(client) || got[1].Is(server) || got[2].Is(client) || got[3].Is(client) {
		t.Error("the services of two sockets")
	}
}

func TestFlushServices(t *testing.T) {
	asked := false
	c := client(t, func(greq genetlink.Message, nreq netlink.Message) ([]genetlink.Message, error) {
		asked = greq.Header.Command == netlinksmc.CmdServiceFlush && nreq.Header.Flags == netlink.Request|netlink.Acknowledge && len(greq.Data) == 0
		return nil, io.EOF
	})
	if err := c.FlushServices(t.Context()); err != nil || !asked {
		t.Errorf("%v, %v", err, asked)
	}
}

// FuzzParseService has answers of a kernel that cannot be trusted.
func FuzzParseService(f *testing.F) {
	f.Add([]byte("\x05\x00\x01\x00\x01\x00\x00\x00\x06\x00\x03\x00\x50\x00\x00\x00"))
	f.Add([]byte("\x08\x00\x02\x00\x0a\x01\x00\x02"))
	f.Fuzz(func(_ *testing.T, data []byte) {
		if s, err := parseService(data); err == nil {
			_ = s.String()
		}
	})
}
