// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package control tests the commands and packages with real kernels: the stock AF_SMC modules of Debian over soft-RoCE, and a
// kernel without any.
package control

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/smckit/smckit/internal/jsondoc"
	"github.com/smckit/smckit/internal/lab"
)

func TestStock(t *testing.T) {
	lab.Need(t)
	for _, kernel := range lab.StockSeries() {
		t.Run(kernel, func(t *testing.T) {
			lt := lab.StartSMC(t, lab.Options{Kernel: kernel, Hosts: 2})
			t.Run("packages", func(t *testing.T) { packages(t, lt) })
			t.Run("connection", func(t *testing.T) { connection(t, lt) })
			t.Run("pnet table", func(t *testing.T) { pnetTable(t, lt) })
			t.Run("bad input", func(t *testing.T) { badInput(t, lt, stockCases) })
			t.Run("namespaces", func(t *testing.T) { namespaces(t, lt) })
		})
	}
}

// packages runs the integration tests of the packages as root, where the kernel is.
func packages(t *testing.T, lt *lab.Test) {
	for _, pkg := range []string{"netlinksmc", "pnet", "ism"} {
		t.Run(pkg, func(t *testing.T) { lt.GoTest(t, "b", "github.com/smckit/smckit/pkg/"+pkg, "^TestIntegration") })
	}
}

// view is text that a command must print about a connection.
type view struct{ host, cmd, want string }

// overRDMA is the view of the two sides of an SMC-R connection.
var overRDMA = []view{
	{"a", "smcss", `(?m)^ACTIVE +00000 \d{7} 10\.0\.0\.1:\d+ +10\.0\.0\.2:5001 +0000 SMCR $`},
	{"a", "smcr linkgroup", `^LG-ID    LG-Role  LG-Type  VLAN  #Conns  PNET-ID \n[0-9a-f]{8} CLNT     SINGLE      0       1  LAB0             \n$`},
	{"b", "smcr link", `[0-9a-f]{8} SERV     SINGLE +eth0 +LINK_ACTIVE`},
	{"a", "smcr -d linkgroup", `(?s)Version  : 2\n.*Peer-Host: b\nPeer-OS  : LINUX\n.*EID      : SMCKIT\.LAB +\n`},
	{"a", "smcr device", `(?m)^eth0 +rxe0        1    ACTIVE  .*\*LAB0`},
	{"a", "smcr stats", `(?m)^  SMC connections +[1-9]`},
	{"a", "smcr-stats -d", `(?s)Link Groups.*rxe0`},
}

// overTCP is the view of a host of a connection that has fallen back.
var overTCP = []view{
	{"a", "smcss", `(?m)^ACTIVE +00000 \d{7} 10\.0\.0\.1:\d+ +10\.0\.0\.2:5001 +0000 TCP 0x03030000$`},
	{"a", "smcss --explain", `RDMA`},
	{"a", "smcr -d stats", `(?m)^     NOSMCDEV +[1-9]`},
	{"a", "smcr-stats -d", `0x03030000`},
	{"a", "smcr linkgroup", `^$`},
}

// always is the view that both cases share.
var always = []view{
	{"b", "smcss -a", `(?m)^LISTEN +00000 \d{7} 0\.0\.0\.0:5001 +$`},
	{"a", "smc_rnics", `(?m)^rxe0 .*eth0`},
	{"a", "smcr info", `SMC-R Features:   v1 v2`},
	{"b", "smcd info", `ISM:              n/a`},
}

// connection looks at a connection that has moved data from all sides.
func connection(t *testing.T, lt *lab.Test) {
	ctx, cancel := context.WithTimeout(t.Context(), lab.Scale(60*time.Second))
	defer cancel()
	sink, err := lt.Host("b").Start(lab.Cmd{Argv: []string{"smcflow", "sink", "0.0.0.0:5001"}})
	if err != nil {
		t.Fatal(err)
	}
	defer lab.Kill(t, sink)
	source, err := lt.Host("a").Start(lab.Cmd{Argv: []string{"smcflow", "source", "--wait", "--seconds", "600", lab.Addr4(0, 1) + ":5001"}})
	if err != nil {
		t.Fatal(err)
	}
	defer lab.Kill(t, source)
	if err := lt.Host("a").WaitFor(ctx, "smcss --state active --port 5001 | grep -q :5001"); err != nil {
		t.Fatal(err)
	}
	lab.Suspend(t, source)
	views := append(overTCP, always...)
	if lt.Hosts[0].Kernel.StockSMCRWorks() {
		views = append(overRDMA, always...)
	}
	for _, v := range views {
		t.Run(v.host+" "+v.cmd, func(t *testing.T) {
			r := lt.Run(v.host, strings.Fields(v.cmd)...)
			if r.Code != 0 || r.Stderr != "" || !regexp.MustCompile(v.want).MatchString(r.Stdout) {
				t.Errorf("status %d, stderr %q, stdout:\n%s\nwant a match of %s", r.Code, r.Stderr, r.Stdout, v.want)
			}
		})
	}
	t.Run("json", func(t *testing.T) { allJSON(t, lt) })
}

