// SPDX-License-Identifier: Apache-2.0

//go:build linux

package smcr

import (
	"fmt"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/lab"
	"github.com/smckit/smckit/internal/tool/smcrd"
)

// TestLinks has hosts with two adapters in one physical network: link groups get a second link, and between two hosts with our
// module their connections go on when a link is lost.
func TestLinks(t *testing.T) {
	lab.Need(t)
	for _, kernel := range lab.FewSeries() {
		ours := side{kernel, lab.ModuleOurs}
		pairs := [][2]side{{ours, ours}}
		if kernel == lab.Newest() {
			pairs = append(pairs, [2]side{stock, ours})
		}
		if kernel == lab.Newest() && lab.Full() {
			pairs = append(pairs, [2]side{ours, stock})
		}
		for _, p := range pairs {
			t.Run(fmt.Sprintf("%s to %s", p[0], p[1]), func(t *testing.T) { linksBetween(t, p) })
		}
	}
}

func linksBetween(t *testing.T, p [2]side) {
	lt := startWith(t, lab.Options{Wires: 2}, p[0], p[1])
	oneNetwork(t, lt)
	logEvents := logFailures(t, lt, p)
	if p[0].module == p[1].module {
		t.Run("dead wire", func(t *testing.T) { deadWire(t, lt) })
	}
	t.Run("added", func(t *testing.T) { linkAdded(t, lt) })
	if p[0].module == p[1].module {
		t.Run("bytes", func(t *testing.T) { linkBytes(t, lt) })
		t.Run("other interface", func(t *testing.T) { joinsByOtherInterface(t, lt) })
		t.Run("last messages", func(t *testing.T) { lastMessagesLost(t, lt) })
		t.Run("lost and found", func(t *testing.T) { linksLost(t, lt) })
		t.Run("returns", func(t *testing.T) { connsReturn(t, lt) })
		t.Run("short connections", func(t *testing.T) { linksLostInHandshakes(t, lt) })
		t.Run("both lost", func(t *testing.T) { bothLinksLost(t, lt) })
		t.Run("queue pair in error", func(t *testing.T) { queuePairFails(t, lt) })
		t.Run("lost while added", func(t *testing.T) { lostWhileAdded(t, lt) })
		t.Run("lost twice", func(t *testing.T) { lostTwice(t, lt) })
		t.Run("deleted", func(t *testing.T) { linkDeleted(t, lt) })
		t.Run("counted", func(t *testing.T) { linksCounted(t, lt) })
		t.Run("monitored", func(t *testing.T) { monitored(t, lt) })
	} else {
		t.Run("lost and found", func(t *testing.T) { linksLostWithStock(t, lt, p) })
	}
	if lt.Host("a").Kernel.Debug() {
		t.Run("without memory", func(t *testing.T) { linksWithoutMemory(t, lt) })
	}
	logEvents()
	if p[0].module == p[1].module {
		unloadsAndHangs(t, lt)
		return
	}
	for i, host := range []string{"a", "b"} {
		if p[i].module == lab.ModuleOurs {
			unloads(t, lt, host)
		}
	}
}

// startTraffic has connections exchange data with an echo until stop is called, or they have sent a number of bytes: none gets an
// error. On a debug kernel, streams would leave no time for LLC, so there are fewer connections, and they pause.
func startTraffic(t *testing.T, lt *lab.Test, address string, conns, bytes int) (n int, stop func()) {
	t.Helper()
	if lt.Host("a").Kernel.Debug() {
		return 2, startKeep(t, lt, address, 2, "--pause", "100ms")
	}
	p := lt.StartIn("a", "", "smcflow", "check", "--conns", fmt.Sprint(conns), "--size", fmt.Sprint(bytes), address)
	t.Cleanup(func() { lab.Kill(t, p) })
	return conns, func() { finish(t, p) }
}

// oneNetwork makes both wires one network, for groups with two links.
func oneNetwork(t *testing.T, lt *lab.Test) {
	t.Helper()
	lt.JoinWires()
	silence := 2 // seconds until a link is tested
	if lt.Host("a").Kernel.Debug() {
		silence = 20
	}
	both(t, lt, fmt.Sprintf("sysctl -qw net.smc.smcr_max_links_per_lgr=2 net.smc.smcr_testlink_time=%d", silence))
}

