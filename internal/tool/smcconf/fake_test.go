// SPDX-License-Identifier: Apache-2.0

package smcconf

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/conf"
	"github.com/smckit/smckit/internal/pnettest"
	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/smckit/smckit/pkg/pnet"
	"github.com/smckit/smckit/pkg/policy"
	"github.com/smckit/smckit/pkg/smcerr"
	"github.com/spf13/cobra"
)

// fakeClient is a fake of the kernel's state besides the PNET table.
type fakeClient struct {
	ueids []string
	seid  *netlinksmc.SEID
	limit bool
	// noLimit and noUEIDs make the fake a kernel that lacks the handshake limit and user EIDs.
	noLimit, noUEIDs bool
	// fail is called before each change, with its number, counted from 1.
	fail func(n int) error
	n    int
}

func (f *fakeClient) Close() error { return nil }

func (f *fakeClient) change() error {
	f.n++
	if f.fail == nil {
		return nil
	}
	return f.fail(f.n)
}

func (f *fakeClient) UEIDs(context.Context) ([]string, error) {
	if f.noUEIDs {
		return nil, &smcerr.Error{Op: "list user EIDs", Kind: netlinksmc.ErrNotSupported}
	}
	return slices.Clone(f.ueids), nil
}

func (f *fakeClient) AddUEID(_ context.Context, eid string) error {
	if err := f.change(); err != nil {
		return err
	}
	if len(f.ueids) == conf.MaxUEIDs || slices.Contains(f.ueids, eid) {
		return fmt.Errorf("add user EID %s to %q", eid, f.ueids)
	}
	f.ueids = append(f.ueids, eid)
	return nil
}

func (f *fakeClient) RemoveUEID(_ context.Context, eid string) error {
	if err := f.change(); err != nil {
		return err
	}
	i := slices.Index(f.ueids, eid)
	if i < 0 {
		return netlinksmc.ErrUEIDNotFound
	}
	f.ueids = slices.Delete(f.ueids, i, i+1)
	if len(f.ueids) == 0 && f.seid != nil && !f.seid.Enabled {
		f.seid.Enabled = true
		return &smcerr.Error{Op: "remove user EID", Kind: netlinksmc.ErrSEIDActivated}
	}
	return nil
}

func (f *fakeClient) SEID(context.Context) (*netlinksmc.SEID, error) {
	if f.seid == nil {
		return nil, nil
	}
	seid := *f.seid
	return &seid, nil
}

func (f *fakeClient) SetSEID(_ context.Context, enabled bool) error {
	if err := f.change(); err != nil {
		return err
	}
	if !enabled && len(f.ueids) == 0 {
		return netlinksmc.ErrNoUEID
	}
	f.seid.Enabled = enabled
	return nil
}

func (f *fakeClient) HandshakeLimitation(context.Context) (bool, error) {
	if f.noLimit {
		return false, &smcerr.Error{Op: "show handshake limitation", Kind: netlinksmc.ErrNotSupported}
	}
	return f.limit, nil
}

func (f *fakeClient) SetHandshakeLimitation(_ context.Context, enabled bool) error {
	if err := f.change(); err != nil {
		return err
	}
	f.limit = enabled
	return nil
}

// fakeRules is a policy in memory.
type fakeRules struct {
	policy policy.Policy
	lastID uint32
	fail   error
}

func (f *fakeRules) Close() error { return nil }

func (f *fakeRules) Get(context.Context) (policy.Policy, error) {
	p := f.policy
	p.Rules = slices.Clone(p.Rules)
	return p, nil
}

func (f *fakeRules) SetRules(_ context.Context, generation uint32, rules []policy.Rule) error {
	if f.fail != nil {
		return f.fail
	}
	if generation != f.policy.Generation {
		return policy.ErrChanged
	}
	f.policy.Generation++
	f.policy.Rules = slices.Clone(rules)
	for i := range f.policy.Rules {
		if f.policy.Rules[i].ID == 0 {
			f.lastID++
			f.policy.Rules[i].ID = f.lastID
		}
	}
	return nil
}

// text returns the rules as a file.
func (f *fakeRules) text() (text string) {
	for _, r := range f.policy.Rules {
		text += r.Text(policy.SystemNames{}) + "\n"
	}
	return text
}

// fakeDevices are devices that exist.
type fakeDevices struct{ interfaces, rdma []string }

