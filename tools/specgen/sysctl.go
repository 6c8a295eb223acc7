// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

const sysctlSpec = "specs/sysctl.yaml"

// setting is an entry of specs/sysctl.yaml, which says what the fields mean.
type setting struct {
	Name     string   `yaml:"name"`
	Type     string   `yaml:"type"`
	Of       string   `yaml:"of"`
	Unit     string   `yaml:"unit"`
	Min      uint64   `yaml:"min"`
	Max      uint64   `yaml:"max"`
	Default  uint64   `yaml:"default"`
	Brief    string   `yaml:"brief"`
	Doc      string   `yaml:"doc"`
	Stock    string   `yaml:"stock"`
	Ours     *bool    `yaml:"ours"`
	Words    []string `yaml:"words"`
	SMCR     bool     `yaml:"smcr"`
	ConfName string   `yaml:"conf-name"`
	ProcOnly bool     `yaml:"proc-only"`
}

func (s *setting) ours() bool { return s.Ours == nil || *s.Ours }

// conf returns the name in smc.conf.
func (s *setting) conf() string { return cmp.Or(s.ConfName, s.Name) }

// word returns a value as smc.conf has it.
func (s *setting) word(value uint64) string {
	if value < uint64(len(s.Words)) {
		return s.Words[value]
	}
	return fmt.Sprint(value)
}

// mostSeconds stands for the most that are an int in jiffies.
const mostSeconds = (1<<31 - 1) / 1000

// values describes the range in words, empty for what any number suits.
func (s *setting) values() string {
	switch {
	case s.Max == 1:
		return "0 or 1"
	case s.Max == 2 && s.Min == 0:
		return "0, 1 or 2"
	case s.Max == 2:
		return "1 or 2"
	case s.Type == "buffer":
		return fmt.Sprintf("0, or %d to %d", s.Min, s.Max)
	case s.Max == 1<<32-1 || s.Max == mostSeconds:
		return ""
	}
	return fmt.Sprintf("%d to %d", s.Min, s.Max)
}

// sysctl writes everything about settings.
func sysctl(t *tree) error {
	var spec struct {
		Settings []setting `yaml:"settings"`
	}
	if err := t.load(sysctlSpec, &spec); err != nil {
		return err
	}
	var public []setting
	for _, s := range spec.Settings {
		if s.Name == "" || s.Max == 0 || kinds[s.Type] == "" || !s.ProcOnly && (s.Doc == "" || s.Stock == "" || !slices.ContainsFunc(owners, s.of)) {
			return fmt.Errorf("%s: setting %q lacks something", sysctlSpec, s.Name)
		}
		if !s.ProcOnly {
			public = append(public, s)
		}
	}
	sysctlC(t, slices.DeleteFunc(slices.Clone(spec.Settings), func(s setting) bool { return !s.ours() }))
	for _, write := range []func(*tree, []setting) error{sysctlGo, sysctlManual, sysctlConf, sysctlKernels, sysctlSMCR, sysctlOwners, sysctlFuzz} {
		if err := write(t, public); err != nil {
			return err
		}
	}
	return nil
}

// kinds are the types and their names in C.
var kinds = map[string]string{"u32": "NUMBER", "seconds": "SECONDS", "bool": "BOOL", "buffer": "BUFFER"}

func sysctlC(t *tree, all []setting) {
	var h, enum, c writer
	h.line("/* They may change at any time, so read them with READ_ONCE(). */\nstruct smc_sysctl {")
	c.line(`#include <linux/jiffies.h>
#include <linux/limits.h>
#include <linux/stddef.h>

#include "sysctl.h"

#define KNOB(field) .name = #field, .offset = offsetof(struct smc_sysctl, field)

const struct smc_sysctl_desc smc_sysctls[SMC_SYSCTL_KNOBS] = {`)
	count := ""
	for _, s := range all {
		comment := ""
		if s.Brief != "" {
			comment = "\t/* " + s.Brief + " */"
		}
		h.line("\t%s %s;%s", cmp.Or(map[string]string{"seconds": "int", "bool": "bool"}[s.Type], "unsigned int"), s.Name, comment)
		if s.ProcOnly && count == "" {
			count = " = SMC_SYSCTL_COUNT"
			enum.line("\tSMC_SYSCTL_COUNT,\t/* those before are net.smc.* */")
		}
		enum.line("\tSMC_SYSCTL_%s%s,", cName(s.Name), count)
		c.line("\t[SMC_SYSCTL_%s] = { KNOB(%s), %s },", cName(s.Name), s.Name, fieldsC(s))
	}
	h.line("\tstruct net *net;\t/* whose settings these are */\n\tstruct ctl_table *table;\n\tstruct ctl_table_header *header;\n};\n\nenum smc_sysctl_knob {")
	h.Write(enum.Bytes())
	h.line("\tSMC_SYSCTL_KNOBS\n};")
	c.line("};")
	t.writeHeader("kernel/control/sysctl_gen.h", sysctlSpec, "SMC_CONTROL_SYSCTL_GEN_H", &h)
	t.writeC("kernel/control/sysctl_gen.c", sysctlSpec, &c)
}

