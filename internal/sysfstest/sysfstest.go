// SPDX-License-Identifier: Apache-2.0

// Package sysfstest creates trees of files for tests: of any files by Files, and trees like /sys from a compact text by Make.
//
// Each line of that text is one entry; paths are relative to the last line in brackets, and this one to the root:
//
//	# comment
//	[bus/pci/devices/0000:03:00.0]
//	vendor = 0x15b3            a file, with a newline at the end
//	empty =                    an empty file
//	driver -> ../../drivers/x  a symbolic link
//	util_string ~ NET1,,NET3   PNET IDs in EBCDIC, 16 bytes each, padded to 64
//	config : 100 06=10 34=40   100 bytes, which are zero except for those from these offsets on, all hexadecimal
//	net/eth0/                  a directory
package sysfstest

import (
	_ "embed"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Make creates the tree in a new temporary directory and returns the directory.
func Make(t testing.TB, text string) string {
	t.Helper()
	root := t.TempDir()
	dir := root
	for n, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if inner, ok := strings.CutPrefix(line, "["); ok {
			dir = filepath.Join(root, strings.TrimSuffix(inner, "]"))
			line = "./"
		}
		if err := entry(dir, line); err != nil {
			t.Fatalf("line %d: %v", n+1, err)
		}
	}
	return root
}

//go:embed testdata/s390x.sysfs
var s390x string

//go:embed testdata/x86.sysfs
var x86 string

// Files creates files in a temporary directory, which it returns, from their texts by path. "-> TARGET" is a symbolic link.
func Files(t testing.TB, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if target, ok := strings.CutPrefix(text, "-> "); ok {
			err = os.Symlink(target, path)
		} else {
			err = os.WriteFile(path, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// S390X creates the tree of an LPAR of IBM Z, which testdata/s390x.sysfs describes.
func S390X(t testing.TB) string {
	t.Helper()
	return Make(t, s390x)
}

// X86 creates the tree of a server with RDMA adapters of several kinds, which testdata/x86.sysfs describes.
func X86(t testing.TB) string {
	t.Helper()
	return Make(t, x86)
}

func entry(dir, line string) error {
	name, rest, _ := strings.Cut(line, " ")
	path := filepath.Join(dir, name)
	if strings.HasSuffix(name, "/") {
		return os.MkdirAll(path, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	op, value, _ := strings.Cut(strings.TrimSpace(rest), " ")
	value = strings.TrimSpace(value)
	switch op {
	case "=":
		if value != "" {
			value += "\n"
		}
		return os.WriteFile(path, []byte(value), 0o644)
	case "->":
		return os.Symlink(value, path)
	case "~":
		data, err := utilString(value)
		if err != nil {
			return err
		}
		return os.WriteFile(path, data, 0o644)
	case ":":
		data, err := sparse(value)
		if err != nil {
			return err
		}
		return os.WriteFile(path, data, 0o644)
	}
	return fmt.Errorf("%q is no entry", line)
}

// sparse returns the bytes that a size, and offsets with bytes, describe.
func sparse(text string) ([]byte, error) {
	size, rest, _ := strings.Cut(text, " ")
	n, err := strconv.ParseUint(size, 16, 16)
	if err != nil {
		return nil, err
	}
	out := make([]byte, n)
	for part := range strings.FieldsSeq(rest) {
		offset, digits, _ := strings.Cut(part, "=")
		at, err := strconv.ParseUint(offset, 16, 16)
		if err != nil {
			return nil, err
		}
		data, err := hex.DecodeString(digits)
		if err != nil || at+uint64(len(data)) > n {
			return nil, fmt.Errorf("%q: no bytes within %d", part, n)
		}
		copy(out[at:], data)
	}
	return out, nil
}

// utilString encodes PNET IDs like the firmware.
func utilString(ids string) ([]byte, error) {
	out := []byte(strings.Repeat("\x40", 64))
	for i, id := range strings.Split(ids, ",") {
		for j, c := range []byte(id) {
			b, ok := ebcdic(c)
			if !ok || j >= 16 || i >= 4 {
				return nil, fmt.Errorf("PNET IDs %q: at most 4 of 16 letters and digits", ids)
			}
			out[i*16+j] = b
		}
	}
	return out, nil
}

// ebcdic encodes letters and digits. EBCDIC has the letters in three ranges.
func ebcdic(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return 0xf0 + c - '0', true
	case c >= 'A' && c <= 'I':
		return 0xc1 + c - 'A', true
	case c >= 'J' && c <= 'R':
		return 0xd1 + c - 'J', true
	case c >= 'S' && c <= 'Z':
		return 0xe2 + c - 'S', true
	}
	return 0, false
}
