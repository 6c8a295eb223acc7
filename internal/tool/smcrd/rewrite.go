// SPDX-License-Identifier: Apache-2.0

package smcrd

import (
	"slices"
	"strings"

	"github.com/smckit/smckit/internal/cli"
)

// incumbentOptions are the option words of smc-tools.
var incumbentOptions = []string{"absolute", "version", "details", "help"}

// grammar parses command lines like iproute2: options have one dash or two, and every word may be abbreviated. An abbreviation
// means the first word of a list that begins with it.
type grammar tech

// objects lists the objects in the order in which abbreviations are tried. The objects of smc-tools come first, so that ours do
// not change the meaning of any abbreviation.
func (g grammar) objects() []string {
	names := []string{"device", "linkgroup", "info", "stats", "ueid"}
	if tech(g) == techD {
		names = append(names, "seid")
	}
	names = append(names, "help")
	if tech(g) == techR {
		names = append(names, "link")
	} else {
		names = append(names, "loopback")
	}
	return append(names, "handshake-limit", "completion")
}

// abbreviated returns the word of a list that equals w or, if there is none, the first one that begins with w.
func abbreviated(w string, words ...string) (string, bool) {
	if slices.Contains(words, w) {
		return w, true
	}
	for _, full := range words {
		if w != "" && strings.HasPrefix(full, w) {
			return full, true
		}
	}
	return "", false
}

// rewrite converts a command line to the order that pflag and cobra expect: OBJECT, options, "--", the other words.
func (g grammar) rewrite(args []string) ([]string, error) {
	if len(args) > 0 && args[0] == "completion" {
		return args, nil
	}
	var opts, words []string
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			words = append(words, args[i+1:]...)
			break
		}
		if !strings.HasPrefix(arg, "-") {
			words = append(words, arg)
			continue
		}
		opt, needsValue := option(arg)
		if needsValue {
			if i++; i == len(args) {
				return nil, cli.Usagef("option %s needs a value", opt[0])
			}
			opt[0] += "=" + args[i]
		}
		// These two options end the parsing, as in smc-tools.
		if opt[0] == "--version" || opt[0] == "--help" && len(words) == 0 {
			return opt, nil
		}
		opts = append(opts, opt...)
	}
	if len(words) == 0 {
		return opts, nil
	}
	object, err := g.object(words[0])
	if err != nil {
		return nil, err
	}
	rest := words[1:]
	if object == "help" && len(rest) > 0 {
		if rest[0], err = g.object(rest[0]); err != nil {
			return nil, err
		}
	}
	return slices.Concat([]string{object}, opts, []string{"--"}, rest), nil
}

func (g grammar) object(word string) (string, error) {
	if name, ok := abbreviated(word, g.objects()...); ok {
		return name, nil
	}
	for _, only := range []string{"seid", "loopback"} {
		if tech(g) == techR && len(word) > 1 && strings.HasPrefix(only, word) {
			return "", cli.Usagef("object %q is for SMC-D only: use 'smcd %s'", word, only)
		}
	}
	return "", cli.Usagef("object %q is unknown%s", word, cli.Suggest(word, g.objects()...))
}

// option returns pflag's spelling of an option and whether the next argument is its value. It does not change unknown options:
// pflag refuses them.
func option(arg string) (spelling []string, needsValue bool) {
	if value, ok := strings.CutPrefix(arg, "-N"); ok {
		if value == "" {
			return []string{"--netns"}, true
		}
		return []string{"--netns=" + strings.TrimPrefix(value, "=")}, false
	}
	word, value, hasValue := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-"), "=")
	switch {
	case word == "":
		// In smc-tools, a single dash means -a.
		return []string{"--absolute"}, false
	case word == "ad" || word == "da":
		return []string{"--absolute", "--details=1"}, false
	case word == "add" || word == "dda":
		return []string{"--absolute", "--details=2"}, false
	case len(word) > 1 && strings.HasPrefix("ddetails", word):
		return []string{"--details=2"}, false
	}
	full, ok := abbreviated(word, incumbentOptions...)
	if !ok && len(word) > 1 {
		full, ok = abbreviated(word, "json", "netns", "watch")
	}
	switch {
	case !ok:
		return []string{arg}, false
	case hasValue:
		return []string{"--" + full + "=" + value}, false
	default:
		return []string{"--" + full}, full == "netns" || full == "watch"
	}
}
