// SPDX-License-Identifier: Apache-2.0

//go:build linux

package fabric

import (
	"os"
	"strings"
	"testing"
)

// TestFault checks that memory that the host cannot provide is an error.
func TestFault(t *testing.T) {
	fd, err := createMemfd("test", false)
	if err != nil {
		t.Fatal(err)
	}
	m, err := mapMemory(os.NewFile(uintptr(fd), "test"), false)
	if err != nil {
		t.Fatal(err)
	}
	defer m.close()
	if err := m.setGID(0, 0); err == nil {
		t.Error("no error without memory")
	}
	if _, err := m.readEntry(0); err == nil {
		t.Error("no error without memory")
	}
}

func TestHugePages(t *testing.T) {
	c := testConfig()
	c.HugePages = true
	f, err := New(c)
	if err != nil {
		// The host of this test has none, mostly.
		if !strings.HasSuffix(err.Error(), "leave out hugepages") {
			t.Errorf("no remedy: %v", err)
		}
		return
	}
	if st := f.Status(); !st.HugePages {
		t.Errorf("%+v", st)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

func TestPageSize(t *testing.T) {
	for _, size := range []uint64{2 << 20, 256 << 20} {
		if err := checkPageSize(size, 2<<20); err != nil {
			t.Error(err)
		}
	}
	err := checkPageSize(256<<20, 1<<30)
	if want := "the host's huge pages have 1G, and 256M is no multiple of that: make the fabric 1G, or leave out hugepages"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
