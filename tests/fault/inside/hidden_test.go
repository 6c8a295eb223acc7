// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"context"
	"net/netip"
	"testing"

	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/smckit/smckit/tests/guest"
)

// TestNamespacesHidden has a client's packets come in by an ipvlan device of mode L3S, whose master's namespace is the one
// where netfilter sees them. The server is in a third namespace. What the client gets is TCP, and it is told why.
func TestNamespacesHidden(t *testing.T) {
	guest.UseNull(t, true)
	guest.Run(t, `modprobe ipvlan
		ip netns add far; ip netns add behind
		ip link add n0 type veth peer name f0 netns far
		ip addr add 10.98.0.1/24 dev n0; ip link set n0 up
		ip -n far addr add 10.98.0.2/24 dev f0; ip -n far link set f0 up; ip -n far link set lo up
		ip link add link n0 name v0 netns behind type ipvlan mode l3s
		ip -n behind addr add 10.96.0.3/32 dev v0; ip -n behind link set v0 up; ip -n behind link set lo up
		ip -n behind route add default dev v0; ip -n far route add 10.96.0.0/24 via 10.98.0.1`)
	t.Cleanup(func() {
		guest.Run(t, "ip -n behind link del v0; ip link del n0; ip netns del behind; ip netns del far")
	})
	addr := netip.MustParseAddrPort("10.98.0.2:7060")
	l, err := farListener(addr)
	if err != nil {
		t.Fatal(err)
	}
	e := guest.ServeEcho(t, l)
	defer e.Close(t)
	const reasonConfig = 0x03000000
	for i, mode := range []string{"l3s", "l2", "l3s"} {
		guest.Run(t, "ip -n behind link set v0 type ipvlan mode "+mode)
		var before, now map[netlinksmc.Reason]int
		err := guest.InNamespace("behind", func() (err error) {
			if before, err = clientFallbacks(); err != nil {
				return err
			}
			if err := guest.Ask(addr, "from behind an ipvlan device", prompt); err != nil {
				return err
			}
			now, err = clientFallbacks()
			return err
		})
		if err != nil {
			t.Errorf("connection %d, mode %s: %v", i, mode, err)
			continue
		}
		if hidden := now[reasonConfig] - before[reasonConfig]; (hidden == 1) != (mode == "l3s") {
			t.Errorf("connection %d, mode %s: %d fallbacks for what cannot be seen: %v", i, mode, hidden, now)
		}
	}
}

func clientFallbacks() (map[netlinksmc.Reason]int, error) {
	c, err := netlinksmc.New()
	if err != nil {
		return nil, err
	}
	defer c.Close()
	f, err := c.FallbackStats(context.Background())
	counts := map[netlinksmc.Reason]int{}
	for _, n := range f.Client {
		counts[n.Reason] += int(n.Count)
	}
	return counts, err
}
