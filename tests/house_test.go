// SPDX-License-Identifier: Apache-2.0

// Package tests checks the repository as a whole. The folders below it are tests of one subject each, most of them in guests
// of internal/lab, and the programs that run in these guests.
package tests

import (
	"bytes"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// repoFiles lists the files that git tracks or would, relative to the root of the repository.
func repoFiles(t *testing.T) []string {
	t.Helper()
	out, err := exec.Command("git", "-C", "..", "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		t.Skipf("not a git checkout: %v", err)
	}
	files := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	if len(files) < 20 {
		t.Fatalf("only %d files: the listing is wrong", len(files))
	}
	return files
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", file))
	if os.IsNotExist(err) {
		return nil // deleted in the work tree, not yet in the index
	}
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestLicences checks that every file says in its first lines under which licence it is.
func TestLicences(t *testing.T) {
	// Formats without comments, licence texts, and data whose every byte is part of a test.
	exempt := regexp.MustCompile(`(^|/)go\.sum$|^LICENSES/.*\.txt$|(^|/)testdata/|\.(png|json)$`)
	for _, file := range repoFiles(t) {
		if exempt.MatchString(file) {
			continue
		}
		data := read(t, file)
		if data == nil {
			continue
		}
		want := "Apache-2.0"
		if strings.HasPrefix(file, "kernel/") {
			want = "GPL-2.0-only"
		}
		head, _, _ := bytes.Cut(data, []byte("\n\n"))
		if !bytes.Contains(head, []byte("SPDX-License-Identifier: "+want)) {
			t.Errorf("%s: no line 'SPDX-License-Identifier: %s' at the top", file, want)
		}
	}
}

// TestImports keeps the layers apart: who may use what, and why.
func TestImports(t *testing.T) {
	const self = "github.com/smckit/smckit/"
	rules := []struct {
		packages, forbidden string
		why                 string
	}{
		{"./pkg/...", `^(github.com/spf13|github.com/olekukonko|` + self + `(internal|cmd))`, "packages return values; commands print"},
		{"./pkg/smcerr/...", `^` + self, "the errors that all packages share depend on none of them"},
		{"./pkg/internal/nlconn/...", `^` + self + `pkg/(netlinksmc|pnet|ism|smcstats)`, "requests know nothing of what they ask for"},
		{"./pkg/netlinksmc/...", `^` + self + `pkg/(pnet|ism|smcstats)`, "the client is the lowest layer"},
		{"./pkg/pnet/...", `^` + self + `pkg/(ism|smcstats)`, "devices know PNET IDs, not the reverse"},
		{"./internal/...", `^` + self + `(cmd|tests)`, "what a command uses is not part of a test"},
		{"./cmd/...", `^` + self + `tests`, "what a command uses is not part of a test"},
		{"./cmd/...", `^os/exec$`, "a command that needs another program breaks in containers"},
	}
	for _, rule := range rules {
		forbidden := regexp.MustCompile(rule.forbidden)
		cmd := exec.Command("go", "list", "-f", "{{.ImportPath}}: {{join .Imports \" \"}}", rule.packages)
		cmd.Dir = ".."
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go list %s: %v", rule.packages, err)
		}
		for line := range strings.Lines(string(out)) {
			pkg, imports, _ := strings.Cut(strings.TrimSpace(line), ": ")
			for _, imp := range strings.Fields(imports) {
				if forbidden.MatchString(imp) {
					t.Errorf("%s imports %s: %s", pkg, imp, rule.why)
				}
			}
		}
	}
}

// TestCommandsAreSmall checks that a main.go only starts its tool.
func TestCommandsAreSmall(t *testing.T) {
	for _, file := range repoFiles(t) {
		if ok, _ := filepath.Match("cmd/*/*.go", file); !ok {
			continue
		}
		lines := slices.Collect(strings.Lines(string(read(t, file))))
		if filepath.Base(file) != "main.go" || len(lines) > 25 {
			t.Errorf("%s: only a main.go of at most 25 lines belongs here", file)
		}
	}
}

// TestNoMachine checks that nothing in the repository depends on the machine it was made on.
func TestNoMachine(t *testing.T) {
	bad := regexp.MustCompile(`(^|[^a-z.])/(work|home/[a-z]+|Users)/[a-z]`)
	for _, file := range repoFiles(t) {
		if file == "tests/house_test.go" {
			continue
		}
		for i, line := range bytes.Split(read(t, file), []byte("\n")) {
			if m := bad.Find(line); m != nil {
				t.Errorf("%s:%d: machine path %q", file, i+1, m)
			}
		}
	}
}

// TestKernelVersions keeps knowledge of kernel versions in the one file that is there for it.
func TestKernelVersions(t *testing.T) {
	version := regexp.MustCompile(`LINUX_VERSION_CODE|KERNEL_VERSION\(`)
	for _, file := range repoFiles(t) {
		if strings.HasPrefix(file, "kernel/") && file != "kernel/compat.h" && version.Match(read(t, file)) {
			t.Errorf("%s: asks for the kernel's version; bend older kernels up in kernel/compat.h", file)
		}
	}
}

// TestKernelLayers checks that each file of the module belongs to a layer, and includes only what is below it.
func TestKernelLayers(t *testing.T) {
	include := regexp.MustCompile(`(?m)^#include "([^"]+)"`)
	const tables = `wire/|net\.h|trylock\.h|control/(diag|eid|memory|memory_fit|peers|pnet|stats|sysctl|sysctl_gen|trace|trace_stock)\.h)`
	rules := []struct{ files, allowed, why string }{
		{`(main|net)\.c$`, ``, "they bring all layers up and down"},
		{`(compat|net|trylock)\.h$`, `^$`, "every layer includes it"},
		{`uapi/`, `^uapi/`, "user space includes it, too"},
		{`wire/`, `^wire/`, "pure functions, which are built in user space, too"},
		{`control/(diag\.h|memory_fit\.h|(eid|memory|peers|pnet|stats|sysctl|sysctl_gen|trace|trace_stock)\.[ch])$`, `^(uapi/|` + tables, "a table is below all layers but wire/"},
		{`transport/[^/]+$`, `^(transport/transport\.h|` + tables, "a transport knows its contract and the tables"},
		{`transport/ism/`, `^(transport/(transport\.h|ism/)|conn/(cdc|conn)\.h|lgr/lgr\.h|uapi/|` + tables, "a transport knows its contract and the tables, not another one"},
		{`transport/rdma/`, `^(transport/(transport\.h|rdma/)|conn/(cdc|conn)\.h|lgr/lgr\.h|uapi/|` + tables, "a transport knows its contract and the tables, not another one"},
		{`lgr/`, `^(lgr/|transport/transport\.h|` + tables, "transports only by the contract, connections by struct smc_lgr_member"},
		{`conn/`, `^(conn/|lgr/lgr\.h|transport/transport\.h|uapi/|` + tables, "transports only by the contract"},
		{`handshake/`, `^(handshake/|conn/conn\.h|transport/transport\.h|` + tables, "sockets take what comes of it"},
		{`policy/`, `^(policy/|` + tables, "sockets ask it"},
		{`sock/`, `^(sock/|handshake/handshake\.h|conn/conn\.h|policy/policy\.h|uapi/|` + tables, "transports by conn/ and handshake/ only"},
		{`control/`, `^(control/|((conn|sock|transport/ism|transport/rdma)/show|lgr/lgr|policy/policy|transport/transport)\.h|uapi/|` + tables, "it shows what the others have"},
	}
	for _, file := range repoFiles(t) {
		name, ok := strings.CutPrefix(file, "kernel/")
		if !ok || !strings.HasSuffix(name, ".c") && !strings.HasSuffix(name, ".h") {
			continue
		}
		rule := slices.IndexFunc(rules, func(r struct{ files, allowed, why string }) bool {
			return regexp.MustCompile("^" + r.files).MatchString(name)
		})
		if rule < 0 {
			t.Errorf("%s is in no layer", file)
			continue
		}
		allowed := regexp.MustCompile(rules[rule].allowed)
		for _, m := range include.FindAllSubmatch(read(t, file), -1) {
			if !allowed.MatchString(path.Join(path.Dir(name), string(m[1]))) {
				t.Errorf("%s includes %s: %s", file, m[1], rules[rule].why)
			}
		}
	}
}

// TestCitations checks that what a comment of the module or a document cites is in the repository: the file, and the section of
// docs/protocol.md.
func TestCitations(t *testing.T) {
	files := repoFiles(t)
	headings := make(map[string]bool)
	for _, m := range regexp.MustCompile(`(?m)^##+ ([0-9.]+) `).FindAllSubmatch(read(t, "docs/protocol.md"), -1) {
		headings[string(m[1])] = true
	}
	cited := regexp.MustCompile(`\b(?:docs|kernel|tests)/[\w/.-]*\.(?:md|[ch]|go)\b`)
	sections := regexp.MustCompile(`docs/protocol\.md.{0,2}, ([0-9.]+(?: and [0-9.]+)*)`)
	for _, file := range files {
		if !strings.HasPrefix(file, "kernel/") && !strings.HasSuffix(file, ".md") {
			continue
		}
		text := read(t, file)
		for _, name := range cited.FindAll(text, -1) {
			if !slices.Contains(files, string(name)) {
				t.Errorf("%s cites %s, which does not exist", file, name)
			}
		}
		for _, m := range sections.FindAllSubmatch(text, -1) {
			for section := range strings.SplitSeq(string(m[1]), " and ") {
				if section = strings.TrimSuffix(section, "."); !headings[section] {
					t.Errorf("%s cites section %s of docs/protocol.md, which does not exist", file, section)
				}
			}
		}
		if bytes.Contains(text, []byte("wire-formats")) {
			t.Errorf("%s cites wire-formats; cite docs/protocol.md or RFC 7609 by section", file)
		}
	}
}

// TestMapOfTests checks that the map in CONTRIBUTING.md has each folder of tests, and only such as exist.
func TestMapOfTests(t *testing.T) {
	_, text, _ := strings.Cut(string(read(t, "CONTRIBUTING.md")), "### Where is the test?")
	text, _, _ = strings.Cut(text, "## ")
	listed := make(map[string]bool)
	for _, m := range regexp.MustCompile("`(tests/[a-z]+)[`/]").FindAllStringSubmatch(text, -1) {
		listed[m[1]] = true
	}
	there := make(map[string]bool)
	for _, file := range repoFiles(t) {
		if parts := strings.Split(file, "/"); len(parts) > 2 && parts[0] == "tests" && parts[1] != "testdata" {
			there["tests/"+parts[1]] = true
		}
	}
	for folder := range there {
		if !listed[folder] {
			t.Errorf("CONTRIBUTING.md does not say what %s tests", folder)
		}
	}
	for folder := range listed {
		if !there[folder] {
			t.Errorf("CONTRIBUTING.md lists %s, which does not exist", folder)
		}
	}
}

// TestGuestTestsRun checks that each test that runs in a guest is in a part that the tests that boot guests run. Those are where
// internal/lab is imported.
func TestGuestTestsRun(t *testing.T) {
	part := regexp.MustCompile(`"\+?((?:[A-Z]\w*\$?\|?)+|\^Test\w+)"`)
	function := regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
	guest := regexp.MustCompile(`^tests/(badpeer|peer|onehost)/(inside/)?\w+_test\.go$`)
	var parts, tests []string
	for _, file := range repoFiles(t) {
		if !guest.MatchString(file) {
			continue
		}
		text := read(t, file)
		switch boots := bytes.Contains(text, []byte(`/internal/lab"`)); {
		case boots:
			// A long list of tests continues on the next line.
			text = regexp.MustCompile(`"\+\n\s*"`).ReplaceAll(text, nil)
			for _, m := range part.FindAllSubmatch(text, -1) {
				parts = append(parts, "^Test("+strings.TrimPrefix(string(m[1]), "^Test")+")")
			}
		case bytes.Contains(text, []byte("//go:build linux")):
			for _, m := range function.FindAllSubmatch(text, -1) {
				tests = append(tests, string(m[1]))
			}
		}
	}
	all := regexp.MustCompile(strings.Join(parts, "|"))
	for _, test := range tests {
		if !all.MatchString(test) {
			t.Errorf("%s is in no part that a guest runs", test)
		}
	}
	if len(tests) < 50 {
		t.Errorf("only %d tests run in guests: the search is wrong", len(tests))
	}
}

// TestKernelWords refuses words in the module for which RDMA, TCP or RFC 7609 has another one.
func TestKernelWords(t *testing.T) {
	refuseWords(t, "kernel/", map[string]string{
		"anew": "again", "arrival": "completion", "compose": "build", "describe_us": "fill_accept", "door": "mutex", "doze": "wait",
		"gate": "mutex", "hand_back": "return_page", "hear_lock": "recv_lock", "horizon": "sendable end", "in_line": "inline",
		"is_apart": "out of band", "job": "work request", "parted": "write_closed, or DELETE LINK was sent",
		"pot": "placeholder socket", "quarantine": "RMBs pending reuse", "rx_asked": "rx_update_requested", "rx_halves": "peer_waits_half",
		"rx_told": "rx_signaled", "share_locally": "share", "smc_cdc_news": "smc_cdc_delta", "smc_close_look": "smc_close_check_tcp",
		"smc_eid_agree": "smc_eid_negotiate", "smc_element": "smc_rcvbuf", "smc_ism_drop": "smc_ism_dev_put", "smc_lgr_learn": "smc_lgr_set_peer",
		"smc_rx_known": "smc_rx_signaled", "spell": "encode", "spent": "token_used", "spill": "version 2 receive buffer", "supply": "get_page",
		"hears": "receives, learns", "likewise": "too", "patience": "timeout", "told": "sent, announced, reported", "whoever": "the name of it",
		"tell_all": "delete_all_links", "tx_told": "tx_signaled", "unuse": "put", "uproot": "detach", "weigh": "choose_reason", "withdraw": "DELETE RKEY",
	})
}
