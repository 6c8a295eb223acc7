// SPDX-License-Identifier: Apache-2.0

package smcchk

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/smckit/smckit/internal/check"
	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/golden"
	"github.com/smckit/smckit/internal/jsondoc"
	"github.com/smckit/smckit/internal/jsondoc/jsontest"
	"github.com/smckit/smckit/pkg/ism"
	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// harness runs the command on a host in memory.
type harness struct {
	host     *check.Snapshot
	live     check.Live
	resolved error
	listen   error
	// clients are served by the server before it is interrupted.
	clients  []client
	noAFSMC  bool
	targets  []netip.AddrPort
	listened netip.AddrPort

	out, err bytes.Buffer
}

func newHarness() *harness {
	on := true
	return &harness{
		host: &check.Snapshot{
			Kernel:    check.Kernel{Release: "7.2.0"},
			Module:    check.Module{Loaded: true, Ours: true, Version: "1.0", SMCR: &on, SMCD: &on, File: "/lib/modules/7.2.0/updates/smc.ko"},
			Identity:  check.Identity{Known: true, UEIDs: []string{"EID"}},
			Namespace: check.Namespace{Initial: true},
			Interfaces: []check.Interface{
				{
					Name: "eth0", Index: 2, Kind: "device", Up: true, Carrier: true, MTU: 1500,
					Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/24")}, PNETID: ism.PNETID{ID: "NET1", Source: ism.SourceTable},
				},
				{Name: "eth1", Kind: "device", PNETID: ism.PNETID{ID: "NET2", Source: ism.SourceHardware}},
				{Name: "lo", Kind: "device", Loopback: true, Up: true},
			},
			Adapters: []ism.Device{{Kind: ism.KindRoCE, Name: "mlx5_0"}},
			Ports: []check.Port{
				{
					Device: "mlx5_0", Number: 1, RoCE: true, State: "ACTIVE", NetDev: "eth0", PNETID: ism.PNETID{ID: "NET1", Source: ism.SourceTable},
					GIDs: []check.GID{{Addr: netip.MustParseAddr("::ffff:10.0.0.1"), RoCEv2: true, NetDev: "eth0"}},
				},
				{Device: "mlx5_1", Number: 1, PNETID: ism.PNETID{ID: "NET2", Source: ism.SourceHardware}},
			},
			ISM:   []netlinksmc.Device{{CHID: 0xffff, PCIID: "loopback-ism"}},
			Rules: check.Rules{Readable: true},
		},
		live: check.Live{
			Transport: check.Transport{Mode: "SMC-R", Version: "2.1"},
			Peer:      &check.Hello{AFSMC: true, Transport: check.Transport{Mode: "SMC-R", Version: "2.1"}},
			Latency:   12500 * time.Nanosecond, Throughput: 3 << 30,
		},
	}
}

func (h *harness) deps() deps {
	return deps{
		read: func(_ context.Context, host string, peer netip.Addr) (*check.Snapshot, error) {
			s := *h.host
			if peer.IsValid() && s.Path == nil {
				s.Path = &check.Path{Host: host, Peer: peer, Interface: "eth0", Source: netip.MustParseAddr("10.0.0.1")}
			}
			return &s, nil
		},
		resolve: func(_ context.Context, host string, ipv6 bool) (netip.Addr, error) {
			if ipv6 {
				return netip.MustParseAddr("fd00::2"), h.resolved
			}
			return netip.MustParseAddr("10.0.0.2"), h.resolved
		},
		try: func(_ context.Context, target netip.AddrPort, timeout time.Duration) check.Live {
			if timeout < time.Second {
				return check.Live{}
			}
			h.targets = append(h.targets, target)
			live := h.live
			live.Target = target
			return live
		},
		listen: func(addr netip.AddrPort, served servedFunc) (server, uint16, bool, error) {
			h.listened = addr
			return &fakeServer{h, served}, addr.Port() + 1, !h.noAFSMC, h.listen
		},
	}
}

// fakeServer serves its clients and then behaves as if it were interrupted.
type fakeServer struct {
	h      *harness
	served servedFunc
}

func (s *fakeServer) Close() error { return nil }

func (s *fakeServer) Serve(context.Context) error {
	for _, c := range s.h.clients {
		s.served(c.from, c.transport, c.err)
	}
	return context.Canceled
}

func (h *harness) run(args ...string) int { return h.runTool(h.tool(), args...) }

func (h *harness) runTool(tool cli.Tool, args ...string) int {
	env := &cli.Env{Out: &h.out, Err: &h.err, Getenv: func(string) string { return "" }, EnterNetNS: func(string) error { return errors.New("entered") }}
	return cli.Run(context.Background(), tool, env, args)
}

