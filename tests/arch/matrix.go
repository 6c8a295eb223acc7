// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package arch tests the module and the commands on other architectures than amd64, under emulation: s390x, which has the other byte
// order, and arm64, with pages of 4 and 16 KiB. It also has the matrix of what has run there, for docs/kernels.md.
package arch

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/smckit/smckit/internal/lab"
)

// side is a host: its architecture, its kernel and its module.
type side struct {
	arch, kernel string
	module       lab.Module
}

func (s side) String() string { return fmt.Sprintf("%s on %s %s", s.module, s.arch, s.kernel) }

// ours is a host with our module.
func ours(arch, kernel string) side { return side{arch, kernel, lab.ModuleOurs} }

// pair is two hosts that run suites with each other, or one alone, without a second one.
type pair [2]side

func (p pair) String() string {
	if p.isAlone() {
		return fmt.Sprintf("%s, alone", p[0])
	}
	return fmt.Sprintf("%s with %s", p[0], p[1])
}

func (p pair) isAlone() bool { return p[1] == side{} }

// bigEndian is the host of TestBigEndian.
func bigEndian() pair { return pair{ours("s390x", lab.Newest())} }

// pairs are the hosts of make test-arch: each kernel of each other architecture with the newest of amd64, hosts whose pages differ
// in size, and the stock module on either side.
func pairs() []pair {
	newest := lab.Newest()
	var all []pair
	for _, arch := range foreign() {
		for _, kernel := range lab.ArchSeries(arch) {
			all = append(all, pair{ours(arch, kernel), ours(lab.NativeArch, newest)})
		}
	}
	stock := lab.DefaultSeries()
	return append(all,
		pair{ours("arm64-16k", newest), ours("s390x", newest)},
		pair{ours("s390x", newest), {lab.NativeArch, stock, lab.ModuleStock}},
		pair{ours("arm64", newest), {lab.NativeArch, stock, lab.ModuleStock}},
		pair{ours(lab.NativeArch, newest), {"s390x", stock, lab.ModuleStock}},
		pair{ours("s390x", newest), {"s390x", stock, lab.ModuleStock}},
	)
}

// foreign lists the other architectures.
func foreign() []string {
	return slices.DeleteFunc(lab.Archs(), func(arch string) bool { return arch == lab.NativeArch })
}

// The suites, in the order of the matrix.
const (
	suiteWire     = "codecs"
	suiteSMCD     = "SMC-D"
	suiteSMCR     = "SMC-R 2"
	suiteV1       = "SMC-R 1"
	suiteCommands = "commands"
	suiteRules    = "smc_policy"
	suitePrograms = "smc_run"
	suiteUnits    = "Go packages"
)

var suites = []string{suiteWire, suiteSMCD, suiteSMCR, suiteV1, suiteCommands, suiteRules, suitePrograms, suiteUnits}

// has reports whether a suite is to run on a pair. Suites of one host run on the first.
func (p pair) has(suite string) bool {
	switch suite {
	case suiteSMCD:
		return true
	case suiteSMCR:
		return !p.isAlone()
	case suiteV1, suiteCommands: // other modules have no version 1 over RoCEv2
		return p[1].module == lab.ModuleOurs
	case suiteWire:
		return p[0].arch != lab.NativeArch
	}
	return p[0].arch != lab.NativeArch && !p.isAlone()
}

// Results of a suite. What has not run has none.
const (
	passed = "passed"
	failed = "failed"
	older  = "older"   // it passed in a form that demanded less
	byHand = "by hand" // somebody has tried the same by hand
)

// result is what came of a suite: on which kernel of the first host, with which page size in KiB.
type result struct {
	pair, release, page, suite, result string
}

// The columns of the file are separated by tabs.
//
//go:embed ran.txt
var ran string

const ranHead = "# SPDX-License-Identifier: Apache-2.0\n" +
	"# Written by go test ./tests/arch -update-architectures: hosts, kernel and page size (KiB) of the first, suite, result.\n"

// parseRan reads the file of results.
func parseRan(text string) ([]result, error) {
	var all []result
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		f := strings.Split(line, "\t")
		if len(f) != 5 || !slices.Contains(suites, f[3]) || !slices.Contains([]string{passed, failed, older, byHand}, f[4]) {
			return nil, fmt.Errorf("%q is no result", line)
		}
		all = append(all, result{f[0], f[1], f[2], f[3], f[4]})
	}
	return all, nil
}

