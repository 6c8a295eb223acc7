// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"errors"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
)

// Kind is the kind of a program's file. It determines how the program can get AF_SMC sockets.
type Kind int

// Kinds of files.
const (
	// KindText has neither an ELF header nor a #! line. The kernel refuses to execute it, and shells interpret it themselves.
	KindText Kind = iota
	// KindBinary has a format that this package does not know, although the kernel may (binfmt_misc).
	KindBinary
	// KindScript has a #! line that names its interpreter.
	KindScript
	// KindDynamic is linked to the C library at run time, and makes its sockets with it.
	KindDynamic
	// KindStatic contains its C library, or uses none.
	KindStatic
	// KindGo was built by the Go compiler. It makes system calls without the C library, even if it is linked to one.
	KindGo
)

// File is the information in a program's file.
type File struct {
	Kind Kind
	// Bits is 32 or 64, for ELF files of this machine's architecture; 0 for others.
	Bits int
	// Interpreter and Argument are of a script's first line.
	Interpreter, Argument string
}

// Inspect reads a program's file.
func Inspect(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return inspect(f)
}

// firstLine is how much of a file the kernel reads to find out its format.
const firstLine = 256

func inspect(r io.ReaderAt) (*File, error) {
	head := make([]byte, firstLine)
	n, err := r.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	head = head[:n]
	switch {
	case bytes.HasPrefix(head, []byte("#!")):
		return script(head[2:]), nil
	case bytes.HasPrefix(head, []byte(elf.ELFMAG)):
		return inspectELF(r), nil
	case bytes.IndexByte(head, 0) >= 0:
		return &File{Kind: KindBinary}, nil
	}
	return &File{Kind: KindText}, nil
}

// script splits the first line of a script like the kernel: everything after the interpreter is one argument.
func script(line []byte) *File {
	if i := bytes.IndexByte(line, '\n'); i >= 0 {
		line = line[:i]
	}
	text := strings.Trim(string(line), " \t\r\x00")
	f := &File{Kind: KindScript, Interpreter: text}
	if i := strings.IndexAny(text, " \t"); i >= 0 {
		f.Interpreter, f.Argument = text[:i], strings.TrimLeft(text[i:], " \t")
	}
	if f.Interpreter == "" {
		f.Kind = KindText
	}
	return f
}

// machines lists, by GOARCH, the ELF machines whose programs run on this architecture.
var machines = map[string][]elf.Machine{
	"386":     {elf.EM_386, elf.EM_X86_64},
	"amd64":   {elf.EM_X86_64, elf.EM_386},
	"arm64":   {elf.EM_AARCH64, elf.EM_ARM},
	"ppc64le": {elf.EM_PPC64},
	"riscv64": {elf.EM_RISCV},
	"s390x":   {elf.EM_S390},
}

func inspectELF(r io.ReaderAt) *File {
	e, err := elf.NewFile(r)
	if err != nil {
		return &File{Kind: KindBinary}
	}
	f := &File{Kind: KindStatic}
	if slices.Contains(machines[runtime.GOARCH], e.Machine) {
		f.Bits = 32
		if e.Class == elf.ELFCLASS64 {
			f.Bits = 64
		}
	}
	for _, p := range e.Progs {
		if p.Type == elf.PT_INTERP {
			f.Kind = KindDynamic
		}
	}
	if isGo(r, e) {
		f.Kind = KindGo
	}
	return f
}

// isGo reports whether the Go linker has made a program, stripped or not. Programs of Go before 1.13, and programs whose build
// information was removed, are recognised by other sections of the linker.
func isGo(r io.ReaderAt, e *elf.File) bool {
	if _, err := buildinfo.Read(r); err == nil {
		return true
	}
	for _, name := range []string{".note.go.buildid", ".gopclntab"} {
		if e.Section(name) != nil {
			return true
		}
	}
	return false
}