// tool returns the command with the fakes.
func (h *harness) tool() cli.Tool {
	tool := Tool
	tool.New = func(env *cli.Env) *cobra.Command { return newCommand(env, h.deps()) }
	return tool
}

// TestUsage checks invalid command lines: one line on standard error, nothing on standard output, status 2, and no access to
// the system.
func TestUsage(t *testing.T) {
	for args, want := range map[string]string{
		"foo":                      `unexpected operand "foo"`,
		"-C b 5001":                `unexpected operand "5001"`,
		"-S 1 2":                   `unexpected operand "2"`,
		"-S 1 -p 2":                `unexpected operand "1"`,
		"-S x":                     `"x" is not a port: use a number from 1 to 65535`,
		"-S 0":                     `"0" is not a port`,
		"-S 65536":                 `"65536" is not a port`,
		"-C b -p -1":               `"-1" is not a port`,
		"-C b -p":                  "flag needs an argument: 'p'",
		"-p 5":                     "--port is for --connect and --server",
		"-C b -S":                  "--connect and --server cannot be combined",
		"-S -i eth0":               "--server and --pnetid cannot be combined",
		"-C b --conditions":        "--connect and --conditions cannot be combined",
		"-S -s":                    "--live-test and --static-analysis are for --connect, not for --server",
		"-i eth0 -l":               "are for --connect, not for --pnetid",
		"-l":                       "--live-test needs a peer: add --connect HOST",
		"--live --static":          "--live-test needs a peer",
		"--pnetid=":                "--pnetid needs the name of an interface",
		"--connect=":               `"" is not a peer: use HOST, HOST:PORT or [ADDRESS]:PORT`,
		"-C b:":                    `"b:" is not a peer`,
		"-C :5":                    `":5" is not a peer`,
		"-C b:x":                   `"x" is not a port`,
		"-C b:5 -p 6":              "two different ports: 5 and 6",
		"-C [::1":                  `"[::1" is not a peer`,
		"-C [b]:5":                 `"[b]:5" is not a peer`,
		"-C [::1]:":                `"[::1]:" is not a peer`,
		"-C [::1]5":                `"[::1]5" is not a peer`,
		"-C http://b/":             `"http://b/" is not a peer`,
		"-C fe80::1%eth0":          "is a link-local address, which SMC does not support",
		"-C 10.0.0.1 -6":           `"10.0.0.1" is not an IPv6 address`,
		"-C b --timeout 0":         "--timeout 0: use 1 to 600 seconds",
		"-C b --timeout 601":       "--timeout 601: use 1 to 600 seconds",
		"-C b --timeout -1":        `invalid argument "-1" for "--timeout"`,
		"-x":                       "unknown shorthand flag: 'x' in -x",
		"--nope":                   "unknown flag: --nope",
		"-N blue -C b -S":          "--connect and --server cannot be combined",
		"-C \x1b[2J:99999":         `"99999" is not a port`,
		"--connect b --server --s": "unknown flag: --s",
	} {
		t.Run(args, func(t *testing.T) {
			h := newHarness()
			if status := h.run(strings.Fields(args)...); status != cli.ExitUsage {
				t.Errorf("exit status %d", status)
			}
			if h.out.Len() > 0 || len(h.targets) > 0 || h.listened.IsValid() {
				t.Errorf("standard output: %q", &h.out)
			}
			text := h.err.String()
			if !strings.HasPrefix(text, "smc_chk: ") || !strings.Contains(text, want) || strings.Count(text, "\n") != 1 {
				t.Errorf("standard error: %q, not %q", text, want)
			}
		})
	}
}

// TestTargets parses operands that name a peer.
func TestTargets(t *testing.T) {
	for args, want := range map[string]string{
		"-C b":                      "10.0.0.2:37373",
		"-C b:80":                   "10.0.0.2:80",
		"--connect=b --port=80":     "10.0.0.2:80",
		"-C b:80 -p 80":             "10.0.0.2:80",
		"-C b -6":                   "[fd00::2]:37373",
		"-C fd00::2 -6":             "[fd00::2]:37373",
		"-C [fd00::2]:80 -6":        "[fd00::2]:80",
		"-C [fd00::2] -6":           "[fd00::2]:37373",
		"-C b --live -p 80":         "10.0.0.2:80",
		"--conn b --stat --live":    "10.0.0.2:37373",
		"-C b --static-analysis":    "",
		"-C b --static-analysis -d": "",
	} {
		h := newHarness()
		if status := h.run(strings.Fields(args)...); status != cli.ExitOK && status != cli.ExitFailure {
			t.Errorf("%s: exit status %d, %s", args, status, &h.err)
		}
		got := ""
		if len(h.targets) > 0 {
			got = h.targets[0].String()
		}
		if got != want {
			t.Errorf("%s: %s, not %s", args, got, want)
		}
	}
}

