// SPDX-License-Identifier: Apache-2.0

package smcrd

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/golden"
	"github.com/spf13/cobra"
)

// runGroups runs 'smckit groups' with the kernel of b.
func (b *bench) runGroups(args ...string) result {
	return b.runTool(func(d deps) cli.Tool {
		return cli.Tool{Name: "smckit groups", New: func(env *cli.Env) *cobra.Command { return newGroups(env, d) }}
	}, args...)
}

// TestGroups compares the lists of both technologies with golden files.
func TestGroups(t *testing.T) {
	for _, args := range []string{"", "-d", "--json", "-D", "-R", "-R --json", "ibdev mlx5_1", "100", "200"} {
		f := populated()
		got := (&bench{fake: f}).runGroups(strings.Fields(args)...)
		if got.status != 0 || got.stderr != "" || f.closed != 1 {
			t.Errorf("groups %s: %+v", args, got)
		}
		golden.Check(t, "testdata/"+strings.ReplaceAll(strings.TrimSpace("groups "+args), " ", "_")+".golden", got.stdout)
	}
	// The output of smcr and smcd is a part of the output of groups.
	both := (&bench{fake: populated()}).runGroups()
	r, d := (&bench{fake: populated()}).run(techR, "linkgroup"), (&bench{fake: populated()}).run(techD, "linkgroup")
	if diff := cmp.Diff("SMC-R\n"+r.stdout+"SMC-D\n"+d.stdout, both.stdout); diff != "" {
		t.Errorf("smcr and smcd (-), both (+): %s", diff)
	}
	if got := (&bench{fake: &fake{}}).runGroups(); got != (result{}) {
		t.Errorf("without link groups: %+v", got)
	}
}

// TestGroupsDelete checks that only the link group of the given technology ends.
func TestGroupsDelete(t *testing.T) {
	for args, want := range map[string]string{
		"-R delete 100": "delete R 00000100", "-D delete 200": "delete D 00000200", "delete 100": "", "-R delete": "", "-R del 100": "", "-D delete x": "",
	} {
		f := populated()
		got := (&bench{fake: f}).runGroups(strings.Fields(args)...)
		if strings.Join(f.calls, " ") != want || (got.status == 0) != (want != "") {
			t.Errorf("groups %s: %+v, requests %q", args, got, f.calls)
		}
	}
}

// TestObjects checks that objects of smcr are tools with its options and abbreviations.
func TestObjects(t *testing.T) {
	for _, tc := range []struct{ tool, args, same string }{
		{"link", "", "link"}, {"link", "-dd sh", "-dd link show"}, {"link", "show --json", "link show --json"}, {"ueid", "s", "ueid show"},
	} {
		want := (&bench{fake: populated()}).run(techR, strings.Fields(tc.same)...)
		got := (&bench{fake: populated()}).runTool(func(d deps) cli.Tool {
			tool := objectTool(techR, tc.tool)
			tool.New = func(env *cli.Env) *cobra.Command { return detach(newRoot(techR, env, d), tc.tool) }
			return tool
		}, strings.Fields(tc.args)...)
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(result{})); diff != "" || want.stdout == "" {
			t.Errorf("%s %s (-%s +got): %s", tc.tool, tc.args, tc.same, diff)
		}
	}
}
