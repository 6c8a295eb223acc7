// SPDX-License-Identifier: Apache-2.0

package smcss

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/jsondoc"
	"github.com/smckit/smckit/internal/jsondoc/jsontest"
	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/smckit/smckit/pkg/smcerr"
)

// TestUsage checks invalid command lines: one line on standard error, nothing on standard output, status 2, and no socket
// opened.
func TestUsage(t *testing.T) {
	for args, want := range map[string]string{
		"foo":                        `unexpected operand "foo"`,
		"-a foo":                     `unexpected operand "foo"`,
		"-- -a":                      `unexpected operand "-a"`,
		"-x":                         "unknown shorthand flag: 'x' in -x",
		"-ax":                        "unknown shorthand flag: 'x' in -x",
		"--nope":                     "unknown flag: --nope",
		"--smc":                      "unknown flag: --smc",
		"-D -R":                      "--smcd together with --smcr is not supported",
		"-RDl":                       "--smcd together with --smcr is not supported",
		"-laRd":                      "--listening together with --debug is not supported",
		"-laR":                       "--listening together with --all is not supported",
		"-lR":                        "--listening together with --smcr is not supported",
		"--list --smcd":              "--listening together with --smcd is not supported",
		"-l --state active":          "--listening together with --state is not supported",
		"-sd":                        "--summary together with --debug is not supported",
		"-sp":                        "--summary together with --processes is not supported",
		"--state":                    "flag needs an argument: --state",
		"--state foo":                `"foo" is not a state: use init, listen, active`,
		"--state active,":            `"" is not a state`,
		"--state=":                   `"" is not a state`,
		"--mode ism":                 `"ism" is not a mode: use smcr, smcd, tcp`,
		"--port 0":                   `"0" is not a port: use a number from 1 to 65535`,
		"--port 65536":               `"65536" is not a port`,
		"--port 80,http":             `"http" is not a port`,
		"--port -1":                  `"-1" is not a port`,
		"--local 10.0.0":             `"10.0.0" is not an address`,
		"--local 10.0.0.0/33":        `"10.0.0.0/33" is not an address`,
		"--local 10.0.0.1:":          `"" is not a port`,
		"--local 10.0.0.1:0":         `"0" is not a port`,
		"--local fe80::1%eth0":       `"fe80::1%eth0" is not an address`,
		"--local fe80::1%eth\x1b/64": `is not an address`,
		"--peer [::1":                `is not an address`,
		"--peer example.org":         `"example.org" is not an address`,
		"--peer \xff":                `"\xff" is not an address`,
		"--uid bob":                  `"bob" is neither a user ID nor the name of a user of this host`,
		"--uid 4294967296":           `"4294967296" is neither`,
		"--uid -1":                   `"-1" is neither`,
		"--watch 0":                  `give the seconds between two rounds, 0.1 to 86400`,
		"--watch -5":                 `give the seconds between two rounds, 0.1 to 86400`,
		"--watch NaN":                `give the seconds between two rounds, 0.1 to 86400`,
		"--watch 1e9":                `give the seconds between two rounds, 0.1 to 86400`,
		"--watch 2s":                 `give the seconds between two rounds, 0.1 to 86400`,
		"-N ns1 -DR":                 "--smcd together with --smcr is not supported",
	} {
		t.Run(args, func(t *testing.T) {
			h := newHarness(t, nil)
			h.deps.open = func() (source, error) {
				t.Error("a netlink socket was opened")
				return nil, os.ErrPermission
			}
			if status := h.run(strings.Fields(args)...); status != cli.ExitUsage {
				t.Errorf("exit status %d", status)
			}
			if h.out.Len() > 0 {
				t.Errorf("standard output: %q", &h.out)
			}
			checkOneLine(t, h.err.String(), want)
		})
	}
}

func checkOneLine(t *testing.T, got, want string) {
	t.Helper()
	if !strings.HasPrefix(got, "smcss: ") || !strings.Contains(got, want) {
		t.Errorf("standard error: %q, want %q", got, want)
	}
	if strings.Count(got, "\n") != 1 || !strings.HasSuffix(got, "\n") || cli.Printable(got[:len(got)-1]) != got[:len(got)-1] {
		t.Errorf("standard error is not one printable line: %q", got)
	}
}

