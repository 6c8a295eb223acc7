// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/smckit/smckit/pkg/policy"
	"github.com/smckit/smckit/tests/guest"
	"golang.org/x/sys/unix"
)

// readMemory returns the memory of SMC, as this thread's namespace sees it.
func readMemory() (m policy.Memory, err error) {
	c, err := policy.New()
	if err != nil {
		return m, err
	}
	defer c.Close()
	return c.Memory(context.Background())
}

// setSMC writes a setting of this thread's namespace.
func setSMC(name string, value int) error {
	return os.WriteFile("/proc/sys/net/smc/"+name, []byte(strconv.Itoa(value)), 0)
}

// conns are open connections, whose ends have the same index.
type conns struct {
	listening        bool
	listener         int
	clients, servers []int
}

// add opens n more connections in the namespace of this thread.
func (c *conns) add(n int) error {
	if !c.listening {
		l, err := listen(here, 0)
		if err != nil {
			return err
		}
		c.listening, c.listener = true, l
	}
	for range n {
		client, err := connect(here, 0)
		if err != nil {
			return err
		}
		c.clients = append(c.clients, client)
		server, err := guest.Accept(c.listener)
		if err != nil {
			return err
		}
		c.servers = append(c.servers, server)
	}
	return nil
}

// exchange moves n bytes in each direction of each connection, in pieces that any buffer can take, and checks them.
func (c *conns) exchange(n int) error {
	const most = 6000
	for i := range c.clients {
		for done := 0; done < n; done += most {
			for _, fds := range [][2]int{{c.clients[i], c.servers[i]}, {c.servers[i], c.clients[i]}} {
				piece := bytes.Repeat([]byte{byte(i), byte(i >> 8), byte(done / most)}, most/3)
				if err := guest.WriteAll(fds[0], piece); err != nil {
					return fmt.Errorf("connection %d: %w", i, err)
				}
				if got, err := guest.ReadFull(fds[1], most); err != nil || !bytes.Equal(got, piece) {
					return fmt.Errorf("connection %d: wrong bytes at %d, %w", i, done, err)
				}
			}
		}
	}
	return nil
}

// fill writes from clients, as many as first says, until their connections take no more, and has the servers read and check all of it.
func (c *conns) fill(first int) (err error) {
	sent := make([]int, first)
	for i := range sent {
		if sent[i], err = c.sendAll(i); err != nil {
			return err
		}
	}
	for i, n := range sent {
		if err := c.readAll(i, 0, n); err != nil {
			return err
		}
	}
	return nil
}

// close closes all connections.
func (c *conns) close() {
	for _, fd := range slices.Concat(c.clients, c.servers) {
		unix.Close(fd)
	}
	if c.listening {
		unix.Close(c.listener)
	}
	*c = conns{}
}

// isGone waits until connections of the namespace have no memory any more.
func isGone(t *testing.T) error {
	var err error
	guest.Await(t, 30*time.Second, func() string {
		var m policy.Memory
		m, err = readMemory()
		if err == nil && m.Namespace.Reserved != 0 {
			return fmt.Sprintf("memory is left: %+v", m.Namespace)
		}
		return ""
	})
	return err
}

// TestMemoryCeiling opens many connections under a ceiling. What is reserved is never above, all connections work, and those
// that are TCP have the reason. In the end nothing is reserved.
func TestMemoryCeiling(t *testing.T) {
	ours.Need(t)
	needD(t)
	settled(t)
	n, limit := length(1000, 10000), uint64(length(8, 64))<<20
	if guest.Checked(t) {
		n, limit = 300, 4<<20 // the debug kernel takes minutes for more
	}
	guest.RaiseFiles(t, uint64(2*n+1000))
	err := inNewNamespace(func() error { return underCeiling(t, n, limit) })
	if err != nil {
		t.Error(err)
	}
}

func underCeiling(t *testing.T, n int, limit uint64) error {
	var all conns
	defer all.close()
	if err := errors.Join(setSMC("max_memory_kbytes", int(limit>>10)), all.add(n), all.exchange(30_000), all.fill(100)); err != nil {
		return err
	}
	m, err := readMemory()
	if err != nil {
		return err
	}
	p := m.Namespace
	clients, servers, err := fallbacks(netlinksmc.ReasonMemoryLimit)
	if err != nil {
		return err
	}
	t.Logf("%+v, %d clients and %d servers are TCP", p, clients, servers)
	if p.Limit != limit || p.Peak > limit || p.Reserved > limit || p.Reserved < limit/8*7 || p.Reserved != p.DMB || m.Host != nil {
		t.Errorf("memory under a ceiling of %d: %+v", limit, m)
	}
	// Within the host, a connection reserves the least of two buffers.
	if smc := n - clients; smc < min(n, int(limit/(2*leastMemory))-10) || smc > int(limit/(2*leastMemory)) || int(p.Refused) != clients+servers {
		t.Errorf("%d of %d connections are SMC; %d clients and %d servers were refused, counted as %d", smc, n, clients, servers, p.Refused)
	}
	all.close()
	return isGone(t)
}

