// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
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
		"Package: linux-headers-s390x:s390x\nVersion: 6.1.176-1\nDepends: linux-headers-6.1.0-50-s390x (= 6.1.176-1)\n",
		"Package: linux-headers-6.1.0-50-s390x:s390x\nVersion: 6.1.176-1\nDepends: linux-headers-6.1.0-50-common (= 6.1.176-1), " +
			"linux-kbuild-6.1 (>= 6.1.176-1), linux-compiler-gcc-12-s390\n",
	},
	"6.12": {
		"Package: linux-headers-s390x:s390x\nVersion: 6.12.1-1\nDepends: linux-headers-6.12.1+deb13-s390x (= 6.12.1-1)\n",
		"Package: linux-headers-6.12.1+deb13-s390x:s390x\nVersion: 6.12.1-1\nDepends: linux-base (>= 4.12~), " +
			"linux-headers-6.12.1+deb13-common (= 6.12.1-1), linux-image-6.12.1+deb13-s390x (= 6.12.1-1) | x, " +
			"linux-kbuild-6.12.1+deb13, gcc-14\n",
	},
	"7.2": {
		"Package: linux-headers-s390x:s390x\nVersion: 7.2.3-1\nDepends: linux-base-s390x (= 7.2.3-1), linux-headers-7.2.3+deb14-s390x (= 7.2.3-1)\n",
		"Package: linux-headers-7.2.3+deb14-s390x:s390x\nVersion: 7.2.3-1\nDepends: gcc-16-for-host, linux-base (>= 4.12~), " +
			"linux-headers-7.2.3+deb14-common (= 7.2.3-1), linux-kbuild-7.2.3+deb14\n",
	},
	"no headers":  {"Package: linux-headers-s390x:s390x\nVersion: 1\nDepends: linux-base\n"},
	"no compiler": {"Package: linux-headers-s390x:s390x\nVersion: 1\nDepends: linux-headers-1-s390x\n", "Package: linux-headers-1-s390x:s390x\nVersion: 1\nDepends: make\n"},
	"nothing":     nil,
}

// crossList looks packages up, which a paragraph names without their architecture.
func crossList(name string) func(string) (*debian, error) {
	show := suite(crossLists[name]...)
	return func(name string) (*debian, error) {
		d, err := show(name)
		if err == nil {
			d.name = strings.TrimSuffix(d.name, ":s390x")
		}
		return d, err
	}
}

func TestFindHeaders(t *testing.T) {
	for _, tc := range []struct {
		list string
		k    *Kernel
		want []string
	}{
		{
			"6.1",
			&Kernel{Release: "6.1.0-50-s390x", Package: "6.1.176-1"},
			[]string{"linux-headers-6.1.0-50-common=6.1.176-1", "linux-kbuild-6.1", "gcc-12-s390x-linux-gnu"},
		},
		{
			"6.12",
			&Kernel{Release: "6.12.1+deb13-s390x", Package: "6.12.1-1"},
			[]string{"linux-headers-6.12.1+deb13-common=6.12.1-1", "linux-kbuild-6.12.1+deb13", "gcc-14-s390x-linux-gnu"},
		},
		{
			"7.2",
			&Kernel{Release: "7.2.3+deb14-s390x", Package: "7.2.3-1"},
			[]string{"gcc-16-s390x-linux-gnu", "linux-headers-7.2.3+deb14-common=7.2.3-1", "linux-kbuild-7.2.3+deb14"},
		},
		{"no headers", nil, nil},
		{"no compiler", nil, nil},
		{"nothing", nil, nil},
	} {
		k, wanted, err := findHeaders(crossList(tc.list))
		if diff := cmp.Diff(tc.k, k); diff != "" {
			t.Errorf("%s: %s", tc.list, diff)
		}
		if diff := cmp.Diff(tc.want, wanted); diff != "" {
			t.Errorf("%s: %s", tc.list, diff)
		}
		if (err == nil) != (tc.k != nil) {
			t.Errorf("%s: error %v", tc.list, err)
		}
	}
}

// crossPackages is an archive with headers.
type crossPackages struct {
	*fakePackages
	list    string
	fetched []string
}