// allJSON checks of every listing that it is one JSON document whose keys, types and values are those of the vocabulary, and that
// schema 1 is there, too.
func allJSON(t *testing.T, lt *lab.Test) {
	for _, cmd := range []string{
		"smc_pnet show --json", "smc_rnics --json", "smcss --json -adR", "smcss --json -D", "smcr-stats --json -d",
		"smcr info --json", "smcr linkgroup --json", "smcr link --json", "smcr device --json", "smcr stats --json", "smcr ueid --json",
		"smcd info --json", "smcd linkgroup --json", "smcd device --json", "smcd stats --json", "smcd ueid --json", "smcd seid --json",
	} {
		r := lt.Run("a", strings.Fields(cmd)...)
		if err := jsondoc.Check([]byte(r.Stdout)); err != nil || r.Code != 0 {
			t.Errorf("%s: status %d, error %v, stderr %q\n%s", cmd, r.Code, err, r.Stderr, r.Stdout)
		}
		var old struct{ Schema int }
		r = lt.Run("a", strings.Fields(strings.Replace(cmd, "--json", "--json=1", 1))...)
		if err := json.Unmarshal([]byte(r.Stdout), &old); err != nil || old.Schema != jsondoc.Oldest || r.Code != 0 {
			t.Errorf("%s, schema 1: status %d, schema %d, error %v, stderr %q", cmd, r.Code, old.Schema, err, r.Stderr)
		}
	}
}

// pnetTable runs the changes of the table that Ansible and administrators make.
func pnetTable(t *testing.T, lt *lab.Test) {
	before := lt.Run("a", "smc_pnet").Stdout
	lt.Must("a", "ip link add dum0 type dummy")
	for _, c := range []struct {
		script, want string
		code         int
	}{
		{"smc_pnet add net1 eth dum0", "added NET1 eth dum0\n", 0},
		{"smc_pnet add net1 eth dum0", "unchanged: NET1 eth dum0 is already in the table\n", 0},
		{"smc_pnet -s net1", "NET1 dum0 n/a 255\n", 0},
		{"smc_pnet export >/run/table; smc_pnet del net1 && smc_pnet -s net1", "deleted NET1 eth dum0\n", 0},
		{"smc_pnet apply --check /run/table >/run/out && smc_pnet", before, 0},
		{"smc_pnet apply /run/table >/run/out && smc_pnet show NET1", "NET1 dum0 n/a 255\n", 0},
		// One bad line: nothing of the file is applied.
		{"(echo add OTHER eth lo; echo add TOOLONG4567890123 eth lo) | smc_pnet apply - ", "", 1},
		{"smc_pnet show OTHER", "", 0},
		{"smc_pnet del net1 eth dum0", "deleted NET1 eth dum0\n", 0},
		{"smc_pnet", before, 0},
	} {
		r := lt.Run("a", "/bin/sh", "-c", c.script)
		if r.Code != c.code || r.Stdout != c.want {
			t.Errorf("%s: status %d, stderr %q, stdout:\n%s\nwant status %d and:\n%s", c.script, r.Code, r.Stderr, r.Stdout, c.code, c.want)
		}
	}
	lt.Must("a", "ip link del dum0")
}

// namespaces checks -N: each network namespace has a PNET table and sockets of its own.
func namespaces(t *testing.T, lt *lab.Test) {
	lt.Must("a", "ip netns add blue; ip -n blue link set lo up")
	lt.Must("a", "ip netns exec blue smcflow hold --count 2 >/run/held 2>&1 & echo $! >/run/hold.pid")
	if err := lt.Host("a").WaitFor(t.Context(), "grep -q ready /run/held"); err != nil {
		t.Fatal(err)
	}
	if r := lt.Run("a", "smcss", "-N", "blue", "-l"); strings.Count(r.Stdout, "LISTEN") != 2 {
		t.Errorf("smcss -N blue -l: %+v", r)
	}
	if r := lt.Run("a", "smcss", "-l"); strings.Contains(r.Stdout, "LISTEN") {
		t.Errorf("smcss -l sees sockets of another namespace:\n%s", r.Stdout)
	}
	if r := lt.Run("a", "smc_pnet", "-N", "blue"); r.Stdout != "" || r.Code != 0 {
		t.Errorf("smc_pnet -N blue: %+v", r)
	}
	lt.Must("a", "kill $(cat /run/hold.pid); ip netns del blue")
}
