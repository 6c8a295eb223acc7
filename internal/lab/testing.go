// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/smckit/smckit/internal/jsondoc"
	"golang.org/x/sys/unix"
)

// Test is a lab that belongs to a test. An error of the lab fails the test.
type Test struct {
	*Lab
	t       testing.TB
	allowed []*regexp.Regexp
	off     []string             // hosts that were switched off
	goTests map[[2]string]string // where installGoTest has put the tests of a package, by host and package
}

// Need skips a test unless the environment asks for tests that boot guests (SMCKIT_LAB=1, as make test does).
func Need(t testing.TB) {
	t.Helper()
	if os.Getenv("SMCKIT_LAB") == "" {
		t.Skip("boots guests under QEMU: set SMCKIT_LAB=1, or run 'make test'")
	}
}

// Start boots a lab for a test. At the test's end the kernels' logs are searched for reports, which fail the test, and
// the guests are ended; a debug kernel is first searched for leaked memory. If the test has failed by then, console, log and
// emulator output of every guest are kept, in $SMCKIT_ARTIFACTS if that is set.
func Start(t testing.TB, o Options) *Test {
	t.Helper()
	Need(t)
	begin := time.Now()
	if o.Progress == nil {
		o.Progress = func(step string) { t.Logf("%5.1fs %s", time.Since(begin).Seconds(), step) }
	}
	var err error
	if o.cpus, err = takePlace(t.Context(), o.Progress); err != nil {
		t.Fatal(err)
	}
	l, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	lt := &Test{Lab: l, t: t, goTests: map[[2]string]string{}}
	t.Cleanup(lt.finish)
	t.Logf("%5.1fs %d guests are up", time.Since(begin).Seconds(), len(l.Hosts))
	return lt
}

