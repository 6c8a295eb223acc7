// SPDX-License-Identifier: Apache-2.0

//go:build linux

package counters

import (
	"regexp"
	"testing"

	"github.com/smckit/smckit/internal/lab"
)

// Lines of the trace: those of the stock module, and ours in addition.
var (
	stockLines = []string{
		`smc_tx_sendmsg: smc=\w+ net=\d+ len=8193 dev=rxe0`,
		`smc_rx_recvmsg: smc=\w+ net=\d+ len=8193 dev=rxe0`,
		`smc_switch_to_fallback: sk=\w+ clcsk=\w+ net=\d+ fallback_rsn=\d+`,
	}
	ourLines = []string{
		`smc_tx: sk=\w+ token=\d+ asked=8193 done=8193`, `smc_fallback: sk=\w+ client reason=0x\w+ peer=0x\w+`,
		`smc_phase: `, `smc_rendezvous: `, `smc_clc_send: `, `smc_clc_recv: `, `smc_close: `,
	}
	linkLines = []string{`smcr_link_down: lnk=\w+ lgr=\w+ net=\d+ state=1 dev=rxe0 location=\w+`}
)

// traceOn enables the tracepoints of a host. tests/control checks their fields.
func traceOn(lt *lab.Test, host string) {
	lt.Must(host, lab.MountTracing+"; echo 16384 >"+lab.Tracing+"buffer_size_kb; cd "+lab.Tracing+"events; "+
		"for e in smc smckit; do test ! -e $e || echo 1 >$e/enable; done")
}

// traced checks the tracepoints during the loads, a fallback, and the end of a link.
func traced(t *testing.T, lt *lab.Test, module lab.Module) {
	t.Helper()
	defer lab.Kill(t, lt.Serve("a", "", "echo", "127.0.0.1:5001"))
	for _, pkg := range []string{"smctrace", "tool/smcmonitor"} {
		lt.GoTest(t, "a", "github.com/smckit/smckit/internal/"+pkg, "^TestIntegration")
	}
	want := stockLines
	if module == lab.ModuleOurs {
		want = append(append([]string{}, stockLines...), ourLines...)
		lt.Must("a", "sysctl -qw net.smc.loopback=0")
	}
	lt.Must("a", "smcflow check --size 1000 127.0.0.1:5001")
	if module == lab.ModuleOurs {
		lt.Must("a", "sysctl -qw net.smc.loopback=2; rdma link delete rxe0")
		want = append(want, linkLines...)
	}
	var trace string
	for _, h := range lt.Hosts {
		trace += lt.Must(h.Name, "cat "+lab.Tracing+"trace")
	}
	for _, line := range want {
		if !regexp.MustCompile(line).MatchString(trace) {
			t.Errorf("the trace has no line like %q", line)
		}
	}
}
