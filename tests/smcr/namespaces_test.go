// SPDX-License-Identifier: Apache-2.0

//go:build linux

package smcr

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/lab"
	"github.com/smckit/smckit/internal/tool/smcrd"
)

// containers are the namespaces that connections come from: the host's own, and two more. The number is the last byte of the
// address, minus that of the host.
var containers = []struct {
	name   string
	number int
}{{"", 0}, {"m", 10}, {"n", 20}}

// kinds are the kinds of the containers' interfaces: on top of eth0 and in its subnet, so that a peer takes them all for one
// host. An interface can have one kind on top.
var kinds = []string{"macvlan mode bridge", "ipvlan mode l2"}

// addressIn is the address of a host, 0 or 1, in a namespace.
func addressIn(host, number int) string { return fmt.Sprintf("10.0.0.%d", host+1+number) }

// addContainers makes the namespaces on a host, or makes them again.
func addContainers(t *testing.T, lt *lab.Test, host, kind string) {
	t.Helper()
	index := map[string]int{"a": 0, "b": 1}[host]
	lt.Must(host, "modprobe -a macvlan ipvlan")
	for _, c := range containers[1:] {
		lt.Must(host, fmt.Sprintf("ip netns del %s 2>/dev/null || :", c.name))
	}
	for _, c := range containers[1:] {
		lt.Must(host, "ip netns add "+c.name)
		// eth0 is busy until the kernel has taken down those of another kind.
		if err := lt.Host(host).WaitFor(t.Context(), fmt.Sprintf("ip link add link eth0 name %s0 type %s", c.name, kind)); err != nil {
			t.Fatal(err)
		}
		lt.Must(host, fmt.Sprintf("ip link set %[1]s0 netns %[1]s; ip -n %[1]s addr add %[2]s/24 dev %[1]s0; "+
			"ip -n %[1]s link set lo up; ip -n %[1]s link set %[1]s0 up", c.name, addressIn(index, c.number)))
	}
}

// setContainers makes the namespaces on some hosts. They have the addresses of those before them, and other MAC addresses, so both hosts
// forget their neighbours.
func setContainers(t *testing.T, lt *lab.Test, kind string, hosts ...string) {
	t.Helper()
	for _, host := range hosts {
		addContainers(t, lt, host, kind)
	}
	for _, host := range []string{"a", "b"} {
		lt.Must(host, "ip neigh flush dev eth0")
	}
}

// keepIn starts a program on a that keeps connections, and waits until they are SMC-R.
func keepIn(t *testing.T, lt *lab.Test, namespace, address string, n int) *lab.Process {
	t.Helper()
	p := lt.StartIn("a", namespace, "smcflow", "keep", "--conns", fmt.Sprint(n), address)
	_, port, _ := strings.Cut(address, ":")
	there := fmt.Sprintf("test $(%s --state active --port %s | grep -c SMCR) = %d", strings.Join(lab.InNamespace(namespace, "smcss"), " "), port, n)
	if err := lt.Host("a").WaitFor(t.Context(), there); err != nil {
		t.Fatalf("connections of namespace %q to %s: %v", namespace, address, err)
	}
	return p
}

// groupsIn checks how many connections a namespace sees in the one group that it sees in use.
func groupsIn(t *testing.T, lt *lab.Test, host, namespace string, want int) {
	t.Helper()
	var answer smcrd.LinkGroupsR
	lt.Document(host, strings.Join(lab.InNamespace(namespace, "smcr", "linkgroup", "link-show", "--json"), " "), &answer)
	var used []group
	for _, g := range answer.LinkGroups {
		if g.Conns > 0 {
			used = append(used, g)
		}
	}
	if len(used) != 1 || used[0].Conns != uint32(want) || len(used[0].Links) != 1 || used[0].Links[0].Conns != uint32(want) ||
		used[0].RMBBytes.Or(0) < uint64(want)*16384 {
		t.Errorf("host %s, namespace %q sees %+v, want one group with %d connections", host, namespace, answer.LinkGroups, want)
		return
	}
	// These bytes are those of all namespaces.
	if l := used[0].Links[0]; (l.TxBytes != none) != (namespace == "") || (l.RxBytes != none) != (namespace == "") {
		t.Errorf("host %s, namespace %q sees the link %+v: its bytes are for the host", host, namespace, l)
	}
}

// noGroupsIn checks that a namespace without connections sees no group.
func noGroupsIn(t *testing.T, lt *lab.Test, host, namespace string) {
	t.Helper()
	var answer smcrd.LinkGroupsR
	lt.Document(host, "smcr -N "+namespace+" linkgroup --json", &answer)
	if len(answer.LinkGroups) != 0 {
		t.Errorf("host %s, namespace %q: sees groups of others: %+v", host, namespace, answer.LinkGroups)
	}
}

