// SPDX-License-Identifier: Apache-2.0

//go:build linux

package ism

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/smckit/smckit/internal/lab"
)

// TestScale has eight hosts in one fabric: all pairs exchange data, and two of the hosts have a thousand connections at once.
func TestScale(t *testing.T) {
	if !lab.Full() {
		t.Skip("boots eight guests: set SMCKIT_FULL=1, or run 'make test-full'")
	}
	onKernels(t, scale)
}

func scale(t *testing.T, kernel string) {
	const hosts = 8
	lt := boot(t, lab.Options{Kernel: kernel, Hosts: hosts, Memory: 384, Fabric: lab.Fabric{Size: 256 << 20, Members: hosts}})
	for _, h := range lt.Hosts {
		lt.Must(h.Name, "sysctl -qw net.smc.rmem=16384 net.smc.wmem=16384")
	}
	t.Run("pairs", func(t *testing.T) { allPairs(t, lt) })
	t.Run("connections", func(t *testing.T) { thousand(t, lt) })
	for _, h := range lt.Hosts {
		nothingUsed(t, lt, h.Name)
	}
	for _, h := range lt.Hosts {
		unloads(t, lt, h.Name)
	}
}

// allPairs has each host exchange data with those that come after it, all at once.
func allPairs(t *testing.T, lt *lab.Test) {
	const conns, rounds = 2, 2
	before := make([]lab.Counters, len(lt.Hosts))
	address := make([]string, len(lt.Hosts))
	for i, h := range lt.Hosts {
		address[i] = fmt.Sprintf("10.0.0.%d:5018", i+1)
		defer lab.Kill(t, lt.Serve(h.Name, "", "echo", address[i]))
		before[i] = lt.Counters(h.Name)
	}
	begun := time.Now()
	var clients []*lab.Process
	for i, h := range lt.Hosts {
		for _, to := range address[i+1:] {
			clients = append(clients, lt.StartIn(h.Name, "", "smcflow", "check", "--conns", fmt.Sprint(conns), "--rounds", fmt.Sprint(rounds),
				"--size", "200000", to))
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), lab.Scale(time.Minute))
	defer cancel()
	for _, p := range clients {
		if r, err := p.Wait(ctx); err != nil || r.Code != 0 {
			t.Errorf("a pair of hosts: %v, %+v", err, r)
		}
	}
	t.Logf("%d pairs took %v", len(clients), time.Since(begun))
	for i, h := range lt.Hosts {
		now := lt.Counters(h.Name)
		client := now.Connections.ClientV2 - before[i].Connections.ClientV2
		server := now.Connections.ServerV2 - before[i].Connections.ServerV2
		fell := now.FellBack() - before[i].FellBack()
		if client != conns*rounds*(len(lt.Hosts)-1-i) || server != conns*rounds*i || fell != 0 {
			t.Errorf("host %s: %d connections of SMC-D as client, %d as server, %d fell back: %+v", h.Name, client, server, fell, now.Fallback)
		}
	}
}

// thousand has 1,000 connections between a and b exchange data at once.
func thousand(t *testing.T, lt *lab.Test) {
	const conns = 1000
	address, echo := serve(lt, "echo", 5019)
	defer lab.Kill(t, echo)
	before, begun := counters(lt), time.Now()
	p := keepFrom(t, lt, "a", address, conns, "--pause", "1s")
	t.Logf("%d connections took %v", conns, time.Since(begun))
	onlySMCD(t, lt, before, conns)
	lab.Stop(t, p)
	t.Logf("memory of a: %s", lt.Must("a", "free -m"))
}