// fieldsC returns the initializers of a setting that are not zero.
func fieldsC(s setting) string {
	var f []string
	if s.Type != "u32" {
		f = append(f, ".kind = SMC_KIND_"+kinds[s.Type])
	}
	if s.Min > 0 {
		f = append(f, fmt.Sprintf(".min = %d", s.Min))
	}
	most := map[uint64]string{1<<32 - 1: "UINT_MAX", (1<<31 - 1) / 2: "INT_MAX / 2", mostSeconds: "INT_MAX / HZ"}[s.Max]
	f = append(f, ".max = "+cmp.Or(most, fmt.Sprint(s.Max)))
	if s.Default > 0 {
		f = append(f, fmt.Sprintf(".init = %d", s.Default))
	}
	if s.Of == "host" {
		f = append(f, ".host = true")
	}
	return strings.Join(f, ", ")
}

func sysctlGo(t *tree, all []setting) error {
	all = slices.SortedFunc(slices.Values(all), func(a, b setting) int { return cmp.Compare(a.conf(), b.conf()) })
	var w writer
	w.line("// Settings are all settings, by name.\nvar Settings = []Setting{")
	for _, s := range all {
		f := []string{fmt.Sprintf("Name: %q", s.conf())}
		for _, n := range []struct {
			name  string
			value uint64
		}{{"Min", s.Min}, {"Max", s.Max}, {"Default", s.Default}} {
			if n.value > 0 {
				f = append(f, fmt.Sprintf("%s: %d", n.name, n.value))
			}
		}
		if s.Stock == "never" {
			f = append(f, "Ours: true")
		}
		if s.Type == "buffer" {
			f = append(f, "Zero: true")
		}
		if !s.ours() {
			f = append(f, "Stock: true")
		}
		if s.Words != nil {
			f = append(f, fmt.Sprintf("Words: %#v", s.Words))
		}
		w.line("\t{%s},", strings.Join(f, ", "))
	}
	w.line("}")
	return t.writeGo("internal/conf/settings_gen.go", "conf", sysctlSpec, &w)
}

// sysctlManual writes the settings of our module for af_smc(7).
func sysctlManual(t *tree, all []setting) error {
	var w writer
	for _, s := range all {
		if !s.ours() {
			continue
		}
		mark := ""
		if s.Stock == "never" {
			mark = "* "
		}
		parts := slices.DeleteFunc([]string{s.Unit, s.values(), fmt.Sprint(s.Default)}, func(p string) bool { return p == "" })
		w.line(".TP\n.IR net.smc.%s \" %s(%s)\"", s.Name, mark, strings.Join(parts, "; "))
		w.WriteString(roff(s.Doc))
	}
	return t.writePart("man/af_smc.7", sysctlSpec, &w)
}

// span is a name between backquotes or a page of the manual, with the punctuation after it.
var span = regexp.MustCompile("^(?:`([^`]+)`|([a-z_-]+)(\\(\\d\\)))([.,;:]*)$")

// roff writes a text for a page of the manual, each sentence on a line of its own.
func roff(text string) string {
	var b strings.Builder
	sep := ""
	for _, word := range words(text) {
		escaped := strings.ReplaceAll(word, "-", `\-`)
		m := span.FindStringSubmatch(escaped)
		if m == nil {
			m = span.FindStringSubmatch(word)
		}
		if m != nil {
			macro, first, rest := ".I", m[1], m[4]
			if m[2] != "" {
				macro, first, rest = ".BR", strings.ReplaceAll(m[2], "-", `\-`), m[3]+m[4]
			} else if rest != "" {
				macro = ".IR"
			}
			b.WriteString(strings.TrimRight("\n"+macro+" "+first+" "+rest, " "))
			sep = "\n"
			continue
		}
		b.WriteString(sep + escaped)
		if sep = " "; strings.HasSuffix(word, ".") {
			sep = "\n"
		}
	}
	var folded strings.Builder
	for line := range strings.SplitSeq(strings.Trim(b.String(), "\n"), "\n") {
		folded.WriteString(wrap(line, "", "", 118))
	}
	return folded.String()
}

