// SPDX-License-Identifier: Apache-2.0

package pnet_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/smckit/smckit/pkg/pnet"
	"golang.org/x/sys/unix"
)

// The tests in this file talk to the kernel that runs them, and are skipped where it has no SMC. Those that change the
// PNET table run with SMCKIT_LAB=1 only, as root; they put everything back.

func integrationClient(t *testing.T) (*pnet.Client, context.Context) {
	t.Helper()
	c, err := pnet.New()
	if errors.Is(err, pnet.ErrNoModule) || errors.Is(err, pnet.ErrNotSupported) || errors.Is(err, os.ErrPermission) {
		t.Skip("needs an SMC module:", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return c, ctx
}

// emptyTable returns a client of this host's table, which is empty until the end of the test.
func emptyTable(t *testing.T) (*pnet.Client, context.Context) {
	t.Helper()
	c, ctx := integrationClient(t)
	if os.Getenv("SMCKIT_LAB") != "1" {
		t.Skip("changes the PNET table of this host: set SMCKIT_LAB=1 to allow that")
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	before, err := c.List(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(c.Flush(context.Background()), fill(context.Background(), c, before)); err != nil {
			t.Errorf("the table could not be put back: %v", err)
		}
	})
	if err := c.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	return c, ctx
}

// fill adds entries to the table.
func fill(ctx context.Context, c *pnet.Client, entries pnet.Table) error {
	for _, e := range entries {
		if err := c.Add(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

func TestIntegrationList(t *testing.T) {
	c, ctx := integrationClient(t)
	table, err := c.List(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(table)
}

// TestIntegrationRequests holds the kernel against what the fake kernel of the other tests does.
func TestIntegrationRequests(t *testing.T) {
	c, ctx := emptyTable(t)
	for _, step := range []struct {
		what string
		do   func() error
		want error
	}{
		{"flush an empty table", func() error { return c.Flush(ctx) }, nil},
		{"add an interface that does not exist", func() error { return c.Add(ctx, eth("NET1", "nosuch0")) }, nil},
		{"again", func() error { return c.Add(ctx, eth("NET1", "nosuch0")) }, pnet.ErrRefused},
		{"to another ID", func() error { return c.Add(ctx, eth("NET2", "nosuch0")) }, os.ErrExist},
		{"add an RDMA device", func() error { return c.Add(ctx, ib("NET1", "nosuch_0", 1)) }, nil},
		{"its other port", func() error { return c.Add(ctx, ib("NET1", "nosuch_0", 2)) }, pnet.ErrRefused},
		{"add an ISM device", func() error { return c.Add(ctx, ib("NET2", "ffff:00:1f.7", 1)) }, nil},
		{"longest names", func() error { return c.Add(ctx, eth("ABCDEFGHIJKLMNOP", "a23456789012345")) }, nil},
		{"name that is no UTF-8", func() error { return c.Add(ctx, eth("NET3", "\xff\xfe")) }, nil},
		{"delete in lower case", func() error { return c.Delete(ctx, "net3") }, pnet.ErrNoID},
		{"delete an unknown ID", func() error { return c.Delete(ctx, "NET9") }, pnet.ErrNoID},
		{"delete", func() error { return c.Delete(ctx, "NET3") }, nil},
	} {
		if err := step.do(); !errors.Is(err, step.want) {
			t.Errorf("%s: error %v, want %v", step.what, err, step.want)
		}
	}
	want := pnet.Table{
		eth("NET1", "nosuch0"), ib("NET1", "nosuch_0", 1), ib("NET2", "ffff:00:1f.7", 1),
		eth("ABCDEFGHIJKLMNOP", "a23456789012345"),
	}
	got, err := c.List(ctx)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

// TestIntegrationManyEntries lists more than fits into one message.
func TestIntegrationManyEntries(t *testing.T) {
	c, ctx := emptyTable(t)
	var want pnet.Table
	for i := range 1000 {
		want = append(want, eth("BIG", fmt.Sprintf("many%d", i)))
	}
	if err := pnet.Apply(ctx, c, pnet.Diff(nil, want)); err != nil {
		t.Fatal(err)
	}
	got, err := c.List(ctx)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

// refusing fails one of the changes that are asked of the kernel.
type refusing struct {
	c    *pnet.Client
	left int
}

var errRefusing = errors.New("refused by the test")

func (r *refusing) refuse() bool {
	r.left--
	return r.left == 0
}

func (r *refusing) List(ctx context.Context) (pnet.Table, error) { return r.c.List(ctx) }

func (r *refusing) Add(ctx context.Context, e pnet.Entry) error {
	if r.refuse() {
		return errRefusing
	}
	return r.c.Add(ctx, e)
}

func (r *refusing) Delete(ctx context.Context, id pnet.ID) error {
	if r.refuse() {
		return errRefusing
	}
	return r.c.Delete(ctx, id)
}

// TestIntegrationApply lets every step of a plan fail, and then none.
func TestIntegrationApply(t *testing.T) {
	c, ctx := emptyTable(t)
	from := table(t, "A eth e1; A eth e2; A ib m 2; B eth e3; B ib n 1")
	to := table(t, "A eth e2; A ib m 1; B eth e3; C eth e1; C eth e4")
	if err := fill(ctx, c, from); err != nil {
		t.Fatal(err)
	}
	plan := pnet.Diff(from, to)
	for i := range plan.Steps {
		err := pnet.Apply(ctx, &refusing{c, i + 1}, plan)
		if got := list(t, c); !errors.Is(err, errRefusing) || !got.Equal(from) {
			t.Fatalf("step %d: error %v, left %v", i, err, got)
		}
	}
	if err := pnet.Apply(ctx, c, plan); err != nil || !list(t, c).Equal(plan.To) {
		t.Errorf("error %v, left %v, want %v", err, list(t, c), plan.To)
	}
}

// TestIntegrationApplyRefused has a plan that the kernel itself refuses in the end.
func TestIntegrationApplyRefused(t *testing.T) {
	c, ctx := emptyTable(t)
	from := table(t, "A eth e1; A eth e2; B ib m 2")
	if err := fill(ctx, c, from); err != nil {
		t.Fatal(err)
	}
	err := pnet.Apply(ctx, c, pnet.Diff(from, table(t, "A eth e2; B ib m 2; C ib n 1; D ib n 2")))
	if !errors.Is(err, pnet.ErrRefused) || !list(t, c).Equal(from) {
		t.Errorf("error %v, left %v", err, list(t, c))
	}
}

// TestIntegrationNamespace uses the table of a new network namespace.
func TestIntegrationNamespace(t *testing.T) {
	initial, ctx := emptyTable(t)
	if err := fill(ctx, initial, table(t, "A eth e1; A ib m 1")); err != nil {
		t.Fatal(err)
	}
	// The thread is not unlocked, so that it ends with the test.
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	c, err := pnet.New()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got := list(t, c); len(got) > 0 {
		t.Errorf("the new table has %v", got)
	}
	if err := c.Add(ctx, ib("A", "x", 1)); !errors.Is(err, pnet.ErrRefused) {
		t.Errorf("adding an RDMA device: error %v", err)
	}
	if err := c.Add(ctx, eth("B", "e1")); err != nil {
		t.Error(err)
	}
	if got := list(t, c); !got.Equal(table(t, "B eth e1")) {
		t.Errorf("the new table has %v", got)
	}
	if err := c.Flush(ctx); err != nil {
		t.Error(err)
	}
	if got := list(t, initial); !got.Equal(table(t, "A eth e1; A ib m 1")) {
		t.Errorf("the initial table has %v", got)
	}
}

// unprivileged marks the process that TestIntegrationUnprivileged starts.
const unprivileged = "SMCKIT_UNPRIVILEGED"

// TestIntegrationUnprivileged runs itself without privileges.
func TestIntegrationUnprivileged(t *testing.T) {
	if os.Getenv(unprivileged) != "" {
		c, ctx := integrationClient(t)
		for name, do := range methods {
			err := do(ctx, c)
			if name == "List" && err != nil || name != "List" && !errors.Is(err, os.ErrPermission) {
				t.Errorf("%s: error %v", name, err)
			}
		}
		return
	}
	emptyTable(t)
	cmd := exec.Command("/proc/self/exe", "-test.run", "^TestIntegrationUnprivileged$", "-test.v")
	cmd.Env = append(os.Environ(), unprivileged+"=1")
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, os.ErrPermission) {
		t.Skip("the test's program cannot be run by others:", err)
	}
	if err != nil || !strings.Contains(string(out), "--- PASS") {
		t.Errorf("%v\n%s", err, out)
	}
}
