// SPDX-License-Identifier: Apache-2.0

package smcdbg

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/tool/smcchk"
	"github.com/spf13/cobra"
)

func text(s string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return s, nil }
}

// someDeps returns a host with a few sections.
func someDeps() deps {
	return deps{
		sections: []section{
			{"a.txt", text("address 52:54:00:12:34:56 10.0.0.1 on hosta\n")},
			{"b.txt", func(context.Context) (string, error) { return "half\n", errors.New("10.0.0.1 says:\nno") }},
			{"c.txt", func(context.Context) (string, error) { return "", os.ErrPermission }},
			{"d.txt", text("")},
			{"e.txt", func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() }},
		},
		names:   func(context.Context) []string { return []string{"hosta", ""} },
		create:  createFile,
		now:     func() time.Time { return time.Unix(1e9, 5) },
		read:    func(ctx context.Context, s section) (string, error) { return s.read(ctx) },
		timeout: 10 * time.Millisecond,
		atOnce:  2,
		turn:    time.Hour,
	}
}

// runTool runs the command with a clock that passes only while all of it waits, so that no section runs into its timeout that does not hang.
func runTool(t *testing.T, d deps, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { status, stdout, stderr = runTimed(t, d, args...) })
	return status, stdout, stderr
}

// runTimed runs the command with the clock of the caller.
func runTimed(t *testing.T, d deps, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	env := &cli.Env{Out: &out, Err: &errs, Getenv: func(string) string { return "" }, EnterNetNS: func(string) error { return errors.New("entered") }}
	tool := Tool
	tool.New = func(env *cli.Env) *cobra.Command { return newCommand(env, d) }
	status = cli.Run(t.Context(), tool, env, args)
	return status, out.String(), errs.String()
}

const missing = `smc_dbg: not collected: b.txt: 10.0.0.1 says: no
smc_dbg: not collected: c.txt: permission denied
smc_dbg: not collected: e.txt: context deadline exceeded
`

// TestPrint checks that all sections are printed, and that missing ones are reported.
func TestPrint(t *testing.T) {
	status, out, errs := runTool(t, someDeps())
	const want = `==> a.txt <==
address MAC-1 10.0.0.1 on hosta

==> b.txt <==
half

==> missing.txt <==
b.txt: 10.0.0.1 says: no
c.txt: permission denied
e.txt: context deadline exceeded
`
	if diff := cmp.Diff(want, out); diff != "" || status != cli.ExitOK {
		t.Errorf("exit status %d, %s", status, diff)
	}
	if diff := cmp.Diff(missing, errs); diff != "" {
		t.Error(diff)
	}
}

// TestArchive checks that the archive has the same content, and that only this user can read it.
func TestArchive(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	path := filepath.Join(dir, "x.tar.gz")
	for _, args := range [][]string{{"-t", "--mask"}, {"--mask", "--output", path}} {
		status, out, errs := runTool(t, someDeps(), args...)
		name, ok := strings.CutPrefix(strings.TrimSpace(out), "Debug output written to ")
		if status != cli.ExitOK || !ok || strings.Contains(errs, "10.0.0.1") {
			t.Fatalf("%q: exit status %d, %q %q", args, status, out, errs)
		}
		if filepath.Dir(name) != dir {
			t.Errorf("%q: written to %s", args, name)
		}
		if st, err := os.Stat(name); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%v %v", st, err)
		}
		want := map[string]string{
			"smc_dbg/a.txt":       "address MAC-1 IP-1 on HOST-1\n",
			"smc_dbg/b.txt":       "half\n",
			"smc_dbg/missing.txt": "b.txt: IP-1 says: no\nc.txt: permission denied\ne.txt: context deadline exceeded\n",
		}
		if diff := cmp.Diff(want, unpack(t, name)); diff != "" {
			t.Error(diff)
		}
	}
}

func unpack(t *testing.T, path string) map[string]string {
	t.Helper()
	out, err := unpackAll(path)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// unpackAll returns the files of an archive, which may be incomplete.
func unpackAll(path string) (map[string]string, error) {
	out := map[string]string{}
	f, err := os.Open(path)
	if err != nil {
		return out, err
	}
	defer f.Close()
	zip, err := gzip.NewReader(f)
	if err != nil {
		return out, err
	}
	for r := tar.NewReader(zip); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		b, err := io.ReadAll(r)
		if err != nil {
			return out, err
		}
		if h.Mode != 0o600 || h.ModTime.Unix() != 1e9 {
			return out, fmt.Errorf("%+v", h)
		}
		out[h.Name] = string(b)
	}
}

// hang is a section that blocks until release is closed, and ignores its context.
func hang(release <-chan struct{}) section {
	return section{"hang.txt", func(context.Context) (string, error) { <-release; return "", nil }}
}