// noneFell checks that no connection of the host or of the containers on it fell back.
func noneFell(t *testing.T, lt *lab.Test, host string) {
	t.Helper()
	for _, c := range containers {
		counted := lt.CountersRIn(host, c.name)
		if fell := counted.FellBack(); fell != 0 {
			t.Errorf("host %s, namespace %q: %d connections fell back: %+v", host, c.name, fell, counted.Fallback)
		}
	}
}

// TestNamespacesShareGroups has connections of several namespaces leave by one device, as clients and as servers. All are
// SMC-R and share a group, none disturbs the others, and deleting a namespace ends its connections only.
func TestNamespacesShareGroups(t *testing.T) { eachKernel(t, namespacesShareGroups) }

func namespacesShareGroups(t *testing.T, kernel string) {
	ours := side{kernel, lab.ModuleOurs}
	lt := start(t, ours, ours)
	for i, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			if i > 0 && !lab.Full() {
				t.Skip("takes a minute: SMCKIT_FULL=1")
			}
			setContainers(t, lt, kind, "a", "b")
			t.Run("clients", func(t *testing.T) { namespacesOfClients(t, lt) })
			t.Run("servers", func(t *testing.T) { namespacesOfServers(t, lt) })
			t.Run("limits", func(t *testing.T) { limitsOfNamespaces(t, lt) })
		})
	}
	for _, host := range []string{"a", "b"} {
		unloads(t, lt, host)
	}
}

func namespacesOfClients(t *testing.T, lt *lab.Test) {
	address := addressIn(1, 0) + ":5060"
	defer lab.Kill(t, lt.Serve("b", "", "echo", address))
	counts := map[string]int{"": 4, "m": 3, "n": 2}
	kept := map[string]*lab.Process{}
	noGroupsIn(t, lt, "a", "m")
	for _, c := range containers {
		kept[c.name] = keepIn(t, lt, c.name, address, counts[c.name])
		lt.Must("a", strings.Join(lab.InNamespace(c.name, "smcflow", "check", "--conns", "2", "--rounds", "3", "--size", "50000", address), " "))
	}
	groupsIn(t, lt, "a", "", 9)
	groupsIn(t, lt, "a", "m", 3)
	groupsIn(t, lt, "a", "n", 2)
	groupsIn(t, lt, "b", "", 9)
	noneFell(t, lt, "a")
	lab.Kill(t, kept["m"])
	remove(t, lt, "a", "m", addressIn(0, 10))
	lt.Must("a", "smcflow check --conns 2 --rounds 3 --size 50000 "+address)
	lab.Stop(t, kept[""], kept["n"])
}

// limitsOfNamespaces has the limits of a namespace apply to its own connections, although those of the host use the same group: the number
// of large buffers is counted for each, and only the one that may use no memory falls back.
func limitsOfNamespaces(t *testing.T, lt *lab.Test) {
	const usual, large = 65536, 4 * 65536
	address := addressIn(1, 0) + ":5064"
	defer lab.Kill(t, lt.Serve("b", "", "echo", address))
	setOn(t, lt, "a", "smcr_large_conns_per_lgr=1")
	lt.Must("a", "ip netns exec n sysctl -qw net.smc.smcr_large_conns_per_lgr=1")
	ofHost, ofN := keepIn(t, lt, "", address, 2), keepIn(t, lt, "n", address, 3)
	defer lab.Stop(t, ofHost, ofN)
	for namespace, want := range map[string][]int{"": {usual, large}, "n": {usual, usual, large}} {
		if snd, _ := bufferSizesIn(t, lt, "a", namespace); !slices.Equal(snd, want) {
			t.Errorf("namespace %q: connections send from rings of %d, want %d", namespace, snd, want)
		}
	}
	groupsIn(t, lt, "a", "", 5)
	groupsIn(t, lt, "a", "n", 3)

	before := [2]lab.Counters{lt.CountersRIn("a", ""), lt.CountersRIn("a", "n")}
	lt.Must("a", "ip netns exec n sysctl -qw net.smc.max_memory_kbytes=1")
	lt.Must("a", "ip netns exec n smcflow check --size 50000 "+address)
	lt.Must("a", "smcflow check --size 50000 "+address)
	lt.Must("a", "ip netns exec n sysctl -qw net.smc.max_memory_kbytes=0")
	after := [2]lab.Counters{lt.CountersRIn("a", ""), lt.CountersRIn("a", "n")}
	if n := after[1].Fallback.Client.Of("MEM_LIMIT") - before[1].Fallback.Client.Of("MEM_LIMIT"); n != 1 {
		t.Errorf("%d connections of the namespace without memory fell back because of its limit, want 1", n)
	}
	if fell := after[0].FellBack() - before[0].FellBack(); fell != 0 {
		t.Errorf("%d connections of the host fell back", fell)
	}
}

