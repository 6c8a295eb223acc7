// SPDX-License-Identifier: Apache-2.0

// Package wire tests the wire formats of the kernel module, kernel/wire, in user space: it builds them with a C test program
// and fuzzers, under sanitizers, and decodes their output with Wireshark's dissector.
package wire

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/need"
	"github.com/smckit/smckit/pkg/netlinksmc"
)

const library = "../../kernel/wire"

// fuzzRuns is the number of inputs that a fuzzer tries here; use `make -C tests/wire fuzz RUNS=1000000` for more.
const fuzzRuns = "20000"

// sources returns the files that the tests are built from. It reads them all, because the go command repeats a test only if
// a file has changed that the test itself has read: a compiler's reads do not count.
func sources(t *testing.T) map[string]string {
	t.Helper()
	files := make(map[string]string)
	patterns := []string{
		library + "/*", "../../kernel/conn/cdc.*", "../../kernel/policy/rules.*", "../../kernel/policy/auto.*", "../../kernel/control/memory_fit.h", "../../kernel/transport/rdma/range.h", "../../kernel/transport/ism/fabric_*.h", "src/*", "fuzz/*", "testdata/*.hex",
		"testdata/corpus/*.hex", "Makefile",
	}
	for _, pattern := range patterns {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: no such files (%v)", pattern, err)
		}
		for _, name := range names {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			files[name] = string(data)
		}
	}
	return files
}

// outDir is the directory in which all tests build, so that the test program is compiled only once.
var outDir string

func TestMain(m *testing.M) {
	var err error
	if outDir, err = os.MkdirTemp("", "wire"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(outDir)
	os.Exit(code)
}

// wiretest builds the test program, runs it in one of its modes and returns its output.
func wiretest(t *testing.T, args ...string) string {
	t.Helper()
	need.Programs(t, "cc", "make")
	sources(t)
	program := filepath.Join(outDir, "wiretest")
	if out, err := exec.Command("make", "-s", "OUT="+outDir, program).CombinedOutput(); err != nil {
		t.Fatalf("make: %v\n%s", err, out)
	}
	cmd := exec.Command(program, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("wiretest %s: %v\n%s%s", strings.Join(args, " "), err, out, stderr.String())
	}
	return string(out)
}

// TestCodecs runs each C test as a subtest.
func TestCodecs(t *testing.T) {
	vectors, err := filepath.Glob("testdata/*.hex")
	if err != nil || len(vectors) != 3 {
		t.Fatalf("%d files of vectors (%v), want 3", len(vectors), err)
	}
	out := wiretest(t, append([]string{"run"}, vectors...)...)
	passed := 0
	var complaints []string
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "ok "); ok {
			t.Run(name, func(*testing.T) {})
			passed++
		} else if name, ok := strings.CutPrefix(line, "not ok "); ok {
			t.Run(name, func(t *testing.T) { t.Error(strings.Join(complaints, "\n")) })
		} else {
			complaints = append(complaints, line)
			continue
		}
		complaints = nil
	}
	if passed < 60 {
		t.Errorf("only %d tests passed", passed)
	}
}

// TestReasons compares the module's table of reasons with that of the commands.
func TestReasons(t *testing.T) {
	var want strings.Builder
	for _, r := range netlinksmc.Reasons() {
		want.WriteString(r.String() + " " + r.Name() + "\n")
	}
	if got := wiretest(t, "reasons"); got != want.String() {
		t.Errorf("reasons of kernel/wire:\n%swant those of pkg/netlinksmc:\n%s", got, want.String())
	}
}

// TestLibrary checks that each file compiles alone and without sanitizers, with all warnings, and that only the shim
// includes files of other folders.
func TestLibrary(t *testing.T) {
	include := regexp.MustCompile(`(?m)^#\s*include\s+(\S+)`)
	compilers := []string{"cc", "clang"}
	for name, text := range sources(t) {
		if filepath.Dir(name) != library {
			continue
		}
		base := filepath.Base(name)
		for _, m := range include.FindAllStringSubmatch(text, -1) {
			own := strings.Trim(m[1], `"`)
			_, err := os.Stat(filepath.Join(library, own))
			if base != "shim.h" && (own == m[1] || err != nil) {
				t.Errorf("%s includes %s: only shim.h knows where it is compiled", base, m[1])
			}
		}
		for _, cc := range compilers {
			if _, err := exec.LookPath(cc); err != nil || filepath.Ext(name) != ".c" {
				continue
			}
			cmd := exec.Command(cc, "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Wconversion", "-Wmissing-prototypes",
				"-Wdeclaration-after-statement", "-Werror", "-c", "-o", os.DevNull, name)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s %s: %v\n%s", cc, base, err, out)
			}
		}
	}
}

// TestPackedInputs runs each fuzzer on its packed inputs. That needs no libFuzzer, so it happens wherever there is a C compiler.
func TestPackedInputs(t *testing.T) {
	need.Programs(t, "cc", "make")
	sources(t)
	inputs := map[string]int{"accept": 35, "cdc": 45, "decline": 24, "fabric": 18, "header": 10, "llc": 54, "proposal": 65, "tcpopt": 29}
	targets, err := filepath.Glob("fuzz/fuzz_*.c")
	if err != nil || len(targets) != len(inputs) {
		t.Fatalf("%d fuzzers (%v), want %d", len(targets), err, len(inputs))
	}
	for name, least := range inputs {
		t.Run(name, func(t *testing.T) {
			out, err := exec.Command("make", "-s", "OUT="+outDir, "replay-"+name).CombinedOutput()
			var n int
			if _, scanErr := fmt.Sscanf(string(out), "%d inputs\n", &n); err != nil || scanErr != nil || n < least {
				t.Errorf("%d inputs, want %d at least: %v\n%s", n, least, err, out)
			}
		})
	}
}

// TestFuzz runs each fuzzer over the inputs that were found interesting once, and a number of new ones.
func TestFuzz(t *testing.T) {
	need.Programs(t, "clang", "cc", "make")
	sources(t)
	probe := exec.Command("clang", "-fsanitize=fuzzer", "-x", "c", "-o", filepath.Join(t.TempDir(), "probe"), "-")
	probe.Stdin = strings.NewReader("int LLVMFuzzerTestOneInput(const char *d, long n) { return d && n < 0; }\n")
	if out, err := probe.CombinedOutput(); err != nil {
		t.Skipf("this clang has no fuzzer library: %v\n%s", err, out)
	}
	targets, err := filepath.Glob("fuzz/fuzz_*.c")
	if err != nil || len(targets) != 8 {
		t.Fatalf("%d fuzzers (%v), want 8", len(targets), err)
	}
	for _, target := range targets {
		name := strings.TrimSuffix(filepath.Base(target), ".c")
		t.Run(name, func(t *testing.T) {
			out, err := exec.Command("make", "-s", "OUT="+outDir, "RUNS="+fuzzRuns, "SEED=1", "run-"+name).CombinedOutput()
			if err != nil || !bytes.Contains(out, []byte("Done "+fuzzRuns)) {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
