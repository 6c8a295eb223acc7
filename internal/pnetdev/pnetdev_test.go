// SPDX-License-Identifier: Apache-2.0

package pnetdev

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/smckit/smckit/pkg/pnet"
)

// TestSysfs looks for devices in a tree of files.
func TestSysfs(t *testing.T) {
	s := Sysfs{Root: t.TempDir()}
	if names, err := s.RDMA(); err != nil || len(names) > 0 {
		t.Errorf("no RDMA: %q, %v", names, err)
	}
	for _, dir := range []string{"class/infiniband/mlx4_0", "bus/pci/devices/0000:00:1f.0", "devices/loopback-ism"} {
		if err := os.MkdirAll(filepath.Join(s.Root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if names, err := s.RDMA(); err != nil || !cmp.Equal(names, []string{"mlx4_0"}) {
		t.Errorf("RDMA: %q, %v", names, err)
	}
	for name, want := range map[string]bool{"0000:00:1f.0": true, "0000:00:1e.0": false, "loopback-ism": true, "mlx4_0": false} {
		if got := s.Exists(name); got != want {
			t.Errorf("Exists(%q) = %v", name, got)
		}
	}
	if names, err := s.Interfaces(); err != nil || len(names) == 0 {
		t.Errorf("interfaces: %q, %v", names, err)
	}
	var _ Hardware = pnet.Sysfs{}
}