// goldens are command lines and hosts. Their output is in testdata.
var goldens = []struct {
	name, args string
	change     func(h *harness)
	status     int
}{
	{"host", "", func(*harness) {}, 0},
	{"host-json", "--json", func(*harness) {}, 0},
	{"nothing", "-s", func(h *harness) {
		h.host = &check.Snapshot{
			Kernel: check.Kernel{Release: "7.2.0\x1b[2J"}, Rules: check.Rules{Readable: true},
			Sockets: check.Sockets{IPv4: unix.EAFNOSUPPORT}, Unknown: []string{"devices: no sysfs"},
		}
	}, 1},
	{"live", "-C b", func(*harness) {}, 0},
	{"live-json", "-C b --json", func(*harness) {}, 0},
	{"live-and-static", "-C b -l -s", func(*harness) {}, 0},
	{"static", "-C b -s", func(*harness) {}, 0},
	{"stranger", "-C b:22", func(h *harness) {
		h.live = check.Live{Transport: check.Transport{Mode: "SMC-D"}, Failure: check.FailStranger, Err: errors.New(`it says "SSH-2.0"`)}
	}, 0},
	{"fallback", "-C b", func(h *harness) { h.live = fell(0x05000000, 0x03030008) }, 1},
	{"fallback-json", "-C b --json", func(h *harness) { h.live = fell(0x05000000, 0x03030008) }, 1},
	{"tcp-peer", "-C b", func(h *harness) {
		h.live = fell(0x03010000, 0)
		h.live.Peer = &check.Hello{Transport: check.Transport{Mode: "TCP"}}
	}, 1},
	{"unknown-transport", "-C b", func(h *harness) {
		h.live.Transport, h.live.TransportErr = check.Transport{}, errors.New("no smc_diag")
	}, 1},
	{"unreachable", "-C b", func(h *harness) {
		h.live = check.Live{Failure: check.FailTimeout, Err: unix.ETIMEDOUT}
	}, 1},
	{"unknown-host", "-C b", func(h *harness) { h.resolved = errors.New("no such host") }, 1},
	{"no-route", "-C b", func(h *harness) {
		h.host.Path = &check.Path{Host: "b", Peer: netip.MustParseAddr("10.0.0.2"), RouteErr: unix.ENETUNREACH}
	}, 1},
	{"pnetid", "-i eth0", func(*harness) {}, 0},
	{"pnetid-hardware", "-i eth1", func(*harness) {}, 0},
	{"pnetid-none", "-i lo", func(*harness) {}, 0},
	{"pnetid-json", "-i eth0 --json", func(*harness) {}, 0},
	{"pnetid-none-json", "-i lo --json", func(*harness) {}, 0},
	{"server", "-S 4000", func(h *harness) { h.clients = someClients() }, 130},
	{"server-json", "--server --json", func(h *harness) { h.clients = someClients() }, 130},
	{"help", "--help", func(*harness) {}, 0},
}

func fell(own, peers netlinksmc.Reason) check.Live {
	transport := func(r netlinksmc.Reason) check.Transport {
		return check.Transport{Mode: "TCP", Fallback: &netlinksmc.Fallback{Reason: r}}
	}
	return check.Live{Transport: transport(own), Peer: &check.Hello{AFSMC: true, Transport: transport(peers)}, Latency: time.Millisecond}
}

func someClients() []client {
	from := netip.MustParseAddrPort("10.0.0.9:4242")
	return []client{
		{from: from, transport: check.Transport{Mode: "SMC-R", Version: "2.1"}},
		{from: from, transport: check.Transport{Mode: "TCP", Fallback: &netlinksmc.Fallback{Reason: 0x03010000}}},
		{from: from, transport: check.Transport{Mode: "TCP"}},
		{from: from, err: errors.New("no smc_diag")},
	}
}

// TestOutput compares the output with golden files.
func TestOutput(t *testing.T) {
	for _, tt := range goldens {
		t.Run(tt.name, func(t *testing.T) {
			h := newHarness()
			tt.change(h)
			if status := h.run(strings.Fields(tt.args)...); status != tt.status || h.err.Len() > 0 {
				t.Errorf("exit status %d, %s", status, &h.err)
			}
			golden.Check(t, filepath.Join("testdata", tt.name+".txt"), h.out.String())
			if !strings.Contains(tt.args, "--json") {
				return
			}
			check := jsontest.Check
			if strings.Contains(tt.args, "--server") {
				check = jsontest.CheckLines
			}
			check(t, h.out.Bytes())
			var doc Document
			if err := jsondoc.Decode(h.out.Bytes(), &doc); err != nil && strings.Contains(h.out.String(), `"able"`) {
				t.Error(err)
			}
			old := newHarness()
			tt.change(old)
			old.run(strings.Fields(strings.Replace(tt.args, "--json", "--json=1", 1))...)
			golden.Check(t, filepath.Join("testdata", "schema1", tt.name+".txt"), old.out.String())
		})
	}
}

