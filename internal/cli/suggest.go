// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"slices"
	"strings"

	remedies "github.com/smckit/smckit/internal/remedy"
	"github.com/spf13/cobra"
)

// distance returns the number of mistyped letters up to which another word is suggested for word: fewer for short words, which
// all resemble each other.
func distance(word string) int { return min(2, max(1, len(word)/2)) }

// findCommand refuses a command that does not exist, and returns the command of which it should be one. cobra does so too, but its
// error cannot be distinguished from those of the command itself.
func findCommand(root *cobra.Command, args []string) (*cobra.Command, error) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd(args...)
	cmd, rest, err := root.Find(args)
	if err == nil && !cmd.Runnable() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		// Below the root, cobra would print help.
		err = cobra.NoArgs(cmd, rest)
	}
	if err == nil {
		return cmd, nil
	}
	var word string
	if _, serr := fmt.Sscanf(err.Error(), "unknown command %q", &word); serr != nil {
		return cmd, &UsageError{Err: err}
	}
	return cmd, refused(cmd, word, err)
}

// usageArgs makes a refused operand a usage error, in the whole tree below cmd.
func usageArgs(cmd *cobra.Command) {
	check := cmd.Args
	if check == nil && cmd.HasParent() && cmd.HasSubCommands() {
		// At the root of a tree, findCommand refuses other words than commands.
		check = cobra.NoArgs
	}
	if check != nil {
		cmd.Args = func(c *cobra.Command, args []string) error {
			err := check(c, args)
			if err == nil || len(args) == 0 {
				return usageError(err)
			}
			return refused(c, args[0], err)
		}
	}
	for _, sub := range cmd.Commands() {
		usageArgs(sub)
	}
}

func usageError(err error) error {
	if err == nil {
		return nil
	}
	return &UsageError{Err: err}
}

// refused returns err, with which cmd has refused an operand, as a usage error. If the operand resembles a command or an operand of
// cmd, the error says so.
func refused(cmd *cobra.Command, word string, err error) error {
	cmd.SuggestionsMinimumDistance = distance(word)
	var names []string
	if word != "" {
		names = cmd.SuggestionsFor(word)
	}
	if len(names) == 0 {
		return &UsageError{Err: fmt.Errorf("%w%s", err, Suggest(word, cmd.ValidArgs...))}
	}
	return &UsageError{Err: fmt.Errorf("%w%s", err, didYouMean(names))}
}

// Suggest returns a remark that names those of words for which word may be a mistake, empty if it resembles none.
func Suggest(word string, words ...string) string {
	return didYouMean(Similar(word, distance(word), words))
}

// mostNamed is the most objects that an error names.
const mostNamed = 4

// NoSuch returns the error that there is no object of that name: problem, a suggestion, the objects that exist if they are few, and list,
// the command that lists them.
func NoSuch(problem, name string, exist []string, list string) error {
	problem += Suggest(name, exist...)
	switch {
	case len(exist) == 0:
		return remedies.Errorf("there is none; '"+list+"' lists those that exist", "%s", problem)
	case len(exist) == 1:
		return remedies.Errorf("there is "+exist[0]+"; '"+list+"' lists it", "%s", problem)
	case len(exist) <= mostNamed:
		return remedies.Errorf("there are "+strings.Join(exist, ", ")+"; '"+list+"' lists them", "%s", problem)
	}
	return remedies.Errorf("'"+list+"' lists those that exist", "%s", problem)
}

// Similar returns those of words that begin with word, or differ from it in at most distance letters, whatever their case.
func Similar(word string, distance int, words []string) []string {
	if word == "" {
		return nil // which begins all words
	}
	// cobra knows which words resemble each other, but only as names of commands.
	list := &cobra.Command{SuggestionsMinimumDistance: distance}
	for _, w := range words {
		list.AddCommand(&cobra.Command{Use: w, Run: func(*cobra.Command, []string) {}})
	}
	return list.SuggestionsFor(word)
}

func didYouMean(names []string) string {
	if len(names) == 0 {
		return ""
	}
	// cobra names a command twice that resembles the word in two ways.
	return ` (did you mean "` + strings.Join(slices.Compact(names), `" or "`) + `"?)`
}
