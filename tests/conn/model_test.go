// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/need"
)

// The configurations of the model; the head of stream.pml explains the parameters.
var (
	flow    = []string{"N=4", "TOTAL=9", "RESETS=0"}
	paced   = []string{"N=8", "TOTAL=15", "RESETS=0", "LEAST=2", "STEP=1"}
	halves  = []string{"N=8", "TOTAL=15", "RESETS=0", "LEAST=2", "HALVES"}
	anytime = []string{"N=3", "TOTAL=4", "RESETS=0", "ANYTIME"}
	resets  = []string{"N=2", "TOTAL=3", "RESETS=1", "ANYTIME"}
	timers  = []string{"N=2", "TOTAL=3", "RESETS=0", "ANYTIME", "TIMERS"}
)

// deadlock is the finding of the verifier when no step is left and not all processes are done: a lost wakeup, or a connection that
// does not end.
const deadlock = "invalid end state"

// promela returns the closing table in Promela.
func promela(t *testing.T) string {
	t.Helper()
	return run(t, "", compile(t, "src/promela.c"))
}

// verifier builds the program that searches stream.pml, in a directory of its own.
func verifier(t *testing.T, defines []string, flags ...string) (dir string) {
	t.Helper()
	need.LabPrograms(t, "spin")
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "steps.pml"), []byte(promela(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	build(t, dir, "stream.pml", defines, flags...)
	return dir
}

// build makes the program that searches a model.
func build(t *testing.T, dir, model string, defines []string, flags ...string) {
	t.Helper()
	need.LabPrograms(t, "spin")
	text, err := os.ReadFile(model)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, model), text, 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"-a"}
	for _, d := range defines {
		args = append(args, "-D"+d)
	}
	if out := run(t, dir, "spin", append(args, model)...); strings.TrimSpace(out) != "" {
		t.Fatalf("spin: %s", out)
	}
	run(t, dir, "cc", append(flags, "-DNOFAIR", "-DMEMLIM=1024", "-o", "pan", "pan.c")...)
}

// complete checks that the verifier found nothing and searched every state.
func complete(t *testing.T, out string) {
	t.Helper()
	if !strings.Contains(out, "errors: 0\n") || strings.Contains(out, "not completed") || strings.Contains(out, "pan:1:") {
		t.Errorf("%s", out)
	}
	if m := regexp.MustCompile(`\d+ states, stored`).FindString(out); m == "" {
		t.Errorf("no states:\n%s", out)
	} else {
		t.Log(m)
	}
}

// finds checks that the first error of the verifier is the expected one.
func finds(t *testing.T, out, finding string) {
	t.Helper()
	if first := regexp.MustCompile(`(?m)^pan:1: .*$`).FindString(out); !strings.Contains(first, finding) {
		t.Errorf("want %q, got %q:\n%s", finding, first, out)
	}
}

// TestModel makes spin search every state that a connection can reach: stream.pml, which runs the closing table of the
// module.
func TestModel(t *testing.T) {
	for _, m := range []struct {
		name    string
		defines []string
		all     bool // each statement of the model must have been reached
	}{
		{"flow", flow, false},
		{"paced", paced, false},
		{"halves", halves, false},
		{"anytime", anytime, true},
		{"resets", resets, true},
		{"timers", timers, true},
	} {
		t.Run(m.name, func(t *testing.T) {
			out := run(t, verifier(t, m.defines, "-O1", "-DSAFETY"), "./pan", "-m20000")
			complete(t, out)
			reached := regexp.MustCompile(`\t\(0 of \d+ states\)`).FindAllString(out, -1)
			if m.all && len(reached) != 5 {
				_, unreached, _ := strings.Cut(out, "unreached in")
				t.Errorf("statements that the model never reaches are not checked: unreached in%s", unreached)
			}
		})
	}
}

// TestModelTerminates checks that no connection goes on for ever with neither bytes nor flags to move.
func TestModelTerminates(t *testing.T) {
	for _, defines := range [][]string{flow, paced, halves, {"N=2", "TOTAL=3", "RESETS=0", "ANYTIME"}} {
		complete(t, run(t, verifier(t, defines, "-O1", "-DNP"), "./pan", "-m20000", "-l", "-n"))
	}
}

// TestModelMutations checks that spin finds each mistake that stream.pml has by name, for the right reason.
func TestModelMutations(t *testing.T) {
	known := map[string]bool{}
	for _, m := range []struct {
		name    string
		defines []string
		finding string
	}{
		{"W_NO_RECHECK_OF_ROOM", flow, deadlock},
		{"W_NO_RECHECK_OF_PROD", flow, deadlock},
		{"W_WAKE_BEFORE_PROD", flow, deadlock},
		{"W_WAITING_BEFORE_CONS", flow, deadlock},
		{"W_STEPS_WITHOUT_WAKEUP", flow, deadlock},
		{"W_PROD_BEFORE_DATA", flow, "assertion violated (ring[(pos%4)]==(read+1))"},
		{"W_CONS_BEFORE_COPY", flow, "assertion violated (ring[((p+k)%4)]==0)"},
		{"W_PROD_BEFORE_EOF", flow, "&&(read==wrote))"},
		{"W_FLAGS_BEFORE_PROD", flow, "&&(read==wrote))"},
		{"W_STEP_TOO_LONG", paced, deadlock},
		{"W_UPDATE_ONLY_WHEN_FULL", halves, deadlock},
		{"W_ABORT_IS_EOF", anytime, "&&(read==wrote))"},
		{"W_STEPS_WITHOUT_LOCK", anytime, "assertion violated ( !(ended[(1-0)])"},
		{"W_CONS_AFTER_THE_END", timers, "assertion violated ( !(ended[(1-1)])"},
	} {
		known[m.name] = true
		t.Run(m.name, func(t *testing.T) {
			dir := verifier(t, append([]string{m.name}, m.defines...), "-O0", "-DSAFETY")
			out := run(t, dir, "./pan", "-m20000", "-n")
			finds(t, out, m.finding)
		})
	}
	allKnown(t, "stream.pml", known)
}

// allKnown checks that a test has shown each mistake of a model to be one.
func allKnown(t *testing.T, model string, known map[string]bool) {
	t.Helper()
	text, err := os.ReadFile(model)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range regexp.MustCompile(`\bW_[A-Z_]+`).FindAllString(string(text), -1) {
		if !known[name] {
			t.Errorf("no test shows that %s is wrong", name)
		}
	}
}
