// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Gendocs generates manual pages and completion scripts from the commands.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/manual"
	"github.com/smckit/smckit/internal/tool"
	"github.com/smckit/smckit/internal/version"
	"github.com/spf13/cobra"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gendocs:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 3 && args[0] == "man":
		return writeManuals(args[1], args[2])
	case len(args) == 2 && args[0] == "completions":
		return writeCompletions(args[1])
	}
	return errors.New("usage: gendocs man WRITTEN DIR | gendocs completions DIR")
}

// trees returns the trees of all commands in an empty environment, so that the output is the same everywhere.
func trees() []*cobra.Command {
	var roots []*cobra.Command
	for _, t := range tool.All() {
		roots = append(roots, cli.Tree(t, &cli.Env{
			In: bytes.NewReader(nil), Out: io.Discard, Err: io.Discard, Getenv: func(string) string { return "" },
		}))
	}
	return roots
}

// writeManuals generates the pages, and copies those that are written by hand.
func writeManuals(written, dir string) error {
	date, err := sourceDate(os.Getenv("SOURCE_DATE_EPOCH"))
	if err != nil {
		return err
	}
	suite := manual.Suite{Version: version.Version, Date: date, Commands: trees(), Apart: []string{"smclab"}, Annotation: cli.PageAnnotation}
	pages, err := filepath.Glob(filepath.Join(written, "*.[1-9]"))
	if err != nil {
		return err
	}
	for _, file := range pages {
		name := filepath.Base(file)
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		suite.Written = append(suite.Written, name)
		if err := write(dir, manualPath(name), text); err != nil {
			return err
		}
	}
	for _, page := range suite.Pages() {
		if err := write(dir, manualPath(page.Name), []byte(page.Text)); err != nil {
			return err
		}
	}
	return nil
}

// manualPath returns the path at which man looks for a page.
func manualPath(name string) string { return filepath.Join("man"+name[len(name)-1:], name) }

// sourceDate returns the date of the sources. With today's date, two builds of the same sources would differ.
func sourceDate(epoch string) (time.Time, error) {
	n, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH=%q: set it to the date of the sources, in seconds since 1970", epoch)
	}
	return time.Unix(n, 0), nil
}

// writeCompletions generates a script for each command and shell, with the name that the shell looks for.
func writeCompletions(dir string) error {
	for _, root := range trees() {
		name := root.Name()
		for _, shell := range []struct {
			file     string
			generate func(io.Writer) error
		}{
			{"bash/" + name, func(w io.Writer) error { return root.GenBashCompletionV2(w, true) }},
			{"zsh/_" + name, root.GenZshCompletion},
			{"fish/" + name + ".fish", func(w io.Writer) error { return root.GenFishCompletion(w, true) }},
		} {
			var script bytes.Buffer
			if err := shell.generate(&script); err != nil {
				return fmt.Errorf("%s: %w", shell.file, err)
			}
			if err := write(dir, shell.file, script.Bytes()); err != nil {
				return err
			}
		}
	}
	return nil
}

func write(dir, name string, data []byte) error {
	file := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o644)
}
