// SPDX-License-Identifier: Apache-2.0

package pnet_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/smckit/smckit/pkg/pnet"
)

func TestParseArgs(t *testing.T) {
	tests := []struct {
		in   string
		want pnet.Command
		err  string
	}{
		{in: "add pnet0 eth eth4", want: pnet.Command{Entry: eth("PNET0", "eth4")}},
		{in: "add pnet0 ib mlx4_0 2", want: pnet.Command{Entry: ib("PNET0", "mlx4_0", 2)}},
		{in: "add pnet0 ib mlx4_0", want: pnet.Command{Entry: ib("PNET0", "mlx4_0", 1)}},
		{in: "del pnet0", want: pnet.Command{Delete: true, Entry: pnet.Entry{ID: "PNET0"}}},
		{in: "del pnet0 eth eth4", want: pnet.Command{Delete: true, Entry: eth("PNET0", "eth4")}},
		{in: "del pnet0 ib mlx4_0", want: pnet.Command{Delete: true, Entry: ib("PNET0", "mlx4_0", 0)}},
		{in: "del pnet0 ib mlx4_0 1", want: pnet.Command{Delete: true, Entry: ib("PNET0", "mlx4_0", 1)}},
		{in: "", err: "a command is missing: add|del <PNET ID>"},
		{in: "ADD pnet0 eth eth4", err: `unknown word "ADD"`},
		{in: "add", err: "the PNET ID is missing"},
		{in: "del", err: "the PNET ID is missing"},
		{in: "add pnet-0 eth eth4", err: `PNET ID "pnet-0": character "-"`},
		{in: "add pnet0", err: "kind of device is missing"},
		{in: "add pnet0 roce mlx4_0", err: `unknown kind of device "roce"`},
		{in: "add pnet0 eth", err: "name of the device is missing"},
		{in: "add pnet0 eth eth4 1", err: `unexpected word "1": a network interface has no port`},
		{in: "add pnet0 eth eth4:1", err: "not the name of a network interface"},
		{in: "add pnet0 ib mlx4/0", err: "not the name of an RDMA device"},
		{in: "add pnet0 ib mlx4_0 0", err: `port "0": an RDMA device has ports 1 to 2`},
		{in: "add pnet0 ib mlx4_0 3", err: `port "3": an RDMA device has ports 1 to 2`},
		{in: "add pnet0 ib mlx4_0 256", err: `port "256": an RDMA device has ports 1 to 2`},
		{in: "add pnet0 ib mlx4_0 257", err: `port "257": an RDMA device has ports 1 to 2`},
		{in: "add pnet0 ib mlx4_0 99999999999999999999999", err: "an RDMA device has ports 1 to 2"},
		{in: "add pnet0 ib mlx4_0 abc", err: `port "abc": not a number`},
		{in: "add pnet0 ib mlx4_0 -1", err: `port "-1": not a number`},
		{in: "add pnet0 ib mlx4_0 01", err: `port "01"`},
		{in: "add pnet0 ib mlx4_0 1 1", err: `unexpected word "1" after the port`},
	}
	for _, tt := range tests {
		got, err := pnet.ParseArgs(strings.Fields(tt.in))
		if tt.err == "" {
			if err != nil || got != tt.want {
				t.Errorf("%q: %+v, %v, want %+v", tt.in, got, err, tt.want)
			}
			continue
		}
		var perr *pnet.ParseError
		if !errors.As(err, &perr) || perr.Line != 0 || !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%q: error %v, want %q", tt.in, err, tt.err)
		}
	}
}

