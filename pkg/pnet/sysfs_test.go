// SPDX-License-Identifier: Apache-2.0

package pnet_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/smckit/smckit/pkg/pnet"
)

// Utility strings as a machine has them: 64 bytes, four ports. Made with `echo -n … | iconv -t IBM1047`.
var (
	net1Only = append([]byte("\xd5\xc5\xe3\xf1\x40\x40\x40\x40\x40\x40\x40\x40\x40\x40\x40\x40"), make([]byte, 48)...)
	twoPorts = bytes.Join([][]byte{
		[]byte("\xd7\xc8\xe8\xe2\xd5\xc5\xe3\xf0\xf1\xc1\xc2\xc3\xc4\xc5\xc6\xc7"), // PHYSNET01ABCDEFG
		[]byte("\x95\x85\xa3\x7c\x7b\x5b\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"), // net@#$
		bytes.Repeat([]byte{0x40}, 16),
		make([]byte, 16),
	}, nil)
)

func TestDecodeUtilString(t *testing.T) {
	tests := []struct {
		name string
		in   []byte
		want []string
	}{
		{name: "one port", in: net1Only, want: []string{"NET1", "", "", ""}},
		{name: "two ports", in: twoPorts, want: []string{"PHYSNET01ABCDEFG", "net@#$", "", ""}},
		{name: "16 bytes", in: net1Only[:16], want: []string{"NET1"}},
		{name: "rest", in: net1Only[:20], want: []string{"NET1"}},
		{name: "short", in: net1Only[:15], want: []string{}},
		{name: "empty", in: nil, want: []string{}},
		{name: "blank first", in: []byte("\x40\xd5\xc5\xe3\xf1\x40\x40\x40\x40\x40\x40\x40\x40\x40\x40\x40"), want: []string{""}},
		{name: "no letters", in: bytes.Repeat([]byte{0xff}, 16), want: []string{
			"\u009f\u009f\u009f\u009f\u009f\u009f\u009f\u009f\u009f\u009f\u009f\u009f\u009f\u009f\u009f\u009f",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, pnet.DecodeUtilString(tt.in)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestDecodeUtilStringAlphabet decodes every character that a PNET ID may have in the kernel's table.
func TestDecodeUtilStringAlphabet(t *testing.T) {
	for _, r := range []struct {
		first byte
		chars string
	}{{0xc1, "ABCDEFGHI"}, {0xd1, "JKLMNOPQR"}, {0xe2, "STUVWXYZ"}, {0xf0, "0123456789"}, {0x81, "abcdefghi"}, {0x91, "jklmnopqr"}, {0xa2, "stuvwxyz"}} {
		b := make([]byte, 16)
		for i := range r.chars {
			b[i] = r.first + byte(i)
		}
		if got := pnet.DecodeUtilString(b)[0]; got != r.chars {
			t.Errorf("%x: %q, want %q", b, got, r.chars)
		}
	}
}

func FuzzDecodeUtilString(f *testing.F) {
	f.Add(net1Only)
	f.Add(twoPorts)
	f.Fuzz(func(t *testing.T, b []byte) {
		ids := pnet.DecodeUtilString(b)
		if len(ids) != len(b)/16 {
			t.Errorf("%d IDs from %d bytes", len(ids), len(b))
		}
	})
}

// tree writes files below a new directory and makes symbolic links, for values that start with "->".
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		target, link := bytes.CutPrefix([]byte(content), []byte("->"))
		var err error
		if link {
			err = os.Symlink(string(target), path)
		} else {
			err = os.WriteFile(path, []byte(content), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestSysfs(t *testing.T) {
	s := pnet.Sysfs{Root: tree(t, map[string]string{
		"bus/pci/devices/0000:00:00.0":                        "->../../../devices/pci0000:00/0000:00:00.0",
		"bus/pci/devices/0001:00:00.0":                        "->../../../devices/pci0001:00/0001:00:00.0",
		"devices/pci0000:00/0000:00:00.0/util_string":         string(twoPorts),
		"devices/pci0000:00/0000:00:00.0/net/eno0/dev_port":   "0\n",
		"devices/pci0000:00/0000:00:00.0/net/eno0/device":     "->../..",
		"devices/pci0000:00/0000:00:00.0/net/eno1/dev_port":   "1\n",
		"devices/pci0000:00/0000:00:00.0/net/eno1/device":     "->../..",
		"devices/pci0000:00/0000:00:00.0/net/eno9/dev_port":   "9\n",
		"devices/pci0000:00/0000:00:00.0/net/eno9/device":     "->../..",
		"devices/pci0000:00/0000:00:00.0/net/enox/dev_port":   "x\n",
		"devices/pci0000:00/0000:00:00.0/net/enox/device":     "->../..",
		"devices/pci0000:00/0000:00:00.0/infiniband/m/x":      "",
		"devices/pci0000:00/0000:00:00.0/infiniband/m/device": "->../..",
		"devices/pci0001:00/0001:00:00.0/class":               "0x020000\n",
		"devices/css0/chp0.a5/util_string":                    string(net1Only),
		"devices/qeth/0.0.bd00/chpid":                         "A5\n",
		"devices/qeth/0.0.bd00/portno":                        "0\n",
		"devices/qeth/0.0.bd00/net/encbd00/device":            "->../..",
		"devices/qeth/0.0.bd01/chpid":                         "A6\n",
		"devices/qeth/0.0.bd01/net/encbd01/device":            "->../..",
		"devices/virtual/net/lo/dev_port":                     "0\n",
		"class/net/eno0":                                      "->../../devices/pci0000:00/0000:00:00.0/net/eno0",
		"class/net/eno1":                                      "->../../devices/pci0000:00/0000:00:00.0/net/eno1",
		"class/net/eno9":                                      "->../../devices/pci0000:00/0000:00:00.0/net/eno9",
		"class/net/enox":                                      "->../../devices/pci0000:00/0000:00:00.0/net/enox",
		"class/net/encbd00":                                   "->../../devices/qeth/0.0.bd00/net/encbd00",
		"class/net/encbd01":                                   "->../../devices/qeth/0.0.bd01/net/encbd01",
		"class/net/lo":                                        "->../../devices/virtual/net/lo",
		"class/net/bonding_masters":                           "bond0\n",
		"class/infiniband/m":                                  "->../../devices/pci0000:00/0000:00:00.0/infiniband/m",
	})}
	for name, want := range map[string]string{
		"eno0": "PHYSNET01ABCDEFG", "eno1": "net@#$", "eno9": "", "encbd00": "NET1", "encbd01": "", "lo": "", "none": "",
		"bonding_masters": "", "..": "", "": "", "../net/eno0": "", "a\x00": "",
	} {
		if got, err := s.Interface(name); err != nil || got != want {
			t.Errorf("interface %q: %q, %v, want %q", name, got, err, want)
		}
	}
	if got, err := s.Interface("enox"); err == nil {
		t.Errorf("interface with a strange port: %q", got)
	}
	for port, want := range []string{"", "PHYSNET01ABCDEFG", "net@#$", "", "", ""} {
		if got, err := s.RDMA("m", uint8(port)); err != nil || got != want {
			t.Errorf("RDMA device port %d: %q, %v, want %q", port, got, err, want)
		}
	}
	for address, want := range map[string][]string{
		"0000:00:00.0": {"PHYSNET01ABCDEFG", "net@#$", "", ""}, "0001:00:00.0": nil, "0002:00:00.0": nil, "../x": nil,
	} {
		got, err := s.PCI(address)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("PCI function %q: %v %s", address, err, diff)
		}
	}
}
