// SPDX-License-Identifier: Apache-2.0

package smcrnics

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/golden"
	"github.com/smckit/smckit/internal/jsondoc/jsontest"
	"github.com/smckit/smckit/internal/sysfstest"
	"github.com/smckit/smckit/pkg/ism"
	"github.com/smckit/smckit/pkg/pnet"
	"github.com/spf13/cobra"
)

// entries is a PNET table.
type entries pnet.Table

func (e entries) List(context.Context) (pnet.Table, error) { return pnet.Table(e), nil }

// broken is a table that cannot be read.
type broken struct{ err error }

func (b broken) List(context.Context) (pnet.Table, error) { return nil, b.err }

// host is a system for the command.
type host struct {
	ism.Scanner
	// scans counts the scans that the command makes.
	scans int
}

func zHost(t *testing.T) *host {
	return &host{Scanner: ism.Scanner{Root: sysfstest.S390X(t), PNET: entries{
		{ID: "SOFT1", IB: "mlx5_1", Port: 1},
		{ID: "SOFT2", IB: "0605:00:00.0", Port: 1},
		{ID: "SOFT3WITHMAXIMUM", Eth: "enP3p0s0np0"},
	}}}
}

func x86Host(t *testing.T) *host {
	return &host{Scanner: ism.Scanner{Root: sysfstest.X86(t), Arch: "amd64", PNET: entries{
		{ID: "PNET0", Eth: "eth0"},
		{ID: "PNET0", IB: "rxe0", Port: 1},
		{ID: "PNET0", IB: "0000:00:04.0", Port: 1},
	}}}
}

// guestOnZ is a guest on IBM Z that has no PCI function with a FID.
func guestOnZ(t *testing.T) *host {
	h := x86Host(t)
	h.Arch = "s390x"
	return h
}

// result is the outcome of a run.
type result struct {
	status   int
	out, err string
}

// output receives the output of a run.
type output interface {
	io.Writer
	String() string
}

// runTool runs the command with h as the system.
func runTool(t *testing.T, h *host, out output, vars map[string]string, args ...string) result {
	t.Helper()
	var errs bytes.Buffer
	env := &cli.Env{
		In: strings.NewReader(""), Out: out, Err: &errs,
		Getenv:     func(name string) string { return vars[name] },
		EnterNetNS: func(name string) error { return errors.New("entered " + name) },
	}
	tool := Tool
	tool.New = func(env *cli.Env) *cobra.Command {
		return newCommand(env, func(bool) scanner { h.scans++; return &h.Scanner })
	}
	// Do not pass nil: cobra would use the arguments of the test binary.
	args = append([]string{}, args...)
	status := cli.Run(t.Context(), tool, env, args)
	return result{status, out.String(), errs.String()}
}

// zWarning is the warning about the function in the fixture that is switched on but missing.
const zWarning = "smc_rnics: warning: FID 777 is switched on, and no PCI function is there: 'dmesg' may show the reason\n"

// x86Warning is the warning about the ivshmem device in the fixture that no driver uses.
const x86Warning = "smc_rnics: warning: ivshmem device 0000:00:05.0 has no driver: smckit's module has one: unload the kernel's own with " +
	"'modprobe -r smc_diag smc' if it is loaded, and run 'modprobe smc'; 'smc_chk' shows why smckit's does not use the device\n"

func TestListing(t *testing.T) {
	tests := []struct {
		golden string
		host   func(*testing.T) *host
		args   string
		err    string
	}{
		{"z", zHost, "", zWarning},
		{"z-all", zHost, "-a", zWarning},
		{"z-ib", zHost, "-I", zWarning},
		{"z-raw", zHost, "--rawids", zWarning},
		{"z-all-ib-raw", zHost, "-aIr", zWarning},
		{"z-json", zHost, "--json", zWarning},
		{"z-fid", zHost, "8ca", ""},
		{"z-fid", zHost, "0x000008CA", ""},
		{"z-fid", zHost, "mlx5_0", ""},
		{"z-fid", zHost, "0002:00:00.0 --all", ""},
		{"z-off", zHost, "50a --al", ""},
		{"z-guest", guestOnZ, "rxe0", ""},
		{"x86", x86Host, "", x86Warning},
		{"x86", x86Host, "--IB", x86Warning},
		{"x86-all", x86Host, "--all", x86Warning},
		{"x86-raw", x86Host, "-r", x86Warning},
		{"x86-json", x86Host, "--json --all", x86Warning},
		{"x86-rxe", x86Host, "rxe0", ""},
		{"x86-rxe", x86Host, "-I eth0 --raw", ""},
		{"x86-fabric", x86Host, "0000:00:04.0", ""},
	}
	for _, test := range tests {
		t.Run(test.golden+" "+test.args, func(t *testing.T) {
			got := runTool(t, test.host(t), &bytes.Buffer{}, nil, strings.Fields(test.args)...)
			if got.status != 0 || got.err != test.err {
				t.Errorf("status %d, error %q", got.status, got.err)
			}
			golden.Check(t, "testdata/"+test.golden+".golden", got.out)
			if strings.Contains(test.args, "--json") {
				jsontest.Check(t, []byte(got.out))
				old := runTool(t, test.host(t), &bytes.Buffer{}, nil, strings.Fields(strings.Replace(test.args, "--json", "--json=1", 1))...)
				golden.Check(t, "testdata/schema1/"+test.golden+".golden", old.out)
			}
		})
	}
}

