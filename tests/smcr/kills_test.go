// SPDX-License-Identifier: Apache-2.0

//go:build linux

package smcr

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/smckit/smckit/internal/lab"
)

// killedOften kills a program with ten streams again and again, each time when some or all of them are SMC-R. The connections
// of other programs in the same link group go on.
func killedOften(t *testing.T, lt *lab.Test, rounds int) {
	const streams, others = 10, 4
	victims, sink := serve(t, lt, "sink", 5006)
	defer lab.Kill(t, sink)
	address, echo := serve(t, lt, "echo", 5007)
	defer lab.Kill(t, echo)
	bystander := keepIn(t, lt, "", address, others)
	before := counters(lt)
	for range rounds {
		p, err := lt.Host("a").Start(lab.Cmd{Argv: []string{"smcflow", "source", "--seconds", "600", "--conns", fmt.Sprint(streams), victims}})
		if err != nil {
			t.Fatal(err)
		}
		some := fmt.Sprintf("test $(smcss --state active --port 5006 | grep -c SMCR) -ge %d", 1+rand.IntN(streams))
		if err := lt.Host("a").WaitFor(t.Context(), some); err != nil {
			t.Error(err)
		}
		lab.Kill(t, p)
		if t.Failed() {
			break
		}
	}
	lab.Stop(t, bystander)
	for i, host := range []string{"a", "b"} {
		now := lt.CountersR(host)
		if fell := now.FellBack() - before[i].FellBack(); fell != 0 {
			t.Errorf("host %s: %d connections fell back: %+v", host, fell, now.Fallback)
		}
	}
}

// TestKills kills such a program a thousand times, with our module and with the stock one as the peer, and ours in both roles.
func TestKills(t *testing.T) {
	lab.Need(t)
	if !lab.Full() {
		t.Skip("takes most of an hour: SMCKIT_FULL=1")
	}
	ours := side{lab.Newest(), lab.ModuleOurs}
	for _, p := range [][2]side{{ours, ours}, {ours, stock}, {stock, ours}} {
		t.Run(fmt.Sprintf("%s to %s", p[0], p[1]), func(t *testing.T) {
			lt := start(t, p[0], p[1])
			killedOften(t, lt, 1000)
			for i, host := range []string{"a", "b"} {
				if p[i].module == lab.ModuleOurs {
					unloads(t, lt, host)
				}
			}
		})
	}
}
