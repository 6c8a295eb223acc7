// SPDX-License-Identifier: Apache-2.0

package smcpolicy

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/golden"
	"github.com/spf13/pflag"
)

// TestHelp compares the help of every command with a golden file.
func TestHelp(t *testing.T) {
	for _, name := range []string{"", "add", "del", "show", "flush", "apply", "export", "on", "off", "explain", "auto", "peers", "memory", "namespaces"} {
		h := newHarness(t)
		h.run(append(strings.Fields(name), "--help")...)
		path := filepath.Join("testdata", strings.TrimSuffix("help-"+name, "-")+".txt")
		golden.Check(t, path, h.out.String())
		for line := range strings.Lines(h.out.String()) {
			if len(line) > 100 || strings.Contains(line, "\t") {
				t.Errorf("%s: line %q", path, line)
			}
		}
	}
}

// TestDescribed checks that every command and option is described.
func TestDescribed(t *testing.T) {
	root := newRoot(&cli.Env{}, newHarness(t).sys)
	for _, cmd := range append(root.Commands(), root) {
		if cmd.Short == "" || cmd.Long == "" {
			t.Errorf("%s is not described", cmd.Name())
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" {
				t.Errorf("%s --%s is not described", cmd.Name(), f.Name)
			}
		})
	}
}
