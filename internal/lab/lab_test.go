// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/smckit/smckit/internal/lab/proto"
	"golang.org/x/sys/unix"
)

// TestKernels boots every kernel once.
func TestKernels(t *testing.T) {
	for _, series := range TestSeries() {
		t.Run(series, func(t *testing.T) {
			lt := Start(t, Options{Kernel: series})
			if got := strings.TrimSpace(lt.Must("a", "uname -r")); got != lt.Host("a").Kernel.Release {
				t.Errorf("runs %s, not %s", got, lt.Host("a").Kernel.Release)
			}
			// Kernels that have the module load it from the host's tree.
			if lt.Host("a").Kernel.HasModule("smc") {
				lt.Must("a", "modprobe smc && lsmod | grep -q ^smc")
			}
			// A kernel trusts the frequency of the TSC that it gets, unless another clock contradicts it.
			if khz := tscKHz(); khz > 0 {
				want := fmt.Sprintf("tsc: Detected %d.%03d MHz", khz/1000, khz%1000)
				if log := lt.Must("a", "dmesg | grep 'tsc: '"); !strings.Contains(log, want) || strings.Contains(log, "deviates") {
					t.Errorf("no %q in:\n%s", want, log)
				}
			}
			if got := lt.Must("a", "hostname; findmnt -no FSTYPE /; ls -d /root"); got != "a\noverlay\n/root\n" {
				t.Errorf("got %q", got)
			}
		})
	}
}

// TestHost runs parts that share one guest.
func TestHost(t *testing.T) {
	share := t.TempDir()
	lt := Start(t, Options{Shares: []string{share}, KernelArgs: "smckit.test=1"})
	h := lt.Host("a")
	for name, test := range map[string]func(*testing.T, *Host){
		"Status": testStatus, "Streams": testStreams, "Stdin": testStdin, "Volume": testVolume, "Background": testBackground,
		"Deadline": testDeadline, "Terminal": testTerminal, "Files": testFiles, "Orphans": testOrphans, "Pause": testPause,
		"BrokenPipe": testBrokenPipe, "Features": testFeatures,
	} {
		t.Run(name, func(t *testing.T) { test(t, h) })
	}
	t.Run("Share", func(t *testing.T) { testShare(t, h, share) })
	t.Run("Root", func(t *testing.T) { testRoot(t, h) })
	t.Run("GoTest", func(t *testing.T) { lt.GoTest(t, "a", "./proto", "^Test(Streams|Events)$") })
}

func testFeatures(t *testing.T, h *Host) {
	r, err := h.Run(t.Context(), Cmd{Argv: []string{"grep", "-ow", "-e", "erms", "-e", "fsrm", "-e", "smep", "/proc/cpuinfo"}})
	if want := (Result{Stdout: "smep\n"}); r != want || err != nil {
		t.Errorf("%+v, %v, want %+v", r, err, want)
	}
}

func testStatus(t *testing.T, h *Host) {
	for _, tc := range []struct {
		argv []string
		want Result
	}{
		{[]string{"true"}, Result{}},
		{[]string{"sh", "-c", "echo out; echo err >&2; exit 42"}, Result{Code: 42, Stdout: "out\n", Stderr: "err\n"}},
		{[]string{"sh", "-c", "kill -TERM $$"}, Result{Code: 128 + 15}},
		{[]string{"sh", "-c", "kill -SEGV $$"}, Result{Code: 128 + 11}},
		{[]string{"cat"}, Result{}}, // its input is empty
		{[]string{"printf", "%s|", "a b", "", "*"}, Result{Stdout: "a b||*|"}},
	} {
		got, err := h.Run(t.Context(), Cmd{Argv: tc.argv})
		if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
			t.Errorf("%q: %v %s", tc.argv, err, diff)
		}
	}
	got, err := h.Run(t.Context(), Cmd{Argv: []string{"sh", "-c", "pwd; echo $SMCKIT_X $HOME"}, Env: []string{"SMCKIT_X=y"}, Dir: "/usr"})
	if err != nil || got.Stdout != "/usr\ny /root\n" {
		t.Errorf("%+v, %v", got, err)
	}
	for _, c := range []Cmd{
		{},
		{Argv: []string{"no-such-program"}},
		{Argv: []string{"/etc/passwd"}},
		{Argv: []string{"true"}, Dir: "/no/such/dir"},
	} {
		if r, err := h.Run(t.Context(), c); err == nil {
			t.Errorf("%+v: %+v and no error", c, r)
		}
	}
	if _, err := h.Shell(t.Context(), "echo said; false"); err == nil || !strings.Contains(err.Error(), "said") {
		t.Errorf("a script that fails: %v", err)
	}
}

