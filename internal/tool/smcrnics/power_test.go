// SPDX-License-Identifier: Apache-2.0

package smcrnics

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/sysfstest"
	"github.com/smckit/smckit/pkg/ism"
	"github.com/spf13/cobra"
)

// power reads the power setting of a slot.
func power(t *testing.T, h *host, slot string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(h.Root, "bus/pci/slots", slot, "power"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))[:1]
}

func TestSwitch(t *testing.T) {
	tests := []struct {
		host func(*testing.T) *host
		args string
		slot string
		want string // of the switch
		out  string
	}{
		{zHost, "-e 50a", "0000050a", "1", ""},
		{zHost, "--enable=0x50A", "0000050a", "1", ""},
		{zHost, "-e 000a:00:00.0", "0000050a", "1", ""},
		{zHost, "-d 8ca", "000008ca", "0", ""},
		{zHost, "-d mlx5_0", "000008ca", "0", ""},
		{zHost, "-d enP2p0s0np0", "000008ca", "0", ""},
		{zHost, "-d mlx4_0", "00000023", "0", ""},
		{zHost, "-e 8ca", "000008ca", "1", "FID 8ca is already enabled: nothing changed\n"},
		{zHost, "-d 0000050a", "0000050a", "0", "FID 50a is already disabled: nothing changed\n"},
		{
			zHost, "-d 8ca --json=1", "000008ca", "0",
			`{ "schema": 1, "fid": "000008ca", "slot": "000008ca", "power": "off", "changed": true }`,
		},
		{
			zHost, "-e 8ca --json=1", "000008ca", "1",
			`{ "schema": 1, "fid": "000008ca", "slot": "000008ca", "power": "on", "changed": false }`,
		},
		{x86Host, "-d mlx5_1", "1", "0", ""},
		{x86Host, "-e 0000:0a:00.0", "2", "1", ""},
		{x86Host, "-e 0000:0a:00", "2", "1", ""},
		{x86Host, "-e mlx5_0 --json=1", "1", "1", `{ "schema": 1, "slot": "1", "power": "on", "changed": false }`},
	}
	for _, test := range tests {
		t.Run(test.args, func(t *testing.T) {
			h := test.host(t)
			got := runTool(t, h, &bytes.Buffer{}, nil, strings.Fields(test.args)...)
			if got.status != 0 || got.err != "" {
				t.Errorf("status %d, error %q", got.status, got.err)
			}
			out := got.out
			if strings.Contains(test.args, "--json=1") {
				out = strings.Join(strings.Fields(out), " ")
			}
			if out != test.out {
				t.Errorf("output %q, want %q", out, test.out)
			}
			if p := power(t, h, test.slot); p != test.want {
				t.Errorf("power %s", p)
			}
		})
	}
}

// full is a closed pipe, or a full disk.
type full struct{ err error }

func (f full) Write([]byte) (int, error) { return 0, f.err }
func (f full) String() string            { return "" }

