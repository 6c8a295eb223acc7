// SPDX-License-Identifier: Apache-2.0

package pnet_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/smckit/smckit/pkg/pnet"
)

func TestParseID(t *testing.T) {
	tests := []struct {
		in   string
		want pnet.ID
		err  string // part of the error's text
	}{
		{in: "NET1", want: "NET1"},
		{in: "pnet0", want: "PNET0"},
		{in: "1", want: "1"},
		{in: "ABCDEFGHIJKLMNOP", want: "ABCDEFGHIJKLMNOP"},
		{in: "  net1 ", want: "NET1"},
		{in: "\tnet1\r\n", want: "NET1"},
		{in: "", err: `PNET ID "": empty`},
		{in: "   ", err: "empty"},
		{in: "ABCDEFGHIJKLMNOPQ", err: `PNET ID "ABCDEFGHIJKLMNOPQ": 17 characters long, at most 16 are allowed`},
		{in: strings.Repeat("x", 1000), err: "1000 characters long"},
		{in: "NET-1", err: `character "-" at position 4`},
		{in: "NET 1", err: `character " " at position 4`},
		{in: "NET_1", err: `character "_" at position 4`},
		{in: "NÖT", err: `character "Ö" at position 2`},
		{in: "NET\xd6", err: `character "\xd6" at position 4`},
		{in: "öö-", err: `character "ö" at position 1`},
		{in: "NET\x00", err: `character "\x00" at position 4`},
		{in: "٣", err: "position 1"},
	}
	for _, tt := range tests {
		got, err := pnet.ParseID(tt.in)
		if tt.err == "" {
			if err != nil || got != tt.want {
				t.Errorf("ParseID(%q) = %q, %v, want %q", tt.in, got, err, tt.want)
			}
			continue
		}
		var invalid *pnet.InvalidError
		if !errors.As(err, &invalid) || invalid.What != "PNET ID" {
			t.Errorf("ParseID(%q): error %v is no *InvalidError about a PNET ID", tt.in, err)
			continue
		}
		if !strings.Contains(err.Error(), tt.err) {
			t.Errorf("ParseID(%q): error %q, want %q in it", tt.in, err, tt.err)
		}
		if len(err.Error()) > 250 || strings.ContainsAny(err.Error(), "\n\x00") {
			t.Errorf("ParseID(%q): error %q is not one short line", tt.in, err)
		}
	}
}

func TestEntryCheck(t *testing.T) {
	tests := []struct {
		e   pnet.Entry
		err string
	}{
		{e: eth("NET1", "eth0")},
		{e: eth("NET1", "a23456789012345")},
		{e: eth("NET1", "\xff\xfe")},
		{e: eth("NET1", "bond0.100@x#")},
		{e: ib("NET1", "mlx4_0", 1)},
		{e: ib("NET1", "0000:00:1f.0", 2)},
		{e: ib("NET1", strings.Repeat("x", 63), 2)},
		{e: eth("net1", "eth0"), err: "upper case"},
		{e: eth("", "eth0"), err: "PNET ID"},
		{e: eth("NET1", ""), err: "empty"},
		{e: eth("NET1", "a234567890123456"), err: "16 characters long, at most 15"},
		{e: eth("NET1", "."), err: "not the name"},
		{e: eth("NET1", ".."), err: "not the name"},
		{e: eth("NET1", "n/a"), err: "not the name"},
		{e: eth("NET1", "eth0:1"), err: "not the name"},
		{e: eth("NET1", "eth 0"), err: "blanks"},
		{e: eth("NET1", "eth\x00"), err: "control characters"},
		{e: ib("NET1", "mlx4_0", 0), err: `port "0"`},
		{e: ib("NET1", "mlx4_0", 3), err: `port "3"`},
		{e: ib("NET1", "n/a", 1), err: "not the name"},
		{e: ib("NET1", strings.Repeat("x", 64), 2), err: "64 characters long, at most 63"},
		{e: pnet.Entry{ID: "NET1", Eth: "a", IB: "b", Port: 1}, err: "names an interface and an RDMA device"},
	}
	for _, tt := range tests {
		err := tt.e.Check()
		switch {
		case tt.err == "" && err != nil:
			t.Errorf("%v: %v", tt.e, err)
		case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
			t.Errorf("%v: error %v, want %q in it", tt.e, err, tt.err)
		}
	}
}

func eth(id pnet.ID, name string) pnet.Entry { return pnet.Entry{ID: id, Eth: name} }

func ib(id pnet.ID, name string, port uint8) pnet.Entry {
	return pnet.Entry{ID: id, IB: name, Port: port}
}
