// SPDX-License-Identifier: Apache-2.0

//go:build linux

package counters

import (
	"regexp"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/lab"
)

const tracing = "/sys/kernel/tracing/"

// stockEvents are the tracepoints of Linux 6.12 and their fields.
var stockEvents = map[string]string{
	"smc_switch_to_fallback": "const void * sk; const void * clcsk; u64 net_cookie; int fallback_rsn",
	"smc_tx_sendmsg":         "const void * smc; u64 net_cookie; size_t len; __data_loc char[] name",
	"smc_rx_recvmsg":         "const void * smc; u64 net_cookie; size_t len; __data_loc char[] name",
	"smcr_link_down":         "const void * lnk; const void * lgr; u64 net_cookie; int state; __data_loc char[] name; void * location",
}

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

// traceOn checks the fields of the tracepoints of a host and enables all.
func traceOn(t *testing.T, lt *lab.Test, host string) {
	t.Helper()
	lt.Must(host, "mountpoint -q "+tracing+" || mount -t tracefs tracefs "+tracing)
	field := regexp.MustCompile(`field:(.*?);\t`)
	for event, want := range stockEvents {
		var got []string
		for _, m := range field.FindAllStringSubmatch(lt.Must(host, "cat "+tracing+"events/smc/"+event+"/format"), -1) {
			if !strings.Contains(m[1], "common_") {
				got = append(got, m[1])
			}
		}
		if fields := strings.Join(got, "; "); fields != want {
			t.Errorf("%s has %q, want %q", event, fields, want)
		}
	}
	lt.Must(host, "echo 16384 >"+tracing+"buffer_size_kb; cd "+tracing+"events; for e in smc smckit; do test ! -e $e || echo 1 >$e/enable; done")
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
		trace += lt.Must(h.Name, "cat "+tracing+"trace")
	}
	for _, line := range want {
		if !regexp.MustCompile(line).MatchString(trace) {
			t.Errorf("the trace has no line like %q", line)
		}
	}
}
