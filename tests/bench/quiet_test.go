// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// hostTime is the processor time of this machine in ticks since boot: the total, the busy part, and
// the part of this process and its children, which are the guests.
type hostTime struct{ all, busy, ours uint64 }

// elsewhere returns the share of the processors that other processes used since an earlier reading.
// If an emulated processor is delayed, those that wait for it lose whole time slices, so even a
// small share falsifies the figures.
func (t hostTime) elsewhere(before hostTime) float64 {
	others := float64(t.busy-before.busy) - float64(t.ours-before.ours)
	return max(0, others) / float64(t.all-before.all)
}

func readHostTime() (hostTime, error) {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return hostTime{}, err
	}
	t, err := parseHostTime(string(stat))
	if err != nil {
		return t, err
	}
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return t, err
	}
	for _, file := range files {
		// Processes may have ended meanwhile.
		if data, err := os.ReadFile(file); err == nil {
			pid, parent, ticks, err := parseProcessTime(string(data))
			if err != nil {
				return t, err
			}
			if pid == os.Getpid() || parent == os.Getpid() {
				t.ours += ticks
			}
		}
	}
	return t, nil
}

// parseHostTime parses /proc/stat. Time that the hypervisor took from this machine counts as busy.
func parseHostTime(stat string) (hostTime, error) {
	line, _, _ := strings.Cut(stat, "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return hostTime{}, fmt.Errorf("/proc/stat begins with %q", line)
	}
	var t hostTime
	for i, field := range fields[1:9] {
		n, err := strconv.ParseUint(field, 10, 64)
		if err != nil {
			return t, fmt.Errorf("/proc/stat: %w", err)
		}
		t.all += n
		if idle := i == 3 || i == 4; !idle {
			t.busy += n
		}
	}
	return t, nil
}

// parseProcessTime parses /proc/PID/stat. A program's name may contain blanks and brackets.
func parseProcessTime(stat string) (pid, parent int, ticks uint64, err error) {
	i := strings.LastIndex(stat, ")")
	fields := strings.Fields(stat[i+1:])
	if i < 0 || len(fields) < 13 {
		return 0, 0, 0, fmt.Errorf("no process: %q", stat)
	}
	var user, system uint64
	for _, f := range []struct {
		text string
		to   any
	}{{stat[:strings.Index(stat, " ")], &pid}, {fields[1], &parent}, {fields[11], &user}, {fields[12], &system}} {
		if _, err := fmt.Sscan(f.text, f.to); err != nil {
			return 0, 0, 0, fmt.Errorf("%q of %q: %w", f.text, stat, err)
		}
	}
	return pid, parent, user + system, nil
}

// watchHost returns a function that reports the share of this machine that other processes have
// used since the call of watchHost.
func watchHost(b *testing.B) (report func()) {
	b.Helper()
	before, err := readHostTime()
	if err != nil {
		b.Fatal(err)
	}
	return func() {
		after, err := readHostTime()
		if err != nil {
			b.Fatal(err)
		}
		share := after.elsewhere(before)
		b.ReportMetric(share, "elsewhere")
		if share > 0.1 && !*countedTime {
			b.Logf("%.0f%% of this machine's processors were busy elsewhere: these figures say little", 100*share)
		}
	}
}

func TestHostTime(t *testing.T) {
	got, err := parseHostTime("cpu  10 1 20 500 50 2 3 4 7 7\ncpu0 1 2 3\n")
	if want := (hostTime{all: 590, busy: 40}); got != want || err != nil {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	for _, bad := range []string{"", "cpu 1 2 3", "cpu0 1 2 3 4 5 6 7 8", "cpu 1 2 3 4 5 6 7 x"} {
		if _, err := parseHostTime(bad); err == nil {
			t.Errorf("%q was accepted as times", bad)
		}
	}
	pid, parent, ticks, err := parseProcessTime("12 (a (b) c) S 7 12 12 0 -1 4194560 1 2 3 4 100 23 5 6 20 0 1 0")
	if pid != 12 || parent != 7 || ticks != 123 || err != nil {
		t.Errorf("%d, %d, %d, %v", pid, parent, ticks, err)
	}
	for _, bad := range []string{"", "12 (a) S 7", "x (a) S 7 1 1 0 -1 4 1 2 3 4 100 23"} {
		if _, _, _, err := parseProcessTime(bad); err == nil {
			t.Errorf("%q was accepted as a process", bad)
		}
	}
	before, after := hostTime{100, 50, 40}, hostTime{300, 200, 170}
	if got := after.elsewhere(before); got != 0.1 {
		t.Errorf("%v of the processors were busy elsewhere", got)
	}
	if now, err := readHostTime(); err != nil || now.all < now.busy || now.busy == 0 {
		t.Errorf("%+v, %v", now, err)
	}
}
