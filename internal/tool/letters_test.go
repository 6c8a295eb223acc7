// SPDX-License-Identifier: Apache-2.0

//go:build linux

package tool

import (
	"bytes"
	"io"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/smckit/smckit/internal/cli"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestLetters compares the table of -d and -D in docs/compat.md with the options of the commands.
func TestLetters(t *testing.T) {
	text, err := os.ReadFile("../../docs/compat.md")
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_ -]+ -[dD])` \\| `--([A-Za-z0-9-]+)` ").FindAllSubmatch(text, -1) {
		want = append(want, string(row[1])+" "+string(row[2]))
	}
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		add := func(f *pflag.Flag) {
			if f.Shorthand == "d" || f.Shorthand == "D" {
				got = append(got, cmd.CommandPath()+" -"+f.Shorthand+" "+f.Name)
			}
		}
		cmd.LocalFlags().VisitAll(add)
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	for _, tool := range All() {
		walk(cli.Tree(tool, &cli.Env{In: bytes.NewReader(nil), Out: io.Discard, Err: io.Discard, Getenv: func(string) string { return "" }}))
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, slices.Compact(got)); diff != "" {
		t.Errorf("docs/compat.md (-) and the commands (+): %s", diff)
	}
}
