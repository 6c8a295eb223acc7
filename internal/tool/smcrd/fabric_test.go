// SPDX-License-Identifier: Apache-2.0

package smcrd

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/smckit/smckit/pkg/netlinksmc"
)

// fabricHost returns a host with the loopback device, and with a fabric that a link group uses.
func fabricHost() *fake {
	f := populated()
	f.devicesD = []netlinksmc.Device{
		{CHID: 0xffff, PCIID: "loopback-ism", Ports: []netlinksmc.Port{{Number: 1}}},
		{
			CHID: 0xff01, Vendor: 0x1af4, Device: 0x1110, PCIID: "0000:00:05.0", UseCount: 1, Critical: true,
			Ports: []netlinksmc.Port{{Number: 1, PNETID: "NET1", PNETIDByUser: true}},
		},
	}
	f.groupsD = []netlinksmc.LinkGroupD{{
		ID: 0x100, Conns: 2, V2: &netlinksmc.LinkGroupV2{
			Version: 2, Release: 1, PeerOS: netlinksmc.PeerOSLinux, EID: "MYHOST.BLUE", PeerHost: "guest2",
		},
		GID: 0x1122334455667788, PeerGID: 0x1122334455667788, ExtGID: some[uint64](0x0100000000000abc),
		PeerExtGID: some[uint64](0x0200000000000def), CHID: some[uint16](0xff01), SndbufAlloc: some[uint64](0), DMBAlloc: some[uint64](131072),
	}}
	return f
}

// TestFabric checks what is shown of a fabric: the type is the number that smc-tools prints for a device it does not know.
func TestFabric(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"device", `
FID  Type  PCI-ID        PCHID  InUse  #LGs  PNET-ID··
0000 0     loopback-ism  ffff   No        0                  ·
0000 1110  0000:00:05.0  ff01   Yes       1  *NET1           ·
`},
		{"linkgroup", `
LG-ID    VLAN  #Conns  PNET-ID·
00000100    0       2                  ·
`},
		{"linkgroup --json=1", `
{
  "schema": 1,
  "technology": "smcd",
  "linkgroups": [
    {
      "id": "00000100",
      "gid": "1122334455667788",
      "peer_gid": "1122334455667788",
      "ext_gid": "0100000000000abc",
      "peer_ext_gid": "0200000000000def",
      "vlan": 0,
      "pnet_id": "",
      "connections": 2,
      "version": 2,
      "chid": "ff01",
      "peer": {
        "release": 1,
        "host": "guest2",
        "os": "LINUX",
        "eid": "MYHOST.BLUE"
      },
      "sndbuf_bytes": 0,
      "dmb_bytes": 131072
    }
  ]
}
`},
	} {
		got := (&bench{fake: fabricHost()}).run(techD, strings.Fields(c.args)...)
		want := strings.ReplaceAll(strings.TrimPrefix(c.want, "\n"), "·", " ")
		if diff := cmp.Diff(result{stdout: want}, got, cmp.AllowUnexported(result{})); diff != "" {
			t.Errorf("smcd %s (-want +got):\n%s", c.args, diff)
		}
	}
	if got := (&bench{fake: fabricHost()}).run(techD, "info"); !strings.Contains(got.stdout, "\nISM:              v2\n") {
		t.Errorf("smcd info: %+v", got)
	}
}
