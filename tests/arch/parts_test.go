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
	"github.com/smckit/smckit/internal/tool/smcchk"
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

// smcr connects the hosts to each other by SMC-R, both ways.
func smcr(t *testing.T, lt *lab.Test, p pair) {
	for i, hosts := range [][2]string{{"a", "b"}, {"b", "a"}} {
		from, to := hosts[0], hosts[1]
		t.Run(from+" to "+to, func(t *testing.T) {
			onlySMCR(t, lt, from, to, fmt.Sprintf("%s:%d", lab.Addr4(0, 1-i), 5002+i), clientV2)
			want := "2.1"
			if p[0].module != p[1].module {
				want = "2" // either release of version 2
			}
			if got := version(t, lt, from); !strings.HasPrefix(got, want) {
				t.Errorf("version %s, want %s", got, want)
			}
		})
	}
}

// version1 does that with version 1, which hosts without a common EID use.
func version1(t *testing.T, lt *lab.Test) {
	for _, host := range []string{"a", "b"} {
		lt.Must(host, "smcr ueid del "+lab.UEID+" && sysctl -qw net.smc.smcr_v1_rocev2=1")
		defer lt.Must(host, "smcr ueid add "+lab.UEID+" && sysctl -qw net.smc.smcr_v1_rocev2=0")
	}
	for i, hosts := range [][2]string{{"a", "b"}, {"b", "a"}} {
		from, to := hosts[0], hosts[1]
		t.Run(from+" to "+to, func(t *testing.T) {
			onlySMCR(t, lt, from, to, fmt.Sprintf("%s:%d", lab.Addr4(0, 1-i), 5012+i), clientV1)
		})
	}
}

// The connections of SMC-R that hosts have made as client and as server, by version.
func clientV1(client, server lab.Counters) (made, served int) {
	return client.Connections.ClientV1, server.Connections.ServerV1
}

func clientV2(client, server lab.Counters) (made, served int) {
	return client.Connections.ClientV2, server.Connections.ServerV2
}

// onlySMCR checks that all connections from one host to an address of the other are SMC-R of one version. An emulated host takes longest
// for the first contact, so one connection makes it before the others, and stays.
func onlySMCR(t *testing.T, lt *lab.Test, from, to, address string, count func(client, server lab.Counters) (made, served int)) {
	server := lt.Serve(to, "", "echo", address)
	defer lab.Kill(t, server)
	madeBefore, servedBefore := count(lt.CountersR(from), lt.CountersR(to))
	fell := [2]int{lt.CountersR(from).FellBack(), lt.CountersR(to).FellBack()}
	first := keep(t, lt, from, address)
	talk(lt, from, address)
	lab.Stop(t, first)
	now, serving := lt.CountersR(from), lt.CountersR(to)
	made, served := count(now, serving)
	made, served = made-madeBefore, served-servedBefore
	// One stays, three compare data, and the life of a connection has more than one.
	if made < 5 || served != made || now.FellBack() != fell[0] || serving.FellBack() != fell[1] {
		t.Errorf("%s is client of %d connections by SMC-R of this version, and %s server of %d; before, %v fell back, then %+v and %+v",
			from, made, to, served, fell, now, serving)
	}
}

// keep has a host keep a connection to an echo, and returns once that is SMC-R.
func keep(t *testing.T, lt *lab.Test, host, address string) *lab.Process {
	t.Helper()
	p, err := lt.Host(host).Start(lab.Cmd{Argv: []string{"smcflow", "keep", address}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), lab.Scale(30*time.Second))
	defer cancel()
	if err := lt.Host(host).WaitFor(ctx, "smcss -a | grep -q 'ACTIVE.*"+address+"'"); err != nil {
		t.Fatal(err)
	}
	if out := lt.Must(host, "smcss -a | grep "+address); !strings.Contains(out, "SMCR") {
		lab.Kill(t, p)
		t.Fatalf("the first connection is no SMC-R:\n%s", out)
	}
	return p
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
	hold := keep(t, lt, "b", "10.0.0.1:"+port)
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
	check(t, lt)
	lab.Stop(t, hold)
}

// check has smc_chk on host a tell whether it can use SMC with host b, and try it.
func check(t *testing.T, lt *lab.Test) {
	server, err := lt.Host("b").Start(lab.Cmd{Argv: []string{"smc_chk", "--server"}})
	if err != nil {
		t.Fatal(err)
	}
	defer lab.Kill(t, server)
	ctx, cancel := context.WithTimeout(t.Context(), lab.Scale(30*time.Second))
	defer cancel()
	if err := lt.Host("b").WaitFor(ctx, "smcss -l | grep -q :37373"); err != nil {
		t.Fatal(err)
	}
	peer := lab.Addr4(0, 1)
	for _, c := range []struct{ args, transport string }{{"", ""}, {" -s -C " + peer, ""}, {" -C " + peer, "smcr"}} {
		var d smcchk.Document
		lt.Document("a", "smc_chk --json"+c.args, &d)
		if !d.Able || c.transport != "" && (d.Live == nil || d.Live.Transport != c.transport) {
			t.Errorf("smc_chk%s: %+v", c.args, d)
		}
	}
}
