// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"net/netip"
	"testing"

	"github.com/smckit/smckit/tests/guest"
)

// TestNamespacesHidden has a client's packets arrive by an ipvlan device of mode L3S, so netfilter sees them in the namespace
// of its master. The server is in a third namespace. The client gets TCP, and the reason says why.
func TestNamespacesHidden(t *testing.T) {
	guest.UseNull(t, true)
	build(t)
	guest.Run(t, `modprobe ipvlan
		ip netns add behind
		ip link add link n0 name v0 netns behind type ipvlan mode l3s
		ip -n behind addr add 10.96.0.3/32 dev v0; ip -n behind link set v0 up; ip -n behind link set lo up
		ip -n behind route add default dev v0; ip -n far route add 10.96.0.0/24 via 10.97.0.1`)
	t.Cleanup(func() {
		guest.Run(t, "ip -n behind link del v0; ip link del n0; ip netns del behind; ip netns del far")
	})
	addr := netip.AddrPortFrom(far.Addr(), 7060)
	l := farListenerAt(t, addr)
	if err := withUserTimeout(l); err != nil {
		t.Fatal(err)
	}
	e := guest.ServeEcho(t, l)
	defer e.Close(t)
	const reasonConfig = 0x03000000
	for i, mode := range []string{"l3s", "l2", "l3s"} {
		guest.Run(t, "ip -n behind link set v0 type ipvlan mode "+mode)
		var before, now int
		err := guest.InNamespace("behind", func() (err error) {
			if before, _, err = fallbacks(reasonConfig); err != nil {
				return err
			}
			if err := guest.Ask(addr, "from behind an ipvlan device", prompt); err != nil {
				return err
			}
			now, _, err = fallbacks(reasonConfig)
			return err
		})
		if err != nil {
			t.Errorf("connection %d, mode %s: %v", i, mode, err)
			continue
		}
		if hidden := now - before; (hidden == 1) != (mode == "l3s") {
			t.Errorf("connection %d, mode %s: %d fallbacks for what cannot be seen", i, mode, hidden)
		}
	}
}
