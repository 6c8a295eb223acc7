// SPDX-License-Identifier: Apache-2.0

//go:build linux

package tool

import (
	"path/filepath"
	"testing"

	"github.com/smckit/smckit/internal/wrongtest"
)

// TestWrongLines runs the command lines in testdata/wrong, a file for each family of commands. All fail before they access the system: the
// commands end at the latest when they enter the network namespace of -N. Each command has lines for hosts that it cannot use in a file
// beside it.
func TestWrongLines(t *testing.T) {
	files, err := filepath.Glob("testdata/wrong/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			wrongtest.Run(t, file, 40, func(t *testing.T, name string, h wrongtest.Host) wrongtest.Command {
				if h == wrongtest.NoModule || h == wrongtest.NoPermission {
					t.Fatalf("a test with fakes, beside the command, tests a host with %s", h)
				}
				return wrongtest.Command{Tool: find(t, name)}
			})
		})
	}
}
