// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"slices"
	"strings"
)

// Commands and attributes of SMC_PNETID.
const (
	pnetGet, pnetAdd, pnetDel, pnetFlush = 1, 2, 3, 4

	id, eth, ib, port = 1, 2, 3, 4
)

var (
	list  = probe{"list", pnetGet, dump, nil}
	flush = probe{"flush", pnetFlush, ack, nil}
)

func add(name string, attrs ...attr) probe { return probe{"add " + name, pnetAdd, ack, attrs} }

func pnetProbes() []probe { return slices.Concat(pnetAdds(), pnetNames(), pnetReads()) }

// pnetAdds combines the attributes of an addition.
func pnetAdds() []probe {
	return []probe{
		flush, flush, list,
		add("nothing"),
		add("only an ID", str(id, "NET")),
		add("only a device", str(eth, "e0")),
		add("eth", str(id, "NET"), str(eth, "e0")),
		add("eth again", str(id, "NET"), str(eth, "e0")),
		add("eth of other ID", str(id, "OTHER"), str(eth, "e0")),
		add("eth that exists", str(id, "NET"), str(eth, "lo")),
		add("eth with port", str(id, "NET"), str(eth, "e1"), num(port, 2)),
		add("eth with bad port", str(id, "NET"), str(eth, "e2"), num(port, 7)),
		add("port alone", str(id, "NET"), num(port, 2)),
		add("ib default port", str(id, "NET"), str(ib, "ib0")),
		add("ib other port", str(id, "NET"), str(ib, "ib0"), num(port, 2)),
		add("ib port 2", str(id, "NET"), str(ib, "ib1"), num(port, 2)),
		add("ib port 0", str(id, "NET"), str(ib, "ib2"), num(port, 0)),
		add("ib port 3", str(id, "NET"), str(ib, "ib2"), num(port, 3)),
		add("ib port 255", str(id, "NET"), str(ib, "ib2"), num(port, 255)),
		add("ib port of two bytes", str(id, "NET"), str(ib, "ib3"), raw(port, "\x02\x00")),
		add("ib port of no byte", str(id, "NET"), str(ib, "ib3"), raw(port, "")),
		add("eth and ib", str(id, "NET"), str(eth, "e3"), str(ib, "ib4")),
		add("eth old and ib new", str(id, "NET"), str(eth, "e3"), str(ib, "ib5")),
		add("eth new and ib old", str(id, "NET"), str(eth, "e4"), str(ib, "ib5")),
		add("eth new and ib bad", str(id, "NET"), str(eth, "e5"), str(ib, "ib6"), num(port, 9)),
		add("eth and ib old", str(id, "NET"), str(eth, "e4"), str(ib, "ib5")),
		add("pci name", str(id, "NET"), str(ib, "0000:00:1f.7")),
		list,
	}
}

// pnetNames adds names of all kinds.
func pnetNames() []probe {
	var probes []probe
	for _, s := range []string{
		"", " ", "A", "abc", " BLANKS  ", "A B", "A-B", "A_B", "$@#", "A.B", "\xd6", "\xe4", "Ö",
		"\xff\xfe", "\xa0A", "A\tB", "\tA",
		"A234567890123456", "A2345678901234567", " 2345678901234567", "A234567890123456 ",
	} {
		probes = append(probes, flush, add("ID "+hexed(s), str(id, s), str(eth, "x")), list)
	}
	for _, s := range []string{
		"", " ", "n/a", "a23456789012345", "a234567890123456", " lead", "trail ", "a b", "\xff", ".",
		"a/b", "n\ta", "a23456789012345 ",
	} {
		probes = append(probes, flush, add("eth name "+hexed(s), str(id, "N"), str(eth, s)), list)
	}
	for _, s := range []string{
		"", " ", "n/a", strings.Repeat("i", 63), strings.Repeat("i", 64), " lead", "trail ", "a b",
		"\xff", strings.Repeat("i", 63) + " ",
	} {
		probes = append(probes, flush, add("ib name "+hexed(s), str(id, "N"), str(ib, s)), list)
	}
	return probes
}

// pnetReads adds more, reads it, and deletes it.
func pnetReads() []probe {
	return []probe{
		flush,
		add("unterminated", raw(id, "RAW"), raw(eth, "raw0")),
		add("unterminated, longest", raw(id, "RAW4567890123456"), raw(eth, "raw456789012345")),
		add("unterminated, longest ib", raw(id, "RAW"), raw(ib, strings.Repeat("r", 63))),
		add("empty bytes", raw(id, ""), raw(eth, "")),
		add("unknown attribute", str(id, "NET"), str(eth, "e9"), num(9, 1)),
		add("ID twice", str(id, "NET1"), str(id, "NET2"), str(eth, "e10")),
		add("known to be there", str(id, "NET"), str(eth, "e11")),
		add("known to be there", str(id, "NET"), str(ib, "ib11")),
		list,
		{"get", pnetGet, bare, []attr{str(id, "NET")}},
		{"get in lower case", pnetGet, bare, []attr{str(id, "net")}},
		{"get with blanks", pnetGet, bare, []attr{str(id, " NET ")}},
		{"get unknown", pnetGet, bare, []attr{str(id, "NOSUCH")}},
		{"get invalid", pnetGet, bare, []attr{str(id, "A-B")}},
		{"get nothing", pnetGet, bare, nil},
		{"get empty", pnetGet, bare, []attr{str(id, "")}},
		{"get too long", pnetGet, bare, []attr{str(id, "A2345678901234567")}},
		{"list one", pnetGet, dump, []attr{str(id, "NET")}},
		{"del nothing", pnetDel, ack, nil},
		{"del unknown", pnetDel, ack, []attr{str(id, "NOSUCH")}},
		{"del in lower case", pnetDel, ack, []attr{str(id, "net")}},
		{"del with blanks", pnetDel, ack, []attr{str(id, " NET ")}},
		{"del invalid", pnetDel, ack, []attr{str(id, "A-B")}},
		{"del too long", pnetDel, ack, []attr{str(id, "A2345678901234567")}},
		{"del with device", pnetDel, ack, []attr{str(id, "NET"), str(eth, "e11")}},
		list,
		{"command 0", 0, ack, nil},
		{"command 9", 9, ack, nil},
		flush, list,
	}
}

