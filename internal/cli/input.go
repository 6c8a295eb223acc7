// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"
	"os"
)

// OpenInput opens the file that an argument names, or standard input for "-", which stays open when the result is closed.
// The errors are those of os.Open.
func (e *Env) OpenInput(name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(e.In), nil
	}
	return os.Open(name)
}

// InputName is the name in messages of what OpenInput opens.
func InputName(name string) string {
	if name == "-" {
		return "standard input"
	}
	return name
}
