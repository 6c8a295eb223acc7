// SPDX-License-Identifier: Apache-2.0

package smcpolicy

import (
	"encoding/json"
	"net/netip"
	"testing"
	"time"

	"github.com/smckit/smckit/internal/jsondoc/jsontest"
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

// TestExplainRemembered has explain name the reason for which connections to a server are TCP although a rule says SMC: for the user who has
// tried, and for sockets that would use SMC.
func TestExplainRemembered(t *testing.T) {
	h := newHarness(t, "tcp port 80", "smc")
	server := netip.MustParseAddr("10.1.0.2")
	who := h.sys.self()
	for _, p := range []policy.Peer{
		{Port: 6379, Role: policy.Listen, User: who.User},
		{Port: 6379, Role: policy.Connect, User: who.User + 1},
		{Port: 6379, Role: policy.Connect, User: who.User, Interface: 1 << 30},
		{Port: 6380, Role: policy.Connect, User: who.User},
		{Port: 80, Role: policy.Connect, User: who.User},
	} {
		p.Address, p.Reason, p.Left = server, netlinksmc.ReasonNoDevice, 42*time.Second
		h.kernel.peers = append(h.kernel.peers, p)
	}
	const maker = "socket of user www-data group www-data cgroup user.slice\n"
	const smc = "TCP socket: smc; SMC socket: smc (rule 2: smc)\n"
	h.expect(0, maker+"10.1.0.2:6379: "+smc, "", "explain", "10.1.0.2:6379")
	h.expect(0, maker+"10.1.0.2:80: TCP socket: tcp; SMC socket: tcp (rule 1: tcp port 80)\n", "", "explain", "10.1.0.2:80")
	h.expect(0, maker+"10.1.0.2:6380: "+smc+"10.1.0.2:6380: TCP for 42 seconds more, because SMC was not possible ("+
		peerReason(policy.Peer{Reason: netlinksmc.ReasonNoDevice})+")\n", "", "explain", "10.1.0.2:6380")
	h.run("explain", "--json", "10.1.0.2:6380")
	jsontest.Check(t, h.out.Bytes())
	var out explainJSON
	if err := json.Unmarshal(h.out.Bytes(), &out); err != nil || len(out.Answers) != 1 || out.Answers[0].SecondsLeft != 42 ||
		out.Answers[0].Reason.Name != netlinksmc.ReasonNoDevice.Name() {
		t.Errorf("%v: %s", err, h.out.String())
	}
}