// TestSectionsThatHang checks that such sections are given up and all others are collected.
func TestSectionsThatHang(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.tgz")
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		d := someDeps()
		for range 2 * d.atOnce {
			d.sections = append([]section{hang(release)}, d.sections...)
		}
		status, _, errs := runTimed(t, d, "-o", path)
		if n := strings.Count(errs, "not collected: hang.txt: no answer: context deadline exceeded\n"); status != cli.ExitOK || n != 2*d.atOnce {
			t.Errorf("exit status %d, %s", status, errs)
		}
	})
	files := unpack(t, path)
	if files["smc_dbg/a.txt"] == "" || !strings.Contains(files["smc_dbg/missing.txt"], "hang.txt") {
		t.Errorf("%q", files)
	}
}

// TestAtOnce checks that no more sections are read at once than there may be.
func TestAtOnce(t *testing.T) {
	if n := systemDeps().atOnce; n < 1 || n > runtime.NumCPU() {
		t.Errorf("%d sections at once on %d processors", n, runtime.NumCPU())
	}
	synctest.Test(t, func(t *testing.T) {
		d := someDeps()
		d.timeout = time.Hour
		var running atomic.Int32
		leave := make(chan struct{})
		d.sections = slices.Repeat([]section{{"x.txt", func(context.Context) (string, error) {
			running.Add(1)
			<-leave
			running.Add(-1)
			return "", nil
		}}}, 5)
		results := (&options{deps: d}).start(t.Context())
		for left := len(results); left > 0; left-- {
			synctest.Wait()
			if n := int(running.Load()); n != min(left, d.atOnce) {
				t.Errorf("%d sections are read, of %d that are left", n, left)
			}
			leave <- struct{}{}
		}
		for _, r := range results {
			<-r
		}
	})
}

// TestTurn checks that the next section is read when one takes longer than its turn.
func TestTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := someDeps()
		d.timeout, d.atOnce, d.turn = time.Hour, 1, time.Minute
		begin := time.Now()
		began := make(chan time.Duration, 3)
		read := func(context.Context) (string, error) {
			began <- time.Since(begin)
			time.Sleep(90 * time.Second)
			return "", nil
		}
		d.sections = []section{{"a.txt", read}, {"b.txt", read}, {"c.txt", read}}
		for _, r := range (&options{deps: d}).start(t.Context()) {
			<-r
		}
		for _, want := range []time.Duration{0, time.Minute, 2 * time.Minute} {
			if got := <-began; got != want {
				t.Errorf("a section is read after %v, not %v", got, want)
			}
		}
	})
}

// TestNamesThatHang checks that names are not masked if they cannot be read, and that the command reports it.
func TestNamesThatHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		d := someDeps()
		d.names = func(context.Context) []string { <-release; return nil }
		status, out, errs := runTimed(t, d, "--mask")
		if status != cli.ExitOK || !strings.Contains(out, "on hosta") || !strings.Contains(errs, "names of hosts are not masked: no answer") {
			t.Errorf("exit status %d, %q %q", status, out, errs)
		}
	})
}

// TestArchiveIsWrittenAsItGoes reads the archive while a section hangs, as after a crash, and after the command was
// interrupted.
func TestArchiveIsWrittenAsItGoes(t *testing.T) {
	release, entered := make(chan struct{}), make(chan struct{})
	defer close(release)
	d := someDeps()
	d.timeout = time.Hour
	d.sections = []section{
		d.sections[0],
		{"hang.txt", func(context.Context) (string, error) { close(entered); <-release; return "", nil }},
	}
	added := make(chan struct{}, 1)
	path := filepath.Join(t.TempDir(), "x.tgz")
	d.create = func(string) (io.WriteCloser, string, error) {
		f, name, err := createFile(path)
		return &notifyingWriter{f, added}, name, err
	}
	ctx, cancel := context.WithCancel(t.Context())
	env := &cli.Env{Out: io.Discard, Err: io.Discard, Getenv: func(string) string { return "" }}
	tool := Tool
	tool.New = func(env *cli.Env) *cobra.Command { return newCommand(env, d) }
	status := make(chan int)
	go func() { status <- cli.Run(ctx, tool, env, []string{"-t"}) }()
	<-entered
	for {
		<-added
		if files, err := unpackAll(path); files["smc_dbg/a.txt"] != "" {
			if !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("the archive is complete: %v", err)
			}
			break
		}
	}
	cancel()
	if got := <-status; got != 130 {
		t.Errorf("exit status %d", got)
	}
	if files := unpack(t, path); !strings.Contains(files["smc_dbg/missing.txt"], "hang.txt: no answer: context canceled") {
		t.Errorf("%q", files)
	}
}