// TestSpellings checks the spellings that smc-tools accepts for the same options.
func TestSpellings(t *testing.T) {
	for _, spellings := range [][]string{
		{"-a", "--all", "--al", "-aa", "--a", "-a --all -a"},
		{"-l", "--listening", "--list", "--l"},
		{"-dRW", "-d -R -W", "--d --smcr --w", "-WRd", "--debug --smcr --wide"},
		{"-D", "--smcd"},
	} {
		var want string
		for i, args := range spellings {
			h := newHarness(t, &fakeSource{sockets: testSockets()})
			if status := h.run(strings.Fields(args)...); status != 0 {
				t.Errorf("smcss %s: exit status %d: %s", args, status, &h.err)
			}
			if i == 0 {
				want = h.out.String()
			}
			if diff := cmp.Diff(want, h.out.String()); diff != "" {
				t.Errorf("smcss %s (-want +got):\n%s", args, diff)
			}
		}
	}
}

// TestNothingOpened checks command lines that do not access the kernel.
func TestNothingOpened(t *testing.T) {
	for args, want := range map[string]string{
		"--version":                "smcss utility, smckit-",
		"-v":                       "smcss utility, smckit-",
		"-DRv foo":                 "smcss utility, smckit-",
		"--vers":                   "smcss utility, smckit-",
		"--help":                   "Exit status",
		"-h":                       "0x0303000b",
		"__complete --state peerc": "peerclosewait1\npeerclosewait2\n",
		"__complete --mode s":      "smcr\nsmcd\n",
		"completion bash":          "bash completion",
	} {
		h := newHarness(t, nil)
		h.deps.open = func() (source, error) {
			t.Errorf("smcss %s opened a netlink socket", args)
			return nil, os.ErrPermission
		}
		if status := h.run(strings.Fields(args)...); status != 0 {
			t.Errorf("smcss %s: exit status %d: %s", args, status, &h.err)
		}
		if !strings.Contains(h.out.String(), want) {
			t.Errorf("smcss %s: %q, want %q", args, &h.out, want)
		}
	}
}

// TestHelp checks that every option is described, and every state and reason explained.
func TestHelp(t *testing.T) {
	cmd := newCommand(newHarness(t, nil).env, systemDeps())
	for _, state := range states {
		if !strings.Contains(cmd.Long, "\n  "+state.String()+" ") {
			t.Errorf("state %s is not explained", state)
		}
	}
	for line := range strings.Lines(helpHead) {
		if len(line) > 81 {
			t.Errorf("line is too long: %s", line)
		}
	}
}

// TestNoAnswer checks failures before the first socket: only the error is printed.
func TestNoAnswer(t *testing.T) {
	noModule := &smcerr.Error{
		Op: "list AF_SMC sockets", Kind: netlinksmc.ErrNoModule, Remedy: "run 'modprobe smc_diag' as root",
		Err: syscall.ENOENT,
	}
	for _, args := range []string{"", "-a", "-p", "-s", "--json", "-s --json", "--watch 1", "--watch 1 --json"} {
		for name, d := range map[string]struct {
			open, dump error
			want       string
		}{
			"module": {dump: noModule, want: "list AF_SMC sockets: SMC module not available: run 'modprobe smc_diag' as root"},
			"socket": {open: noModule, want: "SMC module not available"},
			"memory": {dump: fmt.Errorf("list\nsockets: %w", syscall.ENOBUFS), want: "list sockets: no buffer space available"},
		} {
			h := newHarness(t, nil)
			src := &fakeSource{err: d.dump}
			h.deps.open = func() (source, error) { return src, d.open }
			h.deps.tick = func(time.Duration) (<-chan time.Time, func()) { return nil, func() {} }
			if status := h.run(strings.Fields(args)...); status != cli.ExitFailure {
				t.Errorf("smcss %s, %s: exit status %d", args, name, status)
			}
			if strings.Contains(args, "--json") {
				jsontest.CheckFailure(t, h.out.Bytes(), h.err.String(), cli.ExitFailure)
			} else if h.out.Len() > 0 {
				t.Errorf("smcss %s, %s: standard output: %q", args, name, &h.out)
			}
			checkOneLine(t, h.err.String(), d.want)
			if d.open == nil && src.closed != 1 {
				t.Errorf("smcss %s, %s: the netlink socket was closed %d times", args, name, src.closed)
			}
		}
	}
}

