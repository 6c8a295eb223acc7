// SPDX-License-Identifier: Apache-2.0

package smcrd

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/smckit/smckit/internal/golden"
	"github.com/smckit/smckit/internal/jsondoc"
	"github.com/smckit/smckit/internal/jsondoc/jsontest"
	"github.com/smckit/smckit/internal/tool/statdoc/stattest"
	"github.com/smckit/smckit/pkg/netlinksmc"
)

// TestGolden compares every listing at every level of detail with a golden file.
func TestGolden(t *testing.T) {
	for _, tc := range []struct {
		tech tech
		args string
	}{
		{techR, "info"},
		{techR, "info --json"},
		{techD, "info"},
		{techR, "linkgroup"},
		{techR, "-d linkgroup"},
		{techR, "linkgroup link-show"},
		{techR, "-d linkgroup link-show"},
		{techR, "-dd linkgroup link-show"},
		{techR, "linkgroup --json"},
		{techR, "linkgroup 0x1ff"},
		{techR, "linkgroup show ibdev mlx5_1"},
		{techR, "-dd link netdev eth0"},
		{techD, "linkgroup"},
		{techD, "-d linkgroup"},
		{techD, "linkgroup --json"},
		{techR, "device"},
		{techR, "-d device"},
		{techR, "device --json"},
		{techR, "device netdev eth2"},
		{techD, "device"},
		{techD, "device --json"},
		{techR, "stats"},
		{techR, "-d stats"},
		{techR, "stats json"},
		{techR, "stats --json"},
		{techD, "stats"},
		{techD, "-d stats"},
		{techD, "stats json"},
		{techD, "stats --json"},
		{techR, "ueid"},
		{techR, "ueid --json"},
		{techD, "seid"},
		{techD, "seid --json"},
		{techR, "handshake-limit"},
		{techR, "handshake-limit --json"},
	} {
		name := tc.tech.name() + " " + tc.args
		t.Run(name, func(t *testing.T) {
			b := &bench{fake: populated()}
			got := b.run(tc.tech, strings.Fields(tc.args)...)
			if got.status != 0 || got.stderr != "" {
				t.Fatalf("status %d, stderr %q", got.status, got.stderr)
			}
			if b.fake.closed != b.opened {
				t.Errorf("%d clients opened, %d closed", b.opened, b.fake.closed)
			}
			if strings.Contains(tc.args, "--json") {
				jsontest.Check(t, []byte(got.stdout))
				if doc := documents[name]; doc != nil {
					if err := jsondoc.Decode([]byte(got.stdout), doc); err != nil {
						t.Error(err)
					}
				}
				old := (&bench{fake: populated()}).run(tc.tech, strings.Fields(strings.Replace(tc.args, "--json", "--json=1", 1))...)
				golden.Check(t, "testdata/schema1/"+strings.ReplaceAll(name, " ", "_")+".golden", old.stdout)
			}
			golden.Check(t, "testdata/"+strings.ReplaceAll(name, " ", "_")+".golden", got.stdout)
		})
	}
}

// documents are what programs decode the documents of commands to.
var documents = map[string]any{
	"smcr linkgroup --json": new(LinkGroupsR), "smcd linkgroup --json": new(LinkGroupsD), "smcr device --json": new(Devices),
	"smcd device --json": new(Devices), "smcr stats --json": new(Stats), "smcd stats --json": new(Stats),
}

