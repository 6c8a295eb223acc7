// SPDX-License-Identifier: Apache-2.0

//go:build linux

package tool

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/golden"
)

// TestWrongLines runs the command lines in testdata/wrong, a file for each family of commands, and compares the status and the line on
// standard error, which are below each. -update writes them. All fail before they access the system: the commands end at the latest when
// they enter the network namespace of -N.
func TestWrongLines(t *testing.T) {
	files, err := filepath.Glob("testdata/wrong/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			rows := 0
			for line := range strings.Lines(string(text)) {
				if line = strings.TrimRight(line, "\n"); strings.HasPrefix(line, "\t") {
					continue
				}
				rows++
				got.WriteString(line + "\n\t" + fail(t, line) + "\n")
			}
			if rows < 40 {
				t.Errorf("%d command lines are fewer than 40", rows)
			}
			golden.Check(t, file, got.String())
		})
	}
}

// fail runs a command line, and returns its status with its line on standard error.
func fail(t *testing.T, line string) string {
	t.Helper()
	words := split(t, line)
	var out, stderr bytes.Buffer
	env := &cli.Env{
		In: strings.NewReader(""), Out: &out, Err: &stderr, Getenv: func(string) string { return "" },
		EnterNetNS: func(name string) error { return errors.New("entered " + name) },
	}
	status := cli.Run(t.Context(), find(t, words[0]), env, words[1:])
	if status != cli.ExitUsage && status != cli.ExitFailure || out.Len() > 0 || strings.Count(stderr.String(), "\n") != 1 {
		t.Errorf("%s: status %d, %q, %q", line, status, &out, &stderr)
	}
	return fmt.Sprintf("%d %s", status, strings.TrimSuffix(stderr.String(), "\n"))
}

// split returns the words of a command line. Those in quotation marks are literals of Go.
func split(t *testing.T, line string) []string {
	t.Helper()
	words := strings.Fields(line)
	for i, w := range words {
		if !strings.HasPrefix(w, `"`) {
			continue
		}
		literal, err := strconv.Unquote(w)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		words[i] = literal
	}
	return words
}
