// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// family is a specification of a generic netlink family. specs/smc_gen_netlink.yaml says what the fields mean that the
// kernel's specifications do not have.
type family struct {
	Name        string   `yaml:"name"`
	Protocol    string   `yaml:"protocol"`
	Version     int      `yaml:"version"`
	Doc         string   `yaml:"doc"`
	Header      string   `yaml:"uapi-header"`
	Definitions []define `yaml:"definitions"`
	Sets        []attrs  `yaml:"attribute-sets"`
	Operations  struct {
		Prefix string      `yaml:"name-prefix"`
		List   []operation `yaml:"list"`
	} `yaml:"operations"`

	spec string
}

// define is an enumeration, or a set of flags, whose entries are the numbers of bits.
type define struct {
	Name      string  `yaml:"name"`
	Prefix    string  `yaml:"name-prefix"`
	Type      string  `yaml:"type"`
	Doc       string  `yaml:"doc"`
	GoType    string  `yaml:"go-type"`
	GoBase    string  `yaml:"go-base"`
	GoUnknown string  `yaml:"go-unknown"`
	Entries   []entry `yaml:"entries"`
}

// entry is a value of an enumeration. They count from 0, or from the value of the entry before.
type entry struct {
	Name   string `yaml:"name"`
	Value  *int   `yaml:"value"`
	Doc    string `yaml:"doc"`
	GoName string `yaml:"go-name"`
	Word   string `yaml:"word"`

	number int
}

type attrs struct {
	Name     string    `yaml:"name"`
	Prefix   string    `yaml:"name-prefix"`
	Doc      string    `yaml:"doc"`
	Since    string    `yaml:"since"`
	GoType   string    `yaml:"go-type"`
	GoFields []goField `yaml:"go-fields"`
	PutOrder []string  `yaml:"put-order"`
	List     []attr    `yaml:"attributes"`
}

type goField struct {
	Name string `yaml:"name"`
	Type string `yaml:"type"`
	Doc  string `yaml:"doc"`
}

type attr struct {
	Name      string `yaml:"name"`
	Type      string `yaml:"type"`
	Value     *int   `yaml:"value"`
	Doc       string `yaml:"doc"`
	Enum      string `yaml:"enum"`
	Nested    string `yaml:"nested-attributes"`
	ByteOrder string `yaml:"byte-order"`
	Hint      string `yaml:"display-hint"`
	Checks    struct {
		MaxLen       *int `yaml:"max-len"`
		Min          *int `yaml:"min"`
		Max          *int `yaml:"max"`
		Unterminated bool `yaml:"unterminated-ok"`
	} `yaml:"checks"`
	ReplyOnly bool   `yaml:"reply-only"`
	Since     string `yaml:"since"`
	PutIf     string `yaml:"put-if"`
	Required  bool   `yaml:"required"`
	GoName    string `yaml:"go-name"`
	GoType    string `yaml:"go-type"`
	GoGet     string `yaml:"go-get"`
	GoInline  bool   `yaml:"go-inline"`

	number int
	kernel string // as in SMC_NLA_LINK_ID
}

type operation struct {
	Name   string   `yaml:"name"`
	Value  *int     `yaml:"value"`
	Doc    string   `yaml:"doc"`
	Set    string   `yaml:"attribute-set"`
	Flags  []string `yaml:"flags"`
	Since  string   `yaml:"since"`
	GoName string   `yaml:"go-name"`
	Do     struct {
		Request struct {
			Attributes []string `yaml:"attributes"`
		} `yaml:"request"`
	} `yaml:"do"`
	Dump struct {
		Reply struct {
			Attributes []string `yaml:"attributes"`
		} `yaml:"reply"`
	} `yaml:"dump"`

	number int
	kernel string
}

// loadFamily reads a specification and numbers what has no number, each one more than the one before it.
func loadFamily(t *tree, spec string) (*family, error) {
	f := &family{spec: spec}
	if err := t.load(spec, f); err != nil {
		return nil, err
	}
	for i := range f.Definitions {
		next := 0
		for j := range f.Definitions[i].Entries {
			e := &f.Definitions[i].Entries[j]
			if e.Value != nil {
				next = *e.Value
			}
			e.number = next
			next++
		}
	}
	for i := range f.Sets {
		next := 1
		for j := range f.Sets[i].List {
			a := &f.Sets[i].List[j]
			if a.Value != nil {
				next = *a.Value
			}
			a.number, a.kernel = next, cName(f.Sets[i].Prefix+a.Name)
			next++
			if a.Enum != "" {
				d := f.define(a.Enum)
				if d == nil {
					return nil, fmt.Errorf("%s: %s: there is no enumeration %q", spec, a.kernel, a.Enum)
				}
				a.GoType = d.GoType
			}
			if a.Since == ours && a.number < firstOurs {
				return nil, fmt.Errorf("%s: %s: numbers below %d are Linux's", spec, a.kernel, firstOurs)
			}
			if a.Nested != "" && f.set(a.Nested) == nil {
				return nil, fmt.Errorf("%s: %s: there is no set %q", spec, a.kernel, a.Nested)
			}
		}
	}
	next := 1
	for i := range f.Operations.List {
		o := &f.Operations.List[i]
		if o.Value != nil {
			next = *o.Value
		}
		o.number, o.kernel = next, cName(f.Operations.Prefix+o.Name)
		next++
	}
	return f, nil
}

