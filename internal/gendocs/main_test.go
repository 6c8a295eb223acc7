// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/smckit/smckit/internal/cli"
	"github.com/spf13/cobra"
)

// generate generates all manuals or all completions, and returns the files by their names.
func generate(t *testing.T, args ...string) map[string]string {
	t.Helper()
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	dir := t.TempDir()
	if err := run(append(args, dir)); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		files[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// commands lists the directories of cmd/.
func commands(t *testing.T) []string {
	t.Helper()
	dirs, err := os.ReadDir("../../cmd")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, d := range dirs {
		names = append(names, d.Name())
	}
	return names
}

// TestManuals checks that every command has a page with all sections, and that references exist.
func TestManuals(t *testing.T) {
	pages := generate(t, "man", "../../man")
	for _, name := range commands(t) {
		if pages["man8/"+name+".8"] == "" {
			t.Errorf("%s has no manual page", name)
		}
	}
	for _, name := range []string{"man7/af_smc.7", "man5/smc_pnet.conf.5", "man8/smcr-linkgroup.8", "man8/smcd-stats.8", "man8/smc_pnet-apply.8"} {
		if pages[name] == "" {
			t.Errorf("no page %s", name)
		}
	}
	reference := regexp.MustCompile(`\.BR ([a-z_.\\-]+) \(([578])\)|\\fB([a-z_\\-]+)\\fR\(([578])\)`)
	foreign := []string{"socket.7", "ip.7", "ipv6.7", "tcp.7", "tc.8"}
	for name, text := range pages {
		sections := []string{"NAME", "SYNOPSIS", "DESCRIPTION", "SEE ALSO"}
		if strings.HasPrefix(name, "man8") {
			sections = append(sections, "OPTIONS", "EXIT STATUS")
		}
		for _, s := range sections {
			if !strings.Contains(strings.ReplaceAll(text, `"`, ""), "\n.SH "+s+"\n") {
				t.Errorf("%s: no section %s", name, s)
			}
		}
		for _, m := range reference.FindAllStringSubmatch(text, -1) {
			page, section := strings.ReplaceAll(m[1]+m[3], `\`, ""), m[2]+m[4]
			if pages["man"+section+"/"+page+"."+section] == "" && !slices.Contains(foreign, page+"."+section) {
				t.Errorf("%s refers to %s(%s), which is not there", name, page, section)
			}
		}
	}
}

// TestManualsAreComplete checks that a page contains all words of the help.
func TestManualsAreComplete(t *testing.T) {
	pages := generate(t, "man", "../../man")
	for _, root := range trees() {
		for _, cmd := range append(root.Commands(), root) {
			if !cmd.IsAvailableCommand() {
				continue
			}
			if of := cmd.Annotations[cli.PageAnnotation]; of != "" && of != strings.ReplaceAll(cmd.CommandPath(), " ", "-") {
				if pages["man8/"+of+".8"] == "" {
					t.Errorf("%s has no page %s", cmd.CommandPath(), of)
				}
				continue // the words are those of that page
			}
			page := pages["man8/"+strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".8"]
			have := map[string]int{}
			for _, w := range strings.FieldsFunc(plain(page), notWord) {
				have[strings.ToUpper(w)]++
			}
			want := map[string]int{}
			for _, w := range strings.FieldsFunc(cmd.Long+" "+cmd.Example, notWord) {
				want[strings.ToUpper(w)]++
			}
			for w, n := range want {
				if have[w] < n {
					t.Errorf("%s: %q is %d times in the help, and %d times in the page", cmd.CommandPath(), w, n, have[w])
				}
			}
		}
	}
}

// plain removes the formatting of a page.
func plain(roff string) string {
	return strings.NewReplacer(`\fB`, "", `\fI`, "", `\fR`, "", `\-`, "-", `\&`, "", `\ `, " ", `\e`, `\`, `\(aq`, "'", `\(dq`, `"`, `\(ti`, "~", `\(ha`, "^",
		"...", " ").Replace(roff)
}

// notWord reports whether a character separates words. Characters of options and names do not.
func notWord(r rune) bool { return strings.ContainsRune(" \n.,:;()[]{}'\"…|", r) }

// TestManualsAreClean checks the pages with mandoc, like 'make lint'.
func TestManualsAreClean(t *testing.T) {
	if _, err := exec.LookPath("mandoc"); err != nil {
		t.Skip("mandoc is not installed")
	}
	for name, text := range generate(t, "man", "../../man") {
		lint := exec.Command("mandoc", "-Tlint", "-Wwarning")
		lint.Stdin = strings.NewReader(text)
		if out, err := lint.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// TestReproducible checks that pages do not depend on the time and place of the build.
func TestReproducible(t *testing.T) {
	first := generate(t, "man", "../../man")
	t.Setenv("HOME", "/elsewhere")
	t.Setenv("TZ", "Pacific/Kiritimati")
	t.Setenv("COLUMNS", "40")
	if diff := cmp.Diff(first, generate(t, "man", "../../man")); diff != "" {
		t.Errorf("two runs differ: %s", diff)
	}
	for name, text := range first {
		if strings.HasPrefix(name, "man8") && !strings.Contains(text, " 2023-11-14 ") {
			t.Errorf("%s: the date is not SOURCE_DATE_EPOCH", name)
		}
	}
}

func TestNoDate(t *testing.T) {
	for _, epoch := range []string{"", "today", "1.5"} {
		t.Setenv("SOURCE_DATE_EPOCH", epoch)
		if err := run([]string{"man", "../../man", t.TempDir()}); err == nil || !strings.Contains(err.Error(), "SOURCE_DATE_EPOCH") {
			t.Errorf("SOURCE_DATE_EPOCH=%q: %v", epoch, err)
		}
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{nil, {"man"}, {"man", "x"}, {"completions"}, {"info", "x"}} {
		if err := run(args); err == nil || !strings.HasPrefix(err.Error(), "usage:") {
			t.Errorf("%q: %v", args, err)
		}
	}
}

// TestCompletions checks that every command has a script for every shell, under the name that the shell looks for, and that
// the shells can read them.
func TestCompletions(t *testing.T) {
	scripts := generate(t, "completions")
	names := commands(t)
	if want := 3 * len(names); len(scripts) != want {
		t.Errorf("%d scripts, want %d", len(scripts), want)
	}
	for _, name := range names {
		for shell, file := range map[string]string{"bash": "bash/" + name, "zsh": "zsh/_" + name, "fish": "fish/" + name + ".fish"} {
			text := scripts[file]
			if !strings.Contains(text, cobra.ShellCompRequestCmd) || !strings.Contains(text, name) {
				t.Errorf("%s: no completion script for %s", file, name)
				continue
			}
			if _, err := exec.LookPath(shell); err != nil {
				continue
			}
			check := exec.Command(shell, "-n")
			check.Stdin = strings.NewReader(text)
			if out, err := check.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", file, err, out)
			}
		}
		// zsh expects a function with the name of the file.
		if want := "#compdef " + name + "\n"; !strings.HasPrefix(scripts["zsh/_"+name], want) || !strings.Contains(scripts["zsh/_"+name], "\n_"+name+"()\n") {
			t.Errorf("zsh/_%s: autoload cannot use it", name)
		}
	}
}

// TestManualsReferToInstalledFiles checks that no page names a file of the repository, which packages do not contain.
func TestManualsReferToInstalledFiles(t *testing.T) {
	pages := generate(t, "man", "../../man")
	if len(pages) < 20 {
		t.Fatalf("%d pages", len(pages))
	}
	for name, text := range pages {
		if m := regexp.MustCompile(`\b[a-zA-Z_/-]+\.md\b`).FindString(strings.ReplaceAll(text, `\-`, "-")); m != "" {
			t.Errorf("%s refers to %s", name, m)
		}
	}
}
