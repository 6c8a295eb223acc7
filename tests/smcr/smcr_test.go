// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package smcr tests SMC-R between two hosts over soft-RoCE: our module with itself on every kernel, and with the stock
// module of another host in both roles.
package smcr

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/smckit/smckit/internal/lab"
)

// side is a host: its kernel, and its module.
type side struct {
	kernel string
	module lab.Module
}

func (s side) String() string { return string(s.module) + " on " + s.kernel }

// stock is the peer that is not ours. 6.12 is the kernel whose messages we recorded.
var stock = side{"6.12", lab.ModuleStock}

// pairs are clients and servers. At least one of each pair has our module. Full runs have all of them, others have each kernel
// once: the newest with the stock module, and the older ones with each other.
func pairs() [][2]side {
	var ours []side
	for _, k := range lab.Series() {
		ours = append(ours, side{k, lab.ModuleOurs})
	}
	var all [][2]side
	if !lab.Full() {
		newest, older := ours[len(ours)-1], ours[:len(ours)-1]
		all = append(all, [2]side{newest, stock}, [2]side{stock, newest})
		for i := 1; i < len(older); i++ {
			all = append(all, [2]side{older[i-1], older[i]})
		}
		return all
	}
	for _, s := range ours {
		all = append(all, [2]side{s, stock}, [2]side{stock, s})
		for _, other := range ours {
			all = append(all, [2]side{s, other})
		}
	}
	return all
}

func TestSMCR(t *testing.T) {
	lab.Need(t)
	for _, p := range pairs() {
		t.Run(fmt.Sprintf("%s to %s", p[0], p[1]), func(t *testing.T) {
			suite(t, start(t, p[0], p[1]), p, "")
		})
	}
}

// suite is all that is tested between two hosts, whose adapters may have limits, as in rdma_test. In the end our modules are
// unloaded.
func suite(t *testing.T, lt *lab.Test, p [2]side, limits string) {
	modules := [2]lab.Module{p[0].module, p[1].module}
	onlyOurs := modules == [2]lab.Module{lab.ModuleOurs, lab.ModuleOurs}
	many := 60
	if lab.Full() {
		many = 300 // more than one group has
	}
	t.Run("data", func(t *testing.T) { data(t, lt, many) })
	t.Run("dumps", func(t *testing.T) { dumps(t, lt, modules) })
	t.Run("unlike rings", func(t *testing.T) { unlikeRings(t, lt) })
	t.Run("killed clients", func(t *testing.T) { killedClients(t, lt) })
	t.Run("killed server", func(t *testing.T) { killedServer(t, lt) })
	// The stock module of 6.12 may hang for ever when its peer's device goes.
	if onlyOurs {
		t.Run("cuts of a", func(t *testing.T) { cuts(t, lt, "a") })
		t.Run("cuts of b", func(t *testing.T) { cuts(t, lt, "b") })
		t.Run("silence", func(t *testing.T) { silence(t, lt) })
		t.Run("table", func(t *testing.T) { table(t, lt, "b") })
		t.Run("impairments", func(t *testing.T) { impairments(t, lt) })
		if lab.Full() {
			t.Run("heavyLoss", func(t *testing.T) { heavyLoss(t, lt) })
		}
	}
	t.Run("IPv6", func(t *testing.T) { byIPv6(t, lt, onlyOurs) })
	t.Run("IPsec", func(t *testing.T) { ipsec(t, lt, modules) })
	t.Run("deleted groups", func(t *testing.T) { deletes(t, lt, modules) })
	// These depend on the peer least, and most of them have counterparts in tests/onehost and tests/badpeer.
	if lab.Full() {
		t.Run("large buffers", func(t *testing.T) { largeBuffers(t, lt, modules, limits) })
		t.Run("program killed again and again", func(t *testing.T) { killedOften(t, lt, modules, 3) })
		t.Run("memory", func(t *testing.T) { memoryCeiling(t, lt, modules) })
		t.Run("scatteredBuffers", func(t *testing.T) { scatteredBuffers(t, lt, modules) })
		t.Run("roceBlocked", func(t *testing.T) { roceBlocked(t, lt, modules) })
	}
	if onlyOurs {
		t.Run("version 1", func(t *testing.T) { version1(t, lt, modules) })
	}
	for i, host := range []string{"a", "b"} {
		if p[i].module == lab.ModuleOurs {
			unloads(t, lt, host)
		}
	}
}

// start boots a client, a, and a server, b, that can speak SMC-R.
func start(t *testing.T, client, server side) *lab.Test {
	t.Helper()
	return startWith(t, lab.Options{}, client, server)
}

