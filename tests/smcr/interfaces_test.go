// SPDX-License-Identifier: Apache-2.0

//go:build linux

package smcr

import (
	"fmt"
	"testing"

	"github.com/smckit/smckit/internal/lab"
	"github.com/smckit/smckit/internal/tool/smcrd"
)

// TestInterfaces has connections leave through interfaces on top of or below an adapter's own, and from network namespaces.
func TestInterfaces(t *testing.T) { eachKernel(t, interfaces) }

func interfaces(t *testing.T, kernel string) {
	ours := side{kernel, lab.ModuleOurs}
	for _, tc := range []struct {
		name string
		run  func(t *testing.T, lt *lab.Test)
	}{
		{"VLAN", vlan},
		{"bond", bond},
		{"namespaces that share adapters", func(t *testing.T, lt *lab.Test) { shared(t, lt, kernel) }},
		{"namespaces with adapters of their own", exclusive},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.name == "bond" && !lab.Full() {
				t.Skip("takes a minute: SMCKIT_FULL=1")
			}
			lt := startWith(t, lab.Options{Wires: 2}, ours, ours)
			t.Run("connections", func(t *testing.T) { tc.run(t, lt) })
			for _, host := range []string{"a", "b"} {
				unloads(t, lt, host)
			}
		})
	}
}

// each runs a script on both hosts, in which %[1]d is 1 on the first and 2 on the second.
func each(t *testing.T, lt *lab.Test, script string) {
	t.Helper()
	for i, host := range []string{"a", "b"} {
		lt.Must(host, fmt.Sprintf(script, i+1))
	}
}

// vlan has two networks on one wire: connections of each have a group of their own, with its VLAN ID.
func vlan(t *testing.T, lt *lab.Test) {
	each(t, lt, `modprobe 8021q; ip link add link eth0 name eth0.5 type vlan id 5; ip addr add 10.5.0.%[1]d/24 dev eth0.5; ip link set eth0.5 up`)
	address, echo := serve(t, lt, "echo", 5040)
	defer lab.Kill(t, echo)
	works(t, lt, address)
	defer lab.Kill(t, lt.Serve("b", "", "echo", "10.5.0.2:5041"))
	works(t, lt, "10.5.0.2:5041")
	for _, host := range []string{"a", "b"} {
		var answer smcrd.LinkGroupsR
		lt.Document(host, "smcr linkgroup link-show --json", &answer)
		vlans := map[uint8]int{}
		for _, g := range answer.LinkGroups {
			vlans[g.VLAN]++
		}
		if len(answer.LinkGroups) != 2 || vlans[0] != 1 || vlans[5] != 1 {
			t.Errorf("host %s: not one group for each network: %+v", host, answer)
		}
	}
}

// bond moves the packets of a bond to its other interface. That moves the adapter's address to another place in its table,
// which existing queue pairs do not notice: their connections end, and new ones are SMC-R. The other host has a bridge, which
// forwards packets to either interface.
func bond(t *testing.T, lt *lab.Test) {
	each(t, lt, `modprobe -a bonding bridge; test ! -e /sys/class/net/bond0 || ip link delete bond0
for i in 0 1; do rdma link delete rxe$i; ip link set eth$i down; ip addr flush dev eth$i; done
case %[1]d in
1) ip link add both type bond mode active-backup miimon 100;;
2) ip link add both type bridge;;
esac
for i in 0 1; do ip link set eth$i master both; ip link set eth$i up; done
ip link set both up; ip addr add 10.6.0.%[1]d/24 dev both
rdma link add rxeb type rxe netdev both
smc_pnet flush; smc_pnet add BOTH eth both; smc_pnet add BOTH ib rxeb 1`)
	defer lab.Kill(t, lt.Serve("b", "", "echo", "10.6.0.2:5042"))
	works(t, lt, "10.6.0.2:5042")
	defer lab.Kill(t, lt.Serve("b", "", "sink", "10.6.0.2:5043"))
	set(t, lt, "smcr_testlink_time=2")
	// Do not take eth0 down: it would keep the packets that it has not freed yet, and soft-RoCE's queue pairs would wait for
	// them for ever.
	brokenAt(t, lt, "10.6.0.2:5043", func() { lt.Must("a", "ip link set both type bond active_slave eth1") })
	awaitNoGroups(t, lt)
	works(t, lt, "10.6.0.2:5042")
}

// namespace makes a network namespace with an interface that has an adapter.
const namespace = `ip netns add n; ip link set eth1 netns n
ip -n n addr add 10.0.1.%[1]d/24 dev eth1; ip -n n link set eth1 up; ip -n n link set lo up
ip netns exec n rdma link add rxe1 type rxe netdev eth1
`

// shared has adapters that all namespaces may use, as is the default. That of eth1 is found by a PNET ID: interfaces have
// those of their namespace, adapters those of the first namespace. Soft-RoCE of older kernels looks for routes in the first namespace
// only, so that no link to the other host comes up, and connections fall back.
func shared(t *testing.T, lt *lab.Test, kernel string) {
	each(t, lt, "rdma link delete rxe1\n"+namespace+"ip netns exec n smc_pnet add LAB1 eth eth1; smc_pnet add LAB1 ib rxe1 1")
	want := 5
	if kernel == "6.1" || kernel == "6.12" {
		want = 0
	}
	inNamespace(t, lt, want)
}

// exclusive has adapters that only their own namespace may use, which is the first one: soft-RoCE cannot be moved.
func exclusive(t *testing.T, lt *lab.Test) {
	each(t, lt, "rdma link delete rxe1; rdma system set netns exclusive\n"+namespace+"ip netns exec n smc_pnet add LAB1 eth eth1; smc_pnet add LAB1 ib rxe1 1")
	inNamespace(t, lt, 0)
}

// inNamespace checks that connections of the first namespace are SMC-R, and how many of five of the other.
func inNamespace(t *testing.T, lt *lab.Test, want int) {
	t.Helper()
	address, echo := serve(t, lt, "echo", 5043)
	defer lab.Kill(t, echo)
	works(t, lt, address)
	defer lab.Kill(t, lt.Serve("b", "n", "echo", "10.0.1.2:5044"))
	lt.Must("a", "ip netns exec n smcflow check --size 100000 --conns 5 10.0.1.2:5044")
	for _, host := range []string{"a", "b"} {
		c := lt.CountersRIn(host, "n")
		if made := c.Connections.ClientV2 + c.Connections.ServerV2; made != want || c.FellBack() != 5-want {
			t.Errorf("host %s: %d connections of the namespace were SMC-R, want %d; others: %+v", host, made, want, c.Fallback)
		}
	}
}