// remove deletes a namespace, and waits until the kernel has removed its address, which was rxe0's, too.
func remove(t *testing.T, lt *lab.Test, host, namespace, address string) {
	t.Helper()
	b := netip.MustParseAddr(address).As4()
	gid := fmt.Sprintf("ffff:%02x%02x:%02x%02x", b[0], b[1], b[2], b[3])
	const gids = "/sys/class/infiniband/rxe0/ports/1/gids/*"
	lt.Must(host, fmt.Sprintf("grep -q %s %s", gid, gids))
	lt.Must(host, "ip netns del "+namespace)
	if err := lt.Host(host).WaitFor(t.Context(), fmt.Sprintf("! grep -qs %s %s", gid, gids)); err != nil {
		t.Errorf("host %s: namespace %s has not gone: %v", host, namespace, err)
	}
}

func namespacesOfServers(t *testing.T, lt *lab.Test) {
	var kept []*lab.Process
	echoes := map[string]*lab.Process{}
	for i, c := range containers {
		address := fmt.Sprintf("%s:%d", addressIn(1, c.number), 5061+i)
		echoes[c.name] = lt.Serve("b", c.name, "echo", address)
		kept = append(kept, keepIn(t, lt, "", address, i+1))
	}
	groupsIn(t, lt, "a", "", 6)
	groupsIn(t, lt, "b", "", 6)
	groupsIn(t, lt, "b", "m", 2)
	groupsIn(t, lt, "b", "n", 3)
	noneFell(t, lt, "b")
	lab.Kill(t, echoes["m"])
	remove(t, lt, "b", "m", addressIn(1, 10))
	lab.Stop(t, kept[0], kept[2])
	lab.Kill(t, kept[1])
	lab.Kill(t, echoes[""])
	lab.Kill(t, echoes["n"])
}

// TestNamespacesAlternate has a thousand connections of each namespace, one after another, while others stream: with our module
// and with the stock one as the peer, and ours in both roles.
func TestNamespacesAlternate(t *testing.T) {
	lab.Need(t)
	if !lab.Full() && os.Getenv("SMCKIT_ALTERNATE") == "" {
		t.Skip("takes minutes: SMCKIT_FULL=1, or SMCKIT_ALTERNATE for fewer connections")
	}
	ours := side{lab.Newest(), lab.ModuleOurs}
	for _, p := range [][2]side{{ours, ours}, {ours, stock}, {stock, ours}} {
		t.Run(fmt.Sprintf("%s to %s", p[0], p[1]), func(t *testing.T) {
			lt := start(t, p[0], p[1])
			for i, host := range []string{"a", "b"} {
				if p[i].module == lab.ModuleOurs {
					// Thousands of connections may reach the default ceiling, and would then be TCP.
					lt.Must(host, "sysctl -qw net.smc.host_max_memory_kbytes=4294967295")
				}
			}
			// Our host has the namespaces, because the stock module has a separate group for each namespace.
			host := "a"
			if p[0].module != lab.ModuleOurs {
				host = "b"
			}
			for _, kind := range kinds {
				t.Run(kind, func(t *testing.T) {
					setContainers(t, lt, kind, host)
					alternate(t, lt, host)
				})
			}
		})
	}
}

// alternate lets all namespaces of a host make connections with its peer at the same time, as clients on a, or as servers on b. All of
// them are SMC-R, on both hosts.
func alternate(t *testing.T, lt *lab.Test, host string) {
	conns := lab.AlternateConns(t)
	made := map[place]ends{{"a", ""}: {clients: lab.AlternateStreams}, {"b", ""}: {servers: lab.AlternateStreams}}
	for _, c := range containers {
		client, server := place{"a", c.name}, place{"b", ""}
		if host == "b" {
			client, server = place{"a", ""}, place{"b", c.name}
		}
		made[client] = ends{made[client].clients + conns, made[client].servers}
		made[server] = ends{made[server].clients, made[server].servers + conns}
	}
	before := map[place]lab.Counters{}
	for p := range made {
		before[p] = lt.CountersRIn(p.host, p.namespace)
	}
	stream := lab.Flow{Client: "a", Server: "b", Address: addressIn(1, 0) + ":5070"}
	var flows []lab.Flow
	for i, c := range containers {
		f := lab.Flow{Client: "a", ClientNS: c.name, Server: "b", Address: fmt.Sprintf("%s:%d", addressIn(1, 0), 5071+i)}
		if host == "b" {
			f.ClientNS, f.ServerNS, f.Address = "", c.name, fmt.Sprintf("%s:%d", addressIn(1, c.number), 5071+i)
		}
		flows = append(flows, f)
	}
	lt.Alternate(t, stream, flows...)
	for p, want := range made {
		now, b := lt.CountersRIn(p.host, p.namespace), before[p]
		got := ends{now.Connections.ClientV2 - b.Connections.ClientV2, now.Connections.ServerV2 - b.Connections.ServerV2}
		if fell := now.FellBack() - b.FellBack(); got != want || fell != 0 {
			t.Errorf("host %s, namespace %q: %+v are SMC-R, %d fell back (%+v), want %+v and none", p.host, p.namespace, got, fell, now.Fallback, want)
		}
	}
}

// place is a network namespace of a host.
type place struct{ host, namespace string }

// ends are numbers of connections by the role of a place.
type ends struct{ clients, servers int }
