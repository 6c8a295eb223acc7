// SPDX-License-Identifier: Apache-2.0

//go:build linux

package tool

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/clitest"
	"github.com/smckit/smckit/internal/tool/smckit"
	"github.com/smckit/smckit/internal/wrongtest"
	"github.com/spf13/cobra"
)

// ownNames matches the names under which commands of smckit are programs and objects of their own.
var ownNames = regexp.MustCompile(`\b(smc_chk|smc_conf|smc_dbg|smc_ismd list|smc_pnet|smc_policy|smc_rnics|smc_run|smcss|smcr-stats` +
	`|smc[rd] (-\S+ )?(link|linkgroup|stats|ueid)|(link|linkgroup) delete|ueid (add|del))\b`)

// TestCalled runs the wrong command lines of all commands as lines of smckit. It checks that the messages name the command, and the help to
// read, as the user has called them.
func TestCalled(t *testing.T) {
	files, err := filepath.Glob("testdata/wrong/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]int{}
	for _, file := range files {
		for _, words := range wrongtest.Lines(t, file) {
			sub, args := inSmckit(words)
			if sub == "" {
				continue
			}
			lines[sub]++
			env, _, stderr := clitest.Env(nil)
			status := cli.Run(t.Context(), smckit.Tool, env, args)
			called, said := smckit.Tool.Name+" "+sub, stderr.String()
			help := regexp.MustCompile(`; see '` + called + `( [a-z-]+)* --help'\n$`).MatchString(said)
			if !strings.HasPrefix(said, called+": ") || help != (status == cli.ExitUsage) || ownNames.MatchString(said) {
				t.Errorf("smckit %q: status %d, %q", args, status, said)
			}
		}
	}
	for _, s := range smckit.Tool.Subs {
		if lines[s.Name] < 2 {
			t.Errorf("there are %d wrong command lines of smckit %s", lines[s.Name], s.Name)
		}
	}
}

// inSmckit returns the command of smckit for a command line, with the arguments that smckit gets. The command is empty if smckit has none.
func inSmckit(words []string) (sub string, args []string) {
	longest := 0
	for _, s := range smckit.Tool.Subs {
		lines := map[string]string{s.Tool.Name: "", smckit.Tool.Name + " " + s.Name: ""}
		for line, options := range s.Lines {
			lines[line] = options
		}
		for line, options := range lines {
			own := strings.Fields(line)
			if len(own) > longest && len(own) <= len(words) && slices.Equal(own, words[:len(own)]) {
				longest = len(own)
				sub, args = s.Name, slices.Concat([]string{s.Name}, strings.Fields(options), words[len(own):])
			}
		}
	}
	return sub, args
}

// TestUsages checks that each line of a usage begins with the command as the user has called it.
func TestUsages(t *testing.T) {
	eachCommand(func(cmd *cobra.Command) {
		_, usage, ok := strings.Cut(cmd.UsageString(), "Usage:\n")
		if !ok {
			t.Errorf("%s has no usage", cmd.CommandPath())
		}
		usage, _, _ = strings.Cut(usage, "\n\n")
		for line := range strings.Lines(usage) {
			if line = strings.TrimSpace(line); line != cmd.CommandPath() && !strings.HasPrefix(line, cmd.CommandPath()+" ") {
				t.Errorf("%s: the line of its usage is %q", cmd.CommandPath(), line)
			}
		}
	})
}
