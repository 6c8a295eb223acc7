// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/smckit/smckit/pkg/pnet"
)

// packaged is the directory of the files that packages install.
const packaged = "../../packaging/etc/smc"

func TestParseEIDs(t *testing.T) {
	tests := []struct {
		text string
		want EIDs
		err  string // prefix of the error, from the line number on
	}{
		{text: ""},
		{text: "# nothing\n\n   # at all\n"},
		{text: "MYNET.EID\nB-2\n", want: EIDs{User: []string{"MYNET.EID", "B-2"}}},
		{text: "\ufeff  A \t# x\r\nB#\n", err: ":2: invalid user EID \"B#\": character 2"},
		{text: "\ufeff  A \t# x\r\nB #\n", want: EIDs{User: []string{"A", "B"}}},
		{text: "A\nseid disable", want: EIDs{User: []string{"A"}, System: new(false)}},
		{text: "seid  enable # really", want: EIDs{System: new(true)}},
		{text: "A\n\nb\n", err: ":3: invalid user EID \"b\": the first character must be"},
		{text: "A..B", err: ":1: invalid user EID \"A..B\": it has two dots in a row"},
		{text: strings.Repeat("A", 33), err: ":1: invalid user EID"},
		{text: "A B", err: ":1: unexpected word \"B\": a line has one user EID"},
		{text: "A\nB\nA", err: ":3: user EID A is a duplicate: remove one"},
		{text: "A\nB\nC\nD\nE", err: ":5: user EID E is one too many: the kernel stores at most 4"},
		{text: "seid", err: ":1: 'seid' is followed by 'enable' or 'disable'"},
		{text: "seid on", err: ":1: 'seid' is followed by"},
		{text: "seid enable now", err: ":1: 'seid' is followed by"},
		{text: "seid enable\nseid enable", err: ":2: a second line about the system EID"},
		{text: "# x\n seid disable\n#", err: ":2: the system EID cannot be disabled while there is no user EID"},
		{text: "A\nB\x00", err: ":2: control character '\\x00'"},
		{text: "A # \x1b[2J", err: ":1: control character '\\x1b'"},
		{text: strings.Repeat("#\n", maxSize), err: ":1: the file is larger"},
	}
	for _, tt := range tests {
		got, err := ParseEIDs(tt.text, "eid.conf")
		checkError(t, tt.text, "eid.conf"+tt.err, tt.err == "", err)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%.40q: %s", tt.text, diff)
		}
	}
}

// checkError expects no error, or an *Error that begins with want.
func checkError(t *testing.T, text, want string, none bool, err error) {
	t.Helper()
	if none {
		if err != nil {
			t.Errorf("%.40q: %v", text, err)
		}
		return
	}
	if _, ok := errors.AsType[*Error](err); !ok || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%.40q: error %v, want %s", text, err, want)
	}
}

