// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"regexp"
	"strings"
	"testing"
)

// TestStaticNames checks that a function's name in a stack trace belongs to one file of the module. hw_dibs.c and hw_ism.c are the same
// interface to two drivers, and a module has one of them.
func TestStaticNames(t *testing.T) {
	definition := regexp.MustCompile(`(?m)^static (?:[\w\s*]*[\s*])([a-z]\w*)\([^;{}]*\)[^;{}=]*\{`)
	files := map[string]string{}
	for _, file := range repoFiles(t) {
		if !strings.HasPrefix(file, "kernel/") || !strings.HasSuffix(file, ".c") || strings.HasSuffix(file, "/ism/hw_ism.c") {
			continue
		}
		for _, m := range definition.FindAllSubmatch(read(t, file), -1) {
			name := string(m[1])
			if other := files[name]; other != "" && other != file {
				t.Errorf("%s() is in %s and %s: name both by their topics", name, other, file)
			}
			files[name] = file
		}
	}
	if len(files) < 500 {
		t.Errorf("only %d static functions: the pattern is wrong", len(files))
	}
}
