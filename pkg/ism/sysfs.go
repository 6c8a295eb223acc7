// SPDX-License-Identifier: Apache-2.0

package ism

import (
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	// maxFile is larger than any attribute that this package reads; the limit of sysfs is a page.
	maxFile = 4096
	// maxEntries limits the number of entries that are read from a directory. GID tables are the largest, with at most 1024
	// entries.
	maxEntries = 4096
)

// sysfs is a tree like /sys.
type sysfs string

func (fs sysfs) path(elem ...string) string {
	return filepath.Join(append([]string{string(fs)}, elem...)...)
}

// readFile returns the first maxFile bytes of a file, nil if it cannot be read.
func readFile(path string) []byte {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return nil
	}
	return data
}

// readText returns the first line of a file without blanks around it, "" if it cannot be read.
func readText(path string) string {
	line, _, _ := strings.Cut(string(readFile(path)), "\n")
	return strings.TrimSpace(line)
}

// readUint returns the number in a file, decimal or with a prefix 0x. bits is the width that it must fit in.
func readUint(path string, bits int) (uint64, bool) {
	n, err := strconv.ParseUint(readText(path), 0, bits)
	return n, err == nil
}

// optional returns the number in a file, or nil.
func optional[T uint8 | uint16 | uint32](path string, bits int) *T {
	n, ok := readUint(path, bits)
	if !ok {
		return nil
	}
	v := T(n)
	return &v
}

// list returns the names in a directory, sorted, none if it cannot be read.
func list(dir string) []string {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	names, _ := f.Readdirnames(maxEntries)
	sortNames(names)
	return names
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// linkName returns the last element of the target of a symbolic link, "" if there is no link.
func linkName(path string) string {
	target, err := os.Readlink(path)
	if err != nil {
		return ""
	}
	return filepath.Base(target)
}

// afterColon returns the text after the number in attributes such as "4: ACTIVE", "" if there is none.
func afterColon(s string) string {
	_, word, _ := strings.Cut(s, ":")
	return strings.TrimSpace(word)
}
