// SPDX-License-Identifier: Apache-2.0

package smcss

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/smckit/smckit/internal/cli"
)

func TestScanProcesses(t *testing.T) {
	root := testProc(t)
	for name, tc := range map[string]struct {
		inodes []uint64
		want   map[uint64][]process
	}{
		"none":       {nil, map[uint64][]process{}},
		"not open":   {[]uint64{1, 2, 3}, map[uint64][]process{}},
		"a pipe":     {[]uint64{0}, map[uint64][]process{0: {{77, "?", 3}}}},
		"unsorted":   {[]uint64{45681, 999, 45681}, map[uint64][]process{999: {{12, "iperf3", 4}}, 45681: {{77, "?", 1}}}},
		"one shared": {[]uint64{45671}, map[uint64][]process{45671: {{9, "a\"b \xff\x1b[1m", 7}, {12, "iperf3", 3}, {12, "iperf3", 10}}}},
	} {
		got, err := scanProcesses(context.Background(), root, tc.inodes)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestScanLargeProcess has more descriptors than are read at once.
func TestScanLargeProcess(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "5", "fd")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var inodes []uint64
	for fd := range 3*dirBatch + 1 {
		if err := os.Symlink(fmt.Sprintf("socket:[%d]", 1000+fd), filepath.Join(dir, fmt.Sprint(fd))); err != nil {
			t.Fatal(err)
		}
		inodes = append(inodes, uint64(1000+fd))
	}
	got, err := scanProcesses(context.Background(), root, inodes)
	if err != nil {
		t.Fatal(err)
	}
	for fd, inode := range inodes {
		if diff := cmp.Diff([]process{{5, "?", fd}}, got[inode]); diff != "" {
			t.Fatalf("inode %d (-want +got):\n%s", inode, diff)
		}
	}
}

func TestScanFails(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := scanProcesses(ctx, testProc(t), []uint64{1}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}

	h := newHarness(t, &fakeSource{sockets: testSockets()})
	if status := h.run("-p"); status != cli.ExitFailure || h.out.Len() > 0 {
		t.Errorf("no procfs: exit status %d, standard output %q", status, &h.out)
	}
	checkOneLine(t, h.err.String(), "--processes needs a procfs: open testdata/no-proc: no such file or directory")
}
