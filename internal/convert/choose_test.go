// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// files creates programs of all kinds: scripts, and binaries made by compilers.
type files struct {
	dir string
	t   *testing.T
}

func newFiles(t *testing.T) *files { return &files{t.TempDir(), t} }

func (f *files) write(name, text string, perm os.FileMode) string {
	f.t.Helper()
	path := filepath.Join(f.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
	if err := os.Chmod(path, perm); err != nil {
		f.t.Fatal(err)
	}
	return path
}

// compile compiles a C program, or skips the test if there is no compiler.
func (f *files) compile(name string, flags ...string) string {
	f.t.Helper()
	if _, err := exec.LookPath("cc"); err != nil {
		f.t.Skip("no C compiler")
	}
	path := filepath.Join(f.dir, name)
	args := append([]string{"-x", "c", "-", "-o", path}, flags...)
	cmd := exec.CommandContext(f.t.Context(), "cc", args...)
	cmd.Stdin = strings.NewReader("int main(void) { return 0; }\nvoid _start(void) { main(); }\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		f.t.Fatalf("cc %q: %v\n%s", args, err, out)
	}
	return path
}

func none(string) (string, error) { return "", fs.ErrNotExist }

func TestChoose(t *testing.T) {
	f := newFiles(t)
	dynamic := f.compile("dynamic", "-nostartfiles")
	static := f.compile("static", "-nostdlib", "-static")
	staticPIE := f.compile("static-pie", "-nostdlib", "-static-pie")
	stripped := f.compile("stripped", "-nostdlib", "-static", "-s")
	goProgram, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := os.ReadFile(dynamic)
	if err != nil {
		t.Fatal(err)
	}
	foreign[18], foreign[19] = 0xba, 0xad // the machine
	look := func(name string) (string, error) {
		if path := map[string]string{"python3": dynamic, "go": goProgram}[name]; path != "" {
			return path, nil
		}
		return none(name)
	}
	for _, test := range []struct {
		path string
		want Choice
	}{
		{dynamic, Choice{Preload, 64, dynamic + " is dynamically linked"}},
		{static, Choice{Seccomp, 64, static + " is statically linked"}},
		{staticPIE, Choice{Seccomp, 64, staticPIE + " is statically linked"}},
		{stripped, Choice{Seccomp, 64, stripped + " is statically linked"}},
		{goProgram, Choice{Seccomp, 64, goProgram + " is a Go program"}},
		{f.write("foreign", string(foreign), 0o755), Choice{Seccomp, 0, f.dir + "/foreign is for another architecture"}},
		{f.write("script", "#!"+dynamic+"\n", 0o755), Choice{Preload, 64, dynamic + " is dynamically linked"}},
		{f.write("spaces", "#! \t"+static+" -x -y \nrest", 0o755), Choice{Seccomp, 64, static + " is statically linked"}},
		{f.write("nested", "#!"+f.dir+"/spaces", 0o755), Choice{Seccomp, 64, static + " is statically linked"}},
		{f.write("env", "#!/usr/bin/env python3\n", 0o755), Choice{Preload, 64, dynamic + " is dynamically linked"}},
		{f.write("env-S", "#!/usr/bin/env -S A=b go run\n", 0o755), Choice{Seccomp, 64, goProgram + " is a Go program"}},
		{f.write("text", "echo\n", 0o755), shell(t)},
		{f.write("empty", "", 0o755), shell(t)},
		{f.write("no-interpreter", "#! \n", 0o755), shell(t)},
		{f.write("binary", "\x00\x01", 0o755), Choice{Preload, 64, f.dir + "/binary is not an ELF file"}},
		{f.write("broken", "\x7fELF\x02\x01\x01", 0o755), Choice{Preload, 64, f.dir + "/broken is not an ELF file"}},
		{f.write("gone", "#!/no/such\n", 0o755), Choice{Preload, 64, "/no/such cannot be read, so its type is unknown"}},
		{f.write("loop", "#!"+f.dir+"/loop\n", 0o755), Choice{Preload, 64, f.dir + "/loop is not an ELF file"}},
	} {
		got, err := Choose(test.path, look)
		if err != nil || got != test.want {
			t.Errorf("%s: %+v, %v; want %+v", filepath.Base(test.path), got, err, test.want)
		}
	}
	if _, err := Choose(f.dir+"/none", none); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that does not exist: %v", err)
	}
}

// shell returns the choice for the shell of this machine.
func shell(t *testing.T) Choice {
	t.Helper()
	c, err := Choose(Shell, none)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestChooseLeavesPrivilegedProgramsAlone needs root to create programs that belong to other users.
func TestChooseLeavesPrivilegedProgramsAlone(t *testing.T) {
	if unix.Getuid() != 0 {
		t.Skip("needs root")
	}
	f := newFiles(t)
	program := f.compile("program", "-nostartfiles")
	for _, test := range []struct {
		uid, gid int
		mode     uint32
		want     Method
	}{
		{1, 0, 0o4755, None},
		{0, 0, 0o4755, Preload}, // belongs to root
		{1, 1, 0o755, Preload},
		{0, 1, 0o2755, None},
		{0, 1, 0o2745, Preload}, // without the x bit of the group, this bit means mandatory locking
		{0, 0, 0o2755, Preload},
	} {
		if err := os.Chown(program, test.uid, test.gid); err != nil {
			t.Fatal(err)
		}
		if err := unix.Chmod(program, test.mode); err != nil {
			t.Fatal(err)
		}
		if got, err := Choose(program, none); err != nil || got.Method != test.want {
			t.Errorf("%d:%d %o: %+v, %v", test.uid, test.gid, test.mode, got, err)
		}
	}
}

// FuzzInspect checks that arbitrary files cause neither a panic nor an invalid result.
func FuzzInspect(f *testing.F) {
	f.Add([]byte("#!/bin/sh -e\n"))
	f.Add([]byte("#!"))
	f.Add([]byte("\x7fELF\x02\x01\x01"))
	if own, err := os.Executable(); err == nil {
		if data, err := os.ReadFile(own); err == nil {
			f.Add(data[:min(len(data), 4096)])
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := inspect(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		if (file.Interpreter != "") != (file.Kind == KindScript) || strings.ContainsAny(file.Interpreter, " \t\n") {
			t.Errorf("%+v", file)
		}
	})
}

// TestGoWithoutSections inspects a Go program without a section table.
func TestGoWithoutSections(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	// Clear the offset of the table and the number of sections in the header of a 64-bit ELF file.
	clear(program[0x28:0x30])
	clear(program[0x3c:0x40])
	f, err := inspect(bytes.NewReader(program))
	if err != nil || f.Kind != KindGo {
		t.Errorf("%+v, %v", f, err)
	}
}