// TestMemoryLowered lowers the ceiling below what is in use: that ends nothing, and new connections are TCP until it is raised.
func TestMemoryLowered(t *testing.T) {
	ours.Need(t)
	needD(t)
	err := inNewNamespace(func() error {
		var all conns
		defer all.close()
		refused := func() (uint64, error) { m, err := readMemory(); return m.Namespace.Refused, err }
		for _, step := range []struct {
			kbytes int
			want   uint64 // ends that have found the ceiling by then: the client proposes nothing
		}{{0, 0}, {32, 1}, {1 << 20, 1}} {
			if err := errors.Join(setSMC("max_memory_kbytes", step.kbytes), all.exchange(30_000), all.add(1), all.exchange(30_000)); err != nil {
				return fmt.Errorf("%d KiB: %w", step.kbytes, err)
			}
			if got, err := refused(); err != nil || got != step.want {
				return fmt.Errorf("%d KiB: %d ends were refused, want %d, %w", step.kbytes, got, step.want, err)
			}
		}
		all.close()
		return isGone(t)
	})
	if err != nil {
		t.Error(err)
	}
}

// TestMemoryHost sets a ceiling for the host, which a namespace that has none of its own runs into.
func TestMemoryHost(t *testing.T) {
	ours.Need(t)
	needD(t)
	ours.Set(t, "net.smc.host_max_memory_kbytes", "2048")
	sample := func() policy.Pool {
		m, err := readMemory()
		if err != nil || m.Host == nil {
			t.Fatalf("%+v, %v", m, err)
		}
		return *m.Host
	}
	before := sample()
	var all conns
	defer all.close()
	err := inNewNamespace(func() error {
		if err := setSMC("host_max_memory_kbytes", 0); !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("the host's ceiling can be set in a namespace: %w", err)
		}
		return errors.Join(all.add(100), all.exchange(30_000))
	})
	if err != nil {
		t.Fatal(err)
	}
	now := sample()
	if now.Reserved > 2<<20 || now.Reserved < 1<<20 || now.Limit != 2<<20 || now.Refused == before.Refused {
		t.Errorf("before: %+v, now: %+v", before, now)
	}
	all.close()
	guest.Await(t, 30*time.Second, func() string {
		if p := sample(); p.Reserved > before.Reserved {
			return fmt.Sprintf("memory is left: before: %+v, now: %+v", before, p)
		}
		return ""
	})
}

// TestMemoryUserNamespace has root of a user namespace lower the ceiling of its network namespace, which it can neither raise nor lift.
func TestMemoryUserNamespace(t *testing.T) {
	ours.Need(t)
	const script = `cd /proc/sys/net/smc
for kbytes in 4000 3000 3500 0 2000; do
	{ echo $kbytes >max_memory_kbytes; } 2>/dev/null
	cat max_memory_kbytes
done`
	out, err := exec.CommandContext(t.Context(), "unshare", "--map-root-user", "--net", "sh", "-c", script).CombinedOutput()
	if got := strings.Join(strings.Fields(string(out)), " "); got != "4000 3000 3000 3000 2000" {
		t.Errorf("the ceiling was %s, %v", got, err)
	}
}

