// SPDX-License-Identifier: Apache-2.0

//go:build linux

package docs

import (
	stdcmp "cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/smckit/smckit/internal/lab"
	"github.com/smckit/smckit/tests/arch"
)

var updateKernels = flag.Bool("update-kernels", false, "write the tables of kernels and tests into docs/kernels.md, and the lists of kernels into the READMEs")

// The kernels of the lab.
var (
	allSeries = lab.Series()
	newest    = lab.Newest()
	all       = strings.Join(allSeries, ", ")
)

// coverage is on which kernels a test runs.
type coverage struct {
	modules     string // whose
	short, full string // in make test, and in make test-full
}

// older is the pairs of TestSMCR with our module only, in short runs: each of the older kernels with the next one of them.
func older() string {
	var pairs []string
	for i := 1; i < len(allSeries)-1; i++ {
		pairs = append(pairs, "ours "+allSeries[i-1]+" to ours "+allSeries[i])
	}
	return strings.Join(pairs, ", ")
}

// special lists tests whose kernels coverageOf cannot derive from the sources.
var special = map[string]coverage{
	"smcr.TestSMCR": {
		"ours, stock", "ours " + newest + " with stock 6.12, both ways; " + older(),
		"ours on each with ours on each, and with stock 6.12, both ways",
	},
	"ism.TestFabric":          {"ours", newest, "ours on each with ours on each"},
	"smcr.TestLinks":          {"ours, stock", newest + "; and stock 6.12 to ours " + newest, "on each; and ours " + newest + " with stock 6.12, both ways"},
	"smcr.TestAdapters":       {"ours, stock", newest, "on each, and with stock 6.12"},
	"smcr.TestFirstContact":   {"ours, stock", "", "on each, with stock 6.12"},
	"smcr.TestKills":          {"ours, stock", "", "on each, and with stock 6.12, both ways"},
	"smcr.TestDissector":      {"ours, stock", "ours " + newest + " to ours " + newest, "and with stock 6.12, both ways"},
	"interop.TestWithStock":   {"ours, stock", "ours " + newest + " with stock 6.12, both ways", "ours " + newest + " with stock 6.12, both ways"},
	"badpeer.TestHandshakes":  {"ours, stock", "", "ours " + newest + ", stock 6.12"},
	"packages.TestDKMS":       {"ours", "", "those of " + strings.Join(lab.Suites(), ", ")},
	"sysfuzz.TestSystemCalls": {"ours", newest + ", for a minute", all + ", for an hour each"},
	"arch.TestBigEndian":      {"ours", newest + " on s390x", newest + " on s390x"},
	"arch.TestArchitectures":  {"ours, stock", "", "(`make test-arch`: each on s390x and arm64 with ours " + newest + " or stock " + lab.DefaultSeries() + " on amd64)"},
	"conformance.TestStock":   {"stock", "", "(`make test-stock`: 6.12)"},
	"lab.TestDisk":            {"none", "", "a Debian system's"},
	"lab.TestKernels":         {"stock", all, all},
	"lab.TestLeaks":           {"none", "", "(`make test-debug`: " + lab.DebugSeries + ")"},
	"lab.TestSmclabISM":       {"ours", newest, newest},
	"lab.TestSmclabUp":        {"stock", "6.12", "6.12"},
}

// testPackage is the functions and variables of a package's tests, by name, and what each refers to.
type testPackage struct {
	dir   string // from the root of the sources
	name  string
	decls map[string]ast.Node
	tests []string
}

// testPackages reads the tests of all folders that may have tests which boot guests.
func testPackages(t *testing.T) (all []*testPackage) {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(root, "tests", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range append([]string{filepath.Join(root, labDir)}, dirs...) {
		if st, err := os.Stat(dir); err == nil && st.IsDir() {
			all = append(all, parseTests(t, dir))
		}
	}
	return all
}

// labDir has the package lab, whose tests name its functions without the package.
const labDir = "internal/lab"

// parseTests reads the tests of a folder.
func parseTests(t *testing.T, dir string) *testPackage {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	path, err := filepath.Rel(root, dir)
	if err != nil {
		t.Fatal(err)
	}
	p := &testPackage{dir: path, name: filepath.Base(dir), decls: map[string]ast.Node{}}
	for _, name := range files {
		if p.dir == labDir && !strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			p.add(d, strings.HasSuffix(name, "_test.go"))
		}
	}
	return p
}

