// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
)

// releaseSource defines the release number.
const releaseSource = "internal/version/version.go"

// releaseUsers are the lines elsewhere that have it, with the number as the second group.
var releaseUsers = []struct {
	file string
	line *regexp.Regexp
}{
	{"kernel/dkms.conf", regexp.MustCompile(`(?m)^(PACKAGE_VERSION=")([^"]*)`)},
	{"ansible/galaxy.yml", regexp.MustCompile(`(?m)^(version: )(.*)`)},
	{"README.md", regexp.MustCompile(`(dist/[a-z-]+_)([0-9][0-9.]*)`)},
}

// release writes the release number of internal/version to files that tools other than Go read.
func release(t *tree) error {
	source, err := t.read(releaseSource)
	if err != nil {
		return err
	}
	m := regexp.MustCompile(`(?m)^var Version = "(.*)"$`).FindSubmatch(source)
	if m == nil {
		return fmt.Errorf("%s defines no Version", releaseSource)
	}
	for _, u := range releaseUsers {
		text, err := t.read(u.file)
		if err != nil {
			return err
		}
		if !u.line.Match(text) {
			return fmt.Errorf("%s is without a line that matches %s", u.file, u.line)
		}
		t.files[u.file] = u.line.ReplaceAll(text, []byte("${1}"+string(m[1])))
	}
	return nil
}
