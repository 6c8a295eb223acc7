// SPDX-License-Identifier: Apache-2.0

//go:build linux

package conformance

import (
	"testing"
	"time"

	"github.com/smckit/smckit/internal/lab"
	"github.com/smckit/smckit/internal/tool/smcpolicy"
)

// underRule runs the suite over ordinary TCP sockets that a rule for everything makes SMC-D. They differ from TCP only where sockets do that
// were made for SMC. Except in full runs, it has only the checks of what SMC lacks, of io_uring, and of full queues.
func underRule(t *testing.T, g *guest, all []run) {
	g.Must("a", "modprobe tls; smc_policy add smc; sysctl -qw net.smc.loopback=2")
	defer g.Must("a", "smc_policy flush")
	overSMCD(t, g, all, differences)
	for _, pattern := range []string{"tcp_*", "fastopen_*", "uring_*", "listen_stays_full"} {
		if len(all) > 0 {
			break
		}
		t.Run(pattern, func(t *testing.T) {
			some := *g
			some.only = pattern
			names, verdicts := some.run(t, run{"inet6", asClient}, lab.Scale(10*time.Second))
			differ(t, names, verdicts, differences)
		})
	}
	t.Run("io_uring", func(t *testing.T) { madeByURing(t, g) })
}

// madeByURing has io_uring make sockets, in each of its threads: the rule converts both ends of each check's connection.
func madeByURing(t *testing.T, g *guest) {
	ring := *g
	ring.only = "uring_made_*"
	before := onlyRule(t, g)
	names, verdicts := ring.run(t, run{"inet", asClient}, lab.Scale(10*time.Second))
	report(t, names, verdicts)
	now := onlyRule(t, g)
	if smc, tcp := now.SMC-before.SMC, now.TCP-before.TCP; len(names) < 3 || smc != uint64(2*len(names)) || tcp != 0 {
		t.Errorf("%d checks: %d ends of connections are SMC, %d are TCP", len(names), smc, tcp)
	}
}

// onlyRule returns the counters of the rule.
func onlyRule(t *testing.T, g *guest) smcpolicy.Rule {
	t.Helper()
	var list smcpolicy.Rules
	if g.Document("a", "smc_policy --json", &list); len(list.Rules) != 1 {
		t.Fatalf("%d rules", len(list.Rules))
	}
	return list.Rules[0]
}