func TestParseSettings(t *testing.T) {
	tests := []struct {
		text, want, err string
	}{
		{},
		{text: "# rmem = 1\n"},
		{text: "rmem=131072\n\twmem  =\t16384 # small\nloopback = namespace", want: "rmem = 131072, wmem = 16384, loopback = namespace"},
		{text: "loopback = 0\nsmcr_immediate = 0\nhandshake_limit = on", want: "loopback = off, smcr_immediate = off, handshake_limit = on"},
		{text: "autocorking_size = 4294967295", want: "autocorking_size = 4294967295"},
		{text: "rmem = 0", want: "rmem = 0"},
		{text: "rmem = 16383", err: `:1: rmem = "16383": the value is a number from 16384 to 1073741823, or 0`},
		{text: "smcr_testlink_time = -1", err: `:1: smcr_testlink_time = "-1": the value is a number from 0 to 2147483`},
		{text: "autocorking_size = 4294967296", err: `:1: autocorking_size = "4294967296": the value is a number from 0 to 4294967295`},
		{text: "\nrmem = 16383", err: `:2: rmem = "16383": the value is a number from 16384 to 1073741823`},
		{text: "rmem = 64K", err: `:1: rmem = "64K": the value is a number`},
		{text: "rmem = -1", err: `:1: rmem = "-1": the value is a number`},
		{text: "rmem = 65536 65536", err: `:1: rmem = "65536 65536": the value is a number`},
		{text: "rmem =", err: `:1: rmem = "": the value is a number`},
		{text: "loopback = 3", err: `:1: loopback = "3": the value is one of off, namespace, on`},
		{text: "smcr_v1_rocev2 = yes", err: `:1: smcr_v1_rocev2 = "yes": the value is one of off, on`},
		{text: "rmem 65536", err: `:1: "rmem 65536": a line is 'NAME = VALUE'`},
		{text: "= 65536", err: `:1: "= 65536": a line is 'NAME = VALUE'`},
		{text: "rmem = 65536\nrmem = 65536", err: `:2: rmem is a duplicate: remove one`},
		{text: "nosuch = 1", err: `:1: unknown setting "nosuch": it is one of auto_bytes, auto_forget, auto_samples, auto_time, autocorking_size, handshake_limit,`},
		{text: "net.smc.rmem = 65536", err: `:1: unknown setting "net.smc.rmem": write names without 'net.smc.' ("rmem")`},
		{text: "limit_smc_hs = 1", err: `:1: unknown setting "limit_smc_hs": its name in this file is handshake_limit`},
		{text: strings.Repeat("x", 100), err: `:1: "` + strings.Repeat("x", 64) + `"...: a line is`},
		{text: "rmem = 65536\x7f", err: ":1: control character"},
	}
	for _, tt := range tests {
		all, err := ParseSettings(tt.text, "smc.conf")
		checkError(t, tt.text, "smc.conf"+tt.err, tt.err == "", err)
		var got []string
		for _, a := range all {
			got = append(got, a.String())
		}
		if s := strings.Join(got, ", "); s != tt.want {
			t.Errorf("%q: %s", tt.text, s)
		}
	}
}

// TestKernelSettings compares names, limits and defaults with the module's.
func TestKernelSettings(t *testing.T) {
	source, err := os.ReadFile("../../kernel/control/sysctl_gen.c")
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]uint64{
		"UINT_MAX": 1<<32 - 1, "INT_MAX / 2": (1<<31 - 1) / 2, "INT_MAX / HZ": (1<<31 - 1) / 1000,
	}
	number := regexp.MustCompile(`\.(min|max|init) = ([^,]+)`)
	var got []Setting
	for _, m := range regexp.MustCompile(`\n\t\[SMC_SYSCTL_\w+\] = \{ (.*) \},`).FindAllStringSubmatch(string(source), -1) {
		var s Setting
		name := regexp.MustCompile(`KNOB\((\w+)\)|\.name = "(\w+)"`).FindStringSubmatch(m[1])
		if s.Name = name[1] + name[2]; s.Name == "limit_smc_hs" {
			s.Name = HandshakeLimit
		}
		for _, n := range number.FindAllStringSubmatch(m[1], -1) {
			value, ok := values[n[2]]
			if !ok {
				if value, err = (Setting{Max: 1 << 32}).Parse(n[2]); err != nil {
					t.Fatal(err)
				}
			}
			*map[string]*uint64{"min": &s.Min, "max": &s.Max, "init": &s.Default}[n[1]] = value
		}
		s.Zero = strings.Contains(m[1], "KIND_BUFFER")
		// This parameter is not a sysctl.
		if s.Name != "port_add_delay" {
			got = append(got, s)
		}
	}
	byName := map[string]Setting{}
	for _, s := range got {
		byName[s.Name] = s
	}
	want := map[string]Setting{}
	for _, s := range Settings {
		// The module's table has none of these.
		s.Words, s.Ours = nil, false
		if !s.Stock {
			want[s.Name] = s
		}
	}
	if diff := cmp.Diff(want, byName); diff != "" || len(got) != len(want) {
		t.Errorf("kernel +, here -: %s", diff)
	}
}

// TestPackaged checks that the files that packages install set nothing, and that the commented-out lines contain the defaults.
func TestPackaged(t *testing.T) {
	c, err := Load(packaged)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Config{}, c); diff != "" {
		t.Error(diff)
	}
	texts, err := Read(packaged)
	if err != nil {
		t.Fatal(err)
	}
	active := regexp.MustCompile(`(?m)^# ((add|seid) .*|[A-Z]+|[a-z0-9_]+ = .*)$`)
	for name, text := range texts {
		texts[name] = active.ReplaceAllString(text, "$1")
	}
	c, err = texts.Parse(packaged)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Table) != 2 || len(c.EIDs.Lines()) != 2 || len(c.Settings) != len(Settings) {
		t.Errorf("%+v", c)
	}
	for _, a := range c.Settings {
		if a.Value != a.Setting.Default {
			t.Errorf("%s, but the default is %s", a, a.Setting.Format(a.Setting.Default))
		}
	}
}