// TestFailures checks failures of the command itself, as opposed to findings.
func TestFailures(t *testing.T) {
	for args, want := range map[string]string{
		"-i nope":       `interface "nope" does not exist`,
		"-i a\x1b[2Jb":  `interface "a\x1b[2Jb" does not exist`,
		"-S":            "listening on 0.0.0.0:37373: permission denied",
		"-N blue -i lo": "entered",
	} {
		h := newHarness()
		h.listen = errors.New("listening on 0.0.0.0:37373: permission denied")
		if status := h.run(strings.Fields(args)...); status != cli.ExitFailure || h.out.Len() > 0 {
			t.Errorf("%s: exit status %d, %q", args, status, &h.out)
		}
		if text := h.err.String(); !strings.Contains(text, want) || strings.Count(text, "\n") != 1 {
			t.Errorf("%s: %q", args, text)
		}
	}
}

// TestServerWithoutSMC checks that a server without AF_SMC prints a warning.
func TestServerWithoutSMC(t *testing.T) {
	h := newHarness()
	h.noAFSMC = true
	if status := h.run("-6", "-S"); status != 130 || h.listened.String() != "[::]:37373" {
		t.Errorf("exit status %d, listened on %s", status, h.listened)
	}
	if !strings.HasPrefix(h.err.String(), "smc_chk: warning: this host has no AF_SMC") || !strings.HasPrefix(h.out.String(), "Server started on port 37374\n") {
		t.Errorf("%q %q", &h.err, &h.out)
	}
}

// TestDebug checks that --debug prints the facts to standard error, so that scripts that read standard output still work.
func TestDebug(t *testing.T) {
	plain, debug := newHarness(), newHarness()
	plain.run()
	debug.run("-d")
	if plain.out.String() != debug.out.String() || !strings.Contains(debug.err.String(), "[DEBUG] port: ") {
		t.Errorf("%q", &debug.err)
	}
}

// TestConditionsListed checks that every condition is listed as text and as JSON.
func TestConditionsListed(t *testing.T) {
	text, doc := newHarness(), newHarness()
	text.run("--conditions")
	doc.run("--conditions", "--json")
	jsontest.Check(t, doc.out.Bytes())
	var parsed conditionsDocument
	if err := jsondoc.Decode(doc.out.Bytes(), &parsed); err != nil {
		t.Fatalf("%v, %s", err, &doc.out)
	}
	for i, c := range check.Conditions() {
		if !strings.Contains(text.out.String(), "\n"+c.ID+" ") || parsed.Conditions[i].ID != c.ID {
			t.Errorf("%s is missing", c.ID)
		}
	}
}

// TestDocumented compares the table in docs/smc_chk.md with the conditions.
func TestDocumented(t *testing.T) {
	const file, begin, end = "../../../docs/smc_chk.md", "<!-- conditions -->\n", "<!-- end -->\n"
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(b), begin)
	_, tail, found := strings.Cut(rest, end)
	if !ok || !found {
		t.Fatalf("%s has no place for the table", file)
	}
	var table strings.Builder
	table.WriteString("| condition | severity | text | remedy |\n|---|---|---|---|\n")
	for _, c := range check.Conditions() {
		table.WriteString("| " + strings.Join([]string{c.ID, string(c.Severity), check.Plain(c.Text), check.Plain(c.Remedy)}, " | ") + " |\n")
	}
	golden.Check(t, file, head+begin+table.String()+end+tail)
}

// TestHints checks that findings name commands as the user has called them, as text and in JSON.
func TestHints(t *testing.T) {
	const own, suite = "add the same one on all hosts: smcr ueid add MYCLUSTER;", "add the same one on all hosts: smckit eid add MYCLUSTER;"
	for _, option := range []string{"", "--json", "--json=1"} {
		h := newHarness()
		h.host.Identity.UEIDs = nil
		if h.run(strings.Fields(option)...); !strings.Contains(h.out.String(), own) {
			t.Errorf("smc_chk %s: %s", option, &h.out)
		}
		h.out.Reset()
		h.runTool(cli.Tool{
			Name: "smckit", New: func(*cli.Env) *cobra.Command { return &cobra.Command{Use: "smckit"} },
			Subs: []cli.Sub{{Name: "check", Tool: h.tool()}, {Name: "eid", Tool: cli.Tool{Name: "smcr ueid", New: h.tool().New}}},
		}, append([]string{"check"}, strings.Fields(option)...)...)
		if !strings.Contains(h.out.String(), suite) {
			t.Errorf("smckit check %s: %s", option, &h.out)
		}
	}
}
