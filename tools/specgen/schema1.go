// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// change is a key of schema 1, the one that schema 2 has instead, and an option of the tag schema1.
type change struct{ old, key, option string }

// optionNotes say what the options of the tag schema1 mean for a reader. internal/jsondoc describes them.
var optionNotes = map[string]string{
	"":            "",
	"keep":        "left out instead of empty",
	"upper":       "`smcr`, `smcd` and `tcp` instead of `SMCR`, `SMCD` and `TCP`",
	"hyphen":      "`smcr`, `smcd` and `tcp` instead of `SMC-R`, `SMC-D` and `TCP`",
	"clnt":        "`client` and `server` instead of `CLNT` and `SERV`",
	"connect":     "`client` and `server` instead of `connect` and `listen`",
	"0x":          "without `0x`",
	"short":       "8 digits instead of 4",
	"by_user":     "`table` or `firmware` instead of true or false",
	"pnet_object": "a string, with `pnet_id_origin` beside it, instead of an object with `id` and `source`; left out instead of null; `firmware` instead of `hardware`",
	"seid_object": "a string, with `enabled` beside it, instead of an object with `eid` and `enabled`",
	"dotted":      "a number, with `smc_release` beside it, instead of text such as `2.1`",
}

// commands are the commands whose code is in a package, where the name does not say it.
var commands = map[string]string{
	"smcchk": "smc_chk", "smcconf": "smc_conf", "smcismd": "smc_ismd", "smcpnet": "smc_pnet", "smcpolicy": "smc_policy", "smcrd": "smcr, smcd",
	"smcrnics": "smc_rnics", "smcrstats": "smcr-stats", "statdoc": "smcr, smcd, smcr-stats", "jsondoc": "smcss, smc_chk",
}

// changed notes what the tag schema1 of a field says.
func (v *vocabulary) changed(dir, key, tag string) {
	old, option, _ := strings.Cut(tag, ",")
	if tag == "" || old == "-" {
		return
	}
	c := change{cmp.Or(old, key), key, strings.TrimPrefix(strings.TrimPrefix(option, "keep,"), ",")}
	command := cmp.Or(commands[path.Base(dir)], path.Base(dir))
	if !slices.Contains(v.changes[c], command) {
		v.changes[c] = append(v.changes[c], command)
	}
}

// writeChanges writes the table of the differences between schema 1 and 2.
func (v *vocabulary) writeChanges(t *tree) error {
	var w writer
	w.line("\n| schema 1 | schema 2 | in | values |\n|---|---|---|---|")
	for _, c := range slices.SortedFunc(maps.Keys(v.changes), func(a, b change) int {
		return cmp.Or(cmp.Compare(a.old, b.old), cmp.Compare(a.key, b.key), cmp.Compare(a.option, b.option))
	}) {
		note, ok := optionNotes[c.option]
		if !ok {
			return fmt.Errorf("the tag schema1 of %s has the unknown option %q", c.key, c.option)
		}
		w.line("| `%s` | `%s` | %s | %s |", c.old, c.key, strings.Join(v.changes[c], ", "), note)
	}
	w.line("")
	return t.writePart(jsonDocument, "schema 1", &w)
}
