// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// write creates files in a temporary directory.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(data), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestSources(t *testing.T) {
	dir := write(t, map[string]string{
		"Kbuild": "obj-m", "main.c": "main", "wire/clc.h": "clc", "wire/mod.c": "a source",
		"main.o": "", ".main.o.cmd": "", "smc.mod.c": "", "smc.mod": "", "smc.ko": "", "Module.symvers": "", "wire/clc.o": "",
		"modules.order": "", ".tmp_versions/x": "", "sub/.hidden": "",
	})
	src, err := readSources(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Kbuild", "main.c", "wire/clc.h", "wire/mod.c"}, src.names()); diff != "" {
		t.Error(diff)
	}
	k := &Kernel{Release: "6.1.0-1-amd64", Package: "6.1.5-1"}
	stamps := map[string]string{src.stamp(k, k.moduleFlags()): "itself"}
	for what, other := range map[string]struct {
		src sources
		k   *Kernel
	}{
		"another release": {src, &Kernel{Release: "6.1.0-2-amd64", Package: "6.1.5-1"}},
		"another version": {src, &Kernel{Release: "6.1.0-1-amd64", Package: "6.1.6-1"}},
		"a file more":     {sources{"Kbuild": src["Kbuild"], "main.c": src["main.c"], "wire/clc.h": src["wire/clc.h"]}, k},
		"another content": {sources{"Kbuild": src["Kbuild"], "main.c": []byte("Main"), "wire/clc.h": src["wire/clc.h"], "wire/mod.c": src["wire/mod.c"]}, k},
	} {
		stamp := other.src.stamp(other.k, other.k.moduleFlags())
		if same, ok := stamps[stamp]; ok {
			t.Errorf("%s has the stamp of %s", what, same)
		}
		stamps[stamp] = what
	}
}

// TestCopySources checks which files of an earlier build are kept.
func TestCopySources(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "work")
	src := sources{"main.c": []byte("one"), "wire/clc.c": []byte("clc")}
	object := filepath.Join(dir, "main.o")
	copyTo := func(root string) {
		t.Helper()
		if err := src.copyTo(dir, root); err != nil {
			t.Fatal(err)
		}
		for name, want := range src {
			if got, err := os.ReadFile(filepath.Join(dir, name)); string(got) != string(want) {
				t.Errorf("%s: %q, %v", name, got, err)
			}
		}
	}
	copyTo("root 1")
	if err := os.WriteFile(object, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Hour).Truncate(time.Second)
	for name := range src {
		if err := os.Chtimes(filepath.Join(dir, name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	src["main.c"] = []byte("two")
	copyTo("root 1")
	if st, err := os.Stat(filepath.Join(dir, "wire/clc.c")); err != nil || !st.ModTime().Equal(old) {
		t.Errorf("a file that did not change looks newer: %v", err)
	}
	if st, err := os.Stat(filepath.Join(dir, "main.c")); err != nil || st.ModTime().Equal(old) {
		t.Errorf("a file that changed looks older: %v", err)
	}
	if _, err := os.Stat(object); err != nil {
		t.Errorf("what was built is gone: %v", err)
	}
	delete(src, "wire/clc.c")
	copyTo("root 1")
	if _, err := os.Stat(filepath.Join(dir, "wire/clc.c")); !errors.Is(err, os.ErrNotExist) {
		t.Error("a file that is gone is still built")
	}
	if err := os.WriteFile(object, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	copyTo("root 2")
	if _, err := os.Stat(object); !errors.Is(err, os.ErrNotExist) {
		t.Error("what another compiler has built is still there")
	}
}

func TestCheckBuilt(t *testing.T) {
	k := &Kernel{Release: "6.1.0-1-amd64", Package: "6.1.5-1"}
	source := write(t, map[string]string{"main.c": "main"})
	src, err := readSources(source)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name  string
		built map[string]string
		says  string
	}{
		{"nothing built", nil, "no AF_SMC module built here for kernel 6.1.0-1-amd64: run 'make modules'"},
		{"interrupted", map[string]string{"smc.ko": ""}, "no AF_SMC module built here"},
		{"of other sources", map[string]string{stampFile: "another"}, "is not of these sources: run 'make modules'"},
		{"right", map[string]string{stampFile: src.stamp(k, k.moduleFlags())}, ""},
	} {
		err := k.checkBuilt(write(t, tc.built), source)
		if tc.says == "" && err == nil {
			continue
		}
		if tc.says == "" || err == nil || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.says)
		}
	}
}

// TestFindings parses real output of builds, shortened.
func TestFindings(t *testing.T) {
	for _, tc := range []struct {
		name, out, complaints string
		findings              bool
	}{
		{"silent", "make: Entering directory '/usr/src/x'\n  CC [M]  /build/error.o\n  LD [M]  /build/smc.ko\nmake: Leaving directory '/usr/src/x'\n", "", false},
		{
			"information", "  BTF [M] smc.ko\nSkipping BTF generation for smc.ko due to unavailability of vmlinux\n",
			"Skipping BTF generation for smc.ko due to unavailability of vmlinux", false,
		},
		{
			"compiler", "  CC [M]  main.o\nmain.c:3:5: error: no previous prototype for 'f' [-Werror=missing-prototypes]\n",
			"main.c:3:5: error: no previous prototype for 'f' [-Werror=missing-prototypes]", true,
		},
		{"modpost", "WARNING: modpost: missing MODULE_DESCRIPTION() in smc.o\n", "WARNING: modpost: missing MODULE_DESCRIPTION() in smc.o", true},
		{"undefined", "ERROR: modpost: \"no_such\" [/build/smc.ko] undefined!\n", "ERROR: modpost: \"no_such\" [/build/smc.ko] undefined!", true},
		{"a driver that no kernel has", "WARNING: modpost: \"ism_move\" [/build/smc.ko] undefined!\n" +
			"WARNING: modpost: \"dibs_register_client\" [smc.ko] undefined!\n", "", false},
		{"undefined, going on", "WARNING: modpost: \"no_such\" [smc.ko] undefined!\n", "WARNING: modpost: \"no_such\" [smc.ko] undefined!", true},
		{"objtool", "smc.o: warning: objtool: f() falls through to next function g()\n", "smc.o: warning: objtool: f() falls through to next function g()", true},
		{"sparse", "/build/main.c:19:28: warning: incorrect type\n", "/build/main.c:19:28: warning: incorrect type", true},
		{"the kernel's headers", "/usr/src/linux-headers-7.2/include/linux/x.h:1:2: warning: dereference\n" +
			"./include/linux/y.h:1:2: error: z\n../include/linux/y.h:1:2: warning: z\narch/x86/z.h:3:4: warning: z\n", "", false},
	} {
		if got := complaints(tc.out); got != tc.complaints {
			t.Errorf("%s: complaints %q, want %q", tc.name, got, tc.complaints)
		}
		if got := findings(tc.out); got != tc.findings {
			t.Errorf("%s: findings %v", tc.name, got)
		}
	}
}