func testStreams(t *testing.T, h *Host) {
	var out, errs bytes.Buffer
	script := "for i in $(seq 200); do echo o$i; echo e$i >&2; done"
	if _, err := h.Run(t.Context(), Cmd{Argv: []string{"sh", "-c", script}, Stdout: &out, Stderr: &errs}); err != nil {
		t.Fatal(err)
	}
	var wantOut, wantErr strings.Builder
	for i := range 200 {
		fmt.Fprintf(&wantOut, "o%d\n", i+1)
		fmt.Fprintf(&wantErr, "e%d\n", i+1)
	}
	if out.String() != wantOut.String() || errs.String() != wantErr.String() {
		t.Error("the streams are mixed up")
	}
}

func testStdin(t *testing.T, h *Host) {
	data := content(5 << 20)
	r, err := h.Run(t.Context(), Cmd{Argv: []string{"sha256sum"}, Stdin: bytes.NewReader(data)})
	if want := fmt.Sprintf("%x  -\n", sha256.Sum256(data)); err != nil || r.Stdout != want {
		t.Errorf("%q, %v", r.Stdout, err)
	}
	// A program that does not read its input neither hangs nor blocks another.
	p, err := h.Start(Cmd{Argv: []string{"sleep", "1000"}, Stdin: bytes.NewReader(data)})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := h.Run(t.Context(), Cmd{Argv: []string{"cat"}, Stdin: strings.NewReader("through")}); err != nil || r.Stdout != "through" {
		t.Errorf("%+v, %v", r, err)
	}
	if err := p.Signal(unix.SIGTERM); err != nil {
		t.Error(err)
	}
	if r, err := p.Wait(t.Context()); err != nil || r.Code != 128+15 {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := h.Run(t.Context(), Cmd{Argv: []string{"head", "-c", "3"}, Stdin: bytes.NewReader(data)}); err != nil || r.Stdout != string(data[:3]) {
		t.Errorf("%q, %v", r.Stdout, err)
	}
}

func testVolume(t *testing.T, h *Host) {
	const size = 10 << 20
	sum := sha256.New()
	var n int64
	r, err := h.Run(t.Context(), Cmd{
		Argv:   []string{"sh", "-c", fmt.Sprintf("yes 0123456789abcde | head -c %d", size)},
		Stdout: writerFunc(func(p []byte) (int, error) { n += int64(len(p)); return sum.Write(p) }),
	})
	want := sha256.Sum256(bytes.Repeat([]byte("0123456789abcde\n"), size/16))
	if err != nil || r.Code != 0 || n != size || !bytes.Equal(sum.Sum(nil), want[:]) {
		t.Errorf("%d bytes, %+v, %v", n, r, err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// testBackground checks the result of a program that leaves a process in the background which holds its output.
func testBackground(t *testing.T, h *Host) {
	begin := time.Now()
	script := "sleep 1000 & echo $!; head -c 60000 /dev/zero | tr '\\0' x"
	// The output before the end is complete, however slowly it is read.
	slow := writerFunc(func(p []byte) (int, error) { return len(p), nil })
	var out bytes.Buffer
	r, err := h.Run(t.Context(), Cmd{Argv: []string{"sh", "-c", script}, Stdout: io.MultiWriter(slow, &out)})
	if err != nil || r.Code != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	if took := time.Since(begin); took > Scale(10*time.Second) {
		t.Errorf("waited %s for what runs in the background", took)
	}
	pid, rest, _ := strings.Cut(out.String(), "\n")
	if len(rest) != 60000 {
		t.Errorf("%d bytes of output, want 60000", len(rest))
	}
	// The background process still runs, because its user started it for that.
	if _, err := h.Shell(t.Context(), "kill "+pid); err != nil {
		t.Error(err)
	}
}

func testDeadline(t *testing.T, h *Host) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	r, err := h.Run(ctx, Cmd{Argv: []string{"sh", "-c", "echo $$; trap '' TERM INT; sleep 1001; sleep 1002"}})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("%+v, %v", r, err)
	}
	if pid := strings.TrimSpace(r.Stdout); pid == "" {
		t.Error("what it had printed is lost")
	}
	// Its children have ended with it.
	if err := h.WaitFor(t.Context(), "! cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -q 'sleep 100[12]'"); err != nil {
		t.Error(err)
	}
}

func testTerminal(t *testing.T, h *Host) {
	in, feed := io.Pipe()
	lines := make(chan string, 100)
	var part string
	p, err := h.Start(Cmd{
		Argv: []string{"sh", "-c", "tty; stty size; read x; stty size; exit 3"}, TTY: &proto.Size{Rows: 33, Cols: 99}, Stdin: in,
		Stdout: writerFunc(func(b []byte) (int, error) {
			part += string(b)
			for {
				line, rest, ok := strings.Cut(part, "\r\n")
				if !ok {
					return len(b), nil
				}
				lines <- line
				part = rest
			}
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	next := func() string {
		select {
		case l := <-lines:
			return l
		case <-time.After(Scale(10 * time.Second)):
			t.Fatal("the terminal says nothing")
			return ""
		}
	}
	if l := next(); !strings.HasPrefix(l, "/dev/pts/") {
		t.Errorf("terminal %q", l)
	}
	if l := next(); l != "33 99" {
		t.Errorf("size %q", l)
	}
	if err := p.Resize(proto.Size{Rows: 12, Cols: 34}); err != nil {
		t.Fatal(err)
	}
	// The new size must arrive before the line that prints it, although the two are sent separately.
	if err := h.WaitFor(t.Context(), "stty size </dev/pts/0 | grep -x '12 34'"); err != nil {
		t.Fatal(err)
	}
	go io.WriteString(feed, "go\n")
	if l := next(); l != "go" {
		t.Errorf("echo %q", l)
	}
	if l := next(); l != "12 34" {
		t.Errorf("size afterwards %q", l)
	}
	if r, err := p.Wait(t.Context()); err != nil || r.Code != 3 {
		t.Errorf("%+v, %v", r, err)
	}
	feed.Close()
}

func testFiles(t *testing.T, h *Host) {
	data := content(1<<20 + 1)
	if err := h.WriteFile(t.Context(), "/run/x", data, 0o750); err != nil {
		t.Fatal(err)
	}
	got, err := h.ReadFile(t.Context(), "/run/x")
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if out, err := h.Shell(t.Context(), "stat -c %a /run/x"); err != nil || out != "750\n" {
		t.Errorf("mode %q, %v", out, err)
	}
	if _, err := h.ReadFile(t.Context(), "/no/such/file"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	if err := h.WriteFile(t.Context(), "/no/such/dir/x", nil, 0o644); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory that is not there: %v", err)
	}
	if err := h.WriteFile(t.Context(), "/proc/sys/net/ipv4/ip_forward", []byte("1"), 0); err != nil {
		t.Error(err)
	}
	if got, err := h.ReadFile(t.Context(), "/proc/sys/net/ipv4/ip_forward"); err != nil || string(got) != "1\n" {
		t.Errorf("%q, %v", got, err)
	}
}

// testOrphans checks that process 1 collects orphans.
func testOrphans(t *testing.T, h *Host) {
	if _, err := h.Shell(t.Context(), "for i in $(seq 5); do (sh -c 'sleep 0.01 &' &); done"); err != nil {
		t.Fatal(err)
	}
	if err := h.WaitFor(t.Context(), "! ps -eo stat= | grep -q ^Z"); err != nil {
		t.Error(err)
	}
}

// testPause stops taking the output of a program, which must stop it and nothing else.
func testPause(t *testing.T, h *Host) {
	full, goOn := make(chan struct{}), make(chan struct{})
	n := 0
	p, err := h.Start(Cmd{Argv: []string{"head", "-c", "3000000", "/dev/zero"}, Stdout: writerFunc(func(b []byte) (int, error) {
		if n == 0 {
			close(full)
			<-goOn
		}
		n += len(b)
		return len(b), nil
	})})
	if err != nil {
		t.Fatal(err)
	}
	<-full
	if _, err := h.Shell(t.Context(), "cat /proc/[0-9]*/comm | grep -qx head"); err != nil {
		t.Errorf("it does not wait: %v", err)
	}
	close(goOn)
	if r, err := p.Wait(t.Context()); err != nil || r.Code != 0 || n != 3000000 {
		t.Errorf("%d bytes, %+v, %v", n, r, err)
	}
}

// testBrokenPipe checks that a program ends when its output is no longer read.
func testBrokenPipe(t *testing.T, h *Host) {
	r, err := h.Run(t.Context(), Cmd{Argv: []string{"yes"}, Stdout: writerFunc(func([]byte) (int, error) { return 0, io.ErrClosedPipe })})
	if !errors.Is(err, io.ErrClosedPipe) || r.Code != 128+int(unix.SIGPIPE) {
		t.Errorf("%+v, %v", r, err)
	}
}

func testShare(t *testing.T, h *Host, dir string) {
	inside, outside := filepath.Join(dir, "inside"), filepath.Join(dir, "outside")
	if _, err := h.Shell(t.Context(), "echo from the guest >"+inside); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(inside); err != nil || string(got) != "from the guest\n" {
		t.Errorf("%q, %v", got, err)
	}
	// Share files in both directions, including a file that did not exist when the guest first looked for it, and one that
	// changes.
	for _, text := range []string{"first", "second, and longer"} {
		if _, err := h.Shell(t.Context(), "cat "+filepath.Join(dir, "vain")+" 2>/dev/null || true"); err != nil {
			t.Fatal(err)
		}
		for _, file := range []string{outside, filepath.Join(dir, "vain")} {
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			if got, err := h.ReadFile(t.Context(), file); err != nil || string(got) != text {
				t.Errorf("%s: %q, %v", file, got, err)
			}
		}
	}
}

// testRoot checks that a guest can write anywhere and that nothing of it gets out.
func testRoot(t *testing.T, h *Host) {
	dir := t.TempDir()
	if _, err := h.Shell(t.Context(), "touch /etc/smckit-was-here /usr/bin/smckit-was-here /tmp/smckit-was-here; rm -rf /etc/apt"); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"/etc/smckit-was-here", "/usr/bin/smckit-was-here", "/tmp/smckit-was-here"} {
		if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s got out: %v", file, err)
		}
	}
	if _, err := os.Stat("/etc/apt"); err != nil {
		t.Errorf("this machine's files are gone: %v", err)
	}
	// The guest sees the host's files, including those created after boot.
	file := filepath.Join(dir, "after-boot")
	if err := os.WriteFile(file, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := h.ReadFile(t.Context(), file); err != nil || string(got) != "x" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := h.Shell(t.Context(), "grep -q smckit.test=1 /proc/cmdline; test -w /dev/shm; test -d /run/netns; test -e /dev/null"); err != nil {
		t.Error(err)
	}
}

// TestWires checks the wires between two guests.
func TestWires(t *testing.T) {
	lt := Start(t, Options{Hosts: 2, Wires: 2})
	if err := lt.SetUpAddresses(t.Context()); err != nil {
		t.Fatal(err)
	}
	pcap := filepath.Join(t.TempDir(), "wire.pcap")
	if err := lt.Wires[1].Capture(pcap); err != nil {
		t.Fatal(err)
	}
	// A host that receives a connection to a closed port refuses it; a host that receives nothing does not.
	const knock = "s=0; timeout %d bash -c '</dev/tcp/%s/9' || s=$?; test $s != 124"
	reach := func(addr string) {
		t.Helper()
		if _, err := lt.Host("a").Shell(t.Context(), fmt.Sprintf(knock, 20, addr)); err != nil {
			t.Error(err)
		}
	}
	miss := func(addr string) {
		t.Helper()
		if _, err := lt.Host("a").Shell(t.Context(), fmt.Sprintf(knock, 1, addr)); err == nil {
			t.Errorf("%s receives a connection for another port", addr)
		}
	}
	for _, addr := range []string{Addr4(0, 1), Addr6(0, 1), Addr4(1, 1), Addr6(1, 1)} {
		reach(addr)
	}
	lt.Wires[0].Cut()
	miss(Addr4(0, 1))
	reach(Addr4(1, 1)) // the other wire
	lt.Wires[0].Restore()
	reach(Addr4(0, 1))
	lt.Wires[1].Drop(func(from int, _ []byte) bool { return from == 1 })
	miss(Addr4(1, 1))
	lt.Wires[1].Drop(nil)
	reach(Addr4(1, 1))
	data, err := os.ReadFile(pcap)
	if err != nil || len(data) < 24+16+42 {
		t.Errorf("capture of %d bytes, %v", len(data), err)
	}
}

// recorder records failures instead of failing the real test.
type recorder struct {
	testing.TB
	failures []string
	cleanup  []func()
}

func (r *recorder) Helper()                   {}
func (r *recorder) Errorf(f string, a ...any) { r.failures = append(r.failures, fmt.Sprintf(f, a...)) }
func (r *recorder) Error(a ...any)            { r.failures = append(r.failures, fmt.Sprint(a...)) }
func (r *recorder) Failed() bool              { return len(r.failures) > 0 }
func (r *recorder) Cleanup(f func())          { r.cleanup = append(r.cleanup, f) }

func (r *recorder) end() string {
	for _, f := range r.cleanup {
		f()
	}
	return strings.Join(r.failures, "\n")
}

// TestVerdict checks that a report in a kernel's log, or the death of a guest, fails a test and leaves artifacts.
func TestVerdict(t *testing.T) {
	Need(t)
	artifacts := t.TempDir()
	t.Setenv("SMCKIT_ARTIFACTS", artifacts)
	const report = "WARNING: possible circular locking dependency detected"
	say := func(lt *Test, line string) {
		t.Helper()
		if err := lt.Host("a").WriteFile(t.Context(), "/dev/kmsg", []byte(line+"\n"), 0); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("Report", func(t *testing.T) {
		r := &recorder{TB: t}
		lt := Start(r, Options{})
		say(lt, report)
		if got := r.end(); !strings.Contains(got, report) {
			t.Errorf("the test does not fail: %q", got)
		}
		dir := filepath.Join(artifacts, "TestVerdict_Report/a")
		if log, err := os.ReadFile(filepath.Join(dir, "dmesg")); err != nil || !strings.Contains(string(log), report) || !strings.Contains(string(log), "Linux version") {
			t.Errorf("kernel log of %d bytes, %v", len(log), err)
		}
		if console, err := os.ReadFile(filepath.Join(dir, "console")); err != nil || len(console) == 0 {
			t.Errorf("console of %d bytes, %v", len(console), err)
		}
	})
	t.Run("Allowed", func(t *testing.T) {
		r := &recorder{TB: t}
		lt := Start(r, Options{})
		lt.Allow(regexp.MustCompile("possible circular"))
		say(lt, report)
		if got := r.end(); got != "" {
			t.Errorf("the test fails: %s", got)
		}
		if _, err := os.Stat(filepath.Join(artifacts, "TestVerdict_Allowed")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("artifacts of a test that has not failed: %v", err)
		}
	})
	t.Run("Panic", func(t *testing.T) {
		r := &recorder{TB: t}
		lt := Start(r, Options{})
		begin := time.Now()
		_, err := lt.Host("a").Shell(t.Context(), "echo c >/proc/sysrq-trigger; sleep 1000")
		if err == nil || !strings.Contains(err.Error(), "guest a has died") || !strings.Contains(err.Error(), "sysrq triggered crash") {
			t.Errorf("a guest that has crashed: %v", err)
		}
		if took := time.Since(begin); took > Scale(5*time.Second) {
			t.Errorf("noticed only after %s", took)
		}
		if _, err := lt.Host("a").Shell(t.Context(), "true"); err == nil {
			t.Error("and it goes on working")
		}
		if got := r.end(); !strings.Contains(got, "Kernel panic") {
			t.Errorf("the test does not fail by it: %q", got)
		}
	})
}

func TestBootFails(t *testing.T) {
	Need(t)
	t.Setenv("SMCKIT_SLOW", "1")
	_, err := New(t.Context(), Options{KernelArgs: "init=/nonexistent rdinit=/nonexistent"})
	if err == nil || !strings.Contains(err.Error(), "guest a did not start") || !strings.Contains(err.Error(), "Kernel panic") {
		t.Errorf("error %v, want one that shows the console", err)
	}
	// The programs are there by now. A boot takes seconds.
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if _, err := New(ctx, Options{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("given up in the middle of booting: %v", err)
	}
	t.Setenv("PATH", filepath.Dir(mustLook(t, "go")))
	if _, err := New(t.Context(), Options{}); err == nil || !strings.Contains(err.Error(), "apt-get install qemu-system-x86") {
		t.Errorf("without an emulator: %v", err)
	}
}

// TestEmulatorFails has QEMU abort by an assertion while guests boot: the first time it is started again, but not for ever.
func TestEmulatorFails(t *testing.T) {
	Need(t)
	q, err := findEmulator(t.Context(), architectures[0], func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		message string
		faults  int // after which it works
		starts  int
		err     string
	}{
		"once":          {"x.c:1: f: Assertion `a < b' failed.", 1, 2, ""},
		"always":        {"x.c:1: f: Assertion `a < b' failed.", 9, 2, "guest a did not start: the emulator has failed"},
		"another error": {"no such device", 9, 1, "guest a did not start: the emulator has ended"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			starts := filepath.Join(dir, "starts")
			script := fmt.Sprintf(`#!/bin/sh
[ "$1" != --version ] || exec %[1]s --version
echo >>%[2]s
[ $(wc -l <%[2]s) -gt %[3]d ] && exec %[1]s %[4]s "$@"
echo "%[5]s" >&2
exit 134
`, q.path, starts, c.faults, strings.Join(q.args, " "), strings.ReplaceAll(c.message, "`", "\\`"))
			if err := os.WriteFile(filepath.Join(dir, architectures[0].emulator), []byte(script), 0o755); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
			l, err := New(t.Context(), Options{Wires: 2})
			if err == nil {
				if _, err := l.Host("a").Shell(t.Context(), "test -d /sys/class/net/eth1"); err != nil {
					t.Error(err)
				}
				if err := l.Close(); err != nil {
					t.Error(err)
				}
			}
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("error %v, want %q", err, c.err)
			}
			if n, err := os.ReadFile(starts); err != nil || len(n) != c.starts {
				t.Errorf("the emulator was started %d times, not %d: %v", len(n), c.starts, err)
			}
		})
	}
}

// BenchmarkBoot measures the time until a lab can be used.
func BenchmarkBoot(b *testing.B) {
	Need(b)
	for _, series := range Series() {
		for _, hosts := range []int{1, 2} {
			b.Run(fmt.Sprintf("kernel=%s/hosts=%d", series, hosts), func(b *testing.B) {
				for b.Loop() {
					l, err := New(b.Context(), Options{Kernel: series, Hosts: hosts})
					if err != nil {
						b.Fatal(err)
					}
					if err := l.Close(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
