// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"errors"
	"testing"

	"github.com/smckit/smckit/tests/guest"
	"golang.org/x/sys/unix"
)

// TestCorked connects with TCP_CORK set at both ends, where TCP would hold back a message for longer than a handshake may
// take. The option is about the application's data.
func TestCorked(t *testing.T) {
	needD(t)
	settled(t)
	before := count(t)
	build(t)
	t.Cleanup(func() { guest.Run(t, "ip netns del far") })
	guest.Run(t, "ip route change 10.97.0.0/24 dev n0 proto kernel scope link src 10.97.0.1 rto_min 60s; "+
		"ip -n far route change 10.97.0.0/24 dev f0 proto kernel scope link src 10.97.0.2 rto_min 60s")
	l := farListener(t)
	defer unix.Close(l)
	c, sa, err := socket(far, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(c)
	err = errors.Join(
		unix.SetsockoptInt(l, unix.SOL_TCP, unix.TCP_CORK, 1),
		unix.SetsockoptInt(c, unix.SOL_TCP, unix.TCP_CORK, 1),
		unix.Connect(c, sa))
	if err != nil {
		t.Fatal(err)
	}
	s, err := guest.Accept(l)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(s)
	for _, fd := range []int{c, s} {
		if on, err := unix.GetsockoptInt(fd, unix.SOL_TCP, unix.TCP_CORK); err != nil || on != 1 {
			t.Errorf("TCP_CORK is %d afterwards, %v", on, err)
		}
	}
	if now := count(t); now.clients != before.clients+1 || now.fallbacks != before.fallbacks {
		t.Errorf("want one more client of SMC; %+v became %+v", before, now)
	}
}