func (c *crossPackages) show(_ context.Context, name string) (*debian, error) {
	return crossList(c.list)(name)
}

func (c *crossPackages) fetchAll(ctx context.Context, packages []string, dir string, progress func(string)) ([]string, error) {
	c.fetched = packages
	return c.fakePackages.fetchAll(ctx, slices.DeleteFunc(slices.Clone(packages), func(p string) bool {
		return strings.HasPrefix(p, "linux-headers-")
	}), dir, progress)
}

func TestCrossRoot(t *testing.T) {
	_, fake, _ := rooter(t)
	dir := filepath.Join(t.TempDir(), "6.12-s390x")
	mkdir(filepath.Join(dir, "6.12.0+deb13-s390x_6.12.0-1_01234567"))
	if k, err := openCross("6.12", dir); err == nil {
		t.Errorf("a root of other packages is taken for %+v", k)
	}
	fake.packages = map[string]map[string]string{"tree": {"usr/src/linux-headers-6.12.1+deb13-s390x/Makefile": "all:\n"}}
	src := &crossPackages{fakePackages: fake, list: "6.12"}
	if err := makeCross(t.Context(), src, "6.12", dir, func(s string) { t.Log(s) }); err != nil {
		t.Fatal(err)
	}
	k, err := openCross("6.12", dir)
	if diff := cmp.Diff(&Kernel{Series: "6.12", Release: "6.12.1+deb13-s390x", Package: "6.12.1-1"}, k); diff != "" || err != nil {
		t.Fatal(diff, err)
	}
	r := openRoot(k, dir)
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
	if left, err := filepath.Glob(filepath.Join(dir, "*")); len(left) != 1 || left[0] != r.dir {
		t.Errorf("left in the cache: %v, %v", left, err)
	}
}

func TestModuleFlags(t *testing.T) {
	for _, tc := range []struct {
		series, release string
		has, hasNot     []string
	}{
		{"6.12", "6.12.1+deb13-amd64", []string{"W=1", "SMC_WERROR=y"}, []string{"ARCH=s390", "CONFIG_ISM=m", "KBUILD_MODPOST_WARN=1"}},
		{"6.1", "6.1.0-50-s390x", []string{"W=1", "SMC_WERROR=y", "ARCH=s390"}, []string{"CONFIG_ISM=m", "CONFIG_DIBS=m"}},
		{"6.12", "6.12.1+deb13-s390x", []string{"W=1", "SMC_WERROR=y", "ARCH=s390", "CONFIG_ISM=m"}, []string{"CONFIG_DIBS=m"}},
		{"7.2", "7.2.3+deb14-s390x", []string{"W=1", "SMC_WERROR=y", "ARCH=s390", "CONFIG_DIBS=m"}, []string{"CONFIG_ISM=m"}},
	} {
		flags := (&Kernel{Series: tc.series, Release: tc.release}).moduleFlags()
		for _, f := range tc.has {
			if !slices.Contains(flags, f) {
				t.Errorf("%s: no %s in %q", tc.release, f, flags)
			}
		}
		for _, f := range tc.hasNot {
			if slices.Contains(flags, f) {
				t.Errorf("%s: %s in %q", tc.release, f, flags)
			}
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

func TestCheckCross(t *testing.T) {
	const register = "ism_register_client"
	for _, tc := range []struct {
		name, module, register, says string
	}{
		{"as it should be", object(t, elf.EM_S390, register, elf.SHN_UNDEF), register, ""},
		{"there is no driver", object(t, elf.EM_S390, "printk", elf.SHN_UNDEF), "", ""},
		{"left out", object(t, elf.EM_S390, "printk", elf.SHN_UNDEF), register, "does not call " + register},
		{"a namesake", object(t, elf.EM_S390, register, elf.SHN_ABS), register, "does not call " + register},
		{"of this machine", object(t, elf.EM_X86_64, register, elf.SHN_UNDEF), register, "smc.ko is for EM_X86_64"},
		{"missing", "/nowhere/smc.ko", register, "no such file"},
	} {
		err := checkCross(tc.module, tc.register)
		if tc.says == "" && err != nil || tc.says != "" && (err == nil || !strings.Contains(err.Error(), tc.says)) {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.says)
		}
	}
}
