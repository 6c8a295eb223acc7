// SPDX-License-Identifier: Apache-2.0

//go:build linux

package smckit

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/smckit/smckit/internal/check"
	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/clitest"
	"github.com/smckit/smckit/internal/golden"
	"github.com/smckit/smckit/internal/jsondoc/jsontest"
	"github.com/smckit/smckit/pkg/ism"
	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/smckit/smckit/pkg/smcstats"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) {
	// Golden files have times.
	time.Local = time.UTC
	var err error
	if dir, err = os.MkdirTemp("", "smckit"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	status := m.Run()
	os.RemoveAll(dir)
	os.Exit(status)
}

// host is a host in memory.
type host struct {
	snapshot check.Snapshot
	sockets  []netlinksmc.Socket
	changed  bool // the list of sockets changes while it is read
	stats    smcstats.Reading
	// Errors of reading.
	readErr, socketsErr, statsErr error
}

func (h *host) deps() deps {
	return deps{
		read:    func(context.Context) (*check.Snapshot, error) { s := h.snapshot; return &s, h.readErr },
		sockets: func() (source, error) { return h, h.socketsErr },
		stats:   func(context.Context) (smcstats.Reading, error) { return h.stats, h.statsErr },
	}
}

func (h *host) Close() error { return nil }

func (h *host) Sockets(context.Context, netlinksmc.DiagExt) iter.Seq2[netlinksmc.Socket, error] {
	return func(yield func(netlinksmc.Socket, error) bool) {
		for _, s := range h.sockets {
			if !yield(s, nil) {
				return
			}
		}
		if h.changed {
			yield(netlinksmc.Socket{}, netlinksmc.ErrDumpInterrupted)
		}
	}
}

// busy returns a host with smckit's module, both transports and connections.
func busy() *host {
	on := true
	connection := func(m netlinksmc.Mode) netlinksmc.Socket {
		return netlinksmc.Socket{State: netlinksmc.StateActive, Mode: m}
	}
	const noDevice, declined = netlinksmc.Reason(0x03030000), netlinksmc.Reason(0x03010000)
	return &host{
		snapshot: check.Snapshot{
			Kernel:    check.Kernel{Release: "7.2.0"},
			Module:    check.Module{Loaded: true, Ours: true, Version: "1.0", SMCR: &on, SMCD: &on, File: "/lib/modules/7.2.0/updates/smc.ko"},
			Identity:  check.Identity{Known: true, UEIDs: []string{"EID"}},
			Namespace: check.Namespace{Initial: true},
			Settings:  map[string]int{"net.smc.loopback": 2},
			Interfaces: []check.Interface{{
				Name: "eth0", Index: 2, Kind: "device", Up: true, Carrier: true, MTU: 1500,
				Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/24")}, PNETID: ism.PNETID{ID: "NET1", Source: ism.SourceTable},
			}},
			Adapters: []ism.Device{{Kind: ism.KindRoCE, Name: "mlx5_0"}},
			Ports: []check.Port{{
				Device: "mlx5_0", Number: 1, RoCE: true, State: "ACTIVE", NetDev: "eth0", PNETID: ism.PNETID{ID: "NET1", Source: ism.SourceTable},
				GIDs: []check.GID{{Addr: netip.MustParseAddr("::ffff:10.0.0.1"), RoCEv2: true, NetDev: "eth0"}},
			}},
			ISM:   []netlinksmc.Device{{CHID: 0xffff, PCIID: "loopback-ism"}},
			Rules: check.Rules{Readable: true},
		},
		sockets: []netlinksmc.Socket{
			{State: netlinksmc.StateListen},
			{State: netlinksmc.StateInit},
			{State: netlinksmc.StateClosed},
			connection(netlinksmc.ModeSMCR), connection(netlinksmc.ModeSMCR), connection(netlinksmc.ModeSMCD), connection(netlinksmc.ModeTCP),
		},
		stats: smcstats.Reading{
			Since: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
			Snapshot: &smcstats.Snapshot{
				Stats: netlinksmc.Stats{SMCR: netlinksmc.TechStats{ClientV2: 5}, SMCD: netlinksmc.TechStats{ServerV2: 2}},
				Fallback: netlinksmc.FallbackStats{
					ClientTotal: 3, ServerTotal: 4,
					Client: []netlinksmc.FallbackCount{{Reason: declined, Count: 3}, {Reason: 0x01010000, Count: 0}},
					Server: []netlinksmc.FallbackCount{{Reason: noDevice, Count: 2}, {Reason: declined, Count: 1}, {Reason: 0x7, Count: 1}},
				},
			},
		},
	}
}

