// SPDX-License-Identifier: Apache-2.0

//go:build linux

package packages

import (
	"debug/buildinfo"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/smckit/smckit/internal/need"
	"github.com/smckit/smckit/internal/version"
)

// TestRelease checks the other files of a release. Each must be usable without the others.
func TestRelease(t *testing.T) {
	need.Programs(t, "git", "tar", "sha256sum")
	packages := build(t, version.Version)
	dist := filepath.Join(t.TempDir(), "dist")
	output(t, "cp", "-r", packages, dist)
	output(t, "make", "-s", "-C", "../..", "-o", "packages", "release", "VERSION="+version.Version, "DIST="+dist)
	name := "smckit-" + version.Version

	// The checksums must cover all files.
	output(t, "sh", "-c", "cd '"+dist+"' && sha256sum --quiet --strict --check SHA256SUMS")
	sums, err := os.ReadFile(filepath.Join(dist, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	want, got := []string{"SHA256SUMS"}, []string{}
	for line := range strings.Lines(string(sums)) {
		want = append(want, strings.Fields(line)[1])
	}
	for _, file := range glob(t, dist, "*") {
		got = append(got, filepath.Base(file))
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("SHA256SUMS (-) and what is there (+): %s", diff)
	}

	// The archive must contain all sources of the last commit.
	archived := strings.Fields(output(t, "tar", "-tzf", filepath.Join(dist, name+".tar.gz")))
	archived = slices.DeleteFunc(archived, func(file string) bool { return strings.HasSuffix(file, "/") })
	var tracked []string
	for file := range strings.FieldsSeq(output(t, "git", "-C", "../..", "ls-tree", "-r", "--name-only", "HEAD")) {
		tracked = append(tracked, name+"/"+file)
	}
	if diff := cmp.Diff(tracked, archived); diff != "" {
		t.Errorf("sources (-commit +archive): %s", diff)
	}

	// The commands must run from the directory in which they are unpacked.
	dir := t.TempDir()
	output(t, "tar", "-C", dir, "-xzf", filepath.Join(dist, name+"-linux-"+runtime.GOARCH+".tar.gz"))
	tree := filepath.Join(dir, name+"-linux-"+runtime.GOARCH)
	for _, c := range commands(t) {
		if out := output(t, filepath.Join(tree, "bin", c), "--version"); !strings.Contains(out, version.Version) {
			t.Errorf("%s --version: %s", c, out)
		}
	}
	for _, pattern := range []string{"README.md", "Apache-2.0.txt", "lib/libsmc-preload.so.1", "share/man/man8/smcr.8", "share/zsh/site-functions/_smcr"} {
		glob(t, tree, pattern)
	}
	checkBill(t, filepath.Join(dist, name+"-linux-"+runtime.GOARCH+".cdx.json"), tree)
}

// bill has the checked fields of a bill of materials.
type bill struct {
	BOMFormat  string `json:"bomFormat"`
	Metadata   struct{ Component struct{ Version string } }
	Components []struct {
		Ref      string `json:"bom-ref"`
		Name     string
		Version  string
		Hashes   []struct{ Alg, Content string }
		Licenses []struct{ License struct{ ID string } }
	}
	Dependencies []struct {
		Ref       string
		DependsOn []string
	}
}

// checkBill compares a bill of materials with the files of a release and their own data.
func checkBill(t *testing.T, file, tree string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var b bill
	if err := json.Unmarshal(data, &b); err != nil {
		t.Fatal(err)
	}
	if b.BOMFormat != "CycloneDX" || b.Metadata.Component.Version != version.Version {
		t.Errorf("format %q, version %q", b.BOMFormat, b.Metadata.Component.Version)
	}
	licence, sum := map[string]string{}, map[string]string{}
	for _, c := range b.Components {
		if len(c.Licenses) > 0 {
			licence[c.Name] = c.Licenses[0].License.ID
		}
		if len(c.Hashes) > 0 {
			sum[c.Name] = c.Hashes[0].Alg + " " + c.Hashes[0].Content
		}
	}
	uses := map[string][]string{}
	for _, d := range b.Dependencies {
		uses[d.Ref] = d.DependsOn
	}
	ours := []string{"libsmc-preload.so.1", "smckit-dkms", "smckit"}
	for _, name := range ours {
		if !slices.Contains(uses["smckit"], name+"@"+version.Version) {
			t.Errorf("%s is not in the bill: %q", name, uses["smckit"])
		}
		want := "Apache-2.0"
		if name == "smckit-dkms" {
			want = "GPL-2.0-only"
		}
		if licence[name] != want {
			t.Errorf("%s: licence %q, not %s", name, licence[name], want)
		}
	}
	// The other commands are links to it.
	path := filepath.Join(tree, "bin/smckit")
	if want := "SHA-256 " + strings.Fields(output(t, "sha256sum", path))[0]; sum["smckit"] != want {
		t.Errorf("smckit: %s, not %s", sum["smckit"], want)
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go")}
	for _, m := range info.Deps {
		want = append(want, "pkg:golang/"+strings.ToLower(m.Path)+"@"+m.Version)
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, uses["smckit@"+version.Version]); diff != "" || len(want) < 3 {
		t.Errorf("smckit (-what it has in it +bill): %s", diff)
	}
}