// TestParitySamples compares the output with lines of smc-tools. '·' is a trailing blank.
func TestParitySamples(t *testing.T) {
	for _, tc := range []struct {
		tech tech
		args string
		want string
	}{
		{techR, "linkgroup", `
LG-ID    LG-Role  LG-Type  VLAN  #Conns  PNET-ID·
00000100 CLNT     SINGLE      0       1  NET1            ·
`},
		{techD, "linkgroup", `
LG-ID    VLAN  #Conns  PNET-ID·
00000100 0x64       2  NET1            ·
`},
		{techR, "-dd linkgroup link-show", `
LG-ID    LG-Role  LG-Type  Net-Dev         Link-State      #Conns  Link-UID  Peer-UID  IB-Dev    IB-P  Local-GID                                 Peer-GID··
00000100 CLNT     SINGLE   eth2            LINK_ACTIVE          1  00000101  00000201  mlx5_1       1  fe80:0000:0000:0000:0000:00ff:fe00:0001   fe80:0000:0000:0000:0000:00ff:fe00:0002··
`},
		{techR, "device", `
Net-Dev         IB-Dev   IB-P  IB-State  Type          Crit  #Links  PNET-ID··
eth2            mlx5_1      1    ACTIVE  RoCE_Express2   No       0  NET1            ·
`},
		{techR, "-d device", `
Net-Dev         IB-Dev   IB-P  IB-State  Type          Crit   FID   PCI-ID        PCHID  #Links  PNET-ID··
eth2            mlx5_1      1    ACTIVE  RoCE_Express2   No   0023  0001:00:00.0  01c4        0  NET1            ·
`},
		{techD, "device", `
FID  Type  PCI-ID        PCHID  InUse  #LGs  PNET-ID··
102a ISM   0000:00:00.0  07c2   No        0  NET1            ·
0000 0     loopback-ism  ffff   No        0                  ·
`},
		{techR, "stats", `
SMC-R Connections Summary
  Total connections handled          5076
  SMC connections                    5076
  Handshake errors                      0
  Avg requests per SMC conn          1977.0
  TCP fallback                          0

RX Stats
  Data transmitted (Bytes)      200705600 (200.7M)
  Total requests                  5017741
  Buffer usage (Bytes)                  0 (0)
  Buffer full                           0 (0.00%)
            8KB    16KB    32KB    64KB   128KB   256KB   512KB  >512KB
  Bufs        0       0       0       0       0  5.076K       0       0
  Reqs   5.018M       0       0       0       0       0       0       0

TX Stats
  Data transmitted (Bytes)     1194173445 (1.194G)
  Total requests                  5017640
  Buffer usage (Bytes)                  0 (0)
  Buffer full                           0 (0.00%)
  Buffer full (remote)                  0 (0.00%)
  Buffer too small                      0 (0.00%)
  Buffer too small (remote)             0 (0.00%)
            8KB    16KB    32KB    64KB   128KB   256KB   512KB  >512KB
  Bufs        0       0       0       0       0       0       0       0
  Reqs        0       0       0       0       0       0       0       0

Extras
  Special socket calls                  0
`},
	} {
		t.Run(tc.tech.name()+" "+tc.args, func(t *testing.T) {
			got := (&bench{fake: parity()}).run(tc.tech, strings.Fields(tc.args)...)
			want := strings.ReplaceAll(strings.TrimPrefix(tc.want, "\n"), "·", " ")
			if diff := cmp.Diff(want, got.stdout); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// parity returns the host of the samples.
func parity() *fake {
	f := populated()
	f.groupsR = f.groupsR[:1]
	f.groupsR[0].Type = netlinksmc.LinkGroupSingle
	f.groupsR[0].Links = f.groupsR[0].Links[:1]
	f.groupsD = f.groupsD[:1]
	f.devicesR = f.devicesR[:1]
	f.devicesD[1].UseCount, f.devicesD[1].Critical = 0, false
	f.stats = netlinksmc.Stats{SMCR: netlinksmc.TechStats{
		ClientV1: 5076, RxBytes: 200705600, RxCount: 5017741, TxBytes: 1194173445, TxCount: 5017640,
		RxBufSizes: netlinksmc.SizeHistogram{5: 5076}, RxSizes: netlinksmc.SizeHistogram{5017741},
	}}
	f.fallback = netlinksmc.FallbackStats{}
	return f
}

// TestEmpty checks the output on a host without any objects: no header, and empty lists in JSON.
func TestEmpty(t *testing.T) {
	for _, tc := range []struct {
		tech tech
		args string
		want string
	}{
		{techR, "linkgroup", ""},
		{techR, "-d linkgroup", ""},
		{techR, "-dd linkgroup link-show", ""},
		{techR, "device", ""},
		{techR, "ueid", ""},
		{techD, "linkgroup", ""},
		{techD, "device", ""},
		{techD, "seid", "n/a\n"},
		{techR, "linkgroup --json=1", "{\n  \"schema\": 1,\n  \"technology\": \"smcr\",\n  \"linkgroups\": []\n}\n"},
		{techD, "linkgroup --json=1", "{\n  \"schema\": 1,\n  \"technology\": \"smcd\",\n  \"linkgroups\": []\n}\n"},
		{techR, "device --json=1", "{\n  \"schema\": 1,\n  \"technology\": \"smcr\",\n  \"devices\": []\n}\n"},
		{techR, "ueid --json=1", "{\n  \"schema\": 1,\n  \"ueids\": []\n}\n"},
		{techD, "seid --json=1", "{\n  \"schema\": 1\n}\n"},
		{techR, "info", "Kernel Capabilities\nSMC Version:      1.0\nSMC Hostname:     n/a\nSMC-D Features:   v1\n" +
			"SMC-R Features:   v1\n\nHardware Capabilities\nSEID:             n/a\nISM:              n/a\nRoCE:             n/a\n"},
	} {
		t.Run(tc.tech.name()+" "+tc.args, func(t *testing.T) {
			b := &bench{fake: &fake{info: &netlinksmc.SystemInfo{Version: 1}}}
			got := b.run(tc.tech, strings.Fields(tc.args)...)
			if diff := cmp.Diff(result{stdout: tc.want}, got, cmp.AllowUnexported(result{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestInfoRoCE checks for which versions of SMC an adapter counts.
func TestInfoRoCE(t *testing.T) {
	for _, tc := range []struct {
		devices []netlinksmc.Device
		want    string
	}{
		{nil, "n/a"},
		{[]netlinksmc.Device{{Vendor: 0x15b3, Device: 0x1004}}, "v1 "},
		{[]netlinksmc.Device{{Vendor: 0x15b3, Device: 0x101e}}, "v1 v2"},
		{[]netlinksmc.Device{{Vendor: 0x15b3, Device: 0x1004}, {Vendor: 0x15b3, Device: 0x1015}}, "v1 v2"},
		{[]netlinksmc.Device{{}}, "v1 v2"}, // soft-RoCE
		{[]netlinksmc.Device{{Vendor: 0x1ded, Device: 0x1004}}, "v1 v2"},
	} {
		f := populated()
		f.devicesR = tc.devices
		got := (&bench{fake: f}).run(techR, "info")
		if want := "\nRoCE:             " + tc.want + "\n"; !strings.HasSuffix(got.stdout, want) {
			t.Errorf("%v: %q does not end in %q", tc.devices, got.stdout, want)
		}
	}
}

// TestInfoISM checks that a loopback device does not count for version 1.
func TestInfoISM(t *testing.T) {
	hardware, memory := netlinksmc.Device{CHID: 0x7c2}, netlinksmc.Device{CHID: 0xffff}
	for _, tc := range []struct {
		devices []netlinksmc.Device
		v2      bool
		want    string
	}{
		{nil, false, "n/a"},
		{[]netlinksmc.Device{hardware}, false, "v1"},
		{[]netlinksmc.Device{hardware}, true, "v1 v2"},
		{[]netlinksmc.Device{memory}, true, "v2"},
		{[]netlinksmc.Device{memory, hardware}, true, "v1 v2"},
	} {
		f := populated()
		f.devicesD, f.info.ISMv2 = tc.devices, tc.v2
		got := (&bench{fake: f}).run(techD, "info")
		if want := "\nISM:              " + tc.want + "\n"; !strings.Contains(got.stdout, want) {
			t.Errorf("%v: no %q in %q", tc.devices, want, got.stdout)
		}
	}
}

// TestForeignNamespace checks that no interface names are shown in a network namespace where the numbers mean other interfaces.
func TestForeignNamespace(t *testing.T) {
	got := (&bench{fake: parity(), foreign: true}).run(techR, "device")
	if !strings.Contains(got.stdout, "\n                mlx5_1 ") {
		t.Errorf("an interface is named:\n%s", got.stdout)
	}
	got = (&bench{fake: parity(), foreign: true}).run(techR, "device", "--json")
	if strings.Contains(got.stdout, "netdev") {
		t.Errorf("an interface is named:\n%s", got.stdout)
	}
}

// TestHostileNames checks that names with control characters are escaped.
func TestHostileNames(t *testing.T) {
	const evil = "\x1b[2Jn\xff\n"
	f := populated()
	f.info.Hostname, f.info.SEID = evil, evil
	f.groupsR[1].PNETID, f.groupsR[0].Links[0].IBDev, f.groupsR[1].V2.PeerHost = evil, evil, evil
	f.groupsR[0].Links[0].GID = evil
	f.devicesR[0].IBName, f.devicesR[0].PCIID = evil, evil
	f.ueids = []string{evil}
	for _, args := range []string{"info", "linkgroup", "-d linkgroup", "-dd link", "-d device", "ueid"} {
		got := (&bench{fake: f, columns: "1"}).run(techR, strings.Fields(args)...)
		if got.status != 0 || strings.Contains(got.stdout, "\x1b") || !utf8.ValidString(got.stdout) || !strings.Contains(got.stdout, `\x1b[2J`) {
			t.Errorf("%s: status %d, %q", args, got.status, got.stdout)
		}
	}
}

// TestWatch checks the rounds of --watch.
func TestWatch(t *testing.T) {
	b := &bench{fake: parity(), rounds: 3}
	got := b.run(techR, "--watch", "2", "linkgroup")
	const once = "LG-ID    LG-Role  LG-Type  VLAN  #Conns  PNET-ID \n00000100 CLNT     SINGLE      0       1  NET1             \n"
	want := result{stdout: once + "\n" + once + "\n" + once, status: 130}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(result{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if b.opened != 1 || b.fake.closed != 1 {
		t.Errorf("%d clients opened, %d closed", b.opened, b.fake.closed)
	}
	got = (&bench{fake: parity(), rounds: 2}).run(techR, "stats", "--watch=0.5", "--json")
	jsontest.CheckLines(t, []byte(got.stdout))
	if lines := strings.Count(got.stdout, "\n"); lines != 2 {
		t.Errorf("%d lines of JSON, not 2: %s", lines, got.stdout)
	}
}

// TestStatsBaseline checks -a, reset, and the note about an unusable baseline.
func TestStatsBaseline(t *testing.T) {
	f := populated()
	m := &stattest.Memory{Taken: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	total := func(args ...string) string {
		t.Helper()
		got := (&bench{fake: f, memory: m}).run(techR, args...)
		if got.status != 0 {
			t.Fatalf("%v: %+v", args, got)
		}
		for line := range strings.Lines(got.stdout) {
			if n, ok := strings.CutPrefix(line, "  SMC connections"); ok {
				return strings.TrimSpace(n)
			}
		}
		t.Fatalf("%v: no total in %q", args, got.stdout)
		return ""
	}
	steps := []struct{ args, want string }{
		{"stats", "5076"},
		{"stats reset", "5076"},
		{"stats", "0"},
		{"-a stats", "5076"},
		{"- stats reset", "5076"},
	}
	for _, s := range steps {
		if got := total(strings.Fields(s.args)...); got != s.want {
			t.Errorf("%s: %s, want %s", s.args, got, s.want)
		}
	}
	if m.Resets != 2 {
		t.Errorf("%d resets, want 2", m.Resets)
	}
	// The gauge must survive a reset, whatever the baseline says.
	got := (&bench{fake: f, memory: m}).run(techR, "stats")
	if !strings.Contains(got.stdout, fmt.Sprintf("  Buffer usage (Bytes)%19d (65.54K)\n", 65536)) {
		t.Errorf("buffer usage is missing:\n%s", got.stdout)
	}
	got = (&bench{fake: f, memory: m}).run(techR, "stats", "--json")
	if !strings.Contains(got.stdout, `"since": "2026-01-02T03:04:05Z"`) {
		t.Errorf("no time of the reset:\n%s", got.stdout)
	}
	got = (&bench{fake: f, memory: &stattest.Memory{Note: errTest}}).run(techR, "stats")
	if got.status != 0 || got.stderr != "smcr: a note\n" {
		t.Errorf("note: %+v", got)
	}
}
