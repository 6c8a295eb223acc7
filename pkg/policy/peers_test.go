// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"io"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/genetlink/genltest"
	"github.com/mdlayher/netlink"
	"github.com/smckit/smckit/pkg/internal/attrtest"
	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/smckit/smckit/pkg/smcerr"
)

func peerMessage(t *testing.T, p Peer) genetlink.Message {
	t.Helper()
	return genetlink.Message{Data: attributes(t, func(ae *netlink.AttributeEncoder) {
		addr := p.Address.As16()
		ae.Bytes(netlinksmc.AttrPeerAddress, addr[:])
		if p.Interface != 0 {
			ae.Uint32(netlinksmc.AttrPeerIfindex, p.Interface)
		}
		if p.Role == Connect {
			ae.Uint32(netlinksmc.AttrPeerUID, p.User)
		}
		ae.Uint16(netlinksmc.AttrPeerPort, p.Port)
		ae.Uint8(netlinksmc.AttrPeerRole, uint8(p.Role))
		ae.Uint32(netlinksmc.AttrPeerReason, uint32(p.Reason))
		ae.Uint32(netlinksmc.AttrPeerDiagnosis, uint32(p.PeerReason))
		ae.Uint32(netlinksmc.AttrPeerSeconds, uint32(p.Left/time.Second))
	})}
}

func TestPeers(t *testing.T) {
	want := []Peer{
		{Address: netip.MustParseAddr("10.0.0.2"), Port: 5432, Role: Listen, Reason: netlinksmc.ReasonNoUEID, Left: time.Minute},
		{
			Address: netip.MustParseAddr("fe80::1"), Interface: 3, Port: 80, Role: Connect, Reason: netlinksmc.ReasonPeerDeclined,
			PeerReason: netlinksmc.ReasonNoDevice, User: 1000, Left: time.Second,
		},
	}
	c := client(t, func(greq genetlink.Message, nreq netlink.Message) ([]genetlink.Message, error) {
		if greq.Header.Command != netlinksmc.CmdPeerGet || nreq.Header.Flags != netlink.Request|netlink.Dump {
			t.Errorf("%+v, %+v", greq, nreq)
		}
		return []genetlink.Message{peerMessage(t, want[0]), peerMessage(t, want[1])}, nil
	})
	got, err := c.Peers(t.Context())
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{})); err != nil || diff != "" {
		t.Errorf("%v, %s", err, diff)
	}
	none := client(t, func(genetlink.Message, netlink.Message) ([]genetlink.Message, error) { return nil, nil })
	if got, err := none.Peers(t.Context()); err != nil || got == nil || len(got) != 0 {
		t.Errorf("no peers: %v, %v", got, err)
	}
	bad := client(t, func(genetlink.Message, netlink.Message) ([]genetlink.Message, error) {
		return []genetlink.Message{{Data: []byte(attrtest.Attr(1, "\x01\x02\x03\x04") + attrtest.Attr(2, "\x01\x00\x00\x00\x00"))}}, nil
	})
	if _, err := bad.Peers(t.Context()); !errors.Is(err, smcerr.ErrMalformed) {
		t.Errorf("malformed: %v", err)
	}
}

func TestForgetPeers(t *testing.T) {
	var got netlink.HeaderFlags
	c := client(t, func(greq genetlink.Message, nreq netlink.Message) ([]genetlink.Message, error) {
		if greq.Header.Command != netlinksmc.CmdPeerFlush || len(greq.Data) != 0 {
			t.Errorf("%+v", greq)
		}
		got = nreq.Header.Flags
		return nil, io.EOF
	})
	if err := c.ForgetPeers(t.Context()); err != nil || got != netlink.Request|netlink.Acknowledge {
		t.Errorf("%v, %v", got, err)
	}
	refused := client(t, func(genetlink.Message, netlink.Message) ([]genetlink.Message, error) {
		return nil, genltest.Error(int(syscall.EOPNOTSUPP))
	})
	if err := refused.ForgetPeers(t.Context()); !errors.Is(err, smcerr.ErrNotSupported) {
		t.Errorf("an older module: %v", err)
	}
}

// FuzzParsePeer has answers of a kernel that cannot be trusted.
func FuzzParsePeer(f *testing.F) {
	f.Add([]byte("\x14\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\x0a\x09\x00\x00\x06\x00\x03\x00\x50\x00\x00\x00"))
	f.Add([]byte("\x08\x00\x01\x00\x01\x02\x03\x04"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := parsePeer(genetlink.Message{Data: data})
		if err == nil && p.Address.Is4In6() {
			t.Errorf("%v", p)
		}
	})
}
