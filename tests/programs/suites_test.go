// SPDX-License-Identifier: Apache-2.0

//go:build linux

package programs

import (
	"context"
	"encoding/xml"
	"maps"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/smckit/smckit/internal/lab"
)

// suite is a set of network tests of another project.
type suite struct {
	name string
	// dir is where it runs.
	dir string
	// argv is its command, env what that needs in its environment.
	argv, env []string
	// results reads the result of each test: what it printed, and the file report that it may have written.
	results func(t *testing.T, printed, report string) map[string]string
	// atLeast is how many tests it has, and how many connections they make.
	atLeast int
}

// reportInside is the file for a suite's report, in the guest.
const reportInside = workInside + "/report.xml"

// TestSuites runs the network tests of CPython, and in full runs those of Go, over TCP, and then with a rule for everything: each test must
// have the same result.
func TestSuites(t *testing.T) {
	lab.Need(t)
	if !lab.Full() {
		t.Skip("takes most of an hour: SMCKIT_FULL=1")
	}
	suites := []suite{pythonSuite()}
	for _, pkg := range []string{"net", "net/http", "net/http/httptest", "net/http/httputil", "net/rpc", "net/smtp", "crypto/tls"} {
		suites = append(suites, goSuite(t, pkg))
	}
	for _, kernel := range lab.FewSeries() {
		t.Run(kernel, func(t *testing.T) {
			g := boot(t, kernel)
			g.Must("a", "sysctl -qw net.smc.loopback=2")
			for _, s := range suites {
				t.Run(s.name, func(t *testing.T) { s.compare(t, g) })
			}
			g.empty(t)
			g.unload(t)
		})
	}
}

// compare runs the suite over TCP and over SMC-D.
func (s suite) compare(t *testing.T, g *guest) {
	tcp := s.run(t, g)
	g.Must("a", "smc_policy add smc")
	t.Cleanup(func() { g.Must("a", "smc_policy flush") })
	before := g.Counters("a")
	smc := s.run(t, g)
	now := g.Counters("a")

	if len(tcp) < s.atLeast {
		t.Errorf("%d tests, at least %d expected", len(tcp), s.atLeast)
	}
	if n := now.Connections.ClientV2 - before.Connections.ClientV2; n < s.atLeast {
		t.Errorf("%d connections were SMC-D, at least %d expected", n, s.atLeast)
	}
	names := maps.Clone(tcp)
	maps.Copy(names, smc)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if tcp[name] != smc[name] {
			t.Errorf("%s: %q over TCP, %q over SMC", name, tcp[name], smc[name])
		}
	}
}

// run returns the results of the suite's tests. Some of them may fail in a guest, however their sockets are made.
func (s suite) run(t *testing.T, g *guest) map[string]string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), lab.Scale(15*time.Minute))
	defer cancel()
	r, err := g.Host("a").Run(ctx, lab.Cmd{Argv: s.argv, Env: s.env, Dir: s.dir})
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", s.name, err, r.Stdout, r.Stderr)
	}
	t.Logf("%s: exit status %d", s.name, r.Code)
	results := s.results(t, r.Stdout, g.Must("a", "cat "+reportInside+" 2>/dev/null || :; rm -f "+reportInside))
	if t.Failed() || len(results) == 0 {
		t.Fatalf("%s:\n%s%s", s.name, r.Stdout, r.Stderr)
	}
	return results
}

// pythonSuite is that of Debian's Python, without the tests of UDP-Lite, which Linux 7.1 and later lack, and without testSourceAddress, where
// one thread closes the socket of another, over TCP too.
func pythonSuite() suite {
	modules := []string{
		"test_ftplib", "test_socketserver", "test_asynchat", "test_socket", "test_httplib", "test_asyncio", "test_ssl", "test_smtplib", "test_poplib",
		"test_imaplib", "test_telnetlib", "test_xmlrpc", "test_docxmlrpc", "test_urllib2_localnet", "test_httpservers", "test_wsgiref", "test_selectors",
		"test_asyncore", "test_nntplib", "test_logging", "test_select", "test_poll", "test_epoll",
	}
	argv := []string{"/usr/bin/python3", "-m", "test", "-u", "network", "-i", "*UDPLITE*", "-i", "testSourceAddress", "--junit-xml", reportInside}
	return suite{name: "CPython", dir: workInside, argv: append(argv, modules...), atLeast: 600, results: junitResults}
}

// junitResults reads a report in JUnit's format.
func junitResults(t *testing.T, _, report string) map[string]string {
	t.Helper()
	var suites struct {
		Cases []struct {
			Name    string    `xml:"name,attr"`
			Error   *struct{} `xml:"error"`
			Failure *struct{} `xml:"failure"`
			Skipped *struct{} `xml:"skipped"`
		} `xml:"testsuite>testcase"`
	}
	if err := xml.Unmarshal([]byte(report), &suites); err != nil {
		t.Errorf("%v in the report", err)
	}
	results := map[string]string{}
	for _, c := range suites.Cases {
		switch {
		case c.Error != nil, c.Failure != nil:
			results[c.Name] = "failed"
		case c.Skipped != nil:
			results[c.Name] = "skipped"
		default:
			results[c.Name] = "passed"
		}
	}
	return results
}

// goSuite is that of a package of Go's standard library, with listeners of TCP instead of Multipath TCP, which rules leave alone.
// TestSplice/.../big moves some GiB, which emulated processors are too slow for.
func goSuite(t *testing.T, pkg string) suite {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}", pkg).Output()
	if err != nil {
		t.Fatalf("go list %s: %v", pkg, err)
	}
	program := filepath.Join(t.TempDir(), path.Base(pkg)+".test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", program, pkg)
	build.Env = append(build.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go test -c %s: %v\n%s", pkg, err, out)
	}
	return suite{
		name: "Go " + pkg, dir: strings.TrimSpace(string(dir)),
		argv:    []string{program, "-test.v", "-test.short", "-test.skip", "^TestSplice$/./^big$"},
		env:     []string{"GODEBUG=multipathtcp=0"},
		atLeast: map[string]int{"net": 250, "net/http": 800}[pkg],
		results: goResults,
	}
}

var goResult = regexp.MustCompile(`(?m)^ *--- (PASS|FAIL|SKIP): (\S+) `)

// goResults reads what a test program of Go prints.
func goResults(_ *testing.T, printed, _ string) map[string]string {
	results := map[string]string{}
	for _, m := range goResult.FindAllStringSubmatch(printed, -1) {
		results[m[2]] = m[1]
	}
	return results
}