// TestMemoryRDMA opens connections of SMC-R under a ceiling. Their buffers count for the namespace as long as they have them, then for
// the host, until their link group ends.
func TestMemoryRDMA(t *testing.T) {
	ours.Need(t)
	if !overR {
		t.Skip("connections are not SMC-R")
	}
	const limit = 4 << 20
	dropCaches(t) // link groups of other tests
	ours.Set(t, "net.smc.max_memory_kbytes", fmt.Sprint(limit>>10))
	ours.Set(t, "net.smc.lgr_idle_time", "1")
	sample := func() policy.Memory {
		m, err := readMemory()
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	before := sample()
	var all conns
	defer all.close()
	for range 20 {
		if err := all.add(10); err != nil {
			t.Fatal(err)
		}
		if p := sample().Namespace; p.Reserved > limit || p.Reserved != p.RMB+p.SendRings {
			t.Fatalf("memory under a ceiling of %d: %+v", limit, p)
		}
	}
	if err := all.exchange(30_000); err != nil {
		t.Error(err)
	}
	m := sample()
	t.Logf("%+v, %+v", m.Namespace, *m.Host)
	if p := m.Namespace; p.Reserved < limit/2 || p.Refused == before.Namespace.Refused {
		t.Errorf("memory under a ceiling of %d: %+v", limit, p)
	}
	all.close()
	if err := isGone(t); err != nil {
		t.Error(err)
	}
	guest.Await(t, 60*time.Second, func() string {
		if h := sample().Host; h.Reserved != 0 || h.Idle != 0 {
			return fmt.Sprintf("memory is left: %+v", *h)
		}
		return ""
	})
}

// dropCaches has the kernel call all shrinkers.
func dropCaches(t *testing.T) {
	t.Helper()
	if err := os.WriteFile("/proc/sys/vm/drop_caches", []byte("2"), 0); err != nil {
		t.Fatal(err)
	}
}

// TestMemoryShrinker has link groups of SMC-R give back the buffers that no connection has. The connections that there are still work, and
// so do new ones.
func TestMemoryShrinker(t *testing.T) {
	ours.Need(t)
	if !overR {
		t.Skip("connections are not SMC-R")
	}
	sample := func() policy.Pool {
		m, err := readMemory()
		if err != nil || m.Host == nil {
			t.Fatalf("%+v, %v", m, err)
		}
		return *m.Host
	}
	var kept, gone conns
	defer kept.close()
	if err := errors.Join(kept.add(2), kept.exchange(30_000)); err != nil {
		t.Fatal(err)
	}
	gone.listening, gone.listener = true, kept.listener
	if err := errors.Join(gone.add(20), gone.exchange(30_000)); err != nil {
		t.Fatal(err)
	}
	gone.listening = false
	gone.close()
	guest.Await(t, 30*time.Second, func() string {
		if p := sample(); p.Idle < p.Reserved/2 {
			return fmt.Sprintf("few buffers are idle: %+v", p)
		}
		return ""
	})
	// RMBs that the peer may still write to are given back later, so this may take several calls.
	guest.Await(t, 60*time.Second, func() string {
		dropCaches(t)
		if p := sample(); p.Idle != 0 {
			return fmt.Sprintf("buffers are idle: %+v", p)
		}
		return ""
	})
	if err := errors.Join(kept.exchange(60_000), kept.add(10), kept.exchange(60_000)); err != nil {
		t.Error(err)
	}
	if p := sample(); p.RMB == 0 || p.SendRings == 0 || p.Reserved != p.RMB+p.SendRings+p.DMB+p.Queues {
		t.Errorf("%+v", p)
	}
}

// TestMemoryShrinkerPages has connections within the host give back the pages that they keep for their next data, although they move data all
// the time. Connections that do not give them back after some seconds anyway.
func TestMemoryShrinkerPages(t *testing.T) {
	ours.Need(t)
	needD(t)
	settled(t)
	var all conns
	defer all.close()
	const n = 10
	if err := errors.Join(all.add(n), all.fill(n)); err != nil {
		t.Fatal(err)
	}
	reserved := func() uint64 {
		m, err := readMemory()
		if err != nil || m.Host == nil {
			t.Fatalf("%+v, %v", m, err)
		}
		return m.Host.DMB
	}
	const least = 2 * n * leastMemory
	if now := reserved(); now < 2*least {
		t.Fatalf("the DMBs have %d bytes after their data has been read, which is little more than %d", now, least)
	}
	guest.Await(t, 30*time.Second, func() string {
		if err := all.exchange(6000); err != nil {
			t.Fatal(err)
		}
		dropCaches(t)
		if now := reserved(); now != least {
			return fmt.Sprintf("the DMBs have %d bytes, want %d", now, least)
		}
		return ""
	})
	if err := all.fill(n); err != nil {
		t.Error(err)
	}
}

// TestNothingReserved comes after other tests, among them those whose allocations fail: what they have reserved is given back.
func TestNothingReserved(t *testing.T) {
	ours.Need(t)
	guest.Await(t, 60*time.Second, func() string {
		dropCaches(t)
		m, err := readMemory()
		if err != nil || m.Host == nil {
			return fmt.Sprint(m, err)
		}
		if m.Namespace.Reserved|m.Host.Reserved|m.Host.Idle != 0 {
			return fmt.Sprintf("%+v, %+v", m.Namespace, *m.Host)
		}
		return ""
	})
}
