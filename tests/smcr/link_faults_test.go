// SPDX-License-Identifier: Apache-2.0

//go:build linux

package smcr

import (
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/smckit/smckit/internal/lab"
	"github.com/smckit/smckit/internal/tool/smcrd"
)

// atOnce is how long hosts have to agree on their links, and to unload the module. A debug kernel is slow at everything.
func atOnce(lt *lab.Test) time.Duration {
	if lt.Host("a").Kernel.Debug() {
		return lab.Scale(10 * time.Second)
	}
	return lab.Scale(time.Second)
}

// activeLinks returns the UIDs that the peer has given the active links of a host, by those of the host; mirrored, the other way round.
func activeLinks(t *testing.T, lt *lab.Test, host string, mirrored bool) map[string]string {
	t.Helper()
	var answer smcrd.LinkGroupsR
	lt.Document(host, "smcr linkgroup link-show --json", &answer)
	all := map[string]string{}
	for _, g := range answer.LinkGroups {
		for _, l := range g.Links {
			switch {
			case l.State != "LINK_ACTIVE":
			case mirrored:
				all[l.PeerUID] = l.UID
			default:
				all[l.UID] = l.PeerUID
			}
		}
	}
	return all
}

// agreeAfter has a link of the one group be lost. As soon as a host lists other links than before, both have to list the same.
func agreeAfter(t *testing.T, lt *lab.Test, lose func()) {
	t.Helper()
	before := activeLinks(t, lt, "a", false)
	lose()
	begun, lost := time.Now(), time.Time{}
	for {
		a, b := activeLinks(t, lt, "a", false), activeLinks(t, lt, "b", true)
		same := maps.Equal(a, b)
		if lost.IsZero() && !(same && maps.Equal(a, before)) {
			lost = time.Now()
		}
		if !lost.IsZero() && same {
			return
		}
		if !lost.IsZero() && time.Since(lost) > atOnce(lt) || time.Since(begun) > lab.Scale(20*time.Second) {
			t.Errorf("%v after a loss: a lists the links %v, b %v", time.Since(begun), a, b)
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// unloadsAtOnce is unloads with a limit of time. Idle groups may be left, which end.
func unloadsAtOnce(t *testing.T, lt *lab.Test, host string) {
	t.Helper()
	out := lt.Must(host, "read from _ </proc/uptime; rmmod smc_diag smc; read to _ </proc/uptime; echo $from $to")
	var from, to float64
	if _, err := fmt.Sscan(out, &from, &to); err != nil {
		t.Fatalf("%q: %v", out, err)
	}
	if took := time.Duration((to - from) * float64(time.Second)); took > atOnce(lt) {
		t.Errorf("host %s: the modules were unloaded in %v", host, took)
	}
}

// besideEcho does something while connections exchange data with an echo, in a group of its own with two links. None of them gets an error.
func besideEcho(t *testing.T, lt *lab.Test, port int, do func()) {
	t.Helper()
	address, echo := serve(t, lt, "echo", port)
	defer lab.Kill(t, echo)
	stop := startKeep(t, lt, address, 4, "--size", "30000", "--pause", "5ms")
	await(t, lt, "a", address, 4)
	awaitLinks(t, lt, true)
	do()
	stop()
	endGroups(t, lt)
}

// someHosts are both hosts in full runs, else the server.
func someHosts() []string {
	if lab.Full() {
		return []string{"a", "b"}
	}
	return []string{"b"}
}

// queuePairFails has a queue pair go into error: connections go on by the other link.
func queuePairFails(t *testing.T, lt *lab.Test) {
	for i, host := range someHosts() {
		besideEcho(t, lt, 5067, func() {
			var answer smcrd.LinkGroupsR
			lt.Document(host, "smcr linkgroup link-show --json", &answer)
			links := answer.LinkGroups[0].Links
			agreeAfter(t, lt, func() { setRDMATest(lt, host, fmt.Sprintf("fail_qp=%d", links[i%len(links)].ID)) })
			setRDMATest(lt, host, "")
		})
	}
}

// setRDMATest sets the parameter rdma_test of the module.
func setRDMATest(lt *lab.Test, host, entries string) {
	lt.Must(host, "echo '"+entries+"' >/sys/module/smc/parameters/rdma_test")
}

// lostWhileAdded has a host lose the port of a link that is being added, which takes long because an adapter is slow to register buffers.
// Connections go on by the first link, and the group gets a second one when the port is back.
func lostWhileAdded(t *testing.T, lt *lab.Test) {
	for _, host := range someHosts() {
		address, echo := serve(t, lt, "echo", 5068)
		setRDMATest(lt, "b", "delay_reg=500")
		stop := startKeep(t, lt, address, 1, "--pause", "5ms")
		if err := lt.Host("b").WaitFor(t.Context(), "smcr link | grep -q ACTIVATING && smcr link | grep -q LINK_ACTIVE"); err != nil {
			t.Fatalf("%v\n%s", err, lt.Must("b", "smcr link"))
		}
		lt.Must(host, "ip link set eth1 down")
		for _, h := range []string{"a", "b"} {
			if err := lt.Host(h).WaitFor(t.Context(), "! smcr link | grep -q ACTIVATING"); err != nil {
				t.Errorf("host %s: %v\n%s", h, err, lt.Must(h, "smcr link"))
			}
		}
		if a, b := activeLinks(t, lt, "a", false), activeLinks(t, lt, "b", true); !maps.Equal(a, b) {
			t.Errorf("port of %s: a lists the links %v, b %v", host, a, b)
		}
		setRDMATest(lt, "b", "")
		lt.Must(host, "ip link set eth1 up")
		awaitLinks(t, lt, true)
		stop()
		lab.Kill(t, echo)
		endGroups(t, lt)
	}
}

// lostTwice has both hosts lose the same link at the same time, and then the other link just when connections return to the first one.
func lostTwice(t *testing.T, lt *lab.Test) {
	besideEcho(t, lt, 5069, func() {
		agreeAfter(t, lt, func() { inParallel(t, lt, "ip link set eth1 down") })
		both(t, lt, "ip link set eth1 up")
		awaitLinks(t, lt, true)
		if err := lt.Host("b").WaitFor(t.Context(), connsOnLinks("n == 2")); err != nil {
			t.Fatal(err)
		}
		agreeAfter(t, lt, func() { lt.Must("b", "ip link set eth0 down") })
		lt.Must("b", "ip link set eth0 up")
		awaitPorts(t, lt, "b")
	})
}

// inParallel runs a command on both hosts at the same time.
func inParallel(t *testing.T, lt *lab.Test, command string) {
	t.Helper()
	done := make(chan error, 2)
	for _, host := range []string{"a", "b"} {
		go func() {
			_, err := lt.Host(host).Shell(t.Context(), command)
			done <- err
		}()
	}
	if err := errors.Join(<-done, <-done); err != nil {
		t.Fatal(err)
	}
}

// peerHangs stops the processors of b while connections move data: a notices by its tests of both links, its connections end, and
// nothing keeps the module.
func peerHangs(t *testing.T, lt *lab.Test) {
	address, _ := serve(t, lt, "sink", 5071)
	all := streams(t, lt, address, 3)
	awaitLinks(t, lt, true)
	lt.Stall("b")
	fail(t, all)
	awaitNoGroupsOn(t, lt, "a")
	unloadsAtOnce(t, lt, "a")
}

// unloadsAndHangs unloads the module on both hosts. Then b loads it again, and hangs.
func unloadsAndHangs(t *testing.T, lt *lab.Test) {
	ours := [2]lab.Module{lab.ModuleOurs, lab.ModuleOurs}
	for _, host := range []string{"a", "b"} {
		unloadsAtOnce(t, lt, host)
	}
	t.Run("peer hangs", func(t *testing.T) {
		both(t, lt, "modprobe smc && modprobe smc_diag")
		reload(t, lt, ours, true)
		both(t, lt, "smc_pnet add LAB0 eth eth1; smc_pnet add LAB0 ib rxe1 1; sysctl -qw net.smc.smcr_testlink_time=2")
		peerHangs(t, lt)
	})
}
