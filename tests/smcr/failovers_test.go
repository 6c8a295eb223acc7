// SPDX-License-Identifier: Apache-2.0

//go:build linux

package smcr

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/smckit/smckit/internal/lab"
)

// TestFailovers loses links again and again, beside many connections and over bad wires: no connection gets an error, and every
// byte arrives. TestLinks has what a short run needs of it.
func TestFailovers(t *testing.T) {
	lab.Need(t)
	if !lab.Full() {
		t.Skip("it takes an hour: set SMCKIT_FULL")
	}
	eachKernel(t, failovers)
}

func failovers(t *testing.T, kernel string) {
	ours := side{kernel, lab.ModuleOurs}
	lt := startWith(t, lab.Options{Wires: 2, Memory: 1536}, ours, ours)
	oneNetwork(t, lt)
	logEvents := logFailures(t, lt, [2]side{ours, ours})
	address, echo := serve(t, lt, "echo", 5070)
	for _, conns := range []int{1, 50, 250} {
		t.Run(fmt.Sprintf("%d connections", conns), func(t *testing.T) {
			beside(t, lt, address, conns, func() { loseEach(t, lt) })
		})
	}
	t.Run("urgent data", func(t *testing.T) {
		beside(t, lt, address, 4, func() { loseEach(t, lt) }, "--urgent")
	})
	t.Run("streams", func(t *testing.T) {
		beside(t, lt, address, 4, func() { loseEach(t, lt) }, "--size", "60000", "--pause", "0")
	})
	for _, percent := range []int{1, 5} {
		t.Run(fmt.Sprintf("%d %% of packets lost", percent), func(t *testing.T) { badWire(t, lt, address, percent) })
	}
	t.Run("flapping", func(t *testing.T) {
		beside(t, lt, address, 10, func() { flap(t, lt, repetitions(kernel, 300)) })
	})
	t.Run("many in a row", func(t *testing.T) {
		beside(t, lt, address, 10, func() { inARow(t, lt, "a", repetitions(kernel, 1000)) }, "--size", "20000")
	})
	logEvents()
	lab.Kill(t, echo)
	for _, host := range []string{"a", "b"} {
		unloads(t, lt, host)
	}
}

// TestFailoversWithStock loses links 200 times in a row, by ports that go down, beside connections with a host that has the stock
// module. Messages are small, because one that crosses the end of an RMB may break the link (docs/protocol.md, 14).
func TestFailoversWithStock(t *testing.T) {
	lab.Need(t)
	if !lab.Full() {
		t.Skip("it takes half an hour: set SMCKIT_FULL")
	}
	ours := side{lab.Newest(), lab.ModuleOurs}
	for i, p := range [][2]side{{ours, stock}, {stock, ours}} {
		t.Run(fmt.Sprintf("%s to %s", p[0], p[1]), func(t *testing.T) {
			lt := startWith(t, lab.Options{Wires: 2}, p[0], p[1])
			oneNetwork(t, lt)
			logEvents := logFailures(t, lt, p)
			address, echo := serve(t, lt, "echo", 5070)
			hosts := losableWithStock(p)
			for _, host := range hosts {
				beside(t, lt, address, 10, func() { inARow(t, lt, host, 200/len(hosts)) })
			}
			logEvents()
			lab.Kill(t, echo)
			unloads(t, lt, []string{"a", "b"}[i])
		})
	}
}

// beside does something while connections exchange data with an echo. All of them stay SMC-R, and none gets an error.
func beside(t *testing.T, lt *lab.Test, address string, conns int, do func(), flags ...string) {
	t.Helper()
	before := counters(lt)
	stop := startKeep(t, lt, address, conns, flags...)
	await(t, lt, "a", address, conns)
	awaitLinks(t, lt, true)
	do()
	onlySMCR(t, lt, before, conns)
	stop()
}

// startKeep has connections exchange data with an echo until stop is called: none gets an error. The flags are those of smcflow keep.
func startKeep(t *testing.T, lt *lab.Test, address string, conns int, flags ...string) (stop func()) {
	t.Helper()
	argv := append([]string{"smcflow", "keep", "--conns", fmt.Sprint(conns)}, flags...)
	p := lt.StartIn("a", "", append(argv, address)...)
	t.Cleanup(func() { lab.Kill(t, p) })
	return func() {
		if err := p.Signal(unix.SIGTERM); err != nil {
			t.Fatal(err)
		}
		finish(t, p)
	}
}

// loseEach loses the link of each port of both hosts.
func loseEach(t *testing.T, lt *lab.Test) {
	t.Helper()
	for _, host := range []string{"a", "b"} {
		inARow(t, lt, host, 2)
	}
}

// badWire loses packets on one of the two wires, so that queue pairs send them again, and may give up. The connections go on, by
// whichever link there is.
func badWire(t *testing.T, lt *lab.Test, address string, percent int) {
	both(t, lt, fmt.Sprintf("tc qdisc add dev eth1 root netem loss %d%%", percent))
	check := lt.StartIn("a", "", "smcflow", "check", "--conns", "10", "--size", "3000000", address)
	defer lab.Kill(t, check)
	finish(t, check)
	both(t, lt, "tc qdisc del dev eth1 root")
}

// flap has a port go down and come up every two seconds, a number of times. Then the group is whole again.
func flap(t *testing.T, lt *lab.Test, times int) {
	t.Helper()
	flapping := lt.StartIn("b", "", "sh", "-c", fmt.Sprintf("for i in $(seq %d); do ip link set eth1 down; sleep 1; ip link set eth1 up; sleep 1; done", times))
	defer lab.Kill(t, flapping)
	finishWithin(t, flapping, 15*time.Minute)
	awaitLinks(t, lt, true)
}

// inARow has the ports of a host go down in turns, a number of times, each when both hosts have two links again. Connections return to
// a link only after a second, so most of them move each time.
func inARow(t *testing.T, lt *lab.Test, host string, times int) {
	t.Helper()
	for i := range times {
		portDown(lt, host, []string{"eth1", "eth0"}[i%2]).happen(t, lt)
		if i%100 == 99 {
			t.Logf("%d failovers", i+1)
		}
	}
}
