// SPDX-License-Identifier: Apache-2.0

//go:build linux

package preload

import (
	"debug/elf"
	"slices"
	"testing"
)

// checkLibrary checks the dynamic section of the library.
func checkLibrary(t *testing.T, path string) {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if needed, err := f.ImportedLibraries(); err != nil || len(needed) != 0 {
		t.Errorf("%s needs %q, %v", path, needed, err)
	}
	if name, err := f.DynString(elf.DT_SONAME); err != nil || !slices.Equal(name, []string{"libsmc-preload.so.1"}) {
		t.Errorf("%s has the soname %q, %v", path, name, err)
	}
	if flags, err := f.DynValue(elf.DT_FLAGS); err != nil || len(flags) != 1 || flags[0]&uint64(elf.DF_BIND_NOW) == 0 {
		t.Errorf("%s is not bound at once: %x, %v", path, flags, err)
	}
	symbols, err := f.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	var exported []string
	for _, s := range symbols {
		switch {
		case s.Section != elf.SHN_UNDEF:
			exported = append(exported, s.Name)
		case elf.ST_BIND(s.Info) != elf.STB_WEAK:
			t.Errorf("%s cannot do without %s", path, s.Name)
		}
	}
	slices.Sort(exported)
	if !slices.Equal(exported, []string{"connect", "listen", "socket"}) {
		t.Errorf("%s exports %q", path, exported)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_GNU_STACK && p.Flags&elf.PF_X != 0 {
			t.Errorf("%s wants an executable stack", path)
		}
	}
}