// deadWire has connections begin while the hosts try to add a link over a wire that loses everything, each with an RMB of its own:
// they do not wait for the end of that, which would have them fall back, and can use the link when it has come.
func deadWire(t *testing.T, lt *lab.Test) {
	address, sink := serve(t, lt, "sink", 5065)
	defer lab.Kill(t, sink)
	lt.Wires[1].Cut()
	defer lt.Wires[1].Restore()
	first := keepIn(t, lt, "", address, 1)
	defer lab.Kill(t, first)
	if err := lt.Host("b").WaitFor(t.Context(), "smcr link | grep -q ACTIVATING"); err != nil {
		t.Fatalf("%v\n%s", err, lt.Must("b", "smcr link"))
	}
	address, others := serve(t, lt, "sink", 5066)
	defer lab.Kill(t, others)
	more := keepIn(t, lt, "", address, 10)
	defer lab.Kill(t, more)
	groupIn(t, lt, "a", 11)
	lt.Wires[1].Restore()
	awaitLinks(t, lt, true)
	// Both hosts know all keys on the new link: every connection can go on by it.
	lt.Wires[0].Cut()
	defer restore(lt, 0)()
	awaitLinks(t, lt, false)
	for _, host := range []string{"a", "b"} {
		groupIn(t, lt, host, 11)
	}
	endGroups(t, lt)
}

// linkAdded wants both hosts to list two links of a symmetric group, over which connections spread.
func linkAdded(t *testing.T, lt *lab.Test) {
	address, sink := serve(t, lt, "sink", 5050)
	defer lab.Kill(t, sink)
	kept := keepIn(t, lt, "", address, 1)
	defer lab.Kill(t, kept)
	awaitLinks(t, lt, true)
	address, other := serve(t, lt, "sink", 5051)
	defer lab.Kill(t, other)
	more := keepIn(t, lt, "", address, 4)
	defer lab.Kill(t, more)
	for _, host := range []string{"a", "b"} {
		var answer smcrd.LinkGroupsR
		lt.Document(host, "smcr linkgroup link-show --json", &answer)
		if len(answer.LinkGroups) != 1 || answer.LinkGroups[0].Type != "SYM" || len(answer.LinkGroups[0].Links) != 2 {
			t.Fatalf("host %s: %+v", host, answer.LinkGroups)
		}
		for _, l := range answer.LinkGroups[0].Links {
			if l.State != "LINK_ACTIVE" || l.Conns < 2 {
				t.Errorf("host %s: %+v", host, answer.LinkGroups[0].Links)
			}
		}
	}
}

// joinsByOtherInterface has connections that leave by the interface of the second link's adapter, in a subnet of its own: they join
// the group, also when its first link has been lost.
func joinsByOtherInterface(t *testing.T, lt *lab.Test) {
	each(t, lt, "ip addr add 10.8.0.%d/24 dev eth1")
	address, sink := serve(t, lt, "sink", 5057)
	defer lab.Kill(t, sink)
	defer lab.Kill(t, keepIn(t, lt, "", address, 1))
	awaitLinks(t, lt, true)
	defer lab.Kill(t, lt.Serve("b", "", "sink", "10.8.0.2:5058"))
	defer lab.Kill(t, keepIn(t, lt, "", "10.8.0.2:5058", 2))
	for _, host := range []string{"a", "b"} {
		groupIn(t, lt, host, 3)
	}
}

// groupIn wants a host to have one group, with a number of connections.
func groupIn(t *testing.T, lt *lab.Test, host string, conns int) {
	t.Helper()
	var answer smcrd.LinkGroupsR
	lt.Document(host, "smcr linkgroup link-show --json", &answer)
	if len(answer.LinkGroups) != 1 || answer.LinkGroups[0].Conns != uint32(conns) {
		t.Errorf("host %s: not one group with %d connections: %+v", host, conns, answer.LinkGroups)
	}
}

