// SPDX-License-Identifier: Apache-2.0

package smcpnet

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/jsondoc/jsontest"
	"github.com/smckit/smckit/internal/pnettest"
)

// someRows is a table with entries of both kinds.
func someRows() []pnettest.Row {
	return []pnettest.Row{
		pnettest.Eth("NET1", "eth0"), pnettest.IB("NET1", "mlx4_0", 2), pnettest.Eth("ABCDEFGHIJKLMNOP", "eth1"),
		pnettest.IB("NET2", "0000:00:1f.0", 1),
	}
}

// TestCommands checks the output and the requests of command lines that succeed.
func TestCommands(t *testing.T) {
	const all = "NET1 eth0 n/a 255\nNET1 n/a mlx4_0 2\nABCDEFGHIJKLMNOP eth1 n/a 255\nNET2 n/a 0000:00:1f.0 1\n"
	tests := []struct {
		args string
		rows []pnettest.Row
		out  string
		err  string
		log  string // requests, separated by semicolons
	}{
		// The listing, byte for byte as smc-tools prints it.
		{args: "", rows: someRows(), out: all},
		{args: "-s", rows: someRows(), out: all},
		{args: "--show", rows: someRows(), out: all},
		{args: "--sh", rows: someRows(), out: all},
		{args: "show", rows: someRows(), out: all},
		{args: "list", rows: someRows(), out: all},
		{args: "show"},
		{args: "-s NET2", rows: someRows(), out: "NET2 n/a 0000:00:1f.0 1\n"},
		{args: "NET2 -s", rows: someRows(), out: "NET2 n/a 0000:00:1f.0 1\n"},
		{args: "-s net2", rows: someRows(), out: "NET2 n/a 0000:00:1f.0 1\n"},
		{args: "show net2", rows: someRows(), out: "NET2 n/a 0000:00:1f.0 1\n"},
		{args: "-s NOSUCH", rows: someRows()},
		{args: "show NOSUCH", rows: someRows()},
		{args: "-s -I eth0 -D mlx4_0 -P 1", err: "smc_pnet: interface eth0 ignored\nsmc_pnet: device mlx4_0 ignored\nsmc_pnet: ibport 1 ignored\n"},
		{args: "-I eth0", rows: someRows()[:1], out: "NET1 eth0 n/a 255\n", err: "smc_pnet: interface eth0 ignored\n"},

		// Adding, with the operand anywhere.
		{args: "-a NET1 -I eth0", log: "add NET1 eth eth0"},
		{args: "-a -I eth0 NET1", log: "add NET1 eth eth0"},
		{args: "-I eth0 NET1 -a", log: "add NET1 eth eth0"},
		{args: "NET1 -Ieth0 -a", log: "add NET1 eth eth0"},
		{args: "-aI eth0 NET1", log: "add NET1 eth eth0"},
		{args: "--ad --int eth0 net1", log: "add NET1 eth eth0"},
		{args: "--interface=eth0 --add -- net1", log: "add NET1 eth eth0"},
		{args: "-a NET1 -D mlx4_0", log: "add NET1 ib mlx4_0 1"},
		{args: "-a NET1 -D mlx4_0 -P 2", log: "add NET1 ib mlx4_0 2"},
		{args: "-a NET1 -D mlx4_0 -P 0", log: "add NET1 ib mlx4_0 1"},
		{args: "-a NET1 -D mlx4_0 -P 0x2", log: "add NET1 ib mlx4_0 2"},
		{args: "-a NET1 -D mlx4_0 --ibport=02", log: "add NET1 ib mlx4_0 2"},
		{args: "-a NET1 -I eth0 -D 0000:00:1f.0", log: "add NET1 eth eth0;add NET1 ib 0000:00:1f.0 1"},
		{args: "-a NET1 -I eth0 -P 2", log: "add NET1 eth eth0", err: "smc_pnet: ibport 2 ignored\n"},
		{
			args: "-a NET1 -I nosuch", log: "add NET1 eth nosuch",
			err: "smc_pnet: warning: nosuch: no such network interface; the entry has no effect until it appears\n",
		},
		// A PNET ID may look like one of our sub-commands.
		{args: "-a show -I eth0", log: "add SHOW eth eth0"},
		{args: "add -a -I eth0", log: "add ADD eth eth0"},
		{args: "-I show del -a", log: "add DEL eth show", err: "smc_pnet: warning: show: no such network interface; the entry has no effect until it appears\n"},
		{args: "add net1 eth eth0", out: "added NET1 eth eth0\n", log: "add NET1 eth eth0"},
		{args: "add pnet0 ib mlx4_0", out: "added PNET0 ib mlx4_0 1\n", log: "add PNET0 ib mlx4_0 1"},
		{args: "add pnet0 ib mlx4_0 2", out: "added PNET0 ib mlx4_0 2\n", log: "add PNET0 ib mlx4_0 2"},
		{args: "add pnet0 ib 0000:00:1f.0", out: "added PNET0 ib 0000:00:1f.0 1\n", log: "add PNET0 ib 0000:00:1f.0 1"},
		{args: "add pnet0 eth nosuch --force", out: "added PNET0 eth nosuch\n", log: "add PNET0 eth nosuch"},
		{args: "add net1 eth eth0 --check", out: "would add NET1 eth eth0\n"},
		{args: "add net1 eth eth0 --diff", out: "+add NET1 eth eth0\n", log: "add NET1 eth eth0"},

		// Entries that already exist.
		{args: "add net1 eth eth0", rows: someRows(), out: "unchanged: NET1 eth eth0 is already in the table\n"},
		{args: "add net1 eth gone", rows: []pnettest.Row{pnettest.Eth("NET1", "gone")}, out: "unchanged: NET1 eth gone is already in the table\n"},
		{args: "-a NET1 -I eth0", rows: someRows(), out: "unchanged: NET1 eth eth0 is already in the table\n"},
		{args: "-a NET1 -I eth0 -D rxe0", rows: someRows(), log: "add NET1 ib rxe0 1"},

		// Deleting.
		{args: "-d NET1", rows: someRows(), log: "del NET1"},
		{args: "net1 --delete", rows: someRows(), log: "del NET1"},
		{args: "--de net1", rows: someRows(), log: "del NET1"},
		{args: "-d NET1 -I eth0", rows: someRows(), log: "del NET1", err: "smc_pnet: interface eth0 ignored\n"},
		{args: "del net1", rows: someRows(), out: "deleted NET1 eth eth0\ndeleted NET1 ib mlx4_0 2\n", log: "del NET1"},
		{args: "del net9 --ignore-missing", rows: someRows(), out: "unchanged: PNET ID NET9 is not in the table\n"},
		{args: "del net1 eth eth0", rows: someRows(), out: "deleted NET1 eth eth0\n", log: "del NET1;add NET1 ib mlx4_0 2"},
		{args: "del net1 ib mlx4_0", rows: someRows(), out: "deleted NET1 ib mlx4_0 2\n", log: "del NET1;add NET1 eth eth0"},
		{args: "del net1 ib mlx4_0 2 --check", rows: someRows(), out: "would delete NET1 ib mlx4_0 2\n"},
		{args: "del net1 ib mlx4_0 1 --ignore-missing", rows: someRows(), out: "unchanged: NET1 ib mlx4_0 1 is not in the table\n"},
		{args: "del net1 ib nosuch --ignore-missing", rows: someRows(), out: "unchanged: NET1 ib nosuch is not in the table\n"},
		{args: "del net2 eth eth0 --ignore-missing", rows: someRows(), out: "unchanged: NET2 eth eth0 is not in the table\n"},
		{args: "del net2 --diff", rows: someRows(), out: "-add NET2 ib 0000:00:1f.0 1\n", log: "del NET2"},
		{args: "-f", rows: someRows(), log: "flush"},
		{args: "--flush", log: "flush"},
		{args: "-f -I x", log: "flush", err: "smc_pnet: interface x ignored\n"},
		{args: "flush", out: "unchanged: the table is empty\n", log: "flush"},
		{args: "flush", rows: someRows()[:1], out: "deleted NET1 eth eth0\n", log: "flush"},
		{args: "flush --check", rows: someRows()[:1], out: "would delete NET1 eth eth0\n"},

		{
			args: "export", rows: someRows(),
			out: "add NET1 eth eth0\nadd NET1 ib mlx4_0 2\nadd ABCDEFGHIJKLMNOP eth eth1\nadd NET2 ib 0000:00:1f.0 1\n",
		},
		{args: "-v", out: "smc_pnet utility, smckit-0.1.0\n"},
		{args: "--version", out: "smc_pnet utility, smckit-0.1.0\n"},
		{args: "-a --vers", out: "smc_pnet utility, smckit-0.1.0\n"},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			h := newHarness(t, tt.rows...)
			if status := h.run(t, strings.Fields(tt.args)...); status != cli.ExitOK {
				t.Errorf("exit status %d", status)
			}
			if diff := cmp.Diff(tt.out, h.out.String()); diff != "" {
				t.Errorf("standard output: %s", diff)
			}
			if diff := cmp.Diff(tt.err, h.err.String()); diff != "" {
				t.Errorf("standard error: %s", diff)
			}
			if diff := cmp.Diff(tt.log, strings.Join(h.kernel.Log, ";")); diff != "" {
				t.Errorf("requests: %s", diff)
			}
		})
	}
}

