// SPDX-License-Identifier: Apache-2.0

package smcpolicy

import (
	"net/netip"
	"testing"
	"time"

	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/smckit/smckit/pkg/policy"
	"github.com/smckit/smckit/pkg/smcerr"
)

func TestPeers(t *testing.T) {
	h := newHarness(t)
	h.expect(0, "There are no peers with which SMC was not possible.\n", "", "peers")
	h.expect(0, "{\n  \"schema\": 1,\n  \"peers\": []\n}\n", "", "peers", "--json=1")
	h.kernel.peers = []policy.Peer{
		{Address: netip.MustParseAddr("10.0.0.2"), Port: 5432, Role: policy.Listen, Reason: netlinksmc.ReasonNoUEID, Left: time.Minute},
		{
			Address: netip.MustParseAddr("fd00::1"), Port: 80, Role: policy.Connect, Reason: netlinksmc.ReasonPeerDeclined,
			PeerReason: netlinksmc.ReasonNoDevice, User: 1000, Left: time.Second,
		},
		// Interfaces that have gone.
		{Address: netip.MustParseAddr("fe80::1"), Interface: 1 << 30, Port: 1, Role: policy.Connect, Reason: 0x1234, Left: time.Second},
		{Address: netip.MustParseAddr("10.0.0.3"), Interface: 1 << 30, Port: 1, Role: policy.Connect, Reason: netlinksmc.ReasonMode},
	}
	h.expect(0, "Peer                    Role     UID   Left  Reason\n"+
		"10.0.0.2:5432           listen   -     60 s  0x03030008 NOUEID: the peer offered no user EID that this host knows\n"+
		"[fd00::1]:80            connect  1000  1 s   0x05000000/0x03030000 NOSMCDEV: neither an RDMA nor an ISM device is usable\n"+
		"[fe80::1%1073741824]:1  connect  0     1 s   0x00001234\n"+
		"10.0.0.3%1073741824:1   connect  0     0 s   0x03040000 MODEUNSUPP: one side wants SMC-R, the other SMC-D\n", "", "peers")
	h.kernel.peers = h.kernel.peers[1:2]
	h.expect(0, `{
  "schema": 1,
  "peers": [
    {
      "address": "fd00::1",
      "port": 80,
      "role": "connect",
      "reason": {
        "code": "0x05000000",
        "name": "PEERDECL",
        "text": "the peer declined in the handshake"
      },
      "peer_reason": {
        "code": "0x03030000",
        "name": "NOSMCDEV",
        "text": "neither an RDMA nor an ISM device is usable"
      },
      "uid": 1000,
      "seconds_left": 1
    }
  ]
}
`, "", "peers", "--json=1")
	h.expect(0, "would forget [fd00::1]:80 connect\n", "", "peers", "flush", "--check")
	h.expect(0, "forgot [fd00::1]:80 connect\n", "", "peers", "flush")
	h.expect(0, "unchanged\n", "", "peers", "flush")
	h.expect(0, "{\n  \"schema\": 1,\n  \"changed\": false,\n  \"check\": false,\n  \"forgotten\": []\n}\n", "", "peers", "flush", "--json=1")
	h.expect(0, "There are no peers with which SMC was not possible.\n", "", "peers", "show")
	for _, args := range [][]string{{"peers", "10.0.0.2"}, {"peers", "flush", "10.0.0.2"}} {
		if status := h.run(args...); status != 2 {
			t.Errorf("%q: status %d", args, status)
		}
	}
	h.kernel.err = &smcerr.Error{Op: "read the peers", Kind: smcerr.ErrNotSupported, Remedy: "the module is older"}
	h.expect(1, "", "smc_policy: read the peers: not supported: the module is older\n", "peers")
}
