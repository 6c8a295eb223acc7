// SPDX-License-Identifier: Apache-2.0

//go:build linux

package smctrace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	for line, want := range map[string]Event{
		// Recorded from our module and from the stock one of Linux 6.12.
		"         smcflow-411     [000] .....    41.117402: smc_fallback: sk=00000000d1f4b7ad client reason=0x03030000 peer=0x00000000": {
			Name: "smc_fallback", Fields: map[string]string{"sk": "00000000d1f4b7ad", "reason": "0x03030000", "peer": "0x00000000"}, Words: []string{"client"},
		},
		"     kworker/0:2-57      [000] .....    12.482910: smcr_link_down: lnk=000000002f3c lgr=00000000aa net=1 state=1 dev=rxe0 location=smcr_link_down_cond+0x3c/0x60 [smc]": {
			Name: "smcr_link_down", Fields: map[string]string{
				"lnk": "000000002f3c", "lgr": "00000000aa", "net": "1", "state": "1", "dev": "rxe0", "location": "smcr_link_down_cond+0x3c/0x60",
			}, Words: []string{"[smc]"},
		},
		"          <idle>-0       [001] ..s2.  1234.567890: smc_link_fail: link=00000101 NOT_SENT detail=12": {
			Name: "smc_link_fail", Fields: map[string]string{"link": "00000101", "detail": "12"}, Words: []string{"NOT_SENT"},
		},
		// A name of a thread that looks like a line, the number of a process, and no flags.
		"a-1 [0] 1.1: x: -7       ( 4242) [003] 99.000001: smc_link_add: link=00000102 server": {
			Name: "smc_link_add", Fields: map[string]string{"link": "00000102"}, Words: []string{"server"},
		},
		"               x-1       [000] ..... 1.0: empty: ": {Name: "empty", Fields: map[string]string{}},
		"# tracer: nop":          {},
		"CPU:1 [LOST 27 EVENTS]": {},
		"":                       {},
	} {
		got, ok := Parse(line)
		if diff := cmp.Diff(want, got); diff != "" || ok != (want.Name != "") {
			t.Errorf("%s: %v %s", line, ok, diff)
		}
	}
}

func TestLost(t *testing.T) {
	for line, want := range map[string]int{"CPU:1 [LOST 27 EVENTS]": 27, "CPU:0 [LOST 99999999999999999999 EVENTS]": 0, "               x-1 [000] 1.0: a: [LOST 1 EVENTS]": 0} {
		if got := Lost(line); got != want {
			t.Errorf("%s: %d", line, got)
		}
	}
}

// TestStaleInstances checks that only instances of processes that are gone are removed, and that a failed start leaves nothing.
func TestStaleInstances(t *testing.T) {
	d := &Dir{path: t.TempDir(), proc: t.TempDir(), fd: -1}
	stat := func(pid int, start string) {
		dir := filepath.Join(d.proc, fmt.Sprint(pid))
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf("%d (a) b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 %s 20\n", pid, start)
		if err := os.WriteFile(filepath.Join(dir, "stat"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	stat(10, "500")
	stat(11, "501")
	stat(os.Getpid(), "502")
	for _, name := range []string{"smckit-10-500", "smckit-11-500", "smckit-12-1", "smckit-x-1", "other", "smckit-13"} {
		if err := os.MkdirAll(filepath.Join(d.path, "instances", name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// This is no tracefs: the kernel does not make the files of an instance.
	if i, err := d.NewInstance("smc/smcr_link_down"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v, %v", i, err)
	}
	entries, err := os.ReadDir(filepath.Join(d.path, "instances"))
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if diff := cmp.Diff([]string{"other", "smckit-10-500", "smckit-13", "smckit-x-1"}, left); diff != "" {
		t.Error(diff)
	}
}

// TestIntegrationInstance reads an event of a real kernel, and checks that nothing is left of the instance.
func TestIntegrationInstance(t *testing.T) {
	if os.Getenv("SMCKIT_LAB") == "" {
		t.Skip("needs the tracer: runs in the lab's guests")
	}
	d, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	instances := filepath.Join(d.path, "instances")
	stale := filepath.Join(instances, "smckit-999999999-1")
	if err := os.Mkdir(stale, 0o700); err != nil {
		t.Fatal(err)
	}
	if i, err := d.NewInstance("smc/no_such_event"); !errors.Is(err, ErrNoEvents) {
		t.Fatalf("%v, %v", i, err)
	}
	i, err := d.NewInstance("smc/no_such_event", "sched/sched_process_exec")
	if err != nil || !slices.Equal(i.Events, []string{"sched/sched_process_exec"}) {
		t.Fatalf("%+v, %v", i, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if err := exec.CommandContext(ctx, "/bin/true").Run(); err != nil {
		t.Fatal(err)
	}
	err = i.Read(ctx, func(line string) {
		if e, ok := Parse(line); ok && e.Name == "sched_process_exec" && strings.HasSuffix(e.Fields["filename"], "/true") {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("reading ended with %v", err)
	}
	if err := i.Remove(); err != nil {
		t.Error(err)
	}
	if left, err := filepath.Glob(filepath.Join(instances, prefix+"*")); err != nil || left != nil {
		t.Errorf("left: %q, %v", left, err)
	}
}
