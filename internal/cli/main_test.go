// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

// testEnv returns an Env in memory and its two outputs.
func testEnv() (env *Env, out, stderr *bytes.Buffer) {
	out, stderr = new(bytes.Buffer), new(bytes.Buffer)
	return &Env{
		In:         strings.NewReader(""),
		Out:        out,
		Err:        stderr,
		Getenv:     func(string) string { return "" },
		EnterNetNS: func(name string) error { return fmt.Errorf("entered %q", name) },
	}, out, stderr
}

// testTool prints a line and ends with err. Its sub-commands are list, which takes no operands, and link.
func testTool(err error) Tool {
	return Tool{
		Name: "tool",
		New: func(env *Env) *cobra.Command {
			root := &cobra.Command{Use: "tool"}
			list := &cobra.Command{
				Use:  "list",
				Args: cobra.NoArgs,
				RunE: func(*cobra.Command, []string) error {
					if _, werr := io.WriteString(env.Out, "listed\n"); werr != nil {
						return werr
					}
					return err
				},
			}
			list.Flags().Bool("listening", false, "")
			list.Flags().Int("limit", 0, "")
			choice := &cobra.Command{
				Use: "switch", Args: cobra.OnlyValidArgs, ValidArgs: []string{"on", "off"}, RunE: list.RunE,
			}
			root.AddCommand(list, choice, &cobra.Command{Use: "link", RunE: list.RunE})
			root.Flags().Int("much", 0, "")
			AddNetNSFlag(root, env)
			return root
		},
		Long: []string{"listening"},
		Subs: []Sub{{Name: "twin", Short: "Do the same", Tool: olderTool()}},
	}
}

// olderTool is a tool that is a command of testTool, too.
func olderTool() Tool {
	return Tool{
		Name: "older",
		New: func(env *Env) *cobra.Command {
			root := &cobra.Command{Use: "older [OPTION]...", Aliases: []string{"elder"}}
			list := &cobra.Command{Use: "list", RunE: func(*cobra.Command, []string) error {
				_, err := io.WriteString(env.Out, "listed\n")
				return err
			}}
			list.Flags().Bool("little", false, "")
			root.AddCommand(list)
			return root
		},
		Rewrite: func(args []string) ([]string, error) {
			for i, a := range args {
				if a == "l" {
					args[i] = "list"
				}
			}
			return args, nil
		},
	}
}

