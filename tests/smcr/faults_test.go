// SPDX-License-Identifier: Apache-2.0

//go:build linux

package smcr

import (
	"fmt"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/lab"
)

// impairments makes the network lose, delay, reorder, duplicate and damage packets, to an extent from which RDMA recovers.
func impairments(t *testing.T, lt *lab.Test) {
	address, echo := serve(t, lt, "echo", 5020)
	defer lab.Kill(t, echo)
	kinds := []string{"loss 0.5% delay 1ms reorder 25% 50% duplicate 3% corrupt 0.2%"}
	if lab.Full() {
		kinds = append(kinds, "loss 1%", "delay 3ms 1ms", "delay 1ms reorder 25% 50%", "duplicate 3%", "corrupt 0.5%")
	}
	for _, kind := range kinds {
		both(t, lt, "tc qdisc add dev eth0 root netem "+kind)
		before := counters(lt)
		lt.Must("a", "smcflow check --conns 3 --size 300000 "+address)
		onlySMCR(t, lt, before, 3)
		both(t, lt, "tc qdisc del dev eth0 root")
	}
}

// heavyLoss loses more packets than RDMA can recover: connections may break, which both ends must notice, but no wrong data may
// arrive.
func heavyLoss(t *testing.T, lt *lab.Test) {
	address, echo := serve(t, lt, "echo", 5021)
	defer lab.Kill(t, echo)
	both(t, lt, "tc qdisc add dev eth0 root netem loss 5% corrupt 2% duplicate 5% delay 2ms reorder 10%")
	r := lt.Run("a", "smcflow", "check", "--conns", "5", "--size", "200000", address)
	if strings.Contains(r.Stderr, "wrong data") {
		t.Errorf("%+v", r)
	}
	t.Logf("exit status %d: %s", r.Code, r.Stderr)
	both(t, lt, "tc qdisc del dev eth0 root")
	works(t, lt, address)
}

func both(t *testing.T, lt *lab.Test, command string) {
	t.Helper()
	for _, host := range []string{"a", "b"} {
		lt.Must(host, command)
	}
}

// works checks that new connections are SMC-R again.
func works(t *testing.T, lt *lab.Test, address string) {
	t.Helper()
	before := counters(lt)
	lt.Must("a", "smcflow check --size 100000 --conns 5 "+address)
	onlySMCR(t, lt, before, 5)
}

// broken ends the connections between the hosts, and waits until neither has connections or a group. Otherwise, new
// connections would join the group that one of them still has.
func broken(t *testing.T, lt *lab.Test, away func()) {
	t.Helper()
	victims, sink := serve(t, lt, "sink", 5022)
	brokenAt(t, lt, victims, away)
	lab.Kill(t, sink)
	awaitNoGroups(t, lt)
}

// deleteGroups is a command that ends all groups of a host.
const deleteGroups = "for g in $(smcr linkgroup | awk '/SERV|CLNT/ { print $1 }'); do smcr linkgroup delete $g || :; done"

// endGroups ends all groups, so that new connections form one whose links have not been lost: after each loss soon after a link was
// added, the hosts wait longer before they add another.
func endGroups(t *testing.T, lt *lab.Test) {
	t.Helper()
	both(t, lt, deleteGroups)
	awaitNoGroups(t, lt)
}

// awaitNoGroups waits until no host has a group: new connections would join a group whose end one host has not noticed.
func awaitNoGroups(t *testing.T, lt *lab.Test) {
	t.Helper()
	for _, h := range []string{"a", "b"} {
		awaitNoGroupsOn(t, lt, h)
	}
}

// brokenAt ends connections to a sink.
func brokenAt(t *testing.T, lt *lab.Test, address string, away func()) {
	t.Helper()
	all := streams(t, lt, address, 5)
	away()
	fail(t, all)
	_, port, _ := strings.Cut(address, ":")
	none := "test $(smcss --state active --port " + port + " | grep -c SMCR) = 0"
	for _, h := range []string{"a", "b"} {
		if err := lt.Host(h).WaitFor(t.Context(), none); err != nil {
			t.Errorf("host %s still has connections: %v", h, err)
		}
	}
}

// silence cuts the wire, as if the other host had lost its power.
func silence(t *testing.T, lt *lab.Test) {
	set(t, lt, "smcr_testlink_time=2")
	broken(t, lt, lt.Wires[0].Cut)
	lt.Wires[0].Restore()
	address, echo := serve(t, lt, "echo", 5025)
	defer lab.Kill(t, echo)
	works(t, lt, address)
}

// cut ends connections by a command on a host, undoes that, and checks that new connections are SMC-R.
func cut(t *testing.T, lt *lab.Test, host, away, back string) {
	broken(t, lt, func() { lt.Must(host, away) })
	lt.Must(host, back)
	if err := lt.Host(host).WaitFor(t.Context(), "smcr device --json | grep -q '\"ACTIVE\"'"); err != nil {
		t.Fatal(err)
	}
	address, echo := serve(t, lt, "echo", 5023)
	defer lab.Kill(t, echo)
	works(t, lt, address)
}

// cuts are the ways in which a host can lose its adapter. A host that only receives notices by testing the link.
func cuts(t *testing.T, lt *lab.Test, host string) {
	set(t, lt, "smcr_testlink_time=2")
	address := map[string]string{"a": lab.Addr4(0, 0), "b": lab.Addr4(0, 1)}[host]
	for _, c := range []struct{ name, away, back string }{
		{"device", "rdma link delete rxe0", "rdma link add rxe0 type rxe netdev eth0"},
		{"port", "sysctl -qw net.ipv6.conf.eth0.keep_addr_on_down=1 && ip link set eth0 down", "ip link set eth0 up"},
		{"address", fmt.Sprintf("ip addr del %s/24 dev eth0", address), fmt.Sprintf("ip addr add %s/24 dev eth0", address)},
	} {
		t.Run(c.name, func(t *testing.T) { cut(t, lt, host, c.away, c.back) })
	}
}

// table deletes the PNET ID by which a group was formed, and tries to unload the module: neither affects the group.
func table(t *testing.T, lt *lab.Test, host string) {
	address, echo := serve(t, lt, "echo", 5024)
	defer lab.Kill(t, echo)
	other := bystander(t, lt, address)
	lt.Must(host, "smc_pnet del LAB0")
	if r := lt.Run(host, "rmmod", "smc_diag", "smc"); r.Code == 0 || !strings.Contains(r.Stderr, "in use") {
		t.Errorf("unloading while connections are open: %+v", r)
	}
	finish(t, other)
	lt.Must(host, "modprobe smc_diag; smc_pnet add LAB0 eth eth0 && smc_pnet add LAB0 ib rxe0 1")
	works(t, lt, address)
}
