// SPDX-License-Identifier: Apache-2.0

package smcpnet

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/golden"
	"github.com/spf13/cobra"
)

// TestHelp compares the help of every command with a golden file.
func TestHelp(t *testing.T) {
	for _, name := range []string{"", "add", "del", "show", "flush", "apply", "export"} {
		h := newHarness(t)
		h.run(t, append(strings.Fields(name), "--help")...)
		golden.Check(t, "testdata/"+strings.TrimSuffix("help-"+name, "-")+".txt", h.out.String())
	}
}

func TestCompletion(t *testing.T) {
	tests := []struct {
		args []string
		want string // completions, separated by blanks
	}{
		{args: []string{"-s", ""}, want: "NET1 ABCDEFGHIJKLMNOP NET2"},
		{args: []string{"-d", "ne"}, want: "NET1 NET2"},
		{args: []string{"-s", "NET1", ""}},
		{args: []string{"-f", ""}},
		{args: []string{"-a", "NET1", "-I", "e"}, want: "eth0 eth1"},
		{args: []string{"-a", "NET1", "-D", ""}, want: "mlx4_0 rxe0"},
		{args: []string{"-a", "NET1", "-D", "rxe0", "-P", ""}, want: "1 2"},
		{args: []string{"add", ""}, want: "NET1 ABCDEFGHIJKLMNOP NET2"},
		{args: []string{"add", "NET1", ""}, want: "eth ib"},
		{args: []string{"add", "NET1", "eth", "eth"}, want: "eth0 eth1"},
		{args: []string{"add", "NET1", "ib", "r"}, want: "rxe0"},
		{args: []string{"add", "NET1", "ib", "rxe0", ""}, want: "1 2"},
		{args: []string{"add", "NET1", "ib", "rxe0", "1", ""}},
		{args: []string{"del", "n"}, want: "NET1 NET2"},
		{args: []string{"del", "net1", "eth", ""}, want: "eth0"},
		{args: []string{"del", "NET1", "ib", ""}, want: "mlx4_0"},
		{args: []string{"del", "NET2", "eth", ""}},
		{args: []string{"show", "A"}, want: "ABCDEFGHIJKLMNOP"},
		{args: []string{"show", "NET1", ""}},
		{args: []string{"ex"}, want: "export"},
	}
	for _, tt := range tests {
		h := newHarness(t, someRows()...)
		if status := h.run(t, append([]string{cobra.ShellCompRequestCmd}, tt.args...)...); status != cli.ExitOK {
			t.Errorf("%q: status %d", tt.args, status)
		}
		var got []string
		for line := range strings.Lines(h.out.String()) {
			if !strings.HasPrefix(line, ":") {
				word, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
				got = append(got, word)
			}
		}
		if diff := cmp.Diff(strings.Fields(tt.want), got); diff != "" && len(got)+len(tt.want) > 0 {
			t.Errorf("%q: %s", tt.args, diff)
		}
	}
	// It is no failure if there are no completions.
	h := newHarness(t)
	h.kernel.NoModule = true
	for _, args := range [][]string{{"show", ""}, {"del", "NET1", "eth", ""}} {
		if status := h.run(t, append([]string{cobra.ShellCompRequestCmd}, args...)...); status != cli.ExitOK || h.out.String() != ":4\n" {
			t.Errorf("%q without the module: status %d, %q", args, status, &h.out)
		}
	}
}
