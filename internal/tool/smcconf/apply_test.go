// SPDX-License-Identifier: Apache-2.0

package smcconf

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/conf"
	"github.com/smckit/smckit/internal/jsondoc/jsontest"
	"github.com/smckit/smckit/internal/pnettest"
	"github.com/smckit/smckit/pkg/netlinksmc"
	"golang.org/x/sys/unix"
)

// Files that change every kind of configuration in the kernel of someState.
const (
	somePNET     = "add NET1 eth eth0\nadd NET2 ib mlx5_0 2\nadd NET2 ib 0000:00:1f.0\n"
	someEIDs     = "A\nNEW1\nNEW2\nNEW3\nseid disable\n"
	someSettings = "rmem = 131072\nhandshake_limit = on\nloopback = namespace\nwmem = 65536\n"
)

// someState returns a kernel with entries to keep, to delete, and to delete and add again because they share a PNET ID, and
// with the maximum number of user EIDs.
func someState(t *testing.T) *harness {
	h := newHarness(t)
	h.table.Rows = []pnettest.Row{pnettest.Eth("NET1", "eth0"), pnettest.Eth("NET1", "eth1"), pnettest.Eth("OLD", "gone0")}
	h.client.ueids = []string{"OLD1", "A", "OLD2", "OLD3"}
	h.client.seid = &netlinksmc.SEID{EID: "SYSTEM", Enabled: true}
	h.files(somePNET, someEIDs, someSettings)
	return h
}

const someChanges = `smc: set rmem to 131072 (from 65536)
smc: set handshake_limit to on (from off)
smc: set loopback to namespace (from on)
eid: deleted OLD1
eid: added NEW1
eid: deleted OLD2
eid: added NEW2
eid: deleted OLD3
eid: added NEW3
eid: set seid to disable (from enable)
pnet: deleted NET1 eth eth1
pnet: deleted OLD eth gone0
pnet: added NET2 ib mlx5_0 2
pnet: added NET2 ib 0000:00:1f.0 1
`

const someDiff = `smc.conf: -rmem = 65536
smc.conf: +rmem = 131072
smc.conf: -handshake_limit = off
smc.conf: +handshake_limit = on
smc.conf: -loopback = on
smc.conf: +loopback = namespace
eid.conf: -OLD1
eid.conf: +NEW1
eid.conf: -OLD2
eid.conf: +NEW2
eid.conf: -OLD3
eid.conf: +NEW3
eid.conf: -seid enable
eid.conf: +seid disable
pnet.conf: -add NET1 eth eth1
pnet.conf: -add OLD eth gone0
pnet.conf: +add NET2 ib mlx5_0 2
pnet.conf: +add NET2 ib 0000:00:1f.0 1
`

