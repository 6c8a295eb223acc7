// SPDX-License-Identifier: Apache-2.0

// Package manual makes manual pages from the commands themselves: a page has the text of --help, in the order and
// the type of a manual.
package manual

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Section is the section of the manual that the commands are in.
const Section = "8"

// Suite describes the commands to generate pages for.
type Suite struct {
	// Version and Date are in the footer.
	Version string
	Date    time.Time
	// Commands are the trees of all commands.
	Commands []*cobra.Command
	// Written are the names of pages that are written by hand, such as "af_smc.7". Pages of section 7 concern all commands. A
	// page of section 5 concerns the command whose name it begins with.
	Written []string
	// Apart are commands to which the pages of others do not refer.
	Apart []string
	// Annotation is the annotation that has the name of a command's page, if it is the page of another command.
	Annotation string
}

// Page is a manual page.
type Page struct {
	// Name is the name of the file, such as "smcss.8".
	Name string
	// Text is the page in the macros of man(7).
	Text string
}

// Pages generates a page for each command and each of its sub-commands. The page of "smcr stats" is smcr-stats. If another
// command has that name, one page describes both.
func (s Suite) Pages() []Page {
	var pages []Page
	names := s.names()
	appended := map[string][]*cobra.Command{}
	for _, root := range s.Commands {
		for _, sub := range subcommands(root) {
			if s.hasPage(sub) && slices.Contains(names, pageName(sub)) {
				appended[pageName(sub)] = append(appended[pageName(sub)], sub)
			}
		}
	}
	for _, root := range s.Commands {
		pages = append(pages, s.page(root, appended[root.Name()]))
		for _, sub := range subcommands(root) {
			if s.hasPage(sub) && !slices.Contains(names, pageName(sub)) {
				pages = append(pages, s.page(sub, nil))
			}
		}
	}
	return pages
}

func (s Suite) names() []string {
	var names []string
	for _, root := range s.Commands {
		names = append(names, root.Name())
	}
	return names
}

// subcommands returns the documented commands below cmd.
func subcommands(cmd *cobra.Command) []*cobra.Command {
	var subs []*cobra.Command
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "help" && sub.Name() != "completion" {
			subs = append(subs, sub)
		}
	}
	return subs
}

// hasPage reports whether no other command describes cmd on its page.
func (s Suite) hasPage(cmd *cobra.Command) bool { return s.pageOf(cmd) == pageName(cmd) }

// pageOf returns the name of the page that describes cmd.
func (s Suite) pageOf(cmd *cobra.Command) string {
	return cmp.Or(cmd.Annotations[s.Annotation], pageName(cmd))
}

func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// page generates the page of a command, with those sub-commands of others whose page would have the same name.
func (s Suite) page(cmd *cobra.Command, others []*cobra.Command) Page {
	p := &page{}
	name := pageName(cmd)
	// man does not display this line, so do not escape its dashes.
	fmt.Fprintf(p, ".TH %s %s %s \"smckit %s\" \"AF_SMC manual\"\n", strings.ToUpper(name), Section, s.Date.UTC().Format(time.DateOnly), s.Version)
	p.macro("SH", "NAME")
	p.line(escape(name) + ` \- ` + escape(lowerFirst(cmd.Short)))
	p.body(s, cmd, "SH")
	for _, other := range others {
		p.macro("SH", "THE COMMAND \""+other.CommandPath()+"\"")
		p.line(bold(other.CommandPath()) + " is a command of " + bold(other.Root().Name()) + ", and another one than " + bold(name) + ".")
		p.body(s, other, "SS")
	}
	p.seeAlso(s, cmd, others)
	return Page{name + "." + Section, p.String()}
}

// order is the order of the sections after the options. Sections that are not listed come first, in the order of the help text.
var order = []string{"JSON", "JSON FIELDS", "EXIT STATUS", "ENVIRONMENT", "FILES"}

// body writes the sections about a command. heading is the macro for their titles.
func (p *page) body(s Suite, cmd *cobra.Command, heading string) {
	sections := parse(cmd.Long)
	if len(sections) == 0 {
		sections = []section{{blocks: []block{{text: cmd.Short + "."}}}}
	}
	for i := range sections {
		sections[i].title = title(sections[i].title)
	}
	p.macro(heading, "SYNOPSIS")
	p.synopsis(cmd)
	if sections[0].title == "" {
		p.macro(heading, "DESCRIPTION")
		p.blocks(sections[0].blocks, true)
		sections = sections[1:]
	}
	p.commands(s, cmd, heading)
	p.options(cmd, heading)
	if status, ok := exitStatus(cmd.Root()); ok && !slices.ContainsFunc(sections, section.isExitStatus) {
		sections = append(sections, status)
	}
	slices.SortStableFunc(sections, func(a, b section) int {
		return slices.Index(order, a.title) - slices.Index(order, b.title)
	})
	for _, one := range sections {
		p.macro(heading, one.title)
		p.blocks(one.blocks, true)
	}
	if cmd.Example != "" {
		p.macro(heading, "EXAMPLES")
		p.verbatim(dedent(strings.Split(cmd.Example, "\n")))
	}
}

func (s section) isExitStatus() bool { return s.title == "EXIT STATUS" }

// exitStatus returns the section EXIT STATUS of a command's help, which also applies to its sub-commands.
func exitStatus(root *cobra.Command) (section, bool) {
	for _, s := range parse(root.Long) {
		if s.title = title(s.title); s.isExitStatus() {
			return s, true
		}
	}
	return section{}, false
}

// title converts a title to capitals, except for options.
func title(text string) string {
	words := strings.Fields(text)
	for i, w := range words {
		if !strings.HasPrefix(w, "-") {
			words[i] = strings.ToUpper(w)
		}
	}
	return strings.Join(words, " ")
}