func (p *testPackage) add(d ast.Decl, isTest bool) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		p.decls[d.Name.Name] = d
		if isTest && d.Recv == nil && strings.HasPrefix(d.Name.Name, "Test") {
			p.tests = append(p.tests, d.Name.Name)
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			if v, ok := s.(*ast.ValueSpec); ok {
				for _, name := range v.Names {
					p.decls[name.Name] = v
				}
			}
		}
	}
}

// reached is what a test refers to, directly or by functions and variables of its package.
type reached struct {
	lab      map[string]bool // names of package lab
	literals map[string]bool // kernel series, named or as lab.Newest()
	machine  bool            // runs a Debian system of its own
}

func (p *testPackage) reach(test string) reached {
	r := reached{lab: map[string]bool{}, literals: map[string]bool{}}
	seen := map[string]bool{}
	var visit func(name string)
	inspect := func(n ast.Node) bool { return p.inspect(n, r, visit) }
	visit = func(name string) {
		if seen[name] || p.decls[name] == nil {
			return
		}
		seen[name] = true
		ast.Inspect(p.decls[name], inspect)
	}
	visit(test)
	if r.lab["Newest"] {
		r.literals[newest] = true
	}
	r.machine = r.lab["NewDebian"] || r.lab["NewMachine"] || r.lab["NewRoCEHost"]
	return r
}

// inspect notes what a node refers to, and visits what the package has of it.
func (p *testPackage) inspect(n ast.Node, r reached, visit func(name string)) bool {
	switch n := n.(type) {
	case *ast.SelectorExpr:
		if x, ok := n.X.(*ast.Ident); ok && x.Name == "lab" {
			r.lab[n.Sel.Name] = true
			return false
		}
		visit(n.Sel.Name) // a method, perhaps
		ast.Inspect(n.X, func(n ast.Node) bool { return p.inspect(n, r, visit) })
		return false
	case *ast.Ident:
		if p.dir == labDir && ast.IsExported(n.Name) && p.decls[n.Name] == nil {
			r.lab[n.Name] = true
		}
		visit(n.Name)
	case *ast.BasicLit:
		if s, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING && slices.Contains(allSeries, s) {
			r.literals[s] = true
		}
	}
	return true
}

// onlyFull reports whether a test begins by leaving, unless the run is a full one.
func (p *testPackage) onlyFull(test string) bool {
	for _, s := range p.decls[test].(*ast.FuncDecl).Body.List {
		i, ok := s.(*ast.IfStmt)
		if !ok {
			continue
		}
		var full, skips bool
		ast.Inspect(i.Cond, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			full = full || ok && sel.Sel.Name == "Full"
			return true
		})
		ast.Inspect(i.Body, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			skips = skips || ok && strings.HasPrefix(sel.Sel.Name, "Skip")
			return true
		})
		if full && skips {
			return true
		}
	}
	return false
}

// coverageOf returns the kernels on which a test runs, and false if the test boots no guest.
func (p *testPackage) coverageOf(test string) (coverage, bool) {
	if c, ok := special[p.name+"."+test]; ok {
		return c, true
	}
	r := p.reach(test)
	// Some tests of the lab itself boot guests by its commands.
	if !r.machine && !r.lab["Start"] && !r.lab["StartSMC"] && !r.lab["StartInside"] && !(p.dir == labDir && r.lab["Need"]) {
		return coverage{}, false
	}
	var c coverage
	switch {
	case r.machine:
		c.short, c.full = "a Debian system's", "a Debian system's"
	case r.lab["EachKernel"] || r.lab["FewSeries"]:
		c.short, c.full = newest, all
	case r.lab["EndSeries"]:
		r.literals[allSeries[0]], r.literals[newest] = true, true
		c.short, c.full = strings.Join(sortSeries(r.literals), ", "), all
	case r.lab["TestSeries"]:
		c.short, c.full = all, all
	case r.lab["StockSeries"]:
		c.short = strings.Join(lab.StockSeries(), ", ")
		c.full = c.short
	case len(r.literals) > 0:
		c.short = strings.Join(sortSeries(r.literals), ", ")
		c.full = c.short
	default:
		c.short, c.full = lab.DefaultSeries(), lab.DefaultSeries()
	}
	if p.onlyFull(test) {
		c.short = ""
	}
	var modules []string
	if r.lab["ModuleOurs"] || r.lab["StartInside"] || r.lab["InstallSMC"] || r.machine {
		modules = append(modules, "ours")
	}
	if r.lab["ModuleStock"] || r.lab["StartSMC"] {
		modules = append(modules, "stock")
	}
	c.modules = strings.Join(modules, ", ")
	return c, true
}