func TestRun(t *testing.T) {
	for _, tc := range []struct {
		name, args  string
		err         error
		status      int
		out, stderr string
	}{
		{"success", "list", nil, ExitOK, "listed\n", ""},
		{"failure", "list", errors.New("it broke"), ExitFailure, "listed\n", "tool: it broke\n"},
		{
			"lines and controls", "list", errors.New("it\n\tbroke:\r\n\x1b[2J\xff"), ExitFailure, "listed\n",
			`tool: it broke: \x1b[2J\xff` + "\n",
		},
		{"usage", "list", Usagef("bad %d", 7), ExitUsage, "listed\n", "tool: bad 7; see 'tool list --help'\n"},
		{
			"wrapped usage", "list", fmt.Errorf("here: %w", Usagef("bad")), ExitUsage, "listed\n",
			"tool: here: bad; see 'tool list --help'\n",
		},
		{"reported", "list", &StatusError{Status: 5}, 5, "listed\n", ""},
		{"wrapped reported", "list", fmt.Errorf("here: %w", &StatusError{Status: 5}), 5, "listed\n", ""},
		{"interrupted", "list", fmt.Errorf("here: %w", context.Canceled), 130, "listed\n", ""},
		{"reader gone", "list", &fs.PathError{Op: "write", Path: "|", Err: syscall.EPIPE}, ExitFailure, "listed\n", ""},
		{"version", "--version", nil, ExitOK, "tool utility, smckit-0.1.0\n", ""},
		{"version, short", "-v", nil, ExitOK, "tool utility, smckit-0.1.0\n", ""},
		{"version, abbreviated", "--vers", nil, ExitOK, "tool utility, smckit-0.1.0\n", ""},
		{"abbreviated option", "list --li", nil, ExitOK, "listed\n", ""},
		{"unknown option", "list --nope", nil, ExitUsage, "", "tool: unknown flag: --nope; see 'tool list --help'\n"},
		{"unknown letter", "list -Zn", nil, ExitUsage, "", "tool: unknown shorthand flag: 'Z' in -Zn; see 'tool list --help'\n"},
		{"unknown letter beyond ASCII", "list -én", nil, ExitUsage, "", "tool: unknown shorthand flag: 'é' in -én; see 'tool list --help'\n"},
		{"unprintable letter", "list -h\u200b", nil, ExitUsage, "", `tool: unknown shorthand flag: '\xe2\x80\x8b' in -\xe2\x80\x8b; see 'tool list --help'` + "\n"},
		{"no letter", "list -\xff\xfe", nil, ExitUsage, "", `tool: unknown shorthand flag: '\xff' in -\xff\xfe; see 'tool list --help'` + "\n"},
		{"half a letter", "list -\xc3", nil, ExitUsage, "", `tool: unknown shorthand flag: '\xc3' in -\xc3; see 'tool list --help'` + "\n"},
		{"no letters", "list --\xff=1", nil, ExitUsage, "", `tool: unknown flag: --\xff; see 'tool list --help'` + "\n"},
		{
			"bad value", "list --limit x", nil, ExitUsage, "",
			`tool: invalid argument "x" for "--limit" flag: give a number; see 'tool list --help'` + "\n",
		},
		{
			"large value", "list --limit 99999999999999999999", nil, ExitUsage, "",
			`tool: invalid argument "99999999999999999999" for "--limit" flag: give a number that is closer to 0; see 'tool list --help'` + "\n",
		},
		{
			"value of a switch", "list --listening=x", nil, ExitUsage, "",
			`tool: invalid argument "x" for "--listening" flag: give the option without a value; see 'tool list --help'` + "\n",
		},
		{
			"unknown command", "foo", nil, ExitUsage, "",
			`tool: unknown command "foo" for "tool"; see 'tool --help'` + "\n",
		},
		{
			"misspelt command", "lists", nil, ExitUsage, "",
			`tool: unknown command "lists" for "tool" (did you mean "list"?); see 'tool --help'` + "\n",
		},
		{
			"operand", "list foo", nil, ExitUsage, "",
			`tool: unknown command "foo" for "tool list"; see 'tool list --help'` + "\n",
		},
		{
			"choice of an operand", "switch onn", nil, ExitUsage, "",
			`tool: invalid argument "onn" for "tool switch" (did you mean "on"?); see 'tool switch --help'` + "\n",
		},
		{"a tool below", "twin lis", nil, ExitUsage, "", `tool twin: unknown command "lis" for "tool twin" (did you mean "list"?); see 'tool twin --help'` + "\n"},
		{"its error", "twin list --nope", nil, ExitUsage, "", "tool twin: unknown flag: --nope; see 'tool twin list --help'\n"},
		{"its command", "twin list", nil, ExitOK, "listed\n", ""},
		{"its rewriting", "twin l --li", nil, ExitOK, "listed\n", ""},
		{"its rewriting, after an option", "--much 1 twin l", nil, ExitUsage, "", "tool twin: unknown flag: --much; see 'tool twin list --help'\n"},
		{"its version", "twin --version", nil, ExitOK, "tool utility, smckit-0.1.0\n", ""},
		{"its old name", "older", nil, ExitUsage, "", `tool: unknown command "older" for "tool" (did you mean "twin"?); see 'tool --help'` + "\n"},
		{"its alias", "elder", nil, ExitUsage, "", `tool: unknown command "elder" for "tool"; see 'tool --help'` + "\n"},
		{
			"hints", "list", errors.New("'older list' and 'older' do, 'olderly' and older do not: 'older x"), ExitFailure, "listed\n",
			"tool: 'tool twin list' and 'tool twin' do, 'olderly' and older do not: 'tool twin x\n",
		},
		{"namespace", "list -N a", nil, ExitFailure, "", `tool: entered "a"` + "\n"},
		{"empty namespace", "list --netns=", nil, ExitFailure, "", `tool: entered ""` + "\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			env, out, stderr := testEnv()
			if got := Run(context.Background(), testTool(tc.err), env, strings.Fields(tc.args)); got != tc.status {
				t.Errorf("exit status %d, want %d", got, tc.status)
			}
			if diff := cmp.Diff(tc.out, out.String()); diff != "" {
				t.Errorf("standard output (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.stderr, stderr.String()); diff != "" {
				t.Errorf("standard error (-want +got):\n%s", diff)
			}
			if env.Out != io.Writer(out) {
				t.Error("Run has not removed its buffer")
			}
		})
	}
}