func (f fakeDevices) Interfaces() ([]string, error) { return f.interfaces, nil }
func (f fakeDevices) RDMA() ([]string, error)       { return f.rdma, nil }
func (f fakeDevices) Exists(name string) bool       { return name == "0000:00:1f.0" }

// harness runs the command with a fake kernel and files of its own.
type harness struct {
	t        *testing.T
	table    *pnettest.Kernel
	client   *fakeClient
	rules    *fakeRules
	sys      system
	dir      string
	noModule error
	out, err bytes.Buffer
}

// newHarness returns a harness whose kernel has just loaded the module.
func newHarness(t *testing.T) *harness {
	t.Helper()
	h := &harness{t: t, table: &pnettest.Kernel{}, client: &fakeClient{}, rules: &fakeRules{}, dir: t.TempDir()}
	sysctls := t.TempDir()
	for _, s := range conf.Settings {
		if s.Name != conf.HandshakeLimit {
			h.write(filepath.Join(sysctls, s.Name), fmt.Sprintln(s.Default))
		}
	}
	h.sys = system{
		dialTable: func(context.Context) (table, error) {
			if h.noModule != nil {
				return nil, h.noModule
			}
			return pnet.NewFromConn(h.table.Dial())
		},
		dialClient: func(context.Context) (client, error) { return h.client, h.noModule },
		dialRules: func(context.Context) (rules, error) {
			if h.rules == nil {
				return nil, &smcerr.Error{Op: "look up the netlink family smckit", Kind: smcerr.ErrNoModule}
			}
			return h.rules, nil
		},
		devices:  &fakeDevices{interfaces: []string{"eth0", "eth1"}, rdma: []string{"mlx5_0"}},
		hardware: pnet.Sysfs{Root: t.TempDir()},
		sysctls:  sysctls,
		lock:     filepath.Join(t.TempDir(), "lock"),
	}
	return h
}

func (h *harness) write(path, text string) {
	h.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		h.t.Fatal(err)
	}
}

// files writes the files of the directory.
func (h *harness) files(pnet, eid, settings string) {
	h.t.Helper()
	for name, text := range map[string]string{conf.PNETFile: pnet, conf.EIDFile: eid, conf.SettingsFile: settings} {
		h.write(filepath.Join(h.dir, name), text)
	}
}

// run runs the command and returns its exit status. It replaces the operand @ by the directory. The output is in out and err.
func (h *harness) run(args ...string) int {
	h.t.Helper()
	return h.runContext(h.t.Context(), args...)
}

func (h *harness) runContext(ctx context.Context, args ...string) int {
	h.t.Helper()
	h.out.Reset()
	h.err.Reset()
	args = slices.Clone(args)
	if i := slices.Index(args, "@"); i >= 0 {
		args[i] = h.dir
	}
	tool := Tool
	tool.New = func(env *cli.Env) *cobra.Command { return newRoot(env, h.sys) }
	return cli.Run(ctx, tool, &cli.Env{
		In: strings.NewReader(""), Out: &h.out, Err: &h.err,
		Getenv:     func(string) string { return "" },
		EnterNetNS: func(string) error { return errors.New("not in a test") },
	}, args)
}

// expect runs the command and compares its exit status and its output, in which the test's directories are replaced by DIR and
// SYS.
func (h *harness) expect(status int, out, err string, args ...string) {
	h.t.Helper()
	got := h.run(args...)
	name := strings.NewReplacer(h.dir, "DIR", h.sys.sysctls, "SYS")
	if stdout, stderr := name.Replace(h.out.String()), name.Replace(h.err.String()); got != status || stdout != out || stderr != err {
		h.t.Errorf("%q: status %d\n%s%s\nwant %d\n%s%s", args, got, stdout, stderr, status, out, err)
	}
}

// state returns the whole state of the fake kernel.
func (h *harness) state() string {
	h.t.Helper()
	var b strings.Builder
	fmt.Fprintln(&b, h.table.Rows, h.client.ueids, h.client.limit)
	if h.client.seid != nil {
		fmt.Fprintln(&b, *h.client.seid)
	}
	entries, err := os.ReadDir(h.sys.sysctls)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(h.sys.sysctls, e.Name()))
		if err != nil {
			h.t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %s", e.Name(), text)
	}
	return b.String()
}
