// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"regexp"
	"strings"

	"github.com/smckit/smckit/internal/jsondoc"
	"github.com/smckit/smckit/pkg/netlinksmc"
)

// hints replaces names of commands in errors and remedies by those that the user of a Tool with Subs knows. The zero value replaces
// nothing.
type hints struct {
	// names has the commands of the Tool by the names of their own, or by the beginnings of command lines.
	names map[string]string
	// quoted and bare find these names, with a character at each end, where a quoted command line begins with one, and anywhere.
	quoted, bare *regexp.Regexp
}

// hints returns the hints for a user who has called t.
func (t Tool) hints() hints {
	if len(t.Subs) == 0 {
		return hints{}
	}
	h := hints{names: map[string]string{}}
	var list []string
	add := func(line, command string) {
		h.names[line] = command
		list = append(list, regexp.QuoteMeta(line))
	}
	for _, s := range t.Subs {
		command := t.Name + " " + s.Name
		add(s.Tool.Name, command)
		for line, args := range s.Lines {
			add(line, strings.TrimSpace(command+" "+args))
		}
	}
	name := "(" + strings.Join(list, "|") + ")"
	h.quoted = regexp.MustCompile("(')" + name + "([ '])")
	// A name within a path or a longer word is not the command.
	h.bare = regexp.MustCompile("(^|[ '(])" + name + "([ '),:;]|$)")
	return h
}

// error replaces names in the text of an error, where a quoted command line begins with one: the text may have names of other things.
func (h hints) error(text string) string { return h.replace(h.quoted, text) }

// remedy replaces all names of commands in a remedy.
func (h hints) remedy(text string) string { return h.replace(h.bare, text) }

func (h hints) replace(name *regexp.Regexp, text string) string {
	if name == nil {
		return text
	}
	return name.ReplaceAllStringFunc(text, func(match string) string {
		parts := name.FindStringSubmatch(match)
		return parts[1] + h.names[parts[2]] + parts[3]
	})
}

// Hint returns a text that says what to do, with the names of commands as the user has called them: 'smckit pnet' in place of smc_pnet for
// a user of smckit.
func (e *Env) Hint(text string) string { return e.hints.remedy(text) }

// Reason returns r with its text and remedy, as documents have it.
func (e *Env) Reason(r netlinksmc.Reason) jsondoc.Reason {
	doc := jsondoc.NewReason(r)
	doc.Remedy = e.Hint(doc.Remedy)
	return doc
}