func TestEmptyHost(t *testing.T) {
	empty := func() *host { return &host{Scanner: ism.Scanner{Root: sysfstest.Make(t, "bus/"), Arch: "amd64"}} }
	got := runTool(t, empty(), &bytes.Buffer{}, nil, "--json=1")
	if want := "{\n  \"schema\": 1,\n  \"zpci\": false,\n  \"devices\": []\n}\n"; got.status != 0 || got.out != want {
		t.Errorf("--json=1: %+v", got)
	}
	got = runTool(t, empty(), &bytes.Buffer{}, nil)
	if got.status != 0 || !strings.HasPrefix(got.out, "IB-Dev") || strings.Count(got.out, "\n") != 1 {
		t.Errorf("table: %+v", got)
	}
}

// TestNothingTouched checks that help, version and invalid command lines do not access devices.
func TestNothingTouched(t *testing.T) {
	for _, args := range [][]string{
		{"--version"},
		{"-v"},
		{"--help"},
		{"-h"},
		{"a", "b"},
		{"--nonsense"},
		{"0xzz"},
		{"-N", "blue"},
	} {
		h := x86Host(t)
		if runTool(t, h, &bytes.Buffer{}, nil, args...); h.scans != 0 {
			t.Errorf("%v: accessed devices", args)
		}
	}
	if got := runTool(t, x86Host(t), &bytes.Buffer{}, nil, "-v"); got.status != 0 ||
		!strings.HasPrefix(got.out, "smc_rnics utility, smckit-") || got.err != "" {
		t.Errorf("-v: %+v", got)
	}
}

func TestHelp(t *testing.T) {
	got := runTool(t, x86Host(t), &bytes.Buffer{}, nil, "--help")
	if got.status != 0 || got.err != "" {
		t.Errorf("%+v", got)
	}
	golden.Check(t, "testdata/help.golden", got.out)
	for line := range strings.Lines(long) {
		if n := len([]rune(line)); n > 81 {
			t.Errorf("%d columns: %s", n-1, line)
		}
	}
}

func TestCompletion(t *testing.T) {
	tests := []struct {
		host func(*testing.T) *host
		args []string
		want []string
	}{
		{zHost, []string{""}, []string{"23", "50a", "605", "606", "8ca", "8ea", "1001", "1002", "lo", "rxe0"}},
		{zHost, []string{"-e", ""}, []string{"50a"}},
		{zHost, []string{"-d", ""}, []string{"23", "605", "606", "777", "8ca", "8ea", "b05", "1001", "1002"}},
		{x86Host, []string{""}, []string{
			"0000:00:04.0", "0000:00:05.0", "mlx5_0", "mlx5_1", "mlx5_10", "bnxt_re0", "irdma0", "mlx4_0", "0000:07:00.0", "0000:0a:00", "rxe0", "siw0",
		}},
		{x86Host, []string{"-e", ""}, []string{"0000:0a:00"}},
		{x86Host, []string{"-d", ""}, []string{"mlx5_0", "mlx5_1", "mlx5_10"}},
		{x86Host, []string{"rxe0", ""}, nil},
	}
	for _, test := range tests {
		args := append([]string{cobra.ShellCompNoDescRequestCmd}, test.args...)
		got := runTool(t, test.host(t), &bytes.Buffer{}, nil, args...)
		words := strings.Fields(got.out)
		if i := slices.IndexFunc(words, func(w string) bool { return strings.HasPrefix(w, ":") }); i >= 0 {
			words = words[:i]
		}
		if !slices.Equal(words, test.want) {
			t.Errorf("%v: %v, want %v", test.args, words, test.want)
		}
	}
}

// TestOddNames checks that names with control characters are escaped in tables and in JSON.
func TestOddNames(t *testing.T) {
	root := sysfstest.Make(t, "class/infiniband/bad\x1b[2J\xff/ports/1/state = 4: ACTIVE\nclass/infiniband/x/parent = e\x07\n")
	h := func() *host { return &host{Scanner: ism.Scanner{Root: root, Arch: "amd64"}} }
	got := runTool(t, h(), &bytes.Buffer{}, map[string]string{"COLUMNS": "1"})
	if got.status != 0 || !strings.Contains(got.out, `bad\x1b[2J\xff  1`) {
		t.Errorf("table: %+v", got)
	}
	if strings.ContainsAny(got.out, "\x1b\x07") || !utf8.ValidString(got.out) {
		t.Errorf("control characters in %q", got.out)
	}
	got = runTool(t, h(), &bytes.Buffer{}, nil, "--json")
	if got.status != 0 || !json.Valid([]byte(got.out)) {
		t.Errorf("JSON: %+v", got)
	}
	got = runTool(t, h(), &bytes.Buffer{}, nil, "bad\xfe")
	if got.status != 1 || got.err != `smc_rnics: no device "bad\xfe": there are bad\x1b[2J\xff, x; 'smc_rnics --all' lists them`+"\n" {
		t.Errorf("unknown name: %+v", got)
	}
}
