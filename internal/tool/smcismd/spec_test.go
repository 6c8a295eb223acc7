// SPDX-License-Identifier: Apache-2.0

//go:build linux

package smcismd

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/fabric"
	"github.com/smckit/smckit/internal/fdstore"
	"golang.org/x/sys/unix"
)

// dup duplicates a file descriptor.
func dup(f *os.File) (int, error) { return unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0) }

func TestParseSpec(t *testing.T) {
	for _, tc := range []struct {
		text string
		want spec
	}{
		{"blue:256M", spec{Config: fabric.Config{Name: "blue", Size: 256 << 20}, permissions: fabric.Permissions{Mode: 0o660, UID: -1, GID: -1}}},
		{
			"a.b:4194304,members=2,mode=0600,owner=0,group=12,chid=0xfffe,hugepages",
			spec{Config: fabric.Config{Name: "a.b", Size: 4 << 20, Members: 2, CHID: 0xfffe, HugePages: true}, permissions: fabric.Permissions{Mode: 0o600, UID: 0, GID: 12}},
		},
		{"x:65536K,owner=root,group=root", spec{Config: fabric.Config{Name: "x", Size: 64 << 20}, permissions: fabric.Permissions{Mode: 0o660, UID: 0, GID: 0}}},
		{"x:1G,chid=65296", spec{Config: fabric.Config{Name: "x", Size: 1 << 30, CHID: 0xff10}, permissions: fabric.Permissions{Mode: 0o660, UID: -1, GID: -1}}},
	} {
		got, err := parseSpec(tc.text)
		got.Log, tc.want.Log = nil, nil
		if err != nil || got.Name != tc.want.Name || got.Size != tc.want.Size || got.Members != tc.want.Members || got.CHID != tc.want.CHID ||
			got.HugePages != tc.want.HugePages || got.permissions != tc.want.permissions {
			t.Errorf("%s: %+v, %v", tc.text, got, err)
		}
	}
}

func TestParseSpecRefuses(t *testing.T) {
	const options = ": options are members=, mode=, owner=, group=, chid= and hugepages"
	for text, want := range map[string]string{
		"":                          `fabric "" has no size: write NAME:SIZE, such as blue:256M`,
		"blue":                      `fabric "blue" has no size: write NAME:SIZE, such as blue:256M`,
		"blue:":                     `fabric "blue": "" is no size: write a number and K, M, G or T, such as 256M`,
		"blue:1X":                   `fabric "blue": "1X" is no size: write a number and K, M, G or T, such as 256M`,
		"blue:99999999T":            `fabric "blue": 99999999T is too much`,
		"blue:99999999999999999999": `fabric "blue": 99999999999999999999 is too much`,
		":16M":                      `fabric "": the name of a fabric has 1 to 31 characters`,
		"../x:16M":                  `fabric "../x": the name of a fabric has letters, digits, and after the first of these dots, underscores and hyphens`,
		"b:16M,members=1":           `fabric "b": members=1: a fabric has 2 to 64 members`,
		"b:16M,members=x":           `fabric "b": members=x: a fabric has 2 to 64 members`,
		"b:16M,members":             `fabric "b": unknown option "members"` + options,
		"b:16M,hugepages=1":         `fabric "b": unknown option "hugepages=1"` + options,
		"b:16M,colour=x":            `fabric "b": unknown option "colour=x"` + options,
		"b:16M,":                    `fabric "b": unknown option ""` + options,
		"b:16M,mode=1777":           `fabric "b": "1777" is no mode: write it in octal, such as 0660`,
		"b:16M,mode=rw":             `fabric "b": "rw" is no mode: write it in octal, such as 0660`,
		"b:16M,owner=no-such-user":  `fabric "b": there is no user "no-such-user": give the number or the name of one that exists`,
		"b:16M,group=-1":            `fabric "b": there is no group "-1": give the number or the name of one that exists`,
		"b:16M,chid=0xfeff":         `fabric "b": chid=0xfeff: CHIDs are 0xff00 to 0xfffe`,
		"b:16M,chid=0xffff":         `fabric "b": chid=0xffff: CHIDs are 0xff00 to 0xfffe`,
		"b:16M,mode=0600,mode=0600": `fabric "b": mode is there twice`,
		"b:24M":                     `fabric "b": the size of a fabric is a power of two, as that of a PCI device's memory: 24M is not`,
	} {
		if _, err := parseSpec(text); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func FuzzParseFile(f *testing.F) {
	f.Add("blue:256M,members=8,mode=0660 # comment\n\nred:16M,hugepages\n")
	f.Add("blue:256M,chid=\xff\n,,,:\n")
	f.Fuzz(func(t *testing.T, text string) {
		specs, err := parseFile(strings.NewReader(text), "file")
		if err != nil && !strings.HasPrefix(err.Error(), "file:") {
			t.Errorf("%v does not name the file", err)
		}
		for _, s := range specs {
			if err := s.Check(); err != nil {
				t.Errorf("%+v: %v", s, err)
			}
		}
	})
}

// TestStoreLimit checks that more fabrics than systemd keeps are refused, and that as many as the unit's comment says are not.
func TestStoreLimit(t *testing.T) {
	unit, err := os.ReadFile("../../../packaging/systemd/smc-ismd.service")
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("\nFileDescriptorStoreMax=%d\n", fdstore.DefaultMax); !strings.Contains(string(unit), want) {
		t.Errorf("smc-ismd.service lacks %q", want)
	}
	lines := func(n, members int, name string) (all string) {
		for i := range n {
			all += fmt.Sprintf("%s%03d:1G,members=%d\n", name, i, members)
		}
		return all
	}
	const tooMany = "smc_ismd: the fabrics need %d files that systemd keeps while smc_ismd restarts, and it keeps 4096: lower members=, or set FileDescriptorStoreMax= and FDSTORE in smc-ismd.service\n"
	long := strings.Repeat("n", 28)
	for _, tc := range []struct{ text, want string }{
		{lines(15, 64, "f"), ""},
		{lines(120, 8, "f"), ""},
		{lines(16, 64, "f"), fmt.Sprintf(tooMany, 16*258)},
		{lines(121, 8, "f"), fmt.Sprintf(tooMany, 121*34)},
		{lines(120, 8, long), "smc_ismd: systemd can keep files for smc_ismd if their names have 131056 bytes, and those of the fabrics have "},
	} {
		r := run(t.Context(), system{}, tc.text, "check", "-")
		if r.status != min(len(tc.want), 1) || !strings.HasPrefix(r.stderr, tc.want) || tc.want == "" && r.stderr != "" {
			t.Errorf("%.20q: %+v, want %q", tc.text, r, tc.want)
		}
	}
}
