// SPDX-License-Identifier: Apache-2.0

package smcrun

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/smckit/smckit/internal/cli"
	"github.com/spf13/pflag"
)

// rewrite inserts "--" before the command, so that everything after it belongs to the command.
func rewrite(args []string) ([]string, error) {
	if len(args) > 0 && args[0] == "completion" {
		return args, nil
	}
	cmd := newCommand(&cli.Env{}, &system{})
	fs := cmd.Flags()
	fs.AddFlagSet(cmd.PersistentFlags())
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--":
			return args, nil
		case len(arg) < 2 || arg[0] != '-':
			return slices.Insert(slices.Clone(args), i, "--"), nil
		case wantsNext(fs, arg):
			i++
		}
	}
	return args, nil
}

// wantsNext reports whether the next argument is the value of this option.
func wantsNext(fs *pflag.FlagSet, arg string) bool {
	name, long := strings.CutPrefix(arg, "--")
	if !long {
		for i := 1; i < len(arg); i++ {
			if f := fs.ShorthandLookup(arg[i : i+1]); f != nil && f.NoOptDefVal == "" {
				return i+1 == len(arg)
			}
		}
		return false
	}
	// An ambiguous abbreviation is refused later in any case.
	wants := false
	fs.VisitAll(func(f *pflag.Flag) {
		wants = wants || strings.HasPrefix(f.Name, name) && f.NoOptDefVal == ""
	})
	return wants && !strings.Contains(name, "=")
}

// parseSize parses a number of bytes with an optional suffix k or m. The empty text is 0: the system's default.
func parseSize(option, text string) (int, error) {
	if text == "" {
		return 0, nil
	}
	digits, shift := text, 0
	switch text[len(text)-1] | 0x20 {
	case 'k':
		digits, shift = text[:len(text)-1], 10
	case 'm':
		digits, shift = text[:len(text)-1], 20
	}
	n, err := strconv.ParseUint(digits, 10, 31)
	if err != nil || n<<shift > math.MaxInt32 {
		return 0, cli.Usagef("%s %q: give a size from 0 to 2047m, such as 262144, 256k or 4m", option, text)
	}
	return int(n << shift), nil
}
