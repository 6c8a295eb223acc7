// SPDX-License-Identifier: Apache-2.0

//go:build linux

package arch

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/lab"
)

var updateArchitectures = flag.Bool("update-architectures", false, "write what has run into ran.txt, from which the matrix of docs/kernels.md is made")

// recorder runs suites on hosts, and records what comes of them.
type recorder struct {
	t             *testing.T
	pair          pair
	release, page string
}

func newRecorder(t *testing.T, lt *lab.Test, p pair) recorder {
	t.Helper()
	// A part of a suite is no result.
	if pattern := flag.Lookup("test.run").Value.String(); *updateArchitectures && strings.Count(pattern, "/") > 2 {
		t.Fatalf("-update-architectures records whole suites: shorten -run %s", pattern)
	}
	page := strings.Fields(lt.Must("a", "grep -m 1 KernelPageSize: /proc/self/smaps"))
	if len(page) != 3 || page[2] != "kB" {
		t.Fatalf("the page size is %q", page)
	}
	return recorder{t, p, lt.Host("a").Kernel.Release, page[1]}
}

// run runs a suite, unless -run leaves it out. One that is skipped has not run.
func (r recorder) run(suite string, f func(t *testing.T)) {
	ran := false
	ok := r.t.Run(suite, func(t *testing.T) {
		defer func() { ran = !t.Skipped() }()
		f(t)
	})
	if !ran || !*updateArchitectures {
		return
	}
	came := failed
	if ok {
		came = passed
	}
	if err := record(result{r.pair.String(), r.release, r.page, suite, came}); err != nil {
		r.t.Error(err)
	}
}

// record puts a result into the file, in place of an earlier one of the same suite on the same hosts.
func record(now result) error {
	const file = "ran.txt"
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	all, err := parseRan(string(text))
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(r result) bool { return r.pair == now.pair && r.suite == now.suite })
	return os.WriteFile(file, []byte(formatRan(append(all, now))), 0o644)
}
