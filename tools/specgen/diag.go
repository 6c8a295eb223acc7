// SPDX-License-Identifier: Apache-2.0

package main

import "strings"

// diagNetlink writes everything about sock_diag.
func diagNetlink(t *tree) error {
	f, err := loadFamily(t, "specs/smc_diag.yaml")
	if err != nil {
		return err
	}
	var w writer
	for i := range f.Definitions {
		if d := &f.Definitions[i]; d.Type == "flags" {
			d.goFlags(&w)
		} else {
			d.goEnum(&w)
		}
	}
	f.constants(&w)
	diagNumbers(t, f)
	return t.writeGo("pkg/netlinksmc/diag_gen.go", "netlinksmc", f.spec, &w)
}

// goFlags writes the type of a set of flags, and its values.
func (d *define) goFlags(w *writer) {
	w.WriteString("\n" + wrap(d.Doc, "// ", "// ", 120))
	w.line("type %s %s\n\n// The members of %[1]s.\nconst (", d.GoType, d.GoBase)
	for _, e := range d.Entries {
		w.line("\t// %s %s\n\t%[1]s %[3]s = 1 << %[4]d", e.GoName, e.Doc, d.GoType, e.number)
	}
	w.line(")")
}

// diagNumbers writes the numbers for which <linux/smc_diag.h> has no names, our own among them, and checks of those for which it does. Tests of the
// closing table include the header in user space.
func diagNumbers(t *tree, f *family) {
	var w, checks writer
	for i := range f.Definitions {
		d := &f.Definitions[i]
		switch {
		case d.Prefix != "":
			for _, e := range d.Entries {
				checks.line("static_assert(%s == %d);", cName(d.Prefix+e.Name), e.number)
			}
		case d.Type == "enum":
			d.cEnum(&w, "SMC_UAPI_")
			w.line("")
		}
	}
	for _, s := range f.Sets {
		for _, a := range s.List {
			if a.Since == ours {
				w.line("#define SMC_UAPI_%s %d	/* %s */\n", strings.TrimPrefix(a.kernel, "SMC_"), a.number, a.Doc)
				continue
			}
			checks.line("static_assert(%s == %d);", a.kernel, a.number)
		}
	}
	w.line("#ifdef __KERNEL__\n#include <linux/build_bug.h>\n#include <linux/smc_diag.h>\n")
	w.Write(checks.Bytes())
	w.line("#endif")
	t.writeHeader("kernel/uapi/smc_diag_gen.h", f.spec, "SMC_UAPI_DIAG_GEN_H", &w)
}
