// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
)

// linkView writes the struct that the module fills for each SMC-R link, and the function that puts it into a message. With the decoder
// and the type of Go, all between the module's value and the command that prints it comes from the specification.
func linkView(t *tree) error {
	f, err := loadFamily(t, "specs/smc_gen_netlink.yaml")
	if err != nil {
		return err
	}
	s := f.set("link")
	var h, c writer
	h.line("#include <linux/types.h>\n\n/* The attributes of a link (%s*), which the specification describes */", cName(s.Prefix))
	h.line("struct smc_rdma_link_view {")
	c.line("#include \"../transport/rdma/show.h\"\n#include \"netlink.h\"\n")
	c.line("/* smc_netlink_put_link() - puts the attributes of a link. Any context. Return: 0 or -EMSGSIZE. */")
	c.line("int smc_netlink_put_link(struct sk_buff *skb, const struct smc_rdma_link_view *view)\n{")
	for i := range s.List {
		field, err := s.List[i].cField()
		if err != nil {
			return fmt.Errorf("%s: %w", f.spec, err)
		}
		h.line("\t%s;", field)
	}
	for _, flag := range s.flags() {
		h.line("\tbool %s;", flag)
	}
	h.line("};")
	list, err := s.putOrder()
	if err != nil {
		return fmt.Errorf("%s: %w", f.spec, err)
	}
	before := "\tif ("
	for _, a := range list {
		fmt.Fprintf(&c, "%s%s", before, a.cPut())
		before = " ||\n\t    "
	}
	c.line(")\n\t\treturn -EMSGSIZE;\n\treturn 0;\n}")
	t.writeHeader("kernel/transport/rdma/link_view_gen.h", f.spec, "SMC_RDMA_LINK_VIEW_GEN_H", &h)
	t.writeC("kernel/control/netlink_link_gen.c", f.spec, &c)
	return nil
}

// flags returns the fields that decide whether attributes are put.
func (s *attrs) flags() (list []string) {
	for i := range s.List {
		if flag := s.List[i].PutIf; flag != "" && !slices.Contains(list, flag) {
			list = append(list, flag)
		}
	}
	return list
}

// putOrder returns the attributes in the order in which messages have them: first those that PutOrder names.
func (s *attrs) putOrder() (list []*attr, err error) {
	for _, name := range s.PutOrder {
		i := slices.IndexFunc(s.List, func(a attr) bool { return a.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("put-order of the set %q: there is no attribute %q", s.Name, name)
		}
		list = append(list, &s.List[i])
	}
	for i := range s.List {
		if a := &s.List[i]; !slices.Contains(s.PutOrder, a.Name) {
			list = append(list, a)
		}
	}
	return list, nil
}

// cField returns the declaration of an attribute's field.
func (a *attr) cField() (string, error) {
	name := lowerC(a.Name)
	switch {
	case a.Type == "string" && a.Hint == "ipv6":
		return "u8 " + name + "[16]", nil
	case a.Type == "string" && a.Checks.MaxLen != nil:
		return fmt.Sprintf("char %s[%d + 1]", name, *a.Checks.MaxLen), nil
	case a.ByteOrder == "big-endian" && a.Type == "u32":
		return "u8 " + name + "[4]", nil
	case a.Type == "uint":
		return "u64 " + name, nil
	case slices.Contains([]string{"u8", "u16", "u32", "u64"}, a.Type):
		return a.Type + " " + name, nil
	}
	return "", fmt.Errorf("%s: a view has no field for its type", a.kernel)
}

// cPut returns the call that puts an attribute; it is nonzero if there is no room.
func (a *attr) cPut() string {
	number := a.kernel
	if newer(a.Since, 6, 1) {
		number = "SMC_UAPI_" + a.short()
	}
	function := "nla_put_" + a.Type
	switch {
	case a.Hint == "ipv6":
		function = "smc_netlink_put_gid"
	case a.ByteOrder == "big-endian":
		return fmt.Sprintf("nla_put(skb, %s, sizeof(view->%s), view->%[2]s)", number, lowerC(a.Name))
	case a.Type == "u64":
		function = "smc_netlink_put_u64"
	}
	put := fmt.Sprintf("%s(skb, %s, view->%s)", function, number, lowerC(a.Name))
	if a.PutIf != "" {
		put = fmt.Sprintf("(view->%s && %s)", a.PutIf, put)
	}
	return put
}