// bare returns a host without AF_SMC.
func bare() *host {
	h := busy()
	h.snapshot.Module = check.Module{}
	h.snapshot.Sockets = check.Sockets{IPv4: unix.EAFNOSUPPORT, IPv6: unix.EAFNOSUPPORT, IPProto: unix.EPROTONOSUPPORT}
	h.snapshot.Control, h.snapshot.Identity = check.Control{Netlink: netlinksmc.ErrNoModule}, check.Identity{}
	h.snapshot.ISM, h.snapshot.Settings = nil, nil
	h.socketsErr, h.statsErr = netlinksmc.ErrNoModule, netlinksmc.ErrNoModule
	return h
}

func (h *host) run(t *testing.T, args ...string) (status int, out, stderr string) {
	t.Helper()
	env, o, e := clitest.Env(nil)
	tool := Tool
	tool.New = func(env *cli.Env) *cobra.Command { return newRoot(env, h.deps()) }
	return cli.Run(t.Context(), tool, env, args), o.String(), e.String()
}

// TestStatus compares the status of hosts with golden files, as text and as JSON.
func TestStatus(t *testing.T) {
	stock := busy()
	stock.snapshot.Module.Ours, stock.snapshot.Module.Version = false, ""
	stock.snapshot.Ports, stock.snapshot.Adapters, stock.sockets, stock.changed = nil, nil, nil, true
	stock.stats = smcstats.Reading{Snapshot: &smcstats.Snapshot{}, Note: errors.New("the baseline is damaged")}
	blind := busy()
	blind.socketsErr, blind.statsErr = errors.New("not permitted"), errors.New("not permitted, either")
	blind.stats = smcstats.Reading{}
	blind.snapshot.Unknown = []string{"the rules\nof nft: not permitted"}
	// Remedies that name commands.
	named := busy()
	named.snapshot.Identity.UEIDs = nil
	named.stats.Fallback.Client[0].Reason, named.stats.Fallback.Server = netlinksmc.ReasonMemoryLimit, nil
	for _, tc := range []struct {
		name   string
		host   *host
		status int
	}{{"busy", busy(), 0}, {"named", named, 0}, {"stock", stock, 0}, {"blind", blind, 0}, {"bare", bare(), 1}} {
		status, out, stderr := tc.host.run(t)
		if status != tc.status || stderr != "" {
			t.Errorf("%s: exit status %d, %q", tc.name, status, stderr)
		}
		if lines := strings.Count(out, "\n"); lines > 16 {
			t.Errorf("%s: %d lines", tc.name, lines)
		}
		golden.Check(t, "testdata/"+tc.name+".txt", out)
		status, out, stderr = tc.host.run(t, "--json")
		if status != tc.status || stderr != "" {
			t.Errorf("%s --json: exit status %d, %q", tc.name, status, stderr)
		}
		jsontest.Check(t, []byte(out))
		golden.Check(t, "testdata/"+tc.name+"-json.txt", out)
	}
}

