// SPDX-License-Identifier: Apache-2.0

//go:build linux

package control

import (
	"regexp"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/lab"
)

// badCase is a command that must fail with a one-line reason.
type badCase struct {
	script string // run by a shell
	code   int
	stderr string // a pattern for the one line
}

// asNobody runs the rest of the command line without privileges.
const asNobody = "setpriv --reuid 65534 --regid 65534 --clear-groups "

// stockCases is bad input that only a real kernel detects; the tests of each command have the rest.
var stockCases = []badCase{
	{"smc_pnet add NET eth nosuch", 1, `nosuch: no such network interface; use --force`},
	{"smc_pnet add NET ib nosuch 1", 1, `nosuch: no such RDMA or ISM device; use --force`},
	{"smc_pnet add NET ib rxe0 3", 2, `port.*3`},
	{"smc_pnet add NET ib rxe0 256", 2, `port.*256`},
	{"smc_pnet add NET ib rxe0 abc", 2, `port.*abc`},
	{"smc_pnet add '' eth lo", 2, `PNET ID`},
	{"smc_pnet add A2345678901234567 eth lo", 2, `17`},
	{"smc_pnet add NET eth eth0", 1, `eth0.*LAB0`},
	{"smc_pnet -d NOSUCH", 1, `NOSUCH`},
	{"smc_pnet del NOSUCH", 1, `NOSUCH`},
	{asNobody + "$(which smc_pnet) add NET eth lo", 1, `permission denied: run as root`},
	{asNobody + "$(which smc_pnet) flush", 1, `permission denied: run as root`},
	{asNobody + "$(which smcr) ueid add SOMETHING", 1, `permission denied: run as root`},
	{"smcr ueid add small", 2, `small`},
	{"smcr ueid del NOSUCH", 1, `NOSUCH`},
	{"smcr linkgroup nosuch", 2, `nosuch`},
	{"smcss -N nosuch", 1, `nosuch.*does not exist`},
	{"smcss >/dev/full", 1, `no space left`},
	{"smcr stats >/dev/full", 1, `no space left`},
	{"smc_rnics -e zz", 1, `no device "zz"`},
}

// badInput runs bad cases and checks that each leaves the kernel's state as it was.
func badInput(t *testing.T, lt *lab.Test, cases []badCase) {
	const state = "smc_pnet; smcr ueid"
	before := lt.Must("a", state)
	for _, c := range cases {
		r := lt.Run("a", "/bin/sh", "-c", c.script)
		checkFailure(t, c, r)
	}
	if after := lt.Must("a", state); after != before {
		t.Errorf("something was changed: before\n%safter\n%s", before, after)
	}
}

// checkFailure checks the exit status and that there is exactly one line on stderr, with the right content.
func checkFailure(t *testing.T, c badCase, r lab.Result) {
	t.Helper()
	if r.Code != c.code || strings.Count(r.Stderr, "\n") != 1 || !regexp.MustCompile(c.stderr).MatchString(r.Stderr) {
		t.Errorf("%s: status %d, stderr %q; want status %d and one line that matches %q", c.script, r.Code, r.Stderr, c.code, c.stderr)
	}
}

// everyCommand asks something of each command that needs the module.
var everyCommand = []string{
	"smc_pnet", "smc_pnet show", "smc_pnet add NET eth lo", "smc_pnet del NET", "smc_pnet flush", "smc_pnet export", "smc_pnet -a NET -I lo",
	"smcss", "smcss -a", "smcss --json", "smcss -D", "smcr-stats", "smcr-stats -d", "smcr-stats --json", "smcr-stats -r",
	"smcr info", "smcr linkgroup", "smcr link", "smcr device", "smcr stats", "smcr stats reset", "smcr ueid", "smcr ueid add X",
	"smcr ueid flush", "smcr handshake-limit", "smcd info", "smcd linkgroup", "smcd device", "smcd stats", "smcd ueid", "smcd seid", "smcd seid enable",
	"smc_conf save",
}

// TestNoModule checks on a kernel without AF_SMC that every command reports that in one line, with status 1.
func TestNoModule(t *testing.T) {
	lab.Need(t)
	dir, err := lab.Commands(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// Debian ships no AF_SMC with the newest kernel.
	lt := lab.Start(t, lab.Options{Kernel: lab.Newest(), Programs: []string{dir}})
	for _, cmd := range everyCommand {
		checkFailure(t, badCase{cmd, 1, `(?i)module not (loaded|available): kernel \S+ has no AF_SMC module: install smckit's`}, lt.Run("a", strings.Fields(cmd)...))
	}
	for _, cmd := range []string{"smc_pnet --version", "smcss --version", "smcr --version", "smcd -v", "smcr-stats -v", "smc_rnics --version", "smcr help"} {
		if r := lt.Run("a", strings.Fields(cmd)...); r.Code != 0 || r.Stdout == "" || r.Stderr != "" {
			t.Errorf("%s: %+v, but it needs no kernel", cmd, r)
		}
	}
	// Devices exist without AF_SMC, too.
	if r := lt.Run("a", "smc_rnics"); r.Code != 0 {
		t.Errorf("smc_rnics: %+v", r)
	}
}

// TestAutoload checks that a request makes the kernel load the module. Sockets are the exception: without the protocol
// family there can be none, and listing them loads nothing.
func TestAutoload(t *testing.T) {
	lab.Need(t)
	dir, err := lab.Commands(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// Debian ships AF_SMC with the kernel that the lab boots by default.
	lt := lab.Start(t, lab.Options{Programs: []string{dir}})
	checkFailure(t, badCase{"smcss -a", 1, `modprobe smc_diag`}, lt.Run("a", "smcss", "-a"))
	for _, cmd := range []string{"smcr info", "smcss -a", "smc_pnet"} {
		if r := lt.Run("a", strings.Fields(cmd)...); r.Code != 0 {
			t.Errorf("%s: %+v", cmd, r)
		}
	}
}