// connsReturn loses a link beside streams and idle connections: they spread over both links again once it has come back, and every
// byte arrives.
func connsReturn(t *testing.T, lt *lab.Test) {
	sinks, sink := serve(t, lt, "sink", 5059)
	defer lab.Kill(t, sink)
	defer lab.Kill(t, keepIn(t, lt, "", sinks, 10))
	address, echo := serve(t, lt, "echo", 5060)
	defer lab.Kill(t, echo)
	_, stop := startTraffic(t, lt, address, 4, 6000000)
	awaitLinks(t, lt, true)
	lt.Must("b", "ip link set eth1 down")
	awaitLinks(t, lt, false)
	lt.Must("b", "ip link set eth1 up")
	// Streams may end meanwhile, but the idle connections stay: at least four of them are on each link then.
	spread := "smcr link | awk '/LINK_ACTIVE/ && $6 >= 4 { n++ } END { exit n != 2 }'"
	for _, host := range []string{"a", "b"} {
		if err := lt.Host(host).WaitFor(t.Context(), spread); err != nil {
			t.Fatalf("host %s: %v\n%s", host, err, lt.Must(host, "smcr -d link"))
		}
	}
	stop()
}

// awaitLinks waits until all groups on both hosts have two active links that share no port, or until none has.
func awaitLinks(t *testing.T, lt *lab.Test, symmetric bool) {
	t.Helper()
	holds := "$sym = 0"
	if symmetric {
		holds = "$sym -ge 2 -a $sym = $all"
	}
	script := "all=$(smcr link | grep -c LINK_ACTIVE) || :; sym=$(smcr link | grep -w SYM | grep -c LINK_ACTIVE) || :; test " + holds
	for _, host := range []string{"a", "b"} {
		if err := lt.Host(host).WaitFor(t.Context(), script); err != nil {
			t.Fatalf("%v\n%s\n%s", err, lt.Must(host, "smcr link"), lt.Must(host, "dmesg | tail -5"))
		}
	}
}

// loss is a way to lose a link, and to get it back.
type loss struct {
	name       string
	away, back func()
}

// happen loses the link of each group with two links, waits until both hosts know, gets it back, and waits until they have two again.
func (l loss) happen(t *testing.T, lt *lab.Test) {
	t.Helper()
	l.away()
	awaitLinks(t, lt, false)
	l.back()
	awaitLinks(t, lt, true)
}

// on loses a link by a command on a host, and gets it back by another.
func on(lt *lab.Test, host, away, back string) loss {
	return loss{away + " on " + host, func() { lt.Must(host, away) }, func() { lt.Must(host, back) }}
}

// portDown is a port of a host that goes down.
func portDown(lt *lab.Test, host, dev string) loss {
	return on(lt, host, "ip link set "+dev+" down", "ip link set "+dev+" up")
}

// losses are a wire that loses everything, of which hosts get no event; ports that go down on either host, of the first link or the
// other; and an adapter that is removed. Wires come first: after ports have come back one by one, a link may lead from one wire to the
// other, and both links need both wires.
func losses(lt *lab.Test) []loss {
	all := []loss{{"wire 0", lt.Wires[0].Cut, restore(lt, 0)}}
	if lab.Full() {
		all = append(all, loss{"wire 1", lt.Wires[1].Cut, restore(lt, 1)})
	}
	all = append(all,
		portDown(lt, "a", "eth1"),
		on(lt, "b", "rdma link delete rxe1", "rdma link add rxe1 type rxe netdev eth1"),
		portDown(lt, "b", "eth0"),
	)
	if lab.Full() {
		all = append(all,
			portDown(lt, "b", "eth1"),
			portDown(lt, "a", "eth0"),
			on(lt, "a", "rdma link delete rxe0", "rdma link add rxe0 type rxe netdev eth0"),
		)
	}
	return all
}

// restore ends the cut of a wire. The server looks for a second link again after a time that grows with that of the cut: on a debug
// kernel, which is slow to notice everything, a port that comes up has to tell it.
func restore(lt *lab.Test, wire int) func() {
	return func() {
		lt.Wires[wire].Restore()
		if lt.Host("a").Kernel.Debug() {
			lt.Must("a", fmt.Sprintf("ip link set eth%[1]d down; ip link set eth%[1]d up", wire))
		}
	}
}

