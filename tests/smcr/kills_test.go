// SPDX-License-Identifier: Apache-2.0

//go:build linux

package smcr

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/smckit/smckit/internal/lab"
)

// Connections of the program that is killed, and of the bystander.
const (
	killedStreams = 10
	keptConns     = 4
)

// killedOften kills a program with ten streams again and again, each time when some or all of them are established. The
// connections of other programs in the same link group go on. A stock module may fail: it is only counted how often it does, but
// our module at the other end must not be the one that ended anything.
func killedOften(t *testing.T, lt *lab.Test, modules [2]lab.Module, rounds int) {
	victims, sink := serve(t, lt, "sink", 5006)
	defer lab.Kill(t, sink)
	address, echo := serve(t, lt, "echo", 5007)
	defer lab.Kill(t, echo)
	traceLinkFailures(lt, modules)
	bystander := keepIn(t, lt, "", address, keptConns)
	before := counters(lt)
	onlyOurs := modules == [2]lab.Module{lab.ModuleOurs, lab.ModuleOurs}
	var programs, bystanders int
	for range rounds {
		if !killed(t, lt, victims) {
			programs++
		}
		if !runs(lt, "keep") {
			bystanders++
			if !onlyOurs {
				bystander = lt.StartIn("a", "", "smcflow", "keep", "--conns", fmt.Sprint(keptConns), address)
			}
		}
		if t.Failed() || onlyOurs && programs+bystanders > 0 {
			break
		}
	}
	lab.Stop(t, bystander)
	if onlyOurs && programs+bystanders > 0 {
		t.Errorf("an error for %d programs that were to be killed, and for %d bystanders", programs, bystanders)
	}
	if !onlyOurs {
		t.Logf("of %d programs that were to be killed, %d had an error before; %d bystanders had one", rounds, programs, bystanders)
	}
	for i, host := range []string{"a", "b"} {
		fellBack(t, lt, host, modules[i], before[i], onlyOurs)
	}
	onlyPeerFailed(t, lt, modules)
}

// killed kills a program with streams to a sink. It reports whether the program was running until then.
func killed(t *testing.T, lt *lab.Test, victims string) bool {
	t.Helper()
	p := lt.StartIn("a", "", "smcflow", "source", "--seconds", "600", "--conns", fmt.Sprint(killedStreams), victims)
	// Those that fell back count here: how many they are is counted in the end.
	some := fmt.Sprintf("! %s || test $(smcss --state active --port 5006 | grep -c -e SMCR -e TCP) -ge %d", running("source"), 1+rand.IntN(killedStreams))
	if err := lt.Host("a").WaitFor(t.Context(), some); err != nil {
		t.Error(err)
	}
	_ = p.Signal(unix.SIGKILL) // fails if the program has already ended: then Wait returns its status
	ctx, cancel := context.WithTimeout(t.Context(), lab.Scale(10*time.Second))
	defer cancel()
	r, err := p.Wait(ctx)
	if err != nil {
		t.Error(err)
	}
	return r.Code == 128+int(unix.SIGKILL)
}

// running is the condition that smcflow runs with a command.
func running(command string) string {
	// The brackets keep grep from finding itself.
	return fmt.Sprintf("grep -qszx '[%s]%s' /proc/[0-9]*/cmdline", command[:1], command[1:])
}

func runs(lt *lab.Test, command string) bool {
	return lt.Run("a", "sh", "-c", running(command)).Code == 0
}

// fellBack counts the connections of a host that fell back. With our module on both hosts there must be none. With the stock one at
// the other end there must be none but those that it has declined.
func fellBack(t *testing.T, lt *lab.Test, host string, module lab.Module, before lab.Counters, onlyOurs bool) {
	t.Helper()
	now := lt.CountersR(host)
	fell, declined := now.FellBack()-before.FellBack(), 0
	for _, pair := range [][2]lab.Fallbacks{{now.Fallback.Client, before.Fallback.Client}, {now.Fallback.Server, before.Fallback.Server}} {
		declined += pair[0].Of("PEERDECL") - pair[1].Of("PEERDECL")
	}
	switch {
	case module == lab.ModuleStock:
		t.Logf("host %s, with the stock module: %d connections fell back, %d of them declined by our module", host, fell, declined)
	case onlyOurs && fell != 0, fell != declined:
		t.Errorf("host %s: %d connections fell back, %d of them declined by the peer: %+v", host, fell, declined, now.Fallback)
	case !onlyOurs:
		t.Logf("host %s: the stock module has declined %d connections", host, declined)
	}
}

// killsTrace is a trace of its own, which other events do not push link failures out of.
const killsTrace = "/sys/kernel/tracing/instances/kills"

// traceLinkFailures has our modules record from now on which links fail.
func traceLinkFailures(lt *lab.Test, modules [2]lab.Module) {
	for i, host := range []string{"a", "b"} {
		if modules[i] == lab.ModuleOurs {
			lt.Must(host, "mkdir "+killsTrace+"; echo 1 >"+killsTrace+"/events/smckit/smc_link_fail/enable")
		}
	}
}

// onlyPeerFailed checks that our modules have failed no link, except those whose other end was a stock module and is gone: it has
// deleted the link, or its queue pair does not answer.
func onlyPeerFailed(t *testing.T, lt *lab.Test, modules [2]lab.Module) {
	t.Helper()
	for i, host := range []string{"a", "b"} {
		if modules[i] != lab.ModuleOurs {
			continue
		}
		byPeer := 0
		for _, line := range strings.Split(lt.Must(host, "cd "+killsTrace+"; grep link= trace || :; cd ..; rmdir kills"), "\n") {
			_, why, _ := strings.Cut(line, "link=")
			f := strings.Fields(why)
			if len(f) < 2 {
				continue
			}
			switch f[1] {
			case "DELETED", "NOT_SENT", "NOT_RECEIVED", "EVENT", "SILENT":
				byPeer++
				if modules[1-i] == lab.ModuleStock {
					continue
				}
			}
			t.Errorf("host %s: %s", host, line)
		}
		if modules[1-i] == lab.ModuleStock {
			t.Logf("host %s: the stock module has ended %d links", host, byPeer)
		}
	}
}

// TestKills kills such a program a thousand times, with our module and with the stock one as the peer, and ours in both roles.
func TestKills(t *testing.T) {
	lab.Need(t)
	if !lab.Full() {
		t.Skip("takes most of an hour: SMCKIT_FULL=1")
	}
	eachKernel(t, kills)
}

func kills(t *testing.T, kernel string) {
	ours := side{kernel, lab.ModuleOurs}
	for _, p := range [][2]side{{ours, ours}, {ours, stock}, {stock, ours}} {
		t.Run(fmt.Sprintf("%s to %s", p[0], p[1]), func(t *testing.T) {
			lt := start(t, p[0], p[1])
			killedOften(t, lt, [2]lab.Module{p[0].module, p[1].module}, repetitions(kernel, 1000))
			for i, host := range []string{"a", "b"} {
				if p[i].module == lab.ModuleOurs {
					unloads(t, lt, host)
				}
			}
		})
	}
}
