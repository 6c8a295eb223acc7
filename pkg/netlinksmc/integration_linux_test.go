// SPDX-License-Identifier: Apache-2.0

package netlinksmc

import (
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The tests in this file talk to the kernel that runs them, and are skipped where it has no SMC. Those that change
// settings of the host run with SMCKIT_LAB=1 only; they put everything back.

// integrationClient returns a Client of this host and a context that limits the test.
func integrationClient(t *testing.T) (*Client, context.Context) {
	t.Helper()
	c, err := New()
	if errors.Is(err, ErrNoModule) || errors.Is(err, ErrNotSupported) || errors.Is(err, os.ErrPermission) {
		t.Skip("needs an SMC module:", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return c, ctx
}

// changesHost skips a test that changes settings unless that is wanted.
func changesHost(t *testing.T) {
	t.Helper()
	if os.Getenv("SMCKIT_LAB") != "1" {
		t.Skip("changes settings of this host: set SMCKIT_LAB=1 to allow that")
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
}

func TestIntegrationSystemInfo(t *testing.T) {
	c, ctx := integrationClient(t)
	info, err := c.SystemInfo(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", *info)
	if info.Version != 2 {
		t.Errorf("version %d, want 2", info.Version)
	}
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	// The module has asked for the name when it was loaded, and keeps 32 bytes of it.
	if info.Hostname != name[:min(len(name), 32)] {
		t.Logf("module's name for this host is %q, the system's is %q", info.Hostname, name)
	}
}

// TestIntegrationLists makes every request that changes nothing.
func TestIntegrationLists(t *testing.T) {
	c, ctx := integrationClient(t)
	for _, m := range methods {
		if m.flags != flagsDump {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			if err := m.call(ctx, c); err != nil {
				t.Error(err)
			}
		})
	}
	for _, list := range []func(context.Context) ([]Device, error){c.DevicesR, c.DevicesD} {
		devices, err := list(ctx)
		if err != nil {
			t.Error(err)
		}
		t.Logf("devices: %+v", devices)
	}
	seid, err := c.SEID(ctx)
	if err != nil {
		t.Error(err)
	}
	t.Logf("SEID: %+v", seid)
}

func TestIntegrationUEIDs(t *testing.T) {
	c, ctx := integrationClient(t)
	changesHost(t)
	before, err := c.UEIDs(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { restoreUEIDs(t, before) })
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	list := func(want ...string) {
		t.Helper()
		got, err := c.UEIDs(ctx)
		must(err)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	must(c.FlushUEIDs(ctx))
	list()
	must(c.AddUEID(ctx, "SMCKIT.A"))
	if err := c.AddUEID(ctx, "SMCKIT.A"); !errors.Is(err, ErrUEIDExists) {
		t.Errorf("added twice: got error %v, want ErrUEIDExists", err)
	}
	for _, eid := range []string{"SMCKIT.B", "0", "ABCDEFGHIJKLMNOPQRSTUVWXYZ012345"} {
		must(c.AddUEID(ctx, eid))
	}
	list("0", "ABCDEFGHIJKLMNOPQRSTUVWXYZ012345", "SMCKIT.A", "SMCKIT.B")
	if err := c.AddUEID(ctx, "SMCKIT.C"); !errors.Is(err, ErrUEIDTableFull) {
		t.Errorf("fifth EID: got error %v, want ErrUEIDTableFull", err)
	}
	must(c.RemoveUEID(ctx, "SMCKIT.B"))
	if err := c.RemoveUEID(ctx, "SMCKIT.B"); !errors.Is(err, ErrUEIDNotFound) {
		t.Errorf("removed twice: got error %v, want ErrUEIDNotFound", err)
	}
	list("0", "ABCDEFGHIJKLMNOPQRSTUVWXYZ012345", "SMCKIT.A")
	must(c.FlushUEIDs(ctx))
	list()
}

// restoreUEIDs makes the host's user EIDs what they were. It does not use the context of the test, which has ended.
func restoreUEIDs(t *testing.T, eids []string) {
	c, err := New()
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = c.Close() }()
	if err := c.FlushUEIDs(context.Background()); err != nil {
		t.Error(err)
	}
	for _, eid := range eids {
		if err := c.AddUEID(context.Background(), eid); err != nil {
			t.Error(err)
		}
	}
}

func TestIntegrationHandshakeLimitation(t *testing.T) {
	c, ctx := integrationClient(t)
	changesHost(t)
	before, err := c.HandshakeLimitation(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, enabled := range []bool{!before, before} {
		if err := c.SetHandshakeLimitation(ctx, enabled); err != nil {
			t.Error(err)
		}
		if got, err := c.HandshakeLimitation(ctx); err != nil || got != enabled {
			t.Errorf("got %v, error %v, want %v", got, err, enabled)
		}
	}
}

// TestIntegrationSEID holds for hosts without a system EID: every one but s390.
func TestIntegrationSEID(t *testing.T) {
	c, ctx := integrationClient(t)
	changesHost(t)
	seid, err := c.SEID(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if seid != nil {
		t.Skipf("this host has the system EID %s", seid.EID)
	}
	for _, enabled := range []bool{true, false} {
		if err := c.SetSEID(ctx, enabled); !errors.Is(err, ErrNoSEID) {
			t.Errorf("enabled=%v: got error %v, want ErrNoSEID", enabled, err)
		}
	}
}

// listenSMC opens a listening AF_SMC socket on the loopback interface and returns its inode and port.
func listenSMC(t *testing.T) (inode uint64, port uint16) {
	t.Helper()
	fd, err := unix.Socket(familySMC, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Skip("needs AF_SMC sockets:", err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(fd, 1); err != nil {
		t.Fatal(err)
	}
	sa, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		t.Fatal(err)
	}
	return st.Ino, uint16(sa.(*unix.SockaddrInet4).Port)
}

func TestIntegrationSockets(t *testing.T) {
	_, ctx := integrationClient(t)
	inode, port := listenSMC(t)
	d, err := NewDiag()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	// Twice on the same socket, and once left early.
	for _, leave := range []bool{false, true, false} {
		found := false
		for s, err := range d.Sockets(ctx, DiagConnInfo|DiagLinkGroup|DiagDMB) {
			if errors.Is(err, ErrNoModule) {
				t.Skip("needs smc_diag:", err)
			}
			if err != nil {
				t.Fatal(err)
			}
			if leave {
				break
			}
			if s.Inode != inode {
				continue
			}
			found = true
			want := "127.0.0.1:" + strconv.Itoa(int(port))
			if s.State != StateListen || s.Local.String() != want || s.UID != uint32(os.Getuid()) || s.Cookie == 0 {
				t.Errorf("got %+v, want a listener at %s", s, want)
			}
		}
		if !found && !leave {
			t.Errorf("no socket with inode %d", inode)
		}
	}
}

func TestIntegrationStats(t *testing.T) {
	c, ctx := integrationClient(t)
	before, err := c.FallbackStats(ctx)
	if err != nil {
		t.Fatal(err)
	}
	_, port := listenSMC(t)
	// A client without SMC makes the server side fall back.
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.Connect(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}, Port: int(port)}); err != nil {
		t.Fatal(err)
	}
	// The kernel counts it in a worker; the context is the limit.
	for {
		after, err := c.FallbackStats(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if after.ServerTotal > before.ServerTotal {
			t.Logf("%+v", *after)
			if !slices.ContainsFunc(after.Server, func(f FallbackCount) bool { return f.Reason == 0x03010000 }) {
				t.Errorf("no PEER_NO_SMC in %+v", after.Server)
			}
			break
		}
	}
	stats, err := c.Stats(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", *stats)
}