// TestSignals interrupts a command with a signal. The process must be killed by the signal, and Run must return the status of
// shells.
func TestSignals(t *testing.T) {
	const asTool = "SMCKIT_CLI_TEST"
	wait := Tool{Name: "tool", New: func(env *Env) *cobra.Command {
		var w Watch
		cmd := &cobra.Command{Use: "tool", RunE: func(cmd *cobra.Command, _ []string) error {
			ready := func() error {
				fmt.Fprintln(env.Out, "ready")
				return env.Flush()
			}
			if w.On() {
				return w.Run(cmd.Context(), env, "", ready)
			}
			_ = ready()
			<-cmd.Context().Done()
			return fmt.Errorf("waiting: %w", cmd.Context().Err())
		}}
		w.AddFlag(cmd.Flags())
		return cmd
	}}
	if args := os.Getenv(asTool); args != "" {
		os.Args = strings.Fields(args)
		os.Exit(Main(wait))
	}
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		interrupt(t, sig, asTool+"=tool")
		interrupt(t, sig, asTool+"=tool --watch 3600")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(&Interrupted{sig})
		env, _, _ := testEnv()
		if got := Run(ctx, wait, env, nil); got != 128+int(sig) {
			t.Errorf("%v: exit status %d", sig, got)
		}
	}
}

// interrupt runs TestSignals with a variable, sends it a signal when it is ready, and checks that it is killed by the signal.
func interrupt(t *testing.T, sig syscall.Signal, variable string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSignals$")
	cmd.Env = append(os.Environ(), variable)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	if err := cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() || status.Signal() != sig {
		t.Errorf("%s, %v: %v", variable, sig, cmd.ProcessState)
	}
}

// TestRunHelps checks the commands and options that cobra adds to every tree.
func TestRunHelps(t *testing.T) {
	for args, want := range map[string]string{
		"":                          "Usage:",
		"--help":                    "Usage:",
		"help list":                 "tool list",
		"list --help":               "tool list",
		"completion bash":           "bash completion",
		"__complete li":             "list\n",
		"__complete list --listen":  "--listening",
		"__completeNoDesc list --l": "--limit\n",
	} {
		env, out, stderr := testEnv()
		if status := Run(context.Background(), testTool(nil), env, strings.Fields(args)); status != ExitOK {
			t.Errorf("tool %s: exit status %d: %s", args, status, stderr)
		}
		if !strings.Contains(out.String(), want) {
			t.Errorf("tool %s: %q, want %q", args, out, want)
		}
	}
}

// brokenWriter fails with err.
type brokenWriter struct{ err error }

func (w brokenWriter) Write([]byte) (int, error) { return 0, w.err }

