// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package smcss tests the command smcss on real kernels.
package smcss

import (
	"regexp"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/lab"
	"golang.org/x/sys/unix"
)

const head = `State          UID   Inode   Local Address           Peer Address            Intf Mode `

// TestListing has a listener, connections to the other host, and connections that fall back to TCP.
func TestListing(t *testing.T) {
	for kernel, mode := range map[string]string{"6.12": "SMCR", "6.1": ""} {
		t.Run(kernel, func(t *testing.T) {
			lt := lab.StartSMC(t, lab.Options{Kernel: kernel, Hosts: 2})
			lt.Must("b", "smcflow sink 0.0.0.0:5001 >/run/sink 2>&1 & until grep -q ready /run/sink; do sleep 0.1; done")
			source, err := lt.Host("a").Start(lab.Cmd{Argv: []string{"smcflow", "source", "10.0.0.2:5001", "--seconds", "600"}})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = source.Signal(unix.SIGKILL) }()
			lt.Must("a", "until smcss --peer 10.0.0.2:5001 | grep -q ACTIVE; do sleep 0.1; done")
			if mode == "" {
				// checkFallback wants to see that data was sent.
				lt.Must("a", `until smcss -i --peer 10.0.0.2:5001 | grep -q 'sent:[0-9]\{5\}'; do sleep 0.1; done`)
			}
			lab.Suspend(t, source)
			checkHost(t, lt, "b", "-l", `^LISTEN         00000 \d{7} 0\.0\.0\.0:5001            $`)
			checkHost(t, lt, "b", "-lp", `^LISTEN         00000 \d{7} 0\.0\.0\.0:5001            users:\(\("smcflow",pid=\d+,fd=\d+\)\)$`)
			if mode == "SMCR" {
				checkSMCR(t, lt)
			} else {
				checkFallback(t, lt)
			}
			if lab.Full() {
				t.Run("many", func(t *testing.T) {
					lt.GoTest(t, "a", "../../internal/tool/smcss", "TestIntegrationMany")
				})
			}
		})
	}
}

// checkHost checks that smcss prints the right header and exactly one row that matches want.
func checkHost(t *testing.T, lt *lab.Test, host, args, want string) {
	t.Helper()
	r := lt.Run(host, append([]string{"smcss"}, strings.Fields(args)...)...)
	if r.Code != 0 || r.Stderr != "" || !strings.HasPrefix(r.Stdout, head) {
		t.Errorf("smcss %s: exit status %d\n%s%s", args, r.Code, r.Stderr, r.Stdout)
	}
	if n := len(regexp.MustCompile("(?m)"+want).FindAllString(r.Stdout, -1)); n != 1 {
		t.Errorf("smcss %s: %d rows like %s\n%s", args, n, want, r.Stdout)
	}
}

const (
	active = `^ACTIVE         00000 \d{7} 10\.0\.0\.1:\d+ +10\.0\.0\.2:5001           0000 `
	gid    = `[0-9a-f]{4}(:[0-9a-f]{4}){7}`
)

func checkSMCR(t *testing.T, lt *lab.Test) {
	t.Helper()
	const cursors = `(([0-9a-f]{4}:[0-9a-f]{8} ){2}[0-9a-f]{2}:[0-9a-f]{2}   ){2}([0-9a-f]{4}:[0-9a-f]{8} ){3}`
	const link = `CLNT \S+ +01   0[1-9]     ` + gid + `  ` + gid + `$`
	checkHost(t, lt, "a", "", active+`SMCR $`)
	checkHost(t, lt, "a", "-d", active+`SMCR  <->  ([0-9a-f]{8} ){4}`+cursors+`$`)
	checkHost(t, lt, "a", "-R", active+`SMCR `+link)
	checkHost(t, lt, "a", "-dRW", active+`SMCR  <->  ([0-9a-f]{8} ){4}`+cursors+link)
	checkHost(t, lt, "a", "-i", `^\t age:n/a sent:n/a acked:n/a received:n/a .* sendq:(\d+|n/a)/\d+ .* failovers:n/a.* tcp_rtt:\d+\.\d{3}/`)
	checkHost(t, lt, "a", "--sort peer", active)
	checkHost(t, lt, "a", "-p --mode smcr", active+`SMCR users:\(\("smcflow",pid=\d+,fd=\d+\)\)$`)
	checkHost(t, lt, "b", "-R --port 5001", `SMCR SERV \S+ +01   0[1-9]     `+gid)
	if r := lt.Run("a", "smcss", "-D"); strings.Count(r.Stdout, "\n") != 1 {
		t.Errorf("smcss -D lists SMC-R: %s", r.Stdout)
	}
	for _, want := range []string{`"transport": "smcr"`, `"role": "client"`, `"sndbuf_bytes": `, `"process": "smcflow"`} {
		if r := lt.Run("a", "smcss", "--json", "-dp"); !strings.Contains(r.Stdout, want) {
			t.Errorf("smcss --json -dp: no %s: %s", want, r.Stdout)
		}
	}
}

func checkFallback(t *testing.T, lt *lab.Test) {
	t.Helper()
	checkHost(t, lt, "a", "", active+`TCP 0x0[0-9a-f]{7}(/0x[0-9a-f]{8})?$`)
	checkHost(t, lt, "a", "-d --mode tcp", active+`TCP 0x0[0-9a-f]{7}(/0x[0-9a-f]{8})?$`)
	checkHost(t, lt, "a", "-i", `^\t sent:\d{5,} acked:\d+ received:\d+ .* tcp_rtt:\d`)
	checkHost(t, lt, "a", "--explain", `^\tlocal  [A-Z0-9_]+: `)
	if r := lt.Run("a", "smcss", "-R"); strings.Count(r.Stdout, "\n") != 1 {
		t.Errorf("smcss -R lists a fallback: %s", r.Stdout)
	}
}
