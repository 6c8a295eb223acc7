// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
)

// Method is a way to give a program AF_SMC sockets.
type Method string

// Methods.
const (
	// Preload loads a library before the C library. It makes AF_SMC sockets when the program asks for TCP sockets.
	Preload Method = "preload"
	// Seccomp starts a supervisor that answers the program's system calls.
	Seccomp Method = "seccomp"
	// None does not change the program, because both methods would break it or have no effect.
	None Method = "none"
)

// Choice is the method for a program.
type Choice struct {
	Method Method
	// Bits is 64, or 32 for a program that needs the library for 32 bits.
	Bits int
	// Why explains the choice for messages.
	Why string
}

// mostInterpreters is how often an interpreter may be a script itself. The kernel has the same limit.
const mostInterpreters = 4

// Choose inspects the program at path, or its interpreter if it is a script, and chooses the method. look finds a program by
// its name; Choose uses it for scripts whose first line calls env(1). It returns only errors of the program itself. The kernel
// will report errors of an interpreter.
func Choose(path string, look func(name string) (string, error)) (Choice, error) {
	f, err := Inspect(path)
	if err != nil && !errors.Is(err, fs.ErrPermission) {
		return Choice{}, err
	}
	for range mostInterpreters {
		if err != nil || (f.Kind != KindScript && f.Kind != KindText) {
			break
		}
		path = interpreter(f, look)
		f, err = Inspect(path)
	}
	if gains, gerr := GainsPrivilege(path); gerr == nil && gains {
		return Choice{None, 0, path + " gains privileges when it starts (set-user-ID, set-group-ID or file capabilities)"}, nil
	}
	if err != nil {
		return Choice{Preload, 64, path + " cannot be read, so its type is unknown"}, nil
	}
	return choose(path, f), nil
}

func choose(path string, f *File) Choice {
	switch {
	case f.Kind == KindGo:
		return Choice{Seccomp, f.Bits, path + " is a Go program"}
	case f.Kind == KindStatic:
		return Choice{Seccomp, f.Bits, path + " is statically linked"}
	case f.Kind == KindDynamic && f.Bits == 0:
		return Choice{Seccomp, f.Bits, path + " is for another architecture"}
	case f.Kind == KindDynamic:
		return Choice{Preload, f.Bits, path + " is dynamically linked"}
	}
	return Choice{Preload, 64, path + " is not an ELF file"}
}

// interpreter returns the program that will run a script.
func interpreter(f *File, look func(string) (string, error)) string {
	if f.Kind == KindText {
		return Shell
	}
	if filepath.Base(f.Interpreter) != "env" {
		return f.Interpreter
	}
	for word := range strings.FieldsSeq(f.Argument) {
		if strings.HasPrefix(word, "-") || strings.Contains(word, "=") {
			continue // skip options such as -S, and variables
		}
		if path, err := look(word); err == nil {
			return path
		}
		break
	}
	return f.Interpreter
}

// Shell is the program that runs a script without a #! line.
const Shell = "/bin/sh"
