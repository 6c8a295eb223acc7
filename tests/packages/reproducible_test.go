// SPDX-License-Identifier: Apache-2.0

//go:build linux

package packages

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/smckit/smckit/internal/lab"
	"github.com/smckit/smckit/internal/need"
)

// TestReproducible makes a release twice.
func TestReproducible(t *testing.T) {
	lab.Need(t)
	if !lab.Full() {
		t.Skip("compiles everything twice: set SMCKIT_FULL=1, or run 'make test-full'")
	}
	out := output(t, "make", "-s", "-C", "../..", "reproducible")
	if want := "two builds are the same"; !strings.Contains(out, want) {
		t.Errorf("%s", out)
	}
	fmt.Fprint(t.Output(), out)
}

// recipes are Makefile rules for releases of one file, by its name. Each depends on something outside of the sources.
var recipes = map[string]string{
	"directory": "pwd",
	"day":       "date +%j",
	"zone":      "date +%Z",
	"umask":     "umask",
	"locale":    "locale | grep COLLATE",
	"sources":   "stat -c %a file1",
	"modes":     "touch new; stat -c %a new",
	"home":      "echo $$HOME",
	"user":      "echo $$USER",
	"order":     "ls -U",
	"cache":     "go env GOCACHE",
	"random":    "cat /proc/sys/kernel/random/uuid",
}

// TestDifferences runs the script on releases that depend on the place and the way of the build, and on one that does not.
func TestDifferences(t *testing.T) {
	need.Programs(t, "git", "make", "go", "locale", "localedef")
	everything := "release:\n\tmkdir dist dist/below\n\techo same >dist/same; cat file* >dist/below/files\n"
	for _, name := range sorted(recipes) {
		everything += fmt.Sprintf("\t(%s) >dist/%s\n", recipes[name], name)
	}
	out, err := reproducible(t, everything)
	var found []string
	for line := range strings.Lines(out) {
		// diff names the files and then shows the lines.
		if strings.HasPrefix(line, "diff ") {
			found = append(found, filepath.Base(strings.TrimSpace(line)))
		}
	}
	want := sorted(recipes)
	if _, missing := os.Stat("/dev/shm"); missing != nil {
		want = slices.DeleteFunc(want, func(name string) bool { return name == "order" })
	}
	if diff := cmp.Diff(want, found); diff != "" || err == nil || !strings.Contains(out, "reproducible: two builds differ\n") {
		t.Errorf("%v (-want +got):\n%s\n%s", err, diff, out)
	}

	out, err = reproducible(t, "release:\n\tmkdir dist\n\tcat file* | tee dist/one >dist/two\n")
	if err != nil || !strings.Contains(out, "two builds are the same: 2 files\n") {
		t.Errorf("builds that are the same: %v\n%s", err, out)
	}
	for _, nothing := range []string{"mkdir dist", "true", "false"} {
		if out, err = reproducible(t, "release:\n\t"+nothing+"\n"); err == nil || strings.Contains(out, "the same") {
			t.Errorf("%s: a release of nothing: %s", nothing, out)
		}
	}
}

func sorted(m map[string]string) (names []string) {
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// reproducible runs the script in a repository with that Makefile and some files.
func reproducible(t *testing.T, makefile string) (string, error) {
	t.Helper()
	script, err := filepath.Abs("../../packaging/reproducible.sh")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files := map[string]string{"Makefile": makefile}
	for i := range 9 {
		files[fmt.Sprintf("file%d", i)] = fmt.Sprintln(i)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	output(t, "git", "-C", dir, "init", "-q")
	output(t, "git", "-C", dir, "add", ".")
	output(t, "git", "-C", dir, "-c", "user.name=n", "-c", "user.email=n@example.org", "commit", "-q", "-m", "all")
	cmd := exec.CommandContext(t.Context(), "sh", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "MAKEFLAGS=", "MAKE=make")
	out, err := cmd.CombinedOutput()
	return string(out), err
}
