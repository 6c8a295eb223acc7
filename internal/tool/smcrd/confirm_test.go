// SPDX-License-Identifier: Apache-2.0

package smcrd

import (
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/cli"
	"github.com/spf13/cobra"
)

// TestAsks checks that the commands of smckit do not end or remove anything without a yes.
func TestAsks(t *testing.T) {
	for _, tt := range []struct{ args, call, question string }{
		{"groups -R delete 100", "delete R 00000100", "end link group 00000100 and its connection"},
		{"groups -D delete 300", "delete D 00000300", "end link group 00000300"},
		{"links delete 100 2", "delete link 00000100 02", "delete link 02 of link group 00000100, so that its connections continue over the other one"},
		{"eid flush", "flush", "remove all user EIDs, of which there are 2"},
	} {
		for _, yes := range []bool{false, true} {
			f := populated()
			f.ueids = []string{"A", "B"}
			words := strings.Fields(tt.args)
			if yes {
				words = append(words, "--yes")
			}
			got := (&bench{fake: f}).runTool(func(d deps) cli.Tool { return suite(d) }, words...)
			want := result{status: 1, stderr: "smckit " + words[0] + ": cannot ask whether to " + tt.question +
				", since standard input is no terminal: use --yes\n"}
			call := ""
			if yes {
				want, call = result{}, tt.call
			}
			if got != want || strings.Join(f.calls, " ") != call {
				t.Errorf("%q: %+v, requests %q", words, got, f.calls)
			}
		}
	}
}

// suite returns smckit with the commands of this package.
func suite(d deps) cli.Tool {
	object := func(name string) cli.Tool {
		tool := objectTool(techR, name)
		tool.New = func(env *cli.Env) *cobra.Command { return detach(newRoot(techR, env, d), name) }
		return tool
	}
	return cli.Tool{
		Name: "smckit", New: func(*cli.Env) *cobra.Command { return &cobra.Command{Use: "smckit"} },
		Subs: []cli.Sub{
			{Name: "groups", Tool: cli.Tool{Name: "smckit groups", New: func(env *cli.Env) *cobra.Command { return newGroups(env, d) }}},
			{Name: "links", Tool: object("link")},
			{Name: "eid", Tool: object("ueid")},
		},
	}
}
