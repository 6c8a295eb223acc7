// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// crossLists are short package lists of suites, whose headers name their compiler in different ways.
var crossLists = map[string][]string{
	"6.1": {
		"Package: linux-headers-6.1.0-50-s390x:s390x\nVersion: 6.1.176-1\nDepends: linux-headers-6.1.0-50-common (= 6.1.176-1), " +
			"linux-kbuild-6.1 (>= 6.1.176-1), linux-compiler-gcc-12-s390\n",
	},
	"6.12": {
		"Package: linux-headers-6.12.1+deb13-s390x:s390x\nVersion: 6.12.1-1\nDepends: linux-base (>= 4.12~), " +
			"linux-headers-6.12.1+deb13-common (= 6.12.1-1), linux-image-6.12.1+deb13-s390x (= 6.12.1-1) | x, " +
			"linux-kbuild-6.12.1+deb13, gcc-14\n",
	},
	"7.2": {
		"Package: linux-headers-7.2.3+deb14-arm64-16k:arm64\nVersion: 7.2.3-1\nDepends: gcc-16-for-host, linux-base (>= 4.12~), " +
			"linux-headers-7.2.3+deb14-common (= 7.2.3-1), linux-kbuild-7.2.3+deb14\n",
	},
	"no compiler": {"Package: linux-headers-1-s390x:s390x\nVersion: 1\nDepends: make\n"},
	"nothing":     nil,
}

// crossList looks packages up, which a paragraph names without their architecture.
func crossList(name string) func(string) (*debian, error) {
	show := suite(crossLists[name]...)
	return func(name string) (*debian, error) {
		d, err := show(name)
		if err == nil {
			d.name, _, _ = strings.Cut(d.name, ":")
		}
		return d, err
	}
}

func TestFindHeaders(t *testing.T) {
	for _, tc := range []struct {
		list    string
		k       *Kernel
		want    []string
		missing bool // the archive lacks the headers, and not something else
	}{
		{
			list: "6.1", k: &Kernel{Arch: "s390x", Release: "6.1.0-50-s390x", Package: "6.1.176-1"},
			want: []string{"linux-headers-6.1.0-50-common=6.1.176-1", "linux-kbuild-6.1", "gcc-12-s390x-linux-gnu"},
		},
		{
			list: "6.12", k: &Kernel{Arch: "s390x", Release: "6.12.1+deb13-s390x", Package: "6.12.1-1"},
			want: []string{"linux-headers-6.12.1+deb13-common=6.12.1-1", "linux-kbuild-6.12.1+deb13", "gcc-14-s390x-linux-gnu"},
		},
		{
			list: "7.2", k: &Kernel{Arch: "arm64-16k", Release: "7.2.3+deb14-arm64-16k", Package: "7.2.3-1"},
			want: []string{"gcc-16-aarch64-linux-gnu", "linux-headers-7.2.3+deb14-common=7.2.3-1", "linux-kbuild-7.2.3+deb14"},
		},
		{list: "6.12", k: &Kernel{Arch: "s390x", Release: "6.12.1+deb13-s390x", Package: "6.12.1-2"}, missing: true},
		{list: "6.12", k: &Kernel{Arch: "s390x", Release: "6.12.0+deb13-s390x", Package: "6.12.0-1"}, missing: true},
		{list: "no compiler", k: &Kernel{Arch: "s390x", Release: "1-s390x", Package: "1"}},
		{list: "nothing", k: &Kernel{Arch: "s390x", Release: "1-s390x", Package: "1"}, missing: true},
	} {
		wanted, err := findHeaders(tc.k, crossList(tc.list))
		if diff := cmp.Diff(tc.want, wanted); diff != "" {
			t.Errorf("%s for %s: %s", tc.list, tc.k.Release, diff)
		}
		if (err == nil) != (tc.want != nil) || errors.Is(err, errNoHeaders) != tc.missing {
			t.Errorf("%s for %s: error %v", tc.list, tc.k.Release, err)
		}
	}
}

// fakeCross is an archive with headers.
type fakeCross struct {
	*fakePackages
	list    string
	fetched []string
}

func (c *fakeCross) show(_ context.Context, name string) (*debian, error) {
	return crossList(c.list)(name)
}

func (c *fakeCross) fetchAll(ctx context.Context, packages []string, dir string, progress func(string)) ([]string, error) {
	c.fetched = packages
	return c.fakePackages.fetchAll(ctx, slices.DeleteFunc(slices.Clone(packages), func(p string) bool {
		return strings.HasPrefix(p, "linux-headers-")
	}), dir, progress)
}

