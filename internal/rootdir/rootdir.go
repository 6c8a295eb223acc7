// SPDX-License-Identifier: Apache-2.0

// Package rootdir reads the files of a host below a root directory, which tests replace.
package rootdir

import (
	"os"
	"path/filepath"
	"strings"
)

// Dir is the root directory; "" means /.
type Dir string

// Path returns the path of a file below the root.
func (d Dir) Path(elem ...string) string {
	return filepath.Join(append([]string{"/", string(d)}, elem...)...)
}

// Text returns the content of a file without the white space around it, "" if it cannot be read.
func (d Dir) Text(elem ...string) string {
	b, err := os.ReadFile(d.Path(elem...))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// Exists reports whether a file exists.
func (d Dir) Exists(elem ...string) bool {
	_, err := os.Stat(d.Path(elem...))
	return err == nil
}
