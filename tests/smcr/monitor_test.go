// SPDX-License-Identifier: Apache-2.0

//go:build linux

package smcr

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/smckit/smckit/internal/lab"
	"golang.org/x/sys/unix"
)

// event is what `smckit monitor --json` prints about one.
type event struct {
	Object, Action, Device, Cause string
	LinkGroupID                   string `json:"linkgroup_id"`
}

// monitor is a `smckit monitor --json` that runs on a host.
type monitor struct {
	*lab.Process
	lines chan event
	// part is the beginning of a line, of which the rest has not arrived.
	part []byte
}

func startMonitor(t *testing.T, lt *lab.Test, host string, objects ...string) *monitor {
	t.Helper()
	m := &monitor{lines: make(chan event, 1000)}
	var err error
	m.Process, err = lt.Host(host).Start(lab.Cmd{Argv: append([]string{"smckit", "monitor", "--json"}, objects...), Stdout: m})
	if err != nil {
		t.Fatal(err)
	}
	// It subscribes to changes of interfaces (group 1 of protocol 0) after its first listing.
	const subscribed = `awk '$2 == 0 && $4 == "00000001" { found = 1 } END { exit !found }' /proc/net/netlink`
	if err := lt.Host(host).WaitFor(t.Context(), subscribed); err != nil {
		t.Fatalf("smckit monitor does not watch interfaces: %v", err)
	}
	return m
}

// Write takes output of the command.
func (m *monitor) Write(text []byte) (int, error) {
	m.part = append(m.part, text...)
	for {
		line, rest, whole := bytes.Cut(m.part, []byte("\n"))
		if !whole {
			return len(text), nil
		}
		m.part = slices.Clone(rest)
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			return 0, err
		}
		m.lines <- e
	}
}

// await waits until the command has printed all of some events, each as OBJECT ACTION, in any order, and returns them by that. An event that
// is named twice has to come twice.
func (m *monitor) await(t *testing.T, wanted ...string) map[string]event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), lab.Scale(30*time.Second))
	defer cancel()
	found := map[string]event{}
	for len(wanted) > 0 {
		select {
		case e := <-m.lines:
			t.Logf("%+v", e)
			name := e.Object + " " + e.Action
			if i := slices.Index(wanted, name); i >= 0 {
				wanted = slices.Delete(wanted, i, i+1)
				found[name] = e
			}
		case <-ctx.Done():
			t.Fatalf("smckit monitor does not print: %s", strings.Join(wanted, ", "))
		}
	}
	return found
}

// stop interrupts the command.
func (m *monitor) stop(t *testing.T) {
	t.Helper()
	if err := m.Signal(unix.SIGINT); err != nil {
		t.Fatal(err)
	}
	r, err := m.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r.Code != 128+int(unix.SIGINT) || r.Stderr != "" {
		t.Errorf("smckit monitor: %+v", r)
	}
}

// monitored has `smckit monitor` print what happens to a group while it gets a second link, loses that with its port, gets it back, and is
// deleted.
func monitored(t *testing.T, lt *lab.Test) {
	// Groups of tests before would take the connections.
	lt.Must("a", "for group in $(smcr linkgroup | awk 'NR > 1 { print $1 }'); do smcr linkgroup delete $group; done")
	for _, host := range []string{"a", "b"} {
		if err := lt.Host(host).WaitFor(t.Context(), "test $(smcr linkgroup | wc -l) -le 1"); err != nil {
			t.Fatal(err)
		}
		awaitPorts(t, lt, host)
	}
	m := startMonitor(t, lt, "a", "linkgroup", "link", "port")
	defer m.stop(t)
	address, sink := serve(t, lt, "sink", 5067)
	defer lab.Kill(t, sink)
	kept := keepIn(t, lt, "", address, 2)
	defer lab.Kill(t, kept)
	group := m.await(t, "linkgroup add", "link up", "link up")["linkgroup add"].LinkGroupID

	lt.Must("a", "ip link set eth1 down")
	lost := m.await(t, "port down", "link fail", "link delete", "linkgroup change")
	if e := lost["port down"]; e.Device != "rxe1" {
		t.Errorf("the port that went down: %+v", e)
	}
	if e := lost["link fail"]; e.Cause == "" || e.LinkGroupID != group {
		t.Errorf("the link of group %s that failed: %+v", group, e)
	}
	if e := lost["link delete"]; e.Device != "rxe1" || e.LinkGroupID != group {
		t.Errorf("the link of group %s that is gone: %+v", group, e)
	}

	lt.Must("a", "ip link set eth1 up")
	m.await(t, "port up", "link up", "linkgroup change")
	lt.Must("a", "smcr linkgroup delete "+group)
	if e := m.await(t, "linkgroup delete", "link delete", "link delete")["linkgroup delete"]; e.LinkGroupID != group {
		t.Errorf("group %s that was deleted: %+v", group, e)
	}
}
