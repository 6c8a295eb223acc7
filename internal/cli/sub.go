// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"slices"
	"strings"

	"github.com/smckit/smckit/internal/version"
	"github.com/spf13/cobra"
)

// Sub is a tool that is a command of another tool, too.
type Sub struct {
	// Name is the word for the tool, and Short its line in the list of commands.
	Name, Short string
	Tool        Tool
	// Lines has command lines of other tools, with the arguments by which the command does the same.
	Lines map[string]string
}

// PageAnnotation is the annotation of a command whose manual page has another name than the command: that of the tool that it is.
const PageAnnotation = "smckit_page"

// tree returns the command tree of the tool, under its name as a command of program.
func (s Sub) tree(program string, env *Env) *cobra.Command {
	env.confirm.sub = true
	cmd := s.Tool.New(env)
	env.confirm.sub = false
	name, operands, _ := strings.Cut(cmd.Use, " ")
	operands = strings.ReplaceAll(operands, "| "+name+" ", "| "+s.Name+" ")
	// Lines of a usage other than the first begin with the name of the program.
	operands = strings.ReplaceAll(operands, "\n  "+name+" ", "\n  "+program+" "+s.Name+" ")
	cmd.Use = strings.TrimSpace(s.Name + " " + operands)
	if name != s.Name {
		cmd.SuggestFor = append(cmd.SuggestFor, name)
	}
	// Other names of the command belong to the tool's own program.
	cmd.Aliases = nil
	cmd.Short = s.Short
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[PageAnnotation] = strings.ReplaceAll(s.Tool.Name, " ", "-")
	// As at the root of a tree, this adds the options --version and -v.
	cmd.Version = version.Version
	return cmd
}

// toCobra converts args to the spelling of cobra, by the rules of the tool that they are for: t, or the one of t.Subs that they
// name. With an error it returns the command of that tool, which is below root.
func toCobra(t Tool, root *cobra.Command, args []string) (*cobra.Command, []string, error) {
	if s, rest := t.sub(root, args); s != nil {
		cmd, _, err := root.Find([]string{s.Name})
		if err == nil {
			cmd, rest, err = toCobra(s.Tool, cmd, rest)
		}
		return cmd, append([]string{s.Name}, rest...), err
	}
	if t.Rewrite != nil {
		var err error
		if args, err = t.Rewrite(args); err != nil {
			return root, nil, err
		}
	}
	return root, ExpandLong(root, t.Long, args), nil
}

// sub returns the one of t.Subs that args name, and its arguments. Options before the name are for it, too. It returns nil if the
// first word is another one.
func (t Tool) sub(root *cobra.Command, args []string) (*Sub, []string) {
	if len(t.Subs) == 0 {
		return nil, nil
	}
	for i := 0; i < len(args) && args[i] != "--"; i++ {
		if name, ok := strings.CutPrefix(args[i], "-"); ok {
			f := root.Flags().Lookup(strings.TrimPrefix(name, "-"))
			if len(name) == 1 {
				f = root.Flags().ShorthandLookup(name)
			}
			if f != nil && f.NoOptDefVal == "" {
				i++ // its value
			}
			continue
		}
		at := slices.IndexFunc(t.Subs, func(s Sub) bool { return s.Name == args[i] })
		if at < 0 {
			break
		}
		return &t.Subs[at], slices.Delete(slices.Clone(args), i, i+1)
	}
	return nil, nil
}
