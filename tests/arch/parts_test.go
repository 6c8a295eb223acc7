// SPDX-License-Identifier: Apache-2.0

//go:build linux

package arch

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/smckit/smckit/internal/lab"
	"github.com/smckit/smckit/internal/tool/smcrd"
)

// wire runs the tests of the module's codecs on host a, and compares the messages that they write with those that the same code
// writes on this machine.
func wire(t *testing.T, lt *lab.Test, a side) {
	out := t.TempDir()
	// The compiler is newer than that of this machine, and may have more warnings.
	args := []string{"SANITIZE=-static -Wno-error", "/out/wiretest"}
	if err := lab.CrossMake(t.Context(), a.arch, a.kernel, "tests/wire", out, args, func(s string) { t.Log(s) }); err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(filepath.Join(out, "wiretest"))
	if err != nil {
		t.Fatal(err)
	}
	const inside = "/run/wiretest"
	if err := lt.Host("a").WriteFile(t.Context(), inside, program, 0o755); err != nil {
		t.Fatal(err)
	}
	vectors, err := filepath.Abs("../wire/testdata")
	if err != nil {
		t.Fatal(err)
	}
	passed := lt.Must("a", fmt.Sprintf("%s run %s/*.hex", inside, vectors))
	if n := strings.Count(passed, "ok ") - strings.Count(passed, "not ok "); n < 60 || strings.Contains(passed, "not ok ") {
		t.Errorf("%d tests of the codecs pass:\n%s", n, passed)
	}
	here := t.TempDir()
	native := filepath.Join(here, "wiretest")
	build := exec.CommandContext(t.Context(), "make", "-s", "-C", "../wire", "OUT="+here, "SANITIZE=", native)
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("make: %v\n%s", err, said)
	}
	for _, mode := range []string{"encode", "encode-llc", "encode-imm"} {
		want, err := exec.CommandContext(t.Context(), native, mode).Output()
		if err != nil {
			t.Fatal(err)
		}
		if got := lt.Must("a", inside+" "+mode); got != string(want) {
			t.Errorf("%s: messages on %s:\n%s\nand here:\n%s", mode, a.arch, got, want)
		}
	}
}

// talk has two hosts communicate: data on several connections at once, and one step after another what can happen to a connection.
func talk(lt *lab.Test, from, address string) {
	lt.Must(from, "smcflow check --conns 3 --size 100000 "+address)
	lt.Must(from, "smcflow life "+address)
}

// smcd connects host a to itself by the loopback device, and then, without the device, by TCP.
func smcd(t *testing.T, lt *lab.Test) {
	const address = "127.0.0.1:5001"
	server := lt.Serve("a", "", "echo", address)
	defer lab.Kill(t, server)
	before := lt.Counters("a")
	talk(lt, "a", address)
	now := lt.Counters("a")
	conns := now.Connections.ClientV2 - before.Connections.ClientV2
	if conns < 4 || now.FellBack() != before.FellBack() {
		t.Errorf("%d connections by SMC-D: before %+v, then %+v", conns, before, now)
	}
	lt.Must("a", "sysctl -qw net.smc.loopback=0")
	defer lt.Must("a", "sysctl -qw net.smc.loopback=1")
	talk(lt, "a", address)
	without := lt.Counters("a")
	if n := without.FellBack() - now.FellBack(); n < 2*conns {
		t.Errorf("without the device, %d ends of connections fell back, of %d at least: %+v", n, 2*conns, without)
	}
}

// smcr connects the hosts to each other by SMC-R, both ways. An emulated host on a busy machine may be too late for a handshake, and that
// connection falls back. If a byte order is wrong, none is SMC-R.
func smcr(t *testing.T, lt *lab.Test, modules [2]lab.Module) {
	for i, hosts := range [][2]string{{"a", "b"}, {"b", "a"}} {
		from, to := hosts[0], hosts[1]
		t.Run(from+" to "+to, func(t *testing.T) {
			address := fmt.Sprintf("%s:%d", lab.Addr4(0, 1-i), 5002+i)
			server := lt.Serve(to, "", "echo", address)
			defer lab.Kill(t, server)
			before, served := lt.CountersR(from), lt.CountersR(to)
			talk(lt, from, address)
			now, serving := lt.CountersR(from), lt.CountersR(to)
			conns := now.Connections.ClientV2 - before.Connections.ClientV2
			serves := serving.Connections.ServerV2 - served.Connections.ServerV2
			if conns == 0 || serves == 0 {
				t.Errorf("%s is client of %d connections by SMC-R, and %s server of %d: before %+v and %+v, then %+v and %+v",
					from, conns, to, serves, before, served, now, serving)
			}
			want := "2.1"
			if modules[0] != modules[1] {
				want = "2" // either release of version 2
			}
			if got := version(t, lt, from); !strings.HasPrefix(got, want) {
				t.Errorf("version %s, want %s", got, want)
			}
		})
	}
}

// version returns the version of the first link group of a host.
func version(t *testing.T, lt *lab.Test, host string) string {
	t.Helper()
	var groups smcrd.LinkGroupsR
	lt.Document(host, "smcr --json -d linkgroup", &groups)
	if len(groups.LinkGroups) == 0 || groups.LinkGroups[0].Peer == nil {
		t.Fatalf("no link group of version 2: %+v", groups)
	}
	g := groups.LinkGroups[0]
	return fmt.Sprintf("%d.%d", g.Version, g.Peer.Release)
}

// commands checks what the commands decode on host a of what its kernel sends.
func commands(t *testing.T, lt *lab.Test, a side) {
	const port = "50434"
	server := lt.Serve("a", "", "echo", "10.0.0.1:"+port)
	defer lab.Kill(t, server)
	hold, err := lt.Host("b").Start(lab.Cmd{Argv: []string{"smcflow", "keep", "10.0.0.1:" + port}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), lab.Scale(30*time.Second))
	defer cancel()
	if err := lt.Host("a").WaitFor(ctx, "smcss -a | grep -q ACTIVE.*10.0.0.1:"+port); err != nil {
		t.Fatal(err)
	}
	seid := "n/a" // only IBM Z has one
	if a.arch == "s390x" {
		seid = "IBM-SYSZ-ISMSEID"
	}
	for command, wants := range map[string][]string{
		"smcss -a":                 {"10.0.0.1:" + port, "10.0.0.2:", "SMCR"},
		"smcss -d":                 {"SMCR"},
		"smcr -d link":             {"rxe0", "LINK_ACTIVE"},
		"smcr --json -d linkgroup": {"0000:0000:0000:0000:0000:ffff:0a00:0001"},
		"smcr device":              {"eth0", "rxe0", "ACTIVE", "*LAB0"},
		"smcr ueid":                {lab.UEID},
		"smcd device":              {"loopback-ism"},
		"smcd seid":                {seid},
		"smc_pnet show":            {"LAB0 eth0 n/a 255", "LAB0 n/a rxe0 1"},
		"smc_rnics":                {"rxe0", "LAB0*", "eth0"},
		"smcr -a stats":            {"TCP fallback"},
	} {
		out := lt.Must("a", command)
		for _, want := range wants {
			if !strings.Contains(out, want) {
				t.Errorf("%s does not show %q:\n%s", command, want, out)
			}
		}
	}
	lab.Stop(t, hold)
}
