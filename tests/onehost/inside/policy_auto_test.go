// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/smckit/smckit/pkg/policy"
	"github.com/smckit/smckit/pkg/smcerr"
	"github.com/smckit/smckit/tests/guest"
	"golang.org/x/sys/unix"
)

// settings of these tests: time does not matter in a test that does not change it.
var autoSettings = map[string]int{"auto_bytes": 10000, "auto_samples": 4, "auto_time": 86400, "auto_forget": 600}

// setAuto sets the settings of "auto", and others after the test; it has services forgotten before and after it.
func setAuto(t *testing.T, settings map[string]int) {
	t.Helper()
	for name, value := range settings {
		file := "/proc/sys/net/smc/" + name
		old, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(file, fmt.Append(nil, value), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.WriteFile(file, old, 0o644) })
	}
	flush := func() error {
		return withPolicy(func(c *policy.Client, _ policy.Policy) error { return c.FlushServices(context.Background()) })
	}
	if err := flush(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := flush(); err != nil {
			t.Error(err)
		}
	})
}

// services returns what the services of this thread's namespace have learned.
func services(t *testing.T) (all []policy.Service) {
	t.Helper()
	err := withPolicy(func(c *policy.Client, _ policy.Policy) (err error) {
		all, err = c.Services(context.Background())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// serve returns a listener of the service; the caller closes it.
func serve(t *testing.T, protocol int) int {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		t.Fatal(err)
	}
	_, sa := guest.Sockaddr(service)
	if err := listenOn(fd, sa); err != nil {
		t.Fatal(err)
	}
	return fd
}

// move has a client send bytes to the listener's server, and returns what both ends were.
func move(t *testing.T, listener, protocol, bytes int) (client, server string) {
	t.Helper()
	c, s := connectFrom(t, listener, "127.0.0.1:0", protocol)
	defer unix.Close(s)
	defer unix.Close(c)
	if err := guest.WriteAll(c, make([]byte, bytes)); err != nil {
		t.Fatal(err)
	}
	if _, err := guest.ReadFull(s, bytes); err != nil {
		t.Fatal(err)
	}
	return kindOf(t, c), kindOf(t, s)
}

// expectMoves has n connections, one after the other, each of which has to be of a kind at both ends.
func expectMoves(t *testing.T, n, listener, protocol, bytes int, want string) {
	t.Helper()
	for i := range n {
		if c, s := move(t, listener, protocol, bytes); c != want || s != want {
			t.Errorf("protocol %d: connection %d with %d bytes: client %q, server %q; want %q", protocol, i, bytes, c, s, want)
		}
	}
}

// TestRulesAuto has a service whose connections move little: they become TCP. When they move much, they become SMC again. Both ends learn,
// the server for its port and the client for the address, of SMC connections and of TCP connections.
func TestRulesAuto(t *testing.T) {
	needRules(t)
	for _, protocol := range []int{0, ipprotoSMC} {
		setAuto(t, autoSettings)
		setRules(t, "auto port 6379")
		l := serve(t, protocol)
		expectMoves(t, 4, l, protocol, 100, "SMC")
		_, before, err := fallbacks(netlinksmc.ReasonPolicy)
		if err != nil {
			t.Fatal(err)
		}
		expectMoves(t, 3, l, protocol, 100, "TCP")
		if _, now, err := fallbacks(netlinksmc.ReasonPolicy); err != nil || now != before+3 {
			t.Errorf("protocol %d: %d fallbacks of the server became %d, %v", protocol, before, now, err)
		}
		checkServices(t, policy.TCP, 0, 7)
		// Each counts as four, so two are as many as all that the service remembers.
		expectMoves(t, 2, l, protocol, 40000, "TCP")
		expectMoves(t, 1, l, protocol, 40000, "SMC")
		checkServices(t, policy.SMC, 3, 7)
		if got, want := counters(t), (policy.Counters{Decisions: 11, SMC: 10, TCP: 10}); len(got) != 1 || got[0].SMC != want.SMC ||
			got[0].TCP != want.TCP || got[0].Decisions != want.Decisions {
			t.Errorf("protocol %d: the rule has counted %+v, want %+v", protocol, got, want)
		}
		unix.Close(l)
	}
}

// checkServices expects a server and its client that have learned the same.
func checkServices(t *testing.T, verdict policy.Verdict, paid, unpaid uint64) {
	t.Helper()
	got := services(t)
	if len(got) != 2 || got[0].String() != ":6379" || got[1].String() != "127.0.0.1:6379" {
		t.Fatalf("the services are %#v", got)
	}
	for _, s := range got {
		if s.Verdict != verdict || s.Paid != paid || s.Unpaid != unpaid || s.Open != 0 || s.Left <= 0 || s.Left > 600*time.Second {
			t.Errorf("%#v, want %v, %d paid, %d unpaid", s, verdict, paid, unpaid)
		}
	}
}

// TestRulesAutoOneEnd has a rule with "auto" for one end: that end alone decides, when the SYN leaves or when it is answered.
func TestRulesAutoOneEnd(t *testing.T) {
	needRules(t)
	for _, rules := range [][]string{{"auto role listen", "smc"}, {"auto role connect", "smc"}, {"auto from 127.0.0.0/8", "smc"}} {
		setAuto(t, autoSettings)
		setRules(t, rules...)
		l := serve(t, 0)
		expectMoves(t, 4, l, 0, 100, "SMC")
		expectMoves(t, 1, l, 0, 100, "TCP")
		if got := services(t); len(got) != 1 || got[0].Unpaid != 5 {
			t.Errorf("%q: %#v", rules, got)
		}
		unix.Close(l)
	}
}

// TestRulesAutoForgets has a service that is TCP, and is forgotten: after a time without connections, and by a flush.
func TestRulesAutoForgets(t *testing.T) {
	needRules(t)
	setAuto(t, autoSettings)
	setRules(t, "auto")
	l := serve(t, 0)
	defer unix.Close(l)
	expectMoves(t, 4, l, 0, 100, "SMC")
	expectMoves(t, 1, l, 0, 100, "TCP")
	setAuto(t, nil)
	expectMoves(t, 4, l, 0, 100, "SMC")
	expectMoves(t, 1, l, 0, 100, "TCP")
	setSetting(t, "auto_forget", 1)
	guest.Await(t, 30*time.Second, func() string {
		if got := services(t); len(got) > 0 {
			return fmt.Sprintf("%#v", got)
		}
		return ""
	})
	expectMoves(t, 1, l, 0, 100, "SMC")
}

func setSetting(t *testing.T, name string, value int) {
	t.Helper()
	if err := os.WriteFile("/proc/sys/net/smc/"+name, fmt.Append(nil, value), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestRulesAutoOpen has a connection that stays open: the service learns from it before it ends.
func TestRulesAutoOpen(t *testing.T) {
	needRules(t)
	setAuto(t, autoSettings)
	setSetting(t, "auto_samples", 1)
	setRules(t, "auto")
	l := serve(t, 0)
	defer unix.Close(l)
	expectMoves(t, 1, l, 0, 100, "SMC")
	c, s := connectFrom(t, l, "127.0.0.1:0", 0)
	defer unix.Close(c)
	defer unix.Close(s)
	if kindOf(t, c) != "TCP" {
		t.Errorf("after a connection: %q", kindOf(t, c))
	}
	setSetting(t, "auto_time", 1)
	guest.Await(t, 30*time.Second, func() string {
		got := services(t)
		for _, s := range got {
			if s.Verdict != policy.SMC {
				return fmt.Sprintf("%#v", got)
			}
		}
		return ""
	})
	if got := services(t); len(got) != 2 || got[0].Open != 1 || got[1].Open != 1 {
		t.Errorf("%#v", got)
	}
	expectMoves(t, 1, l, 0, 100, "SMC")
}

// TestRulesAutoTLS has TLS of the kernel take over a short connection. The module notices its end later, and yet does not take it for a
// long one.
func TestRulesAutoTLS(t *testing.T) {
	needRules(t)
	guest.Run(t, "modprobe tls")
	setAuto(t, autoSettings)
	setSetting(t, "auto_time", 2)
	setRules(t, "auto role connect")
	l := serve(t, 0)
	defer unix.Close(l)
	for i := range uint64(6) {
		c, s := connectFrom(t, l, "127.0.0.1:0", 0)
		err := unix.SetsockoptString(c, unix.SOL_TCP, unix.TCP_ULP, "tls")
		unix.Close(c)
		unix.Close(s)
		if err != nil {
			t.Fatal(err)
		}
		guest.Await(t, 30*time.Second, func() string {
			got := services(t)
			if len(got) == 1 && got[0].Unpaid == i+1 && got[0].Paid == 0 && (got[0].Verdict == policy.TCP) == (i >= 3) {
				return ""
			}
			return fmt.Sprintf("%d: %#v", i, got)
		})
	}
}

// TestRulesAutoFailed has connections that are refused, or that nobody accepts: they tell nothing of the service.
func TestRulesAutoFailed(t *testing.T) {
	needRules(t)
	setAuto(t, autoSettings)
	setRules(t, "auto")
	_, sa := guest.Sockaddr(service)
	dial := func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		return unix.Connect(fd, sa)
	}
	for range 10 {
		if err := dial(); !errors.Is(err, unix.ECONNREFUSED) {
			t.Fatal(err)
		}
	}
	if got := services(t); len(got) != 0 {
		t.Errorf("after refused connections: %#v", got)
	}
	l := serve(t, 0)
	for range 3 {
		if err := dial(); err != nil {
			t.Fatal(err)
		}
	}
	unix.Close(l)
	for _, s := range services(t) {
		if s.Role == policy.Listen && (s.Paid > 0 || s.Unpaid > 0 || s.Open > 0) {
			t.Errorf("after connections that nobody accepted: %#v", s)
		}
	}
}

// TestRulesAutoMany has more services than the table has places, and a user who may not flush it.
func TestRulesAutoMany(t *testing.T) {
	needRules(t)
	setAuto(t, autoSettings)
	setRules(t, "auto role connect")
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	_, all := guest.Sockaddr(netip.AddrPortFrom(netip.IPv4Unspecified(), service.Port()))
	if err := listenOn(fd, all); err != nil {
		t.Fatal(err)
	}
	for i := range 2500 {
		addr := netip.AddrFrom4([4]byte{127, 0, byte(1 + i/250), byte(1 + i%250)})
		_, sa := guest.Sockaddr(netip.AddrPortFrom(addr, service.Port()))
		c, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			err = unix.Connect(c, sa)
		}
		if err != nil {
			t.Fatal(err)
		}
		s, err := guest.Accept(fd)
		if err != nil {
			t.Fatal(err)
		}
		unix.Close(c)
		unix.Close(s)
	}
	if got := services(t); len(got) > 2048 || len(got) < 1500 {
		t.Errorf("%d services", len(got))
	}
	err = guest.AsNobody(func() error {
		return withPolicy(func(c *policy.Client, _ policy.Policy) error { return c.FlushServices(context.Background()) })
	})
	if !errors.Is(err, smcerr.ErrPermission) {
		t.Errorf("a user flushes the table: %v", err)
	}
}
