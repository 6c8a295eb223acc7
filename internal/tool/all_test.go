// SPDX-License-Identifier: Apache-2.0

//go:build linux

package tool

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAll checks that no command is missing. A command that is not in the list has neither a manual nor completions.
func TestAll(t *testing.T) {
	dirs, err := os.ReadDir("../../cmd")
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, d := range dirs {
		want = append(want, d.Name())
	}
	for _, tool := range All() {
		got = append(got, tool.Name)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("commands of cmd/ (-) and of the list (+): %s", diff)
	}
}
