// SPDX-License-Identifier: Apache-2.0

package smcpolicy

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/pkg/policy"
	"github.com/spf13/cobra"
)

const noFiles = cobra.ShellCompDirectiveNoFileComp

// completeRule completes the words of a rule: a verdict, then conditions that are not there yet, and their values.
func (c *command) completeRule(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return []string{"smc", "tcp", "auto"}, noFiles
	}
	if len(args)%2 == 1 {
		return slices.DeleteFunc(slices.Clone(policy.ConditionWords), func(w string) bool { return slices.Contains(args, w) }), noFiles
	}
	switch condition := args[len(args)-1]; condition {
	case "port", "local", "remote":
		return c.completePorts(condition, typed), noFiles | cobra.ShellCompDirectiveNoSpace
	case "role":
		return []string{"connect", "listen"}, noFiles
	case "user":
		return firstFields("/etc/passwd"), noFiles
	case "group":
		return firstFields("/etc/group"), noFiles
	case "cgroup":
		return c.cgroups(typed), noFiles | cobra.ShellCompDirectiveNoSpace
	}
	return nil, noFiles
}

// firstFields returns the names in a file such as /etc/passwd.
func firstFields(file string) (names []string) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		name, _, _ := strings.Cut(line, ":")
		names = append(names, name)
	}
	return names
}

// cgroups returns the control groups below the last one that was typed in full.
func (c *command) cgroups(typed string) (paths []string) {
	top := ""
	if i := strings.LastIndexByte(typed, '/'); i >= 0 {
		top = typed[:i+1]
	}
	entries, err := os.ReadDir(filepath.Join(c.sys.cgroups, top))
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if e.IsDir() {
			paths = append(paths, top+e.Name())
		}
	}
	return paths
}

// completeName completes the name of a rule, or the number of one without a name.
func (c *command) completeName(cmd *cobra.Command, args []string, _ string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, noFiles
	}
	p, err := c.read(cmd.Context())
	if err != nil {
		return nil, noFiles
	}
	for i, r := range p.Rules {
		name := r.Name
		if name == "" {
			name = strconv.Itoa(i + 1)
		}
		names = append(names, cobra.CompletionWithDesc(name, cli.Printable(r.Text(c.sys.names))))
	}
	return names, noFiles
}