func sortSeries(set map[string]bool) []string {
	return slices.SortedFunc(maps.Keys(set), func(a, b string) int {
		return stdcmp.Compare(slices.Index(allSeries, a), slices.Index(allSeries, b))
	})
}

// suites is the table for docs/kernels.md.
func suites(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("| tests | module | `make test` | `make test-full` |\n|---|---|---|---|\n")
	known := map[string]bool{}
	for _, p := range testPackages(t) {
		slices.Sort(p.tests)
		byCoverage := map[coverage][]string{}
		var order []coverage
		for _, test := range p.tests {
			c, boots := p.coverageOf(test)
			if !boots {
				continue
			}
			known[p.name+"."+test] = true
			if byCoverage[c] == nil {
				order = append(order, c)
			}
			byCoverage[c] = append(byCoverage[c], test)
		}
		for _, c := range order {
			fmt.Fprintf(&b, "| `%s`: %s | %s | %s | %s |\n", p.dir, strings.Join(byCoverage[c], ", "),
				stdcmp.Or(c.modules, "none"), stdcmp.Or(c.short, "-"), c.full)
		}
	}
	for name := range special {
		if !known[name] {
			t.Errorf("there is no test %s that boots a guest", name)
		}
	}
	return b.String()
}

// shipped is the table of the lab's kernels for docs/kernels.md.
func shipped() string {
	var b strings.Builder
	b.WriteString("| kernel | Debian ships AF_SMC | our module |\n|---|---|---|\n")
	for i, series := range allSeries {
		stock := map[bool]string{true: "yes", false: "no"}[slices.Contains(lab.StockSeries(), series)]
		fmt.Fprintf(&b, "| Debian %s: %s | %s | tested |\n", lab.Suites()[i], series, stock)
	}
	return b.String()
}

// architectures is the matrix of what has run on other architectures than amd64.
func architectures(t *testing.T) string {
	t.Helper()
	table, err := arch.Matrix()
	if err != nil {
		t.Fatalf("tests/arch: %v", err)
	}
	return table
}

// replacePart replaces the part of a document that a comment at its beginning names.
func replacePart(t *testing.T, doc, name, text string) string {
	t.Helper()
	begin := "<!-- " + name + ": made by go test ./tests/docs -run TestKernels -update-kernels -->\n"
	end := "<!-- end of " + name + " -->\n"
	head, rest, ok1 := strings.Cut(doc, begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("no part between %q and %q", begin, end)
	}
	return head + begin + text + end + tail
}