func TestCrossRoot(t *testing.T) {
	_, fake, _ := rooter(t)
	dir := filepath.Join(t.TempDir(), "6.12-s390x")
	fake.packages = map[string]map[string]string{"tree": {"usr/src/linux-headers-6.12.1+deb13-s390x/Makefile": "all:\n"}}
	src := &fakeCross{fakePackages: fake, list: "6.12"}
	k := &Kernel{Series: "6.12", Arch: "s390x", Release: "6.12.1+deb13-s390x", Package: "6.12.1-1"}
	get := func() (*buildRoot, error) {
		return obtainCross(t.Context(), k, dir, func() (crossSource, error) { return src, nil }, func(s string) { t.Log(s) })
	}
	r, err := get()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(r.dir, r.headers, "Makefile")); err != nil {
		t.Error(err)
	}
	// The headers are fetched, but their dependencies are not installed.
	if slices.ContainsFunc(src.asked, func(p string) bool { return strings.Contains(p, ":s390x") }) {
		t.Errorf("asked for %q", src.asked)
	}
	if diff := cmp.Diff([]string{"tree", "linux-headers-6.12.1+deb13-s390x:s390x=6.12.1-1"}, src.fetched); diff != "" {
		t.Error(diff)
	}
	// The second call does not access the archive.
	src.err = errors.New("no network")
	if again, err := get(); err != nil || again.dir != r.dir {
		t.Errorf("second time: %+v, %v", again, err)
	}
	// A kernel that the archive no longer has headers for.
	k.Package = "6.12.0-1"
	if _, err := get(); !errors.Is(err, errNoHeaders) {
		t.Errorf("without headers: %v", err)
	}
}

func TestModuleFlags(t *testing.T) {
	for arch, want := range map[string][]string{
		"amd64":     nil,
		"s390x":     {"ARCH=s390", "CROSS_COMPILE=s390x-linux-gnu-"},
		"arm64":     {"ARCH=arm64", "CROSS_COMPILE=aarch64-linux-gnu-"},
		"arm64-16k": {"ARCH=arm64", "CROSS_COMPILE=aarch64-linux-gnu-"},
	} {
		flags := (&Kernel{Series: "7.2", Arch: arch}).moduleFlags()
		for _, f := range append([]string{"W=1", "SMC_WERROR=y"}, want...) {
			if !slices.Contains(flags, f) {
				t.Errorf("%s: no %s in %q", arch, f, flags)
			}
		}
		if crosses := strings.Contains(strings.Join(flags, " "), "ARCH="); crosses != (want != nil) {
			t.Errorf("%s: %q", arch, flags)
		}
	}
}

// TestISMDriver checks for which kernels the client of the ISM driver is part of the modules that are loaded.
func TestISMDriver(t *testing.T) {
	for _, tc := range []struct {
		arch, series, config string
		register             string
		has                  bool
	}{
		{"s390x", "6.12", "CONFIG_ISM=m\n", "ism_register_client", true},
		{"s390x", "7.2", "CONFIG_ISM=m\n# CONFIG_DIBS is not set\n", "dibs_register_client", false},
		{"s390x", "7.2", "CONFIG_DIBS=m\n", "dibs_register_client", true},
		{"s390x", "6.1", "CONFIG_ISM=m\n", "", false},
		{"arm64", "7.2", "CONFIG_DIBS=m\n", "", false},
		{"", "6.12", "", "", false},
	} {
		dir := write(t, map[string]string{"config": tc.config})
		k := &Kernel{Arch: tc.arch, Series: tc.series, Image: filepath.Join(dir, "image")}
		driver, has, err := ismOf(k)
		if err != nil || driver.register != tc.register || has != tc.has {
			t.Errorf("%s %s with %q: %+v, %v, %v", tc.arch, tc.series, tc.config, driver, has, err)
		}
	}
}

// object makes an object file with one symbol.
func object(t *testing.T, machine elf.Machine, symbol string, section elf.SectionIndex) string {
	t.Helper()
	names := "\x00" + symbol + "\x00"
	symbols := []elf.Sym64{{}, {Name: 1, Info: elf.ST_INFO(elf.STB_GLOBAL, elf.STT_NOTYPE), Shndx: uint16(section)}}
	head := elf.Header64{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2MSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_REL), Machine: uint16(machine), Version: uint32(elf.EV_CURRENT), Ehsize: 64, Shentsize: 64, Shnum: 3, Shstrndx: 2,
	}
	head.Shoff = uint64(binary.Size(head) + binary.Size(symbols) + len(names))
	sections := []elf.Section64{
		{},
		{Name: 0, Type: uint32(elf.SHT_SYMTAB), Off: uint64(binary.Size(head)), Size: uint64(binary.Size(symbols)), Link: 2, Entsize: 24},
		{Name: 0, Type: uint32(elf.SHT_STRTAB), Off: uint64(binary.Size(head) + binary.Size(symbols)), Size: uint64(len(names))},
	}
	var b bytes.Buffer
	for _, part := range []any{head, symbols, []byte(names), sections} {
		if err := binary.Write(&b, binary.BigEndian, part); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(write(t, map[string]string{"smc.ko": b.String()}), "smc.ko")
}

func TestCheckISM(t *testing.T) {
	const register = "ism_register_client"
	for _, tc := range []struct {
		name, module, register, says string
	}{
		{"as it should be", object(t, elf.EM_S390, register, elf.SHN_UNDEF), register, ""},
		{"left out", object(t, elf.EM_S390, "printk", elf.SHN_UNDEF), register, "does not call " + register},
		{"a namesake", object(t, elf.EM_S390, register, elf.SHN_ABS), register, "does not call " + register},
		{"of this machine", object(t, elf.EM_X86_64, register, elf.SHN_UNDEF), register, "smc.ko is for EM_X86_64"},
		{"missing", "/nowhere/smc.ko", register, "no such file"},
	} {
		err := checkISM(tc.module, tc.register)
		if tc.says == "" && err != nil || tc.says != "" && (err == nil || !strings.Contains(err.Error(), tc.says)) {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.says)
		}
	}
}