// linksLost loses links while connections stream over both: connections go on by the other link, every byte arrives, and the
// group gets a second link again.
func linksLost(t *testing.T, lt *lab.Test) {
	address, echo := serve(t, lt, "echo", 5052)
	defer lab.Kill(t, echo)
	for _, l := range losses(lt) {
		t.Run(l.name, func(t *testing.T) {
			conns, stop := startTraffic(t, lt, address, 10, 3000000)
			all := fmt.Sprintf("test $(smcss --state active --port 5052 | grep -c SMCR) = %d", conns)
			if err := lt.Host("a").WaitFor(t.Context(), all); err != nil {
				t.Fatal(err)
			}
			awaitLinks(t, lt, true)
			away := l.away
			l.away = func() { agreeAfter(t, lt, away) }
			l.happen(t, lt)
			stop()
		})
	}
}

// linksLostWithStock loses links by ports that go down, beside connections between our module and the stock module, which gets over
// no other loss. They stay for all of it: when the stock module gives an RMB to another connection, it tells of its key on a link that
// has come meanwhile, but does not register it there.
func linksLostWithStock(t *testing.T, lt *lab.Test, p [2]side) {
	address, echo := serve(t, lt, "echo", 5052)
	defer lab.Kill(t, echo)
	times := 1
	if lab.Full() {
		times = 2
	}
	for _, host := range losableWithStock(p) {
		beside(t, lt, address, 10, func() { inARow(t, lt, host, times) })
	}
}

// losableWithStock are the hosts whose ports may go down: not that of our module as a client. As a server, the stock module waits
// without end for what it has posted by a link that its client deletes, and soft-RoCE repeats that without end.
func losableWithStock(p [2]side) []string {
	if p[1] == stock {
		return []string{"b"}
	}
	return []string{"a", "b"}
}

// linksLostInHandshakes has connections begin and end all the time, so that links are lost in any step of a handshake, while keys
// are exchanged, and while connections close. Every byte arrives, whether or not a connection falls back to TCP.
func linksLostInHandshakes(t *testing.T, lt *lab.Test) {
	address, echo := serve(t, lt, "echo", 5053)
	defer lab.Kill(t, echo)
	sinks, sink := serve(t, lt, "sink", 5054)
	defer lab.Kill(t, sink)
	kept := keepIn(t, lt, "", sinks, 2)
	defer lab.Kill(t, kept)
	conns, size := "5", "20000"
	if lt.Host("a").Kernel.Debug() {
		conns, size = "2", "5000" // more would leave no time for LLC
	}
	check := lt.StartIn("a", "", "smcflow", "check", "--conns", conns, "--rounds", "150", "--size", size, address)
	defer lab.Kill(t, check)
	times := 4
	if lab.Full() {
		times = 40
	}
	for i := range times {
		// The adapter alone, as TCP's connections need the interface.
		host, n := []string{"a", "b"}[i/2%2], i%2
		awaitLinks(t, lt, true)
		lt.Must(host, fmt.Sprintf("rdma link delete rxe%d", n))
		awaitLinks(t, lt, false)
		lt.Must(host, fmt.Sprintf("rdma link add rxe%[1]d type rxe netdev eth%[1]d", n))
	}
	finish(t, check)
}