func TestRunUnwritable(t *testing.T) {
	full := &fs.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.ENOSPC}
	closed := &fs.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.EPIPE}
	const fullText = "tool: cannot write the output: write /dev/stdout: no space left on device\n"
	for _, tc := range []struct {
		name     string
		werr     error
		err      error
		large    bool
		stderr   string
		wantCode int
	}{
		{"full", full, nil, false, fullText, ExitFailure},
		{"full, noticed by the command", full, nil, true, fullText, ExitFailure},
		{"full, and a failure of its own", full, errors.New("it broke"), false, "tool: it broke\n", ExitFailure},
		{"full, and reported", full, &StatusError{Status: 3}, false, "", 3},
		{"closed", closed, nil, false, "", ExitFailure},
		{"closed, noticed by the command", closed, nil, true, "", ExitFailure},
		{"closed, and a failure of its own", closed, errors.New("it broke"), false, "tool: it broke\n", ExitFailure},
	} {
		t.Run(tc.name, func(t *testing.T) {
			env, _, stderr := testEnv()
			env.Out = brokenWriter{tc.werr}
			tool := testTool(nil)
			tool.New = func(env *Env) *cobra.Command {
				return &cobra.Command{Use: "tool", RunE: func(*cobra.Command, []string) error {
					text := "short"
					if tc.large {
						text = strings.Repeat("long", 100_000)
					}
					if _, err := io.WriteString(env.Out, text); err != nil {
						return fmt.Errorf("listing: %w", err)
					}
					return tc.err
				}}
			}
			if got := Run(context.Background(), tool, env, nil); got != tc.wantCode {
				t.Errorf("exit status %d, want %d", got, tc.wantCode)
			}
			if diff := cmp.Diff(tc.stderr, stderr.String()); diff != "" {
				t.Errorf("standard error (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRewrite(t *testing.T) {
	tool := testTool(nil)
	tool.Rewrite = func(args []string) ([]string, error) {
		if len(args) == 1 && args[0] == "l" {
			return []string{"list"}, nil
		}
		return nil, Usagef("what is %q", args)
	}
	env, out, _ := testEnv()
	if status := Run(context.Background(), tool, env, []string{"l"}); status != ExitOK || out.String() != "listed\n" {
		t.Errorf("exit status %d, %q", status, out)
	}
	env, _, stderr := testEnv()
	if status := Run(context.Background(), tool, env, []string{"x"}); status != ExitUsage {
		t.Errorf("exit status %d, %q", status, stderr)
	}
	env, out, _ = testEnv()
	if status := Run(context.Background(), tool, env, []string{"__complete", "lis"}); status != ExitOK ||
		!strings.HasPrefix(out.String(), "list\n") {
		t.Errorf("completion was rewritten: exit status %d, %q", status, out)
	}
}

func TestNetNS(t *testing.T) {
	// Inside the namespace, where the command has been executed again.
	env, out, _ := testEnv()
	env.Getenv = func(name string) string { return map[string]string{netnsEnv: "a"}[name] }
	if status := Run(context.Background(), testTool(nil), env, []string{"list", "-Na"}); status != ExitOK || out.Len() == 0 {
		t.Errorf("exit status %d, %q", status, out)
	}
	env, _, stderr := testEnv()
	env.Getenv = func(name string) string { return map[string]string{netnsEnv: "a"}[name] }
	Run(context.Background(), testTool(nil), env, []string{"list", "-Nb"})
	if want := "tool: entered \"b\"\n"; stderr.String() != want {
		t.Errorf("%q, want %q", stderr, want)
	}
}

func TestEnterNetNSRefuses(t *testing.T) {
	for name, want := range map[string]string{
		"":                "give a name",
		".":               "give a name",
		"..":              "give a name",
		"../../proc/1/ns": "give a name",
		"/run/netns/a":    "give a name",
		"no-such-smckit":  `"no-such-smckit" does not exist: see 'ip netns list'`,
		"bad\xff\x1bname": `"bad\xff\x1bname" does not exist`,
	} {
		err := EnterNetNS(name)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", name, err, want)
		}
		var usage *UsageError
		if got := errors.As(err, &usage); got != strings.Contains(want, "give") {
			t.Errorf("%q: a usage error: %v", name, got)
		}
		if errors.Is(err, os.ErrPermission) {
			t.Errorf("%q: the file was asked for", name)
		}
	}
}