func TestApply(t *testing.T) {
	h := someState(t)
	before := h.state()
	predicted := strings.NewReplacer("deleted", "would delete", "added", "would add", "set ", "would set ").Replace(someChanges)
	predicted = strings.ReplaceAll(predicted, "would would", "would")
	h.expect(0, predicted, "", "apply", "--check", "@")
	h.expect(0, someDiff, "", "apply", "--check", "--diff", "@")
	if after := h.state(); after != before {
		t.Errorf("--check has changed something: %s", cmp.Diff(before, after))
	}
	if _, err := os.Stat(h.sys.lock); err == nil {
		t.Error("--check has written the lock")
	}
	h.expect(0, someChanges, "", "apply", "@")
	if _, err := os.Stat(h.sys.lock); err == nil {
		t.Error("the lock was left behind")
	}
	rows := []pnettest.Row{
		pnettest.IB("NET2", "mlx5_0", 2), pnettest.IB("NET2", "0000:00:1f.0", 1), pnettest.Eth("NET1", "eth0"),
	}
	if diff := cmp.Diff(rows, h.table.Rows); diff != "" {
		t.Error(diff)
	}
	slices.Sort(h.client.ueids)
	if diff := cmp.Diff([]string{"A", "NEW1", "NEW2", "NEW3"}, h.client.ueids); diff != "" || h.client.seid.Enabled || !h.client.limit {
		t.Errorf("EIDs %s, %+v, limit %v", diff, h.client.seid, h.client.limit)
	}
	for name, want := range map[string]string{"rmem": "131072\n", "loopback": "1\n", "wmem": "65536\n"} {
		if b, err := os.ReadFile(filepath.Join(h.sys.sysctls, name)); string(b) != want {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
	// Applying again changes nothing.
	h.table.Log, h.client.n = nil, 0
	h.expect(0, "", "", "apply", "@")
	h.expect(0, "", "", "apply", "--check", "@")
	if len(h.table.Log)+h.client.n > 0 {
		t.Errorf("changes when applied again: %q, %d", h.table.Log, h.client.n)
	}
}

// TestApplyLeaves applies empty files: the kernel's state stays, and the command does not need the module.
func TestApplyLeaves(t *testing.T) {
	h := someState(t)
	h.files("# nothing\n", "# nothing\n", "")
	before := h.state()
	h.noModule = errors.New("SMC module not loaded")
	h.expect(0, "", "", "apply", "@")
	for _, name := range []string{conf.PNETFile, conf.EIDFile, conf.SettingsFile} {
		if err := os.Remove(filepath.Join(h.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	h.expect(0, "", "", "apply", "@")
	if after := h.state(); after != before {
		t.Error(cmp.Diff(before, after))
	}
	h.files("add NET1 eth eth0", "", "")
	h.expect(1, "", "smc_conf: SMC module not loaded\n", "apply", "@")
	h.files("", "A", "")
	h.expect(1, "", "smc_conf: SMC module not loaded\n", "apply", "@")
}

// TestApplyBad checks that a mistake in one file prevents changes from all files.
func TestApplyBad(t *testing.T) {
	tests := []struct{ pnet, eid, settings, err string }{
		{"add NET1 eth eth0\nadd NET1 eth eth0\n", someEIDs, someSettings, "DIR/pnet.conf:2:1: NET1 eth eth0 is a duplicate of the entry at DIR/pnet.conf:1:1"},
		{somePNET, "A\nA\n", someSettings, "DIR/eid.conf:2: user EID A is a duplicate: remove one of the lines"},
		{somePNET, someEIDs, "rmem = 1\n", `DIR/smc.conf:1: rmem = "1": the value is a number from 16384 to 1073741823, or 0`},
	}
	for _, tt := range tests {
		h := someState(t)
		h.files(tt.pnet, tt.eid, tt.settings)
		before := h.state()
		h.noModule = errors.New("the kernel was accessed")
		for _, args := range [][]string{{"apply", "@"}, {"apply", "--check", "@"}, {"check", "@"}} {
			h.expect(1, "", "smc_conf: "+tt.err+"\n", args...)
		}
		h.noModule = nil
		h.expect(1, "", "smc_conf: "+tt.err+"; correct that first, or move the file away\n", "save", "@")
		if after := h.state(); after != before {
			t.Error(cmp.Diff(before, after))
		}
	}
	h := newHarness(t)
	h.dir = filepath.Join(h.dir, "nosuch")
	h.expect(1, "", "smc_conf: cannot read the configuration: stat DIR: no such file or directory; 'smc_conf save' writes one\n", "apply", "@")
	h.expect(2, "", "smc_conf: the name of the directory is empty; see 'smc_conf apply --help'\n", "apply", "")
	h.expect(2, "", "smc_conf: accepts at most 1 arg(s), received 2; see 'smc_conf apply --help'\n", "apply", "a", "b")
}

// TestApplyRefused makes each change fail in turn, and checks that everything is restored.
func TestApplyRefused(t *testing.T) {
	refusals := func(n int) (h *harness, changes func() int) {
		h = someState(t)
		count := 0
		next := func() bool { count++; return count == n }
		h.client.fail = func(int) error {
			if next() {
				return syscall.EIO
			}
			return nil
		}
		h.table.Fail = func(int) syscall.Errno {
			if next() {
				return syscall.EIO
			}
			return 0
		}
		return h, func() int { return count }
	}
	for n := 1; ; n++ {
		h, changes := refusals(n)
		before := sorted(h.state(), h)
		status := h.run("apply", "@")
		if changes() < n {
			if n < 11 || status != 0 {
				t.Errorf("%d changes, status %d, %s", n-1, status, &h.err)
			}
			return
		}
		if diff := cmp.Diff(before, sorted(h.state(), h)); diff != "" || status != 1 || h.out.Len() > 0 {
			t.Errorf("change %d: status %d, %q, %s", n, status, &h.out, diff)
		}
		got := h.err.String()
		if strings.Count(got, "\n") != 1 || !strings.Contains(got, "input/output error") || !strings.Contains(got, "the changes before it were undone") {
			t.Errorf("change %d: %s", n, got)
		}
	}
}

// sorted sorts the user EIDs in a state, because their order has no meaning.
func sorted(state string, h *harness) string {
	eids := slices.Sorted(slices.Values(h.client.ueids))
	_, rest, _ := strings.Cut(state, "\n")
	return strings.Join(eids, " ") + "\n" + rest
}

// TestApplyNotUndone checks that the command reports if the kernel refuses to undo changes, even if a signal interrupted it.
func TestApplyNotUndone(t *testing.T) {
	h := someState(t)
	ctx, cancel := context.WithCancel(t.Context())
	h.client.fail = func(n int) error {
		if n == 3 {
			cancel()
		}
		if n > 3 {
			return syscall.ENOMEM
		}
		return nil
	}
	status := h.runContext(ctx, "apply", "@")
	if got := h.err.String(); status != 1 || !strings.Contains(got, "could not be undone: cannot allocate memory") || strings.Count(got, "\n") != 1 {
		t.Errorf("status %d, %q", status, got)
	}
}

// TestInterrupted interrupts the command between two changes. It must print nothing and restore everything.
func TestInterrupted(t *testing.T) {
	h := someState(t)
	ctx, cancel := context.WithCancel(t.Context())
	h.client.fail = func(n int) error {
		if n == 3 {
			cancel()
		}
		return nil
	}
	before := sorted(h.state(), h)
	if status := h.runContext(ctx, "apply", "@"); status != 130 || h.err.Len()+h.out.Len() > 0 {
		t.Errorf("status %d, %q, %q", status, &h.out, &h.err)
	}
	if diff := cmp.Diff(before, sorted(h.state(), h)); diff != "" {
		t.Error(diff)
	}
}

// TestApplyHardware has an interface whose firmware sets a PNET ID: the kernel refuses another one.
func TestApplyHardware(t *testing.T) {
	h := newHarness(t)
	h.files("add NET1 eth eth0\n", "A\n", "")
	h.table.Hardware = []string{"eth0"}
	h.sys.hardware = fakeHardware("FIRM")
	h.expect(1, "", "smc_conf: eth eth0 cannot be added to PNET ID NET1: it has the PNET ID \"FIRM\" from its hardware; "+
		"the changes before it were undone\n", "apply", "@")
}

type fakeHardware string

func (f fakeHardware) Interface(string) (string, error)   { return string(f), nil }
func (f fakeHardware) RDMA(string, uint8) (string, error) { return "", nil }
func (f fakeHardware) PCI(string) ([]string, error)       { return nil, nil }

// TestLeftOut has devices that do not exist yet, settings that the module does not have, and no system EID.
func TestLeftOut(t *testing.T) {
	h := newHarness(t)
	h.files("add NET1 eth eth0\nadd NET1 eth eth9\nadd NET1 ib rxe0\nadd NET1 ib 0000:00:1e.0\n", "seid enable\n",
		"loopback = off\nrmem = 131072\nhandshake_limit = on\n")
	if err := os.Remove(filepath.Join(h.sys.sysctls, "loopback")); err != nil {
		t.Fatal(err)
	}
	h.client.noLimit = true
	const warnings = `smc_conf: warning: DIR/smc.conf: loopback = off is left out: the SMC module of this kernel has no such setting
smc_conf: warning: DIR/smc.conf: handshake_limit = on is left out: the SMC module of this kernel has no such setting
smc_conf: warning: DIR/eid.conf: the system EID cannot be enabled: this host has none
smc_conf: warning: DIR/pnet.conf: NET1 eth eth9 is left out until the next apply: eth9: no such network interface
smc_conf: warning: DIR/pnet.conf: NET1 ib rxe0 1 is left out until the next apply: rxe0: no such RDMA or ISM device
smc_conf: warning: DIR/pnet.conf: NET1 ib 0000:00:1e.0 1 is left out until the next apply: 0000:00:1e.0: no such RDMA or ISM device
`
	h.expect(0, "smc: set rmem to 131072 (from 65536)\npnet: added NET1 eth eth0\n", warnings, "apply", "@")
	h.expect(0, "", warnings, "apply", "@")
	// The RDMA device appears and disappears again: its entry stays.
	h.sys.devices = &fakeDevices{interfaces: []string{"eth0", "eth9"}, rdma: []string{"rxe0"}}
	h.run("apply", "@")
	if got := h.out.String(); got != "pnet: added NET1 eth eth9\npnet: added NET1 ib rxe0 1\n" {
		t.Errorf("%q", got)
	}
	h.sys.devices = &fakeDevices{}
	h.run("apply", "@")
	if h.out.Len() > 0 || len(h.table.Rows) != 3 {
		t.Errorf("%q, %v", &h.out, h.table.Rows)
	}
}

// TestSysctlErrors has values that cannot be read or written.
func TestSysctlErrors(t *testing.T) {
	h := newHarness(t)
	h.files("", "", "rmem = 131072\n")
	h.write(filepath.Join(h.sys.sysctls, "rmem"), "much\n")
	h.expect(1, "", "smc_conf: reading net.smc.rmem: \"much\" is an unknown value: use the version of this command that belongs to the module\n", "apply", "@")
	if err := errors.Join(os.Remove(filepath.Join(h.sys.sysctls, "rmem")), os.Mkdir(filepath.Join(h.sys.sysctls, "rmem"), 0o755)); err != nil {
		t.Fatal(err)
	}
	h.expect(1, "", "smc_conf: reading net.smc.rmem: is a directory\n", "apply", "@")
	s, _ := conf.Find("rmem")
	c := &command{sys: h.sys}
	want := "setting rmem = 131072: net.smc.rmem: is a directory"
	if err := c.writeSetting(t.Context(), h.client, s, 131072); err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
	err := sysctlError("reading", s, &os.PathError{Op: "open", Path: "x", Err: syscall.EACCES})
	if !errors.Is(err, os.ErrPermission) || !strings.Contains(err.Error(), "run as root") {
		t.Errorf("%v", err)
	}
}

// TestLock checks that apply waits for the lock until it is interrupted, and that it holds the lock while it changes something.
func TestLock(t *testing.T) {
	h := someState(t)
	f, err := os.OpenFile(h.sys.lock, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	before := h.state()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if status := h.runContext(ctx, "apply", "@"); status != 130 || h.state() != before {
		t.Errorf("status %d, %s", status, &h.err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	h.client.fail = func(int) error {
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); !errors.Is(err, unix.EWOULDBLOCK) {
			t.Errorf("not locked: %v", err)
		}
		return nil
	}
	h.expect(0, someChanges, "", "apply", "@")
	h.sys.lock = filepath.Join(h.sys.lock, "x")
	if status := h.run("apply", "@"); status != 1 || !strings.Contains(h.err.String(), "cannot lock the configuration") {
		t.Errorf("status %d, %s", status, &h.err)
	}
}

// TestJSON compares whole documents, so that it detects every added or removed field.
func TestJSON(t *testing.T) {
	h := newHarness(t)
	h.files("add NET1 eth eth0\nadd NET1 eth eth9\n", "A\n", "loopback = off\n")
	h.client.ueids = []string{"B"}
	changes := `"changes":[{"file":"smc.conf","action":"set","name":"loopback","before":"on","after":"off"},` +
		`{"file":"eid.conf","action":"add","name":"A"},{"file":"eid.conf","action":"delete","name":"B"},` +
		`{"file":"pnet.conf","action":"add","name":"NET1 eth eth0"}]`
	warnings := `"warnings":["DIR/pnet.conf: NET1 eth eth9 is left out until the next apply: eth9: no such network interface"]`
	tests := []struct{ args, want string }{
		{"check @ --json=1", `{"schema":1,"table":["NET1 eth eth0","NET1 eth eth9"],"ueids":["A"],"settings":{"loopback":"off"},"rules":[]}`},
		{"apply --check --json=1 @", `{"schema":1,"changed":true,"check":true,` + changes + `,` + warnings + `}`},
		{
			"apply --check --diff --json=1 @", `{"schema":1,"changed":true,"check":true,` + changes + `,` + warnings + `,` +
				`"diff":{"before":"smc.conf: loopback = on\neid.conf: B\n","after":"smc.conf: loopback = off\neid.conf: A\npnet.conf: add NET1 eth eth0\n"}}`,
		},
		{"apply --json=1 @", `{"schema":1,"changed":true,"check":false,` + changes + `,` + warnings + `}`},
		{"apply --json=1 @", `{"schema":1,"changed":false,"check":false,"changes":[],` + warnings + `}`},
		{"save --json=1 @", `{"schema":1,"changed":false,"check":false,"files":[]}`},
		{"save --json=1 @/new --check", `{"schema":1,"changed":true,"check":true,"files":["DIR/new/pnet.conf","DIR/new/eid.conf","DIR/new/smc.conf"]}`},
		{"save --json=1 @/new", `{"schema":1,"changed":true,"check":false,"files":["DIR/new/pnet.conf","DIR/new/eid.conf","DIR/new/smc.conf"]}`},
	}
	for _, tt := range tests {
		if strings.Contains(tt.args, "check") {
			h.run(strings.Fields(strings.NewReplacer("@", h.dir, "--json=1", "--json").Replace(tt.args))...)
			jsontest.Check(t, h.out.Bytes())
		}
		status := h.run(strings.Fields(strings.ReplaceAll(tt.args, "@", h.dir))...)
		var got, want any
		text := strings.ReplaceAll(h.out.String(), h.dir, "DIR")
		if err := errors.Join(json.Unmarshal([]byte(text), &got), json.Unmarshal([]byte(tt.want), &want)); err != nil {
			t.Fatalf("%s: %v, %s", tt.args, err, &h.err)
		}
		if diff := cmp.Diff(want, got); diff != "" || status != cli.ExitOK || h.err.Len() > 0 {
			t.Errorf("%s: status %d, %q, %s", tt.args, status, &h.err, diff)
		}
	}
}