func TestParse(t *testing.T) {
	tests := []struct {
		name, in string
		want     pnet.Table
	}{
		{name: "empty", in: ""},
		{name: "only comments", in: "# a\n\n   # b\n\t\n#\x80\n"},
		{name: "entries", in: "add pnet0 eth eth4\nadd pnet0 ib mlx4_0 2\nadd B ib 0000:00:1f.0\n", want: pnet.Table{
			eth("PNET0", "eth4"), ib("PNET0", "mlx4_0", 2), ib("B", "0000:00:1f.0", 1),
		}},
		{
			name: "no newline at the end, comment behind, hash inside a word",
			in:   "add a eth e#1# #x\n  add\t a\teth  e2 #x",
			want: pnet.Table{eth("A", "e#1#"), eth("A", "e2")},
		},
		{name: "CRLF", in: "add a eth e1\r\n\r\n# c\r\nadd a eth e2\r\n", want: pnet.Table{eth("A", "e1"), eth("A", "e2")}},
		{name: "byte order mark", in: "\ufeffadd a eth e1\n", want: pnet.Table{eth("A", "e1")}},
		{name: "no UTF-8", in: "add a eth \xff\xfe\n", want: pnet.Table{eth("A", "\xff\xfe")}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := pnet.Parse(strings.NewReader(tt.in), "table")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseErrors(t *testing.T) {
	tests := []struct {
		in, want string
		other    pnet.Position
	}{
		{in: "add a eth e1\nadd a-b eth e2\n", want: `f:2:5: PNET ID "a-b": character "-" at position 2`},
		{in: "\n\n  remove a\n", want: `f:3:3: unknown word "remove"`},
		{in: "add a eth\r\n", want: "f:1:10: the name of the device is missing"},
		{in: "add a eth # e1\n", want: "f:1:15: the name of the device is missing"},
		{in: "add\ta\tib\tm\t3\n", want: `f:1:12: port "3"`},
		{in: "add a eth e1 1\n", want: `f:1:14: unexpected word "1"`},
		{in: "del a eth e1\n", want: "f:1:1: 'del' in a table file"},
		{in: "add a eth e\x001\n", want: "f:1:12: zero byte: not a text file"},
		{in: "# \x00\n", want: "f:1:3: zero byte: not a text file"},
		{in: "add a eth e\x1b[m\n", want: `f:1:12: control character '\x1b'`},
		{in: "add a\reth e\n", want: `f:1:6: control character '\r'`},
		{in: "#" + strings.Repeat("x", pnet.MaxLineLen), want: "f:1:4097: line longer than 4096 bytes"},
		{
			in:   "# t\nadd a eth e1\n add A eth e1\n",
			want: "f:3:2: A eth e1 is a duplicate of the entry at f:2:1", other: pnet.Position{File: "f", Line: 2, Col: 1},
		},
		{
			in:   "add a eth e1\nadd b eth e1\n",
			want: "f:2:1: B eth e1 contradicts A eth e1 at f:1:1", other: pnet.Position{File: "f", Line: 1, Col: 1},
		},
		{
			in:   "add a ib m 1\nadd a ib m 2\n",
			want: "f:2:1: A ib m 2 contradicts A ib m 1 at f:1:1", other: pnet.Position{File: "f", Line: 1, Col: 1},
		},
		{in: strings.Repeat("#\n", pnet.MaxFileSize/2) + "#", want: "f:1:1: not a table file: larger than"},
	}
	for _, tt := range tests {
		got, err := pnet.Parse(strings.NewReader(tt.in), "f")
		var perr *pnet.ParseError
		if !errors.As(err, &perr) || got != nil {
			t.Errorf("%.40q: %v, error %v, want a *ParseError", tt.in, got, err)
			continue
		}
		if !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%.40q: error %q, want %q", tt.in, err, tt.want)
		}
		if perr.Other != tt.other {
			t.Errorf("%.40q: other place %v, want %v", tt.in, perr.Other, tt.other)
		}
	}
}

func TestParseReadError(t *testing.T) {
	r := io.MultiReader(strings.NewReader("add a eth e1\n"), iotest.ErrReader(io.ErrUnexpectedEOF))
	if got, err := pnet.Parse(r, "f"); !errors.Is(err, io.ErrUnexpectedEOF) || got != nil {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestFormat(t *testing.T) {
	table := pnet.Table{eth("NET1", "eth0"), ib("NET1", "mlx4_0", 2), eth("B", "\xff")}
	got, err := table.Format()
	if want := "add NET1 eth eth0\nadd NET1 ib mlx4_0 2\nadd B eth \xff\n"; err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	for _, e := range []pnet.Entry{eth("NET\xd6", "eth0"), eth("NET1", "#eth0"), ib("NET1", "mlx4_0", 7)} {
		var invalid *pnet.InvalidError
		if got, err := (pnet.Table{e}).Format(); !errors.As(err, &invalid) {
			t.Errorf("%v: formatted as %q, %v, want an *InvalidError", e, got, err)
		}
	}
}

// FuzzParse checks that what can be parsed can be written, and is the same when parsed again.
func FuzzParse(f *testing.F) {
	f.Add("add pnet0 eth eth4\nadd pnet0 ib mlx4_0 2 # c\r\n")
	f.Add("\ufeff\n\tadd a ib 0000:00:1f.0\nadd b eth a#b")
	f.Add("add a eth \xff\nadd a eth \u00a0\nadd a eth ..")
	f.Add("add a eth e1\nadd b eth e1")
	f.Fuzz(func(t *testing.T, text string) {
		table, err := pnet.Parse(strings.NewReader(text), "f")
		if err != nil {
			var perr *pnet.ParseError
			if !errors.As(err, &perr) {
				t.Fatalf("error without a place: %v", err)
			}
			if lines := strings.Count(text, "\n") + 1; perr.Line < 1 || perr.Line > lines || perr.Col < 1 || perr.Col > len(text)+1 {
				t.Fatalf("place %v outside of the text", perr.Position)
			}
			return
		}
		for _, e := range table {
			if err := e.Check(); err != nil {
				t.Fatalf("parsed what the kernel would refuse: %v", err)
			}
		}
		formatted, err := table.Format()
		if err != nil {
			t.Fatalf("cannot write what was parsed: %v", err)
		}
		again, err := pnet.Parse(strings.NewReader(formatted), "f")
		if err != nil || !again.Equal(table) {
			t.Fatalf("%q was written as %q, which is %v, %v", table, formatted, again, err)
		}
	})
}
