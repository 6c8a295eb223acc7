// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"

	"github.com/smckit/smckit/tests/guest"
	"golang.org/x/sys/unix"
)

// underLoad has ordinary sockets connect to four services, again and again, while do runs. Every connection must work.
func underLoad(t *testing.T, do func()) {
	t.Helper()
	stop, failed := make(chan struct{}), make(chan error, 4)
	var load sync.WaitGroup
	for i := range 4 {
		load.Go(func() {
			addr := netip.AddrPortFrom(service.Addr(), uint16(6400+i))
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := oneExchange(addr); err != nil {
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

// TestRulesUnderLoad replaces a thousand rules again and again while connections begin and end, so that the hook comes and goes: every
// connection works, and so do thousands of sockets that were made before.
func TestRulesUnderLoad(t *testing.T) {
	needRules(t)
	setRules(t, "smc port 6400")
	use := holdSockets(t, length(1000, 10_000))
	var many []string
	for i := range 999 {
		many = append(many, fmt.Sprintf("tcp port %d", 10000+i))
	}
	underLoad(t, func() {
		for i := range length(100, 1000) {
			rules := [][]string{{"smc"}, {}, append(many, "smc port 6400-6401"), {"tcp"}}[i%4]
			if err := tryRules(rules...); err != nil {
				t.Error(err)
				break
			}
		}
	})
	for i, rule := range []string{"tcp", "smc"} {
		setRules(t, rule)
		if err := use(i); err != nil {
			t.Errorf("%s: %v", rule, err)
		}
	}
}
