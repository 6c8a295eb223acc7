// SPDX-License-Identifier: Apache-2.0

//go:build linux

package conformance

import (
	"maps"
	"testing"
	"time"

	"github.com/smckit/smckit/internal/lab"
)

// differences lists the checks that SMC-D does not pass, each with the reason why TCP makes this unavoidable, or why it is
// correct. docs/smcd.md lists the same checks.
var differences = map[string]string{
	"close_linger_blocks_until_sent": "what has been sent is in the peer's memory: a close has nothing to wait for",
	"close_linger_times_out":         "what has been sent is in the peer's memory: a close has nothing to wait for",
	"opt_meminfo":                    "what waits to be read is in the connection's buffer, and takes no memory of the sock's",
	"uring_recv_zc":                  "io_uring receives without copies from TCP's queue only",
	"zerocopy_receive":               "there is no page of TCP's that could be mapped",
	"tcp_ulp_tls":                    "what takes over a TCP socket takes over the data that TCP moves, and there is none",
}

// movedDifferences lists those where the loopback device behaves like a hardware device.
func movedDifferences() map[string]string {
	all := maps.Clone(differences)
	all["oob_inline"] = "the message that tells of an urgent byte may not be replaced before it has been read"
	return all
}

// overTCP runs the suite with the loopback device switched off: every connection falls back.
func overTCP(t *testing.T, g *guest, all []run) {
	g.Must("a", "sysctl -qw net.smc.loopback=0")
	before := g.Counters("a")
	for _, r := range all {
		t.Run(r.String(), func(t *testing.T) {
			names, verdicts := g.run(t, r, lab.Scale(10*time.Second))
			report(t, names, verdicts)
		})
	}
	if now := g.Counters("a"); now.Connections != before.Connections || now.Fallback.Client.Total == before.Fallback.Client.Total {
		t.Errorf("with the loopback device switched off, connections went from %+v to %+v", before, now)
	}
}

// overSMCD runs the suite with SMC-D connections, and checks that they used SMC-D. Expected failures must occur.
func overSMCD(t *testing.T, g *guest, all []run, expected map[string]string) {
	g.Must("a", "sysctl -qw net.smc.loopback=2")
	for _, r := range all {
		t.Run(r.String(), func(t *testing.T) {
			before := g.Counters("a")
			names, verdicts := g.run(t, r, lab.Scale(10*time.Second))
			differ(t, names, verdicts, expected)
			checkCounters(t, r, len(names), before, g.Counters("a"))
		})
	}
}

// overSMCDAsNobody has an unprivileged user run the checks of calls that once did harm: connecting a broken connection again, and calls by
// io_uring.
func overSMCDAsNobody(t *testing.T, g *guest) {
	for _, pattern := range []string{"connect_again_after_*", "uring_*"} {
		t.Run(pattern, func(t *testing.T) {
			nobody := *g
			nobody.as, nobody.only = []string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"}, pattern
			overSMCD(t, &nobody, runs([]mode{asClient}, "smc"), differences)
		})
	}
}

// differ is like report, for a run in which some checks must fail.
func differ(t *testing.T, names []string, verdicts map[string]verdict, expected map[string]string) {
	t.Helper()
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			v := verdicts[name]
			why, listed := expected[name]
			switch {
			case v.skipped:
				t.Skip(v.text)
			case v.failed && !listed:
				t.Error(v.text)
			case !v.failed && listed:
				t.Errorf("passes, and is listed as a difference: %s", why)
			}
		})
	}
}

// checkCounters checks that the connections of a run were of the kind that the counters count. Some checks that only clients
// run connect to plain TCP on purpose, or set an option that excludes SMC; and a busy listener accepts TCP, on a slow machine more
// often, so there is no limit to these.
func checkCounters(t *testing.T, r run, checks int, before, now lab.Counters) {
	t.Helper()
	fell := now.Fallback.Client.Total - before.Fallback.Client.Total
	asked := 0
	for _, reason := range []string{"PEER_NO_SMC", "OPTUNSUPP"} {
		asked += now.Fallback.Client.Of(reason) - before.Fallback.Client.Of(reason)
	}
	if fell != asked || (asked > 0 && r.mode.name != asClient.name) {
		t.Errorf("%d connections fell back, %d of them because a check asked for it, or was too fast: %+v", fell, asked, now.Fallback)
	}
	clients := now.Connections.ClientV2 - before.Connections.ClientV2
	servers := now.Connections.ServerV2 - before.Connections.ServerV2
	if clients < checks/2 || servers < checks/2 || now.Connections.ClientV1 != 0 {
		t.Errorf("%d checks have had %d clients and %d servers that did not fall back", checks, clients, servers)
	}
}

// TestDifferences checks that the listed checks exist, and that their differences are documented.
func TestDifferences(t *testing.T) { documented(t, differences, "../../docs/smcd.md") }
