// SPDX-License-Identifier: Apache-2.0

//go:build linux

package control

import (
	"debug/elf"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/smckit/smckit/internal/lab"
)

// TestStatic checks that the commands need nothing but a kernel: no dynamic linker, no library.
func TestStatic(t *testing.T) {
	lab.Need(t)
	dir, err := lab.Commands(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	commands, err := os.ReadDir("../../cmd")
	if err != nil || len(commands) < 7 {
		t.Fatalf("%d commands, error %v", len(commands), err)
	}
	for _, c := range commands {
		f, err := elf.Open(filepath.Join(dir, c.Name()))
		if err != nil {
			t.Error(err)
			continue
		}
		if slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC }) {
			t.Errorf("%s is linked dynamically", c.Name())
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}