// TestUsage checks invalid command lines: one line, status 2, and no access to the kernel.
func TestUsage(t *testing.T) {
	tests := map[string]string{
		"-a":                          "--add: the PNET ID is missing",
		"-d":                          "--delete: the PNET ID is missing",
		"-a NET1":                     "interface or device missing",
		"-a NET1 NET2 -I eth0":        `too many parameters: "NET2"`,
		"-s NET1 NET2":                `too many parameters: "NET2"`,
		"-f NET1":                     `--flush takes no parameters: "NET1"`,
		"NET1":                        `unknown command "NET1"`,
		"NET1 -I eth0":                `unknown command "NET1"`,
		"-a -a NET1 -I eth0":          "--add and --add: one command is needed",
		"-as NET1":                    "--add and --show: one command is needed",
		"-d NET1 --flush":             "--delete and --flush: one command is needed",
		"--add=NET1 -I eth0":          "this option takes no argument",
		"-a NET1 -I":                  "flag needs an argument",
		"-x":                          "unknown shorthand flag: 'x' in -x",
		"--ib mlx4_0":                 "unknown flag: --ib",
		"-a NET1 -D mlx4_0 -P 3":      `invalid ib port "3": 0 to 2 are allowed`,
		"-a NET1 -D mlx4_0 -P 256":    `invalid ib port "256"`,
		"-a NET1 -D mlx4_0 -P abc":    `invalid ib port "abc"`,
		"-a NET1 -D mlx4_0 -P -1":     `invalid ib port "-1"`,
		"-a NET1 -D mlx4_0 -P 0b1":    `invalid ib port "0b1"`,
		"-a NET1 -D mlx4_0 -P 1_":     `invalid ib port "1_"`,
		"-P 3":                        `invalid ib port "3"`,
		"-a NET-1 -I eth0":            `PNET ID "NET-1": character "-" at position 4`,
		"-a ABCDEFGHIJKLMNOPQ -I x":   `PNET ID "ABCDEFGHIJKLMNOPQ": 17 characters long, at most 16 are allowed`,
		"-a N\xd6T -I x":              `PNET ID "N\xd6T": character "\xd6" at position 2`,
		"-s a.b":                      `PNET ID "a.b": character "." at position 2`,
		"-a NET1 -I a23456789012345x": `interface "a23456789012345x": 16 characters long`,
		"-a NET1 -I a/b":              `interface "a/b": not the name of a network interface`,
		"-a NET1 -D a/b":              `RDMA device "a/b": not the name of an RDMA device`,
		"add":                         "the PNET ID is missing: add|del <PNET ID> eth|ib <device> [<port>]",
		"add ABCDEFGHIJKLMNOPQ eth x": "17 characters long",
		"add NET1":                    "the kind of device is missing, 'eth' or 'ib'",
		"add NET1 eth":                "the name of the device is missing",
		"add NET1 tr x":               `unknown kind of device "tr"`,
		"add NET1 eth eth0 1":         `unexpected word "1": a network interface has no port`,
		"add NET1 ib mlx4_0 0":        `port "0": an RDMA device has ports 1 to 2`,
		"add NET1 ib mlx4_0 3":        `port "3": an RDMA device has ports 1 to 2`,
		"add NET1 ib mlx4_0 256":      `port "256": an RDMA device has ports 1 to 2`,
		"add NET1 ib mlx4_0 abc":      `port "abc": not a number`,
		"add NET1 ib mlx4_0 1 2":      `unexpected word "2" after the port`,
		"del":                         "the PNET ID is missing",
		"del NET_1":                   `character "_" at position 4`,
		"del NET1 ib mlx4_0 3":        `port "3"`,
		"show A B":                    "accepts at most 1 arg(s)",
		"show A-B":                    `PNET ID "A-B"`,
		"flush NET1":                  `unknown command "NET1" for "smc_pnet flush"`,
		"export x":                    `unknown command "x" for "smc_pnet export"`,
		"apply":                       "accepts 1 arg(s), received 0",
		"apply a b":                   "accepts 1 arg(s), received 2",
		"add NET1 eth eth0 --nope":    "unknown flag: --nope",
		"-I eth0 show":                "unknown shorthand flag: 'I' in -I",
	}
	for args, want := range tests {
		t.Run(args, func(t *testing.T) {
			h := newHarness(t)
			h.expectFailure(t, cli.ExitUsage, want, strings.Fields(args)...)
			if h.dialed > 0 {
				t.Error("the kernel was accessed")
			}
		})
	}
	// Arguments that strings.Fields cannot produce.
	for _, args := range [][]string{
		{"add", "", "eth", "eth0"},
		{"add", "NET1", "eth", ""},
		{"add", "NET1", "ib", ""},
		{"add", "NET1", "ib", "mlx4_0", ""},
		{"-a", "", "-I", "eth0"},
		{"-a", "NET1", "-I", ""},
		{"-a", "NET1", "-D", ""},
		{"-a", "NET1", "-I", "eth0", "-D", ""},
		{"-a", "NET1", "-I", "a b"},
		{"-a", "NET1", "-D", "a\nb"},
		{"-d", " "},
		{""},
		{"\xff\x1b[2J"},
		{"show", "\xff\x1b[2J"},
		{"add", "NET1", "eth", "\x1b[2J"},
		{"-a", "NET1", "-P", "\xff\x1b[2J", "-I", "eth0"},
	} {
		h := newHarness(t)
		h.expectFailure(t, cli.ExitUsage, "", args...)
		if h.dialed > 0 {
			t.Errorf("%q: the kernel was accessed", args)
		}
	}
}

