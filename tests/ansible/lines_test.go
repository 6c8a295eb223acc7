// SPDX-License-Identifier: Apache-2.0

//go:build linux

package ansible

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/need"
)

// build builds commands into a directory.
func build(t *testing.T, dir string, commands ...string) {
	t.Helper()
	need.Programs(t, "go")
	argv := []string{"build", "-o", dir + "/"}
	for _, c := range commands {
		argv = append(argv, "./cmd/"+c)
	}
	cmd := exec.CommandContext(t.Context(), "go", argv...)
	cmd.Dir = "../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
}

// understood checks that the commands know the options of every command line in a record. In a network namespace that does not
// exist they fail before they do anything.
func understood(t *testing.T, record string) {
	data, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	programs := t.TempDir()
	build(t, programs, "smckit", "smc_chk", "smc_pnet", "smc_policy", "smc_rnics", "smcr", "smcd")
	seen := map[string]bool{}
	for line := range bytes.Lines(data) {
		var argv []string
		if err := json.Unmarshal(line, &argv); err != nil {
			t.Fatal(err)
		}
		if seen[string(line)] {
			continue
		}
		seen[string(line)] = true
		cmd := exec.CommandContext(t.Context(), filepath.Join(programs, argv[0]), append(argv[1:], "-N", "no-such-namespace-of-smckit")...)
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil {
			t.Fatal(err)
		}
		if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), "no-such-namespace-of-smckit") {
			t.Errorf("%s: exit status %d\n%s", strings.Join(argv, " "), cmd.ProcessState.ExitCode(), out)
		}
	}
	if len(seen) < 20 {
		t.Errorf("only %d command lines: the record is wrong", len(seen))
	}
}