// TestLoad loads directories with a mistake in each file in turn, and with files that cannot be read.
func TestLoad(t *testing.T) {
	good := Texts{PNETFile: "add NET1 eth eth0\n", EIDFile: "A\n", SettingsFile: "rmem = 65536\n"}
	bad := Texts{PNETFile: "\nadd NET1 eth\n", EIDFile: "A\na\n", SettingsFile: "\nrmem\n"}
	for name, text := range bad {
		dir := t.TempDir()
		for n, g := range good {
			writeFile(t, filepath.Join(dir, n), g)
		}
		if c, err := Load(dir); err != nil || len(c.Table) != 1 || len(c.EIDs.User) != 1 || len(c.Settings) != 1 {
			t.Errorf("%+v, %v", c, err)
		}
		writeFile(t, filepath.Join(dir, name), text)
		c, err := Load(dir)
		if err == nil || !strings.HasPrefix(err.Error(), filepath.Join(dir, name)+":2:") {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(Config{}, c); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(dir); err != nil {
			t.Errorf("without %s: %v", name, err)
		}
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s is a directory: %v", name, err)
		}
	}
	for _, dir := range []string{filepath.Join(packaged, "nosuch"), filepath.Join(packaged, EIDFile)} {
		if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "smc.conf"), filepath.Join(dir, "link")
	if err := os.Symlink("smc.conf", link); err != nil {
		t.Fatal(err)
	}
	writeFile(t, path, "old")
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(link, "new"); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(path)
	if err != nil || info.Mode() != 0o640 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if b, err := os.ReadFile(link); string(b) != "new" {
		t.Errorf("%q, %v", b, err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode().IsRegular() {
		t.Errorf("the link is none any more: %v", err)
	}
	fresh := filepath.Join(dir, "fresh")
	if err := WriteFile(fresh, "x"); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(fresh); err != nil || info.Mode() != 0o644 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if err := WriteFile(filepath.Join(dir, "nosuch", "x"), "x"); err == nil {
		t.Error("written without a directory")
	}
	// WriteFile leaves no temporary files.
	if names, _ := filepath.Glob(filepath.Join(dir, ".*")); len(names) > 0 {
		t.Errorf("left over: %q", names)
	}
}

func TestMerge(t *testing.T) {
	table := pnet.Table{{ID: "NET1", Eth: "eth0"}, {ID: "NET1", IB: "mlx5_0", Port: 2}}
	const text = "# fabric A\nadd NET1  eth eth0 # uplink\r\nadd NET2 eth eth1 # old\n\n# later\nadd NET3 ib rxe9"
	got, err := MergeTable(text, table, func(e pnet.Entry) bool { return e.IB == "rxe9" })
	want := "# fabric A\nadd NET1  eth eth0 # uplink\r\n\n# later\nadd NET3 ib rxe9\nadd NET1 ib mlx5_0 2\n"
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	if _, err := MergeTable("", pnet.Table{{ID: "NET1", Eth: "#"}}, nil); err == nil {
		t.Error("a name that would be a comment")
	}

	eids := EIDs{User: []string{"B", "C"}, System: new(false)}
	if got := MergeEIDs("# x\n A # a\n B # b\nseid enable", eids); got != "# x\n B # b\nC\nseid disable\n" {
		t.Errorf("%q", got)
	}
	if got := MergeEIDs("A\nseid disable # x\n#", EIDs{}); got != "#" {
		t.Errorf("%q", got)
	}
	if got := MergeEIDs("A\nseid enable # x\n#", EIDs{}); got != "seid enable # x\n#" {
		t.Errorf("%q", got)
	}

	values := map[string]uint64{"rmem": 65536, "wmem": 131072, "loopback": 1, "smcr_immediate": 1}
	if got := MergeSettings(" rmem = 16384  # small\nsmcr_buf_type = 2\nwmem=131072", values); got !=
		"rmem = 65536  # small\nsmcr_buf_type = 2\nwmem=131072\nloopback = namespace\n" {
		t.Errorf("%q", got)
	}
}
