// SPDX-License-Identifier: Apache-2.0

//go:build linux

package smcr

import (
	"fmt"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/lab"
	"github.com/smckit/smckit/internal/tool/smcrd"
)

// groupsOf are the identifiers of a host's link groups, as smcr shows them.
func groupsOf(t *testing.T, lt *lab.Test, host string) []string {
	t.Helper()
	var doc smcrd.LinkGroupsR
	lt.Document(host, "smcr linkgroup --json", &doc)
	var ids []string
	for _, g := range doc.LinkGroups {
		ids = append(ids, g.ID)
	}
	return ids
}

// deleted deletes the link groups of a host with our module, as an operator, while connections send. Both ends must get an
// error, the groups must end on both hosts, and new connections must form another group.
func deleted(t *testing.T, lt *lab.Test, host string) {
	address, sink := serve(t, lt, "sink", 5041)
	all := streams(t, lt, address, 3)
	defer lab.Kill(t, sink)
	ids := groupsOf(t, lt, host)
	if len(ids) == 0 {
		t.Fatal("there is no link group")
	}
	for _, id := range ids {
		if out := lt.Must(host, "smcr linkgroup delete --json "+id); !strings.Contains(out, `"changed": true`) {
			t.Errorf("delete: %s", out)
		}
	}
	fail(t, all)
	for _, h := range []string{"a", "b"} {
		if err := lt.Host(h).WaitFor(t.Context(), "test $(smcr linkgroup | grep -c .) = 0"); err != nil {
			t.Errorf("host %s still has a group: %v", h, err)
		}
	}
	if r := lt.Run(host, "smcr", "linkgroup", "delete", ids[0]); r.Code != 1 || !strings.Contains(r.Stderr, "link group not found") {
		t.Errorf("a group that is gone: %+v", r)
	}
	again, echo := serve(t, lt, "echo", 5042)
	defer lab.Kill(t, echo)
	works(t, lt, again)
}

// notDeleted checks that a host with the stock module refuses.
func notDeleted(t *testing.T, lt *lab.Test, host string) {
	r := lt.Run(host, "smcr", "linkgroup", "delete", "00000100")
	if r.Code != 1 || !strings.Contains(r.Stderr, "install smckit's module") || r.Stdout != "" {
		t.Errorf("the stock module: %+v", r)
	}
}

// deletes runs deleted or notDeleted on each host, depending on its module.
func deletes(t *testing.T, lt *lab.Test, modules [2]lab.Module) {
	for i, host := range []string{"a", "b"} {
		t.Run(fmt.Sprintf("host %s", host), func(t *testing.T) {
			if modules[i] == lab.ModuleOurs {
				deleted(t, lt, host)
			} else {
				notDeleted(t, lt, host)
			}
		})
	}
}

// TestGroupsEnd ends link groups between two of our hosts: by an operator, in both roles, and by switching a host off.
func TestGroupsEnd(t *testing.T) { eachKernel(t, groupsEnd) }

func groupsEnd(t *testing.T, kernel string) {
	ours := side{kernel, lab.ModuleOurs}
	lt := start(t, ours, ours)
	t.Run("deleted groups", func(t *testing.T) { deletes(t, lt, [2]lab.Module{lab.ModuleOurs, lab.ModuleOurs}) })
	t.Run("power off", func(t *testing.T) { powerOff(t, lt) })
}

// powerOff switches a host off whose connections have nothing left to send. Its peer notices at once, in both roles, without
// testing the links.
func powerOff(t *testing.T, lt *lab.Test) {
	for _, host := range []string{"a", "b"} {
		lt.Must(host, "sysctl -qw net.smc.smcr_testlink_time=0") // not restored, because a is switched off then
	}
	address, echo := serve(t, lt, "echo", 5043)
	defer lab.Kill(t, echo)
	back := lab.Addr4(0, 0) + ":5044"
	lt.Serve("a", "", "echo", back)
	for from, to := range map[string]string{"a": address, "b": back} {
		// It connects, by IPPROTO_SMC, and sends nothing.
		addr, port, _ := strings.Cut(to, ":")
		script := fmt.Sprintf("import socket; s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 256); s.connect((%q, %s)); s.recv(1)", addr, port)
		if _, err := lt.Host(from).Start(lab.Cmd{Argv: []string{"python3", "-c", script}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := lt.Host("b").WaitFor(t.Context(), "test $(smcss --state active | grep -c SMCR) = 2"); err != nil {
		t.Fatal(err)
	}
	lt.Must("b", "echo >/sys/kernel/tracing/trace")
	lt.PowerOff("a")
	if err := lt.Host("b").WaitFor(t.Context(), "test $(smcss --state active | grep -c SMCR) = 0"); err != nil {
		t.Fatal(err)
	}
	if out := lt.Must("b", "cat /sys/kernel/tracing/trace"); strings.Count(out, "DELETED") != 2 {
		t.Errorf("the links were not deleted by the host that was switched off:\n%s", out)
	}
}
