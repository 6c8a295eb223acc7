// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/smckit/smckit/tests/guest"
	"golang.org/x/sys/unix"
)

// loadedServices is how many services there are under load: at the ports from 6400 on.
const loadedServices = 4

// underLoad has ordinary sockets connect to the services, again and again, while do runs. Every connection must work.
func underLoad(t *testing.T, do func()) {
	t.Helper()
	underLoadOf(t, func(_ int, addr netip.AddrPort) error { return oneExchange(addr) }, do)
}

// underLoadOf has exchange make a connection to each of the services, again and again, while do runs.
func underLoadOf(t *testing.T, exchange func(service int, addr netip.AddrPort) error, do func()) {
	t.Helper()
	stop, failed := make(chan struct{}), make(chan error, loadedServices)
	var load sync.WaitGroup
	for i := range loadedServices {
		load.Go(func() {
			addr := netip.AddrPortFrom(service.Addr(), uint16(6400+i))
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := exchange(i, addr); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	defer func() {
		close(stop)
		load.Wait()
		select {
		case err := <-failed:
			t.Error(err)
		default:
		}
	}()
	do()
}

// holdSockets makes ordinary sockets that stay as they are until use connects one of every hundred: those from the first one on.
func holdSockets(t *testing.T, n int) (use func(first int) error) {
	t.Helper()
	guest.RaiseFiles(t, uint64(n+1000))
	held := make([]int, n)
	for i := range held {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		held[i] = fd
	}
	t.Cleanup(func() {
		for _, fd := range held {
			unix.Close(fd)
		}
	})
	return func(first int) error {
		_, sa := guest.Sockaddr(service)
		l, err := guest.Listen(service, 10)
		if err != nil {
			return err
		}
		defer unix.Close(l)
		for i := first; i < n; i += 100 {
			if err := guest.ConnectSocket(held[i], sa); err != nil {
				return fmt.Errorf("socket %d: %w", i, err)
			}
			s, err := guest.Accept(l)
			if err != nil {
				return fmt.Errorf("socket %d: %w", i, err)
			}
			err = guest.WriteAll(held[i], []byte("ping"))
			got, err1 := guest.ReadFull(s, 4)
			unix.Close(s)
			if err := errors.Join(err, err1); err != nil || string(got) != "ping" {
				return fmt.Errorf("socket %d: %q, %w", i, got, err)
			}
		}
		return nil
	}
}

// ruleSet is a state of the policy, and which services it makes SMC.
type ruleSet struct {
	rules []string
	smc   [loadedServices]bool
}

// manyRules returns a thousand rules, of which these are in the middle and at the end. The others match nothing.
func manyRules(middle, end string) (rules []string) {
	for i := range 998 {
		rules = append(rules, fmt.Sprintf("tcp port %d", 10000+i))
	}
	return append(slices.Insert(rules, 499, middle), end)
}

// rotation replaces the rules by one set after another. In most changes, some services are to be the same before and after, so that there is
// a right answer also for a connection that begins while the rules change.
type rotation struct {
	sets []ruleSet
	// begun and done are the numbers of changes.
	begun, done atomic.Int64
	// conns are all connections, clear those of them whose kind was known in advance, and during those during which the rules changed.
	conns, clear, during atomic.Int64
}

func newRotation() *rotation {
	all := [loadedServices]bool{true, true, true, true}
	return &rotation{sets: []ruleSet{
		{[]string{"smc"}, all},
		{manyRules("smc port 6400-6401", "tcp port 9"), [loadedServices]bool{true, true}},
		{manyRules("tcp port 6402", "smc"), [loadedServices]bool{true, true, false, true}},
		{nil, [loadedServices]bool{}},
		{[]string{"tcp"}, [loadedServices]bool{}},
	}}
}

// change makes the next change.
func (r *rotation) change() error {
	n := r.begun.Add(1)
	if err := tryRules(r.sets[int(n)%len(r.sets)].rules...); err != nil {
		return err
	}
	r.done.Store(n)
	return nil
}

// exchange makes a connection to a service, and checks that its ends are what the rules say that there were meanwhile.
func (r *rotation) exchange(service int, addr netip.AddrPort) error {
	from := r.done.Load()
	return withConnection(addr, func(c, s int) error {
		if err := errors.Join(ping(c, s, 42), ping(s, c, 42)); err != nil {
			return err
		}
		client, err := isSMC(c)
		server, err1 := isSMC(s)
		if err := errors.Join(err, err1); err != nil {
			return err
		}
		return r.judge(service, from, r.begun.Load(), client, server)
	})
}

// judge compares both ends with the sets of rules from one number to another.
func (r *rotation) judge(service int, from, to int64, client, server bool) error {
	if client != server {
		return fmt.Errorf("service %d: the client is SMC: %t, the server: %t", service, client, server)
	}
	r.conns.Add(1)
	want := r.sets[int(from)%len(r.sets)].smc[service]
	for n := from; n <= to; n++ {
		if r.sets[int(n)%len(r.sets)].smc[service] != want {
			return nil
		}
	}
	r.clear.Add(1)
	if to > from {
		r.during.Add(1)
	}
	if client != want {
		return fmt.Errorf("service %d: SMC: %t, and the rules of changes %d to %d say %t", service, client, from, to, want)
	}
	return nil
}

// isSMC reports whether a connection is SMC: those have no pages of TCP's that could be mapped.
func isSMC(fd int) (bool, error) {
	_, err := unix.GetsockoptInt(fd, unix.SOL_TCP, unix.TCP_ZEROCOPY_RECEIVE)
	if err == nil || errors.Is(err, unix.EINVAL) {
		return false, nil
	}
	if errors.Is(err, unix.EOPNOTSUPP) {
		return true, nil
	}
	return false, err
}

// TestRulesUnderLoad replaces a thousand rules again and again while connections begin and end, so that the hook comes and goes: every
// connection works and is what the rules say, and so are thousands of sockets that were made before.
func TestRulesUnderLoad(t *testing.T) {
	needRules(t)
	setRules(t, "smc port 6400")
	use := holdSockets(t, length(1000, 10_000))
	r := newRotation()
	setRules(t, r.sets[0].rules...)
	underLoadOf(t, r.exchange, func() {
		for range length(100, 1000) {
			if err := r.change(); err != nil {
				t.Error(err)
				break
			}
		}
	})
	t.Logf("%d connections, for %d of them there was one right answer, %d of these began before a change and ended after it",
		r.conns.Load(), r.clear.Load(), r.during.Load())
	if r.clear.Load() == 0 || r.during.Load() == 0 {
		t.Error("that is not enough")
	}
	for i, rule := range []string{"tcp", "smc"} {
		setRules(t, rule)
		if err := use(i); err != nil {
			t.Errorf("%s: %v", rule, err)
		}
	}
}