func (f *family) set(name string) *attrs {
	i := slices.IndexFunc(f.Sets, func(s attrs) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return &f.Sets[i]
}

func (f *family) define(name string) *define {
	i := slices.IndexFunc(f.Definitions, func(d define) bool { return d.Name == name })
	if i < 0 {
		return nil
	}
	return &f.Definitions[i]
}

// genNetlink writes everything about SMC_GEN_NETLINK.
func genNetlink(t *tree) error {
	f, err := loadFamily(t, "specs/smc_gen_netlink.yaml")
	if err != nil {
		return err
	}
	var w writer
	w.line("// familyName and familyVersion identify the generic netlink family.\nconst (")
	w.line("\tfamilyName = %q\n\tfamilyVersion = %d\n)", f.Name, f.Version)
	var numbers writer
	f.constants(&numbers)
	if err := t.writeGo("pkg/netlinksmc/numbers_gen.go", "netlinksmc", f.spec, &numbers); err != nil {
		return err
	}
	w.line("\n// The commands.\nvar (")
	for _, o := range f.Operations.List {
		w.line("\tcmd%s = command{Cmd%s, %q, %q, %q}", o.GoName, goName(o.Name), o.kernel, o.Doc, o.Since)
	}
	w.line(")")
	for i := range f.Sets {
		if f.Sets[i].GoType != "" {
			f.goStruct(&w, &f.Sets[i])
		}
	}
	if err := t.writeGo("pkg/netlinksmc/netlink_gen.go", "netlinksmc", f.spec, &w); err != nil {
		return err
	}
	var enums writer
	for i := range f.Definitions {
		f.Definitions[i].goEnum(&enums)
	}
	uapiNumbers(t, f)
	return t.writeGo("pkg/netlinksmc/enums_gen.go", "netlinksmc", f.spec, &enums)
}

// constants writes the numbers of commands, if there are any, and of attributes.
func (f *family) constants(w *writer) {
	if len(f.Operations.List) > 0 {
		w.line("\n// Commands of the family %s.\nconst (", f.Name)
		for _, o := range f.Operations.List {
			w.line("\tCmd%s = %d // %s", goName(o.Name), o.number, o.kernel)
		}
		w.line(")")
	}
	for _, s := range f.Sets {
		w.line("\n// Attributes of the family %s: %s*.\nconst (", f.Name, cName(s.Prefix))
		for _, a := range s.List {
			if a.Type != "pad" {
				w.line("\t%s = %d // %s", a.goConst(), a.number, a.kernel)
			}
		}
		w.line(")")
	}
}

// goConst returns the name of the constant of Go: AttrLinkID for SMC_NLA_LINK_ID.
func (a *attr) goConst() string { return "Attr" + goName(a.short()) }

// short returns the name in the kernel's headers without the common prefix.
func (a *attr) short() string {
	for _, prefix := range []string{"SMC_NLA_", "SMCKIT_A_", "SMC_"} {
		if name, ok := strings.CutPrefix(a.kernel, prefix); ok {
			return name
		}
	}
	return a.kernel
}

// initialisms are written in capitals in Go.
var initialisms = []string{"chid", "dmb", "eid", "fid", "gid", "hs", "ib", "id", "ism", "lgr", "llc", "os", "pci", "pnetid", "rmb", "rx", "seid", "smc", "smcd", "smcr", "tcp", "tx", "ueid", "uid", "vlan", "wr"}

func goName(s string) string {
	var b strings.Builder
	for word := range strings.FieldsFuncSeq(strings.ToLower(s), func(r rune) bool { return r == '-' || r == '_' }) {
		if slices.Contains(initialisms, word) {
			b.WriteString(strings.ToUpper(word))
		} else {
			b.WriteString(upperFirst(word))
		}
	}
	return b.String()
}

// goEnum writes the type of an enumeration, its values, and their words.
func (d *define) goEnum(w *writer) {
	w.WriteString("\n" + wrap(d.Doc, "// ", "// ", 120))
	w.line("type %s %s\n\n// The values of %[1]s.\nconst (", d.GoType, d.GoBase)
	for _, e := range d.Entries {
		w.WriteString(wrap(e.GoName+" "+e.Doc, "\t// ", "\t// ", 124))
		w.line("\t%s %s = %d", e.GoName, d.GoType, e.number)
	}
	words := strings.ToLower(d.GoType[:1]) + d.GoType[1:] + "Words"
	w.line(")\n\nvar %s = map[%s]string{", words, d.GoType)
	var list []string
	for _, e := range d.Entries {
		w.line("\t%s: %q,", e.GoName, e.Word)
		list = append(list, e.Word)
	}
	last := len(list) - 1
	unknown := cmp.Or(d.GoUnknown, "0x%x?")
	w.line("}\n")
	w.WriteString(wrap(fmt.Sprintf("String returns %s or %s, or a number such as %q.", strings.Join(list[:last], ", "), list[last],
		fmt.Sprintf(unknown, 9)), "// ", "// ", 120))
	w.line("func (v %s) String() string { return word(%s, v, %q) }", d.GoType, words, unknown)
	w.line("\n// MarshalText returns String.\nfunc (v %s) MarshalText() ([]byte, error) { return []byte(v.String()), nil }", d.GoType)
}

// goStruct writes the type of a set and its decoder.
func (f *family) goStruct(w *writer, s *attrs) {
	var decode writer
	w.WriteString("\n" + wrap(s.Doc, "// ", "// ", 120))
	w.line("type %s struct {", s.GoType)
	f.goMembers(w, &decode, s)
	for _, m := range s.GoFields {
		w.WriteString(wrap(m.Doc, "\t// ", "\t// ", 120))
		w.line("\t%s %s", m.Name, m.Type)
	}
	w.line("}\n\nfunc (x *%s) parse(b []byte) error {\n\treturn fields{", s.GoType)
	w.Write(decode.Bytes())
	w.line("\t}.parse(b)\n}")
}

func (f *family) goMembers(w, decode *writer, s *attrs) {
	for i := range s.List {
		a := &s.List[i]
		if a.GoInline {
			decode.line("\t\t%s: nest(%q, fields{", a.goConst(), a.short())
			f.goMembers(w, decode, f.set(a.Nested))
			decode.line("\t\t}.parse),")
			continue
		}
		if a.GoName == "" {
			continue
		}
		typ, field := f.goField(a)
		doc := a.Doc
		switch a.Since {
		case "":
		case ours:
			doc += " Module of smckit only."
		default:
			doc += " Linux " + a.Since + "."
		}
		if doc != "" {
			w.WriteString(wrap(doc, "\t// ", "\t// ", 120))
		}
		w.line("\t%s %s", a.GoName, typ)
		if a.Required {
			field = "required(" + field + ")"
		}
		decode.line("\t\t%s: %s,", a.goConst(), field)
	}
}

// goField returns the type of an attribute's field and the expression that decodes into it.
func (f *family) goField(a *attr) (typ, field string) {
	if a.Nested != "" {
		if a.GoType != "" {
			return a.GoType, fmt.Sprintf("nest(%q, x.%s.parse)", a.short(), a.GoName)
		}
		typ = f.set(a.Nested).GoType
		return "*" + typ, fmt.Sprintf("nest(%q, func(b []byte) error {\n\t\tx.%s = new(%s)\n\t\treturn x.%[2]s.parse(b)\n\t})", a.short(), a.GoName, typ)
	}
	get, typ := "get"+strings.ToUpper(a.Type[:1])+a.Type[1:], map[string]string{"u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64", "uint": "uint64", "string": "string"}[a.Type]
	if a.ByteOrder == "big-endian" {
		get = "getUID"
	}
	if a.GoGet == "getBool" {
		typ = "bool"
	}
	get = cmp.Or(a.GoGet, get)
	kind := "to"
	if a.GoType != "" {
		kind, typ = "enum", a.GoType
	}
	if a.Since != "" {
		kind, typ = map[string]string{"to": "opt", "enum": "optEnum"}[kind], "Optional["+typ+"]"
	}
	return typ, fmt.Sprintf("%s(%q, %s, &x.%s)", kind, a.short(), get, a.GoName)
}

// uapiNumbers writes the numbers that the headers of Linux 6.1 do not have, and the values of enumerations, which none has.
// The numbers of 6.12 and later have to agree with them.
func uapiNumbers(t *tree, f *family) {
	var w writer
	for i := range f.Definitions {
		f.Definitions[i].cEnum(&w, "SMC_UAPI_")
		w.line("")
	}
	for _, s := range f.Sets {
		for _, a := range s.List {
			if newer(cmp.Or(a.Since, s.Since), 6, 1) {
				w.line("#define SMC_UAPI_%s %d", a.short(), a.number)
			}
		}
	}
	w.line("")
	for _, s := range f.Sets {
		for _, a := range s.List {
			if newer(a.Since, 6, 1) && !newer(a.Since, 6, 12) {
				w.line("COMPAT_ASSERT_UAPI(%s, SMC_UAPI_%s);", a.kernel, a.short())
			}
		}
	}
	t.writeHeader("kernel/uapi/smc_uapi_gen.h", f.spec, "SMC_UAPI_GEN_H", &w)
}

// ours is the version of what Linux does not have. Such attributes have numbers from firstOurs on.
const (
	ours      = "smckit"
	firstOurs = 256
)

// newer reports whether something came after a version of Linux.
func newer(since string, major, minor int) bool {
	if since == ours {
		return true
	}
	var a, b int
	// Without a version it is as old as the family.
	_, _ = fmt.Sscanf(since, "%d.%d", &a, &b)
	return a > major || a == major && b > minor
}

// pnetNetlink writes the constants of SMC_PNETID.
func pnetNetlink(t *tree) error {
	f, err := loadFamily(t, "specs/smc_pnetid.yaml")
	if err != nil {
		return err
	}
	var w writer
	w.line("// Family is the name of the generic netlink family that serves the PNET table.\nconst Family = %q\n", f.Name)
	w.line("// familyVersion is that of SMCR_GENL_FAMILY_VERSION in <linux/smc.h>.\nconst familyVersion = %d", f.Version)
	f.constants(&w)
	f.lengths(&w)
	return t.writeGo("pkg/pnet/netlink_gen.go", "pnet", f.spec, &w)
}

// lengths writes the lengths of the strings in requests.
func (f *family) lengths(w *writer) {
	w.line("\n// The longest values of attributes that are strings, in bytes.\nconst (")
	for i := range f.Sets {
		for _, a := range f.Sets[i].List {
			if a.Type == "string" && a.Checks.MaxLen != nil {
				w.line("\tmax%s%s = %d // %s", goName(f.Sets[i].Name), goName(a.Name), *a.Checks.MaxLen, a.kernel)
			}
		}
	}
	w.line(")")
}

// ownNetlink writes the header and the constants of smckit's own family.
func ownNetlink(t *tree) error {
	f, err := loadFamily(t, "specs/smckit.yaml")
	if err != nil {
		return err
	}
	var w writer
	w.line("// ownFamily and ownVersion identify the family of smckit's module, which has what stock modules lack.\nconst (")
	w.line("\townFamily = %q\n\townVersion = %d\n)", f.Name, f.Version)
	for _, d := range f.Definitions {
		w.line("\n// %s\nconst (", d.Doc)
		for _, e := range d.Entries {
			w.line("\t%s%s = %d", d.Name, goName(e.Name), e.number)
		}
		w.line(")")
	}
	f.constants(&w)
	if err := t.writeGo("pkg/netlinksmc/own_gen.go", "netlinksmc", f.spec, &w); err != nil {
		return err
	}
	uapiHeader(t, f)
	return nil
}

// cEnum writes the values of an enumeration.
func (d *define) cEnum(w *writer, prefix string) {
	w.line("enum {")
	for i, e := range d.Entries {
		value := ""
		if i == 0 && e.number > 0 || i > 0 && e.number != d.Entries[i-1].number+1 {
			value = fmt.Sprintf(" = %d", e.number)
		}
		w.line("\t%s%s_%s%s,", prefix, cName(d.Name), cName(e.Name), value)
	}
	w.line("};")
}

// uapiHeader writes the header of a family of ours.
func uapiHeader(t *tree, f *family) {
	prefix := cName(f.Name) + "_"
	var w writer
	w.line("/* %s Numbers are never reused. */", f.Doc)
	w.line("#define %sGENL_FAMILY_NAME %q\n#define %[1]sGENL_FAMILY_VERSION %[3]d", prefix, f.Name, f.Version)
	w.line("\nenum {")
	for _, o := range f.Operations.List {
		w.line("\t%s = %d,", o.kernel, o.number)
	}
	w.line("};")
	for _, d := range f.Definitions {
		w.line("\n/* %s */", d.Doc)
		d.cEnum(&w, prefix)
	}
	for _, s := range f.Sets {
		w.line("\nenum {")
		for i, a := range s.List {
			value, comment := "", a.Type
			if i == 0 || a.number != s.List[i-1].number+1 {
				value = fmt.Sprintf(" = %d", a.number)
			}
			if a.Enum != "" {
				comment += ", " + prefix + cName(a.Enum) + "_*"
			}
			if a.Doc != "" {
				comment += ", " + a.Doc
			}
			w.line("\t%s%s,\t/* %s */", a.kernel, value, comment)
		}
		w.line("\t%sEND\n};\n#define %[1]sMAX (%[1]sEND - 1)", cName(s.Prefix))
	}
	t.writeHeader("kernel/uapi/smckit.h", f.spec, "SMCKIT_UAPI_H", &w)
}