// TestBadInput checks the status and the one line on standard error, and that nothing is switched.
func TestBadInput(t *testing.T) {
	const usage = "; see 'smc_rnics --help'"
	tests := []struct {
		host   func(*testing.T) *host
		args   []string
		status int
		err    string
	}{
		{zHost, []string{"-e", "zz"}, 1, `"zz" is not a valid FID, nor the name of a device: see 'smc_rnics --all'`},
		{zHost, []string{"zz"}, 1, `"zz" is not a valid FID, nor the name of a device: see 'smc_rnics --all'`},
		{zHost, []string{"-e", "999"}, 1, "FID 999 does not exist: 'smc_rnics --all' lists those that do"},
		{zHost, []string{"0x00000999"}, 1, "FID 999 does not exist: 'smc_rnics --all' lists those that do"},
		{zHost, []string{"-d", "0xzz"}, 2, `"0xzz" is not a valid FID: give up to 8 hexadecimal digits` + usage},
		{zHost, []string{"0x123456789"}, 2, `"0x123456789" is not a valid FID: give up to 8 hexadecimal digits` + usage},
		{zHost, []string{"-e", ""}, 2, `"" is neither a FID nor the name or PCI address of a device` + usage},
		{zHost, []string{"-d", ""}, 2, `"" is neither a FID nor the name or PCI address of a device` + usage},
		{zHost, []string{""}, 2, `"" is neither a FID nor the name or PCI address of a device` + usage},
		{zHost, []string{"../23"}, 2, `"../23" is neither a FID nor the name or PCI address of a device` + usage},
		{zHost, []string{"-e", "a b"}, 2, `"a b" is neither a FID nor the name or PCI address of a device` + usage},
		{zHost, []string{"a\nb"}, 2, `"a\nb" is neither a FID nor the name or PCI address of a device` + usage},
		{zHost, []string{strings.Repeat("n", 65)}, 2, `"` + strings.Repeat("n", 65) + `" is neither a FID nor the name or PCI address of a device` + usage},
		{zHost, []string{"-e"}, 2, "flag needs an argument: 'e' in -e" + usage},
		{zHost, []string{"-e", "23", "-d", "23"}, 2, "-e and -d cannot be combined" + usage},
		{zHost, []string{"-e", "50a", "8ca"}, 2, `-e and -d take one device: unexpected operand "8ca"` + usage},
		{zHost, []string{"8ca", "8ea"}, 2, "accepts at most 1 arg(s), received 2" + usage},
		{zHost, []string{"-x"}, 2, "unknown shorthand flag: 'x' in -x" + usage},
		{zHost, []string{"50a"}, 1, "FID 50a is switched off: 'smc_rnics -e' switches it on, --all lists it"},
		{zHost, []string{"b05"}, 1, "0b05:00:00.0 is neither a RoCE nor an ISM device: --all lists it"},
		{zHost, []string{"-e", "rxe0"}, 1, "cannot enable rxe0: it is a software device, so use 'rdma link' or 'ip link'"},
		{zHost, []string{"-N", "blue"}, 1, "entered blue"},
		{x86Host, []string{"8ca"}, 1, `no device "8ca": FIDs are for IBM Z; use a name or a PCI address that 'smc_rnics --all' shows`},
		{x86Host, []string{"-e", "8ca"}, 1, `no device "8ca": FIDs are for IBM Z; use a name or a PCI address that 'smc_rnics --all' shows`},
		{x86Host, []string{"mlx9_0"}, 1, `no device "mlx9_0" (did you mean "mlx5_0" or "mlx5_1" or "mlx5_10" or "mlx4_0"?): 'smc_rnics --all' lists those that exist`},
		{x86Host, []string{"-d", "mlx9_0"}, 1, `no device "mlx9_0" (did you mean "mlx5_0" or "mlx5_1" or "mlx5_10" or "mlx4_0"?): 'smc_rnics --all' lists those that exist`},
		{x86Host, []string{"eno1"}, 1, "0000:08:00.0 is neither a RoCE nor an ISM device: --all lists it"},
		{x86Host, []string{"--all", "0000:09:00.0"}, 1, "0000:09:00.0 is not a network adapter: 'lspci' shows what it is"},
		{x86Host, []string{"-d", "irdma0"}, 1, "cannot disable irdma0: only PCI functions of IBM Z and slots for hot plugging have a power switch; " +
			"'ip link set' takes an interface up and down"},
		{x86Host, []string{"-d", "bnxt_re0"}, 1, "cannot disable bnxt_re0: only PCI functions of IBM Z and slots for hot plugging have a power switch; " +
			"'ip link set' takes an interface up and down"},
		{zHost, []string{"-d", "eth0"}, 1, `"eth0" is not a valid FID, nor the name of a device: see 'smc_rnics --all'`},
		{x86Host, []string{"-d", "eth0"}, 1, `"eth0" is neither a RoCE nor an ISM device: smc_rnics does not switch it`},
		{x86Host, []string{"-d", "0000:08:00.0"}, 1, `"0000:08:00.0" is neither a RoCE nor an ISM device: smc_rnics does not switch it`},
		{x86Host, []string{"-e", "0000:0c:00"}, 1, `no device "0000:0c:00": 'smc_rnics --all' lists those that exist`},
	}
	for _, test := range tests {
		t.Run(fmt.Sprintf("%q", test.args), func(t *testing.T) {
			h := test.host(t)
			h.WriteFile = func(path string, _ []byte) error {
				t.Errorf("%s written", path)
				return nil
			}
			got := runTool(t, h, &bytes.Buffer{}, map[string]string{"COLUMNS": "1"}, test.args...)
			if want := "smc_rnics: " + test.err + "\n"; got.status != test.status || got.err != want || got.out != "" {
				t.Errorf("status %d, output %q, error %q; want %d, %q", got.status, got.out, got.err, test.status, want)
			}
		})
	}
}

// TestKernelRefuses checks the message if switching fails.
func TestKernelRefuses(t *testing.T) {
	pathError := func(errno syscall.Errno) error { return &os.PathError{Op: "write", Path: "power", Err: errno} }
	const advice = ": 'dmesg' may show the reason; a function in use, or with virtual functions, stays on"
	tests := []struct {
		args string
		err  error
		want string
	}{
		{"-d 8ca", pathError(syscall.EACCES), "cannot disable FID 8ca: not permitted: run as root, outside of containers"},
		{"-d 8ca", pathError(syscall.EPERM), "cannot disable FID 8ca: not permitted: run as root, outside of containers"},
		{"-e 50a", pathError(syscall.EROFS), "cannot enable FID 50a: read-only file system" + advice},
		{"-d mlx5_0", pathError(syscall.EBUSY), "cannot disable FID 8ca: device or resource busy" + advice},
		{"-d 8ca", pathError(syscall.ENOENT), "cannot disable FID 8ca: its slot does not exist any more: see 'smc_rnics --all'"},
		{"-e 50a", nil, "cannot enable FID 50a: the slot has not changed its state" + advice},
	}
	for _, test := range tests {
		h := zHost(t)
		h.WriteFile = func(string, []byte) error { return test.err }
		got := runTool(t, h, &bytes.Buffer{}, nil, strings.Fields(test.args)...)
		if want := "smc_rnics: " + test.want + "\n"; got.status != 1 || got.err != want || got.out != "" {
			t.Errorf("%s: status %d, output %q, error\n%swant\n%s", test.args, got.status, got.out, got.err, want)
		}
	}
}

