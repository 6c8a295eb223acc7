// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/smckit/smckit/internal/need"
)

func TestLostOptions(t *testing.T) {
	fragment := "# CONFIG_ in a comment, is not set by it\nCONFIG_A=y\nCONFIG_B=m\n\nCONFIG_C=\"-text\"\n# CONFIG_D is not set\n# CONFIG_E is not set\n"
	for _, tc := range []struct {
		name, config string
		want         []string
	}{
		{"all there", "CONFIG_A=y\nCONFIG_B=m\nCONFIG_C=\"-text\"\n# CONFIG_D is not set\nCONFIG_F=y\n", nil},
		{"other values", "CONFIG_A=m\nCONFIG_B=y\nCONFIG_C=\"\"\n", []string{"CONFIG_A=y", "CONFIG_B=m", `CONFIG_C="-text"`}},
		{"not there", "CONFIG_C=\"-text\"\n", []string{"CONFIG_A=y", "CONFIG_B=m"}},
		{"set all the same", "CONFIG_A=y\nCONFIG_B=m\nCONFIG_C=\"-text\"\nCONFIG_D=m\n", []string{"# CONFIG_D is not set"}},
		{"not set", "# CONFIG_A is not set\nCONFIG_B=m\nCONFIG_C=\"-text\"\n", []string{"CONFIG_A=y"}},
	} {
		if diff := cmp.Diff(tc.want, lostOptions(fragment, tc.config)); diff != "" {
			t.Errorf("%s: %s", tc.name, diff)
		}
	}
	// The tests need these options.
	for _, option := range []string{"CONFIG_KASAN=y", "CONFIG_PROVE_LOCKING=y", "CONFIG_DEBUG_KMEMLEAK=y", "# CONFIG_SMC is not set"} {
		if !strings.Contains(debugConfig, "\n"+option+"\n") {
			t.Errorf("the debug kernel is without %s", option)
		}
	}
}

func TestParseLeaks(t *testing.T) {
	report := `unreferenced object 0xffff888004b6a000 (size 64):
  comm "modprobe", pid 100, jiffies 4294900000
  backtrace (crc 0):
    f+0x10
unreferenced object 0xffff888004b6a040 (size 32):
  comm "b", pid 101, jiffies 4294900001
`
	got := parseLeaks(report)
	if len(got) != 2 || !strings.Contains(got[0], "f+0x10") || !strings.Contains(got[1], `comm "b"`) || parseLeaks("") != nil {
		t.Errorf("%q", got)
	}
}

// fakeSourcePackage is an archive with one source package.
type fakeSourcePackage struct {
	source
	t       *testing.T
	fetched int
}

func (f *fakeSourcePackage) fetch(ctx context.Context, pkg, dir string, _ func(string)) (string, error) {
	f.fetched++
	root := write(f.t, map[string]string{
		"DEBIAN/control":             "Package: " + pkg + "\nVersion: 1\nArchitecture: all\nMaintainer: x <x@example.org>\nDescription: x\n",
		"content/" + pkg + "/Kbuild": "obj-y",
	})
	out := filepath.Join(root, "usr/src", pkg+".tar.xz")
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return "", err
	}
	if err := run(ctx, "tar", "-cJf", out, "-C", filepath.Join(root, "content"), pkg); err != nil {
		return "", err
	}
	deb := filepath.Join(dir, pkg+".deb")
	return deb, run(ctx, "dpkg-deb", "--build", "-Znone", root, deb)
}

// TestUnpackSource checks when an existing tree is used as it is, so that its build continues, and when it is unpacked
// again.
func TestUnpackSource(t *testing.T) {
	need.Programs(t, "dpkg-deb", "xz")
	dir := t.TempDir()
	tree := filepath.Join(dir, "tree_1")
	src := &fakeSourcePackage{t: t}
	unpack := func(fetched int) {
		t.Helper()
		if err := unpackSource(t.Context(), src, "linux-source-7.2", tree, func(s string) { t.Log(s) }); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(tree, "Kbuild")); string(got) != "obj-y" || src.fetched != fetched {
			t.Errorf("%q, %v; fetched %d times, want %d", got, err, src.fetched, fetched)
		}
	}
	// An interrupted run has left an incomplete tree.
	if err := os.MkdirAll(filepath.Join(tree+".new", "half"), 0o755); err != nil {
		t.Fatal(err)
	}
	unpack(1)
	if _, err := os.Stat(filepath.Join(tree, "half")); !errors.Is(err, os.ErrNotExist) {
		t.Error("what an interrupted run had unpacked got into the tree")
	}
	object := filepath.Join(tree, "vmlinux.o")
	if err := os.WriteFile(object, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	unpack(1)
	// After the kernel was built, the sources were deleted. If the kernel is then lost, the tree must be unpacked again.
	if err := os.WriteFile(filepath.Join(tree, builtFile), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	unpack(2)
	if _, err := os.Stat(object); !errors.Is(err, os.ErrNotExist) {
		t.Error("the tree is the old one")
	}
	if err := os.Mkdir(filepath.Join(dir, "tree_0"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := pruneTrees(dir, "tree_1"); err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) != 1 || left[0] != tree {
		t.Errorf("left in the cache: %q, %v", left, err)
	}
}

// TestOpenDebug checks that a debug kernel of another configuration is not taken for this one.
func TestOpenDebug(t *testing.T) {
	for version, good := range map[string]bool{"7.2.1-1+" + debugKey(): true, "7.2.1-1+00000000": false, "7.2.1-1": false} {
		dir := write(t, map[string]string{"k/" + description: `{"Release":"7.2.1-debug","Package":"` + version + `"}`})
		if err := pointTo(dir, "k"); err != nil {
			t.Fatal(err)
		}
		k, err := openDebug(dir)
		if good != (err == nil) || good && (!k.Debug() || k.Release != "7.2.1-debug") {
			t.Errorf("%s: %+v, %v", version, k, err)
		}
	}
}

func TestTestSeries(t *testing.T) {
	t.Setenv("SMCKIT_KERNELS", "")
	if diff := cmp.Diff(Series(), TestSeries()); diff != "" {
		t.Error(diff)
	}
	t.Setenv("SMCKIT_KERNELS", "6.1,"+DebugSeries)
	if diff := cmp.Diff([]string{"6.1", DebugSeries}, TestSeries()); diff != "" {
		t.Error(diff)
	}
}
