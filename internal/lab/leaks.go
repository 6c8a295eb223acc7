// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"context"
	"errors"
	"strings"
)

// errNoKmemleak means that a kernel cannot search for leaks.
var errNoKmemleak = errors.New("this kernel has no kmemleak: use " + DebugSeries)

// scanForLeaks prints the findings of kmemleak. kmemleak ignores memory that is younger than five seconds, or whose content
// has changed since the previous scan: hence the wait, which no event can replace, and the second scan.
const scanForLeaks = `leaks=/sys/kernel/debug/kmemleak
test -e $leaks || exit 77
sleep 6
echo scan >$leaks
echo scan >$leaks
cat $leaks`

// Leaks returns kmemleak's report of each piece of memory that the guest's kernel has lost so far. It takes some seconds.
func (h *Host) Leaks(ctx context.Context) ([]string, error) {
	r, err := h.Run(ctx, Cmd{Argv: []string{"/bin/sh", "-euc", scanForLeaks}})
	if err != nil {
		return nil, err
	}
	if r.Code == 77 {
		return nil, errNoKmemleak
	}
	if r.Code != 0 {
		return nil, errors.New("kmemleak: " + strings.TrimSpace(r.Stderr))
	}
	return parseLeaks(r.Stdout), nil
}

// parseLeaks splits the output of kmemleak: a line for each piece of memory, and further, indented ones that explain it.
func parseLeaks(report string) []string {
	var leaks []string
	for line := range strings.Lines(report) {
		if strings.HasPrefix(line, "unreferenced object ") {
			leaks = append(leaks, line)
		} else if n := len(leaks); n > 0 {
			leaks[n-1] += line
		}
	}
	return leaks
}
