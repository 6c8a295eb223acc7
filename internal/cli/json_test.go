// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/smckit/smckit/internal/jsondoc"
	"github.com/smckit/smckit/internal/jsondoc/jsontest"
	"github.com/smckit/smckit/internal/remedy"
	"github.com/smckit/smckit/pkg/smcerr"
	"github.com/spf13/cobra"
)

// jsonTool has the commands list, which prints a document and ends with err, fail, which only does the latter, and rounds, which
// prints two lines first.
func jsonTool(err error) Tool {
	return Tool{Name: "tool", New: func(env *Env) *cobra.Command {
		root := &cobra.Command{Use: "tool"}
		add := func(use string, run func(json bool) error) {
			on := false
			cmd := &cobra.Command{Use: use, Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error { return run(on) }}
			AddJSONFlag(cmd.Flags(), env, &on, "print JSON")
			root.AddCommand(cmd)
		}
		type document struct {
			Schema int    `json:"schema"`
			State  string `json:"state" schema1:"mode"`
		}
		doc := document{jsondoc.Schema, "ACTIVE"}
		add("list", func(json bool) error {
			if !json {
				return err
			}
			return errors.Join(env.WriteJSON(doc), err)
		})
		add("fail", func(bool) error { return err })
		add("rounds", func(bool) error {
			for range 2 {
				if err := errors.Join(env.WriteJSONLine(doc), env.Flush()); err != nil {
					return err
				}
			}
			return err
		})
		return root
	}}
}

// TestFailureJSON checks the documents of failures: one of a command that has printed none, and none otherwise.
func TestFailureJSON(t *testing.T) {
	const broke = `{"schema":2,"error":"it broke","status":1}` + "\n"
	const line = `{"schema":2,"state":"ACTIVE"}` + "\n"
	known := fmt.Errorf("here: %w", &smcerr.Error{Op: "list", Kind: smcerr.ErrPermission, Remedy: "run as root"})
	usage := func(command, text string) string {
		return `{"schema":2,"error":"` + text + `","remedy":"see '` + command + ` --help'","status":2}` + "\n"
	}
	for _, tc := range []struct {
		args string
		err  error
		out  string
	}{
		{"fail --json", errors.New("it\n broke"), strings.Replace(broke, "it ", "it  ", 1)},
		{"fail --json=2", errors.New("it broke"), broke},
		{"fail --js", errors.New("it broke"), broke},
		{"fail --json=true", errors.New("it broke"), broke},
		{"fail --json=1", errors.New("it broke"), ""},
		{"fail", errors.New("it broke"), ""},
		{"fail --json", known, `{"schema":2,"error":"here: list: permission denied","remedy":"run as root","status":1}` + "\n"},
		{"fail --json", remedy.Errorf("try x", "line %d: bad", 3), `{"schema":2,"error":"line 3: bad","remedy":"try x","status":1}` + "\n"},
		{"fail --json", fmt.Errorf("a: %w", remedy.Errorf("use --force", "no b;")), `{"schema":2,"error":"a: no b","remedy":"use --force","status":1}` + "\n"},
		{"fail --json", NoSuch("no eht0", "eht0", []string{"eth0"}, "ls"), `{"schema":2,"error":"no eht0 (did you mean \"eth0\"?)","remedy":"there is eth0; 'ls' lists it","status":1}` + "\n"},
		{"fail --json", nil, ""},
		{"fail --json", &StatusError{Status: 1}, ""},
		{"fail --json", fmt.Errorf("here: %w", context.Canceled), ""},
		{"fail --json", Usagef("bad"), usage("tool fail", "bad")},
		{"list --json", errors.New("it changed"), "{\n  \"schema\": 2,\n  \"state\": \"ACTIVE\"\n}\n"},
		{"list --json=1", errors.New("it changed"), "{\n  \"schema\": 1,\n  \"mode\": \"ACTIVE\"\n}\n"},
		{"rounds --json", errors.New("it broke"), line + line + broke},
		{"list --json --nope", nil, usage("tool list", "unknown flag: --nope")},
		{"list --nope --json", nil, usage("tool list", "unknown flag: --nope")},
		{"list --nope -- --json", nil, ""},
		{"list --nope --json=1", nil, ""},
		{"lost --json", nil, usage("tool", `unknown command \"lost\" for \"tool\" (did you mean \"list\"?)`)},
		{"list --json=3", nil, ""},
	} {
		t.Run(tc.args, func(t *testing.T) {
			env, out, stderr := testEnv()
			status := Run(context.Background(), jsonTool(tc.err), env, strings.Fields(tc.args))
			if diff := cmp.Diff(tc.out, out.String()); diff != "" {
				t.Errorf("status %d, standard error %q, standard output (-want +got):\n%s", status, stderr, diff)
			}
			if strings.Contains(out.String(), `"error"`) {
				lines := strings.Split(strings.TrimSpace(out.String()), "\n")
				jsontest.CheckFailure(t, []byte(lines[len(lines)-1]), stderr.String(), status)
			}
		})
	}
}

// TestJSONSchema checks the values of --json.
func TestJSONSchema(t *testing.T) {
	for _, args := range []string{"list --json=0", "list --json=3", "list --json=false", "list --json="} {
		env, _, stderr := testEnv()
		if status := Run(context.Background(), jsonTool(nil), env, strings.Fields(args)); status != ExitUsage ||
			!strings.Contains(stderr.String(), "is not a schema: give --json, or --json=1 for schema 1") {
			t.Errorf("%s: status %d, %q", args, status, stderr)
		}
	}
	env, out, _ := testEnv()
	Run(context.Background(), jsonTool(nil), env, []string{"list", "--help"})
	if !strings.Contains(out.String(), "      --json   print JSON; --json=1: in schema 1\n") {
		t.Errorf("help: %s", out)
	}
}

// TestNoJSONOption checks that a tool without --json prints no document.
func TestNoJSONOption(t *testing.T) {
	env, out, _ := testEnv()
	Run(context.Background(), testTool(errors.New("it broke")), env, []string{"list", "--nope", "--json"})
	if out.Len() > 0 {
		t.Errorf("standard output: %q", out)
	}
}