// startWith boots them with other options.
func startWith(t *testing.T, o lab.Options, client, server side) *lab.Test {
	t.Helper()
	dir, err := lab.Commands(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	o.Kernels, o.Hosts, o.Programs = []string{client.kernel, server.kernel}, 2, []string{dir}
	lt := lab.Start(t, o)
	if err := lt.SetUpSMC(t.Context(), client.module, server.module); err != nil {
		t.Fatal(err)
	}
	return lt
}

// serve starts an echo, or a sink, on b and returns its address once it can be reached.
func serve(t *testing.T, lt *lab.Test, what string, port int) (address string, p *lab.Process) {
	t.Helper()
	address = fmt.Sprintf("%s:%d", lab.Addr4(0, 1), port)
	return address, lt.Serve("b", "", what, address)
}

// onlySMCR checks that n connections were made since before, all of SMC-R.
func onlySMCR(t *testing.T, lt *lab.Test, before [2]lab.Counters, n int) {
	t.Helper()
	for i, host := range []string{"a", "b"} {
		now := lt.CountersR(host)
		made := now.Connections.ClientV2 + now.Connections.ServerV2 - before[i].Connections.ClientV2 - before[i].Connections.ServerV2
		fell := now.FellBack() - before[i].FellBack()
		if made != n || fell != 0 {
			t.Errorf("host %s: %d connections of SMC-R, %d that fell back (%+v); want %d and none", host, made, fell, now.Fallback, n)
		}
	}
}

func counters(lt *lab.Test) [2]lab.Counters {
	return [2]lab.Counters{lt.CountersR("a"), lt.CountersR("b")}
}

// data moves bytes of all sizes both ways at once, on few and on many connections.
func data(t *testing.T, lt *lab.Test, many int) {
	address, echo := serve(t, lt, "echo", 5001)
	defer lab.Kill(t, echo)
	before, made := counters(lt), 0
	for _, c := range []struct {
		conns, rounds, size, chunk int
	}{
		{1, 1, 1, 1},
		{1, 20, 1000, 1000},
		{1, 1, 10 << 20, 64 << 10},
		{10, 1, 1_000_000, 64 << 10},
		{min(many, 50), 1, 100_000, 777},
		{many, 1, 100, 100},
	} {
		lt.Must("a", fmt.Sprintf("smcflow check --conns %d --rounds %d --size %d --chunk %d %s", c.conns, c.rounds, c.size, c.chunk, address))
		made += c.conns * c.rounds
	}
	onlySMCR(t, lt, before, made)
}

// streams starts programs on a that send without end, and waits until all of them do.
func streams(t *testing.T, lt *lab.Test, address string, n int) []*lab.Process {
	t.Helper()
	var all []*lab.Process
	for range n {
		all = append(all, stream(t, lt, address))
	}
	await(t, lt, "a", address, n)
	return all
}

// stream starts one such program.
func stream(t *testing.T, lt *lab.Test, address string) *lab.Process {
	t.Helper()
	p, err := lt.Host("a").Start(lab.Cmd{Argv: []string{"smcflow", "source", "--seconds", "600", address}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// await waits until n connections with a server are SMC-R on a host.
func await(t *testing.T, lt *lab.Test, host, address string, n int) {
	t.Helper()
	_, port, _ := strings.Cut(address, ":")
	there := fmt.Sprintf("test $(smcss --state active --port %s | grep -c SMCR) = %d", port, n)
	if err := lt.Host(host).WaitFor(t.Context(), there); err != nil {
		t.Fatal(err)
	}
}

// bystander starts a program on a whose data must arrive, whatever happens to other connections of the group.
func bystander(t *testing.T, lt *lab.Test, address string) *lab.Process {
	t.Helper()
	p, err := lt.Host("a").Start(lab.Cmd{Argv: []string{
		"smcflow", "check", "--conns", "2", "--rounds", "10", "--size", "500000", address,
	}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// finish wants a program to end by itself, without an error.
func finish(t *testing.T, p *lab.Process) {
	t.Helper()
	finishWithin(t, p, lab.Scale(60*time.Second))
}

func finishWithin(t *testing.T, p *lab.Process, limit time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if r, err := p.Wait(ctx); err != nil || r.Code != 0 {
		t.Errorf("the bystander: %v, %+v", err, r)
	}
}

// killedClients kills programs that send at full speed: only their connections end.
func killedClients(t *testing.T, lt *lab.Test) {
	victims, sink := serve(t, lt, "sink", 5002)
	defer lab.Kill(t, sink)
	address, echo := serve(t, lt, "echo", 5003)
	defer lab.Kill(t, echo)
	before := counters(lt)
	all := streams(t, lt, victims, 10)
	other := bystander(t, lt, address)
	for _, p := range all {
		lab.Kill(t, p)
	}
	finish(t, other)
	lt.Must("a", "smcflow check --size 100000 --conns 5 "+address)
	onlySMCR(t, lt, before, 10+20+5)
}

// killedServer kills the server of such programs.
func killedServer(t *testing.T, lt *lab.Test) {
	victims, sink := serve(t, lt, "sink", 5004)
	address, echo := serve(t, lt, "echo", 5005)
	defer lab.Kill(t, echo)
	before := counters(lt)
	all := streams(t, lt, victims, 10)
	other := bystander(t, lt, address)
	lab.Kill(t, sink)
	fail(t, all)
	finish(t, other)
	onlySMCR(t, lt, before, 10+20)
}

// fail waits until programs have noticed that their connections are broken.
func fail(t *testing.T, all []*lab.Process) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), lab.Scale(60*time.Second))
	defer cancel()
	for _, p := range all {
		if r, err := p.Wait(ctx); err != nil || r.Code == 0 {
			t.Errorf("a program whose connection is broken: %v, %+v", err, r)
		}
	}
}

// unloads checks that no connection or group keeps the module once the sockets are closed.
func unloads(t *testing.T, lt *lab.Test, host string) {
	t.Helper()
	if r := lt.Run(host, "rmmod", "smc_diag", "smc"); r.Code != 0 {
		t.Errorf("host %s: the modules cannot be unloaded: %+v", host, r)
	}
}