// TestCommandLines checks what reaches which command: nothing here gets as far as the system.
func TestCommandLines(t *testing.T) {
	for _, tc := range []struct {
		args   string
		status int
		stderr string
	}{
		{"-N blue", 1, "smckit: entered blue"},
		{"--json=1 sockets -N blue", 1, "smckit sockets: entered blue"},
		{"-N blue sockets", 1, "smckit sockets: entered blue"},
		{"-N blue run -d curl -v", 1, "smckit run: entered blue"},
		{"sockets foo", 2, `smckit sockets: unexpected operand "foo": smckit sockets has options only; see 'smckit sockets --help'`},
		{"socket", 2, `smckit: unknown command "socket" for "smckit" (did you mean "sockets"?); see 'smckit --help'`},
		{"smcr-stats", 2, `smckit: unknown command "smcr-stats" for "smckit" (did you mean "stats"?); see 'smckit --help'`},
		{"foo", 2, `smckit: unknown command "foo" for "smckit"; see 'smckit --help'`},
		{"--foo", 2, "smckit: unknown flag: --foo; see 'smckit --help'"},
		{"config aply", 2, `smckit config: unknown command "aply" for "smckit config" (did you mean "apply"?); see 'smckit config --help'`},
		{"policy ad", 2, `smckit policy: unknown command "ad" for "smckit policy" (did you mean "add"?); see 'smckit policy --help'`},
		{"pnet -N blue shw", 1, "smckit pnet: entered blue"},
		{"pnet add", 2, "smckit pnet: the PNET ID is missing: add|del <PNET ID> eth|ib <device> [<port>]; see 'smckit pnet add --help'"},
		{"eid ad", 2, "smckit eid: add: the EID is missing; see 'smckit eid --help'"},
		{"links delete 100", 2, "smckit links: delete: the LINK-ID is missing; see 'smckit links --help'"},
		{"links -dd foo", 2, `smckit links: "foo" is not an LG-ID: give up to 8 hexadecimal digits as 'smckit groups' shows them; see 'smckit links --help'`},
		{"groups delete 100", 2, "smckit groups: delete: say of which technology the link group is: -R or -D; see 'smckit groups --help'"},
		{"groups -RD", 2, "smckit groups: -R and -D exclude each other: without both you see SMC-R and SMC-D; see 'smckit groups --help'"},
		{"stats -DR", 2, "smckit stats: -D and -R exclude each other: without both you see SMC-D and SMC-R; see 'smckit stats --help'"},
		{"run", 2, "smckit run: no command given; see 'smckit run --help'"},
		{"run -r x curl --verbose", 2, `smckit run: -r "x": give a size from 0 to 2047m, such as 262144, 256k or 4m; see 'smckit run --help'`},
	} {
		status, out, stderr := busy().run(t, strings.Fields(tc.args)...)
		if status != tc.status || stderr != tc.stderr+"\n" || out != "" {
			t.Errorf("smckit %s: exit status %d, %q%q\nwant %d, %q", tc.args, status, out, stderr, tc.status, tc.stderr)
		}
	}
	if status, _, stderr := (&host{readErr: context.Canceled}).run(t); status != 130 {
		t.Errorf("interrupted: exit status %d, %q", status, stderr)
	}
}

// TestHelp checks that each command has a line in the help of smckit, help of its own, and completions.
func TestHelp(t *testing.T) {
	status, help, stderr := busy().run(t, "--help")
	if status != 0 || stderr != "" {
		t.Fatalf("exit status %d, %q", status, stderr)
	}
	_, completions, _ := busy().run(t, "__complete", "")
	for _, c := range commands {
		if !strings.Contains(help, "\n  "+c.Name+" ") || !strings.Contains(help, " "+c.Short+"\n") {
			t.Errorf("smckit --help is without %s: %s", c.Name, c.Short)
		}
		if !strings.Contains(completions, c.Name+"\t"+c.Short+"\n") {
			t.Errorf("the command %s is not completed", c.Name)
		}
		for _, args := range [][]string{{"help", c.Name}, {c.Name, "--help"}} {
			if status, out, stderr := busy().run(t, args...); status != 0 || stderr != "" || !strings.Contains(out, "smckit "+c.Name) {
				t.Errorf("%q: exit status %d, %q, %q", args, status, out, stderr)
			}
		}
	}
	for args, want := range map[string]string{
		"__complete sockets --sum": "--summary\t", "__complete run --method s": "auto\n", "__complete config ap": "apply\t",
	} {
		if _, out, _ := busy().run(t, strings.Fields(args)...); !strings.HasPrefix(out, want) {
			t.Errorf("%s: %q", args, out)
		}
	}
}

// TestCalled checks which command runs for which name.
func TestCalled(t *testing.T) {
	for _, tool := range Tools() {
		for _, called := range []string{tool.Name, "/usr/bin/" + tool.Name, "./" + tool.Name} {
			if got := Called([]string{called, "x"}).Name; got != tool.Name {
				t.Errorf("%s runs %s", called, got)
			}
		}
	}
	for _, args := range [][]string{nil, {""}, {"smckit"}, {"/proc/self/exe"}, {"smclab"}, {"smcss.old", "smcss"}} {
		if got := Called(args).Name; got != name {
			t.Errorf("%q runs %s", args, got)
		}
	}
}
