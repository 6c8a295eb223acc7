// SPDX-License-Identifier: Apache-2.0

//go:build linux

package tool

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/clitest"
	"github.com/smckit/smckit/internal/tool/smckit"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// ownName returns the name that a command of smckit has without it, the one of others as it is.
func ownName(path string) string {
	words := strings.Fields(path)
	for _, s := range smckit.Tool.Subs {
		if len(words) > 1 && words[0] == smckit.Tool.Name && words[1] == s.Name {
			return strings.Join(append([]string{s.Tool.Name}, words[2:]...), " ")
		}
	}
	return path
}

// eachCommand calls f with all commands that users have. smclab is for developers.
func eachCommand(f func(cmd *cobra.Command)) {
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		f(cmd)
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	for _, tool := range All() {
		if tool.Name == "smclab" {
			continue
		}
		env, _, _ := clitest.Env(nil)
		walk(cli.Tree(tool, env))
	}
}

// changing are the words of commands that have no listing, or one that only commands change: they have no --watch.
var changing = []string{"add", "apply", "check", "del", "explain", "export", "flush", "off", "on", "save"}

// without has the reasons for which commands lack an option that the rules of CONTRIBUTING.md ask for.
var without = map[string]map[string]string{
	"json": {
		"smc_dbg":        "prints an archive, or what other commands print",
		"smc_ismd":       "prints nothing: it serves until a signal ends it",
		"smc_ismd check": "prints nothing but the error",
		"smc_run":        "prints what its program prints",
	},
	"netns": {
		"smc_ismd":       "the host has fabrics, not a network namespace",
		"smc_ismd check": "the host has fabrics, not a network namespace",
		"smc_ismd list":  "the host has fabrics, not a network namespace",
	},
	"watch": {
		"smc_chk":               "answers a question; the server runs until a signal ends it",
		"smc_conf":              "has no listing: its commands are about files",
		"smc_dbg":               "collects a report",
		"smc_ismd":              "serves until a signal ends it",
		"smc_pnet":              "only commands change the table",
		"smc_pnet show":         "only commands change the table",
		"smc_policy namespaces": "only commands change the setting",
		"smc_rnics":             "smckit monitor prints what changes",
		"smc_run":               "runs a program",
		"smcd":                  "its objects have the listings",
		"smcd device":           "smckit monitor prints what changes",
		"smcd handshake-limit":  "only commands change the setting",
		"smcd info":             "does not change",
		"smcd loopback":         "only commands change the setting",
		"smcd seid":             "only commands change it",
		"smcd ueid":             "only commands change them",
		"smckit":                "is a summary: sockets, groups and stats have the option",
		"smckit monitor":        "runs until a signal ends it",
		"smcr":                  "its objects have the listings",
		"smcr device":           "smckit monitor prints what changes",
		"smcr handshake-limit":  "only commands change the setting",
		"smcr info":             "does not change",
		"smcr ueid":             "only commands change them",
	},
}

// TestOptions checks that commands have --json, --netns and --watch, with the same letters, or a reason to lack them.
func TestOptions(t *testing.T) {
	used := map[string]bool{}
	eachCommand(func(cmd *cobra.Command) {
		for option, letter := range map[string]string{"json": "", "netns": "N", "watch": ""} {
			name := ownName(cmd.CommandPath())
			reason := without[option][name]
			if reason == "" && option == "watch" && slices.Contains(changing, cmd.Name()) {
				reason = "changes something"
			}
			used[option+" "+name] = true
			f := cmd.Flag(option)
			switch {
			case f == nil && reason == "":
				t.Errorf("%s has no --%s, and no reason", cmd.CommandPath(), option)
			case f != nil && reason != "":
				t.Errorf("%s has --%s, although %q", cmd.CommandPath(), option, reason)
			case f != nil && f.Shorthand != letter:
				t.Errorf("%s: --%s is -%s", cmd.CommandPath(), option, f.Shorthand)
			}
		}
	})
	for option, names := range without {
		for name := range names {
			if !used[option+" "+name] {
				t.Errorf("there is no command %s, which has no --%s", name, option)
			}
		}
	}
}

// TestShowAndList checks that commands with words for what to do show something without one, and take both words for that.
func TestShowAndList(t *testing.T) {
	found := 0
	eachCommand(func(cmd *cobra.Command) {
		words := strings.Fields(cmd.CommandPath())
		if strings.HasPrefix(cmd.Name(), "show") || cmd.Name() == "list" {
			found++
			for _, word := range []string{"show", "list"} {
				if cmd.Name() != word && !cmd.HasAlias(word) {
					t.Errorf("%s is not %s, too", cmd.CommandPath(), word)
				}
			}
		}
		_, operands, _ := strings.Cut(cmd.Use, " ")
		if !strings.HasPrefix(operands, "[show") {
			return
		}
		found++
		for _, word := range []string{"show", "list"} {
			env, _, stderr := clitest.Env(nil)
			// The status depends on whether this host has a module.
			if status := cli.Run(t.Context(), find(t, words[0]), env, append(words[1:], word)); status == cli.ExitUsage {
				t.Errorf("%s %s: %s", cmd.CommandPath(), word, stderr)
			}
		}
	})
	if found < 20 {
		t.Errorf("there are only %d commands that show something", found)
	}
}

// TestBare checks that commands without arguments show something, or print a line of error or a short usage, but never their whole help.
// Their context has ended, so that those that would wait, or ask the kernel, do not.
func TestBare(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	eachCommand(func(cmd *cobra.Command) {
		words := strings.Fields(cmd.CommandPath())
		sub := len(words) == 2 && words[0] == smckit.Tool.Name
		// Others may change something. A report runs programs.
		if !(len(words) == 1 || sub || cmd.HasSubCommands()) || ownName(cmd.CommandPath()) == "smc_dbg" {
			return
		}
		env, out, stderr := clitest.Env(nil)
		status := cli.Run(ctx, find(t, words[0]), env, words[1:])
		lines := bytes.Count(out.Bytes(), []byte("\n"))
		said := bytes.Count(stderr.Bytes(), []byte("\n"))
		switch {
		case status == cli.ExitUsage && out.Len() == 0 && said == 1, status == 130:
		case status == cli.ExitUsage, out.Len() == 0 && said == 0, bytes.Contains(out.Bytes(), []byte("Usage:")) && lines > 12:
			t.Errorf("%s: status %d, %d lines: %.500s%s", cmd.CommandPath(), status, lines, out, stderr)
		}
	})
}

// TestDescribed checks that every command and option is described, in lines of a width that can be read, and that commands whose
// arguments are not obvious have an example.
func TestDescribed(t *testing.T) {
	eachCommand(func(cmd *cobra.Command) {
		path := cmd.CommandPath()
		obvious := slices.Contains([]string{"flush", "off", "on"}, cmd.Name())
		if cmd.Short == "" || cmd.Long == "" || cmd.Example == "" && !obvious {
			t.Errorf("%s is not described", path)
		}
		for line := range strings.Lines(cmd.Long) {
			if len(line) > 100 || strings.Contains(line, "\t") {
				t.Errorf("help of %s: line %q", path, line)
			}
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" && !f.Hidden {
				t.Errorf("%s --%s is not described", path, f.Name)
			}
		})
	})
}