// sysctlConf writes the comments of smc.conf, each setting with its default.
func sysctlConf(t *tree, all []setting) error {
	var w writer
	for _, s := range all {
		doc := strings.ReplaceAll(s.Doc, "`", "")
		if s.Words == nil {
			if v := s.values(); v != "" {
				doc += " Values: " + v + "."
			}
		} else {
			doc += " Values: " + strings.Join(s.Words[:len(s.Words)-1], ", ") + " or " + s.Words[len(s.Words)-1] + "."
		}
		switch {
		case s.Stock == "never":
			doc += " smckit's module only."
		case !s.ours():
			doc += " The kernel's own module only."
		}
		w.WriteString("\n" + wrap(doc, "# ", "# ", 125))
		w.line("# %s = %s", s.conf(), s.word(s.Default))
	}
	w.line("")
	return t.writePart("packaging/etc/smc/smc.conf", sysctlSpec, &w)
}

// stockKernels lists the kernels whose own modules have got settings, oldest first.
func stockKernels(all []setting) ([]string, error) {
	versions := map[string][2]int{}
	for _, s := range all {
		var version [2]int
		if s.Stock == "never" {
			continue
		}
		if n, err := fmt.Sscanf(s.Stock, "%d.%d", &version[0], &version[1]); n != 2 {
			return nil, fmt.Errorf("%s: %s: %q is no kernel: %w", sysctlSpec, s.Name, s.Stock, err)
		}
		versions[s.Stock] = version
	}
	return slices.SortedFunc(maps.Keys(versions), func(a, b string) int {
		va, vb := versions[a], versions[b]
		return slices.Compare(va[:], vb[:])
	}), nil
}

// sysctlKernels writes which module has which setting.
func sysctlKernels(t *tree, all []setting) error {
	var w writer
	order, err := stockKernels(all)
	if err != nil {
		return err
	}
	w.line("\n| `net.smc.` | Linux %s | ours |\n|---|%s---|", strings.Join(order, " | Linux "), strings.Repeat("---|", len(order)))
	for _, s := range all {
		since := slices.Index(order, s.Stock)
		row := "| `" + s.Name + "` |"
		for i := range order {
			row += map[bool]string{true: " yes |", false: " no |"}[since >= 0 && since <= i]
		}
		w.line("%s%s", row, map[bool]string{true: " yes |", false: " no |"}[s.ours()])
	}
	w.line("")
	return t.writePart("docs/kernels.md", sysctlSpec, &w)
}

// sysctlSMCR writes the table of the settings of SMC-R.
func sysctlSMCR(t *tree, all []setting) error {
	var w writer
	w.line("\n| setting | default | values | what it does |\n|---|---|---|---|")
	for _, s := range all {
		if s.SMCR {
			w.line("| `%s` | %d | %s | %s |", s.Name, s.Default, cmp.Or(s.values(), s.Unit), s.Doc)
		}
	}
	w.line("")
	return t.writePart("docs/smcr.md", sysctlSpec, &w)
}

// owners are what a setting may belong to, and how documents call it.
var owners = []struct{ key, name string }{{"connection", "connections"}, {"group", "link groups"}, {"host", "the host"}}

// of reports whether a setting belongs to an owner.
func (s *setting) of(owner struct{ key, name string }) bool { return s.Of == owner.key }

// sysctlOwners writes which settings belong to connections, link groups and the host: for kernel/README.md all, for docs/smcr.md those
// of SMC-R, and for af_smc(7) those of link groups, which are not set where they are used.
func sysctlOwners(t *tree, all []setting) error {
	const part = sysctlSpec + " of"
	table := func(name string, use func(*setting) bool) error {
		var w writer
		w.line("\n| settings of | `net.smc.` |\n|---|---|")
		for _, o := range owners {
			var names []string
			for _, s := range all {
				if s.of(o) && use(&s) {
					names = append(names, "`"+s.Name+"`")
				}
			}
			if names != nil {
				w.line("| %s | %s |", o.name, strings.Join(names, ", "))
			}
		}
		w.line("")
		return t.writePart(name, part, &w)
	}
	if err := table("kernel/README.md", func(*setting) bool { return true }); err != nil {
		return err
	}
	if err := table("docs/smcr.md", func(s *setting) bool { return s.SMCR }); err != nil {
		return err
	}
	var names []string
	for _, s := range all {
		if s.Of == "group" {
			names = append(names, "`"+s.Name+"`")
		}
	}
	var w writer
	last := len(names) - 1
	w.WriteString(roff("Settings of link groups are " + strings.Join(names[:last], ", ") + " and " + names[last] + "."))
	return t.writePart("man/af_smc.7", part, &w)
}

// sysctlFuzz writes the names for the fuzzer of system calls, also of settings that our module does not have.
func sysctlFuzz(t *tree, all []setting) error {
	var w writer
	for _, s := range all {
		w.line("\t\"smc/%s\",", s.Name)
	}
	w.WriteString("\t")
	return t.writePart("tests/sysfuzz/src/call_control.c", sysctlSpec, &w)
}
