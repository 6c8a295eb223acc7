// SPDX-License-Identifier: Apache-2.0

package netlinksmc

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mdlayher/genetlink"
	"github.com/smckit/smckit/pkg/internal/attrtest"
)

// fixture is what a real kernel has answered, by command; the sockets are under 0.
type fixture map[int][][]byte

// readFixture reads a file that nldump wrote; its first lines say where.
func readFixture(t *testing.T, kernel string) fixture {
	t.Helper()
	attrtest.NeedLittleEndian(t)
	f, err := os.Open(filepath.Join("testdata", "linux-"+kernel+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fix := fixture{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		var family, payload string
		var command int
		// An empty message has no payload to scan.
		if n, err := fmt.Sscanf(lines.Text(), "%s %d %s", &family, &command, &payload); n < 2 {
			t.Fatalf("%q: %v", lines.Text(), err)
		}
		data, err := hex.DecodeString(payload)
		if err != nil {
			t.Fatal(err)
		}
		fix[command] = append(fix[command], data)
	}
	if lines.Err() != nil || len(fix) < 8 {
		t.Fatalf("fixture %s has %d commands, error %v", kernel, len(fix), lines.Err())
	}
	return fix
}

// decode runs a decoder over the answers to a command.
func decode[T any](t *testing.T, fix fixture, command int, parse func([]genetlink.Message) (T, error)) T {
	t.Helper()
	var msgs []genetlink.Message
	for _, data := range fix[command] {
		msgs = append(msgs, genetlink.Message{Header: genetlink.Header{Command: uint8(command), Version: 1}, Data: data})
	}
	v, err := parse(msgs)
	if err != nil {
		t.Errorf("command %d: %v", command, err)
	}
	return v
}

const (
	gidA = "0000:0000:0000:0000:0000:ffff:0a00:0001"
	gidB = "0000:0000:0000:0000:0000:ffff:0a00:0002"
)

// TestLinux612 decodes what Debian's 6.12 says of an SMC-R connection; the expectations are from what smcr and smcss
// showed of it.
func TestLinux612(t *testing.T) {
	fix := readFixture(t, "6.12")
	diff(t, &SystemInfo{Version: 2, Release: 1, SMCRv2: Some(true), Hostname: "a"}, decode(t, fix, 1, parseSystemInfo))

	groups := decode(t, fix, 3, parseLinkGroupsR)
	if len(groups) != 1 || len(groups[0].Links) != 1 {
		t.Fatalf("groups: %+v", groups)
	}
	g := groups[0]
	diff(t, Link{
		ID: 1, IBDev: "rxe0", IBPort: 1, GID: gidA, PeerGID: gidB, Conns: 1, NetIfindex: 2, UID: 0x101, PeerUID: 0x101,
		State: LinkActive,
	}, g.Links[0])
	diff(t, &LinkGroupV2{Version: 2, Release: 1, PeerOS: PeerOSLinux, EID: "SMCKIT.LAB", PeerHost: "b"}, g.V2)
	if g.ID != 0x100 || g.Role != RoleClient || g.Type != LinkGroupSingle || g.PNETID != "LAB0" || g.Conns != 1 ||
		g.Direct != Some(true) || g.SndbufAlloc != Some[uint64](65536) || g.RMBAlloc != Some[uint64](65536) || !g.NetCookie.IsSet() {
		t.Errorf("link group: %+v", g)
	}

	diff(t, []Device{{
		Critical: true, IBName: "rxe0",
		Ports: []Port{{Number: 1, PNETID: "LAB0", PNETIDByUser: true, NetIfindex: 2, State: PortActive, Links: 1}},
	}}, decode(t, fix, 6, parseDevicesR))
	if s := decode(t, fix, 7, parseStats); s.SMCR.ClientV2 != 1 || s.SMCR.TxBufUsage != Some[uint64](65536) || s.SMCR.TxBytes == 0 {
		t.Errorf("statistics: %+v", s.SMCR)
	}
	diff(t, &FallbackStats{Server: []FallbackCount{}, Client: []FallbackCount{}}, decode(t, fix, 8, parseFallbackStats))
	checkSettings(t, fix)

	s, err := parseSocket(fix[0][0])
	if err != nil {
		t.Fatal(err)
	}
	if s.State != StateActive || s.Mode != ModeSMCR || s.Inode != 329 || s.Local != netip.MustParseAddrPort("10.0.0.1:42480") ||
		s.Peer != netip.MustParseAddrPort("10.0.0.2:5001") || s.Fallback != nil {
		t.Errorf("socket: %+v", s)
	}
	diff(t, &LinkGroupInfo{LinkID: 1, IBDev: "rxe0", IBPort: 1, GID: gidA, PeerGID: gidB, Role: RoleClient}, s.LinkGroup)
	if s.Conn == nil || s.Conn.Token != 1 || s.Conn.SndbufSize != 65536 || s.Conn.PeerRMBESize != 65536 {
		t.Errorf("connection: %+v", s.Conn)
	}
}

// TestLinux61 decodes what Debian's 6.1 says, which knows less, of a connection that has fallen back.
func TestLinux61(t *testing.T) {
	fix := readFixture(t, "6.1")
	diff(t, &SystemInfo{Version: 2, SMCRv2: Some(true), Hostname: "a"}, decode(t, fix, 1, parseSystemInfo))
	if groups := decode(t, fix, 3, parseLinkGroupsR); len(groups) != 0 {
		t.Errorf("groups: %+v", groups)
	}
	diff(t, []Device{{IBName: "rxe0", Ports: []Port{{Number: 1, State: PortActive}}}}, decode(t, fix, 6, parseDevicesR))
	if s := decode(t, fix, 7, parseStats); s.SMCR.TxBufUsage.IsSet() || s.SMCR.ClientV2 != 0 {
		t.Errorf("statistics: %+v", s.SMCR)
	}
	diff(t, &FallbackStats{
		ClientTotal: 1, Server: []FallbackCount{}, Client: []FallbackCount{{Reason: 0x03030000, Count: 1}},
	}, decode(t, fix, 8, parseFallbackStats))
	checkSettings(t, fix)

	s, err := parseSocket(fix[0][0])
	if err != nil {
		t.Fatal(err)
	}
	diff(t, &Fallback{Reason: 0x03030000}, s.Fallback)
	if s.State != StateActive || s.Mode != ModeTCP || s.Conn != nil || s.LinkGroup != nil {
		t.Errorf("socket: %+v", s)
	}
}

// checkSettings checks the settings of both kernels.
func checkSettings(t *testing.T, fix fixture) {
	t.Helper()
	diff(t, []string{"SMCKIT.LAB"}, decode(t, fix, 9, parseUEIDs))
	if seid := decode(t, fix, 13, parseSEID); seid != nil {
		t.Errorf("a system EID on x86: %+v", seid)
	}
	if decode(t, fix, 16, parseHandshakeLimitation) {
		t.Error("handshake limitation is on")
	}
}