// formatRan is the reverse, in the order of the matrix. Results of hosts that are no longer in it are left out.
func formatRan(all []result) string {
	var b strings.Builder
	b.WriteString(ranHead)
	for _, p := range append([]pair{bigEndian()}, pairs()...) {
		for _, suite := range suites {
			for _, r := range all {
				if r.pair == p.String() && r.suite == suite {
					fmt.Fprintf(&b, "%s\t%s\t%s\t%s\t%s\n", r.pair, r.release, r.page, r.suite, r.result)
				}
			}
		}
	}
	return b.String()
}

// notRun is the reason of hosts that have none in reasons.
const notRun = "nobody has run it"

// reasons says of hosts that have not run each suite why not, where it is another reason than notRun.
var reasons = map[string]string{
	"ours on s390x 6.1 with ours on amd64 7.2":   "added after it had run",
	"ours on s390x 7.2 with ours on amd64 7.2":   "only chosen suites have run; the codecs, on the host that is alone",
	"ours on s390x 6.12 with ours on amd64 7.2":  "the mirror had no packages of this kernel",
	"ours on arm64 7.2 with ours on amd64 7.2":   "added after it had run",
	"ours on amd64 7.2 with stock on s390x 6.12": "the mirror had no packages of the kernel for s390x",
	"ours on s390x 7.2 with stock on s390x 6.12": "the mirror had no packages of the stock kernel",
}

// Matrix returns the table of what has run on other architectures, as docs/kernels.md has it: a row for each pair of hosts, and for
// kernels that Debian lacks. It returns an error if reasons has hosts that are not in the matrix, or that have run each suite.
func Matrix() (string, error) {
	all, err := parseRan(ran)
	if err != nil {
		return "", err
	}
	return matrix(all, reasons)
}

func matrix(all []result, reasons map[string]string) (string, error) {
	var b strings.Builder
	b.WriteString("| hosts | kernel of the first | its pages | " + strings.Join(suites, " | ") + " | why not |\n")
	b.WriteString(strings.Repeat("|---", 4+len(suites)) + "|\n")
	used := 0
	for _, p := range append([]pair{bigEndian()}, pairs()...) {
		row, complete := matrixRow(p, all)
		why, excused := reasons[p.String()]
		switch {
		case complete && excused:
			return "", fmt.Errorf("%s: has run each suite, and has a reason why not", p)
		case excused:
			used++
		case !complete:
			why = notRun
		}
		b.WriteString(strings.TrimSuffix(row+why, " ") + " |\n")
	}
	if used != len(reasons) {
		return "", fmt.Errorf("%d reasons are about hosts that are not in the matrix", len(reasons)-used)
	}
	for _, arch := range foreign() {
		for _, kernel := range lab.Series() {
			if !slices.Contains(lab.ArchSeries(arch), kernel) {
				fmt.Fprintf(&b, "| %s %s |%s Debian has no such kernel |\n", arch, kernel, strings.Repeat(" - |", 2+len(suites)))
			}
		}
	}
	return b.String(), nil
}

// matrixRow returns the row of a pair up to its last column, and whether each suite of it has run.
func matrixRow(p pair, all []result) (row string, complete bool) {
	var releases, pages, cells []string
	complete = true
	for _, suite := range suites {
		i := slices.IndexFunc(all, func(r result) bool { return r.pair == p.String() && r.suite == suite })
		switch {
		case i >= 0:
			cells = append(cells, all[i].result)
			releases = append(releases, all[i].release)
			pages = append(pages, all[i].page+" KiB")
		case p.has(suite):
			cells, complete = append(cells, "not run"), false
		default:
			cells = append(cells, "-")
		}
	}
	return fmt.Sprintf("| %s | %s | %s | %s | ", p, distinct(releases), distinct(pages), strings.Join(cells, " | ")), complete
}

// distinct lists values without repetitions; "-" if there are none.
func distinct(values []string) string {
	slices.Sort(values)
	if len(values) == 0 {
		return "-"
	}
	return strings.Join(slices.Compact(values), ", ")
}
