// SPDX-License-Identifier: Apache-2.0

package smcss

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/smckit/smckit/internal/golden"
	"github.com/smckit/smckit/internal/jsondoc/jsontest"
	"github.com/smckit/smckit/pkg/netlinksmc"
)

func TestGolden(t *testing.T) {
	for name, args := range map[string]string{
		"default":            "",
		"all":                "--all",
		"all-wide":           "-aW",
		"listening":          "-l",
		"listening-wide":     "--listening --wide",
		"debug":              "-d",
		"all-debug-wide":     "-adW",
		"smcr":               "-R",
		"all-smcr":           "-aR",
		"smcr-debug":         "-Rd",
		"smcr-wide":          "-RW",
		"smcd":               "-D",
		"all-smcd":           "-aD",
		"smcd-debug-wide":    "-dDW",
		"explain":            "-a --explain",
		"explain-debug":      "--explain --mode tcp -d",
		"processes":          "-ap",
		"processes-smcd":     "-pD",
		"processes-explain":  "-p --explain --mode tcp",
		"summary":            "-s",
		"summary-explain":    "-s --explain",
		"summary-smcd":       "-sD",
		"summary-listening":  "-sl",
		"summary-json":       "-s --json --explain",
		"json":               "-a --json",
		"json-explain":       "--json --explain --mode tcp",
		"json-debug":         "--json -d --state active",
		"json-smcd":          "--json -D",
		"json-smcr":          "--json -R --state peerclosewait1",
		"json-processes":     "--json -ap --state listen,init",
		"json-empty":         "--json --port 7",
		"filter-state":       "--state listen,Closed --state INIT",
		"filter-mode":        "--mode smcr,smcd -a",
		"filter-port":        "--port 40001",
		"filter-local":       "--local 192.168.100.0/24",
		"filter-peer":        "--peer 10.0.0.3,[::1]:65535",
		"filter-uid":         "--uid alice --uid 4294967294 --mode tcp",
		"filter-none":        "--port 7",
		"filter-all-options": "--uid 1000 --port 37373 --local 10.0.0.1 --peer :40001 --mode tcp --state active",
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, &fakeSource{sockets: testSockets()})
			h.deps.proc = testProc(t)
			h.vars["COLUMNS"] = "1"
			if status := h.run(strings.Fields(args)...); status != 0 {
				t.Errorf("exit status %d", status)
			}
			if h.err.Len() > 0 {
				t.Errorf("standard error: %s", &h.err)
			}
			golden.Check(t, filepath.Join("testdata", "golden", name), h.out.String())
			if strings.Contains(args, "--json") {
				jsontest.Check(t, h.out.Bytes())
				old := newHarness(t, &fakeSource{sockets: testSockets()})
				old.deps.proc = h.deps.proc
				old.run(strings.Fields(strings.Replace(args, "--json", "--json=1", 1))...)
				golden.Check(t, filepath.Join("testdata", "golden", "schema1", name), old.out.String())
			}
		})
	}
}

// TestSpecimen compares the output with lines of smc-tools, including blanks at the end.
func TestSpecimen(t *testing.T) {
	const head = "State          UID   Inode   Local Address           Peer Address            Intf Mode "
	const debug = "Shutd Token    Sndbuf   Rcvbuf   Peerbuf  rxprod-Cursor rxcons-Cursor rxFlags " +
		"txprod-Cursor txcons-Cursor txFlags txprep-Cursor txsent-Cursor txfin-Cursor  "
	sockets := []netlinksmc.Socket{
		{State: netlinksmc.StateInit, Inode: 7},
		{State: netlinksmc.StateListen, Inode: 45679, Local: ep("0.0.0.0:37373")},
		{State: netlinksmc.StateActive, Inode: 45678, Local: ep("10.0.0.1:37373"), Peer: ep("10.0.0.2:40001")},
		{
			State: netlinksmc.StateActive, Mode: netlinksmc.ModeTCP, UID: 1000, Inode: 45679,
			Local: ep("10.0.0.1:37373"), Peer: ep("10.0.0.3:40001"),
			Fallback: &netlinksmc.Fallback{Reason: 0x03010000, PeerDiagnosis: 0x03030000},
		},
		{State: netlinksmc.StateClosed, Local: ep("10.0.0.1:80"), Peer: ep("10.0.0.2:9")},
	}
	const (
		init   = "INIT           00000 0000007 \n"
		listen = "LISTEN         00000 0045679 0.0.0.0:37373           \n"
		active = "ACTIVE         00000 0045678 10.0.0.1:37373          10.0.0.2:40001          0000 SMCR "
		tcp    = "ACTIVE         01000 0045679 10.0.0.1:37373          10.0.0.3:40001          0000 TCP 0x03010000/0x03030000\n"
		closed = "CLOSED         00000 0000000 10.0.0.1:80             10.0.0.2:9              0000 \n"
	)
	for _, tc := range []struct{ args, want string }{
		{"-a", head + "\n" + init + listen + active + "\n" + tcp + closed},
		{"", head + "\n" + active + "\n" + tcp + closed},
		{"-l", head + "\n" + listen},
		{"-D", head + "GID              Token            Peer-GID         Peer-Token       Linkid\n"},
		{
			"-aR", head + "Role IB-device       Port Linkid GID                                      Peer-GID\n" +
				init + listen + active + "\n" + closed,
		},
		{"-d", head + debug + "\n" + active + " <->  \n" + tcp + closed},
	} {
		h := newHarness(t, &fakeSource{sockets: sockets})
		h.run(strings.Fields(tc.args)...)
		if diff := cmp.Diff(tc.want, h.out.String()); diff != "" {
			t.Errorf("smcss %s (-want +got):\n%s", tc.args, diff)
		}
	}
}

// testProc creates a procfs with three processes, one of which may not be inspected.
func testProc(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for dir, fds := range map[string]map[string]string{
		"12": {"0": "/dev/null", "3": "socket:[45671]", "10": "socket:[45671]", "4": "socket:[999]", "5": "pipe:[45671]"},
		"9":  {"7": "socket:[45671]", "8": "socket:[45679]", "9": "socket:[]", "x": "socket:[45679]"},
		"77": {"1": "socket:[45681]", "2": "socket:[45670]", "3": "socket:[0]"},
	} {
		if err := os.MkdirAll(filepath.Join(root, dir, "fd"), 0o755); err != nil {
			t.Fatal(err)
		}
		for fd, target := range fds {
			if err := os.Symlink(target, filepath.Join(root, dir, "fd", fd)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for file, text := range map[string]string{
		"12/comm":    "iperf3\n",
		"9/comm":     "a\"b \xff\x1b[1m\n",
		"1":          "a file where a process should be",
		"self":       "not a process",
		"uptime":     "1 2\n",
		"nested/foo": "",
	} {
		path := filepath.Join(root, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}