// TestBrokenOff checks a failure in the middle: the sockets before it are printed, and the JSON document is left incomplete.
func TestBrokenOff(t *testing.T) {
	for _, args := range []string{"-a", "-a --json"} {
		h := newHarness(t, &fakeSource{sockets: testSockets(), err: syscall.ENOMEM})
		if status := h.run(strings.Fields(args)...); status != cli.ExitFailure {
			t.Errorf("smcss %s: exit status %d", args, status)
		}
		checkOneLine(t, h.err.String(), "cannot allocate memory")
		if !strings.Contains(h.out.String(), "PEERCLOSEWAIT1") {
			t.Errorf("smcss %s: the sockets before the failure are missing", args)
		}
		if json.Valid(h.out.Bytes()) {
			t.Errorf("smcss %s: the document is finished", args)
		}
	}
}

func TestInterrupted(t *testing.T) {
	interrupted := fmt.Errorf("list sockets: %w", netlinksmc.ErrDumpInterrupted)
	for _, tc := range []struct{ args, end string }{
		{"", "0x7? \n"},
		{"-p", "0x7? \n"},
		{"--json", "    }\n  ],\n  \"interrupted\": true\n}\n"},
		{"--json --port 7", "\"sockets\": [],\n  \"interrupted\": true\n}\n"},
		{"-s --json", "  ],\n  \"interrupted\": true\n}\n"},
	} {
		h := newHarness(t, &fakeSource{sockets: testSockets(), err: interrupted})
		h.deps.proc = t.TempDir()
		if status := h.run(strings.Fields(tc.args)...); status != 0 {
			t.Errorf("smcss %s: exit status %d", tc.args, status)
		}
		checkOneLine(t, h.err.String(), "warning: the list of sockets changed")
		if !strings.HasSuffix(h.out.String(), tc.end) {
			t.Errorf("smcss %s ends with %q", tc.args, h.out.String()[max(0, h.out.Len()-60):])
		}
	}
}

// TestUnwritable runs with a standard output that is closed (| head) or full.
func TestUnwritable(t *testing.T) {
	many := bytes.Repeat([]byte{0}, 5000)
	var sockets []netlinksmc.Socket
	for range many {
		sockets = append(sockets, testSockets()[3])
	}
	for _, args := range []string{"", "--json", "-s"} {
		for _, n := range []int{0, 70000} {
			if args == "-s" && n > 0 {
				continue
			}
			h := newHarness(t, &fakeSource{sockets: sockets})
			h.env.Out = &failingWriter{n: n, err: syscall.EPIPE}
			if status := h.run(strings.Fields(args)...); status != cli.ExitFailure || h.err.Len() > 0 {
				t.Errorf("smcss %s, closed: exit status %d, standard error %q", args, status, &h.err)
			}
			h = newHarness(t, &fakeSource{sockets: sockets})
			h.env.Out = &failingWriter{n: n, err: syscall.ENOSPC}
			if status := h.run(strings.Fields(args)...); status != cli.ExitFailure {
				t.Errorf("smcss %s, full: exit status %d", args, status)
			}
			checkOneLine(t, h.err.String(), "no space left on device")
		}
	}
}

// TestExtensions checks that the command requests only the extensions that it shows.
func TestExtensions(t *testing.T) {
	const conn, link, dmb = netlinksmc.DiagConnInfo, netlinksmc.DiagLinkGroup, netlinksmc.DiagDMB
	for args, want := range map[string][]netlinksmc.DiagExt{
		"":          {0},
		"-a":        {0},
		"-d":        {conn},
		"-R":        {link},
		"-D":        {dmb},
		"-dR":       {conn | link},
		"-dD":       {conn | dmb},
		"-pdD":      {0, conn | dmb},
		"-sR":       {0},
		"--json":    {0},
		"--json -d": {conn | link | dmb},
		"--json -R": {link},
	} {
		src := &fakeSource{}
		newHarness(t, src).run(strings.Fields(args)...)
		if diff := cmp.Diff(want, src.asked); diff != "" {
			t.Errorf("smcss %s (-want +got):\n%s", args, diff)
		}
	}
}

func TestNetNS(t *testing.T) {
	h := newHarness(t, nil)
	if status := h.run("-N", "ns1"); status != cli.ExitFailure {
		t.Errorf("exit status %d", status)
	}
	checkOneLine(t, h.err.String(), "entered ns1")
}