// TestKernels checks that docs/kernels.md says which kernels there are, which tests run on which, and what has run on which architecture, and that README and
// kernel/README.md list the same kernels. With -update-kernels it writes that.
func TestKernels(t *testing.T) {
	list := regexp.MustCompile(regexp.QuoteMeta(allSeries[0]) + `(, [\d.]+)* and \d+\.\d+\b`)
	last := len(allSeries) - 1
	want := strings.Join(allSeries[:last], ", ") + " and " + newest
	for _, name := range []string{"README.md", "kernel/README.md", "docs/kernels.md"} {
		have := read(t, name)
		var should string
		if name == "docs/kernels.md" {
			should = replacePart(t, replacePart(t, have, "kernels", shipped()), "suites", suites(t))
			should = replacePart(t, should, "architectures", architectures(t))
		} else {
			if !list.MatchString(have) {
				t.Errorf("%s lists no kernels", name)
			}
			should = list.ReplaceAllString(have, want)
		}
		if should == have {
			continue
		}
		if !*updateKernels {
			t.Errorf("%s does not match internal/lab or the tests (-have +want):\n%s\nrun 'go test ./tests/docs -run TestKernels -update-kernels'",
				name, cmp.Diff(strings.Split(have, "\n"), strings.Split(should, "\n")))
		} else if err := os.WriteFile(filepath.Join(root, name), []byte(should), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDebugTargets checks that the tests that the Makefile selects for the debug kernel exist, as go test does not complain if none
// matches, and that docs/kernels.md lists them.
func TestDebugTargets(t *testing.T) {
	makefile := read(t, "Makefile")
	patterns := regexp.MustCompile(`\^Test\(([A-Za-z|]+)\)\$\$`).FindAllStringSubmatch(makefile, -1)
	packages := regexp.MustCompile(`\bPACKAGES(?:\),| = )(\./[^)\n]+)`).FindAllStringSubmatch(makefile, -1)
	if len(patterns) != 2 || len(packages) != 2 {
		t.Fatalf("test-debug and test-debug-full select tests %q of packages %q", patterns, packages)
	}
	_, section, _ := strings.Cut(read(t, "docs/kernels.md"), "## What is tested where\n")
	section, _, _ = strings.Cut(section, "<!-- suites:")
	for i, p := range patterns {
		left := strings.Split(p[1], "|")
		for _, dir := range strings.Fields(packages[i][1]) {
			tests := parseTests(t, filepath.Join(root, dir)).tests
			before := len(left)
			left = slices.DeleteFunc(left, func(name string) bool { return slices.Contains(tests, "Test"+name) })
			if len(left) == before {
				t.Errorf("%s has no test of %s", dir, p[1])
			}
		}
		if len(left) > 0 {
			t.Errorf("there are no tests %q in %s", left, packages[i][1])
		}
		for name := range strings.SplitSeq(p[1], "|") {
			if !regexp.MustCompile(`\bTest` + name + `\b`).MatchString(section) {
				t.Errorf("docs/kernels.md does not say that a target runs Test%s", name)
			}
		}
	}
}

// notOnEach lists the tests of our module that full runs do not have on each kernel, and why that is enough.
var notOnEach = map[string]string{
	"ansible.TestCluster":          "what the playbooks do does not depend on the kernel",
	"arch.TestArchitectures":       "make test-arch runs it, on each kernel of other architectures",
	"arch.TestBigEndian":           "arch.TestArchitectures is on each",
	"badpeer.TestHandshakes":       "it compares with the stock module; badpeer.TestPeersOverTCP is on each",
	"check.TestConditions":         "it depends on what the kernel reports, which tests/control has on each",
	"check.TestHosts":              "it is about what two hosts report of each other, here of two kernels",
	"docs.TestDocuments":           "it is about command lines",
	"interop.TestWithStock":        "smcr.TestSMCR has the stock module with ours on each",
	"lab.TestSmclabISM":            "it is about the options of smclab; ism.TestFabric is on each",
	"onehost.TestHardware":         "the interfaces that its module stands in for are not in Linux 6.1",
	"run.TestHosts":                "supervise.TestSupervisor runs programs under smc_run on each",
	"smcr.TestDissector":           "the bytes of messages do not depend on the kernel, and smcr.TestSMCR exchanges them between each",
	"smcr.TestFailoversWithStock":  "smcr.TestFailovers is on each, and smcr.TestSMCR has the stock module with each",
	"smcr.TestNamespacesAlternate": "smcr.TestNamespacesShareGroups is on each",
	"smcr.TestShutdown":            "it measures a time; smcr.TestGroupsEnd switches hosts off on each",
}

// TestMatrix checks that full runs have every test of our module on each kernel, unless notOnEach says why not.
func TestMatrix(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range testPackages(t) {
		for _, test := range p.tests {
			name := p.name + "." + test
			c, boots := p.coverageOf(test)
			// Debian systems have kernels of their own.
			if !boots || !strings.Contains(c.modules, "ours") || p.reach(test).machine {
				continue
			}
			seen[name] = true
			onEach := strings.Contains(c.full, "on each") || strings.HasPrefix(c.full, all)
			why, excepted := notOnEach[name]
			switch {
			case !onEach && !excepted:
				t.Errorf("in full runs, %s runs on %s: have it on each kernel, or say in notOnEach why not", name, c.full)
			case onEach && excepted:
				t.Errorf("%s runs on each kernel, so notOnEach is wrong: %s", name, why)
			}
		}
	}
	for name := range notOnEach {
		if !seen[name] {
			t.Errorf("notOnEach has %s, which is no test of our module", name)
		}
	}
}
