// SPDX-License-Identifier: Apache-2.0

package smcrun

import (
	"debug/elf"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/smckit/smckit/internal/remedy"
)

// libraryName is the preload library's soname.
const libraryName = "libsmc-preload.so.1"

// multiarch is Debian's directory below lib for the libraries of this architecture.
var multiarch = map[string]string{
	"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu", "ppc64le": "powerpc64le-linux-gnu", "riscv64": "riscv64-linux-gnu",
	"s390x": "s390x-linux-gnu",
}[runtime.GOARCH]

// libraryDirs lists the directories that may contain the preload library: own, the directory of this program, which has it
// after a build; the lib directories next to own if own is a bin directory; and those of packages below prefixes.
func libraryDirs(own string, prefixes []string, bits int) []string {
	dirs, inLib := []string{own}, []string{"lib", filepath.Join("lib", multiarch), "lib64"}
	if bits == 32 {
		// On systems with 64-bit libraries in lib64, lib contains the 32-bit ones.
		dirs, inLib = []string{filepath.Join(own, "lib32")}, []string{"lib32", "lib/i386-linux-gnu", "lib"}
	}
	for _, prefix := range append([]string{filepath.Dir(own)}, prefixes...) {
		for _, dir := range inLib {
			if dir = filepath.Join(prefix, dir); !slices.Contains(dirs, dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	return dirs
}

// findLibrary returns the path of the preload library.
func findLibrary(own string, prefixes []string, bits int) (string, error) {
	dirs := libraryDirs(own, prefixes, bits)
	for _, dir := range dirs {
		path := filepath.Join(dir, libraryName)
		if _, err := os.Stat(path); err != nil || otherBits(path, bits) {
			continue
		}
		if strings.ContainsAny(path, ": \t\n") {
			return "", remedy.Errorf("install it elsewhere", "%s: the path of a preload library must not contain blanks or colons", path)
		}
		return path, nil
	}
	return "", remedy.Errorf("install the package libsmc-preload, or run 'make install', or use --method seccomp", "%s for %d bits is not in %s or %s", libraryName, bits, strings.Join(dirs[:len(dirs)-1], ", "), dirs[len(dirs)-1])
}

// otherBits reports whether a library is for programs of another word size. /usr/lib contains 64-bit libraries on some systems
// and 32-bit ones on others.
func otherBits(path string, bits int) bool {
	file, err := elf.Open(path)
	if err != nil {
		return false // the loader will report what is wrong with it
	}
	defer file.Close()
	return (file.Class == elf.ELFCLASS32) != (bits == 32)
}

// preload appends a library to the value of LD_PRELOAD, after the others, as smc-tools does.
func preload(list, library string) string {
	names := strings.FieldsFunc(list, func(r rune) bool { return r == ':' || r == ' ' })
	if slices.Contains(names, library) {
		return list
	}
	return strings.Join(append(names, library), ":")
}