// expectFailure runs the command and expects the status, nothing on standard output, and one printable line that contains want
// on standard error.
func (h *harness) expectFailure(t *testing.T, status int, want string, args ...string) {
	t.Helper()
	if got := h.run(t, args...); got != status {
		t.Errorf("%q: exit status %d, want %d", args, got, status)
	}
	if h.out.Len() > 0 {
		t.Errorf("%q: standard output %q", args, &h.out)
	}
	line, ok := strings.CutSuffix(h.err.String(), "\n")
	if !ok || strings.Contains(line, "\n") || cli.Printable(line) != line {
		t.Errorf("%q: standard error %q is not one printable line", args, &h.err)
	}
	if !strings.HasPrefix(line, "smc_pnet: ") || !strings.Contains(line, want) {
		t.Errorf("%q: standard error %q, want %q in it", args, line, want)
	}
}

// TestFailures checks commands that fail: one line, status 1, and an unchanged table.
func TestFailures(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	tests := []struct {
		name   string
		kernel func(*pnettest.Kernel)
		sys    func(*system)
		in     string
		args   string
		want   string
	}{
		{name: "unknown interface", args: "add NET1 eth nosuch", want: "nosuch: no such network interface; use --force to add it for later"},
		{name: "mistyped interface", args: "add NET1 eth eht0", want: `eht0: no such network interface (did you mean "eth0"?); use --force to add it for later`},
		{name: "unknown RDMA device", args: "add NET1 ib nosuch", want: "nosuch: no such RDMA or ISM device; use --force"},
		{name: "unknown devices in a file", args: "apply -", in: "add A eth a\nadd A eth eth0\nadd A ib b\n", want: "a: no such network interface, b: no such RDMA or ISM device; use --force"},
		{name: "interface in another ID", args: "add NET2 eth eth0", want: "eth eth0 cannot be added to PNET ID NET2: it is in the table as 'NET1 eth eth0'; remove that entry first with 'smc_pnet del NET1 eth eth0'"},
		{name: "the same with -a", args: "-a NET2 -I eth0", want: "eth eth0 cannot be added to PNET ID NET2"},
		{name: "RDMA device in another ID", args: "add NET2 ib mlx4_0 2", want: "it is in the table as 'NET1 ib mlx4_0 2'"},
		{name: "another port", args: "add NET1 ib mlx4_0 1", want: "ib mlx4_0 1 cannot be added to PNET ID NET1: it is in the table as 'NET1 ib mlx4_0 2'"},
		{name: "one of two in another ID", args: "-a NET3 -I lo -D mlx4_0", want: "ib mlx4_0 1 cannot be added"},
		{name: "del of an unknown ID", args: "del NET9", want: "PNET ID NET9 is not in the table; 'smc_pnet show' lists the entries"},
		{name: "del of another port", args: "del NET1 ib mlx4_0 1", want: "NET1 ib mlx4_0 1 is not in the table"},
		{name: "del of a device in another ID", args: "del NET2 ib mlx4_0", want: "NET2 ib mlx4_0 is not in the table"},
		{name: "-d of an unknown ID", args: "-d NET9", want: "PNET ID NET9 is not in the table"},
		{
			name: "hardware", args: "add NET3 eth lo", kernel: func(k *pnettest.Kernel) { k.Hardware = []string{"lo"} },
			sys:  func(s *system) { s.hardware = fakeHardware{"lo": "HWNET"} },
			want: `eth lo cannot be added to PNET ID NET3: it has the PNET ID "HWNET" from its hardware`,
		},
		{
			name: "hardware of an ISM device", args: "add NET3 ib 0000:00:1f.0",
			kernel: func(k *pnettest.Kernel) { k.Rows = k.Rows[:2]; k.Hardware = []string{"0000:00:1f.0"} },
			sys:    func(s *system) { s.hardware = fakeHardware{"0000:00:1f.0": "HW@"} },
			want:   `has the PNET ID "HW@" from its hardware`,
		},
		{
			name: "RDMA device in another namespace", args: "-a NET3 -I lo -D rxe0",
			kernel: func(k *pnettest.Kernel) { k.NetNS = true },
			want:   "adding NET3 ib rxe0 1: the device has a PNET ID already, or cannot get one in this network namespace; the PNET table was restored",
		},
		{name: "add, no privilege", args: "add NET3 eth lo", kernel: unprivileged, want: "adding NET3 eth lo: permission denied: run as root, that is with CAP_NET_ADMIN in the initial user namespace"},
		{name: "-a, no privilege", args: "-a NET3 -I lo", kernel: unprivileged, want: "adding NET3 eth lo: permission denied: run as root"},
		{name: "del, no privilege", args: "del NET1 eth eth0", kernel: unprivileged, want: "deleting PNET ID NET1: permission denied: run as root"},
		{name: "-d, no privilege", args: "-d NET1", kernel: unprivileged, want: "deleting PNET ID NET1: permission denied: run as root"},
		{name: "flush, no privilege", args: "flush", kernel: unprivileged, want: "emptying the PNET table: permission denied: run as root"},
		{name: "-f, no privilege", args: "-f", kernel: unprivileged, want: "emptying the PNET table: permission denied: run as root"},
		{name: "apply, no privilege", args: "apply -", kernel: unprivileged, want: "permission denied: run as root"},
		{name: "no memory", args: "add NET3 eth lo", kernel: failing(1, syscall.ENOMEM), want: "adding NET3 eth lo: cannot allocate memory"},
		{name: "no memory in between", args: "del NET1 eth eth0", kernel: failing(2, syscall.ENOMEM), want: "adding NET1 ib mlx4_0 2: cannot allocate memory; the PNET table was restored"},
		{name: "no file", args: "apply " + missing, want: "cannot read the table file: open " + missing + ": no such file or directory"},
		{name: "directory", args: "apply " + filepath.Dir(missing), want: "is a directory"},
		{name: "bad line", args: "apply -", in: "add A eth eth0\nadd B eth\n", want: "standard input:2:10: the name of the device is missing"},
		{name: "del in a file", args: "apply -", in: "del NET1\n", want: "standard input:1:1: 'del' in a table file"},
		{name: "bytes in a file", args: "apply -", in: "add A eth \xff\x1b[2J\n", want: `standard input:1:12: control character`},
		{name: "export of a strange ID", args: "export", kernel: func(k *pnettest.Kernel) { k.Rows = append(k.Rows, pnettest.Eth("N\xd6T", "e")) }, want: `the table has an entry that a table file cannot have: PNET ID "N\xd6T"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := newHarness(t, someRows()...)
			h.in = tt.in
			if tt.kernel != nil {
				tt.kernel(h.kernel)
			}
			if tt.sys != nil {
				tt.sys(&h.sys)
			}
			before := h.table(t)
			h.expectFailure(t, cli.ExitFailure, tt.want, strings.Fields(tt.args)...)
			if diff := cmp.Diff(before, h.table(t)); diff != "" {
				t.Errorf("the table has changed: %s", diff)
			}
		})
	}
}

func unprivileged(k *pnettest.Kernel) { k.Unprivileged = true }

// failing refuses the n-th change.
func failing(n int, errno syscall.Errno) func(*pnettest.Kernel) {
	return func(k *pnettest.Kernel) {
		k.Fail = func(i int) syscall.Errno {
			if i == n {
				return errno
			}
			return 0
		}
	}
}

// TestNoModule runs every command without the SMC module.
func TestNoModule(t *testing.T) {
	for _, args := range []string{
		"", "-s", "show", "show NET1", "-a NET1 -I eth0", "add NET1 eth eth0", "add NET1 eth eth0 --check", "-d NET1", "del NET1",
		"-f", "flush", "export", "apply -", "--json=1",
	} {
		h := newHarness(t)
		h.kernel.NoModule = true
		h.expectFailure(t, cli.ExitFailure, "SMC module not loaded: run 'modprobe smc', or use a kernel that has it", strings.Fields(args)...)
	}
	h := newHarness(t)
	h.kernel.NoModule = true
	status := h.run(t, "--json")
	jsontest.CheckFailure(t, h.out.Bytes(), h.err.String(), status)
}

// TestNothingTouched checks options that do not access the kernel.
func TestNothingTouched(t *testing.T) {
	for _, args := range []string{"--version", "-v", "--help", "-h", "help add", "add --help", "apply -h", "completion bash"} {
		h := newHarness(t)
		h.sys.devices, h.sys.hardware = nil, nil
		if status := h.run(t, strings.Fields(args)...); status != cli.ExitOK || h.dialed > 0 || h.err.Len() > 0 || h.out.Len() == 0 {
			t.Errorf("%q: status %d, %d sockets, output %q, error %q", args, status, h.dialed, &h.out, &h.err)
		}
	}
}

// TestClosedOutput closes the reading end of standard output.
func TestClosedOutput(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	defer w.Close()
	for _, args := range []string{"show", "export", "show --json", "apply --check /dev/null"} {
		h := newHarness(t, someRows()...)
		env := &cli.Env{Out: w, Err: &h.err, Getenv: func(string) string { return "" }}
		if status := cli.Run(t.Context(), h.tool(), env, strings.Fields(args)); status != cli.ExitFailure || h.err.Len() > 0 {
			t.Errorf("%q: status %d, error %q", args, status, &h.err)
		}
	}
}
