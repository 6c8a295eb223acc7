// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

const reasonSpec = "specs/reasons.yaml"

// reason is an entry of specs/reasons.yaml, which says what the fields mean.
type reason struct {
	Name    string `yaml:"name"`
	Value   uint32 `yaml:"value"`
	C       string `yaml:"c-name"`
	Go      string `yaml:"go-name"`
	Lasting bool   `yaml:"lasting"`
	Text    string `yaml:"text"`
	Means   string `yaml:"means"`
	Look    string `yaml:"look"`
	Remedy  string `yaml:"remedy"`
}

// reasons writes everything about decline reasons.
func reasons(t *tree) error {
	var spec struct {
		Reasons []reason `yaml:"reasons"`
	}
	if err := t.load(reasonSpec, &spec); err != nil {
		return err
	}
	for i, r := range spec.Reasons {
		for _, s := range []string{r.Name, r.C, r.Go, r.Text, r.Means, r.Look, r.Remedy} {
			if s == "" {
				return fmt.Errorf("%s: reason %#08x %s lacks something", reasonSpec, r.Value, r.Name)
			}
		}
		if i > 0 && spec.Reasons[i-1].Value >= r.Value {
			return fmt.Errorf("%s: %s is not in ascending order", reasonSpec, r.Name)
		}
	}
	reasonsC(t, spec.Reasons)
	if err := reasonsGo(t, spec.Reasons); err != nil {
		return err
	}
	var doc writer
	for _, r := range spec.Reasons {
		doc.line("\n### %#08x %s\n\n%s.\n", r.Value, r.Name, upperFirst(r.Text))
		doc.WriteString(wrap("Means: "+r.Means, "* ", "  ", 127))
		doc.WriteString(wrap("Look: "+r.Look, "* ", "  ", 127))
		doc.line("* Remedy: %s.", r.Remedy)
	}
	doc.line("")
	return t.writePart("docs/troubleshooting.md", reasonSpec, &doc)
}

func reasonsC(t *tree, all []reason) {
	var h, c writer
	h.line("enum smc_reason {")
	c.line("#include \"reason.h\"\n\nconst struct smc_reason_entry smc_reasons[SMC_REASON_COUNT] = {")
	for _, r := range all {
		h.line("\tSMC_REASON_%s = %#08x,", cName(r.C), r.Value)
		c.line("\t{ SMC_REASON_%s, %q, %d },", cName(r.C), r.Name, map[bool]int{true: 1}[r.Lasting])
	}
	h.line("};\n\n#define SMC_REASON_COUNT %d", len(all))
	c.line("};")
	t.writeHeader("kernel/wire/reason_gen.h", reasonSpec, "SMC_WIRE_REASON_GEN_H", &h)
	t.writeC("kernel/wire/reason_gen.c", reasonSpec, &c)
}

func reasonsGo(t *tree, all []reason) error {
	var w writer
	w.line("// Why a connection is TCP: the diagnosis codes of DECLINE. Text and Remedy say what each means.\nconst (")
	for _, r := range all {
		w.line("\tReason%s Reason = %#08x", r.Go, r.Value)
	}
	w.line(")\n\n// reasons lists every decline and fallback code of Linux, in ascending order.\nvar reasons = []reasonInfo{")
	for _, r := range all {
		w.line("\t{\n\t\tReason%s, %q, %q,\n\t\t%q,\n\t},", r.Go, r.Name, r.Text, r.Remedy)
	}
	w.line("}")
	return t.writeGo("pkg/netlinksmc/reason_gen.go", "netlinksmc", reasonSpec, &w)
}