// notifyingWriter is a file that reports each write on a channel.
type notifyingWriter struct {
	io.WriteCloser
	written chan<- struct{}
}

func (n *notifyingWriter) Write(b []byte) (int, error) {
	k, err := n.WriteCloser.Write(b)
	select {
	case n.written <- struct{}{}:
	default:
	}
	return k, err
}

// TestUsage checks that nothing is collected if the command line is wrong.
func TestUsage(t *testing.T) {
	for args, want := range map[string]string{
		"foo":      `unexpected operand "foo"`,
		"-t -o x":  "--tar and --output cannot be combined",
		"--output": "flag needs an argument: --output",
		"-x":       "unknown shorthand flag: 'x'",
	} {
		d := someDeps()
		d.sections = []section{{"x", func(context.Context) (string, error) { t.Error("collected"); return "", nil }}}
		status, out, errs := runTool(t, d, strings.Fields(args)...)
		if status != cli.ExitUsage || out != "" || !strings.Contains(errs, want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%s: exit status %d, %q %q", args, status, out, errs)
		}
	}
}

// TestNoOverwriting checks that an existing file is not changed.
func TestNoOverwriting(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	status, out, errs := runTool(t, someDeps(), "-o", path)
	if b, _ := os.ReadFile(path); status != cli.ExitFailure || out != "" || !strings.Contains(errs, "file exists") || string(b) != "mine" {
		t.Errorf("exit status %d, %q %q %q", status, out, errs, b)
	}
}

// fullDisk is a file to which every write fails.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left") }
func (fullDisk) Close() error              { return nil }

// TestFullDisk checks that an incomplete archive is an error.
func TestFullDisk(t *testing.T) {
	d := someDeps()
	d.create = func(string) (io.WriteCloser, string, error) { return fullDisk{}, "/x", nil }
	status, out, errs := runTool(t, d, "-t")
	if status != cli.ExitFailure || out != "" || !strings.Contains(errs, "writing /x: no space left") {
		t.Errorf("exit status %d, %q %q", status, out, errs)
	}
}

// TestMask checks which texts are masked, and which are not.
func TestMask(t *testing.T) {
	for _, tt := range []struct{ in, out, all string }{
		{"link/ether 52:54:00:12:34:56 brd ff:ff:ff:ff:ff:ff", "link/ether MAC-1 brd MAC-2", ""},
		{"52:54:00:AB:cd:56 52:54:00:ab:cd:56", "MAC-1 MAC-1", ""},
		{"80:00:02:08:fe:80:00:00:00:00:00:00:00:02:c9:03:00:0a:0b:0c", "MAC-1", ""},
		{"00:00:00:00:00:00", "00:00:00:00:00:00", ""},
		{"node_guid 5054:00ff:fe12:3456", "node_guid MAC-1", ""},
		{"fe80::5054:ff:fe12:3456/64", "MAC-1/64", ""},
		{"fe80:0000:0000:0000:5054:00ff:fe12:3456 fe80::5054:ff:fe12:3456", "MAC-1 MAC-1", ""},
		{"10.0.0.1:5001 to 10.0.0.2", "10.0.0.1:5001 to 10.0.0.2", "IP-1:5001 to IP-2"},
		{"0000:0000:0000:0000:0000:ffff:0a00:0001 is 10.0.0.1 is ::ffff:10.0.0.1", "0000:0000:0000:0000:0000:ffff:0a00:0001 is 10.0.0.1 is ::ffff:10.0.0.1", "IP-1 is IP-1 is IP-1"},
		{"2001:db8::1: no route", "2001:db8::1: no route", "IP-1: no route"},
		{"fd00::/64", "fd00::/64", "IP-1/64"},
		{"0.0.0.0:80 :: ::1 127.0.0.1", "0.0.0.0:80 :: ::1 127.0.0.1", "0.0.0.0:80 :: ::1 127.0.0.1"},
		{"12:34:56 0000:03:00.0 0000:00000010 a:b:c 7.2.13 1.2.3.400", "12:34:56 0000:03:00.0 0000:00000010 a:b:c 7.2.13 1.2.3.400", ""},
		{"host hosta, hostab, hosta.lan", "host hosta, hostab, hosta.lan", "host HOST-1, hostab, HOST-1.lan"},
		{"Addr:fe80::5054:ff:fe12:3456 {Addr:::ffff:10.0.0.1}", "Addr:MAC-1 {Addr:::ffff:10.0.0.1}", "Addr:MAC-1 {Addr:IP-1}"},
		{"iface:52:54:00:12:34:56, Source:10.0.0.1", "iface:MAC-1, Source:10.0.0.1", "iface:MAC-1, Source:IP-1"},
		{"key: value", "key: value", ""},
	} {
		if tt.all == "" {
			tt.all = tt.out
		}
		if got := (&masker{}).mask(tt.in); got != tt.out {
			t.Errorf("%q: %q", tt.in, got)
		}
		if got := (&masker{all: true, names: []string{"hosta"}}).mask(tt.in); got != tt.all {
			t.Errorf("%q, all: %q", tt.in, got)
		}
	}
}

