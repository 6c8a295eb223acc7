// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
)

// The families whose requests the module parses.
var policySpecs = []string{"specs/smc_gen_netlink.yaml", "specs/smc_pnetid.yaml", "specs/smckit.yaml"}

// policies writes the netlink policies of all attributes that requests have, and the limits in them, with which C that depends on
// one can compare its own.
func policies(t *tree) error {
	var c, h, limits writer
	from := map[string]string{} // set: the specification that has it
	for _, spec := range policySpecs {
		f, err := loadFamily(t, spec)
		if err != nil {
			return err
		}
		for _, s := range f.requestSets() {
			if from[s.Name] != "" {
				return fmt.Errorf("%s and %s have requests with the set %q: rename one", from[s.Name], spec, s.Name)
			}
			from[s.Name] = spec
			if err := f.policy(&c, &h, &limits, s); err != nil {
				return fmt.Errorf("%s: %w", spec, err)
			}
		}
	}
	const name, all = "kernel/control/netlink_attrs_gen", "the specifications of netlink in specs/"
	var header, source writer
	header.line("#include <net/netlink.h>\n\n#include \"../uapi/smc_uapi.h\"\n#include \"../uapi/smckit.h\"\n")
	header.line("/* The limits in the policies: the bytes of a string without its zero, or of a list; the values of a number. */")
	header.Write(limits.Bytes())
	header.line("\n/* The policies of the attributes in requests */")
	header.Write(h.Bytes())
	const none = "const struct nla_policy smc_netlink_no_attrs[1 + 1]"
	header.line("\n/* The policy of a family for requests that have no attributes */\nextern %s;", none)
	source.line("#include \"netlink_attrs_gen.h\"\n\n%s = {\n\t[1] = { .type = NLA_REJECT },\n};", none)
	source.Write(c.Bytes())
	t.writeHeader(name+".h", all, "SMC_CONTROL_NETLINK_ATTRS_GEN_H", &header)
	t.writeC(name+".c", all, &source)
	return nil
}

// requestSets returns the sets whose attributes requests have.
func (f *family) requestSets() (list []*attrs) {
	for i := range f.Sets {
		if s := &f.Sets[i]; len(f.requested(s)) > 0 {
			list = append(list, s)
		}
	}
	return list
}

// requested returns the attributes of a set that a request may have: of a nested one all except those that only replies have.
func (f *family) requested(s *attrs) (list []*attr) {
	for i := range s.List {
		if a := &s.List[i]; f.isNested(s.Name) && !a.ReplyOnly || f.hasRequest(s.Name, a.Name) {
			list = append(list, a)
		}
	}
	return list
}

// hasRequest reports whether a request has an attribute of a set itself.
func (f *family) hasRequest(set, attr string) bool {
	return slices.ContainsFunc(f.Operations.List, func(o operation) bool {
		return o.Set == set && slices.Contains(o.Do.Request.Attributes, attr)
	})
}

// isNested reports whether a request has attributes of a set within another attribute.
func (f *family) isNested(set string) bool {
	return slices.ContainsFunc(f.Sets, func(s attrs) bool {
		return slices.ContainsFunc(s.List, func(a attr) bool { return a.Nested == set && f.hasRequest(s.Name, a.Name) })
	})
}

// policyName returns the name in C of the policy of a set.
func (s *attrs) policyName() string { return "smc_netlink_" + lowerC(s.Name) + "_attrs" }

// policy writes the policy of a set.
func (f *family) policy(c, h, limits *writer, s *attrs) error {
	array := fmt.Sprintf("const struct nla_policy %s[%s + 1]", s.policyName(), s.List[len(s.List)-1].kernel)
	h.line("extern %s;", array)
	c.line("\n%s = {", array)
	for _, a := range f.requested(s) {
		check, err := f.check(a, limits)
		if err != nil {
			return err
		}
		c.line("\t[%s] = %s,", a.kernel, check)
	}
	c.line("};")
	return nil
}

// check returns the entry of an attribute in a policy, and writes its limits.
func (f *family) check(a *attr, limits *writer) (string, error) {
	limit := func(what string, n *int) {
		if n != nil {
			limits.line("#define %s_%s %d", a.kernel, what, *n)
		}
	}
	min, max := a.Checks.Min, a.Checks.Max
	limit("LEN", a.Checks.MaxLen)
	limit("LEAST", min)
	limit("MOST", max)
	switch {
	case a.Nested != "":
		return fmt.Sprintf("NLA_POLICY_NESTED(%s)", f.set(a.Nested).policyName()), nil
	case a.Type == "string" || a.Type == "binary":
		if a.Checks.MaxLen == nil {
			return "", fmt.Errorf("%s: a request has it, so it needs a max-len", a.kernel)
		}
		typ := map[string]string{"string": "NLA_NUL_STRING", "binary": "NLA_BINARY"}[a.Type]
		if a.Checks.Unterminated {
			typ = "NLA_STRING"
		}
		return fmt.Sprintf("{ .type = %s, .len = %s_LEN }", typ, a.kernel), nil
	case a.Enum != "":
		d := f.define(a.Enum)
		return fmt.Sprintf("NLA_POLICY_MAX(NLA_%s, %s_%s_%s)", cName(a.Type), cName(f.Name), cName(d.Name),
			cName(d.Entries[len(d.Entries)-1].Name)), nil
	case min != nil && max != nil:
		return fmt.Sprintf("NLA_POLICY_RANGE(NLA_%s, %s_LEAST, %[2]s_MOST)", cName(a.Type), a.kernel), nil
	case max != nil:
		return fmt.Sprintf("NLA_POLICY_MAX(NLA_%s, %s_MOST)", cName(a.Type), a.kernel), nil
	case min != nil:
		return fmt.Sprintf("NLA_POLICY_MIN(NLA_%s, %s_LEAST)", cName(a.Type), a.kernel), nil
	}
	return fmt.Sprintf("{ .type = NLA_%s }", cName(a.Type)), nil
}
