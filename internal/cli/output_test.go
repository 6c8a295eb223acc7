// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"":                  "",
		"eth0":              "eth0",
		"with blank":        "with blank",
		"größe 日本 \u263a":   "größe 日本 \u263a",
		"\ufffd":            "\ufffd",
		"a\x00b":            `a\x00b`,
		"a\nb\tc":           `a\x0ab\x09c`,
		"\x1b[2J":           `\x1b[2J`,
		"\x7f":              `\x7f`,
		"\u009b2J":          `\xc2\x9b2J`, // CSI in one character
		"\xff\xfeok":        `\xff\xfeok`,
		"cut \xe6\x97":      `cut \xe6\x97`,
		"right\u202eleft":   `right\xe2\x80\xaeleft`,
		"no-break\u00a0gap": `no-break\xc2\xa0gap`,
		`back\slash`:        `back\slash`,
	} {
		if got := Printable(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func FuzzPrintable(f *testing.F) {
	for _, seed := range []string{"eth0", "\x00", "\xff", "\u202e", "日本", "\ufffd\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := Printable(s)
		if !utf8.ValidString(got) || strings.ContainsAny(got, "\x00\x1b\n\r\t\x7f") {
			t.Errorf("%q: %q", s, got)
		}
		if again := Printable(got); again != got {
			t.Errorf("%q: %q is not stable: %q", s, got, again)
		}
	})
}

func TestOneLine(t *testing.T) {
	for in, want := range map[string]string{
		"":                                   "",
		"plain":                              "plain",
		"two\nlines\n":                       "two lines",
		"\n\na\r\n\tb":                       "a b",
		"unknown\n\nDid you mean this?\n\tx": "unknown Did you mean this? x",
		"esc \x1b":                           `esc \x1b`,
	} {
		if got := OneLine(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestWriteTable(t *testing.T) {
	long := strings.Repeat("x", 200)
	for name, tc := range map[string]struct {
		header []string
		rows   [][]string
		want   string
	}{
		"aligned": {
			[]string{"Name", "Count", "Text"},
			[][]string{{"a", "1", "first"}, {"a longer name", "12345678", ""}, {"", "", "third"}},
			"Name           Count     Text\n" +
				"a              1         first\n" +
				"a longer name  12345678\n" +
				"                         third\n",
		},
		"never cut":    {[]string{"A", "B"}, [][]string{{long, "b"}}, "A" + strings.Repeat(" ", 201) + "B\n" + long + "  b\n"},
		"wide letters": {[]string{"A", "B"}, [][]string{{"日本", "b"}, {"abcd", "b"}}, "A     B\n日本  b\nabcd  b\n"},
		"controls":     {[]string{"A", "B"}, [][]string{{"\x1b[2J\xff", "b\nc"}}, "A            B\n" + `\x1b[2J\xff  b\x0ac` + "\n"},
		"no rows":      {[]string{"A", "B"}, nil, "A  B\n"},
		"one column":   {[]string{"A"}, [][]string{{"a"}, {"bc"}}, "A\na\nbc\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("COLUMNS", "1")
			var out bytes.Buffer
			if err := WriteTable(&out, tc.header, tc.rows); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if err := WriteTable(brokenWriter{syscall.ENOSPC}, []string{"A"}, [][]string{{"a"}}); err == nil {
		t.Error("a failed write is no error")
	}
}

func TestWriteJSON(t *testing.T) {
	doc := struct {
		Schema int      `json:"schema"`
		List   []string `json:"list"`
	}{1, []string{"<a & b>"}}
	var out bytes.Buffer
	if err := WriteJSON(&out, doc); err != nil {
		t.Fatal(err)
	}
	if err := WriteJSONLine(&out, doc); err != nil {
		t.Fatal(err)
	}
	want := "{\n  \"schema\": 1,\n  \"list\": [\n    \"<a & b>\"\n  ]\n}\n" + `{"schema":1,"list":["<a & b>"]}` + "\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWidth(t *testing.T) {
	for columns, want := range map[string]int{"": 80, "100": 100, "1": 1, "0": 80, "-5": 80, "x": 80, "99999999999999999999": 80} {
		env := &Env{Getenv: func(string) string { return columns }}
		if got := env.Width(); got != want {
			t.Errorf("COLUMNS=%s: %d, want %d", columns, got, want)
		}
	}
}
