// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"regexp"
	"strings"
)

// reports are the beginnings of what a kernel prints when something is wrong with it: a crash, a warning with a
// backtrace, and what lockdep, KASAN, UBSAN, kmemleak and the watchdogs find.
var reports = regexp.MustCompile(strings.Join([]string{
	`\bBUG: `,
	`\bBUG at `,
	`\bOops\b`,
	`\bWARNING: `,
	`Kernel panic`,
	`general protection fault`,
	`Unable to handle kernel`,
	`KASAN:`, `KCSAN:`, `KFENCE:`, `UBSAN:`,
	`kmemleak: [0-9]+ new suspected`,
	`(possible|inconsistent) .*(lock|dependency|recursion)`,
	`suspicious RCU usage`,
	`rcu: .*(stall|self-detected)`,
	`soft lockup`, `hard LOCKUP`, `blocked for more than`,
	`refcount_t: `,
	`list_(add|del) corruption`,
	`unregister_netdevice: waiting for`,
	`sleeping function called from invalid context`,
	`scheduling while atomic`,
	`[Uu]nreferenced object`,
	`stack-protector`, `page allocation failure`,
	`Call Trace:`,
}, "|"))

// ignored are lines that look like a report and are known to be none. Each says why.
var ignored = []*regexp.Regexp{
	// GCC plugins and debug options announce themselves in these words at boot.
	regexp.MustCompile(`\*\*.*(NOTICE|DEBUG).*\*\*`),
}

// Reports returns the lines of a kernel log that tell of something wrong. What allowed matches is left out: a test that
// provokes a report says so.
func Reports(log string, allowed ...*regexp.Regexp) []string {
	var found []string
	for line := range strings.Lines(log) {
		line = strings.TrimRight(line, "\r\n")
		if reports.MatchString(line) && !matchesAny(line, ignored) && !matchesAny(line, allowed) {
			found = append(found, line)
		}
	}
	return found
}

func matchesAny(line string, patterns []*regexp.Regexp) bool {
	for _, p := range patterns {
		if p.MatchString(line) {
			return true
		}
	}
	return false
}