func TestHostProblems(t *testing.T) {
	// No SMC module: the devices are there, without IDs from the table.
	h := x86Host(t)
	h.PNET = broken{os.ErrNotExist}
	got := runTool(t, h, &bytes.Buffer{}, nil, "rxe0")
	if got.status != 0 || got.err != "" || !strings.Contains(got.out, "rxe0") || strings.Contains(got.out, "*") {
		t.Errorf("no module: %+v", got)
	}
	// A table that cannot be read causes one warning.
	h.PNET = broken{errors.New("table\nbroken")}
	got = runTool(t, h, &bytes.Buffer{}, nil, "rxe0")
	if got.status != 0 || got.err != "smc_rnics: warning: table broken\n" || !strings.Contains(got.out, "rxe0") {
		t.Errorf("broken table: %+v", got)
	}
	// No sysfs.
	root := filepath.Join(t.TempDir(), "sys")
	for _, args := range []string{"", "-e 1", "--json=1"} {
		got = runTool(t, &host{Scanner: ism.Scanner{Root: root}}, &bytes.Buffer{}, nil, strings.Fields(args)...)
		if want := "smc_rnics: no sysfs at " + root + ", mount it: file does not exist\n"; got.status != 1 || got.err != want {
			t.Errorf("no sysfs, %q: %+v", args, got)
		}
	}
	// Closed or full standard output.
	for _, args := range []string{"mlx5_0", "--json=1 mlx5_0", "--help"} {
		if got := runTool(t, x86Host(t), full{syscall.EPIPE}, nil, strings.Fields(args)...); got.status != 1 || got.err != "" {
			t.Errorf("closed pipe, %q: %+v", args, got)
		}
		got := runTool(t, x86Host(t), full{syscall.ENOSPC}, nil, strings.Fields(args)...)
		if want := "smc_rnics: cannot write the output: no space left on device\n"; got.status != 1 || got.err != want {
			t.Errorf("full disk, %q: %+v", args, got)
		}
	}
}

// TestSeveral checks that a name of several devices in different slots is refused.
func TestSeveral(t *testing.T) {
	h := &host{Scanner: ism.Scanner{Arch: "amd64", Root: sysfstest.Make(t, `
		[bus/pci/devices]
		0000:01:00.0/net/same/dev_port = 0
		0000:02:00.0/net/same/dev_port = 0
		[bus/pci/slots]
		1/address = 0000:01:00
		1/power = 1
		2/address = 0000:02:00
		2/power = 1
	`)}}
	got := runTool(t, h, &bytes.Buffer{}, nil, "-d", "same")
	if want := "smc_rnics: \"same\" names several devices: use the PCI address of one\n"; got.status != 1 || got.err != want {
		t.Errorf("%+v", got)
	}
	if power(t, h, "1") != "1" || power(t, h, "2") != "1" {
		t.Error("switched")
	}
}

// TestPowerAsks checks that 'smckit devices' switches off nothing without a yes, and that no other use of it asks.
func TestPowerAsks(t *testing.T) {
	for _, tt := range []struct{ args, power, err string }{
		{"-d 8ca", "1", "smckit devices: cannot ask whether to switch off FID 8ca: connections over it end, or continue over another adapter, " +
			"since standard input is no terminal: use --yes\n"},
		{"-d 8ca --yes", "0", ""},
		{"-e 8ca", "1", ""},
	} {
		h := zHost(t)
		devices := Tool
		devices.New = func(env *cli.Env) *cobra.Command { return newCommand(env, func(bool) scanner { return &h.Scanner }) }
		suite := cli.Tool{
			Name: "smckit", New: func(*cli.Env) *cobra.Command { return &cobra.Command{Use: "smckit"} },
			Subs: []cli.Sub{{Name: "devices", Tool: devices}},
		}
		var out, errs bytes.Buffer
		env := &cli.Env{In: strings.NewReader(""), Out: &out, Err: &errs, Getenv: func(string) string { return "" }}
		status := cli.Run(t.Context(), suite, env, append([]string{"devices"}, strings.Fields(tt.args)...))
		if got := power(t, h, "000008ca"); got != tt.power || errs.String() != tt.err || (status == 0) != (tt.err == "") {
			t.Errorf("%s: status %d, power %s, %s", tt.args, status, got, &errs)
		}
	}
}