// StartSMC boots a lab with our commands in it and sets up an SMC network with the stock module.
func StartSMC(t testing.TB, o Options) *Test {
	t.Helper()
	Need(t)
	dir, err := Commands(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	o.Programs = append(o.Programs, dir)
	lt := Start(t, o)
	if err := lt.SetUpSMC(t.Context(), ModuleStock); err != nil {
		t.Fatal(err)
	}
	return lt
}

// Kill ends a program that would go on for ever.
func Kill(t testing.TB, p *Process) {
	t.Helper()
	if err := p.Signal(unix.SIGKILL); err != nil {
		t.Error(err)
	}
	// Without the test's context: it is over for a test that has failed.
	ctx, cancel := context.WithTimeout(context.Background(), Scale(10*time.Second))
	defer cancel()
	if _, err := p.Wait(ctx); err != nil {
		t.Error(err)
	}
}

// Suspend stops programs that move data, until they are killed. Their connections stay, but the data would take the processors from what
// the test runs.
func Suspend(t testing.TB, programs ...*Process) {
	t.Helper()
	for _, p := range programs {
		if err := p.Signal(unix.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
}

// Allow names reports that the test provokes.
func (lt *Test) Allow(patterns ...*regexp.Regexp) { lt.allowed = append(lt.allowed, patterns...) }

// PowerOff switches a host off by its kernel, as a machine's button would: programs are not asked. Nothing more can be run on it.
func (lt *Test) PowerOff(host string) {
	lt.t.Helper()
	h := lt.Host(host)
	lt.search(h, lt.logs(lt.t.Context())[host])
	lt.off = append(lt.off, host)
	// The guest may stop before it answers.
	_, _ = h.Shell(lt.t.Context(), "echo 1 >/proc/sys/kernel/sysrq; echo o >/proc/sysrq-trigger")
	if err := h.down(lt.t.Context()); err != nil {
		lt.t.Fatal(err)
	}
}

// Stall stops a host's processors, as a host that hangs: it answers nothing from then on, and nothing else notices. Nothing more can be run
// on it.
func (lt *Test) Stall(host string) {
	lt.t.Helper()
	h := lt.Host(host)
	lt.search(h, lt.logs(lt.t.Context())[host])
	lt.off = append(lt.off, host)
	if err := h.machine.process.Signal(unix.SIGSTOP); err != nil {
		lt.t.Fatal(err)
	}
}

// Crash kills a host's emulator: the host ends without doing anything more. Nothing can be run on it until Restart.
func (lt *Test) Crash(host string) {
	lt.t.Helper()
	h := lt.Host(host)
	lt.search(h, lt.logs(lt.t.Context())[host])
	lt.off = append(lt.off, host)
	h.machine.kill()
}

// Restart boots a host after Crash, without anything that it had in memory: modules, addresses, files.
func (lt *Test) Restart(host string) {
	lt.t.Helper()
	h := lt.Host(host)
	if err := h.unplug(); err != nil {
		lt.t.Fatal(err)
	}
	if err := h.boot(lt.t.Context()); err != nil {
		lt.t.Fatal(err)
	}
	lt.off = slices.DeleteFunc(lt.off, func(name string) bool { return name == host })
}

// finish is the cleanup of Start.
func (lt *Test) finish() {
	// The test's own context is over by now.
	ctx, cancel := context.WithTimeout(context.Background(), Scale(60*time.Second))
	defer cancel()
	lt.checkLeaks(ctx)
	logs := lt.logs(ctx)
	for _, h := range lt.Hosts {
		lt.search(h, logs[h.Name])
	}
	if lt.t.Failed() {
		lt.keep(ctx, logs)
	}
	if err := lt.Close(); err != nil {
		lt.t.Error(err)
	}
}

// logs returns the hosts' kernel logs.
func (lt *Test) logs(ctx context.Context) map[string]string {
	lt.t.Helper()
	logs := map[string]string{}
	for _, h := range lt.Hosts {
		if slices.Contains(lt.off, h.Name) {
			logs[h.Name] = h.machine.console.String()
			continue
		}
		log, err := h.Dmesg(ctx)
		if err != nil {
			lt.t.Errorf("no kernel log: %v", err)
			log = h.machine.console.String()
		}
		logs[h.Name] = log
	}
	return logs
}

// search fails the test if a host's kernel log has reports.
func (lt *Test) search(h *Host, log string) {
	lt.t.Helper()
	for _, line := range Reports(log, lt.allowed...) {
		lt.t.Errorf("kernel %s of guest %s reports: %s", h.Kernel.Release, h.Name, line)
	}
}

// checkLeaks fails the test if a debug kernel has lost memory.
func (lt *Test) checkLeaks(ctx context.Context) {
	for _, h := range lt.Hosts {
		if !h.Kernel.Debug() || slices.Contains(lt.off, h.Name) {
			continue
		}
		leaks, err := h.Leaks(ctx)
		if err != nil {
			lt.t.Errorf("searching guest %s for leaks: %v", h.Name, err)
		}
		for _, leak := range leaks {
			if !matchesAny(leak, lt.allowed) {
				lt.t.Errorf("guest %s has leaked: %s", h.Name, leak)
			}
		}
	}
}

// events prints the outcomes of our handshakes, the links that have failed with their reasons, and the counters of the RDMA
// devices.
const events = `cat /sys/kernel/tracing/trace; grep -H . /sys/class/infiniband/*/ports/*/hw_counters/* || :`

// keep saves logs that explain a failure.
func (lt *Test) keep(ctx context.Context, logs map[string]string) {
	dir := os.Getenv("SMCKIT_ARTIFACTS")
	if dir == "" {
		dir = filepath.Join(os.TempDir(), "smckit-artifacts")
	}
	dir = filepath.Join(dir, strings.ReplaceAll(lt.t.Name(), "/", "_"))
	for _, h := range lt.Hosts {
		sub := mkdir(filepath.Join(dir, h.Name))
		_ = os.WriteFile(filepath.Join(sub, "dmesg"), []byte(logs[h.Name]), 0o644)
		_ = os.WriteFile(filepath.Join(sub, "console"), []byte(h.machine.console.String()), 0o644)
		_ = os.WriteFile(filepath.Join(sub, "emulator"), []byte(h.machine.stderr.String()), 0o644)
		if out, err := h.Shell(ctx, events); err == nil {
			_ = os.WriteFile(filepath.Join(sub, "events"), []byte(out), 0o644)
		}
	}
	lt.t.Logf("kernel logs and consoles are in %s", dir)
}

// Must runs a shell script on a host. It fails the test if the script fails or has not ended after minutes; then it logs
// where each program of all hosts waits.
func (lt *Test) Must(host, script string) string {
	lt.t.Helper()
	ctx, cancel := context.WithTimeout(lt.t.Context(), Scale(90*time.Second))
	defer cancel()
	stuck := time.AfterFunc(Scale(75*time.Second), lt.logWaiters)
	out, err := lt.Host(host).Shell(ctx, script)
	stuck.Stop()
	if err != nil {
		lt.t.Fatal(err)
	}
	return out
}

// Document runs a command that prints a JSON document, which must have the keys and types of doc and the values of the vocabulary.
func (lt *Test) Document(host, script string, doc any) {
	lt.t.Helper()
	out := []byte(lt.Must(host, script))
	if err := errors.Join(jsondoc.Check(out), jsondoc.Decode(out, doc)); err != nil {
		lt.t.Fatalf("%s: %v\n%s", script, err, out)
	}
}

// waiters shows the programs of a guest, each with the kernel functions that it waits in, and the sockets.
const waiters = `for p in /proc/[0-9]*; do
	c=$(tr '\0' ' ' <$p/cmdline) && [ "$c" ] && echo "$p: $c" && cat $p/task/*/stack
done 2>/dev/null || :
smcss -a; cat /proc/net/tcp`

// logWaiters logs where programs wait, to explain a program that does not end.
func (lt *Test) logWaiters() {
	ctx, cancel := context.WithTimeout(context.Background(), Scale(30*time.Second))
	defer cancel()
	for _, h := range lt.Hosts {
		out, err := h.Shell(ctx, waiters)
		lt.t.Logf("what waits in guest %s: %v\n%s", h.Name, err, out)
	}
}

// Run runs a program on a host. Only a program that cannot be run fails the test.
func (lt *Test) Run(host string, argv ...string) Result {
	lt.t.Helper()
	ctx, cancel := context.WithTimeout(lt.t.Context(), Scale(60*time.Second))
	defer cancel()
	r, err := lt.Host(host).Run(ctx, Cmd{Argv: argv})
	if err != nil {
		lt.t.Fatal(err)
	}
	return r
}

// GoTest compiles the tests of a package and runs those that match pattern on a host, each as a test of its own below t.
// Tests that are skipped there are skipped here.
//
// The test binary ends itself after two minutes. It cannot if one of its threads waits in the kernel uninterruptibly: then
// GoTest logs where every program waits, and fails t.
func (lt *Test) GoTest(t *testing.T, host, pkg, pattern string) {
	t.Helper()
	lt.LongGoTest(t, host, pkg, pattern, 2*time.Minute)
}

// LongGoTest does what GoTest does, but the test binary ends itself only after a time.
func (lt *Test) LongGoTest(t *testing.T, host, pkg, pattern string, limit time.Duration) {
	t.Helper()
	lt.goTest(t, host, pkg, "/run", limit, "-test.run", pattern)
}

// UnitTests does what GoTest does for all tests of a package and the seeds of its fuzzers. They run in the directory of the package,
// for their test data: the guest must see this machine's files. Examples do not run: those with test data cannot be skipped where its
// byte order is wrong. Tests that are too long for an emulated processor skip themselves (testing.Short).
func (lt *Test) UnitTests(t *testing.T, host, pkg string) {
	t.Helper()
	root, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	lt.goTest(t, host, "github.com/smckit/smckit/"+pkg, filepath.Join(root, pkg), 2*time.Minute, "-test.run", "^(Test|Fuzz)", "-test.short")
}

// goTest runs the tests of a package that args choose in a directory of a host.
func (lt *Test) goTest(t *testing.T, host, pkg, dir string, limit time.Duration, args ...string) {
	t.Helper()
	binary := lt.installGoTest(t, host, pkg)
	limit = Scale(limit)
	ctx, cancel := context.WithTimeout(t.Context(), limit+Scale(time.Minute))
	defer cancel()
	stuck := time.AfterFunc(limit+Scale(15*time.Second), lt.logWaiters)
	defer stuck.Stop()
	r := lt.runGoTest(ctx, t, host, dir, binary, append(args, "-test.v", "-test.timeout", fmt.Sprint(limit))...)
	reportGoTest(t, r)
}

// GoBench compiles the tests of a package, runs one of its benchmarks on a host a number of times, and returns the output.
func (lt *Test) GoBench(b *testing.B, host, pkg, name string, times int) string {
	b.Helper()
	binary := lt.installGoTest(b, host, pkg)
	r := lt.runGoTest(b.Context(), b, host, "/run", binary, "-test.run", "^$", "-test.bench", "^"+name+"$", "-test.benchtime", fmt.Sprintf("%dx", times))
	if r.Code != 0 {
		b.Fatalf("exit status %d:\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
	return r.Stdout
}

// installGoTest compiles the tests of a package and copies them to a host, unless it has done so. Return: their path there.
func (lt *Test) installGoTest(t testing.TB, host, pkg string) string {
	t.Helper()
	key := [2]string{host, pkg}
	if inside := lt.goTests[key]; inside != "" {
		return inside
	}
	data := compileGoTest(t, pkg, lt.Host(host).Kernel.arch().debian)
	inside := "/run/" + filepath.Base(pkg) + ".test"
	if err := lt.Host(host).WriteFile(t.Context(), inside, data, 0o755); err != nil {
		t.Fatal(err)
	}
	lt.goTests[key] = inside
	return inside
}

// compiledTests has what compileGoTest has returned in this process, by package and architecture.
var compiledTests sync.Map

// compileGoTest compiles the tests of a package for an architecture, once for all guests of this process. They are sent through the
// channel to the agent, because the file is newer than the guest's view of this machine's files.
func compileGoTest(t testing.TB, pkg, arch string) []byte {
	t.Helper()
	key := [2]string{pkg, arch}
	if data, ok := compiledTests.Load(key); ok {
		return data.([]byte)
	}
	binary := filepath.Join(t.TempDir(), "guest.test")
	// 'go vet' sees these tests, too.
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-o", binary, pkg)
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOARCH="+arch)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go test -c %s: %v: %s", pkg, err, out)
	}
	data, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	compiledTests.Store(key, data)
	return data
}

// runGoTest runs tests that installGoTest has copied to a host, in a directory there, until ctx ends.
func (lt *Test) runGoTest(ctx context.Context, t testing.TB, host, dir, binary string, args ...string) Result {
	t.Helper()
	r, err := lt.Host(host).Run(ctx, Cmd{Argv: append([]string{binary}, args...), Env: []string{"SMCKIT_LAB=1"}, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

var verdict = regexp.MustCompile(`(?m)^--- (PASS|FAIL|SKIP): (\S+) \((\S+)\)`)

// reportGoTest turns the output of a test binary into tests below t.
func reportGoTest(t *testing.T, r Result) {
	t.Helper()
	marks := verdict.FindAllStringSubmatchIndex(r.Stdout, -1)
	begin := 0
	for _, m := range marks {
		end := len(r.Stdout)
		if i := strings.Index(r.Stdout[m[1]:], "\n=== RUN"); i >= 0 {
			end = m[1] + i
		}
		text := r.Stdout[begin:end]
		begin = end
		t.Run(r.Stdout[m[4]:m[5]], func(t *testing.T) {
			t.Log("in the guest:", r.Stdout[m[6]:m[7]])
			switch r.Stdout[m[2]:m[3]] {
			case "FAIL":
				t.Error(text)
			case "SKIP":
				t.Skip(text)
			}
		})
	}
	switch {
	case len(marks) == 0 || (r.Code != 0 && !t.Failed()):
		t.Errorf("exit status %d:\n%s%s", r.Code, r.Stdout, r.Stderr)
	case t.Failed() && r.Stderr != "":
		// This is where a panic names its reason.
		t.Logf("exit status %d, and on stderr:\n%s", r.Code, r.Stderr)
	}
}