// hexed prints a name with any bytes.
func hexed(s string) string {
	const printable = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_@#$/:"
	var b strings.Builder
	for i := range len(s) {
		if strings.IndexByte(printable, s[i]) >= 0 {
			b.WriteByte(s[i])
		} else {
			b.WriteString("\\x" + string("0123456789abcdef"[s[i]>>4]) + string("0123456789abcdef"[s[i]&15]))
		}
	}
	return "'" + b.String() + "'"
}

// eid returns an EID in the kernel's format, padded with blanks.
func eid(s string) attr { return str(1, fmt.Sprintf("%-32s", s)) }

// Commands of SMC_GEN_NETLINK.
const (
	lastDump                                 = 8
	ueidDump, ueidAdd, ueidRemove, ueidFlush = 9, 10, 11, 12
	seidDump, seidEnable, seidDisable        = 13, 14, 15
	limitDump, limitEnable, limitDisable     = 16, 17, 18
)

func cmd(name string, number uint8, attrs ...attr) probe { return probe{name, number, ack, attrs} }

func get(name string, number uint8) probe { return probe{name, number, dump, nil} }

var (
	eids      = get("eids", ueidDump)
	flushEIDs = cmd("flush eids", ueidFlush)
)

func genProbes() []probe { return slices.Concat(eidNames(), eidTable(), switches()) }

// longest is an EID of maximum length, without padding.
const longest = "ABCDEFGHIJKLMNOPQRSTUVWXYZ012345"

// eidNames adds EIDs of all kinds.
func eidNames() []probe {
	probes := []probe{flushEIDs, flushEIDs, eids}
	for i := uint8(1); i <= lastDump; i++ {
		probes = append(probes, cmd("without dump flag", i))
	}
	for _, i := range []uint8{2, 3, 4, 5, 8} {
		probes = append(probes, get("list", i))
	}
	for _, s := range []string{
		"", " ", "A", "a", "0", ".A", "-A", "A.", "A-", "A B", "A_B", "A\tB", "A..B", "A--B", "\xd6",
		"\xe4", "\xdf", "\xa0", " A", "A9.-Z",
		longest, "IBM-SYSZ-ISMSEID0000000012345678",
	} {
		probes = append(probes, flushEIDs, cmd("EID "+hexed(s), ueidAdd, eid(s)), eids)
	}
	for _, s := range []string{"A", "A ", longest[:31], longest + "6", longest + " "} {
		probes = append(probes, flushEIDs, cmd("EID without padding "+hexed(s), ueidAdd, str(1, s)), eids)
	}
	for _, s := range []string{longest[:31], longest, longest + "6"} {
		probes = append(probes, flushEIDs, cmd("EID unterminated "+hexed(s), ueidAdd, raw(1, s)), eids)
	}
	for _, i := range []uint8{ueidAdd, ueidRemove} {
		probes = append(probes, cmd("no EID", i))
		probes = append(probes, cmd("EID unterminated", i, raw(1, "RAW")), cmd("EID empty", i, raw(1, "")))
	}
	return probes
}

// eidTable fills the table and empties it.
func eidTable() []probe {
	var probes []probe
	for _, s := range []string{"A", "A", "C", "B", "D", "E", "A"} {
		probes = append(probes, cmd("add "+s, ueidAdd, eid(s)))
	}
	for _, s := range []string{"B", "B", "a", "A ", "E"} {
		probes = append(probes, cmd("remove "+s, ueidRemove, eid(s)))
	}
	return append(probes, eids, cmd("add B", ueidAdd, eid("B")), eids)
}

// switches turns features on and off, and queries absent ones.
func switches() []probe {
	return []probe{
		get("seid", seidDump), cmd("enable seid", seidEnable), cmd("disable seid", seidDisable),
		flushEIDs,
		cmd("enable seid without UEID", seidEnable), cmd("disable seid without UEID", seidDisable),
		cmd("add last", ueidAdd, eid("LAST")), cmd("remove last", ueidRemove, eid("LAST")), eids,
		get("limit", limitDump), cmd("limit on", limitEnable), get("limit", limitDump), cmd("limit on", limitEnable),
		cmd("limit off", limitDisable), get("limit", limitDump),
		cmd("limit with attribute", limitEnable, num(1, 1)), cmd("limit off", limitDisable),
		cmd("limit with unknown attribute", limitEnable, num(7, 1)), cmd("limit off", limitDisable),
		cmd("add with unknown attribute", ueidAdd, eid("U"), num(7, 1)),
		cmd("flush with attribute", ueidFlush, eid("U")), eids, flushEIDs,
		cmd("command 19", 19), get("dump 19", 19), cmd("ueid without dump flag", ueidDump),
		get("dump with attribute", ueidDump),
		{"dump with attribute", ueidDump, dump, []attr{str(1, "A")}},
		get("stats", 7), get("info", 1),
	}
}
