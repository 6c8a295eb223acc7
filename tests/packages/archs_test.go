// SPDX-License-Identifier: Apache-2.0

//go:build linux

package packages

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/smckit/smckit/internal/lab"
	"github.com/smckit/smckit/internal/need"
	"github.com/smckit/smckit/internal/version"
)

// architecture is how packages and programs name an architecture.
type architecture struct {
	deb, rpm, triplet string
	machine           elf.Machine
	order             elf.Data
}

var (
	native  = architecture{"amd64", "x86_64", "x86_64-linux-gnu", elf.EM_X86_64, elf.ELFDATA2LSB}
	foreign = []architecture{
		{"arm64", "aarch64", "aarch64-linux-gnu", elf.EM_AARCH64, elf.ELFDATA2LSB},
		{"s390x", "s390x", "s390x-linux-gnu", elf.EM_S390, elf.ELFDATA2MSB},
	}
)

// TestArchitectures compares the packages for other architectures with those for this machine's, and looks at the programs in them. In full
// runs, it builds a release.
func TestArchitectures(t *testing.T) {
	need.Programs(t, "dpkg-deb", "rpm")
	if runtime.GOARCH != native.deb {
		t.Skip("names are those of amd64")
	}
	lab.Need(t)
	var archs []string
	for _, a := range foreign {
		lab.NeedCompiler(t, a.deb)
		archs = append(archs, a.deb)
	}
	here := build(t, version.Version)
	dir, target := t.TempDir(), "packages-all"
	if lab.Full() {
		target = "release-all"
	}
	output(t, "make", "-s", "-C", "../..", target, "ARCHS="+strings.Join(archs, " "), "VERSION="+version.Version, "DIST="+dir)

	v := version.Version + "-1"
	want := []string{"smckit-dkms_" + v + "_all.deb", "smckit-dkms-" + v + ".noarch.rpm"}
	if lab.Full() {
		want = append(want, "smckit-"+version.Version+".tar.gz", "SHA256SUMS")
	}
	for _, a := range foreign {
		for _, name := range []string{"libsmc-preload", "smckit", "smckit-ism"} {
			want = append(want, name+"_"+v+"_"+a.deb+".deb", name+"-"+v+"."+a.rpm+".rpm")
			t.Run(name+" deb for "+a.deb, func(t *testing.T) { compareDeb(t, here, dir, name+"_"+v, a) })
			t.Run(name+" rpm for "+a.rpm, func(t *testing.T) { compareRPM(t, here, dir, name+"-"+v, a) })
		}
		if commands := "smckit-" + version.Version + "-linux-" + a.deb; lab.Full() {
			want = append(want, commands+".tar.gz", commands+".cdx.json")
		}
		t.Run("programs for "+a.deb, func(t *testing.T) { checkPrograms(t, dir, v, a) })
	}
	slices.Sort(want)
	var got []string
	for _, file := range glob(t, dir, "*") {
		got = append(got, filepath.Base(file))
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("packages (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(readDeb(t, glob(t, here, "smckit-dkms_*.deb")[0]).files, readDeb(t, glob(t, dir, "smckit-dkms_*.deb")[0]).files); diff != "" {
		t.Errorf("sources of the modules (-%s +elsewhere):\n%s", native.deb, diff)
	}
}

// compareDeb compares a .deb for another architecture in the directory there with that for this machine's in the directory here.
func compareDeb(t *testing.T, here, there, name string, a architecture) {
	want, got := readDeb(t, filepath.Join(here, name+"_"+native.deb+".deb")), readDeb(t, filepath.Join(there, name+"_"+a.deb+".deb"))
	for i, line := range want.files {
		want.files[i] = strings.ReplaceAll(line, native.triplet, a.triplet)
	}
	want.fields["Architecture"] = a.deb
	// Programs have other sizes.
	delete(want.fields, "Installed-Size")
	delete(got.fields, "Installed-Size")
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(pkg{})); diff != "" {
		t.Errorf("as for %s (-), and it is (+):\n%s", native.deb, diff)
	}
}

// compareRPM does so with an .rpm.
func compareRPM(t *testing.T, here, there, name string, a architecture) {
	file := filepath.Join(there, name+"."+a.rpm+".rpm")
	want, got := readRPM(t, filepath.Join(here, name+"."+native.rpm+".rpm")), readRPM(t, file)
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(pkg{})); diff != "" {
		t.Errorf("as for %s (-), and it is (+):\n%s", native.rpm, diff)
	}
	if arch := output(t, "rpm", "-qp", "--nosignature", "--qf", "%{ARCH}", file); arch != a.rpm {
		t.Errorf("for %s", arch)
	}
}

// checkPrograms checks that the program and the library are for the architecture, in the .deb, and that the .rpm and the bill of materials of a release
// have the same.
func checkPrograms(t *testing.T, dir, v string, a architecture) {
	for _, p := range []struct{ name, deb, rpm string }{
		{"smckit", "/usr/bin/smckit", "/usr/bin/smckit"},
		{"libsmc-preload", "/usr/lib/" + a.triplet + "/libsmc-preload.so.1", "/usr/lib64/libsmc-preload.so.1"},
	} {
		data := debFile(t, filepath.Join(dir, p.name+"_"+v+"_"+a.deb+".deb"), p.deb)
		f, err := elf.NewFile(bytes.NewReader(data))
		if err != nil {
			t.Fatalf("%s: %v", p.deb, err)
		}
		if f.Machine != a.machine || f.Class != elf.ELFCLASS64 || f.Data != a.order {
			t.Errorf("%s is for %v, %v, %v", p.deb, f.Machine, f.Class, f.Data)
		}
		// Neither needs a C library.
		needed, err := f.ImportedLibraries()
		dynamic := slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP })
		if err != nil || len(needed) > 0 || dynamic {
			t.Errorf("%s needs %q or an interpreter: %v", p.deb, needed, err)
		}
		digest := fmt.Sprintf("%x", sha256.Sum256(data))
		digests := output(t, "rpm", "-qp", "--nosignature", "--qf", `[%{FILENAMES} %{FILEDIGESTS}\n]`, filepath.Join(dir, p.name+"-"+v+"."+a.rpm+".rpm"))
		if !strings.Contains(digests, p.rpm+" "+digest+"\n") {
			t.Errorf("not the same in the .rpm:\n%s", digests)
		}
		if !lab.Full() {
			continue
		}
		bill := glob(t, dir, "smckit-*-linux-"+a.deb+".cdx.json")[0]
		if text, err := os.ReadFile(bill); err != nil || !strings.Contains(string(text), digest) {
			t.Errorf("%s has not %s, %s: %v", bill, p.deb, digest, err)
		}
	}
}

// debFile returns the contents of a file in a .deb.
func debFile(t *testing.T, deb, name string) []byte {
	t.Helper()
	archive := tar.NewReader(strings.NewReader(output(t, "dpkg-deb", "--fsys-tarfile", deb)))
	for {
		head, err := archive.Next()
		if errors.Is(err, io.EOF) {
			t.Fatalf("%s has no %s", deb, name)
		}
		if err != nil {
			t.Fatalf("%s: %v", deb, err)
		}
		if head.Name == "."+name {
			data, err := io.ReadAll(archive)
			if err != nil {
				t.Fatal(err)
			}
			return data
		}
	}
}
