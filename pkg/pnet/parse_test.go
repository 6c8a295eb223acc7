// SPDX-License-Identifier: Apache-2.0

package pnet

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/netlink"
)

// attrs encodes strings as attributes 1, 2, ...; "-" leaves one out.
func attrs(values ...string) []byte {
	ae := netlink.NewAttributeEncoder()
	for i, v := range values {
		if v != "-" {
			ae.Bytes(uint16(i+1), []byte(v))
		}
	}
	b, err := ae.Encode()
	if err != nil {
		panic(err)
	}
	return b
}

func TestParseTable(t *testing.T) {
	tests := []struct {
		name string
		in   []byte
		want Table
		err  string
	}{
		{name: "interface", in: attrs("NET1\x00", "eth0\x00", "n/a\x00", "\xff"), want: Table{{ID: "NET1", Eth: "eth0"}}},
		{name: "device", in: attrs("NET1\x00", "n/a\x00", "m\x00", "\x02"), want: Table{{ID: "NET1", IB: "m", Port: 2}}},
		{name: "full ID without end", in: attrs("ABCDEFGHIJKLMNOP", "e"), want: Table{{ID: "ABCDEFGHIJKLMNOP", Eth: "e"}}},
		{
			name: "both", in: attrs("NET1\x00", "eth0\x00", "m\x00", "\x01"),
			want: Table{{ID: "NET1", Eth: "eth0"}, {ID: "NET1", IB: "m", Port: 1}},
		},
		{name: "unknown attribute", in: attrs("N\x00", "e\x00", "-", "-", "-", "new"), want: Table{{ID: "N", Eth: "e"}}},
		{name: "interface n/a", in: attrs("N\x00", "n/a\x00", "n/a\x00", "\xff"), want: Table{{ID: "N", Eth: "n/a"}}},
		{name: "device n/a", in: attrs("N\x00", "n/a\x00", "n/a\x00", "\x01"), want: Table{{ID: "N", IB: "n/a", Port: 1}}},
		{name: "interface without a name", in: attrs("N\x00", "\x00", "n/a\x00", "\xff"), want: Table{{ID: "N"}}},
		{name: "device without a name", in: attrs("N\x00", "n/a\x00", "\x00", "\x02"), want: Table{{ID: "N", Port: 2}}},
		{name: "no device", in: attrs("N\x00"), err: "without a device"},
		{name: "device without a port", in: attrs("N\x00", "-", "m\x00"), err: "without a device"},
		{name: "no ID", in: attrs("-", "e\x00"), err: "without a PNET ID"},
		{name: "empty", in: nil, err: "without a PNET ID"},
		{name: "port of four bytes", in: attrs("N\x00", "-", "m\x00", "\x01\x00\x00\x00"), err: "uint8"},
		{name: "length beyond the end", in: []byte("\xff\x00\x01\x00N"), err: "attribute"},
		{name: "length below the header", in: []byte("\x02\x00\x01\x00N\x00\x00\x00"), err: "attribute"},
		{name: "three bytes", in: []byte("\x05\x00\x01"), err: "attribute"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parseTable([]genetlink.Message{{Data: tt.in}})
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got %v, error %v, want %q", got, err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// FuzzParseTable checks that no answer makes the decoder panic or return entries without a name.
func FuzzParseTable(f *testing.F) {
	f.Add(attrs("NET1\x00", "eth0\x00", "n/a\x00", "\xff"))
	f.Add(attrs("NET1\x00", "n/a\x00", "m\x00", "\x02"))
	f.Add([]byte("\x02\x00\x01\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		table, err := parseTable([]genetlink.Message{{Data: b}})
		if err == nil && len(table) == 0 {
			t.Error("no entry and no error")
		}
		for _, e := range table {
			if e.ID == "" || e.Eth != "" && (e.IB != "" || e.Port != 0) {
				t.Errorf("entry %+v", e)
			}
		}
	})
}
