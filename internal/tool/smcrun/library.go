// SPDX-License-Identifier: Apache-2.0

package smcrun

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// libraryName is the preload library's soname.
const libraryName = "libsmc-preload.so.1"

// libraryDirs are where the preload library may be, with own the directory of this program: beside it, where it has been
// built; in the lib directory that belongs to its bin directory; and where packages put libraries.
func libraryDirs(own string, bits int) []string {
	if bits == 32 {
		return []string{
			filepath.Join(own, "lib32"), filepath.Join(own, "../lib32"), filepath.Join(own, "../lib/i386-linux-gnu"),
			"/usr/local/lib32", "/usr/lib32", "/usr/lib/i386-linux-gnu",
		}
	}
	return []string{own, filepath.Join(own, "../lib"), filepath.Join(own, "../lib64"), "/usr/local/lib", "/usr/lib", "/usr/lib64"}
}

// findLibrary returns the path of the preload library.
func findLibrary(own string, bits int) (string, error) {
	dirs := libraryDirs(own, bits)
	for _, dir := range dirs {
		path := filepath.Join(dir, libraryName)
		if _, err := os.Stat(path); err != nil {
			continue
		}
		if strings.ContainsAny(path, ": \t\n") {
			return "", fmt.Errorf("%s: the path of a library to preload may not have blanks or colons: install it elsewhere", path)
		}
		return path, nil
	}
	return "", fmt.Errorf("%s for %d bits is not in %s or %s: 'make install' puts it there; or use --method seccomp", libraryName, bits,
		strings.Join(dirs[:len(dirs)-1], ", "), dirs[len(dirs)-1])
}

// preload appends a library to the list of those to preload, as smc-tools does: others come first.
func preload(list, library string) string {
	names := strings.FieldsFunc(list, func(r rune) bool { return r == ':' || r == ' ' })
	if slices.Contains(names, library) {
		return list
	}
	return strings.Join(append(names, library), ":")
}
