// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"os/exec"
	"strings"
	"testing"
)

// TestGenerated checks that generated files match specs/. The generator is a separate module, whose dependencies may be missing
// on a machine.
func TestGenerated(t *testing.T) {
	list := exec.Command("go", "list", "-deps", "./specgen")
	list.Dir = "../tools"
	list.Env = append(list.Environ(), "GOPROXY=off", "GOFLAGS=-mod=readonly")
	if out, err := list.CombinedOutput(); err != nil {
		t.Skipf("the generator's dependencies are not on this machine: %v\n%s", err, out)
	}
	cmd := exec.Command("go", "run", "./specgen", "-check", "..")
	cmd.Dir = list.Dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, strings.TrimSpace(string(out)))
	}
}