// TestJSONDocument checks that the streamed document equals the one that encoding/json makes of the whole.
func TestJSONDocument(t *testing.T) {
	for n := range 4 {
		h := newHarness(t, &fakeSource{sockets: testSockets()[3 : 3+n]})
		h.run("--json", "-d", "--explain")
		doc := jsonDocument{Sockets: []jsonSocket{}}
		if err := jsondoc.Decode(h.out.Bytes(), &doc); err != nil {
			t.Fatal(err)
		}
		var want bytes.Buffer
		if err := cli.WriteJSON(&want, doc); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.String(), h.out.String()); diff != "" {
			t.Errorf("%d sockets (-want +got):\n%s", n, diff)
		}
		if len(doc.Sockets) != n {
			t.Errorf("%d sockets, want %d", len(doc.Sockets), n)
		}
	}
}

// runWatch runs --watch until it has listed n times.
func runWatch(t *testing.T, h *harness, src *fakeSource, n int, args ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ticks := make(chan time.Time, n)
	for range n - 1 {
		ticks <- time.Time{}
	}
	src.onClose = func() {
		if src.closed == n {
			cancel()
		}
	}
	stopped := false
	h.deps.tick = func(d time.Duration) (<-chan time.Time, func()) {
		if d != 1500*time.Millisecond {
			t.Errorf("listing every %v", d)
		}
		return ticks, func() { stopped = true }
	}
	if status := h.runContext(ctx, append(args, "--watch", "1.5")...); status != 128+int(syscall.SIGINT) {
		t.Errorf("exit status %d: %s", status, &h.err)
	}
	if !stopped {
		t.Error("the ticker goes on")
	}
	if h.err.Len() > 0 {
		t.Errorf("standard error: %s", &h.err)
	}
}

func TestWatch(t *testing.T) {
	const head = "State          UID   Inode   Local Address           Peer Address            Intf Mode \n"
	const row = "ACTIVE         00000 0045678 10.0.0.1:37373          10.0.0.2:40001          0003 SMCR \n"
	const line = `{"schema":1,"time":"2026-01-02T03:04:05Z",`
	const socket = `{"state":"ACTIVE","mode":"SMCR","uid":0,"inode":45678,"cookie":"fedcba9876543210",` +
		`"local":{"address":"10.0.0.1","port":37373},"peer":{"address":"10.0.0.2","port":40001},` +
		`"bound_ifindex":3,"bound_ifname":"eth0","shutdown":{"receive":false,"send":false}}`
	const counts = `"total":1,"states":[{"state":"ACTIVE","sockets":1}],"modes":[{"mode":"SMCR","sockets":1}],"fallbacks":[]}` + "\n"
	for name, tc := range map[string]struct {
		args     string
		terminal bool
		want     string
	}{
		"pipe":          {"", false, head + row + "\n" + head + row},
		"terminal":      {"", true, cli.ClearScreen + head + row + cli.ClearScreen + head + row},
		"json":          {"--json=1", false, strings.Repeat(line+`"sockets":[`+socket+"]}\n", 2)},
		"json terminal": {"--json=1 --port 7", true, strings.Repeat(line+`"sockets":[]}`+"\n", 2)},
		"json summary":  {"--json=1 -s", false, strings.Repeat(line+counts, 2)},
	} {
		t.Run(name, func(t *testing.T) {
			src := &fakeSource{sockets: testSockets()[3:4]}
			h := newHarness(t, src)
			h.env.Terminal = tc.terminal
			runWatch(t, h, src, 2, strings.Fields(tc.args)...)
			if diff := cmp.Diff(tc.want, h.out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestWatchEnds checks the causes that end --watch without a signal.
func TestWatchEnds(t *testing.T) {
	ticks := func(time.Duration) (<-chan time.Time, func()) {
		c := make(chan time.Time)
		close(c)
		return c, func() {}
	}
	src := &fakeSource{sockets: testSockets()}
	h := newHarness(t, src)
	h.deps.tick = ticks
	h.env.Out = &failingWriter{n: 10000, err: syscall.EPIPE}
	if status := h.run("--watch", "1"); status != cli.ExitFailure || h.err.Len() > 0 {
		t.Errorf("closed output: exit status %d, standard error %q", status, &h.err)
	}

	src = &fakeSource{sockets: testSockets()}
	src.onClose = func() { src.err = syscall.ENOMEM }
	h = newHarness(t, src)
	h.deps.tick = ticks
	if status := h.run("--watch", "1"); status != cli.ExitFailure {
		t.Errorf("failing kernel: exit status %d", status)
	}
	checkOneLine(t, h.err.String(), "cannot allocate memory")
}