// TestSections collects from the host that runs it. The output must be text, or JSON in files of that name, and must not
// contain the environment.
func TestSections(t *testing.T) {
	t.Setenv("SMCKIT_SECRET", "hunter2hunter2")
	for _, s := range systemDeps().sections {
		t.Run(s.name, func(t *testing.T) {
			out, err := s.read(t.Context())
			if err != nil {
				t.Log(err)
			}
			if strings.Contains(out, "hunter2") || strings.ContainsAny(out, "\x00\x1b") {
				t.Errorf("%q", out)
			}
			if strings.HasSuffix(s.name, ".json") && out != "" && !json.Valid([]byte(out)) {
				t.Errorf("no JSON: %q", out)
			}
		})
	}
}

// TestRun checks that the output of a command with a nonzero status is collected, and that a command without output is an
// error.
func TestRun(t *testing.T) {
	if out, err := run(smcchk.Tool, "--conditions")(t.Context()); err != nil || !strings.HasPrefix(out, "# smc_chk --conditions: exit status 0\n") {
		t.Errorf("%q %v", out, err)
	}
	if out, err := run(smcchk.Tool, "--pnetid", "nope")(t.Context()); err == nil || !strings.Contains(err.Error(), `"nope" does not exist`) || out != "" {
		t.Errorf("%q %v", out, err)
	}
}

// TestHostFiles checks that only lines that concern SMC are taken from files.
func TestHostFiles(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"proc/cmdline":                      "root=/dev/secret smc.smcd=0 password=x ib_core.netns_mode=0\n",
		"proc/version":                      "Linux version 7 (me@mymachine)\n",
		"proc/sys/kernel/osrelease":         "7.2\n",
		"proc/modules":                      "smc 100 1 smc_diag, Live 0xffffffffc0000000\next4 1 0 - Live 0x0\nmlx5_ib 7 0 - Live 0x0\n",
		"sys/module/smc/parameters/smcd":    "Y\n",
		"lib/modules/7.2/modules.dep":       "kernel/net/smc/smc.ko: kernel/ib_core.ko\nkernel/smcx.ko:\n",
		"etc/modprobe.d/a.conf":             "options smc smcr=0\noptions secret key=x\n",
		"boot/config-7.2":                   "CONFIG_SMC=m\n# CONFIG_DIBS is not set\nCONFIG_EXT4=y\n",
		"proc/sys/net/smc/rmem":             "65536\n",
		"proc/sys/net/ipv4/tcp_rmem":        "1\t2\t3\n",
		"proc/sys/net/ipv4/tcp_fastopen_ke": "secret\n",
	} {
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	h := host{root: root}
	var all strings.Builder
	for _, read := range []func(context.Context) (string, error){h.version, h.modules, h.modprobe, h.config, h.sysctls, h.proc} {
		out, err := read(t.Context())
		if err != nil {
			t.Error(err)
		}
		all.WriteString(out)
	}
	for _, want := range []string{
		"Linux 7.2", "smc.smcd=0 ib_core.netns_mode=0\n", "smc 100 1 smc_diag, Live\n", "mlx5_ib 7", "sys/module/smc/parameters/smcd = Y\n",
		"kernel/net/smc/smc.ko: ", "options smc smcr=0\n", "CONFIG_SMC=m\n# CONFIG_DIBS is not set\n", "net.smc.rmem = 65536\n", "net.ipv4.tcp_rmem = 1\t2\t3\n",
	} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("no %q in\n%s", want, all.String())
		}
	}
	for _, bad := range []string{"secret", "password", "mymachine", "ext4", "EXT4", "smcx", "0xffff"} {
		if strings.Contains(all.String(), bad) {
			t.Errorf("%q in\n%s", bad, all.String())
		}
	}
}

// TestLog checks that the report has the log's lines about SMC, but not the kernel's command line.
func TestLog(t *testing.T) {
	const keep = "<6>[ 1.0] smc: loaded\n<4>[ 2.0] WARNING: CPU: 0\n<6>[ 3.0] infiniband rxe0: added eth0\n<4>[ 4.0]  smc_init+0x1/0x2 [smc]\n"
	const drop = "<6>[ 0.0] Command line: root=x smc.smcd=0 key=secret\n<5>[ 0.1] loops_per_jiffy\n<6>[ 5.0] usb 1-1: smcard\n"
	if got, err := filterLog(drop + keep); err != nil || got != keep {
		t.Errorf("%q %v", got, err)
	}
}