// synopsis writes the command lines of a command and its sub-commands.
func (p *page) synopsis(cmd *cobra.Command) {
	subs := subcommands(cmd)
	if cmd.Runnable() {
		p.synopsisLine(cmd)
	}
	for _, sub := range subs {
		p.synopsisLine(sub)
	}
	p.macro("YS")
}

func (p *page) synopsisLine(cmd *cobra.Command) {
	_, operands, _ := strings.Cut(cmd.Use, " ")
	// Every command has options, at least --help.
	if !cmd.DisableFlagsInUseLine && !strings.HasPrefix(operands, "[OPTION") {
		operands = strings.TrimSpace("[OPTION]... " + operands)
	}
	p.macro("SY", cmd.CommandPath())
	if operands != "" {
		p.line(keepTogether(usage(operands)))
	}
}

// keepTogether forbids line breaks inside brackets.
func keepTogether(roff string) string {
	var b strings.Builder
	depth := 0
	for _, r := range roff {
		switch r {
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		}
		if r == ' ' && depth > 0 {
			b.WriteString(`\ `)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// commands lists the sub-commands.
func (p *page) commands(s Suite, cmd *cobra.Command, heading string) {
	subs := subcommands(cmd)
	if len(subs) == 0 {
		return
	}
	p.macro(heading, "COMMANDS")
	for _, sub := range subs {
		_, operands, _ := strings.Cut(sub.Use, " ")
		p.macro("TP")
		p.line(strings.TrimSpace(bold(sub.Name()) + " " + usage(operands)))
		text := sub.Short + "."
		if len(sub.Aliases) > 0 {
			text += " Also: '" + strings.Join(sub.Aliases, "', '") + "'."
		}
		p.text(text)
		p.line("See " + bold(s.pageOf(sub)) + "(" + Section + ").")
	}
}

// options lists the options of a command, then those inherited from its parent.
func (p *page) options(cmd *cobra.Command, heading string) {
	cmd.InitDefaultHelpFlag()
	cmd.InitDefaultVersionFlag()
	p.macro(heading, "OPTIONS")
	var last []*pflag.Flag
	own := cmd.NonInheritedFlags()
	own.SortFlags = cmd.Flags().SortFlags
	own.VisitAll(func(f *pflag.Flag) {
		switch {
		case f.Hidden:
		case f.Name == "help" || f.Name == "version":
			last = append(last, f)
		default:
			p.option(f)
		}
	})
	cmd.InheritedFlags().VisitAll(p.option)
	for _, f := range last {
		p.option(f)
	}
}

// standard describes the two options that cobra adds.
var standard = map[string]string{"help": "print the manual of the command", "version": "print the version"}

func (p *page) option(f *pflag.Flag) {
	if f.Hidden {
		return
	}
	argument, text := pflag.UnquoteUsage(f)
	if f.NoOptDefVal != "" {
		argument = "" // a counter or a switch
	}
	if s := standard[f.Name]; s != "" {
		text = s
	}
	name := bold("--" + f.Name)
	if f.Shorthand != "" {
		name = bold("-"+f.Shorthand) + ", " + name
	}
	if argument != "" {
		name += " " + usage(strings.ToUpper(argument))
	}
	p.macro("TP")
	p.line(name)
	text = upperFirst(text)
	if d := f.DefValue; argument != "" && !slices.Contains([]string{"", "0", "[]", "0s"}, d) {
		text += " (default: " + strings.Trim(d, "[]") + ")"
	}
	p.text(text + ".")
}

// seeAlso lists the pages that concern a command.
func (p *page) seeAlso(s Suite, cmd *cobra.Command, others []*cobra.Command) {
	root := cmd.Root()
	var refs []string
	if cmd != root {
		refs = append(refs, root.Name()+"."+Section)
	}
	for _, other := range others {
		refs = append(refs, other.Root().Name()+"."+Section)
	}
	for _, sub := range subcommands(cmd) {
		refs = append(refs, s.pageOf(sub)+"."+Section)
	}
	if cmd == root {
		for _, name := range s.names() {
			if name != root.Name() && !slices.Contains(s.Apart, name) {
				refs = append(refs, name+"."+Section)
			}
		}
	}
	for _, w := range s.Written {
		if strings.HasSuffix(w, ".7") || strings.HasPrefix(w, root.Name()+".") {
			refs = append(refs, w)
		}
	}
	slices.SortFunc(refs, compareRefs)
	refs = slices.Compact(refs)
	p.macro("SH", "SEE ALSO")
	for i, ref := range refs {
		section := path.Ext(ref)
		line := bold(strings.TrimSuffix(ref, section)) + "(" + strings.TrimPrefix(section, ".") + ")"
		if i < len(refs)-1 {
			line += ","
		}
		p.line(line)
	}
}

// compareRefs orders references by section, then by name.
func compareRefs(a, b string) int {
	sectionA, sectionB := path.Ext(a), path.Ext(b)
	return cmp.Or(
		strings.Compare(sectionA, sectionB),
		strings.Compare(strings.TrimSuffix(a, sectionA), strings.TrimSuffix(b, sectionB)),
	)
}

// lowerFirst changes the first letter to lower case, unless the first word is an acronym.
func lowerFirst(s string) string {
	if len(s) > 1 && s[1] >= 'a' && s[1] <= 'z' {
		return strings.ToLower(s[:1]) + s[1:]
	}
	return s
}

func upperFirst(s string) string {
	// Do not change the spelling of names.
	if len(s) > 1 && s[0] >= 'a' && s[0] <= 'z' {
		return strings.ToUpper(s[:1]) + s[1:]
	}
	return s
}