// lastMessagesLost loses a link when a server has closed its connections, and its client does so: no connection is left whose end
// could go on by the other link, but the last messages do. Otherwise the server waits for them until its TCP gives up.
func lastMessagesLost(t *testing.T, lt *lab.Test) {
	lt.Must("b", "sysctl -qw net.ipv4.tcp_fin_timeout=120")
	defer lt.Must("b", "sysctl -qw net.ipv4.tcp_fin_timeout=60")
	address, sink := serve(t, lt, "sink", 5061)
	client := keepIn(t, lt, "", address, 6)
	awaitLinks(t, lt, true)
	for _, host := range []string{"a", "b"} {
		if err := lt.Host(host).WaitFor(t.Context(), connsOnLinks("n == 2 && all == 6")); err != nil {
			t.Fatalf("host %s: %v\n%s", host, err, lt.Must(host, "smcr -d link"))
		}
	}
	lab.Suspend(t, client)
	lab.Kill(t, sink)
	if err := lt.Host("a").WaitFor(t.Context(), "test $(smcss --port 5061 | grep -c APPCLOSEWAIT1) = 6"); err != nil {
		t.Fatalf("%v\n%s", err, lt.Must("a", "smcss"))
	}
	lt.Wires[0].Cut()
	defer lt.Wires[0].Restore()
	lab.Kill(t, client)
	for _, host := range []string{"a", "b"} {
		if err := lt.Host(host).WaitFor(t.Context(), connsOnLinks("all == 0")); err != nil {
			t.Errorf("host %s: %v\n%s", host, err, lt.Must(host, "smcr -d link; smcss -a"))
		}
	}
	endGroups(t, lt)
}

// connsOnLinks is a command that checks how many links have connections (n), and how many they are (all).
func connsOnLinks(condition string) string {
	return fmt.Sprintf("smcr link | awk '/LINK_/ { n += $6 > 0; all += $6 } END { exit !(%s) }'", condition)
}

// awaitPorts waits until both ports of a host are active.
func awaitPorts(t *testing.T, lt *lab.Test, host string) {
	t.Helper()
	if err := lt.Host(host).WaitFor(t.Context(), "smcr device --json | grep -c '\"ACTIVE\"' | grep -q 2"); err != nil {
		t.Fatal(err)
	}
}

// bothLinksLost takes both ports of a host down at once: connections end with an error, and new ones form a group with two links.
func bothLinksLost(t *testing.T, lt *lab.Test) {
	broken(t, lt, func() { lt.Must("a", "ip link set eth0 down; ip link set eth1 down") })
	lt.Must("a", "ip link set eth0 up; ip link set eth1 up")
	awaitPorts(t, lt, "a")
	address, sink := serve(t, lt, "sink", 5055)
	defer lab.Kill(t, sink)
	kept := keepIn(t, lt, "", address, 2)
	defer lab.Kill(t, kept)
	awaitLinks(t, lt, true)
}

// linkDeleted has an operator of either host delete a link: connections go on by the other, which cannot be deleted, and the group
// gets a second link only when a port comes up.
func linkDeleted(t *testing.T, lt *lab.Test) {
	address, echo := serve(t, lt, "echo", 5056)
	defer lab.Kill(t, echo)
	for _, host := range []string{"a", "b"} {
		_, stop := startTraffic(t, lt, address, 4, 3000000)
		awaitLinks(t, lt, true)
		link, other := "$(smcr -d link | awk '/SYM/ { print $1, substr($7, 7) }' | head -1)", "$(smcr -d link | awk '/LINK_ACTIVE/ { print $1, substr($7, 7) }')"
		lt.Must(host, "smcr link delete "+link)
		awaitLinks(t, lt, false)
		if r := lt.Run(host, "sh", "-c", "smcr link delete "+other); r.Code != 1 || !strings.Contains(r.Stderr, "linkgroup delete") {
			t.Errorf("host %s: the only link: %+v", host, r)
		}
		stop()
		lt.Must(host, "ip link set eth1 down")
		lt.Must(host, "ip link set eth1 up")
	}
}

// linksCounted checks what the hosts have counted: links that were added and lost, for the reasons of these tests, and connections
// that have moved. A connection that is over may not have moved: its peer has given its RMB to another.
func linksCounted(t *testing.T, lt *lab.Test) {
	for _, host := range []string{"a", "b"} {
		var stats smcrd.Stats
		lt.Document(host, "smcr -a stats --json", &stats)
		l := stats.Links
		if l == nil || l.Added < 5 || l.ConnsMoved == 0 || l.Lost.NoPort == 0 || l.Lost.Operator != 1 || l.Lost.Deleted == 0 {
			t.Errorf("host %s: %+v", host, l)
		}
	}
}
