// SPDX-License-Identifier: Apache-2.0

// Command specgen writes what is generated from the specifications in specs/: tables of the kernel module, tables and
// constants of the Go packages, and the parts of documents that stand between marks. specs/README.md says what comes
// from where.
//
//	specgen [-check] ROOT
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	check := flag.Bool("check", false, "write nothing; fail if a file is not what would be written")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: specgen [-check] ROOT")
		os.Exit(2)
	}
	stale, err := run(flag.Arg(0), *check)
	if err != nil {
		fmt.Fprintf(os.Stderr, "specgen: %v\n", err)
		os.Exit(1)
	}
	for _, file := range stale {
		fmt.Fprintf(os.Stderr, "specgen: %s is not what specs/ says: run 'make generate'\n", file)
	}
	if len(stale) > 0 {
		os.Exit(1)
	}
}

// tree is the repository: its files as they are, and as they are to be.
type tree struct {
	root  string
	files map[string][]byte
}

// generators write to a tree, each what comes from one specification.
var generators = []func(*tree) error{reasons, sysctl, genNetlink, diagNetlink, pnetNetlink, ownNetlink, policies, linkView, jsonDocs, release}

// run generates everything and writes what has changed, or with check returns the names of those files.
func run(root string, check bool) (stale []string, err error) {
	t := &tree{root: root, files: map[string][]byte{}}
	for _, generate := range generators {
		if err := generate(t); err != nil {
			return nil, err
		}
	}
	for name, want := range t.files {
		path := filepath.Join(root, name)
		got, err := os.ReadFile(path)
		if err == nil && bytes.Equal(got, want) {
			continue
		}
		if check {
			stale = append(stale, name)
		} else if err := os.WriteFile(path, want, 0o644); err != nil {
			return nil, err
		}
	}
	return stale, nil
}

// read returns the new content of a file so far.
func (t *tree) read(name string) ([]byte, error) {
	if b, ok := t.files[name]; ok {
		return b, nil
	}
	return os.ReadFile(filepath.Join(t.root, name))
}
