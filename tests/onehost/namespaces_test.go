// SPDX-License-Identifier: Apache-2.0

//go:build linux

package onehost

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/lab"
	"github.com/smckit/smckit/internal/tool/smcrd"
)

// addresses are those of the host and of two containers on one segment.
var addresses = map[string]string{"": "10.98.0.1", "m": "10.98.0.2", "n": "10.98.0.3"}

// bridge connects the containers to the host by a bridge.
const bridge = `modprobe -a bridge veth
ip link add br0 type bridge; ip addr add 10.98.0.1/24 dev br0; ip link set br0 up
for c in m.2 n.3; do
	n=${c%.*}
	ip netns add $n
	ip link add $n-out type veth peer name in netns $n
	ip link set $n-out master br0; ip link set $n-out up
	ip -n $n addr add 10.98.0.${c#*.}/24 dev in; ip -n $n link set lo up; ip -n $n link set in up
done`

// onTop gives the host and the containers interfaces of one kind on top of the same device.
const onTop = `modprobe -a dummy macvlan ipvlan
ip link add d0 type dummy; ip link set d0 up
ip link add link d0 name host0 type %[1]s
ip addr add 10.98.0.1/24 dev host0; ip link set host0 up
for c in m.2 n.3; do
	n=${c%%.*}
	ip netns add $n
	ip link add link d0 name in netns $n type %[1]s
	ip -n $n addr add 10.98.0.${c#*.}/24 dev in; ip -n $n link set lo up; ip -n $n link set in up
done`

// pair is a client, a server, and the number of connections.
type pair struct {
	client, server string
	port, conns    int
}

// open starts an echo and a program that keeps connections to it, and waits until these are SMC-D.
func (p pair) open(t *testing.T, lt *lab.Test) (echo, kept *lab.Process) {
	t.Helper()
	address := fmt.Sprintf("%s:%d", addresses[p.server], p.port)
	echo = lt.Serve("a", p.server, "echo", address)
	kept = lt.StartIn("a", p.client, "smcflow", "keep", "--conns", fmt.Sprint(p.conns), address)
	there := fmt.Sprintf("test $(%s --state active | grep %s | grep -c SMCD) -ge %d", strings.Join(lab.InNamespace(p.client, "smcss"), " "), address, p.conns)
	if err := lt.Host("a").WaitFor(t.Context(), there); err != nil {
		t.Fatal(err)
	}
	return echo, kept
}

// connsIn returns the numbers of connections of the groups in use that a namespace sees, in ascending order.
func connsIn(t *testing.T, lt *lab.Test, namespace string) (conns []int) {
	t.Helper()
	var answer smcrd.LinkGroupsD
	lt.Document("a", strings.Join(lab.InNamespace(namespace, "smcd", "linkgroup", "--json"), " "), &answer)
	for _, g := range answer.LinkGroups {
		if g.Conns > 0 {
			conns = append(conns, int(g.Conns))
		}
	}
	slices.Sort(conns)
	return conns
}

// TestNamespaces has containers and their host connect to each other. A namespace sees its own group, the host sees all, and
// deleting a namespace ends only its connections. Full runs have them make thousands of connections, over interfaces of each kind.
func TestNamespaces(t *testing.T) {
	lab.EachKernel(t, namespaces)
}

func namespaces(t *testing.T, kernel string, length lab.Length) {
	lt := start(t, kernel, length)
	if length == lab.LengthFull {
		for _, kind := range []string{"macvlan mode bridge", "ipvlan mode l2"} {
			t.Run(kind, func(t *testing.T) {
				lt.Must("a", fmt.Sprintf(onTop, kind))
				alternate(t, lt)
				lt.Must("a", "ip link del d0; ip netns del m; ip netns del n")
			})
		}
	}
	lt.Must("a", bridge)
	pairs := []pair{{"", "m", 7101, 2}, {"m", "", 7102, 3}, {"n", "", 7103, 1}, {"n", "m", 7104, 2}, {"", "n", 7105, 4}}
	ends := map[string]int{}
	var echoes, kept []*lab.Process
	for _, p := range pairs {
		echo, keep := p.open(t, lt)
		echoes, kept = append(echoes, echo), append(kept, keep)
		ends[p.client] += p.conns
		ends[p.server] += p.conns
	}
	for _, namespace := range []string{"m", "n"} {
		if got := connsIn(t, lt, namespace); !slices.Equal(got, []int{ends[namespace]}) {
			t.Errorf("namespace %s sees groups with %d connections, want one with %d", namespace, got, ends[namespace])
		}
	}
	all := []int{ends[""], ends["m"], ends["n"]}
	slices.Sort(all)
	if got := connsIn(t, lt, ""); !slices.Equal(got, all) {
		t.Errorf("the host sees groups with %d connections, want %d", got, all)
	}
	if length == lab.LengthFull {
		t.Run("bridge", func(t *testing.T) { alternate(t, lt) })
	}
	for i, p := range pairs {
		if p.client == "m" || p.server == "m" {
			lab.Kill(t, kept[i])
			lab.Kill(t, echoes[i])
		}
	}
	lt.Must("a", "ip netns del m")
	if err := lt.Host("a").WaitFor(t.Context(), "! ip link show dev m-out 2>/dev/null"); err != nil {
		t.Errorf("namespace m has not gone: %v", err)
	}
	if got, want := connsIn(t, lt, ""), []int{1 + 4, 1 + 4}; !slices.Equal(got, want) {
		t.Errorf("without namespace m the host sees groups with %d connections, want %d", got, want)
	}
	for i, p := range pairs {
		if p.client != "m" && p.server != "m" {
			lab.Stop(t, kept[i])
			lab.Kill(t, echoes[i])
		}
	}
	unloads(t, lt)
}

// alternate lets all namespaces make connections to the host at the same time, while the host streams to one of them.
// All are SMC-D.
func alternate(t *testing.T, lt *lab.Test) {
	t.Helper()
	conns := lab.AlternateConns(t)
	servers := map[string]int{"": 3 * conns, "m": lab.AlternateStreams}
	var flows []lab.Flow
	before := map[string]lab.Counters{}
	for namespace := range addresses {
		before[namespace] = lt.CountersIn("a", namespace)
		flows = append(flows, lab.Flow{Client: "a", ClientNS: namespace, Server: "a", Address: fmt.Sprintf("%s:%d", addresses[""], 7110+len(flows))})
	}
	lt.Alternate(t, lab.Flow{Client: "a", Server: "a", ServerNS: "m", Address: addresses["m"] + ":7120"}, flows...)
	for namespace, b := range before {
		clients := conns
		if namespace == "" {
			clients += lab.AlternateStreams
		}
		now := lt.CountersIn("a", namespace)
		c, s := now.Connections.ClientV2-b.Connections.ClientV2, now.Connections.ServerV2-b.Connections.ServerV2
		if fell := now.FellBack() - b.FellBack(); c != clients || s != servers[namespace] || fell != 0 {
			t.Errorf("namespace %q: %d connections as client, %d as server, %d that fell back (%+v), want %d, %d and none",
				namespace, c, s, fell, now.Fallback, clients, servers[namespace])
		}
	}
}
