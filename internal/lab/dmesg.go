// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// formatLog turns records of /dev/kmsg into lines as dmesg(1) prints them. It is an error if the oldest are missing: a
// report may have been among them.
func formatLog(records string) (string, error) {
	var b strings.Builder
	next := uint64(0)
	for line := range strings.Lines(records) {
		line = strings.TrimSuffix(line, "\n")
		head, text, ok := strings.Cut(line, ";")
		field := strings.Split(head, ",")
		if !ok || strings.HasPrefix(line, " ") || len(field) < 3 {
			continue // the device that the previous record is about
		}
		seq, err := strconv.ParseUint(field[1], 10, 64)
		if err != nil {
			return "", fmt.Errorf("kernel log: sequence number %q", field[1])
		}
		usec, err := strconv.ParseUint(field[2], 10, 64)
		if err != nil {
			return "", fmt.Errorf("kernel log: time %q", field[2])
		}
		if seq != next {
			return "", fmt.Errorf("kernel log: %d records are lost before the one at %d.%06d s", seq-next, usec/1e6, usec%1e6)
		}
		next = seq + 1
		fmt.Fprintf(&b, "[%5d.%06d] %s\n", usec/1e6, usec%1e6, text)
	}
	return b.String(), nil
}

// reports are the beginnings of the lines that a kernel prints when something is wrong with it: a crash, a warning with a
// backtrace, and findings of lockdep, KASAN, UBSAN, kmemleak and the watchdogs.
var reports = regexp.MustCompile(strings.Join([]string{
	// Crashes and corrupted memory.
	`\bBUG\b[: ]`, `\bOops\b`, `Kernel panic`, `general protection fault`, `Unable to handle kernel`,
	`list_(add|del) corruption`, `refcount_t: `, `ODEBUG: `, `DMA-API: `,
	// Warnings with a backtrace, and other backtraces.
	`\bWARNING: `, `Call Trace:`,
	// The checkers of debug kernels.
	`KASAN: `, `KCSAN: `, `KMSAN: `, `UBSAN: `, `kmemleak: [0-9]+ new suspected`,
	`\*\*\* DEADLOCK \*\*\*`, `trying to register non-static key`, `the locking correctness validator`, `lockdep is turned off`,
	`ref_tracker: .* has \d+/\d+ users`, `leaked reference`, `Attempt to release `, `sysctl table check failed`, `huh, entered `,
	`(possible|inconsistent) .*\b(lock|locking|dependency)\b`,
	// Tasks and processors that hang.
	`rcu: .*\bstalls?\b`, `soft lockup`, `hard LOCKUP`, `blocked for more than`, `unregister_netdevice: waiting for`,
	// Lack of memory.
	`page allocation failure`, `Out of memory: `,
}, "|"))

// ignored are lines that look like a report but are none, each with the reason.
var ignored = []*regexp.Regexp{
	// GCC plugins and debug options announce themselves in these words at boot.
	regexp.MustCompile(`\*\*.*(NOTICE|DEBUG).*\*\*`),
	// This concerns the processor that QEMU emulates, not the kernel.
	regexp.MustCompile(`Spectre V2 : WARNING: `),
}

// Reports returns the lines of a kernel log that report an error, except those that allowed matches: a test lists the
// reports that it provokes.
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
